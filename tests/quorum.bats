# Several --url: an exclusive lock of a majority of servers that know nothing of each other. Its
# abilities, and its refusals; quorum_faults.bats has the faults. node N WORD... asks server N
# itself. held_on_all, nothing_at KEY N...: at each of these servers one owner has KEY, or none has
# it. asks_holder KEY: its holder is asked for it (force-release), releases it, and says who asked.
# each_flight SERVERS COMMAND: in one run after the other, another answer of the SERVERS is lost;
# each run ends well.

load helper
load quorums
load decisions
load flights

setup_file() { quorum_file 3; }

@test "a command runs under a lock of all servers, which is free again on all" {
    run -0 --separate-stderr rlock run k -- sh -c 'echo "$RLOCK_KEY $RLOCK_FENCE $RLOCK_OWNER"'
    read -ra words <<<"$output"
    [[ ${words[0]} == k && $stderr == "" ]]
    poll_until 2 nothing_at k 1 2 3
    hold a k
    owner=$(owner_of k)
    poll_until 5 holds_at "$owner" k 1 2 3
    for i in 1 2 3; do
        (($(node "$i" hget 'rlock:{k}' f) > words[1]))
    done
}

# A release does not wait long for a server that is late, which then keeps the lock for its lease.
comes_and_goes() {
    owner=$(rlock acquire --lease 30s k) && rlock release --owner "$owner" k && nothing_at k 1 2 3
}

@test "every command but latch works with a quorum" {
    run -0 rlock acquire other
    other=$output
    run -0 rlock release --owner "$other" other
    run -0 rlock acquire --lease 30s k
    owner=$output
    run -0 rlock renew --owner "$owner" k
    run -1 rlock renew --owner "$other" k
    run -0 --separate-stderr rlock status --json k
    json ".[0].holders | length == 1 and .[0].owner == \"$owner\" and .[0].lease_left_ms > 7000"
    json '.[0].waiters == [] and .[0].fence == .[0].holders[0].fence'
    run -75 rlock status -q k
    run -1 rlock release --owner "$other" k
    run -0 rlock release --owner "$owner" k
    run -1 rlock release --owner "$owner" k
    poll_until 20 comes_and_goes
    run -0 --separate-stderr rlock status
    [[ $output == '' && $stderr == 'rlock: no locks' ]]
    run rlock doctor
    [[ $output =~ "3 of 3 servers are fit, 2 are needed".*"acquired in" ]]
}

@test "a lock of a later rlock is named although it was not asked for" {
    for i in 1 2 3; do
        node "$i" hset 'rlock:{later}' k lock/2
    done
    run -78 --separate-stderr rlock status
    [[ $stderr == 'rlock: status: later: layout lock/2 needs a newer rlock'* ]]
    run -3 rlock check
}

@test "acquire --keep: the lock is renewed, and released on all" {
    bg script sleep 1000
    run -0 rlock acquire --lease 12s --keep "${pid[script]}" k
    local owner=$output
    poll_until 5 holds_at "$owner" k 1 2 3
    renewed k
    poll_until 5 holds_at "$owner" k 1 2 3
    kill "${pid[script]}"
    poll_until 5 nothing_at k 1 2 3
}

@test "several keys are taken together or not at all" {
    run -0 rlock run a b c -- sh -c 'echo "$RLOCK_FENCE"'
    [[ $output =~ ^[0-9]+\ [0-9]+\ [0-9]+$ ]]
    hold x b
    says 75 '^rlock: b: not acquired: held by ' run -n a b c -- true
    poll_until 5 nothing_at a 1 2 3
    poll_until 5 nothing_at c 1 2 3
}

@test "nested: granted at once, with its ancestor's fence; siblings exclude each other" {
    run -0 rlock run k -- sh -c 'echo $RLOCK_FENCE; rlock run -n k -- sh -c "echo \$RLOCK_FENCE"'
    [[ ${lines[0]} == "${lines[1]}" ]]
    poll_until 2 nothing_at k 1 2 3
    # The first of them holds it until the second one was refused.
    PLACE=$T run -0 --separate-stderr rlock run k -- sh -c '
        rlock run k -- sh -c ": >\"\$PLACE/up\"; await \"\$PLACE/go\"" &
        await "$PLACE/up"
        rlock run -n k -- true; echo $?
        : >"$PLACE/go"; wait'
    [[ $output == 75 ]]
}

# One of three servers is silent, and one does not know the ancestor, so that it is the third one
# whose answer makes the owner one that nests.
@test "nested: with its ancestor's fence, though one server does not know the ancestor" {
    hold a k
    poll_until 5 holds_at "$(owner_of k)" k 3
    node 3 del 'rlock:{k}'
    node_signal 1 STOP
    RLOCK_OWNER=$(owner_of k) run -0 --separate-stderr rlock run -n k -- sh -c 'echo $RLOCK_FENCE'
    [[ $output == "$(rlock status --json k | jq '.[0].fence')" ]]
}

@test "a lock that is held is refused at once, with its holder, and nothing is left of the try" {
    hold a k
    owner=$(owner_of k)
    timed 0 8000 refused 75 run -n k -- touch "$T/ran"
    stderr_line '^rlock: k: not acquired: held by .* pid [0-9]+ \(sh\)'
    poll_until 5 holds_at "$owner" k 1 2 3
    timed 3000 20000 refused 75 run -w 3s k -- true
    poll_until 5 holds_at "$owner" k 1 2 3
}

@test "a waiter gets the lock soon after its release, and says that there is no queue" {
    hold a k --lease 60s
    bg_says b 'waiting for k, held by' rlock run k -- sh -c "echo b >'$LOG'"
    contains "$T/b.err" '; a quorum has no queue'
    [[ $(waiters k) == 0 ]]
    terminate a
    ends_with b 0
}

@test "what a quorum cannot do is refused unasked: exit 64 from the command line, 78 from a file" {
    refusals 'a quorum has no ' '$' <<'END'
run --shared k -- true|--read
read k -- true|--read
acquire --limit 3 k|--limit
latch set k 1|latches
latch list|latches
init|init
run --replicas 1 k -- true|--replicas
run --grace k -- true|--grace
END
    says 64 '^rlock: run: a quorum has no --replace$' run --replace k -- true
    echo 'grace = yes' >"$T/config"
    says 78 "^rlock: run: $T/config:1: a quorum has no --grace$" run --config "$T/config" k -- true
    [[ $(node 1 keys "*") == "rlock:!quorum" ]]
}

@test "a quorum is made of single servers, sixteen at most" {
    local i many=()
    refused 64 run -u redis://h -u sentinel://i/m k -- true
    stderr_line '^rlock: run: --url has sentinel://i:26379/m/0 beside another store, but a quorum is made of single servers'
    for i in {1..17}; do
        many+=(-u "redis://h$i")
    done
    says 64 '^rlock: run: --url names more than 16 servers' run "${many[@]}" k -- true
}

@test "H87 one server by two names: exit 78, with both, and nothing is left there" {
    start_proxy proxy 127.0.0.1:0 "$QUORUM/2/sock"
    RLOCK_URL="$(node_urls 2) redis://${proxy[proxy]}" refused 78 run k -- touch "$T/ran"
    stderr_line "^rlock: k: the same node twice in a quorum: unix://$QUORUM/2/sock and redis://${proxy[proxy]}/0 are one server$"
    poll_until 5 nothing_at k 2
    # Nodes 1 and 2 are a majority without the second name, so rlock waits only for a moment to hear
    # what is behind that.
    RLOCK_URL="$(node_urls 1 2) redis://${proxy[proxy]}"
    poll_until 20 has_status 78 run k -- true
    poll_until 20 has_status 78 status k
    poll_until 5 nothing_at k 1 2
}

@test "H49 H87 a replica in a quorum: exit 78, by name" {
    node 3 config set repl-timeout 1
    node 3 replicaof 127.0.0.1 1
    RLOCK_URL=$(node_urls 1 3) refused 78 run k -- touch "$T/ran"
    stderr_line "^rlock: k: not fit for a quorum: unix://$QUORUM/3/sock: this is a read-only replica of 127.0.0.1:1"
    [[ ! -e $T/ran ]]
    poll_until 20 has_status 78 run k -- true
    poll_until 2 nothing_at k 1 2
}

@test "H20 without the right to INFO: exit 77; the rights that the manual names are enough" {
    for i in 1 2 3; do
        # shellcheck disable=SC2046 # they are words
        node "$i" acl setuser limited reset on '>pw' $(manual_rights)
    done
    RLOCK_URL=${RLOCK_URL//unix:\/\//unix://limited:pw@}
    run -0 rlock run k -- true
    hold a k --lease 12s
    renewed k
    refused 75 run -n k -- true
    prints 0 $'*\nk *' status
    run -0 rlock force-release --now --yes k
    for i in 1 2 3; do
        node "$i" acl setuser limited -info
    done
    says 77 "^rlock: k: no quorum, [23] of 3 servers failed: .*'info'" run k -- true
}

@test "fencing tokens: the highest of a majority counts, and all of it take that" {
    in_use 1 2 3
    node 2 hset 'rlock:{k}' k lock/1 f 5000000000000000
    node_signal 3 STOP
    prints 0 5000000000000001 run k -- sh -c 'echo $RLOCK_FENCE'
    [[ $(node 1 hget 'rlock:{k}' f) == 5000000000000001 ]]
    node_signal 3 CONT
    node_signal 2 STOP
    prints 0 5000000000000002 run k -- sh -c 'echo $RLOCK_FENCE'
}

@test "H47 fencing tokens rise where no server remembers the last one" {
    local i last=0
    for i in 1 2 3 4; do
        run -0 rlock run k -- sh -c 'echo $RLOCK_FENCE'
        ((output > last))
        last=$output
        node $((i % 3 + 1)) del 'rlock:{k}'
        ((i < 3)) || node 2 flushall
    done
}

@test "--at-least: kept by all of them, though the command has ended" {
    run -0 rlock run --at-least 9s k -- true
    refused 75 run -n k -- true
    poll_until 5 rlock run -n k -- true
}

@test "H45 a quorum: the holder is asked, gives the lock back everywhere, and says by whom" {
    asks_holder k
    poll_until 5 nothing_at k 1 2 3
    run -0 rlock run -n k -- true
}

@test "status shows what a majority has, and nothing else" {
    hold a k
    owner=$(owner_of k)
    node 2 copy 'rlock:{k}' 'rlock:{stray}'
    node 3 del 'rlock:{k}'
    status_json k stray ".[0].holders[0].owner == \"$owner\" and .[1].holders == []"
    run -0 rlock status -q stray
    # A lock that a silent server may have, too, counts as held.
    node_kill 3
    status_json k ".[0].holders[0].owner == \"$owner\""
    run -75 rlock status -q stray
    node_signal 2 STOP
    says 69 'no quorum, 2 of 3 servers failed' status --connect-timeout 3s
}

# One of the three nodes has lost the lock already, and the holder keeps it by the other two.
@test "H45 force-release: taken from all that have it; the holder notices and stops" {
    hold a k --lease 9s
    node 3 del 'rlock:{k}'
    run -0 rlock force-release --now --yes k
    poll_until 5 nothing_at k 1 2
    ends_with a 79
    contains "$T/a.err" 'lock lost'
    poll_until 2 nothing_at k 1 2 3
    run -1 rlock force-release --now --yes k
}

@test "H45 force-release of one of several keys: the holder gives the others back at once" {
    hold a k l --lease 30s
    run -0 rlock force-release --now --yes k
    ends_with a 79
    poll_until 5 nothing_at l 1 2 3
}

@test "H45 force-release: a free server and one that does not listen make no majority" {
    node_kill 2
    hold a k --lease 30s
    node_start 2
    poll_until 10 node_answers 2
    node_signal 3 STOP
    run -0 rlock force-release --now --yes --connect-timeout 2s k
    node_signal 3 CONT
    # The holder renews at the third, and would take the lock at the second.
    ends_with a 79 40
    contains "$T/a.err" 'lock lost'
}

@test "H45 a quorum: a holder that does not hear of it loses the lock when its lease ends" {
    hold a k --lease 8s
    kill_both a
    run -0 rlock force-release --yes k
    run -0 rlock run -w 60s k -- true
}

@test "force-release without a majority: exit 69" {
    hold a k --lease 30s
    node_signal 1 STOP
    node_kill 2
    says 69 'no quorum' force-release --now --yes --connect-timeout 1s k
}

@test "doctor checks each server, and whether a majority is fit" {
    for i in 1 2 3; do
        node "$i" config set appendonly yes
    done
    run -0 --separate-stderr rlock doctor --json --lease 1h
    json '(.servers | length) == 3 and all(.servers[]; .verdict == "fit")'
    json '.findings | map([.check, .level]) == [["quorum", "fine"], ["lock", "fine"]]'
    node 2 config set appendonly no
    run -1 --separate-stderr rlock doctor --json --lease 1h
    json '.verdict == "warnings" and [.servers[].verdict] == ["fit", "warnings", "fit"]'
    node_kill 1
    run -1 --separate-stderr rlock doctor --json --lease 1h
    json '.findings[0] | .level == "warning" and (.text | startswith("2 of 3"))'
    json '.findings[1] | .check == "lock" and .level == "fine"'
    node_signal 2 STOP
    says 69 '^rlock: doctor: not fit to hold locks: quorum: 1 of 3' doctor --connect-timeout 3s
    poll_until 2 nothing_at rlock-doctor 3
}

@test "H126 H144 a waiter that is stopped takes nothing on any server, and has its turn later" {
    hold a k --lease 60s
    bg_says asleep "waiting for k" rlock run --lease 60s k -- sh -c "echo asleep >>'$LOG'"
    suspend asleep STOP
    terminate a
    # Without a queue a waiter that is not stopped asks every half second: it would have had a turn.
    for _ in 1 2 3 4 5; do
        run -0 rlock run -n k -- sleep 0.3
    done
    [[ ! -e $LOG ]]
    kill -CONT "${pid[asleep]}"
    in_turn 20 asleep
}

@test "H143 a waiter's agent is killed: the next one asks at once, and no dead process is shown" {
    stay a k --lease 60s
    bg_says b "waiting for k" rlock run --lease 60s --connect-timeout 1h k -- \
        sh -c "echo b >>'$LOG'"
    kill_agent b
    kill_agent b
    status_json k '.[0].holders | length == 1'
    ends_well a
    in_turn 30 b
    poll_until 10 nothing_at k 1 2 3
}

# each_node PORT...: prints URLs of servers at these ports, with -u between them.
each_node() { printf 'redis://127.0.0.1:%s ' "$@" | sed 's/ redis/ -u redis/g'; }

@test "H141 an answer of a quorum's server that is lost: it runs once, and the lock is free" {
    each_flight "$QUORUM/1/sock,$QUORUM/2/sock,$QUORUM/3/sock" each_node
}
