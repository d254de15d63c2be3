# rlock events: what happens to locks, a line each, as it happens. listen NAME: in the background,
# to all that happens from now on; has_heard EVENTS: "EVENT KEY," of each one that it heard.

load helper

# listen NAME [OPTION...]: in the background, to all that happens from now on.
listen() {
    bg_says "$1" 'events: listening' rlock events -v "${@:2}"
}

# has_heard EVENTS: "EVENT KEY," for each one in e.out.
has_heard() {
    [[ $(jq -r '.event + " " + (.key // "*")' "$T/e.out" | tr '\n' ',') == "$1" ]]
}

@test "events: each transition once, with who it was and how it ended" {
    run -0 rlock run k -- true
    listen e --json k
    run -3 rlock run --label nightly k -- sh -c 'exit 3'
    poll_until 10 has_heard 'acquired k,released k,'
    hold a k
    queue b k -E 1
    poll_until 10 has_heard 'acquired k,released k,acquired k,waiting k,'
    terminate b
    poll_until 10 has_heard 'acquired k,released k,acquired k,waiting k,refused k,'
    run -0 rlock force-release --now --yes k
    poll_until 10 has_heard 'acquired k,released k,acquired k,waiting k,refused k,revoked k,'
    run -0 rlock run other -- true
    jq -se '(map(.at) | sort) == map(.at) and all(.host != null and (.at | test("Z$"))) and
        (.[1] | .label == "nightly" and .outcome == "exit 3" and .held_ms >= 0) and
        (.[2:4] | all(.outcome == null and .held_ms == null)) and .[3].fence == null' "$T/e.out"
    jq -se 'map(select(has("result")) | [.event, .result, .exit_status, .signal]) ==
        [["released", "failure", 3, null], ["revoked", "revoked", null, null]]' "$T/e.out"
    kill -INT "${pid[e]}"
    ends_with e 130
}

@test "events: a waiter that --latest sends away was superseded" {
    hold a k
    listen e --json
    queue b k --latest
    poll_until 10 has_heard 'waiting k,'
    bg c rlock run --latest k -- true
    poll_until 10 has_heard 'waiting k,waiting k,superseded k,'
    jq -se "map(.pid) == [${pid[b]}, ${pid[c]}, ${pid[b]}]" "$T/e.out"
}

@test "events: a pause, by whom, and its end: by resume, or by itself" {
    listen e --json
    listen text
    rlock pause k 1h -m 'disk full'
    poll_until 10 has_heard 'paused k,'
    poll_until 10 grep -q ' paused      k  [^:]*: disk full$' "$T/text.out"
    rlock resume k
    poll_until 10 has_heard 'paused k,resumed k,'
    rlock pause other 5s -m x
    poll_until 20 has_heard 'paused k,resumed k,paused other,resumed other,'
    jq -se "all(.user == \"$(id -un)\" and .held_ms == null and .outcome == null) and
        map(.label) == [\"disk full\", \"disk full\", \"x\", \"x\"]" "$T/e.out"
    poll_until 10 contains "$T/text.out" 'resumed     other  '
    run -0 rlock run k -- true
}

@test "events: a dead holder was acquired once, and is expired when a client wants the lock" {
    listen e --json
    rlock acquire --lease 5s k
    poll_until 10 has_heard 'acquired k,'
    poll_until 10 is_free k
    run -0 rlock run other -- true
    poll_until 10 has_heard 'acquired k,acquired other,released other,'
    run -0 rlock run k -- true
    poll_until 10 has_heard 'acquired k,acquired other,released other,expired k,acquired k,released k,'
}

@test "events: of 23 runs while it was stopped, the last 20 are told from memory, and 3 as missed" {
    listen e
    kill -STOP "${pid[e]}"
    for i in {1..23}; do
        run -0 rlock run k -- true
    done
    kill -CONT "${pid[e]}"
    poll_until 10 contains "$T/e.out" 'missed      k  3 runs before this'
    poll_until 10 eval '[[ $(grep -c " released    k .*(true)" "$T/e.out") == 20 ]]'
    [[ $(grep -c ' acquired    k .*(true)' "$T/e.out") == 20 ]]
}

@test "events: continues after an outage, says so, and has what was remembered" {
    start_proxy
    listen e --json -u "redis://${proxy[proxy]}" --connect-timeout 5s
    fault refuse
    poll_until 20 contains "$T/e.err" 'events: out of reach: '
    run -0 rlock run k -- true
    fault pass
    poll_until 20 contains "$T/e.err" 'something may have been missed'
    poll_until 10 has_heard 'missed *,acquired k,released k,'
    alive "${pid[e]}"
}

@test "events: a waiter that queues up again after a restart of the server was not refused" {
    hold a k
    queue b k
    listen e --json
    has_agent b
    kill -STOP "$agent"
    redis_restart_empty
    run -0 rlock run other -- true
    poll_until 10 contains "$T/e.out" '"key":"other"'
    run -0 rlock run another -- true
    poll_until 10 contains "$T/e.out" '"key":"another"'
    kill -CONT "$agent"
    poll_until 25 grep -q "\"acquired\",\"key\":\"k\".*\"pid\":${pid[b]}," "$T/e.out"
    fails contains "$T/e.out" '"refused"'
}

@test "events: a waiter that queues up again after a restart has waited since it began" {
    hold a k
    queue b k
    has_agent b
    kill -STOP "$agent"
    redis_restart_empty
    hold c k
    kill -CONT "$agent"
    poll_until 20 has_waiters k 1
    run -0 --separate-stderr rlock status --json k
    [[ $(jq '.[0] | .waiters[0].since < .holders[0].since' <<<"$output") == true ]]
    [[ $(jq '.[0] | .waiters[0].age_ms > .holders[0].age_ms' <<<"$output") == true ]]
}

# A replica may lag, so events from it would be late: that is said as for a server out of reach, and
# that something may have been missed.
@test "events: a server that becomes a replica meanwhile is out of reach" {
    listen e
    redis replicaof 127.0.0.1 1
    poll_until 20 contains "$T/e.err" 'this is a read-only replica of 127.0.0.1:1'
    redis replicaof no one
    poll_until 20 contains "$T/e.err" 'something may have been missed'
}

@test "events: a server that stood still for a while is looked at as often as before" {
    listen e --connect-timeout 30s
    # events rests for nine times as long as a look took: after this one it must not rest for 45 s.
    kill -STOP "$(redis_pid)"
    sleep 5
    kill -CONT "$(redis_pid)"
    run -0 rlock run k -- true
    poll_until 10 contains "$T/e.out" 'released    k '
}

@test "events: ends with its reader; refused where nothing is remembered" {
    mkfifo "$T/pipe"
    head -n 1 "$T/pipe" >"$T/first" &
    bg_says e 'events: listening' sh -c 'exec rlock events -v >"$T/pipe"'
    run -0 rlock run k -- true
    finish e
    [[ $(wc -l <"$T/e.err") == 1 && $(<"$T/first") == *acquired* ]]
    says 64 'zookeeper:// has no memory of former runs' events -u zookeeper://127.0.0.1:1
}
