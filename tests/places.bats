# The same promises in many places. The other files vary what happens and when; here it is where:
# kernels without a call, sandboxes, name spaces, users without a name, limits, full and slow /proc,
# terminals without a shell, proxies. In each place: one command at a time; dead before the lease
# ends, whoever of the two guards is killed or stopped; loss; --at-most; signals; status; true
# words; nothing left, and nothing leaked.
#
# To add a place, write a test that calls "there" with what leads into it, and then keeps_promises.

load helper

setup() {
    start_test
    outside=$RLOCK
}

# there COMMAND...: from now on each rlock is executed by that, in its place.
there() {
    printf '#!/bin/bash\nexec %s "%s" "$@"\n' "$(printf '%q ' "$@")" "$outside" >"$T/rlock"
    printf '#!/bin/bash\nexec %s "$@"\n' "$(printf '%q ' "$@")" >"$T/there"
    chmod +x "$T/rlock" "$T/there"
    RLOCK=$T/rlock
    # Not every machine has each place.
    "$T/there" true 3>&- || skip "there is no such place here"
}

# guard NAME: the process of rlock, which may be a descendant of what leads into the place.
guard() {
    local one=${pid[$1]}
    until [[ $(readlink "/proc/$one/exe") == "$outside" ]]; do
        one=$(pgrep -P "$one" | head -n 1) && [[ $one ]] || return 1
    done
    echo "$one"
}

guard_of() {
    poll_until 10 guard "$1" >/dev/null
    guard "$1"
}

# Each holder works as a tree of processes that ignore TERM, and another one waits.
exclusion() {
    local row lease=${LEASE:-8s}
    for row in killed stopped agent-stopped taken; do
        contend $row "$lease" --kill-after 1s -- ignore
    done
    contend limited "$lease" --kill-after 1s --at-most 1s -- ignore
    for row in killed stopped agent-stopped taken; do
        declare -g "${row/-/_}=$(guard_of a$row)"
    done
    kill -KILL "$killed"
    kill -STOP "$stopped" "$(agent_of "$agent_stopped")"
    "$outside" force-release --yes --reason test ktaken >/dev/null 2>&1
    for row in killed taken limited stopped agent-stopped; do
        ends_with b$row 0 20
        LOG=$LOG$row no_overlap
    done
    # The program that leads there may have stopped with it.
    kill -CONT "$stopped" "${pid[astopped]}" 2>/dev/null || true
    ends_with ataken 79
    ends_with astopped 79
    ends_with aagent-stopped 79
    ends_with alimited 124
    finish akilled
    [[ $status != 0 ]]
    cat "$T/ataken.out" "$T/ataken.err" | grep -q 'lock lost: revoked by .*: test'
}

# The loss of an agent is not the loss of the lock.
replacement() {
    local one before
    stay holder replaced --lease 15s
    one=$(guard_of holder)
    before=$(agent_of "$one")
    kill -KILL "$before"
    poll_until 10 eval '[[ $(agent_of "'"$one"'") != @(|'"$before"') ]]'
    renewed replaced
    ends_well holder
}

signals() {
    bg_up signalled rlock run signalled -- sh -c "
        trap 'echo cleaned >\"$T/cleaned\"; exit 7' TERM
        : >'$T/signalled.up'
        while :; do sleep 0.05; done"
    kill -TERM "$(guard_of signalled)"
    ends_with signalled 7
    [[ -e $T/cleaned ]]
}

# The command has the descriptors and variables that it would have without rlock, and rlock's words.
leaks() {
    local look='echo /proc/$$/fd/*; env | cut -d= -f1 | grep -v "^RLOCK_" | sort | xargs'
    "$T/there" sh -c "$look" 3>&- >"$T/without" </dev/null
    RLOCK_PASSWORD=secret "$RLOCK" run leak -c "$look; env" 3>&- >"$T/with" </dev/null
    sed -i 's|/proc/[0-9]*/|/proc/PID/|g' "$T/without" "$T/with"
    diff -u "$T/without" <(head -n 2 "$T/with")
    fails grep -q 'PASSWORD' "$T/with"
    grep -q '^RLOCK_FENCE=[0-9]' "$T/with"
}

shown() {
    stay shown shown
    "$outside" status --json shown | jq -e '.[0].holders | length == 1 and .[0].pid > 0 and
        (.[0].host | length > 0)' >/dev/null
    run "$RLOCK" run -n shown -- true 3>&-
    [[ $status == 75 && $output == *'not acquired: held by '* ]]
    ends_well shown
}

# No process of rlock or of a command, and no lock.
nothing_left() {
    local file
    for file in $(grep -lsz "^RLOCK_TEST_ID=$RLOCK_TEST_ID\$" /proc/[0-9]*/environ); do
        [[ $(readlink "${file%/environ}/exe") != @("$outside"|"$RLOCK_TEST_TOOLS/worker") ]] ||
            return 1
    done
    [[ $("$outside" status --json) == '[]' ]]
}

keeps_promises() {
    exclusion
    replacement
    signals
    shown
    leaks
    poll_until 20 nothing_left
}

# own_mounts SCRIPT: a mount name space in which SCRIPT has been run, as root. It finds in "kept"
# what the test needs below /tmp.
own_mounts() {
    unshare --mount true 2>/dev/null || skip "no mount name spaces here"
    there unshare --mount sh -c "
        kept='$T $REDIS_DIR ${outside%/*} $RLOCK_TEST_TOOLS'
        $1
        exec \"\$@\"" sh
}

# ---------------------------------------------------------------- kernels and sandboxes

@test "place: Linux 4.18, which has none of the newer system calls" {
    there "$RLOCK_TEST_TOOLS/noscall" 38 clone3,close_range,faccessat2,openat2,pidfd_open,pidfd_send_signal
    keeps_promises
}

@test "place: a sandbox that refuses the newer system calls" {
    there "$RLOCK_TEST_TOOLS/noscall" 1 close_range,openat2,pidfd_open,pidfd_send_signal
    keeps_promises
}

@test "place: a sandbox in which orphans cannot be adopted: rlock says so, and runs nothing" {
    there "$RLOCK_TEST_TOOLS/noscall" 1 prctl
    run "$RLOCK" run k -- touch "$T/ran" 3>&-
    [[ $status == 71 && $output == *'prctl'* && ! -e $T/ran ]]
    [[ $(grep -c '^rlock: ' <<<"$output") == 1 ]]
    poll_until 20 nothing_left
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
    there unshare --pid --fork --mount-proc
    keeps_promises
}

# Only the group of the command is known there, and without /proc (rlock(7), "No usable /proc").
@test "place: a process name space of its own that has the outer /proc" {
    unshare --pid --fork true 2>/dev/null || skip "no process name spaces here"
    there unshare --pid --fork
    replacement
    signals
    poll_until 20 nothing_left
}

@test "place: no /proc" {
    unshare --mount true 2>/dev/null || skip "no mount name spaces here"
    there "${no_proc[@]}"
    signals
    poll_until 20 nothing_left
}

# ---------------------------------------------------------------- users and limits

@test "place: a user without an entry in /etc/passwd, in no group" {
    ((EUID == 0)) || skip "takes root"
    chmod 777 "$T" "$REDIS_SOCK"
    chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "${T%/*}" "${REDIS_SOCK%/*}"
    there setpriv --reuid 54321 --regid 54321 --clear-groups
    keeps_promises
    chmod 700 "$REDIS_SOCK"
}

@test "place: few descriptors" {
    there prlimit --nofile=24
    keeps_promises
}

@test "place: no further process: rlock says so, and runs nothing" {
    ((EUID == 0)) || skip "takes root"
    chmod 777 "$T" "$REDIS_SOCK"
    chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "${T%/*}" "${REDIS_SOCK%/*}"
    there setpriv --reuid 54322 --regid 54322 --clear-groups prlimit --nproc=1
    run "$RLOCK" run k -- touch "$T/ran" 3>&-
    [[ $status == 71 && ! -e $T/ran && $output == *'Resource temporarily unavailable'* ]]
    "$outside" status -q k
    chmod 700 "$REDIS_SOCK"
}

# ---------------------------------------------------------------- crowds

@test "place: five thousand processes" {
    (($(cat /proc/sys/kernel/pid_max) > 20000 && $(awk '/MemAvailable/ { print $2 }' /proc/meminfo) > 4000000)) ||
        skip "too small a machine"
    there env
    bg_up crowd "$RLOCK_TEST_TOOLS/crowd" 5000 "$T/crowd.up"
    LEASE=12s keeps_promises
}

@test "place: a slow /proc" {
    there env LD_PRELOAD="$RLOCK_TEST_TOOLS/shim_readdir.so"
    LEASE=12s exclusion
    signals
    poll_until 20 nothing_left
}

# ---------------------------------------------------------------- terminals

@test "place: a session of its own, without a terminal" {
    there setsid --wait
    keeps_promises
}

@test "place: a terminal whose only process is rlock" {
    command -v script >/dev/null || skip "no script here"
    cat >"$T/on-terminal" <<'END'
#!/bin/bash
SHELL=/bin/bash exec script -qec "$(printf '%q ' "$@")" /dev/null
END
    chmod +x "$T/on-terminal"
    there "$T/on-terminal"
    exclusion
    replacement
    signals
    poll_until 20 nothing_left
}

# ---------------------------------------------------------------- networks

@test "place: behind a proxy that is slow, and hands on byte by byte" {
    start_proxy
    fault delay up 30
    fault trickle down 1
    RLOCK_URL=redis://rlock:pw@${proxy[proxy]} LEASE=15s
    there env
    exclusion
    signals
    poll_until 20 nothing_left
}
