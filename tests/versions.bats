# rlock 1.0.0, built from the history of this repository, and the rlock under test at one store.
# docs/stability.md promises that both share locks, so that a fleet may be upgraded host by host.
# both_ways CASE: with 1.0.0 as "$this" and the rlock under test as "$that", then the other way
# round.

load helper
load databases

setup_file() {
    # The last commit of what CHANGELOG.md says of 1.0.0.
    export FORMER=${RLOCK_TEST_TOOLS%/tests}/rlock-1.0.0/build/rlock
    former_build 1355b3d7e27da504030bbea494d9db2c03cbac4b >"$BATS_FILE_TMPDIR/former.log" 2>&1 ||
        tail -n 5 "$BATS_FILE_TMPDIR/former.log" >"$BATS_FILE_TMPDIR/no-former"
    databases_start
    start_file
}

teardown() {
    databases_reset
    redis flushall >/dev/null
}

teardown_file() {
    databases_end
    redis_stop
}

# former_build COMMIT: builds $FORMER of it, if that is not there yet.
former_build() {
    local place=${FORMER%/build/rlock}
    [[ ! -x $FORMER ]] || return 0
    git -C "$TESTS/.." -c safe.directory='*' cat-file -e "$1^{commit}" ||
        { echo "this checkout has no history" && return 1; }
    rm -rf "$place"
    mkdir -p "$place/build"
    git -C "$TESTS/.." -c safe.directory='*' archive "$1" | tar -x -C "$place"
    cd "$place" && autoreconf -fi && cd build && ../configure --quiet CFLAGS=-O0 &&
        make -s -j2 rlock-postgresql rlock-mysql rlock
}

setup() {
    start_test
    [[ -x $FORMER ]] || skip "no rlock 1.0.0: $(tail -n 1 "$BATS_FILE_TMPDIR/no-former")"
    command -v jq >/dev/null || skip "no jq here"
    NOW=$RLOCK
}

# with_program PROGRAM COMMAND...: the functions of helper.bash, with that rlock.
with_program() {
    local RLOCK=$1
    "${@:2}"
}

# both_ways CASE: plays it with 1.0.0 as "$this" and the rlock under test as "$that", then the other
# way round.
both_ways() {
    local this that
    this=$FORMER that=$NOW "$1"
    end_processes
    redis flushall >/dev/null
    rm -f "$LOG"
    this=$NOW that=$FORMER "$1"
}

# prints_the_same FILTER WORDS...: both programs print the same, in JSON, after that filter.
prints_the_same() {
    with_program "$this" rlock "${@:2}" | jq -S "$1" >"$T/this.json"
    with_program "$that" rlock "${@:2}" | jq -S "$1" >"$T/that.json"
    diff "$T/this.json" "$T/that.json"
    [[ $(<"$T/this.json") != null ]]
}

# Members that a release may add, and those that differ a moment later are left out.
OLD_MEMBERS='walk(if type == "object" then
    del(.age_ms, .lease_left_ms, .left_ms, .result, .exit_status, .signal, .grace_left_ms)
    else . end)'

# The cases of both_ways.
# in_one_queue: both programs wait for one lock, in turn.
in_one_queue() {
    with_program "$this" hold a k
    with_program "$that" queue b k
    with_program "$this" queue c k
    with_program "$that" queue d k
    terminate a 143
    in_turn 20 b c d
    with_program "$this" rlock run -n k -- true
}

@test "two versions wait in one queue, in the order of arrival" {
    both_ways in_one_queue
}

# shared_or_not: both read, one of them waits to write, and both take slots of a semaphore.
shared_or_not() {
    with_program "$this" hold a k --read
    with_program "$that" hold b k --read
    with_program "$that" queue w k --write
    with_program "$this" queue r k --read
    [[ ! -e $LOG ]]
    terminate a 143
    terminate b 143
    in_turn 20 w r
    with_program "$this" hold a semaphore --limit 2
    with_program "$that" run -0 rlock run -n --limit 2 semaphore -c 'echo "$RLOCK_SLOT"'
    [[ $output == 2 ]]
    with_program "$that" hold b semaphore --limit 2
    with_program "$this" run -75 rlock run -n --limit 2 semaphore -- true
    with_program "$that" run -75 rlock run -n --limit 2 semaphore -- true
    with_program "$this" run -78 rlock run -n --limit 3 semaphore -- true
    with_program "$that" run -78 rlock run -n --limit 3 semaphore -- true
    with_program "$that" rlock limit stored 1
    with_program "$this" hold c stored --limit 5
    with_program "$that" run -75 rlock run -n --limit 5 stored -- true
}

@test "readers, writers and semaphores of two versions share one lock" {
    both_ways shared_or_not
}

# seen_alike: both print the same about a lock of the one for which the other waits.
seen_alike() {
    with_program "$this" hold a k --label "it's %20 me" --lease 25s
    with_program "$that" queued k bg w rlock run --read --priority 3 --label w k -- true
    with_program "$this" queued k bg v rlock run --no-identity -w 1m k -- true
    prints_the_same "$OLD_MEMBERS | .[0] | del(.last_run)" status --json k
    has_place w k 1
    terminate a 143
    all_end 0 20 w v
    with_program "$this" run -3 rlock run k -- sh -c 'exit 3'
    with_program "$this" run -124 rlock run --at-most 50ms k -- sleep 1000
    prints_the_same "$OLD_MEMBERS | map({since, outcome, fence, held_ms, waited_ms, host, pid, user})" \
        history --json k
    prints_the_same "$OLD_MEMBERS | .[0].last_run" status --json k
}

@test "each version shows holders, waiters and runs of the other as that one does" {
    both_ways seen_alike
}

# asked_or_taken: a holder of the one gives its lock up when the other asks, or loses it.
asked_or_taken() {
    with_program "$this" hold a k
    with_program "$that" queue b k
    with_program "$that" run -0 --separate-stderr rlock force-release --yes --reason "for b" k
    ends_with a 79
    contains "$T/a.err" "for b"
    in_turn 20 b
    rm "$LOG"
    with_program "$this" hold a k
    with_program "$that" queue b k
    with_program "$that" run -0 rlock force-release --now --yes k
    ends_with a 79
    in_turn 20 b
    prints_the_same 'map(select(.revoked_by)) | map({revoked_by, reason, outcome})' history --json k
    with_program "$this" hold a k
    with_program "$that" run -0 rlock run --replace k -- true
    ends_with a 79
}

@test "a holder that the other version asks releases; one whose lock it takes away stops" {
    both_ways asked_or_taken
}

# killed_one_is_followed: a holder or a waiter of the one is killed; the other comes next.
killed_one_is_followed() {
    with_program "$this" hold a k --lease 3s
    with_program "$that" queue b k
    kill_both a
    ends_with b 0 20
    with_program "$this" hold a k
    with_program "$that" queue b k
    with_program "$this" queue c k
    kill -KILL "${pid[b]}"
    terminate a 143
    ends_with c 0 20
    with_program "$that" hold a k
    kill_agent a
    with_program "$this" run -75 rlock run -n k -- true
    terminate a 143
}

@test "holder, waiter or agent of one version is killed (-9): the other version has its turn" {
    both_ways killed_one_is_followed
}

# nested: a run of the one nests in a run of the other.
nested() {
    with_program "$this" run -0 rlock run k -- "$that" run -n k -- "$this" run -n k other -- echo all
    [[ $output == all ]]
    with_program "$this" run -0 rlock run --read k -- "$that" run -n --read k -- true
    with_program "$this" run -78 rlock run --read k -- "$that" run -n k -- true
}

@test "a run of either version nests in a run of the other" {
    both_ways nested
}

# acquired: the one acquires a lock, which the other renews and releases by its token.
acquired() {
    local owner
    owner=$(with_program "$this" rlock acquire --lease 20s k)
    with_program "$that" rlock renew --owner "$owner" --lease 1m k
    (($(lease_left k) > 30000))
    with_program "$that" run -75 rlock run -n k -- true
    with_program "$that" rlock release --owner "$owner" k
    is_free k
    with_program "$this" run -0 rlock run -n k -- true
}

@test "a lock that one version acquires is renewed and released by the other" {
    both_ways acquired
}

# reserved: the one reserves or pauses a lock, which the other extends and ends.
reserved() {
    export XDG_STATE_HOME=$T/state
    with_program "$this" rlock reserve k 1h -m "why"
    with_program "$that" run -0 rlock run -n k -- true
    XDG_STATE_HOME=$T/stranger with_program "$that" run -75 --separate-stderr rlock run -n k -- true
    stderr_line 'why$'
    with_program "$that" rlock extend k 2h
    with_program "$this" rlock extend k 3h
    with_program "$that" rlock release k
    is_free k
    with_program "$this" rlock pause k 1h -m "work"
    with_program "$that" run -75 rlock run -n k -- true
    with_program "$that" rlock resume k
    with_program "$this" rlock pause 'n*' 1h -m "work"
    with_program "$that" run -75 rlock run -n new -- true
    with_program "$that" rlock resume 'n*'
    with_program "$this" run -0 rlock run -n new -- true
}

@test "reservations and pauses hold for both, and either ends them" {
    both_ways reserved
}

# latched: both count down one latch, or wait for it.
latched() {
    with_program "$this" rlock latch set l 3
    with_program "$that" bg w rlock latch wait l
    with_program "$that" rlock latch count-down --id a l
    with_program "$this" rlock latch count-down --id a l
    prints_the_same 'del(.age_ms, .ttl_left_ms)' latch status --json l
    with_program "$this" rlock latch run --id b l -- true
    with_program "$that" rlock latch count-down l
    ends_with w 0
    with_program "$this" rlock latch delete l
}

@test "latches are counted down by both" {
    both_ways latched
}

# some_of_several: both want one of several locks.
some_of_several() {
    with_program "$this" hold a one
    with_program "$that" run -0 rlock run -n --any one two -c 'echo "$RLOCK_KEY"'
    [[ $output == two ]]
    with_program "$that" hold b two
    with_program "$this" queued one bg w rlock run --any one two -c 'echo "$RLOCK_KEY"'
    terminate b 143
    ends_with w 0
    [[ $(<"$T/w.out") == two ]]
    with_program "$that" hold c two
    terminate a 143
    with_program "$this" run -75 rlock run -n one two -- true
    terminate c 143
    with_program "$that" run -0 rlock run -n one two -- true
    with_program "$this" run -75 rlock run --unless-done 1h two -- touch "$T/again"
    [[ ! -e $T/again ]]
}

@test "several KEYs, --any and --unless-done respect what the other version holds and has done" {
    both_ways some_of_several
}

# asked_for_a_newer_one: the store asks for a version that neither has.
asked_for_a_newer_one() {
    with_program "$this" hold a held
    with_program "$that" rlock run there -- true
    with_program "$this" rlock init --minimum-version 99.10.0 ||
        with_program "$this" rlock init --force --minimum-version 99.10.0
    for key in held there new; do
        with_program "$this" run -78 rlock run -n "$key" -- true
        with_program "$that" run -78 --separate-stderr rlock run -n "$key" -- true
        stderr_line '99\.10\.0'
    done
    with_program "$that" renewed held
    with_program "$that" rlock init --minimum-version 0.0.0
    terminate a 143
    with_program "$this" rlock run new -- true
    # A layout of a later one.
    redis hset 'rlock:{later}' k 'lock/2 2.0.0'
    with_program "$this" run -78 --separate-stderr rlock run later -- true
    stderr_line '2\.0\.0'
}

@test "where the store asks for a newer rlock, either version is refused, and keeps what it holds" {
    both_ways asked_for_a_newer_one
}

# install_on HOST VERSION: as a package does it, by a new file in the place of the old one, which
# stays with those that run it.
install_on() {
    local file to=$T/hosts/$1
    mkdir -p "$to"
    for file in "$T/versions/$2"/*; do
        ln "$file" "$to/new" && mv -fT "$to/new" "$to/${file##*/}"
    done
}

# take_turns HOST: runs, one after the other, until $T/stop is there. Each notes which program it
# is, and what went wrong.
take_turns() {
    until [[ -e $T/stop ]]; do
        timeout 200 "$T/hosts/$1/rlock" run -q -w 2m --server-wait 1m k -- sh -ec '
            set -C
            : >"$0/inside"
            echo "$RLOCK_FENCE $1 $(stat -Lc %i "/proc/$PPID/exe")" >>"$0/log"
            rm "$0/inside"' "$T" "$1" >>"$T/wrong" 2>&1 || echo "host $1: $?" >>"$T/wrong"
    done
}

have_had_turns() { (($(wc -l <"$LOG") >= $1)); }

# all_with VERSION: each host has had a turn with that one.
all_with() {
    local inode
    inode=$(stat -c %i "$T/versions/$1/rlock")
    (($(awk -v inode="$inode" '$3 == inode { print $2 }' "$LOG" | sort -u | wc -l) == HOSTS))
}

hang_up() {
    case ${DATABASE-} in
    postgresql)
        database_sql postgresql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE usename = 'locker'" >/dev/null
        ;;
    mysql) database_sql mysql 'KILL HARD USER locker' ;;
    *) redis client kill type normal skipme yes >/dev/null ;;
    esac
}

# No process holds or waits twice, and no two hold.
is_told() {
    local one
    for one in "$this" "$that"; do
        with_program "$one" rlock status --json k | jq -e --argjson hosts "$HOSTS" '.[0] |
            (.holders | length) < 2 and (.waiters | length) <= $hosts and
            (.holders + .waiters | map(.pid) | length == (unique | length))' >"$T/told"
        [[ $(with_program "$one" rlock status --json long | jq '.[0].holders[0].pid') == "${pid[long]}" ]]
    done
}

# The run of "long" continues with the driver of the other version when its session has ended.
host_by_host() {
    local HOSTS=20 host version names=()
    rm -rf "${T:?}"/{versions,hosts,stop,wrong}
    for version in this that; do
        mkdir -p "$T/versions/$version"
        cp "${!version}" "$T/versions/$version/rlock"
        [[ ! ${DATABASE-} ]] ||
            cp "${!version%/*}/rlock-$DATABASE" "$T/versions/$version/"
    done
    for ((host = 1; host <= HOSTS; host++)); do
        install_on "$host" this
    done
    with_program "$T/hosts/1/rlock" stay long long
    for ((host = 1; host <= HOSTS; host++)); do
        names+=("host$host")
        take_turns "$host" &
        pid[host$host]=$!
    done 3>&-
    poll_until 60 all_with this
    for ((host = 1; host <= HOSTS; host++)); do
        install_on "$host" that
        is_told
        ((host != HOSTS / 2)) || hang_up
        poll_until 30 have_had_turns $(($(wc -l <"$LOG") + 2))
    done
    poll_until 60 all_with that
    : >"$T/stop"
    all_end 0 60 "${names[@]}"
    fails grep . "$T/wrong"
    cut -d ' ' -f 1 "$LOG" | sort -n -c -u
    is_free k
    renewed long
    ends_well long
}

@test "a fleet is upgraded host by host amid its runs, and taken back" {
    both_ways host_by_host
}

@test "a fleet with locks in PostgreSQL is upgraded host by host amid its runs, and taken back" {
    with_database postgresql
    both_ways host_by_host
}

# Chance decides which of them each run is, and each look.
@test "a contest of both versions, with kills and stops: never two at once, each has its turn" {
    RLOCK_BESIDE=$FORMER RLOCK_SECONDS=8 timeout 280 python3 -B "$TESTS/test_contenders.py" \
        >"$T/contest.out" || true
    grep -q '^1\.\.' "$T/contest.out"
    fails grep -A 9 '^not ok' "$T/contest.out"
}

@test "two versions wait in one queue of a database" {
    [[ $DATABASES ]] || skip "neither PostgreSQL nor MariaDB with its driver is here"
    on_each both_ways in_one_queue
}

@test "two versions see the same locks of a database" {
    [[ $DATABASES ]] || skip "neither PostgreSQL nor MariaDB with its driver is here"
    on_each both_ways seen_alike
}
