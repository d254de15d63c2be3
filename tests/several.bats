# Several keys of one run: all or none.

load helper

@test "several KEYs are all held while the command runs, and none afterwards" {
    run -0 rlock run a b c -- sh -c "'$RLOCK' status -q a; test \$? = 75 || exit 1
        '$RLOCK' status -q b; test \$? = 75 || exit 1; '$RLOCK' status -q c; test \$? = 75"
    run -0 rlock status -q a b c
}

@test "RLOCK_KEY, RLOCK_FENCE and RLOCK_SLOT have a word for each KEY, in the order given" {
    run -0 rlock run z a m -- \
        sh -c 'echo $RLOCK_KEY; set -- $RLOCK_FENCE; echo $#; echo $RLOCK_MODE'
    [[ ${lines[0]} == "z a m" && ${lines[1]} == 3 && ${lines[2]} == exclusive ]]
    run -0 rlock run a -- sh -c 'echo $RLOCK_FENCE'
    first=$output
    run -0 rlock run b a -- sh -c 'echo ${RLOCK_FENCE#* }'
    ((output > first))
    prints 0 '1 1' run --limit 2 b a -- sh -c 'echo $RLOCK_SLOT'
}

@test "--read is for all of several keys" {
    hold r "a" --read
    run -0 rlock read -n a b -- true
    run -75 rlock run -n b a -- true
}

@test "H77 of two KEYs one is held: nothing is taken, with -n or when -w is over" {
    hold h b
    says 75 '^rlock: .*b.*held' run -n a b -- true
    is_free a
    [[ $(redis exists 'rlock:{a}') == 0 || $(redis hkeys 'rlock:{a}') != *h:* ]]
    run -75 rlock run -w 3s a b -- true
    is_free a
    [[ $(waiters a) == 0 && $(waiters b) == 0 ]]
}

@test "H77 nothing is held while waiting, and nothing is left of one that was killed" {
    hold h b --lease 60s
    queued b bg w rlock run --lease 6s a b -- true
    is_free a
    kill_both w
    # The dead waiter keeps its place for as long as a waiter may be silent.
    run -0 rlock run -w 60s a -- true
    kill "${pid[h]}"
    run -0 rlock run -w 50s b -- true
}

@test "H78 opposite orders do not wait for each other" {
    loop() {
        local n
        for ((n = 0; n < 25; n++)); do
            "$RLOCK" run -q -w 25s --report-fd 9 "$@" -- \
                "$WORKER" "$LOG" "$BASHPID.$n" 0.01 9>>"$T/report" || exit 1
        done
    }
    export -f loop
    export WORKER=$RLOCK_TEST_TOOLS/worker
    # A deadlock would last until -w; a missed wake-up is found by the next heartbeat, 2.5 s later.
    no_long_wait() {
        local i=0 one
        rm -f "$T/report"
        for one in "a b" "b a" "c b a" "a c"; do
            bg "l$((++i))" bash -c "set -- $one; loop \"\$@\""
        done
        all_end 0 40 l{1..4} || return
        jq -se --argjson most "$(patience 2000)" \
            'length == 100 and all(.waited_ms < $most)' "$T/report"
    }
    once_of 3 no_long_wait
    # All have a in common.
    no_overlap
}

@test "H79 a key that is given twice is one key, with one fence" {
    run -0 timeout 100 "$RLOCK" run a b a a -- sh -c 'echo $RLOCK_KEY; set -- $RLOCK_FENCE; echo $#'
    [[ $output == $'a b\n2' ]]
    run -0 rlock status -q a b
    run -0 timeout 100 "$RLOCK" run --limit 2 a a -- "$RLOCK" status --json a
    json '.[0].holders | length == 1'
}

@test "H79 keys that look alike are not the same" {
    prints 0 5 run a A 'a*' 'a:1' a: -- sh -c 'set -- $RLOCK_FENCE; echo $#'
    [[ $(redis dbsize) == 5 ]]
}

@test "32 KEYs may be taken at once; more are refused: exit 64" {
    run -0 rlock run k{1..32} -- true
    run -64 rlock run k{1..33} -- true
}

@test "H80 one of three is lost: the command is stopped, and the others are released" {
    for lost in a c; do
        at_work w "a" 100 --lease 9s b c
        redis del "rlock:{$lost}"
        ends_with w 79 5
        contains "$T/w.err" "$lost"
        run -0 rlock status -q a b c
        rm "$LOG"
    done
}
