# The files in examples/: each is what its reader expects, and its shell lines run, against the rlock under
# test. A wrong option, a command that is not run or a lock that is not released fails.

load helper

EXAMPLES=$TESTS/../examples

setup_file() {
    export REDISCLI_AUTH=secret
    start_file --requirepass secret
}

setup() {
    T=$BATS_TEST_TMPDIR
    export RLOCK_TEST_ID=$T LOG=$T/ran URL=$RLOCK_URL
    declare -gA pid=()
    mkdir "$T/bin" "$T/shell" "$T/place"
    : >"$LOG"
    cd "$T/place" || return
    echo secret >credential
    export CI_COMMIT_SHA=0123abc GITHUB_ENV=$T/github RLOCK_PASSWORD=secret
    : >"$GITHUB_ENV"

    # A command that is wrapped is told what it was given, and no more happens.
    cat >"$T/bin/ran" <<'END'
#!/bin/sh
echo "$RLOCK_KEY $RLOCK_MODE${RLOCK_SLOT:+ $RLOCK_SLOT}: $*" >>"$LOG"
END
    # What is wrapped is not here: "ran" is run instead. Nor is the server.
    cat >"$T/bin/rlock" <<'END'
#!/bin/bash
export RLOCK_URL=$URL
for ((i = 1; i <= $#; i++)); do
    [[ ${!i} == -- ]] && exec "$RLOCK" "${@:1:i}" ran "${@:i+1}"
done
exec "$RLOCK" "$@"
END
    for name in make deploy.sh smoke-test.sh; do
        printf '#!/bin/sh\nexec ran %s "$@"\n' "$name" >"$T/bin/$name"
        ln -s "../bin/$name" "$T/place/$name"
    done
    chmod +x "$T/bin/"*
    PATH=$T/bin:$PATH
}

# take FILE: its shell becomes files in $T/shell.
take() {
    python3 -c 'import yaml' 2>/dev/null || skip "no python3-yaml here"
    python3 -B "$TESTS/examples_shell.py" "$EXAMPLES/$1" "$T/shell"
}

# run_all [SHELL]: what was taken, in its order, as its reader would run it.
run_all() {
    local file shell=${1:-sh}
    for file in "$T"/shell/*; do
        echo "--- ${file##*/}"
        "$shell" -n "$file"
        command -v shellcheck >/dev/null && shellcheck -S warning -s "$shell" -e SC1090 "$file"
        "$shell" -e "$file" </dev/null 3>&-
    done
}

# ran LINE...: these commands were run, in this order, and no others.
ran() {
    diff -u <(printf '%s\n' "$@") "$LOG"
}

@test "crontab" {
    take crontab
    run_all
    ran 'report exclusive: /usr/local/bin/report' \
        'feed exclusive: /usr/local/bin/import-feed' \
        'rebuild-cache limit 1: /usr/local/bin/rebuild-cache' \
        'archive shared: rsync -a /srv/archive/ /mnt/mirror/' \
        'archive exclusive: /usr/local/bin/rotate-archive'
    # A host whose clock is late.
    held report
    run sh -e "$T"/shell/01-*
    [[ $status == 0 && ! $output && $(wc -l <"$LOG") == 5 ]]
}

@test "systemd" {
    take rlock-backup.timer
    take rlock-backup.service
    run_all
    ran 'backup exclusive: /usr/local/bin/backup'
    held backup
    # SuccessExitStatus
    run sh "$T"/shell/01-*
    [[ $status == 75 ]]
    command -v systemd-analyze >/dev/null || skip "no systemd-analyze here"
    sed "s|/usr/local/bin/rlock|$RLOCK|" "$EXAMPLES/rlock-backup.service" >rlock-backup.service
    cp "$EXAMPLES/rlock-backup.timer" .
    run -0 systemd-analyze verify ./rlock-backup.service ./rlock-backup.timer 3>&-
    [[ $output != *rlock-backup* ]]
}

@test "GitLab CI" {
    take gitlab-ci.yml
    run_all
    ran ' : make build' ' : make build' \
        'test-databases limit 1: make integration DATABASE=test_1' \
        'staging shared: make smoke-test' \
        'staging database exclusive: ./deploy.sh staging'
    # As the comment says, from another job; and the pipeline once more.
    rlock latch wait -w 1s "builds-$CI_COMMIT_SHA"
    sh -e "$T"/shell/01-*
}

@test "GitHub Actions" {
    take github-actions.yml
    run_all bash
    ran 'database exclusive: ./migrate.sh' ' : deploy.sh production' ' : smoke-test.sh production'
    is_free production
}

@test "GitHub Actions: nothing is deployed without the lock" {
    take github-actions.yml
    rm "$T"/shell/*-Give-*
    run_all bash
    held production
    rlock force-release --yes production
    : >"$LOG"
    run bash -e "$T"/shell/*-Deploy.sh
    [[ $status == 1 && ! -s $LOG ]]
}

@test "Jenkinsfile" {
    take Jenkinsfile
    run_all
    ran 'simulator limit 1: make test' 'production exclusive: ./deploy.sh production' \
        'clean-up exclusive: ./clean-up.sh'
}

@test "Kubernetes CronJob" {
    take kubernetes-cronjob.yaml
    run_all
    ran 'report exclusive: /usr/local/bin/report'
    run rlock status --json report
    json '.[0].holders[0].label == "POD"'
}

@test "each example has a test" {
    local file
    for file in "$EXAMPLES"/*; do
        grep -q "take ${file##*/}\$" "$BATS_TEST_FILENAME"
    done
}

@test "README, manual, help: no line has an option that is not there" {
    local line command option count=0
    while read -r line; do
        read -r _ command _ <<<"$line"
        line=${line%% -- *}
        for option in $(grep -oE -- '(^| )--[a-z][a-z-]*' <<<"$line"); do
            ((++count))
            "$RLOCK" help "$command" | grep -qE -- "(^| )$option( |,|\\[|\$)" ||
                { echo "$line: no $option" && false; }
        done
    done < <(
        {
            sed -n 's/^    //p' "$TESTS/../README.md"
            sed -n '/^\.Bd/,/^\.Ed/p' "$TESTS"/../man/*.[17]
            for command in $("$RLOCK" help | sed -n 's/^  \([a-z-]*\)  .*/\1/p'); do
                "$RLOCK" help "$command" | sed -n '/Example/,$p'
            done
        } | grep -oE '\brlock (run|read|write|acquire|renew|release|status|force-release|latch) [^|;&]*'
    )
    ((count > 20))
}
