# Latches in a database: the same for PostgreSQL and for MariaDB, of which each test takes all that
# are here. each_database: what follows is done with each of them. wait_for NAME KEY: a background
# rlock, which waits for the latch when this returns.

load helper
load databases
load latches

setup_file() { databases_start; }

# wait_for NAME KEY [OPTION...]: a background rlock that waits for the latch, and does so by now: it
# says so after a second.
wait_for() {
    local name=$1 key=$2
    shift 2
    bg_says "$name" "waiting for latch $key" rlock latch wait "$@" "$key"
}

# through_proxy: RLOCK_URL leads through one that may lose answers.
through_proxy() {
    start_proxy "$1" 127.0.0.1:0 "127.0.0.1:$(database_port "$DATABASE")"
    RLOCK_URL=$DATABASE://locker:p%20w@${proxy[$1]}/locks
}

@test "H91 in a database a count is counted once, whatever becomes of its answer" {
    each_database
    local often=(--connect-timeout 2s --server-wait 30s)
    through_proxy "$DATABASE"
    fault_of "$DATABASE" on up latch/1 drop down
    run -0 rlock latch set "${often[@]}" k 3
    is_left k 3
    fault_of "$DATABASE" on up ' d:worker' drop down
    prints 0 2 latch count-down "${often[@]}" --id worker k
    fault_of "$DATABASE" on up ' r:' drop down
    prints 0 1 latch count-down "${often[@]}" k
    is_left k 1
    fault_of "$DATABASE" on up rlock/1 drop down
    run -0 rlock latch delete "${often[@]}" k
    run -1 rlock latch status k
    # Each of them was asked for twice.
    [[ $(fault_of "$DATABASE" stats) =~ accepted\ ([0-9]+) ]]
    ((BASH_REMATCH[1] >= 11))
}

@test "H90 waiters for a latch in a database continue when it is open, and not before" {
    on_each waiters_go_on
}

# expire KEY: its time is over by what the row says.
expire() {
    case $DATABASE in
    postgresql) database_sql postgresql "UPDATE rlock_record SET version = version + 1, expires = 1,
        state = regexp_replace(state, '^(\\S+ \\S+) [0-9]+', '\\1 1')
        WHERE name = 'rlock:{$1}'" ;;
    mysql) database_sql mysql "UPDATE rlock_record SET version = version + 1, expires = 1,
        state = REGEXP_REPLACE(state, '^([^ ]+ [^ ]+) [0-9]+', '\\\\1 1')
        WHERE name = 'rlock:{$1}'" ;;
    esac
}

@test "H90 a latch in a database expires, or is lost: its waiter ends with 1, and it is missing" {
    each_database
    rlock latch set --ttl 1h k 1
    run -75 rlock latch status --json k
    json '.ttl_left_ms > 3500000 and .ttl_left_ms <= 3600000'
    wait_for w k
    expire k
    ends_with w 1
    contains "$T/w.err" vanished
    # An open one, too.
    rlock latch set --ttl 1h l 1
    rlock latch count-down l
    run -0 rlock latch wait -n l
    expire l
    run -1 rlock latch status -q l
    run -75 rlock latch wait -n l
    run -0 rlock latch list --json
    json '. == []'
    run -0 rlock run -n k l -- true
    rlock latch set --ttl 1h m 1
    wait_for w m
    for table in $(database_tables "$DATABASE"); do
        database_sql "$DATABASE" "DELETE FROM $table"
    done
    ends_with w 1
    contains "$T/w.err" vanished
}

@test "waiting for a latch survives a restart of the database" {
    each_database
    rlock latch set k 2
    wait_for w k
    database_kill "$DATABASE"
    poll_until 30 contains "$T/w.err" 'cannot reach'
    run -69 rlock latch count-down --server-wait 0 k
    database_start "$DATABASE"
    rlock latch count-down k 2
    ends_with w 0 30
}

@test "a latch and a lock never share a row, nor either with what a later version may have there" {
    each_database
    rlock latch set k 1
    says 78 'the key is a latch; rlock latch status shows it$' run k -- touch "$T/ran"
    hold a lock
    says 78 'the key is a lock, .* rlock status shows it$' latch set lock 1
    held lock
    is_left k 1
    database_sql "$DATABASE" "INSERT INTO rlock_record VALUES ('rlock:{new}', 1, 0,
        'rlock/1 hash 0
k latch/2
')"
    run -78 rlock latch wait -w 5s new
    run -78 rlock latch set new 1
    run -78 rlock run -n new -- true
}

@test "many count down at the same time, and each counts once" {
    each_database
    rlock latch set k 12
    for i in {1..12}; do
        bg "c$i" rlock latch count-down --server-wait 2m k
        bg "d$i" rlock latch count-down --server-wait 2m --id one k
    done
    for i in {1..12}; do
        ends_with "c$i" 0 30
        ends_with "d$i" 0 30
    done
    run -0 rlock latch status --json k
    json '.unnamed + (.ids | length) == 12 and .left == 0'
}
