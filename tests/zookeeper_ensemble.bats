# zookeeper:// with three servers, of which one is cut off or gone.

load helper
load zookeepers

export ENSEMBLE_SIZE=3

# The third one follows, and reaches the others' leader by way of the proxies to1 and to2.
follow_by_proxies() {
    local one
    server_signal KILL 3
    for one in 1 2; do
        poll_until 60 serves "${port[$one]}"
        start_proxy "to$one" 127.0.0.1:0 "127.0.0.1:$(quorum_port "$one")"
        sed -i "s/^\(server.$one=127.0.0.1:\)[0-9]*/\1${proxy[to$one]##*:}/" "$ENSEMBLE/3/conf"
    done
    server_start 3
    poll_until 60 serves "${port[3]}"
    [[ $(server_mode 3) == follower ]]
}

quorum_port() {
    sed -n "s/^server.$1=127.0.0.1:\([0-9]*\):.*/\1/p" "$ENSEMBLE/1/conf"
}

# through NAME...: the URL by way of these.
through() {
    local one hosts=
    for one; do
        hosts+=",127.0.0.1:${port[$one]}"
    done
    echo "zookeeper://${hosts#,}/test/$BATS_TEST_NUMBER"
}

@test "the leader is killed: who holds the lock keeps it, and nobody else has it" {
    local one leader
    stay a k --lease 30s
    for one in 1 2 3; do
        [[ $(server_mode "$one") != leader ]] || leader=$one
    done
    server_signal KILL "$leader"
    renewed k
    run -75 rlock run -n k -- true
    ends_well a
    run -0 rlock run -w 30s k -- true
    server_start "$leader"
    poll_until 60 serves "${port[$leader]}"
}

@test "a follower is cut off: the command is dead before anybody else has the lock" {
    local round
    follow_by_proxies
    for round in {1..2}; do
        rm -f "$T/works" "$T/begins"
        bg a rlock run -u "$(through 3)" --lease 4s --kill-after 200ms k -- sh -c '
            while :; do read -r now rest </proc/uptime; echo $now >>"$0"; sleep 0.02; done' "$T/works"
        poll_until 10 test -s "$T/works"
        bg b rlock run -u "$(through 1 2)" k -- sh -c '
            read -r now rest </proc/uptime; echo $now >"$0"' "$T/begins"
        RLOCK_URL=$(through 1 2) poll_until 10 has_waiters k 1
        pause $((RANDOM % 2000))
        fault_of to1 blackhole
        fault_of to2 blackhole
        finish a 30
        [[ $status == 79 ]]
        finish b 30
        [[ $status == 0 ]]
        echo "round $round: worked until $(tail -n 1 "$T/works"), the next from $(<"$T/begins")"
        awk -v until="$(tail -n 1 "$T/works")" '{ exit !($1 > until) }' "$T/begins"
        fault_of to1 pass
        fault_of to2 pass
        poll_until 60 serves "${port[3]}"
    done
}
