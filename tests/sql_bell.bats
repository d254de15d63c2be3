# Waiters over MySQL or MariaDB, who sleep in the server until it is their turn.

load helper
load certificates
load databases

setup_file() { databases_start; }

setup() {
    start_test
    [[ $DATABASES == *mysql* ]] || skip "MariaDB with its driver is not here"
    export RLOCK_URL
    RLOCK_URL=$(database_url mysql)
}

# relay FROM TO: prints the URL that leads through one; its process is in pid[relay].
relay() {
    bg relay python3 "$TESTS/sql_relay.py" "$MYSQL_PORT" "$@"
    poll_until 10 test -s "$T/relay.out"
    through=${RLOCK_URL/:$MYSQL_PORT/:$(<"$T/relay.out")}
}

# sleepers: how many sleep in the server.
sleepers() {
    database_sql mysql "SELECT count(*) FROM information_schema.processlist
        WHERE user = 'locker' AND info LIKE 'SELECT IF(GET_LOCK%'"
}

has_sleepers() {
    [[ $(sleepers) == "$1" ]]
}

statements() {
    database_sql mysql "SHOW GLOBAL STATUS LIKE 'Questions'" | cut -f 2
}

# median NUMBER...
median() {
    printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"
}

# hand_over NAME URL: nine wait for what one has, and each has it for a moment. Sets how many
# statements they make in three seconds of waiting, and the median of the ms in which nobody has it.
hand_over() {
    local i ends=() begins=() gaps=() before
    export RLOCK_URL=$2
    stay first "$1"
    for i in {1..9}; do
        bg "w$i" rlock run "$1" -- \
            sh -c "date '+%s%N +' >>'$T/$1.log'; sleep 0.1; date '+%s%N -' >>'$T/$1.log'"
        poll_until 15 has_waiters "$1" "$i"
    done
    before=$(statements)
    pause 3000
    statements=$(($(statements) - before))
    ends_well first
    for i in {1..9}; do
        finish "w$i" 40
        [[ $status == 0 ]]
        # It is said to nobody how one was woken.
        run ! grep -v 'waiting for\|acquired after' "$T/w$i.err"
    done
    mapfile -t begins < <(sed -n 's/ +$//p' "$T/$1.log")
    mapfile -t ends < <(sed -n 's/ -$//p' "$T/$1.log")
    for i in {1..8}; do
        gaps+=($(((begins[i] - ends[i - 1]) / 1000000)))
    done
    echo "$1: $statements statements, gaps ${gaps[*]} ms"
    gap=$(median "${gaps[@]}")
}

@test "H117 who waits is woken when it is its turn; where the server has no such locks, it looks" {
    local statements gap woken_statements woken through straight=$RLOCK_URL
    hand_over woken "$straight"
    woken=$gap woken_statements=$statements
    relay GET_LOCK GET_LOKC
    hand_over looking "$through"
    run rlock doctor -u "$through"
    [[ $output == *"note     wake-up      the server refuses GET_LOCK"* ]]
    run rlock doctor -u "$straight"
    [[ $output == *"fine     wake-up"* ]]
    ((woken * 2 < gap))
    ((woken_statements * 2 < statements))
}

@test "waiters sleep one behind the other; who is ended while it sleeps goes at once" {
    local i name runs=() ends=() start
    stay holder k
    queue a k
    queue b k
    poll_until 15 has_sleepers 2
    for i in 1 2 3; do
        start=${EPOCHREALTIME/[.,]/}
        rlock run other -- true
        runs+=($((${EPOCHREALTIME/[.,]/} - start)))
        queue c k
        poll_until 15 has_sleepers 3
        start=${EPOCHREALTIME/[.,]/}
        kill -TERM "${pid[c]}"
        finish c
        ends+=($((${EPOCHREALTIME/[.,]/} - start)))
        [[ $status == 143 ]]
        has_waiters k 2
    done
    echo "runs ${runs[*]}, ends ${ends[*]} us"
    # It would have slept three seconds, hundreds of times as long as a run takes.
    (($(printf '%s\n' "${ends[@]}" | sort -n | head -n 1) < 20 * $(median "${runs[@]}")))
    kill -TERM "${pid[a]}"
    finish a
    poll_until 10 has_waiters k 1
    poll_until 15 has_sleepers 1
    ends_well holder
    finish b
    [[ $status == 0 && $(<"$LOG") == b ]]
}

@test "a time limit ends a sleep" {
    stay holder k
    queue a k
    bg b rlock run --wait 1s k -- touch "$T/ran"
    poll_until 15 has_sleepers 2
    finish b
    [[ $status == 75 && ! -e $T/ran ]]
    has_waiters k 1
}

@test "a holder whose connection stays, but not its link: its lease ends in time" {
    local through
    relay no_word no_word
    bg holder rlock run --lease 3s -u "$through" k -- sh -c ": >'$T/up'; exec sleep 1000"
    poll_until 10 test -e "$T/up"
    queue a k
    poll_until 15 has_sleepers 1
    kill -STOP "${pid[relay]}"
    finish a 30
    [[ $status == 0 && $(<"$LOG") == a ]]
    finish holder 30
    [[ $status == 79 ]]
    kill -KILL "${pid[relay]}"
}

@test "a holder that is killed, and one that is not there: waiters look" {
    bg holder rlock run --lease 3s k -- sleep 1000
    poll_until 10 held_by_one
    queue a k
    poll_until 15 has_sleepers 1
    kill_both holder
    finish a 30
    [[ $status == 0 && $(<"$LOG") == a ]]
    eval "$(rlock acquire --lease 5m --export k)"
    local owner=$RLOCK_OWNER
    unset RLOCK_OWNER RLOCK_KEY RLOCK_FENCE RLOCK_MODE RLOCK_LEASE_MS
    queue b k
    run -0 rlock release --owner "$owner" k
    finish b
    [[ $status == 0 && $(xargs <"$LOG") == "a b" ]]
}

held_by_one() {
    run -0 rlock status --json k
    json '.[0].holders | length == 1'
}

@test "H116 somebody else has taken the user-level lock: waiters look" {
    local owner
    eval "$(rlock acquire --lease 5m --export k)"
    owner=$RLOCK_OWNER
    unset RLOCK_OWNER RLOCK_KEY RLOCK_FENCE RLOCK_MODE RLOCK_LEASE_MS
    bg other mariadb --no-defaults -S "$BATS_FILE_TMPDIR/mysql/sock" -u root mysql \
        -e "SELECT GET_LOCK('rlock:$owner', 0), SLEEP(1000)"
    queue a k
    poll_until 15 has_sleepers 1
    run -0 rlock release --owner "$owner" k
    finish a
    [[ $status == 0 && $(<"$LOG") == a ]]
    kill "${pid[other]}"
}

@test "a lock that is taken away, a slot that another holder leaves, readers behind a writer" {
    hold a k --lease 60s
    queue b k
    poll_until 15 has_sleepers 1
    run -0 rlock force-release --now --yes k
    finish b
    [[ $status == 0 ]]
    kill "${pid[a]}"
    finish a
    stay one s --limit 2
    stay two s --limit 2
    queue c s --limit 2
    ends_well two
    finish c
    [[ $status == 0 ]]
    ends_well one
    stay writer r --write
    stay_soon d r
    stay_soon e r
    stay_soon f r
    poll_until 15 has_sleepers 3
    ends_well writer
    for name in d e f; do
        poll_until 10 test -e "$T/$name.up"
    done
    for name in d e f; do
        ends_well "$name"
    done
}

# stay_soon NAME KEY: a reader that stays as long, once it has been let in.
stay_soon() {
    local before
    before=$(waiters "$2")
    bg "$1" rlock run --read "$2" -- \
        sh -c ": >'$T/$1.up'; '$RLOCK_TEST_TOOLS/await' '$T/$1.go'; exit 9"
    poll_until 15 has_waiters "$2" $((before + 1))
}
