# Locks in a database: the same for PostgreSQL and for MariaDB, of which each test takes all that
# are here. each_database: what follows is done with each of them. relay_to_database OLD NEW: a
# server in between, at $through, which reads NEW where a client has written OLD; so a setting seems
# to be another one. with_database NAME: what follows is done with that one, or the test is skipped.

load helper
load databases
load waiters

setup_file() { databases_start; }

@test "a minimum version refuses older programs, of locks that are there and of new ones" {
    each_database
    run -0 rlock run there -- true
    run -0 rlock init --minimum-version 1.0.0
    run -0 rlock run there -- true
    says 0 'this rlock is .*, and cannot acquire any more' init --force --minimum-version 99.10.0
    for key in there new; do
        refused 78 run "$key" -- touch "$T/ran"
        stderr_line "^rlock: $key: the store asks for rlock 99.10.0 or newer; this is rlock "
    done
    prints 69 '*minimum *only by rlock 99.10.0 or newer*' doctor
    run -0 rlock init --minimum-version 0.0.0
    run -0 rlock run there -- true
    run -0 rlock run new -- true
}

@test "ten that want the same lock have it one after the other" {
    on_each one_after_the_other 10
}

@test "first come, first served; the next one is told, and one that gives up is passed over" {
    each_database
    stay holder k
    queue a k
    queue b k
    queue c k
    poll_until 10 contains "$T/a.err" 'you are next'
    status_json k '.[0].waiters | length == 3 and .[0].position == 1'
    terminate b
    ends_well holder
    in_turn 10 a c
}

@test "a holder that was killed blocks the others for its lease, and its command is dead by then" {
    each_database
    bg a rlock run --lease 9s k -- sh -c "echo \$\$ >'$T/a.pid'; exec sleep 1000"
    poll_until 10 test -s "$T/a.pid"
    bg b rlock run k -- sh -c "grep -qs ') [RSDT] ' /proc/$(<"$T/a.pid")/stat || echo b >'$LOG'"
    poll_until 15 has_waiters k 1
    kill_both a
    in_turn 30 b
}

@test "H119 KEYs that differ in capitals, an accent or the last of 512 bytes are different locks" {
    each_database
    long=$(printf 'x%.0s' {1..511})
    stay a deploy
    stay b "${long}a"
    for name in Deploy déploy deploy/ "$long" "${long}b"; do
        run -0 rlock run -n "$name" -- true
    done
    refused 75 run -n deploy -- true
    refused 75 run -n "${long}a" -- true
    refused 64 run -n "${long}ab" -- true
    ends_well a
    ends_well b
}

@test "H116 a server that was killed and started again: its locks are held as before" {
    each_database
    stay a k --lease 30s
    queue b k
    database_kill "$DATABASE"
    poll_until 30 contains "$T/b.err" 'cannot reach'
    database_start "$DATABASE"
    renewed k
    refused 75 run -n k -- true
    ends_well a
    in_turn 30 b
}

@test "PostgreSQL: a C library that sorts words in another order hides no lock" {
    with_database postgresql
    for one in {1..9}; do
        rlock run "k$one" -- true
    done
    rlock acquire --lease 1h k1
    rlock acquire --lease 1h k9
    database_kill postgresql
    DATABASE_PRELOAD=$RLOCK_TEST_TOOLS/shim_collate.so database_start postgresql
    refused 75 run -n k1 -- true
    refused 75 run -n k9 -- true
    database_kill postgresql
    database_start postgresql
}

@test "an agent that is killed: the next one continues; nothing is left of either driver" {
    each_database
    # The server knows who is connected to it.
    no_driver() {
        case $DATABASE in
        postgresql) [[ $(database_sql postgresql "SELECT count(*) FROM pg_stat_activity
            WHERE usename = 'locker'") == 0 ]] ;;
        mysql) [[ $(database_sql mysql "SELECT count(*) FROM information_schema.processlist
            WHERE user = 'locker'") == 0 ]] ;;
        esac
    }
    stay a k --lease 30s
    kill_agent a
    renewed k
    ends_well a
    poll_until 10 no_driver
}

@test "the password is in no argument, environment or message" {
    each_database
    hold a k
    one=$(children_of "$(agent_of "${pid[a]}")")
    [[ -n $one && ! -s /proc/$one/environ ]]
    [[ $(tr '\0' ' ' <"/proc/$one/cmdline") == "rlock-$DATABASE " ]]
    terminate a
    one=$DATABASE://locker:wrongpw@127.0.0.1:$(database_port "$DATABASE")/locks
    refused 77 run -u "$one" k -- true
    [[ $stderr != *wrongpw* && $stderr == *"127.0.0.1"* ]]
}

@test "H19 a changed password is read again from its file" {
    each_database
    local with_file=${RLOCK_URL/:p%20w@/@}
    with_file=${with_file/locker@/locker:@}
    printf 'p w\n' >"$T/password"
    stay a k -u "$with_file" --password-file "$T/password" --lease 12s
    printf 'another\n' >"$T/password"
    change_password another
    run -77 rlock status -q k
    RLOCK_PASSWORD=another RLOCK_URL=$with_file renewed k
    ends_well a
    change_password 'p w'
    run -0 rlock status -q k
}

# ask_radius PORT: PostgreSQL has a RADIUS server judge passwords from now on, and not itself.
ask_radius() {
    local rules=$BATS_FILE_TMPDIR/postgresql/data/pg_hba.conf
    cp "$rules" "$T/rules"
    {
        printf 'host all all 127.0.0.1/32 radius radiusservers=127.0.0.1 '
        printf 'radiussecrets=secret radiusports=%s\n' "$1"
        cat "$T/rules"
    } >"$rules"
    database_sql postgresql 'SELECT pg_reload_conf()' >/dev/null
}

# PostgreSQL tells the refusal of another's as that of a user who may not log in.
@test "H19 a changed password is read again where PostgreSQL asks RADIUS, LDAP or PAM for it" {
    [[ $DATABASES == *postgresql* ]] || skip 'there is no PostgreSQL'
    with_database postgresql
    local port away with_file=${RLOCK_URL/:p%20w@/@} url
    with_file=${with_file/locker@/locker:@}
    read -r port away < <(free_ports 2)
    printf 'first\n' | tee "$T/password" >"$T/right"
    bg radius python3 "$TESTS/radius_server.py" "$port" "$T/right"
    ask_radius "$port"
    # Also where another host of the address is away.
    for url in "$with_file" "${with_file/@/@127.0.0.1:$away,}"; do
        printf 'first\n' | tee "$T/password" >"$T/right"
        poll_until 10 rlock status -q -u "$url" --password-file "$T/password" k
        stay a k -u "$url" --password-file "$T/password" --lease 12s
        printf 'second\n' | tee "$T/password" >"$T/right"
        database_sql postgresql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE usename = 'locker'" >/dev/null
        RLOCK_PASSWORD=second RLOCK_URL=$with_file renewed k
        ends_well a
    done
    cp "$T/rules" "$BATS_FILE_TMPDIR/postgresql/data/pg_hba.conf"
    database_sql postgresql 'SELECT pg_reload_conf()' >/dev/null
}

@test "PostgreSQL: another server is not a wrong password" {
    [[ $DATABASES == *postgresql*mysql* ]] || skip 'there are not both'
    refused 69 run -u "postgresql://locker:x@127.0.0.1:$MYSQL_PORT/locks" k -- true
    [[ $stderr != *password* ]]
}

# limit_statements MS: so long may a statement of the user locker take; 0: any time.
limit_statements() {
    case $DATABASE in
    postgresql) database_sql postgresql "ALTER ROLE locker SET statement_timeout = $1" ;;
    mysql) database_sql mysql "SET GLOBAL max_statement_time = $1 / 1000" ;;
    esac
}

@test "a table that is locked for longer than a statement may take is asked for again" {
    local -A \
        lock=([postgresql]='BEGIN; LOCK TABLE rlock_record IN ACCESS EXCLUSIVE MODE;'
            [mysql]='LOCK TABLES rlock_record WRITE;') \
        unlock=([postgresql]='COMMIT;' [mysql]='UNLOCK TABLES;')
    each_database
    mkfifo "$T/sql"
    database_client "$DATABASE" locks <"$T/sql" >"$T/client.out" &
    exec 8>"$T/sql"
    echo "${lock[$DATABASE]} SELECT 'locked';" >&8
    poll_until 10 contains "$T/client.out" locked
    limit_statements 200
    bg a rlock run --server-wait 60s k -- true
    poll_until 20 contains "$T/a.err" \
        "it takes longer than it allows itself; its tables may be locked; trying again"
    echo "${unlock[$DATABASE]}" >&8
    exec 8>&-
    finish a 60
    limit_statements 0
    [[ $status == 0 ]]
}

@test "MariaDB: what a server sets for all sessions changes nothing" {
    local setting fit
    [[ $DATABASES == *mysql* ]] || skip 'there is no MariaDB'
    DATABASE=mysql RLOCK_URL=$(database_url mysql)
    export RLOCK_URL
    for setting in sql_select_limit completion_type max_join_size; do
        database_sql mysql "SET GLOBAL $setting = 1"
        fit=0
        timeout 30 "$RLOCK" doctor 3>&- || fit=$?
        run timeout 30 "$RLOCK" run --keep-credentials -n a b c -- "$RLOCK" status --json 3>&-
        database_sql mysql "SET GLOBAL $setting = DEFAULT"
        [[ $status == 0 && $fit == 1 ]] # a crash of the server may lose locks
        json 'length == 3 and all(.[].holders | length == 1; .)'
    done
}

@test "the doctor: a table that a crash empties, and one that keeps nothing of what is written" {
    with_database postgresql
    database_sql postgresql 'ALTER TABLE rlock_record SET UNLOGGED'
    prints 1 '*warning  durability   the table of locks is unlogged*SET LOGGED*' doctor
    database_sql postgresql "ALTER TABLE rlock_record SET LOGGED
        ; CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'
        ; CREATE TRIGGER nothing BEFORE INSERT ON rlock_record FOR EACH ROW
            EXECUTE PROCEDURE nothing()"
    prints 69 '*unfit    lock *a table does not keep what is written*' doctor
    database_sql postgresql 'DROP FUNCTION nothing CASCADE'
}

# semi_sync OPTION=VALUE...: of the server.
semi_sync() {
    local one
    for one in "$@"; do
        database_sql mysql "SET GLOBAL rpl_semi_sync_master_$one"
    done
}

@test "MariaDB: the doctor warns of semi-synchronous replication that does without a replica" {
    with_database mysql
    # Each connection is taken for a replica's.
    relay_to_database "'Binlog Dump%'" "'%'           "
    prints 1 '*warning  replicas *its replicas are asynchronous*' doctor -u "$through"
    semi_sync enabled=1 timeout=10000
    prints 1 '*warning  replicas *waits for a replica for 10s at most*' doctor -u "$through"
    semi_sync timeout=4294967295 wait_no_slave=0
    prints 1 '*warning  replicas *only while there is one*' doctor -u "$through"
    semi_sync wait_no_slave=1
    # The default of MariaDB, but not of MySQL.
    semi_sync wait_point=AFTER_COMMIT
    prints 1 '*warning  replicas *see a commit before a replica has it*' doctor -u "$through"
    semi_sync wait_point=AFTER_SYNC
    prints 1 '*fine     replicas *a replica is semi-synchronous*' doctor -u "$through"
    semi_sync timeout=10000 enabled=0 wait_point=AFTER_COMMIT
}

@test "PostgreSQL: the doctor warns of an index in the order of a locale, until it is changed" {
    with_database postgresql
    [[ $(database_sql postgresql "SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu'") ]] ||
        skip 'no collation of ICU here'
    local change='/^DROP VIEW/,/^ALTER TABLE/p'
    change=$(sed -n "$change" "$TESTS/../man/rlock-stores.7")
    database_sql postgresql "${change/\"C\"/\"und-x-icu\"}"
    rlock init
    prints 1 '*warning  tables *index has the order of und-x-icu:*rlock-stores(7)*' doctor
    database_sql postgresql "$change"
    run -0 rlock init
    run rlock doctor
    [[ $output != *'index has the order'* ]]
    [[ ! $(database_sql postgresql 'SELECT * FROM rlock_locks') ]]
}

@test "PostgreSQL: the doctor warns of tables in two schemas, as their users do not meet" {
    with_database postgresql
    run rlock doctor
    [[ $output != *'such tables'* ]]
    hold a k
    database_sql postgresql 'CREATE SCHEMA locker AUTHORIZATION locker'
    rlock init
    run -0 rlock run -n k -- true
    prints 1 '*warning  tables *in schema locker, which this user finds, and in public:*' doctor
    database_sql postgresql 'DROP SCHEMA locker CASCADE'
}

@test "MariaDB: the doctor warns of a table in an engine without transactions" {
    with_database mysql
    for table in rlock_gate Engine_2_gate; do
        url=$RLOCK_URL
        [[ $table == rlock_* ]] || url+='?table=Engine_2'
        rlock init -u "$url"
        database_sql mysql "ALTER TABLE $table ENGINE=MyISAM"
        prints 1 '*warning  durability   a table of locks is not in InnoDB*ENGINE=InnoDB*' \
            doctor -u "$url"
        database_sql mysql "ALTER TABLE $table ENGINE=InnoDB"
        run -1 rlock doctor -u "$url"
        [[ $output != *'not in InnoDB'* ]]
    done
}

@test "MariaDB: the doctor warns of a pool of too few threads, as each waiter sleeps in one" {
    with_database mysql
    relay_to_database '@@thread_handling' "'pool-of-threads'"
    most=$(database_sql mysql 'SELECT @@thread_pool_max_threads')
    database_sql mysql 'SET GLOBAL thread_pool_max_threads = 1'
    prints 1 '*warning  connections *of 1 are taken*threads of a pool*' doctor -u "$through"
    database_sql mysql "SET GLOBAL thread_pool_max_threads = $most"
    prints 1 '*fine     connections *' doctor -u "$through"
}

# A crash of the host takes the end of the log, and with that what it says of the tables.
@test "MariaDB: the doctor warns of a binary log that is not written to disk with each commit" {
    with_database mysql
    relay_to_database '@@log_bin' 'TRUE     '
    database_sql mysql 'SET GLOBAL innodb_flush_log_at_trx_commit = 1, GLOBAL sync_binlog = 0'
    prints 1 '*warning  durability   there is a binary log, and sync_binlog is not 1*' \
        doctor -u "$through"
    prints 0 '*fine     durability *' doctor
    database_sql mysql 'SET GLOBAL sync_binlog = 1'
    prints 0 '*fine     durability *' doctor -u "$through"
    database_sql mysql 'SET GLOBAL innodb_flush_log_at_trx_commit = 2, GLOBAL sync_binlog = 0'
    prints 1 '*warning  durability   innodb_flush_log_at_trx_commit is not 1*' doctor -u "$through"
}

# swallows SQL UNDO: with a table like that nothing is run.
swallows() {
    database_sql "$DATABASE" "$1"
    says 69 'a table does not keep what is written' run --server-wait 0 -n k -- touch "$T/ran"
    database_sql "$DATABASE" "$2"
    [[ ! -e $T/ran ]]
    run -0 rlock run -n k -- true
}

# A trigger of the database swallows or changes the rows that rlock writes, without an error. rlock
# must find that out, and grant nothing.
@test "a trigger that drops or changes what is written: no lock is granted" {
    each_database
    local when drop='DROP TRIGGER swallow'
    rlock run k -- true
    if [[ $DATABASE == mysql ]]; then
        swallows "CREATE TRIGGER swallow BEFORE UPDATE ON rlock_record FOR EACH ROW
            SET NEW.state = OLD.state, NEW.version = OLD.version, NEW.expires = OLD.expires" "$drop"
        swallows "CREATE TRIGGER swallow BEFORE UPDATE ON rlock_record FOR EACH ROW
            SET NEW.state = LEFT(NEW.state, 10)" "$drop"
        return
    fi
    for when in 'BEFORE:RETURN NULL' 'BEFORE:RETURN OLD' "BEFORE:NEW.state = ''; RETURN NEW" \
        'AFTER:DELETE FROM rlock_record; RETURN NULL'; do
        swallows "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS
            \$\$BEGIN ${when#*:}; END\$\$
            ; CREATE TRIGGER swallow ${when%%:*} UPDATE ON rlock_record FOR EACH ROW
            EXECUTE FUNCTION swallow()" 'DROP FUNCTION swallow CASCADE'
    done
}

@test "features that a database lacks, and a server that is not there, are told in clear words" {
    each_database
    refused 64 run --grace k -- true
    refused 64 run --replicas 1 k -- true
    refused 64 run --mirror string:x k -- true
    says 64 "has no database's name" run -u "$DATABASE://127.0.0.1" k -- true
    refused 69 run --server-wait 0 -u "$DATABASE://127.0.0.1:1/locks" k -- true
    stderr_line "^rlock: k: .*cannot reach $DATABASE://127.0.0.1:1/locks"
}

@test "init: makes the tables, again without harm; prints the SQL; without them nothing is locked" {
    each_database
    run -0 rlock init --print
    for table in $(database_all_tables "$DATABASE"); do
        [[ $output == *"CREATE TABLE IF NOT EXISTS $table"* ]]
        database_sql "$DATABASE" "DROP TABLE $table CASCADE"
    done
    says 69 'has no tables for locks' run --server-wait 0 k -- true
    prints 69 '*unfit    tables*' doctor
    run -0 rlock init
    run -0 rlock init # again, which changes nothing
    run -0 rlock run k -- true
    prints 1 '*fine     tables*fine     lock *' doctor
}

@test "?table=: other tables in the same database, of other names; default ones are not touched" {
    each_database
    for name in other "Other_2" "3"; do
        url="$RLOCK_URL?table=$name"
        run -0 rlock init -u "$url" --print
        [[ $output == *"${name}_"* && $output != *rlock* ]]
        says 69 'has no tables for locks' run --server-wait 0 -u "$url" k -- true
        run -0 rlock init -u "$url"
        run -0 rlock init -u "$url" # again, which changes nothing
        run rlock doctor -u "$url"
        [[ $output == *"fine     tables"*"${name}_"*" there"* && $output != *unfit* ]]
        hold a k -u "$url"
        refused 75 run -n -u "$url" k -- true
        bg b rlock run -u "$url" k -- sh -c "echo b >>'$LOG'"
        RLOCK_URL=$url poll_until 15 has_waiters k 1
        run -0 rlock run -n k l -- true
        status_json '. == []'
        terminate a
        in_turn 10 b
        rm "$LOG"
    done
    says 64 'has a .table= that is not of letters, digits' run -u "$RLOCK_URL?table=a-b" k -- true
    run -0 rlock init -u "$RLOCK_URL?table=$(printf 'x%.0s' {1..53})"
    run -0 rlock run -u "$RLOCK_URL?table=$(printf 'x%.0s' {1..53})" k -- true
}

@test "a database by its Unix socket has the locks that it has by TCP; no table or no socket: 69" {
    each_database
    local dir=$BATS_FILE_TMPDIR/$DATABASE url
    case $DATABASE in
    postgresql) url="postgresql://root:@/locks?host=${dir//\//%2F}&port=$POSTGRESQL_PORT" ;;
    mysql) url="mysql://root:@/locks?socket=$dir/sock" ;;
    esac
    hold a k
    refused 75 run -n -u "$url" k -- true
    terminate a
    run -0 rlock run -u "$url" k -- true
    run rlock doctor -u "$url"
    [[ $output == *"none, on this host"* ]]
    says 69 'has no tables for locks' run --server-wait 0 -u "$url&table=none" k -- true
    refused 69 run --server-wait 0 -u "${url/=*/=}/nowhere" k -- true
    stderr_line "cannot reach $DATABASE:///locks.*=/nowhere"
}

@test "H140 localhost with a port is the server at that port, whatever is at the default place" {
    each_database
    local url=${RLOCK_URL/127.0.0.1/localhost}
    run -0 rlock acquire -u "$url" --lease 30s k
    refused 75 run -n k -- touch "$T/ran"
}

@test "MySQL: a server that asks for a file of this host gets none, and is offered none" {
    [[ $DATABASES == *mysql* ]] || skip 'there is no MariaDB'
    echo secret >"$T/file"
    bg_prints curious python3 "$TESTS/curious_mysql.py" "$T/file"
    refused 69 run --server-wait 0 -u "mysql://u@127.0.0.1:$(<"$T/curious.out")/locks" k -- true
    [[ $(wc -l <"$T/curious.out") == 1 ]]
}

# after HOURS COMMAND...: rlock's clock is that much ahead.
after() {
    SHIM_CLOCK_FILE=$T/clock
    printf '%-4096s' $((3600000 * $1)) >"$SHIM_CLOCK_FILE"
    SHIM_CLOCK_FILE=$SHIM_CLOCK_FILE LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so "${@:2}"
}

@test "the doctor foresees the end of a database server's certificates" {
    each_database
    url=${RLOCK_URL/:/s:}
    run rlock doctor -u "$url" --tls-ca "$CERTS/ca.pem"
    [[ $output == *"fine     certificate  "*" ends in "* ]]
    after 37 run rlock doctor -u "$url" --tls-ca "$CERTS/ca.pem"
    [[ $output == *'warning  certificate  '*' ends in '* ]]
    run rlock doctor
    [[ $output != *certificate* ]]
}

@test "with TLS, only a database server that is vouched for is used" {
    each_database
    local url=${RLOCK_URL/:/s:}
    hold a k
    refused 75 run -u "$url" --tls-ca "$CERTS/ca.pem" -n k -- touch "$T/ran"
    stderr_line '^rlock: k: not acquired: held by '
    terminate a
    prints 0 k run -u "$url" --tls-ca "$CERTS/ca.pem" k -- sh -c 'echo "$RLOCK_KEY"'
    refused 69 run -u "$url" --server-wait 0 --tls-ca "$CERTS/other.pem" k -- touch "$T/ran"
    stderr_line 'certificate'
    url=${url/127.0.0.1/localhost}
    refused 69 run -u "$url" --server-wait 0 --tls-ca "$CERTS/ca.pem" k -- touch "$T/ran"
}

@test "H143 a waiter's agent is killed: the place is kept, and only those there are shown" {
    on_each place_is_kept
}

@test "H144 a stopped waiter is passed over, and has its turn when it continues" {
    on_each passed_over / /
}
