# Encrypted connections that break, stall, or have much to say; and answers that are lost, whichever
# it is, with and without TLS. each_flight PORT in_clear: each answer over such a connection is
# lost, one in each run.

load helper
load certificates
load flights

setup_file() { start_tls_file; }

setup() {
    start_test
    start_proxy proxy 127.0.0.1:0 "127.0.0.1:$TLS_PORT"
    printf 'tls-ca = %s/ca.pem\n' "$CERTS" >"$T/config"
    export RLOCK_CONFIG=$T/config RLOCK_URL=rediss://127.0.0.1:$TLS_PORT
    PROXY=rediss://${proxy[proxy]}
}

# The server stalls before the first byte of its answer, in the head of its first record, behind
# that head, and later.
@test "a server that stalls in the handshake: exit 69 after the connect timeout" {
    for bytes in 0 3 100 700; do
        fault cut down $bytes
        timed 2900 15000 refused 69 run -u "$PROXY" --connect-timeout 3s k -- touch "$T/run"
        stderr_line '^rlock: k: cannot reach rediss://.*no answer to TLS in time'
        fault pass
    done
    fault hold up
    refused 69 run -u "$PROXY" --connect-timeout 500ms k -- touch "$T/run"
}

# The server ends where it stalls in the test above.
@test "a server that closes or resets in the handshake: exit 69, and it says so" {
    for bytes in 0 3 100 700; do
        fault cut down $bytes close
        refused 69 run -u "$PROXY" k -- touch "$T/run"
        stderr_line '^rlock: k: cannot reach rediss://.*(closed|reset)'
        fault pass
    done
}

@test "a handshake that arrives byte by byte succeeds" {
    fault trickle down 1
    run -0 rlock run -u "$PROXY" --connect-timeout 2m k -- true
}

@test "a waiter and a holder survive a stalled handshake" {
    hold a k -u "$PROXY" --lease 15s
    bg b rlock run -u "$PROXY" --lease 15s k -- true
    # The waiter knows that it waits: a store that is away at the start is tried for a shorter time.
    poll_until 15 contains "$T/b.err" 'waiting for k'
    fault rst
    fault cut down 700
    sleep 1 # of a stalled handshake
    fault pass
    renewed k
    terminate a 143
    ends_with b 0
}

@test "connections are cut again and again: the lock is renewed all the same" {
    local n=0
    stay a k -u "$PROXY" --lease 18s
    while ((n < 24)); do
        # In the middle of a handshake, of its last words, of a reply; and between.
        fault cut down $((n * 137 % 1500)) close >"$T/fault"
        fault rst >"$T/fault"
        sleep 0.05 # of a broken network
        fault pass >"$T/fault"
        sleep 0.5 # to recover
        n=$((n + 1))
        ((n % 4)) || renewed k
    done
    ends_well a
    run -0 rlock status -q k
}

@test "a server killed in mid-session does not kill rlock by SIGPIPE" {
    hold a k --lease 9s
    : >"$T/redis.dirty" # it begins anew after the test
    redis_stop
    ends_with a 79
    # TERM releases the lock over a connection that was just broken: 143, and not SIGPIPE's 141.
    redis_start
    hold b k --lease 30s
    redis client kill type normal skipme yes
    terminate b 143
    run -0 rlock status -q k
}

@test "thirty wait over TLS, near the turn and far from it, and each has its own" {
    hold a k
    for n in {1..30}; do
        work "w$n" k 0 --server-wait 2m
    done
    poll_until 50 has_waiters k 30
    status_json k '.[0].waiters | length == 30'
    kill "${pid[a]}"
    for n in {1..30}; do
        ends_with "w$n" 0 50
        # Thirty handshakes may keep a busy machine from an answer for three seconds.
        run ! grep -vE ' (waiting for|acquired after) |no answer from the store yet|is back after' \
            "$T/w$n.err"
    done
    no_overlap
    [[ $(cut -d' ' -f1 "$LOG" | sort -u | wc -l) == 30 ]]
}

@test "over TLS the next waiter is called, and need not look" {
    hold a k --lease 60s
    queued k bg b rlock run k -- "$RLOCK_TEST_TOOLS/await" "$T/go"
    bg_prints monitor redis-cli -s "$REDIS_SOCK" monitor
    terminate a
    # The renewal behind a hand-over says that it is one; a new acquisition does not.
    poll_until 10 grep -q '"handed"' "$T/monitor.out"
    : >"$T/go"
    ends_with b 0
}

@test "a reply of more than one TLS record is read as a whole" {
    label=$(printf 'x%.0s' {1..200})
    rlock acquire --lease 1h --label "$label" k0
    for n in {1..1500}; do
        echo "copy rlock:{k0} rlock:{k$n}"
    done | redis-cli -s "$REDIS_SOCK" | grep -c 1
    status_json 'length == 1501'
    json "all(.[]; .holders[0].label == \"$label\")"
    # One reply of more than a record, in small pieces.
    start_proxy slow 127.0.0.1:0 "127.0.0.1:$TLS_PORT"
    run -0 --separate-stderr rlock status -u "rediss://${proxy[slow]}" --json 'k1*'
    json 'length == 612'
}

connections() {
    redis info stats | sed -n 's/^total_connections_received:\([0-9]*\).*/\1/p'
}

@test "acquire --keep leaves a renewer that continues the connection" {
    sleep 1000 &
    local keeper=$! owner before
    before=$(connections)
    owner=$(rlock acquire --keep "$keeper" --lease 9s k)
    sleep 10 # longer than the lease
    # The process that handed it over has sent no release there: of these two, one is our own
    # question.
    [[ $(connections) == $((before + 2)) ]]
    run -0 rlock renew --owner "$owner" k
    run -0 rlock release --owner "$owner" k
    run -0 rlock status -q k
    kill "$keeper"
}

@test "a certificate that changes while a lock is held is verified anew" {
    authority other
    certificate new other subjectAltName=DNS:localhost,IP:127.0.0.1
    cp "$CERTS/ca.pem" "$T/trusted.pem"
    hold a k --tls-ca "$T/trusted.pem" --lease 30s
    server_certificate new
    redis client kill type normal skipme yes
    poll_until 10 contains "$T/a.err" 'not trusted'
    # Files are read again, unless they make no sense.
    echo nonsense >"$T/trusted.pem"
    redis client kill type normal skipme yes
    sleep 0.2 # for an attempt or two
    cp "$CERTS/other.pem" "$T/trusted.pem"
    printf 'tls-ca = %s/other.pem\n' "$CERTS" >"$T/config"
    renewed k
    terminate a 143
}

in_clear() { echo "redis://127.0.0.1:$1"; }
# in_tls PORT: prints the address of a server there, over TLS.
in_tls() { echo "rediss://127.0.0.1:$1"; }

@test "H141 an answer of Redis that is lost, whichever it is: it runs once, and the lock is free" {
    each_flight "$PLAIN_PORT" in_clear
}

@test "H141 an answer of Redis that is lost over TLS, whichever it is: the command runs once" {
    each_flight "$TLS_PORT" in_tls
}
