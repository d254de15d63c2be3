# PostgreSQL with a synchronous standby: granted locks are there when it is promoted.
# wait_for_standbys NAME: each commit waits for the standby NAME, which is not there, or for none;
# cancel_waits: what waits for it is cancelled. fails_over HOW BACK: the primary is unfit, by the
# command HOW until BACK, and the standby takes its place under a holder and its waiter.

load helper
load databases
load standbys

setup_file() {
    databases_start
    [[ $DATABASES == *postgresql* ]] || return 0
    echo 'local replication all trust' >>"$BATS_FILE_TMPDIR/postgresql/data/pg_hba.conf"
    database_sql postgresql 'SELECT pg_reload_conf()' >/dev/null
}

setup() {
    start_test
    [[ $DATABASES == *postgresql* ]] || skip 'there is no PostgreSQL'
    # Two servers begin, and answer: on a slow machine, that takes longer than five seconds.
    export DATABASE=postgresql RLOCK_URL RLOCK_SERVER_WAIT=1m
    RLOCK_URL=$(database_url postgresql)
}

# Changes of one test are not there for the next.
teardown() {
    [[ $DATABASES == *postgresql* ]] || return 0
    splitter_kill
    standby_kill
    wait_for_standbys ''
    databases_reset
}

teardown_file() {
    standby_kill
    databases_end
}

# splitter_start: Pgpool-II, which sends to the standby whatever is read outside of a transaction.
splitter_start() {
    local dir=$T/splitter control
    mkdir "$dir"
    read -r SPLITTER_PORT control <<<"$(free_ports 2 | xargs)"
    printf '%s\n' "listen_addresses = '127.0.0.1'" "port = $SPLITTER_PORT" \
        "socket_dir = '$dir'" "pcp_socket_dir = '$dir'" "pcp_port = $control" \
        "pid_file_name = '$dir/pid'" "logdir = '$dir'" "work_dir = '$dir'" \
        "backend_clustering_mode = 'streaming_replication'" 'num_init_children = 4' \
        "backend_hostname0 = '$BATS_FILE_TMPDIR/postgresql'" "backend_port0 = $POSTGRESQL_PORT" \
        'backend_weight0 = 0' "backend_hostname1 = '$dir/../standby'" \
        "backend_port1 = $STANDBY_PORT" 'backend_weight1 = 1' 'load_balance_mode = on' \
        "sr_check_user = 'root'" 'statement_level_load_balance = on' >"$dir/conf"
    ((EUID != 0)) || chown -R nobody "$dir"
    echo "$dir/pid" >"$BATS_FILE_TMPDIR/splitter"
    as_server pgpool -n -f "$dir/conf" -F "$dir/pcp" -a "$dir/hba" >"$dir/log" 2>&1 &
    disown
    poll_until 30 psql -qAt -h 127.0.0.1 -p "$SPLITTER_PORT" -U locker -d locks -c 'SELECT 1' || {
        tail -n 30 "$dir/log"
        return 1
    }
}

splitter_kill() {
    local one
    one=$(cat "$(cat "$BATS_FILE_TMPDIR/splitter" 2>/dev/null)" 2>/dev/null) || return 0
    kill -INT "$one" 2>/dev/null || true # its children end with it
    poll_until 20 gone "$one"
    rm "$BATS_FILE_TMPDIR/splitter"
}

# Cancels what waits for a standby; fails where nothing does.
cancel_waits() {
    (($(database_sql postgresql "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
        WHERE wait_event = 'SyncRep'") > 0))
}

@test "H146 a wait for the standby that is cancelled is not a grant, though it is a success" {
    # PostgreSQL waits for a standby of that name, which does not exist. A commit whose wait is
    # cancelled is done on the primary, with a warning: rlock asks again, and is cancelled again.
    wait_for_standbys nobody
    bg a rlock run --lease 30s k -- touch "$T/ran"
    poll_until 20 cancel_waits
    poll_until 20 cancel_waits
    poll_until 10 contains "$T/a.err" 'synchronous replication'
    [[ ! -e $T/ran ]]
    wait_for_standbys ''
    finish a 60
    [[ $status == 0 && -e $T/ran ]]
}

# An administrator may have chosen for all others that a commit does not wait for the standby.
@test "H146 H168 a lock waits for the standby where no other commit does" {
    local one
    for one in local off; do
        database_sql postgresql "ALTER DATABASE locks SET synchronous_commit = $one"
        wait_for_standbys nobody
        bg a rlock run k -- touch "$T/ran"
        poll_until 20 cancel_waits
        [[ ! -e $T/ran ]]
        wait_for_standbys ''
        ends_with a 0 60
        rm "$T/ran"
    done
    database_sql postgresql 'ALTER DATABASE locks RESET synchronous_commit'
}

# client_min_messages of the administrator's would hide the warning.
@test "H146 H168 a cancelled wait for the standby grants nothing where sessions hear only errors" {
    database_sql postgresql 'ALTER DATABASE locks SET client_min_messages = error'
    wait_for_standbys nobody
    bg a rlock run k -- touch "$T/ran"
    poll_until 20 cancel_waits
    poll_until 10 contains "$T/a.err" 'synchronous replication'
    [[ ! -e $T/ran ]]
    wait_for_standbys ''
    ends_with a 0 60
    database_sql postgresql 'ALTER DATABASE locks RESET client_min_messages'
}

# fence: the primary refuses writes. unfence: it takes them again.
fence() {
    database_sql postgresql 'ALTER SYSTEM SET default_transaction_read_only = on'
    database_sql postgresql 'SELECT pg_reload_conf()' >/dev/null
}

# fails_over HOW TO BACK: behind a proxy the primary is unfit, by the command HOW, and the standby
# takes its place: a holder and its waiter notice that by themselves. BACK undoes it.
fails_over() {
    local url=$RLOCK_URL
    standby_start
    start_proxy proxy 127.0.0.1:0 "127.0.0.1:$POSTGRESQL_PORT"
    RLOCK_URL=${RLOCK_URL/127.0.0.1:$POSTGRESQL_PORT/${proxy[proxy]}}
    stay a k
    queued k bg b rlock run k -- true
    $1
    standby 'SELECT pg_promote()' >/dev/null
    fault target "127.0.0.1:$STANDBY_PORT"
    RLOCK_URL=${url/$POSTGRESQL_PORT/$STANDBY_PORT}
    renewed k
    ends_well a
    ends_with b 0 30
    $2
    [[ $(<"$T/a.err") != *lost* ]]
}

@test "H166 the primary is fenced behind a proxy, the standby promoted: no lock is lost" {
    fails_over fence unfence
}

unfence() {
    database_sql postgresql 'ALTER SYSTEM RESET default_transaction_read_only'
    database_sql postgresql 'SELECT pg_reload_conf()' >/dev/null
}

@test "H166 the primary freezes behind a proxy, the standby is promoted: no lock is lost" {
    fails_over 'main_processes STOP' 'main_processes CONT'
}

@test "H166 a standby is told from the primary, in words, and waited for" {
    standby_start
    RLOCK_URL=${RLOCK_URL/$POSTGRESQL_PORT/$STANDBY_PORT}
    says 69 'read-only; locks live on the primary$' run --server-wait 0 k -- touch "$T/ran"
    run -69 rlock doctor
    [[ $output == *'unfit    role         it is read-only, and takes no locks'* ]]
    bg a rlock run k -- true
    poll_until 20 contains "$T/a.err" 'read-only; locks live on the primary; trying again'
    standby 'SELECT pg_promote()' >/dev/null
    ends_with a 0 60
    [[ ! -e $T/ran ]]
}

# five_are_granted: five runs or more have printed that they hold their locks.
five_are_granted() { (($(cat "$T"/a*.out | wc -l) >= 5)); }

@test "H146 a synchronous standby is promoted: no lock that was granted is free" {
    local i granted=0
    standby_start
    for i in {1..30}; do
        bg "a$i" rlock acquire --lease 600s --connect-timeout 2m --server-wait 2m "k$i"
    done
    poll_until 60 five_are_granted
    database_kill postgresql
    standby 'SELECT pg_promote()' >/dev/null
    for i in {1..30}; do
        ! alive "${pid[a$i]}" || kill "${pid[a$i]}" || true
    done
    for i in {1..30}; do
        finish "a$i" 60
        ((status == 0)) || continue
        granted=$((granted + 1))
        refused 75 run -u "${RLOCK_URL/$POSTGRESQL_PORT/$STANDBY_PORT}" -n "k$i" -- touch "$T/ran"
    done
    echo "$granted were granted"
    ((granted > 0)) && [[ ! -e $T/ran ]]
}

@test "a proxy has a standby answer reads: the doctor says so, and the lock holds" {
    type pgpool >/dev/null 2>&1 || skip 'pgpool is not here'
    standby_start
    run rlock doctor
    [[ $output == *"fine     reads        the server that takes the writes answers the reads"* ]]
    splitter_start
    RLOCK_URL=postgresql://locker:p%20w@127.0.0.1:$SPLITTER_PORT/locks
    run rlock doctor
    [[ $output == *"warning  reads        a proxy has another server answer reads"* ]]
    hold a k
    refused 75 run -u "${RLOCK_URL/$SPLITTER_PORT/$POSTGRESQL_PORT}" -n k -- true
    refused 75 run -n k -- true
}
