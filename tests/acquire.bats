# rlock acquire: locks of scripts that cannot be wrapped. acquire_unread: w has acquired k, and its
# token waits to be read from a full pipe, which is descriptor 7 of the test; closing that ends the
# pipe.

load helper

@test "acquire prints the owner token; the lock is held until it is released" {
    run -0 --separate-stderr rlock acquire k
    [[ $output =~ ^[0-9a-f-]{36}$ && $stderr == "" ]]
    mine=$output
    run -75 rlock run -n k -- true
    status_json k ".[0].holders[0].owner == \"$mine\""
    prints_nothing 0 release --owner "$mine" k
    run -0 rlock status -q k
}

@test "--export sets the variables that run gives a command" {
    export outside
    outside=$(compgen -e RLOCK_)
    names='env | sed -n "s/^\(RLOCK_[A-Z_]*\)=.*/\1/p" | grep -vxF "$outside" | sort | xargs'
    run -0 rlock run --limit 2 k -- sh -c "$names"
    [[ $output == "RLOCK_FENCE RLOCK_KEY RLOCK_LEASE_MS RLOCK_MODE RLOCK_OWNER RLOCK_SLOT" ]]
    run -0 sh -c 'eval "$(rlock acquire --export --limit 2 k)"; '"$names" 3>&-
    [[ $output == "RLOCK_FENCE RLOCK_KEY RLOCK_LEASE_MS RLOCK_MODE RLOCK_OWNER RLOCK_SLOT" ]]
    run -0 sh -c 'eval "$(rlock acquire --export --limit 2 k)"; echo "$RLOCK_MODE|$RLOCK_SLOT"' 3>&-
    [[ $output == 'limit|2' ]]
    run -75 rlock acquire -n --limit 2 k
    run -0 env RLOCK_SLOT=7 sh -c 'eval "$(rlock acquire --export --lease 20s -s b)" &&
        echo "$RLOCK_KEY|$RLOCK_MODE|$RLOCK_LEASE_MS|${RLOCK_SLOT-none}|$RLOCK_FENCE|$RLOCK_OWNER" &&
        rlock renew b && rlock release b' 3>&-
    [[ $output =~ ^"b|shared|20000|none|"[0-9]+"|"[0-9a-f-]{36}$ ]]
    run -0 rlock status -q b
}

# A command that a KEY smuggles in would make the file x.
@test "--export is safe to evaluate whatever the key" {
    cd "$T"
    for key in "it's" '$(>x)' '`>x`' '";>x;"' "';>x;'" '\' "a'b'c" "''" '!!' '~' '*' '$x'; do
        for shell in sh bash; do
            key=$key run -0 $shell -c 'eval "$(rlock acquire --export "$key")"
                [ "$RLOCK_KEY" = "$key" ] && rlock release "$RLOCK_KEY"' 3>&-
        done
    done
    [[ ! -e x ]]
}

@test "--export in a loop: each round acquires and releases its own lock" {
    run -0 sh -c 'for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do
        eval "$(rlock acquire -n --export k)" && rlock release k || exit
    done' 3>&-
}

@test "--export that fails fails under eval, in every shell" {
    hold a k
    cat >"$T/acquires" <<'END'
eval "$(rlock acquire --export $OPTIONS k 2>&-)" || exit
echo continued
END
    cat >"$T/waits" <<'END'
lines=$(sh -c 'echo $$ >"$T/number"; exec rlock acquire --export k 2>&-')
eval "$lines" || exit
echo continued
END
    for shell in sh bash dash; do
        command -v "$shell" >/dev/null || continue
        for row in '75 -q -n' '64 --bogus' '69 --server-wait 0 -u unix:///nowhere'; do
            OPTIONS=${row#* } run "-${row%% *}" "$shell" "$T/acquires" 3>&-
            [[ $output == "" ]]
        done
        # A signal ends the acquisition, not the script.
        bg b "$shell" "$T/waits"
        poll_until 10 has_waiters k 1
        kill "$(<"$T/number")"
        ends_with b 143
        [[ ! -s $T/b.out ]]
    done
}

# strace sends TERM at the second wait4(2) and at later ones, when the lock was refused already. The
# shell must see a failure then, too.
@test "--export that fails, and then gets a signal, fails under eval, too" {
    need_strace
    hold a k
    run -75 sh -c 'eval "$(strace -qq -o "$T/calls" -e trace=wait4 -e inject=wait4:signal=TERM:when=2+ \
        rlock acquire --export -q -n k)" || exit; echo continued' 3>&-
    [[ $output == "" ]]
    (($(grep -c wait4 "$T/calls") > 1)) # the first one is before all signals are blocked
}

@test "wrong usage of acquire: exit 64, or 78 for RLOCK_OWNER, and nothing is asked of the server" {
    run -64 rlock acquire
    run -64 rlock acquire a b
    run -64 rlock acquire 'a b'
    run -64 rlock acquire k -- true
    run -64 rlock acquire --read --limit 2 k
    run -64 rlock acquire --lease 10ms k
    RLOCK_OWNER=me run -78 rlock acquire k
    prints 0 '*Example*rlock acquire*' acquire --help
    [[ -z $(redis keys '*') ]]
}

@test "acquire, renew, release: exit 69 for an outage, 77 for a wrong password, and never 75" {
    as_default_user
    redis config set requirepass secret
    for one in acquire "release --owner $NO_OWNER" "renew --owner $NO_OWNER"; do
        run -69 --separate-stderr rlock $one -u unix:///nowhere --server-wait 0 k
        [[ $output == "" ]]
        stderr_line '^rlock: .*/nowhere'
        RLOCK_PASSWORD=wrong run -77 --separate-stderr rlock $one k
        [[ $output == "" ]]
    done
}

@test "acquire waits in the same queue as run, and knows -n, -w and -E" {
    mine=$(rlock acquire k)
    run -75 --separate-stderr rlock acquire -n k
    [[ $output == "" && ${#stderr_lines[@]} == 1 && $stderr == *"held by"* ]]
    run -9 rlock acquire -n -E 9 k
    prints_nothing 0 acquire -n -E 0 k
    timed 1000 20000 run -75 rlock acquire -w 1s k
    [[ $(waiters k) == 0 ]]
    queue a k
    queued k bg b rlock acquire k
    queue c k
    run -0 rlock release --owner "$mine" k
    finish a
    ends_with b 0
    poll_until 10 contains "$T/b.out" -
    [[ $(<"$LOG") == a ]]
    run -0 rlock release --owner "$(<"$T/b.out")" k
    finish c
    [[ $(tr '\n' ' ' <"$LOG") == "a c " ]]
}

@test "H64 acquire is told to end while it waits: gone from the queue at once, of that signal" {
    hold a k --lease 60s
    for signal in INT TERM HUP USR1; do
        queued k bg w rlock acquire k
        kill -s "$signal" "${pid[w]}"
        finish w
        [[ $status == $((128 + $(kill -l "$signal"))) && ! -s $T/w.out ]]
        run -0 has_waiters k 0
    done
}

# The time limits are 0.1 to 4 ms, about as long as an acquisition takes.
@test "H64 acquire is told to end at any moment: a lock that it did not print is not held" {
    for ((round = 0; round < 80; round++)); do
        run timeout --foreground --preserve-status \
            -s TERM "0.00$((RANDOM % 4))$((RANDOM % 9 + 1))" "$RLOCK" acquire k 3>&-
        if [[ $status == 0 ]]; then
            run -0 rlock release --owner "$output" k
        else
            [[ $status == 143 && $output == "" ]]
            poll_until 1 is_free k
        fi
    done
}

# Standard output is closed, or full, or a pipe that no process reads any more.
@test "a lock that could not be printed is not held" {
    run -71 --separate-stderr bash -c 'rlock acquire k >&-' 3>&-
    stderr_line 'cannot write to standard output'
    run -0 rlock status -q k
    run -71 bash -c 'rlock acquire k >/dev/full' 3>&-
    run -0 rlock status -q k
    run -0 bash -c '{ until ! [ -e /proc/$BASHPID/fd/1 ] || ! echo x; do sleep 0.05; done 2>/dev/null
        rlock acquire k; } | true' 3>&-
    run -0 rlock status -q k
}

# is_granted NAME: it has the lock, and keeps the time of its lease, by the only timer that it has.
is_granted() {
    cat "/proc/${pid[$1]}"/fdinfo/* 2>/dev/null | grep '^it_value: ' | grep -qv '(0, 0)'
}

# acquire_unread [OPTION...]: w has acquired k, and its token waits to be read: standard output is a
# pipe that 64 kB of zeros fill, which is descriptor 7 of the test. Closing that ends it.
acquire_unread() {
    [[ -e $T/fifo ]] || mkfifo "$T/fifo"
    exec 7<>"$T/fifo"
    head -c 65536 /dev/zero >&7
    env --default-signal=INT rlock acquire "$@" k >&7 2>"$T/w.err" 3>&- 7>&- &
    pid[w]=$!
    poll_until 10 is_granted w
}

# into_full_pipe NAME OPTION...: rlock acquire of k has a pipe as its output that takes nothing.
into_full_pipe() {
    rm -f "$T/full"
    mkfifo "$T/full"
    bg "$1" sh -c 'exec 5<>"$T/full" && head -c 65536 /dev/zero >&5 && exec rlock acquire "$@" k >&5' \
        sh "${@:2}"
}

@test "acquire into a full pipe: a signal ends it, before and after the lease is over" {
    for options in '' --export "--keep $$" "--export --keep $$"; do
        # shellcheck disable=SC2086
        into_full_pipe a --lease 60s $options
        poll_until 10 held k
        terminate a 143
        is_free k
    done
    into_full_pipe a --lease 2s --export
    poll_until 20 contains "$T/a.err" 'released again'
    terminate a 143
}

# KILL ends acquire without a word, so its agent has to notice.
@test "acquire ends by a signal while it waits, or before its token is read: nothing is held" {
    hold a k
    queued k bg w rlock acquire k
    kill -KILL "${pid[w]}"
    poll_until 5 has_waiters k 0
    terminate a
    for signal in TERM KILL; do
        acquire_unread
        kill -"$signal" "${pid[w]}"
        ends_with w $((128 + $(kill -l "$signal")))
        poll_until 5 is_free k
        exec 7>&-
    done
}

@test "acquire is stopped until the lease has ended: nothing is printed, and it says why" {
    acquire_unread --lease 6s
    suspend w STOP
    head -c 65536 <&7 >/dev/null
    poll_until 10 is_free k
    kill -CONT "${pid[w]}"
    ends_with w 71
    contains "$T/w.err" 'rlock: k: released again: its lease ended before standard output took it'
    exec 7>&-
}

# has_less_left: the lease of k has less than 18.5 s left.
has_less_left() {
    [[ $(lease_left k) -lt 18500 ]]
}

# The time before the token is read must not be taken off the lease that "rlock renew" asks for.
@test "acquire's token is read late: rlock renew still extends by the lease of the acquisition" {
    acquire_unread --lease 20s
    poll_until 10 has_less_left
    head -c 65536 <&7 >/dev/null
    ends_with w 0
    read -r token <&7
    run -0 rlock renew --owner "$token" k
    [[ $(redis hget 'rlock:{k}' "h:$token") == *" 20000 "* ]]
    exec 7>&-
}

# Standard output is a full pipe, so the token of the second one is not out before it is read.
@test "acquire's agent is killed while it waits, or before the token was out: exit 71, and why" {
    hold a k
    queued k bg w rlock acquire k
    kill -KILL "$(agent_of "${pid[w]}")"
    ends_with w 71
    contains "$T/w.err" 'rlock: k: not acquired: its agent died'
    terminate a
    acquire_unread
    kill -KILL "$(agent_of "${pid[w]}")"
    ends_with w 71
    contains "$T/w.err" 'rlock: k: released again: its agent died'
    exec 7>&-
}

@test "the caller is named as the holder" {
    run -0 bash -c 'token=$(rlock acquire --label "build 7" k); echo $$; rlock status --json k' 3>&-
    mine=${lines[0]}
    output=${output#*$'\n'}
    json ".[0].holders[0] | .pid == $mine and .command == \"bash\" and .label == \"build 7\""
    run -0 rlock acquire --no-identity anonymous
    status_json anonymous '.[0].holders[0] | .pid == null and .command == null and .host == null'
}

@test "H69 a run nested under acquire --export is granted at once, with its fence" {
    cat >"$T/script" <<'EOF'
eval "$(rlock acquire --export k)" || exit
: >"$T/s.up"
await "$T/go"
rlock run -n k -- sh -c '[ "$RLOCK_FENCE" = "$0" ]' "$RLOCK_FENCE" || exit 2
rlock run -n k -- rlock release --owner "$RLOCK_OWNER" k || exit 3
rlock run -n k -- true
[ "$?" = 75 ] || exit 4
EOF
    bg_up s sh "$T/script"
    queued k bg w rlock acquire k
    : >"$T/go"
    finish s
    [[ $status == 0 ]] # 4: it had nothing left to be nested in, and the next had come
    ends_with w 0
}

@test "a nested owner does not release its ancestor's lock" {
    run -0 --separate-stderr sh -c 'eval "$(rlock acquire --export k)" &&
        rlock run -n other -- rlock release k; echo "$?"; rlock release k; echo "$?"' 3>&-
    [[ $output == $'1\n0' ]]
    stderr_line '^hint: RLOCK_OWNER'
}

@test "two acquisitions of one shell can both be renewed and released, in either order" {
    cat >"$T/script" <<'EOF'
eval "$(rlock acquire --export a)" && eval "$(rlock acquire --export b)" &&
    eval "$(rlock acquire --export c)" || exit 2
for key; do
    rlock renew --lease 1h "$key" || exit 3
    rlock status --json "$key" | jq -e '.[0].holders[0].lease_left_ms > 3000000' >/dev/null || exit 4
done
for key; do
    rlock status -q "$key" && exit 5
    rlock release "$key" || exit 6
    rlock status -q "$key" || exit 7
    rlock release -q "$key"
    [ $? = 1 ] || exit 8
done
EOF
    for order in "a b c" "c b a" "b c a"; do
        run -0 --separate-stderr sh "$T/script" $order 3>&-
        [[ $stderr == "" ]]
    done
}

@test "a key that is held twice is released twice, the last acquisition first" {
    run -0 --separate-stderr sh -c 'eval "$(rlock acquire --export k)"; first=$RLOCK_OWNER
        eval "$(rlock acquire --export k)"; second=$RLOCK_OWNER
        rlock release k || exit 2
        [ "$(rlock status --json k | jq -r ".[0].holders[].owner")" = "$first" ] || exit 3
        rlock release --owner "$second" k || exit 4
        rlock status -q k' 3>&-
    [[ $stderr == "" ]]
}

# A descendant knows the token of the run, as RLOCK_OWNER, and may only release what it has acquired
# itself.
@test "the lock of a run is not released by its descendants" {
    run -0 --separate-stderr rlock run k -- sh -c 'eval "$(rlock acquire --export other)"
        rlock release k; echo "$?"; rlock renew k; echo "$?"
        rlock status -q k; echo "$?"; rlock release other; echo "$?"'
    [[ $output == $'1\n1\n75\n0' ]]
    run -5 --separate-stderr rlock run k -- sh -c 'rlock release k; echo "$?"
        token=$(rlock acquire k); rlock release k; echo "$?"
        rlock status -q k; echo "$?"; rlock release --owner "$token" k; echo "$?"; exit 5'
    [[ $output == $'1\n1\n75\n0' ]]
    stderr_line '^rlock: release: k: the token of a run'
}

@test "acquire works without an environment, without standard input and error" {
    cat >"$T/script" <<END
token=\$('$RLOCK' acquire -u '$RLOCK_URL' k) && '$RLOCK' release -u '$RLOCK_URL' --owner "\$token" k
END
    run -0 env -i RLOCK_CONFIG=/dev/null "RLOCK_TEST_ID=$T" sh -c 'exec sh "$0" <&- 2>&-' \
        "$T/script" 3>&-
    run -0 rlock status -q k
}
