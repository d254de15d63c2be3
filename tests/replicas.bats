# --replicas: grants that count only once they are on the replicas. "on NAME WORD..." asks that
# replica. While a replica is stopped, a grant waits for it. lacking TEXT COMMAND: it is refused
# with 69 and that, and k is free; was_not_heard NAME: a request of it was not heard of by the
# replica; has_left_master NAME: the replica does not follow it any more.

load helper
load replicas

setup_file() { master_file; }

eval "helper_$(declare -f teardown)"
teardown() {
    end_replicas
    helper_teardown
}

# lacking TEXT COMMAND...: it is refused with 69 and that, and then k is free. Its limit @ is longer
# where the server stood still for so long that it could not answer.
lacking() {
    local limit text=$1
    shift
    for limit in 3s 6s 12s; do
        refused 69 "${@//@/$limit}"
        poll_until 10 is_free k
        [[ $stderr != *"$text"* ]] || return 0
    done
    stderr_line "$text"
}

# was_not_heard NAME: a request of that was not heard of by the replica, or its server stood still.
was_not_heard() {
    grep -qE '(only 0 of 1 replicas have it|no answer in time); trying again' "$T/$1.err"
}

# has_left_master NAME: the replica follows the master no longer, and the master knows.
has_left_master() {
    on "$1" replicaof no one >/dev/null
    poll_until 10 eval '[[ $(redis info replication) == *connected_slaves:1* ]]'
}

@test "H35 no replica, or too few: exit 69, nothing is run or held" {
    export RLOCK_SERVER_WAIT=0
    for number in 1 majority all; do
        says 69 '^rlock: k: the server has no replicas' run --replicas $number k -- touch "$T/run"
        refused 69 run -n -E 0 --replicas $number k -- touch "$T/run"
        run -69 rlock acquire --replicas $number k
    done
    replica_start one
    says 69 '1 of the 2 replicas' run --replicas 2 k -- touch "$T/run"
    refused 69 run --replicas 2 -w 300ms k -- touch "$T/run"
    is_free k
    [[ $(redis keys '*') == "" ]]
}

@test "H35 a replica that comes after its master is waited for at the start, with -n as well" {
    bg n rlock run -n --server-wait 1m --replicas 1 n -- true
    bg all rlock acquire --server-wait 1m --replicas all all
    for job in n all; do
        poll_until 10 contains "$T/$job.err" 'the server has no replicas'
    done
    [[ $(redis keys '*') == "" ]]
    replica_start one
    all_end 0 20 n all
}

@test "--replicas takes 0, a number, majority and all, with one replica and with two" {
    run -0 rlock run --replicas 0 k -- true
    replica_start one
    for number in 1 majority all; do
        run -0 rlock run --replicas $number k -- true
    done
    replica_start two
    for number in 1 2 majority all; do
        run -3 rlock run --replicas $number k -- sh -c 'exit 3'
    done
    run -0 rlock run --replicas 2 --read a b c -- true
    run -0 rlock run --replicas 2 --limit 3 s -- true
}

# Lock j has a lease of an hour, so its holder cannot have heard of it by a renewal.
@test "H45 a holder that waits for replicas hears of it within a second" {
    replica_start one
    hold a k --lease 9s --replicas 1
    renewed k
    [[ $(redis_calls wait) -gt 1 ]]
    hold b j --lease 1h --replicas 1
    run -0 --separate-stderr rlock force-release --yes k j
    ends_with a 79
    ends_with b 79
}

@test "the lock is on the replica when the command starts, and gone from it when rlock ends" {
    replica_start one
    # The replica is asked by the command itself.
    prints 0 'x *' run --replicas 1 k -- redis-cli -s "$T/one/sock" hget 'rlock:{k}' s
    # rlock does not wait for long where that is late.
    poll_until 10 eval '[[ $(on one hexists "rlock:{k}" s) == 0 ]]'
}

@test "H36 one of two replicas is silent: enough for 1, not for 2, majority and all; never 75" {
    replica_start one
    replica_start two
    kill -STOP "$(replica_pid two)"
    run -0 rlock run --replicas 1 k -- true
    for number in 2 majority all; do
        lacking 'rlock: k: only 1 of 2 replicas has it' run --replicas $number -w @ k -- \
            touch "$T/run"
    done
    refused 69 run --connect-timeout 1s --replicas 2 -n -E 0 k -- touch "$T/run"
    poll_until 10 is_free k
    prints 69 '' acquire --connect-timeout 1s --replicas 2 k
    poll_until 10 is_free k
    kill -CONT "$(replica_pid two)"
    run -0 rlock run --replicas all k -- true
}

# The new replica has to count: while it is silent, "all" are one too few.
@test "H36 a second replica comes while the lock is held: all are two from then on" {
    replica_start one
    stay a k --replicas all --lease 15s
    replica_start two
    kill -STOP "$(replica_pid two)"
    ends_with a 79
    contains "$T/a.err" 'only 1 of 2 replicas has it'
}

# A replica that has been seen is remembered: without it, "all" would become one again, and a
# failover to it could lose the lock.
@test "H39 a second replica comes while the lock is held, and leaves: all are still two" {
    replica_start one
    stay a k --replicas all --lease 15s
    replica_start two
    renewed k
    renewed k # the answer to the one before, which counts the replicas, has been read
    has_left_master two
    ends_with a 79 25
    contains "$T/a.err" 'only 1 of 2 replicas has it'
    run -0 rlock run --replicas all k -- true
}

# The number of replicas must outlive the connection over which the server told it.
@test "H39 one of two replicas leaves, and the connection breaks: all are still two" {
    replica_start one
    replica_start two
    start_proxy
    stay a k -u "redis://${proxy[proxy]}" --replicas all --lease 15s
    fault refuse
    has_left_master two
    fault pass
    ends_with a 79 25
    contains "$T/a.err" 'only 1 of 2 replicas has it'
}

@test "H39 a replica is promoted while the lock is held: all are those of the new master" {
    replica_start one --port "$(free_ports 1)" --bind 127.0.0.1
    replica_start two
    start_proxy
    stay a k -u "redis://${proxy[proxy]}" --replicas all --lease 15s
    fault refuse
    on two replicaof 127.0.0.1 "$(on one config get port | tail -n 1)" >/dev/null
    promote one
    poll_until 10 eval '[[ $(on one info replication) == *,state=online,* ]]'
    redis_stop
    fault pass
    RLOCK_URL=unix://$T/one/sock renewed k
    ends_well a
}

@test "H34 an answer is lost, then a replica is silent: the same request does not count" {
    replica_start one
    start_proxy
    fault on up EVAL "cut down 0"
    kill -STOP "$(replica_pid one)"
    refused 69 run -u "redis://${proxy[proxy]}" -w 9s --replicas 1 k -- \
        touch "$T/run"
    # Also if the last attempt had too little left of the 9 s to hear of the replica.
    stderr_line 'only 0 of 1 replicas have it'
    poll_until 10 is_free k
}

# The lock is granted, and the answer about the replicas does not come any more. The release of it
# waits until the proxy lets requests through.
@test "H34 the server is silent when the time is up: what was granted is released" {
    replica_start one
    start_proxy
    kill -STOP "$(replica_pid one)"
    bg_says a 'trying again' rlock run -u "redis://${proxy[proxy]}" -w 6s --replicas 1 k -- \
        touch "$T/run"
    fault hold up
    ends_with a 69
    fault pass
    poll_until 10 is_free k
    [[ ! -e $T/run ]]
}

@test "H11 scripts that the server has forgotten are sent again, with what waits for replicas" {
    replica_start one
    kill -STOP "$(replica_pid one)"
    for number in 1 2; do
        redis script flush
        lacking 'only 0 of 1 replicas have it' run -n --connect-timeout @ --replicas 1 k -- \
            touch "$T/run"
    done
    kill -CONT "$(replica_pid one)"
    redis script flush
    run -0 rlock run --replicas 1 k -- true
}

@test "H64 a signal while the server waits for a replica: nothing stays held" {
    replica_start one
    run -0 rlock run --replicas 1 k -- true
    kill -STOP "$(replica_pid one)"
    for moment in 0.3 0.6 1.5; do
        bg w rlock run --replicas 1 k -- touch "$T/run"
        sleep $moment
        terminate w 143
        poll_until 10 is_free k
    done
    [[ ! -e $T/run ]]
}

@test "H37 renewals that no replica hears of do not count: stopped before the lease ends" {
    replica_start one
    at_work a k forever --replicas 1 --lease 8s -- tree
    # By the clock of what a worker leaves.
    start=$(python3 -c 'import time; print(time.clock_gettime_ns(time.CLOCK_BOOTTIME))')
    kill -STOP "$(replica_pid one)"
    ends_with a 79
    last=$(awk 'END { print $3 }' "$LOG")
    ((last - start < 8000000000))
    # The worker was not stopped at the first renewal that failed.
    was_not_heard a
    # The server itself had it all the time, and grants it after the release.
    work b k 0.2
    finish b
    no_overlap
}

@test "H37 a replica that is back in time: the lock is kept" {
    replica_start one
    stay a k --replicas 1 --lease 15s
    kill -STOP "$(replica_pid one)"
    poll_until 10 was_not_heard a
    kill -CONT "$(replica_pid one)"
    poll_until 10 contains "$T/a.err" 'back after'
    ends_well a
}

# A waiter may get the lock by a message, without a request of its own, so a WAIT has to follow.
@test "a waiter that is called is confirmed by the replica before its command runs" {
    replica_start one
    hold a k
    queue w k --replicas 1 --lease 20s
    redis config resetstat >/dev/null
    terminate a
    ends_with w 0
    (($(redis_calls wait) >= 1))
}

@test "a waiter whose heartbeat takes the lock: not without the replica" {
    replica_start one
    # The lock of a holder "dead", for 12 s: its end calls no waiter. So the grant is that to a
    # heartbeat, a try that listens, in a transaction.
    redis hset 'rlock:{k}' k lock/1 f 1 \
        s "x 0 1 $(($(now_ms) + 12000)) 12000 dead" \
        h:dead "$(($(now_ms) + 12000)) 12000 1 dead $(now_ms) x 0 " >/dev/null
    redis pexpire 'rlock:{k}' 100000 >/dev/null
    queued k bg w rlock run --replicas 1 --lease 9s k -- touch "$T/run"
    redis config resetstat >/dev/null
    kill -STOP "$(replica_pid one)"
    poll_until 20 was_not_heard w
    (($(redis_calls exec) >= 1))
    [[ ! -e $T/run ]]
    kill -CONT "$(replica_pid one)"
    finish w
    [[ $status == 0 && -e $T/run ]]
}

# A refusal changes nothing, so no replica has to confirm it.
@test "held by another: exit 75, whatever becomes of the replica" {
    replica_start one
    hold a k
    refused 75 run -n --replicas 1 k -- touch "$T/run"
    kill -STOP "$(replica_pid one)"
    refused 75 run -n --replicas 1 k -- touch "$T/run"
    refused 75 run -w 3s --replicas 1 k -- touch "$T/run"
}

# spends TRIPS OPTION...: round trips of a run through the relay.
spends() {
    local before
    before=$(wc -l <"$T/relay.out")
    redis config resetstat >/dev/null
    rlock run -u "redis://127.0.0.1:$(head -n 1 "$T/relay.out")" "${@:2}" k -- true
    poll_until 10 eval '(($(wc -l <"$T/relay.out") > before))'
    [[ $(tail -n 1 "$T/relay.out") == "$1" ]]
}

@test "--replicas costs one round trip, to count them: the wait itself goes with the script" {
    replica_start one
    bg_prints relay python3 -u "$TESTS/trips.py" "$REDIS_SOCK"
    # The first run costs more, as the server does not know the scripts; so does one that lasts.
    poll_until 20 spends 2
    poll_until 20 spends 3 --replicas 1
    [[ $(redis_calls evalsha) == 2 && $(redis_calls wait) == 2 && $(redis_calls role) == 1 ]]
}

@test "--replicas: a renewal and its wait are one round trip" {
    replica_start one
    start_proxy
    # The run is repeated where the machine stood still, so that the renewal was retried.
    for _ in 1 2 3; do
        stay a k -u "redis://${proxy[proxy]}" --lease 15s --replicas 1
        redis config resetstat >/dev/null
        # No answer gets through: what waits for the replica is asked for none the less, so it came
        # with the renewal.
        fault hold down
        poll_until 10 eval '(($(redis_calls wait) > 0))'
        fault pass
        before=$(redis_calls wait)
        poll_until 10 eval '(($(redis_calls wait) > before))'
        ends_well a
        [[ -s $T/a.err ]] || break
    done
    [[ ! -s $T/a.err ]]
    # Each with its renewal, and nothing besides but the renewals that listen. Where the server does
    # not know the script, that is sent once, and that of a release behind it.
    evals=$(redis_calls eval)
    ((evals -= evals > 0))
    (($(redis_calls wait) + $(redis_calls subscribe) == $(redis_calls evalsha) + evals && $(redis_calls role) == 0))
}

@test "H20 WAIT is a right that only --replicas needs" {
    replica_start one
    redis acl setuser nowait reset on '>pw' '~*' '&*' '+@all' -wait
    export RLOCK_URL=unix://nowait:pw@$REDIS_SOCK
    run -0 rlock run k -- true
    says 77 '[Ww][Aa][Ii][Tt]' run --replicas 1 k -- touch "$T/run"
    poll_until 10 is_free k
    redis acl setuser norole reset on '>pw' '~*' '&*' '+@all' -role
    export RLOCK_URL=unix://norole:pw@$REDIS_SOCK
    run -0 rlock run --replicas 1 k -- true
    says 77 'ROLE' run --replicas all k -- touch "$T/run"
    redis acl setuser noinfo reset on '>pw' '~*' '&*' '+@all' -info
    RLOCK_URL=unix://noinfo:pw@$REDIS_SOCK run -0 rlock run --replicas all k -- true
}

@test "acquire --keep renews with the replicas; renew and release go by the configuration" {
    replica_start one
    printf 'replicas = 1\n' >"$T/config"
    export RLOCK_CONFIG=$T/config
    sleep 1000 3>&- &
    pid[sleep]=$!
    run -0 rlock acquire --lease 15s --keep "${pid[sleep]}" k
    token=$output
    run -0 rlock renew --owner "$token" k
    kill -STOP "$(replica_pid one)"
    says 69 'only 0 of 1 replicas have it' renew --connect-timeout 6s --owner "$token" k
    # The renewer is not heard by the replica either, so what it keeps runs out.
    poll_until 10 is_free k
}

@test "H38 a master that dies right after the grant: its replica has the lock" {
    replica_start one
    start_proxy
    at_work a k forever --lease 15s -u "redis://${proxy[proxy]}" --replicas 1
    redis_stop
    promote one
    RLOCK_URL=unix://$T/one/sock refused 75 run -n k -- touch "$T/run"
    finish a 20
    # The new master has no replica to renew it on.
    [[ $status == 79 ]]
}

# "b" loses its lock, as the renewals of its second agent are not confirmed any more.
@test "H135 the agent is killed: the next one's renewals wait for the replicas as well" {
    replica_start one
    stay a k --replicas 1 --lease 15s
    kill_agent a
    renewed k
    ends_well a
    at_work b k forever --replicas 1 --lease 9s
    kill -STOP "$(replica_pid one)"
    kill_agent b
    ends_with b 79 20
    kill -CONT "$(replica_pid one)"
}
