# docs/: each block of code is done as its reader would do it, against the rlock under test, with
# stand-ins for the reader's own commands. A wrong option, a command that is not run, or a lock that
# is held or free against what the page says fails. Each stand-in writes to the log; "ran LINE..."
# says that the log has just these lines: "KEY MODE: COMMAND" of a command under that lock, " :
# COMMAND" of one under none. take_block PAGE HEADING [NUMBER]: it becomes $T/block; as_cron,
# as_ci_job: the commands of a crontab or a CI job in it; run_block STATUS: it ends with that.
# stand_in_for NAME...: stand-ins of these names.

load helper
load stand_ins

setup_file() { start_store_of_examples; }

setup() { stand_in; }

# take_block PAGE HEADING [NUMBER]: that block becomes $T/block.
take_block() {
    "$TESTS/page_blocks" "$@" >"$T/block"
}

# as_cron: the block is of a crontab; its commands alone become $T/block, a line each.
as_cron() {
    sed -nE -i 's/^([0-9*/]+ +){5}(root +)?(rlock )/\3/p' "$T/block"
    grep -q . "$T/block"
}

# as_ci_job: the block is the definition of a CI job; its shell becomes $T/block.
as_ci_job() {
    sed -nE -i 's/^ *- (run: )?(\| *$)?//; s/^ *run: //; /rlock|RLOCK_OWNER=/p' "$T/block"
    grep -q . "$T/block"
}

# run_block [STATUS [SHELL...]]: $T/block ends with that status.
run_block() {
    local wanted=${1:-0}
    shift || true
    run "${@:-sh}" "$T/block" 3>&- </dev/null
    [[ $status == "$wanted" ]] || {
        cat "$T/block"
        echo "ended with $status: $output"
        return 1
    }
}

# ---------------------------------------------------------------- cron.md

@test "cron.md: one of many hosts runs it, and no other one within five minutes" {
    take_block cron.md 'One of many hosts runs it' 1
    grep -q '^PATH=/usr/local/bin:' "$T/block"
    as_cron
    run_block
    run_block
    ran 'nightly exclusive: /usr/local/bin/nightly'
    [[ ! $output ]]
}

@test "cron.md: once a day, and again if it failed" {
    take_block cron.md 'Once a day, and again if it failed' 1
    as_cron
    rlock run nightly-report -- false || true
    run_block
    run_block
    ran 'nightly-report exclusive: /usr/local/bin/report'
}

@test "cron.md: skip if it is running already; each status means one thing" {
    take_block cron.md 'Skip if it is running already' 1
    run_block
    [[ $output == 'backup done' ]]
    hold other backup
    run_block
    [[ ${lines[-1]} == 'a backup is running already' ]]
    URL=unix://$T/none RLOCK_SERVER_WAIT=0 run_block
    [[ ${lines[-1]} == 'no lock server: nothing was run' ]]
    ran 'backup exclusive: sleep 20'
}

@test "cron.md: once per firing; the others wait, and do nothing where it succeeded" {
    stand_in_for node
    take_block cron.md 'Once per firing, where several processes fire' 1
    stay first hourly
    queued hourly bg one sh "$T/block"
    queued hourly bg two sh "$T/block"
    ends_well first # with 9: it did not succeed
    ends_with one 0
    ends_with two 0
    ran 'hourly exclusive: node hourly.js'
}

@test "cron.md: backups with restic and borg: stale locks of theirs are removed under the lock" {
    stand_in_for restic borg
    take_block cron.md 'Backups with restic and borg' 1
    as_cron
    run_block
    ran 'restic-nas exclusive: restic unlock' 'restic-nas exclusive: restic backup /home' \
        'borg-nas exclusive: borg break-lock' 'borg-nas exclusive: borg create ::{now} /home' \
        'restic-nas exclusive: restic unlock --remove-all' 'restic-nas exclusive: restic prune'
}

# The first block is run twice: with three holders there already, its command is not executed.
@test "cron.md: at most three at a time; never longer than an hour" {
    take_block cron.md 'At most three at a time' 1
    as_cron
    run_block
    for one in 1 2 3; do
        hold $one mirror --limit 3
    done
    run_block
    take_block cron.md 'Never longer than an hour' 1
    as_cron
    grep -q -- '--at-most 1h' "$T/block"
    run_block
    ran 'mirror limit 1: /usr/local/bin/mirror-one' 'sync exclusive: /usr/local/bin/sync'
}

# ---------------------------------------------------------------- ci.md

@test "ci.md: a job under a lock, which calls rlock itself; the newest commit; a hotfix" {
    take_block ci.md 'A job under a lock' 1
    as_ci_job
    run_block
    export CI_COMMIT_BRANCH=main
    take_block ci.md 'Deploy the newest commit only' 1
    run_block
    take_block ci.md 'A hotfix does not wait behind the nightly jobs' 1
    run_block
    ran 'staging exclusive: ./deploy.sh staging' 'nested in staging' \
        'production exclusive: ./deploy.sh 0123abc' 'nested in production' \
        'staging exclusive: ./deploy.sh hotfix' 'nested in staging'
}

@test "ci.md: of the waiting deployments of a branch only the latest runs, the others end with 0" {
    export CI_COMMIT_BRANCH=main
    take_block ci.md 'Deploy the newest commit only' 1
    stay first production
    CI_COMMIT_SHA=older queued production bg older sh "$T/block"
    CI_COMMIT_SHA=newest bg newest sh "$T/block"
    ends_with older 0
    ends_well first
    ends_with newest 0
    ran 'production exclusive: ./deploy.sh newest' 'nested in production'
}

@test "ci.md: readers and writers: one job has the lock shared, the other has it alone" {
    take_block ci.md 'Readers and writers' 1
    run_block
    ran 'staging shared: make smoke-test' 'staging exclusive: ./deploy.sh staging' \
        'nested in staging'
}

@test "ci.md: a lock over several steps is held between them, and released by the last" {
    take_block ci.md 'A lock over several steps of a CI job' 1
    as_ci_job
    [[ $(wc -l <"$T/block") == 4 ]]
    # Each step is a shell, and a child of the runner.
    {
        echo 'export RLOCK_OWNER'
        echo 'sh -c "$(sed -n 1,2p "$T/steps")"; . "$GITHUB_ENV"; "$RLOCK" status -q production'
        echo '[ $? = 75 ] && sh -ec "$(sed -n 3p "$T/steps")" && sh -ec "$(sed -n 4p "$T/steps")"'
    } >"$T/runner"
    mv "$T/block" "$T/steps"
    mv "$T/runner" "$T/block"
    run_block 0 bash
    ran ' : deploy.sh production'
    poll_until 10 is_free production
}

@test "ci.md: one job waits for others: three builds, one of them done twice, open its latch" {
    export VERSION=7 ARCH=amd64
    stand_in_for publish.sh
    take_block ci.md 'One job waits for others, wherever they run' 1
    # The three builds are three hosts, and one is done twice.
    sed -i '2{p;s/\$ARCH/arm64/p;s/arm64/riscv64/}' "$T/block"
    [[ $(grep -c 'latch run' "$T/block") == 3 ]]
    run_block
    [[ $(tail -n 1 "$LOG") == ' : publish.sh' && $(grep -c 'make package' "$LOG") == 3 ]]
}

@test "ci.md: a pool of machines with names, and of slots" {
    stand_in_for ssh
    take_block ci.md 'A pool of test machines with names' 1
    hold one bench-1
    run_block
    echo host-1 host-2 >machines
    take_block ci.md 'A pool of test machines with names' 2
    run_block
    take_block ci.md 'Test databases, devices, accounts: at most three at a time' 1
    run_block
    ran 'bench-2 exclusive: ssh -tt bench-2 ./benchmark' 'host-1 exclusive: ./run-on-machine' \
        'test-databases limit 1: make integration DATABASE=test_1'
}

@test "ci.md: graphics cards: each job is told the cards whose slots or KEYs it holds" {
    stand_in_for train train-on-two
    for one in train train-on-two; do
        printf '#!/bin/sh\necho "$0 $CUDA_VISIBLE_DEVICES" >>"$LOG"\n' >"$T/bin/$one"
    done
    hold one gpu --limit 4
    hold two gpu0
    take_block ci.md 'Graphics cards' 1
    run_block
    ran './train 1' './train-on-two 1,2'
}

@test "ci.md: migrations by many replicas; Terraform and Ansible" {
    stand_in_for migrate serve terraform
    take_block ci.md 'Migrations by many replicas' 1
    export VERSION=7
    run_block
    run_block
    export VERSION=8
    run_block
    take_block ci.md 'Terraform and Ansible' 1
    run_block
    ran 'schema schema-7 exclusive: ./migrate up' ' : serve' ' : serve' \
        'schema schema-8 exclusive: ./migrate up' ' : serve' \
        'terraform-prod exclusive: terraform plan -input=false -out=plan' \
        'terraform-prod exclusive: terraform apply -input=false plan' \
        'ansible-prod exclusive: ansible-playbook -i prod site.yml'
}

# ---------------------------------------------------------------- scripts.md

@test "scripts.md: a script that cannot run twice holds the lock while it works" {
    ln -sf "$RLOCK" "$T/bin/rlock"
    take_block scripts.md 'A script that cannot run twice' 1
    sed -i 's/^sleep 5/"$RLOCK" status -q deploy; echo "status $?"/' "$T/block"
    run sh "$T/block" staging
    [[ ${lines[0]} == 'deploying staging, fencing token '* && ${lines[1]} == 'status 75' ]]
    is_free deploy
    # The environment of a run that has ended, as at(1) keeps it, holds nothing.
    stay other deploy
    export RLOCK_KEY=deploy RLOCK_FENCE=1
    queued deploy bg script sh "$T/block" staging
    ends_well other
    ends_with script 0
    contains "$T/script.out" 'status 75'
}

@test "scripts.md: a script that cannot be wrapped has the lock from its first step to its last" {
    stand_in_for stop-service deploy-files start-service
    printf '#!/bin/sh\n"$RLOCK" status -q deploy; echo "$1 $?" >>"$LOG"\n' >"$T/bin/ran"
    take_block scripts.md 'A script that cannot be wrapped' 1
    grep -qx '#!/bin/sh -e' "$T/block"
    run_block 0 sh -e
    ran 'stop-service 75' 'deploy-files 75' 'start-service 75'
    poll_until 10 is_free deploy
    # The lock is taken away between two steps.
    printf '#!/bin/sh\nrlock force-release --yes --now deploy\n' >"$T/bin/stop-service"
    : >"$LOG"
    run_block 1 sh -e
    [[ ! -s $LOG ]]
}

@test "scripts.md: several locks; one host, no server to set up" {
    stand_in_for simulate
    take_block scripts.md 'Several locks at once' 1
    run_block
    take_block scripts.md 'One host, no server to set up' 1
    mkdir "$T/runtime"
    XDG_RUNTIME_DIR=$T/runtime run_block
    XDG_RUNTIME_DIR=$T/runtime rlock local stop
    ran 'staging database exclusive: ./migrate.sh' 'nested in staging database' \
        'build exclusive: make' 'memory limit 1: ./simulate'
}

@test "scripts.md: agents and builds side by side: a slot, a port, and the lock of a repository" {
    command -v git >/dev/null || skip "no git here"
    stand_in_for test-server
    printf '#!/bin/sh\necho "$0 $PORT" >>"$LOG"\n' >"$T/bin/test-server"
    git init -q
    take_block scripts.md 'Coding agents and builds side by side on one machine' 1
    mkdir "$T/runtime"
    export XDG_RUNTIME_DIR=$T/runtime
    URL=local: run_block
    URL=local: rlock local stop
    ran 'build limit 1: make' './test-server 8001' "git-$PWD/.git exclusive: git rebase main"
}

# ---------------------------------------------------------------- people.md

@test "people.md: who holds it, who had it: the holder is shown, and after its end as revoked" {
    command -v jq >/dev/null || skip "no jq here"
    hold holder backup
    take_block people.md 'Who holds it?' 1
    # force-release asks on a terminal.
    sed -i 's/force-release/& --yes/' "$T/block"
    run_block
    [[ $output == *'KEY '*'backup '* && $output == *"backup $(hostname)"* ]]
    [[ $output != *'it is free'* ]]
    ends_with holder 79
    take_block people.md 'Who had it?' 1
    run_block
    [[ $output == *revoked* ]]
}

@test "people.md: a reservation, a pause, another limit" {
    export XDG_STATE_HOME=$T/state
    take_block people.md 'A lock for a person, with a reason' 1
    run_block
    is_free staging
    take_block people.md 'No new owner for a while' 1
    run_block
    take_block people.md 'Another limit while it is in use' 1
    run_block
    ran 'staging exclusive: ./load-test' 'test-databases limit 1: make integration'
    [[ $(rlock limit test-databases) == 5 ]]
}

# ---------------------------------------------------------------- monitoring.md

@test "monitoring.md: the checks, for a monitor and for cron" {
    rlock run nightly -- true
    hold holder deploy-web
    take_block monitoring.md 'A warning when a lock is in trouble' 1
    sed -n '3s/.*  \(rlock\)/\1/p' "$T/block" >"$T/cron"
    sed -i 3d "$T/block"
    run_block
    [[ ${#lines[@]} == 2 && ${lines[0]} == 'RLOCK OK - 1 lock held'* ]]
    [[ ${lines[1]} == 'RLOCK OK - '*'last success'* ]]
    mv "$T/cron" "$T/block"
    run_block
    [[ ! $output ]]
}

@test "monitoring.md: metrics in a file, and over HTTP" {
    "$RLOCK" help serve >/dev/null || skip "no rlock serve here"
    hold holder deploy
    take_block monitoring.md Prometheus 1
    sed -i "s|/var/lib/prometheus/node-exporter|$T|" "$T/block"
    run_block
    grep -q '^rlock_holders{key="deploy"} 1$' "$T/rlock.prom"
    take_block monitoring.md Prometheus 2
    local port
    port=$(free_ports 1)
    sed -i "s/:9750/:$port/" "$T/block"
    sed -i 's/^rlock /exec rlock /' "$T/block"
    bg serve sh "$T/block"
    poll_until 10 eval 'curl -fs "http://127.0.0.1:$port/metrics" | grep -q rlock_up'
    kill "${pid[serve]}"
    finish serve
    # The unit's drop-in is tested with the unit.
    take_block monitoring.md Prometheus 3
    [[ -e $TESTS/../packaging/systemd/rlock-serve.service.example.conf ]]
    grep -q 'packaging/systemd/rlock-serve.service.example.conf' "$T/block"
}

@test "monitoring.md: --notify tells who holds it; events and the doctor, for programs" {
    command -v jq >/dev/null || skip "no jq here"
    printf '#!/bin/sh\n{ echo "$@"; cat; } >>"$LOG"\n' >"$T/bin/mail"
    chmod +x "$T/bin/mail"
    ln -sf "$RLOCK" "$T/bin/rlock"
    take_block monitoring.md 'Be told when something goes wrong' 1
    sed -i "s|/usr/local/bin/|$T/bin/|g; s|^rlock run|& -n|" "$T/block"
    hold holder nightly
    run_block 75
    poll_until 10 contains "$LOG" 'not-acquired, held by '
    contains "$LOG" '-s rlock: nightly ops@example.com'
    take_block monitoring.md 'Be told when something goes wrong' 2
    bg events bash "$T/block"
    poll_until 10 eval '
        rlock run --at-most 1ms -- limit sh -c "sleep 100" || true
        rlock run --at-most 1ms limit -- sleep 100 || true
        grep -q timed-out "$T/events.out"'
    take_block monitoring.md 'The lock server itself, for example before a deployment' 1
    run_block
}

# ---------------------------------------------------------------- fleet.md

@test "fleet.md: the settings are understood, and the versions that hold locks are counted" {
    command -v jq >/dev/null || skip "no jq here"
    take_block fleet.md 'Roll out' 1
    sed "s|/etc/rlock.password|$T/place/credential|" "$T/block" >"$T/settings"
    run -0 env -u RLOCK_URL "$RLOCK" config --config "$T/settings"
    [[ $output == *"url = rediss://rlock@locks.example.com "* && $output == *'server-wait = 2m '* ]]
    hold holder deploy
    take_block fleet.md Upgrade 1
    run_block
    [[ $output == *" 1 $("$RLOCK" --version | sed 's/^rlock //; s/ .*//; 1q') $(hostname)" ]]
    # The steps of the block are those of "a fleet moves to another store" in fleet.bats.
    take_block fleet.md 'Move to another store' 1
    grep -q '^sh examples/move-store OLD NEW ' "$T/block"
}

# ---------------------------------------------------------------- other-languages.md

# The lines for ZooKeeper and databases are in zookeeper_clients.bats and sql_mirror.bats.
@test "other-languages.md: the lines for Redis hold the other library's lock besides" {
    take_block other-languages.md 'In Redis'
    sed -n -i '/^rlock run/p' "$T/block"
    [[ $(grep -c -- '--mirror' "$T/block") == 3 ]]
    as_default_user # the other library's key and channels take more rights
    URL=$RLOCK_URL
    run_block
    ran 'import exclusive: ./import.sh' 'import exclusive: ./import.sh' \
        'import exclusive: ./import.sh'
    redis set import other px 60000 >/dev/null
    sed -i '2,$d; s/^rlock run/& -n/' "$T/block"
    run_block 75
    [[ $output == *'held by a foreign lock import'* ]]
}

# ----------------------------------------------------------------

# PAGE FILES WHICH WORDS: a block of it is done by the line of tests/FILE.bats that has one of the
# WORDS, the heading, and the number of the block; without a number that is the first one or all
# (WHICH). Or: PAGE - WHY NOT.
page_tests() {
    cat <<'END'
bench - it takes programs to compare with, and an idle machine
chaos - chaos.py is in check-long
ci pages,git all (block|page_blocks") ci.md
cron pages all block cron.md
data - helper.bash and doctor.bats take the rights from there
databases databases_page all steps_of
drivers - drivers.bats speaks the protocol, and has the doctor try each driver
etcd etcd all page
elsewhere elsewhere first recipe|stopped|ends_only_by_stop
fleet pages all block fleet.md
install - quickstart.bats, release_files.bats and .ci/nightly do it
monitoring pages all block monitoring.md
other-languages - "In Redis" is above, the rest in zookeeper_clients.bats and sql_mirror.bats
people pages all block people.md
redis redis_page all follow|page_blocks" redis.md
scripts pages all block scripts.md
END
}

@test "each block of each page is done by a test, or it is said why not" {
    local page title number file files which words
    while IFS=' ' read -r page file which words; do
        [[ $file != - ]] || continue
        IFS=, read -ra files <<<"$file"
        files=("${files[@]/#/$TESTS/}")
        while IFS='#' read -r title number; do
            title=$(sed 's/[][().*^$?+{}|]/\\&/g; s/ /\\\\? /g' <<<"$title")
            [[ $number == 1 || $which == all ]] && number="( $number)?" || number=" $number"
            grep -qE "($words) '?$title'?$number([^ 0-9]|\$| [^0-9])" "${files[@]/%/.bats}" ||
                { echo "$page.md: $title, block $number: no line of $file.bats does it" && false; }
        done < <("$TESTS/page_blocks" "$page.md")
    done < <(page_tests)
    for page in "$TESTS"/../docs/*.md; do
        page=$(basename "$page" .md)
        [[ ! $("$TESTS/page_blocks" "$page.md") ]] || page_tests | grep -q "^$page "
    done
}
