# A Redis Cluster for the .bats files that need one: three masters, each with a replica, all on
# 127.0.0.1. Loaded after helper, whose server is there besides. A node is called by its port.
# shellcheck shell=bash disable=SC2154

# cluster_file [REDIS OPTION...]: for another setup_file; the last option takes the port. RLOCK_URL
# names all its nodes.
# CLUSTER_CLI: what redis-cli needs to reach them.
cluster_file() {
    start_file
    export CLUSTER_DIR=$BATS_FILE_TMPDIR/cluster CLUSTER_LISTEN=${*:---port} CLUSTER_CLI
    CLUSTER_NODES=$(free_ports 6)
    RLOCK_URL=cluster://$(printf ',127.0.0.1:%s' $CLUSTER_NODES | cut -c 2-)
    export CLUSTER_NODES RLOCK_URL
    cluster_make
}

setup_file() { cluster_file; }

cluster_make() {
    local node
    rm -rf "$CLUSTER_DIR"
    for node in $CLUSTER_NODES; do
        node_start "$node"
    done
    # shellcheck disable=SC2046 # they are words
    bounded redis-cli $CLUSTER_CLI --cluster create $(printf '127.0.0.1:%s ' $CLUSTER_NODES) \
        --cluster-replicas 1 --cluster-yes >"$CLUSTER_DIR/log" 2>&1 3>&-
    poll_until 30 is_whole
}

teardown_file() {
    cluster_stop
    redis_stop
}

cluster_stop() {
    local node
    for node in $CLUSTER_NODES; do
        node_kill "$node"
    done
}

# Starts the nodes that were killed, and waits for the whole.
mend() {
    local node
    for node in $CLUSTER_NODES; do
        cli "$node" ping >/dev/null 2>&1 || node_start "$node"
    done
    poll_until 20 is_whole
}

# Whole and empty, whatever the test before has done to it. One that failed may have left anything.
setup() {
    local node seen
    start_test
    for node in $CLUSTER_NODES; do
        kill -CONT "$(node_pid "$node")" 2>/dev/null || true
    done
    if [[ -e $CLUSTER_DIR/spoilt ]] || ! { is_whole || mend; }; then
        cluster_stop
        cluster_make
    fi
    # The name of a key at each of the masters, in the order of the alphabet.
    seen=$(nodes)
    read -ra at <<<"$(masters <<<"$seen")"
    for node in "${at[@]}"; do
        poll_until 10 is_emptied "$node"
    done
    forget_calls
    for node in "${!at[@]}"; do
        at[node]=$(key_at "${at[node]}" "$node" <<<"$seen")
    done
}

teardown() {
    [[ -n $BATS_TEST_COMPLETED ]] || {
        : >"$CLUSTER_DIR/spoilt"
        show_evidence
    }
    end_processes
    redis flushall >/dev/null
}

cli() { # NODE COMMAND...
    bounded redis-cli $CLUSTER_CLI -e -p "$1" "${@:2}" 3>&-
}

# any COMMAND...: asks the first node that answers; a node that hangs does not. The machine may
# stand still meanwhile, so all of them are asked again. One that was ended in the middle of its
# answer, or behind it, has said nothing.
any() {
    local node said
    for _ in {1..20}; do
        for node in $CLUSTER_NODES; do
            said=$(timeout 1 redis-cli $CLUSTER_CLI -e -p "$node" "$@" 3>&- 2>/dev/null) || continue
            printf '%s\n' "$said"
            return
        done
    done
    return 1
}

# node_pid PORT: prints the process of that node.
node_pid() {
    local one
    { read -r one <"$CLUSTER_DIR/$1/pid"; } 2>/dev/null && echo "$one"
}

# A master that stands still for as long as NODE_TIMEOUT is replaced.
node_start() {
    start_redis "$CLUSTER_DIR/$1" $CLUSTER_LISTEN "$1" --bind 127.0.0.1 \
        --cluster-enabled yes --cluster-node-timeout "${NODE_TIMEOUT:-5000}"
    poll_until 10 cli "$1" ping >/dev/null
}

# node_kill PORT: kills that node, and waits for its end.
node_kill() { kill_redis "$CLUSTER_DIR/$1"; }

# PORT ID ROLE MASTER'S-ID SLOTS...
nodes() {
    any cluster nodes | awk '{
        split($2, address, /[:@,]/)
        role = $3 ~ /fail/ ? "gone" : $3 ~ /master/ ? "master" : "replica"
        slots = ""
        for (i = 9; i <= NF; i++) if ($i !~ /^\[/) slots = slots " " $i
        print address[2], $1, role, $4 slots
    }' | sort
}

# The masters that have slots, of those that "nodes" has printed.
masters() {
    awk '$3 == "master" && NF > 4 { printf "%s ", $1 }'
}

# id_of NODE, of those that "nodes" has printed.
id_of() {
    awk -v node="$1" '$1 == node { print $2 }'
}

# replica_of PORT: prints the port of the replica of that master.
replica_of() {
    local seen
    seen=$(nodes)
    awk -v id="$(id_of "$1" <<<"$seen")" '$3 == "replica" && $4 == id { print $1; exit }' <<<"$seen"
}

# slot_of KEY: prints the slot of its lock.
slot_of() {
    any cluster keyslot "rlock:{$1}"
}

# master_in SLOT: the master that has it, of those that "nodes" has printed.
master_in() {
    awk -v slot="$1" '$3 == "master" {
        for (i = 5; i <= NF; i++) {
            split($i, range, "-")
            if (slot >= range[1] && slot <= (range[2] == "" ? range[1] : range[2])) print $1
        }
    }'
}

# The master that has the slot of a key.
master_of() {
    nodes | master_in "$(slot_of "$1")"
}

# key_at NODE PLACE: a key there, by what "nodes" has printed; those with a lower place come first
# in the alphabet.
key_at() {
    local slots=$BATS_FILE_TMPDIR/slots.$2 names
    mapfile -t names < <(printf "k$2-%s\n" {0..49})
    # The slot of a name is the same for ever.
    [[ -s $slots ]] || printf 'cluster keyslot rlock:{%s}\n' "${names[@]}" | cli "$1" |
        paste -d ' ' - <(printf '%s\n' "${names[@]}") >"$slots"
    awk -v node="$1" -v slots="$slots" '$1 == node {
        while ((getline line <slots) > 0) {
            split(line, slot, " ")
            for (i = 5; i <= NF; i++) {
                split($i, range, "-")
                last = range[2] == "" ? range[1] : range[2]
                if (slot[1] + 0 >= range[1] + 0 && slot[1] + 0 <= last + 0) {
                    print slot[2]
                    exit
                }
            }
        }
    }'
}

# Every node sees three masters, each with a replica that follows it, and is fit.
is_whole() {
    local node said
    [[ $(nodes | awk '$3 == "master" && NF > 4 { masters++ }
        $3 == "replica" && !followed[$4]++ { replicas++ }
        END { print masters, replicas }') == '3 3' ]] || return
    for node in $CLUSTER_NODES; do
        said=$(printf '%s\n' 'cluster info' 'cluster nodes' 'role' | cli "$node")
        [[ $said == *cluster_state:ok* && $said != *,fail* ]] || return
        [[ $said == *$'\n'master$'\n'* || $said == *$'\n'connected$'\n'* ]] || return
    done
}

# is_emptied MASTER: it and its replica, from which it hears.
is_emptied() {
    [[ $(printf '%s\n' flushall 'wait 1 1000' | cli "$1" | tail -n 1) == 1 ]]
}

# forget_calls: all nodes count their commands from 0 again.
forget_calls() {
    [[ $(bounded redis-cli $CLUSTER_CLI --cluster call "127.0.0.1:${CLUSTER_NODES%% *}" \
        config resetstat 3>&- | grep -c ': OK$') == 6 ]]
}

# stats_of PORT: writes how often each command was called there to $T/stats.PORT.
stats_of() {
    cli "$1" info commandstats >"$T/stats.$1"
}

# How often a command was called since then, at all nodes: none of them is left out because it took
# long to answer.
cluster_calls() {
    local node
    for node in $CLUSTER_NODES; do
        poll_until 10 stats_of "$node" || return
    done
    awk -F '[:=,]' -v name="cmdstat_$1" '$1 == name { sum += $3 } END { print sum + 0 }' \
        "$T"/stats.*
}

# move_slot KEY TARGET: all that is in the slot of KEY, and then the slot, from its master to
# TARGET.
move_slot() {
    local source
    source=$(master_of "$1")
    open_slot "$1" "$2"
    move_keys "$1" "$source" "$2"
    close_slot "$1" "$2"
}

# From here on the source sends whoever asks for a key that it has not got to the target.
open_slot() { # KEY TARGET
    local seen slot source
    seen=$(nodes)
    slot=$(slot_of "$1")
    source=$(master_in "$slot" <<<"$seen")
    cli "$2" cluster setslot "$slot" importing "$(id_of "$source" <<<"$seen")" >/dev/null
    cli "$source" cluster setslot "$slot" migrating "$(id_of "$2" <<<"$seen")" >/dev/null
}

# move_keys KEY SOURCE TARGET: moves what is in the slot of KEY from one node to the other.
move_keys() { # KEY SOURCE TARGET
    local name
    cli "$2" cluster getkeysinslot "$(slot_of "$1")" 100 | while read -r name; do
        cli "$2" migrate 127.0.0.1 "$3" "$name" 0 2000 >/dev/null
    done
}

# close_slot KEY TARGET: all masters learn that the slot of KEY is at that node from now on.
close_slot() { # KEY TARGET
    local seen slot id node
    seen=$(nodes)
    slot=$(slot_of "$1")
    id=$(id_of "$2" <<<"$seen")
    for node in "$2" $(masters <<<"$seen"); do
        cli "$node" cluster setslot "$slot" node "$id" >/dev/null
    done
}

# One of the masters that do not have the key.
another_than() {
    local seen
    seen=$(nodes)
    masters <<<"$seen" | tr ' ' '\n' | grep -vx "$(master_in "$(slot_of "$1")" <<<"$seen")" |
        grep -m 1 .
}

# When a key's lease ends, ms; 0: it is free.
end_of() {
    local left
    left=$("$RLOCK" status --json "$1" 3>&- | jq '.[0].holders[0].lease_left_ms // 0')
    echo $((left ? $(now_ms) + left : 0))
}

# ends_later KEY MS: the lease of KEY ends a second or more after that time.
ends_later() { # KEY MS
    (($(end_of "$1") > $2 + 1000))
}

# renews_lock KEY: its holder does, after this was called.
renews_lock() {
    poll_until 20 ends_later "$1" "$(end_of "$1")"
}

# ends NAME: told to, it does; it has not lost its lock before.
ends() {
    terminate "$1" 143
}

# A key's master is replaced by its replica.
taken_over() { # KEY OLD
    local now
    now=$(master_of "$1")
    [[ $now && $now != "$2" ]]
}
