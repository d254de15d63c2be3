# A store that is filled, killed and started again, for tests of what a page sets up. The caller has
# kill_server and start_server. Loaded after helper.
# shellcheck shell=bash disable=SC2154

# The locks, their holders and what else the store is told to remember.
fill() {
    stay holder deploy
    rlock acquire --lease 1h migration >/dev/null
    rlock acquire --lease 1h --limit 3 slots >/dev/null
    rlock reserve staging 1h -m 'load test' 2>/dev/null
    rlock pause 'ci/*' 1h -m 'move' 2>/dev/null
    rlock latch set gate 2 2>/dev/null
    rlock run finished -- true
    queued deploy bg waiter rlock run deploy -- true
}

# All of this must be the same after a restart.
remembered() {
    rlock status --json --all | jq -S '[.[] | {key, glob, mode, fence, paused: .paused.reason,
        holders: [(.holders // [])[] | {owner, slot, fence, since}],
        waiters: [(.waiters // [])[] | {owner, position}]}]'
    rlock latch status gate || true # 75: not yet open
    rlock history finished
}

# is_as_before: the store remembers what is in $T/before.
is_as_before() {
    remembered >"$T/after"
    cmp -s "$T/before" "$T/after"
}

# keeps_all_over_a_kill: the store is filled, killed and started again, and has lost nothing.
keeps_all_over_a_kill() {
    fill
    remembered >"$T/before"
    [[ $(grep -c '"key"' "$T/before") -ge 6 ]]
    kill_server
    start_server
    # A waiter that could not be heard of for 7 s is passed over until it has asked again.
    poll_until 20 is_as_before || { diff -u "$T/before" "$T/after" && false; }
    ends_well holder
    ends_with waiter 0
}
