# Latches, for the files that have a store where they are kept otherwise than on one server. Loaded
# after helper; each file has a "wait_for NAME KEY [OPTION...]" of its own: a background rlock that
# waits for the latch, and does so by now.
# shellcheck shell=bash disable=SC2154

left() {
    rlock latch status --json "$1" | jq .left
}

is_left() {
    [[ $(left "$1") == "$2" ]]
}

# Set once, counted down, open until it is deleted.
counts_once() {
    run -0 --separate-stderr rlock latch set k 3
    [[ -z $output && -z $stderr ]]
    says 1 '^rlock: latch: k: .*exists' latch set k 5
    run -0 rlock latch count-down k
    [[ $output == 2 ]]
    run -75 rlock latch status k
    [[ $output == "k: closed, 2 of 3 left"* ]]
    run -0 rlock latch count-down k 7
    [[ $output == 0 ]]
    run -0 rlock latch status k
    [[ $output == "k: open, 0 of 3 left"* ]]
    run -0 rlock latch count-down k
    [[ $output == 0 ]]
    run -1 rlock latch set -q k 1
    [[ -z $output ]]
    run -0 rlock latch wait -n k
    run -0 rlock latch delete k
    [[ -z $output ]]
    run -1 rlock latch delete k
}

# A missing latch is not open.
absent_is_closed() {
    says 1 '^rlock: latch: k: no such latch$' latch count-down k
    [[ -z $output ]]
    run -1 --separate-stderr rlock latch status k
    [[ -z $output ]]
    says 75 'no such latch' latch wait -n k
    run -75 --separate-stderr rlock latch wait -w "$(moment)" k
    run -1 --separate-stderr rlock latch run k -- touch "$T/ran"
    stderr_line '^rlock: latch: k: no such latch$'
    [[ ! -e $T/ran ]]
}

# An id counts once, with or without a --id between.
ids_count_once() {
    rlock latch set k 5
    run -0 rlock latch count-down --id a k
    [[ $output == 4 ]]
    run -0 rlock latch count-down k --id a
    [[ $output == 4 ]]
    run -0 rlock latch count-down --id a k 3
    [[ $output == 4 ]]
    rlock latch count-down k
    rlock latch count-down k
    run -0 rlock latch count-down --id b k
    [[ $output == 1 ]]
    run -75 rlock latch status --json k
    json '.key == "k" and .state == "closed" and .count == 5 and .left == 1'
    json '.ids == ["a", "b"] and .unnamed == 2'
    json '.ttl_left_ms > 86300000 and .ttl_left_ms <= 86400000 and (.since | test("^20.*Z$"))'
    run -75 rlock latch status k
    [[ $output == *"counted  a"* && $output == *"counted  2 times without an id"* ]]
    run -75 rlock latch status -q k
    [[ -z $output ]]
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
    for i in 1 2 3 4 5 6; do
        ends_with "w$i" 0
    done
    elapsed=$(($(now_ms) - start))
    rlock latch delete k
}

# The store wakes them: waiters that are not woken look every 2.5 s. A busy machine may be slow, but
# not each time.
waiters_go_on() {
    local round
    for round in 1 2 3 4 5; do
        six_wait
        ((elapsed >= 1000)) || return 0
    done
    echo "no round of $round took less than a second; the last one: $elapsed ms"
    return 1
}

# A latch that is not set yet is waited for.
unset_is_waited_for() {
    wait_for w k
    rlock latch set k 1
    sleep 0.3 # it is set, and not open
    alive "${pid[w]}"
    rlock latch count-down k
    ends_with w 0
}

# -w: 75 when the time is up, which -q does not hide; -q is silent where a latch was not waited for.
waits_end() {
    local start
    rlock latch set k 2
    start=$(now_ms)
    says 75 '^rlock: latch: k: not open: 2 of 2 left$' latch wait -w 2s k
    took 2000 20000 "$start"
    run -75 --separate-stderr rlock latch wait -q -w 0 k
    [[ -z $stderr ]]
    run -75 --separate-stderr rlock latch wait -q -n k
    [[ -z $stderr ]]
    run -75 --separate-stderr rlock latch wait -q -w "$(moment)" k
    [[ $stderr == 'rlock: latch: k: not open: 2 of 2 left' ]]
    run -75 --separate-stderr rlock latch wait -q -w "$(moment)" unset
    [[ $stderr == 'rlock: latch: unset: not open: no such latch was set' ]]
}

# Deleted and set anew: the waiter of the old one ends with 1.
another_is_not_waited_for() {
    rlock latch set k 1
    wait_for w k
    rlock latch delete k
    rlock latch set k 1
    rlock latch count-down k
    ends_with w 1
    contains "$T/w.err" vanished
}

# run: counts when the command has succeeded, and only then; hands signals on, and ends as its
# command does.
runs_count() {
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

# list: nothing at first; then three latches, besides a lock and one that was there.
latches_are_made() {
    run -0 --separate-stderr rlock latch list
    [[ -z $output && $stderr == "rlock: no latches" ]]
    rlock latch set --ttl 1h b-2 3
    rlock latch set a-1 1
    rlock latch set a 2
    rlock latch count-down b-2
    rlock latch count-down a-1
    hold lock lock
    rlock run was-one -- true
}

# Those have a row each, sorted by KEY, and nothing else has.
latches_are_listed() {
    run -0 --separate-stderr rlock latch list
    [[ ${lines[0]} =~ ^"KEY  STATE   LEFT    AGE"\ +EXPIRES$ && ${#lines[@]} == 4 && -z $stderr ]]
    [[ ${lines[1]} =~ ^"a    closed  2 of 2  "[0-9.]+m?s\ +(23h59m|1d00h)$ ]]
    [[ ${lines[2]} =~ ^"a-1  open    0 of 1  " ]]
    [[ ${lines[3]} =~ ^"b-2  closed  2 of 3  ".*\ (59m[0-9]+s|1h00m)$ ]]
}
