# Requests and replies that are lost, late, cut or malformed. half_open N...: waiters w<N> for k<N>,
# whose requests arrive, but not their answers from drop_answers_and_end_holder on; end_empty STATUS
# N...: they end with that, and hold nothing.

load helper

setup() {
    start_test
    rlock run warm-up -- true # the server knows the scripts from here on
    start_proxy
    PROXY=redis://${proxy[proxy]}
}

@test "H1 the reply to the acquisition is lost: the same lock, once" {
    fault on up EVALSHA drop down
    run -0 --separate-stderr rlock run -u "$PROXY" --lease 9s k -- \
        sh -c 'echo "$RLOCK_OWNER"; RLOCK_URL=unix://$REDIS_SOCK "$RLOCK" status --json k'
    owner=${lines[0]}
    output=${output#*$'\n'}
    json ".[0].holders | length == 1 and .[0].owner == \"$owner\""
    run -0 rlock status -q k
}

@test "H2 an acquisition that arrives after rlock has gone takes nothing" {
    for i in 1 2 3 4 5; do
        start_proxy "p$i"
        fault_of "p$i" delay up 3000
        bg "r$i" rlock run -u "redis://${proxy[p$i]}" -w 1s --lease 60s "k$i" -- touch "$T/run"
    done
    for i in 1 2 3 4 5; do
        finish "r$i"
        [[ $status == 69 || $status == 75 ]]
    done
    end=$(($(now_ms) + 3000))
    while (($(now_ms) < end)); do
        run -0 rlock status -q k1 k2 k3 k4 k5
    done
    [[ ! -e $T/run ]]
}

@test "H3 the release does not get through: the command's status, and a warning" {
    says 5 '^rlock: ' run -u "$PROXY" --lease 6s k -- sh -c "$(fault_command refuse); exit 5"
    poll_until 8 is_free k
}

@test "H4 late replies are not taken for the next ones" {
    stay a k -u "$PROXY" --lease 12s --kill-after 0
    fault delay down 4800
    poll_until 10 contains "$T/a.err" "no answer in time" # to the first renewal
    fault pass
    renewed k
    run -75 rlock run -n k -- true
    ends_well a
    run -0 rlock status -q k
}

@test "H6 a reply trickles in or is cut after five bytes: 69 in time; a holder is stopped in time" {
    for kind in 'trickle down 400' 'cut down 5'; do
        echo "--- $kind"
        rm -f "$LOG"
        fault $kind
        timed 900 20000 says 69 "$PROXY" run -u "$PROXY" --connect-timeout 1s k -- touch "$T/run"
        fault pass
        at_work a k 100 -u "$PROXY" --lease 4s -- tree
        fault $kind
        work b k 0.3
        ends_with a 79 40
        finish b
        no_overlap
        fault pass
    done
}

@test "H11 scripts that the server forgets are sent again" {
    bg flush bash -c 'while redis-cli -s "$REDIS_SOCK" script flush; do sleep 0.03; done'
    hold a long --lease 9s
    for i in {1..20}; do
        quiet 0 run k -- true
    done
    queued long bg w rlock run long -- true
    [[ ! -s $T/a.err ]]
    alive "${pid[a]}"
    kill "${pid[a]}"
    ends_with w 0
    run -0 rlock status --json long
    kill "${pid[flush]}"
}

# half_open N...: waiters w<N> for k<N> behind a link on which requests arrive and answers do not:
# at first they do, "mute" drops them, and ends the keys' holder. "options": more of each, with N in
# it.
half_open() {
    local i
    start_proxy link
    hold holder "${@/#/k}" --lease 60s
    for i; do
        # shellcheck disable=SC2086 # they are words
        bg "w$i" rlock run -u "redis://${proxy[link]}" --lease 60s ${options//N/$i} "k$i" -- \
            sh -c "echo w$i >>'$LOG'"
    done
    for i; do
        poll_until 15 has_waiters "k$i" 1
    done
}

drop_answers_and_end_holder() {
    fault_of link drop down
    terminate holder
}

# end_empty STATUS N...: waiters w<N> of k<N> end with that, and leave nothing held.
end_empty() {
    for i in "${@:2}"; do
        ends_with "w$i" "$1" 30
        poll_until 5 is_free "k$i"
        [[ $(waiters "k$i") == 0 ]]
    done
    [[ ! -e $LOG ]]
}

@test "H127 answers do not arrive any more: a waiter whose time is up leaves nothing held" {
    options='-w Ns' half_open 16 17 18 19
    drop_answers_and_end_holder
    end_empty 69 16 17 18 19
}

@test "H127 answers do not arrive any more: a waiter that gets a signal leaves nothing held" {
    options='' half_open {1..9}
    drop_answers_and_end_holder
    for i in {1..9}; do
        sleep 0.6 # any moment: between two calls, during one, during a greeting
        kill -TERM "${pid[w$i]}"
    done
    end_empty 143 {1..9}
}

@test "H127 the answer to the first request does not arrive, nor any other: nothing is held" {
    local called option i=0
    for option in -n -w3s; do
        ((++i))
        start_proxy "p$i"
        called=$(redis_calls evalsha)
        fault_of "p$i" on up EVALSHA drop down
        bg "w$i" rlock run "$option" -u "redis://${proxy[p$i]}" --lease 60s "k$i" -- touch "$T/run"
        poll_until 10 eval "((\$(redis_calls evalsha) > $called))"
        fault_of "p$i" drop down
    done
    for i in 1 2; do
        ends_with "w$i" 69 30
        poll_until 5 is_free "k$i"
    done
    [[ ! -e $T/run ]]
}

@test "H11 the scripts are forgotten before the first answer arrives: nothing is held" {
    rlock run k -- true
    start_proxy p
    fault_of p on up EVALSHA drop down
    bg w rlock run -u "redis://${proxy[p]}" --lease 60s k -- touch "$T/run"
    poll_until 10 held k
    redis script flush
    terminate w 143
    poll_until 5 is_free k
    [[ ! -e $T/run ]]
}

@test "H127 a release on a new connection that gets no answers changes only its own database" {
    # shellcheck disable=SC2046 # they are words
    redis acl setuser fenced on '>pw' $(manual_rights)
    start_proxy link
    RLOCK_URL="unix://rlock:pw@$REDIS_SOCK?db=3"
    hold holder w fenced --lease 60s
    bg w rlock run -u "redis://rlock:pw@${proxy[link]}/3" -w 16s --lease 60s w -- touch "$T/run"
    bg fenced rlock run -u "redis://fenced:pw@${proxy[link]}/3" -w 16s --lease 60s fenced -- \
        touch "$T/run"
    poll_until 10 has_waiters w 1
    poll_until 10 has_waiters fenced 1
    redis acl setuser fenced -select
    drop_answers_and_end_holder
    redis flushdb # keys of the set-up
    all_end 69 30 w fenced
    poll_until 5 is_free w
    # A user that may not choose another database changes nothing in the first one.
    [[ $(redis dbsize) == 0 && ! -e $T/run ]]
}
