# A kernel or a sandbox that refuses system calls, as os/kernel.h lists them: every guard holds all
# the same, or rlock begins nothing and names the call that it needs. H158 kernel_refuses ERRNO
# CALL,...: from now on, rlock runs under such a filter, and $real is the program without it; each
# number of a call is that of x86-64. rows: prints ERRNO CALL,... for each such filter. in_each_row:
# in each row aROW works and bROW waits, and each_tree_ended_first STATUS: nothing of aROW is left
# when bROW begins.
# shellcheck disable=SC2154

load helper

newer=(close_range pidfd_open pidfd_send_signal clone3)
# The answer of a kernel that lacks a call, and that of a sandbox which refuses it.
ENOSYS=38 EPERM=1

setup() {
    start_test
    "$RLOCK_TEST_TOOLS/noscall" $ENOSYS close_range true || skip "no filters of system calls here"
    export XDG_RUNTIME_DIR=$T
}

# kernel_refuses ERRNO CALL,... [COMMAND...]: from now on, rlock runs under that filter, and under
# COMMAND.
kernel_refuses() {
    printf '#!/bin/bash\nexec %s "$@"\n' \
        "$(printf '%q ' "$RLOCK_TEST_TOOLS/noscall" "$1" "$2" "${@:3}" "$real")" >"$T/$1.$2"
    chmod +x "$T/$1.$2"
    RLOCK=$T/$1.$2
}

# Prints rows ERRNO CALL,...: one for each call, and for all of them; with "pairs", for each two.
rows() {
    local i j all sets=("${newer[@]}")
    for ((i = 0; i < ${#newer[@]} && $# > 0; i++)); do
        for ((j = i + 1; j < ${#newer[@]}; j++)); do
            sets+=("${newer[i]},${newer[j]}")
        done
    done
    printf -v all '%s,' "${newer[@]}" openat2 faccessat2 statx rseq
    printf "$ENOSYS %s\n" "${all%,}" "${sets[@]}"
    printf "$EPERM %s\n" "${all%,}" "${sets[@]}"
}

# in_each_row LEASE [pairs]: in each row, aROW works, and bROW waits.
in_each_row() {
    local errno calls real=$RLOCK
    row=0
    while read -r errno calls; do
        kernel_refuses "$errno" "$calls"
        contend $((++row)) "$1" -- ignore
    done < <(rows "${@:2}")
    RLOCK=$real
}

# each_tree_ended_first STATUS: each aROW ends with that, before bROW begins, and nothing of it is
# left.
each_tree_ended_first() {
    local i
    for ((i = 1; i <= row; i++)); do
        ends_with "a$i" "$1" 60
        b_begins_after_a "$i"
    done
}

# In each row, the kernel refuses one or two calls to rlock. Its command's tree must end all the
# same before the waiter's command begins.
@test "H158 H92 kill -9 of rlock, any newer call refused: its tree ends before another begins" {
    in_each_row 25s pairs
    for ((i = 1; i <= row; i++)); do
        kill -KILL "${pid[a$i]}"
    done
    each_tree_ended_first 137
}

@test "H158 H93 SIGSTOP of rlock, any of the newer calls refused: its agent ends the tree in time" {
    in_each_row 9s
    for ((i = 1; i <= row; i++)); do
        kill -STOP "${pid[a$i]}"
    done
    for ((i = 1; i <= row; i++)); do
        b_begins_after_a "$i"
        kill -CONT "${pid[a$i]}"
    done
    each_tree_ended_first 79
}

@test "H158 H124 a lock that is lost, any of the newer calls refused: its tree ends" {
    in_each_row 25s
    for ((i = 1; i <= row; i++)); do
        rlock force-release --yes --now "k$i"
    done
    for ((i = 1; i <= row; i++)); do
        ends_with "a$i" 79 60
        works_no_more "a$i" "$LOG$i"
    done
}

# works_no_more NAME LOG: nothing of its tree is left.
works_no_more() {
    local one
    while read -r one; do
        poll_until 10 gone "$one"
    done < <(awk -v name="$1" '$1 == name { print $2 }' "$2" | sort -u)
}

@test "H158 --at-most, any of the newer calls refused: nothing is left of the tree" {
    local row name late left
    mapfile -t left < <(rows)
    real=$RLOCK
    # A row is tried again where the time was over before the worker had begun.
    while ((${#left[@]})); do
        late=()
        for row in "${left[@]}"; do
            name=${row/ /-}
            kernel_refuses "${row% *}" "${row#* }"
            bg "$name" rlock run --at-most 1s --kill-after 100ms "$name" -- \
                "$RLOCK_TEST_TOOLS/worker" "$LOG$name" "$name" forever tree ignore
        done
        for row in "${left[@]}"; do
            name=${row/ /-}
            ends_with "$name" 124 60
            [[ -s $LOG$name ]] || late+=("$row")
            works_no_more "$name" "$LOG$name"
        done
        left=("${late[@]}")
    done
}

@test "H158 no close_range and no /proc: kill -9 of rlock ends the group of its command" {
    unshare --mount true 2>/dev/null || skip "no mount name spaces here"
    real=$RLOCK
    kernel_refuses $ENOSYS close_range "${no_proc[@]}"
    bg a rlock run --lease 25s k -- sh -c "'$RLOCK_TEST_TOOLS/worker' '$LOG' a 300 & wait"
    working a
    RLOCK=$real
    kill -KILL "${pid[a]}"
    works_no_more a "$LOG"
}

# none_has FILE NAME: no process NAME of this test has FILE open.
none_has() {
    local one seen=0
    for one in $(pgrep -x "$2"); do
        grep -qsz "^RLOCK_TEST_ID=$RLOCK_TEST_ID\$" "/proc/$one/environ" ||
            [[ $(readlink "/proc/$one/cwd") == "$T"/* ]] || continue
        seen=1
        [[ -z $(find "/proc/$one/fd" -lname "$1") ]]
    done
    ((seen))
}

# A descriptor of the caller, here one that has a file locked, must not stay open in any process
# that outlives the call, though the kernel lacks the call that closes all.
@test "H158 no close_range: no process that stays keeps a descriptor of the caller" {
    real=$RLOCK
    exec 9>"$T/mine"
    flock 9
    for errno in $ENOSYS $EPERM; do
        echo "--- $errno"
        kernel_refuses $errno close_range
        run -0 rlock run --local k -- true
        none_has "$T/mine" rlock-server
        bg s sleep 1000
        run -0 rlock acquire --keep "${pid[s]}" k
        none_has "$T/mine" rlock-renewer
        kill -KILL "${pid[s]}"
        poll_until 10 is_free k
        bg_up n rlock run --notify true k -- sh -c ": >'$T/n.up'; exec sleep 1000"
        none_has "$T/mine" rlock-notifier
        none_has "$T/mine" rlock-agent
        terminate n 143
        bg_up f rlock fence "$T/fence" --token $((50 - errno)) -- sh -c ": >'$T/f.up'; exec sleep 1000"
        none_has "$T/mine" rlock-guard
        terminate f 143
        run -0 rlock local stop
    done
    exec 9>&-
    flock -n "$T/mine" true
}

@test "H158 a call that rlock cannot do without: exit 71, and its name" {
    export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" # that waits for a process of its own
    real=$RLOCK
    for row in 'prctl prctl' '283 timerfd_create' '289 signalfd' '53 socketpair' \
        '46 sendmsg' '47 recvmsg' '61 wait4' '14 rt_sigprocmask' '110 getppid'; do
        [[ $(uname -m) == x86_64 || $row == *prctl ]] || continue
        # The numbers are EACCES and EUCLEAN, which a unit of systemd may ask for, and EINVAL.
        for errno in $ENOSYS $EPERM 13 117 22; do
            # An emulator of processors says so of an option that it does not have.
            [[ $errno != 22 || $row == prctl* ]] || continue
            kernel_refuses $errno "${row% *}"
            refused 71 run k -- touch "$T/ran"
            stderr_line "the operating system refuses: ${row#* }\("
            "$real" status -q k
        done
    done
}

@test "H158 a library in front of the C library that reads nothing: 71, and the name of the call" {
    run -71 --separate-stderr env LD_PRELOAD="$RLOCK_TEST_TOOLS/shim_read.so" "$RLOCK" run k -- touch "$T/ran" 3>&-
    stderr_line "the operating system refuses: read\("
    [[ ! -e $T/ran ]]
}

# Without these, the command's processes are not found, signalled or awaited.
@test "H158 a call that a guard of a command cannot do without: exit 71, and its name" {
    [[ $(uname -m) == x86_64 ]] || skip "the numbers are those of x86_64"
    real=$RLOCK
    export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" # that reads /proc, and waits for a process
    for row in '217 getdents64' '247 waitid' '62 kill' '109 setpgid'; do
        for errno in $ENOSYS $EPERM; do
            kernel_refuses $errno "${row% *}"
            refused 71 run k -- touch "$T/ran"
            stderr_line "the operating system refuses: ${row#* }\("
            refused 71 fence "$T/fence" --token 1 -- touch "$T/ran"
            stderr_line "cannot start touch: ${row#* }\("
            [[ ! -e $T/ran ]]
            "$RLOCK" status -q k
        done
    done
}

@test "the manual names the oldest kernel that os/kernel.h counts from" {
    oldest=$(grep -o 'newer than Linux [0-9.]*[0-9]' "$TESTS/../src/os/kernel.h")
    grep -q "Linux ${oldest##* }" "$TESTS/../docs/install.md"
}
