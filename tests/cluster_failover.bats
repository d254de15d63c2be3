# A Redis Cluster whose masters die, hang, are alone or are replaced, under locks that are held or waited for.

load helper
load cluster

setup_file() { cluster_file; }
teardown_file() {
    cluster_stop
    redis_stop
}

setup() { cluster_setup; }
teardown() { cluster_teardown; }

# All who are connected to a node, or were, know the map.
has_looked() {
    [[ $(cluster_calls 'cluster|slots') -ge 2 ]]
}

@test "H55 a master dies: its replica takes over, and no lock is lost that it had" {
    local key=${at[0]} old fence
    old=$(master_of "$key")
    work a "$key" 100 --lease 12s
    working a
    bg w rlock run --lease 12s "$key" -- "$RLOCK_TEST_TOOLS/worker" "$LOG" w 0.2
    poll_until 10 has_waiters "$key" 1
    node_kill "$old"
    poll_until 10 taken_over "$key" "$old"
    run -0 --separate-stderr rlock status --json "$key"
    fence=$(jq '.[0].fence' <<<"$output")
    renews "$key"
    ends a
    finish w 5
    [[ $status == 0 ]]
    no_overlap
    poll_until 5 is_free "$key"
    run -0 rlock run "$key" -- sh -c 'echo $RLOCK_FENCE'
    ((output > fence && fence > 0))
}

@test "H55 a master dies: who comes then waits for its replica" {
    local key=${at[1]} old start
    old=$(master_of "$key")
    node_kill "$old"
    start=$(now_ms)
    run -0 --separate-stderr rlock run -w 20s "$key" -- true
    within 0 9000 $(($(now_ms) - start))
    run -0 rlock run "${at[@]}" -- true
    run -0 rlock status
}

@test "H55 a master that hangs is replaced; its command is stopped in time where that takes too long" {
    local key=${at[2]} old
    old=$(master_of "$key")
    work long "$key" 100 --lease 15s
    working long
    bg short rlock run --lease 1s "$(key_at "$old" 9)" -- "$RLOCK_TEST_TOOLS/worker" "$LOG.short" s 100 tree
    poll_until 10 test -s "$LOG.short"
    kill -STOP "$(node_pid "$old")"
    finish short
    [[ $status == 79 ]]
    poll_until 20 taken_over "$key" "$old"
    renews "$key"
    ends long
    kill -CONT "$(node_pid "$old")"
}

@test "H38 H55 a replica that lags takes over: the holder stops by its next renewal" {
    local key=${at[0]} old replica
    old=$(master_of "$key")
    replica=$(replica_of "$old")
    kill -STOP "$(node_pid "$replica")"
    cli "$old" client kill type replica
    work a "$key" 100 --lease 6s
    working a
    node_kill "$old"
    kill -CONT "$(node_pid "$replica")"
    poll_until 15 taken_over "$key" "$old"
    run -0 rlock run -w 10s "$key" -- "$RLOCK_TEST_TOOLS/worker" "$LOG" b 3
    finish a 5
    [[ $status == 79 ]]
    # ms of b's first trace to a's last one: a third of the lease, and the time that it takes to stop.
    within -10000 2500 "$(awk '$1 == "a" { end = $3 } $1 == "b" && !begin { begin = $3 }
        END { print int((end - begin) / 1000000) }' "$LOG")"
}

# The URL names one node, as most do; the rest is learnt in good time.
@test "H55 H57 every node of the URL dies, under a holder and a waiter that have learnt of the others" {
    local key=${at[0]} old
    old=$(master_of "$key")
    work a "$key" 100 -u "cluster://127.0.0.1:$old" --lease 12s
    working a
    bg w rlock run -u "cluster://127.0.0.1:$old" --lease 12s "$key" -- "$RLOCK_TEST_TOOLS/worker" "$LOG" w 0.2
    poll_until 10 has_waiters "$key" 1
    poll_until 10 has_looked "$old"
    node_kill "$old"
    poll_until 10 taken_over "$key" "$old"
    renews "$key"
    ends a
    finish w 5
    [[ $status == 0 ]]
    no_overlap
}

@test "a master is replaced on request: nobody notices" {
    local key=${at[0]} old
    old=$(master_of "$key")
    work a "$key" 100 --lease 5s
    working a
    bg w rlock run --lease 5s "$key" -- "$RLOCK_TEST_TOOLS/worker" "$LOG" w 0.2
    poll_until 10 has_waiters "$key" 1
    cli "$(replica_of "$old")" cluster failover >/dev/null
    poll_until 10 taken_over "$key" "$old"
    renews "$key"
    ends a
    finish w 3
    [[ $status == 0 ]]
    no_overlap
}

@test "H55 a master without a replica is down: that is an outage and no contention" {
    local key=${at[1]} old start
    old=$(master_of "$key")
    hold a "$key" --lease 4s
    bg w rlock run --lease 2s "$key" -- true
    poll_until 10 has_waiters "$key" 1
    node_kill "$(replica_of "$old")"
    node_kill "$old"
    start=$(now_ms)
    run -69 --separate-stderr rlock run -n --connect-timeout 2s "$key" -- true
    within 0 5000 $(($(now_ms) - start))
    run -69 rlock run -w 1s "$key" -- true
    run -69 rlock status --connect-timeout 1s
    run -69 rlock force-release --yes --connect-timeout 1s "$key"
    finish a
    [[ $status == 79 ]]
    finish w 15
    [[ $status == 69 ]]
    node_start "$old"
    poll_until 15 sh -c "redis-cli -p $old cluster info | grep -q cluster_state:ok"
    run -0 rlock run -w 10s "$key" -- true
}

# What a partition does to a master that is alone: it does not hear of the others.
@test "H56 a master that sees no majority serves no more, and its holders end in time" {
    local key=${at[0]} alone node
    alone=$(master_of "$key")
    work a "$key" 100 --lease 4s -- tree
    working a
    for node in $CLUSTER_NODES; do
        [[ $node == "$alone" ]] || kill -STOP "$(node_pid "$node")"
    done
    finish a
    [[ $status == 79 ]]
    contains "$T/a.err" 'CLUSTERDOWN'
    run -69 --separate-stderr rlock run -u "cluster://127.0.0.1:$alone" --connect-timeout 2s "$key" -- true
    stderr_line 'CLUSTERDOWN'
    run -69 rlock status -u "cluster://127.0.0.1:$alone" --connect-timeout 1s "$key"
    for node in $CLUSTER_NODES; do
        kill -CONT "$(node_pid "$node")"
    done
    run -0 rlock run -w 15s "$key" -- true
}

@test "a latch: its slot moves and its master dies while it is waited for and counted down" {
    local key=${at[1]} old
    rlock latch set "$key" 3
    bg w rlock latch wait "$key"
    run -0 rlock latch count-down "$key"
    move_slot "$key" "$(another_than "$key")"
    run -0 rlock latch count-down "$key"
    [[ $output == 1 ]]
    old=$(master_of "$key")
    node_kill "$old"
    poll_until 10 taken_over "$key" "$old"
    run -0 rlock latch count-down "$key"
    [[ $output == 0 ]]
    finish w
    [[ $status == 0 ]]
}

@test "several keys of which one's master dies while they are held" {
    local a=${at[0]} b=${at[1]} c=${at[2]} old
    old=$(master_of "$b")
    work w "$a" 100 "$b" "$c" --lease 12s
    working w
    node_kill "$old"
    poll_until 10 taken_over "$b" "$old"
    renews "$b"
    ends w
    run -0 rlock status -q "$a" "$b" "$c"
}
