# Rights that change or are missing, and keys that are something else.

load helper

# The connection is ended after both have changed, so that the next one has to use the new password.
@test "H19 a changed password is read again from its file" {
    as_default_user
    redis config set requirepass first
    export REDISCLI_AUTH=first
    printf 'first\n' >"$T/password"
    stay a k --password-file "$T/password" --lease 12s --kill-after 0
    printf 'second\n' >"$T/password"
    redis config set requirepass second
    export REDISCLI_AUTH=second
    redis client kill type normal skipme yes
    RLOCK_PASSWORD=second renewed k
    ends_well a
    RLOCK_PASSWORD=second run -0 rlock status -q k
}

@test "H19 a password that is refused from now on: stopped in time, not at once" {
    as_default_user
    redis config set requirepass first
    export REDISCLI_AUTH=first RLOCK_PASSWORD=first
    at_work a k forever --lease 9s
    redis config set requirepass second
    export REDISCLI_AUTH=second RLOCK_PASSWORD=second
    start=$(now_ms)
    redis client kill type normal skipme yes
    work b k 0.2
    ends_with a 79
    # The worker ends when the lease nears its end, not at the first refusal, which comes at once.
    took 1200 20000 "$start"
    finish b
    no_overlap
}

@test "H20 the rights that the manual names are enough" {
    limited_user
    export RLOCK_URL=unix://limited:pw@$REDIS_SOCK
    run -0 rlock init
    run -0 rlock run --grace g -- true
    hold a k --lease 9s
    queue w k
    prints 0 $'*\nk *' status
    run -0 rlock status --json k
    run -0 rlock pause 'n*' 1h -m x
    run -75 rlock run -n new -- true
    run -0 rlock resume 'n*'
    run -0 rlock force-release --now --yes k
    ends_with w 0 2
    ends_with a 79
    run -1 grep -v 'waiting for k\|acquired after' "$T/w.err"
}

@test "H20 no right to the keys or the scripts: exit 77, and it says what is missing" {
    redis acl setuser nokeys reset on '>pw' '~other:*' '&*' '+@all'
    refused 77 run -u "unix://nokeys:pw@$REDIS_SOCK" k -- touch "$T/run"
    stderr_line '^rlock: .*([Pp]ermission|NOPERM|key)'
    redis acl setuser noscripts reset on '>pw' '~*' '&*' '+@all' -evalsha -eval
    refused 77 run -u "unix://noscripts:pw@$REDIS_SOCK" k -- touch "$T/run"
    stderr_line "^rlock: k: unix://$REDIS_SOCK: user noscripts: no right to run 'evalsha'\$"
    redis acl setuser nothing reset on '>pw'
    refused 77 run -u "unix://nothing:pw@$REDIS_SOCK" k -- touch "$T/run"
}

@test "H20 no right to expire keys: exit 77, and no latch is set" {
    redis acl setuser lasting reset on '>pw' '~*' '&*' '+@all' -pexpire
    refused 77 latch set -u "unix://lasting:pw@$REDIS_SOCK" k 2
    run -1 rlock latch status k
    [[ $(redis exists 'rlock:{k}') == 0 ]]
}

# lacks RIGHT...: the user "lacking" has all rights but these, and LACKING is its URL.
lacks() {
    redis acl setuser lacking reset on '>pw' '~*' '&*' '+@all' "${@/#/-}"
    LACKING=unix://lacking:pw@$REDIS_SOCK
}

# no_key_is_endless: each key of the server has an end.
no_key_is_endless() {
    local key
    for key in $(redis keys '*'); do
        (($(redis pttl "$key") >= 0)) || { echo "without an end: $key"; return 1; }
    done
}

# A script that fails in the middle has done what came before. A key made so without PEXPIRE would
# stay for ever.
@test "H20 whatever right is missing, no call leaves a key without an end" {
    local right
    rlock pause 'p*' 1h -m x
    for right in pexpire hget hdel hexists exists; do
        lacks "$right"
        echo "--- $right"
        rlock run -u "$LACKING" -n "$right-1" -- true || true
        rlock run -u "$LACKING" -n "$right-2" "$right-3" -- true || true
        rlock run -u "$LACKING" --limit 2 -n "$right-4" -- true || true
        rlock run -u "$LACKING" --any "$right-5" "$right-6" -- true || true
        rlock run -u "$LACKING" --priority 1 -w 0.1 "p-$right-7" -- true || true
        rlock run -u "$LACKING" --grace -w 0.1 "$right-8" -- true || true
        rlock latch set -u "$LACKING" "$right-9" 1 || true
        rlock pause -u "$LACKING" "$right-10" 1h -m x || true
        rlock limit -u "$LACKING" "$right-11" 2 || true
        no_key_is_endless
    done
}

# A user of the server lacks one right that only makes rlock quick: waiting, releasing, timing out
# and losing a lock work all the same.
@test "H20 no right to UNSUBSCRIBE: slower, not wrong, and no word of it" {
    lacks unsubscribe
    export RLOCK_URL=$LACKING
    hold a k --lease 60s
    run -75 rlock run -w 0.1 k -- true
    queue w k
    terminate a
    [[ $status == 143 && ! -s $T/a.err ]]
    ends_with w 0
    run -1 grep -v 'waiting for k\|acquired after' "$T/w.err"
    stay b k --lease 9s
    run -0 rlock force-release --yes k
    ends_with b 79
    is_free k
}

@test "a user with the right to some KEYs alone takes those, and sees no pause of a GLOB" {
    redis acl setuser some reset on '>pw' '~rlock:{mine-*' '&*' '+@all'
    rlock pause '*' 1h -m x
    export RLOCK_URL=unix://some:pw@$REDIS_SOCK
    prints 0 taken run -n mine-1 -- echo taken
    run -0 rlock status mine-1
    says 77 'no right to the keys it needs' pause 'mine-*' 1h -m x
}

# A waiter that hears no message asks again from time to time.
@test "H20 H25 no right to the channels, or to SUBSCRIBE and PUBLISH: slower, not wrong" {
    redis acl setuser nochannels reset on '>pw' '~*' resetchannels '+@all'
    redis acl setuser nopubsub reset on '>pw' '~*' '&*' '+@all' -subscribe -publish -unsubscribe
    for user in nochannels nopubsub; do
        echo "--- $user"
        export RLOCK_URL=unix://$user:pw@$REDIS_SOCK
        hold a k --lease 60s
        queue w k
        terminate a
        [[ $status == 143 && ! -s $T/a.err ]]
        ends_with w 0
        is_free k
    done
}

# are_clients NAME...: these connections with names has the server, in that order, and no others.
are_clients() {
    local names
    names=$(redis client list) || return
    names=$(sed -n 's/.* name=\([^ ]*\) .*/\1/p' <<<"$names" | grep . | sort | xargs)
    [[ $names == "$*" ]]
}

@test "connections are named for a look at CLIENT LIST, by host and pid as status tells them" {
    hold a k
    queue w k
    mapfile -t names < <(printf "rlock:$(hostname):%s\n" "${pid[a]}" "${pid[w]}" | sort)
    poll_until 10 are_clients "${names[@]}"
    kill "${pid[a]}" "${pid[w]}"
    finish a
    finish w
    hold b k --no-identity
    poll_until 10 are_clients rlock
    terminate b
    # Characters that cannot be in a name are replaced. (A name space for the host name takes
    # privileges.)
    if unshare -u true 2>/dev/null; then
        unshare -u sh -c 'printf "a b" >/proc/sys/kernel/hostname && exec "$@"' sh "$RLOCK" \
            run k -- \
            redis-cli -s "$REDIS_SOCK" client list | grep -qE ' name=rlock:a-b:[0-9]+ '
    fi
}

# The numbers of calls are compared with those of a user with all rights, on a server without
# scripts each time. are_clients, without a word: no connection of the server has a name.
@test "H20 a user without CLIENT SETNAME loses nothing: no word, no question more" {
    redis acl setuser nameless reset on '>pw' '~*' '&*' '+@all' -client
    redis config resetstat
    run -0 --separate-stderr rlock run k -- true
    with=$(redis_calls evalsha)/$(redis_calls eval)/$(redis_calls role)/$(redis_calls time)
    redis script flush
    redis config resetstat
    prints_nothing 0 run -u "unix://nameless:pw@$REDIS_SOCK" k2 -- true
    without=$(redis_calls evalsha)/$(redis_calls eval)/$(redis_calls role)/$(redis_calls time)
    [[ $with == "$without" ]]
    hold a k -u "unix://nameless:pw@$REDIS_SOCK"
    poll_until 10 are_clients
    run -0 rlock status -u "unix://nameless:pw@$REDIS_SOCK"
}

@test "H20 a user with AUTH as the only right to greet can lock" {
    redis acl setuser plain reset on '>pw' '~*' '&*' '+@all' -info -client -hello -role -wait \
        -config -ping
    run -0 rlock run -u "unix://plain:pw@$REDIS_SOCK" k -- true
    run -0 rlock status -u "unix://plain:pw@$REDIS_SOCK" -q k
}

@test "H20 a server whose commands have other names, but for those that lock, can lock" {
    local name options=
    redis_stop
    for name in ROLE INFO CLIENT HELLO WAIT CONFIG; do
        options+=" --rename-command $name my$name"
    done
    REDIS_OPTIONS="$REDIS_OPTIONS$options" redis_start
    : >"$T/redis.dirty"
    stay a k --lease 9s
    queue b k
    renewed k
    ends_well a
    ends_with b 0
    run rlock doctor
    [[ $output == *'without +role'*'take it out of its rename-command'* && $output != *ACL* ]]
}

@test "H21 a key of another type: exit 78, and it is left alone" {
    redis set 'rlock:{string}' x
    redis rpush 'rlock:{list}' x
    redis sadd 'rlock:{set}' x
    redis zadd 'rlock:{zset}' 1 x
    redis xadd 'rlock:{stream}' '*' a b
    redis setbit 'rlock:{bits}' 7 1
    for kind in string list set zset stream bits; do
        before=$(redis dump "rlock:{$kind}")
        says 78 "^rlock: .*$kind" run "$kind" -- touch "$T/run"
        refused 78 run -n -E 0 "$kind" -- touch "$T/run"
        run -78 rlock force-release --now --yes "$kind"
        [[ $(redis dump "rlock:{$kind}") == "$before" ]]
    done
    run -78 rlock acquire string
    run -78 rlock renew --owner "$NO_OWNER" string
    run -78 rlock release --owner "$NO_OWNER" string
    # Foreign keys do not hide the locks.
    hold a k
    run rlock status
    [[ $output == *$'\nk '* ]]
}

@test "init --grant --print: the command that gives a user all that the manual names" {
    run -0 rlock init -u redis://h --prefix p --grant bob --print
    redis acl setuser bob nopass
    redis ${output,,}
    redis acl setuser bob on '>pw'
    run -0 rlock run -u "unix://bob:pw@$REDIS_SOCK" --prefix p k -- true
    says 64 '^rlock: init: --grant: rlock changes no users of unix://' init --grant bob
    run -64 --separate-stderr rlock init --print
    run -64 --separate-stderr rlock init -u zookeeper://h --grant bob --print
    stderr_line '^rlock: init: --print: zookeeper:// has no tables, and no rights to print$'
}
