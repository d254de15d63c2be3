# zookeeper:// with three servers, of which one is cut off or gone. that_is leader or follower: the
# name of one; through NAME...: the URL by way of these; named_servers: "store.test" has the
# addresses in $T/name, of servers 1 and 2; they_go_on N: x's lock is renewed so often, and w has
# its turn. dead_before_the_next KIND: the holder is a client of such a server, which is cut off
# between two renewals; leads_to ADDRESS...: "store.test" has just these from now on.

load helper
load late
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
        bg b rlock run -u "$(through $others)" --server-wait 60s --lease 60s k -- sh -c '
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

# has_no_majority NAME: that server says that it does not serve.
has_no_majority() {
    [[ $(asked "${port[$1]}" srvr) == *'not currently serving'* ]]
}

@test "H137 a server without a majority is waited for, with -n too, and is not taken for full" {
    local one left
    left=$(that_is follower)
    for one in 1 2 3; do
        [[ $one == "$left" ]] || server_signal KILL "$one"
    done
    poll_until 60 has_no_majority "$left"
    bg n rlock run -u "$(through "$left")" -n --server-wait 2m k -- true
    poll_until 20 contains "$T/n.err" 'it has no majority'
    for one in 1 2 3; do
        [[ $one == "$left" ]] || server_start "$one"
    done
    ends_with n 0 90
    for one in 1 2 3; do
        poll_until 60 serves "${port[$one]}"
    done
}

# near: ${proxy[path]} leads to server 1 by way of late_proxy.py, which keeps what a waiter says on
# its second connection, as it waits on that one.
near() {
    [[ ! -v pid[proxy] ]] || kill "${pid[proxy]}" "${pid[path]}"
    rm -f "$T"/path.*
    start_late "${port[1]}" 2
    start_proxy path 127.0.0.1:0 "127.0.0.1:$late_port"
}

# dies_releasing NAME: at the end of w's wait, its release is on the way, its agent dead. The next
# agent asks once more, at that server, for a second: fails if that did not suffice. (The word is in
# the names of a writer's nodes, not in those of the reader that it waits for.)
dies_releasing() {
    near
    rm -f "$T"/w.*
    stay a "$key" --read
    bg w rlock run -u "zookeeper://${proxy[path]}/test/$BATS_TEST_NUMBER" --lease 60s -w "$((2 * try))s" "$key" \
        -- sh -c ": >'$T/w.up'; await '$T/w.go'"
    poll_until 10 has_waiters "$key" 1
    keep "${pid[w]}" __WRIT__
    says_late kept
    fault_of path target "127.0.0.1:${port[$1]}"
    ends_well a
    kill -CONT "${pid[w]}"
    poll_until 20 began_or_gone w
    [[ -e $T/w.up ]]
}

@test "H154 ZooKeeper: a release that arrives late does not free what the same run has acquired" {
    for one in 2 1; do
        once_of 6 dies_releasing "$one"
        arrives
        RLOCK_URL=$(through "$one") run -75 rlock run -n "$key" -- true
        : >"$T/w.go"
        ends_with w 0
        is_free "$key"
    done
}

# A server that stands still is left for another one; it opens the session late, when it continues.
@test "H137 a server that stood still moves the session: the lock is not taken for lost" {
    local still
    start_proxy still 127.0.0.1:0 "127.0.0.1:${port[1]}"
    start_proxy path 127.0.0.1:0 "127.0.0.1:${port[2]}"
    stay a k -v -u "zookeeper://${proxy[path]}/test/$BATS_TEST_NUMBER" --lease 12s
    fault_of path target "${proxy[still]}"
    fault_of still hold up
    poll_until 10 contains "$T/a.err" 'no answer in time'
    fault_of path target "127.0.0.1:${port[2]}"
    poll_until 10 contains "$T/a.err" renewed
    fault_of still pass
    # The server opens the session now, which no line tells. The release adds none.
    pause 500
    : >"$T/a.err"
    ends_well a
    [[ ! -s $T/a.err ]]
    is_free k
}

# named_servers: "store.test" has the addresses that are in the file $T/name: 127.0.0.2 and .3 lead
# to server 1 and to server 2.
named_servers() {
    local number
    number=$(free_ports 1)
    start_proxy n2 "127.0.0.2:$number" "127.0.0.1:${port[1]}"
    start_proxy n3 "127.0.0.3:$number" "127.0.0.1:${port[2]}"
    export SHIM_DNS_STORE=$T/name
    NAMED=zookeeper://store.test:$number/test/$BATS_TEST_NUMBER
    leads_to 127.0.0.2
}

leads_to() {
    echo "$*" >"$T/name.new"
    mv "$T/name.new" "$T/name"
}

# named COMMAND...: with an address by a name, which leads_to has set, and which the shim looks up.
named() {
    LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_dns.so RLOCK_URL=$NAMED "$@"
}

# one_holder_and_waiter: "x" holds k, and "w" waits for it, both by the name.
one_holder_and_waiter() {
    rm -f "$T"/[wx].*
    named stay x k -v --lease 12s
    named bg w rlock run --lease 12s k -- true
    poll_until 15 contains "$T/w.err" 'waiting for k'
}

# they_go_on NUMBER: the lock is renewed so often, and the waiter has its turn.
they_go_on() {
    local before
    before=$(grep -c renewed "$T/x.err" || true)
    poll_until 60 eval "((\$(grep -c renewed '$T/x.err') >= $before + $1))"
    has_waiters k 1
    ends_well x
    ends_with w 0 20
}

# The server of a holder and a waiter falls silent when the name leads to another one.
@test "H166 ZooKeeper: a name leads to another server: holders and waiters go there" {
    named_servers
    one_holder_and_waiter
    leads_to 127.0.0.3
    fault_of n2 blackhole
    they_go_on 3
}

# As above, but at the old address connections are refused.
@test "H166 ZooKeeper: the same, and the old address is another's, or refuses" {
    named_servers
    one_holder_and_waiter
    leads_to 127.0.0.3
    fault_of n2 refuse
    they_go_on 3
}

# The name cannot be looked up, in three ways, when a holder and a waiter exist: they continue with
# the server that they know.
@test "H166 ZooKeeper: the name service fails, or does not know the name: what was known is kept" {
    named_servers
    export SHIM_DNS_FILE=$T/silent
    for broken in "rm $T/name" "truncate -s0 $T/name" "touch $T/silent"; do
        leads_to 127.0.0.2
        one_holder_and_waiter
        $broken
        they_go_on 4
    done
}

@test "H166 ZooKeeper: a name with several addresses, some of which do not serve" {
    named_servers
    leads_to 127.0.0.2 127.0.0.3
    fault_of n2 refuse
    # Chance decides which address each run tries first.
    for _ in 1 2 3 4; do
        named run -0 rlock run -n --server-wait 0 k -- true
    done
    fault_of n2 pass
    one_holder_and_waiter
    fault_of n2 blackhole
    they_go_on 4
}

# From here on nothing but proxies of a test lies between the servers: they serve until it ends.
@test "H137 a follower is cut off: the command is dead before another client has the lock" {
    dead_before_the_next follower
}

@test "H137 a leader is cut off: the command is dead before another client has the lock" {
    dead_before_the_next leader
}
