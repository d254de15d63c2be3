# Database servers for the .bats files that need them, each in a directory of its own, as an
# ordinary user: PostgreSQL refuses to run as root. Loaded after helper. They take TLS, too, with a
# certificate for 127.0.0.1. chaos_databases.py calls some of these functions, without TLS.
# shellcheck shell=bash disable=SC2154

load certificates

POSTGRESQL_BIN=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)

# database_tables NAME: the tables that are empty after each test, besides DATABASE_TABLES.
database_tables() {
    [[ $1 == mysql ]] && echo rlock_record rlock_message || echo rlock_record
}

# database_all_tables NAME: these, and those that are never empty.
database_all_tables() {
    database_tables "$1"
    [[ $1 != mysql ]] || echo rlock_gate
}

# Where there is no server, each test is skipped.
setup() {
    start_test
    [[ -n $DATABASES ]] || skip "neither PostgreSQL nor MariaDB with its driver is here"
}

teardown() { databases_reset; }

databases_reset() {
    local name table
    [[ -n $BATS_TEST_COMPLETED ]] || tail -n 20 "$T"/*.err "$T"/*.log "$T"/log 2>/dev/null || true
    end_processes
    for name in $DATABASES; do
        database_answers "$name" || database_start "$name"
        for table in $(database_tables "$name") ${DATABASE_TABLES:-}; do
            database_sql "$name" "DELETE FROM $table"
        done
    done
}

teardown_file() { databases_end; }

databases_end() {
    database_kill postgresql
    database_kill mysql
}

# databases_start: for setup_file: those that can be had here. DATABASES names them; a server NAME
# is in $BATS_FILE_TMPDIR/NAME.
databases_start() {
    local name ports
    [[ -x $RLOCK ]] || { echo "no program $RLOCK" && false; }
    clean_environment
    read -r -a ports <<<"$(free_ports 2)"
    export POSTGRESQL_PORT=${ports[0]} MYSQL_PORT=${ports[1]} DATABASES=
    # Other users must reach them.
    chmod a+x "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" 2>/dev/null || true
    authority ca
    authority other
    certificate server ca subjectAltName=IP:127.0.0.1
    ((EUID != 0)) || chown nobody "$CERTS/server.key"
    for name in postgresql mysql; do
        database_is_here "$name" || continue
        database_make "$name"
        database_start "$name"
        database_users "$name" 'p w'
        RLOCK_URL=$(database_url "$name") "$RLOCK" init 3>&-
        DATABASES+=" $name"
    done
}

# with_database NAME: what comes next is with this server; skips the test where it is not here.
with_database() {
    [[ $DATABASES == *$1* ]] || skip "there is no $1 with its driver"
    echo "-- $1"
    export DATABASE=$1 RLOCK_URL
    RLOCK_URL=$(database_url "$1")
    rm -rf "${T:?}"/*
}

# relay_to_database OLD NEW, or WORD FILE: starts a relay to this server, as sql_relay.py has them.
# Sets "through", the URL by way of it.
relay_to_database() {
    local port
    port=$(database_port "$DATABASE")
    bg_prints relay python3 "$TESTS/sql_relay.py" "$port" "$@"
    through=${RLOCK_URL/:$port/:$(<"$T/relay.out")}
}

# on_each FUNCTION [ARGUMENT...]: with each server.
on_each() {
    local name
    for name in $DATABASES; do
        with_database "$name"
        "$@"
    done
}

# each_database: the first line of a test, which is done with each server: it is called once more
# for all but the last one, with which it then continues.
each_database() {
    local name
    [[ ! ${DATABASE-} ]] || return 0
    for name in $DATABASES; do
        with_database "$name"
        [[ $DATABASES == *"$name" ]] || "${FUNCNAME[1]}"
    done
}

# database_is_here NAME: it and its driver are installed.
database_is_here() {
    [[ -x ${RLOCK%/*}/rlock-$1 ]] || return 1
    case $1 in
    postgresql) [[ -x $POSTGRESQL_BIN/initdb ]] ;;
    mysql) type mariadbd mariadb-install-db mariadb >/dev/null 2>&1 ;;
    esac
}

# as_server COMMAND...: as a user that is not root, with the shim DATABASE_PRELOAD. EXEC=exec is set
# by a caller whose shell it replaces.
as_server() {
    local as=()
    ((EUID != 0)) || as=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
    ${EXEC-} "${as[@]}" env -u RLOCK_TEST_ID ${DATABASE_PRELOAD:+LD_PRELOAD="$DATABASE_PRELOAD"} "$@" 3>&-
}

database_make() {
    local dir=$BATS_FILE_TMPDIR/$1
    mkdir -p "$dir"
    ((EUID != 0)) || chown nobody "$dir"
    case $1 in
    postgresql)
        as_server "$POSTGRESQL_BIN/initdb" -D "$dir/data" -U root -A trust --no-sync >/dev/null
        printf '%s\n' 'local all all trust' 'host all all 127.0.0.1/32 scram-sha-256' \
            >"$dir/data/pg_hba.conf"
        ;;
    mysql)
        as_server mariadb-install-db --no-defaults --datadir="$dir/data" --tmpdir="$dir" \
            --auth-root-authentication-method=normal --skip-test-db >/dev/null
        ;;
    esac
}

# database_users NAME PASSWORD: of the user "locker".
database_users() {
    case $1 in
    postgresql)
        database_sql "$1" "CREATE ROLE locker LOGIN PASSWORD '$2'" postgres
        database_sql "$1" 'CREATE DATABASE locks OWNER locker' postgres
        ;;
    mysql)
        database_sql "$1" 'CREATE DATABASE locks' mysql
        database_sql "$1" "CREATE USER locker@'%' IDENTIFIED BY '$2'"
        database_sql "$1" "GRANT CREATE, SELECT, INSERT, UPDATE, DELETE ON locks.* TO locker@'%'"
        ;;
    esac
}

# change_password NEW: and ends all connections of the user.
change_password() {
    case $DATABASE in
    postgresql)
        database_sql postgresql "ALTER ROLE locker PASSWORD '$1'"
        database_sql postgresql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE usename = 'locker'" >/dev/null
        ;;
    mysql)
        database_sql mysql "ALTER USER locker@'%' IDENTIFIED BY '$1'"
        database_sql mysql 'KILL HARD USER locker'
        ;;
    esac
}

# On the data that there is, in place of this shell, whose parent reaps the server's first process
# then. PostgreSQL does not start while its predecessor is a zombie.
database_run() {
    local dir=$BATS_FILE_TMPDIR/$1 EXEC=exec
    case $1 in
    postgresql)
        as_server "$POSTGRESQL_BIN/postgres" -D "$dir/data" -k "$dir" -p "$POSTGRESQL_PORT" \
            -c listen_addresses=127.0.0.1 -c shared_buffers=4MB -c fsync=off \
            ${CERTS:+-c ssl=on -c ssl_cert_file="$CERTS/server.pem"} \
            ${CERTS:+-c ssl_key_file="$CERTS/server.key"}
        ;;
    mysql)
        as_server mariadbd --no-defaults --datadir="$dir/data" --tmpdir="$dir" \
            --socket="$dir/sock" --port="$MYSQL_PORT" --bind-address=127.0.0.1 --skip-name-resolve \
            --pid-file="$dir/mysql.pid" --innodb-buffer-pool-size=16M --innodb-log-file-size=8M \
            --innodb-flush-log-at-trx-commit=2 --performance-schema=off ${MYSQL_LOGS:+--server-id=1 --log-bin} \
            ${CERTS:+--ssl-ca="$CERTS/ca.pem" --ssl-cert="$CERTS/server.pem"} \
            ${CERTS:+--ssl-key="$CERTS/server.key"}
        ;;
    esac
}

# database_start KIND: starts that server, and waits until it answers.
database_start() {
    database_run "$1" >>"$BATS_FILE_TMPDIR/$1/log" 2>&1 &
    disown
    poll_until 60 database_answers "$1"
}

# Kills it, as a crash would.
database_kill() {
    local main one children
    main=$(head -n 1 "$BATS_FILE_TMPDIR/$1/data/postmaster.pid" "$BATS_FILE_TMPDIR/$1/mysql.pid" \
        2>/dev/null | grep -m 1 -x '[0-9]*') || return 0
    mapfile -t children < <(children_of "$main")
    kill -KILL "$main" 2>/dev/null || true
    for one in "$main" "${children[@]}"; do
        poll_until 20 gone "$one"
    done
}

# database_client NAME DATABASE [OPTION...]: an administrator's. A server that a test has left
# stopped is not waited for for ever.
database_client() {
    local dir=$BATS_FILE_TMPDIR/$1
    case $1 in
    postgresql) PGCONNECT_TIMEOUT=30 psql -qAt -h "$dir" -p "$POSTGRESQL_PORT" -U root -d "$2" "${@:3}" 3>&- ;;
    mysql) mariadb --no-defaults --connect-timeout=30 -N --unbuffered -S "$dir/sock" -u root "$2" "${@:3}" 3>&- ;;
    esac
}

# database_sql NAME SQL [DATABASE]: as an administrator.
database_sql() {
    local -A execute=([postgresql]=-c [mysql]=-e)
    database_client "$1" "${3:-locks}" "${execute[$1]}" "$2"
}

# database_answers KIND: that server answers a query.
database_answers() {
    local database=postgres
    [[ $1 == postgresql ]] || database=mysql
    [[ $(database_sql "$1" 'SELECT 1' "$database" 2>&1) == 1 ]]
}

# database_port KIND: prints its port.
database_port() {
    [[ $1 == postgresql ]] && echo "$POSTGRESQL_PORT" || echo "$MYSQL_PORT"
}

# database_url KIND: prints the address of its database, with user and password.
database_url() {
    echo "$1://locker:p%20w@127.0.0.1:$(database_port "$1")/locks"
}

# own_driver SCRIPT: the driver of $DATABASE is replaced by a shell script for the program $OWN; in
# it, DRIVER is the real one.
own_driver() {
    mkdir -p "$T/own"
    OWN=$T/own/rlock
    cp "$RLOCK" "$OWN"
    printf '#!/bin/sh\nDRIVER=%q\n%s\n' "${RLOCK%/*}/rlock-$DATABASE" "$1" \
        >"$T/own/rlock-$DATABASE"
    chmod +x "$T/own/rlock-$DATABASE"
}
