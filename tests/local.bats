# --local: a server of the user's own, started when needed, with its data when it was killed.
# servers, server_count: the live servers of this test; wrap_server COMMANDS: a redis-server in PATH
# that runs these first; in_mounts COMMANDS: as root, in mounts of its own, where $0 is rlock, and
# "user" or "as 54321" runs a command as user 54321.

load helper

setup() {
    start_test
    export RLOCK_URL=local: XDG_RUNTIME_DIR=$T/run
    mkdir "$XDG_RUNTIME_DIR"
    PLACE=$XDG_RUNTIME_DIR/rlock
    places=("$PLACE")
}

teardown() {
    [[ -n $BATS_TEST_COMPLETED ]] || { show_evidence && tail "$PLACE/log"; }
    end_processes
    local place
    for place in "${places[@]}"; do
        # shellcheck disable=SC2046 # pids
        kill -KILL $(pgrep -f "unixsocket:$place/socket") 2>/dev/null || true
    done
    rm -rf "${places[@]}"
}

# The live servers of this test, by the title that a redis-server gives itself.
servers() {
    local server
    for server in $(pgrep -x rlock-server); do
        ! grep -qaF "unixsocket:$XDG_RUNTIME_DIR/" "/proc/$server/cmdline" || gone "$server" ||
            echo "$server"
    done
}

server_count() {
    [[ $(servers | wc -l) == "$1" ]]
}

# as_root: skips the test for any other user.
as_root() {
    [[ $(id -u) == 0 ]] || skip "needs root"
}

# wrap_server COMMANDS: in $T/bin is a redis-server that runs these first.
wrap_server() {
    mkdir -p "$T/bin"
    printf '#!/bin/sh\n%s\nexec %s "$@"\n' "$1" "$(command -v redis-server)" >"$T/bin/redis-server"
    chmod +x "$T/bin/redis-server"
}

# Other users can run $T/rlock. The places of user 54321 go with the test: a later one that found
# them would fail.
for_others() {
    places+=({/run/lock,/tmp}/rlock-54321)
    install -m 755 "$RLOCK" "$T/rlock"
    chmod 755 "$T" "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "${T%/*}"
}

@test "a server is started when it is needed, in a directory of its own, and stays" {
    run -1 rlock local status
    # The password of another store is not for this one.
    RLOCK_PASSWORD=secret run -0 --separate-stderr rlock run --local k -- sh -c 'echo "$RLOCK_FENCE"'
    [[ $output == [0-9]* && -z $stderr ]]
    [[ $(stat -c '%a %u %F' "$PLACE") == "700 $(id -u) directory" ]]
    [[ $(stat -c '%a' "$PLACE/socket") == 700 ]]
    first=$(servers)
    [[ $first == [0-9]* ]]
    printf 'url = local:\n' >"$T/config"
    RLOCK_URL='' RLOCK_CONFIG=$T/config run -0 rlock run k -- true
    run -0 rlock status k
    prints 0 "*$first*$PLACE/socket*0 held*" local status
    [[ $(servers) == "$first" ]]
    [[ $(redis-cli -s "$PLACE/socket" config get maxmemory-policy) == *noeviction ]]
    [[ $(redis-cli -s "$PLACE/socket" config get appendonly) == *yes ]]
    [[ $(redis-cli -s "$PLACE/socket" config get port) == *0 ]]
}

@test "the server has a session of its own, no descriptors, nothing of the environment" {
    wrap_server "env >'$T/env'"
    mkfifo "$T/fifo"
    exec 7>"$T/open" 8<>"$T/fifo"
    SECRET=x timeout 200 env --ignore-signal=TERM,CHLD PATH="$T/bin:$PATH" "$RLOCK" run k -- \
        true >"$T/fifo" 2>&1 3>&-
    exec 7>&- 8>&-
    server=$(pgrep -f "unixsocket:$PLACE/socket")
    [[ $(ps -o sid= -p "$server") -eq $server ]]
    [[ -z $(find "/proc/$server/fd" -lname "$T/open" -o -lname "$T/fifo" -o -lname '/dev/pts/*') ]]
    [[ $(cut -d= -f1 "$T/env" | sort | xargs) == "PATH PWD" ]] # PWD is the shell's
    [[ $(readlink "/proc/$server/cwd") == "$PLACE" ]]
    # No signal is blocked, and TERM and CHLD are not ignored.
    grep -qP '^SigBlk:\t0{16}$' "/proc/$server/status"
    (((0x$(sed -n 's/^SigIgn:\t//p' "/proc/$server/status") & 0x14000) == 0))
    run -0 rlock local stop
    gone "$server"
}

@test "the server outlives the command that it was started for, and --wait-descendants" {
    run -0 timeout 200 "$RLOCK" run --wait-descendants k -- true
    server_count 1
    run -0 rlock local stop
    server_count 0
    run -124 rlock run --at-most 300ms --kill-after 200ms k -- sleep 10
    server_count 1
    run -0 rlock local stop
    # Started by a nested one, below another lock that is over.
    RLOCK_URL=unix://$REDIS_SOCK run -124 timeout 200 "$RLOCK" run --at-most 6s \
        --wait-descendants outer -- \
        sh -c '"$RLOCK" run --local inner -- true; sleep 1000'
    server_count 1
}

@test "twenty at once: one server, and one command at a time" {
    wrap_server "echo start >>'$T/starts'"
    for i in {1..20}; do
        PATH="$T/bin:$PATH" work "w$i" k 0.01
    done
    all_end 0 40 w{1..20}
    no_overlap
    [[ $(wc -l <"$T/starts") == 1 ]]
}

@test "H42 H43 the server is killed: it is started again with its data, nothing is lost" {
    at_work a k forever --lease 12s
    queued k work b k 0.1
    for i in 1 2 3; do
        first=$(servers)
        kill -KILL "$first"
        poll_until 5 gone "$first"
        poll_until 10 server_count 1 # the first request starts it
        run -75 rlock run -n k -- true
    done
    handed_over
    server_count 1
}

@test "H135 the agent is killed: the server continues, and the next agent renews there" {
    stay a k --lease 12s
    server=$(servers)
    kill_agent a
    renewed k
    [[ $(servers) == "$server" ]]
    kill -KILL "$server" "$(agent_of "${pid[a]}")"
    poll_until 10 held k
    renewed k
    server_count 1
    ends_well a
}

@test "fencing tokens and latches of a server that was stopped or killed continue" {
    before=$(rlock run k -- sh -c 'echo "$RLOCK_FENCE"')
    run -0 rlock latch set build 3
    run -0 rlock latch count-down build
    run -0 rlock local stop
    server_count 0
    [[ ! -e $PLACE/socket ]]
    after=$(rlock run k -- sh -c 'echo "$RLOCK_FENCE"')
    ((after > before))
    server=$(servers)
    kill -KILL "$server"
    poll_until 5 gone "$server"
    prints 0 1 latch count-down build
}

@test "a socket that was removed: the server behind it is replaced, with its data" {
    hold a k --lease 12s
    first=$(servers)
    rm "$PLACE/socket"
    run -75 rlock run -n k -- true
    poll_until 10 gone "$first"
    server_count 1
    alive "${pid[a]}"
    terminate a
    run -0 rlock run -n k -- true
}

@test "a server with a lock of a later rlock, which may be held, is not stopped" {
    rlock run k -- true
    redis-cli -s "$PLACE/socket" hset 'rlock:{later}' k lock/2
    says 69 'later.*: layout lock/2 needs a newer rlock' local stop
    server_count 1
    run -0 rlock local stop --force
}

@test "a directory that is not ours alone is refused: exit 69" {
    rlock run k -- true
    rlock local stop
    chmod 750 "$PLACE"
    says 69 "^rlock: k: .*$PLACE is open to others .*0750" run k -- touch "$T/ran"
    run -69 rlock local stop
    rm -r "$PLACE"
    ln -s "$T" "$PLACE"
    says 69 "^rlock: k: .*$PLACE is a symbolic link" run k -- touch "$T/ran"
    rm "$PLACE"
    touch "$PLACE"
    says 69 "^rlock: k: .*$PLACE is not a directory" run k -- touch "$T/ran"
    rm -r "$XDG_RUNTIME_DIR"
    says 69 "^rlock: k: .*$PLACE: No such file" run k -- touch "$T/ran"
    XDG_RUNTIME_DIR=/$(printf '%0110d' 0) run -69 --separate-stderr rlock run k -- touch "$T/ran"
    stderr_line "^rlock: k: .*XDG_RUNTIME_DIR is too long"
    [[ ! -e $T/ran ]]
    server_count 0
}

@test "a directory of somebody else is refused: exit 69" {
    as_root
    mkdir -m 700 "$PLACE"
    chown 54321 "$PLACE"
    says 69 "^rlock: k: .*$PLACE belongs to user 54321" run k -- touch "$T/ran"
    server_count 0
}

@test "two users have two servers; without XDG_RUNTIME_DIR it is in /run/lock" {
    as_root
    local uid=54321 place
    [[ -d /run/lock && $(stat -c %a /run/lock) == 1777 ]] || skip "no /run/lock for everybody"
    place=/run/lock/rlock-$uid
    [[ ! -e $place ]]
    for_others
    hold a k
    other() {
        env -u XDG_RUNTIME_DIR setpriv --reuid $uid --regid $uid --clear-groups timeout 200 \
            "$T/rlock" "$@" 3>&-
    }
    run -0 other run -n k -- sh -c "stat -c '%a %u' $place"
    [[ $output == "700 $uid" ]]
    # A session's own directory is left out; a relative one is none.
    [[ $(XDG_RUNTIME_DIR=run other local status) == *"$place/socket"* ]]
    other local stop
    server_count 1
}

# in_mounts COMMANDS: as root, in mounts of its own; "user" there runs rlock as user 54321.
in_mounts() {
    as_root
    unshare -m true 2>/dev/null || skip "no mount name space here"
    for_others
    run timeout 200 env -u XDG_RUNTIME_DIR unshare "${@:2}" -m bash -c '
        as() { setpriv --reuid $1 --regid $1 --clear-groups "${@:2}"; }
        user() { as 54321 "$0" "$@"; }
        '"$1" "$T/rlock" 3>&-
}

@test "without a /run/lock that lets everybody in it is in /tmp" {
    [[ ! -e /tmp/rlock-54321 ]]
    in_mounts 'mount -t tmpfs -o mode=755 none /run/lock
        user run k -- stat -c "%a %u" /tmp/rlock-54321 && user local status && user local stop'
    [[ $status == 0 && ${lines[0]} == "700 54321" && $output == */tmp/rlock-54321/socket* ]]
}

@test "H159 a /run/lock that this process may not write: exit 69 and why; a server there is used" {
    local place=/run/lock/rlock-54321
    [[ ! -e $place ]]
    locked='mount --bind /run/lock /run/lock && mount -o remount,bind,ro /run/lock'
    in_mounts "$locked; user run k -- echo ran"
    [[ $status == 69 && $output == *"cannot make $place: Read-only file system (in a unit, ReadWritePaths= allows it)"* ]]
    # Nor is a server started elsewhere, where others would not look.
    [[ $output != *ran* && ! -e /tmp/rlock-54321 ]]
    other=(setpriv --reuid 54321 --regid 54321 --clear-groups env -u XDG_RUNTIME_DIR "$T/rlock")
    bg_prints a "${other[@]}" run k -- sh -c 'echo; exec sleep 1000'
    in_mounts "$locked; user run -n k -- echo ran"
    [[ $status == 75 && $output != *ran* ]]
    terminate a 143
}

@test "the server has not the low priority of who starts it" {
    as_root
    (($(nice -n -1 nice 2>/dev/null) < $(nice))) || skip "may not change it here"
    run -0 nice -n 19 chrt --batch 0 "$RLOCK" run --server-wait 60s k -- true 3>&-
    [[ $(ps -o ni=,cls= -p "$(servers)" | xargs) == '0 TS' ]]
}

# shares_server_with_user_54321 COMMAND...: user 54321, and for whom COMMAND takes him, have the
# same place.
shares_server_with_user_54321() {
    as_root
    for_others
    other=(setpriv --reuid 54321 --regid 54321 --clear-groups env -u XDG_RUNTIME_DIR)
    "${other[@]}" "$@" true 2>/dev/null || skip "no $1 here"
    bg_prints a "${other[@]}" "$T/rlock" run k -- sh -c 'echo; exec sleep 1000'
    run "${other[@]}" "$@" "$T/rlock" run -n k -- echo ran 3>&-
    [[ $status == 75 && $output != *ran* ]]
    terminate a 143
    "${other[@]}" "$@" "$T/rlock" local stop
}

@test "a umask that takes all from the owner: the place can be used, then and later" {
    unshare -p true 2>/dev/null || skip "no process name space here"
    in_mounts 'mount -t tmpfs -o mode=1777 none /run/lock
        (umask 777; user run k -- echo ran)
        user run k -- echo ran
        user local stop' -p -f --mount-proc
    [[ $output == ran$'\n'ran* ]]
}

@test "H159 a user who is root in a user name space has the same place" {
    shares_server_with_user_54321 unshare --map-root-user
}

@test "H159 a user whom a user name space does not name has no place of his own: exit 69" {
    as_root
    for_others
    unshare --user true 2>/dev/null || skip "no user name spaces here"
    run -69 --separate-stderr env -u XDG_RUNTIME_DIR unshare --user "$T/rlock" run k -- touch "$T/ran" 3>&-
    stderr_line 'has no number outside of its name space of users'
    [[ ! -e $T/ran ]]
    mkdir -m 700 "$T/own"
    run -0 env XDG_RUNTIME_DIR="$T/own" unshare --user "$T/rlock" run --local k -- true 3>&-
    run -0 env XDG_RUNTIME_DIR="$T/own" "$T/rlock" local stop 3>&-
}

@test "H159 a user whom a library takes for root has the same place" {
    shares_server_with_user_54321 fakeroot
}

@test "H159 a /tmp or a /run/lock that only this process has: exit 69, and what to do" {
    unshare -p true 2>/dev/null || skip "no process name space here"
    in_mounts 'unshare -m sh -c "mount -t tmpfs -o mode=1777 none /run/lock; $0 run k -- echo ran"; exit' \
        -p -f --mount-proc
    [[ $status == 69 && $output == *"this process has a /run/lock of its own"*"XDG_RUNTIME_DIR"* ]]
    [[ $output != *ran* ]]
    mkdir -p "$T/systemd-private-1/tmp"
    chmod 1777 "$T/systemd-private-1/tmp"
    in_mounts 'mount -t tmpfs -o mode=755 none /run/lock && cp "$0" /run/lock/rlock
        mount --bind "$T/systemd-private-1/tmp" /tmp && as 54321 /run/lock/rlock run k -- echo ran'
    [[ $status == 69 && $output == *"this process has a /tmp of its own"* && $output != *ran* ]]
}

# With a process 1 of its own, as in a container, whose /run/lock it is.
@test "H159 another user's directory in the place of root's is put aside; of a user's, named" {
    as_root
    unshare -p true 2>/dev/null || skip "no process name space here"
    in_mounts 'mount -t tmpfs -o mode=1777 none /run/lock
        as 54322 mkdir /run/lock/rlock-0 /run/lock/rlock-54321
        user run k -- echo ran
        "$0" run k -- sh -c "stat -c \"%n %a %u\" /run/lock/*"
        "$0" local stop' -p -f --mount-proc
    [[ $status == 0 && $output != *ran* ]]
    [[ $output == *"/run/lock/rlock-54321 belongs to user 54322 (root has to remove it)"* ]]
    [[ $output == *"/run/lock/rlock-0 700 0"*"/run/lock/rlock-0.of-54322-"*" 755 54322"* ]]
}

@test "--local without a redis-server, or with one that does not start: 69, and rlock says why" {
    mkdir "$T/bin"
    run -69 --separate-stderr env PATH="$T/bin" "$RLOCK" run k -- /bin/touch "$T/ran"
    stderr_line '^rlock: k: .*redis-server is not installed \(install it, or name another store\)$'
    wrap_server 'echo "1:M 01 Jan 2026 00:00:00.000 # Out of luck"; exit 1'
    run -69 --separate-stderr env PATH="$T/bin" "$RLOCK" run k -- /bin/touch "$T/ran"
    stderr_line '^rlock: k: .*redis-server did not start: Out of luck$'
    [[ ! -e $T/ran ]]
}

@test "H16 a full disk: exit 69 and why, and it continues when there is room" {
    as_root
    unshare -m true 2>/dev/null || skip "no mount name space here"
    cat >"$T/full" <<'END'
set -ex
mount -t tmpfs -o size=1m none "$XDG_RUNTIME_DIR"
fill() { dd if=/dev/zero of="$XDG_RUNTIME_DIR/fill" bs=1k 2>/dev/null || true; }
status() { local status=0; "$@" || status=$?; echo "status $status"; }
fill
[[ $(status "$RLOCK" run k -- true 2>&1) == *"No space left"*"status 69" ]]
rm "$XDG_RUNTIME_DIR/fill"
"$RLOCK" run k -- true
fill
full=
for i in {1..60}; do
    # A release may be what there is no room for: not of a key that is needed again.
    full=$(status "$RLOCK" run -n --connect-timeout 3s --label "$(printf '%0200d' 0)" "k$i" -- true 2>&1)
    [[ $full == *"status 0" ]] || break
done
[[ $full == *"No space left"*"status 69" ]]
rm "$XDG_RUNTIME_DIR/fill"
"$RLOCK" run -w 60s k -- true
"$RLOCK" local stop --force
END
    run -0 timeout 200 unshare -m bash "$T/full"
}

@test "stop: refuses while something is held or waited for, under any prefix; --force; twice" {
    prints_nothing 0 local stop
    hold a k --prefix other --lease 12s
    first=$(servers)
    says 75 '^rlock: local: 1 lock is held' local stop
    stderr_line '^hint: .*--force'
    [[ $(servers) == "$first" ]]
    run -0 rlock local stop --force
    gone "$first"
    # The holder needs it, and has it again.
    poll_until 10 server_count 1
    alive "${pid[a]}"
    run -75 rlock run --prefix other -n k -- true
    terminate a
    run -0 rlock local stop
    server_count 0
    run -0 rlock local stop
    says 1 '^rlock: no local server runs' local status
}

@test "stop: a server that hangs is ended with --force" {
    rlock run k -- true
    kill -STOP "$(servers)"
    says 69 '^hint: --force' local stop --connect-timeout 300ms
    server_count 1
    (sleep 1; kill -CONT "$(servers)") 3>&- &
    run -0 rlock local stop --force
    server_count 0
}

@test "wrong usage of local ends with 64, and no server is started" {
    run -64 rlock local
    run -64 rlock local start
    run -64 rlock local stop k
    run -64 rlock local status --force
    run -64 rlock local stop -- true
    run -64 rlock run --local --url redis://h k -- true
    [[ ! -e $PLACE ]]
}
