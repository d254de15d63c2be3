# Redis servers that make a quorum, for the .bats files that need one. Loaded after helper.
# shellcheck shell=bash disable=SC2154
#
# The servers are called 1 to NODES, each on a Unix socket in a directory of its own, and know
# nothing of each other.

# quorum_file NUMBER: for setup_file. RLOCK_URL leads to all of them.
quorum_file() {
    local i
    start_file
    export NODES=$1 QUORUM=$BATS_FILE_TMPDIR/quorum
    for ((i = 1; i <= NODES; i++)); do
        node_start "$i"
    done
    know_each_other
    RLOCK_URL=$(node_urls)
    export RLOCK_URL
}

# All are empty, and have been servers of this quorum for an hour. Without it each is from its first
# request on, and on a busy machine these differ by so much that the later ones are taken for
# forgetful.
know_each_other() {
    local i since=$(($(now_ms) - 3600000)) script
    script='local run = redis.call("info", "server"):match("run_id:(%x+)")
        redis.call("hset", "rlock:!quorum", "run", run, "since", ARGV[1], "first", ARGV[1])
        return "known"'
    for ((i = 1; i <= NODES; i++)); do
        node "$i" flushall >/dev/null || return
        [[ $(node "$i" eval "$script" 0 "$since") == known ]] || return
    done
}

teardown_file() {
    local i
    for ((i = 1; i <= NODES; i++)); do
        node_kill "$i"
    done
    redis_stop
}

teardown() {
    [[ -n $BATS_TEST_COMPLETED ]] || {
        show_evidence
        show_quorum
    }
    end_processes
    quorum_mend
}

# For teardown: all serve again, and remember nothing but that they are a quorum.
quorum_mend() {
    local i file
    for ((i = 1; i <= NODES; i++)); do
        node_signal "$i" CONT
        [[ ! -e $QUORUM/$i/dirty ]] || node_kill "$i"
        for file in "$QUORUM/$i"/{dirty,dump.rdb}; do
            [[ ! -e $file ]] || rm "$file"
        done
        node_answers "$i" || node_start "$i"
    done
    know_each_other
}

# show_quorum: prints what each server knows of k, for a test that has failed.
show_quorum() {
    local i
    for ((i = 1; i <= NODES; i++)); do
        echo "--- node $i ---"
        node "$i" hgetall 'rlock:{k}' 2>&1 | paste -sd' '
        node "$i" hgetall 'rlock:!quorum' 2>&1 | paste -sd' '
    done
}

# node_urls [NUMBER...]: of these, or of all.
node_urls() {
    local i urls=()
    (($#)) || set -- $(seq "$NODES")
    for i; do
        urls+=("unix://$QUORUM/$i/sock")
    done
    echo "${urls[*]}"
}

# node NUMBER COMMAND...: asks one. After a change of its configuration it restarts for the next
# test.
node() {
    case ${2,,} in
    config | acl | replicaof | swapdb) : >"$QUORUM/$1/dirty" ;;
    esac
    "$RLOCK_TEST_TOOLS/redis_command" "$QUORUM/$1/sock" "${@:2}" 3>&-
}

# node_answers N: server N answers, be it that it wants a password.
node_answers() {
    [[ $(timeout 1 redis-cli -s "$QUORUM/$1/sock" ping 2>&1) =~ ^(PONG|.*NOAUTH) ]]
}

# node_start NUMBER [OPTION...]: on the data that there is.
node_start() {
    start_redis "$QUORUM/$1" --port 0 --unixsocket "$QUORUM/$1/sock" "${@:2}"
    poll_until 20 node_answers "$1"
}

# node_pid N: prints the process of server N.
node_pid() {
    local one
    { read -r one <"$QUORUM/$1/pid"; } 2>/dev/null && echo "$one"
}

# node_kill N: kills server N, and waits for its end.
node_kill() { kill_redis "$QUORUM/$1"; }

# node_restart NUMBER...: each at once, with nothing.
node_restart() {
    local i
    for i; do
        node_kill "$i"
        node_start "$i"
    done
}

# node_signal NUMBER SIGNAL
node_signal() {
    local one
    one=$(node_pid "$1") || return 0
    kill "-$2" "$one" 2>/dev/null || true
}

# holder_at NUMBER KEY: the owner that it has been given to there, if any.
holder_at() {
    local one
    while read -r one; do
        [[ $one != h:* ]] || echo "${one#h:}"
    done < <(node "$1" hkeys "rlock:{$2}")
}

# holds_at OWNER KEY NUMBER...: on each of these.
holds_at() {
    local owner=$1 key=$2 i
    for i in "${@:3}"; do
        [[ $(holder_at "$i" "$key") == "$owner" ]] || return 1
    done
}

# nothing_at KEY NUMBER...: free on each of these.
nothing_at() {
    holds_at '' "$@"
}

# held_on_all KEY NUMBER...: by the same on each of these.
held_on_all() {
    local owner
    owner=$(owner_of "$1") && holds_at "$owner" "$@"
}

# in_use NUMBER...: each of these has given a lock and has it back, so that none is new to the
# quorum.
in_use() {
    hold user used
    poll_until 5 held_on_all used "$@"
    terminate user
    poll_until 5 nothing_at used "$@"
}
