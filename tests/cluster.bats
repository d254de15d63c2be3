# A Redis Cluster: every kind of lock, one at a time and several; where keys are, and where they are
# looked for. ${at[N]} is a KEY at the Nth of three masters; a node is called by its port. rounds
# NAME NUMBER SECONDS KEY...: so often, or until there is a file "enough", it takes the keys and
# writes to the log who comes and who goes. each_alone: of these, no two are there at a time.
# asks_holder KEY: its holder is asked for it (force-release), releases it, and says who asked.
# all_commands: each command that asks a store for a lock or a latch. crowd SERVER...: clients hold
# all the connections that these servers accept, until crowd_leaves. renews_lock KEY: its holder has
# renewed it since.

load helper
load cluster
load crowds
load decisions

# url_of PORT: prints the address of the Cluster, by this node only.
url_of() {
    echo "cluster://127.0.0.1:$1"
}

# are_connected NUMBER: so many clients at all nodes, without those that ask here. A node that does
# not answer counts as a failure.
are_connected() {
    local node
    for node in $CLUSTER_NODES; do
        { cli "$node" client list type normal && cli "$node" client list type pubsub; } \
            >"$T/clients.$node" || return
    done
    [[ $(cat "$T"/clients.* | grep -vc cmd=client) == "$1" ]]
}

@test "each key is locked at its master, whichever node the URL names, over one connection" {
    for key in "${at[@]}"; do
        for node in $CLUSTER_NODES; do
            run -7 --separate-stderr rlock run -u "$(url_of "$node")" "$key" -- \
                sh -c 'echo $RLOCK_KEY; exit 7'
            [[ $output == "$key" && -z $stderr ]]
        done
        hold "$key" "$key"
        queue "w$key" "$key"
    done
    run -0 rlock status
    [[ $(wc -l <<<"$output") == 4 ]]
    # A server lists a connection for a while after it was closed; one that is kept would never go.
    poll_until 10 are_connected 6
}

@test "H52 a first run follows where it is referred to, and reads no map for it" {
    for key in "${at[@]}"; do
        run -0 rlock run "$key" -- true
    done
    [[ $(cluster_calls 'cluster|slots') == 0 && $(cluster_calls cluster) == 0 ]]
    [[ $(cluster_calls evalsha) -le 11 ]]
}

@test "waiting is first come, first served, and whoever is next is called" {
    hold a "${at[1]}"
    for i in 1 2 3; do
        queue "w$i" "${at[1]}" -u "$(url_of "$(cut -d ' ' -f "$((i + 2))" <<<"$CLUSTER_NODES")")"
    done
    status_json "${at[1]}" '.[0].waiters | map(.position) == [1, 2, 3]'
    forget_calls
    kill "${pid[a]}"
    in_turn 10 w{1..3}
    [[ $(cluster_calls publish) -ge 3 ]]
}

# The renewal behind a hand-over says that it is one; a new acquisition does not.
@test "a waiter starts from the message that hands it the lock, and does not ask again" {
    hold a "${at[1]}"
    bg w rlock run "${at[1]}" -- sh -c "echo w >>'$LOG'; await '$T/w.end'"
    poll_until 15 has_waiters "${at[1]}" 1
    for node in $CLUSTER_NODES; do
        bg "monitor$node" redis-cli $CLUSTER_CLI -p "$node" monitor
        poll_until 10 contains "$T/monitor$node.out" OK
    done
    kill "${pid[a]}"
    poll_until 10 grep -qs '"EVALSHA".*"handed"' "$T"/monitor*.out
    touch "$T/w.end"
    in_turn 10 w
}

@test "every command works in a Cluster" {
    all_commands
}

@test "pause, limit and reserve reach the master of their KEY" {
    export XDG_STATE_HOME=$T/state
    run -0 rlock pause "${at[0]}" 1h -m 'disk full'
    says 75 'paused by .* left\): disk full$' run -n "${at[0]}" -- true
    run -0 rlock resume "${at[0]}"
    run -0 rlock limit "${at[1]}" 1
    hold c "${at[1]}" --limit
    queued "${at[1]}" bg d rlock run --limit "${at[1]}" -- sleep 1000
    run -0 rlock limit "${at[1]}" 2
    poll_until 10 has_waiters "${at[1]}" 0
    run -0 rlock reserve "${at[2]}" 1h -m 'load test'
    run -75 env XDG_STATE_HOME="$T/other" rlock run -n "${at[2]}" -- true
    run -0 rlock extend "${at[2]}" 2h
    run -0 rlock release "${at[2]}"
}

@test "--mirror: another program's key in the slot of the lock" {
    local key=${at[1]} node
    run -0 rlock run --mirror string "$key" -- true
    hold a "$key" --mirror "string:their{$key}"
    run -75 --separate-stderr rlock run -n --mirror "string:their{$key}" "$key" -- true
    terminate a
    poll_until 5 is_free "$key"
    for node in $(nodes | masters); do
        cli "$node" set "their{$key}" stranger px 60000 2>/dev/null | grep -qx OK && break
    done
    run -75 --separate-stderr rlock run -n --mirror "string:their{$key}" "$key" -- true
    stderr_line "held by a foreign lock their.$key. for at most"
    run -64 --separate-stderr rlock run --mirror "string:${at[0]}" "$key" -- true
    says 64 'are in different slots' force-release --yes --mirror "string:${at[0]}" "$key"
    run -0 rlock force-release --yes --mirror "string:their{$key}" "$key"
}

@test "latches are listed from all masters, each once and in order" {
    for key in "${at[@]}"; do
        rlock latch set "latch-$key" 2
    done
    rlock latch set gate 1
    rlock latch count-down gate
    hold lock "${at[0]}"
    run -0 rlock latch list --json
    json "map(.key) == ([\"gate\"] + $(printf 'latch-%s\n' "${at[@]}" | jq -Rn '[inputs]') | sort)"
    json 'map(select(.left == 0) | .key) == ["gate"]'
    run -0 rlock latch list gate
    [[ ${lines[1]} == "gate  open   0 of 1"* && ${#lines[@]} == 2 ]]
    run -75 rlock latch list -q 'latch-*'
    says 78 "^rlock: latch: ${at[0]}: the key is a lock" latch list "${at[0]}"
    says 78 '^rlock: status: gate: the key is a latch; rlock latch status shows it$' status gate
}

@test "status: patterns, names and free locks, in order, and from each node the same" {
    for key in "${at[@]}" other; do
        hold "$key" "$key"
    done
    want=$(printf '%s\n' "${at[@]}" other)
    for node in $CLUSTER_NODES; do
        [[ $(rlock status -u "$(url_of "$node")" --json | jq -r '.[].key') == "$want" ]]
    done
    [[ $(rlock status --json 'k*' | jq -r '.[].key') == "$(printf '%s\n' "${at[@]}")" ]]
    [[ $(rlock status --json free other 'k*' other | jq -r '.[].key') == \
        "$(printf '%s\n' free "${at[@]}" other)" ]]
    run -0 rlock status -q free
    run -75 rlock status -q free other
    cli "$(master_of foreign)" set 'rlock:{foreign}' x
    [[ $(rlock status --json | jq -r '.[].key') == "$want" ]]
    run -78 rlock status foreign
    cli "$(master_of foreign)" del 'rlock:{foreign}'
    cli "$(master_of later)" hset 'rlock:{later}' k lock/2
    says 78 '^rlock: status: later: layout lock/2 needs a newer rlock' status
    cli "$(master_of later)" del 'rlock:{later}'
}

@test "force-release by way of another node takes the lock from the holder that was shown" {
    local key=${at[2]} owner first=cluster://127.0.0.1:${CLUSTER_NODES%% *}
    at_work a "$key" forever --lease 9s
    owner=$(rlock status --json "$key" | jq -r '.[0].holders[0].owner')
    run -1 rlock force-release -u "$first" --now --yes --owner nobody "$key"
    run -0 rlock force-release -u "$first" --now --yes --owner "$owner" "$key"
    is_free "$key"
    ends_with a 79
    run -1 rlock force-release -u "$first" --now --yes "$key"
}

@test "H34 H35 --replicas: each master waits for its own replicas, whichever node is asked first" {
    for node in $CLUSTER_NODES; do
        run -0 rlock run -u "$(url_of "$node")" --replicas 1 "${at[1]}" -- true
        run -0 rlock run -u "$(url_of "$node")" --replicas all "${at[2]}" -- true
    done
    run -0 rlock run --replicas majority "${at[@]}" -- sh -c 'sleep 1.5'
    says 69 'only 1 of 2 replicas has it' run --replicas 2 --connect-timeout 3s "${at[0]}" -- \
        touch "$T/run"
    is_free "${at[0]}"
    hold a "${at[0]}" --replicas all --lease 9s "${at[@]:1}"
    kill -STOP "$(node_pid "$(replica_of "$(master_of "${at[0]}")")")"
    finish a
    [[ $status == 79 && ! -e $T/run ]]
}

# ---------------------------------------------------------------- several keys

@test "H54 several keys of several masters: all or none" {
    local a=${at[0]} b=${at[1]} c=${at[2]}
    run -0 rlock run "$a" "$b" "$c" -- true
    forget_calls
    # Three to acquire and three to release; the first node that is asked refers to two others.
    run -0 rlock run "$a" "$b" "$c" -- true
    within 6 9 "$(cluster_calls evalsha)"
    run -0 rlock run "$c" "$a" "$b" -- sh -c 'echo $RLOCK_KEY; echo $RLOCK_FENCE | wc -w'
    [[ $output == "$c $a $b"$'\n'3 ]]
    hold x "$b"
    run -75 --separate-stderr rlock run -n "$a" "$b" "$c" -- touch "$T/run"
    [[ $stderr == *"$b"* && ! -e $T/run ]]
    run -0 rlock status -q "$a" "$c"
}

@test "H64 H77 H78 several keys: nothing is held while one is waited for, nor after a signal" {
    local a=${at[0]} b=${at[1]} c=${at[2]} i
    hold x "$b"
    queued "$b" bg w rlock run "$a" "$b" -- true
    terminate w 143
    has_waiters "$b" 0
    queued "$b" bg w rlock run "$a" "$b" "$c" -- sh -c "echo w >>'$LOG'"
    poll_until 5 "$RLOCK" status -q "$a" "$c"
    for i in 1 2 3; do
        run -0 rlock run -w 20s "$a" "$c" -- true
    done
    hold y "$c"
    kill "${pid[x]}"
    poll_until 10 has_waiters "$c" 1
    poll_until 5 is_free "$a"
    poll_until 5 is_free "$b"
    kill "${pid[y]}"
    in_turn 10 w
    run -0 rlock status -q "$a" "$b" "$c"
}

@test "H64 several keys at one node that stands still: a signal leaves none of them held" {
    local a node=${CLUSTER_NODES%% *} b
    a=$(nodes | key_at "$node" a) b=$(nodes | key_at "$node" b)
    hold x "$b" --lease 60s
    queued "$b" bg w rlock run --lease 60s "$a" "$b" -- true
    cli "$node" del "rlock:{$b}" # the waiter does not hear of it
    kill -STOP "$(node_pid "$node")"
    sleep 2.9 # until it has asked once more
    terminate w 143
    kill -CONT "$(node_pid "$node")"
    poll_until 10 "$RLOCK" status -q "$a" "$b"
}

# rounds NAME NUMBER SECONDS KEY...: each round leaves in the log, for each of its keys, who comes
# and who goes. After so many rounds, or when there is a file "enough", it ends.
rounds() {
    bg "$1" sh -c "for i in \$(seq $2); do
        test ! -e '$T/enough' || exit 0
        \"\$@\" -- sh -c 'for k in \$RLOCK_KEY; do echo \$k $1 >>\"$LOG\"; done; sleep $3
            for k in \$RLOCK_KEY; do echo \$k $1 >>\"$LOG\"; done' || exit
        done" sh rlock run "${@:4}"
}

# end_rounds NAME...: none of them has failed.
end_rounds() {
    local name
    : >"$T/enough"
    for name; do
        ends_with "$name" 0 40
    done
    rm "$T/enough"
}

# A holder of a key leaves before the next one comes.
each_alone() {
    awk '{ inside = $1 in now }
        inside && now[$1] != $2 { print $2 " at " $1 " beside " now[$1]; bad = 1 }
        inside { delete now[$1]; next }
        { now[$1] = $2 } END { exit bad || NR == 0 }' "$LOG"
}

# Six contenders take sets of the KEYs a, b, c that overlap, some in the opposite order, so that one
# of them could wait for another for ever. All of their 400 turns must come.
@test "H78 many want overlapping sets in opposite orders: each gets its turn, none beside another" {
    local a=${at[0]} b=${at[1]} c=${at[2]} i
    rounds p1 20 0.02 "$a" "$b"
    rounds p2 20 0 "$b" "$a"
    rounds p3 20 0.01 "$c" "$a"
    rounds p4 20 0.02 "$b" "$c"
    rounds p5 20 0 "$a"
    rounds p6 20 0.01 "$c"
    all_end 0 40 p{1..6}
    each_alone
    [[ $(wc -l <"$LOG") == 400 ]]
    run -0 rlock status -q "$a" "$b" "$c"
}

# have_had_turns NAME...: each of these rounds has held its lock.
have_had_turns() {
    local name
    for name; do
        grep -q " $name\$" "$LOG" || return
    done
}

# Contenders for a and b together must get both at once while others take a or b all the time, and
# the other way round.
@test "several keys among those who want one of them: each gets its turn" {
    local a=${at[0]} b=${at[1]} i
    for i in 1 2 3; do
        rounds "a$i" 10000 0.05 "$a"
        rounds "b$i" 10000 0.05 "$b"
    done
    poll_until 20 have_had_turns a{1,2,3} b{1,2,3}
    for i in 1 2 3; do
        run -0 rlock run -w 1m "$a" "$b" -- true
    done
    end_rounds a{1,2,3} b{1,2,3}
    each_alone
    for i in 1 2 3; do
        rounds "ab$i" 10000 0.05 "$a" "$b"
    done
    poll_until 20 have_had_turns ab{1,2,3}
    for i in 1 2 3; do
        run -0 rlock run -w 1m "$a" -- true
        run -0 rlock run -w 1m "$b" -- true
    done
    end_rounds ab{1,2,3}
    each_alone
}

@test "several keys: all of them are renewed, and the loss of one ends the command" {
    local a=${at[0]} b=${at[1]} c=${at[2]} key start
    at_work w "$a" forever "$b" "$c" --lease 9s --kill-after 0
    start=$(end_of "$a")
    for key in "$a" "$b" "$c"; do
        poll_until 20 ends_later "$key" "$start"
    done
    status_json 'map(.holders | length) == [1, 1, 1]'
    run -0 rlock force-release --now --yes "$b"
    ends_with w 79
    contains "$T/w.err" "$b"
    # Released at once, or on a busy machine at the end of that short lease.
    poll_until 6 "$RLOCK" status -q "$a" "$b" "$c"
}

@test "H135 several keys: the agent is killed, and the next one renews and releases all of them" {
    stay a "${at[0]}" --lease 9s "${at[@]:1}"
    kill_agent a
    kill_agent a
    for key in "${at[@]}"; do
        renews_lock "$key"
        run -75 rlock run -n "$key" -- true
    done
    kill_agent a
    ends_well a
    for key in "${at[@]}"; do
        poll_until 10 is_free "$key"
    done
}

@test "H135 several keys: the agent is killed while one is waited for: the next one asks at once" {
    stay a "${at[1]}"
    queued "${at[1]}" bg b rlock run --connect-timeout 1h "${at[@]}" -- sh -c "echo b >>'$LOG'"
    kill_agent b
    kill_agent b
    ends_well a
    in_turn 30 b
    for key in "${at[@]}"; do
        poll_until 10 is_free "$key"
    done
}

# ---------------------------------------------------------------- the holder is asked

@test "H45 a Cluster: the holder is asked, of one key and of several at different nodes" {
    local key=${at[0]} other=${at[1]}
    asks_holder "$key"
    hold b "$key" --lease 9s "$other"
    says 0 "^rlock: $other was released by " force-release --yes "$other"
    ends_with b 79
    poll_until 5 is_free "$key"
}

# Each KEY is renewed by itself; the renewal of one does not end the listening of another.
@test "H45 a Cluster: the holder of several keys at one node hears of each of them" {
    node=$(nodes | masters | cut -d ' ' -f 1)
    keys=("$(nodes | key_at "$node" a)" "$(nodes | key_at "$node" b)" "${at[1]}")
    for key in "${keys[@]}"; do
        hold b "${keys[0]}" --lease 1h "${keys[@]:1}"
        poll_until 10 listens_to "${keys[@]}"
        says 0 "^rlock: $key was released by " force-release --yes "$key"
        ends_with b 79
    done
}

@test "--latest in a Cluster: whoever waits for another of several keys sends no later one away" {
    local a=${at[0]} b=${at[1]}
    hold y "$b"
    queued "$b" bg w1 rlock run --latest --group g "$a" "$b" -- sh -c "echo w1 >>'$LOG'"
    hold z "$a"
    queued "$a" bg w2 rlock run --latest --group g "$a" "$b" -- sh -c "echo w2 >>'$LOG'"
    terminate y 143
    ends_with w1 75
    contains "$T/w1.err" superseded
    terminate z 143
    in_turn 10 w2
}

@test "H45 --replace in a Cluster: the holders of several keys are asked, each of them" {
    hold x "${at[0]}"
    hold y "${at[1]}"
    hold z "${at[2]}"
    bg w rlock run --replace "${at[@]}" -- true
    all_end 79 20 x y z
    ends_with w 0
}

# listens_to KEY...: someone listens for who asks for them, at some node.
listens_to() {
    local key node found
    for key; do
        found=
        for node in $(nodes | masters); do
            found+=$(cli "$node" pubsub channels "rlock:{$key}:*")
        done
        [[ $found ]] || return
    done
}

# ---------------------------------------------------------------- other servers

@test "a single server is refused as a Cluster" {
    local port
    port=$(free_ports 1)
    redis config set port "$port" >/dev/null
    refused 69 run -u "cluster://127.0.0.1:$port" k -- touch "$T/run"
    stderr_line 'this server is not in cluster mode'
    stderr_line '^hint: .*redis://'
    says 69 'this server is not in cluster mode' status -u "cluster://127.0.0.1:$port"
    run -69 --separate-stderr rlock doctor --json -u "cluster://127.0.0.1:$port"
    json '.servers[0].findings | any(.check == "reach" and (.text | contains("not in cluster mode")))'
    redis config set port 0 >/dev/null
    run -69 --separate-stderr rlock doctor --server-wait 0 -u "cluster://127.0.0.1:$(free_ports 1)"
    stderr_line '^rlock: doctor: not fit to hold locks: reach: cannot reach cluster://'
}

@test "H59 a Cluster is refused as a single server, and has one database" {
    master=$(master_of "${at[0]}")
    url=redis://127.0.0.1:$master
    run -0 rlock run -u "$url" "${at[0]}" -- true
    refused 69 run -u "$url" "${at[1]}" -- touch "$T/run"
    stderr_line "^rlock: ${at[1]}: $url/0: this is a node of a Redis Cluster\$"
    stderr_line '^hint: cluster://'
    says 69 ': this is a node of a Redis Cluster$' run -u "$url" "${at[@]}" -- touch "$T/run"
    says 69 'the server said: MOVED' run -v -u "$url" "${at[1]}" -- touch "$T/run"
    stderr_line '^hint: cluster://'
    run -64 rlock run -u "$RLOCK_URL/1" k -- true
}

@test "H57 nodes that do not answer are passed over; where none answers: exit 69" {
    dead=127.0.0.1:$(free_ports 1)
    run -0 rlock run -u "cluster://$dead,${RLOCK_URL#cluster://}" "${at[1]}" -- true
    run -0 rlock status -u "cluster://$dead,${RLOCK_URL#cluster://}"
    run -69 --separate-stderr rlock run -u "cluster://$dead,127.0.0.1:1" --server-wait 0 k -- true
    stderr_line "cannot reach cluster://$dead,127.0.0.1:1"
    [[ $stderr != *again* ]]
}

@test "H9 nodes that are full are waited for as a queue is, also if the first node is away" {
    for node in $CLUSTER_NODES; do
        cli "$node" config set maxclients 20 >/dev/null
    done
    crowd $CLUSTER_NODES
    says 69 'too many clients' status
    stderr_line '^hint: maxclients'
    bg_says a 'trying again' rlock run -u "cluster://127.0.0.1:1,${RLOCK_URL#cluster://}" \
        --server-wait 1s --connect-timeout 1s "${at[1]}" -- true
    sleep 4 # longer than it waits for servers that are away
    alive "${pid[a]}"
    crowd_leaves
    ends_with a 0
    for node in $CLUSTER_NODES; do
        poll_until 10 cli "$node" config set maxclients 10000 >/dev/null
    done
}

@test "H57 a node is reached at the port that it announces; where it is not there: exit 69" {
    node=$(master_of "${at[2]}")
    start_proxy proxy 127.0.0.1:0 "127.0.0.1:$node"
    cli "$node" config set cluster-announce-port "${proxy[proxy]##*:}" >/dev/null ||
        skip 'needs Redis 7'
    poll_until 10 announces "${proxy[proxy]}"
    run -0 rlock run "${at[@]}" -- true
    run -0 fault stats
    [[ $output != "accepted 0 "* ]]
    run -0 rlock status
    kill "${pid[proxy]}"
    says 69 "cannot reach cluster://${proxy[proxy]}" run \
        -u "cluster://127.0.0.1:$(master_of "${at[0]}")" --server-wait 0 "${at[2]}" -- true
    cli "$node" config set cluster-announce-port 0 >/dev/null
    poll_until 10 announces "127.0.0.1:$node"
}

# announces HOST:PORT: every node says so.
announces() {
    local node
    for node in $CLUSTER_NODES; do
        cli "$node" cluster nodes | grep -q "$1" || return
    done
}

@test "H57 nodes that announce no address, or a name, are reached" {
    for node in $CLUSTER_NODES; do
        cli "$node" config set cluster-preferred-endpoint-type unknown-endpoint >/dev/null ||
            skip 'needs Redis 7'
    done
    run -0 rlock run "${at[@]}" -- true
    run -0 rlock status
    # The nodes shall be called by name, and have none.
    for node in $CLUSTER_NODES; do
        cli "$node" config set cluster-preferred-endpoint-type hostname >/dev/null
    done
    run -0 rlock run "${at[@]}" -- true
    run -0 rlock status
    for node in $CLUSTER_NODES; do
        cli "$node" config set cluster-announce-hostname localhost >/dev/null
    done
    poll_until 10 sh -c "redis-cli -p ${CLUSTER_NODES%% *} cluster slots | grep -c '^localhost' | grep -q 6"
    run -0 rlock run "${at[@]}" -- true
    run -0 rlock status
    for node in $CLUSTER_NODES; do
        cli "$node" config set cluster-preferred-endpoint-type ip >/dev/null
        cli "$node" config set cluster-announce-hostname "" >/dev/null
    done
}

@test "H20 the rights that the manual names are enough, and the doctor knows them" {
    more=$(sed -n '/Cluster need `/s/`rlock doctor.*//p' "$TESTS/../docs/data.md" |
        grep -o '+[a-z|]*' | xargs)
    [[ $more == "+asking +cluster|slots" ]]
    for node in $CLUSTER_NODES; do
        # shellcheck disable=SC2046 # they are words
        cli "$node" acl setuser rlock reset on '>secret' $(manual_rights) $more
        cli "$node" acl setuser partly reset on '>secret' '~*' '&*' +@all -cluster
    done
    run -1 --separate-stderr rlock doctor \
        -u "cluster://partly:secret@127.0.0.1:${CLUSTER_NODES%% *}"
    [[ $output == *"without +cluster|slots "*"-> ACL SETUSER partly +cluster|slots"* ]]
    export RLOCK_URL=cluster://rlock:secret@127.0.0.1:${CLUSTER_NODES%% *}
    run rlock doctor
    [[ $output == *"rights       all that are needed"* ]]
    hold a "${at[0]}"
    queue w "${at[0]}"
    run -0 rlock run "${at[1]}" "${at[2]}" -- true
    run -0 rlock status
    kill "${pid[a]}"
    ends_with w 0
    run -77 rlock run -u "cluster://rlock:wrong@127.0.0.1:${CLUSTER_NODES%% *}" "${at[1]}" -- true
}

# ---------------------------------------------------------------- nodes that say odd things

# odd NAME PORT ERROR...
odd() {
    bg "$1" python3 "$TESTS/odd_node.py" "${@:2}"
    poll_until 10 sh -c "redis-cli -p $2 time >/dev/null"
}

@test "H52 nodes that refer to each other are asked again, but not without end: exit 69" {
    read -ra ports <<<"$(free_ports 2)"
    a=${ports[0]} b=${ports[1]}
    odd a "$a" "MOVED 1 127.0.0.1:$b"
    odd b "$b" "MOVED 1 127.0.0.1:$a"
    says 69 'too many redirections between Cluster nodes: MOVED 1 127.0.0.1' run \
        -u "cluster://127.0.0.1:$a" --connect-timeout 4s k -- touch "$T/run"
    # More than one round of redirections in 4 s, with pauses: without these there are thousands.
    within 6 120 "$(cat "$T"/[ab].out | grep -c evalsha)"
}

@test "H53 TRYAGAIN, CLUSTERDOWN and NOSCRIPT are asked again" {
    local port=
    port=$(free_ports 1)
    odd a "$port" 'TRYAGAIN Multiple keys request during rehashing of slot' \
        'CLUSTERDOWN Hash slot not served' 'NOSCRIPT No matching script' 'TRYAGAIN again' \
        'ERR the script of a release comes along' "MOVED $(slot_of k) 127.0.0.1:$(master_of k)"
    run -0 rlock run -u "cluster://127.0.0.1:$port" k -- true
    cat "$T/a.out"
    [[ $(grep -c '^eval' "$T/a.out") == 6 ]]
    # The last word is told, where it does not pass.
    port=$(free_ports 1)
    odd b "$port" 'TRYAGAIN Multiple keys request during rehashing of slot'
    says 69 ": the Cluster is moving the key's slot; trying again\$" run \
        -u "cluster://127.0.0.1:$port" --connect-timeout 4s k -- true
    stderr_line ": the Cluster is moving the key's slot(, for [0-9]+s)?\$"
}

@test "H57 a redirection that names no host ends with 69, and is told" {
    local port where
    refers() { # TEXT WHERE
        odd "n$port" "$port" "MOVED $2"
        says 69 "$1" run -u "cluster://127.0.0.1:$port" --server-wait 0 k -- touch "$T/run"
    }
    for where in '1 ?:7000' '1 127.0.0.1:0' '1 127.0.0.1:70000' '99999 127.0.0.1:7000' '1 7000' \
        ''; do
        port=$(free_ports 1)
        refers "the Cluster refers to no host: MOVED" "$where"
    done
    port=$(free_ports 1)
    refers "between Cluster nodes: MOVED 1 :$port" "1 :$port"
}

# is_taken_away SLOT: from all nodes, which tell each other of it until the last one has lost it.
is_taken_away() {
    local node
    for node in $CLUSTER_NODES; do
        cli "$node" cluster delslots "$1" >/dev/null || true
    done
    for node in $CLUSTER_NODES; do
        [[ $(cli "$node" cluster info) == *cluster_slots_assigned:16383* ]] || return
    done
}

@test "doctor checks each master, and says when a slot has no master" {
    wanted=$(nodes | masters | tr ' ' '\n' | sed -n 's|..*|cluster://127.0.0.1:&|p' | sort)
    run --separate-stderr rlock doctor --json -u "$(url_of "${CLUSTER_NODES%% *}")"
    [[ $(jq -r '.servers[].url' <<<"$output" | sort) == "$wanted" ]]
    json '.findings | map([.check, .level]) == [["cluster", "fine"], ["lock", "fine"]]'
    json 'all(.servers[]; .replicas == 1 and any(.findings[]; .check == "rights" and .level == "fine"))'
    node=$(master_of "${at[0]}")
    cli "$node" config set maxmemory 100mb maxmemory-policy allkeys-lru
    run -1 --separate-stderr rlock doctor --json
    json "[.servers[] | select(any(.findings[]; .check == \"eviction\" and .level == \"warning\")) | .url] ==
        [\"cluster://127.0.0.1:$node\"]"
    cli "$node" config set maxmemory 0 maxmemory-policy noeviction

    : >"$CLUSTER_DIR/spoilt"
    lost=$(slot_of "${at[1]}")
    for node in $CLUSTER_NODES; do
        cli "$node" config set cluster-require-full-coverage no
    done
    poll_until 20 is_taken_away "$lost"
    run -69 --separate-stderr rlock doctor --json
    json '.findings[0] | .check == "cluster" and .level == "unfit" and (.text | startswith("1 of 16384 slots"))'
}

@test "H126 a waiter for several keys that is stopped is passed over, and has its turn later" {
    hold a "${at[1]}" --lease 60s
    queue asleep "${at[1]}" --lease 60s "${at[0]}"
    queue w "${at[1]}"
    kill -STOP "${pid[asleep]}"
    kill "${pid[a]}"
    in_turn 20 w
    run -0 rlock run -n "${at[@]:0:2}" -- true
    kill -CONT "${pid[asleep]}"
    finish asleep 20
    [[ $status == 0 && $(paste -sd' ' "$LOG") == "w asleep" ]]
}
