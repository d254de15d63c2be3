# ZooKeeper servers for the .bats files that need some, on 127.0.0.1, with their data in the file's
# directory. Loaded after helper. A file whose host has no ZooKeeper or no Java is skipped.
# shellcheck shell=bash disable=SC2154
#
# One server is called 1, three are 1, 2 and 3; ${port[NAME]} is where clients reach one. Their tick
# is 500 ms, so that sessions last from 1 to 60 s.

ZOOKEEPER_JARS=/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar
ENSEMBLE=${BATS_FILE_TMPDIR:-/nonexistent}/ensemble

setup_file() {
    clean_environment
    ! has_zookeeper || ensemble_start "${ENSEMBLE_SIZE:-1}"
}

# has_zookeeper: this host has ZooKeeper and Java.
has_zookeeper() {
    [[ -e ${ZOOKEEPER_JARS%%:*} ]] && command -v java >/dev/null
}

setup() {
    zookeeper_setup
}

zookeeper_setup() {
    local one number
    has_zookeeper || skip "there is no ZooKeeper (packages zookeeper, default-jre-headless)"
    start_test
    declare -gA port=()
    while read -r one number; do
        port[$one]=$number
    done <"$ENSEMBLE/ports"
    # A test has nodes of its own.
    export RLOCK_URL=zookeeper://$(ensemble_hosts)/test/$BATS_TEST_NUMBER
    # On a busy machine a server of Java's may need more than 5 s for a session.
    export RLOCK_SERVER_WAIT=1m
}

teardown() {
    has_zookeeper || return 0
    [[ -n $BATS_TEST_COMPLETED ]] || tail -n 15 "$T"/*.err || true
    end_processes
}

teardown_file() {
    local file
    for file in "$ENSEMBLE"/*/pid; do
        [[ ! -e $file ]] || kill -KILL "$(<"$file")" || true
    done
}

# ensemble_hosts: prints HOST:PORT,HOST:PORT... of all servers.
ensemble_hosts() {
    printf '%s\n' "${port[@]}" | sed 's/^/127.0.0.1:/' | paste -sd,
}

# ensemble_start NUMBER
ensemble_start() {
    local one ports servers=
    mkdir -p "$ENSEMBLE"
    read -ra ports <<<"$(free_ports $((3 * $1)))"
    for ((one = 1; one <= $1; one++)); do
        echo "$one ${ports[one - 1]}" >>"$ENSEMBLE/ports"
        servers+="server.$one=127.0.0.1:${ports[$1 + one - 1]}:${ports[2 * $1 + one - 1]}"$'\n'
    done
    [[ $1 != 1 ]] || servers=
    for ((one = 1; one <= $1; one++)); do
        mkdir -p "$ENSEMBLE/$one/data"
        echo "$one" >"$ENSEMBLE/$one/data/myid"
        cat >"$ENSEMBLE/$one/conf" <<END
tickTime=500
maxSessionTimeout=60000
initLimit=10
syncLimit=5
dataDir=$ENSEMBLE/$one/data
clientPort=${ports[one - 1]}
clientPortAddress=127.0.0.1
4lw.commands.whitelist=*
$servers
END
        server_start "$one"
    done
    for ((one = 1; one <= $1; one++)); do
        poll_until 60 serves "${ports[one - 1]}"
    done
}

# server_start NAME [PORT=OTHER ...]: with the latter, what it reaches at PORT is at OTHER.
server_start() {
    local preload=
    (($# == 1)) || preload=$RLOCK_TEST_TOOLS/shim_connect.so
    LD_PRELOAD=$preload SHIM_CONNECT="${*:2}" env -u RLOCK_TEST_ID \
        java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dzookeeper.admin.enableServer=false \
        -Dzookeeper.forceSync=no -Dzookeeper.fastleader.maxNotificationInterval=1000 \
        -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$ZOOKEEPER_JARS" \
        org.apache.zookeeper.server.quorum.QuorumPeerMain "$ENSEMBLE/$1/conf" \
        </dev/null >>"$ENSEMBLE/$1/log" 2>&1 3>&- &
    echo $! >"$ENSEMBLE/$1/pid"
}

# asked PORT WORD: what the server answers to a four letter word, if it does: one that has just been
# started may leave it at that.
asked() {
    (exec 9<>"/dev/tcp/127.0.0.1/$1" && echo -n "$2" >&9 && timeout 5 cat <&9) 2>/dev/null
}

# serves PORT: the server there has a majority, or is the only one, and answers.
serves() {
    asked "$1" srvr | grep -q '^Mode: [lsf]'
}

# server_mode NAME: leader, follower or standalone.
server_mode() {
    asked "${port[$1]}" srvr | sed -n 's/^Mode: //p'
}

# server_signal SIGNAL NAME: sends that server that signal.
server_signal() {
    kill "-$1" "$(<"$ENSEMBLE/$2/pid")"
}

# How many hold KEY.
holders() {
    rlock status --json "$1" 2>/dev/null | jq '.[0].holders | length'
}

# has_holders KEY NUMBER: so many hold it.
has_holders() {
    [[ $(holders "$1") == "$2" ]]
}
