# Connections that break, hang, are refused or lose their session.

load helper

setup_file() { start_file --databases 16; }

setup() {
    T=$BATS_TEST_TMPDIR
    LOG=$T/log
    export RLOCK_TEST_ID=$T
    declare -gA pid=()
    start_proxy
    PROXY=redis://${proxy[proxy]}
}

@test "H7 a new connection has the database and the password of the first" {
    redis config set requirepass s3cret
    export RLOCK_PASSWORD=s3cret REDISCLI_AUTH=s3cret
    bg a rlock run -u "unix://$REDIS_SOCK?db=3" --lease 3s k -- sh -c ": >'$T/up'; sleep 4; exit 9"
    poll_until 10 test -e "$T/up"
    while alive "${pid[a]}"; do
        redis client kill type normal skipme yes >/dev/null
        sleep 0.1 # the period of the fault
    done
    finish a
    [[ $status == 9 ]]
    [[ $(redis dbsize) == 0 && $(redis -n 3 dbsize) == 1 ]]
}

@test "H8 a server that closes idle connections is not worth a word" {
    redis config set timeout 1
    bg a rlock run --lease 9s k -- sleep 5
    poll_until 10 held k
    finish a
    [[ $status == 0 && ! -s $T/a.err ]]
}

@test "H9 a full server at reconnection is tried again" {
    hold a k --lease 9s
    # One session for all three, since no other gets in.
    coproc cli { redis-cli -s "$REDIS_SOCK"; } 3>&-
    printf 'config set maxclients 1\nclient kill type normal skipme yes\n' >&"${cli[1]}"
    : >"$T/redis.dirty"
    poll_until 10 contains "$T/a.err" 'max number of clients'
    run -69 --separate-stderr rlock run --connect-timeout 500ms k -- true
    stderr_line 'max number of clients'
    printf 'config set maxclients 1000\n' >&"${cli[1]}"
    poll_until 10 eval 'rlock status --json k | jq -e ".[0].holders[0].lease_left_ms > 6000" >/dev/null'
    alive "${pid[a]}"
    kill "$cli_PID"
}

@test "H101 a reset connection does not kill rlock, and the command has its SIGPIPE" {
    bg a rlock run -u "$PROXY" --lease 3s k -- sh -c ": >'$T/up'; sleep 4; exit 9"
    poll_until 10 test -e "$T/up"
    while alive "${pid[a]}"; do
        fault rst
        sleep 0.3 # the period of the fault
    done
    finish a
    [[ $status == 9 ]]
    run -0 --separate-stderr rlock run k -- bash -c 'yes | head -1; exit "${PIPESTATUS[1]}"'
    [[ $output == y && $stderr == "" ]]
    # shellcheck disable=SC2016
    run -0 rlock run k -- bash -c 'yes | head -1 >/dev/null; echo "${PIPESTATUS[0]}"'
    [[ $output == 141 ]]
}

@test "a proxy on a Unix socket, and a server that refuses for a while" {
    start_proxy unix "$T/p.sock"
    bg a rlock run -u "unix://$T/p.sock" --lease 6s k -- sh -c ": >'$T/up'; sleep 5; exit 9"
    poll_until 10 test -e "$T/up"
    fault_of unix refuse
    sleep 2.5 # a renewal is due within that time
    fault_of unix pass
    finish a
    [[ $status == 9 ]]
    run -0 rlock status -q k
}

@test "H51 another server behind the same address: the lock is lost there" {
    local start
    mkdir "$T/other"
    redis-server --port 0 --unixsocket "$T/other/sock" --dir "$T/other" --save "" \
        --pidfile "$T/other/pid" --daemonize yes 3>&- >/dev/null
    poll_until 10 test -S "$T/other/sock"
    work a k 100 -u "$PROXY" --lease 6s
    working a
    fault target "$T/other/sock"
    fault rst
    start=$(now_ms)
    finish a
    [[ $status == 79 ]]
    within 0 3800 $(($(now_ms) - start))
    kill "$(<"$T/other/pid")"
}

@test "H50 a replica behind the same address for a moment is not believed" {
    mkdir "$T/other"
    redis-server --port 0 --unixsocket "$T/other/sock" --dir "$T/other" --save "" \
        --pidfile "$T/other/pid" --replicaof 127.0.0.1 1 --daemonize yes 3>&- >/dev/null
    poll_until 10 test -S "$T/other/sock"
    bg a rlock run -u "$PROXY" --lease 6s k -- sh -c ": >'$T/up'; sleep 5; exit 9"
    poll_until 10 test -e "$T/up"
    fault target "$T/other/sock"
    fault rst
    sleep 2.5 # a renewal is due within that time
    fault target "$REDIS_SOCK"
    fault rst
    finish a
    [[ $status == 9 ]]
    kill "$(<"$T/other/pid")"
}

@test "H104 a resolver that hangs at reconnection does not keep the command" {
    start_proxy named
    export SHIM_DNS_FILE=$T/hang
    LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_dns.so \
        work a k 6 -u "redis://localhost:${proxy[named]#*:}" --lease 3s
    working a
    touch "$T/hang"
    fault_of named rst
    work b k 0.3
    finish a
    # Held on to by the address that was known, or stopped in time.
    [[ $status == 0 || $status == 79 ]]
    finish b
    no_overlap
}

@test "H104 a resolver that hangs at the start: 69 after the connect timeout" {
    local start
    touch "$T/hang"
    start=$(now_ms)
    SHIM_DNS_FILE=$T/hang LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_dns.so \
        run -69 --separate-stderr rlock run -u redis://localhost:1 --connect-timeout 1s k -- true
    within 900 6000 $(($(now_ms) - start))
    stderr_line 'localhost:1'
    SHIM_DNS_FILE=$T/hang LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_dns.so \
        bg w rlock run -u redis://localhost:1 --connect-timeout 30s k -- true
    poll_until 10 agent_of "${pid[w]}"
    kill -TERM "${pid[w]}"
    finish w 5
    [[ $status == 143 ]]
}

@test "H73 a renewal under way when the command ends is no lost lock, and takes nothing back" {
    local i
    start_proxy
    fault delay down 40
    for ((i = 0; i < 12; i++)); do
        bg "r$i" rlock run -u "redis://${proxy[proxy]}" --lease 1s "k$i" -- sh -c "sleep 0.$((20 + 5 * i)); exit 9"
    done
    for ((i = 0; i < 12; i++)); do
        finish "r$i"
        [[ $status == 9 && ! -s $T/r$i.err ]]
    done
    [[ $("$RLOCK" status --json 3>&-) == "[]" ]]
}

@test "H76 the shortest lease is kept where answers take their time" {
    start_proxy
    fault delay down 75
    run -9 --separate-stderr rlock run -u "redis://${proxy[proxy]}" --lease 1s k -- sh -c 'sleep 3; exit 9'
    [[ $stderr == "" ]]
}
