# A deployment for the .bats files that need one: a master, its replica and three Sentinels that
# watch them, all on 127.0.0.1, each in a directory of its own, on ports that were free. Loaded
# after helper.
# shellcheck shell=bash disable=SC2154
#
# The servers are called a and b, the Sentinels 1, 2 and 3. ${port[NAME]} is where one listens.

# Also for teardown_file, which sees nothing of what a test exports.
DEPLOYMENT=${BATS_FILE_TMPDIR:-/nonexistent}/deployment
# The name is of this run only: Sentinels that watch a master of the same name find each other, and
# those of another checkout's tests may watch one that had the same port.
MASTER=m-${BATS_RUN_TMPDIR##*-}

setup() {
    start_test
    need_deployment
}

teardown() {
    [[ -n $BATS_TEST_COMPLETED ]] || {
        show_evidence
        show_deployment
        disturb
    }
    end_processes
    [[ -e $DEPLOYMENT/disturbed ]] || on a flushall >/dev/null
    undeploy if-disturbed
}

teardown_file() {
    undeploy
    redis_stop
}

# need_deployment: as deploy makes it, if the test before has not left one.
need_deployment() {
    local one number
    declare -gA port=()
    export DEPLOYMENT=$BATS_FILE_TMPDIR/deployment
    if [[ ! -d $DEPLOYMENT ]]; then
        deploy
        return
    fi
    while read -r one number; do
        port[$one]=$number
    done <"$DEPLOYMENT/ports"
    RLOCK_URL=$(sentinel_url 1 2 3)
    export RLOCK_URL
}

# deploy [REDIS OPTION...]: RLOCK_URL leads there. SENTINEL_LINES are for the Sentinels'
# configuration. Where TLS_FILES is set, to options --tls-…, all speak TLS.
deploy() {
    local one ports
    declare -gA port=()
    export DEPLOYMENT=$BATS_FILE_TMPDIR/deployment SERVER_OPTIONS="$*"
    read -ra ports <<<"$(free_ports 5)"
    for one in a b 1 2 3; do
        mkdir -p "$DEPLOYMENT/$one"
        port[$one]=${ports[0]}
        ports=("${ports[@]:1}")
        echo "$one ${port[$one]}" >>"$DEPLOYMENT/ports"
    done
    server_start a
    server_start b --replicaof 127.0.0.1 "${port[a]}"
    poll_until 15 is_synchronised b
    for one in 1 2 3; do
        sentinel_start "$one"
    done
    poll_until 30 is_settled
    RLOCK_URL=$(sentinel_url 1 2 3)
    export RLOCK_URL
}

# Ends what there is of it; the next test gets a new one. Asked, it spares one that nothing was done
# to.
undeploy() {
    local one
    [[ $1 != if-disturbed || -e $DEPLOYMENT/disturbed ]] || return 0
    for one in a b 1 2 3; do
        [[ ! -d $DEPLOYMENT/$one ]] || server_kill "$one"
    done
    rm -rf "$DEPLOYMENT"
}

# To be said by who does more than to ask.
disturb() {
    : >"$DEPLOYMENT/disturbed"
}

# sentinel_url NAME|HOST:PORT...: of $MASTER, by these.
sentinel_url() {
    local one hosts=()
    for one in "$@"; do
        [[ $one == *:* ]] || one=127.0.0.1:${port[$one]}
        hosts+=("$one")
    done
    (
        IFS=,
        echo "sentinel://${hosts[*]}/$MASTER"
    )
}

# How the one of that name listens.
listening() {
    if [[ $TLS_FILES ]]; then
        echo "--port 0 --tls-port ${port[$1]} --tls-replication yes --tls-auth-clients no $TLS_FILES"
    else
        echo "--port ${port[$1]}"
    fi
}

# server_start a|b [OPTION...]: with users of their own for the Sentinels and the replica. The clock
# of SHIMMED is bent.
server_start() {
    local one=$1 REDIS_PRELOAD=
    [[ $one != "$SHIMMED" ]] || REDIS_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so
    # shellcheck disable=SC2046 # they are words
    start_redis "$DEPLOYMENT/$one" $(listening "$one") --bind 127.0.0.1 \
        --repl-diskless-sync yes --repl-diskless-sync-delay 0 --masteruser copier --masterauth pw \
        $SERVER_OPTIONS "${@:2}"
    poll_until 10 answers "$one"
    on "$one" acl setuser watcher on '>pw' '~*' '&*' +@all
    on "$one" acl setuser copier on '>pw' '~*' '&*' +@all
}

sentinel_start() {
    local one=$1
    [[ -e $DEPLOYMENT/$one/conf ]] || printf '%s\n' >"$DEPLOYMENT/$one/conf" \
        "$(listening "$one" | sed 's/^--//; s/ --/\n/g')" "bind 127.0.0.1" "daemonize yes" \
        "dir $DEPLOYMENT/$one" \
        "pidfile $DEPLOYMENT/$one/pid" "logfile $DEPLOYMENT/$one/log" \
        "sentinel monitor $MASTER 127.0.0.1 ${port[a]} 2" \
        "sentinel auth-user $MASTER watcher" "sentinel auth-pass $MASTER pw" \
        "sentinel down-after-milliseconds $MASTER 30000" \
        "sentinel failover-timeout $MASTER 3000" "${SENTINEL_LINES[@]}"
    redis-server "$DEPLOYMENT/$one/conf" --sentinel 3>&- >/dev/null
    poll_until 10 answers "$one"
}

# impatient: from now on the Sentinels take a server for down that is silent for a second. Until
# then they keep a master that stands still for a while, as on a busy machine.
impatient() {
    local one
    disturb
    for one in 1 2 3; do
        on "$one" sentinel set "$MASTER" down-after-milliseconds 1000 >/dev/null || true
    done
}

# kill_master: a, when b has all that it has; b is the master soon.
kill_master() {
    poll_until 15 is_synchronised b
    impatient
    server_kill a
}

# server_pid NAME: prints its process.
server_pid() {
    cat "$DEPLOYMENT/$1/pid" 2>/dev/null
}

# server_kill NAME: kills it, and waits for its end.
server_kill() { kill_redis "$DEPLOYMENT/$1"; }

# server_signal NAME SIGNAL: sends it that signal.
server_signal() {
    disturb
    kill "-$2" "$(server_pid "$1")"
}

# cut_off a|b FROM: from the "sentinels", or from its "replica". The others still reach it.
cut_off() {
    local -A users=([sentinels]=watcher [replica]=copier)
    local user=${users[$2]}
    disturb
    on "$1" acl setuser "$user" off
    [[ $2 != sentinels ]] || impatient
    # Whose password is refused is the default user, as which a Sentinel must not see the server
    # either.
    on "$1" acl setuser default -ping -info -replicaof -slaveof
    on "$1" client kill user "$user"
}

# on NAME COMMAND...: asks one of them, with $REDISCLI_AUTH where it wants a password, and a
# Sentinel with SENTINEL_AUTH, if that is set.
on() {
    local plain=()
    [[ ! ${REDISCLI_AUTH-} ]] || plain=(env -u REDISCLI_AUTH)
    [[ $1 == [ab] || ! ${SENTINEL_AUTH-} ]] || local -x REDISCLI_AUTH=$SENTINEL_AUTH
    [[ $1 != [ab] && ${SENTINEL_LINES[*]} != *requirepass* ]] || plain=()
    bounded "${plain[@]}" redis-cli ${TLS_FILES:+--tls --insecure} -e -p "${port[$1]}" "${@:2}" \
        3>&-
}

# answers NAME: it answers.
answers() {
    [[ $(on "$1" ping 2>&1) == PONG ]]
}

# has_role NAME ROLE: so that server calls itself: master or slave.
has_role() {
    [[ $(on "$1" role | head -n 1) == "$2" ]]
}

# The replica of a, which hears from it.
is_synchronised() {
    on "$1" info replication | grep -q 'master_link_status:up' && acknowledged 1 on a
}

# names SENTINEL a|b: it names this master.
names() {
    [[ $(on "$1" sentinel get-master-addr-by-name "$MASTER" | tail -n 1) == "${port[$2]}" ]]
}

# all_name NAME: all three Sentinels name that server as the master.
all_name() {
    names 1 "$1" && names 2 "$1" && names 3 "$1"
}

# The new master is b, and it serves.
b_is_master() {
    poll_until 20 all_name b
    poll_until 10 has_role b master
}

# The Sentinels know each other and the replica.
is_settled() {
    local one
    for one in 1 2 3; do
        [[ $(on "$one" sentinel master "$MASTER" | awk 'NR % 2 { name = $0; next }
            { value[name] = $0 }
            END { print value["num-slaves"], value["num-other-sentinels"], value["flags"] }') == \
            '1 2 master' ]] || return
    done
}

# The logs of the Sentinels and the servers.
show_deployment() {
    local one
    for one in a b 1 2 3; do
        echo "--- $one (port ${port[$one]}) ---"
        grep -v 'Sentinel new conf\|WARNING' "$DEPLOYMENT/$one/log" | tail -n 7
    done
}
