# The agent dies, as by the kernel's out-of-memory killer: another one takes over with the lock, or
# with the place in the queue. refuses PID WHEN: the kernel refuses what that process sends from now
# on: the first three messages (1..3), or all; the file "refused" lists them. kill_all_agents NAME:
# each of its agents as soon as it is seen; prints how many there were.

load helper
load waiters

# kill_all_agents NAME: kills each of its agents as soon as it is seen; prints how many there were.
kill_all_agents() {
    local one
    while alive "${pid[$1]}"; do
        if one=$(agent_of "${pid[$1]}"); then
            kill -KILL "$one" && echo "$one" >>"$T/agents"
        fi
        pause 5
    done
    sort -u "$T/agents" | wc -l
}

@test "H135 every agent is killed before it renews: few are started, and the command ends in time" {
    at_work a k forever --lease 6s
    kill -STOP "$(redis_pid)"
    agents=$(kill_all_agents a)
    kill -CONT "$(redis_pid)"
    ends_with a 79
    # The pauses between them grow to a second, in the 6 s of the lease: without pauses there would
    # be hundreds.
    within 1 16 "$agents"
}

@test "H135 five agents in a row die while the lock is waited for: rlock ends, and says why" {
    hold a k
    bg b rlock run k -- true
    agents=$(kill_all_agents b)
    finish b
    [[ $status == 71 && $agents == 5 ]]
    contains "$T/b.err" 'k: the agent was killed (signal 9) while it waited, again and again'
}

# The next agent has to know all of the keys, also those that are free.
@test "H135 the agent is killed while one of several keys is waited for: the next one gets all" {
    stay a k2
    queued k2 bg b rlock run k1 k2 k3 -- sh -c "echo b >>'$LOG'"
    kill_agent b
    ends_well a
    in_turn 20 b
    is_free k1
    is_free k3
}

# The server is stopped, so that the release is under way when the agent is killed: the command, a
# shell, has ended by then.
@test "H135 the agent is killed while it gives the lock back: another one does" {
    stay a k
    has_agent a
    kill -STOP "$(redis_pid)"
    : >"$T/a.go"
    poll_until 10 eval '! children_of "${pid[a]}" sh'
    kill -KILL "$agent"
    kill -CONT "$(redis_pid)"
    ends_with a 9
    is_free k
    run -1 grep 'could not be released' "$T/a.err"
}

# As in a host that is suspended amid a release, more than the ten seconds pass that rlock waits
# for one. It is continued first, and must not count them as its agent's.
@test "H75 rlock and its agent stand still for long amid a release: it is waited for" {
    stay a k --lease 60s
    kill -STOP "$(redis_pid)"
    : >"$T/a.go"
    poll_until 10 eval '! children_of "${pid[a]}" sh'
    poll_until 10 in_state "${pid[a]}" S
    stop_both a
    sleep 10.5
    kill -CONT "${pid[a]}"
    poll_until 10 in_state "${pid[a]}" S
    kill -CONT "$agent" "$(redis_pid)"
    ends_with a 9
    is_free k
    run -1 grep 'could not be released' "$T/a.err"
}

# The lock stays the holder's until its command has ended, which has 20 s after TERM.
@test "H135 the agent is killed while the command of a revoked lock ends: another one releases" {
    bg_up a rlock run --lease 60s --kill-after 20s k -- \
        sh -c "trap ': >\"$T/asked\"; await \"$T/go\"; exit' TERM; sleep 1000 & : >'$T/a.up'; wait"
    bg f rlock force-release --yes k
    poll_until 10 test -e "$T/asked"
    kill_agent a
    : >"$T/go"
    ends_with a 79
    is_free k
    ends_with f 0
}

@test "H75 an agent that is stopped when the lock is released, or the wait ended, is continued" {
    stay a k --lease 60s
    queue b k --lease 60s
    kill -STOP "$(agent_of "${pid[a]}")" "$(agent_of "${pid[b]}")"
    kill -TERM "${pid[b]}"
    ends_with b 143 5
    no_waiters k
    ends_well a
    is_free k
    run -1 grep 'could not be released' "$T/a.err"
}

@test "H75 a waiter's agent is stopped: others do not wait for it, and it returns to its place" {
    hold a k --lease 60s
    queue b k
    queued k bg c rlock run k -- await "$T/go"
    queue d k
    kill -STOP "$(agent_of "${pid[b]}")"
    poll_until 20 has_waiters k 2
    kill "${pid[a]}"
    poll_until 10 holds c k
    kill -CONT "$(agent_of "${pid[b]}")"
    poll_until 10 has_place b k 1
    : >"$T/go"
    in_turn 10 b d
    run -1 grep -v ': waiting for\|: acquired after' "$T/b.err"
}

@test "H75 a waiter's agent is stopped: -w ends in time, and no place in the queue is left" {
    hold a k --lease 60s
    queued k bg b rlock run -w 3s k -- true
    kill -STOP "$(agent_of "${pid[b]}")"
    ends_with b 75
    no_waiters k
}

@test "H75 the agent of acquire is stopped: -w or a signal ends it, no place in the queue is left" {
    hold a k --lease 60s
    for keep in '' "--keep $$"; do
        # shellcheck disable=SC2086
        queued k bg b rlock acquire -w 3s $keep k
        kill -STOP "$(children_of "${pid[b]}")"
        ends_with b 75
        no_waiters k
        # shellcheck disable=SC2086
        queued k bg b rlock acquire $keep k
        kill -STOP "$(children_of "${pid[b]}")"
        kill -TERM "${pid[b]}"
        ends_with b 143
        no_waiters k
    done
}

@test "H75 the agent is stopped before it is answered: -n ends, and no place in the queue is left" {
    hold a k --lease 60s
    kill -STOP "$(redis_pid)"
    bg b rlock run -n k -- true
    poll_until 10 has_agent b
    kill -STOP "$agent"
    kill -CONT "$(redis_pid)"
    ends_with b 75
    no_waiters k
}

@test "H127 the kernel refuses a continued rlock's word to its agent: its turn comes all the same" {
    need_strace
    hold a k --lease 60s
    queue b k --lease 60s
    suspend b STOP
    terminate a
    poll_until 10 is_free k # given up by the agent, which has asked
    trace "${pid[b]}" -o /dev/null -e inject=sendmsg:error=EAGAIN:when=1
    kill -CONT "${pid[b]}"
    in_turn 15 b
}

@test "H75 an acknowledgement that the kernel refuses is sent later: the command keeps its lock" {
    need_strace
    stay a k --lease 9s
    refuses "${pid[a]}" 1..3
    poll_until 20 test -s "$T/refused"
    renewed k
    renewed k
    ends_well a
    is_free k
}

@test "H75 an order to release that the kernel refuses is sent later: the lock is free at once" {
    need_strace
    stay a k --lease 60s --wait-descendants
    refuses "${pid[a]}" 1..3
    ends_well a
    test -s "$T/refused"
    is_free k
    run ! grep 'could not be released' "$T/a.err"
}

@test "H75 an order to release that the kernel never takes is read from the shared page" {
    need_strace
    stay a k --lease 60s
    refuses "${pid[a]}"
    ends_well a
    is_free k
    run -0 rlock history k
    [[ ${lines[1]} == *'exit 9' ]]
}

@test "H75 an order to release that the kernel never takes, --wait-descendants: as soon" {
    need_strace
    stay a k --lease 60s --wait-descendants
    refuses "${pid[a]}"
    ends_well a
    is_free k
    run ! grep 'could not be released' "$T/a.err"
}

@test "H75 what the agent says last, and the kernel refuses, is heard: revoked, 79, not held on" {
    need_strace
    stay a k --lease 60s
    poll_until 10 has_agent a
    refuses "$agent" 1..3
    run -0 rlock force-release --yes --reason test k
    ends_with a 79
    test -s "$T/refused"
    contains "$T/a.err" 'revoked by'
    run ! grep 'could not be released\|its agent' "$T/a.err"
}

@test "H75 a release finds no lock any more, and the kernel refuses the agent's word of that: 79" {
    need_strace
    stay a k --lease 60s
    poll_until 10 has_agent a
    refuses "$agent"
    redis del 'rlock:{k}'
    : >"$T/a.go"
    ends_with a 79
    test -s "$T/refused"
    contains "$T/a.err" 'the store no longer has it'
}

@test "H75 the kernel refuses what acquire --keep tells its renewer: the renewer renews the lock" {
    need_strace
    strace -qq -o "$T/refused" -e trace=sendmsg -e inject=sendmsg:error=ENOBUFS:when=2..4 \
        "$RLOCK" acquire --lease 9s --keep $$ k >"$T/owner" 3>&- # the first one is a trial
    grep -q 'iov_len.*ENOBUFS' "$T/refused"
    renewed k
    run -0 rlock release --owner "$(<"$T/owner")" k
}

@test "H75 acquire --keep ends, and the kernel refuses its last word: the renewer renews its lock" {
    need_strace
    strace -qq -o "$T/refused" -e trace=sendmsg -e inject=sendmsg:error=ENOBUFS:when=2+ \
        "$RLOCK" acquire --lease 9s --keep $$ k >"$T/owner" 3>&- # the first one is a trial
    grep -q 'iov_len.*ENOBUFS' "$T/refused"
    renewed k
    renewed k
    run -0 rlock release --owner "$(<"$T/owner")" k
}

@test "H75 Ctrl-Z, and the kernel refuses to tell the agent: it renews until the job continues" {
    need_strace
    as_job work a k forever --lease 15s
    working a
    refuses "${pid[a]}" 1..3
    kill -TSTP "${pid[a]}"
    poll_until 10 test -s "$T/refused"
    kill "$tracer"
    poll_until 10 in_state "${pid[a]}" T
    renewed k
    renewed k
    renewed k
    kill -CONT "${pid[a]}"
    terminate a 143
    run ! grep 'lock lost' "$T/a.err"
}

@test "H75 the wait ends, and the kernel refuses the agent's word of it: 75, and no other agent" {
    need_strace
    hold a k --lease 60s
    queued k bg b rlock run -w 3s k -- true
    refuses "$(agent_of "${pid[b]}")" 1..3
    ends_with b 75
    test -s "$T/refused"
    run ! grep 'its agent' "$T/b.err"
}

# rlock is the parent of both: no child that lives (R, S, D) means that both have ended.
@test "H135 agent and command end while rlock is stopped: another agent gives the lock back" {
    stay a k
    has_agent a
    suspend a STOP
    kill -KILL "$agent"
    : >"$T/a.go"
    poll_until 10 eval '[[ -z $(pgrep -P "${pid[a]}" -r R,S,D) ]]'
    kill -CONT "${pid[a]}"
    ends_with a 9
    run ! grep 'could not be released' "$T/a.err"
    is_free k
}

# NAME has the lock K. Its command has ended, its agent has died, it has forked the next one, and
# has done nothing since: "tracer" holds it up.
still_since_birth() { # NAME K [OPTION...]
    stay "$1" "$2" --lease 60s "${@:3}"
    has_agent "$1"
    suspend "$1" STOP
    trace "${pid[$1]}" -o /dev/null -e inject=clone:delay_exit=100s:when=1
    kill -KILL "$agent"
    : >"$T/$1.go"
    poll_until 10 eval "[[ -z \$(pgrep -P ${pid[$1]} -r R,S,D) ]]"
    kill -CONT "${pid[$1]}"
    poll_until 10 has_agent "$1" "$agent"
}

# The new agent of a holder finds that rlock does not tell it anything: the lock must be released in
# the end, whether rlock continues or is dead.
@test "H135 rlock stands still or dies when another agent is born: that one gives the lock back" {
    need_strace
    still_since_birth a k
    poll_until 20 is_free k
    kill "$tracer"
    ends_with a 9
    still_since_birth b k --stop "touch '$T/stopped'"
    kill -KILL "${pid[b]}"
    poll_until 20 gone "$agent"
    is_free k
    [[ ! -e $T/stopped ]]
}

@test "H75 the order to release is refused, and the lock then asked for: its command ended well" {
    need_strace
    stay a k --lease 60s --wait-descendants
    hears a k
    trace "${pid[a]}" -o "$T/refused" -e trace=sendmsg,kill -e inject=sendmsg:error=ENOBUFS \
        -e inject=kill:error=EPERM
    : >"$T/a.go"
    poll_until 10 grep -q SIGCONT "$T/refused" # to its agent, which owes it an answer
    run -0 rlock force-release --yes --reason test k
    ends_with a 9
    run ! grep 'lock lost\|could not be released' "$T/a.err"
}

@test "H75 all that the agent says to a stopped rlock is refused: its command has ended in time" {
    need_strace
    stay a k --lease 9s
    poll_until 10 has_agent a
    suspend a STOP
    refuses "$agent"
    : >"$T/a.go"
    poll_until 20 gone "$agent"
    test -s "$T/refused"
    is_free k
    sleep 9 # beyond the lease
    kill -CONT "${pid[a]}"
    ends_with a 9
    run ! grep 'lock lost\|could not be released' "$T/a.err"
}

@test "H164 a release that failed while rlock stood still is reported" {
    stay a k
    has_agent a
    suspend a STOP
    kill -STOP "$(redis_pid)"
    : >"$T/a.go"
    poll_until 25 gone "$agent"
    kill -CONT "${pid[a]}"
    ends_with a 9
    kill -CONT "$(redis_pid)"
    contains "$T/a.err" 'could not be released'
}

@test "H135 the next agent reports a lock that the store has taken away" {
    stay a k
    has_agent a
    kill -STOP "$agent"
    redis flushall
    kill -KILL "$agent"
    ends_with a 79
    contains "$T/a.err" 'the store no longer has it'
}

@test "H135 two agents are killed: a lock of any mode, several keys, nested, not renewed, is kept" {
    stay a s --limit 2
    stay b s --limit 2
    stay c k1 k2 k3 --lease 9s
    stay d r --read
    stay e f --no-renew --lease 10m
    bg_up f rlock run --lease 9s n -- rlock run --lease 9s n -- \
        sh -c ": >'$T/f.up'; await '$T/f.go'; exit 9"
    stay g q -q --on-lost continue --lease 9s
    for name in a b c d e f g; do
        kill_agent $name
        kill_agent $name
    done
    renewed q
    renewed k1
    renewed k2
    renewed n
    run -75 rlock run -n --limit 2 s -- true
    run -75 rlock run -n k3 -- true
    run -75 rlock run -n --write r -- true
    run -0 rlock run -n --read r -- true
    run -75 rlock run -n f -- true
    run -75 rlock run -n n -- true
    for name in a b c d e f g; do
        ends_well $name
    done
    for name in s k1 k2 k3 r f n q; do
        is_free $name
    done
    [[ ! -s $T/g.err ]]
    [[ $(grep -c 'its agent was killed (signal 9); another one takes over' "$T/a.err") == 1 ]]
}

@test "H135 the agent is killed while TSTP has stopped the job: continued, it keeps the lock" {
    as_job work a k forever --lease 30s
    working a
    has_agent a
    suspend a TSTP
    kill -KILL "$agent"
    local lines
    lines=$(wc -l <"$LOG")
    kill -CONT "${pid[a]}"
    poll_until 10 eval '(($(wc -l <"$LOG") > lines))'
    renewed k
    terminate a 143
}

# The command starts nothing while it is stopped: a shell that waits in vfork() for a child that was
# stopped there is not seen as stopped (rlock-run(1)).
@test "H99 paused until --at-most is over, rlock knows the lease that it has by now: TERM, 124" {
    as_job bg_up a rlock run --lease 9s --at-most 8s k -- \
        sh -c "trap 'sleep 0.5; : >\"$T/cleaned\"; exit' TERM; sleep 1000 & : >'$T/a.up'; wait"
    suspend a TSTP
    for _ in 1 2 3 4; do # the lease that it has heard of is over, and --at-most
        renewed k
    done
    kill -CONT "${pid[a]}"
    ends_with a 124
    [[ -e $T/cleaned ]]
    run -1 grep 'lock lost' "$T/a.err"
}

@test "H135 --wait-descendants, two agents are killed: what is left is waited for under the lock" {
    bg_up a rlock run --lease 9s --wait-descendants k -- \
        sh -c "(await '$T/go') & : >'$T/a.up'; exit 9"
    poll_until 10 eval '[[ $(children_of "${pid[a]}" | wc -l) == 2 ]]'
    kill_agent a
    kill_agent a
    renewed k
    run -75 rlock run -n k -- true
    : >"$T/go"
    ends_with a 9
    is_free k
}

@test "H143 a waiter's next agent gets the lock at once: rlock says that the wait is over" {
    hold a k
    bg_says b 'waiting for k' rlock run k -- true
    has_agent b
    kill -STOP "$agent"
    terminate a
    kill -KILL "$agent"
    ends_with b 0 20
    contains "$T/b.err" 'k: acquired after '
}

@test "H143 a waiter's agent is killed: the place is kept, and no waiter is shown that has died" {
    place_is_kept
    contains "$T/b.err" 'another one takes over'
    place_is_kept j
}
