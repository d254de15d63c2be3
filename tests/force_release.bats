# rlock force-release: shows, asks, compares, wakes.

load helper

# acquire_and_fall_silent KEY HEARD SINCE: KEY has been held for SINCE minutes with a lease of an
# hour, and its holder was heard from HEARD minutes ago.
acquire_and_fall_silent() {
    local owner record
    owner=$(rlock acquire --lease 1h "$1")
    redis hget "rlock:{$1}" "h:$owner" >"$T/record"
    record=$(awk -v heard="$2" -v since="$3" \
        '{ $1 = sprintf("%.0f", $1 - heard * 60000); $5 = sprintf("%.0f", $5 - since * 60000); print }' "$T/record")
    redis hset "rlock:{$1}" "h:$owner" "$record" >/dev/null
}

@test "force-release says when the holder was heard from, who waits, and whose lock it took" {
    hold a k --lease 60s --label "the victim"
    queue w k
    run -0 --separate-stderr rlock force-release --now --yes k
    stderr_line "^k is held by $(id -un)@$(hostname) pid ${pid[a]} \(sh\) since .*Z, heard from [0-9.]+m?s ago, lease left .*, label the victim\$"
    stderr_line "^1 waiter, the first is $(id -un)@$(hostname) pid ${pid[w]} \(sh\)\$"
    stderr_line "^rlock: k was taken from $(id -un)@$(hostname) pid ${pid[a]} \(sh\)\$"
    finish w
    # A holder that has not renewed for more than half of its lease, and one that never has.
    acquire_and_fall_silent k 40 50
    run -0 --separate-stderr rlock force-release --now --yes k
    stderr_line 'since .*Z, not heard from for 40m[0-9]+s: it may be dead, lease left (20m|19m)'
    acquire_and_fall_silent k 40 40
    says 0 'since .*Z, not heard from since, lease left (20m|19m)' force-release --now --yes k
    # From several, and with the queue.
    hold r1 many --read --lease 60s
    hold r2 many --read --lease 60s
    queue w2 many
    run -0 --separate-stderr rlock force-release --now --yes --purge many
    stderr_line '^rlock: many was taken from 2 holders, and its queue was emptied$'
}

@test "without a terminal and without --yes: exit 64, nothing happens" {
    hold a k
    says 64 '^rlock: ' force-release k </dev/null
    stderr_line '.--yes'
    run -75 rlock status -q k
    alive "${pid[a]}"
}

@test "--owner takes the lock only from that holder; several KEYs; the next fence is higher" {
    hold a k --lease 60s
    owner=$(rlock status --json k | jq -r '.[0].holders[0].owner')
    run -1 rlock force-release --now --yes --owner $NO_OWNER k
    run -75 rlock status -q k
    before=$(rlock status --json k | jq '.[0].fence')
    run -0 rlock force-release --now --yes --owner "$owner" k
    run -0 rlock status -q k
    run -0 rlock run k -- sh -c 'echo $RLOCK_FENCE'
    ((output > before))
    hold b k1 --lease 60s
    hold c k2 --lease 60s
    run -0 rlock force-release --now --yes k1 k2
    run -0 rlock status -q k1 k2
}

# The first release of k2 calls "d", which holds k2 then: the second one must not take it from "d".
@test "a KEY that is named twice is taken once: the next holder keeps it" {
    hold a k1 --lease 60s
    hold b k2 --lease 60s
    hold c k3 --lease 60s
    queued k2 bg d rlock run k2 -- sh -c "echo up >'$T/d.up'; exec sleep 1000"
    run -0 rlock force-release --now --yes k1 k2 k3 k2 k1
    run -0 rlock status -q k1 k3
    poll_until 15 contains "$T/d.up" up
    alive "${pid[d]}"
    run -1 rlock force-release --yes 'k*' nothing
    [[ $output == *'k* is not held'*'hint: force-release takes KEYs, not GLOBs;'*'nothing is not held' ]]
}

@test "the next waiter is woken by its call, and the queue stays without --purge" {
    hold a k --lease 60s
    queue w1 k
    queue w2 k
    calls_first k run -0 rlock force-release --now --yes k
    in_turn 10 w1 w2
}

@test "on a terminal force-release asks: no changes nothing, yes takes the lock" {
    local answer status
    hold a k --lease 9s --label "the victim"
    for answer in n '' y; do
        [[ $answer == y ]] && status=0 || status=1
        on_terminal rlock force-release k <<<"expect the victim
send $answer\\n
status $status"
        [[ $answer == y ]] || held k
    done
    ends_with a 79
}

# The answer is typed when another owner has the lock than the one that was shown.
@test "the lock changes hands while force-release asks: exit 1, and who has it now keeps it" {
    hold a k --lease 60s --label first
    export PIDA=${pid[a]}
    queued k bg b rlock run --label second k -- sleep 1000
    on_terminal rlock force-release k <<'EOF'
expect first
sh kill $PIDA
until rlock status --json k | jq -e '.[0].holders[0].label == "second"'
send y\n
expect changed hands meanwhile, and is held by .* now; nothing was changed
status 1
EOF
    status_json k '.[0].holders[0].label == "second"'
    alive "${pid[b]}"
}

# The name of the command has one backslash, which is printed as two, and not as four.
@test "the words of a holder are escaped, once" {
    hold e k --label $'evil\e[31m'
    run -0 rlock force-release --now --yes k
    [[ $output == *evil* && $output != *$'\e'* ]]
    local back='CI\job'

    ln -s "$(type -P sleep)" "$T/$back"
    owner=$(rlock acquire k)
    bg a rlock run w -- "$T/$back" 60
    poll_until 10 held w
    run -1 rlock release --owner "$owner" w
    [[ $output == *'by '*' (CI\\job)' ]]
    run -0 rlock force-release --now --yes w
    [[ ${lines[0]} == *' (CI\\job) since '* && ${lines[2]} == *' taken from '*' (CI\\job)' ]]
    finish a
}

# The key "k*" is literally so called: kk, which it would match, is left.
@test "force-release takes a KEY like a pattern for one lock, names slots, and is silent with -q" {
    hold a 'k*'
    hold b kk --limit 3
    run -0 --separate-stderr rlock force-release --now --yes 'k*'
    held kk
    says 0 '^kk is held by .* in slot 1 since' force-release --now --yes kk
    hold c k
    run -0 rlock force-release -q --now --yes k
    [[ $output != *held* ]]
}

# The waiter is stopped with its agent, so it cannot leave the queue, nor take the lock that it is
# called for.
@test "--purge empties a queue that has no holder" {
    hold a k
    queue w k --no-renew # one that renews would be handed the lock
    kill -STOP "$(agent_of "${pid[w]}")" "${pid[w]}"
    terminate a
    is_free k
    says 0 '^rlock: the queue of k was emptied' force-release --now --yes --purge k
    has_waiters k 0
}

@test "force-release: misuse is refused, no server: exit 69, a lock that is free: exit 1" {
    run -64 rlock force-release --now --yes k -- true
    run -64 rlock force-release --now --yes --owner x a b
    run -69 rlock force-release --url unix:///nowhere --server-wait 0 --yes k
    says 1 '^rlock: .*k' force-release --now --yes k
}
