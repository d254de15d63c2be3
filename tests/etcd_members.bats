#!/usr/bin/env bats
# etcd://, with three members that are killed and stopped. member SIGNAL N: member N gets it. renews
# NAME: its lease has been renewed since.
load helper
load etcds

setup_file() {
    clean_environment
    ! has_etcd || etcd_start 3 --unsafe-no-fsync --quota-backend-bytes $((32 << 20))
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

# connections HOST MEMBER: how many that process has.
connections() {
    local inodes
    inodes=$(readlink "/proc/$1"/fd/* | sed -n 's/^socket:\[\(.*\)\]$/\1/p')
    awk -v port="$(printf ':%04X$' "${port[$2]}")" '$3 ~ port && $4 == "01" { print $10 }' \
        /proc/net/tcp | grep -cxF "$inodes"
}

# hears_from_another HOST: it asks a member, and listens to it, that is not the one that is stopped.
hears_from_another() {
    local one
    for one in 1 2 3; do
        [[ $one == "$stopped" ]] || (($(connections "$1" "$one") < 2)) || return 0
    done
    return 1
}

# b asks another member than the leader. A host that listens to a member has two connections there
# or more.
@test "a waiter listens to the member that answers it, not to one that is silent" {
    poll_until 20 leader
    stay a k --lease 10m
    queue b k --lease 10m -u "$(sed "s|127.0.0.1:${port[$(leader)]},*||; s|,/|/|" <<<"$RLOCK_URL")"
    host=$(pgrep -P "$(agent_of "${pid[b]}")" -x rlock-etcd)
    stopped=none
    poll_until 20 hears_from_another "$host"
    for one in 1 2 3; do
        (($(connections "$host" "$one") < 2)) || stopped=$one
    done
    member STOP "$stopped"
    # In a minute it asks for the time, too, by one connection more.
    poll_until 14 hears_from_another "$host"
    member CONT "$stopped"
    ends_well a
    ends_with b 0 60
}

@test "a majority is stopped: the lock is lost in time, and no other process has it before" {
    at_work a k forever --lease 6s
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

@test "docs/etcd.md: the space that is used up is got back on all members" {
    head -c 1000000 /dev/zero | tr '\0' x >"$T/value"
    for _ in {1..100}; do
        ctl put "test$BATS_TEST_NUMBER/filler" <"$T/value" >/dev/null 2>&1 || break
    done
    run -69 rlock run --server-wait 0 k -- true
    mkdir "$T/bin"
    printf '#!/bin/sh\nETCDCTL_API=3 exec %s --endpoints 127.0.0.1:%s "$@"\n' \
        "$(command -v etcdctl)" "${port[1]}" >"$T/bin/etcdctl"
    chmod +x "$T/bin/etcdctl"
    "$TESTS/page_blocks" etcd.md 'Settings of etcd' 2 >"$T/block"
    PATH=$T/bin:$PATH sh -e "$T/block"
    run -0 rlock run k -- true
    [[ ! $(ctl alarm list) ]]
}

# The last test: it tears the cluster in two. The others do not reach the member that was torn from
# them, which would tell them that it has removed them.
@test "the doctor: a member that was torn from the others is a cluster that has other locks" {
    local options
    sed "/^--listen-peer-urls/{n;s/:[0-9]*$/:$(free_ports 1)/}" "$ETCD/options1" >"$T/options"
    mapfile -t options <"$T/options"
    member KILL 1
    poll_until 60 rlock run --server-wait 0 k -- true
    env -u RLOCK_TEST_ID etcd "${options[@]}" --force-new-cluster </dev/null >>"$ETCD/log1" 2>&1 3>&- &
    echo $! >"$ETCD/pid1"
    poll_until 60 rlock run -u "etcd://127.0.0.1:${port[1]}" --server-wait 0 k -- true
    run -69 rlock doctor
    [[ $output == *'unfit    members'*'follow different leaders'* ]]
}
