# The promises of a store whose clients decide by their own clocks (src/host/clockless.h), for the
# .bats files about one, where RLOCK_URL is. Loaded after helper.
# shellcheck shell=bash disable=SC2154

# one_runs_and_waiters_come_in_order SECONDS: and each waiter takes no longer than that.
one_runs_and_waiters_come_in_order() {
    stay a k
    for name in b c d; do
        queue "$name" k
    done
    held k
    ends_well a
    in_turn "$1" b c d
    is_free k
}

# The holder is told to who tries, by status, metrics, events, and afterwards by history.
holder_is_named() {
    stay a k
    run -75 rlock run -n k -- true
    [[ $output == *"held by"* ]]
    run -0 rlock status --json
    jq -e "map(.key) == [\"k\"] and .[0].holders[0].pid == ${pid[a]}" <<<"$output"
    run -0 rlock status
    [[ $output == *exclusive* ]]
    bg_says events 'events: listening' rlock events -v --json k
    ends_well a
    run -0 rlock history --json k
    jq -e '.[0].outcome == "exit 9"' <<<"$output"
    run -3 rlock run k -- sh -c 'exit 3'
    poll_until 20 contains "$T/events.out" '"k"'
    run -0 rlock metrics
    [[ $output == *'key="k"'* ]]
}

# Modes, slots, limits, priorities, groups.
modes_slots_and_priorities() {
    hold r1 k --read
    run -0 rlock run -n --read k -- true
    run -75 rlock run -n k -- true
    terminate r1
    hold s1 s --limit 2
    run -0 rlock run -n --limit 2 s -- sh -c 'echo "$RLOCK_SLOT"'
    [[ $output == 2 ]]
    run -0 rlock limit s 1
    run -75 rlock run -n --limit 2 s -- true
    hold a k
    queue low k
    queue high k --priority 5
    terminate a
    ends_with low 0 30
    ends_with high 0
    [[ $(xargs <"$LOG") == "high low" ]]
    hold a k
    queued k bg old rlock run --latest k -- true
    bg new rlock run --latest --replace --lease 9s k -- true
    ends_with old 75 20
    ends_with new 0 40
    finish a
}

# Tokens, and what outlives its command.
locks_of_scripts_and_latches() {
    run -0 rlock acquire --lease 1m k
    owner=$output
    run -75 rlock run -n k -- true
    run -0 rlock renew --owner "$owner" k
    run -0 rlock release --owner "$owner" k
    run -0 rlock run --at-least 3s l -- true
    timed 1500 20000 rlock run l -- true
    run -0 rlock run --unless-done 1h m -- touch "$T/once"
    run -75 rlock run -n --unless-done 1h m -- false
    run -0 rlock pause -m upgrade k 1h
    run -75 rlock run -n k -- true
    [[ $output == *upgrade* ]]
    run -0 rlock resume k
    run -0 rlock run -n k -- true
    run -0 rlock latch set gate 1
    bg waits rlock latch wait gate
    run -0 rlock latch count-down gate
    ends_with waits 0 20
}

# force_release_ends_holder LEASE: the holder is told, and ends its command, before that has ended;
# with --now the lock is free at once.
force_release_ends_holder() {
    hold a k --lease "$1"
    run -0 rlock force-release --yes k
    ends_with a 79 20
    contains "$T/a.err" 'revoked by'
    hold a k --lease 1m
    run -0 rlock force-release --yes --now k
    run -0 rlock run -n k -- true
}

# A waiter begins when the lease of the killed holder has ended, and not beside its command.
waiter_follows_dead_holder() {
    at_work a k forever --lease 4s
    queued k bg b rlock run k -- worker "$LOG" b 0.1
    kill_both a
    ends_with b 0 40
    no_overlap
}

# try_follows_dead_holder SECONDS: a try (-n) is refused while the lease of a killed holder lasts,
# and later succeeds, within SECONDS (poll_until).
try_follows_dead_holder() {
    hold a k --lease 2s
    kill_both a
    run -75 rlock run -n k -- true
    poll_until "$1" rlock run -n k -- true
}
