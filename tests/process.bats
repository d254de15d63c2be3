# The command's process and what is around it.

load helper
load slow_files

# One process stays in the group of the command, one in a session of its own.
@test "H96 processes that the command leaves continue, and hold nothing" {
    run -3 rlock run k -- bash -c "exec >/dev/null 2>&1
        sleep 300 & setsid sleep 300 & echo \$! >'$T/setsid'; jobs -p >'$T/jobs'; exit 3"
    run -0 rlock run -n k -- true
    for one in $(cat "$T/jobs"); do
        alive "$one"
    done
    kill -0 "$(<"$T/setsid")"
}

@test "H96 a lost lock ends everything that the command started" {
    local one pids time=300.$$ # no other process sleeps so long
    bg_up a rlock run --lease 9s k -- bash -c "
        sleep $time & echo \$!; setsid sleep $time & echo \$!; (setsid setsid sleep $time & sleep $time) &
        (env -i sleep $time &) ; env -i setsid sleep $time & echo \$!; : >'$T/a.up'; sleep $time"
    poll_until 10 eval '[[ $(pgrep -fc "^sleep $time\$") == 7 ]]'
    pids=$(pgrep -f "^sleep $time\$")
    redis del 'rlock:{k}'
    ends_with a 79
    for one in $pids; do
        gone "$one"
    done
}

@test "H92 kill -9 of rlock while it waits leaves no command and no place in the queue" {
    hold a k --lease 60s
    queue w k
    agent=$(agent_of "${pid[w]}")
    kill -KILL "${pid[w]}"
    poll_until 5 gone "$agent"
    poll_until 12 has_waiters k 0
    terminate a
    run -0 rlock run -w 50s k -- true
    [[ ! -e $LOG ]]
}

@test "the command has a process group of its own, led by itself" {
    run -0 rlock run k -- sh -c 'echo $$ $(ps -o pgid= -p $$)'
    [[ ${output% *} == "${output#* }" ]]
}

@test "signals reach the command, each once" {
    for name in HUP INT QUIT TERM USR1 USR2 ALRM WINCH URG IO PWR XCPU XFSZ VTALRM PROF RTMIN \
        RTMAX-3; do
        rm -f "$T/got"
        bg_up a rlock run k -- bash -c "trap 'echo x >>\"$T/got\"' $name
            : >'$T/a.up'; until [ -s '$T/got' ]; do sleep 0.02; done; sleep 0.1; exit 5"
        kill -"$name" "${pid[a]}"
        finish a
        echo "$name: $status, $(cat "$T/got")"
        [[ $status == 5 && $(<"$T/got") == x ]]
    done
}

@test "a signal reaches a command that has joined the process group of rlock" {
    bg_up a rlock run k -- perl -e 'setpgrp(0, getpgrp(getppid())) or die; open(F, ">$ENV{T}/a.up");
        sleep 1000'
    terminate a 143
    is_free k
}

# RLIMIT_CPU is in seconds. The kernel's signal is blocked until rlock reads its signals.
@test "the kernel's SIGXCPU, for a limit of rlock's own, is not handed on" {
    run -0 python3 -c '
import os, resource, signal, sys
forever = resource.getrlimit(resource.RLIMIT_CPU)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGXCPU])
resource.setrlimit(resource.RLIMIT_CPU, (1, forever[1]))
while signal.SIGXCPU not in signal.sigpending():
    pass
resource.setrlimit(resource.RLIMIT_CPU, forever)
os.execvp(sys.argv[1], sys.argv[1:])' rlock run k -- echo ran 3>&-
    [[ $output == ran ]]
}

@test "rlock waits for the command's own clean-up, whatever the number of signals" {
    bg_up a rlock run k -- bash -c "trap 'echo x >>\"$T/got\"' TERM
        : >'$T/a.up'; until [ -e '$T/go' ]; do sleep 0.02; done; exit 6"
    kill -TERM "${pid[a]}"
    poll_until 5 test -s "$T/got"
    kill -TERM "${pid[a]}"
    poll_until 5 eval '[[ $(wc -l <"$T/got") == 2 ]]'
    run -75 rlock run -n k -- true
    touch "$T/go"
    ends_with a 6
}

# A stopped process does not take TERM before it is continued. First the command is stopped, then a
# process that it left and that --wait-descendants waits for.
@test "H165 a signal that asks for the end reaches a command that was stopped, and what it left" {
    for name in TERM HUP INT QUIT; do
        hold a k
        command=$(command_of "${pid[a]}")
        kill -STOP "$command"
        [[ $name == HUP ]] || poll_until 5 in_state "$command" T # or else both at once
        kill "-$name" "${pid[a]}"
        ends_with a $((128 + $(kill -l "$name")))
        bg_up a rlock run --wait-descendants k -- \
            bash -c "(trap 'exit 1' $name; while :; do sleep 0.05; done) & echo \$! >'$T/left'; : >'$T/a.up'"
        poll_until 5 eval '[[ $(command_of "${pid[a]}") == "$(<"$T/left")" ]]'
        kill -STOP "$(<"$T/left")"
        poll_until 5 in_state "$(<"$T/left")" T
        kill "-$name" "${pid[a]}"
        ends_with a 0
    done
}

# The process that is left has a group of its own, or is stopped.
@test "H165 a signal reaches what a command left whose end was not noted yet" {
    for start in setsid command; do
        bg_up a rlock run --wait-descendants k -- bash -c "$start bash -c 'trap \"exit 1\" TERM
            echo \$\$ >$T/left; : >$T/a.up; while :; do sleep 0.05; done' & exec sleep 1000"
        left=$(<"$T/left")
        command=$(command_of "${pid[a]}")
        kill -STOP "${pid[a]}"
        [[ $start == setsid ]] || kill -STOP "$left"
        kill -KILL "$command"
        poll_until 5 in_state "$command" Z
        kill -TERM "${pid[a]}"
        kill -CONT "${pid[a]}"
        ends_with a 137
    done
}

@test "H165 TSTP for rlock where no shell could continue it: the command continues" {
    bg_up a setsid rlock run k -- bash -c "trap 'echo x >>\"$T/got\"' CONT
        : >'$T/a.up'; until [ -s '$T/got' ]; do sleep 0.02; done; exit 5"
    kill -TSTP "${pid[a]}"
    ends_with a 5
}

# slow_command SECONDS OPTION...: executes such a sleep in the background, as "a".
slow_command() {
    rm -f "$T"/slow*
    cp "$(type -P sleep)" "$T/slow"
    make_slow "$T/slow"
    bg a rlock run "${@:2}" k -- "$T/slow" "$1"
    poll_until 10 test -e "$T/slow.asked"
}

# The file is on a file system that does not answer, so the process of the command hangs in
# execve(2).
@test "H170 a command takes long to be executed: it is renewed, and ends by TERM and --at-most" {
    slow_command 1000 --lease 9s
    renewed k
    run -75 rlock run -n k -- true
    kill -TERM "${pid[a]}"
    ends_with a 143 5
    answers_at_last slow
    slow_command 1000 --at-most 1s
    ends_with a 124 5
    answers_at_last slow
    slow_command 0
    run -75 rlock run -n k -- true
    answers_at_last slow
    ends_with a 0
}

# The process of the command hangs in execve(2) of first/slow until the lease is over, and the lock
# is another owner's. The answer is then an error, after which a search of PATH would try
# second/slow.
@test "H170 a file system says after the lease that a command is not there: no other one is tried" {
    mkdir "$T/first" "$T/second"
    printf '#!/nowhere\n' >"$T/first/slow"
    printf '#!/bin/sh\n: >%q\n' "$T/started" >"$T/second/slow"
    chmod +x "$T"/*/slow
    make_slow "$T/first/slow"
    PATH=$T/first:$T/second:$PATH bg a rlock run --lease 2s k -- slow
    poll_until 10 test -e "$T/first/slow.asked"
    command=$(command_of "${pid[a]}")
    stop_both a
    run -0 rlock run -w 60s k -- true
    answers_at_last slow
    poll_until 10 in_state "$command" Z
    kill -CONT "${pid[a]}" "$agent"
    finish a
    [[ $status != 0 && ! -e $T/started ]]
}

# The same for the sh of --stop: an error of first/sh, which comes when the lock is another owner's,
# must not lead to the next sh in PATH.
@test "H151 a file system says after the lease that sh is not there: --stop is not run" {
    mkdir "$T/first"
    printf '#!/nowhere\n' >"$T/first/sh"
    chmod +x "$T/first/sh"
    make_slow "$T/first/sh"
    PATH=$T/first:$PATH bg a rlock run --lease 3s --at-most 100ms --stop ": >'$T/stopped'" k -- \
        sleep 1000
    poll_until 10 test -e "$T/first/sh.asked"
    stop_both a
    shell=$(command_of "${pid[a]}" | tail -n 1)
    run -0 rlock run -w 60s k -- true
    answers_at_last sh
    poll_until 10 in_state "$shell" Z
    kill -CONT "${pid[a]}" "$agent"
    finish a
    [[ ! -e $T/stopped ]]
}

# rlock stops its command before it stops by TSTP. Without its agent, the command must not
# continue when another owner has the lock.
@test "H99 TSTP, and the agent is stopped or killed: the command does not continue beside another" {
    local signal LOG agents=()
    for signal in STOP KILL; do
        LOG=$T/log.$signal
        as_job at_work "a$signal" "$signal" forever --lease 9s --kill-after 0
        agents+=("$(agent_of "${pid[a$signal]}")")
        suspend "a$signal" TSTP
        poll_until 5 in_state "$(command_of "${pid[a$signal]}")" T
        kill "-$signal" "${agents[-1]}"
        work "b$signal" "$signal" 0.3
    done
    all_end 0 10 bSTOP bKILL
    kill -CONT "${agents[0]}" "${pid[aSTOP]}" "${pid[aKILL]}"
    all_end 79 5 aSTOP aKILL
    for signal in STOP KILL; do
        LOG=$T/log.$signal
        no_overlap
    done
}

# Returns at once when the agent of a stopped rlock has killed the command: what follows has to come
# before the lease ends.
killed_by_agent() {
    until in_state "$command" Z; do
        pause 5
    done
}

# The agent has killed the command when the answer to its renewal comes, just before the end of the
# lease. A lock that is renewed then must not hide why the command ended.
@test "H164 the agent of a stopped rlock kills the command, is answered then: the lock is lost" {
    bg_up a rlock run --lease 6s k -- \
        sh -c "trap '' TERM; : >'$T/a.up'; while :; do sleep 0.05; done"
    command=$(command_of "${pid[a]}")
    kill -STOP "$(redis_pid)" "${pid[a]}"
    killed_by_agent
    kill -CONT "$(redis_pid)"
    pause 400 # before the lease ends, a renewal may be answered
    kill -CONT "${pid[a]}"
    ends_with a 79
    contains "$T/a.err" 'rlock: k: lock lost: not renewed in time'
}

# With no descriptor left above standard error, rlock cannot open a channel to another agent.
@test "H75 the agent of a waiter is killed, and no other one can be started: exit 71" {
    export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
    hold a k --lease 30s
    bg_says b "waiting for k" rlock run k -- touch "$T/ran"
    prlimit --pid "${pid[b]}" --nofile=3
    kill -KILL "$(agent_of "${pid[b]}")"
    ends_with b 71
    [[ ! -e $T/ran ]]
}

# rlock handles USR1 and PIPE itself, and needs CHLD: if that stayed ignored, the kernel would reap
# the command, and its status would be lost.
@test "H98 the command starts with the signals that rlock was started with" {
    local other look=(grep -E '^Sig(Blk|Ign)' /proc/self/status)
    for other in --block-signal=USR2 --ignore-signal=CHLD; do
        plain=$(env --ignore-signal=USR1,PIPE "$other" "${look[@]}")
        run -0 env --ignore-signal=USR1,PIPE "$other" rlock run k -- "${look[@]}"
        [[ $output == "$plain" ]]
    done
    run -7 env --ignore-signal=CHLD rlock run k -- sh -c 'exit 7'
}

@test "signals that nohup ignores stay ignored, for rlock and for the command" {
    bg_up a env --ignore-signal=HUP rlock run k -- \
        sh -c ": >'$T/a.up'; await '$T/go'; exit 4"
    kill -HUP "${pid[a]}"
    kill -HUP -- "-$(command_of "${pid[a]}")"
    touch "$T/go"
    ends_with a 4
}

# Fifty orphans of the command end, which rlock inherits, and thirty runs end: neither leaves a
# process that was not waited for.
@test "H106 no zombies, neither the command's orphans nor rlock's own" {
    bg_up a rlock run k -- bash -c "for i in {1..50}; do (true & ) ; done; : >'$T/a.up'; sleep 300"
    poll_until 5 eval '! ps -o stat= --ppid "${pid[a]}" | grep Z'
    terminate a
    for i in {1..30}; do
        rlock run k -- true
    done
    run ps -o stat=,comm= --ppid $$
    [[ $output != *rlock* ]]
}

@test "H107 standard error is not read: renewals and deadlines continue" {
    mkfifo "$T/full"
    bg reader sleep 300
    exec 8<>"$T/full"
    env --default-signal=INT rlock run -v --lease 9s k -- \
        sh -c "await '$T/go'" \
        </dev/null >/dev/null 2>"$T/full" 3>&- 8>&- &
    pid[a]=$!
    # Fill the pipe, which is never read.
    timeout 1 dd if=/dev/zero of="$T/full" bs=4096 count=100 2>/dev/null || true
    poll_until 10 held k
    renewed k
    : >"$T/go"
    ends_with a 0
    env --default-signal=INT rlock run -v --lease 9s k -- \
        worker "$LOG" a forever </dev/null >/dev/null 2>"$T/full" 3>&- 8>&- &
    pid[a]=$!
    working a
    redis del 'rlock:{k}'
    ends_with a 79
    exec 8>&-
}

@test "H107 standard error is not made non-blocking for others" {
    run -0 --separate-stderr rlock run -v k -- sed -n 's/^flags:\t//p' /proc/self/fdinfo/2
    [[ $output ]]
    (((output & 04000) == 0)) # O_NONBLOCK; the flags are octal
}

@test "H109 no process can be forked after the grant: exit 71, and the lock is released" {
    [[ $EUID == 0 ]] || skip "only root can take another user's processes away"
    local copy=$BATS_FILE_TMPDIR/bin
    mkdir -p "$copy" && cp -L "$RLOCK" "$copy/rlock" && chmod -R a+rX "$BATS_RUN_TMPDIR"
    setpriv --reuid 65432 --clear-groups "$copy/rlock" --version >/dev/null 2>&1 ||
        skip "another user cannot run it here"
    chmod 777 "$REDIS_SOCK"
    hold a k --lease 60s
    # rlock and its agent, and not one more
    queued k bg w setpriv --reuid 65432 --clear-groups bash -c 'ulimit -u 2; exec "$@"' bash \
        "$copy/rlock" run --lease 60s k -- touch "$T/run"
    kill "${pid[a]}"
    finish w
    [[ $status == 71 && ! -e $T/run ]]
    contains "$T/w.err" "rlock: "
    run -0 rlock status -q k
}

@test "H109 no descriptors to be had: exit 71" {
    # A sanitizer looks for leaks through descriptors of its own, at the end, when there are none.
    export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
    for n in 4 5 6 7; do
        run bash -c 'ulimit -n '"$n"'; exec rlock run k -- touch '"$T/run" 3>&-
        [[ $status == 71 || -e $T/run ]]
        rm -f "$T/run"
    done
    run -0 rlock status -q k
}

@test "H109 no descriptors to be had once the agent has the lock: exit 71, and it is released" {
    local first
    need_strace
    strace -qq -o "$T/calls" -e trace=fcntl "$RLOCK" run k -- true 3>&-
    # With the agent started, rlock tries whether there are as many as it will need.
    first=$(grep -n -m 1 F_DUPFD_CLOEXEC "$T/calls")
    run -71 strace -qq -o "$T/calls" -e trace=fcntl \
        -e inject=fcntl:error=EMFILE:delay_enter=1s:when="${first%%:*}" \
        "$RLOCK" run --lease 60s k -- touch "$T/ran" 3>&-
    contains "$T/calls" 'INJECTED'
    [[ ! -e $T/ran ]]
    is_free k
}

# With each limit another step fails, or none does: then the status is 0.
@test "H109 no descriptors to be had for renew and release: exit 71, and no harm" {
    export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
    owner=$(rlock acquire --lease 60s k)
    for n in '4 renew' '5 renew' '6 renew' '4 release'; do
        run bash -c 'ulimit -n '"${n% *}"'; exec rlock '"${n#* }"' --owner "$0" k' "$owner" 3>&-
        [[ $status == 0 || $status == 71 && $output == *"Too many open files"* ]]
    done
}

@test "H109 no descriptors to be had to find a server of any kind: exit 71, and why" {
    export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
    for url in "$RLOCK_URL" redis://localhost:1 sentinel://localhost:1/main cluster://localhost:1 \
        zookeeper://localhost:1; do
        RLOCK_URL=$url run bash -c \
            'ulimit -n 4; exec rlock status --server-wait 0' 3>&-
        [[ $status == 71 && $output == *"Too many open files"* ]]
        RLOCK_URL=$url run bash -c 'ulimit -n 4; exec rlock doctor' 3>&-
        [[ $status == 71 && $output == *"Too many open files"* ]]
    done
}

# The connection is closed after all of them have gone, so that the next one has to do without them.
@test "H110 program, directory and password file are gone: the lock is kept and released" {
    redis config set requirepass s3cret
    export REDISCLI_AUTH=s3cret
    mkdir "$T/bin" "$T/cwd"
    cp -L "$RLOCK" "$T/bin/rlock"
    echo s3cret >"$T/password"
    cd "$T/cwd"
    bg_up a "$T/bin/rlock" run --password-file "$T/password" --lease 12s k -- \
        sh -c ": >'$T/a.up'; await '$T/go'; exit 8"
    rm -r "${T:?}/bin" "$T/cwd" "$T/password"
    redis client kill type normal skipme yes
    RLOCK_PASSWORD=s3cret renewed k
    : >"$T/go"
    finish a
    cd /
    [[ $status == 8 && ! -s $T/a.err ]]
    RLOCK_PASSWORD=s3cret run -0 rlock status -q k
}

# Process 1 gets the orphans of its container, and no signal that it has no handler for.
@test "rlock as process 1 of a container passes statuses and signals on" {
    unshare --pid --fork --mount-proc true 2>/dev/null || skip "no process name spaces here"
    run -5 unshare --pid --fork --mount-proc rlock run k -- sh -c '(sleep 0.1 &); exit 5' 3>&-
    run -0 rlock status -q k
    bg a unshare --pid --fork --mount-proc rlock run k -- sleep 300
    poll_until 10 held k
    one=$(children_of "${pid[a]}")
    kill -TERM "$one"
    ends_with a 143
    run -0 rlock status -q k
}

@test "a child that the caller had before it became rlock ends: the status is that of the command" {
    run -4 bash -c 'sleep 0.2 & exec rlock run k -- sh -c "sleep 0.5; exit 4"' 3>&-
}
