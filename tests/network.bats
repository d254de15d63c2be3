# Connections that break, hang, are refused or lose their session. again_and_again COMMAND: in the
# background, until "enough"; distance MS: so long is the way to the server and back;
# but_for_silence: messages without those that there is no answer yet. other_server: starts another
# one, at $T/other/sock.

load helper

setup_file() { start_file --databases 16; }

setup() {
    start_test
    start_proxy
    PROXY=redis://${proxy[proxy]}
}

# The tests have left no process that names a file of theirs.
teardown_file() {
    redis_stop
    poll_until 10 eval '! pgrep -fa "$BATS_RUN_TMPDIR/test/" >&2'
}

# again_and_again COMMAND...: in the background until enough(), or the test ends, with pauses in
# which a renewal has time; three times before this returns.
again_and_again() {
    T=$T bg again bash -c 'until [[ -e $T/enough ]]; do
        "$@" || exit
        echo >>"$T/again"
        sleep 1 # the period of the fault
    done' - "$@"
    poll_until 10 eval '[[ $(wc -l <"$T/again") -ge 3 ]]'
}

# enough: the command that runs again and again has ended when this returns.
enough() {
    : >"$T/enough"
    poll_until 20 gone "${pid[again]}"
}

@test "a reset of a connection that had worked does not make rlock ask for TLS" {
    hold a k -u "$PROXY" --lease 30s
    fault cut down 0 close # also those to come, before they have said anything
    poll_until 20 contains "$T/a.err" "trying again"
    contains "$T/a.err" "cannot reach $PROXY"
    run -1 grep -i tls "$T/a.err"
    fault pass
    terminate a
}

@test "the hint to --local is for those who have no address configured" {
    export RLOCK_SERVER_WAIT=0
    if (exec 4<>/dev/tcp/127.0.0.1/6379) 2>/dev/null; then
        skip "there is a server at the default address"
    fi
    run -69 --separate-stderr env -u RLOCK_URL rlock run -n k -- true 3>&-
    [[ ${stderr_lines[0]} == "rlock: k: cannot reach redis://127.0.0.1:6379/0: Connection refused" \
        ]]
    [[ ${stderr_lines[1]} == "hint: "*--local* && ${#stderr_lines[@]} == 2 ]]
    hint=$'\n'"hint: --server-wait DUR waits longer for it; rlock doctor looks at it closely"
    run -69 --separate-stderr rlock run -n -u redis://127.0.0.1:6379 k -- true
    [[ $stderr == "rlock: k: cannot reach redis://127.0.0.1:6379/0: Connection refused$hint" ]]
    RLOCK_URL=redis://127.0.0.1:1 run -69 --separate-stderr rlock status
    [[ $stderr == "rlock: status: cannot reach redis://127.0.0.1:1/0: Connection refused$hint" ]]
}

# A connection without the password would be refused, and one without the database would leave keys
# in database 0.
@test "H7 a new connection has the database and the password of the first" {
    redis config set requirepass s3cret
    export RLOCK_PASSWORD=s3cret REDISCLI_AUTH=s3cret
    export RLOCK_URL="unix://$REDIS_SOCK?db=3"
    stay a k --lease 15s
    again_and_again redis-cli -s "$REDIS_SOCK" client kill type normal skipme yes
    renewed k
    ends_well a
    enough
    [[ $(redis dbsize) == 0 && $(redis-cli -s "$REDIS_SOCK" -n 3 dbsize) == 1 ]]
}

@test "the answer on a connection never comes: status asks on another one, and ends in time" {
    # The first request has no answer: nothing comes down that connection any more.
    fault on up any hold down
    run -0 rlock status -u "$PROXY" --connect-timeout 20s k
}

# The server ends each connection after a second or two, so that every renewal, 3 s apart, meets a
# closed one.
@test "H8 a server that closes idle connections causes no message" {
    redis config set timeout 1
    stay a k --lease 9s
    renewed k
    renewed k
    ends_well a
    [[ ! -s $T/a.err ]]
}

@test "H9 a full server at reconnection is tried again" {
    hold a k --lease 30s
    # All three commands use one session, since no other gets in.
    coproc cli { redis-cli -s "$REDIS_SOCK"; } 3>&-
    printf 'config set maxclients 1\nclient kill type normal skipme yes\n' >&"${cli[1]}"
    : >"$T/redis.dirty"
    poll_until 10 contains "$T/a.err" 'max number of clients'
    says 69 'max number of clients' run -n --connect-timeout 3s k -- true
    printf 'config set maxclients 1000\n' >&"${cli[1]}"
    renewed k
    alive "${pid[a]}"
    kill "$cli_PID"
}

@test "a server that takes no clients: its words are reported, with its status" {
    local port
    answering crowded '-ERR max number of clients reached\r\n'
    says 69 'too many clients: its max number of clients is reached$' run -n \
        -u "redis://127.0.0.1:$port" --server-wait 0 k -- true
    answering denied '-DENIED Redis is running in protected mode\r\n'
    run -77 --separate-stderr rlock run -u "redis://127.0.0.1:$port" k -- true
    stderr_line ': it is in protected mode: without a password it serves only its own host$'
    [[ $stderr != *"user default"* && $stderr != *again* ]]
    run -77 --separate-stderr rlock release -u "redis://127.0.0.1:$port" --owner "$NO_OWNER" k
    [[ $stderr != *'may have been released'* ]]
}

# rlock must not die of SIGPIPE, and its command must: "yes" writes into a pipe that "head" has
# closed.
@test "H101 a reset connection does not kill rlock, and the command has its SIGPIPE" {
    stay a k -u "$PROXY" --lease 15s
    again_and_again "$RLOCK_TEST_TOOLS/faultproxy" -s "$T/proxy.ctl" rst
    renewed k
    ends_well a
    run -0 --separate-stderr rlock run k -- bash -c 'yes | head -1; exit "${PIPESTATUS[1]}"'
    [[ $output == y && $stderr == "" ]]
    run -0 rlock run k -- bash -c 'yes | head -1 >/dev/null; echo "${PIPESTATUS[0]}"'
    [[ $output == 141 ]]
}

# other_server [OPTION...]: starts another one, at $T/other/sock; ${pid[other]} ends with the test.
other_server() {
    mkdir "$T/other"
    # The process's title would hide whose it is from the end of the test.
    bg other redis-server --port 0 --unixsocket "$T/other/sock" --dir "$T/other" --save "" \
        --set-proc-title no "$@"
    poll_until 10 listens "$T/other/sock"
}

@test "H51 another server behind the same address: the lock is lost there" {
    other_server
    at_work a k forever -u "$PROXY" --lease 90s
    fault target "$T/other/sock"
    fault rst
    ends_with a 79 # it would be renewed after thirty
}

# The target of the proxy is another server, a replica, until the holder has noticed.
@test "H50 a replica behind the same address for a moment is not believed" {
    other_server --replicaof 127.0.0.1 1
    stay a k -u "$PROXY" --lease 15s
    fault target "$T/other/sock"
    fault rst
    poll_until 10 contains "$T/a.err" "replica"
    fault target "$REDIS_SOCK"
    fault rst
    renewed k
    ends_well a
}

# "a" has a connection when the resolver begins to hang, and would have to look the name up when
# that is reset.
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
    # The lock was renewed at the address that was known, or the command was stopped in time.
    [[ $status == 0 || $status == 79 ]]
    finish b
    no_overlap
}

# The second rlock would wait for ten minutes, but a signal must end it while the look-up hangs,
# too.
@test "H104 a resolver that hangs at the start: exit 69 after the connect timeout" {
    touch "$T/hang"
    SHIM_DNS_FILE=$T/hang LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_dns.so timed 900 20000 \
        run -69 --separate-stderr rlock run -u redis://localhost:1 --connect-timeout 1s k -- true
    stderr_line 'localhost:1'
    SHIM_DNS_FILE=$T/hang LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_dns.so \
        bg w rlock run -u redis://localhost:1 --connect-timeout 10m k -- true
    poll_until 10 agent_of "${pid[w]}"
    terminate w 143
}

@test "H73 a renewal under way when the command ends is not a lost lock, and undoes nothing" {
    # After a third of the lease; answered half a second later.
    fault delay down 500
    for ((i = 0; i < 12; i++)); do
        bg "r$i" rlock run -u "$PROXY" --lease 9s "k$i" -- \
            sh -c "sleep $((2050 + 100 * i))e-3; exit 9"
    done
    for ((i = 0; i < 12; i++)); do
        finish "r$i"
        [[ $status == 9 && ! $(grep -v 'trying again$\|the store is back' "$T/r$i.err") ]]
    done
    [[ $("$RLOCK" status --json 3>&-) == "[]" ]]
}

@test "H76 a short lease is kept where answers take their time" {
    fault delay down 1100 # just below half of what a renewal may take
    stay a k -u "$PROXY" --lease 15s
    renewed k
    renewed k
    renewed k
    ends_well a
    [[ -z $(but_for_silence <"$T/a.err") ]]
}

@test "a Unix socket that this user may not use: it is waited for, and the hint is about its mode" {
    local as=()
    ((EUID != 0)) || as=(setpriv --bounding-set=-all --inh-caps=-all)
    other_server
    chmod 600 "$T/other/sock"
    run -0 "${as[@]}" rlock run -u "unix://$T/other/sock" k -- true
    # As for a moment whenever a server starts.
    chmod 0 "$T/other/sock"
    run -69 --separate-stderr "${as[@]}" \
        rlock run --server-wait 0 -u "unix://$T/other/sock" k -- touch "$T/run"
    stderr_line '^rlock: k: cannot reach unix://.*: Permission denied$'
    stderr_line '^hint: unixsocketperm 770, '
    bg waiting "${as[@]}" rlock run --server-wait 1m -u "unix://$T/other/sock" k -- true
    poll_until 10 contains "$T/waiting.err" 'Permission denied; trying again'
    chmod 600 "$T/other/sock"
    ends_with waiting 0
    [[ ! -e $T/run ]]
}

@test "a URL that names a directory or a file in place of a Unix socket: exit 69, and what it is" {
    mkdir "$T/folder"
    touch "$T/file"
    run -69 --separate-stderr rlock run --server-wait 0 -u "unix://$T/folder" k -- true
    stderr_line '^rlock: k: cannot reach unix://.*/folder: it is a directory, not a socket$'
    stderr_line '^hint: unixsocket, '
    run -69 --separate-stderr rlock run --server-wait 0 -u "unix://$T/file" k -- true
    stderr_line '^rlock: k: cannot reach unix://.*/file: it is not a socket$'
}

@test "a Unix socket whose queue of new connections is full is waited for" {
    other_server --tcp-backlog 1
    kill -STOP "${pid[other]}"
    # Stays connected, with as many connections as the queue takes.
    bg crowd python3 -uc '
import socket, sys, time
crowd = []
try:
    while True:
        one = socket.socket(socket.AF_UNIX)
        one.setblocking(False)
        one.connect(sys.argv[1])
        crowd.append(one)
except BlockingIOError:
    print("full")
time.sleep(60)' "$T/other/sock"
    poll_until 10 contains "$T/crowd.out" full
    RLOCK_URL=unix://$T/other/sock bg waiter rlock run k -- true
    RLOCK_URL=unix://$T/other/sock bg one rlock run -n --connect-timeout 30s other -- true
    RLOCK_URL=unix://$T/other/sock run -69 --separate-stderr rlock run \
        --connect-timeout 500ms k -- true
    stderr_line "^rlock: k: cannot reach unix://$T/other/sock: its queue of new connections is full(, for [0-9]+s)?\$"
    alive "${pid[waiter]}"
    alive "${pid[one]}"
    kill -CONT "${pid[other]}"
    all_end 0 10 waiter one
}

# busiest_second FILE: the most connections that the proxy has seen within any second.
busiest_second() {
    awk 'NR > 1 { for (at[++n] = $1; $1 - at[first + 1] >= 1000;) first++
                  if (n - first > most) most = n - first } END { print most + 0 }' "$1"
}

@test "H132 a server that closes after each answer: less than ten connections a second" {
    rlock run warm-up -- true # the server knows the scripts from here on
    rlock latch set latch 1
    hold other waited-for
    for one in holder waiter latch; do
        bg_prints "$one-proxy" python3 -u "$TESTS/closing_proxy.py" "$REDIS_SOCK"
        declare "port_$one=$(head -n 1 "$T/$one-proxy.out")"
    done
    # of which each second is looked at
    bg holder rlock run -u "redis://rlock:pw@127.0.0.1:$port_holder" k -- sleep 5
    bg waiter rlock run -u "redis://rlock:pw@127.0.0.1:$port_waiter" waited-for -- true
    bg latch rlock latch wait -u "redis://rlock:pw@127.0.0.1:$port_latch" latch
    ends_with holder 0
    # A late client is served nevertheless.
    kill "${pid[other]}"
    rlock latch count-down latch
    ends_with waiter 0
    ends_with latch 0
    for one in holder waiter latch; do
        within 1 9 "$(busiest_second "$T/$one-proxy.out")"
    done
}

# distance MS: so long is the way to the server and back, through the proxy.
distance() {
    fault delay up $(($1 / 2))
    fault delay down $(($1 / 2))
}

# After three seconds a message says that there is no answer yet.
but_for_silence() {
    grep -v 'no answer from the store yet; trying again$\|the store is back after' || true
}

@test "H125 a round trip too long for the lease: exit 69, with both, and the lease that would do" {
    distance 800
    for option in -n -w60s --color=auto; do
        # Three trips to begin with, and some more.
        timed 2400 60000 run -69 --separate-stderr rlock run "$option" -u "$PROXY" \
            --connect-timeout 20s --lease 1s k -- touch "$T/run"
        stderr_line '^rlock: k: a round trip of [0-9.]+m?s is too long for a lease of 1s; it takes ([3-9]|[1-9][0-9])s or more$'
        [[ $(grep -v 'trying again$\|the store is back' <<<"$stderr") == "${stderr_lines[-1]}" ]]
    done
    run -69 --separate-stderr rlock acquire -u "$PROXY" --connect-timeout 20s --lease 1s k
    [[ ! -e $T/run && -z $output ]]
    poll_until 10 is_free k
}

@test "H125 a round trip of a quarter of the lease, to a new server: the lock is had, and kept" {
    redis script flush
    distance 3700
    bg a rlock run -n -u "$PROXY" --connect-timeout 30s --lease 15s --kill-after 0 k -- \
        sh -c ": >'$T/up'; sleep 20; exit 9"
    poll_until 30 test -e "$T/up"
    run -75 rlock run -n k -- true
    finish a 60
    [[ $status == 9 && -z $(but_for_silence <"$T/a.err") ]]
    poll_until 10 is_free k
}
