# Waiting: first come first served, one is woken, and what is said meanwhile.

load helper

# hand_overs WAITERS: three of them; each calls one.
hand_overs() {
    local i start published called
    published=$(redis_calls publish) called=$(redis_calls evalsha) start=$(now_ms)
    for i in 1 2 3; do
        kill "$holder"
        poll_until 10 test -s "$T/in.$i"
        holder=$(<"$T/in.$i")
    done
    within 3 5 $(($(redis_calls publish) - published))
    # A release each, a renewal behind most, and what heartbeats there were meanwhile.
    within 3 $((10 + $1 + $1 * ($(now_ms) - start) / 1500)) $(($(redis_calls evalsha) - called))
}

# The first three commands of each round write the number of their rlock to in.1 to in.3; hand_overs
# kills each holder in turn, and counts what the server was asked for.
@test "H66 a hand-over costs the same with ten waiters and with a hundred" {
    local i n had=0
    hold a k --lease 60s
    holder=${pid[a]}
    next() {
        local i
        for i in 1 2 3 none; do
            [[ -e $T/in.$i ]] || break
        done
        echo "$PPID" >"$T/in.$i"
        exec sleep 1000
    }
    export -f next
    for n in 10 100; do
        for ((i = had; i < n; i++)); do
            bg "w$i" rlock run -q --lease 60s k -- bash -c next
        done
        poll_until 20 has_waiters k $((n - (had ? 3 : 0)))
        hand_overs "$n"
        had=$n
        rm "$T"/in.*
    done
}

@test "H60 no hand-over is missed between two clients that take turns" {
    loop() {
        local n
        for ((n = 0; n < 40; n++)); do
            command rlock run --report-fd 9 k -- true 9>>"$T/report.$1"
        done
    }
    export -f loop
    # A missed wake-up is found by the next heartbeat, 2.5 s later.
    no_long_wait() {
        rm -f "$T"/report.*
        bg one bash -c 'loop 1'
        bg two bash -c 'loop 2'
        all_end 0 50 one two || return
        jq -se --argjson most "$(patience 2000)" \
            'length == 80 and all(.waited_ms < $most)' "$T"/report.*
    }
    once_of 3 no_long_wait
}

@test "H61 the next waiter has a dead holder's lock when its lease is over, not a heartbeat later" {
    in_time() {
        hold a k --lease 12s
        queue w k
        kill_both a
        start=$(now_ms)
        left=$(lease_left k) || return
        ends_with w 0 || return
        took "$left" $((left + 2000)) "$start"
    }
    once_of 3 in_time
}

@test "H61 the second waiter has a dead holder's lock in time if the first one has given up" {
    hold a k --lease 14s
    queued k bg first rlock run -w 7s k -- true
    queue w k
    kill_both a
    start=$(now_ms)
    ends_with first 75
    ends_with w 0
    # The lease of 14 s, and less than a heartbeat of 2.5 s.
    took 0 16000 "$start"
}

@test "--at-least: a waiter has the lock when that is over, not a heartbeat later" {
    in_time() {
        rm -f "$T/began" "$T/go"
        bg a rlock run --at-least 12s k -- \
            sh -c "date +%s%3N >'$T/began'; await '$T/go'"
        poll_until 10 test -s "$T/began" || return
        queued k bg w rlock run k -- sh -c "date +%s%3N >'$T/next'"
        : >"$T/go"
        all_end 0 10 a w || return
        took 11000 14000 "$(<"$T/began")" "$(<"$T/next")"
    }
    once_of 3 in_time
}

@test "H64 a signal while waiting ends rlock promptly and leaves nothing in the queue" {
    hold a k
    for name in INT TERM HUP QUIT USR1; do
        queue w k
        kill -"$name" "${pid[w]}"
        finish w 5
        [[ $status == $((128 + $(kill -l "$name"))) ]]
        [[ $(waiters k) == 0 ]]
    done
    for ((i = 0; i < 20; i++)); do
        bg "w$i" rlock run k -- touch "$T/run"
    done
    for ((i = 0; i < 20; i++)); do
        sleep "0.0$((RANDOM % 10))" # not for a condition: any moment
        kill -TERM "${pid[w$i]}"
    done
    all_end 143 10 w{0..19}
    [[ $(waiters k) == 0 && ! -e $T/run ]]
    [[ $(redis hkeys "rlock:{k}" | grep -c '^w:') == 0 ]]
    [[ $(agent_of "${pid[a]}" | wc -l) == 1 ]]
}

@test "H64 a signal while the request is on its way: the grant is released" {
    start_proxy
    fault delay up 2000
    for i in 1 2 3; do
        bg "w$i" rlock run -u "redis://${proxy[proxy]}" "k$i" -- touch "$T/run"
    done
    poll_until 10 eval '[[ $(fault stats) == *"open 3"* ]]'
    pause 500 # for one of them to have asked
    kill "${pid[w1]}" "${pid[w2]}" "${pid[w3]}"
    all_end 143 10 w{1..3}
    poll_until 10 eval '[[ $(fault stats) == *"open 0"* ]]'
    [[ $(redis_calls evalsha) -ge 1 && $(rlock status --json) == "[]" && ! -e $T/run ]]
}

@test "H64 a signal while the server stands still: its later grant is released" {
    for round in 1 2 3; do
        hold a k
        queue w k
        kill -STOP "$(redis_pid)"
        kill "${pid[a]}"
        sleep "2.$((3 + round))" # any moment at which the waiter has asked once more
        kill "${pid[w]}"
        ends_with w 143 5
        kill -CONT "$(redis_pid)"
        finish a
        poll_until 2 is_free k
        # its place, where it had given up that connection
        poll_until 9 eval '[[ $(waiters k) == 0 ]]'
        [[ ! -e $LOG ]]
    done
}

# The waiter, whose lock became free without its notice, is ended by a signal while its last request
# is in a server that stands still. That request is granted later: the lock must be released.
@test "H64 a signal while a server stands still that lacks the script of a release: none is held" {
    redis script flush
    hold a k --lease 60s
    queue w k --lease 60s
    redis del 'rlock:{k}' # the waiter does not hear of it
    kill -STOP "$(redis_pid)"
    sleep 2.9 # until it has asked once more
    terminate w 143
    kill -CONT "$(redis_pid)"
    poll_until 10 is_free k
    [[ ! -e $LOG ]]
}

@test "while waiting, one line names the holder, since when, and the place" {
    hold a k --label "green one"
    queue w1 k
    bg w2 rlock run k -- true
    poll_until 10 test -s "$T/w2.err"
    run -0 cat "$T/w2.err"
    [[ ${#lines[@]} == 1 && $output == rlock:* && $output == *"green one"* ]]
    [[ $output == *"$(hostname)"* && $output =~ [0-9]+m?s ]]
    [[ $output == *'; you are number 2 in the queue' ]]
}

@test "not acquired: the holder's age is that of now, not of the last answer" {
    hold a k
    # Less than a heartbeat: the server is asked once, at the start.
    run -75 --separate-stderr rlock run -w 2400ms k -- true
    stderr_line '^rlock: k: not acquired: held by .* for ([2-9]|[1-9][0-9])(\.[0-9])?s'
}

@test "H150 a waiter that stands still beyond its time asks once more, and says what is true then" {
    local began still
    for wanted in 75 0; do
        began=$(now_ms)
        hold a k
        queue w k -w 4s
        stop_both w
        still=$(now_ms)
        [[ $wanted == 75 ]] || terminate a 143
        poll_until 20 eval '(($(now_ms) > still + 6500))'
        kill -CONT "${pid[w]}" "$agent"
        ends_with w "$wanted"
        [[ $wanted == 75 ]] || continue
        [[ $(<"$T/w.err") =~ 'not acquired: held by '.*' for '([0-9]+) ]]
        within 1 "$((($(now_ms) - began) / 1000))" "${BASH_REMATCH[1]}"
        terminate a 143
    done
}

@test "a wait of less than a second says nothing" {
    stay a k
    queued k bg w rlock run --report-fd 1 k -- true
    ends_well a
    finish w
    # Where it took more than that, it said so.
    [[ -s $T/w.err ]] || jq -e '.waited_ms < 2000' "$T/w.out"
    [[ ! -s $T/w.err ]] || jq -e '.waited_ms > 900' "$T/w.out"
}

@test "a waiter holds one connection, and so does a holder" {
    hold a k
    queue w1 k
    queue w2 k
    # A server lists a connection for a while after it was closed; one that is kept would never go.
    poll_until 10 eval '[[ $(redis client list | grep -c " name=rlock") == 3 ]]'
}

@test "H10 all waiters are served after a restart of the server, without a storm" {
    hold a k
    for ((i = 1; i <= 20; i++)); do
        bg "w$i" rlock run k -- sh -c "echo w$i >>'$LOG'"
    done
    poll_until 20 has_waiters k 20
    redis_restart
    start=$(now_ms)
    all_end 0 30 w{1..20}
    [[ $(sort -u "$LOG" | wc -l) == 20 ]]
    # Some for each to begin with, and a heartbeat of each waiter every 2.5 s at most.
    within 20 $((300 + 20 * (($(now_ms) - start) / 2000))) "$(redis_calls evalsha)"
}
