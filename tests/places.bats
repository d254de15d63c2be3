# Where rlock runs: kernels without a call, sandboxes, name spaces, users without a name, limits,
# full and slow /proc, file servers that are slow or stop, terminals without a shell.
# places_servers.bats has networks and servers. run_rlock_under COMMAND: each rlock that follows is
# started by that. keeps_promises: one command at a time, ended before the lease whichever process
# is killed or stopped, and nothing left. own_mounts SCRIPT: in mounts of its own that the SCRIPT
# has made; in_user_space DIRECTORY: a process shows it as $T/fuse (FUSE); asked_for ROW: its
# command's file is still asked for when aROW should work. as_user NUMBER: each rlock that follows
# is of that user, who has no name. nothing_left: no process of rlock or of a command, and no lock;
# replacement: an agent that is killed is replaced, and the lock is kept.

load helper
load places
load slow_files

# own_mounts SCRIPT: a mount name space in which SCRIPT has been run, as root. It finds in "kept"
# what the test needs below /tmp.
own_mounts() {
    unshare --mount true 2>/dev/null || skip "no mount name spaces here"
    run_rlock_under unshare --mount sh -c "
        kept='$T $REDIS_DIR ${outside%/*} $RLOCK_TEST_TOOLS'
        $1
        exec \"\$@\"" sh
}

# ---------------------------------------------------------------- kernels and sandboxes

@test "place: Linux 4.18, which has none of the newer system calls" {
    run_rlock_under "$RLOCK_TEST_TOOLS/noscall" 38 clone3,close_range,faccessat2,openat2,pidfd_open,pidfd_send_signal
    keeps_promises
}

@test "place: a sandbox that refuses the newer system calls" {
    run_rlock_under "$RLOCK_TEST_TOOLS/noscall" 1 close_range,openat2,pidfd_open,pidfd_send_signal
    keeps_promises
}

@test "place: a sandbox in which orphans cannot be adopted: rlock says so, and runs nothing" {
    run_rlock_under "$RLOCK_TEST_TOOLS/noscall" 1 prctl
    run "$RLOCK" run k -- touch "$T/ran" 3>&-
    [[ $status == 71 && $output == *'prctl'* && ! -e $T/ran ]]
    [[ $(grep -c '^rlock: ' <<<"$output") == 1 ]]
    poll_until 20 nothing_left
}

# ---------------------------------------------------------------- libraries

@test "place: a library that gives each process another time (faketime)" {
    printf '%-31d\n' 86400000 >"$T/clock"
    run_rlock_under env SHIM_CLOCK_FILE="$T/clock" SHIM_CLOCK_ALL=1 \
        LD_PRELOAD="$RLOCK_TEST_TOOLS/shim_clock.so"
    keeps_promises
}

@test "place: a library that has a thread in each process" {
    run_rlock_under env LD_PRELOAD="$RLOCK_TEST_TOOLS/shim_thread.so"
    keeps_promises
    run -0 timeout -s KILL 30 "$RLOCK" fence "$T/fence" --token 1 -- sh -c 'exit 0' 3>&-
}

# ---------------------------------------------------------------- name spaces and roots

@test "place: a unit with ProtectSystem=strict and PrivateTmp=yes" {
    own_mounts '
        mkdir -p /run/lock
        mount --bind /run/lock /run/lock && mount -o remount,ro,bind /run/lock
        mount -t tmpfs tmpfs /mnt
        for one in $kept; do
            case $one in
            /tmp/*) mkdir -p "/mnt/${one#/tmp/}" && mount --bind "$one" "/mnt/${one#/tmp/}" ;;
            esac
        done
        mount --move /mnt /tmp'
    keeps_promises
}

@test "place: a root that cannot be written" {
    own_mounts "mount --bind '$T' '$T' && mount -o remount,ro,bind /"
    keeps_promises
}

@test "place: a process name space of its own, whose host has the same name" {
    unshare --pid --fork true 2>/dev/null || skip "no process name spaces here"
    run_rlock_under unshare --pid --fork --mount-proc
    keeps_promises
}

# Only the group of the command is known there, and without /proc (rlock(7), "No usable /proc").
@test "place: a process name space of its own that has the outer /proc" {
    unshare --pid --fork true 2>/dev/null || skip "no process name spaces here"
    run_rlock_under unshare --pid --fork
    replacement
    signals
    poll_until 20 nothing_left
}

@test "place: a process name space for what rlock starts, and not for itself: it starts nothing" {
    unshare --pid --fork true 2>/dev/null || skip "no process name spaces here"
    export XDG_RUNTIME_DIR=$T
    for words in 'run k -- touch ran' 'fence fence --token 1 -- touch ran' 'status --local' \
        'status -u redis://localhost:1'; do
        (cd "$T" && exec unshare --pid "$RLOCK" $words) >"$T/out" 2>"$T/err" 3>&- && exit 1
        [[ $? == 71 && $(<"$T/err") == "rlock: ${words%% *}: "*': unshare needs --fork' ]]
        [[ ! -s $T/out && ! -e $T/ran && ! -e $T/fence && ! -e $T/rlock ]]
    done
    run -71 --separate-stderr "${no_proc[@]}" unshare --pid "$RLOCK" run k -- touch "$T/ran" 3>&-
    stderr_line '^rlock: k: .*unshare needs --fork'
    [[ ! -e $T/ran ]]
    poll_until 20 nothing_left
}

@test "place: another clock for what rlock starts than for itself: it runs nothing" {
    local before="env LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_apart.so $RLOCK"
    env LD_PRELOAD="$RLOCK_TEST_TOOLS/shim_apart.so" true || skip "no name spaces of clocks here"
    for what in "run k -- touch $T/ran" "acquire k" "acquire --keep $$ k"; do
        # shellcheck disable=SC2086
        run -71 --separate-stderr $before $what 3>&-
        stderr_line '^rlock: [a-z]*: what it starts would have another clock .*unshare needs --fork'
        [[ ${#stderr_lines[@]} == 1 && ! -e $T/ran ]]
    done
    poll_until 20 nothing_left
}

@test "place: a local server of another process name space: not process -1, nor one to signal" {
    unshare --pid --fork true 2>/dev/null || skip "no process name spaces here"
    export XDG_RUNTIME_DIR=$T
    run -0 rlock run --local k -- true
    run -0 unshare --pid --fork "$RLOCK" local status 3>&-
    [[ ${lines[0]} == "process  of another name space" ]]
    start=$(now_ms)
    run -69 --separate-stderr unshare --pid --fork "$RLOCK" local stop 3>&-
    took 0 5000 "$start"
    stderr_line '^rlock: local: the server, process of another name space, does not end'
    run -0 rlock local stop
}

@test "place: no /proc: a signal reaches the command, and nothing is left" {
    unshare --mount true 2>/dev/null || skip "no mount name spaces here"
    run_rlock_under "${no_proc[@]}"
    signals
    poll_until 20 nothing_left
}

# ---------------------------------------------------------------- users and limits

# as_user NUMBER [COMMAND...]: a user without a name, by that.
as_user() {
    ((EUID == 0)) || skip "takes root"
    chmod 777 "$T" "$REDIS_SOCK"
    chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "${T%/*}" "${REDIS_SOCK%/*}"
    run_rlock_under setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"
}

@test "place: a user without an entry in /etc/passwd, in no group" {
    as_user 54321
    keeps_promises
}

# runs_or_says_what_is_missing --LIMIT=NUMBER WORDS: with each number up to that, from the one with
# which a program can be started at all, rlock runs the command or says in one line what is missing.
# "least": the smallest with which it runs.
runs_or_says_what_is_missing() {
    local number missing=$2
    least=
    for ((number = 1; number <= ${1#*=}; number++)); do
        "$T/there" prlimit "${1%=*}=$number" "$outside" --version >/dev/null 2>&1 3>&- || continue
        run "$T/there" prlimit "${1%=*}=$number" "$outside" run k -- echo ran 3>&-
        if [[ $status == 0 ]]; then
            [[ $output == ran ]]
            least=${least:-$number}
        else
            [[ $status == 71 && $output == 'rlock: '*"$missing" && ${#lines[@]} == 1 && ! $least ]]
        fi
    done
    [[ $least ]]
    is_free k
}

# With each limit up to 24 rlock says what is missing, or runs its command. "least" is the smallest
# with which it ran; it keeps its promises with that.
@test "place: as few descriptors as suffice" {
    run_rlock_under env
    runs_or_says_what_is_missing --nofile=24 'Too many open files'
    run_rlock_under prlimit --nofile="$least"
    keeps_promises
}

@test "place: a user who hands over as many descriptors already as may be on their way" {
    as_user 54321 prlimit --nofile=64
    bg others "$T/there" python3 -c '
import socket, sys, time
ends = socket.socketpair()
try:
    while True:
        socket.send_fds(ends[0], [b"x"], [0])
except OSError:
    print("refused", flush=True)
time.sleep(1000)'
    poll_until 10 contains "$T/others.out" refused
    # The agent cannot be told of its command, which leaves a daemon with a session and an
    # environment of its own.
    bg a rlock run --lease 9s k -- sh -c "daemonize 2 worker '$LOG' a forever title ignore
        exec worker '$LOG' a forever"
    poll_until 15 have_traced 2
    queued k work b k 0.3
    pause 3000 # the agent looks for its descendants every second
    kill -KILL "${pid[a]}"
    b_begins_after_a
    keeps_promises
}

@test "place: a small stack; one that is too small is refused" {
    for kb in 48 64 96 128 255; do
        run -71 prlimit --stack=$((kb << 10)) "$RLOCK" run k -- touch "$T/ran"
        [[ $output == "rlock: a stack of $kb kB is too small: rlock needs 256 kB"* ]]
    done
    [[ ! -e $T/ran ]]
    run_rlock_under prlimit --stack=$((256 << 10))
    replacement
    excludes
    poll_until 20 nothing_left
}

# The messages are lost.
@test "place: files that must not grow" {
    run_rlock_under prlimit --fsize=0:unlimited
    replacement
    excludes
    poll_until 20 nothing_left
}

# A command has some processes of its own.
@test "place: as few processes as suffice" {
    as_user 54322
    runs_or_says_what_is_missing --nproc=6 'Resource temporarily unavailable'
    as_user 54322 prlimit --nproc="$((least + 2))"
    replacement
    signals
    poll_until 20 nothing_left
}

# ---------------------------------------------------------------- file servers

# asked_for ROW LEASE OPTION... -- FLAG...: as contend, but aROW's command, in $slow, is still to be
# executed.
asked_for() {
    cp "$RLOCK_TEST_TOOLS/worker" "$T/slow-$1"
    make_slow "$T/slow-$1"
    bg "a$1" rlock run --lease "$2" "${@:3:$#-4}" "k$1" -- "$slow/slow-$1" "$LOG$1" "a$1" 1000 tree "${@: -1}"
    poll_until 10 test -e "$T/slow-$1.asked"
    LOG=$LOG$1 queued "k$1" work "b$1" "k$1" 0.3 --lease 10s
}

# none_executed: no command whose file server answers at last runs without its lock.
none_executed() {
    for row in killed stopped agent-stopped taken limited; do
        answers_at_last "slow-$row"
    done
    poll_until 20 nothing_left
    [[ $(cat "$LOG"* | cut -d ' ' -f 1 | sort -u | grep -c ^a) == 0 ]]
}

# The command's file is at a server that does not answer, so that executing it hangs: it must not
# begin once the lock is lost.
@test "place: a file server that does not answer when the command is executed" {
    run_rlock_under env
    slow=$T CONTEND=asked_for exclusion
    none_executed
}

# in_user_space DIRECTORY: what a process shows of that (FUSE) is $T/fuse, and the working
# directory.
in_user_space() {
    unshare --mount true 2>/dev/null && command -v bindfs >/dev/null || skip "no bindfs here"
    [[ -r /dev/fuse && -w /dev/fuse ]] || skip "no /dev/fuse here"
    mkdir "$T/fuse"
    bg bindfs unshare --mount bindfs -f --multithreaded "$1" "$T/fuse"
    poll_until 10 grep -qs " $T/fuse fuse" "/proc/${pid[bindfs]}/mounts"
    run_rlock_under nsenter "--mount=/proc/${pid[bindfs]}/ns/mnt" "--wdns=$T/fuse"
}

@test "place: commands and a working directory in a file system in user space" {
    in_user_space "$RLOCK_TEST_TOOLS"
    RLOCK_TEST_TOOLS=$T/fuse PATH=$T/fuse:$PATH keeps_promises
}

# shown_by ROW LEASE OPTION... -- FLAG...: as contend, but only aROW's command is a file there.
shown_by() {
    local LOG=$LOG$1
    PATH=$T/fuse:$PATH at_work "a$1" "k$1" forever --lease "$2" "${@:3}" tree
    poll_until 10 have_traced 3
    queued "k$1" work "b$1" "k$1" 0.3 --lease 10s
}

@test "place: a file system in user space whose process stops while commands run" {
    in_user_space "$RLOCK_TEST_TOOLS"
    CONTEND=shown_by MEANWHILE="kill -STOP ${pid[bindfs]}" exclusion
    poll_until 20 nothing_left
}

# Not even KILL ends a process that such a file system has been asked for.
@test "place: a file system in user space that does not answer when the command is executed" {
    in_user_space "$T"
    slow=$T/fuse CONTEND=asked_for exclusion
    none_executed
}

# ---------------------------------------------------------------- crowds

@test "place: five thousand processes" {
    (($(cat /proc/sys/kernel/pid_max) > 20000 && $(awk '/MemAvailable/ { print $2 }' /proc/meminfo) > 4000000)) ||
        skip "too small a machine"
    run_rlock_under env
    bg_up crowd "$RLOCK_TEST_TOOLS/crowd" 5000 "$T/crowd.up"
    LEASE=12s keeps_promises
}

# To find all of a tree takes longer than the time between TERM and KILL, and than KILL's own. A
# lease is longer than a few such looks on a busy machine: no renewal is acknowledged meanwhile. So
# only those parts of keeps_promises are tried that end commands: exclusion and signals.
@test "H163 place: a slow /proc, with many processes" {
    bg_up crowd "$RLOCK_TEST_TOOLS/crowd" 2000 "$T/crowd.up"
    run_rlock_under env LD_PRELOAD="$RLOCK_TEST_TOOLS/shim_readdir.so"
    LEASE=24s exclusion
    signals
    poll_until 20 nothing_left
}

# ---------------------------------------------------------------- terminals

@test "place: a session of its own, without a terminal" {
    run_rlock_under setsid --wait
    keeps_promises
}

@test "place: a terminal whose only process is rlock" {
    command -v script >/dev/null || skip "no script here"
    cat >"$T/on-terminal" <<'END'
#!/bin/bash
SHELL=/bin/bash exec script -qec "$(printf '%q ' "$@")" /dev/null
END
    chmod +x "$T/on-terminal"
    run_rlock_under "$T/on-terminal"
    exclusion
    replacement
    signals
    poll_until 20 nothing_left
}
