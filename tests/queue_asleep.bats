# Waiters that sleep longer than the queue waits for them. stopped_before_its_grant: while the
# answer that grants it the lock is on its way. passed_over OPTIONS / OPTIONS / OPTIONS: of the
# holder, the first waiter, which is stopped, and the second one. The second one has its turn before
# the first, and the first when it continues.

load helper
load waiters

# A waiter and its agent are stopped for longer than a place is kept: the next one has the lock.
# When it continues, it is in front again of those that came after it.
@test "H63 a waiter that slept too long loses its place, not its turn" {
    hold a k --lease 60s
    queue asleep k
    queue w k
    stop_both asleep
    kill "${pid[a]}"
    in_turn 20 w
    stay b k
    kill -CONT "$agent" "${pid[asleep]}"
    poll_until 10 has_waiters k 1
    ends_well b
    finish asleep 20
    [[ $status == 0 && $(tr '\n' ' ' <"$LOG") == "w asleep " ]]
}

@test "H126 a waiter that is stopped takes nothing, is passed over, and has its place again" {
    for signal in STOP TSTP; do
        rm -f "$LOG"
        hold a k --lease 60s
        as_job queue asleep k -v --lease 60s
        queue w k
        suspend asleep "$signal"
        kill "${pid[a]}"
        finish w 20
        run -0 rlock run -n k -- true
        hold b k --lease 60s
        queue later k
        kill -CONT "${pid[asleep]}"
        poll_until 10 has_waiters k 2
        kill "${pid[b]}"
        ends_with asleep 0
        # The agent may have seen rlock run just before it was stopped: that grant was released.
        within 1 2 "$(grep -c 'acquired, ' "$T/asleep.err")"
        finish later
        [[ $(paste -sd' ' "$LOG") == "w asleep later" ]]
    done
}

@test "H126 H144 a stopped reader or writer is passed over, and has its turn when it is continued" {
    # Options of the holder, of the stopped waiter, and of the one behind it.
    passed_over --write / --read / --write
    passed_over --read / --write / --read
}

@test "H126 H144 a waiter for a semaphore or several keys is stopped, and has its turn later" {
    # Options and further KEYs of the holder, of the stopped waiter, and of the one behind it.
    passed_over --limit 1 / --limit 1 / --limit 1
    passed_over / j / i
}

# stopped_before_its_grant PROXY KEY: the answer that grants it the lock is on its way.
stopped_before_its_grant() {
    start_proxy "$1"
    rlock run "$2" -- true # the server knows the script by now
    fault_of "$1" on up EVALSHA hold down
    bg asleep rlock run -u "redis://${proxy[$1]}" --lease 60s "$2" -- sh -c "echo asleep >>'$LOG'"
    poll_until 10 held "$2"
    suspend asleep STOP
}

@test "H126 a grant that finds its rlock stopped is released at once" {
    stopped_before_its_grant proxy k
    fault pass
    poll_until 10 is_free k
    hold b k --lease 60s
    kill -CONT "${pid[asleep]}"
    poll_until 10 has_waiters k 1
    [[ ! -e $LOG ]]
    kill "${pid[b]}"
    in_turn 10 asleep
}

@test "H126 a grant that is never heard of, as the connection is cut, is released as well" {
    stopped_before_its_grant proxy k
    poll_until 15 is_free k
    kill -CONT "${pid[asleep]}"
    in_turn 10 asleep
}

@test "H127 told to end, then stopped for longer than that takes: the grant is released" {
    for i in 1 2 3; do # a process may stand still once more
        stopped_before_its_grant "p$i" "k$i"
        agent=$(agent_of "${pid[asleep]}")
        kill -STOP "$agent"
        kill "${pid[asleep]}"
        kill -CONT "${pid[asleep]}"
        poll_until 10 grep -q 'ShdPnd:.*[0-389ab]...$' "/proc/${pid[asleep]}/status" # TERM is read
        kill -STOP "${pid[asleep]}" || continue
        pause 2000 # longer than its end would take
        kill -CONT "${pid[asleep]}" "$agent"
        ends_with asleep 143
        ! is_free "k$i" || return 0
    done
    false
}

@test "H126 no /proc: a grant that a stopped rlock does not take is released soon" {
    unshare --mount true 2>/dev/null || skip "no mount name spaces here"
    for signal in STOP TSTP; do
        rm -f "$LOG"
        hold a k --lease 60s
        as_job bg asleep "${no_proc[@]}" \
            rlock run --lease 60s k -- sh -c "echo asleep >>'$LOG'"
        poll_until 15 has_waiters k 1
        queue w k
        suspend asleep "$signal"
        kill "${pid[a]}"
        in_turn 20 w
        run -0 rlock run -n k -- true
        kill -CONT "${pid[asleep]}"
        finish asleep
        [[ $status == 0 && $(paste -sd' ' "$LOG") == "w asleep" ]]
    done
}

@test "H126 no /proc, a short lease: a grant that was not taken bars no later command" {
    unshare --mount true 2>/dev/null || skip "no mount name spaces here"
    hold a k --lease 60s
    bg asleep "${no_proc[@]}" rlock run -v --lease 2s k -- sh -c "echo asleep >>'$LOG'"
    poll_until 15 has_waiters k 1
    suspend asleep STOP
    kill "${pid[a]}"
    poll_until 10 grep -q 'k: acquired' "$T/asleep.err"
    poll_until 10 is_free k
    kill -CONT "${pid[asleep]}"
    ends_with asleep 0
    [[ -e $LOG ]]
}
