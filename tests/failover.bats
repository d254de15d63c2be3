# sentinel://: a master that fails, moves or is disowned under locks that are held: H30, H38 to H41,
# H49, H51. The servers are a, the master, and b, its replica; "on NAME WORD..." asks one. cut_off a
# sentinels: the Sentinels do not reach it, others do; impatient: they take a server for down in a
# second; b_is_master: b has taken its place. has_clients SERVER NUMBER: so many hold locks there or
# wait for them; with_own_password: the Sentinels have the password "watch", from a file.

load helper
load sentinels

# has_clients SERVER NUMBER: so many have locks there or wait for them.
has_clients() {
    [[ $(on "$1" client list | grep -E 'cmd=(eval|evalsha|exec|subscribe) ' |
        grep -vc 'name=sentinel-\|user=watcher') == "$2" ]]
}

@test "H38 H41 the master is killed: the holder keeps the lock, the waiters keep their order" {
    local i order=""
    at_work x k forever --lease 30s
    for i in 1 2 3; do
        queue "w$i" k --lease 30s
        order+="w$i "
    done
    kill_master
    b_is_master
    run -75 rlock run -n k -- true
    terminate x 143
    all_end 0 20 w{1..3}
    [[ $(grep -o '^w.' "$LOG" | tr '\n' ' ') == "$order" ]]
    no_overlap
}

@test "H39 H41 --replicas: the new master has none at first; the waiters keep their order" {
    local i order=""
    poll_until 15 is_synchronised b
    at_work x k forever --lease 60s
    for i in 1 2; do
        queue "w$i" k --lease 30s --replicas all --connect-timeout 60s
        order+="w$i "
    done
    kill_master
    b_is_master
    terminate x 143
    for i in 1 2; do
        poll_until 20 contains "$T/w$i.err" 'the server has no replicas'
    done
    server_start a --replicaof 127.0.0.1 "${port[b]}"
    all_end 0 30 w1 w2
    [[ $(grep -o '^w.' "$LOG" | tr '\n' ' ') == "$order" ]]
    no_overlap
}

@test "H41 a run that starts without a master waits for the new one" {
    kill_master
    run -0 rlock run --connect-timeout 1m k -- true
    [[ $(on b exists 'rlock:{k}') == 1 ]]
}

@test "the master is gone without a successor: exit 69 after the time for connecting" {
    disturb
    server_kill b
    server_kill a
    timed 1500 12000 run -69 --separate-stderr rlock run --connect-timeout 2s k -- true
    stderr_line "^rlock: .*cannot reach sentinel://.*the master 127.0.0.1:${port[a]}: Connection refused"
}

@test "H49 the master is stopped, and comes back as a replica: it gets no client" {
    hold x k --lease 30s
    poll_until 15 is_synchronised b
    impatient
    server_signal a STOP
    b_is_master
    server_signal a CONT
    poll_until 30 has_role a slave
    run -75 rlock run -n k -- true
    terminate x
    run -0 rlock run k -- true
}

# all_renewed START: each of the twenty has been since then. One that has not has less left of its
# lease of 15 s.
all_renewed() {
    local left needed=$((15000 - ($(now_ms) - $1)))
    left=$(rlock status --json 'key*' 3>&- |
        jq 'if length == 20 then map(.holders[0].lease_left_ms // 0) | min else 0 end') || return
    ((left > needed))
}

@test "H41 a failover by hand, while twenty locks are renewed: none is lost" {
    for i in {1..20}; do
        stay "r$i" "key$i" --lease 15s
    done
    disturb
    on 1 sentinel failover "$MASTER"
    b_is_master
    start=$(now_ms)
    poll_until 20 all_renewed "$start"
    for i in {1..20}; do
        ends_well "r$i"
    done
}

# The master is cut off from the Sentinels only, so they promote "b", and "a" believes that it is
# still the master. Both clients must leave it, and the lock is kept at "b".
@test "H39 H51 a master that the Sentinels do not reach is left; the lock is kept at the new one" {
    hold x k --lease 60s
    queue w k
    poll_until 5 has_clients a 2
    cut_off a sentinels
    poll_until 20 all_name b
    # The old one has not been told.
    has_role a master
    poll_until 6 has_clients a 0
    run -0 rlock status k
    alive "${pid[x]}"
    kill "${pid[x]}"
    ends_with w 0
}

# The replica does not get the lock, and then the Sentinels cut the master off: it is alive, and no
# client hears of it any more.
@test "H38 a lock that the new master never had is lost, soon" {
    cut_off a replica
    poll_until 5 eval '[[ $(on b info replication) == *master_link_status:down* ]]'
    at_work x k forever --lease 60s
    cut_off a sentinels
    poll_until 20 all_name b
    has_role a master
    work y k 1
    ends_with x 79 10
    contains "$T/x.err" "lock lost: the store " # has given it away, or does not have it
    ends_with y 0
    within -60000 15000 "$(overlap x y)"
}

# The lock is lost with the master. The holder notices at its next request, long before its lease of
# 60 s is over.
@test "H38 the master dies before the replica has heard of the lock: the holder finds out at once" {
    cut_off a replica
    poll_until 5 eval '[[ $(on b info replication) == *master_link_status:down* ]]'
    at_work x k forever --lease 60s
    queued k work y k 1
    impatient
    server_kill a
    ends_with y 0 30
    ends_with x 79 10
    within -60000 15000 "$(overlap x y)"
}

@test "H30 the clock of the new master is ahead: one has the lock there, and the other one stops" {
    undeploy
    export SHIM_CLOCK_FILE=$T/clock
    printf '%-32s' 120000 >"$SHIM_CLOCK_FILE"
    SHIMMED=b deploy
    at_work x k forever --lease 30s
    queued k work y k 0.5 --lease 30s
    kill_master
    b_is_master
    # The lease that b has heard of is over there: x has the lock if it renews it before y comes.
    poll_until 30 eval 'works y || holds x k'
    works y || kill "${pid[x]}"
    finish x 30
    [[ $status == 79 || $status == 143 ]]
    ends_with y 0 20
    # The holder hears of it within a third of its lease, and stops; unheard, it works for 24 s.
    within -60000 15000 "$(overlap x y)"
}

@test "H39 a lease too short to hear of a failover in time: two hold it for less than a lease" {
    # Each begins at another moment between two questions to the Sentinels.
    for i in {1..6}; do
        at_work "x$i" "k$i" 30 --lease 4s
        sleep 0.7
    done
    cut_off a replica
    sleep 4.1 # until the leases that the replica has heard of are over
    cut_off a sentinels
    poll_until 20 all_name b
    has_role a master
    for i in {1..6}; do
        work "y$i" "k$i" 0.5
    done
    for i in {1..6}; do
        # A holder that came to the new master before the other one has it there, until it is told
        # to end.
        poll_until 10 eval 'works "y$i" || has_waiters "k$i" 1'
        works "y$i" || kill "${pid[x$i]}" || true
        finish "x$i" 40
        [[ $status == 79 || $status == 143 || $status == 0 ]]
        ends_with "y$i" 0
        within -60000 4000 "$(overlap "x$i" "y$i")"
    done
}

# The address that the Sentinels told last is tried again, as none of them can be asked.
@test "H40 a connection that breaks while no Sentinel answers is made again to the same master" {
    stay x k --lease 15s
    disturb
    server_kill 1
    server_kill 2
    server_kill 3
    RLOCK_URL=redis://127.0.0.1:${port[a]} renewed k
    [[ ! -s $T/x.err ]] # Sentinels that went away do no harm
    on a client kill user default
    RLOCK_URL=redis://127.0.0.1:${port[a]} renewed k
    ends_well x
}

# The new master grants nothing new for one lease; a held lock, which it knows, is told as held
# (75), and another one as not known yet (69).
@test "H38 H41 --grace: the replica has all: held locks stay, nothing new for one lease" {
    printf 'grace = yes\n' >"$T/config"
    export RLOCK_CONFIG=$T/config
    rlock init
    at_work a k forever --lease 20s
    kill_master
    b_is_master
    refused 75 run -n --lease 20s k -- touch "$T/run"
    refused 69 run -n --lease 20s other -- touch "$T/run"
    stderr_line 'the server may have lost locks; it grants nothing new for another (20|1[0-9]|[1-9])s'
    queued k work b k 0.2 --lease 20s
    handed_over 20
}

# with_own_password: the Sentinels have the password "watch", which stands in a file.
with_own_password() {
    undeploy
    export REDISCLI_AUTH=secret SENTINEL_AUTH=watch RLOCK_PASSWORD=secret
    SENTINEL_LINES=("requirepass watch" "sentinel sentinel-pass watch")
    deploy --requirepass secret
    disturb
    install -m 600 <(echo watch) "$T/watch"
    export RLOCK_CONFIG=$T/config
    echo "sentinel-password-file = $T/watch" >"$RLOCK_CONFIG"
}

# change_password_of_sentinels WORD: to that; their connections are closed.
change_password_of_sentinels() {
    local one
    for one in 1 2 3; do
        on $one sentinel config set sentinel-pass "$1"
        on $one acl setuser default resetpass ">$1"
        SENTINEL_AUTH=$1 on $one client kill type normal skipme yes
    done
    SENTINEL_AUTH=$1
}

# rlock's password file is changed first, then the Sentinels' password, and then the Sentinels name
# another master, which the holder and the waiter must hear.
@test "H19 H51 Sentinels whose password has changed are heard when they name another master" {
    with_own_password
    stay x k --lease 60s
    queue w k --lease 60s
    poll_until 15 has_clients a 2
    poll_until 15 is_synchronised b
    echo fresh >"$T/watch"
    change_password_of_sentinels fresh
    cut_off a sentinels
    b_is_master
    poll_until 30 has_clients b 2
    ends_well x
    ends_with w 0
}

# The master fails between the change of the Sentinels' password and that of rlock's file: the
# holder and the waiter find the new master once the file is right.
@test "H19 H41 the password of Sentinels changes, and the master is gone before the file is new" {
    with_own_password
    stay x k --lease 60s
    queue w k --lease 60s
    change_password_of_sentinels fresh
    kill_master
    b_is_master
    echo fresh >"$T/watch"
    poll_until 40 has_clients b 2
    ends_well x
    ends_with w 0
}
