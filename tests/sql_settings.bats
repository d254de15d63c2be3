#!/usr/bin/env bats
# Settings that an administrator of a database has made for all sessions: none of them disturbs a
# lock, but the one that nothing should be written is obeyed. each_database: what follows is done
# with each of them. for_all_sessions SETTING...: of those that begin from now on, or, without one,
# as it was; round N: each setting with its N-th value; all_left: no connection of $T/before is
# there.
load helper
load databases
load places

setup_file() {
    databases_start
}

teardown() {
    [[ ! $DATABASE ]] || server_only_reads off
    for_all_sessions
    databases_reset
}

# Settings that an administrator may have made for other programs, each as bad for rlock as can be.
POSTGRESQL_SETTINGS="statement_timeout = '200ms'
lock_timeout = '20ms'
idle_in_transaction_session_timeout = '1h'
idle_session_timeout = '300ms'
default_transaction_isolation = 'serializable'
default_transaction_deferrable = on
synchronous_commit = off
client_min_messages = error
client_min_messages = debug5
exit_on_error = on
standard_conforming_strings = off
backslash_quote = off
bytea_output = escape
DateStyle = 'SQL, DMY'
IntervalStyle = sql_standard
TimeZone = 'Asia/Kathmandu'
extra_float_digits = -15
row_security = off
array_nulls = off
transform_null_equals = on
quote_all_identifiers = on
client_encoding = LATIN1"
MYSQL_SETTINGS="idle_transaction_timeout = 60
idle_write_transaction_timeout = 60
idle_readonly_transaction_timeout = 60
wait_timeout = 1
interactive_timeout = 1
innodb_lock_wait_timeout = 1
lock_wait_timeout = 1
max_statement_time = 0.3
net_read_timeout = 1
net_write_timeout = 1
sql_mode = ''
sql_mode = 'ANSI,ORACLE,MSSQL,DB2,MAXDB,POSTGRESQL,NO_BACKSLASH_ESCAPES,NO_ZERO_DATE,EMPTY_STRING_IS_NULL,SIMULTANEOUS_ASSIGNMENT,PAD_CHAR_TO_FULL_LENGTH,HIGH_NOT_PRECEDENCE,NO_UNSIGNED_SUBTRACTION,TIME_ROUND_FRACTIONAL,NO_AUTO_VALUE_ON_ZERO'
autocommit = 0
completion_type = 'CHAIN'
completion_type = 'RELEASE'
tx_isolation = 'READ-UNCOMMITTED'
tx_isolation = SERIALIZABLE
sql_safe_updates = 1
sql_select_limit = 1
sql_big_selects = 0
max_join_size = 1
foreign_key_checks = 0
unique_checks = 0
low_priority_updates = 1
character_set_client = latin1
character_set_connection = latin1
character_set_results = latin1
collation_connection = utf8mb4_turkish_ci
init_connect = 'SET autocommit = 0, completion_type = 2, tx_isolation = SERIALIZABLE'
time_zone = '+05:45'
lc_messages = ru_RU
sql_auto_is_null = 1
group_concat_max_len = 4"

settings() {
    [[ $DATABASE == postgresql ]] && echo "$POSTGRESQL_SETTINGS" || echo "$MYSQL_SETTINGS"
}

# for_all_sessions [SETTING...]: of those that begin from now on. None: as it was.
for_all_sessions() {
    local one
    case $DATABASE in
    postgresql)
        database_sql postgresql 'ALTER DATABASE locks RESET ALL' postgres
        for one in "$@"; do
            database_sql postgresql "ALTER DATABASE locks SET $one" postgres 2>"$T/refused" ||
                contains "$T/refused" unrecognized
        done
        ;;
    mysql)
        if (($# == 0)); then
            cut -d ' ' -f 1 <<<"$MYSQL_SETTINGS" | sort -u >"$T/names"
            mapfile -t names <"$T/names"
            set -- "${names[@]/%/ = DEFAULT}" 'read_only = 0' 'tx_read_only = 0'
        fi
        for one in "$@"; do
            database_sql mysql "SET GLOBAL $one" 2>"$T/refused" || contains "$T/refused" 'Unknown'
        done
        ;;
    esac
}

# A lock is taken, queued for, handed over, released and looked at, in little time.
locks_work() {
    hold a k
    queue b k
    run -0 --separate-stderr rlock status
    [[ $output == *$'\nk '* && ! $stderr ]]
    terminate a
    ends_with b 0
    is_free k
}

# round NUMBER: each setting with its first value, or with its second one.
round() {
    settings | awk -v number="$1" '++seen[$1] == number'
}

# For each database: settings of a session that may change what a statement of rlock means, in two
# rounds of values, are made the default for all sessions.
@test "H168 whatever a session's settings are by default, locks work" {
    each_database
    for number in 1 2; do
        mapfile -t some < <(round "$number")
        printf -- '-- %s\n' "${some[@]}"
        for_all_sessions "${some[@]}"
        locks_work
        for_all_sessions
    done
}

# run_a_held_back NAME KEY: its transaction stands still in front of what it writes, until "let_go".
run_a_held_back() {
    relay_to_database 'INSERT INTO' "$T/go"
    bg "$1" rlock run -u "$through" --server-wait 60s "$2" -- true
    poll_until 20 test -e "$T/go.held"
}

TIME_OUTS='timeout|max_statement_time'

@test "H168 no time-out of a session ends a wait for a turn, or lets others stand still" {
    each_database
    mapfile -t all < <(settings | grep -E "$TIME_OUTS" | grep -v ^idle_session)
    for_all_sessions "${all[@]}"
    run_a_held_back a k
    # The end of a by the server is waited for, and nothing else.
    run -0 --separate-stderr rlock run -n --server-wait 0 k -- echo ran
    [[ $output == ran && ! $stderr ]]
    : >"$T/go"
    ends_with a 0 30
}

# only_reads: new sessions, as a provider says where a disk is full.
only_reads() {
    case $DATABASE in
    postgresql) for_all_sessions 'default_transaction_read_only = on' ;;
    mysql) for_all_sessions 'tx_read_only = 1' ;;
    esac
}

# A server whose transactions only read by default is treated as a replica: refused, or waited for
# until that has ended.
@test "H166 H168 the word that nothing is written is obeyed: by default transactions only read" {
    each_database
    only_reads
    says 69 'read-only; locks live on the primary$' run --server-wait 0 k -- touch "$T/ran"
    run -0 rlock status
    run -69 rlock doctor
    [[ $output == *'unfit    role         transactions are read-only by default'* ]]
    bg a rlock run --server-wait 60s k -- touch "$T/a.ran"
    poll_until 20 contains "$T/a.err" 'read-only; locks live on the primary; trying again'
    for_all_sessions
    ends_with a 0 60
    [[ ! -e $T/ran && -e $T/a.ran ]]
}

# server_only_reads [off]: sessions that are there, too.
server_only_reads() {
    case $DATABASE in
    postgresql)
        database_sql postgresql "ALTER SYSTEM SET default_transaction_read_only = ${1:-on}"
        database_sql postgresql 'SELECT pg_reload_conf()' >/dev/null
        ;;
    mysql) database_sql mysql "SET GLOBAL read_only = ${1:-on}" ;;
    esac
}

# The numbers of the connections that rlocks have.
connections() {
    local -A list=(
        [postgresql]="SELECT pid FROM pg_stat_activity WHERE usename = 'locker'"
        [mysql]="SELECT id FROM information_schema.processlist WHERE user = 'locker'")
    database_sql "$DATABASE" "${list[$DATABASE]}" | sort
}

# all_left: none of those in $T/before is there.
all_left() {
    [[ ! $(comm -12 "$T/before" <(connections)) ]]
}

@test "H166 a server that has become read-only is left and asked again; no lock is lost" {
    each_database
    stay a k
    queued k bg b rlock run k -- true
    connections >"$T/before"
    [[ $(wc -l <"$T/before") -ge 2 ]]
    server_only_reads
    poll_until 25 all_left
    run -69 rlock doctor
    [[ $output == *'unfit    role '* ]]
    server_only_reads off
    renewed k
    ends_well a
    ends_with b 0 30
}

@test "H168 a search_path that has led nowhere for a moment costs no lock" {
    with_database postgresql
    stay a k
    for_all_sessions 'search_path = nowhere'
    database_sql postgresql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE usename = 'locker'" >/dev/null
    poll_until 25 contains "$T/a.err" 'has no tables'
    for_all_sessions
    renewed k
    ends_well a
}

@test "H168 init makes its tables and its view whatever strings look like by default" {
    with_database postgresql
    for_all_sessions 'standard_conforming_strings = off'
    RLOCK_URL+='?table=unlike'
    run -0 rlock init
    hold a k
    [[ $(database_sql postgresql "SELECT key, role FROM unlike_locks") == 'k|holder' ]]
    terminate a
}

# Whether a session waits for other nodes can only be seen in what is sent: no test has a cluster.
@test "H166 a node of Galera is told to wait for what others have committed before it is read" {
    with_database mysql
    local several
    relay_to_database 'wsrep_sync_wait = 1, wsrep_dirty_reads = 0' "$T/go"
    several=${through/\/locks/,127.0.0.1:$(free_ports 1)/locks}
    for url in "$through" "$several"; do
        rm -f "$T/go" "$T/go.held"
        bg a rlock run -u "$url" --server-wait 60s k -- true
        poll_until 20 test -e "$T/go.held"
        : >"$T/go"
        ends_with a 0 30
    done
}

# The variable's name is another one of the same length in this copy of the driver.
@test "H166 a server that has no word for what a node of Galera is told does without it" {
    with_database mysql
    own_driver "exec '$T/own/other'"
    sed 's/wsrep_sync_wait/wsrep_sync_what/g' "${RLOCK%/*}/rlock-mysql" >"$T/own/other"
    chmod +x "$T/own/other"
    contains "$T/own/other" wsrep_sync_what
    RLOCK=$OWN
    for RLOCK_URL in "$RLOCK_URL" "${RLOCK_URL/\/locks/,127.0.0.1:$(free_ports 1)/locks}"; do
        refused 0 run k -- true
    done
}

@test "H168 place: a database whose time-outs and modes are all set" {
    for DATABASE in $DATABASES; do
        for number in 1 2; do
            with_database "$DATABASE"
            mapfile -t some < <(round "$number")
            for_all_sessions "${some[@]}"
            run_rlock_under env
            keeps_promises
            for_all_sessions
        done
    done
}
