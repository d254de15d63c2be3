# No two commands overlap, whatever process of rlock is killed or stopped: H92 to H95. contend: a
# works as a tree of three processes, and b waits; b_begins_after_a: a and its tree have ended
# before b begins. contended LEASE: a works, b waits.

load helper

# contended LEASE [FLAG...]: a works, b waits.
contended() {
    contend '' "$1" -- "${@:2}"
    a=${pid[a]}
    agent=$(agent_of "$a")
    command=$(command_of "$a")
    [[ -n $agent && -n $command ]]
}

@test "H92 kill -9 of rlock: its tree, with TERM ignored or not, is gone before another begins" {
    for flag in ignore obey; do
        echo "--- $flag"
        rm -f "$LOG"
        contended 6s $flag
        kill -KILL "$a"
        ends_with a 137
        poll_until 2 gone "$command"
        b_begins_after_a
    done
}

@test "H92 kill -9 of rlock just as its command begins: what the command has started dies, too" {
    # The shim stops rlock as soon as it has started the command, before it tells its agent.
    LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_begun.so bg a rlock run --lease 100s k -- \
        env -i PATH="$PATH" "RLOCK_TEST_ID=$T" \
        sh -c "sh -c 'echo \$\$ >\"$T/child\"; exec sleep 1000'; :"
    poll_until 10 in_state "${pid[a]}" T
    poll_until 10 test -s "$T/child"
    kill -KILL "${pid[a]}"
    run -0 rlock run -w 60s k -- true
    gone "$(<"$T/child")"
}

@test "H93 SIGSTOP of rlock: its agent ends the command in time" {
    contended 6s ignore
    kill -STOP "$a"
    b_begins_after_a
    kill -CONT "$a"
    ends_with a 79
}

@test "H160 SIGSTOP of rlock, a fixed lease and --on-lost: the agent ends the command in time" {
    contend 1 6s --no-renew --on-lost continue -- ignore
    contend 2 6s --no-renew --on-lost signal:USR1 -- ignore
    kill -STOP "${pid[a1]}" "${pid[a2]}"
    b_begins_after_a 1
    b_begins_after_a 2
    kill -CONT "${pid[a1]}" "${pid[a2]}"
    all_end 124 10 a1 a2
}

@test "H164 the lock of a stopped rlock is lost: its agent sends the signal of --on-lost, once" {
    bg a rlock run --on-lost signal:USR1 k -- bash -c "trap 'echo usr1 >>\"$T/got\"' USR1
        : >'$T/up'; until [[ -e $T/go ]]; do sleep 0.05; done"
    poll_until 10 test -e "$T/up"
    kill -STOP "${pid[a]}"
    run -0 rlock force-release --yes --now k
    poll_until 20 test -s "$T/got"
    kill -CONT "${pid[a]}"
    poll_until 20 contains "$T/a.err" 'lock lost'
    : >"$T/go"
    ends_with a 79
    [[ $(<"$T/got") == usr1 ]]
}

@test "H93 SIGSTOP of rlock while it ends its command: the agent kills that, and frees the lock" {
    for limit in '' --at-most=1s; do
        rm -f "$T/up"
        bg a rlock run --lease 1h --kill-after 2s ${limit:+"$limit"} k -- \
            bash -c "trap '' TERM; : >'$T/up'; while :; do sleep 0.02; done"
        poll_until 10 test -e "$T/up"
        [[ $limit ]] || bg f rlock force-release --yes k
        poll_until 20 contains "$T/a.err" 'stopping'
        suspend a STOP
        run -0 rlock run -w 60s k -- true
        kill -CONT "${pid[a]}"
        ends_with a $((${#limit} ? 124 : 79))
        run -0 rlock history k
        [[ ${lines[-2]} == *"$([[ $limit ]] && echo 'timed out' || echo revoked)"* ]]
    done
}

@test "H93 SIGSTOP of rlock while it ends its command as the lease ends: the history says why" {
    local limit end outcome
    while read -r limit end outcome; do
        rm -f "$T/up"
        bg a rlock run --lease 9s --kill-after 4s "$limit" k -- \
            bash -c "trap '' TERM; : >'$T/up'; while :; do sleep 0.02; done"
        poll_until 10 test -e "$T/up"
        [[ $outcome != lost ]] || kill -STOP "$(redis_pid)" # so that it is not renewed
        poll_until 20 contains "$T/a.err" 'stopping'
        suspend a STOP
        kill -CONT "$(redis_pid)"
        run -0 rlock run -w 60s k -- true
        kill -CONT "${pid[a]}"
        ends_with a "$end"
        run -0 rlock history k
        [[ ${lines[-2]} == *@("$outcome"|expired) ]] # on a busy machine
    done < <(printf '%s\n' '--no-renew 124 timed out' '--at-most=1h 79 lost')
}

@test "H93 SIGSTOP of rlock whose command continues without its lock: the agent frees that later" {
    bg a rlock run --lease 1h --on-lost continue k -- sh -c ": >'$T/up'; exec await '$T/go'"
    poll_until 10 test -e "$T/up"
    bg f rlock force-release --yes k
    poll_until 20 contains "$T/a.err" 'lock lost'
    suspend a STOP
    : >"$T/go"
    run -0 rlock run -w 60s k -- true
    kill -CONT "${pid[a]}"
    ends_with a 79
    finish f
    run -1 grep "its agent" "$T/a.err" # nothing is left for another one to do
}

@test "H93 SIGSTOP of rlock that has just answered its agent: that frees the lock all the same" {
    need_strace
    bg a rlock run --lease 1h k -- sh -c ": >'$T/up'; exec await '$T/go'"
    poll_until 10 test -e "$T/up"
    # rlock takes a second to see that its command has ended; its agent asks it meanwhile.
    trace "${pid[a]}" -o /dev/null -e trace=wait4,sendmsg -e inject=wait4:delay_enter=1000000 \
        -e inject=sendmsg:signal=STOP:when=1
    : >"$T/go"
    run -0 rlock run -w 60s k -- true
    kill "$tracer"
    kill -CONT "${pid[a]}"
    ends_with a 0
}

@test "H93 SIGSTOP of rlock that has just acknowledged a renewal: that frees the lock, too" {
    need_strace
    bg a rlock run --lease 1h k -- sh -c "printf %s \"\$RLOCK_OWNER\" >'$T/owner'; : >'$T/up'
        exec await '$T/go'"
    poll_until 10 test -e "$T/up"
    # rlock takes a second to see that its command has ended; its agent renews the lock meanwhile.
    trace "${pid[a]}" -o "$T/calls" -e trace=wait4,sendmsg -e inject=wait4:delay_enter=1000000 \
        -e inject=sendmsg:signal=STOP:when=2
    : >"$T/go"
    poll_until 10 grep -q wait4 "$T/calls"
    redis publish "rlock:{k}:$(<"$T/owner")" 1
    run -0 rlock run -w 60s k -- true
    kill "$tracer"
    kill -CONT "${pid[a]}"
    ends_with a 0
}

@test "H164 an agent is killed before the signal of --on-lost that it has claimed: rlock sends it" {
    need_strace
    bg a rlock run --lease 20s --on-lost signal:USR1 k -- bash -c "trap 'echo usr1 >>\"$T/got\"' USR1
        : >'$T/up'; until [[ -e $T/go ]]; do sleep 0.05; done"
    poll_until 10 test -e "$T/up"
    suspend a STOP
    agent=$(agent_of "${pid[a]}")
    trace "$agent" -o /dev/null -e trace=kill,pidfd_send_signal \
        -e inject=kill,pidfd_send_signal:signal=KILL
    run -0 rlock force-release --yes --now k
    poll_until 20 gone "$agent"
    [[ ! -e $T/got ]]
    kill -CONT "${pid[a]}"
    poll_until 20 test -s "$T/got"
    : >"$T/go"
    ends_with a 79
}

@test "the signal of --on-lost of an agent reaches a command that has left its process group" {
    bg a rlock run --on-lost signal:USR1 k -- perl -e '$SIG{USR1} = sub { open(F, ">$ENV{T}/got") };
        setpgrp(0, getpgrp(getppid())) or die; open(F, ">$ENV{T}/up");
        select(undef, undef, undef, 0.05) until -e "$ENV{T}/go"'
    poll_until 10 test -e "$T/up"
    kill -STOP "${pid[a]}"
    run -0 rlock force-release --yes --now k
    poll_until 20 test -e "$T/got"
    kill -CONT "${pid[a]}"
    : >"$T/go"
    ends_with a 79
}

@test "H93 SIGSTOP of rlock for a moment is forgiven" {
    stay a k --lease 12s --kill-after 0
    kill -STOP "${pid[a]}"
    sleep 0.5 # the moment
    kill -CONT "${pid[a]}"
    renewed k
    ends_well a
}

@test "H75 SIGSTOP of the agent: rlock ends the command in time" {
    contended 6s ignore
    kill -STOP "$agent"
    b_begins_after_a
    ends_with a 79
}

@test "H75 kill -9 of the agent, then of rlock: the tree is gone before anyone else begins" {
    contended 9s ignore
    kill_agent a
    renewed k
    kill -KILL "$a"
    ends_with a 137
    b_begins_after_a
}

@test "H94 both stopped, then both killed: the command dies with them" {
    at_work a k forever --lease 6s -- ignore
    queued k work b k 0.3
    command=$(command_of "${pid[a]}")
    kill_both a
    poll_until 2 gone "$command"
    finish b
    no_overlap
}
