# --mirror: a lock that is held together with the lock of another library, beside programs that have
# that library's lock alone (other_lock.py). other NAME KIND KEY: a program that wants that lock,
# and holds it until it "goes"; found_it_held NAME: it has found it held; goes NAME: and was not
# disturbed.

load helper
load quorums

PYTHON=/usr/bin/python3 # Debian's packages are for it, whatever else there is

setup_file() {
    quorum_file 3
    # Other programs' keys are beyond what the manual lets rlock do.
    RLOCK_URL=unix://$REDIS_SOCK
    export RLOCK_URL
}

teardown() {
    [[ -n $BATS_TEST_COMPLETED ]] || show_evidence
    end_processes
    redis flushall >/dev/null
    quorum_mend
}

# needs_redis_py: skips the test where Python has no redis-py.
needs_redis_py() {
    "$PYTHON" -c 'import redis' 2>/dev/null || skip "there is no python3-redis"
}

# other NAME KIND KEY [ROUNDS]: a program that wants that lock, and holds it until it "goes".
other() {
    rm -f "$T/$1".{asks,up,go}
    bg "$1" "$PYTHON" -B "$BATS_TEST_DIRNAME/other_lock.py" "$2" "unix://$REDIS_SOCK" "$3" "$1" "$T" \
        "${4:-0}"
    poll_until 20 test -e "$T/$1.asks"
}

goes() {
    : >"$T/$1.go"
    ends_with "$1" 0
}

# found_it_held NAME: it has found the lock held.
found_it_held() {
    poll_until 10 contains "$T/$1.err" "held by a foreign lock"
}

@test "the other program's key is held with the lock, for as long, and released" {
    run -0 rlock run --lease 40s --mirror string:their k -- sh -c "
        redis-cli -s '$REDIS_SOCK' get their; redis-cli -s '$REDIS_SOCK' pttl their"
    [[ ${lines[0]} == rlock:* ]]
    within 20000 40000 "${lines[1]}"
    [[ $(redis exists their) == 0 ]]
    run -0 rlock run --mirror redisson:their k -- redis-cli -s "$REDIS_SOCK" hgetall their
    [[ ${lines[0]} == *:0 && ${lines[1]} == 1 && $(redis exists their) == 0 ]]
    run -0 rlock run --mirror string same -- redis-cli -s "$REDIS_SOCK" get same
    [[ $output == rlock:* && $(redis keys '*') != *same ]]
}

@test "the owner of the key keeps rlock out, for as long as it says; the message names it" {
    redis set their somebody px 3600000 >/dev/null
    refused 75 run -n --mirror string:their k -- touch "$T/ran"
    stderr_line '^rlock: k: not acquired: held by a foreign lock their for at most (59m|1h)'
    redis persist their >/dev/null
    refused 75 run -w 3s --mirror string:their k -- touch "$T/ran"
    stderr_line 'held by a foreign lock their, which has no end'
    refused 78 run -n --mirror redisson:their k -- touch "$T/ran"
    stderr_line 'another key of its mirror.s name is there, which is not a lock of Redisson'
    [[ ! -e $T/ran && $(redis get their) == somebody ]]
    run -0 rlock run -n k -- true
    # A waiter for the mirror has its place before those that do not ask for it.
    bg a rlock run --mirror string:their k -- sh -c "echo a >>'$LOG'"
    found_it_held a
    queue b k
    redis pexpire their 100 >/dev/null
    in_turn 10 a b
}

@test "a mirror that is taken or deleted is a lost lock" {
    for what in "set their stranger" "del their"; do
        hold a k --lease 9s --mirror string:their
        redis $what >/dev/null
        ends_with a 79 20
        is_free k
        [[ $what == del* || $(redis getdel their) == stranger ]]
    done
    contains "$T/a.err" 'lock lost: its mirror their was deleted'
    [[ $(redis exists their) == 0 ]]
    redis hset their stranger:1 1 >/dev/null
    refused 75 run -n --mirror redisson:their k -- true
    [[ $(redis hlen their) == 1 ]]
}

@test "nested runs share the mirror, which stays as long as one of them holds the lock" {
    bg a rlock run --mirror string:their k -- sh -c "
        rlock run -n k -- rlock run -n --mirror string:their k -- true || exit 3
        rlock run -n --mirror string:other k -- true 2>'$T/other'; [ \$? = 78 ] || exit 4
        rlock run k -- sh -c ': >\"$T/in\"; await \"$T/go\"' &
        await '$T/in'"
    ends_with a 0 20
    contains "$T/other" 'with another mirror'
    [[ $(redis exists their) == 1 ]]
    refused 75 run -n --mirror string:their elsewhere -- true
    : >"$T/go"
    poll_until 10 is_free k
    [[ $(redis exists their) == 0 ]]
}

@test "the mirror goes with its holder's lock: released, kept, taken away, run out" {
    run -0 rlock run --mirror string:their --at-least 60s k -- true
    within 40000 60000 "$(redis pttl their)"
    run -0 rlock force-release --now --yes k
    [[ $(redis exists their) == 0 ]]
    run -0 rlock acquire --lease 9s --mirror string:their k
    run -0 rlock renew --lease 60s --owner "${lines[-1]}" k
    within 40000 60000 "$(redis pttl their)"
    run -0 rlock force-release --now --yes k
    run -0 rlock acquire --lease 1s --mirror redisson:their k
    run -0 rlock run -w 60s k -- true
    poll_until 10 is_free k
    prints 0 'rlock:*' run -w 60s --mirror string:their k -- redis-cli -s "$REDIS_SOCK" get their
    # A waiter is not handed the lock past a stranger, and is served when that has gone.
    stay a k --mirror string:their
    queue b k --mirror string:their
    redis set their stranger >/dev/null
    run -0 rlock force-release --now --yes k
    # A second after it began to wait, or else a minute later, a waiter says for whom.
    poll_until 70 contains "$T/b.err" 'held by a foreign lock'
    redis del their >/dev/null
    ends_with b 0
}

# For each library: a program of it that waits for its key is notified when rlock releases that, and
# rlock has its turn when the program has released it.
@test "each library's waiter is woken by rlock, and rlock waits for each library's holder" {
    needs_redis_py
    while read -r kind name mirror; do
        stay "$kind-a" k --lease 100s --mirror "$mirror:$name"
        other "$kind-b" "$kind" "$name"
        ends_well "$kind-a"
        poll_until 15 test -e "$T/$kind-b.up"
        bg "$kind-c" rlock run --mirror "$mirror:$name" k -- true
        found_it_held "$kind-c"
        goes "$kind-b"
        ends_with "$kind-c" 0
    done <<'END'
redis-py their string
plain their string
python-redis-lock lock:their string
spring registry:their string
redisson their redisson
END
}

# listeners CHANNEL NUMBER: so many listen to it.
listeners() {
    [[ $(redis pubsub numsub "$1" | tail -n 1) == "$2" ]]
}

# hears_itself KEY: some client listens to a channel of that lock.
hears_itself() { # KEY
    [[ $(redis pubsub channels "rlock:{$1}:*") ]]
}

@test "the first waiter behind another program's lock listens to that one's channel, too" {
    while read -r mirror channel; do
        redis del their >/dev/null
        [[ $mirror == string:* ]] && redis set "${mirror#*:}" x >/dev/null
        [[ $mirror == string:* ]] || redis hset "${mirror#*:}" x:1 1 >/dev/null
        queued k bg w rlock run --mirror "$mirror" k -- true
        queue v k --mirror "$mirror"
        poll_until 10 listeners "$channel" 1
        # A user without the right to that channel listens to its own.
        redis acl setuser narrow reset on '>pw' '~*' '&rlock:*' +@all >/dev/null
        bg n rlock run -u "unix://narrow:pw@$REDIS_SOCK" --mirror "$mirror" other -- true
        found_it_held n
        poll_until 10 hears_itself other
        poll_until 10 listeners "$channel" 1
        redis del "${mirror#*:}" >/dev/null
        all_end 0 20 w v n
    done <<'END'
redisson:their redisson_lock__channel:{their}
redisson:a{their} redisson_lock__channel:a{their}
string:jobs:their jobs-channel:jobs:their
END
}

@test "rlock and other programs have the mirror one at a time, many times over" {
    needs_redis_py
    other p redis-py their 10
    other q plain their 10
    for i in {1..10}; do
        bg "r$i" rlock run --server-wait 2m --mirror string:their k -- \
            sh -c "echo r$i >>'$LOG'; sleep 0.01; echo r$i >>'$LOG'"
    done
    all_end 0 30 r{1..10}
    ends_with p 0 30
    ends_with q 0 30
    # Each has noted its name twice in a row.
    run -0 awk 'NR % 2 { one = $1; next } $1 != one { exit 1 } END { exit NR != 60 }' "$LOG"
}

@test "force-release takes the mirror from the program that it has shown, and from no other one" {
    says 1 'their is not held by another program' force-release --yes --mirror string:their k
    redis set their stranger >/dev/null
    bg a rlock run --mirror string:their k -- sh -c "echo a >>'$LOG'"
    found_it_held a
    refused 64 force-release --mirror string:their k
    refused 64 force-release --yes --now --mirror string:their k
    refused 64 force-release --yes --mirror string:their k l
    refused 78 force-release --yes --mirror redisson:their k
    [[ $(redis get their) == stranger ]]
    run -0 --separate-stderr rlock force-release --yes --mirror string:their k
    stderr_line '^their, the mirror of k, is held by another program, and has no end$'
    stderr_line 'the program is not told'
    in_turn 10 a
    # A holder of the lock keeps what it has.
    stay b k --mirror string:their
    refused 1 force-release --yes --mirror string:their k
    ends_well b
    # Redisson's waiters are told.
    redis hset their some:1 1 >/dev/null
    redis pexpire their 3600000 >/dev/null
    bg listener redis-cli -s "$REDIS_SOCK" subscribe 'redisson_lock__channel:{their}'
    poll_until 10 contains "$T/listener.out" subscribe
    says 0 'and ends in (59m|1h)' force-release --yes --mirror redisson:their k
    poll_until 10 contains "$T/listener.out" message
}

@test "force-release leaves another program's lock that changed hands during the question" {
    redis set their one >/dev/null
    on_terminal rlock force-release --mirror string:their k <<EOF
expect Take it away
sh redis-cli -s "$REDIS_SOCK" set their two
send y\\n
expect their changed hands meanwhile
status 1
EOF
    [[ $(redis get their) == two ]]
}

# has_no_mirror NUMBER: that server has released "their"; one that the majority did not need, later.
has_no_mirror() {
    [[ $(node "$1" exists their) == 0 ]]
}

@test "a quorum: held at a majority of the servers, or not" {
    urls=$(node_urls)
    run -0 rlock run -u "$urls" --mirror string:their k -- sh -c "
        for i in 1 2 3; do redis-cli -s '$QUORUM'/\$i/sock get their; done"
    [[ $(grep -c '^rlock:' <<<"$output") -ge 2 ]]
    for one in 1 2 3; do
        poll_until 10 has_no_mirror "$one"
    done
    node 1 set their stranger >/dev/null
    run -0 rlock run -u "$urls" --mirror string:their k -- true
    node 2 set their stranger >/dev/null
    refused 75 run -n -u "$urls" --mirror string:their k -- true
    run -0 rlock force-release -u "$urls" --yes --mirror string:their k
    poll_until 10 has_no_mirror 2
    run -0 rlock run -n -u "$urls" --mirror string:their k -- true
}

@test "options and stores that --mirror does not go with are refused unasked: exit 64" {
    export RLOCK_URL=redis://127.0.0.1:1
    refusals '' <<'END'
run --mirror foo:x k -- true|--mirror 'foo:x' is none of string:NAME, redisson:NAME and shedlock:NAME
force-release --yes --mirror foo:x k|--mirror 'foo:x' is none of string:NAME, redisson:NAME and shedlock:NAME
run --mirror string: k -- true|--mirror 'string:' is none of string:NAME, redisson:NAME and shedlock:NAME
run --mirror string:x --read k -- true|--mirror needs an exclusive lock of one KEY
run --mirror string:x --limit 2 k -- true|--mirror needs an exclusive lock of one KEY
run --mirror string:x k l -- true|--mirror needs an exclusive lock of one KEY
run --mirror string:x --grace k -- true|--mirror does not go with --grace
run --mirror shedlock:x k -- true|redis:// has no --mirror shedlock:
run -u cluster://127.0.0.1:1 --mirror string:x k -- true|--mirror: the keys k and x are in different slots
run -u zookeeper://127.0.0.1:1 --mirror string:x k -- true|zookeeper:// has no --mirror
END
}
