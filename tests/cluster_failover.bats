# A Redis Cluster whose masters die, hang, are alone or are replaced, under locks that are held or
# waited for. ${at[N]} is a KEY at the Nth of three masters; a node is called by its port. ends
# NAME: told to, with the lock that it had. holder_and_waiter_survive FAILOVER: a holds a key and w
# waits for it while "FAILOVER MASTER" has its master replaced. another_than KEY: a master that does
# not have it; taken_over KEY PORT: it has another master than that one; renews_lock KEY: its holder
# has renewed it since.

load helper
load cluster

setup_file() { export NODE_TIMEOUT=2000; cluster_file; }

# All who are connected to a node, or were, know the map.
has_looked() {
    [[ $(cluster_calls 'cluster|slots') -ge 2 ]]
}

# holder_and_waiter_survive FAILOVER [OPTION...]: a holds a key and w waits for it while "FAILOVER
# MASTER" has its master replaced.
holder_and_waiter_survive() {
    local key=${at[0]} old
    old=$(master_of "$key")
    at_work a "$key" forever --lease 20s "${@:2}"
    queued "$key" work w "$key" 0.2 --lease 20s "${@:2}"
    "$1" "$old"
    poll_until 10 taken_over "$key" "$old"
    renews_lock "$key"
    ends a
    ends_with w 0
    no_overlap
}

@test "H55 a master dies: its replica takes over; holder and waiter keep what they have" {
    note_and_kill() {
        fence=$(rlock status --json "$key" | jq '.[0].fence')
        node_kill "$1"
    }
    holder_and_waiter_survive note_and_kill
    poll_until 5 is_free "${at[0]}"
    run -0 rlock run "${at[0]}" -- sh -c 'echo $RLOCK_FENCE'
    ((output > fence && fence > 0))
}

@test "H55 a master dies: one that comes then waits for its replica" {
    local key=${at[1]} old
    old=$(master_of "$key")
    node_kill "$old"
    run -0 --separate-stderr rlock run -w 1m --server-wait 1m "$key" -- true
    run -0 rlock run "${at[@]}" -- true
    run -0 rlock status
}

@test "H55 a master that hangs is replaced; a command with a short lease is stopped in time" {
    local key=${at[2]} old replica
    old=$(master_of "$key")
    replica=$(replica_of "$old")
    at_work long "$key" forever --lease 30s
    bg short rlock run --lease 3s "$(nodes | key_at "$old" 9)" -- \
        worker "$LOG.short" s forever tree
    poll_until 10 test -s "$LOG.short"
    # The replica is not to take over within the short lease.
    kill -STOP "$(node_pid "$replica")" "$(node_pid "$old")"
    ends_with short 79
    kill -CONT "$(node_pid "$replica")"
    poll_until 20 taken_over "$key" "$old"
    renews_lock "$key"
    ends long
    kill -CONT "$(node_pid "$old")"
}

@test "H38 H55 a replica that lags takes over: the holder stops by its next renewal" {
    local key=${at[0]} old replica
    old=$(master_of "$key")
    replica=$(replica_of "$old")
    kill -STOP "$(node_pid "$replica")"
    cli "$old" client kill type replica
    at_work a "$key" forever --lease 15s
    node_kill "$old"
    kill -CONT "$(node_pid "$replica")"
    poll_until 15 taken_over "$key" "$old"
    run -0 rlock run -w 1m "$key" -- worker "$LOG" b 3
    ends_with a 79
    # ms of b's first trace to a's last one: a third of the lease, and the time that it takes to
    # stop. It would run for up to 15 s if it found out by the end of its lease.
    within -60000 10000 "$(overlap a b)"
}

# The URL names one node, as most do; the rest is learnt in good time.
@test "H55 H57 every node of the URL dies: holder and waiter go by those they learnt of" {
    learn_and_kill() {
        poll_until 10 has_looked "$1"
        node_kill "$1"
    }
    holder_and_waiter_survive learn_and_kill -u "cluster://127.0.0.1:$(master_of "${at[0]}")"
}

# dead_seeds: DEAD is a dozen addresses of which half refuse, and half take a connection and never
# say anything.
dead_seeds() {
    local i ports
    DEAD=""
    read -ra ports <<<"$(free_ports 6)"
    for i in 1 2 3 4 5 6; do
        start_proxy "hole$i" 127.0.0.1:0 "127.0.0.1:${CLUSTER_NODES%% *}"
        fault_of "hole$i" blackhole
        DEAD+="${proxy[hole$i]},127.0.0.1:${ports[i - 1]},"
    done
}

# The dead addresses come first, so that each has to time out, or to be asked beside others.
@test "H57 a dozen dead addresses in the URL: the master is found, also anew after a failover" {
    local key=${at[0]} old
    dead_seeds
    old=$(master_of "$key")
    run -0 --separate-stderr rlock run -u "cluster://${DEAD}127.0.0.1:$old" "$key" -- true
    [[ $stderr != *reach* ]]
    run -0 rlock status -u "cluster://${DEAD}127.0.0.1:$old"
    at_work a "$key" forever -u "cluster://${DEAD}127.0.0.1:$old" --lease 20s
    poll_until 10 has_looked "$old"
    node_kill "$old"
    poll_until 10 taken_over "$key" "$old"
    renews_lock "$key"
    ends a
}

@test "CLUSTER FAILOVER replaces a master: the holder keeps its lock, and the waiter has its turn" {
    fail_over_by_command() { cli "$(replica_of "$1")" cluster failover >/dev/null; }
    holder_and_waiter_survive fail_over_by_command
}

# The holder ends with a lost lock (79), and all others with an outage (69), none with 75.
@test "H55 a master without a replica is down: that is an outage and no contention" {
    local key=${at[1]} old
    old=$(master_of "$key")
    hold a "$key" --lease 9s
    queued "$key" bg w rlock run -w 12s "$key" -- true
    node_kill "$(replica_of "$old")"
    node_kill "$old"
    run -69 --separate-stderr rlock run -n --connect-timeout 2s "$key" -- true
    run -69 rlock run -w 1s "$key" -- true
    run -69 rlock status --connect-timeout 1s
    run -69 rlock force-release --now --yes --connect-timeout 1s "$key"
    ends_with a 79
    ends_with w 69 20
    node_start "$old"
    poll_until 15 sh -c "redis-cli -p $old cluster info | grep -q cluster_state:ok"
    run -0 rlock run -w 1m --server-wait 1m "$key" -- true
}

# The effect of a partition on an isolated master: it does not hear of the others.
@test "H56 a master that sees no majority serves no more, and its holders end in time" {
    local key=${at[0]} alone node
    alone=$(master_of "$key")
    at_work a "$key" forever --lease 12s -- tree
    for node in $CLUSTER_NODES; do
        [[ $node == "$alone" ]] || kill -STOP "$(node_pid "$node")"
    done
    ends_with a 79 20
    contains "$T/a.err" 'the Cluster is down'
    says 69 'the Cluster is down' run -u "cluster://127.0.0.1:$alone" --connect-timeout 4s "$key" \
        -- true
    run -69 rlock status -u "cluster://127.0.0.1:$alone" --connect-timeout 1s "$key"
    for node in $CLUSTER_NODES; do
        kill -CONT "$(node_pid "$node")"
    done
    run -0 rlock run -w 1m --server-wait 1m "$key" -- true
}

# The count is asked for where the slot has moved, and where a replica has taken over.
@test "a latch keeps its count while its slot moves and its master dies" {
    local key=${at[1]} old
    rlock latch set "$key" 3
    bg w rlock latch wait "$key"
    run -0 rlock latch count-down "$key"
    move_slot "$key" "$(another_than "$key")"
    prints 0 1 latch count-down "$key"
    old=$(master_of "$key")
    node_kill "$old"
    poll_until 10 taken_over "$key" "$old"
    prints 0 0 latch count-down "$key"
    ends_with w 0
}

@test "several keys: one's master dies, and all of them are kept" {
    local a=${at[0]} b=${at[1]} c=${at[2]} old
    old=$(master_of "$b")
    at_work w "$a" forever "$b" "$c" --lease 20s
    node_kill "$old"
    poll_until 10 taken_over "$b" "$old"
    renews_lock "$b"
    ends w
    run -0 rlock status -q "$a" "$b" "$c"
}
