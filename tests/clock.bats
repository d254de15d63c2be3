# Clocks that jump or stand still: the server's, and the wall clock of rlock's host. die_holding KEY
# LEASE: a holder of KEY and its agent are killed.

load helper

setup_file() {
    server_clock_file
    export REDIS_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so
    start_file
}

teardown() {
    [[ -n $BATS_TEST_COMPLETED ]] || show_evidence
    end_processes
    server_clock 0
    redis_restart_empty
}

die_holding() { # KEY LEASE: what is left of a holder that was killed
    hold dead "$1" --lease "$2"
    kill_both dead
}

@test "H27 the server's clock jumps forward: the holder takes care of its lock" {
    stay a k --lease 9s
    server_clock 60000
    poll_until 10 has_left k 0
    ends_well a
    run -0 rlock status -q k
}

# The clock of the server is set back after the holder's death, so that its deadline is an hour
# away. The next run has the lock after a lease, not after an hour.
@test "H28 the server's clock goes back an hour: a dead holder costs one lease at most" {
    die_holding k 6s
    server_clock -3600000
    run -0 rlock run -w 60s k -- true
}

@test "H29 the server's clock stands still: the holder works, a dead one's lock can be forced" {
    server_clock freeze
    stay a k --lease 9s --kill-after 0
    die_holding dead 6s
    run -75 rlock run -w 10s dead -- true # longer than either lease
    run -0 rlock force-release --yes dead
    run -0 rlock run -n dead -- true
    ends_well a
}

@test "H31 the wall clock of rlock's host jumps: holder and waiter do not notice" {
    local -x SHIM_CLOCK_FILE=$T/clock # and after the test that of the server
    truncate -s 4096 "$SHIM_CLOCK_FILE"
    server_clock 0
    LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so stay a k --lease 9s --kill-after 0
    start=$(now_ms)
    LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so bg w rlock run -w 8s k -- true
    poll_until 10 has_waiters k 1
    server_clock 86400000
    renewed k
    server_clock -86400000
    renewed k
    run -75 rlock run -n k -- true
    ends_with w 75
    took 7900 25000 "$start"
    ends_well a
    [[ ! -s $T/a.err ]]
}

@test "H32 a command that comes to its start after its lease is not started" {
    LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_late.so \
        bg a rlock run --lease 5s k -- sh -c ": >'$T/ran'"
    poll_until 10 held k
    poll_until 10 eval 'child=$(command_of "${pid[a]}"); [[ $child ]]'
    poll_until 10 in_state "$child" T
    stop_both a
    bg b rlock run k -- sh -c ": >'$T/b'; until [ -e '$T/end' ]; do sleep 0.02; done"
    poll_until 20 test -e "$T/b"
    kill -CONT "$child"
    # Only then: they would kill it.
    poll_until 10 gone "$child"
    kill -CONT "$agent" "${pid[a]}"
    ends_with a 79
    : >"$T/end"
    finish b
    [[ $status == 0 && ! -e $T/ran ]]
    # The command was not there to be stopped either.
    [[ $(<"$T/a.err") != *stopping* ]]
}

@test "H32 rlock, agent and command are stopped beyond the lease: continued, the command ends" {
    at_work a k forever --lease 9s -- tree
    poll_until 10 have_traced 3
    agent=$(agent_of "${pid[a]}")
    pids=$(traced)
    kill -STOP "${pid[a]}" "$agent" $pids
    at_work b k 1
    kill -CONT "$agent" "${pid[a]}"
    kill -CONT $pids 2>/dev/null || true
    ends_with a 79
    finish b
    # Until rlock gets its turn and kills them, a's three workers leave a trace every 10 ms each: in
    # 10 s, which suffice on any machine, these are 3,000.
    after=$(awk '$1 == "b" { b = 1 } $1 == "a" && b { n++ } END { print n + 0 }' "$LOG")
    within 0 3000 "$after"
}
