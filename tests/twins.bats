# A request that arrives late, when its sender has given it up and sent another: it must change
# nothing any more. keep HOW WORD: a proxy keeps the next request with WORD in it, and its client
# meets silence or a reset; unheard WORD COMMAND: that gives up then; arrives: the request comes to
# the server now. run_through_proxy NAME TIMEOUT: in the background, with that --connect-timeout;
# dies_releasing: w's release is on its way and its agent is dead; arrives_in_vain: the request that
# was kept arrives, and makes no lock. replaced HOW TIMEOUT: a's first request is kept in that way,
# and its next one is granted.

load helper
load late

setup() {
    start_test
    rlock run warm -- true # the server knows the script
    begin_late
}

# begin_late: starts the proxy that keeps requests; $LATE_URL leads through it.
begin_late() {
    start_late "$REDIS_SOCK"
    LATE_URL=redis://rlock:pw@127.0.0.1:$late_port
}

# run_through_proxy NAME TIMEOUT OPTION...: a run in the background, through the proxy. TIMEOUT is
# for connecting: a request is stale only after that, and is sent again after half of it.
run_through_proxy() {
    bg "$1" rlock run -u "$LATE_URL" --connect-timeout "${@:2}"
}

# replaced HOW TIMEOUT: a's first request does not reach the server, and its next one is granted. b
# asks a to stop; while a cleans up, the first request arrives.
replaced() {
    keep "$1" EVAL
    run_through_proxy a "$2" k -- sh -c '
        stop() { : >"$T/stops"; await "$T/clean"; echo a ends >>"$LOG"; exit; }
        trap stop TERM
        : >"$T/a.up"
        while :; do sleep 0.05; done'
    poll_until 15 test -e "$T/a.up"
    bg b rlock run --replace k -- sh -c "echo b begins >>'$LOG'"
    poll_until 10 test -e "$T/stops"
    arrives
    holds a k
    : >"$T/clean"
    ends_with a 79
    ends_with b 0
    [[ $(<"$LOG") == $'a ends\nb begins' ]]
}

@test "H154 a request that was reset, and arrives while its lock is asked for, frees nothing" {
    replaced reset 60s
}

@test "H154 a request that met silence, was sent again, and arrives late frees nothing" {
    replaced silence 10s
}

# At the end of w's wait, its release is on the way and its agent dead. The next agent asks once
# more, for a second: fails if that did not suffice.
dies_releasing() {
    begin_late
    stay a "$key"
    run_through_proxy w 60s -w "$((2 * try))s" "$key" -- \
        sh -c ": >'$T/w.up'; await '$T/w.go'"
    keep "${pid[w]}" refused=1
    says_late kept
    ends_well a
    kill -CONT "${pid[w]}"
    poll_until 10 began_or_gone w
    [[ -e $T/w.up ]]
}

# The request that was kept arrives, and makes no lock.
arrives_in_vain() {
    arrives
    is_free k
    rlock run -n k -- true
}

@test "H154 a release that arrives late does not free what the same run has acquired since" {
    once_of 6 dies_releasing
    arrives
    holds w "$key"
    run -75 rlock run -n "$key" -- true
    : >"$T/w.go"
    ends_with w 0
}

# The first request of -n does not arrive, and the second one is refused. When the first one arrives
# at last, the lock is free, but must not be granted to a run that has ended.
@test "H154 H2 a request that was sent twice, and refused, is not granted when it arrives" {
    stay a k
    keep silence EVAL
    run_through_proxy n 10s -n k -- true
    ends_with n 75
    ends_well a
    arrives_in_vain
}

# The first request goes out with the greeting, before the server can tell its clock.
@test "H154 H2 of a host whose clock is ahead, a request that was sent twice is not granted late" {
    local -x SHIM_CLOCK_FILE=$T/clock
    printf '%-31d\n' 3600000 >"$SHIM_CLOCK_FILE"
    keep silence EVAL
    LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so run_through_proxy a 6s k -- sh -c 'sleep 4; exit 9'
    ends_with a 9
    arrives_in_vain
}

@test "H154 H2 of a host whose clock is ahead, a request of a dead agent is not granted late" {
    local -x SHIM_CLOCK_FILE=$T/clock
    printf '%-31d\n' 3600000 >"$SHIM_CLOCK_FILE"
    bg a sh -c 'await "$T/begin"
        LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so exec "$RLOCK" run -u "$1" \
            --connect-timeout 2s k -- sh -c "sleep 4; exit 9"' - "$LATE_URL"
    keep "${pid[a]}" EVAL
    : >"$T/begin"
    says_late kept
    kill -CONT "${pid[a]}"
    ends_with a 9
    arrives_in_vain
}

@test "H154 a pause that arrives late does not pause again what was resumed" {
    rlock pause k 1h -m before # the server knows the script
    rlock resume k
    unheard tidying pause k 1h -m tidying
    rlock resume k || true
    arrives
    status_json k '.[0].paused == null'
}

@test "H154 a limit that arrives late is not stored, and a latch that was set anew is not deleted" {
    rlock limit k 3
    unheard limit limit k 1
    rlock limit k 5
    arrives
    prints 0 5 limit k
    begin_late
    rlock latch set l 3
    rlock latch delete l
    rlock latch set l 3
    unheard delete latch delete l
    rlock latch delete l || true
    rlock latch set l 4
    arrives
    prints 75 '*4 of 4*' latch status l
}

@test "H154 a release that arrives late does not end a reservation that was made anew" {
    rlock reserve k 1h -m tidying
    unheard strict release --owner "$(owner_of k)" k
    rlock reserve k 2h -m 'not yet tidy'
    arrives
    status_json k '.[0].holders[0].reserved'
}
