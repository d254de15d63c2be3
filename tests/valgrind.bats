# Every command once under valgrind, the agent and all other processes of rlock's own with it:
# nothing is read before it was written, or beyond its end, and at the end nothing is lost. clean N:
# N processes of rlock or more have ended, and valgrind has found nothing in any.

load helper

setup_file() {
    if ! command -v valgrind >/dev/null; then
        export UNFIT="no valgrind"
    elif grep -q __asan_init "$RLOCK"; then
        export UNFIT="a sanitizer and valgrind exclude each other"
    fi
    start_file
}

setup() {
    [[ -z ${UNFIT:-} ]] || skip "$UNFIT"
    start_test
    local program=$RLOCK
    RLOCK=$T/under-valgrind
    mkdir "$T/found"
    cat >"$RLOCK" <<END
#!/bin/sh
export LD_PRELOAD='$RLOCK_TEST_TOOLS/shim_clone.so'
exec valgrind -q --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \\
    --log-file='$T/found/%p' -- '$program' "\$@"
END
    chmod +x "$RLOCK"
}

# clean PROCESSES: at least that many were examined, without a finding. The report of valgrind on
# itself, as that it does not know a system call, comes between dashes.
clean() {
    local found
    found=$(sed '/^--[0-9]*--/d' "$T"/found/*)
    echo "$found"
    within "$1" 1000 "$(find "$T/found" -type f | wc -l)"
    [[ -z $found ]]
}

@test "run: free, waited for, renewed, timed out, cancelled" {
    bg_up first rlock run --lease 12s k -- \
        sh -c ": >'$T/first.up'; '$RLOCK_TEST_TOOLS/await' '$T/go'; exit 3"
    bg second rlock run -v k -- true
    run -75 --separate-stderr rlock run -w 8s k -- true # to connect takes a part of it
    bg third rlock run k -- true
    poll_until 20 has_waiters k 2
    terminate third 143
    : >"$T/go"
    ends_with first 3
    ends_with second 0
    clean 8
}

# valgrind finds no fault in rlock and its agent when the lock is deleted and the command is ended.
@test "run: the lease is lost, the command has to go" {
    bg first rlock run --lease 6s k -- sleep 100
    poll_until 15 held k
    redis del 'rlock:{k}'
    ends_with first 79
    clean 2
}

@test "run: several keys, readers, a semaphore, one nested in another" {
    run -0 rlock run a b c -- true
    run -0 rlock read k -- "$RLOCK" read k -- true
    run -0 rlock run --limit 3 s -- sh -c 'exit 0'
    run -0 rlock write k -- "$RLOCK" run k -- true
    clean 8
}

@test "acquire, renew, release, force-release, status" {
    owner=$(rlock acquire k)
    run -0 rlock renew --owner "$owner" k
    run -0 rlock status k
    run -0 rlock status --json k
    run -0 rlock status
    run -0 rlock release --owner "$owner" k
    rlock acquire k >/dev/null
    run -0 rlock force-release --now --yes k
    clean 7
}

@test "latch: set, waited for, counted down, run, shown, deleted" {
    run -0 rlock latch set l 2
    bg waiter rlock latch wait l
    run -0 rlock latch count-down --id a l
    run -0 rlock latch run l -- true
    ends_with waiter 0
    run -0 rlock latch status --json l
    run -0 rlock latch delete l
    clean 6
}

@test "no socket, a port that refuses, a server that wants a password; doctor; help" {
    as_default_user
    run -69 rlock run --url unix:///nowhere k -- true
    run -69 rlock run --url redis://localhost:1 k -- true
    redis config set requirepass secret
    run -77 rlock run --url "unix://$REDIS_SOCK" k -- true
    REDISCLI_AUTH=secret redis config set requirepass ''
    run rlock doctor
    run rlock doctor --json
    run -64 rlock run --nonsense
    run -0 rlock help run
    clean 9
}

@test "--local: a server is started, asked and stopped" {
    export XDG_RUNTIME_DIR=$T/run
    mkdir -m 700 "$XDG_RUNTIME_DIR"
    run -0 rlock run --local k -- true
    run -0 rlock local status
    run -0 rlock local stop
    clean 4
}

@test "fence, with a command and without; a command of --stop; a cgroup" {
    run -0 rlock fence "$T/fence" --token 5
    run -3 rlock fence "$T/fence" --token 6 -- sh -c 'exit 3'
    run -79 rlock fence "$T/fence" --token 5
    run -124 rlock run --at-most 3s --stop true k -- sleep 1000
    run rlock run --cgroup k -- true
    [[ $status == 0 || $status == 71 ]]
    clean 8
}
