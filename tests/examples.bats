# The files in examples/: each is what its reader expects, and its shell lines run, against the
# rlock under test. A wrong option, a command that is not run or a lock that is not released fails.
# take FILE: its shell becomes files; run_all: they are run, in their order, as their reader would;
# verify NAME: systemd understands the service and its timer.

load helper
load stand_ins

EXAMPLES=$TESTS/../examples

setup_file() { start_store_of_examples; }

setup() { stand_in; }

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

@test "the lines of crontab run their commands under their locks, and mail nothing if refused" {
    take crontab
    run_all
    ran 'report exclusive: /usr/local/bin/report' \
        'feed exclusive: /usr/local/bin/import-feed' \
        'rebuild-cache limit 1: /usr/local/bin/rebuild-cache' \
        'archive shared: rsync -a /srv/archive/ /mnt/mirror/' \
        'archive exclusive: /usr/local/bin/rotate-archive'
    # Another host, whose clock is late, runs the line: the lock that --at-least keeps refuses it.
    held report
    run sh -e "$T"/shell/01-*
    [[ $status == 0 && ! $output && $(wc -l <"$LOG") == 5 ]]
}

@test "the units of systemd run their commands under the lock" {
    take rlock-backup.timer
    take rlock-backup.service
    run_all
    ran 'backup exclusive: /usr/local/bin/backup'
    held backup
    # The unit takes this status for a success: SuccessExitStatus=75.
    run sh "$T"/shell/01-*
    [[ $status == 75 ]]
    verify rlock-backup
}

# verify NAME: systemd understands the service and its timer.
verify() {
    command -v systemd-analyze >/dev/null || skip "no systemd-analyze here"
    sed "s|/usr/local/bin/rlock|$RLOCK|" "$EXAMPLES/$1.service" >"$1.service"
    cp "$EXAMPLES/$1.timer" .
    run -0 systemd-analyze verify "./$1.service" "./$1.timer" 3>&-
    [[ $output != *"$1"* ]]
}

@test "the units of systemd write the metrics where node_exporter looks" {
    local directory=/var/lib/prometheus/node-exporter
    take rlock-metrics.timer
    take rlock-metrics.service
    grep -q "^ReadWritePaths=$directory\$" "$EXAMPLES/rlock-metrics.service"
    sed -i "s|$directory|$T/place|" "$T"/shell/*
    run_all
    grep -qx 'rlock_up 1' rlock.prom
    # The unit takes this status for a success: SuccessExitStatus=69.
    run env URL="unix://$T/none" RLOCK_SERVER_WAIT=0 sh "$T"/shell/01-*
    [[ $status == 69 ]]
    grep -qx 'rlock_up 0' rlock.prom
    verify rlock-metrics
}

@test "the commands of Nagios and Icinga check locks" {
    echo 'password-file = credential' >config
    take nagios-rlock.cfg
    run_all
    rm "$T"/shell/*
    take icinga2-rlock.conf
    run run_all
    [[ $status == 0 && $output == *"RLOCK OK - no lock is held; nothing matches deploy-*"* ]]
}

# metrics_in FILE: the names of metrics that it uses.
metrics_in() {
    grep -oE '\brlock_[a-z_]+\b' "$1" | sort -u
}

@test "the alert rules and the dashboard use metrics that there are" {
    sed -n 's/^\.It Li \(rlock_[a-z_]*\).*/\1/p' "$TESTS/../man/rlock-metrics.1" | sort >known
    for file in prometheus-rules.yml grafana-dashboard.json; do
        [[ $(metrics_in "$EXAMPLES/$file" | wc -l) -gt 5 ]]
        [[ ! $(metrics_in "$EXAMPLES/$file" | comm -23 - known) ]]
    done
    command -v jq >/dev/null || skip "no jq here"
    # Nothing is there twice or lies over something else; each panel asks for something.
    jq -e '(.panels | map(.id) | unique | length) == (.panels | length) and
        ([.panels[].gridPos | . as $at | range(.x; .x + .w) | . as $x | range($at.y; $at.y + $at.h) |
          [$x, .]] | (unique | length) == length and all(.[0] < 24)) and
        all(.panels[]; .title and (.targets | length) > 0 and all(.targets[]; .expr | length > 0)) and
        ([.templating.list[].name] | sort) == ["datasource", "key"]' \
        "$EXAMPLES/grafana-dashboard.json"
}

@test "the jobs of GitLab CI hold the lock while they work" {
    take gitlab-ci.yml
    run_all
    ran ' : make build' ' : make build' \
        'test-databases limit 1: make integration DATABASE=test_1' \
        'staging shared: make smoke-test' \
        'staging database exclusive: ./deploy.sh staging' 'nested in staging database'
    # As the comment says, from another job; and the pipeline once more.
    rlock latch wait -w 60s "builds-$CI_COMMIT_SHA"
    sh -e "$T"/shell/01-*
}

@test "the steps of GitHub Actions hold the lock while they work" {
    take github-actions.yml
    run_all bash
    ran 'database exclusive: ./migrate.sh' 'nested in database' ' : deploy.sh production' \
        ' : smoke-test.sh production'
    is_free production
}

# The step that gives the lock back is left out, so that the lock is still held, and can be taken
# away.
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

@test "the stages of the Jenkinsfile hold the lock while they work" {
    take Jenkinsfile
    run_all
    ran 'simulator limit 1: make test' 'production exclusive: ./deploy.sh production' \
        'nested in production' \
        'clean-up exclusive: ./clean-up.sh'
}

@test "the CronJob of Kubernetes runs its command under the lock" {
    take kubernetes-cronjob.yaml
    run_all
    ran 'report exclusive: /usr/local/bin/report'
    run rlock status --json report
    json '.[0].holders[0].label == "POD"'
}

# The tests name the file of each example, here or in one of the other files.
@test "each example has a test" {
    for file in "$EXAMPLES"/*; do
        [[ -f $file ]] || continue
        grep -qE "(take|as_host|sh|for file in) .*${file##*/}" \
            "$BATS_TEST_FILENAME" "$TESTS/fleet.bats"
    done
    for file in "$EXAMPLES"/drivers/rlock-store-*; do
        grep -q "exec:${file##*-}/" "$TESTS/drivers.bats" "$TESTS/clouds.bats"
    done
}

# Lines that begin with "rlock COMMAND" are looked for; their options must be in the help of that
# command.
@test "README, docs, manual, help: no line has an option that is not there" {
    local line command option count=0
    local -A help
    while read -r line; do
        read -r _ command _ <<<"$line"
        line=$(sed "s/'[^']*'//g; s/[$]([^)]*)//g; s/'.*//; s/ -- .*//" <<<"$line") # not what is another command's
        for option in $(grep -oE -- '(^| )--[a-z][a-z-]*' <<<"$line"); do
            ((++count))
            [[ ${help[$command]-} ]] ||
                help[$command]=$("$RLOCK" help "$command" && "$RLOCK" help options)
            grep -qE -- "(^| )$option( |,|\\[|\$)" <<<"${help[$command]}" ||
                { echo "$line: no $option" && false; }
        done
    done < <(
        {
            sed -n 's/^    //p' "$TESTS/../README.md" "$TESTS"/../docs/*.md
            sed -n '/^\.Bd/,/^\.Ed/p' "$TESTS"/../man/*.[17]
            for command in $("$RLOCK" help | sed -n 's/^  \([a-z-]*\)  .*/\1/p'); do
                "$RLOCK" help "$command" | sed -n '/Example/,$p'
            done
        } | grep -oE '\brlock (run|read|write|acquire|renew|release|status|check|metrics|force-release|latch|fence) [^|;&]*'
    )
    ((count > 20)) # lines were found
}

@test "help: the cron line is that of README, and each command understands its own example" {
    local command line token=00000000-0000-0000-0000-000000000000
    line=$("$RLOCK" help run | sed -n 's/^  0 3 \* \* \*  \(rlock .*\)/\1/p')
    [[ -n $line && $(<"$TESTS/../README.md") == *"  root  ${line% -- *}"* ]]
    # Understood, and nothing more: there is no server.
    mkdir "$T/shim"
    printf '#!/bin/sh\n"$RLOCK" "$@"\nstatus=$?\necho "$* $status" >>"$STATUSES"\nexit $status\n' \
        >"$T/shim/rlock"
    chmod +x "$T/shim/rlock"
    export STATUSES=$T/statuses RLOCK_URL=unix://$T/none RLOCK_SERVER_WAIT=0
    for command in $("$RLOCK" help | sed -n 's/^  \([a-z-]*\)  .*/\1/p'); do
        # These need a terminal, or do not end by themselves.
        [[ $command != @(top|serve|events) ]] || continue
        : >"$STATUSES"
        "$RLOCK" help "$command" | sed -n '/^Example/,$s/^  //p' |
            sed 's/^0 3 \* \* \*  //; s/\$\$/1/' \
            >"$T/example"
        env PATH="$T/shim:$PATH" VERSION=1 ARCH=a token="$token" RLOCK_OWNER="$token" \
            sh "$T/example" >"$T/said" 2>&1 </dev/null || true
        [[ -s $STATUSES ]] || { echo "$command has no example" && false; }
        ! grep -E ' (64|70|127)$' "$STATUSES" || { cat "$T/said" && false; }
    done
}

@test "docs/redis.md gives the user the rights of the manual" {
    line=$(grep '^    user rlock on >PASSWORD ' "$TESTS/../docs/redis.md")
    [[ ${line#*>PASSWORD } == "$(manual_rights | xargs) +config|get +acl|dryrun" ]]
}

@test "H134 README: the line for CI works for a script that calls rlock itself" {
    line=$(sed -n '/^### A CI job/,/^###/s/^ *- \(rlock run .*\)/\1/p' "$TESTS/../README.md")
    [[ $line == *"-- ./deploy.sh"* ]]
    sh -ec "$line"
    ran 'staging exclusive: ./deploy.sh staging' 'nested in staging'
}
