# --grace: a server that may have forgotten locks grants nothing new until those that it may have forgotten are
# over or known again. Here it is one server, which is emptied or loses its data.

load helper

setup_file() { start_file; }

setup() {
    T=$BATS_TEST_TMPDIR
    LOG=$T/log
    export RLOCK_TEST_ID=$T
    declare -gA pid=()
    printf 'grace = yes\n' >"$T/config"
    export RLOCK_CONFIG=$T/config
    rlock init
}

# The server is killed and comes back without its data.
lose_data() {
    : >"$T/redis.dirty"
    redis_stop
    redis_start
}

without_grace() {
    RLOCK_CONFIG=/dev/null "$@"
}

# begun NAME OPTION...: a background run of k that has begun, and ends with 9 after that many SECONDS.
begun() {
    local name=$1 seconds=$2
    shift 2
    bg "$name" rlock run "$@" -- sh -c ": >'$T/$name.up'; sleep $seconds; exit 9"
    poll_until 10 test -e "$T/$name.up"
}

@test "a new server grants nothing for one lease, and says so; rlock init says that it is new" {
    local start
    redis flushall
    run -69 --separate-stderr rlock run -n --lease 3s k -- touch "$T/run"
    stderr_line '^rlock: k: the server may have lost locks; it grants nothing new for another 3s$'
    # Nobody holds it, so it is no contention.
    run -69 rlock run -n -E 0 --lease 3s k -- touch "$T/run"
    run -69 rlock acquire -w 200ms --lease 3s k
    [[ ! -e $T/run ]]
    start=$(now_ms)
    run -0 --separate-stderr rlock run --lease 3s k -- true
    within 1500 3300 $(($(now_ms) - start))
    stderr_line '^rlock: waiting for k: the server may have lost locks; it grants nothing new for another [12]s; you are next$'
    run -0 rlock run -n --lease 3s k -- true
    redis flushall
    run -0 --separate-stderr rlock init
    [[ -z $output$stderr ]]
    run -0 rlock run -n --lease 3s k -- true
    run -0 rlock init
}

@test "H44 emptied while it is held: the holder has it again, nobody else gets it, and then the next one does" {
    work a k 5 --lease 3s
    working a
    queue w k --lease 3s
    redis flushall
    work b k 0.2 --lease 3s
    run -69 rlock run -n --lease 3s k -- touch "$T/run"
    poll_until 10 held k
    run -75 rlock run -n --lease 3s k -- touch "$T/run"
    [[ ! -e $T/run ]]
    finish a
    [[ $status == 0 ]]
    contains "$T/a.err" 'k: the store had forgotten it, and has it again'
    finish b
    finish w
    [[ $status == 0 ]]
    no_overlap
}

@test "H44 the same without grace: two at once, until the first has noticed" {
    without_grace work a k 100 --lease 9s
    working a
    redis flushall
    without_grace work b k 4
    finish a
    [[ $status == 79 ]]
    finish b
    run -1 no_overlap
}

@test "H42 killed, and back without its data: the holder has it again at once, with its token" {
    local fence
    begun a 4 --lease 9s k
    fence=$(rlock status --json k | jq '.[0].fence')
    lose_data
    run -69 rlock run -w 100ms --lease 9s other -- touch "$T/run"
    poll_until 3 held k
    [[ $(rlock status --json k | jq '.[0].fence') == "$fence" ]]
    run -69 rlock run -n --lease 9s other -- touch "$T/run"
    [[ ! -e $T/run ]]
    finish a
    [[ $status == 9 ]]
    run -0 rlock status -q k
    RLOCK_CONFIG=/dev/null run -0 rlock run k -- sh -c "test \$RLOCK_FENCE -gt $fence"
}

@test "H42 a command that ended before its lock was known again: no loss" {
    begun a 0.5 --lease 30s k
    redis flushall
    finish a
    [[ $status == 9 && ! -s $T/a.err ]]
    without_grace begun b 0.5 --lease 30s k
    redis flushall
    finish b
    [[ $status == 79 ]]
}

@test "H43 back with its data: what is held stays, and nothing new for one lease" {
    redis config set appendonly yes
    redis config set appendfsync always
    poll_until 10 eval '[[ $(redis info persistence) == *aof_rewrite_in_progress:0* ]]'
    begun a 4 --lease 5s k
    redis_stop
    REDIS_OPTIONS="--appendonly yes" redis_start
    held k
    run -75 rlock run -n --lease 5s k -- true
    run -69 rlock run -n --lease 5s other -- true
    finish a
    [[ $status == 9 ]]
    run -0 rlock run -w 6s --lease 5s other -- true
}

@test "H45 what was taken away by force is not had again" {
    begun a 100 --lease 3s k
    lose_data
    poll_until 3 held k
    run -0 rlock force-release --yes k
    finish a
    [[ $status == 79 ]]
    is_free k
}

@test "readers, semaphores and several keys are had again" {
    local one
    for one in 1 2; do
        begun "r$one" 5 --lease 3s --read r
        begun "s$one" 5 --lease 3s --limit 2 s
    done
    begun many 5 --lease 3s a b c
    redis flushall
    for one in r s a b c; do
        poll_until 3 held $one
    done
    poll_until 3 eval '[[ $(rlock status --json r | jq ".[0].holders | length") == 2 ]]'
    poll_until 3 eval '[[ $(rlock status --json s | jq -c "[.[0].holders[].slot] | sort") == "[1,2]" ]]'
    sleep 1 # it has only begun: nothing new is granted yet
    run -75 rlock run -n --lease 3s r -- touch "$T/run"
    run -75 rlock run -n --lease 3s --limit 2 s -- touch "$T/run"
    for one in r1 r2 s1 s2 many; do
        finish $one
        [[ $status == 9 ]]
    done
    [[ ! -e $T/run ]]
}

@test "one that nests is had again, too, whoever comes first" {
    bg a rlock run --lease 3s k -- "$RLOCK" run --lease 4s k -- sh -c ": >'$T/up'; sleep 5; exit 9"
    poll_until 10 test -e "$T/up"
    redis flushall
    poll_until 4 eval '[[ $(rlock status --json k | jq ".[0].holders | length") == 2 ]]'
    [[ $(rlock status --json k | jq '.[0].holders | map(.count) | max') == 2 ]]
    finish a
    [[ $status == 9 ]]
    is_free k
}

@test "rlock acquire: a renewer has it again; who renews by hand cannot prove that it had it, and is told so" {
    local kept other
    kept=$(rlock acquire --lease 2s --keep $$ k)
    other=$(rlock acquire --lease 5s other)
    redis flushall
    run -69 rlock run -w 100ms --lease 5s other -- touch "$T/run"
    poll_until 3 held k
    run -0 rlock renew --owner "$kept" k
    run -0 rlock release --owner "$kept" k
    run -1 rlock renew --owner "$other" other
    # Nobody else can have it all the same.
    run -69 rlock run -n --lease 5s other -- touch "$T/run"
    [[ ! -e $T/run ]]
    run -0 rlock release --owner "$other" other
    RLOCK_CONFIG=/dev/null run -1 rlock release --owner "$other" other
    RLOCK_CONFIG=/dev/null run -0 rlock release --grace --owner "$other" other
}

@test "those who wait are served in the order in which they came after it" {
    local name
    redis flushall
    run -69 rlock run -n --lease 4s k -- true
    for name in one two three; do
        queue $name k --lease 4s
    done
    for name in one two three; do
        finish $name
    done
    [[ $(xargs <"$LOG") == "one two three" ]]
}

@test "it is as long as the longest lease that was asked for" {
    begun long 0.1 --lease 20s k
    finish long
    redis hset 'rlock:!epoch' r "$(printf 'f%.0s' {1..40})" >/dev/null
    run -69 --separate-stderr rlock run -n --lease 2s k -- true
    stderr_line 'for another 20s$'
}

@test "rlock init: refused where locks may have been lost; --force; each prefix by itself" {
    as_default_user
    redis flushall
    run -69 rlock run -n --lease 20s k -- true
    run -1 --separate-stderr rlock init
    stderr_line '^rlock: init: the server may have lost locks; it grants nothing new for another (20|19)s$'
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

@test "rlock init: wrong usage, out of reach, several servers, a replica" {
    run -64 rlock init k
    run -64 rlock init -- true
    run -69 rlock init -u unix:///nowhere/sock
    without_grace run -64 rlock init -u redis://127.0.0.1:1 -u redis://127.0.0.1:2
    without_grace run -64 rlock init -u cluster://127.0.0.1:1
    run -78 rlock run -u redis://127.0.0.1:1 -u redis://127.0.0.1:2 k -- true
    redis replicaof 127.0.0.1 1
    run -69 rlock init
    [[ $output == *replica* ]]
}

@test "without grace nothing is asked of the server that was not before" {
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

@test "H20 INFO is a right that grace needs, and nobody else" {
    redis acl setuser noinfo reset on '>pw' '~*' '&*' '+@all' -info
    export RLOCK_URL=unix://noinfo:pw@$REDIS_SOCK
    without_grace run -0 rlock run k -- true
    run -77 --separate-stderr rlock run k -- touch "$T/run"
    stderr_line "can't run this command|info"
    run -77 rlock init --force
    [[ ! -e $T/run ]]
}

@test "H42 H44 emptied and killed again and again: never two at once" {
    local name end turn=0
    for name in a b c d; do
        bg "$name" sh -c "while test ! -e '$T/end'; do
            '$RLOCK' run --lease 1s k -- '$RLOCK_TEST_TOOLS/worker' '$LOG' $name-\$\$-\$((n += 1)) 0.4; done"
    done
    end=$(($(now_ms) + 12000))
    while (($(now_ms) < end)); do
        sleep 1.7
        if ((turn++ % 3 == 2)); then lose_data; else redis flushall; fi
    done
    : >"$T/end"
    for name in a b c d; do
        finish $name
    done
    no_overlap
    (($(cut -d ' ' -f 1 "$LOG" | sort -u | wc -l) > 5))
}
