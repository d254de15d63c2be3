# PostgreSQL with a synchronous standby: what was granted is there when that one is promoted.

load helper
load certificates
load databases

setup_file() {
    databases_start
    [[ $DATABASES == *postgresql* ]] || return 0
    echo 'local replication all trust' >>"$BATS_FILE_TMPDIR/postgresql/data/pg_hba.conf"
    database_sql postgresql 'SELECT pg_reload_conf()' >/dev/null
}

setup() {
    start_test
    [[ $DATABASES == *postgresql* ]] || skip 'there is no PostgreSQL'
    export DATABASE=postgresql RLOCK_URL
    RLOCK_URL=$(database_url postgresql)
}

# What one test has changed is not there for the next.
teardown() {
    [[ $DATABASES == *postgresql* ]] || return 0
    standby_kill
    wait_for_standbys ''
    databases_reset
}

teardown_file() {
    standby_kill
    databases_end
}

# wait_for_standbys NAMES: a commit waits for these.
wait_for_standbys() {
    local main=$BATS_FILE_TMPDIR/postgresql/data
    echo "synchronous_standby_names = '$1'" >>"$main/postgresql.auto.conf"
    kill -HUP "$(head -n 1 "$main/postmaster.pid")" 2>/dev/null || true
}

standby() {
    psql -qAt -h "$T/standby" -p "$STANDBY_PORT" -U root -d locks -c "$1" 3>&-
}

standby_start() {
    local dir=$T/standby
    STANDBY_PORT=$(free_ports 1)
    echo "$dir" >"$BATS_FILE_TMPDIR/standby"
    chmod a+x "$T" "${T%/*}"
    mkdir "$dir"
    ((EUID != 0)) || chown nobody "$dir"
    as_server "$POSTGRESQL_BIN/pg_basebackup" -R -c fast -D "$dir/data" \
        -d "host=$BATS_FILE_TMPDIR/postgresql port=$POSTGRESQL_PORT user=root" >/dev/null
    as_server "$POSTGRESQL_BIN/postgres" -D "$dir/data" -k "$dir" -p "$STANDBY_PORT" \
        -c listen_addresses=127.0.0.1 -c shared_buffers=4MB -c fsync=off \
        -c cluster_name=second >>"$dir/log" 2>&1 &
    disown
    wait_for_standbys second
    poll_until 60 is_synchronous
}

is_synchronous() {
    [[ $(database_sql postgresql 'SELECT sync_state FROM pg_stat_replication') == sync ]]
}

standby_kill() {
    local file
    file=$(cat "$BATS_FILE_TMPDIR/standby" 2>/dev/null)/data/postmaster.pid
    [[ ! -e $file ]] || kill -KILL "$(head -n 1 "$file")" 2>/dev/null || true
    rm -f "$BATS_FILE_TMPDIR/standby"
}

# Cancels what waits for a standby; fails where nothing does.
cancel_waits() {
    (($(database_sql postgresql "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
        WHERE wait_event = 'SyncRep'") > 0))
}

@test "H146 a wait for the standby that is cancelled is not a grant, though it is a success" {
    wait_for_standbys nobody
    bg a rlock run --server-wait 60s --lease 30s k -- touch "$T/ran"
    poll_until 20 cancel_waits
    poll_until 20 cancel_waits
    poll_until 10 contains "$T/a.err" 'synchronous replication'
    [[ ! -e $T/ran ]]
    wait_for_standbys ''
    finish a 60
    [[ $status == 0 && -e $T/ran ]]
}

@test "H146 a synchronous standby is promoted: no lock that was granted is free" {
    local i granted=0
    standby_start
    for i in {1..30}; do
        bg "a$i" rlock acquire --lease 600s --server-wait 0 "k$i"
    done
    poll_until 20 test -s "$T/a5.out"
    database_kill postgresql
    standby 'SELECT pg_promote()' >/dev/null
    for i in {1..30}; do
        finish "a$i" 30
        ((status == 0)) || continue
        granted=$((granted + 1))
        refused 75 run -u "${RLOCK_URL/$POSTGRESQL_PORT/$STANDBY_PORT}" -n "k$i" -- touch "$T/ran"
    done
    echo "$granted were granted"
    ((granted > 0)) && [[ ! -e $T/ran ]]
}
