# rlock force-release asks the holder first, and so does run --replace. stops_when_asked NAME
# KEY...: the holder NAME has begun, and is asked for the KEYs; evicted NAME BY: its command was
# stopped, and rlock said by whom; taken COMMAND: it is refused with 1, and says by whom and why the
# lock was taken away; who_asks: user and host of the test.

load helper

# evicted NAME BY [KEY]: the command of NAME was stopped, and rlock said by whom.
evicted() {
    ends_with "$1" 79
    contains "$T/$1.err" "lock lost: ${3:+$3: }revoked by $2"
}

who_asks() {
    printf '%s@%s pid ' "$(id -un)" "$(hostname)"
}

# slow_end NAME KEY OPTION...: holds KEY; its command takes a second to clean up after TERM.
slow_end() {
    local name=$1
    shift
    bg "$name" rlock run "$@" -- sh -c 'trap "sleep 1; echo end >>\"$LOG\"; exit" TERM
        echo up >>"$LOG"; while :; do sleep 0.05; done'
    poll_until 10 contains "$LOG" up
}

@test "H45 the holder is asked: it ends its command, and only then the next one begins" {
    slow_end a k
    queued k bg w rlock run k -- sh -c 'echo next >>"$LOG"'
    run -0 --separate-stderr rlock force-release --yes --reason 'a hot fix' k
    stderr_line "^rlock: k: asked $(who_asks)${pid[a]} \(sh\) to release it; the lease ends in "
    stderr_line "^rlock: k was released by $(who_asks)${pid[a]} \(sh\)\$"
    evicted a "$(who_asks)"
    contains "$T/a.err" 'a hot fix'
    finish w
    [[ $status == 0 && $(tr '\n' ' ' <"$LOG") == 'up end next ' ]]
    run -0 rlock history --json k
    json '.[0] | .outcome == "revoked" and .reason == "a hot fix" and (.revoked_by | test("@.* pid "))'
    prints 0 '*revoked by * pid *: a hot fix*' history k
}

@test "H45 a holder that listens is told at once; status shows that it was asked" {
    stay a k --lease 60s --on-lost continue
    bg f rlock force-release --yes --reason why k
    poll_until 2 contains "$T/a.err" 'revoked by' # its first renewal is 20 s away
    status_json k '.[0].holders[0].revoked | .reason == "why" and .by != null and .since != null'
    run -0 rlock status k
    [[ $output == *'revoked '*" by $(who_asks)"*': why; it is asked to release it'* ]]
    : >"$T/a.go"
    ends_with f 0
    ends_with a 79
}

# stops_when_asked NAME KEY...: the holder NAME has just begun, and is asked for the KEYs.
stops_when_asked() {
    run -0 --separate-stderr rlock force-release --yes "${@:2}"
    evicted "$1" "$(who_asks)"
}

@test "H45 a holder hears that it is asked, however long its lease is" {
    hold a k --lease 1h
    stops_when_asked a k
    hold a k --lease 1h --read
    stops_when_asked a k
    hold a k --lease 1h --limit 2
    stops_when_asked a k
    hold a j --lease 1h k l
    run -0 rlock force-release --yes k
    evicted a "$(who_asks)" k
    is_free j
}

@test "H45 a holder that has waited, and was handed the lock, hears that it is asked" {
    for mode in --write --read; do
        hold a k --lease 1h
        queued k bg b rlock run --lease 1h $mode k -- sh -c ": >'$T/b.up'; exec sleep 1000"
        rm -f "$T/b.up"
        terminate a
        poll_until 10 test -e "$T/b.up"
        stops_when_asked b k
    done
}

@test "H45 a nested holder hears that it is asked, and so does the outer one" {
    bg_up a rlock run --lease 1h k -- rlock run --lease 1h k -- \
        sh -c ": >'$T/a.up'; exec sleep 1000"
    says 0 '^rlock: k was released by 2 holders' force-release --yes k
    ends_with a 79
    is_free k
}

@test "H45 a lease that is not renewed listens, and ends when it would have" {
    hold a k --lease 20m --no-renew
    left=$(lease_left k)
    poll_until 10 has_listener k
    (($(lease_left k) <= left))
    stops_when_asked a k
}

@test "H45 a holder whose connection broke listens again, also to a server that was away" {
    start_proxy
    hold a k --lease 1h -u "redis://${proxy[proxy]}"
    poll_until 10 has_listener k
    redis client kill type pubsub >/dev/null
    poll_until 10 has_listener k
    fault refuse
    poll_until 20 contains "$T/a.err" 'trying again'
    poll_until 10 fails has_listener k
    fault pass
    poll_until 20 has_listener k
    stops_when_asked a k
}

# A stopped agent is continued when it is to release the lock, which may be before the lease ends.
@test "H45 a holder that does not hear loses the lock with its lease; so does a dead one" {
    hold a k --lease 8s
    kill -STOP "$(agent_of "${pid[a]}")"
    says 0 '^rlock: k: asked ' force-release --yes k
    [[ $stderr == *'when the lease had ended'* || $stderr == *'k was released by '* ]]
    kill -CONT "$(agent_of "${pid[a]}")" || true
    ends_with a 79
    hold b dead --lease 8s
    kill_both b
    run -0 rlock force-release --yes dead
    is_free dead
}

# The lock is asked for while its agent is killed: the next agent must stop the command, and the one
# who asks must hear of it.
@test "H45 H135 a new agent learns that the lock is asked for" {
    hold a k --lease 60s
    bg_says f 'asked ' rlock force-release --yes k
    kill -KILL "$(agent_of "${pid[a]}")"
    evicted a "$(who_asks)"
    ends_with f 0
}

@test "H45 force-release waits for a server that is away after the holder was asked" {
    stay a k --lease 30s --on-lost continue
    start_proxy
    bg_says f 'asked ' rlock force-release -u "redis://${proxy[proxy]}" --connect-timeout 1s --yes k
    fault refuse
    poll_until 20 contains "$T/f.err" 'trying again'
    fault pass
    : >"$T/a.go"
    ends_with f 0 30
    contains "$T/f.err" 'k was released by'
    finish a
}

@test "H45 no process to ask: a plain acquisition and a lock that is kept are taken at once" {
    rlock acquire --lease 1h k >"$T/owner"
    says 0 '^rlock: k was taken from ' force-release --yes --reason gone k
    run -1 --separate-stderr rlock release --owner "$(<"$T/owner")" k
    run -0 rlock run --at-least 1h kept -- true
    says 0 '^rlock: kept was taken from ' force-release --yes kept
    is_free kept
}

@test "H45 a renewer releases the lock at once" {
    bg p sleep 1000
    rlock acquire --lease 1h --keep "${pid[p]}" k >/dev/null
    says 0 '^rlock: k was released by ' force-release --yes k
    is_free k
    alive "${pid[p]}"
}

@test "H45 --now takes the lock at once, and says who and why; 1 if it is free" {
    hold a k --lease 60s
    run -0 --separate-stderr rlock force-release --now --yes --reason 'no time' k
    stderr_line '^with --now, its command may run on until (20[-0-9]* )?[0-9:]{8}$'
    stderr_line '^rlock: k was taken from '
    is_free k
    kill -USR1 "${pid[a]}"
    ends_with a 79 40
    contains "$T/a.err" "revoked by $(who_asks)"
    contains "$T/a.err" ': no time'
    run -1 rlock force-release --now --yes k
}

@test "H45 --now says until when the command may run on: the end of the last lease" {
    export TZ=UTC0 XDG_STATE_HOME=$T/state
    hold a k --lease 1h --read --no-renew
    hold b k --lease 2h --read --no-renew
    # Two hours after b's acquisition, in seconds since 1970.
    until=$(rlock status --json k | jq '[.[0].holders[].since[:19] + "Z" | fromdate] | max + 7200')
    run -0 --separate-stderr rlock force-release --now --yes k
    [[ $stderr =~ 'their commands may run on until '.*([0-9]{2}:[0-9]{2}:[0-9]{2}) ]]
    # The command prints a time of day: from 3 s later to 5 s sooner, perhaps past midnight.
    within 0 8 $(((until + 5 - $(date -d "1970-01-01 ${BASH_REMATCH[1]}" +%s)) % 86400))
    run -0 rlock reserve k 1h -m test
    run -0 --separate-stderr rlock force-release --now --yes k
    [[ $stderr != *'run on until'* ]]
}

# A newcomer with --replace has the holder stop, but waits behind the waiter that came first.
@test "--replace neither passes earlier waiters nor asks the holder after this one" {
    hold a k
    queue w1 k
    bg w2 rlock run --replace k -- sh -c "echo w2 >>'$LOG'"
    evicted a "$(who_asks)"
    in_turn 10 w1 w2
}

# taken COMMAND...: it is refused with 1, and says by whom and why the lock was taken away.
taken() {
    says 1 "^rlock: $1: k: taken away [0-9.]+m?s ago by $(who_asks)[0-9]+: hot fix\$" "$@"
}

@test "H153 renew and release say who took the lock, each time" {
    for one in plain keep; do
        owner=$([[ $one == keep ]] && set -- --keep $$; rlock acquire --lease 1h "$@" k)
        run -0 rlock force-release --yes --reason 'hot fix' k
        taken renew --owner "$owner" k
        taken release --owner "$owner" k
        run -0 rlock run k -- true
        taken renew --owner "$owner" k
        RLOCK_OWNER=$owner taken release k
    done
}

@test "H153 extend, release and the next run say who took a reservation" {
    export XDG_STATE_HOME=$T/state
    run -0 rlock reserve k 1h -m 'load test'
    run -0 rlock force-release --yes --reason 'hot fix' k
    for round in 1 2; do
        taken extend k 1h
        prints 0 "$round" run k -- echo "$round"
        stderr_line "^rlock: k: your reservation was taken away .* by $(who_asks)[0-9]+: hot fix\$"
        taken release k
    done
    # A later reservation ends by itself, and is not confused with the first.
    run -0 rlock reserve k 1s -m short
    poll_until 10 is_free k
    says 1 'it was released, or its time is over$' extend k 1h
    quiet 0 run k -- true
}
