#!/usr/bin/env bats
# Databases whose records a host changes by the rules of a Redis: they can do what a Redis can.
# each_database: what follows is done with each of them. run_a_held_back WORD: a's statement with
# WORD stands still on its way to the server until "let_go"; commits_are_undone COUNT ERROR...: the
# first COUNT commits are undone, with that error, and were_undone says that they were; view_has
# VIEW KEY ROWS: so many rows for KEY. with_database NAME: what follows is done with that one, or
# the test is skipped.
load helper
load databases

setup_file() {
    databases_start
    # On a busy machine a database's first answer may take more than 5 s.
    export RLOCK_SERVER_WAIT=1m
}

# run_a_held_back WORD [OPTION...] KEY: a runs by way of a relay to the server that holds back a
# statement with WORD, until "let_go". Returns when the relay does so.
run_a_held_back() {
    rm -f "$T/go" "$T/go.held"
    relay_to_database "$1" "$T/go"
    bg a rlock run -u "$through" "${@:2}" -- touch "$T/ran"
    poll_until 20 test -e "$T/go.held"
}

let_go() {
    : >"$T/go"
}

@test "history, limits, pauses of KEYs and GLOBs, and --unless-done work in a database" {
    each_database
    run -3 rlock run k -- sh -c 'exit 3'
    run -0 rlock run k -- true
    run -0 rlock history --json k
    json 'map(.outcome) == ["exit 3", "exit 0"]'
    refused 75 run --unless-done 1h k -- touch "$T/ran"
    local s=ssssssssssssssssssssssssssssssssssssssss
    run -0 rlock limit $s 2
    hold a $s --limit 5
    hold b $s --limit 5
    refused 75 run -n --limit 5 $s -- touch "$T/ran"
    run -0 rlock status 's*s*s*s*s*s*s*s*s*s*s*s*x' # in a time that does not grow with the stars
    kill "${pid[a]}" "${pid[b]}"
    finish a
    finish b
    run -0 rlock pause 'x*' 1h -m upgrade
    says 75 'upgrade' run -n x1 -- touch "$T/ran"
    run -0 rlock resume 'x*'
    run -0 rlock run -n x1 -- true
}

@test "--any and --take find free KEYs; --priority, --latest and --replace order the waiters" {
    each_database
    hold a k1
    prints 0 k2 run -n --any k1 k2 -- sh -c 'echo "$RLOCK_KEY"'
    prints 0 'k2 k3' run -n --any --take 2 k1 k2 k3 -- sh -c 'echo "$RLOCK_KEY"'
    queued k1 bg low rlock run k1 -- sh -c "echo low >>'$LOG'"
    queued k1 bg high rlock run --priority 5 k1 -- sh -c "echo high >>'$LOG'"
    terminate a
    finish low 30
    finish high
    [[ $(<"$LOG") == high$'\n'low ]]
    rm "$LOG"
    hold a k
    queued k bg old rlock run --latest k -- true
    bg new rlock run --latest --replace k -- true
    ends_with old 75
    contains "$T/old.err" superseded
    ends_with new 0 30
    finish a
    [[ $status != 0 ]]
}

@test "force-release asks the holder; events and metrics tell" {
    each_database
    hold a k
    bg_says events 'events: listening' rlock events -v --json k
    run -0 rlock force-release --yes k
    finish a
    contains "$T/a.err" 'revoked by'
    run -0 rlock run k -- true
    poll_until 15 contains "$T/events.out" '"k"'
    terminate events
    run -0 rlock metrics
    [[ $output == *'rlock_'*'key="k"'* ]]
}

@test "H1 the answer to a commit is lost: nothing is taken twice, nothing stays held" {
    each_database
    for i in 1 2 3; do
        run_a_held_back "INSERT INTO" --server-wait 30s k
        kill -KILL "${pid[relay]}"
        wait "${pid[relay]}" || true
        finish a 60
        run -0 rlock run -n k -- true
    done
}

@test "a host that is killed is a lost connection: the holder keeps its lock by way of the next" {
    each_database
    stay a k --lease 15s
    before=$(pgrep -P "$(agent_of "${pid[a]}")" -f "rlock-.*$DATABASE")
    kill -KILL "$before"
    renewed k
    [[ $(pgrep -P "$(agent_of "${pid[a]}")" -f "rlock-.*$DATABASE") != "$before" ]]
    ends_well a
}

@test "a run that is killed while the host acquires for it leaves no lock behind" {
    each_database
    run_a_held_back "INSERT INTO" k
    agent=$(agent_of "${pid[a]}")
    # The server ends a connection that is held up, and the next host begins.
    poll_until 20 eval 'host=$(pgrep -P "$agent" -f "rlock-.*$DATABASE")'
    kill -KILL "${pid[a]}"
    finish a
    poll_until 20 gone "$agent"
    let_go
    poll_until 20 gone "$host"
    is_free k
    terminate relay
}

# commits_are_undone COUNT SQLSTATE ERRNO MESSAGE: a procedure takes the place of each COMMIT by way
# of "through": it undoes the first COUNT, and says that.
commits_are_undone() {
    with_database mysql
    database_sql mysql 'CREATE TABLE refused (n INT)'
    database_client mysql locks --delimiter=// -e "CREATE PROCEDURE c() IF (SELECT count(*) FROM refused) < $1 THEN
        ROLLBACK; INSERT INTO refused VALUES (1); COMMIT;
        SIGNAL SQLSTATE '$2' SET MYSQL_ERRNO = $3, MESSAGE_TEXT = '$4'; ELSE
        COMMIT; END IF"
    database_sql mysql "GRANT EXECUTE ON PROCEDURE locks.c TO locker@'%'"
    relay_to_database ';COMMIT' ';CALL c'
}

# were_undone COUNT: so many were, and no more will be.
were_undone() {
    [[ $(database_sql mysql 'SELECT count(*) FROM refused') == "$1" ]]
    database_sql mysql 'DROP PROCEDURE c'
    database_sql mysql 'DROP TABLE refused'
    terminate relay
}

# As Group Replication says where another node was quicker.
@test "MySQL: a commit that the server has undone is done again" {
    commits_are_undone 2 40000 3101 'Plugin instructed'
    run -0 --separate-stderr rlock run -n --server-wait 0 -u "$through" k -- echo ran
    [[ $output == ran && ! $stderr ]]
    were_undone 2
}

@test "MySQL: a commit that a member of Group Replication has undone, as it leaves, is waited for" {
    commits_are_undone 1 HY000 3100 'Error on observer'
    run -0 rlock run -n --server-wait 60s -u "$through" k -- echo ran
    [[ $output == *ran ]]
    were_undone 1
}

# The others may have the commit, so it is in doubt.
@test "MySQL: a commit amid which a node of Galera was cut off is asked for again" {
    commits_are_undone 1 HY000 1180 'Not connected to Primary Component'
    run -0 rlock run -n --server-wait 60s -u "$through" k -- echo ran
    [[ $output == *ran ]]
    were_undone 1
}

# warn_at_writes: the server warns of each write, as near the end of its transaction numbers.
warn_at_writes() {
    case $DATABASE in
    postgresql)
        database_sql postgresql "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN RAISE WARNING ''VACUUM that database''; RETURN NEW; END';
            CREATE TRIGGER warn BEFORE INSERT OR UPDATE ON rlock_record
            FOR EACH ROW EXECUTE FUNCTION warn()"
        ;;
    mysql)
        database_sql mysql "CREATE TRIGGER warn BEFORE INSERT ON rlock_record FOR EACH ROW
            SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'OPTIMIZE that table'"
        ;;
    esac
}

# no_warnings: ends what warn_at_writes has begun.
no_warnings() {
    local -A drop=([postgresql]='DROP FUNCTION warn CASCADE' [mysql]='DROP TRIGGER warn')
    database_sql "$DATABASE" "${drop[$DATABASE]}"
}

@test "H146 a warning that is not about the commit is none of a lock's concern" {
    each_database
    warn_at_writes
    stay a k --lease 9s
    renewed k
    run -0 --separate-stderr rlock run --server-wait 0 other -- echo ran
    [[ $output == ran && ! $stderr ]]
    ends_well a
    no_warnings
}

@test "H148 a client that stands still inside its transaction holds no other up for long" {
    each_database
    run_a_held_back "INSERT INTO" k
    run -0 rlock run -w 20s k -- true
    [[ ! -e $T/ran ]]
    kill -KILL "${pid[a]}"
    finish a
    let_go
    terminate relay
}

@test "H147 a pause of a GLOB between an acquisition's look and its commit is not missed" {
    each_database
    run_a_held_back "INSERT INTO" -n --server-wait 20s new
    run -0 rlock pause 'n*' 1h -m upgrade
    let_go
    finish a 60
    [[ $status != 0 && ! -e $T/ran ]]
    run -0 rlock resume 'n*'
    terminate relay
}

# sleepers NUMBER: so many sessions of MySQL wait for a message.
sleepers() {
    [[ $(database_sql mysql "SELECT count(*) FROM information_schema.processlist
        WHERE user = 'locker' AND info LIKE 'SELECT IF(EXISTS%'") == "$1" ]]
}

# served URL: five by that URL wait for one, and run one after the other. Sets how long that takes,
# in ms.
served() {
    local i start
    hold first k -u "$1"
    for i in {1..5}; do
        bg "w$i" rlock run -u "$1" k -- sh -c "echo $i >>'$LOG'"
        poll_until 15 has_waiters k "$i"
    done
    poll_until 15 sleepers 5
    start=${EPOCHREALTIME/[.,]/}
    terminate first
    all_end 0 40 w{1..5}
    took=$(((${EPOCHREALTIME/[.,]/} - start) / 1000))
    [[ $(xargs <"$LOG") == '1 2 3 4 5' ]]
    rm "$LOG"
}

@test "MariaDB: a waiter sleeps in the server and is woken; where that is refused, it looks" {
    with_database mysql
    served "$RLOCK_URL"
    woken=$took
    run rlock doctor
    [[ $output == *"fine     wake-up      waiters sleep in the server, and KILL QUERY wakes"* ]]
    [[ $output == *"fine     reads        the server that takes the writes answers the reads"* ]]
    relay_to_database 'KILL QUERY' 'KILL QUREY'
    served "$through"
    echo "woken: $woken ms, looking: $took ms"
    run rlock doctor -u "$through"
    [[ $output == *"warning  wake-up      KILL QUERY fails"* ]]
    ((woken * 2 < took))
}

@test "H9 MariaDB: a waiter that cannot have a second connection keeps its place" {
    # Each renewal of a lock or a place makes a new version of the lock's record.
    version() { database_sql mysql "SELECT version FROM rlock_record WHERE name = 'rlock:{k}'"; }
    place_is_renewed() { (($(version) > before + 2)); }
    with_database mysql
    hold a k --lease 60s
    queue b k
    poll_until 15 sleepers 1
    database_sql mysql "ALTER USER locker@'%' WITH MAX_USER_CONNECTIONS 2"
    before=$(version)
    poll_until 30 place_is_renewed
    database_sql mysql "ALTER USER locker@'%' WITH MAX_USER_CONNECTIONS 0"
    terminate a
    ends_with b 0
}

@test "H117 a record that another program has written meanwhile is not written over" {
    each_database
    owner=$(rlock acquire --lease 5m k)
    database_sql "$DATABASE" "CREATE TABLE held AS SELECT * FROM rlock_record"
    run -0 rlock release --owner "$owner" k
    run_a_held_back 'INSERT INTO rlock_record' -n --server-wait 20s k
    database_sql "$DATABASE" "UPDATE rlock_record SET version = version + 3,
        state = (SELECT state FROM held WHERE held.name = rlock_record.name),
        expires = (SELECT expires FROM held WHERE held.name = rlock_record.name)
        WHERE name IN (SELECT name FROM held)"
    let_go
    finish a 60
    database_sql "$DATABASE" 'DROP TABLE held'
    [[ $status == 75 && ! -e $T/ran ]]
    terminate relay
}

@test "H120 MariaDB: without the rows that are locked in place of records, nothing is locked" {
    with_database mysql
    database_sql mysql 'DELETE FROM rlock_gate'
    says 69 'has no tables for locks' run --server-wait 0 k -- touch "$T/ran"
    run -0 rlock init
    run -0 rlock run k -- true
}

# view_has VIEW KEY ROWS: a waiter that is late to call again is not in it for a moment; one that
# has ended is, until its place ends, if its release had no answer in time.
view_has() {
    database_sql "$DATABASE" "SELECT $2, role, mode, label FROM $1
        WHERE since <= current_timestamp(6) AND until > current_timestamp(6)
            AND username = '$(id -un)' ORDER BY 1, 2" | tr '\t' '|' | tee "$T/seen" >&2
    [[ $(cut -d '|' -f 1-3 "$T/seen" | paste -sd ' ') == "$3" ]]
}

@test "a view shows holders, those that nest in them, and waiters in SQL" {
    each_database
    local key='"key"' view='"Looked_2_locks"'
    if [[ $DATABASE == mysql ]]; then
        key='`key`' view=Looked_2_locks
        database_sql mysql "GRANT CREATE VIEW ON locks.* TO locker@'%'"
    fi
    RLOCK_URL+='?table=Looked_2'
    run -0 rlock init
    run -0 rlock run was -- true
    bg_up a rlock run --keep-credentials --label 'é "b" \c' k -- \
        "$RLOCK" run k -- sh -c ": >'$T/a.up'; exec sleep 1000"
    queue b k
    hold c s --limit 2
    local rows=('k|holder|exclusive' 'k|holder|exclusive' 'k|waiter|exclusive' \
        's|holder|semaphore')
    poll_until 60 view_has "$view" "$key" "${rows[*]}"
    grep -F '%c3%a9%20"b"%20' "$T/seen"
    kill "${pid[a]}" "${pid[b]}" "${pid[c]}"
    finish a
    finish b
    finish c
    poll_until 60 view_has "$view" "$key" ''
}

# Beside a copy of rlock stands a driver that hears of the protocol 2.
@test "a driver of another protocol is refused with 69, and the command is not run" {
    each_database
    cp "$RLOCK" "$T/rlock"
    cat >"$T/rlock-$DATABASE" <<END
#!/usr/bin/python3
import os, select, socket, subprocess
ours, theirs = socket.socketpair()
driver = subprocess.Popen(["${RLOCK%/*}/rlock-$DATABASE"], stdin=theirs)
theirs.close()
rlock = socket.socket(fileno=os.dup(0))
first = rlock.recv(65536)
assert b"OPEN\r\n\$1\r\n1\r\n" in first
ours.sendall(first.replace(b"OPEN\r\n\$1\r\n1\r\n", b"OPEN\r\n\$1\r\n2\r\n"))
while True:
    for one, other in ((rlock, ours), (ours, rlock)):
        if select.select([one], [], [], 0.01)[0]:
            text = one.recv(65536)
            if not text: os._exit(0)
            other.sendall(text)
END
    chmod +x "$T/rlock-$DATABASE"
    run -69 --separate-stderr "$T/rlock" run --server-wait 0 k -- touch "$T/ran"
    stderr_line 'rlock and its program are of different versions'
    [[ ! -e $T/ran ]]
}

@test "without /dev/null, as in a bare chroot, drivers start; no connection is a standard stream" {
    unshare --mount true 2>/dev/null || skip "may not mount here"
    each_database
    : >"$T/config"
    local -x RLOCK_CONFIG=$T/config
    run -0 --separate-stderr unshare --mount sh -c 'mount -t tmpfs none /dev &&
        exec "$RLOCK" run k -- echo ran' 3>&-
    [[ $output == ran && ! $stderr ]]
    run -0 --separate-stderr unshare --mount sh -c 'mount -t tmpfs none /dev &&
        exec "$RLOCK" acquire k <&- 2>&-' 3>&-
    RLOCK_OWNER=$output run -0 rlock release k
}
