# Requests and replies that are lost, late, cut or nonsense.

load helper

setup() {
    T=$BATS_TEST_TMPDIR
    LOG=$T/log
    export RLOCK_TEST_ID=$T
    declare -gA pid=()
    rlock run warm-up -- true # the server knows the scripts from here on
    start_proxy
    PROXY=redis://${proxy[proxy]}
    export T
}

# For commands under the lock: what faultproxy's client needs.
set_fault() {
    printf '%q ' "$RLOCK_TEST_TOOLS/faultproxy" -s "$T/proxy.ctl" "$@"
}

@test "H1 the reply to the acquisition is lost: the same lock, once" {
    local owner
    fault on up EVALSHA drop down
    # shellcheck disable=SC2016
    run -0 --separate-stderr rlock run -u "$PROXY" --lease 3s k -- \
        sh -c 'echo "$RLOCK_OWNER"; RLOCK_URL=unix://$REDIS_SOCK "$RLOCK" status --json k'
    owner=${lines[0]}
    output=${output#*$'\n'}
    json ".[0].holders | length == 1 and .[0].owner == \"$owner\""
    run -0 rlock status -q k
}

@test "H1 the connection breaks instead of the reply" {
    fault on up EVALSHA cut down 0 close
    run -0 --separate-stderr rlock run -u "$PROXY" --lease 3s k -- "$RLOCK" status --json k
    json '.[0].holders | length == 1'
    run -0 rlock status -q k
}

@test "H2 an acquisition that arrives after rlock has gone takes nothing" {
    local i end
    for i in 1 2 3 4 5; do
        start_proxy "p$i"
        fault_of "p$i" on down any delay up 2000
        bg "r$i" rlock run -u "redis://${proxy[p$i]}" -w 1s --lease 60s "k$i" -- touch "$T/run"
    done
    for i in 1 2 3 4 5; do
        finish "r$i" 8
        [[ $status == 69 || $status == 75 ]]
    done
    end=$(($(now_ms) + 3000))
    while (($(now_ms) < end)); do
        run -0 rlock status -q k1 k2 k3 k4 k5
    done
    [[ ! -e $T/run ]]
}

@test "H2 a server that was stopped meanwhile holds no ghost" {
    local i
    kill -STOP "$(redis_pid)"
    for i in 1 2 3 4 5 6 7 8; do
        bg "r$i" rlock run -w 1s --lease 60s "k$i" -- touch "$T/run"
    done
    for i in 1 2 3 4 5 6 7 8; do
        finish "r$i" 12
        [[ $status == 69 || $status == 75 ]]
    done
    kill -CONT "$(redis_pid)"
    run -0 rlock status -q k1 k2 k3 k4 k5 k6 k7 k8
    run -0 rlock status
    [[ ! -e $T/run ]]
}

@test "H2 a signal while the server is stopped: prompt end, no ghost" {
    local i
    for i in 1 2 3 4; do
        start_proxy "p$i"
        fault_of "p$i" on down any delay up 1500
        bg "r$i" rlock run -u "redis://${proxy[p$i]}" --lease 60s "k$i" -- touch "$T/run"
    done
    for i in 1 2 3 4; do
        poll_until 10 eval "fault_of p$i stats | grep -q 'open 1'"
        kill -TERM "${pid[r$i]}"
    done
    for i in 1 2 3 4; do
        finish "r$i" 4
        [[ $status == 143 ]]
    done
    # What was sent arrives 1.5 s later, and what takes it back comes behind it.
    sleep 1.6
    poll_until 3 eval 'rlock status -q k1 k2 k3 k4'
    [[ ! -e $T/run ]]
}

@test "H3 the reply to the release is lost: all went well" {
    # "on" sees the next EVALSHA: there is no renewal before the release.
    run -7 --separate-stderr rlock run -u "$PROXY" k -- \
        sh -c "$(set_fault on up EVALSHA cut down 0 close); exit 7"
    [[ $stderr == "" ]]
    run -0 rlock status -q k
}

@test "H3 the release does not get through: the command's status, and a warning" {
    local start
    start=$(now_ms)
    run -5 --separate-stderr rlock run -u "$PROXY" --lease 3s k -- \
        sh -c "$(set_fault refuse); exit 5"
    stderr_line '^rlock: '
    within 0 8000 $(($(now_ms) - start))
    poll_until 8 is_free k
}

@test "H4 late replies are not taken for the next ones" {
    bg a rlock run -u "$PROXY" --lease 6s k -- sh -c ": >'$T/up'; sleep 7; exit 3"
    poll_until 10 test -e "$T/up"
    fault delay down 2400
    sleep 3 # the time in which the first renewal is due
    fault pass
    poll_until 10 eval 'rlock status --json k | jq -e ".[0].holders[0].lease_left_ms > 4500" >/dev/null'
    run -75 rlock run -n k -- true
    finish a
    [[ $status == 3 ]]
    run -0 rlock status -q k
}

@test "H6 a reply that trickles in does not stretch the time for it" {
    local start
    fault trickle down 400
    start=$(now_ms)
    run -69 --separate-stderr rlock run -u "$PROXY" --connect-timeout 1s k -- touch "$T/run"
    within 900 6000 $(($(now_ms) - start))
    stderr_line "$PROXY"
    [[ ! -e $T/run ]]
    fault pass
    work a k 100 -u "$PROXY" --lease 2s -- tree
    working a
    fault trickle down 400
    work b k 0.3
    finish a
    [[ $status == 79 ]]
    finish b
    no_overlap
}

@test "H6 a reply that is cut after five bytes" {
    fault cut down 5
    run -69 rlock run -u "$PROXY" --connect-timeout 1s k -- touch "$T/run"
    [[ ! -e $T/run ]]
    fault pass
    work a k 100 -u "$PROXY" --lease 2s -- tree
    working a
    fault cut down 5
    work b k 0.3
    finish a
    [[ $status == 79 ]]
    finish b
    no_overlap
}

@test "H11 scripts that the server forgets are sent again" {
    local i
    bg flush bash -c 'while redis-cli -s "$REDIS_SOCK" script flush; do sleep 0.03; done'
    hold a long --lease 2s
    for i in {1..20}; do
        run -0 --separate-stderr rlock run k -- true
        [[ $stderr == "" ]]
    done
    bg w rlock run long -- true
    poll_until 10 has_waiters long 1
    [[ ! -s $T/a.err ]]
    alive "${pid[a]}"
    kill "${pid[a]}"
    finish w
    [[ $status == 0 ]]
    run -0 rlock status --json long
    kill "${pid[flush]}"
}

@test "H26 what is not Redis: 69 soon, and it says so" {
    local start port
    bg http python3 -u -m http.server --bind 127.0.0.1 0
    poll_until 20 grep -q 'port [0-9]' "$T/http.out"
    port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$T/http.out")
    start=$(now_ms)
    run -69 --separate-stderr rlock run -u "redis://127.0.0.1:$port" k -- touch "$T/run"
    within 0 4500 $(($(now_ms) - start))
    stderr_line "redis://127.0.0.1:$port"
    stderr_line '[Nn]o(t)? (a )?Redis'
    [[ ! -e $T/run ]]
}

@test "H26 what says nothing: 69 after the connect timeout" {
    local start
    fault blackhole
    start=$(now_ms)
    run -69 --separate-stderr rlock run -u "$PROXY" --connect-timeout 1s k -- touch "$T/run"
    within 900 5000 $(($(now_ms) - start))
    run -69 rlock status -u "$PROXY" --connect-timeout 1s
    run -69 rlock force-release --yes -u "$PROXY" --connect-timeout 1s k
    run -69 rlock run -n -E 0 -u "$PROXY" --connect-timeout 1s k -- touch "$T/run"
    [[ ! -e $T/run ]]
}
