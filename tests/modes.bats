# Messages to users and variables of programs about readers, semaphores, several keys and nesting;
# --at-least and
# --wait-descendants.

load helper

# A command that ends at once with status 3 and leaves a process behind, whose pid is in $T/left.
leaves_behind() {
    echo "sleep $1 & echo \$! >'$T/left'; exit 3"
}

# lingering NAME [OPTION...]: a background rlock whose command has left a process behind.
lingering() {
    local name=$1
    shift
    rm -f "$T/left"
    bg "$name" rlock run --wait-descendants "$@" k -- sh -c "$(leaves_behind 1000)"
    poll_until 10 test -s "$T/left"
    poll_until 10 is_parent_of_left "${pid[$name]}"
}

# The command itself is gone: what it left behind is rlock's own child by now.
is_parent_of_left() {
    [[ $(ps -o ppid= -p "$(<"$T/left")") -eq $1 ]]
}

@test "rlock read and rlock write are run --read and run --write" {
    run -0 rlock read k -- sh -c 'echo $RLOCK_MODE'
    [[ $output == shared ]]
    run -0 rlock write k -c 'echo $RLOCK_MODE'
    [[ $output == exclusive ]]
    hold a k --read
    run -0 rlock read -n k -- true
    run -75 rlock write -n k -- true
    run -64 rlock read --write k -- true
    run -64 rlock read --limit 2 k -- true
    run -64 rlock write --read k -- true
    run -64 --separate-stderr rlock read k true
    stderr_line '^hint: rlock read k -- true$'
    run -0 rlock read --help
    [[ $output == "usage: rlock read "* && $output == *--lease* && $output != *--limit* ]]
}

@test "of several keys, messages name the one in the way" {
    hold a b
    run -75 --separate-stderr rlock run -n x b y -- true
    stderr_line '^rlock: b: not acquired: held by '
    run -75 --separate-stderr rlock run -w 3 x b y -- true
    stderr_line '^rlock: waiting for b \(one of x, b, y\), held by .*; you are next$'
    run -78 --separate-stderr rlock run --limit 2 x b -- true
    stderr_line '^rlock: b: .*plain lock'
}

@test "the report of several keys has an entry for each of them" {
    "$RLOCK" run --limit 2 --report-fd 5 x y -- true 5>"$T/report" 3>&-
    output=$(<"$T/report")
    json '.key == ["x", "y"] and .mode == "limit" and .slot == [1, 1] and (.fence | length == 2)'
    json '.fence[0] > 0 and .fence[1] > 0 and .outcome == "completed"'
    "$RLOCK" run --read --report-fd 5 x -- true 5>"$T/report" 3>&-
    output=$(<"$T/report")
    json '.key == "x" and .mode == "shared" and .fence > 0 and (has("slot") | not)'
    hold a y
    "$RLOCK" run -n --report-fd 5 x y -- true 5>"$T/report" 3>&- || true
    output=$(<"$T/report")
    json '.key == ["x", "y"] and .fence == null and .outcome == "not-acquired"'
}

@test "status shows slots, limits, and which holder nests in which" {
    bg a rlock run --limit 3 k -- "$RLOCK" run --limit 3 k -- sleep 1000
    poll_until 10 held k
    poll_until 10 sh -c '[ "$("$0" status --json k | jq ".[0].holders | length")" = 2 ]' "$RLOCK"
    hold b k --limit 3
    status_json k '.[0].mode == "limit" and .[0].limit == 3 and (.[0].holders | length == 3)'
    json '[.[0].holders[] | [.slot, .count]] == [[1, 2], [1, 1], [2, 1]]'
    json '.[0].holders | (.[0].owner + ".") as $outer | .[1].owner | startswith($outer)'
    run -0 rlock status 'k*'
    [[ ${lines[1]} =~ ^k\ +limit\ 3\ +2\  ]]
    run -0 rlock status k
    [[ $output == *"  nested      "*"    slot        2"* ]]
}

@test "force-release takes it from all that nest and share" {
    bg a rlock read k -- "$RLOCK" read k -- sleep 1000
    hold b k --read
    poll_until 10 sh -c '[ "$("$0" status --json k | jq ".[0].holders | length")" = 3 ]' "$RLOCK"
    run -0 --separate-stderr rlock force-release --now --yes k
    [[ $(grep -c "^k is held for reading by " <<<"$stderr") == 3 ]]
    is_free k
}

@test "--at-least: the lock stays, rlock does not" {
    run -3 rlock run --at-least 6s k -- sh -c 'exit 3'
    held k
    run -75 rlock run -n k -- true
    run -0 rlock run -w 25 k -- true
    run -0 rlock run --at-least 1ms k -- sleep 0.1
    is_free k
}

@test "--at-least: nothing ran, so nothing is kept" {
    run -127 rlock run --at-least 1h k -- "$T/nothing"
    is_free k
    : >"$T/nothing"
    run -126 rlock run --at-least 1h k -- "$T/nothing"
    is_free k
}

@test "--at-least: a lock that was lost is not kept" {
    hold a k --at-least 1h
    run -0 rlock force-release --now --yes k
    ends_with a 79
    is_free k
}

@test "--wait-descendants: the lock is held until the last one is gone, and renewed meanwhile" {
    lingering a --lease 6s --kill-after 0
    renewed k
    held k
    kill "$(<"$T/left")"
    ends_with a 3
    is_free k
}

@test "--wait-descendants: a signal goes to them" {
    lingering a
    terminate a 3
    gone "$(<"$T/left")"
}

@test "--wait-descendants: --at-most, a lost lock, kill -9 end them" {
    lingering a --at-most 6s
    ends_with a 124
    gone "$(<"$T/left")"
    lingering b
    run -0 rlock force-release --now --yes k
    ends_with b 79
    gone "$(<"$T/left")"
    lingering c
    kill -KILL "${pid[c]}"
    poll_until 10 gone "$(<"$T/left")"
    poll_until 10 is_free k
}
