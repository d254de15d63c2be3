# Processes that a command leaves, and where they may hide from rlock, which must end them.
# daemonize: a daemon that forks 300 times, so that one look at /proc seldom finds it; none_left: no
# process that has left a trace lives; two_workers: two processes in one process group, which ignore
# TERM; a_ends_before_b SIGNAL: a runs under a lock that b waits for, its rlock gets that signal,
# and nothing of a lives when b begins. with_jobs COMMAND: a, whose shell had children before it
# became rlock; kill_rlock_after_its_look: rlock is killed seconds after the command began, and
# nothing of a lives when b begins.

load helper

# A daemon that forks 300 times is in neither place of one look at /proc most of the time; one that
# forks twice is so as well, if only for a moment.
daemonize() {
    echo daemonize "${1:-300}"
}

none_left() {
    local one
    for one in $(traced); do
        poll_until 10 gone "$one"
    done
}

@test "H121 --wait-descendants: a daemon that is still forking is waited for" {
    for i in {1..4}; do
        rm -f "$T/end"
        # shellcheck disable=SC2046 # they are words
        bg a rlock run --wait-descendants k -- $(daemonize) sh -c "sleep 0.1; : >'$T/end'"
        finish a
        [[ $status == 0 && -e $T/end ]]
    done
}

@test "H121 --wait-descendants: no client gets the lock before a daemon has ended" {
    for i in {1..3}; do
        rm -f "$LOG"
        # shellcheck disable=SC2046 # they are words
        bg a rlock run --wait-descendants k -- $(daemonize) worker "$LOG" a 0.2
        # While it forks; or else after that.
        poll_until 10 eval 'works a || held k'
        work b k 0.1
        finish a
        finish b
        no_overlap
    done
}

# trapped DURATION COMMAND: a is told to end, and killed after that DURATION; its trap starts the
# COMMAND. Once more where it was told before it had set its trap.
trapped() {
    rm -f "$T/ready"
    until [[ -e $T/ready ]]; do
        bg a rlock run --at-most 1s --kill-after "$1" k -- bash -c "
            trap '$2; exit' TERM
            : >'$T/ready'
            while :; do sleep 0.02; done"
        ends_with a 124
    done
}

# The daemon is told to end like everything else, but may be born after that. The first one forks 60
# times, and ends by itself within the 20 s; the second one stays until it is killed after 1 s.
@test "H121 processes that a TERM trap starts in the background are ended and waited for, too" {
    for i in {1..3}; do
        rm -f "$T/end" "$LOG"
        trapped 20s "$(daemonize 60) sh -c \"sleep 0.2; : >$T/end\""
        [[ -e $T/end ]]
        trapped 1s "$(daemonize) worker \"$LOG\" a forever ignore"
        none_left
    done
}

# The command would continue for half a minute or more; it ends while /proc is read, for long.
@test "H121 a command that forks faster than /proc can be read is ended, and the lock is free" {
    for i in {1..3}; do
        bg a env LD_PRELOAD="$RLOCK_TEST_TOOLS/shim_readdir.so" rlock run \
            --at-most 500ms --kill-after 0 k -- sh -c "$(daemonize 300000) true; exec sleep 1000"
        finish a 20
        [[ $status == 124 && $(<"$T/a.err") != *"could not be"* ]]
        is_free k
    done
}

# All that the command has started has inherited a file that is locked. Where rlock is slower than
# the processes that it kills, they end by themselves before the lease does.
@test "H92 H121 kill -9 of rlock while its command forks all the time: ended before anyone begins" {
    for i in {1..3}; do
        bg_up a rlock run --lease 40s k -- sh -c "exec 9>'$T/lives'; flock 9; : >'$T/a.up'
            $(daemonize 10000) true; exec sleep 1000"
        kill -KILL "${pid[a]}"
        bg b rlock run k -- flock -n "$T/lives" true
        ends_with b 0 60
    done
}

# A look at all of them takes longer than what is left of the lease at that time.
@test "H163 a look at all processes takes long: those that are known are killed in time" {
    bg_prints crowd bash -c 'for i in {1..600}; do sleep 1000 & done; echo; wait'
    bg a env LD_PRELOAD="$RLOCK_TEST_TOOLS/shim_readdir.so" rlock run --lease 6s --kill-after 0 \
        k -- worker "$LOG" a forever ignore tree title
    poll_until 20 have_traced 3
    renewed k
    queued k work b k 0.3 --lease 10s
    kill -STOP "${pid[a]}"
    b_begins_after_a
    kill -CONT "${pid[a]}"
    ends_with a 79 30
}

# renamed NAME: prints the program of a command that has that name.
renamed() {
    install -m 755 "$RLOCK_TEST_TOOLS/worker" "$T/$1"
    echo "$T/$1"
}

# rlock does not end its own processes, but a name says nothing about that: any program may have it.
@test "H161 a command's process that has the name of one of rlock's is ended like any other" {
    for name in rlock rlock-agent rlock-guard rlock-notifier rlock-renewer rlock-server; do
        echo "--- $name"
        rm -f "$LOG"
        program=$(renamed "$name")
        bg a rlock run --kill-after 0 k -- sh -c "setsid '$program' '$LOG' x 100 & exec sleep 1000"
        working x
        run -0 rlock force-release --yes k
        ends_with a 79
        no_more x
        rm "$LOG"
        bg a rlock run --lease 100s k -- sh -c "setsid '$program' '$LOG' x 100 & exec sleep 1000"
        working x
        kill -KILL "${pid[a]}"
        run -0 rlock run -w 60s k -- true
        no_more x
    done
}

@test "--wait-descendants ends soon, although processes come and go all the time" {
    # At the end of the command, 300 processes are still to come, one after the other: a second's
    # work. A look that begins anew for each of them would not end before all are gone.
    timed 0 60000 run -0 rlock run --wait-descendants k -- \
        bash -c 'for i in {1..300}; do (true &); done &'
}

# -- a /proc that cannot be used ------------------------------------------------------------------

# Two processes in one process group, who mind no TERM.
two_workers() {
    local worker="worker '$LOG' a forever ignore"
    echo "$worker & exec $worker"
}

# By its arguments, as its number may be of another name space.
workers_ended() {
    ! pgrep -f "^worker $LOG a forever"
}

# a_ends_before_b SIGNAL BEGIN: a runs under a lock that b waits for, and then rlock, process $a,
# gets that signal. The agent has half a second to KILL before the lease ends: where it stood still
# just then, BEGIN starts another a.
a_ends_before_b() {
    local try
    for try in 1 2 3; do
        ((try == 1)) || "$2"
        poll_until 15 have_traced 2
        queued k work b k 0.3 --lease 10s
        kill -"$1" "$a"
        ends_with b 0 30
        poll_until 10 workers_ended
        kill -KILL "$a" 2>/dev/null || true
        no_overlap && return
    done
    return 1
}

@test "H122 no /proc: rlock stopped or killed, and its command is ended in time" {
    unshare --mount true 2>/dev/null || skip "no mount name spaces here"
    begin() {
        rm -f "$LOG"
        bg a "${no_proc[@]}" rlock run --lease 6s k -- sh -c "$(two_workers)"
        a=${pid[a]}
    }
    for signal in STOP KILL; do
        begin
        a_ends_before_b "$signal" begin
    done
}

@test "H122 no /proc: a stopped command is gone when rlock ends, which says what it cannot see" {
    unshare --mount true 2>/dev/null || skip "no mount name spaces here"
    run -124 --separate-stderr "${no_proc[@]}" \
        rlock run -v --at-most 300ms --kill-after 300ms k -- sh -c "$(two_workers)" 3>&-
    stderr_line '/proc'
    poll_until 10 workers_ended
    run -0 "${no_proc[@]}" \
        rlock run --wait-descendants k -- sh -c "(sleep 0.3; : >'$T/end') &" 3>&-
    [[ -e $T/end ]]
}

# hidden_by_user MOUNT_OPTION: "as_user" runs a copy of what it is told to as a user for whom /proc
# hides processes.
hidden_by_user() {
    [[ $(id -u) == 0 ]] || skip "needs root"
    unshare --mount mount -t proc -o "hidepid=$1" proc /proc 2>/dev/null ||
        skip "no mount of /proc here"
    install -m 755 "$RLOCK" "$RLOCK_TEST_TOOLS/daemonize" "$RLOCK_TEST_TOOLS/worker" "$T"
    chmod a+rX "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$REDIS_DIR" "${T%/*}" "$T"
    chmod 777 "$REDIS_SOCK"
    : >"$LOG"
    chmod 666 "$LOG"
    as_user=(unshare --mount sh -c
        'mount -t proc -o "$0" proc /proc &&
            exec setpriv --reuid 54321 --regid 54321 --clear-groups "$@"' "hidepid=$1")
}

# The agent may stand still when it must KILL, as in a_ends_before_b().
hidden_daemon_ends_before_b() {
    rm "$LOG"
    hidden_by_user "$hidden"
    bg a "${as_user[@]}" "$T/rlock" run --lease 6s k -- \
        sh -c "$daemon a 100 untraced ignore; sleep 300"
    working a && kill -STOP "${pid[a]}" && work b k 0.1 && finish b 30 && no_overlap && none_left
}

@test "H122 a /proc that hides processes (hidepid): they are waited for, and ended in time" {
    for hidden in 2 1; do
        hidden_by_user "$hidden"
        daemon="'$T/daemonize' 2 '$T/worker' '$LOG'"
        bg a "${as_user[@]}" "$T/rlock" run --wait-descendants k -- sh -c "$daemon a 2 untraced"
        working a
        work b k 0.1
        finish a
        finish b
        no_overlap
        bg a "${as_user[@]}" "$T/rlock" run --kill-after 1s k -- \
            sh -c "$daemon c 100 untraced ignore; sleep 300"
        working c
        run -0 rlock force-release --yes k
        ends_with a 79
        none_left
        once_of 3 hidden_daemon_ends_before_b
        kill -CONT "${pid[a]}"
        finish a
    done
}

@test "H122 another name space's /proc: rlock stopped or killed, its command is ended in time" {
    unshare --pid --fork true 2>/dev/null || skip "no process name spaces here"
    begin() {
        rm -f "$LOG"
        # /proc, which is that of the outer name space, shows other processes by the numbers that
        # those inside have: not the kernel's own, which have the lowest ones.
        bg a unshare --pid --fork bash -c 'for i in {1..300}; do (:); done; "$@"; exit' bash \
            rlock run --lease 6s k -- sh -c "$(two_workers)"
        poll_until 15 have_traced 2
        a=$(children_of "$(children_of "${pid[a]}")") # unshare's child is bash, and bash's rlock
        [[ $(cat "/proc/$a/comm") == rlock ]]
    }
    for signal in STOP KILL; do
        begin
        a_ends_before_b "$signal" begin
        kill -KILL "$(children_of "${pid[a]}")" 2>/dev/null || true
        finish a
    done
}

@test "H122 few descriptors: rlock refuses, or stopped or killed has its command ended in time" {
    # A sanitizer looks for leaks through descriptors of its own, at the end, when there are none.
    export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
    local n signal ran=0
    begin() {
        rm -f "$LOG"
        bg a bash -c "ulimit -n $n; exec \"\$@\"" bash rlock run --server-wait 0 --lease 6s k \
            -- sh -c "$(two_workers)"
        a=${pid[a]}
        poll_until 15 eval 'gone "$a" || works a'
    }
    for ((n = 5; n < 40 && ran < 6; n++)); do
        for signal in STOP KILL; do
            begin
            if alive "$a"; then
                ran=$((ran + 1))
                ((ran > 4)) || a_ends_before_b "$signal" begin
                kill -KILL "$a" 2>/dev/null || true
            fi
            finish a 20
            [[ $status == 71 || $status == 69 || $status == 137 ]]
            poll_until 15 is_free k
        done
    done
    # With some of these limits rlock did start its command.
    ((ran > 2))
}

# -- the caller's own processes -------------------------------------------------------------------

# with_jobs [OPTION...] -- COMMAND...: rlock is started by exec in a shell that has one job in the
# background, and another that leaves a process of its own behind when $T/up is there. The numbers
# of both processes are in $T/job and $T/orphan.
with_jobs() {
    cat >"$T/jobs.sh" <<'EOS'
sleep 301 &
echo $! >"$T/job"
(await "$T/up"
 sleep 302 & echo $! >"$T/orphan.new"; mv "$T/orphan.new" "$T/orphan") &
exec rlock run "$@"
EOS
    bg a bash "$T/jobs.sh" "$@"
}

# The shell that becomes rlock has a background job. When the parent of another process of the
# caller ends, for which $T/up is its sign, that one becomes a child of rlock, as one that the
# command leaves does. Then only the supervisor is left to stop the command, and the server is
# silent.
@test "H128 the caller's own processes are not touched when the command is stopped" {
    with_jobs --lease 6s k -- worker "$LOG" a forever tree
    working a
    : >"$T/up"
    poll_until 10 test -e "$T/orphan"
    poll_until 10 eval '[[ $(ps -o ppid= -p "$(<"$T/orphan")" | tr -d " ") == "${pid[a]}" ]]'
    kill -STOP "$(redis_pid)"
    kill -KILL "$(agent_of "${pid[a]}")"
    ends_with a 79 20
    kill -CONT "$(redis_pid)"
    none_left
    alive "$(<"$T/job")"
    alive "$(<"$T/orphan")"
}

@test "H128 --wait-descendants does not wait for processes that the caller had started before" {
    with_jobs --wait-descendants k -- \
        sh -c ': >"$T/up"
            until [ "$(ps -o ppid= -p "$(cat "$T/orphan")" | tr -d " ")" = $PPID ]; do
                sleep 0.02
            done' 2>/dev/null
    ends_with a 0 10
    alive "$(<"$T/job")"
    alive "$(<"$T/orphan")"
}

# -- those that rlock's death leaves behind --------------------------------------------------------

# kill_rlock_after_its_look [COMMAND...]: b waits while a runs for long enough. Then, after the
# COMMAND, rlock is killed, and all of a has ended when b begins.
kill_rlock_after_its_look() {
    queued k work b k 0.3
    sleep 5 # rlock looks for its descendants every second, on an idle machine
    [[ ! ${1-} ]] || "$@"
    kill -KILL "${pid[a]}"
    finish b 20
    no_overlap
    none_left
}

# A daemon has left rlock's session and has cleared its environment. When rlock is killed, before or
# after its agent, the daemon must still be found and ended.
@test "H123 H135 kill -9 of rlock, or of its agent first: a daemon with its own session ends" {
    for first in agent rlock; do
        rm -f "$LOG"
        bg a rlock run --lease 6s k -- bash -c "
            daemonize 2 worker '$LOG' a forever title ignore
            exec worker '$LOG' a forever"
        poll_until 15 have_traced 2
        run -1 grep -qz RLOCK_OWNER \
            "/proc/$(pgrep -f "^worker $LOG a forever title")/environ"
        [[ $first == rlock ]] || kill_agent a
        kill_rlock_after_its_look
    done
}

# As where the processes that it looks at execute programs, and get no turn.
@test "H123 one look of the agent was held up: after that it does not look less often" {
    need_strace
    bg a rlock run --lease 6s k -- bash -c "until [ -e '$T/go' ]; do sleep 0.02; done
        daemonize 2 worker '$LOG' a forever title ignore
        exec worker '$LOG' a forever"
    poll_until 15 held k
    bg slow strace -qq -y -o "$T/reads" -e trace=read -e inject=read:delay_enter=20ms \
        -p "$(agent_of "${pid[a]}")"
    poll_until 15 contains "$T/reads" '/stat>'
    sleep 1 # that look is over
    : >"$T/go"
    poll_until 15 have_traced 2
    kill_rlock_after_its_look
}

# The shell in a session of its own was seen. The process that it starts after the last look, with
# an empty environment, was not.
@test "H123 kill -9 of rlock: a process that the agent never saw is ended by its session" {
    bg a rlock run --lease 6s k -- bash -c "
        env -i PATH=\"\$PATH\" setsid bash -c 'until [ -e \"$T/go\" ]; do sleep 0.02; done
            worker \"$LOG\" a forever ignore &' &
        exec worker '$LOG' a forever"
    working a
    begin_hidden() {
        : >"$T/go"
        poll_until 10 have_traced 2
    }
    kill_rlock_after_its_look begin_hidden
}

# -- ended by itself ------------------------------------------------------------------------------

# begin_and_stop COMMAND...: an rlock with options, which is stopped while its command runs. It ends
# with 9 when "$T/go" is there, and leaves a process behind.
begin_and_stop() {
    rm -f "$T/go"
    bg_up a "$@" k -- sh -c "sleep 304 & echo \$! >'$T/left'
        : >'$T/a.up'; await '$T/go'; exit 9"
    agent=$(agent_of "${pid[a]}")
    suspend a STOP
}

# free_while_rlock_is_stopped COMMAND...: the lock is free at once, long before its lease ends.
free_while_rlock_is_stopped() {
    begin_and_stop "$@" --lease 60s
    : >"$T/go"
    poll_until 10 is_free k
    kill -CONT "${pid[a]}"
    finish a
    # A sanitizer may say that it misses /proc.
    [[ $status == 9 && $(<"$T/a.err") != *rlock:* ]]
    alive "$(<"$T/left")"
}

@test "H93 a command that ends by itself while rlock is stopped: the lock is free at once" {
    free_while_rlock_is_stopped rlock run
    free_while_rlock_is_stopped rlock run --no-renew
    free_while_rlock_is_stopped rlock run --on-lost continue
    free_while_rlock_is_stopped rlock run --on-lost signal:USR1
    ! unshare --mount true 2>/dev/null || free_while_rlock_is_stopped "${no_proc[@]}" rlock run
}

# The agents notice the end of the commands, and end. When rlock is continued, the lease is over,
# which must not count as the end of the command.
@test "H93 a command that ends while rlock is stopped and the store is away: its own status" {
    local option agents=()
    for option in stop continue; do
        stay "$option" "k-$option" --lease 6s --on-lost "$option"
        agents+=("$(agent_of "${pid[$option]}")")
    done
    kill -STOP "${pid[stop]}" "${pid[continue]}" "$(redis_pid)"
    : >"$T/stop.go"
    : >"$T/continue.go"
    for agent in "${agents[@]}"; do
        poll_until 20 gone "$agent"
    done
    pause 6000 # the lease
    kill -CONT "${pid[stop]}" "${pid[continue]}"
    ends_with stop 9
    ends_with continue 9
    kill -CONT "$(redis_pid)"
    run -0 rlock run -w 30s k-stop k-continue -- true
}

# The command ends by itself with 9, but its lock had been taken away by then.
@test "H93 a lock that is taken away while rlock is stopped, and its command ends by itself: 79" {
    begin_and_stop rlock run --lease 60s
    run -0 rlock force-release --now --yes k
    : >"$T/go"
    poll_until 10 gone "$agent"
    kill -CONT "${pid[a]}"
    ends_with a 79
}

# "c" does not end by itself, so the agent has to end it at the lease; "b" and "d" have the lock
# afterwards.
@test "H93 while rlock is stopped: leftovers are waited for, or ended at the lease: exit 79" {
    bg_up a rlock run --lease 6s --wait-descendants k -- \
        bash -c "(await '$T/go') & : >'$T/a.up'; exit 9"
    kill -STOP "${pid[a]}"
    : >"$T/go"
    work b k 0.2
    finish b 20
    kill -CONT "${pid[a]}"
    ends_with a 9
    bg_up a rlock run --lease 6s --wait-descendants k -- \
        bash -c "worker '$LOG' c forever &
        : >'$T/a.up'; exit 9"
    working c
    kill -STOP "${pid[a]}"
    work d k 0.2
    finish d 20
    kill -CONT "${pid[a]}"
    ends_with a 79
    none_left
    no_overlap
}
