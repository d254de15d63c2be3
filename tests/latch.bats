# Latches: counted down once, waited for by many, never open by mistake. is_left KEY N: N counts are
# left of it. wait_for NAME KEY: a background rlock, which waits for the latch when this returns.

load helper
load latches

# wait_for NAME KEY [OPTION...]: a background rlock that waits for the latch, and does so by now.
# The name of its connection tells it from those that wait already, which may be asking again.
wait_for() {
    local name=$1 key=$2
    shift 2
    bg "$name" rlock latch wait "$@" "$key"
    poll_until 10 is_listening "$name"
}

# has_subscribers KEY NUMBER: so many clients listen to the channel of that latch.
has_subscribers() {
    [[ $(redis pubsub numsub "rlock:{$1}:latch" | tail -n 1) == "$2" ]]
}

@test "set once, counted down, open until it is deleted" {
    prints_nothing 0 latch set k 3
    says 1 '^rlock: latch: k: .*exists' latch set k 5
    prints 0 2 latch count-down k
    prints 75 'k: closed, 2 of 3 left*' latch status k
    prints 0 0 latch count-down k 7
    prints 0 'k: open, 0 of 3 left*' latch status k
    prints 0 0 latch count-down k
    prints_nothing 1 latch set -q k 1
    run -0 rlock latch wait -n k
    prints_nothing 0 latch delete k
    run -1 rlock latch delete k
    [[ $(redis dbsize) == 0 ]]
}

@test "H90 a missing latch is never open" {
    says 1 '^rlock: latch: k: no such latch$' latch count-down k
    [[ -z $output ]]
    run -1 --separate-stderr rlock latch status k
    [[ -z $output ]]
    says 75 'no such latch' latch wait -n k
    run -75 --separate-stderr rlock latch wait -w 3s k
    says 1 '^rlock: latch: k: no such latch$' latch run k -- touch "$T/ran"
    [[ $(redis dbsize) == 0 ]]
}

@test "H91 an id counts once, with or without a --id between" {
    rlock latch set k 5
    prints 0 4 latch count-down --id a k
    prints 0 4 latch count-down k --id a
    prints 0 4 latch count-down --id a k 3
    # Without an id, each call counts.
    rlock latch count-down k
    rlock latch count-down k
    prints 0 1 latch count-down --id b k
    run -75 rlock latch status --json k
    json '.key == "k" and .state == "closed" and .count == 5 and .left == 1'
    json '.ids == ["a", "b"] and .unnamed == 2'
    json '.ttl_left_ms > 86300000 and .ttl_left_ms <= 86400000 and (.since | test("^20.*Z$"))'
    run -75 rlock latch status k
    [[ $output == *"counted  a"* && $output == *"counted  2 times without an id"* ]]
    prints_nothing 75 latch status -q k
}

# The proxy drops the answer to the request that has that text in it. With an id, or with a random
# word without one, the request that is sent again is known.
@test "H91 a count-down whose answer is lost counts once; so do a set and a delete" {
    start_proxy
    fault on up set drop down
    run -0 rlock latch set -u "redis://${proxy[proxy]}" k 3
    is_left k 3
    fault on up "d:worker" drop down
    prints 0 2 latch count-down -u "redis://${proxy[proxy]}" --id worker k
    fault on up "r:" drop down
    prints 0 1 latch count-down -u "redis://${proxy[proxy]}" k
    is_left k 1
    fault on up delete drop down
    run -0 rlock latch delete -u "redis://${proxy[proxy]}" k
    [[ $(redis dbsize) == 0 ]]
}

# The count is done, but its answer is dropped, and the server is away then, so that the client
# never learns of it.
@test "H91 a count-down whose answer is lost, and then the server: it may have been counted" {
    start_proxy
    rlock latch set k 3
    fault on up "d:worker" drop down
    bg c rlock latch count-down -u "redis://${proxy[proxy]}" --id worker --connect-timeout 20s \
        --server-wait 8s k
    poll_until 10 is_left k 2
    fault refuse
    ends_with c 69 30
    contains "$T/c.err" "rlock: k: it may have been counted anyway"
}

@test "H90 all waiters end when the latch opens, and not before" {
    waiters_go_on
}

@test "H130 a waiter that is called again and again looks ten times a second" {
    rlock latch set k 1
    wait_for w k
    before=$(redis_calls evalsha) looks=0 start=$(now_ms)
    while ((looks < 5)); do # more than once where it stood still
        redis-cli -s "$REDIS_SOCK" -r 300 -i 0.005 publish 'rlock:{k}:latch' now >/dev/null
        looks=$(($(redis_calls evalsha) - before))
    done
    # Ten a second, and a burst of ten before with what was under way.
    within 5 $((($(now_ms) - start) / 100 + 12)) "$looks"
    rlock latch count-down k
    ends_with w 0
}

@test "a latch that is not set yet is waited for" {
    wait_for w k
    rlock latch set k 1
    sleep 0.3 # it is set, and not open
    alive "${pid[w]}"
    rlock latch count-down k
    ends_with w 0
}

@test "-w: exit 75 when the time is up; -q is silent after -n, but not after -w" {
    rlock latch set k 2
    timed 4000 20000 says 75 '^rlock: latch: k: not open: 2 of 2 left$' latch wait -w 4s k
    quiet 75 latch wait -q -w 0 k
    quiet 75 latch wait -q -n k
    run -75 --separate-stderr rlock latch wait -q -w 3s k
    [[ $stderr == 'rlock: latch: k: not open: 2 of 2 left' ]]
    run -75 --separate-stderr rlock latch wait -q -w 3s unset
    [[ $stderr == 'rlock: latch: unset: not open: no such latch was set' ]]
}

@test "H90 a latch is flushed, expires, or is lost with the server's data: its waiter ends with 1" {
    expire() {
        within 3500000 3600000 "$(redis pttl 'rlock:{k}')"
        redis pexpire 'rlock:{k}' 1 # the hour is over
    }
    for way in 'redis flushall' expire redis_restart; do
        rlock latch set --ttl 1h k 1
        wait_for w k
        $way
        ends_with w 1
        contains "$T/w.err" vanished
    done
}

# The new latch has the same name, and is opened. The waiter waited for the old one.
@test "H90 a latch is deleted and set anew: the waiter of the old one ends with 1" {
    rlock latch set k 1
    wait_for w k
    rlock latch delete k
    rlock latch set k 1
    rlock latch count-down k
    ends_with w 1
    contains "$T/w.err" vanished
}

@test "waiting survives a server that is away for a while" {
    start_proxy
    rlock latch set k 1
    bg w rlock latch wait -u "redis://${proxy[proxy]}" k
    poll_until 10 has_subscribers k 1
    fault refuse
    poll_until 10 contains "$T/w.err" "cannot reach"
    rlock latch count-down k
    fault pass
    ends_with w 0
}

# The copy of a replica may be old. The waiter continues to wait, until there is a master again.
@test "a server that becomes a replica meanwhile is not waited at as if it were the latch's" {
    rlock latch set k 1
    wait_for w k
    redis replicaof 127.0.0.1 1
    poll_until 20 contains "$T/w.err" "this is a read-only replica of 127.0.0.1:1"
    redis replicaof no one
    rlock latch count-down k
    ends_with w 0 60
}

@test "waiting survives a restart of a server that keeps its data" {
    redis config set appendonly yes
    poll_until 10 eval 'redis info persistence | grep -q "aof_rewrite_in_progress:0"'
    rlock latch set k 2
    wait_for w k
    redis_stop
    REDIS_OPTIONS="--appendonly yes" redis_start
    rlock latch count-down k 2
    ends_with w 0
}

@test "a waiter that misses a wake-up sees the open latch all the same" {
    rlock latch set k 1
    wait_for w k
    redis acl setuser mute on '>pw' '~*' resetchannels +@all
    RLOCK_URL=unix://mute:pw@$REDIS_SOCK rlock latch count-down k # has no right to PUBLISH
    ends_with w 0
}

# With 75, a script would take an outage for a latch that is closed.
@test "an outage is not a latch that stays closed" {
    start_proxy
    rlock latch set k 1
    bg w rlock latch wait -u "redis://${proxy[proxy]}" -w 6s k
    poll_until 10 has_subscribers k 1
    fault refuse
    ends_with w 69
    says 69 '^rlock: latch: cannot reach .*, for [1-9][0-9]*s$' latch wait -u "unix://$T/none" k
    run -69 rlock latch count-down -u "unix://$T/none" --server-wait 0 k
    refused 69 latch run -u "unix://$T/none" --server-wait 0 k -- touch "$T/ran"
}

@test "a latch and a lock never share a key" {
    rlock latch set k 1
    refused 78 run k -- touch "$T/ran"
    run -78 --separate-stderr rlock status k
    [[ -z $output ]]
    stderr_line '^rlock: status: k: the key is a latch; rlock latch status shows it$'
    says 78 '^rlock: force-release: k: the key is a latch' force-release --now --yes k
    local token
    token=$(</proc/sys/kernel/random/uuid)
    says 78 '^rlock: release: k: the key is a latch' release --owner "$token" k
    hold a lock
    run -78 rlock latch set lock 1
    run -78 rlock latch count-down lock
    run -78 --separate-stderr rlock latch status lock
    stderr_line '^rlock: latch: lock: the key is a lock, or was one within a week; rlock status shows it$'
    run -78 rlock latch delete lock
    run -78 rlock latch wait -w 5s lock
    refused 78 latch run lock -- touch "$T/ran"
    held lock
    is_left k 1
    run -0 rlock status
    [[ $output != *$'\nk '* ]]
    redis set 'rlock:{other}' 0
    run -78 rlock latch wait -w 5s other
}

@test "list has a row for each latch that a GLOB means, sorted by KEY, and for nothing else" {
    run -0 rlock latch list --json
    json '. == []'
    run -0 --separate-stderr rlock latch list
    [[ -z $output && $stderr == "rlock: no latches" ]]
    rlock latch set --ttl 1h b-2 3
    rlock latch set a-1 1
    rlock latch set a 2
    rlock latch count-down b-2
    rlock latch count-down a-1
    hold lock lock
    rlock run was-one -- true
    redis set 'rlock:{string}' x
    redis hset 'rlock:{foreign}' a b
    run -0 --separate-stderr rlock latch list
    [[ ${lines[0]} =~ ^"KEY  STATE   LEFT    AGE"\ +EXPIRES$ && ${#lines[@]} == 4 && -z $stderr ]]
    [[ ${lines[1]} =~ ^"a    closed  2 of 2  "[0-9.]+m?s\ +(23h59m|1d00h)$ ]]
    [[ ${lines[2]} =~ ^"a-1  open    0 of 1  " ]]
    [[ ${lines[3]} =~ ^"b-2  closed  2 of 3  ".*\ (59m[0-9]+s|1h00m)$ ]]
    run -0 rlock latch list --json 'b*'
    json 'length == 1 and (.[0] | .key == "b-2" and .state == "closed" and .count == 3 and .left == 2)'
    json '.[0] | .ttl_left_ms <= 3600000 and .ttl_left_ms > 3500000 and .age_ms >= 0 and .age_ms < 60000'
    json '.[0].since | test("^20.*Z$")'
    run -0 rlock latch list a-1
    [[ ${lines[1]} == a-1* && ${#lines[@]} == 2 ]]
    run -0 --separate-stderr rlock latch list nothing
    [[ -z $output ]]
    says 78 '^rlock: latch: lock: the key is a lock' latch list lock
    # -q: the status says whether all of them are open.
    prints_nothing 75 latch list -q
    run -0 --separate-stderr rlock latch list -q 'a-*'
    run -0 rlock latch list -q 'nothing*'
    run -69 rlock latch list -u "unix://$T/none" --server-wait 0
    # More than one page of them, from a server that does not know the script yet.
    for i in {1..250}; do echo "COPY rlock:{a} rlock:{many-$(printf %03d "$i")}"; done |
        redis-cli -s "$REDIS_SOCK" >/dev/null
    redis script flush
    run -0 rlock latch list 'many-*'
    [[ ${#lines[@]} == 251 && ${lines[250]} == many-250* ]]
}

@test "the names of latches are escaped" {
    rlock latch set $'k\u202e' 1
    run -0 rlock latch list
    [[ $output == *'k\xe2\x80\xae '* ]]
}

@test "latch wait dies of the signal that ends its wait" {
    for signal in TERM INT HUP; do
        bg w rlock latch wait k
        poll_until 10 has_subscribers k 1
        kill "-$signal" "${pid[w]}"
        finish w
        [[ $status == $((128 + $(kill -l "$signal"))) ]]
        poll_until 10 has_subscribers k 0
    done
}

@test "off a terminal, latch wait says after a second which latch it waits for" {
    wait_for w k
    poll_until 5 contains "$T/w.err" "rlock: waiting for latch k, which is not set yet"
    rlock latch set k 2
    wait_for v k
    poll_until 5 contains "$T/v.err" "rlock: waiting for latch k: 2 of 2 left"
    wait_for q k -q
    sleep 1.3 # that it is quiet
    [[ ! -s $T/q.err ]]
}

@test "on a terminal, the line of latch wait goes away again, and Ctrl-C ends the wait" {
    on_terminal rlock latch wait k <<'DIALOGUE'
expect which is not set yet
sh rlock latch set k 1
expect 1 of 1 left
send \x03
status 130
DIALOGUE
}

@test "run counts when the command has succeeded, hands signals on, and ends as its command does" {
    rlock latch set k 3
    run -7 rlock latch run --id a k -- sh -c 'exit 7'
    is_left k 3
    run -127 rlock latch run --id a k -- "$T/none"
    echo text >"$T/plain"
    run -126 rlock latch run --id a k -- "$T/plain"
    is_left k 3
    run -0 --separate-stderr rlock latch run --id a k -- echo fine
    [[ $output == fine && -z $stderr ]]
    is_left k 2
    run -0 rlock latch run --id a k -- true
    is_left k 2
    run -0 rlock latch run k -- true
    is_left k 1
    bg a rlock latch run k -- sh -c "trap 'exit 3' USR1; : >'$T/up'; while :; do sleep 0.05; done"
    poll_until 10 test -e "$T/up"
    kill -USR1 "${pid[a]}"
    ends_with a 3
    bg a rlock latch run k -- sh -c "trap 'exit 0' TERM; : >'$T/up2'; while :; do sleep 0.05; done"
    poll_until 10 test -e "$T/up2"
    is_left k 1
    terminate a 0
    is_left k 0
    bg a rlock latch run k -- sh -c "kill -KILL \$\$"
    ends_with a 137
}

@test "run gives its command no password, and leaves it the lock around it" {
    rlock latch set k 1
    redis config set requirepass secret
    export REDISCLI_AUTH=secret
    RLOCK_PASSWORD=secret run -0 rlock latch run k -- sh -c 'env | grep ^RLOCK'
    [[ $output != *secret* && $output != *RLOCK_PASSWORD=* ]]
    RLOCK_PASSWORD=secret run -0 rlock latch run --keep-credentials k -- sh -c 'env | grep ^RLOCK'
    [[ $output == *RLOCK_PASSWORD=secret* ]]
    RLOCK_PASSWORD=secret run -0 rlock run --keep-credentials outer -- \
        rlock latch run k -- sh -c 'echo "$RLOCK_KEY"'
    [[ $output == outer ]]
}

@test "latch run: a success that cannot be counted: 1, or 77 where the store refuses to count it" {
    as_default_user
    rlock latch set k 1
    run -1 --separate-stderr rlock latch run --id a k -- redis-cli -s "$REDIS_SOCK" flushall
    stderr_line 'vanished while the command ran'
    stderr_line 'the command succeeded, but was not counted'
    rlock latch set k 1
    # another latch of that name is not the one that it was run for
    run -1 --separate-stderr rlock latch run --id a k -- \
        sh -c "rlock latch delete k && rlock latch set k 1"
    is_left k 1
    : >"$T/redis.dirty"
    run -77 --separate-stderr rlock latch run --id a k -- \
        sh -c "redis-cli -s '$REDIS_SOCK' config set requirepass x; redis-cli -s '$REDIS_SOCK' -a x client kill type normal skipme yes"
    stderr_line 'the command succeeded, but was not counted'
}

@test "H91 run: a server that is away when the command ends is tried again" {
    start_proxy
    rlock latch set k 2
    bg a rlock latch run -u "redis://${proxy[proxy]}" --id a k -- sh -c "$(fault_command refuse)"
    poll_until 10 contains "$T/a.err" "cannot reach"
    alive "${pid[a]}"
    fault pass
    ends_with a 0
    is_left k 1
}

@test "H91 run: a server that stays away: exit 69, and it says that nothing was counted" {
    start_proxy
    rlock latch set k 1
    bg a rlock latch run -u "redis://${proxy[proxy]}" --id a k -- sh -c "$(fault_command refuse)"
    ends_with a 69 35
    contains "$T/a.err" "the command succeeded, but was not counted"
    is_left k 1
}

# The count reaches the server, and its answer is held by the proxy.
@test "run: a signal before the answer leaves open whether the success was counted" {
    start_proxy
    rlock latch set k 2
    bg a rlock latch run -u "redis://${proxy[proxy]}" --id a k -- sh -c "$(fault_command hold down)"
    poll_until 10 is_left k 1
    terminate a 143
    contains "$T/a.err" 'k: ended by a signal: it may not have been counted'
}

@test "H20 the rights that the manual names are enough for latches" {
    limited_user
    export RLOCK_URL=unix://limited:pw@$REDIS_SOCK
    rlock latch set k 1
    wait_for w k -q
    run -75 rlock latch status k
    prints 0 $'*\nk *' latch list
    rlock latch run --id a k -- true
    finish w
    [[ $status == 0 && ! -s $T/w.err ]]
    rlock latch delete k
}

@test "bad usage is refused before a connection is made" {
    export RLOCK_URL=unix://$T/none
    for words in '' 'open k' 'set k' 'set k 0' 'set k 1x' 'set k 1000000001' 'set --ttl 10ms k 1' \
        'set --ttl 1e3 k 1' 'set --id a k 1' 'count-down k 0' 'count-down k 1 2' 'wait' \
        'wait --ttl 1s k' 'wait k -- true' 'run k' 'run k --' 'delete -w 1s k' 'list a b' \
        'list --ttl 1s' 'list -- true'; do
        run -64 rlock latch $words
    done
    run -64 rlock latch set 'a b' 1
    run -64 rlock latch count-down --id '' k
    run -64 rlock latch count-down --id 'a b' k
    run -64 rlock latch list 'a b'
    run -0 rlock help latch
    [[ $output == *"rlock latch run"* && $output == *Example* ]]
    run -0 rlock latch wait -h
}
