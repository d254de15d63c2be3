# A quorum of five whose servers are slow, stopped, killed, or come back with nothing. node N
# WORD... asks server N itself. held_on_all, nothing_at KEY N...: at each of these servers one owner
# has KEY, or none has it. up_for S N: server N has been up for S seconds; second_node_forgets
# COMMAND: two of three hold the lock, and the second of them loses its data by COMMAND.
# use_nodes_1_to_3: RLOCK_URL leads only to these; behind_proxy N: server N is asked through the
# proxy pN. crowd SERVER...: clients hold all the connections that these servers accept, until
# crowd_leaves.

load helper
load quorums
load crowds

setup_file() {
    server_clock_file
    quorum_file 5
}

# use_nodes_1_to_3: RLOCK_URL leads only to these.
use_nodes_1_to_3() {
    RLOCK_URL=$(node_urls 1 2 3)
}

# behind_proxy NUMBER: its server is asked through the proxy called pNUMBER. Changes RLOCK_URL.
behind_proxy() {
    start_proxy "p$1" 127.0.0.1:0 "$QUORUM/$1/sock"
    RLOCK_URL=${RLOCK_URL/"$(node_urls "$1")"/"redis://${proxy[p$1]}"}
}

# signal_nodes SIGNAL NUMBER...
signal_nodes() {
    local i
    for i in "${@:2}"; do
        node_signal "$i" "$1"
    done
}

# ---------------------------------------------------------------- nodes that do not answer

@test "H85 two of five stopped, or dead: no one notices" {
    # A run that waited for a silent node would take 20 s.
    signal_nodes STOP 1 4
    timed 0 15000 run -0 --separate-stderr rlock run --connect-timeout 20s k -- true
    [[ $stderr == "" ]]
    node_kill 1
    node_kill 4
    timed 0 15000 run -0 --separate-stderr rlock run --connect-timeout 20s k -- true
    [[ $stderr == "" ]]
    hold a k
    refused 75 run -n k -- true
    run -0 rlock force-release --now --yes k
}

# Two of five servers get their requests, or their answers arrive, 12 s late: the run does not wait
# for them, and what it has asked of them is released later.
@test "H85 slow nodes cost nothing, and what they were asked late leaves nothing" {
    behind_proxy 3
    behind_proxy 5
    fault_of p3 delay up 12000
    fault_of p5 delay down 12000
    timed 0 9000 run -0 --separate-stderr rlock run k -- true
    poll_until 15 eval '[[ $(fault_of p3 stats) == *"open 0"* ]]'
    poll_until 15 nothing_at k 1 2 3 4 5
}

up_for() {
    (($(node "$1" info server | sed -n 's/^uptime_in_seconds:\([0-9]*\).*/\1/p') >= $2))
}

@test "a server that stood still when the quorum was first used is not taken for one that forgot" {
    use_nodes_1_to_3
    node_restart 1 2 3
    poll_until 10 up_for 3 3
    node_signal 3 STOP
    run -0 rlock run k -- sleep 0.3
    node_signal 3 CONT
    node_signal 1 STOP
    quiet 0 run k -- true
    # The server has run scripts since: flushed, it is one that forgot.
    node 3 flushall
    refused 69 run -n k -- true
}

@test "a quorum without a majority is an outage (69), not contention (75)" {
    for i in 1 2 3; do
        node_kill "$i"
    done
    refused 69 run -n --server-wait 0 k -- touch "$T/ran"
    [[ $stderr != *again* ]]
    stderr_line "^rlock: k: no quorum, 3 of 5 servers failed: cannot reach unix://$QUORUM/.*(No such file|refused)"
    stderr_line '^hint: '
    refused 69 status --connect-timeout 1s
    node_start 1
    node_start 2
    signal_nodes STOP 1 2
    refused 69 run --connect-timeout 1s k -- touch "$T/ran"
    signal_nodes CONT 1 2
    poll_until 5 nothing_at k 1 2 4 5
}

# Two of three servers answer so late that most of a lease of 3 s is over: the command must not
# start with the rest.
@test "H81 a majority that comes when most of the lease is over is none" {
    use_nodes_1_to_3
    behind_proxy 2
    behind_proxy 3
    fault_of p2 delay down 2850
    fault_of p3 delay down 2850
    refused 69 run --lease 3s --connect-timeout 10s -w 8s k -- touch "$T/ran"
    fault_of p2 pass
    fault_of p3 pass
    poll_until 5 nothing_at k 1 2 3
    use_nodes_1_to_3
    run -0 rlock run --lease 3s --server-wait 1m k -- true
}

# The request reaches node 3 late, when the run has been refused by the others' word and has gone:
# it is not granted then, or is released.
@test "H2 H86 a refused run whose request a silent node does late leaves nothing there" {
    use_nodes_1_to_3
    hold a k
    owner=$(owner_of k)
    poll_until 5 holds_at "$owner" k 3
    behind_proxy 3
    for i in 1 2 3 4 5; do
        node 3 del 'rlock:{k}'
        fault_of p3 pass
        fault_of p3 on up ROLE delay up 700 # ROLE is in the greeting, before it
        refused 75 run -n k -- true
        poll_until 5 eval '[[ $(fault_of p3 stats) == *"open 0"* ]]'
        poll_until 5 nothing_at k 3
    done
}

# The release waits for the node in the connection, and is done when the node continues.
@test "H86 a release while one node stands still reaches that node, too" {
    hold a k
    poll_until 5 held_on_all k 1 2 3 4 5
    node_signal 5 STOP
    terminate a
    poll_until 5 nothing_at k 1 2 3 4
    node_signal 5 CONT
    poll_until 5 nothing_at k 5
}

@test "H86 a signal while no node answers: it ends at once, and nothing is left anywhere" {
    use_nodes_1_to_3
    for round in 1 2 3 4; do
        hold a k
        bg w rlock run k -- touch "$T/ran"
        poll_until 10 grep -q . "$T/w.err"
        signal_nodes STOP 1 2 3
        kill "${pid[a]}"
        sleep "0.$round"
        kill -INT "${pid[w]}"
        timed 0 8000 ends_with w 130
        signal_nodes CONT 1 2 3
        finish a
        poll_until 5 nothing_at k 1 2 3
    done
    [[ ! -e $T/ran ]]
}

# ---------------------------------------------------------------- nodes that forget

# second_node_forgets COMMAND...: with the lock held by two of three, the second of which then loses
# its data by that command, and the third, which knows nothing of it, no other owner gets it.
second_node_forgets() {
    use_nodes_1_to_3
    in_use 1 2 3
    node 2 save
    cp "$QUORUM/2/dump.rdb" "$QUORUM/2/before.rdb"
    node_signal 3 STOP
    hold a k
    "$@"
    # Another test is about the holder's reaction, which is to give the lock to both again: so it is
    # stopped, and what it has asked of them by now is deleted.
    kill -STOP "${pid[a]}" "$(agent_of "${pid[a]}")"
    node_signal 3 CONT
    node 2 del 'rlock:{k}'
    node 3 del 'rlock:{k}'
    refused 75 run -n k -- touch "$T/ran"
    [[ ! -e $T/ran ]]
    poll_until 5 nothing_at k 2 3 # the failed try is released
}

# restart_empty: node 2 is killed, and starts again without its data.
restart_empty() {
    node_kill 2
    rm "$QUORUM/2/dump.rdb"
    node_start 2
}

# restart_with_old_data: node 2 is killed, and starts again with what it had before the lock.
restart_with_old_data() {
    node_kill 2
    cp "$QUORUM/2/before.rdb" "$QUORUM/2/dump.rdb"
    node_start 2
    [[ $(node 2 exists 'rlock:!quorum') == 1 ]]
}

@test "H42 H82 a node that comes back with nothing does not help another one to a majority" {
    second_node_forgets restart_empty
}

@test "H43 H82 a node that comes back with old data does not help another one to a majority" {
    second_node_forgets restart_with_old_data
}

@test "H44 H82 a node that is flushed does not help another one to a majority" {
    second_node_forgets node 2 flushall
}

flush_unseen() {
    node 2 flushall
    node 2 config resetstat
}

@test "H44 H82 a node that is flushed, and whose statistics are reset, is noticed all the same" {
    # The nodes have been up since long before the quorum is used. flush_unseen: server 2 is
    # flushed, and its statistics do not tell.
    use_nodes_1_to_3
    node_restart 1 2 3
    poll_until 10 up_for 2 4
    second_node_forgets flush_unseen
}

# Nodes 1 and 2 of three do not count at first: the one is dead, the other has forgotten its locks.
@test "H82 a node that lost its data counts again when all leases from before are over" {
    use_nodes_1_to_3
    in_use 1 2 3
    node_kill 1
    start=$(now_ms)
    node_restart 2
    run -0 --separate-stderr rlock run --lease 9s --server-wait 1m k -- true
    took 8500 30000 "$start"
    stderr_line 'no quorum, 1 of 3 servers may have lost data: .*trying again'
    timed 0 7000 run -0 rlock run --lease 9s k -- true
}

# Each node is started anew without data, and gets the lock by the next renewal.
@test "H83 nodes that come back with nothing, one after the other, are given the lock again" {
    hold a k --lease 12s
    age=$(rlock status --json k | jq '.[0].holders[0].age_ms')
    for i in 1 2 3 4 5 1; do
        node_restart "$i"
        poll_until 5 held_on_all k 1 2 3 4 5
    done
    status_json k ".[0].holders[0].age_ms >= $age"
    refused 75 run -n k -- true
    alive "${pid[a]}"
    [[ ! -s $T/a.err ]]
}

@test "nodes that were missing are given the lock while it is held, with the same fence" {
    node_signal 2 STOP
    node_kill 3
    hold a k --lease 12s
    node_signal 2 CONT
    node_start 3
    poll_until 5 held_on_all k 1 2 3 4 5
    for i in 1 2 3 4 5; do
        [[ $(node "$i" hvals 'rlock:{k}') == *" $(rlock status --json k | jq '.[0].fence') "* ]]
    done
}

@test "H46 H48 an entry that one node lost is made again" {
    hold a k --lease 12s
    node 2 del 'rlock:{k}'
    node 4 swapdb 0 1 # its locks are in another database now
    refused 75 run -n k -- true
    poll_until 5 held_on_all k 1 2 3 4 5
    [[ ! -s $T/a.err ]]
}

@test "H51 an address leads to another server from now on: that one is given the lock" {
    use_nodes_1_to_3
    behind_proxy 3
    hold a k --lease 12s
    fault_of p3 target "$QUORUM/5/sock"
    fault_of p3 rst
    poll_until 5 held_on_all k 1 2 5
    alive "${pid[a]}"
    [[ ! -s $T/a.err ]]
    # Two addresses that lead to one server from now on are one node, and the others are a majority
    # still.
    fault_of p3 target "$QUORUM/2/sock"
    fault_of p3 rst
    RLOCK_URL=$(node_urls 1 2) poll_until 5 eval \
        'rlock status --json k | jq -e ".[0].holders[0].lease_left_ms > 9000" >/dev/null'
    alive "${pid[a]}"
    RLOCK_URL=$(node_urls 1 2) run -75 rlock run -n k -- true
}

@test "H42 a majority that forgets at once: its holder has it again before anybody else" {
    at_work a k forever --lease 15s
    work b k 0.3 --lease 15s
    node_restart 1 2 3
    poll_until 9 held_on_all k 1 2 3 4 5
    handed_over 40
}

# ---------------------------------------------------------------- losing it

# "b" waits already, so that it has the lock as soon as it may.
@test "H37 the majority is lost: the command ends before the lease: 79; then the next one starts" {
    at_work a k forever --lease 9s -- tree
    work b k 0.3
    poll_until 20 contains "$T/b.err" 'waiting for k, held by' # not one that has yet to be answered
    signal_nodes STOP 1 2 3
    ends_with a 79
    contains "$T/a.err" 'k: no quorum, 3 of 5 servers failed'
    contains "$T/a.err" 'lock lost'
    signal_nodes CONT 1 2 3
    ends_with b 0
    no_overlap
}

@test "H92 the holder is killed: free after its lease, and no sooner" {
    at_work a k forever --lease 12s -- ignore
    stop_both a
    kill -KILL "${pid[a]}" "$agent"
    refused 75 run -n k -- true
    work b k 0.3
    ends_with b 0 20
    no_overlap
}

@test "H32 holder and agent stand still beyond the lease: the next one works, they end with 79" {
    at_work a k forever --lease 9s
    work b k 0.3
    kill -STOP "${pid[a]}" "$(agent_of "${pid[a]}")"
    ends_with b 0
    # Neither process could stop the command, as where the whole machine stands still.
    kill -CONT "${pid[a]}" "$(agent_of "${pid[a]}")"
    ends_with a 79
}

# The agent is stopped, so that it learns of the loss only when it releases: one node knows the
# lock, one does not, and one is silent.
@test "H124 a lock is taken away at two of three nodes, one silent at the end: perhaps lost" {
    use_nodes_1_to_3
    stay a k --lease 60s
    poll_until 10 held_on_all k 1 2 3
    has_agent a
    kill -STOP "$agent"
    poll_until 10 in_state "$agent" T
    node 1 del 'rlock:{k}'
    node 2 del 'rlock:{k}'
    node_signal 1 STOP
    : >"$T/a.go"
    poll_until 10 eval '! children_of "${pid[a]}" sh'
    kill -CONT "$agent"
    ends_with a 9 20
    contains "$T/a.err" 'k: could not be released: it may have been lost, 1 of 3 servers failed: '
}

# ---------------------------------------------------------------- clocks

# The lock stays with its owner, as a majority of two has clocks that are right.
@test "H27 H28 H29 the clock of one node jumps or stands still: no other owner gets the lock" {
    use_nodes_1_to_3
    node_kill 2
    REDIS_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so node_start 2
    : >"$QUORUM/2/dirty"
    poll_until 20 has_status 0 run --lease 1s old -- true # which makes node 2 known
    at_work a k forever --lease 12s
    work b k 0.2 --lease 12s
    for to in 60000 -3600000 freeze 0; do
        server_clock "$to"
        refused 75 run -n k -- true
        renewed k
        poll_until 5 held_on_all k 1 2 3
    done
    handed_over 20
}

# ---------------------------------------------------------------- several at once

# Contenders that split the votes of the servers must give up and try again, at different times.
@test "H84 many at once, round after round: soon one gets it, and then the next" {
    use_nodes_1_to_3
    for round in {1..5}; do
        for i in 1 2 3 4; do
            bg "c$i" rlock run k -- sh -c "echo begin >>'$LOG'; echo end >>'$LOG'"
        done
        all_end 0 20 c{1..4}
    done
    [[ $(paste -sd' ' "$LOG") == $(printf 'begin end %.0s' {1..20} | sed 's/ $//') ]]
}

# All of the three contenders but one.
two_are_gone() {
    local i gone=0
    for i in 1 2 3; do
        alive "${pid[c$i]}" || ((++gone))
    done
    ((gone >= 2))
}

@test "H84 of several that do not wait, one gets it" {
    for round in {1..5}; do
        for i in 1 2 3; do
            bg "c$i" rlock run -n k -- sh -c "await '$T/go$round'"
        done
        poll_until 10 two_are_gone
        : >"$T/go$round"
        got=""
        for i in 1 2 3; do
            finish "c$i"
            got+=$status,
        done
        [[ $(tr , '\n' <<<"$got" | sort | paste -sd,) == ,0,75,75 ]]
    done
}

@test "H16 H44 nodes in trouble, one after the other, under contention: no overlap" {
    for i in 1 2 3 4; do
        bg "w$i" bash -c "until test -e '$T/enough'; do
            rlock run --lease 4s -w 20s k -- worker '$LOG' $i-\$((++n)) 0.1; done"
    done
    for round in {1..6}; do
        one=$((RANDOM % 5 + 1))
        case $((RANDOM % 4)) in
        0) node_restart "$one" ;;
        1) node "$one" flushall ;;
        2) node "$one" client kill type normal skipme yes ;;
        3) node_signal "$one" STOP ;;
        esac
        sleep 1.3 # the period of the trouble
        node_signal "$one" CONT
    done
    poll_until 30 eval '(($(cut -d " " -f 1 "$LOG" | sort -u | wc -l) > 4))'
    : >"$T/enough"
    for i in 1 2 3 4; do
        finish "w$i" 40
    done
    no_overlap
}

# -- another agent --------------------------------------------------------------------------------

@test "H135 the agent is killed: the next one renews on all servers, restarted ones as well" {
    stay a k --lease 12s
    poll_until 10 held_on_all k 1 2 3 4 5
    kill_agent a
    kill_agent a
    poll_until 10 held_on_all k 1 2 3 4 5
    renewed k
    node_restart 4
    kill_agent a
    poll_until 20 held_on_all k 1 2 3 4 5
    signal_nodes STOP 1 2
    kill_agent a
    renewed k
    renewed k
    signal_nodes CONT 1 2
    run -75 rlock run -n k -- true
    ends_well a
    poll_until 10 nothing_at k 1 2 3 4 5
}

# The supervisor starts the next agent while its command ends. That agent has to release what it
# never acquired.
@test "H135 the agent is killed just before the command ends: nothing is left on any server" {
    for i in {1..5}; do
        stay a k
        poll_until 10 held_on_all k 1 2 3 4 5
        kill -KILL "$(agent_of "${pid[a]}")"
        ends_well a
        poll_until 10 nothing_at k 1 2 3 4 5
    done
}

# The agent of a holder is killed while server 2 is stopped, and the command ends. Server 2
# continues as soon as server 5 has released the lock: the release has to reach it as well.
release_reaches_slow_server() {
    stay a "$key" --lease 2m &&
        poll_until 10 held_on_all "$key" 1 2 3 4 5 || return
    node_signal 2 STOP
    kill -KILL "$(agent_of "${pid[a]}")"
    # The release waits for the last node, but not for long: there is no time to start programs.
    PYTHONPATH=$TESTS python3 -B - "$QUORUM/5/sock" "$T/a.go" "$key" "$(node_pid 2)" <<'END'
import os, signal, sys, time
from script_server import Client

socket, end_of_command, key, slow_server = sys.argv[1:]
server = Client(socket)
late = time.monotonic() + 40
open(end_of_command, "w").close()
while any(field.startswith("h:") for field in server.call("HKEYS", f"rlock:{{{key}}}")):
    assert time.monotonic() < late
    time.sleep(0.01)
os.kill(int(slow_server), signal.SIGCONT)
END
    node_signal 2 CONT # also where that has failed
    ends_with a 9 && poll_until 10 nothing_at "$key" 1 2 3 4
}

@test "H135 a server that is slow to answer the next agent: nothing is left there" {
    once_of 3 release_reaches_slow_server
}

# The stopped agent does not hear that the lock was taken away, and is killed. The next one finds
# that out.
@test "H135 a majority takes the lock away while no agent lives: the next one says so" {
    stay a k
    has_agent a
    kill -STOP "$agent"
    run -0 rlock force-release --now --yes k
    kill -KILL "$agent"
    ends_with a 79
}

@test "H9 a quorum whose servers are full is waited for as a queue is, not with -n" {
    local i sockets=("$QUORUM/1/sock" "$QUORUM/2/sock")
    use_nodes_1_to_3
    for i in "${!sockets[@]}"; do
        node "$((i + 1))" config set maxclients 20 >/dev/null
    done
    crowd "${sockets[@]}"
    run -69 --separate-stderr rlock run -n --server-wait 1m k -- touch "$T/ran"
    stderr_line '^rlock: k: no quorum, 2 of 3 servers failed: .*: too many clients'
    bg_says a 'trying again' rlock run --server-wait 1s --connect-timeout 1s k -- true
    sleep 4 # longer than it waits for servers that are away
    alive "${pid[a]}"
    crowd_leaves
    finish a
    [[ $status == 0 && ! -e $T/ran ]]
    contains "$T/a.err" 'the store is back'
}
