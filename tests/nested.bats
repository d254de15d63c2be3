# rlock under rlock: who has the lock already gets it at once; siblings take turns. inner OPTION...
# KEY -- COMMAND: an "rlock run" of these, or another subcommand, quoted for the shell in which it
# nests.

load helper

# inner OPTION... KEY -- COMMAND...: quoted for a shell, that many levels below as needed.
inner() {
    printf '%q ' rlock "$@"
}

@test "a nested run is granted at once, ahead of the waiters, with the same fence" {
    bg a rlock run k -- sh \
        -c "echo \$RLOCK_FENCE >'$T/outer'; await '$T/go'
        $(inner run -n k -- sh -c 'echo $RLOCK_FENCE') >'$T/inner'"
    poll_until 10 test -s "$T/outer"
    queue w k
    : >"$T/go"
    ends_with a 0
    [[ -s $T/inner && $(<"$T/inner") == "$(<"$T/outer")" ]]
    ends_with w 0
}

@test "each nested run has an entry of its own; the lock is free when the last one is gone" {
    run -0 rlock run k -- \
        sh -c "$(inner run k -- rlock status --json k); $(inner status --json k)"
    json -s '.[0][0].holders | length == 2 and .[0].owner != .[1].owner and .[0].fence == .[1].fence
        and .[0].count == 2 and .[1].count == 1'
    json -s '.[1][0].holders | length == 1 and .[0].count == 1'
    is_free k
}

@test "a nested run that outlives the outer one keeps the lock" {
    bg a rlock run k -- sh \
        -c "$(inner run k -- sh -c ": >'$T/in'; await '$T/go'") &
        await '$T/in'"
    ends_with a 0
    run -75 rlock run -n k -- true
    queue w k
    : >"$T/go"
    ends_with w 0
}

@test "--no-reentrant: a run below its own lock is refused with 78, and does not wait" {
    says 78 '^rlock: k: ' run k -- rlock run -w 3s --no-reentrant k -- true # 75 if it waited
    run -0 rlock run k -- rlock run --no-reentrant other -- true
}

@test "of several keys, those of an ancestor are granted at once, and the others are acquired" {
    hold b b
    run -75 rlock run a -- rlock run -n a b -- true
    terminate b
    run -0 rlock run a -- \
        sh -c "echo \$RLOCK_FENCE; $(inner run -n b a -- sh -c 'echo ${RLOCK_FENCE#* }')"
    [[ ${lines[0]} == "${lines[1]}" ]]
    run -0 rlock status -q a b
}

@test "an RLOCK_OWNER of another form: exit 78; runs nest sixteen deep, and no deeper" {
    for owner in x 1.2 "$(printf 'a%.0s' {1..36})" "00000000-0000-0000-0000-000000000000."; do
        run -78 --separate-stderr env RLOCK_OWNER="$owner" rlock run -n k -- true
        stderr_line RLOCK_OWNER
    done
    cat >"$T/deeper" <<END
#!/bin/sh
echo "\$1"
exec rlock run -n k -- "$T/deeper" \$((\$1 + 1))
END
    chmod +x "$T/deeper"
    run -78 --separate-stderr rlock run -n k -- "$T/deeper" 1
    [[ ${lines[-1]} == 16 ]]
    stderr_line "^hint: at most 16 levels nest\$"
    is_free k
}

@test "H169 kill -9 of the outer run: what nested in it is free at once, the same KEY and another" {
    bg_up a rlock run --lease 60s k -- sh -c "$(inner run --lease 60s k -- \
        rlock run --lease 60s other -- sh -c "rlock acquire --keep \$\$ --lease 60s third; \
            : >'$T/a.up'; while :; do sleep 0.1; done"); :"
    held third
    kill -KILL "${pid[a]}"
    for key in k other third; do
        run -0 rlock run -w 50s $key -- true
    done
    # So it is when rlock kills at the end of a time limit what ignores TERM.
    run -124 rlock run --lease 60s --at-most 1s --kill-after 500ms k -- \
        sh -c "trap '' TERM; $(inner run --lease 60s --kill-after 30s other -- \
            sh -c 'while :; do sleep 0.1; done'); :"
    run -0 rlock run -w 50s other -- true
}

@test "H169 a nested run's agent that cannot release its lock is killed in the end" {
    start_redis "$T/other" --port 0 --unixsocket "$T/other.sock"
    poll_until 10 test -S "$T/other.sock"
    bg a rlock run --lease 60s --kill-after 500ms k -- \
        sh -c "$(inner run --url "unix://$T/other.sock" --lease 60s --kill-after 30s other -- \
            sh -c ": >'$T/up'; trap '' TERM; while :; do sleep 0.1; done"); :"
    poll_until 10 test -e "$T/up"
    kill -STOP "$(<"$T/other/pid")"
    run -0 rlock force-release --yes k
    ends_with a 79
    kill_redis "$T/other"
    is_free k
}

@test "the outer lock is lost: the nested command goes, too" {
    bg a rlock run --lease 6s k -- rlock run --lease 60s k -- worker "$LOG" in forever
    working in
    redis del 'rlock:{k}'
    ends_with a 79
    work w k 0.2
    finish w
    no_overlap
}

@test "kill -9 of a nested run: its command is dead before a sibling gets the lock" {
    bg a rlock run k -- sh \
        -c "$(inner run --lease 6s k -- worker "$LOG" one forever ignore) &
        until grep -qs one '$LOG'; do sleep 0.02; done
        $(inner run k -- worker "$LOG" two 0.2)"
    working one
    poll_until 10 has_waiters k 1
    inner=$(ps -o ppid= -p "$(awk '{ print $2; exit }' "$LOG")")
    kill -KILL "$inner"
    ends_with a 0
    no_overlap
}
