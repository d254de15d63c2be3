# --grace behind Sentinels that do the failover: the old master is killed, stopped or demoted, and
# the replica that takes its place may have lagged.

load helper
load sentinels

setup() {
    start_test
    need_deployment
    disturb
    printf 'grace = yes\n' >"$T/config"
    export RLOCK_CONFIG=$T/config
    rlock init
}

teardown() {
    [[ -n $BATS_TEST_COMPLETED ]] || {
        show_evidence
        show_deployment
    }
    end_processes
    undeploy
}

teardown_file() {
    undeploy
    redis_stop
}

@test "H38 H41 failover, and the replica has all: held locks stay, nothing new for one lease" {
    at_work a k 1000 --lease 20s
    server_kill a
    b_is_master
    refused 75 run -n --lease 20s k -- touch "$T/run"
    refused 69 run -n --lease 20s other -- touch "$T/run"
    stderr_line 'the server may have lost locks; it grants nothing new for another (20|1[0-9]|[1-9])s'
    work b k 0.2 --lease 20s
    poll_until 10 has_waiters k 1
    terminate a 143
    ends_with b 0 20
    no_overlap
}

@test "H38 failover to a replica that lagged: the holder has it again, and no other client" {
    # The replica hears of nothing any more.
    on a acl setuser copier off
    on a client kill user copier
    at_work a k 1000 --lease 20s
    [[ $(on b exists 'rlock:{k}') == 0 ]]
    server_kill a
    b_is_master
    work b k 0.2 --lease 20s
    poll_until 20 contains "$T/a.err" 'the store had forgotten it, and has it again'
    terminate a 143
    ends_with b 0 20
    no_overlap
}

@test "H39 the old master continues: with --replicas its holder is stopped in time" {
    at_work a k 100 --lease 15s --replicas 1 -u "redis://127.0.0.1:${port[a]}" -- tree
    # Neither Sentinels nor the replica reach it any more.
    cut_off a copier
    cut_off a watcher
    b_is_master
    on b del 'rlock:{k}' >/dev/null # as if it had lagged
    work b k 0.5 --lease 15s
    ends_with a 79 20
    ends_with b 0 20
    no_overlap
}

@test "H41 a failover on request while many wait: they keep their order, one at a time" {
    local one
    hold a k --lease 15s
    for one in 1 2 3; do
        queue "w$one" k --lease 15s
    done
    on 1 sentinel failover mymaster >/dev/null
    b_is_master
    terminate a
    for one in 1 2 3; do
        ends_with "w$one" 0 20
    done
    [[ $(xargs <"$LOG") == "w1 w2 w3" ]]
}
