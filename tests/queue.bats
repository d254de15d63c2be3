# The order of a queue: dead waiters in front, --priority, and --latest.

load helper

@test "H62 five dead waiters in a row cost ten seconds together at most" {
    hold a k --lease 60s
    for i in 1 2 3 4 5; do
        queue "d$i" k
    done
    queue w k
    for i in 1 2 3 4 5; do
        kill_both "d$i"
    done
    kill "${pid[a]}"
    # One after the other, the five would cost 7 s or more each.
    timed 0 20000 in_turn 20 w
}

@test "a label that looks like a note of rlock's own is a label, and asks for nothing" {
    hold a k
    queue b k
    queue c k --label priority=9
    queue d k --label latest=k
    queue e k --label latest=k
    run -75 rlock run -n --label replace=1 k -- true
    status_json k '.[0].waiters | map([.label, .priority]) ==
        [[null, null], ["priority=9", null], ["latest=k", null], ["latest=k", null]]'
    renewed k
    kill "${pid[a]}"
    in_turn 20 b c d e
}

@test "H62 --priority: none passes a waiter that has waited for as long as priority-bound says" {
    echo 'priority-bound = 1s' >"$T/conf"
    hold a k
    queue b k --config "$T/conf"
    queue c k --priority 9
    sleep 1.1 # more than the priority-bound of b
    kill "${pid[a]}"
    in_turn 20 b c
}

@test "--priority: higher ones first, equals in their order, below 0 last; status agrees" {
    hold a k
    queue b k
    queue c k --priority -5
    queue d k --priority 5
    queue e k --priority=-9
    queue f k --priority 9
    queue g k --priority 5
    queue h k
    run -0 rlock status k
    [[ $(grep -o 'priority -*[0-9]' <<<"$output" | tr '\n' ' ') == \
        'priority 9 priority 5 priority 5 priority -5 priority -9 ' ]]
    [[ $(grep 'waiter 4' <<<"$output") != *priority* ]]
    kill "${pid[a]}"
    in_turn 20 f d g b h c e
    [[ ! $(redis hget 'rlock:{k}' o) ]]
}

@test "H62 --priority: with -n, too; one that does not wait does not pass its equal that does" {
    hold a k --read
    queue b k --priority -1
    run -75 rlock read -n --priority -1 k -- true
    run -0 rlock read -n k -- true
    kill "${pid[a]}"
    in_turn 10 b
}

@test "H62 --latest: of those that wait the last one runs; the others say who came" {
    hold a k
    queue b k --latest
    bg c rlock run --latest -E 3 k -- sh -c "echo c >>'$LOG'"
    ends_with b 75
    grep -q '^rlock: k: not acquired: superseded by .* pid .* (sh)$' "$T/b.err"
    bg d rlock run --latest k -- sh -c "echo d >>'$LOG'"
    ends_with c 3
    kill "${pid[a]}"
    in_turn 10 d
}

@test "--latest: one that is superseded says so with -E 0, too, and not with -q" {
    hold a k
    queue b k --latest -E 0
    bg c rlock run --latest -q -E 0 k -- true
    ends_with b 0
    bg d rlock run --latest k -- true
    tail -n 1 "$T/b.err" | grep '^rlock: k: not acquired: superseded by .* pid .* (true)$'
    finish c
    [[ $status == 0 && ! -s $T/c.err ]]
    kill "${pid[a]}"
    ends_with d 0
}

@test "--latest: one that was stopped while another came ends when it continues" {
    hold a k
    queue b k --latest
    kill -STOP "${pid[b]}" "$(agent_of "${pid[b]}")"
    bg c rlock run --latest k -- sh -c "echo c >>'$LOG'"
    poll_until 15 eval '[[ $(redis hexists "rlock:{k}" g) == 1 ]]' # b was superseded
    kill "${pid[a]}"
    ends_with c 0 20
    kill -CONT "$(agent_of "${pid[b]}")" "${pid[b]}"
    finish b 20
    [[ $status == 75 && $(<"$LOG") == c ]]
}

@test "--priority, --latest: what makes no sense, and stores that have none, are refused unasked" {
    says 64 "--priority '10' is not a number from -9 to 9" run --priority 10 k -- true
    run -64 rlock run --priority -10 k -- true
    run -64 rlock run --priority - k -- true
    says 64 'zookeeper:// has no --priority' run -u zookeeper://127.0.0.1:1 --priority 1 k -- true
    echo 'priority-bound = 0' >"$T/conf"
    says 78 'priority-bound' run --config "$T/conf" k -- true
    says 64 '--group without --latest' run --group g k -- true
    run -64 rlock run --latest --group 'a b' k -- true
    says 64 'zookeeper:// has no --latest' run -u zookeeper://127.0.0.1:1 --latest k -- true
    says 64 'has no --latest' acquire -u unix:///a -u unix:///b -u unix:///c --latest k
}
