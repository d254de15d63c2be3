# Messages to users and variables of programs about readers, semaphores, several keys and nesting;
# --at-least and --wait-descendants. lingering NAME: a background rlock whose command has left a
# process behind.

load helper

# lingering NAME [OPTION...]: a background rlock whose command has left a process behind.
lingering() {
    local name=$1
    shift
    rm -f "$T/left"
    bg "$name" rlock run --wait-descendants "$@" k -- \
        sh -c "sleep 1000 & echo \$! >'$T/left'; exit 3"
    poll_until 10 test -s "$T/left"
    # The command itself is gone: what it left behind is rlock's own child by now.
    poll_until 10 eval '[[ $(ps -o ppid= -p "$(<"$T/left")") -eq ${pid[$name]} ]]'
}

@test "rlock read and rlock write are run --read and run --write" {
    prints 0 shared read k -- sh -c 'echo $RLOCK_MODE'
    prints 0 exclusive write k -c 'echo $RLOCK_MODE'
    hold a k --read
    run -0 rlock read -n k -- true
    run -75 rlock write -n k -- true
    run -64 rlock read --write k -- true
    run -64 rlock read --limit 2 k -- true
    run -64 rlock write --read k -- true
    for option in -x -e --exclusive --write; do
        prints 0 exclusive run $option free -- sh -c 'echo $RLOCK_MODE'
    done
    says 64 '^hint: rlock read k -- true$' read k true
    run -0 rlock read --help
    [[ $output == "usage: rlock read "* && $output == *--lease* && $output != *--limit* ]]
}

@test "of several keys, messages name the one in the way" {
    hold a b
    says 75 '^rlock: b: not acquired: held by ' run -n x b y -- true
    run -75 --separate-stderr rlock run -w 6 x b y -- true
    stderr_line '^rlock: waiting for b \(one of x, b, y\), held by .*; you are next$'
    says 78 '^rlock: b: .*plain lock' run --limit 2 x b -- true
}

@test "the report of several keys has an entry for each of them" {
    reports '.key == ["x", "y"] and .mode == "limit" and .slot == [1, 1] and
        (.fence | length == 2 and .[0] > 0 and .[1] > 0)' --limit 2 x y -- true
    reports '.key == "x" and .mode == "shared" and .fence > 0 and (has("slot") | not)' \
        --read x -- true
    hold a y
    reports '.key == ["x", "y"] and .fence == null and .outcome == "not-acquired"' -n x y -- true
}

@test "status shows slots, limits, and which holder nests in which" {
    bg a rlock run --limit 3 k -- rlock run --limit 3 k -- sleep 1000
    poll_until 10 held k
    poll_until 10 sh -c '[ "$(rlock status --json k | jq ".[0].holders | length")" = 2 ]'
    hold b k --limit 3
    status_json k '.[0].mode == "limit" and .[0].limit == 3 and (.[0].holders | length == 3)'
    json '[.[0].holders[] | [.slot, .count]] == [[1, 2], [1, 1], [2, 1]]'
    json '.[0].holders | (.[0].owner + ".") as $outer | .[1].owner | startswith($outer)'
    run -0 rlock status 'k*'
    [[ ${lines[1]} =~ ^k\ +limit\ 3\ +2\  ]]
    prints 0 '*  nested      *    slot        2*' status k
}

# Three hold: a reader, one that nests in it, and another reader.
@test "force-release takes the lock from all that nest and share" {
    bg a rlock read k -- rlock read k -- sleep 1000
    hold b k --read
    poll_until 10 sh -c '[ "$(rlock status --json k | jq ".[0].holders | length")" = 3 ]'
    run -0 --separate-stderr rlock force-release --now --yes k
    [[ $(grep -c "^k is held for reading by " <<<"$stderr") == 3 ]]
    is_free k
}

# The second duration is shorter than the command, so nothing is kept.
@test "--at-least: the lock stays, rlock does not" {
    run -3 rlock run --at-least 10s k -- sh -c 'exit 3'
    held k
    run -75 rlock run -n k -- true
    run -0 rlock run -w 40 k -- true
    run -0 rlock run --at-least 1ms k -- sleep 0.1
    is_free k
}

# The first command is not there (127), the second one is not executable (126).
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
