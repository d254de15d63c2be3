# A statement that a database server holds up before it reads: the rows are then newer than the
# statement. The table "gated" has a gate in front of it: close_gate, open_gate; held_up N: so many
# statements wait there. each_database: what follows is done with each server that is here.

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

# waits_behind NAME KEY [OPTION...]: a waiter behind the gate.
waits_behind() {
    bg "$1" rlock run -u "$RLOCK_URL?table=gated" --server-wait 60s "${@:3}" "$2" -- true
}

# uptime_ms: prints the time since the machine was started.
uptime_ms() {
    local seconds
    read -r seconds _ </proc/uptime
    echo "${seconds/./}0"
}

# A statement may take 2 s: a waiter that asks again then knows a later time.
@test "H142 a lease that was acquired while a statement was held up is not cut" {
    each_database
    close_gate
    waits_behind x only
    waits_behind s slots --limit 1
    poll_until 20 held_up 2
    pause 800 # by the time of their statements the leases would end so much too soon
    since=$(uptime_ms)
    run -0 rlock acquire --lease 9s only
    run -0 rlock acquire --lease 9s --limit 1 slots
    open_gate
    for key in only slots; do
        poll_until 5 has_waiters "$key" 1
        left=$(lease_left "$key")
        passed=$(($(uptime_ms) - since))
        echo "$key: $left ms are left, $passed ms after it was free"
        ((left + passed > 8900))
    done
}

@test "H142 a place in the queue that is newer than a statement that was held up counts in it" {
    each_database
    hold a k
    close_gate
    bg look rlock status --server-wait 60s --json -u "$RLOCK_URL?table=gated" k
    poll_until 20 held_up 1
    pause 1200 # so that the statement is older than b's place
    queue b k
    open_gate
    ends_with look 0 30
    jq -e '.[0].waiters | length == 1' "$T/look.out"
    kill "${pid[a]}"
    finish b
}
