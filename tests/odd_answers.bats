# Servers that answer what no sound one does: whatever it is, a waiter asks at a rate that any
# server can bear, and no answer is taken for what it is not. H130 odd_server.py is such a server;
# lying_proxy.py makes an error of a sound server's answer. use_odd_server KIND: RLOCK_URL leads to
# it; rate_is_bounded: it was asked ten times at once, and then ten times a second.
# start_lying_proxy WORD: $through_proxy leads through it to a sound server, of whose answers those
# with WORD become an error.

load helper
load latches

# use_odd_server KIND: RLOCK_URL leads to such a server.
use_odd_server() {
    bg odd python3 "$TESTS/odd_server.py" "$T/$1.sock" "$1"
    poll_until 10 listens "$T/$1.sock"
    RLOCK_URL=unix://$T/$1.sock
}

# times_asked WORD: how often.
times_asked() {
    grep -cx "$1" "$T/odd.out" || true
}

# A burst of ten, ten a second after it, and what was under way: for as long as it really took.
rate_is_bounded() {
    local start passed
    start=$(now_ms)
    bg w rlock run -w 4s k -- touch "$T/ran"
    finish w
    passed=$(($(now_ms) - start))
    [[ ! -e $T/ran ]]
    within 1 $((14 + passed / 100)) "$(times_asked script)"
    within 1 $((14 + passed / 100)) "$(times_asked connection)"
}

# A server says again and again that the holder's lease ends in 1 ms. The waiter must not ask as
# often as that.
@test "H130 a lease that ends in a ms, again and again: asked at a bounded rate" {
    use_odd_server soon
    rate_is_bounded
    [[ $status == 75 ]]
}

# A server says that it grants nothing for a time that makes no sense. rlock asks at a bounded rate,
# and says how long it was told to wait.
@test "H130 a time of grace that is negative or too large: asked at a bounded rate" {
    use_odd_server negative
    rate_is_bounded
    [[ $status == 69 ]]
    use_odd_server huge
    rate_is_bounded
    [[ $status == 69 ]]
    contains "$T/w.err" 'grants nothing new for another 53376d'
}

# A server says of each request that it has come too late. rlock repeats it at a bounded rate, and
# then gives up.
@test "H130 STALE to whatever is asked: asked at a bounded rate" {
    use_odd_server stale
    rate_is_bounded
    [[ $status == 69 ]]
    contains "$T/w.err" 'the request took too long'
}

# A server calls a waiter all the time, each call of which makes it ask. It must ask at a bounded
# rate.
@test "H130 a thousand calls a second: asked at a bounded rate" {
    use_odd_server calls
    rate_is_bounded
    [[ $status == 75 ]]
}

# A server sends each answer twice, so that the second one would be taken for that to the next
# request. rlock must connect anew, and not too often.
@test "H4 each answer twice: the connection is not used again" {
    use_odd_server twice
    rate_is_bounded
    [[ $(times_asked connection) -ge 2 ]]
}

@test "H4 an answer to another request is not taken for the one that is awaited" {
    use_odd_server other
    says 69 "the server's answer makes no sense" run -n --connect-timeout 3s k -- touch "$T/ran"
}

@test "an error of 2,000 characters is shown whole, in one line that colours nothing" {
    local words
    use_odd_server long
    words='it answers with an error: ERR \\x1b\[31mred( word){396} the end$'
    says 69 "^rlock: k: $RLOCK_URL: $words" run -n --server-wait 0 k -- touch "$T/ran"
    [[ ! -e $T/ran ]]
    says 69 "^rlock: release: $RLOCK_URL: $words" release k --owner \
        00000000-0000-4000-8000-000000000000
    run -69 --separate-stderr rlock latch status k # asks once: a look leaves nothing to settle
    [[ $stderr != *'trying again'* ]]
    run -69 --separate-stderr rlock run -v -n --server-wait 0 k -- true
    stderr_line 'the server said: ERR \\x1b\[31mred( word){396} the end$'
}

# The claims of an answer are not believed: rlock would run out of memory, or of its stack, or look
# through empty memory for seconds. tests/unit/test_conn.c has one that does not end.
@test "H130 an answer of a size that none has: the connection is left, at a bounded rate" {
    local kind
    for kind in many more deep; do
        use_odd_server $kind
        refused 69 run -n --server-wait 0 k -- touch "$T/ran"
        stderr_line "$RLOCK_URL: what answers there is not a Redis server\$"
        [[ $kind != more ]] || rate_is_bounded
    done
    [[ ! -e $T/ran ]]
}

# start_lying_proxy WORD [TIMES]: through_proxy leads through such a proxy to the real server.
start_lying_proxy() {
    bg_prints lying python3 -u "$TESTS/lying_proxy.py" "$REDIS_SOCK" "$@"
    through_proxy=redis://rlock:pw@127.0.0.1:$(head -n 1 "$T/lying.out")
}

@test "H156 an error for a grant: it may be done, and is released" {
    start_lying_proxy GRANTED
    says 69 'it answers with an error: ERR Connection timed out' run -n -u "$through_proxy" k -- \
        touch "$T/ran"
    contains "$T/lying.out" lost
    poll_until 5 is_free k
    [[ ! -e $T/ran ]]
}

@test "H156 an error for a release that was done: no loss is reported" {
    start_lying_proxy RELEASED
    run -0 --separate-stderr rlock run -u "$through_proxy" k -- true
    contains "$T/lying.out" lost
    [[ $stderr == "" ]]
    is_free k
}

@test "H156 an error for a renewal that was done: the holder listens to its server again" {
    start_lying_proxy RENEWED
    RLOCK_URL=$through_proxy stay a k --lease 9s -v
    poll_until 30 contains "$T/lying.out" lost
    renews a
    renews a
    poll_until 15 is_listening a
    ends_well a
}

@test "H156 an error for a count of a latch is settled by another count: it counts once" {
    start_lying_proxy LATCH
    rlock latch set k 3
    run -0 --separate-stderr rlock latch count-down -u "$through_proxy" k
    contains "$T/lying.out" lost
    [[ $output == 2 ]]
    is_left k 2
}

@test "H156 an error for the count of a command that has succeeded: it counts once" {
    # The first answer with LATCH after the command has begun becomes an error.
    bg_prints lying python3 -u "$TESTS/lying_proxy.py" "$REDIS_SOCK" LATCH 1 1 "$T/when"
    rlock latch set k 3
    run -0 --separate-stderr rlock latch run \
        -u "redis://127.0.0.1:$(head -n 1 "$T/lying.out")" k -- touch "$T/when"
    contains "$T/lying.out" lost
    is_left k 2
}

@test "a host that answers the doctor with a number: an error" {
    mkdir "$T/bin"
    cp "$RLOCK" "$T/bin/rlock"
    cat >"$T/bin/rlock-external" <<'END'
#!/bin/bash
exec >&0 # a socket
while read -r word; do
    case $word in
    OPEN*) printf '+OK\r\n' ;;
    ROLE*) printf '*1\r\n$6\r\nmaster\r\n' ;;
    TIME*) printf '*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n' ;;
    SQL*) printf ':1\r\n' ;;
    esac
done
END
    chmod +x "$T/bin/rlock-external"
    RLOCK=$T/bin/rlock RLOCK_URL=exec:dir/$T/locks run -69 rlock doctor --server-wait 0
    [[ $output == *unfit*"the server's answer makes no sense"* ]]
}
