# --stop: work that is elsewhere, and not a descendant of the command, ends with it. refuses PID:
# the kernel refuses all messages of that process. cleaner COMMAND: rlock a, whose --stop writes a
# line to $T/stopped and then does COMMAND, and whose command makes $T/termed at TERM.

load helper
load elsewhere

setup() {
    start_test
    start_daemon
}

# "elsewhere" has a daemon do the work, which is not a descendant of the command: a stop without
# --stop does not reach it.
@test "H151 work of a daemon continues after a stop; with --stop it has ended before TERM" {
    bg a rlock run k -- elsewhere run a
    working a
    rlock force-release --yes k
    ends_with a 79
    poll_until 10 fails no_more a
    elsewhere kill a
    no_more a

    bg b rlock run --stop 'elsewhere kill b; ls "$T/termed" 2>&1
        env | grep ^RLOCK_ | sort' k -- sh -c 'rm "$T/termed"; exec elsewhere run b'
    working b
    rlock force-release --yes k
    ends_with b 79
    no_more b
    contains "$T/termed" TERM
    stderr=$(<"$T/b.err")
    [[ ! -s $T/b.out ]]
    stderr_line "No such file"
    stderr_line '^RLOCK_KEY=k$'
    stderr_line '^RLOCK_FENCE=[0-9]+$'
    [[ $stderr =~ RLOCK_STOP_MS=([0-9]+) && $stderr != *RLOCK_OWNER* ]]
    within 1 5000 "${BASH_REMATCH[1]}"
}

# Neither the command nor that of --stop ends by itself, so both must be killed at --kill-after.
@test "H151 KILL is not delayed, and is for the command of --stop too" {
    timed 6000 20000 run -124 --separate-stderr rlock run --at-most 1s --kill-after 5s \
        --stop 'while :; do echo >>"$T/traces"; sleep 0.02; done' k -- \
        sh -c 'trap "" TERM; while :; do sleep 0.02; done'
    stderr_line "^rlock: k: the command of --stop was killed \(signal 9\)$"
    seen=$(wc -l <"$T/traces")
    pause 200 # ten traces of a CMD that lives
    [[ $(wc -l <"$T/traces") == "$seen" ]]
}

@test "H151 the command ends before that of --stop: the lock is kept until both have ended" {
    bg a rlock run --at-most 500ms --kill-after 20s --stop ": >'$T/up'; await '$T/go'" \
        k -- sh -c "await '$T/up'"
    poll_until 10 test -e "$T/up"
    poll_until 10 eval '! pgrep -xf "await $T/up"'
    held k
    : >"$T/go"
    ends_with a 124
    is_free k
}

@test "H151 a failure of --stop is told; a command that ends by itself or a signal needs none" {
    run -124 --separate-stderr rlock run -q --at-most 500ms --stop 'exit 3' k -- sleep 1000
    stderr_line '^rlock: k: the command of --stop ended \(status 3\)$'
    quiet 5 run --stop 'touch "$T/stopped"' k -- sh -c 'exit 5'
    hold a k --stop 'touch "$T/stopped"'
    terminate a
    [[ $status == 143 && ! -e $T/stopped ]]
    run -64 rlock run --stop '' k -- true
    # A CMD that reads finds an end, and not the standard input of rlock.
    run -124 --separate-stderr rlock run --at-most 500ms --stop 'cat; touch "$T/stopped"' k -- sleep 1000 < <(sleep 100)
    [[ -e $T/stopped && $stderr != *--stop* ]]
}

@test "H151 a lock that is lost, taken away or not renewed: --stop's command is run" {
    for how in force-release store; do
        rm -f "$T/stopped"
        hold a k --lease 9s --stop 'echo "$RLOCK_STOP_MS" >"$T/stopped"'
        if [[ $how == store ]]; then
            kill -STOP "$(redis_pid)"
        else
            rlock force-release --yes k 2>/dev/null
        fi
        finish a 20
        kill -CONT "$(redis_pid)"
        [[ $status == 79 ]]
        within 1 5000 "$(<"$T/stopped")"
    done
    rm "$T/stopped"
    run -124 rlock run --lease 6s --no-renew --stop 'touch "$T/stopped"' k -- sleep 1000
    [[ -e $T/stopped ]]
}

# absent GROUP: it has no process.
absent() {
    ! kill -0 -- "-$1"
}

@test "H151 rlock is killed: its agent runs the command of --stop, and keeps the lock until then" {
    bg a rlock run --lease 60s --kill-after 30s --stop "echo \"\$RLOCK_KEY \$RLOCK_FENCE\" >'$T/up'; await '$T/go'; elsewhere kill a" \
        k -- elsewhere run a
    working a
    agent=$(agent_of "${pid[a]}") command=$(command_of "${pid[a]}")
    kill -STOP "$agent"
    kill -KILL "${pid[a]}"
    # The kernel ends the command with rlock: its group is gone before the agent looks.
    poll_until 10 absent "$command"
    kill -CONT "$agent"
    poll_until 10 test -s "$T/up"
    [[ $(<"$T/up") == "k "[0-9]* ]]
    held k
    run -75 rlock run -n k -- true
    : >"$T/go"
    timed 0 20000 run -0 rlock run k -- true
    no_more a
}

# rlock, once continued, must not run --stop again: the work may be that of the next owner.
@test "H151 rlock is stopped: its agent runs the command of --stop before the lease ends" {
    hold a k --lease 9s --stop 'elsewhere kill a; echo "$RLOCK_STOP_MS" >>"$T/left"'
    elsewhere run a &
    working a
    suspend a STOP
    run -0 rlock run k -- cp "$LOG" "$T/then"
    within 1 2500 "$(<"$T/left")"
    no_more a
    [[ $(grep -c '^a ' "$LOG") == $(grep -c '^a ' "$T/then") ]]
    kill -CONT "${pid[a]}"
    ends_with a 79
    run -1 contains "$T/a.err" '--stop'
    [[ $(wc -l <"$T/left") == 1 ]] # not once more, when it may be another one's work
}

# Returns when a hears who asks for its lock: an rlock that is stopped before that hears of nothing
# until its lease ends.
cleaner() {
    bg_up a rlock run --lease 10m --kill-after 20s --stop "echo >>'$T/stopped'; $1" k -- \
        sh -c "trap ': >\"$T/termed\"; exit 3' TERM; : >'$T/a.up'; while :; do sleep 0.05; done"
    hears a k
}

@test "H164 the lock of a stopped rlock is taken away: its agent runs --stop, TERMs and releases" {
    for now in '' --now; do
        rm -f "$T/stopped" "$T/termed"
        cleaner :
        suspend a STOP
        rlock force-release --yes $now k
        poll_until 10 test -e "$T/termed"
        run -0 rlock run -w 50s k -- true
        kill -CONT "${pid[a]}"
        ends_with a 79
        contains "$T/a.err" 'lock lost: '
        [[ $(wc -l <"$T/stopped") == 1 ]]
    done
}

# The agent has claimed the end of the command, so rlock waits for it instead of doing the same.
@test "H164 rlock continues while its agent ends the command: --stop is run once, and waited for" {
    cleaner "await '$T/go'"
    suspend a STOP
    bg f rlock force-release --yes k
    poll_until 20 test -e "$T/stopped"
    kill -CONT "${pid[a]}"
    poll_until 10 contains "$T/a.err" 'lock lost: '
    held k
    [[ ! -e $T/termed ]]
    : >"$T/go"
    ends_with a 79
    [[ -e $T/termed && $(wc -l <"$T/stopped") == 1 ]]
    finish f
    is_free k
}

# --stop is run twice, as rlock cannot know how far the first one came.
@test "H164 the agent that ends the command is killed: rlock runs --stop again, and ends it" {
    cleaner "await '$T/go'"
    suspend a STOP
    bg f rlock force-release --yes k
    poll_until 20 test -e "$T/stopped"
    kill -KILL "$(agent_of "${pid[a]}")"
    : >"$T/go"
    kill -CONT "${pid[a]}"
    ends_with a 79
    [[ -e $T/termed && $(wc -l <"$T/stopped") == 2 ]]
    finish f
}

@test "H164 the kernel refuses the word of an agent that ends a command: its daemon ends, too: 79" {
    need_strace
    bg_up a rlock run --lease 10m --kill-after 5s k -- sh -c "
        trap ': >\"$T/termed\"; exit 3' TERM
        setsid sh -c 'trap \"\" TERM; echo \$\$ >\"$T/left\"; : >\"$T/a.up\"; while :; do sleep 0.05; done' &
        while :; do sleep 0.05; done"
    hears a k
    agent=$(agent_of "${pid[a]}")
    suspend a STOP
    refuses "$agent"
    bg f rlock force-release --yes k
    poll_until 20 test -e "$T/termed"
    kill -CONT "${pid[a]}"
    ends_with a 79
    test -s "$T/refused"
    gone "$(<"$T/left")"
    finish f
    is_free k
}

@test "H164 rlock is stopped after TERM, and could not tell its agent: what is left is killed" {
    need_strace
    bg_up a rlock run --lease 10m --kill-after 10s k -- sh -c "
        trap ': >\"$T/termed\"; until [ -e \"$T/stopped\" ]; do sleep 0.05; done; exit 3' TERM
        setsid sh -c 'trap \"\" TERM; echo \$\$ >\"$T/left\"; : >\"$T/a.up\"; while :; do sleep 0.05; done' &
        while :; do sleep 0.05; done"
    hears a k
    refuses "${pid[a]}"
    bg f rlock force-release --yes k
    poll_until 20 test -e "$T/termed"
    kill -STOP "${pid[a]}"
    poll_until 10 in_state "${pid[a]}" t # as its tracer sees it
    : >"$T/stopped"
    poll_until 30 gone "$(<"$T/left")"
    held k
    alive "${pid[f]}"
    kill -CONT "${pid[a]}"
    ends_with a 79
    finish f
    is_free k
}

@test "H164 an agent that ends a command is killed untold: the next one releases the lock" {
    need_strace
    bg_up a rlock run --lease 10m --kill-after 30s k -- \
        sh -c "trap ': >\"$T/termed\"; exit 3' TERM; : >'$T/a.up'; while :; do sleep 0.05; done"
    hears a k
    agent=$(agent_of "${pid[a]}")
    suspend a STOP
    refuses "$agent"
    bg f rlock force-release --yes k
    poll_until 20 test -e "$T/termed"
    kill -KILL "$agent"
    kill -CONT "${pid[a]}"
    ends_with a 79
    test -s "$T/refused"
    finish f
    is_free k
}

@test "H164 rlock is stopped after TERM: its agent kills the command after --kill-after" {
    local options commands=() row=0
    for options in '--lease 9s' '--lease 60s --on-lost continue' '--lease 60s'; do
        row=$((row + 1))
        # shellcheck disable=SC2086 # they are words
        bg_up "a$row" rlock run $options --at-most 4s --kill-after 4s "k$row" -- sh -c "
            trap ': >\"$T/termed$row\"' TERM; : >'$T/a$row.up'; while :; do sleep 0.05; done"
        commands[row]=$(command_of "${pid[a$row]}")
    done
    for row in 1 2 3; do
        poll_until 10 test -e "$T/termed$row"
        kill -STOP "${pid[a$row]}"
    done
    for row in 1 2 3; do
        poll_until 10 in_state "${commands[row]}" Z
        kill -CONT "${pid[a$row]}"
        ends_with "a$row" 124
    done
}

# The shim stops rlock before the fork for --stop, and behind it. At the first stop the lease ends,
# and the agent acts.
@test "H151 rlock stands still before --stop: its agent runs it, and rlock does not any more" {
    bg a env LD_PRELOAD="$RLOCK_TEST_TOOLS/shim_fork.so" rlock run --lease 9s --kill-after 60s \
        --at-most 1s --stop 'echo stop >>"$T/order"' k -- \
        sh -c 'trap "echo TERM >>\"\$T/order\"; exit" TERM; while :; do sleep 0.05; done'
    poll_until 10 in_state "${pid[a]}" T
    bg b rlock run k -- sh -c 'echo next >>"$T/order"; exec await "$T/go"'
    poll_until 15 holds b k
    kill -CONT "${pid[a]}"
    poll_until 10 eval 'in_state "${pid[a]}" T && ! pgrep -P "${pid[a]}" -r R,S,D -x "rlock|sh"'
    kill -CONT "${pid[a]}"
    ends_with a 79
    : >"$T/go"
    ends_with b 0
    [[ $(xargs <"$T/order") == 'stop TERM next' ]]
}

# TERM is for the command only. That of --stop may take its time until KILL, which ends both.
@test "H151 rlock is stopped beside its --stop: TERM of its agent is not for that, KILL is" {
    bg a rlock run --lease 9s --kill-after 60s --at-most 1s --stop '
        trap "echo wrong >>\"\$T/order\"" TERM
        echo stop >>"$T/order"; "$RLOCK_TEST_TOOLS/await" "$T/termed"; echo done >>"$T/order"
        while :; do sleep 0.05; done' k -- sh -c '
        trap "echo TERM >>\"\$T/order\"; : >\"\$T/termed\"; exit" TERM; while :; do sleep 0.05; done'
    poll_until 10 test -s "$T/order"
    kill -STOP "${pid[a]}"
    run -0 rlock run k -- sh -c 'echo next >>"$T/order"'
    kill -CONT "${pid[a]}"
    ends_with a 79
    [[ $(xargs <"$T/order") == 'stop TERM done next' ]]
}

# When rlock continues, its lock is another owner's, whose work --stop would end.
@test "H151 rlock stands still before --stop until another one has the lock: it is not run" {
    bg a env LD_PRELOAD="$RLOCK_TEST_TOOLS/shim_fork.so" rlock run --lease 5s --at-most 1s \
        --stop 'echo >>"$T/stopped"' k -- sh -c 'trap "" TERM; while :; do sleep 0.05; done'
    poll_until 10 in_state "${pid[a]}" T
    bg b rlock run k -- await "$T/go"
    poll_until 15 holds b k
    kill -CONT "${pid[a]}"
    poll_until 10 eval 'in_state "${pid[a]}" T && ! pgrep -P "${pid[a]}" -r R,S,D -x "rlock|sh"'
    [[ ! -e $T/stopped ]]
    kill -CONT "${pid[a]}"
    finish a
    : >"$T/go"
    ends_with b 0
}
