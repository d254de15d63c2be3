# --grace: a server that may have forgotten locks grants nothing new until those that it may have
# forgotten are over or known again. Here it is one server, which is emptied or loses its data.
# lose_data: the server is killed and comes back without its data. without_grace: what follows has
# no --grace.

load helper

setup() {
    start_test
    printf 'grace = yes\n' >"$T/config"
    export RLOCK_CONFIG=$T/config
    rlock init
}

# The server is killed and comes back without its data.
lose_data() {
    : >"$T/redis.dirty"
    redis_restart
}

without_grace() {
    RLOCK_CONFIG=/dev/null "$@"
}

@test "init --minimum-version: older programs are refused; those that hold the lock continue" {
    without_grace rlock run there -- true
    hold a held
    says 64 '^rlock: init: 99.10.0 would shut out this rlock, which is [0-9]' \
        init --minimum-version 99.10.0
    stderr_line '^hint: --force, if that is meant$'
    run -0 rlock run -n there -- true
    shows 0 'init: locks are acquired only by rlock 99.10.0 or newer' \
        init --force --minimum-version 99.10.0
    prints_nothing 0 init -q --force --minimum-version 99.10.0
    for key in there held new; do
        run -78 --separate-stderr rlock run -n "$key" -- true
        stderr_line "^rlock: $key: the store asks for rlock 99.10.0 or newer; this is rlock "
        run -78 rlock acquire -n "$key"
    done
    renewed held
    terminate a
    is_free held
    run -69 --separate-stderr rlock doctor --json
    json '.findings | any(.check == "minimum" and .level == "fine")'
    as_default_user
    without_grace run -0 rlock run --prefix other new -- true
    run -0 rlock init --minimum-version 0.0.0
    run -0 rlock run new -- true
    for wrong in '' 1 1.2 1.2.3.4 1.2.x 1.2.3- -1.2.3 1.2.100000; do
        says 64 "^rlock: init: --minimum-version '$wrong' is not a version" \
            init --minimum-version "$wrong"
    done
    for wrong in --force --print --grant=x; do
        says 64 'minimum-version does nothing else' init "$wrong" --minimum-version 1.0.0
    done
    for wrong in cluster://127.0.0.1:1 zookeeper://127.0.0.1:1; do
        without_grace run -64 --separate-stderr rlock init -u "$wrong" --minimum-version 1.0.0
        stderr_line "${wrong%%:*}:// has no init --minimum-version$"
    done
    without_grace run -64 --separate-stderr rlock init -u redis://127.0.0.1:1 \
        -u redis://127.0.0.1:2 --minimum-version 1.0.0
    stderr_line 'a quorum has no init --minimum-version$'
}

@test "a new server grants nothing for one lease, and says so; rlock init says that it is new" {
    redis flushall
    start=$(now_ms)
    refused 69 run -n --lease 15s k -- touch "$T/run"
    stderr_line '^rlock: k: the server may have lost locks; it grants nothing new for another 15s$'
    # The lock is free, so this is not contention.
    refused 69 run -n -E 0 --lease 9s k -- touch "$T/run"
    run -69 rlock acquire -w 200ms --lease 9s k
    run -0 --separate-stderr rlock run --lease 9s k -- true
    # The lease of the first request counts, which was 15 s.
    took 15000 40000 "$start"
    stderr_line '^rlock: waiting for k: the server may have lost locks; it grants nothing new for another [0-9]+m?s; you are next$'
    run -0 rlock run -n --lease 9s k -- true
    redis flushall
    prints_nothing 0 init
    run -0 rlock run -n --lease 9s k -- true
    run -0 rlock init
}

@test "-n waits for the end of grace, if --server-wait lets it; a signal ends that" {
    redis flushall
    refused 69 run -n --lease 9s --server-wait 0 k -- touch "$T/ran"
    bg n rlock run -n -E 0 --lease 9s --server-wait 1m k -- touch "$T/n"
    bg acquire rlock acquire -n --lease 9s --server-wait 1m other
    bg told rlock run -n --lease 9s --server-wait 1m k -- touch "$T/ran"
    for job in n acquire told; do
        poll_until 5 contains "$T/$job.err" 'the server may have lost locks'
        [[ $(<"$T/$job.err") != *queue* && $(<"$T/$job.err") != *'you are'* ]]
    done
    [[ ! -e $T/n ]]
    terminate told 143
    all_end 0 30 n acquire
    [[ -e $T/n && ! -e $T/ran ]]
    is_free k
}

@test "status: a free lock that waits for grace says so, and until when" {
    status_json k '.[0].grace_left_ms == null'
    redis flushall
    bg a rlock run --lease 30s k -- true
    poll_until 10 contains "$T/a.err" 'grants nothing new'
    status_json k '.[0] | .grace_left_ms > 0 and .grace_left_ms <= 30000'
    run -0 rlock status
    [[ ${lines[1]} =~ ^k\ +free,\ grace\ .*\ 1\ +grants\ nothing\ until\ [0-9:]{8}\ \(for\ [0-9.ms]+\ more\)$ ]]
    run -0 rlock status k
    [[ ${lines[1]} =~ ^\ \ grace:\ grants\ nothing\ until ]]
    without_grace run -0 rlock run other -- rlock status --json other
    json '.[0].grace_left_ms == null'
    run -0 rlock init --force
    run -0 --separate-stderr rlock status --json k
    json '.[0].grace_left_ms == null'
    ends_with a 0
}

@test "H42 killed, and back without its data: the holder has it again at once, with its token" {
    stay a k --lease 15s
    fence=$(rlock status --json k | jq '.[0].fence')
    age=$(rlock status --json k | jq '.[0].holders[0].age_ms')
    lose_data
    refused 69 run -w 100ms --lease 15s other -- touch "$T/run"
    poll_until 3 held k
    [[ $(rlock status --json k | jq '.[0].fence') == "$fence" ]]
    status_json k ".[0].holders[0].age_ms >= $age"
    refused 69 run -n --lease 15s other -- touch "$T/run"
    ends_well a
    run -0 rlock status -q k
    RLOCK_CONFIG=/dev/null run -0 rlock run k -- sh -c "test \$RLOCK_FENCE -gt $fence"
}

@test "H135 H42 agent killed, data lost: the next agent has the lock again, with its token" {
    stay a k --lease 15s
    fence=$(rlock status --json k | jq '.[0].fence')
    has_agent a
    kill -STOP "$agent"
    lose_data
    kill -KILL "$agent"
    poll_until 10 held k
    [[ $(rlock status --json k | jq '.[0].fence') == "$fence" ]]
    run -75 rlock run -n --lease 3s k -- true
    ends_well a
    is_free k
}

@test "acquire: a renewer has its lock again; renew cannot, and says so: exit 1" {
    kept=$(rlock acquire --lease 9s --keep $$ k)
    other=$(rlock acquire --lease 1m other)
    redis flushall
    refused 69 run -w 100ms --lease 1m other -- touch "$T/run"
    poll_until 3 held k
    run -0 rlock renew --owner "$kept" k
    run -0 rlock release --owner "$kept" k
    # The renewer's next request does not take the lock once more.
    poll_until 20 no_renewer
    is_free k
    run -1 rlock renew --owner "$other" other
    # No other client can have it all the same.
    refused 69 run -n --lease 1m other -- touch "$T/run"
    run -0 rlock release --owner "$other" other
    # The file of settings has grace = yes.
    RLOCK_CONFIG=/dev/null run -1 rlock release --owner "$other" other
    RLOCK_CONFIG=/dev/null run -0 rlock release --grace --owner "$other" other
}

@test "init is refused where locks may have been lost, but for --force; each prefix by itself" {
    as_default_user
    redis flushall
    run -69 rlock run -n --lease 20s k -- true
    run -1 --separate-stderr rlock init
    stderr_line '^rlock: init: the server may have lost locks; it grants nothing new for another (20|1[0-9])s$'
    stderr_line '^hint: --force'
    run -69 rlock run -n --lease 20s k -- true
    run -0 rlock init --prefix other
    run -69 rlock run -n --lease 20s k -- true
    run -0 rlock run -n --prefix other --lease 20s k -- true
    run -0 rlock init --force
    run -0 rlock run -n --lease 20s k -- true
    run -0 rlock status
    [[ $output != *epoch* ]]
}

@test "init: wrong usage and several servers end with 64, no server and a replica with 69" {
    run -64 rlock init k
    run -64 rlock init -- true
    run -69 rlock init -u unix:///nowhere/sock --server-wait 0
    without_grace run -64 rlock init -u redis://127.0.0.1:1 -u redis://127.0.0.1:2
    without_grace run -64 rlock init -u cluster://127.0.0.1:1
    run -78 rlock run -u redis://127.0.0.1:1 -u redis://127.0.0.1:2 k -- true
    redis replicaof 127.0.0.1 1
    says 69 replica init
}

@test "without --grace rlock asks no INFO, and writes nothing but the lock" {
    without_grace rlock run k -- true # the server knows the scripts
    redis flushall
    redis config resetstat
    without_grace rlock run k -- true
    [[ $(redis_calls info) == 0 ]]
    [[ $(redis_calls evalsha) == 2 && $(redis keys '*') == 'rlock:{k}' ]]
    rlock init
    redis config resetstat
    rlock run k -- true
    [[ $(redis_calls evalsha) == 2 ]]
}

@test "H20 INFO is a right that only grace needs" {
    redis acl setuser noinfo reset on '>pw' '~*' '&*' '+@all' -info
    export RLOCK_URL=unix://noinfo:pw@$REDIS_SOCK
    without_grace run -0 rlock run k -- true
    says 77 "can't run this command|info" run k -- touch "$T/run"
    run -77 rlock init --force
}

# works_more NUMBER: so many and one have worked.
works_more() {
    poll_until 20 eval "((\$(cut -d ' ' -f 1 '$LOG' 2>/dev/null | sort -u | wc -l) > $1))"
}

@test "H42 H44 emptied and killed again and again: never two at once" {
    local name turn=0
    for name in a b c d; do
        bg "$name" sh -c "while test ! -e '$T/end'; do
            rlock run --lease 3s k -- worker '$LOG' $name-\$\$-\$((n += 1)) 0.4; done"
    done
    # After each the server grants nothing for a lease; then one or two of them work.
    while ((turn < 6)); do
        works_more "$turn"
        if ((turn++ % 3 == 2)); then lose_data; else redis flushall; fi
    done
    : >"$T/end"
    for name in a b c d; do
        finish $name 20
    done
    no_overlap
}
