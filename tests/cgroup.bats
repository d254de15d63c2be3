# A cgroup of its own for the command: nothing that it has started escapes a stop. The program
# "hide" writes "x works" to the log, and leaves nothing by which to find it. cgroup_is_gone: the
# one that the command has noted; delegate 1 or 0: a cgroup "there" that systemd has delegated, or
# has not; in_cgroup: a command there.

load helper

setup() {
    start_test
    "$RLOCK" run --cgroup possible -- true 2>"$T/why" 3>&- || skip "no cgroup here: $(cat "$T/why")"
    # Hides: a session of its own, nothing in its environment, and a new process each time.
    cat >"$T/hide" <<'END'
#!/usr/bin/python3
import os, sys, time
if os.fork(): sys.exit()
os.setsid()
if len(sys.argv) < 3: os.execve(__file__, [*sys.argv, "hidden"], {})
while not os.path.exists(sys.argv[1] + ".end"):
    if os.fork(): os._exit(0)
    time.sleep(0.001)
    with open(sys.argv[1], "a") as file: file.write("x works\n")
END
    chmod +x "$T/hide"
}

teardown() {
    : >"$LOG.end"
    [[ -n $BATS_TEST_COMPLETED ]] || show_evidence
    end_processes
    redis flushall >/dev/null
}

# Where the command has noted its own.
cgroup_is_gone() {
    local own
    own=$(sed 's/^0:://' "$T/own")
    [[ $own == */rlock-* && ! -e /sys/fs/cgroup$own && ! -e /sys/fs/cgroup/unified$own ]]
}

@test "with --cgroup, processes that hide (setsid, no environment, forks) are gone after a stop" {
    bg a rlock run --cgroup k -- sh -c 'grep ^0:: /proc/self/cgroup >"$T/own"; "$T/hide" "$LOG"; exec sleep 1000'
    working x
    run -0 rlock force-release --yes k
    ends_with a 79
    no_more x
    poll_until 10 cgroup_is_gone
}

@test "H98 with --cgroup a signal before the command is executed is not lost" {
    LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_late.so bg a rlock run --cgroup k -- sleep 1000
    poll_until 10 held k
    poll_until 10 eval 'child=$(command_of "${pid[a]}"); [[ $child ]]'
    poll_until 10 in_state "$child" T
    kill -TERM "${pid[a]}"
    ends_with a 143
}

@test "with --cgroup, processes that hide are gone when rlock is killed" {
    bg a rlock run --cgroup k -- sh -c 'grep ^0:: /proc/self/cgroup >"$T/own"; "$T/hide" "$LOG"; exec sleep 1000'
    working x
    kill -KILL "${pid[a]}"
    poll_until 10 is_free k
    no_more x
    poll_until 10 cgroup_is_gone
}

@test "with --cgroup, processes that hide are gone in time when rlock, or it and its agent, stop" {
    bg a rlock run --cgroup --lease 5s k -- sh -c '"$T/hide" "$LOG"; exec sleep 1000'
    working x
    kill -STOP "${pid[a]}"
    run -0 rlock run k -- true
    no_more x
    kill -CONT "${pid[a]}"
    ends_with a 79
    : >"$LOG"
    bg a rlock run --cgroup --lease 5s k -- sh -c '"$T/hide" "$LOG"; exec sleep 1000'
    working x
    stop_both a
    run -0 rlock run k -- true
    kill -CONT "${pid[a]}" "$agent"
    ends_with a 79
    no_more x
}

@test "rlock is stopped while it ends its command: --stop's command is killed with the cgroup" {
    bg a rlock run --cgroup --lease 5s --at-most 500ms --stop \
        'trap "" TERM; while :; do echo "s works" >>"$LOG"; sleep 0.02; done' k -- sleep 1000
    working s
    kill -STOP "${pid[a]}"
    run -0 rlock run k -- true
    no_more s
    kill -CONT "${pid[a]}"
    ends_with a 79
}

@test "the agent is killed beside its --stop: what that has started does not outlive the lock" {
    bg_up a rlock run --cgroup --lease 9s --kill-after 60s --stop \
        'sh -c "trap \"\" TERM; while :; do echo s works >>\"$LOG\"; sleep 0.02; done"; true' k -- \
        sh -c 'trap "" TERM; : >"$T/a.up"; while :; do sleep 0.1; done'
    agent=$(agent_of "${pid[a]}")
    kill -STOP "${pid[a]}"
    working s
    kill -KILL "$agent"
    kill -CONT "${pid[a]}"
    run -0 rlock run k -- true
    no_more s
    ends_with a 79
}

@test "rlock is stopped: what its agent's --stop has left in the background dies, too" {
    bg_up a rlock run --cgroup --lease 9s --stop \
        'sh -c "trap \"\" TERM; while :; do echo s works >>\"$LOG\"; sleep 0.02; done" &
        until [ -s "$LOG" ]; do sleep 0.02; done' k -- sh -c ': >"$T/a.up"; exec sleep 1000'
    kill -STOP "${pid[a]}"
    run -0 rlock run k -- true
    grep -q 's works' "$LOG"
    no_more s
    kill -CONT "${pid[a]}"
    ends_with a 79
}

@test "rlock is continued: what its agent's --stop has left in the background dies, too" {
    bg_up a rlock run --cgroup --lease 9s --stop \
        'sh -c "trap \"\" TERM; while :; do echo s works >>\"$LOG\"; sleep 0.02; done" &
        until [ -s "$LOG" ]; do sleep 0.02; done' k -- sh -c ': >"$T/a.up"; exec sleep 1000'
    kill -STOP "${pid[a]}"
    working s
    kill -CONT "${pid[a]}"
    ends_with a 79
    no_more s
}

@test "what a --stop that could not enter the cgroup has left in the background dies, too" {
    need_strace
    bg_up a rlock run --cgroup --lease 60s --kill-after 10s --stop \
        'sh -c "trap \"\" TERM; while :; do echo s works >>\"$LOG\"; sleep 0.02; done" &
        until [ -s "$LOG" ]; do sleep 0.02; done' k -- \
        sh -c "sed -n 's/^0:://p' /proc/self/cgroup >'$T/own'; : >'$T/a.up'; exec sleep 1000"
    hears a k
    for mount in /sys/fs/cgroup/unified /sys/fs/cgroup; do
        [[ ! -e $mount/cgroup.controllers ]] || break
    done
    trace "${pid[a]}" -f -o "$T/refused" -P "$mount$(<"$T/own")" \
        -P "$mount$(<"$T/own")/cgroup.procs" -e trace=openat -e inject=openat:error=EBUSY
    bg f rlock force-release --yes k
    working s
    [[ $(grep -c EBUSY "$T/refused") == 2 ]]
    ends_with a 79
    no_more s
    finish f
}

@test "--cgroup: each process in the cgroup gets TERM before KILL, hidden ones as well" {
    bg_up a rlock run --cgroup k -- sh -c 'trap "echo TERM >\"\$T/termed\"; exit" TERM
        setsid -f env -i sh -c "trap \"echo TERM >$T/hidden; exit\" TERM; : >$T/a.up
            while :; do sleep 0.02; done"
        while :; do sleep 0.02; done'
    run -0 rlock force-release --yes k
    ends_with a 79
    contains "$T/termed" TERM
    contains "$T/hidden" TERM
}

@test "--cgroup: the lock is free when the command has ended, --wait-descendants keeps it longer" {
    bg a rlock run --cgroup --wait-descendants k -- \
        sh -c "setsid -f env -i PATH=\"\$PATH\" await '$T/go'; exit 3"
    poll_until 10 pgrep -xf "await $T/go"
    poll_until 10 eval '! children_of "${pid[a]}" sh'
    held k
    : >"$T/go"
    ends_with a 3
    rm "$T/go"
    run -3 rlock run --cgroup k -- \
        sh -c "grep ^0:: /proc/self/cgroup >'$T/own'; setsid -f await '$T/go' >/dev/null 2>&1; exit 3"
    is_free k
    cgroup_is_gone
    left=$(pgrep -f "await $T/go")
    : >"$T/go"
    poll_until 10 gone "$left"
}

# delegate VALUE: makes a cgroup "there" that systemd has delegated (1), or has not (0).
delegate() {
    local own mount
    own=$(rlock run --cgroup k -- sed -n 's|^0::||p' /proc/self/cgroup 3>&-)
    for mount in /sys/fs/cgroup/unified /sys/fs/cgroup; do
        [[ ! -e $mount/cgroup.controllers ]] || break
    done
    there=$mount${own%/*}/test-$$-$BATS_TEST_NUMBER
    mkdir -p "$there"
    python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.delegate", sys.argv[2].encode())' \
        "$there" "$1"
}

in_cgroup() {
    bash -c 'echo 0 >"$0/cgroup.procs"; exec "$@"' "$there" "$@" 3>&-
}

@test "where systemd has delegated a cgroup, --cgroup is the default, and -v says which it is" {
    delegate 1
    run -0 --separate-stderr in_cgroup rlock run -v k -- \
        sh -c 'grep ^0:: /proc/self/cgroup; rlock run -v k2 -- grep ^0:: /proc/self/cgroup'
    [[ ${lines[0]} == 0::*/test-*/rlock-* && ${lines[1]} == 0::*/test-*/rlock-*/rlock-* ]]
    stderr_line "k: its command has the cgroup $there/rlock-"
    run -124 in_cgroup rlock run --at-most 4s k -- sh -c '"$T/hide" "$LOG"; exec sleep 1000'
    no_more x
    delegate 0
    run -0 --separate-stderr in_cgroup rlock run -v k -- grep ^0:: /proc/self/cgroup
    [[ $output == 0::*/test-* && $output != *rlock-* ]]
    stderr_line 'k: its command has no cgroup of its own'
    rmdir "$there"
}

@test "in a threaded cgroup rlock makes none: run does without, --cgroup ends with 71" {
    delegate 1
    mkdir "$there/threaded"
    echo threaded >"$there/threaded/cgroup.type"
    run -0 --separate-stderr in_cgroup rlock run -v k -- grep ^0:: /proc/self/cgroup
    [[ $output == 0::*/test-* && $output != *rlock-* ]]
    run -71 --separate-stderr in_cgroup rlock run --cgroup k -- touch "$T/ran"
    stderr_line '^rlock: k: cannot make a cgroup for its command: '
    [[ ! -e $T/ran ]]
    rmdir "$there/threaded" "$there"
}

@test "--cgroup where none can be made: exit 71, and no lock was asked for" {
    unshare --mount true 2>/dev/null || skip "may not mount here"
    before=$(redis_calls evalsha)
    run -71 --separate-stderr unshare --mount bash -c 'umount -l /sys/fs/cgroup; rlock run --cgroup k -- touch "$T/ran"' 3>&-
    stderr_line '^rlock: k: cannot make a cgroup for its command: '
    [[ ${#stderr_lines[@]} == 2 && ! -e $T/ran && $(redis_calls evalsha) == "$before" ]]
    run -0 unshare --mount bash -c 'umount -l /sys/fs/cgroup; rlock run k -- true' 3>&-
}

@test "a plain run makes no cgroup, and looks once whether one is delegated" {
    need_strace
    strace -f -o "$T/trace" rlock run k -- true 3>&-
    # rlock reads /proc/self/cgroup, and the attributes of that cgroup below two mounts at most.
    (($(grep -c cgroup "$T/trace") <= 3))
    run -1 grep -E 'mkdir|clone3.*CLONE_INTO_CGROUP' "$T/trace"
}

@test "a private server that a nested rlock starts is not the command's, and stays" {
    export XDG_RUNTIME_DIR=$T/run
    mkdir -m 700 "$XDG_RUNTIME_DIR"
    bg_up a rlock run --cgroup k -- sh -c 'rlock run --local inner -- true; : >"$T/a.up"; sleep 1000'
    run -0 rlock force-release --yes k
    ends_with a 79
    prints 0 'process*' local status
    rlock local stop
}

@test "H161 a private server stays in a cgroup that only has a name as those of rlock" {
    delegate 0
    rmdir "$there"
    there=${there%/*}/rlock-$$-$BATS_TEST_NUMBER
    mkdir "$there"
    XDG_RUNTIME_DIR=$T run -0 in_cgroup rlock run --local k -- true
    server=$(pgrep -f "$T/rlock/socket")
    [[ $(<"/proc/$server/cgroup") == *"/${there##*/}" ]]
    XDG_RUNTIME_DIR=$T rlock local stop
    rmdir "$there"
}
