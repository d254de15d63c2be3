# Programs of the first version and of this one hold locks beside each other on one server: a fleet
# is not updated at one moment. RLOCK_EARLIER is a program of that version; without it,
# compat/earlier.py sends what that version sends. tests/compat_binary.sh runs this file with that
# version itself.

load helper

setup_file() {
    start_file
    as_default_user
    cat >"$BATS_FILE_TMPDIR/earlier" <<END
#!/bin/sh
exec ${RLOCK_EARLIER:-python3 -B "$TESTS/compat/earlier.py"} "\$@"
END
    chmod +x "$BATS_FILE_TMPDIR/earlier"
    export EARLIER=$BATS_FILE_TMPDIR/earlier PRESENT=$RLOCK
}

# each_way FUNCTION: called with the first version in $one and this one in $other, and the other way
# round.
each_way() {
    local one=$EARLIER other=$PRESENT
    "$1"
    poll_until 10 is_free k
    end_processes
    one=$PRESENT other=$EARLIER
    "$1"
    poll_until 10 is_free k
}

# keep NAME PROGRAM OPTION... KEY: holds it until "give_back NAME".
keep() {
    local name=$1 program=$2
    shift 2
    rm -f "$T/$name.up" "$T/$name.go"
    bg "$name" "$program" run "$@" -- \
        sh -c ": >'$T/$name.up'; '$RLOCK_TEST_TOOLS/await' '$T/$name.go'; exit 9"
    poll_until 15 test -e "$T/$name.up"
}

give_back() {
    : >"$T/$1.go"
    finish "$1"
    [[ $status == 9 ]]
}

# wait_in_turn NAME PROGRAM OPTION... KEY: waits for it; writes NAME to the log when it has it.
wait_in_turn() {
    local name=$1 before
    before=$(waiters "${!#}")
    bg "$name" "$2" run "${@:3}" -- sh -c "echo $name >>'$LOG'"
    poll_until 15 has_waiters "${!#}" $((before + 1))
}

exclusion() {
    keep a "$one" k
    run -75 "$other" run -n k -- true
    give_back a
    run -0 "$other" run -n k -- true
}

@test "a lock that one version holds is refused to the other one" {
    each_way exclusion
}

renewal() {
    keep a "$one" --lease 9s k
    renewed k
    renewed k
    run -75 "$other" run -n k -- true
    give_back a
}

@test "a lock that one version renews stays refused to the other one" {
    each_way renewal
}

order() {
    rm -f "$LOG"
    keep a "$one" k
    wait_in_turn w1 "$other" k
    wait_in_turn w2 "$one" k
    wait_in_turn w3 "$other" k
    give_back a
    for name in w1 w2 w3; do
        finish $name
        [[ $status == 0 ]]
    done
    [[ $(paste -sd' ' "$LOG") == "w1 w2 w3" ]]
}

@test "waiters of both versions come in the order in which they came" {
    each_way order
}

dead() {
    rm -f "$LOG"
    keep a "$one" --lease 9s k
    wait_in_turn w "$other" k
    kill -STOP "${pid[a]}" $(pgrep -P "${pid[a]}" -x rlock-agent)
    finish w 20
    [[ $status == 0 ]]
    end_processes
}

@test "a stopped holder's lock goes to the other version's waiter when its lease is over" {
    each_way dead
}

readers() {
    keep a "$one" --read k
    keep b "$other" --read k
    run -75 "$one" run -n k -- true
    run -75 "$other" run -n k -- true
    give_back a
    run -75 "$one" run -n k -- true
    run -0 "$one" run -n --read k -- true
    wait_in_turn w "$one" k
    run -75 "$other" run -n --read k -- true
    give_back b
    finish w
    [[ $status == 0 ]]
}

@test "readers of both versions share a lock, and writers of both wait for them" {
    each_way readers
}

slots() {
    keep a "$one" --limit 2 k
    keep b "$other" --limit 2 k
    run -75 "$one" run -n --limit 2 k -- true
    run -75 "$other" run -n --limit 2 k -- true
    run -78 "$other" run -n --limit 3 k -- true
    [[ $(rlock status --json k | jq -c '[.[0].holders[].slot] | sort') == "[1,2]" ]]
    give_back a
    run -0 "$other" run -n --limit 2 k -- true
    give_back b
}

@test "holders of a semaphore of both versions are counted together, each with a slot of its own" {
    each_way slots
}

nesting() {
    run -6 "$one" run k -- "$other" run -n k -- "$one" run -n k -- sh -c 'exit 6'
    run -75 "$one" run k -- env -u RLOCK_OWNER "$other" run -n k -- true
}

@test "a command under the lock of one version gets it again by the other one" {
    each_way nesting
}

several() {
    keep a "$one" k l
    run -75 "$other" run -n l m -- true
    run -75 "$other" run -n m k -- true
    run -0 rlock status -q m
    give_back a
    run -0 "$other" run -n l k m -- true
}

@test "several keys of one version are refused to the other one, all or none" {
    each_way several
}

token() {
    local owner
    owner=$("$one" acquire k)
    run -75 "$other" run -n k -- true
    run -0 "$other" renew --owner "$owner" k
    run -0 "$one" renew --owner "$owner" k
    run -0 "$other" release --owner "$owner" k
    run -1 "$one" release --owner "$owner" k
    run -0 "$one" run -n k -- true
}

@test "the token of one version is renewed and released by the other one" {
    each_way token
}

force() {
    keep a "$one" --lease 12s k
    run -0 "$other" force-release --yes k
    is_free k
    finish a
    [[ $status == 79 ]]
}

@test "force-release of one version takes the other one's lock, whose command is stopped" {
    each_way force
}

@test "status shows holders and waiters of the first version" {
    local count
    keep a "$EARLIER" k
    wait_in_turn w "$EARLIER" k
    run -0 rlock status --json k
    json '.[0] | .mode == "exclusive" and (.holders | length) == 1 and (.waiters | length) == 1'
    json '.[0].holders[0] | .host != null and .pid > 0 and .kept == false and .waited_ms == 0 and .lease_left_ms > 0'
    json '.[0].fence == .[0].holders[0].fence and .[0].waiters[0].position == 1'
    run -75 --separate-stderr rlock run -n k -- true
    stderr_line '^rlock: k: not acquired: held by '
    give_back a
    finish w
}

fences() {
    local last
    keep a "$one" k
    last=$(rlock status --json k | jq '.[0].fence')
    give_back a
    keep b "$other" k
    (($(rlock status --json k | jq '.[0].fence') > last))
    give_back b
}

@test "fencing tokens rise from one version to the other one" {
    each_way fences
}

kept() {
    run -0 "$PRESENT" run --at-least 9s k -- true
    run -75 "$EARLIER" run -n k -- true
    run -0 "$EARLIER" run k -- true
}

@test "what --at-least of this version keeps is refused to the first one until it is over" {
    kept
}
