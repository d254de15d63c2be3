# --grace and --replicas: the master dies or is cut off, and a replica takes its place that lagged behind.

load helper
load replicas

setup_file() { master_file; }

setup() {
    T=$BATS_TEST_TMPDIR
    LOG=$T/log
    export RLOCK_TEST_ID=$T
    declare -gA pid=()
    printf 'grace = yes\n' >"$T/config"
    export RLOCK_CONFIG=$T/config
    rlock init
    start_proxy
    export RLOCK_URL="redis://${proxy[proxy]}"
}

eval "helper_$(declare -f teardown)"
teardown() {
    RLOCK_URL=unix://$REDIS_SOCK
    end_replicas
    helper_teardown
}

# lagging NAME [REDIS OPTION...]: a replica that hears of nothing any more after "lag NAME".
lagging() {
    start_proxy "$1-link" 127.0.0.1:0 "127.0.0.1:$MASTER_PORT"
    replica_start "$1" --replicaof 127.0.0.1 "${proxy[$1-link]##*:}" "${@:2}"
}

lag() {
    fault_of "$1-link" drop down
}

# take_over NAME: the master is killed; this replica is one from now on, with what it has heard of before.
take_over() {
    redis_stop
    : >"$T/redis.dirty"
    promote "$1"
}

without_grace() {
    RLOCK_CONFIG=/dev/null "$@"
}

@test "H38 the master is killed, and its replica did not have the lock: the holder keeps it, nobody else gets it" {
    lagging one
    lag one
    work a k 6 --lease 4s
    working a
    take_over one
    # Whoever comes first; this one may be before the holder.
    work b k 0.3 --lease 4s
    run -69 rlock run -n --lease 4s other -- touch "$T/run"
    poll_until 5 held k
    run -75 rlock run -n --lease 4s k -- touch "$T/run"
    [[ ! -e $T/run ]]
    finish a
    [[ $status == 0 ]]
    contains "$T/a.err" 'the store had forgotten it, and has it again'
    finish b
    [[ $status == 0 ]]
    no_overlap
}

@test "H38 the same without grace: two at once" {
    lagging one
    lag one
    without_grace work a k 100 --lease 9s
    working a
    fault blackhole # it learns of nothing
    take_over one
    RLOCK_URL=unix://$T/one/sock without_grace work b k 2
    working b
    finish a
    [[ $status == 79 ]]
    finish b
    run -1 no_overlap
}

@test "H38 the holder is killed as well: the next one has it after one lease, not before" {
    local start
    lagging one
    lag one
    work a k 100 --lease 4s
    working a
    take_over one
    kill -KILL "$(agent_of "${pid[a]}")" "${pid[a]}"
    start=$(now_ms)
    work b k 0.2 --lease 4s
    finish b
    [[ $status == 0 ]]
    within 3500 6000 $(($(now_ms) - start))
    end_of_a=$(awk '$1 == "a" { end = $3 } END { print end }' "$LOG")
    ((end_of_a < $(awk '$1 == "b" { print $3; exit }' "$LOG")))
}

@test "H38 a replica with the lock of the holder before: the present one keeps it" {
    lagging one
    bg before rlock run --lease 6s k -- sleep 0.5
    poll_until 5 held k
    poll_until 5 eval '[[ $(on one hexists "rlock:{k}" s) == 1 ]]'
    lag one
    finish before
    work a k 6 --lease 4s
    working a
    take_over one
    poll_until 5 contains "$T/a.err" 'has it again'
    work b k 0.2 --lease 4s
    finish a
    [[ $status == 0 ]]
    finish b
    [[ $status == 0 ]]
    no_overlap
}

@test "H30 a replica whose clock is ahead: the lock looks as if it had run out, and is kept" {
    export SHIM_CLOCK_FILE=$T/clock
    printf '%-32s' 120000 >"$SHIM_CLOCK_FILE"
    LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so replica_start one
    work a k 5 --lease 4s
    working a
    poll_until 5 eval '[[ $(on one hexists "rlock:{k}" s) == 1 ]]'
    take_over one
    work b k 0.2 --lease 4s
    finish a
    [[ $status == 0 ]]
    finish b
    [[ $status == 0 ]]
    no_overlap
}

@test "H36 H37 two replicas, one has the lock and the other is promoted: renewed there, on the other one" {
    local number
    number=$(free_ports 1)
    replica_start one
    lagging two --port "$number" --bind 127.0.0.1
    lag two
    work a k 6 --lease 5s --replicas 1
    working a
    take_over two
    on one replicaof 127.0.0.1 "$number" >/dev/null
    work b k 0.2 --lease 5s
    finish a
    [[ $status == 0 ]]
    finish b
    [[ $status == 0 ]]
    no_overlap
}

@test "H39 an old master that goes on without its replica: --replicas ends its holder before the new one grants" {
    replica_start one
    # The holder stays with the old master, everybody else is at the new one.
    work a k 100 --lease 4s --replicas 1 -u "unix://$REDIS_SOCK" -- tree
    working a
    poll_until 5 eval '[[ $(on one hexists "rlock:{k}" s) == 1 ]]'
    promote one
    on one del 'rlock:{k}' >/dev/null # as if it had lagged
    work b k 0.5 --lease 4s
    finish a
    [[ $status == 79 ]]
    finish b
    [[ $status == 0 ]]
    no_overlap
}

@test "a replica that is made a master and one again: its memory is not its own" {
    local number
    number=$(free_ports 1)
    replica_start one --port "$number" --bind 127.0.0.1
    RLOCK_URL=unix://$REDIS_SOCK
    run -0 rlock run -n --lease 20s k -- true
    redis replicaof 127.0.0.1 "$number" >/dev/null
    on one replicaof no one >/dev/null
    poll_until 15 eval '[[ $(redis info replication) == *master_link_status:up* ]]'
    redis replicaof no one >/dev/null
    run -69 --separate-stderr rlock run -n --lease 20s k -- true
    stderr_line 'for another 20s$'
}
