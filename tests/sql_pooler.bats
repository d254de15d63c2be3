# PostgreSQL behind a pooler that gives each transaction to another session: nothing may depend on
# the session, and who waits cannot be called. pooler_make SESSIONS: so many for all clients.

load helper
load databases

setup_file() {
    type pgbouncer >/dev/null 2>&1 || return 0
    databases_start
    [[ $DATABASES == *postgresql* ]] || return 0
    pooler_make 3
}

setup() {
    start_test
    type pgbouncer >/dev/null 2>&1 || skip "pgbouncer is not here"
    [[ $DATABASES == *postgresql* ]] || skip "PostgreSQL with its driver is not here"
    export RLOCK_URL
    RLOCK_URL=$(pooler_url)
}

teardown_file() {
    [[ -z ${POOLER_PORT-} ]] || pooler_kill
    databases_end
}

# pooler_make SESSIONS [MODE]: so many for all, at a port of its own. Each transaction may have
# another one, or whatever MODE says.
pooler_make() {
    local dir=$BATS_FILE_TMPDIR/pooler
    mkdir -p "$dir"
    POOLER_PORT=$(free_ports 1)
    export POOLER_PORT
    echo '"locker" "p w"' >"$dir/users"
    printf '%s\n' '[databases]' "locks = host=127.0.0.1 port=$POSTGRESQL_PORT" '[pgbouncer]' \
        'listen_addr = 127.0.0.1' "listen_port = $POOLER_PORT" 'unix_socket_dir =' \
        'auth_type = plain' "auth_file = $dir/users" "logfile = $dir/log" "pidfile = $dir/pid" \
        "pool_mode = ${2:-transaction}" "default_pool_size = $1" 'server_round_robin = 1' >"$dir/ini"
    ((EUID != 0)) || chown -R nobody "$dir"
    pooler_start
}

# pooler_start: starts PgBouncer, and waits until it answers.
pooler_start() {
    as_server pgbouncer -q -d "$BATS_FILE_TMPDIR/pooler/ini"
    poll_until 20 pooled_sql 'SELECT 1'
}

# pooler_kill: kills PgBouncer, and waits for its end.
pooler_kill() {
    local one
    one=$(cat "$BATS_FILE_TMPDIR/pooler/pid")
    kill -KILL "$one"
    poll_until 10 gone "$one"
    rm "$BATS_FILE_TMPDIR/pooler/pid"
}

# pooler_url: prints the address of the database by way of PgBouncer.
pooler_url() {
    echo "postgresql://locker:p%20w@127.0.0.1:$POOLER_PORT/locks"
}

pooled_sql() {
    PGPASSWORD='p w' psql -qAt -h 127.0.0.1 -p "$POOLER_PORT" -U locker -d locks -c "$1" 3>&-
}

# The pooler opens another session when all that it has are in use.
has_two_sessions() {
    local one ends=()
    for one in 1 2; do
        pooled_sql 'SELECT pg_sleep(0.2)' &
        ends+=($!)
    done
    wait "${ends[@]}"
    [[ $(database_sql postgresql "SELECT count(*) FROM pg_stat_activity
        WHERE usename = 'locker'") == 2 ]]
}

@test "ten that want the same lock have it one after the other" {
    one_after_the_other 10
}

@test "first come, first served, although no waiter can be called" {
    stay holder k
    queue a k
    queue b k
    ends_well holder
    in_turn 10 a b
}

@test "a waiter has the lock of a killed holder soon after the lease" {
    hold a k --lease 9s
    queued k bg b rlock run k -- true
    kill_both a
    ends_with b 0 30
}

@test "the pooler is killed and comes back: the lock stays, and so does the place in the queue" {
    stay a k
    queue b k
    pooler_kill
    pooler_start
    ends_well a
    in_turn 10 b
}

# Each session in turn.
most_channels() {
    local i
    for i in {1..6}; do
        pooled_sql 'SELECT count(*) FROM pg_listening_channels()'
    done | sort -n | tail -n 1
}

@test "a session of the pooler listens for its latest waiter, not for all that there were" {
    local i
    for i in {1..6}; do
        hold "a$i" "k$i"
        queue "b$i" "k$i"
        terminate "a$i"
        ends_with "b$i" 0
    done
    (($(most_channels) == 1))
}

@test "the doctor sees that sessions are shared out, be they two in turn" {
    run rlock doctor
    [[ $output == *"warning  wake-up      a connection pooler is in between"* ]]
    pooler_kill
    pooler_make 2
    RLOCK_URL=$(pooler_url)
    poll_until 20 has_two_sessions
    run rlock doctor
    [[ $output == *"warning  wake-up      a connection pooler is in between"* ]]
    run rlock doctor -u "$(database_url postgresql)"
    [[ $output == *"fine     wake-up      waiters are called by NOTIFY"* ]]
}

@test "a pooler that gives each statement another session is refused at once" {
    pooler_kill
    pooler_make 3 statement
    RLOCK_URL=$(pooler_url)
    refused 69 run --server-wait 60s k -- touch "$T/ran"
    stderr_line '^rlock: k: .*: a pooler gives each statement another session \(pool_mode=statement\)'
    pooler_kill
    pooler_make 3
}
