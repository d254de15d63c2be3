# --mirror shedlock: a lock that is held together with a row of ShedLock's table, beside a second
# client of the database that says what ShedLock says, with usingDbTime(). The same for PostgreSQL
# and for MariaDB. each_database: what follows is done with each of them. relay_to_database WORD
# FILE: a server in between, at $through, which holds back a statement with WORD until there is
# FILE; FILE.held: it does. "sql" asks as that client; java_takes NAME SECONDS BY, java_releases
# NAME SECONDS BY: that client does, as BY, and the lock lasts so long at most, or at least;
# java_refused NAME: it does not get it; locked_by, lease_left_ms NAME: as the row says; lasts NAME
# MS: more than that is left.

load helper
load databases

DATABASE_TABLES=shedlock

setup_file() {
    local name
    databases_start
    for name in $DATABASES; do
        make_table "$name"
    done
}

# As ShedLock's manual has it.
make_table() {
    case $1 in
    postgresql)
        database_sql "$1" 'CREATE TABLE shedlock(name VARCHAR(64) NOT NULL,
            lock_until TIMESTAMP NOT NULL, locked_at TIMESTAMP NOT NULL,
            locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))'
        database_sql "$1" 'GRANT SELECT, INSERT, UPDATE ON shedlock TO locker'
        ;;
    mysql)
        database_sql "$1" 'CREATE TABLE shedlock(name VARCHAR(64) NOT NULL,
            lock_until TIMESTAMP(3) NOT NULL,
            locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
            locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))'
        ;;
    esac
}

sql() {
    database_sql "$DATABASE" "$1"
}

# changes_a_row SQL: whether it changes a row.
changes_a_row() {
    case $DATABASE in
    postgresql) [[ $(sql "WITH changed AS ($1 RETURNING 1) SELECT count(*) FROM changed") == 1 ]] ;;
    mysql) [[ $(sql "$1; SELECT ROW_COUNT()") == 1 ]] ;;
    esac
}

# For the statements: the clock of the server in UTC, and so many seconds after something.
utc() {
    [[ $DATABASE == mysql ]] && echo "UTC_TIMESTAMP(3)" || echo "timezone('utc', CURRENT_TIMESTAMP)"
}

after() {
    [[ $DATABASE == mysql ]] && echo "TIMESTAMPADD(MICROSECOND, $2 * 1000000, $1)" ||
        echo "$1 + CAST('PT$2S' AS interval)"
}

# java_takes NAME SECONDS BY: whether it gets the lock for lockAtMostFor.
java_takes() {
    local now until
    now=$(utc)
    until=$(after "$now" "$2")
    case $DATABASE in
    postgresql)
        changes_a_row "INSERT INTO shedlock(name, lock_until, locked_at, locked_by)
            VALUES('$1', $until, $now, '$3') ON CONFLICT (name) DO UPDATE
            SET lock_until = $until, locked_at = $now, locked_by = '$3'
            WHERE shedlock.lock_until <= $now"
        ;;
    mysql)
        changes_a_row "INSERT IGNORE INTO shedlock(name, lock_until, locked_at, locked_by)
            VALUES('$1', $until, $now, '$3')" ||
            [[ $(sql "UPDATE shedlock SET lock_until = $until, locked_at = $now, locked_by = '$3'
                WHERE name = '$1' AND lock_until <= $now; SELECT ROW_COUNT()") == 1 ]]
        ;;
    esac
}

# java_extends NAME SECONDS BY
java_extends() {
    changes_a_row "UPDATE shedlock SET lock_until = $(after "$(utc)" "$2")
        WHERE name = '$1' AND locked_by = '$3' AND lock_until > $(utc)"
}

# java_releases NAME LOCK_AT_LEAST_FOR BY
java_releases() {
    local least
    least=$(after locked_at "$2")
    changes_a_row "UPDATE shedlock SET lock_until = CASE WHEN $least > $(utc) THEN $least ELSE $(utc) END
        WHERE name = '$1' AND locked_by = '$3'"
}

java_refused() {
    run -1 java_takes "$1" 60 other-app
}

# lease_left_ms NAME: the ms for which it is held yet, or a negative number.
lease_left_ms() {
    case $DATABASE in
    postgresql) sql "SELECT CAST(extract(epoch FROM lock_until - $(utc)) * 1000 AS bigint)
        FROM shedlock WHERE name = '$1'" ;;
    mysql) sql "SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), lock_until) DIV 1000
        FROM shedlock WHERE name = '$1'" ;;
    esac
}

locked_by() {
    sql "SELECT locked_by FROM shedlock WHERE name = '$1'"
}

lasts() {
    (($(lease_left_ms "$1") > $2))
}

# java_is_free NAME: the time of the row of that name is over.
java_is_free() {
    (($(lease_left_ms "$1") <= 0))
}

# waits_for_it NAME: it has found the lock held.
waits_for_it() {
    poll_until 10 contains "$T/$1.err" "held by a foreign lock nightly (app-1) for at most"
}

# is_locked: another session has the lock of the table of records.
is_locked() {
    [[ $(sql "SELECT count(*) FROM pg_locks WHERE relation = 'rlock_record'::regclass AND granted
        AND mode = 'AccessExclusiveLock'") == 1 ]]
}

# Another session waits for the table.
is_awaited() {
    [[ $(sql "SELECT count(*) FROM pg_locks WHERE relation = 'rlock_record'::regclass
        AND NOT granted") == 1 ]]
}

@test "a row that comes between the locking and the reading, and is taken then, stays Java's" {
    with_database postgresql
    rlock run k -- true # a lock that is new looks at one more record, and begins again
    # rlock has locked the row, which is not there, and waits until it may read its own record.
    database_sql postgresql 'BEGIN; LOCK TABLE rlock_record IN ACCESS EXCLUSIVE MODE;
        SELECT pg_sleep(60)' >/dev/null 2>&1 3>&- &
    poll_until 20 is_locked
    relay_to_database "INSERT INTO" "$T/go"
    bg a rlock run -u "$through" --server-wait 60s \
        --mirror shedlock:nightly k -- true
    poll_until 20 is_awaited
    sql "INSERT INTO shedlock VALUES('nightly', $(utc), $(utc), 'app-0')"
    sql "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE relation = 'rlock_record'::regclass
        AND granted" >/dev/null
    # The run has read that the row is free, and is about to write that it has taken it.
    poll_until 20 test -e "$T/go.held"
    java_takes nightly 60 app-1
    : >"$T/go"
    waits_for_it a
    [[ $(locked_by nightly) == app-1 ]]
    java_releases nightly 0 app-1
    ends_with a 0 20
}

@test "ShedLock's row is refused to Java while rlock holds its lock, and free afterwards" {
    each_database
    local uuid='[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'
    stay a k --lease 60s --mirror shedlock:nightly
    [[ $(locked_by nightly) =~ ^[A-Za-z0-9._-]+\ rlock\ $uuid$ ]]
    within 30000 61000 "$(lease_left_ms nightly)"
    java_refused nightly
    java_refused nightly # the refusal has not taken it either
    ends_well a
    java_is_free nightly
    java_takes nightly 60 app-1
    # Another row of another name, once more, and without who holds it.
    stay b k --no-identity --mirror shedlock:nightly-2
    [[ $(locked_by nightly-2) =~ ^rlock\ $uuid$ ]]
    ends_well b
    run -0 rlock run --mirror shedlock same -- true
    java_is_free same
}

@test "ShedLock's row is refused to rlock while Java holds it: it names Java, waits, and is next" {
    each_database
    java_takes nightly 3600 app-1
    refused 75 run -n --mirror shedlock:nightly k -- touch "$T/ran"
    stderr_line '^rlock: k: not acquired: held by a foreign lock nightly \(app-1\) for at most (59m|1h)'
    refused 75 run -w 3s --mirror shedlock:nightly k -- touch "$T/ran"
    [[ ! -e $T/ran && $(locked_by nightly) == app-1 ]]
    run -0 rlock run -n k -- true
    # A waiter has its place before those that do not ask for the mirror.
    bg a rlock run --mirror shedlock:nightly k -- sh -c "echo a >>'$LOG'"
    waits_for_it a
    queue b k
    java_extends nightly 3600 app-1
    java_releases nightly 0 app-1
    in_turn 10 a b
    # Java's lock is not released: it ends.
    java_takes nightly 2 app-1
    run -0 rlock run -w 30s --mirror shedlock:nightly k -- true
    # lockAtLeastFor of Java's.
    java_takes nightly 60 app-1
    java_releases nightly 3600 app-1
    refused 75 run -n --mirror shedlock:nightly k -- true
    java_extends nightly 1 app-1
}

@test "force-release takes ShedLock's row from Java, as it was shown, and not from rlock" {
    each_database
    says 1 'nightly is not held by another program' force-release --yes --mirror shedlock:nightly k
    java_takes nightly 3600 app-1
    bg a rlock run --mirror shedlock:nightly k -- true
    waits_for_it a
    run -0 --separate-stderr rlock force-release --yes --mirror shedlock:nightly k
    stderr_line '^nightly \(app-1\), the mirror of k, is held by another program, and ends in (59m|1h)'
    ends_with a 0
    java_takes nightly 3600 app-1
    on_terminal "$RLOCK" force-release --mirror shedlock:nightly k <<EOF
expect Take it away
send n\n
expect left as it was
status 1
EOF
    java_releases nightly 0 app-1
    # A holder of the lock keeps what it has.
    stay b k --mirror shedlock:nightly
    refused 1 force-release --yes --mirror shedlock:nightly k
    lasts nightly 1000
    ends_well b
}

@test "each renewal extends ShedLock's row; a holder that was killed has it for its lease" {
    each_database
    is_later() {
        [[ $(sql "SELECT count(*) FROM shedlock WHERE lock_until > '$1'") == 1 ]]
    }
    stay a k --lease 8s --mirror shedlock:nightly
    first=$(sql "SELECT lock_until FROM shedlock WHERE name = 'nightly'")
    renewed k
    poll_until 10 is_later "$first"
    java_refused nightly
    kill_both a
    java_refused nightly
    poll_until 40 java_takes nightly 60 app-1
    run -0 rlock run -n k -- true
}

@test "ShedLock's row follows --at-least (lockAtLeastFor), force-release, acquire and renew" {
    each_database
    run -0 rlock run --at-least 10m --mirror shedlock:nightly k -- true
    within 300000 601000 "$(lease_left_ms nightly)"
    java_refused nightly
    run -0 rlock force-release --now --yes k
    java_is_free nightly
    owner=$(rlock acquire --lease 10s --mirror shedlock:nightly k)
    run -0 rlock renew --lease 10m --owner "$owner" k
    lasts nightly 300000
    java_refused nightly
    run -0 rlock release --owner "$owner" k
    java_takes nightly 60 app-1
    # A holder whose lease has ended has lost it to the next one.
    owner=$(rlock acquire --lease 1s --mirror shedlock:other k)
    poll_until 10 java_takes other 60 app-1
    run -1 rlock renew --owner "$owner" k
    [[ $(locked_by other) == app-1 ]]
}

@test "a row of ShedLock that another program takes, releases or deletes is a lost lock" {
    each_database
    hold a k --lease 6s --mirror shedlock:nightly
    sql "UPDATE shedlock SET locked_by = 'app-1', lock_until = $(after "$(utc)" 3600)"
    ends_with a 79 30
    contains "$T/a.err" 'lock lost: its mirror nightly (app-1) was taken by another program'
    is_free k
    [[ $(locked_by nightly) == app-1 ]]
    lasts nightly 3000000
    hold b k --lease 6s --mirror shedlock:n2
    sql "UPDATE shedlock SET lock_until = $(utc) WHERE name = 'n2'"
    ends_with b 79 20
    contains "$T/b.err" 'lock lost: its mirror n2 was deleted'
    hold c k --lease 6s --mirror shedlock:n2
    sql "DELETE FROM shedlock WHERE name = 'n2'"
    ends_with c 79 20
    # Another program had it in between, however short: it may have run.
    hold d k --lease 6s --mirror shedlock:n2
    sql "UPDATE shedlock SET locked_by = 'app-1', lock_until = $(utc) WHERE name = 'n2'"
    ends_with d 79 20
}

@test "rlock and Java have ShedLock's row one at a time, many times over" {
    each_database
    java_many() {
        local round
        for round in {1..5}; do
            poll_until 60 java_takes nightly 60 "$1"
            echo "$1" >>"$LOG"
            sleep 0.02
            echo "$1" >>"$LOG"
            java_releases nightly 0 "$1"
        done
    }
    local i java=()
    for i in 1 2; do
        java_many "j$i" >"$T/j$i.out" 2>&1 3>&- &
        java+=($!)
    done
    for i in {1..8}; do
        bg "r$i" rlock run --server-wait 2m --mirror shedlock:nightly "k$((i % 2))" -- \
            sh -c "echo r$i >>'$LOG'; sleep 0.02; echo r$i >>'$LOG'"
    done
    all_end 0 60 r{1..8}
    wait "${java[@]}"
    # Each has noted its name twice in a row.
    run -0 awk 'NR % 2 { one = $1; next } $1 != one { exit 1 } END { exit NR != 36 }' "$LOG"
}

@test "a statement that is executed after the lease takes neither the lock nor ShedLock's row" {
    each_database
    declare -A sleep=([postgresql]='SELECT pg_sleep(6)' [mysql]='DO SLEEP(6)')
    in_progress() {
        case $DATABASE in
        postgresql) [[ $(sql "SELECT count(*) FROM pg_locks AS l JOIN pg_class AS c
            ON c.oid = l.relation WHERE c.relname = 'rlock_record' AND l.mode = 'RowShareLock'") == 1 ]] ;;
        mysql) [[ $(sql "SELECT count(*) FROM information_schema.processlist
            WHERE info = 'DO SLEEP(6)'") == 1 ]] ;;
        esac
    }
    rlock run --mirror shedlock:nightly k -- true
    # Somebody has our row for longer than the lease, and than rlock waits for the statement.
    sql "BEGIN; SELECT 1 FROM rlock_record FOR UPDATE; ${sleep[$DATABASE]}; COMMIT" \
        >"$T/locker.out" 2>&1 3>&- &
    poll_until 20 in_progress
    run ! rlock run -w 2s --lease 3s --mirror shedlock:nightly k -- touch "$T/ran"
    [[ ! -e $T/ran ]]
    wait $!
    poll_until 20 java_takes nightly 60 app-1
    run -0 rlock run -n k -- true
    java_refused nightly
}

@test "doctor: a column that cannot tell each hour is warned of" {
    [[ $DATABASES == *mysql* ]] || skip "MariaDB with its driver is not here"
    url=$(database_url mysql)
    run rlock doctor -u "$url"
    [[ $output == *"fine     shedlock"* ]]
    database_kill mysql
    TZ=Europe/Berlin database_start mysql
    prints 1 '*warning  shedlock*daylight saving*' doctor -u "$url"
    database_sql mysql 'ALTER TABLE shedlock MODIFY lock_until DATETIME(3) NOT NULL'
    run rlock doctor -u "$url"
    [[ $output == *"fine     shedlock"* ]]
    database_kill mysql
    database_start mysql
}

@test "on a server whose zone is not UTC, rlock and Java write the same times" {
    zone() {
        set_zone "$1"
        stay a k --lease 60s --mirror shedlock:nightly
        java_refused nightly
        within 30000 61000 "$(lease_left_ms nightly)"
        ends_well a
        java_takes nightly 60 app-1
        refused 75 run -n --mirror shedlock:nightly k -- true
        java_releases nightly 0 app-1
        run -0 rlock run -n --mirror shedlock:nightly k -- true
        set_zone SYSTEM
    }
    each_database
    set_zone() {
        case $DATABASE in
        mysql) sql "SET GLOBAL time_zone = '$1'" ;;
        postgresql)
            [[ $1 == SYSTEM ]] && sql 'ALTER DATABASE locks RESET timezone' ||
                sql "ALTER DATABASE locks SET timezone = '$1'"
            ;;
        esac
    }
    zone +05:30
    zone -08:00
}

# A user who has only the rights to rlock's own tables.
as_user_without_mirror() {
    local table
    local -A create=([postgresql]="CREATE ROLE bare LOGIN PASSWORD"
        [mysql]="CREATE USER bare@'%' IDENTIFIED BY")
    sql "${create[$DATABASE]} 'x'"
    for table in $(database_all_tables "$DATABASE"); do
        sql "GRANT SELECT, INSERT, UPDATE, DELETE ON $table TO bare"
    done
    RLOCK_URL=$DATABASE://bare:x@127.0.0.1:$(database_port "$DATABASE")/locks
}

@test "without ShedLock's table nothing is run; options that do not fit are refused unasked" {
    each_database
    sql 'ALTER TABLE shedlock RENAME TO elsewhere'
    refused 69 run -n --server-wait 0 --mirror shedlock:nightly k -- touch "$T/ran"
    stderr_line '^rlock: k: .*the database has no table shedlock for the mirror'
    stderr_line '^hint: .*CREATE TABLE'
    run -0 rlock run -n k -- true
    sql 'ALTER TABLE elsewhere RENAME TO shedlock'
    as_user_without_mirror
    refused 77 run -n --mirror shedlock:nightly k -- touch "$T/ran"
    stderr_line '^rlock: k: .*user bare: no right to the table shedlock for the mirror'
    stderr_line '^hint: .*CREATE TABLE'
    run -0 rlock run -n k -- true
    RLOCK_URL=$(database_url "$DATABASE")
    refusals '' <<END
run --mirror string:x k -- true|$DATABASE:// has no --mirror string:
run --mirror redisson k -- true|$DATABASE:// has no --mirror redisson:
run -u redis://127.0.0.1:1 --mirror shedlock:x k -- true|redis:// has no --mirror shedlock:
run --mirror shedlock:$(printf 'x%.0s' {1..65}) k -- true|--mirror .* has a NAME of more than 64 characters
run --mirror shedlock:x --read k -- true|--mirror needs an exclusive lock of one KEY
run --mirror shedlock:x k l -- true|--mirror needs an exclusive lock of one KEY
END
    run -0 rlock run -n --mirror "shedlock:$(printf 'é%.0s' {1..64})" k -- true
    run -0 rlock run -n --mirror "shedlock:it's; a \\ \"name\"" k -- true
    [[ $(sql "SELECT count(*) FROM shedlock WHERE name LIKE 'it''s; a%'") == 1 ]]
}

# A trigger of the database swallows the row of ShedLock, without an error. rlock must find that
# out, and run nothing.
@test "a trigger that drops or changes ShedLock's row: nothing is run" {
    each_database
    case $DATABASE in
    postgresql)
        sql "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'
            ; CREATE TRIGGER swallow BEFORE INSERT ON shedlock FOR EACH ROW
            EXECUTE FUNCTION swallow()"
        ;;
    mysql)
        sql "CREATE TRIGGER swallow BEFORE INSERT ON shedlock FOR EACH ROW
            SET NEW.lock_until = UTC_TIMESTAMP(3)"
        ;;
    esac
    refused 69 run -n --server-wait 0 --mirror shedlock:nightly k -- touch "$T/ran"
    stderr_line 'a table does not keep what is written'
    local -A drop=([postgresql]='DROP FUNCTION swallow CASCADE' [mysql]='DROP TRIGGER swallow')
    sql "${drop[$DATABASE]}"
    [[ ! -e $T/ran && $(sql 'SELECT count(*) FROM shedlock') == 0 ]]
    run -0 rlock run -n --mirror shedlock:nightly k -- true
}
