# --replicas: what counts only once it is on the replicas.

load helper
load replicas

setup_file() { master_file; }

eval "helper_$(declare -f teardown)"
teardown() {
    end_replicas
    helper_teardown
}

# count COMMAND: how often the server was asked for it since count_anew.
count() {
    redis_calls "$1"
}

count_anew() {
    redis config resetstat >/dev/null
}

@test "H35 no replica, or too few: 69 at once, nothing is run or held" {
    local number
    for number in 1 majority all; do
        run -69 --separate-stderr rlock run --replicas $number k -- touch "$T/run"
        stderr_line '^rlock: k: the server has no replicas'
        run -69 rlock run -n -E 0 --replicas $number k -- touch "$T/run"
        run -69 rlock acquire --replicas $number k
    done
    replica_start one
    run -69 --separate-stderr rlock run --replicas 2 k -- touch "$T/run"
    stderr_line '1 of the 2 replicas'
    run -69 rlock run --replicas 2 -w 300ms k -- touch "$T/run"
    [[ ! -e $T/run ]]
    is_free k
    [[ $(redis keys '*') == "" ]]
}

@test "--replicas 0 is none; a number, majority and all, with one and with two" {
    local number
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

@test "the lock is on the replica when the command starts, and gone from it when rlock ends" {
    replica_start one
    # The replica is asked by the command itself.
    run -0 rlock run --replicas 1 k -- redis-cli -s "$T/one/sock" hget 'rlock:{k}' s
    [[ $output == "x "* ]]
    [[ $(on one hexists 'rlock:{k}' s) == 0 ]]
}

@test "H36 one of two replicas does not answer: enough for 1, not for 2, majority and all; never 75" {
    local number
    replica_start one
    replica_start two
    kill -STOP "$(replica_pid two)"
    run -0 rlock run --replicas 1 k -- true
    for number in 2 majority all; do
        run -69 --separate-stderr rlock run --replicas $number -w 1500ms k -- touch "$T/run"
        stderr_line '^rlock: k: only 1 of 2 replicas has it$'
        is_free k
    done
    run -69 rlock run --connect-timeout 1s --replicas 2 -n -E 0 k -- touch "$T/run"
    is_free k
    run -69 rlock acquire --connect-timeout 1s --replicas 2 k
    [[ $output != *-*-*-* ]]
    is_free k
    [[ ! -e $T/run ]]
    kill -CONT "$(replica_pid two)"
    run -0 rlock run --replicas all k -- true
}

@test "H36 a second replica comes while the lock is held: all are two from then on" {
    replica_start one
    bg a rlock run --replicas all --lease 3s k -- sh -c ": >'$T/up'; sleep 100"
    poll_until 10 test -e "$T/up"
    replica_start two
    kill -STOP "$(replica_pid two)"
    finish a
    [[ $status == 79 ]]
    contains "$T/a.err" 'only 1 of 2 replicas has it'
}

@test "H39 one of two replicas leaves while the lock is held: all are still two" {
    replica_start one
    replica_start two
    bg a rlock run --replicas all --lease 3s k -- sh -c ": >'$T/up'; sleep 100"
    bg b rlock run --replicas 1 --lease 3s other -- sh -c "sleep 5; exit 9"
    poll_until 10 test -e "$T/up"
    on two replicaof no one >/dev/null
    finish a
    [[ $status == 79 ]]
    contains "$T/a.err" 'only 1 of 2 replicas has it'
    run -0 rlock run --replicas all k -- true
    finish b
    [[ $status == 9 ]]
}

@test "H34 an answer that was lost, then a replica that does not answer: the same request does not count" {
    replica_start one
    start_proxy
    fault on up EVAL "cut down 0"
    kill -STOP "$(replica_pid one)"
    run -69 --separate-stderr rlock run -u "redis://${proxy[proxy]}" -w 5s --replicas 1 k -- touch "$T/run"
    stderr_line 'only 0 of 1 replicas have it'
    [[ ! -e $T/run ]]
    is_free k
}

@test "H11 scripts that the server has forgotten: asked for again, with what waits for the replica" {
    replica_start one
    kill -STOP "$(replica_pid one)"
    for number in 1 2; do
        redis script flush
        run -69 --separate-stderr rlock run -n --connect-timeout 1s --replicas 1 k -- touch "$T/run"
        stderr_line 'only 0 of 1 replicas have it'
    done
    kill -CONT "$(replica_pid one)"
    redis script flush
    run -0 rlock run --replicas 1 k -- true
    [[ ! -e $T/run ]]
}

@test "H37 renewals that no replica hears of do not count: stopped before the lease ends" {
    local start
    replica_start one
    work a k 100 --replicas 1 --lease 4s -- tree
    working a
    start=$(now_ms)
    kill -STOP "$(replica_pid one)"
    finish a
    [[ $status == 79 ]]
    within 1000 4000 $(($(now_ms) - start))
    contains "$T/a.err" 'only 0 of 1 replicas have it; trying again'
    # The server itself had it all the time, and gives it away when it was given back.
    work b k 0.2
    finish b
    no_overlap
}

@test "H37 a replica that is back in time" {
    replica_start one
    bg a rlock run --replicas 1 --lease 6s k -- sh -c ": >'$T/up'; sleep 7; exit 9"
    poll_until 10 test -e "$T/up"
    kill -STOP "$(replica_pid one)"
    poll_until 10 contains "$T/a.err" 'only 0 of 1 replicas have it'
    kill -CONT "$(replica_pid one)"
    finish a
    [[ $status == 9 ]]
    contains "$T/a.err" 'trying again'
}

@test "a waiter that is called is confirmed by the replica before its command runs" {
    local before
    replica_start one
    hold a k
    queue w k --replicas 1 --lease 20s
    count_anew
    kill "${pid[a]}"
    finish a
    finish w
    [[ $status == 0 ]]
    (($(count wait) >= 1))
}

@test "a waiter whose heartbeat takes the lock: not without the replica" {
    replica_start one
    # Without a message, what is granted is granted to a try that listens, in a transaction.
    redis hset 'rlock:{k}' k lock/1 f 1 \
        s "x 0 1 $(($(now_ms) + 5000)) 5000 dead" \
        h:dead "$(($(now_ms) + 5000)) 5000 1 dead $(now_ms) x 0 " >/dev/null
    redis pexpire 'rlock:{k}' 100000 >/dev/null
    bg w rlock run --replicas 1 --lease 2s k -- touch "$T/run"
    poll_until 10 has_waiters k 1
    count_anew
    kill -STOP "$(replica_pid one)"
    poll_until 10 contains "$T/w.err" 'only 0 of 1 replicas have it'
    (($(count exec) >= 1))
    [[ ! -e $T/run ]]
    kill -CONT "$(replica_pid one)"
    finish w
    [[ $status == 0 && -e $T/run ]]
}

@test "held by another: 75, whatever becomes of the replica" {
    replica_start one
    hold a k
    run -75 rlock run -n --replicas 1 k -- touch "$T/run"
    kill -STOP "$(replica_pid one)"
    run -75 rlock run -n --replicas 1 k -- touch "$T/run"
    run -75 rlock run -w 1s --replicas 1 k -- touch "$T/run"
    [[ ! -e $T/run ]]
}

# took NAME OPTION...: ms that a run takes over a long way to the server.
took() {
    local start
    start=$(now_ms)
    rlock run -u "redis://${proxy[proxy]}" "${@:2}" k -- true
    printf -v "$1" %d $(($(now_ms) - start))
}

@test "one round trip: over a long way --replicas costs no time, and a command each; in turn it takes three" {
    local without with start
    replica_start one
    start_proxy
    rlock run --replicas 1 k -- true
    fault delay up 100
    fault delay down 100
    took without
    count_anew
    took with --replicas 1
    # Of three round trips (greeting, acquisition, release) and 200 ms each, no more.
    within $((without - 180)) $((without + 180)) "$with"
    [[ $(count evalsha) == 2 && $(count wait) == 2 && $(count role) == 1 ]]
    # What another client does: is it the master, the lock, its replica.
    start=$(now_ms)
    printf '%s\n' role 'set other 1' 'wait 1 1000' |
        redis-cli -h "${proxy[proxy]%:*}" -p "${proxy[proxy]##*:}" 3>&- >/dev/null
    within 600 1200 $(($(now_ms) - start))
}

@test "one round trip for renewals, too" {
    replica_start one
    start_proxy
    rlock run --lease 1s --replicas 1 k -- sleep 0.5 # the server knows the scripts
    # A renewal may take a second: time for one round trip, and not for two.
    fault delay up 250
    fault delay down 250
    count_anew
    run -0 --separate-stderr rlock run -u "redis://${proxy[proxy]}" --lease 6s --replicas 1 k -- sleep 5.2
    [[ -z $stderr ]]
    [[ $(count evalsha) == 5 && $(count wait) == 5 && $(count role) == 1 ]]
}

@test "H20 WAIT is a right that --replicas needs, and nobody else" {
    replica_start one
    redis acl setuser nowait reset on '>pw' '~*' '&*' '+@all' -wait
    export RLOCK_URL=unix://nowait:pw@$REDIS_SOCK
    run -0 rlock run k -- true
    run -77 --separate-stderr rlock run --replicas 1 k -- touch "$T/run"
    stderr_line '[Ww][Aa][Ii][Tt]'
    [[ ! -e $T/run ]]
    is_free k
    redis acl setuser norole reset on '>pw' '~*' '&*' '+@all' -role
    export RLOCK_URL=unix://norole:pw@$REDIS_SOCK
    run -0 rlock run --replicas 1 k -- true
    run -77 --separate-stderr rlock run --replicas all k -- touch "$T/run"
    stderr_line 'ROLE'
    [[ ! -e $T/run ]]
}

@test "acquire --keep renews with the replicas; renew and release go by the configuration" {
    replica_start one
    printf 'replicas = 1\n' >"$T/config"
    export RLOCK_CONFIG=$T/config
    sleep 1000 3>&- &
    pid[sleep]=$!
    run -0 rlock acquire --lease 2s --keep "${pid[sleep]}" k
    token=$output
    run -0 rlock renew --owner "$token" k
    kill -STOP "$(replica_pid one)"
    run -69 --separate-stderr rlock renew --connect-timeout 1s --owner "$token" k
    stderr_line 'only 0 of 1 replicas have it'
    # Its renewer is not heard by the replica either, so what it keeps runs out.
    poll_until 10 is_free k
}

@test "H38 a master that dies right after the grant: its replica has the lock" {
    replica_start one
    start_proxy
    work a k 100 --lease 5s -u "redis://${proxy[proxy]}" --replicas 1
    working a
    redis_stop
    promote one
    RLOCK_URL=unix://$T/one/sock run -75 rlock run -n k -- touch "$T/run"
    [[ ! -e $T/run ]]
    finish a
    # The new master has no replica to renew it on.
    [[ $status == 79 ]]
}
