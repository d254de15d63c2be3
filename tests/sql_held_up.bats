# A statement that a database server holds up before it reads: the rows are then newer than the
# statement.

load helper
load databases

setup_file() {
    local name
    databases_start
    for name in $DATABASES; do
        DATABASE_GATES=$name gate_build
    done
}

# The views of ?table=gated are the tables, behind a gate: only the user of a view waits for a
# lock on the gate.
gate_build() {
    local to
    local -A people=([postgresql]=PUBLIC [mysql]="locker@'%'")
    database_sql "$DATABASE_GATES" 'CREATE TABLE gate (closed int)'
    for to in $(database_all_tables "$DATABASE_GATES"); do
        to=${to#rlock_}
        database_sql "$DATABASE_GATES" "CREATE VIEW gated_$to AS SELECT * FROM rlock_$to
            WHERE NOT EXISTS (SELECT 1 FROM gate)"
        database_sql "$DATABASE_GATES" \
            "GRANT SELECT, INSERT, UPDATE, DELETE ON gated_$to TO ${people[$DATABASE_GATES]}"
    done
}

close_gate() {
    local -A lock=([postgresql]='BEGIN; LOCK TABLE gate IN ACCESS EXCLUSIVE MODE;'
        [mysql]='LOCK TABLES gate WRITE;')
    mkfifo "$T/sql"
    database_client "$DATABASE" locks <"$T/sql" >"$T/client.out" &
    exec 8>"$T/sql"
    echo "${lock[$DATABASE]} SELECT 'closed';" >&8
    poll_until 10 contains "$T/client.out" closed
}

open_gate() {
    local -A unlock=([postgresql]='COMMIT;' [mysql]='UNLOCK TABLES;')
    echo "${unlock[$DATABASE]}" >&8
    exec 8>&-
}

# held_up NUMBER: so many statements wait at the gate.
held_up() {
    local -A count=(
        [postgresql]="SELECT count(*) FROM pg_stat_activity WHERE usename = 'locker' AND
            wait_event_type = 'Lock'"
        [mysql]="SELECT count(*) FROM information_schema.processlist WHERE user = 'locker' AND
            state LIKE 'Waiting for table%'"
    )
    [[ $(database_sql "$DATABASE" "${count[$DATABASE]}") == "$1" ]]
}

# waits_behind NAME KEY [OPTION...]: a waiter behind the gate, which notes when its command begins.
waits_behind() {
    bg "$1" rlock run -u "$RLOCK_URL?table=gated" --server-wait 60s "${@:3}" "$2" -- \
        sh -c "cut -d ' ' -f 1 /proc/uptime >'$T/$1.begun'"
}

# not_before NAME SECONDS: its command has not begun earlier.
not_before() {
    ends_with "$1" 0 30
    awk -v least="$2" '{ print "begun at " $1 ", not before " least; exit !($1 >= least) }' \
        "$T/$1.begun"
}

@test "H142 a lease that was acquired while a statement was held up is not cut" {
    each_database
    close_gate
    waits_behind x only
    waits_behind s slots --limit 2
    poll_until 20 held_up 2
    pause 1200
    since=$(cut -d ' ' -f 1 /proc/uptime)
    run -0 rlock acquire --lease 9s only
    run -0 rlock acquire --lease 9s --limit 2 slots
    run -0 rlock acquire --lease 9s --limit 2 slots
    open_gate
    since=$(awk -v since="$since" 'BEGIN { printf "%.2f", since + 9 }')
    not_before x "$since"
    not_before s "$since"
}

@test "H142 a place in the queue that is newer than a statement that was held up counts in it" {
    each_database
    hold a k
    close_gate
    bg look rlock status --server-wait 60s --json -u "$RLOCK_URL?table=gated" k
    poll_until 20 held_up 1
    pause 1200
    queue b k
    open_gate
    ends_with look 0 30
    jq -e '.[0].waiters | length == 1' "$T/look.out"
    kill "${pid[a]}"
    finish b
}
