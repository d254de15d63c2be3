# rlock limit: how many may hold a semaphore, kept by the store and changed while it is in use.

load helper

# there_are HOLDERS WAITERS: so many, and no two holders share a slot.
there_are() {
    local seen
    seen=$(rlock status --json k | jq -c '.[0] | [.holders, (.holders | unique_by(.slot)), .waiters |
        length]')
    [[ $seen == "[$1,$1,$2]" ]]
}

@test "--limit takes the stored number; another one is a warning, and none is needed" {
    run -1 rlock limit k
    says 78 '^rlock: k: no limit is stored for it' run -n --limit k -- true
    run -0 rlock limit k 2
    prints 0 2 limit k
    run -0 --separate-stderr rlock run --limit k -- sh -c 'echo "$RLOCK_SLOT"'
    [[ $output == 1 && ! $stderr ]]
    hold a k --limit
    prints 0 2 run --limit 7 k -- sh -c 'echo "$RLOCK_SLOT"'
    stderr_line '^rlock: k: its stored limit of 2 counts, not 7$'
    hold b k --limit 2
    says 75 'all 2 slots are taken' run -n --limit 7 k -- true
    says 78 'semaphore' run -n k -- true
    prints 0 '*limit 2, which is stored*' status k
    run -0 rlock status --json k
    json '.[0] | .stored_limit == 2 and .limit == 2 and .paused == null and .reserved == null and
        (.holders[0].reserved | not)'
    # The key lives for a year.
    (($(redis ttl 'rlock:{k}') > 30000000))
}

@test "a greater limit lets waiters in at once, a smaller one when there is room, 0 never" {
    rlock limit k 1
    hold a k --limit
    line_up b 1 --limit 1
    line_up c 2 --limit 9
    poll_until 10 contains "$T/c.err" 'k: its stored limit of 1 counts, not 9'
    line_up d 3 --limit
    rlock limit k 3
    poll_until 10 there_are 3 1
    rlock limit k 2
    run -75 --separate-stderr rlock run -n --limit k -- true
    stderr_line '^rlock: k: not acquired: its limit is 2, 3 still hold it, the oldest by .*'
    terminate a
    poll_until 10 there_are 2 1
    run -75 --separate-stderr rlock run -n --limit k -- true
    terminate b
    poll_until 10 there_are 2 0
    rlock limit k 0
    says 75 '^rlock: k: not acquired: its limit is 0$' run -n --limit k -- true
    line_up e 1 --limit
    kill "${pid[c]}" "${pid[d]}"
    finish c
    finish d
    # The lock is free, and no waiter is let in.
    poll_until 10 there_are 0 1
    poll_until 10 contains "$T/e.err" 'waiting for k, its limit is 0; you are next'
    rlock limit k 1
    poll_until 10 there_are 1 0
    # Forgotten: the holder continues, and its limit counts.
    rlock limit --delete k
    run -1 rlock limit k
    run -1 rlock limit --delete k
    run -75 rlock run -n --limit 1 k -- true
    run -78 rlock run -n --limit 2 k -- true
    terminate e
    run -0 rlock run -n k -- true
}

@test "a nested run gets the lock while the limit is 0" {
    rlock limit k 1
    run -0 rlock run --limit k -- \
        sh -c 'rlock limit k 0 && rlock run -n --limit k -- echo nested'
    [[ $output == nested ]]
}

@test "limit refuses a plain lock, a latch, wrong numbers, and stores without limits" {
    hold a plain
    says 78 '^rlock: limit: plain: it is held as a plain lock' limit plain 3
    rlock latch set gate 1
    run -78 rlock limit gate 3
    for number in -1 x 1.5 100001 ''; do
        run -64 rlock limit k "$number"
    done
    says 64 '^rlock: limit: unknown option -1 .N and DUR are never negative.$' limit k -1
    run -64 rlock limit
    run -64 rlock limit k 1 2
    run -64 rlock limit --delete k 1
    run -64 rlock limit 'a b' 1
    says 64 'zookeeper:// has no stored limits' limit -u zookeeper://127.0.0.1:1 k 1
    says 64 'zookeeper:// has no stored limits' run -u zookeeper://127.0.0.1:1 --limit k -- true
}

@test "H1 a limit whose answer is lost is asked for again, and counts" {
    start_proxy
    url=redis://rlock:pw@${proxy[proxy]}
    fault on up limit cut down 0 close
    quiet 0 limit -u "$url" k 3
    fault on up limit cut down 0 close
    quiet 0 limit -u "$url" --delete k
    run -1 rlock limit --delete k
}
