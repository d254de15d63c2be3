# Requests and replies that are lost, late, cut or malformed.

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

# A link on which requests arrive and answers do not. half_open NAME KEY [OPTION...]: a waiter for
# KEY behind one, at first with answers; "mute" drops them, and ends KEY's holder.
half_open() {
    local name=$1 key=$2
    shift 2
    start_proxy "$name-link"
    hold "$name-holder" "$key" --lease 60s
    queue "$name" "$key" -u "redis://${proxy[$name-link]}" --lease 60s "$@"
}

mute() {
    local name
    for name; do
        fault_of "$name-link" drop down
        kill "${pid[$name-holder]}"
        finish "$name-holder"
    done
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
    for seconds in 16 17 18 19; do
        half_open "w$seconds" "k$seconds" -w "${seconds}s"
    done
    mute w16 w17 w18 w19
    end_empty 69 16 17 18 19
}

@test "H127 answers do not arrive any more: a waiter that gets a signal leaves nothing held" {
    for i in {1..9}; do
        half_open "w$i" "k$i"
    done
    mute w{1..9}
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

@test "H127 a release without a greeting's answers keeps to its database" {
    # shellcheck disable=SC2046 # they are words
    redis acl setuser fenced on '>pw' $(manual_rights)
    for name in w fenced; do
        start_proxy "$name-link"
        url=redis://rlock:pw@${proxy[$name-link]}/3
        [[ $name == w ]] || url=${url/rlock:/fenced:}
        RLOCK_URL="unix://rlock:pw@$REDIS_SOCK?db=3" hold "$name-holder" "$name" --lease 60s
        bg "$name" rlock run -u "$url" -w 16s --lease 60s "$name" -- touch "$T/run"
        RLOCK_URL="unix://rlock:pw@$REDIS_SOCK?db=3" poll_until 10 has_waiters "$name" 1
    done
    redis acl setuser fenced -select
    mute w fenced
    redis flushdb # keys of the set-up
    all_end 69 30 w fenced
    RLOCK_URL="unix://rlock:pw@$REDIS_SOCK?db=3" poll_until 5 is_free w
    # A user that may not choose another database changes nothing in the first one.
    [[ $(redis dbsize) == 0 && ! -e $T/run ]]
}
