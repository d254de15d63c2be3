# Abilities of each store, for the files that have another one than a server. Loaded after helper.
# shellcheck shell=bash disable=SC2154

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
    prints 0 'k: exclusive*' status "$@" k
    run -0 rlock force-release "$@" --now --yes k
    ends_with x 79
    run -1 rlock release "$@" --owner "$owner" k
    run -0 rlock latch set "$@" l 1
    run -0 rlock latch count-down "$@" l
    run -0 rlock latch wait "$@" l
}
