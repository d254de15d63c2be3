# A standby of the PostgreSQL of databases.bash, to be loaded after that.
# shellcheck shell=bash disable=SC2154,SC2016

# wait_for_standbys NAMES: a commit waits for these.
wait_for_standbys() {
    local main=$BATS_FILE_TMPDIR/postgresql/data
    echo "synchronous_standby_names = '$1'" >>"$main/postgresql.auto.conf"
    kill -HUP "$(head -n 1 "$main/postmaster.pid")" 2>/dev/null || true
}

standby() {
    psql -qAt -h "$T/standby" -p "$STANDBY_PORT" -U root -d locks -c "$1" 3>&-
}

# standby_start [ADDRESS PORT]: a commit waits for it, until wait_for_standbys says otherwise.
standby_start() {
    local dir=$T/standby
    STANDBY_PORT=${2:-$(free_ports 1)}
    echo "$dir" >"$BATS_FILE_TMPDIR/standby"
    chmod a+x "$T" "${T%/*}"
    mkdir "$dir"
    ((EUID != 0)) || chown nobody "$dir"
    as_server "$POSTGRESQL_BIN/pg_basebackup" -R -c fast -D "$dir/data" \
        -d "host=$BATS_FILE_TMPDIR/postgresql port=$POSTGRESQL_PORT user=root" >/dev/null
    as_server "$POSTGRESQL_BIN/postgres" -D "$dir/data" -k "$dir" -p "$STANDBY_PORT" \
        -c listen_addresses="${1:-127.0.0.1}" -c shared_buffers=4MB -c fsync=off \
        -c cluster_name=second >>"$dir/log" 2>&1 &
    disown
    wait_for_standbys second
    poll_until 60 eval '[[ $(database_sql postgresql "SELECT sync_state
        FROM pg_stat_replication") == sync ]]'
}

# standby_kill: kills the standby, if there is one.
standby_kill() {
    local file
    file=$(cat "$BATS_FILE_TMPDIR/standby" 2>/dev/null)/data/postmaster.pid
    [[ ! -e $file ]] || kill -KILL "$(head -n 1 "$file")" 2>/dev/null || true
    rm -f "$BATS_FILE_TMPDIR/standby"
}

# main_processes SIGNAL: some of them may end just now.
main_processes() {
    local main all
    main=$(head -n 1 "$BATS_FILE_TMPDIR/postgresql/data/postmaster.pid")
    mapfile -t all < <(children_of "$main")
    kill "-$1" "$main"
    kill "-$1" "${all[@]}" 2>/dev/null || true
}
