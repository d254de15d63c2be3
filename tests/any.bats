# --any, --take: some of several keys, the first that are free.

load helper

# told: prints the lock as the command sees it, a line each.
told='echo "KEY=$RLOCK_KEY"; echo "MODE=$RLOCK_MODE"; echo "FENCE=$RLOCK_FENCE"; echo "SLOT=$RLOCK_SLOT"'

@test "--any: the first one that is free, in the order given; the command sees which" {
    run -0 --separate-stderr rlock run --any a b c -- sh -c "$told; rlock status -q b c"
    [[ ${lines[0]} == KEY=a && ${lines[1]} == MODE=exclusive && ! $stderr ]]
    [[ ${lines[2]} =~ ^FENCE=[0-9]+$ && ${lines[3]} == SLOT= ]]
    run -0 rlock run --any a a -- sh -c "$told"
    [[ ${lines[0]} == KEY=a ]]
    hold x a
    says 75 '^rlock: a: not acquired: held by ' run -n --any a -- true
    run -0 rlock run --any a b c -- sh -c "$told; rlock status -q c
        rlock status -q b; echo \$?"
    [[ ${lines[0]} == KEY=b && ${lines[2]} =~ ^FENCE=[0-9]+$ && ${lines[4]} == 75 ]]
    run -0 rlock run --any --limit 2 c d -- sh -c "$told"
    [[ ${lines[0]} == KEY=c && ${lines[1]} == MODE=limit && ${lines[3]} == SLOT=1 ]]
    run -0 rlock read --any a c b -- sh -c "$told"
    [[ ${lines[0]} == KEY=c && ${lines[1]} == MODE=shared ]]
    run -0 rlock write --any a c b -- sh -c "$told"
    [[ ${lines[0]} == KEY=c && ${lines[1]} == MODE=exclusive ]]
    run -0 rlock status -q b c
    no_waiters a b c
}

@test "--any: all are held: a place in each queue, and the first that is released" {
    hold x a
    hold y b
    hold z c
    bg w rlock run --any a b c -- sh -c "$told; exec sleep 1000"
    for key in a b c; do
        poll_until 10 has_place w "$key" 1
    done
    poll_until 15 contains "$T/w.err" 'rlock: waiting for one of a, b, c: a, held by '
    prints 0 '*exclusive, any 1 of 3*' status b
    status_json '[.[].waiters[].any] | unique == [{"take": 1, "of": 3}]'
    json '[.[].waiters[].owner] | length == 3 and (unique | length == 1)'
    kill "${pid[y]}"
    poll_until 10 contains "$T/w.out" SLOT
    contains "$T/w.out" KEY=b
    contains "$T/w.err" 'rlock: b: acquired after '
    no_waiters a b c
    holds w b
    holds x a
    terminate w
    run -0 rlock status -q b
    run -0 rlock history --json
    json '[.[] | select(.key == "b")] | length == 2'
    json '[.[] | select(.key != "b")] | length == 0'
}

@test "--any: what the same user has reserved is taken after what is free" {
    export XDG_STATE_HOME=$T/state
    rlock reserve a 1h -m mine
    run -0 rlock run --any a b -- sh -c "$told"
    [[ ${lines[0]} == KEY=b ]]
    hold h b
    run -0 rlock run --any a b -- sh -c "$told"
    [[ ${lines[0]} == KEY=a ]]
    run -0 rlock run --any --take 2 a b c -- sh -c "$told"
    [[ ${lines[0]} == 'KEY=a c' ]]
}

@test "--any: a member that is paused or reserved is passed over" {
    rlock pause a 1h -m 'new disk'
    XDG_STATE_HOME=$T/somebody rlock reserve b 1h -m 'looking into it'
    export XDG_STATE_HOME=$T/state
    run -0 rlock run --any a b c -- sh -c "$told"
    [[ ${lines[0]} == KEY=c ]]
    run -75 --separate-stderr rlock run -n --any a b -- true
    stderr_line '^rlock: one of a, b: not acquired: b: reserved by .* until .* left\): looking into it$'
    rlock pause d 1h -m 'gone'
    run -75 --separate-stderr rlock run -n --any a d -- true
    stderr_line '^rlock: one of a, d: not acquired: a: paused by .* until .* left\): new disk$'
    bg w rlock run --any a d -- sh -c "$told"
    poll_until 10 has_place w d 1
    rlock resume d
    ends_with w 0
    contains "$T/w.out" KEY=d
}

@test "--any: a member that is withheld for an earlier waiter is reported as that" {
    hold x a
    hold z d
    queue w b d
    run -75 --separate-stderr rlock run -n --any b a -- true
    stderr_line '^rlock: one of b, a: not acquired: b: .* \(.*\) comes first, waiting for .*s$'
    bg_says v 'waiting for one of b, a: b: ' rlock run --any b a -- true
    grep -qE '^rlock: waiting for one of b, a: b: .* comes first, waiting for [0-9.]+m?s$' "$T/v.err"
    kill "${pid[x]}"
    ends_with v 0
}

@test "--take: so many of them, all at once, or none" {
    hold x b
    run -0 rlock run --any --take 2 a b c -- sh -c "$told"
    [[ ${lines[0]} == 'KEY=a c' && ${lines[2]} =~ ^FENCE=[0-9]+\ [0-9]+$ ]]
    hold y a
    says 75 '^rlock: 2 of a, b, c: not acquired: a: held by ' run -n --any --take 2 a b c -- true
    run -0 rlock status -q c
    bg w rlock run --any --take 2 a b c -- sh -c "$told; exec sleep 1000"
    poll_until 10 has_place w c 1
    prints 0 '*any 2 of 3*' status c
    poll_until 15 contains "$T/w.err" 'rlock: waiting for 2 of a, b, c: a, held by '
    # The waiter holds nothing yet, but comes first there.
    run -75 rlock run -n c -- true
    kill "${pid[x]}"
    poll_until 10 contains "$T/w.out" 'KEY=b c'
    contains "$T/w.err" 'rlock: b, c: acquired after '
    no_waiters a b c
    run -0 rlock run --any --take 1 d e -- sh -c "$told"
    [[ ${lines[0]} == KEY=d ]]
}

@test "--any, --take: what makes no sense is refused before a store is asked: exit 64" {
    for words in '--any --take 3 a b c' '--any --take 0 a b' '--any --take x a b' \
        '--any --take 1 a' '--any --take 2 a b a' '--take 1 a b'; do
        says 64 '^rlock: run: --take ' run -u unix:///nowhere $words -- true
    done
    run -64 rlock acquire --any a
    # Options that it does not go with.
    run -64 --separate-stderr rlock run -u unix:///nowhere --any --unless-done 1h a b -- true
    stderr_line "^rlock: run: --unless-done '1h' does not go with --any"
    run -64 --separate-stderr rlock run -u unix:///nowhere --any --mirror string:m a b -- true
    stderr_line '^rlock: run: --mirror needs an exclusive lock of one KEY$'
    for url in zookeeper://127.0.0.1:1 cluster://127.0.0.1:1; do
        says 64 "^rlock: run: ${url%%:*}:// has no --any$" run -u "$url" --any a b -- true
        stderr_line '^hint: rlock run --limit N KEY takes one of N slots; RLOCK_SLOT is its number$'
    done
    says 64 'has no --any$' run -u redis://127.0.0.1:1 -u redis://127.0.0.1:2 \
        -u redis://127.0.0.1:3 --any a b -- true
    stderr_line '^hint: rlock help run$'
    RLOCK_URL=zookeeper://127.0.0.1:1 run -64 rlock run --any a b -- true
}

@test "--any: -n, -w and -E; a member of another kind: exit 78" {
    hold x a
    hold y b
    run -75 rlock run -n --any a b -- true
    run -75 rlock run -w 3s --any a b -- true
    quiet 0 run -n -E 0 --any a b -- true
    no_waiters a b
    rlock latch set l 1
    run -78 rlock run --any c l -- true
    run -78 rlock run --any --limit 2 c a -- true
    run -0 rlock status -q c
}

@test "--any: --latest sends away those of the group; --priority is served first" {
    hold x a
    hold y b
    bg old rlock run --latest --group deploy --any a b -- true
    poll_until 10 has_place old b 1
    bg new rlock run --latest --group deploy --any a b -- sh -c "echo new >>'$LOG'; exec sleep 1000"
    ends_with old 75 20
    contains "$T/old.err" superseded
    poll_until 10 has_place new b 1
    bg urgent rlock run --priority 5 --any a b -- sh -c "echo urgent >>'$LOG'"
    poll_until 10 has_place urgent a 1
    kill "${pid[x]}"
    finish urgent 20
    poll_until 10 contains "$LOG" new
    [[ $(xargs <"$LOG") == 'urgent new' ]]
}

@test "H80 --any: the KEY that is held is lost: exit 79; another one does not matter" {
    hold x a
    at_work w c forever --any --lease 9s a b
    holds w b
    redis del 'rlock:{c}'
    renewed b
    alive "${pid[w]}"
    redis del 'rlock:{b}'
    ends_with w 79
    contains "$T/w.err" 'rlock: b: lock lost: '
    run -0 rlock status -q b c
}

@test "H135 --any: a new agent keeps the KEY that is held, and the places of a waiter" {
    hold x a
    stay w c --any --lease 15s a b
    kill_agent w
    renewed b
    holds w b
    contains "$T/w.err" 'rlock: b: its agent was killed'
    is_free c
    hold z c
    bg v rlock run --any --lease 15s a b c -- sh -c "$told"
    poll_until 10 has_place v b 1
    kill_agent v
    poll_until 10 has_place v b 1
    ends_well w
    ends_with v 0
    contains "$T/v.out" KEY=b
    no_waiters a b c
}

@test "--any: the report and --notify name the KEY that was held" {
    hold x a
    run -0 rlock run --any a b --notify-after 100ms --notify "echo \$RLOCK_EVENT \$RLOCK_KEY >>'$LOG'" -- \
        sh -c "await '$LOG'"
    poll_until 10 grep -qx 'held b' "$LOG"
    rm "$LOG"
    hold y b
    run -75 rlock run -n --any --take 1 a b --notify "echo \$RLOCK_EVENT \$RLOCK_KEY >>'$LOG'" -- true
    poll_until 10 contains "$LOG" 'not-acquired a b'
    terminate y
    reports '[.key, (.fence | type)] == ["b", "number"]' --any a b -- true
    reports '[.key, (.fence | length)] == [["b", "c"], 2]' --any --take 2 a b c -- true
    reports '.key == "a"' -n --any a a -- true
}

@test "--any: events: a waiter that got one of its KEYs is not refused at the others" {
    hold x a
    hold y b
    bg_says e 'events: listening' rlock events -v --json a b
    bg w rlock run --any a b -- sleep 1000
    poll_until 10 jq -se '[.[] | select(.event == "waiting") | .key] | sort == ["a", "b"]' \
        "$T/e.out"
    kill "${pid[y]}"
    poll_until 10 holds w b
    kill "${pid[x]}"
    poll_until 10 is_free a
    run -0 rlock run a -- true
    poll_until 10 jq -se '[.[] | select(.key == "a") | .event] | index("acquired")' "$T/e.out"
    jq -se 'map(select(.event == "refused")) == []' "$T/e.out"
}
