# rlock force-release: shows, asks, compares, wakes.

load helper

@test "--yes takes the lock away and says from whom" {
    hold a k --lease 3s --label "the victim"
    run -0 rlock force-release --yes k
    [[ $output == *"the victim"* ]]
    finish a
    [[ $status == 79 ]]
    contains "$T/a.err" "rlock: "
    run -0 rlock status -q k
}

@test "without a terminal and without --yes: 64, nothing happens" {
    hold a k --lease 2s
    run -64 --separate-stderr rlock force-release k </dev/null
    stderr_line '^rlock: '
    stderr_line '.--yes'
    run -75 rlock status -q k
    alive "${pid[a]}"
}

@test "nothing to release: 1" {
    run -1 --separate-stderr rlock force-release --yes k
    stderr_line '^rlock: .*k'
    hold a k
    run -0 rlock force-release --yes k
    run -1 rlock force-release --yes k
}

@test "--owner: only from that holder" {
    local owner
    hold a k --lease 60s
    owner=$(rlock status --json k | jq -r '.[0].holders[0].owner')
    run -1 rlock force-release --yes --owner 00000000-0000-0000-0000-000000000000 k
    run -75 rlock status -q k
    run -0 rlock force-release --yes --owner "$owner" k
    run -0 rlock status -q k
}

@test "several keys" {
    hold a k1 --lease 60s
    hold b k2 --lease 60s
    run -0 rlock force-release --yes k1 k2
    run -0 rlock status -q k1 k2
}

@test "the next waiter is woken at once" {
    local forced
    hold a k --lease 60s
    bg w rlock run k -- sh -c "date +%s%3N >'$T/start'"
    poll_until 10 has_waiters k 1
    forced=$(date +%s%3N)
    run -0 rlock force-release --yes k
    finish w
    [[ $status == 0 ]]
    within 0 2000 $(($(<"$T/start") - forced))
}

@test "the queue stays without --purge" {
    hold a k --lease 60s
    queue w1 k
    queue w2 k
    run -0 rlock force-release --yes k
    finish w1
    finish w2
    [[ $(tr '\n' ' ' <"$LOG") == "w1 w2 " ]]
}

@test "the fence of the next holder is higher" {
    local before
    hold a k --lease 60s
    before=$(rlock status --json k | jq '.[0].fence')
    run -0 rlock force-release --yes k
    # shellcheck disable=SC2016
    run -0 rlock run k -- sh -c 'echo $RLOCK_FENCE'
    ((output > before))
}

@test "on a terminal it asks: no changes nothing, yes does it" {
    hold a k --lease 2s --label "the victim"
    "$TESTS/terminal.py" "$RLOCK" force-release k 3>&- <<'EOF'
expect the victim
send n\n
status 1
EOF
    run -75 rlock status -q k
    "$TESTS/terminal.py" "$RLOCK" force-release k 3>&- <<'EOF'
expect the victim
send \n
status 1
EOF
    run -75 rlock status -q k
    "$TESTS/terminal.py" "$RLOCK" force-release k 3>&- <<'EOF'
expect the victim
send y\n
status 0
EOF
    finish a
    [[ $status == 79 ]]
}

@test "the lock changes hands while it asks: 1, the new holder keeps it" {
    hold a k --lease 60s --label first
    export PIDA=${pid[a]}
    bg b rlock run --label second k -- sleep 1000
    poll_until 10 has_waiters k 1
    "$TESTS/terminal.py" "$RLOCK" force-release k 3>&- <<'EOF'
expect first
sh kill $PIDA
until "$RLOCK" status --json k | jq -e '.[0].holders[0].label == "second"'
send y\n
status 1
EOF
    run -0 rlock status --json k
    json '.[0].holders[0].label == "second"'
    alive "${pid[b]}"
}

@test "what is shown has control characters escaped" {
    hold a k --label $'evil\e[31m'
    run -0 rlock force-release --yes k
    [[ $output == *evil* && $output != *$'\e'* ]]
}

@test "a prefix of its own" {
    as_default_user
    hold a k --prefix other --lease 60s
    run -1 rlock force-release --yes k
    run -0 rlock force-release --yes --prefix other k
}

@test "a name that would be a pattern is that lock alone, a slot is named, -q says nothing" {
    hold a 'k*'
    hold b kk --limit 3
    run -0 --separate-stderr rlock force-release --yes 'k*'
    held kk
    run -0 --separate-stderr rlock force-release --yes kk
    stderr_line '^kk is held by .* in slot 1 since'
    hold c k
    run -0 rlock force-release -q --yes k
    [[ $output != *held* ]]
}

@test "a queue without a holder is emptied" {
    hold a k --lease 2s
    queue w k
    kill -STOP "$(agent_of "${pid[w]}")" "${pid[w]}" "$(agent_of "${pid[a]}")" "${pid[a]}"
    poll_until 10 is_free k
    run -0 --separate-stderr rlock force-release --yes --purge k
    stderr_line '^rlock: the queue of k was emptied'
    has_waiters k 0
}

@test "what makes no sense is refused; no server: 69" {
    run -64 rlock force-release --yes k -- true
    run -64 rlock force-release --yes --owner x a b
    run -69 rlock force-release --url unix:///nowhere --yes k
}
