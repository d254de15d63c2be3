# --grace and --replicas: the master dies or is cut off, and a replica takes its place that lagged
# behind. "on NAME WORD..." asks that replica. RLOCK_URL leads through a proxy, to whichever server
# is the master. replica_by_link NAME: a replica that hears of the master until "cut_link NAME";
# take_over NAME: the master is killed, and that replica is one from now on, with what it has heard.

load helper
load replicas

setup_file() { master_file; }

setup() {
    start_test
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

# replica_by_link NAME [REDIS OPTION...]: starts a replica that is connected by a link, NAME-link.
replica_by_link() {
    start_proxy "$1-link" 127.0.0.1:0 "127.0.0.1:$MASTER_PORT"
    replica_start "$1" --replicaof 127.0.0.1 "${proxy[$1-link]##*:}" "${@:2}"
}

# cut_link NAME: the replica of that name hears of nothing any more.
cut_link() {
    fault_of "$1-link" drop down
}

# take_over NAME: the master is killed; this replica is one from now on, with what it has heard of
# before.
take_over() {
    redis_stop
    : >"$T/redis.dirty"
    promote "$1"
}

@test "H38 the replica that takes over lacks the lock: the holder keeps it, no other gets it" {
    replica_by_link one
    cut_link one
    at_work a k forever --lease 12s
    take_over one
    # The first client; this one may be before the holder.
    work b k 0.3 --lease 9s
    refused 69 run -n --lease 9s other -- touch "$T/run"
    poll_until 5 contains "$T/a.err" 'the store had forgotten it, and has it again'
    refused 75 run -n --lease 9s k -- touch "$T/run"
    terminate a 143
    ends_with b 0
    no_overlap
}

@test "H38 the holder is killed as well: the next one has it after one lease, not before" {
    replica_by_link one
    cut_link one
    at_work a k forever --lease 9s
    stop_both a # it does not have it again
    take_over one
    kill -KILL "${pid[a]}" "$agent"
    start=$(now_ms)
    work b k 0.2 --lease 9s
    ends_with b 0 20
    took 8500 40000 "$start"
    end_of_a=$(awk '$1 == "a" { end = $3 } END { print end }' "$LOG")
    ((end_of_a < $(awk '$1 == "b" { print $3; exit }' "$LOG")))
}

# The replica, which is cut off, knows the former holder only. When it is promoted, the present
# holder must get its lock again there, and the waiter must not.
@test "H38 the new master has only the lock of the holder before: the present holder keeps it" {
    replica_by_link one
    stay before k --lease 9s
    poll_until 5 eval '[[ $(on one hexists "rlock:{k}" s) == 1 ]]'
    cut_link one
    ends_well before
    at_work a k forever --lease 12s
    take_over one
    poll_until 5 contains "$T/a.err" 'has it again'
    work b k 0.2 --lease 9s
    handed_over
}

@test "H30 a replica whose clock is ahead: the lock looks as if it had run out, and is kept" {
    export SHIM_CLOCK_FILE=$T/clock
    printf '%-32s' 120000 >"$SHIM_CLOCK_FILE"
    LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so replica_start one
    at_work a k forever --lease 12s
    poll_until 5 eval '[[ $(on one hexists "rlock:{k}" s) == 1 ]]'
    take_over one
    work b k 0.2 --lease 9s
    poll_until 10 held k
    renewed k
    handed_over
}

# The promoted one of two replicas was cut off and has not got the lock. The holder's next renewal
# makes the lock there, before another client can acquire it.
@test "H36 H37 of two replicas the one without the lock is promoted: the lock is renewed there" {
    number=$(free_ports 1)
    replica_start one
    replica_by_link two --port "$number" --bind 127.0.0.1
    cut_link two
    at_work a k forever --lease 12s --replicas 1
    take_over two
    on one replicaof 127.0.0.1 "$number" >/dev/null
    work b k 0.2 --lease 9s
    poll_until 15 held k
    renewed k
    handed_over
}

@test "H39 an old master continues: --replicas ends its holder before the new one grants" {
    replica_start one
    # The holder stays with the old master, everybody else is at the new one.
    at_work a k forever --lease 9s --replicas 1 -u "unix://$REDIS_SOCK" -- tree
    poll_until 5 eval '[[ $(on one hexists "rlock:{k}" s) == 1 ]]'
    promote one
    on one del 'rlock:{k}' >/dev/null # as if it had lagged
    work b k 0.5 --lease 9s
    ends_with a 79
    ends_with b 0
    no_overlap
}

@test "a master that was a replica in between grants nothing for one lease" {
    number=$(free_ports 1)
    replica_start one --port "$number" --bind 127.0.0.1
    RLOCK_URL=unix://$REDIS_SOCK
    run -0 rlock run -n --lease 20s k -- true
    redis replicaof 127.0.0.1 "$number" >/dev/null
    on one replicaof no one >/dev/null
    poll_until 15 eval '[[ $(redis info replication) == *master_link_status:up* ]]'
    redis replicaof no one >/dev/null
    says 69 'for another 20s$' run -n --lease 20s k -- true
}
