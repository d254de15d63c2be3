#!/usr/bin/env bats
# docs/databases.md: each server that the page sets up is set up as it says, filled with locks,
# killed and started again, and each other block of code is done there. A command that does not
# work, a lock that is forgotten, or a finding of the doctor fails. steps_of HEADING: the steps of
# that section, in $T/steps; do_steps does them; make_server: an empty server, with Debian's files.
# keeps_all_over_a_kill: all locks are as before when the server was killed and has started again.

load helper
load databases
load restarts

setup_file() { clean_environment; }
teardown_file() { :; }

# The page is for Debian, root and other hosts; here all is in $T, on loopback.
setup() {
    start_test
    command -v openssl >/dev/null || skip "no openssl here"
}

teardown() {
    [[ -n $BATS_TEST_COMPLETED ]] || tail -n 30 "$T"/server.log 2>/dev/null || true
    kill_server
    end_processes
}

# steps_of HEADING [NUMBER]: the steps of that section, as they are here, in $T/steps.
steps_of() {
    "$TESTS/page_blocks" databases.md "$@" | sed "s|/etc/|$T/etc/|g; s|= '\*'|= '127.0.0.1'|
        s|= \*|= 127.0.0.1|; s|db.example.com|localhost|g
        s|^\(url = .*\)localhost|\1localhost:$PORT|" >"$T/steps"
}

stub() {
    mkdir -p "$T/bin"
    printf '#!/bin/bash\n%s\n' "$2" >"$T/bin/$1"
    chmod +x "$T/bin/$1"
}

# make_server DATABASE: an empty server of it, with Debian's files, and what the page calls.
make_server() {
    database_is_here "$1" || skip "no $1 with its driver here"
    KIND=$1
    read -r PORT <<<"$(free_ports 1)"
    chmod a+x "$T" "${T%/*}" "${T%/*/*}" 2>/dev/null || true
    mkdir -p "$T/bin" "$T/data" "$T/sock" "$T/etc/postgresql/17/main/conf.d" \
        "$T/etc/mysql/mariadb.conf.d"
    ((EUID != 0)) || chown nobody "$T/data" "$T/sock"
    : >"$T/etc/rlock.conf"
    ln -s "$RLOCK" "$T/bin/rlock"
    stub chown 'chmod 600 "$2"; ((EUID != 0)) || exec /bin/chown nobody "$2"'
    stub scp 'cp "${1#*:}" "$2"'
    stub su 'exec sh -c "$3"'
    stub service 'echo "$*" >>"'"$T"'/services"; : >"'"$T"'/restart"
        for i in {1..600}; do [[ ! -e "'"$T"'/restart" ]] && exit; sleep 0.1; done; exit 1'
    "make_$1"
    export PATH=$T/bin:$PATH RLOCK_CONFIG=$T/etc/rlock.conf XDG_STATE_HOME=$T/state
}

make_postgresql() {
    local main=$T/etc/postgresql/17/main
    as_server "$POSTGRESQL_BIN/initdb" -D "$T/data/main" -U postgres -A trust --no-sync >/dev/null
    printf '%s\n' 'local all all trust' >"$main/pg_hba.conf"
    printf '%s\n' "data_directory = '$T/data/main'" "hba_file = '$main/pg_hba.conf'" \
        "unix_socket_directories = '$T/sock'" "port = $PORT" 'shared_buffers = 4MB' \
        "include_dir = 'conf.d'" >"$main/postgresql.conf"
    export PGHOST=$T/sock PGPORT=$PORT PGUSER=postgres
}

make_mysql() {
    as_server mariadb-install-db --no-defaults --datadir="$T/data" --tmpdir="$T/data" \
        --auth-root-authentication-method=normal --skip-test-db >/dev/null
    printf '%s\n' '[mariadbd]' "datadir = $T/data" "tmpdir = $T/data" "socket = $T/sock/sock" \
        "port = $PORT" "pid-file = $T/data/pid" 'innodb-buffer-pool-size = 16M' \
        "!includedir $T/etc/mysql/mariadb.conf.d" >"$T/etc/mysql/my.cnf"
    stub mariadb 'exec /usr/bin/mariadb --no-defaults -N -S "'"$T"'/sock/sock" -u root "$@"'
    [[ ! -x /usr/bin/mariadb-dump ]] || stub mariadb-dump \
        'exec /usr/bin/mariadb-dump --no-defaults -S "'"$T"'/sock/sock" -u root "$@"'
}

run_server() {
    case $KIND in
    postgresql)
        as_server "$POSTGRESQL_BIN/postgres" -D "$T/etc/postgresql/17/main" \
            -c config_file="$T/etc/postgresql/17/main/postgresql.conf"
        ;;
    mysql) as_server mariadbd --defaults-file="$T/etc/mysql/my.cnf" ;;
    esac
}

sql() {
    case $KIND in
    postgresql) psql -qAt -d "${2:-locks}" -c "$1" 3>&- ;;
    mysql) mariadb "${2:-locks}" -e "$1" 3>&- ;;
    esac
}

answers() {
    local -A own=([postgresql]=postgres [mysql]=mysql)
    [[ $(sql 'SELECT 1' "${own[$KIND]}" 2>&1) == 1 ]]
}

start_server() {
    run_server >>"$T/server.log" 2>&1 &
    disown
    poll_until 60 answers
}

# As a power failure does.
kill_server() {
    local main one children
    main=$(head -n 1 "$T/data/main/postmaster.pid" "$T/data/pid" 2>/dev/null |
        grep -m 1 -x '[0-9]*') || return 0
    mapfile -t children < <(children_of "$main")
    kill -KILL "$main" 2>/dev/null || true
    for one in "$main" "${children[@]}"; do
        poll_until 20 gone "$one"
    done
}

# do_steps: does the steps. A "service" in them restarts the server.
do_steps() {
    bg steps bash -e -o pipefail "$T/steps"
    poll_until 60 test -e "$T/restart"
    kill_server
    start_server
    rm "$T/restart"
    finish steps 60
    [[ $status == 0 ]] || {
        cat "$T/steps" "$T/steps.out" "$T/steps.err"
        return 1
    }
}

# configure_host [SCRIPT]: the section about hosts, edited so.
configure_host() {
    steps_of 'Each host' 1
    sed -i "${1-}" "$T/steps"
    [[ $(tail -n 1 "$T/steps") == 'rlock doctor' ]]
    sed -i '$d' "$T/steps"
    bash -e -o pipefail "$T/steps"
    run -0 --separate-stderr rlock doctor
}

# do_other_blocks: does the blocks about connections, locks in SQL, and backups. The server has been
# set up.
do_other_blocks() {
    local -A comment=([postgresql]='-- PostgreSQL' [mysql]='-- MySQL')
    local -A dump=([postgresql]=pg_dump [mysql]=mariadb-dump)
    steps_of Connections 1
    sql "$(grep -e "${comment[$KIND]}" "$T/steps")"
    [[ $(rlock doctor) == *'this user may have 200'* ]]
    steps_of 'Locks in SQL' 1
    [[ $KIND == mysql ]] || sql 'CREATE ROLE reporting'
    [[ $KIND == postgresql ]] || sql "CREATE USER reporting@'%'"
    stay seen seen-lock
    [[ $(sql "$(<"$T/steps")") == *seen-lock*holder* ]]
    ends_well seen
    steps_of Backups 1
    type "${dump[$KIND]}" >/dev/null 2>&1 || return 0
    (cd "$T" && sh -ec "$(grep "^${dump[$KIND]} " "$T/steps")")
    grep -q rlock_record "$T/locks.sql"
}

# The page has what matters of the pooler's file; its port and its users are of this test.
do_pooler_block() {
    type pgbouncer >/dev/null 2>&1 || return 0
    local port
    read -r port <<<"$(free_ports 1)"
    steps_of 'Behind a pooler' 1
    sed -i "s/port=5432/port=$PORT/" "$T/steps"
    echo '"rlock" "PASSWORD"' >"$T/sock/users"
    printf '%s\n' 'listen_addr = 127.0.0.1' "listen_port = $port" 'unix_socket_dir =' \
        'auth_type = plain' "auth_file = $T/sock/users" "pidfile = $T/sock/pid" \
        "logfile = $T/sock/log" >>"$T/steps"
    as_server pgbouncer -q -d "$T/steps"
    local url=postgresql://rlock@127.0.0.1:$port/locks
    run -0 rlock run -u "$url" --server-wait 20s k -- true
    run rlock doctor -u "$url"
    [[ $output == *'a connection pooler is in between'* ]]
    kill -KILL "$(cat "$T/sock/pid")"
}

@test "H157 a PostgreSQL that is set up as the page says keeps its locks; the doctor is content" {
    make_server postgresql
    steps_of 'A PostgreSQL server' 1
    do_steps
    [[ $(<"$T/services") == 'postgresql restart' ]]
    configure_host
    [[ $output == *'fine     encryption'* ]]
    keeps_all_over_a_kill
    do_other_blocks
    do_pooler_block
}

@test "H157 a MariaDB that is set up as the page says keeps its locks; the doctor is content" {
    make_server mysql
    steps_of 'A MariaDB or MySQL server' 1
    do_steps
    [[ $(<"$T/services") == 'mariadb restart' ]]
    configure_host 's|/etc/postgresql/|/etc/mysql/|; s|postgresqls:|mysqls:|'
    keeps_all_over_a_kill
    do_other_blocks
}
