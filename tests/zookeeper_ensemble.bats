# zookeeper:// with three servers, of which one is cut off or gone.

load helper
load zookeepers

export ENSEMBLE_SIZE=3

# All servers anew, each of which reaches each other one by way of proxies of its own: to its port
# for followers, and to the one for elections. (Their configurations are the same: the leader's
# addresses are what all of them go by.)
apart() {
    local one other follow elect detours
    for one in 1 2 3; do
        server_signal KILL "$one" || true
    done
    for one in 1 2 3; do
        detours=()
        for other in 1 2 3; do
            [[ $one != "$other" ]] || continue
            IFS=: read -r follow elect < <(sed -n "s/^server.$other=127.0.0.1://p" "$ENSEMBLE/1/conf")
            start_proxy "follow-$one-$other" 127.0.0.1:0 "127.0.0.1:$follow"
            start_proxy "elect-$one-$other" 127.0.0.1:0 "127.0.0.1:$elect"
            detours+=("$follow=${proxy[follow-$one-$other]##*:}"
                "$elect=${proxy[elect-$one-$other]##*:}")
        done
        server_start "$one" "${detours[@]}"
    done
    for one in 1 2 3; do
        poll_until 60 serves "${port[$one]}"
    done
}

# cut_off NAME pass|blackhole: what lies between that server and the others does that.
cut_off() {
    local other
    for other in 1 2 3; do
        [[ $1 != "$other" ]] || continue
        fault_of "follow-$1-$other" "$2"
        fault_of "elect-$1-$other" "$2"
        fault_of "follow-$other-$1" "$2"
        fault_of "elect-$other-$1" "$2"
    done
}

# that_is leader|follower: the name of one.
that_is() {
    local one
    for one in 1 2 3; do
        [[ $(server_mode "$one") != "$1" ]] || break
    done
    echo "$one"
}

# dead_before_the_next leader|follower: the holder is a client of such a server, which is cut off
# from the others at some moment between two renewals. The next holder is a client of the others.
dead_before_the_next() {
    local round one others
    apart
    for round in {1..2}; do
        one=$(that_is "$1")
        others=$(echo 1 2 3 | sed "s/$one//")
        rm -f "$T/works" "$T/begins"
        bg a rlock run -u "$(through "$one")" --lease 4s --kill-after 200ms k -- sh -c '
            while :; do read -r now rest </proc/uptime; echo $now >>"$0"; sleep 0.02; done' "$T/works"
        poll_until 10 test -s "$T/works"
        bg b rlock run -u "$(through $others)" --lease 60s k -- sh -c '
            read -r now rest </proc/uptime; echo $now >"$0"' "$T/begins"
        RLOCK_URL=$(through $others) poll_until 10 has_waiters k 1
        pause $((RANDOM % 2000))
        cut_off "$one" blackhole
        ends_with a 79 30
        ends_with b 0 90
        echo "round $round: worked until $(tail -n 1 "$T/works"), the next from $(<"$T/begins")"
        awk -v until="$(tail -n 1 "$T/works")" '{ exit !($1 > until) }' "$T/begins"
        cut_off "$one" pass
        poll_until 60 serves "${port[$one]}"
    done
}

# through NAME...: the URL by way of these.
through() {
    local one hosts=
    for one; do
        hosts+=",127.0.0.1:${port[$one]}"
    done
    echo "zookeeper://${hosts#,}/test/$BATS_TEST_NUMBER"
}

@test "H137 the leader is killed: the holder keeps the lock, and no other client has it" {
    stay a k --lease 30s
    leader=$(that_is leader)
    server_signal KILL "$leader"
    renewed k
    run -75 rlock run -n k -- true
    ends_well a
    run -0 rlock run -w 30s k -- true
    server_start "$leader"
    poll_until 60 serves "${port[$leader]}"
}

@test "H137 a follower is cut off: the command is dead before another client has the lock" {
    dead_before_the_next follower
}

@test "H137 a leader is cut off: the command is dead before another client has the lock" {
    dead_before_the_next leader
}
