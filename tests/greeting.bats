# The first request goes out with the greeting, in one write; it counts only on the right server.
# takes_round_trips TRIPS COMMAND: so many, once connected, as the relay counts them; does_not_run
# STATUS URL WHY: the command does not run, and nothing is left.

load helper

setup_file() {
    start_file
    # A relay for all tests, outside of what a test's end ends.
    RELAYED=$BATS_FILE_TMPDIR/relayed
    env -u RLOCK_TEST_ID python3 -u "$TESTS/trips.py" "$REDIS_SOCK" >"$RELAYED" 3>&- &
    RELAY=$!
    export RELAY RELAYED
    poll_until 10 test -s "$RELAYED"
}

teardown_file() {
    kill "$RELAY"
    redis_stop
}

# through_relay [DB] COMMAND...: it takes one connection. Sets "trips".
through_relay() {
    local url before
    url=redis://rlock:pw@127.0.0.1:$(head -n 1 "$RELAYED")/$1
    before=$(wc -l <"$RELAYED")
    RLOCK_URL=$url "${@:2}"
    poll_until 10 eval "((\$(wc -l <'$RELAYED') > $before))"
    (($(wc -l <"$RELAYED") == before + 1))
    trips=$(tail -n 1 "$RELAYED")
}

# takes_round_trips TRIPS COMMAND...: round trips once connected. A run of two ends before it
# listens: once more where the machine stood still.
takes_round_trips() {
    local start passed=1000
    until ((passed < 900)); do
        start=$(now_ms)
        through_relay "${db-0}" "${@:2}" >"$T/out"
        passed=$(($1 == 2 ? $(now_ms) - start : 0))
    done
    echo "$trips round trips: ${*:2}"
    [[ $trips == "$1" ]]
}

@test "a run is two round trips: one to start, one to end, in any database" {
    for db in 0 3; do
        through_relay $db rlock run k -- true # the server knows the scripts from here on
        takes_round_trips 2 rlock run k -- true
        takes_round_trips 2 rlock read k -- true
        takes_round_trips 2 rlock run --limit 2 other -- true
        takes_round_trips 2 rlock run b a c -- true
    done
    redis script flush
    takes_round_trips 3 rlock run k -- true
    takes_round_trips 2 rlock run k -- true
}

@test "a run that lasts for longer than a second costs one round trip more, a shorter one none" {
    through_relay 0 rlock run k -- sleep 1.5 # the server knows the scripts from here on
    takes_round_trips 2 rlock run k -- sleep 0.3
    takes_round_trips 3 rlock run k -- sleep 4
    takes_round_trips 3 rlock run --lease 1h --read k -- sleep 4
    takes_round_trips 3 rlock run --no-renew k -- sleep 4
}

# Each command but run takes one round trip once it is connected, as it sends its request together
# with its greeting.
@test "whatever else is asked of a server is asked in the first round trip" {
    hold a k
    rlock latch set latch 3
    rlock status k
    takes_round_trips 1 rlock status k
    takes_round_trips 1 rlock latch count-down latch
    [[ $(<"$T/out") == 2 ]]
    takes_round_trips 1 rlock acquire mine
    owner=$(<"$T/out")
    through_relay 0 rlock renew --owner "$owner" mine
    takes_round_trips 1 rlock renew --owner "$owner" mine
    takes_round_trips 1 rlock release --owner "$owner" mine
    is_free mine
}

# does_not_run STATUS URL WHY: does not run, and leaves nothing behind.
does_not_run() {
    echo "--- $2"
    run "-$1" --separate-stderr rlock run -n -u "$2" --server-wait 0 k -- touch "$T/run"
    stderr_line "^rlock: k: .*$3"
    [[ ! -e $T/run ]]
}

@test "a wrong password at a server that grants all the same: the lock is released, and not used" {
    hold other other # who has the lock otherwise keeps it
    before=$(redis_calls eval)
    does_not_run 77 "unix://nobody:wrong@$REDIS_SOCK" 'wrong password'
    [[ $(redis_calls eval) == $((before + 1)) ]] # the release
    is_free k
    [[ $(redis hget 'rlock:{k}' f) -gt 0 && $(redis hkeys 'rlock:{k}') != *h:* ]]
    run -75 rlock run -n other -- true
}

# A replica that accepts writes grants the lock, so only its role tells that it is not the place for
# it: rlock releases the lock, and runs nothing.
@test "a replica that takes writes: granted, released, and not used" {
    redis replicaof 127.0.0.1 1
    redis config set replica-read-only no
    does_not_run 69 "$RLOCK_URL" 'read-only replica'
    [[ $(redis hget 'rlock:{k}' f) -gt 0 && $(redis hkeys 'rlock:{k}') != *h:* ]]
    redis config set replica-read-only yes
    does_not_run 69 "$RLOCK_URL" 'read-only replica'
}

@test "a database that cannot be chosen: nothing is done in another one" {
    # shellcheck disable=SC2046 # they are words
    redis acl setuser fenced on '>pw' $(manual_rights) -select
    rlock run k -- true
    rlock run -u "unix://rlock:pw@$REDIS_SOCK?db=3" k -- true
    redis flushall
    does_not_run 69 "unix://rlock:pw@$REDIS_SOCK?db=16" 'DB index is out of range'
    does_not_run 77 "unix://fenced:pw@$REDIS_SOCK?db=3" "no right to run 'select'"
    [[ $(redis dbsize) == 0 ]]
}

@test "the first script is bounded by our clock, which may be wrong by an hour" {
    rlock run k -- true
    for hour in 3600000 -3600000; do
        printf '%-31s' $hour >"$T/clock"
        LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so SHIM_CLOCK_FILE=$T/clock \
            through_relay 0 rlock run k -- touch "$T/run$hour"
        [[ -e $T/run$hour ]]
        # A clock that is late makes the server take what comes for late.
        [[ $trips == $((hour > 0 ? 2 : 3)) ]]
    done
}
