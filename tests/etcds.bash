# Members of etcd for the .bats files that need some, on 127.0.0.1, with their data in the file's
# directory. Loaded after helper. A file whose host has no etcd is skipped.
# shellcheck shell=bash disable=SC2154
#
# ${port[1]} is where clients reach the first member. ETCD_SCHEME=https: by TLS, with options of
# etcd_start for the members' certificates and ETCDCTL_CACERT and the like.

ETCD=${BATS_FILE_TMPDIR:-/nonexistent}/etcd

# has_etcd: this host has etcd, and rlock was built for it.
has_etcd() {
    command -v etcd etcdctl >/dev/null && [[ -x ${RLOCK%/*}/rlock-etcd ]]
}

# etcd_start NUMBER [OPTION...]: for setup_file: so many members, in one cluster.
etcd_start() {
    local one ports peers=() count=$1
    shift
    mkdir -p "$ETCD"
    read -ra ports <<<"$(free_ports $((2 * count)))"
    for ((one = 1; one <= count; one++)); do
        echo "$one ${ports[one - 1]}" >>"$ETCD/ports"
        peers+=("m$one=http://127.0.0.1:${ports[count + one - 1]}")
    done
    for ((one = 1; one <= count; one++)); do
        printf '%s\n' --name "m$one" --data-dir "$ETCD/data$one" \
            --initial-cluster "$(IFS=,; echo "${peers[*]}")" \
            --listen-peer-urls "${peers[one - 1]#*=}" \
            --initial-advertise-peer-urls "${peers[one - 1]#*=}" \
            --listen-client-urls "${ETCD_SCHEME:-http}://127.0.0.1:${ports[one - 1]}" \
            --advertise-client-urls "${ETCD_SCHEME:-http}://127.0.0.1:${ports[one - 1]}" \
            --heartbeat-interval 200 --election-timeout 2000 "$@" >"$ETCD/options$one"
        member_start "$one"
    done
    etcd_ports
    poll_until 60 ctl endpoint health
}

# member_start NUMBER: with the data that it has. It outlives the test.
member_start() {
    local options
    mapfile -t options <"$ETCD/options$1"
    env -u RLOCK_TEST_ID etcd "${options[@]}" </dev/null >>"$ETCD/log$1" 2>&1 3>&- &
    echo $! >"$ETCD/pid$1"
}

# member SIGNAL NUMBER...: to the processes of these members.
member() {
    local one
    for one in "${@:2}"; do
        kill "-$1" "$(<"$ETCD/pid$one")"
    done
}

# etcd_ports: reads $port from the file of etcd_start.
etcd_ports() {
    declare -gA port=()
    local one number
    while read -r one number; do
        port[$one]=$number
    done <"$ETCD/ports"
}

# etcd_url: of all members, with the keys of this test below a name of their own.
etcd_url() {
    echo "etcd${ETCD_SCHEME:+s}://$(printf '127.0.0.1:%s,' "${port[@]}" |
        sed 's/,$//')/test$BATS_TEST_NUMBER"
}

# ctl WORD...: asks the members by etcdctl.
ctl() {
    ETCDCTL_API=3 etcdctl --dial-timeout 10s --command-timeout 10s \
        --endpoints "$(printf "${ETCD_SCHEME:-http}://127.0.0.1:%s," "${port[@]}" | sed 's/,$//')" \
        "$@"
}

etcd_setup() {
    has_etcd || skip "there is no etcd here, or rlock-etcd was not built"
    start_test
    etcd_ports
    RLOCK_URL=$(etcd_url)
    export RLOCK_URL
}

teardown() {
    has_etcd || return 0
    [[ -n $BATS_TEST_COMPLETED ]] || tail -n 20 "$T"/*.err "$T"/*.out "$ETCD"/log* || true
    end_processes
}

teardown_file() {
    local file
    for file in "$ETCD"/pid*; do
        [[ ! -e $file ]] || kill -KILL "$(<"$file")" || true
    done
}
