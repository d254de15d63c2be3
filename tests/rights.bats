# Rights that change or are missing, and keys that are something else.

load helper

setup_file() { start_file; }

@test "H19 a changed password is read again from its file" {
    as_default_user
    redis config set requirepass first
    export REDISCLI_AUTH=first
    printf 'first\n' >"$T/password"
    bg a rlock run --password-file "$T/password" --lease 6s k -- sh -c ": >'$T/up'; sleep 5; exit 9"
    poll_until 10 test -e "$T/up"
    printf 'second\n' >"$T/password"
    redis config set requirepass second
    export REDISCLI_AUTH=second
    redis client kill type normal skipme yes
    finish a
    [[ $status == 9 ]]
    RLOCK_PASSWORD=second run -0 rlock status -q k
}

@test "H19 a password that is refused from now on: stopped in time, not at once" {
    as_default_user
    local start
    redis config set requirepass first
    export REDISCLI_AUTH=first RLOCK_PASSWORD=first
    work a k 100 --lease 4s
    working a
    redis config set requirepass second
    export REDISCLI_AUTH=second RLOCK_PASSWORD=second
    start=$(now_ms)
    redis client kill type normal skipme yes
    work b k 0.2
    finish a
    [[ $status == 79 ]]
    within 1200 4000 $(($(now_ms) - start))
    finish b
    no_overlap
}

@test "H20 the rights that the manual names are enough" {
    limited_user
    export RLOCK_URL=unix://limited:pw@$REDIS_SOCK
    run -0 rlock init
    run -0 rlock run --grace g -- true
    hold a k --lease 2s
    queue w k
    run -0 rlock status
    [[ $output == *k* ]]
    run -0 rlock status --json k
    run -0 rlock force-release --yes k
    finish w 2
    [[ $status == 0 ]]
    finish a
    [[ $status == 79 ]]
    [[ ! -s $T/w.err ]]
}

@test "H20 no right to the keys or the scripts: 77, and it says what is missing" {
    redis acl setuser nokeys reset on '>pw' '~other:*' '&*' '+@all'
    run -77 --separate-stderr rlock run -u "unix://nokeys:pw@$REDIS_SOCK" k -- touch "$T/run"
    stderr_line '^rlock: .*([Pp]ermission|NOPERM|key)'
    redis acl setuser noscripts reset on '>pw' '~*' '&*' '+@all' -evalsha -eval
    run -77 --separate-stderr rlock run -u "unix://noscripts:pw@$REDIS_SOCK" k -- touch "$T/run"
    stderr_line 'eval'
    redis acl setuser nothing reset on '>pw'
    run -77 rlock run -u "unix://nothing:pw@$REDIS_SOCK" k -- touch "$T/run"
    [[ ! -e $T/run ]]
}

@test "H20 H25 no right to the channels: slower, not wrong" {
    local start
    redis acl setuser nochannels reset on '>pw' '~*' resetchannels '+@all'
    export RLOCK_URL=unix://nochannels:pw@$REDIS_SOCK
    hold a k --lease 60s
    queue w k
    start=$(now_ms)
    kill "${pid[a]}"
    finish a
    [[ $status == 143 && ! -s $T/a.err ]]
    finish w
    [[ $status == 0 ]]
    within 0 5000 $(($(now_ms) - start))
    run -0 rlock status -q k
}

@test "H25 a server without SUBSCRIBE and PUBLISH: slower, not wrong" {
    redis acl setuser nopubsub reset on '>pw' '~*' '&*' '+@all' -subscribe -publish -unsubscribe
    export RLOCK_URL=unix://nopubsub:pw@$REDIS_SOCK
    hold a k --lease 60s
    queue w k
    kill "${pid[a]}"
    finish a
    [[ $status == 143 && ! -s $T/a.err ]]
    finish w
    [[ $status == 0 ]]
}

@test "H20 no right to greet with more than AUTH" {
    redis acl setuser plain reset on '>pw' '~*' '&*' '+@all' -info -client -hello -role -wait -config -ping
    run -0 rlock run -u "unix://plain:pw@$REDIS_SOCK" k -- true
    run -0 rlock status -u "unix://plain:pw@$REDIS_SOCK" -q k
}

@test "H21 a key of another type: 78, and it is left alone" {
    local before kind
    redis set 'rlock:{string}' x
    redis rpush 'rlock:{list}' x
    redis sadd 'rlock:{set}' x
    redis zadd 'rlock:{zset}' 1 x
    redis xadd 'rlock:{stream}' '*' a b
    redis setbit 'rlock:{bits}' 7 1
    for kind in string list set zset stream bits; do
        before=$(redis dump "rlock:{$kind}")
        run -78 --separate-stderr rlock run "$kind" -- touch "$T/run"
        stderr_line "^rlock: .*$kind"
        run -78 rlock run -n -E 0 "$kind" -- touch "$T/run"
        run -78 rlock force-release --yes "$kind"
        [[ $(redis dump "rlock:{$kind}") == "$before" ]]
    done
    [[ ! -e $T/run ]]
    # One foreign key does not hide the locks.
    hold a k
    run rlock status
    [[ $output == *k* ]]
}

@test "H21 a hash that is no lock, or a damaged one: not granted, left alone" {
    local name before
    redis hset 'rlock:{foreign}' name anna age 7
    hold a damaged
    redis hset 'rlock:{damaged}' s garbage >/dev/null
    redis hset 'rlock:{number}' h 12 f x >/dev/null
    redis hset 'rlock:{kind}' k barrier/1 >/dev/null
    for name in foreign damaged number kind; do
        before=$(redis hgetall "rlock:{$name}")
        run rlock run -n "$name" -- touch "$T/run"
        [[ $status == 78 && $output != *user_script* && $output == rlock:* ]]
        run rlock run -w 300ms "$name" -- touch "$T/run"
        [[ $status == 78 ]]
        [[ $(redis hgetall "rlock:{$name}") == "$before" ]]
        run rlock status --json "$name"
        [[ $output != *user_script* ]]
    done
    [[ ! -e $T/run ]]
    # The holder's next renewal finds the damage.
    redis hset 'rlock:{damaged}' s garbage >/dev/null
}
