# Decisions of people about a lock, for the files that have a store where that works otherwise than
# with one server. Loaded after helper.
# shellcheck shell=bash disable=SC2154

# pauses KEY: holders continue, no new owner is let in, all read why.
pauses() {
    hold a "$1"
    run -0 rlock pause "$1" 1h -m 'disk full'
    renewed "$1"
    bg b rlock run "$1" -- sleep 1000
    poll_until 15 has_waiters "$1" 1
    terminate a
    run -75 --separate-stderr rlock run -n "$1" -- true
    stderr_line "^rlock: $1: not acquired: paused by .* until .* left\\): disk full\$"
    status_json "map(select(.key == \"$1\")) | length == 1 and (.[0] | .holders == [] and
        (.waiters | length == 1) and .paused.reason == \"disk full\" and .paused.left_ms > 3000000)"
    run -0 rlock resume "$1"
    poll_until 10 held "$1"
    run -1 rlock resume "$1"
    terminate b
    # Listed though it was never used.
    run -0 rlock pause "$1-new" 1h -m new
    run -0 rlock status
    [[ $output == *"$1-new "*"free, paused"* ]]
    run -75 rlock run -n "$1-new" -- true
    run -0 rlock resume "$1-new"
    run -0 rlock run -n "$1-new" -- true
}

# pauses_globs KEY: the same for whatever is called so at its beginning, be it there or not.
pauses_globs() {
    hold g "$1-held"
    rlock run "$1-used" -- true
    run -0 rlock pause "$1-*" 1h -m 'disk full'
    renewed "$1-held"
    local name
    for name in used new; do
        run -75 --separate-stderr rlock run -n "$1-$name" -- true
        stderr_line "^rlock: $1-$name: not acquired: paused by .* until .* left\\): disk full\$"
    done
    terminate g
    bg h rlock run "$1-new" -- sleep 1000
    poll_until 15 has_waiters "$1-new" 1
    run -0 rlock status
    [[ $output == *"$1-new "*"free, paused"*"$1-*: paused by "* ]]
    run -0 rlock resume "$1-*"
    poll_until 10 held "$1-new"
    terminate h
    run -1 rlock resume "$1-*"
}

# asks_holder KEY [OPTION...]: the holder releases it, and says who has asked for it, and why. Its
# first renewal would be due after 20 minutes.
asks_holder() {
    hold a "$1" --lease 1h "${@:2}"
    says 0 "^rlock: $1 was released by " force-release --yes --reason why "$1"
    ends_with a 79
    contains "$T/a.err" ': why; stopping sh'
}

# all_commands [OPTION...]: each that asks a store for a lock or a latch.
all_commands() {
    local owner
    owner=$(rlock acquire "$@" --lease 20s k)
    run -75 rlock run "$@" -n k -- true
    run -0 rlock renew "$@" --owner "$owner" k
    run -0 --separate-stderr rlock status "$@" --json k
    json ".[0].holders[0].owner == \"$owner\""
    run -0 rlock release "$@" --owner "$owner" k
    hold x k --lease 9s "$@"
    run -0 rlock status "$@" k
    [[ $output == "k: exclusive"* ]]
    run -0 rlock force-release "$@" --now --yes k
    ends_with x 79
    run -1 rlock release "$@" --owner "$owner" k
    run -0 rlock latch set "$@" l 1
    run -0 rlock latch count-down "$@" l
    run -0 rlock latch wait "$@" l
}

# limits KEY: the stored number counts, and grows under those who wait.
limits() {
    run -0 rlock limit "$1" 1
    hold c "$1" --limit
    bg d rlock run --limit "$1" -- sleep 1000
    poll_until 15 has_waiters "$1" 1
    run -0 rlock limit "$1" 2
    poll_until 10 has_waiters "$1" 0
    run -0 rlock limit "$1"
    [[ $output == 2 ]]
    status_json "$1" '.[0] | .stored_limit == 2 and (.holders | length == 2)'
    kill "${pid[c]}" "${pid[d]}"
    poll_until 10 is_free "$1"
    run -0 rlock limit --delete "$1"
    run -1 rlock limit "$1"
}

# reserves KEY: for a person, found again by a file.
reserves() {
    export XDG_STATE_HOME=$T/state
    run -0 rlock reserve "$1" 1h -m 'load test'
    run -75 --separate-stderr env XDG_STATE_HOME="$T/other" "$RLOCK" run -n "$1" -- true
    stderr_line "^rlock: $1: not acquired: reserved by .* until .* left\\): load test\$"
    run -0 rlock run -n "$1" -- echo nested
    [[ $output == nested ]]
    run -0 rlock extend "$1" 2h
    status_json "$1" '.[0].reserved | .reason == "load test" and .left_ms > 7000000'
    run -0 rlock release "$1"
    run -1 rlock extend "$1" 1h
}
