# Replicas of the server that helper starts, for the .bats files that need them. Loaded after
# helper; the file starts with master_file. Each test has the replicas that it starts, and they end
# with it.
# shellcheck shell=bash disable=SC2154

# master_file [REDIS OPTION...]: for setup_file: a server that listens on a port, too.
master_file() {
    MASTER_PORT=$(free_ports 1)
    export MASTER_PORT
    start_file --port "$MASTER_PORT" --bind 127.0.0.1 --repl-diskless-sync-delay 0 "$@"
}

# replica_start NAME [REDIS OPTION...]: its socket is $T/NAME/sock. Returns when it has the master's
# data.
replica_start() {
    start_redis "$T/$1" --port 0 --unixsocket "$T/$1/sock" --repl-diskless-sync-delay 0 \
        --replicaof 127.0.0.1 "$MASTER_PORT" "${@:2}"
    poll_until 15 is_synchronised "$1"
}

# on NAME WORD...: sends that command to that server.
on() {
    "$RLOCK_TEST_TOOLS/redis_command" "$T/$1/sock" "${@:2}" 3>&-
}

# Both sides know of it, and the master hears from all that were started here. One that answers
# has written its pid file.
is_synchronised() {
    local files
    [[ $(on "$1" info replication) == *master_link_status:up* ]] || return
    files=("$T"/*/pid)
    [[ $(redis info replication | grep -c ',state=online,') == "${#files[@]}" ]] &&
        acknowledged "${#files[@]}" redis-cli -s "$REDIS_SOCK"
}

# replica_pid NAME: prints the process of that replica.
replica_pid() {
    cat "$T/$1/pid"
}

# By their pid files: redis-server writes over the environment by which others are found.
end_replicas() {
    local file
    for file in "$T"/*/pid; do
        kill_redis "${file%/pid}"
    done
}

# promote NAME: from now on it is a master. Traffic at the proxy's address goes to it, if there is a
# proxy.
promote() {
    on "$1" replicaof no one >/dev/null
    [[ ! -e $T/proxy.ctl ]] || fault target "$T/$1/sock"
}
