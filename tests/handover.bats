# A lock is handed over by one message: when a command starts from it, and when not. "handed" is a
# word of the renewal that follows a hand-over. An offer, in the record of a place, has the token by
# which the message is known. queue_for NAME KEY: waits, then runs until there is $T/NAME.end.

load helper

# queue_for NAME KEY [FLAG...]: waits, then runs until $T/NAME.end is there.
queue_for() {
    local name=$1 key=$2
    shift 2
    queued "$key" bg "$name" rlock run "$@" "$key" -- \
        sh -c "echo $name >>'$LOG'; await '$T/$name.end'"
}

# The offer of the first waiter for k, without the note's name: TOKEN/LIMIT/UNTIL/LEASE.
offer() {
    redis hget 'rlock:{k}' q:1 | sed -n 's/.* offer=//p'
}

# offers_anew OFFER: the first waiter for k offers to take the lock, by another offer than that.
offers_anew() {
    local now
    now=$(offer)
    [[ -n $now && $now != "$1" ]]
}

@test "H136 a waiter starts by the message only, and asks again if its renewal is not answered" {
    start_proxy
    hold a k
    queue_for w k -v -u "redis://${proxy[proxy]}"
    # Nothing else says "handed", and from then on no answer comes over that connection.
    fault on up handed hold down
    kill "${pid[a]}"
    poll_until 15 contains "$T/w.err" 'no answer in time'
    poll_until 10 grep -qsx w "$LOG"
    poll_until 15 has_left k 10000
    touch "$T/w.end"
    ends_with w 0
    is_free k
}

@test "H136 a message that no script has written starts nothing, nor does an earlier token" {
    hold a k
    queue_for w k
    owner=$(redis hget 'rlock:{k}' q:1 | cut -d' ' -f2)
    old=$(offer)
    poll_until 10 offers_anew "$old"
    new=$(offer)
    # Messages that were sent and never written, or written and impossible.
    for message in "${old%%/*} 5 0" 'AAAAAAAAAAAAAAAAAAAAAA 5 0' "${new%%/*}" "${new%%/*} 5" \
        "${new%%/*} 0 0" "${new%%/*} 5 -1" "${new%%/*} 5 0 0" "${new%%/*} 9007199254740992 0"; do
        redis publish "rlock:{k}:$owner" "$message"
    done
    poll_until 10 offers_anew "$new"
    [[ ! -e $LOG ]]
    kill "${pid[a]}"
    poll_until 10 contains "$LOG" w
    touch "$T/w.end"
    ends_with w 0
}

# forge_message: publishes that w has the lock now, as a client can that may read the lock. Sends
# nothing while w waits for an answer, as it has no token then. Succeeds when w has lost the lock.
forge_message() {
    redis eval "local place = redis.call('HGET', KEYS[1], 'q:1') or ''
        local owner, token = string.match(place, '^%d+ (%S+) .* offer=([^/]+)')
        return token and redis.call('PUBLISH', KEYS[1] .. ':' .. owner, token .. ' 5 0')" \
        1 'rlock:{k}'
    contains "$T/w.err" 'lock lost'
}

@test "H136 a forged message with the right token starts a command, which its first renewal ends" {
    hold a k --lease 60s
    queue_for w k
    poll_until 10 forge_message
    ends_with w 79
    contains "$T/w.err" 'the store has given it to'
    held k
}

@test "H136 a waiter that is cancelled before it has heard of its grant releases it" {
    hold a k
    queue_for w k
    queue c k
    kill -STOP "$(agent_of "${pid[w]}")"
    kill "${pid[a]}"
    poll_until 10 has_waiters k 1
    held k
    kill "${pid[w]}"
    kill -CONT "$(agent_of "${pid[w]}")" || true # rlock has
    finish w
    # No client waits for the end of the lease that w was handed.
    in_turn 5 c
}

@test "H45 a script is handed no lock, as it counts on a whole lease; its renewer hears at once" {
    bg p sleep 1000
    stay a k
    queued k bg r rlock acquire --lease 2m --keep "${pid[p]}" k
    owner=$(redis hget 'rlock:{k}' q:1 | cut -d' ' -f2)
    poll_until 15 has_listener k "$owner"
    [[ -z $(offer) ]]
    ends_well a
    ends_with r 0
    # The renewal after the first one is 40 s away.
    timed 0 30000 says 0 '^rlock: k was released by ' force-release --yes k
    is_free k
}
