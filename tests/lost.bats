# Every way to lose a lock, by every way to end, on every store: 79 wins over whatever else rlock
# would have ended with. H124 begin_run ROW, lose_lock ROW WAY, end_command ROW: its lock is lost in
# that way while its command runs.

load helper

setup_file() {
    local one port ports
    read -ra ports <<<"$(free_ports 4)"
    start_file --port "${ports[0]}" --bind 127.0.0.1
    export PLACE=$BATS_FILE_TMPDIR/servers XDG_RUNTIME_DIR=$BATS_FILE_TMPDIR
    for one in q1 q2 q3; do
        serve $one --port 0
    done
    for one in c1 c2; do
        port=${ports[1]} ports=("${ports[@]:1}")
        serve $one --port "$port" --bind 127.0.0.1 --cluster-enabled yes \
            --cluster-node-timeout 60000
        CLUSTER_URL=cluster://127.0.0.1:$port
    done
    make_cluster "$port"
    mkdir "$PLACE/s"
    printf '%s\n' "port ${ports[1]}" "bind 127.0.0.1" \
        "sentinel monitor main 127.0.0.1 $(redis config get port | tail -n 1) 1" \
        >"$PLACE/s/conf"
    serve s "$PLACE/s/conf" --sentinel
    export CLUSTER_URL SENTINEL_URL=sentinel://127.0.0.1:${ports[1]}/main
}

teardown_file() {
    local file
    for file in "$PLACE"/*/pid; do
        kill_redis "${file%/pid}"
    done
    "$RLOCK" local stop --force >/dev/null 3>&- || true
    redis_stop
}

# serve NAME OPTION...: a redis-server, on a Unix socket besides.
serve() {
    start_redis "$PLACE/$1" "${@:2}" --unixsocket "$PLACE/$1/sock"
    poll_until 20 eval "[[ \$(redis-cli -s '$PLACE/$1/sock' ping 2>&1) == PONG ]]"
}

# make_cluster PORT: of c1 and c2, which listens there, half of the slots each.
make_cluster() {
    redis-cli -s "$PLACE/c1/sock" cluster addslotsrange 0 8191
    redis-cli -s "$PLACE/c2/sock" cluster addslotsrange 8192 16383
    redis-cli -s "$PLACE/c2/sock" cluster set-config-epoch 2
    redis-cli -s "$PLACE/c1/sock" cluster meet 127.0.0.1 "$1"
    poll_until 20 is_whole c1
    poll_until 20 is_whole c2
}

is_whole() {
    [[ $(redis-cli -s "$PLACE/$1/sock" cluster info) == *cluster_state:ok*cluster_known_nodes:2* ]]
}

# ---------------------------------------------------------------- the stores

# use_store STORE: RLOCK_URL leads there; its servers have these sockets.
use_store() {
    case $1 in
    server) RLOCK_URL=unix://rlock:pw@$REDIS_SOCK sockets=("$REDIS_SOCK") ;;
    sentinel) RLOCK_URL=$SENTINEL_URL sockets=("$REDIS_SOCK") ;;
    cluster | several) RLOCK_URL=$CLUSTER_URL sockets=("$PLACE"/c?/sock) ;;
    quorum) RLOCK_URL=$(printf 'unix://%s ' "$PLACE"/q?/sock) sockets=("$PLACE"/q?/sock) ;;
    local) RLOCK_URL=local: sockets=("$BATS_FILE_TMPDIR/rlock/socket") ;;
    esac
    STORE=$1
}

# To all servers of the store; in a Cluster, one has the key and the other one says so.
tell_all() {
    local socket
    for socket in "${sockets[@]}"; do
        redis-cli -s "$socket" "$@" >/dev/null
    done
}

# keys_of ROW: what it locks; of several keys each is at a server of its own. The first one is what
# is lost.
keys_of() {
    local i slot
    echo "$1"
    [[ $STORE == several ]] || return 0
    slot=$(redis-cli -s "${sockets[0]}" cluster keyslot "$1")
    for i in {1..99}; do
        (((slot < 8192) != ($(redis-cli -s "${sockets[0]}" cluster keyslot "$1-$i") < 8192))) ||
            continue
        echo "$1-$i"
        return
    done
}

# place_of KEY: the node of the Cluster that has it.
place_of() {
    (($(redis-cli -s "${sockets[0]}" cluster keyslot "$1") < 8192)) && echo c1 || echo c2
}

# ---------------------------------------------------------------- ways to end, and what each ends
# with

declare -gA own_status=([itself]=3 [told]=143 [at_most]=124 [continue]=3 [no_renew]=124)

# begin_run ROW END: in the background. Nothing is renewed before it ends: at a quorum that is
# emptied server by server, a renewal in between restores the lock, which then is not lost.
begin_run() {
    local row=$1 command options=(--lease 15m) keys trap=:
    mapfile -t keys < <(keys_of "$row")
    command="'$RLOCK_TEST_TOOLS/await' '$T/$row.go'; exit 3"
    case $2 in
    told) command="exec sleep 1000" ;;
    at_most)
        options+=(--at-most 5s --kill-after 15m)
        command="until [ -e '$T/$row.go' ]; do sleep 0.1; done; exit 3"
        trap="trap ': >\"$T/$row.term\"' TERM"
        ;;
    continue) options+=(--on-lost continue) ;;
    no_renew) options=(--lease 20s --no-renew) command="exec sleep 1000" ;;
    esac
    bg "$row" rlock run "${options[@]}" "${keys[@]}" -- sh -c "$trap; : >'$T/$row.up'; $command"
}

# has_begun ROW: waits until its command has begun.
has_begun() {
    poll_until 10 test -e "$T/$1.up"
}

# end_command ROW END: its command may have ended already, where rlock was told of the loss.
end_command() {
    case $2 in
    told) kill "${pid[$1]}" 2>/dev/null || true ;;
    at_most)
        poll_until 10 test -e "$T/$1.term"
        : >"$T/$1.go"
        ;;
    no_renew) ;;
    *) : >"$T/$1.go" ;;
    esac
}

# ---------------------------------------------------------------- ways to lose

# lose_lock ROW WAY
lose_lock() {
    case $2 in
    kept) ;;
    forced) rlock force-release --now --yes "$1" >/dev/null 2>&1 ;;
    deleted) tell_all del "rlock:{$1}" ;;
    taken)
        tell_all del "rlock:{$1}"
        rlock acquire -n "$1" >/dev/null
        ;;
    flushed) tell_all flushall ;;
    esac
}

# run_ended_with ROW STATUS
run_ended_with() {
    finish "$1" 20
    if [[ $status != "$2" ]]; then
        echo "$STORE, $1: $status instead of $2: $(<"$T/$1.err")"
        return 1
    fi
}

@test "H124 79 for a lost lock, on every store, in every way, however the command ends" {
    local way end ends=(itself told at_most continue) store
    for store in server sentinel cluster several quorum local; do
        rm -f "$T"/*
        use_store $store
        rlock status >/dev/null # a local server begins
        for way in kept forced deleted taken flushed; do
            for end in "${ends[@]}"; do
                begin_run "$way-$end" $end
            done
        done
        for way in kept forced deleted taken flushed; do
            for end in "${ends[@]}"; do
                has_begun "$way-$end"
            done
        done
        # The locks that are flushed are last: that takes everything from everybody.
        for way in kept forced deleted taken flushed; do
            for end in "${ends[@]}"; do
                lose_lock "$way-$end" $way
            done
            for end in "${ends[@]}"; do
                end_command "$way-$end" $end
            done
            for end in "${ends[@]}"; do
                [[ $way == kept ]] || run_ended_with "$way-$end" 79
                [[ $way == kept ]] || contains "$T/$way-$end.err" 'lock lost: '
                [[ $way != kept ]] || run_ended_with "$way-$end" "${own_status[$end]}"
            done
        done
    done
}

# One KEY is deleted at its node, while the node of another KEY stands still and cannot tell. The
# lock is lost: the status says so.
@test "H124 several keys in a Cluster: 79 where one is lost, though another's server is silent" {
    use_store several
    mapfile -t keys < <(keys_of gone)
    other=$(<"$PLACE/$(place_of "${keys[1]}")/pid")
    begin_run gone itself
    has_begun gone
    lose_lock gone deleted
    kill -STOP "$other"
    end_command gone itself
    finish gone
    kill -CONT "$other"
    [[ $status == 79 ]]
    contains "$T/gone.err" 'lock lost: gone: '
}

# no_renew_rows ROUND ROW...: each row is "WAY STORE". They end when their lease does, so all
# of them wait for it together. Sets "unheard" to those whose store did not answer at the end of the
# lease: rlock cannot know then that the lock was lost, says so, and ends with 124.
no_renew_rows() {
    local row round=$1
    shift
    unheard=()
    for row; do
        use_store "${row#* }"
        begin_run "$round-${row/ /-}" no_renew
        has_begun "$round-${row/ /-}"
        lose_lock "$round-${row/ /-}" "${row% *}"
    done
    for row; do
        use_store "${row#* }"
        if [[ $row == kept* ]]; then
            run_ended_with "$round-${row/ /-}" 124
        elif ! run_ended_with "$round-${row/ /-}" 79; then
            [[ $status == 124 ]]
            contains "$T/$round-${row/ /-}.err" 'could not be released'
            unheard+=("$row")
        fi
    done
}

@test "H124 --no-renew on every store: exit 79 where the lock was lost before its end, else 124" {
    local store way rows=() round unheard
    use_store local
    rlock status >/dev/null
    for way in kept forced deleted taken; do
        for store in server sentinel cluster several quorum local; do
            rows+=("$way $store")
        done
    done
    for round in 1 2 3; do
        no_renew_rows $round "${rows[@]}"
        ((${#unheard[@]})) || return 0
        rows=("${unheard[@]}")
    done
    echo "in three rounds the store did not answer in time: ${rows[*]}"
    return 1
}
