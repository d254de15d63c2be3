# Several hosts of a database, of which one takes writes: in the URL, behind one name, and behind a
# proxy. PostgreSQL and MariaDB, with a replica that takes the primary's place. its_url: a URL with
# these hosts; hold_by NAME URL: NAME holds a lock there, and another one waits; goes_on NAME: it
# has kept the lock, and then the other one has it. have_names: the host "store.test" has the
# addresses in $T/addresses from now on; caught_up: the standby has all that the primary has
# acknowledged. with_database NAME: what follows is done with that one, or the test is skipped.

load helper
load databases
load standbys

setup_file() {
    databases_start
    [[ $DATABASES != *postgresql* ]] ||
        echo 'local replication all trust' >>"$BATS_FILE_TMPDIR/postgresql/data/pg_hba.conf"
    [[ $DATABASES != *postgresql* ]] ||
        database_sql postgresql 'SELECT pg_reload_conf()' >/dev/null
}

teardown() {
    standby_kill
    replica_kill
    [[ $DATABASES != *postgresql* ]] || wait_for_standbys ''
    databases_reset
}

teardown_file() {
    standby_kill
    replica_kill
    databases_end
}

# its_url NAME HOSTS
its_url() {
    echo "$1://locker:p%20w@$2/locks"
}

# have_names: from now on the host "store.test" has the addresses in $T/addresses.
have_names() {
    own_driver "SHIM_DNS_STORE='$T/addresses' LD_PRELOAD='$RLOCK_TEST_TOOLS/shim_dns.so' \\
        ASAN_OPTIONS=$ASAN_OPTIONS exec \"\$DRIVER\""
    RLOCK=$OWN
}

# caught_up: the standby has all that the primary has acknowledged.
caught_up() {
    [[ $(database_sql postgresql "SELECT count(*) FROM pg_stat_replication
        WHERE replay_lsn = pg_current_wal_lsn()") == 1 ]]
}

# hold_by NAME URL: it holds NAME, and another one waits for it.
hold_by() {
    RLOCK_URL=$2
    stay "$1" "$1" --lease 15s
    queued "$1" bg "after_$1" rlock run "$1" -- true
}

# goes_on NAME URL: the holder was not disturbed, and the waiter gets its turn.
goes_on() {
    RLOCK_URL=$2
    ends_well "$1"
    ends_with "after_$1" 0 30
    [[ $(<"$T/$1.err") != *lost* ]]
}

@test "H166 of several hosts the one that takes writes has the locks, wherever it stands" {
    with_database postgresql
    standby_start
    local first=127.0.0.1:$POSTGRESQL_PORT second=127.0.0.1:$STANDBY_PORT gone
    gone=127.0.0.1:$(free_ports 1)
    hold a k
    for RLOCK_URL in "$(its_url postgresql "$second,$first")" \
        "$(its_url postgresql "$gone,$first,$second")"; do
        refused 75 run -n k -- touch "$T/ran"
        refused 0 run free -- true
        refused 0 run -u "${RLOCK_URL/:/s:}" --tls-ca "$CERTS/ca.pem" free -- true
    done
    run -1 rlock doctor
    [[ $output == *'fine     role         it takes writes, and so the locks'* ]]
    [[ $output == *'fine     role         read-only: a standby, or demoted; it takes no locks'* ]]
    [[ $output == *"hosts        of 3 hosts, $first takes the locks"* ]]
    [[ $output == *'warning  reach        1 of the hosts cannot be reached, or not be used'* ]]
    [[ $output == *'lock         acquired in'* ]]
    RLOCK_URL=$(its_url postgresql "$gone,$second")
    says 69 "$gone: Connection refused; $second: read-only\$" \
        run --server-wait 0 k -- touch "$T/ran"
    run -69 rlock doctor
    [[ $output == *'unfit    hosts        none of the 2 hosts takes writes'* ]]
}

# The standby has the same port, for the name that has both addresses.
@test "H166 the primary is killed, its standby promoted: by list, name and proxy no loss" {
    with_database postgresql
    local port=$POSTGRESQL_PORT list RLOCK=$RLOCK
    list=$(its_url postgresql "127.0.0.1:$port,127.0.0.2:$port")
    standby_start 127.0.0.2 "$port"
    wait_for_standbys ''
    start_proxy proxy 127.0.0.1:0 "127.0.0.1:$port"
    echo 127.0.0.1 127.0.0.2 >"$T/addresses"
    have_names
    hold_by list "$list"
    hold_by name "$(its_url postgresql "store.test:$port")"
    hold_by proxy "$(its_url postgresql "${proxy[proxy]}")"
    poll_until 20 caught_up
    database_kill postgresql
    standby 'SELECT pg_promote()' >/dev/null
    fault target "127.0.0.2:$port"
    renewed list
    for one in list name proxy; do
        goes_on "$one" "$list"
    done
    # The former primary is back, and takes writes as well: the one that was promoted counts.
    stay b k -u "$list"
    database_start postgresql
    refused 75 run -n -u "$list" k -- touch "$T/ran"
    run -1 rlock doctor -u "$list"
    [[ $output == *"warning  hosts        2 hosts take writes: 127.0.0.1:$port, 127.0.0.2"* ]]
    ends_well b
}

# The relays ask for other numbers, which the server has, in place of the cluster's name and size.
# Two parts of a cluster have its name as well, but neither has as many nodes as take writes.
@test "H166 doctor knows nodes of one Galera cluster, which all take writes, from two primaries" {
    with_database mysql
    local port
    relay_to_database wsrep_cluster_state_uuid Connection_errors_select
    port=$(<"$T/relay.out")
    run rlock doctor -u "$(its_url mysql "127.0.0.1:$port,localhost:$port")"
    [[ $output == *"warning  hosts        2 hosts take writes: 127.0.0.1:$port"* ]]
    bg_prints sized python3 "$TESTS/sql_relay.py" "$port" wsrep_cluster_size 'Innodb_page_siz%%%'
    port=$(<"$T/sized.out")
    run rlock doctor -u "$(its_url mysql "127.0.0.1:$port,localhost:$port")"
    [[ $output == *"2 hosts take writes, as nodes of one Galera cluster: 127.0.0.1:$port, localhost"* ]]
    run rlock doctor -u "$(its_url mysql "127.0.0.1:$port,127.0.0.1:$MYSQL_PORT")"
    [[ $output == *"warning  hosts        2 hosts take writes: 127.0.0.1:$port"* ]]
}

@test "H166 the primary stands still, its standby is promoted: the list leaves the former one" {
    with_database postgresql
    standby_start
    RLOCK_URL=$(its_url postgresql "127.0.0.1:$POSTGRESQL_PORT,127.0.0.1:$STANDBY_PORT")
    hold_by k "$RLOCK_URL"
    main_processes STOP
    standby 'SELECT pg_promote()' >/dev/null
    renewed k
    main_processes CONT
    goes_on k "$RLOCK_URL"
    refused 0 run -u "$(its_url postgresql "127.0.0.1:$STANDBY_PORT")" k -- true
}

# password_changes URL: the password of its user changes while a lock is held.
password_changes() {
    printf 'p w\n' >"$T/password"
    chmod 600 "$T/password"
    stay a k -u "$1" --password-file "$T/password" --lease 12s
    printf 'another\n' >"$T/password"
    change_password another
    RLOCK_PASSWORD=another RLOCK_URL=$1 renewed k
    ends_well a
    change_password 'p w'
}

@test "H19 H166 a changed password is read again while another host, or address, is away" {
    each_database
    local RLOCK=$RLOCK port without=$DATABASE://locker
    port=$(database_port "$DATABASE")
    password_changes "$without@127.0.0.1:$(free_ports 1),127.0.0.1:$port/locks"
    echo 127.0.0.2 127.0.0.1 >"$T/addresses"
    have_names
    password_changes "$without@store.test:$port/locks"
    # A name leads to one server as a rule, which has refused the password.
    run -77 rlock run -u "$without:wrong@store.test:$port/locks" k -- touch "$T/ran"
    says 69 '^hint: --password-file or RLOCK_PASSWORD' run --server-wait 0 -u \
        "$without:wrong@127.0.0.1:$(free_ports 1),127.0.0.1:$port/locks" k -- touch "$T/ran"
    [[ ! -e $T/ran ]]
}

# The lock's record is on its way to the standby when the primary dies.
@test "H146 an asynchronous standby lacks a lock: its command is stopped, beside the next one" {
    with_database postgresql
    standby_start
    wait_for_standbys ''
    RLOCK_URL=$(its_url postgresql "127.0.0.1:$POSTGRESQL_PORT,127.0.0.1:$STANDBY_PORT")
    poll_until 20 caught_up
    run -1 rlock doctor --lease 9s
    [[ $output == *'the latest locks, and two commands run until the holder notices, within 3s'* ]]
    kill -STOP "$(database_sql postgresql 'SELECT pid FROM pg_stat_replication')"
    stay a k --lease 9s
    bg b rlock run --lease 9s k -- touch "$T/ran"
    poll_until 15 has_waiters k 1
    main_processes KILL
    standby 'SELECT pg_promote()' >/dev/null
    ends_with a 79 30
    contains "$T/a.err" 'lost'
    ends_with b 0 30
    [[ -e $T/ran ]]
}

# -- MariaDB ---------------------------------------------------------------------------------------

replica() {
    mariadb --no-defaults -N -S "$T/replica/sock" -u root locks -e "$1" 3>&-
}

replica_run() {
    as_server mariadbd --no-defaults --datadir="$T/replica/data" --tmpdir="$T/replica" \
        --socket="$T/replica/sock" --port="$REPLICA_PORT" --bind-address=127.0.0.1 \
        --skip-name-resolve --pid-file="$T/replica/pid" --innodb-buffer-pool-size=16M \
        --innodb-log-file-size=8M --innodb-flush-log-at-trx-commit=2 --performance-schema=off \
        --server-id=2 --log-bin --read-only
}

# The replica begins with the files of the primary.
replica_start() {
    REPLICA_PORT=$(free_ports 1)
    echo "$T/replica/pid" >"$BATS_FILE_TMPDIR/replica"
    chmod a+x "$T" "${T%/*}"
    mkdir "$T/replica"
    database_kill mysql
    cp -a "$BATS_FILE_TMPDIR/mysql/data" "$T/replica/"
    ((EUID != 0)) || chown nobody "$T/replica"
    MYSQL_LOGS=1 database_start mysql
    replica_run >>"$T/replica/log" 2>&1 &
    disown
    poll_until 60 replica 'SELECT 1'
    replica "CHANGE MASTER TO master_host = '127.0.0.1', master_port = $MYSQL_PORT,
        master_user = 'root', master_connect_retry = 1, master_use_gtid = slave_pos; START SLAVE"
}

replica_kill() {
    local one
    one=$(cat "$(cat "$BATS_FILE_TMPDIR/replica" 2>/dev/null)" 2>/dev/null) || return 0
    kill -KILL "$one" 2>/dev/null || true
    poll_until 20 gone "$one"
    rm "$BATS_FILE_TMPDIR/replica"
}

# replica_has_all: the replica has done all that the server of the locks has.
replica_has_all() {
    [[ $(replica 'SELECT @@gtid_slave_pos') == $(database_sql mysql 'SELECT @@gtid_binlog_pos') ]]
}

@test "H166 a primary of MariaDB becomes read-only, its replica takes writes: no lock is lost" {
    with_database mysql
    replica_start
    local first=127.0.0.1:$MYSQL_PORT second=127.0.0.1:$REPLICA_PORT
    RLOCK_URL=$(its_url mysql "$second,$first")
    hold_by k "$RLOCK_URL"
    refused 0 run -u "${RLOCK_URL/:/s:}" --tls-ca "$CERTS/ca.pem" free -- true
    # A user who may write to a replica is not led to it.
    refused 75 run -n -u "mysql://root:@$second,$first/locks" k -- touch "$T/ran"
    database_sql mysql 'SET GLOBAL read_only = ON'
    says 69 "$second: read-only; $first: read-only\$" run --server-wait 0 free -- touch "$T/ran"
    poll_until 20 replica_has_all
    replica 'STOP SLAVE; SET GLOBAL read_only = OFF'
    renewed k
    goes_on k "$RLOCK_URL"
    run -1 rlock doctor
    [[ $output == *"hosts        of 2 hosts, $second takes the locks"* ]]
    refused 0 run -u "$(its_url mysql "$second")" k -- true
}
