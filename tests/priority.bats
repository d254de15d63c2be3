# --priority: who waits with a higher one is served first.

load helper

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
    finish b 20
    poll_until 20 is_free k
    [[ $(tr '\n' ' ' <"$LOG") == 'b c d e ' ]]
}

@test "H62 --priority: none passes a waiter that has waited for as long as priority-bound says" {
    echo 'priority-bound = 1s' >"$T/conf"
    hold a k
    queue b k --config "$T/conf"
    queue c k --priority 9
    sleep 1.1
    kill "${pid[a]}"
    finish c 20
    [[ $(tr '\n' ' ' <"$LOG") == 'b c ' ]]
}

@test "--priority: the higher first, equals in their order, below 0 last; status shows the same" {
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
    finish e 20
    [[ $(tr '\n' ' ' <"$LOG") == 'f d g b h c e ' ]]
    [[ ! $(redis hget 'rlock:{k}' o) ]]
}

@test "--priority: no number from -9 to 9, and a store that has none, are refused" {
    run -64 rlock run --priority 10 k -- true
    [[ $output == *"--priority '10' is not a number from -9 to 9"* ]]
    run -64 rlock run --priority -10 k -- true
    run -64 rlock run --priority - k -- true
    run -64 rlock run -u zookeeper://127.0.0.1:1 --priority 1 k -- true
    [[ $output == *'zookeeper:// has no --priority'* ]]
    echo 'priority-bound = 0' >"$T/conf"
    run -78 rlock run --config "$T/conf" k -- true
    [[ $output == *'priority-bound'* ]]
}
