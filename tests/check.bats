# rlock check: limits, the plugin's line and statuses, and a store that is away.

load helper

# check STATUS LINE-START [ARGUMENT...]: one line on standard output, nothing else.
check() {
    run "-$1" --separate-stderr rlock check "${@:3}"
    [[ ${#lines[@]} == 1 && ! $stderr && $output == "RLOCK $2"* ]] ||
        { printf '%s\n' "$output" "$stderr" && false; }
}

@test "locks within their limits are fine; those above are named with their owner" {
    check 0 'OK - no lock is held | locks=0 held=0s;;;0 waiting=0s;;;0 waiters=0;;;0'
    hold a deploy-a --label 'a | b'
    hold b 'x|y'
    queue w1 deploy-a
    queue w2 deploy-a
    check 0 'OK - 2 locks held, 2 waiting | locks=2 held=' --held 1h --waiting 1h:2h --waiters 2
    check 1 'WARNING - deploy-a: 2 wait, more than 1 |' --waiters 1:2
    check 2 'CRITICAL - deploy-a: 2 wait, more than 1 |' --waiters 1
    poll_until 10 older_than 0.1
    check 1 "WARNING - deploy-a: held for " --held 100ms:1h --waiters 5 deploy-a
    [[ $output == *" by $(id -un)@$(hostname) pid ${pid[a]} (sh), more than 100ms |"* ]]
    check 2 'CRITICAL - deploy-a: ' --waiting 1ms --held 1h
    [[ $output == *"pid ${pid[w1]} (sh) has waited for"* ]]
    # A bar would begin the numbers.
    check 2 'CRITICAL - x\x7cy: held for' --held 1ms 'x|y'
    # Only what was asked for counts; a free KEY and a GLOB without locks are fine.
    check 0 'OK - no lock is held; nothing matches z* |' --held 0 'z*' free
    # Cron hears only of trouble.
    prints_nothing 0 check -q --held 1h
    check 2 CRITICAL -q --held 1ms
    # A lock that --at-least keeps is not held for too long.
    rlock run --at-least 1h k -- true
    check 0 'OK - 1 lock held |' --held 0 k
}

# older_than SECONDS: rlock check says that deploy-a has been held for longer than that.
older_than() {
    local answer
    answer=$(rlock check deploy-a) && [[ $answer =~ held=([0-9.]+)s ]] &&
        awk "BEGIN { exit !(${BASH_REMATCH[1]} > $1) }"
}

@test "--paused: a KEY is paused as long as the first of its pauses, be it of a GLOB" {
    check 0 'OK - no lock is held |' --paused 1ms ci/a
    rlock pause 'ci/*' 1h -m x
    rlock pause ci/a 2h -m y
    for key in ci/a ci/b; do
        poll_until 10 paused_for_more "$key" 0.001
        check 2 "CRITICAL - $key: paused for " --paused 1ms "$key"
        check 0 'OK - no lock is held, 1 paused |' --paused 1h "$key"
    done
    [[ $(rlock check ci/b --paused 1ms) == *"more than 1ms: paused, as all of ci/*, by "*": x |"* ]]
    rlock resume ci/a
    # The KEY is not told besides its GLOB.
    check 2 'CRITICAL - ci/*: paused for ' --paused 1ms
    [[ $output != *'ci/a:'* ]]
    rlock resume 'ci/*'
}

# paused_for_more KEY SECONDS: rlock check says that KEY has been paused for longer than that.
paused_for_more() { # KEY SECONDS
    local answer
    answer=$(rlock check --paused 1h "$1") && [[ $answer =~ paused=([0-9.]+)s ]] &&
        awk "BEGIN { exit !(${BASH_REMATCH[1]} > $2) }"
}

@test "--not-done: a KEY without a success is critical; a GLOB of nothing is fine" {
    check 2 'CRITICAL - nightly: no success is remembered |' --not-done 1h nightly
    [[ $output == *' not_done=U;3600;3600;0' ]]
    check 0 'OK - no lock is held; nothing matches n* |' --not-done 1h 'n*'
    run -1 rlock run nightly -- false
    check 2 'CRITICAL - nightly: no success is remembered (last run: exit 1, ' --not-done 1h 'n*'
    rlock run nightly -- true
    run -1 rlock run nightly -- false
    check 0 'OK - no lock is held, last success ' --not-done 1h
    check 2 'CRITICAL - nightly: no success for ' --not-done 1ms nightly
    [[ $output == *', more than 1ms (last run: exit 1, '*" ago, by $(id -un)@$(hostname) pid "* ]]
    check 1 'WARNING - nightly: ' --not-done 1ms:1h
    # Neither a run that was stopped nor one that is under way has succeeded.
    run -124 rlock run --at-most 100ms other -- sleep 100
    hold a third
    check 2 'CRITICAL - other: no success is remembered (last run: timed out, ' --not-done 1h
    [[ $output == *'; third: no success is remembered |'* ]]
}

@test "check refuses wrong limits, and --not-done at a store without a memory of runs: exit 64" {
    run -64 --separate-stderr rlock check -u zookeeper://127.0.0.1:1 --not-done 1h k
    [[ ! $output && ${stderr_lines[0]} == 'rlock: check: zookeeper:// has no '* ]]
    for limit in 2h:1h x; do
        run -64 --separate-stderr rlock check --held "$limit"
        [[ ! $output && ${stderr_lines[0]} == "rlock: check: --held '$limit' "* ]]
    done
    run -64 rlock check --waiters 1m
    run -64 rlock check --held
    run -64 rlock check 'a b'
    run -64 rlock check k -- true
}

@test "a store that is away, refuses, or has something else there: 3, and one line says why" {
    check 3 "UNKNOWN - cannot reach unix://$T/none: " -u "unix://$T/none" --server-wait 0 --held 1h
    check 3 'UNKNOWN - ' -u "unix://nobody:wrong@$REDIS_SOCK"
    rlock latch set gate 1
    check 3 'UNKNOWN - gate: ' gate
    # A silent store takes no longer.
    kill -STOP "$(redis_pid)"
    timed 200 10000 check 3 'UNKNOWN - ' --connect-timeout 300ms --server-wait 300ms
}

@test "a store that comes back in time is not away" {
    redis_stop
    bg c rlock check --server-wait 60s
    redis_start
    finish c 30
    [[ $status == 0 && ! -s $T/c.err && $(<"$T/c.out") == 'RLOCK OK - '* ]]
}
