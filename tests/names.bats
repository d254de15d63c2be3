#!/usr/bin/env bats
# A server that cannot serve is left for what its name, or the address of a proxy, leads to now.
# leads_to NAME...: new look-ups of the name, or new connections through a proxy in its place, lead
# there; demote: "b" takes over, and "a" follows it; freeze: "a" is silent, and "b" takes over;
# one_holder_and_waiter: "x" holds k, and "w" waits for it; both_move: these two continue at "b".
# watched: on the page of rlock serve, and in rlock top, which waits for k to be shown.

load helper

# "a" is a master, "b" its replica, and both listen at the same port of two addresses of this host.
# "store.test" has the addresses that are in the file $T/name.
setup() {
    start_test
    declare -gA proxy=() address=([a]=127.0.0.2 [b]=127.0.0.3)
    PORT=$(free_ports 1)
    server_start a 127.0.0.2
    server_start b 127.0.0.3 --replicaof 127.0.0.2 "$PORT"
    poll_until 15 eval '[[ $(on b info replication) == *master_link_status:up* ]]'
    export SHIM_DNS_STORE=$T/name
    leads_to a
    RLOCK_URL=redis://store.test:$PORT
}

teardown() {
    [[ -n $BATS_TEST_COMPLETED ]] || show_evidence
    end_processes
    for one in a b; do
        kill_redis "$T/$one"
    done
}

# server_start NAME ADDRESS [OPTION...]
server_start() {
    start_redis "$T/$1" --port "$PORT" --bind "$2" --unixsocket "$T/$1/sock" \
        --repl-diskless-sync-delay 0 "${@:3}"
    poll_until 20 eval "[[ \$(on $1 ping 2>&1) == PONG ]]"
}

# on NAME COMMAND...: redis-cli there.
on() {
    redis-cli -e -s "$T/$1/sock" "${@:2}" 3>&-
}

# leads_to NAME...: new look-ups, or new connections through the proxy, lead there.
leads_to() {
    local one addresses=()
    [[ -z ${proxy[proxy]} ]] || fault target "${address[$1]}:$PORT"
    for one; do
        addresses+=("${address[$one]}")
    done
    echo "${addresses[*]}" >"$T/name.new"
    mv "$T/name.new" "$T/name"
}

# By a proxy in place of a name.
through_proxy() {
    start_proxy proxy 127.0.0.1:0 "${address[a]}:$PORT"
    RLOCK_URL=redis://${proxy[proxy]}
}

# Only rlock's own look-ups: what a test looks at, it looks at directly.
named() {
    LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_dns.so "$@"
}

# demote: "b" takes over, and "a" follows it.
demote() {
    on b replicaof no one >/dev/null
    on a replicaof 127.0.0.3 "$PORT" >/dev/null
    leads_to b
}

# freeze: "a" says nothing more, and "b" takes over.
freeze() {
    kill -STOP "$(<"$T/a/pid")"
    on b replicaof no one >/dev/null
    leads_to b
}

# one_holder_and_waiter: "x" holds k, and "w" waits for it, who listens; "a" and "b" know both.
one_holder_and_waiter() {
    named stay x k --lease 15s
    named queue w k --lease 15s
    acknowledged 1 on a
}

# both_move: the two continue at "b": the lock is renewed there, and the waiter has its turn.
both_move() {
    RLOCK_URL=redis://127.0.0.3:$PORT
    renewed k
    poll_until 20 has_waiters k 1
    ends_well x
    finish w
    [[ $status == 0 && $(<"$LOG") == w ]]
    ! contains "$T/x.err" 'lock lost'
}

# The server and its replica change their roles, and the name leads to the new master. The holder's
# lock is renewed there, and the waiter has its turn there.
@test "H166 a server becomes a replica: holders and waiters go where its name leads now" {
    one_holder_and_waiter
    demote
    both_move
}

# The server stops, and its replica is promoted, to which the name leads from then on. The holder's
# lock is renewed there, and the waiter has its turn there.
@test "H166 a server falls silent: holders and waiters go where its name leads now" {
    one_holder_and_waiter
    freeze
    both_move
}

# A proxy takes the place of the name: its address stays, and leads elsewhere.
@test "H166 a server behind a proxy becomes a replica: holders and waiters go where it leads now" {
    through_proxy
    one_holder_and_waiter
    demote
    both_move
}

# A proxy takes the place of the name: its address stays, and leads elsewhere.
@test "H166 a server behind a proxy falls silent: holders and waiters go where that leads now" {
    through_proxy
    one_holder_and_waiter
    freeze
    both_move
}

@test "H166 a server is replaced by another one at a new address; the old address is another's" {
    one_holder_and_waiter
    on b replicaof no one >/dev/null
    leads_to b
    on a config set requirepass another >/dev/null
    for type in normal pubsub; do # a holder listens, after a while
        REDISCLI_AUTH=another on a client kill type "$type" >/dev/null
    done
    both_move
}

# The name has the addresses of the replica and of the master, in either order. Then the two change
# their roles: the holder and the waiter follow.
@test "H166 a name that has both addresses: the one that takes writes is found, in whatever order" {
    leads_to b a
    named run -0 rlock run k -- true
    leads_to a b
    one_holder_and_waiter
    on b replicaof no one >/dev/null
    on a replicaof 127.0.0.3 "$PORT" >/dev/null
    both_move
}

@test "H166 the name service fails, or does not know the name: what was known is kept" {
    one_holder_and_waiter
    for broken in 'rm -f' truncate\ -s0; do
        $broken "$T/name"
        on a replicaof 127.0.0.1 1 >/dev/null
        poll_until 20 contains "$T/x.err" replica
        on a replicaof no one >/dev/null
        RLOCK_URL=redis://127.0.0.2:$PORT renewed k
        : >"$T/x.err"
    done
    RLOCK_URL=redis://127.0.0.2:$PORT
    alive "${pid[w]}"
    ends_well x
    finish w
    [[ $status == 0 ]]
}

# The name leads to a replica, which does not grant. A run waits until it is promoted; with
# --server-wait 0 it is refused.
@test "H166 a replica at the start is waited for, and -n waits as well" {
    leads_to b
    for option in -n -w1m; do
        named bg_says y 'trying again' rlock run "$option" --server-wait 1m k -- true
        on b replicaof no one >/dev/null
        ends_with y 0
        on b replicaof 127.0.0.2 "$PORT" >/dev/null
        poll_until 15 eval '[[ $(on b info replication) == *master_link_status:up* ]]'
    done
    named refused 69 run --server-wait 0 k -- touch "$T/run"
    stderr_line 'replica of 127.0.0.2'
}

# ask_a NUMBER: so many clients have had an answer of "a".
ask_a() {
    [[ $(on a client list | grep -cE ' cmd=(eval|evalsha|exec) ') == "$1" ]]
}

# Three commands watch the server "a" when it becomes a replica. An owner that then acquires at the
# new master, and a count there, must come to their notice.
@test "H166 events, a latch and status --watch go where the name leads now" {
    named rlock latch set l 1
    named bg e rlock events --json
    named bg l rlock latch wait l
    named bg s rlock status --watch 200ms
    poll_until 10 contains "$T/s.out" 'no locks'
    poll_until 10 ask_a 3
    acknowledged 1 on a
    demote
    poll_until 20 contains "$T/e.err" replica
    RLOCK_URL=redis://127.0.0.3:$PORT hold x k
    poll_until 30 contains "$T/e.out" '"acquired"'
    poll_until 30 contains "$T/s.out" 'k    exclusive'
    RLOCK_URL=redis://127.0.0.3:$PORT rlock latch count-down l
    ends_with l 0 30
}

# watched: on the page, and on a screen whose dialogue waits for k.
watched() {
    named bg_says serve 'listening on http' rlock serve --listen 127.0.0.1:0
    printf '%s\n' 'expect no locks' "sh touch '$T/top.up'" 'expect k +exclusive' 'send q' \
        'status 0' >"$T/dialogue"
    TERM=screen named "$TESTS/terminal.py" "$RLOCK" top --color never \
        <"$T/dialogue" >"$T/top.out" 2>&1 3>&- &
    pid[top]=$!
    poll_until 10 test -e "$T/top.up"
    acknowledged 1 on a
}

# both_show: what is held at "b" only.
both_show() {
    RLOCK_URL=redis://127.0.0.3:$PORT hold x k
    poll_until 30 eval "curl -sS --max-time 60 '$(sed -n 's/.*listening on //p' "$T/serve.err")locks.json' |
        jq -e '.[0].key == \"k\"'" >/dev/null
    wait "${pid[top]}"
}

@test "H166 top and serve go where the name leads now: a server becomes a replica" {
    [[ -x ${RLOCK%/*}/rlock-serve && -x ${RLOCK%/*}/rlock-top ]] || skip "no rlock-serve or rlock-top"
    watched
    demote
    both_show
}

@test "H166 top and serve go where the name leads now: a server falls silent" {
    [[ -x ${RLOCK%/*}/rlock-serve && -x ${RLOCK%/*}/rlock-top ]] || skip "no rlock-serve or rlock-top"
    watched
    freeze
    both_show
}
