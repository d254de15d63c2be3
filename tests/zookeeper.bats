# zookeeper://, with a real server. A lock is a node of a session, which lasts as long as its lease.
# relay_start: TLS before the server; small_start N: another server, which takes N clients from one
# address. each_flight SERVERS COMMAND: in one run after the other, another answer of the SERVERS is
# lost; each run ends well. slots: of the live holders; place_is_kept OPTIONS: of waiters whose
# agents are killed; passed_over OPTIONS / OPTIONS / OPTIONS: of the holder, the first waiter, which
# is stopped, and the second one, which has its turn before the first.

load helper
load zookeepers
load certificates
load waiters
load flights

# strange_sessions_ended: those that began instead of opening a's again: after the relay's port,
# the session of the run before, and a's own.
strange_sessions_ended() {
    local dump one
    dump=$(asked "${port[1]}" dump) || return
    [[ $dump == *"Session Sets"* && $(wc -l <"$T/relay.out") -gt 3 ]] || return
    while read -r one; do
        ! grep -qw "$one" <<<"$dump" || return
    done < <(tail -n +4 "$T/relay.out")
}

@test "a command runs under a lock that others do not get, and that is free when it has ended" {
    run -0 --separate-stderr rlock run --lease 10s k -- sh -c 'echo "$RLOCK_KEY $RLOCK_FENCE"'
    [[ $output =~ ^k\ [1-9][0-9]*$ && $stderr == "" ]]
    stay a k
    says 75 '^rlock: k: not acquired: held by .* \(sh\)' run -n k -- touch "$T/ran"
    run -0 rlock run -n other -- true
    ends_well a
    run -0 rlock run -n k -- true
}

@test "twenty that want the same lock have it one after the other, with growing fences" {
    one_after_the_other 20 "echo \$RLOCK_FENCE >>'$T/fences'"
    sort -nuc "$T/fences"
}

@test "waiters are served in the order of arrival, and -w ends in time" {
    stay a k
    queue b k
    queue c k
    refused 75 run -w 3s k -- touch "$T/ran"
    poll_until 10 has_waiters k 2
    ends_well a
    in_turn 10 b c
}

# names_the_second [OPTION...]: when a ends, b holds the lock, and c is behind d all the time.
names_the_second() {
    stay a k "$@"
    queued k bg b rlock run "$@" --label second k -- sleep 1000
    queued k bg d rlock run "$@" k -- true
    queued k bg c rlock run "$@" -w 12s k -- true
    poll_until 10 contains "$T/c.err" 'waiting for k'
    ends_well a
    ends_with c 75 30
    contains "$T/c.err" 'label second'
    terminate b
    ends_with d 0
}

@test "a waiter far from its turn names the holder of now, not that of its first look" {
    names_the_second
    names_the_second --limit 1
}

@test "rlock and its agent are killed: the lock is free when the session has ended" {
    hold a k --lease 9s
    queue b k
    kill_both a
    ends_with b 0 30
}

@test "an agent that dies: the next one continues the session" {
    stay a k --lease 9s
    owner=$(owner_of k)
    kill_agent a
    bg b rlock run -w 12s k -- touch "$T/ran"
    finish b 40
    [[ $status == 75 && $(owner_of k) == "$owner" ]]
    ends_well a
}

@test "an agent that dies, and one of its keys is taken away: the other is free at once" {
    hold a k --lease 60s m
    has_agent a
    kill -STOP "$agent"
    run -0 rlock force-release --now --yes m
    kill -KILL "$agent"
    ends_with a 79 20
    run -0 rlock run -w 50s --lease 60s k -- true # before the lease of a would end
}

# The relay stops the next agent when it is about to read the places that the first one left. The
# place at m is taken away then, so that it begins anew, and must not leave its first place at k.
@test "a waiter's agent dies, and one of its places is taken away meanwhile: none stays" {
    bg_prints relay python3 "$TESTS/pausing_zookeeper.py" "${port[1]}" "$T"
    hold a k
    hold b m
    RLOCK_URL=zookeeper://127.0.0.1:$(<"$T/relay.out")/test/$BATS_TEST_NUMBER \
        bg w rlock run --lease 60s k m -- touch "$T/ran"
    poll_until 15 has_waiters k 1
    poll_until 15 has_waiters m 1
    has_agent w
    : >"$T/armed"
    kill -KILL "$agent"
    poll_until 20 test -e "$T/paused"
    run -0 rlock force-release --now --yes --purge m
    ends_with b 79 20
    rm "$T/armed"
    poll_until 15 has_holders m 1 # it is the only one in that queue
    terminate a
    ends_with w 0 20
    [[ -e $T/ran ]]
    run -0 rlock run -w 20s k -- true
}

@test "H143 a waiter's agent is killed: the place is kept, and only those there are shown" {
    place_is_kept
    place_is_kept --limit 1
    place_is_kept j
}

# killed_unheard TEXT HOLDERS WAITERS [OPTION...]: the agent of a run with -n is killed before it
# hears the answer to the request with that text in it; by that, there are so many.
killed_unheard() {
    rm -f "$T"/proxy.*
    start_proxy proxy 127.0.0.1:0 "127.0.0.1:${port[1]}"
    rlock run "${@:4}" k -- true # makes the nodes of the keys; the server deletes unused ones
    fault on up "$1" hold down
    bg a rlock run -n -u "zookeeper://${proxy[proxy]}/test/$BATS_TEST_NUMBER" --lease 60s \
        --connect-timeout 60s "${@:4}" k -- sh -c 'exit 9'
    poll_until 10 eval "has_holders k $2 && has_waiters k $3"
    kill -KILL "$(agent_of "${pid[a]}")"
    ends_with a 9 30
    is_free k
    has_waiters k 0
    kill "${pid[proxy]}"
    wait "${pid[proxy]}" || true
}

# "_c_" is in the name of the node that makes a place in the queue, "lease-" in that of one that has
# a slot. Without a limit the first in the queue is the holder, so that no waiter is shown.
@test "H143 an agent is killed before it hears of its grant: the next one has it, with -n too" {
    killed_unheard _c_ 1 0
    killed_unheard _c_ 1 0 j
    killed_unheard _c_ 0 1 --limit 1
    killed_unheard lease- 1 0 --limit 1
}

@test "H144 a stopped waiter is passed over, and has its turn when it continues" {
    passed_over --write / --read / --write
    passed_over --write / --write / --read
    passed_over --read / --write / --read
    passed_over --limit 1 / --limit 1 / --limit 1
    passed_over / j / j
    passed_over / j / i
}

@test "H112 the server is stopped for longer than the lease: the command ends before, with 79" {
    cat >"$T/command" <<'END'
trap 'cut -d. -f1 /proc/uptime >"$0.ended"; exit 0' TERM
: >"$0.up"
while :; do sleep 0.05; done
END
    bg a rlock run --lease 9s --kill-after 3s k -- sh "$T/command"
    poll_until 10 test -e "$T/command.up"
    stopped=$(cut -d. -f1 /proc/uptime)
    server_signal STOP 1
    finish a 20
    server_signal CONT 1
    [[ $status == 79 ]]
    # The lease of 9 s, in seconds that are cut off.
    (($(<"$T/command.ended") <= stopped + 10))
    poll_until 20 serves "${port[1]}"
    run -0 rlock run -w 60s k -- true
}

@test "a server that is killed and comes again has forgotten nothing" {
    stay a k --lease 40s
    server_signal KILL 1
    server_start 1
    poll_until 60 serves "${port[1]}"
    refused 75 run -n k -- true
    ends_well a
    run -0 rlock run -w 30s k -- true
}

@test "force-release: the command is stopped at once, whatever is left of the lease" {
    hold a k --lease 40s
    run -0 rlock force-release --now --yes k
    ends_with a 79 10
    contains "$T/a.err" 'lock lost'
    run -1 rlock force-release --now --yes k
}

@test "readers share a lock, a writer does not, and none passes an earlier one" {
    stay a k --read
    stay b k --read
    has_holders k 2
    queue w k
    queue r k --read
    ends_well a
    ends_well b
    in_turn 10 w r
}

@test "several keys: all or none, whatever their order" {
    stay a b
    refused 75 run -n a b c -- true
    run -0 rlock run -n a -- true
    ends_well a
    for i in {1..8}; do
        bg "ab$i" rlock run --server-wait 2m a b -- sh -c "echo + >>'$LOG'; echo - >>'$LOG'"
        bg "ba$i" rlock run --server-wait 2m b a -- sh -c "echo + >>'$LOG'; echo - >>'$LOG'"
    done
    for i in {1..8}; do
        ends_with "ab$i" 0 60
        ends_with "ba$i" 0 60
    done
    [[ $(xargs <"$LOG") == "$(printf '+ - %.0s' {1..16} | xargs)" ]]
}

@test "a semaphore: N at once, each with a slot of its own, and the next is called in its turn" {
    stay a k --limit 3
    stay b k --limit 3
    prints 0 '3 limit' run -n --limit 3 k -- sh -c 'echo $RLOCK_SLOT $RLOCK_MODE'
    stay c k --limit 3
    [[ $(slots) == '[1,2,3]' ]]
    status_json k '.[0].mode == "limit" and .[0].limit == 3 and .[0].waiters == []'
    refused 75 run -n --limit 3 k -- touch "$T/ran"
    stderr_line '^rlock: k: not acquired: all 3 slots are taken, the oldest by .* \(sh\)'
    queue d k --limit 3
    queue e k --limit 3
    refused 75 run -w 3s --limit 3 k -- touch "$T/ran"
    ends_well b
    in_turn 10 d e
    prints 0 2 run -n --limit 3 k -- sh -c 'echo $RLOCK_SLOT'
    ends_well a
    ends_well c
    has_holders k 0
}

@test "a semaphore: those that come at once do not refuse each other while there is room" {
    for i in {1..8}; do
        bg "r$i" rlock run -n --server-wait 2m --limit 8 k -- sh -c "echo \$RLOCK_SLOT >>'$T/slots'
            await '$T/go'"
    done
    poll_until 20 eval '[[ $(wc -l <"$T/slots") == 8 ]]'
    [[ $(sort -n "$T/slots" | xargs) == "1 2 3 4 5 6 7 8" ]]
    : >"$T/go"
    all_end 0 10 r{1..8}
}

@test "H88 a semaphore of three for twenty, some killed: never more than three" {
    crowded_semaphore 3 4 90 # rounds of each, killed ones, s for each
    poll_until 20 has_holders k 0
}

@test "a semaphore: another limit, or another kind of lock, on what is held: exit 78" {
    stay a k --limit 3
    says 78 '^rlock: k: .* a semaphore with a limit of 3$' run -n --limit 2 k -- true
    refused 78 run -n k -- true
    says 78 '^rlock: k: .* a semaphore with a limit of 3$' run -n --read k -- true
    refused 78 run -n other k -- true
    ends_well a
    run -0 rlock run -n --limit 2 k -- true
    stay b k
    says 78 '^rlock: k: .* a plain lock, not as a semaphore$' run -n --limit 2 k -- true
    ends_well b
    run -0 rlock run -n k -- true
}

@test "a semaphore: several keys, renewals, nesting, and a lock that is taken away" {
    stay a k --limit 1 --lease 9s
    refused 75 run -n --limit 1 j k -- true
    run -0 rlock run -n --limit 1 j -- true
    bg b rlock run -w 20s --limit 1 j k -- touch "$T/ran"
    finish b 40
    [[ $status == 75 && ! -e $T/ran ]]
    ends_well a
    run -0 rlock run --limit 1 k -- sh -c "rlock run -n --limit 1 k -- sh -c 'echo \$RLOCK_SLOT' &&
        ! rlock run -n --limit 2 k -- true && ! rlock run -n k -- true"
    [[ ${lines[0]} == 1 ]]
    hold c k --limit 1 --lease 40s
    queue d k --limit 1
    run -0 rlock force-release --now --yes k
    ends_with c 79 10
    ends_with d 0
}

@test "a writer is refused in an ancestor that reads, also where that one nests in a writer" {
    says 78 '^rlock: k: an ancestor of this process holds it for reading' \
        run k -- rlock run --shared k -- rlock run -n k -- touch "$T/ran"
    [[ ! -e $T/ran ]]
}

# The waiter's list of the leases has the outer one, which has gone when it asks what is in it.
@test "a semaphore: a lease that nests in one that goes while a waiter counts them is counted" {
    local outer inner
    run -0 rlock acquire --lease 60s --limit 1 --keep $$ k
    outer=${lines[-1]}
    start_proxy proxy 127.0.0.1:0 "127.0.0.1:${port[1]}"
    fault on down -lease- hold up
    bg a rlock run -u "zookeeper://${proxy[proxy]}/test/$BATS_TEST_NUMBER" --lease 60s \
        --connect-timeout 60s --limit 1 k -- touch "$T/ran"
    # The server has answered more than the waiter's place in the queue takes: the leases as well.
    poll_until 10 eval 'read -r _ _ _ _ _ _ _ down <<<"$(fault stats)" && ((down > 300))'
    RLOCK_OWNER=$outer run -0 rlock acquire --lease 60s --limit 1 --keep $$ k
    inner=${lines[-1]}
    [[ $inner == "$outer".* ]]
    run -0 rlock release --owner "$outer" k
    fault pass
    poll_until 30 contains "$T/a.err" 'waiting for k, held by'
    terminate a 143
    [[ ! -e $T/ran ]]
    run -0 rlock release --owner "$inner" k
}

# The waiter's list of those that nest in the outer lock has its sibling, which has gone when the
# waiter asks for its content.
@test "nesting: an owner in a sibling that goes while a waiter looks at it holds the lock" {
    local outer sibling inner before
    run -0 rlock acquire --lease 60s --keep $$ k
    outer=${lines[-1]}
    RLOCK_OWNER=$outer run -0 rlock acquire --lease 60s --keep $$ k
    sibling=${lines[-1]}
    start_proxy proxy 127.0.0.1:0 "127.0.0.1:${port[1]}"
    fault on up rlock/1 hold up
    RLOCK_OWNER=$outer bg a rlock run --lease 60s --connect-timeout 60s \
        -u "zookeeper://${proxy[proxy]}/test/$BATS_TEST_NUMBER" k -- touch "$T/ran"
    # a's node is there, a holder as far as the nodes' names tell; its next request is held.
    poll_until 10 has_holders k 3
    before=$(fault stats)
    fault on down any hold up
    fault delay up 0 # that request, for the list, continues; the one after its reply is held
    poll_until 10 eval '[[ $(fault stats) != "$before" ]]'
    RLOCK_OWNER=$sibling run -0 rlock acquire --lease 60s --keep $$ k
    inner=${lines[-1]}
    run -0 rlock release --owner "$sibling" k
    fault pass
    poll_until 30 contains "$T/a.err" 'waiting for k, held by'
    terminate a 143
    [[ ! -e $T/ran ]]
    run -0 rlock release --owner "$inner" k
    run -0 rlock release --owner "$outer" k
}

# To renew or to release a lock, a command takes its owner's session over.
@test "renew and release with the token of a waiter change nothing: it keeps its place" {
    stay a k --lease 9s
    sleep 1000 &
    pid[keeper]=$!
    queued k bg b rlock acquire --lease 9s --keep "${pid[keeper]}" k
    queue c k --lease 9s
    mapfile -t tokens < <(rlock status --json k | jq -r '.[0].waiters[].owner')
    for token in "${tokens[@]}"; do
        for command in renew release; do
            run -1 rlock "$command" --owner "$token" k
            [[ $output == *"k is not held by that owner"* ]]
        done
    done
    mapfile -t now < <(rlock status --json k | jq -r '.[0].waiters[].owner')
    [[ ${#tokens[@]} == 2 && "${now[*]}" == "${tokens[*]}" ]]
    ends_well a
    ends_with b 0
    run -0 rlock release --owner "$(<"$T/b.out")" k
    ends_with c 0
}

@test "a semaphore: acquire --keep, renew and release by another process; an agent that dies" {
    sleep 1000 &
    pid[keeper]=$!
    run -0 rlock acquire --lease 9s --limit 2 --keep "${pid[keeper]}" k
    owner=${lines[-1]}
    run -0 rlock renew --owner "$owner" k
    stay a k --limit 2 --lease 9s
    refused 75 run -n --limit 2 k -- true
    kill_agent a
    renewed k
    refused 75 run -n --limit 2 k -- true
    [[ $(slots) == '[1,2]' ]]
    run -0 rlock release --owner "$owner" k
    [[ $(slots) == '[2]' ]]
    run -0 rlock run -n --limit 2 k -- true
    ends_well a
}

@test "nested: the inner one has it at once, before all waiters, with the outer one's fence" {
    bg_up a rlock run k -- sh -c ": >'$T/a.up'; await '$T/go'
        rlock run -n k -- sh -c 'echo \$RLOCK_FENCE' >'$T/inner'; echo \$RLOCK_FENCE >'$T/outer'
        rlock run -n --read k -- true && rlock run -n k other -- true"
    queue b k
    : >"$T/go"
    finish a
    [[ $status == 0 && -s $T/inner && $(<"$T/inner") == "$(<"$T/outer")" ]]
    ends_with b 0
}

@test "nested: siblings take turns, and an owner within one does not wait for the other" {
    # 1 holds; 1.1 waits while 1.2, and 1.2.1 in it, have it.
    for mode in --write '--limit 2'; do
        : >"$LOG"
        bg a rlock run $mode k -- sh -c "
            rlock run $mode k -- sh -c \"echo +2 >>'$LOG'
                until grep -qs waits '$LOG'; do sleep 0.02; done
                rlock run $mode k -- sh -c 'echo 2.1 >>$LOG'
                echo -2 >>'$LOG'\" &
            until grep -qs +2 '$LOG'; do sleep 0.02; done
            { until rlock status --json k | grep -q '\"label\": *\"late\"'; do sleep 0.02; done
                rlock run -n $mode k -- true || echo waits >>'$LOG'; } &
            rlock run --label late $mode k -- sh -c \"echo 1 >>'$LOG'\"; wait"
        finish a 60
        [[ $status == 0 && $(xargs <"$LOG") == "+2 waits 2.1 -2 1" ]]
    done
}

@test "nested: a lock is kept as long as one of the family has it; upgrades are refused" {
    run -0 rlock run --read k -- sh -c "rlock run -n k -- true; test \$? != 0"
    bg_up a rlock run k -- sh -c "rlock run k -- sh -c ': >\"$T/a.up\"
        await \"$T/go\"' & exit 0"
    finish a
    refused 75 run -n k -- true
    : >"$T/go"
    run -0 rlock run -w 20s k -- true
}

@test "status: every key by its name, whatever is in it, and globs" {
    hold a 'a/b%c'
    hold b .
    hold c 'üñ🔒'
    status_json 'map(.key) | sort == [".", "a/b%c", "üñ🔒"]'
    status_json 'a*' free 'map(.key) == ["a/b%c", "free"] and .[1].holders == []'
    run -0 rlock status zookeeper # a free KEY, not ZooKeeper's own node of that name
    run -75 rlock status -q .
}

@test "digest: a lock of one user, another one cannot touch" {
    RLOCK_URL=${RLOCK_URL/'//'/'//one:pw@'} hold a mine
    refused 77 run -n mine -- true
    RLOCK_URL=${RLOCK_URL/'//'/'//one:pw@'} refused 75 run -n mine -- true
}

@test "H134 a password that an outer rlock has taken out is missed, and the message says so" {
    local url=${RLOCK_URL/'//'/'//one@'}
    RLOCK_URL=${RLOCK_URL/'//'/'//one:pw@'} hold mine mine
    RLOCK_PASSWORD=pw RLOCK_URL=$url run -77 --separate-stderr rlock run other -- \
        rlock run -n mine -- true
    stderr_line '^rlock: mine: .*: user one: the server does not allow it'
    stderr_line '^hint: an outer rlock takes passwords out .* --keep-credentials'
    RLOCK_PASSWORD=wrong RLOCK_URL=$url run -77 --separate-stderr rlock run -n mine -- true
    [[ $stderr != *--keep-credentials* ]]
}

@test "a holder whose node may not be read: its age is not known, and exceeds nothing" {
    # The folders are everybody's, the nodes of the lock are not.
    rlock run k -- true
    RLOCK_URL=${RLOCK_URL/'//'/'//one:pw@'} hold a k
    run -0 --separate-stderr rlock check --held 1h k
    status_json k '.[0].holders | length == 1'
    json '.[0].holders[0] | [.since, .age_ms, .lease_left_ms, .fence, .host] | all(. == null)'
    json '.[0].holders[0] | .owner != null and .mode == "exclusive"'
    run -0 --separate-stderr rlock status k
    [[ $output =~ "since       -" && $output =~ "lease left  -" && $output != *1970* ]]
    run -0 --separate-stderr rlock status
    [[ $output != *1970* && $output =~ \ -\ +-\  ]]
    run -0 --separate-stderr rlock metrics
    [[ $output == *'rlock_holders{key="k"} 1'* && $output != *'rlock_held_seconds{'* ]]
    says 75 ': not acquired: held by an owner whose node may not be read$' run -n k -- true
}

@test "features that it lacks are refused unasked: exit 64" {
    export RLOCK_URL=zookeeper://127.0.0.1:1
    refusals 'zookeeper:// has no ' '$' <<'END'
run --at-least 5s k -- true|--at-least
run --replicas 1 k -- true|--replicas
run --grace k -- true|--grace
acquire k|lock that outlives its client \(acquire needs --keep\)
reserve k 1h -m x|lock that outlives its client \(acquire needs --keep\)
init|init
latch set k 1|latches
END
    says 69 'cannot reach zookeeper://127.0.0.1:1' run -n --server-wait 0 k -- true
}

@test "H115 doctor: fit, and what a lease comes to" {
    prints 0 '*fine     lease*fine     lock *' doctor --lease 5s
    prints 0 '*leases are capped at 1m00s*' doctor --lease 90s
    RLOCK_URL=zookeeper://127.0.0.1:1 run -69 rlock doctor
}

# relay_start: TLS before the server, with a certificate for 127.0.0.1; its port is in relay.out.
relay_start() {
    authority ca
    certificate server ca subjectAltName=IP:127.0.0.1
    bg relay python3 "$TESTS/tls_relay.py" "$CERTS/server.pem" "$CERTS/server.key" "${port[1]}"
    poll_until 20 test -s "$T/relay.out"
}

# in_clear PORT, in_tls PORT: print the address of the server at that port, with the options for it.
in_clear() { echo "zookeeper://127.0.0.1:$1/test/$BATS_TEST_NUMBER"; }
in_tls() { echo "zookeepers://127.0.0.1:$1/test/$BATS_TEST_NUMBER --tls-ca $CERTS/ca.pem"; }

@test "H141 an answer of ZooKeeper that is lost, whichever it is, with and without TLS" {
    RLOCK_URL=$(in_clear "${port[1]}")
    each_flight "${port[1]}" in_clear
    relay_start
    each_flight "$(<"$T/relay.out")" in_tls
}

# A waiter that was refused reads the queue again after nine heartbeats, in 20 s at least. b, which
# has lost an answer, must not take that for a refusal: it has the lock before.
@test "H141 the answer that confirms a waiter's lock is lost: it asks again at once" {
    start_proxy proxy 127.0.0.1:0 "127.0.0.1:${port[1]}"
    stay a k
    queue b k -u "zookeeper://${proxy[proxy]}/test/$BATS_TEST_NUMBER" --lease 3s
    queue c k
    # The session of b is older than a third of its lease.
    poll_until 10 grep -q 'waiting for k' "$T/b.err"
    fault on up rlock/1 hold down
    ends_well a
    in_turn 30 b c
    grep -qE 'k: acquired after 1?[0-9](\.[0-9]+)?s' "$T/b.err"
}

@test "H140 ZooKeeper: localhost and 127.0.0.1 are the server at that port" {
    hold a k
    for host in localhost 127.0.0.1; do
        refused 75 run --server-wait 0 -n -u \
            "zookeeper://$host:${port[1]}/test/$BATS_TEST_NUMBER" k -- touch "$T/ran"
    done
}

@test "zookeepers:// speaks TLS, only with a server that is vouched for" {
    relay_start
    authority other
    url=zookeepers://127.0.0.1:$(<"$T/relay.out")/test/$BATS_TEST_NUMBER
    hold a k
    refused 75 run -u "$url" --tls-ca "$CERTS/ca.pem" -n k -- touch "$T/ran"
    stderr_line '^rlock: k: not acquired: held by '
    terminate a
    prints 0 k run -u "$url" --tls-ca "$CERTS/ca.pem" --lease 10s k -- sh -c 'echo "$RLOCK_KEY"'
    prints 0 "*fine     certificate  the * ends in *" \
        doctor -u "$url" --tls-ca "$CERTS/ca.pem"
    refused 69 run -u "$url" --server-wait 0 --tls-ca "$CERTS/other.pem" k -- touch "$T/ran"
    stderr_line 'not trusted'
    url=${url/127.0.0.1/localhost}
    refused 69 run -u "$url" --server-wait 0 --tls-ca "$CERTS/ca.pem" k -- touch "$T/ran"
    stderr_line 'is not for localhost'
}

@test "H113 a session cannot be opened again: the lock is lost in time, and nothing stays behind" {
    bg_prints relay python3 "$TESTS/forgetful_zookeeper.py" "${port[1]}"
    there=zookeeper://127.0.0.1:$(<"$T/relay.out")/test/$BATS_TEST_NUMBER
    run -0 rlock run -u "$there" k -- true
    at_work a k forever -u "$there" --lease 20s
    work b k 0.3
    ends_with a 79 30
    # While b waits for the end of the session that a has had.
    poll_until 5 strange_sessions_ended
    run -1 works b
    ends_with b 0 30
    no_overlap
    run -69 rlock doctor -u "$there"
    [[ $output == *"unfit    session      it opens no session again, as ClickHouse Keeper"* ]]
}

# small_start NUMBER: another server, which takes so many clients from one address.
small_start() {
    local number
    number=$(free_ports 1)
    mkdir -p "$ENSEMBLE/small/data"
    sed -e "s|^dataDir=.*|dataDir=$ENSEMBLE/small/data|" -e "s|^clientPort=.*|clientPort=$number|" \
        "$ENSEMBLE/1/conf" >"$ENSEMBLE/small/conf"
    echo "maxClientCnxns=$1" >>"$ENSEMBLE/small/conf"
    server_start small
    poll_until 60 serves "$number"
    RLOCK_URL=zookeeper://127.0.0.1:$number/test
}

# small_ends: kills what small_start has started.
small_ends() {
    server_signal KILL small
    rm "$ENSEMBLE/small/pid"
}

@test "H167 H9 a server is full of rlock's own waiters: the holder keeps the lock, all get it" {
    local i
    small_start 12
    stay x k -v --lease 12s # x has one of the 12 places, and its waiters want the others
    for i in {1..20}; do
        bg "w$i" rlock run --lease 12s k -- sh -c "echo $i >>'$LOG'"
    done
    poll_until 20 eval 'cat "$T"/w*.err | grep -q "too many clients"'
    poll_until 60 has_renewed x 3
    ends_well x
    all_end 0 60 w{1..20}
    [[ $(sort -u "$LOG" | wc -l) == 20 ]]
    small_ends
}

@test "H167 H9 a server is full of holders: each renews in its own place; newcomers are told" {
    small_start 2
    stay a k1 -v --lease 12s
    stay b k2 -v --lease 12s
    refused 69 run -n --server-wait 1m k -- touch "$T/ran"
    stderr_line 'too many clients from here: it resets each new connection'
    stderr_line '^hint: maxClientCnxns'
    refused 69 run -w 2s k -- touch "$T/ran"
    poll_until 60 has_renewed a 1
    poll_until 60 has_renewed b 1
    ends_well a
    rlock run -w 1m k -- true # in the place that a has left
    ends_well b
    small_ends
}

# The holder fails to release the lock for a second.
@test "H124 a lock that is taken away while its release cannot be sent is told as lost" {
    start_proxy proxy 127.0.0.1:0 "127.0.0.1:${port[1]}"
    bg_up a rlock run -u "zookeeper://${proxy[proxy]}/test/$BATS_TEST_NUMBER" --lease 40s k -- \
        sh -c ": >'$T/a.up'; await '$T/a.go'; : >'$T/a.ended'"
    fault refuse
    : >"$T/a.go"
    poll_until 10 test -e "$T/a.ended"
    pause 1000 # some tries of the release
    run -0 rlock force-release --now --yes k
    fault pass
    ends_with a 79 20
    contains "$T/a.err" 'lock lost'
}
