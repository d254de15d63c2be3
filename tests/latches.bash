# Latches, for the files that have a store where they are kept otherwise than on one server. Loaded
# after helper; each file has a "wait_for NAME KEY [OPTION...]" of its own: a background rlock that
# waits for the latch, and does so by now.
# shellcheck shell=bash disable=SC2154

# left KEY: prints how many counts are left of it. is_left KEY NUMBER: so many are.
left() {
    rlock latch status --json "$1" | jq .left
}

is_left() {
    [[ $(left "$1") == "$2" ]]
}

# Six waiters of a latch end when it is open, and not before. "elapsed": how long that took, in ms.
six_wait() {
    local i start
    rlock latch set k 2
    for i in 1 2 3 4 5 6; do
        wait_for "w$i" k
    done
    rlock latch count-down k
    sleep 0.3 # nothing must happen
    for i in 1 2 3 4 5 6; do
        alive "${pid[w$i]}"
    done
    start=$(now_ms)
    rlock latch count-down k
    all_end 0 10 w{1..6}
    elapsed=$(($(now_ms) - start))
    rlock latch delete k
}

# The store wakes them: waiters that are not woken look every 2.5 s. A busy machine may be late, but
# not each time; to a slow one, the end of six processes is more.
waiters_go_on() {
    local round limit
    for round in 1 2 3 4 5; do
        six_wait
        limit=$(patience 1000)
        ((elapsed >= limit)) || return 0
    done
    echo "no round of $round took less than $limit ms; the last one: $elapsed ms"
    return 1
}
