#!/usr/bin/env bats
# etcd://, with three members that are killed and stopped.
load helper
load etcds

setup_file() {
    clean_environment
    ! has_etcd || etcd_start 3 --unsafe-no-fsync
}

setup() { etcd_setup; }

# leader: the number of the member that leads.
leader() {
    local one
    for one in 1 2 3; do
        curl -sf -m 5 "http://127.0.0.1:${port[$one]}/v3/maintenance/status" -d '{}' |
            jq -e '.leader == .header.member_id' >/dev/null && echo "$one" && return
    done
    return 1
}

@test "members are killed, one after the other: a holder keeps its lock, a waiter gets it next" {
    stay a k -v --lease 15s
    queue b k --lease 30s
    for one in 1 2 3; do
        member KILL "$one"
        run -0 rlock run --server-wait 1m other -- true
        renews a
        member_start "$one"
        poll_until 60 ctl endpoint health
    done
    ends_well a
    ends_with b 0 60
    no_waiters k
}

@test "the leader is stopped: a holder keeps its lock, and others get theirs" {
    stay a k -v --lease 15s
    poll_until 20 leader
    stopped=$(leader)
    member STOP "$stopped"
    run -0 rlock run --server-wait 1m other -- true
    renews a
    member CONT "$stopped"
    ends_well a
}

@test "a majority is stopped: the lock is lost in time, and no other process has it before" {
    at_work a k 1000 --lease 6s
    queued k bg b rlock run --server-wait 2m k -- "$RLOCK_TEST_TOOLS/worker" "$LOG" b 0.1
    member STOP 1 2
    ends_with a 79 60
    member CONT 1 2
    ends_with b 0 90
    no_overlap
}

@test "the doctor names what does not answer" {
    run -0 rlock doctor
    [[ $output == *'fine     members'* ]]
    member KILL 3
    run rlock doctor
    [[ $output == *'warning  members'*'2 of the 3 members'* ]]
    member_start 3
    poll_until 60 ctl endpoint health
}
