# Clocks that jump or stand still: the server's, and the wall clock of rlock's host.

load helper

setup_file() {
    export SHIM_CLOCK_FILE=$BATS_FILE_TMPDIR/clock
    export REDIS_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so
    truncate -s 4096 "$SHIM_CLOCK_FILE"
    server_clock 0
    start_file
}

teardown() {
    [[ -n $BATS_TEST_COMPLETED ]] || show_evidence
    end_processes
    server_clock 0
    redis_restart_empty
}

die_holding() { # KEY LEASE: what is left of a holder that was killed
    local agent
    hold dead "$1" --lease "$2"
    agent=$(agent_of "${pid[dead]}")
    kill -STOP "$agent" "${pid[dead]}"
    kill -KILL "$agent" "${pid[dead]}"
}

@test "the server's clock can be moved here" {
    local before
    before=$(redis time | head -1)
    server_clock 3600000
    within $((before + 3600)) $((before + 3620)) "$(redis time | head -1)"
    server_clock freeze
    before=$(redis time | paste -sd.)
    sleep 0.1
    [[ $(redis time | paste -sd.) == "$before" ]]
}

@test "H27 the server's clock jumps forward: the holder takes care of its lock" {
    bg a rlock run --lease 3s k -- sh -c ": >'$T/up'; sleep 3; exit 9"
    poll_until 10 test -e "$T/up"
    server_clock 60000
    finish a
    [[ $status == 9 ]]
    run -0 rlock status -q k
}

@test "H27 someone else is faster after the jump: noticed at the next renewal" {
    local start
    work a k 100 --lease 6s -- tree
    working a
    server_clock 60000
    run -0 rlock run k -- true
    start=$(now_ms)
    finish a
    [[ $status == 79 ]]
    within 0 3500 $(($(now_ms) - start))
}

@test "H28 the server's clock goes back an hour: a dead holder costs one lease at most" {
    local start
    die_holding k 3s
    server_clock -3600000
    start=$(now_ms)
    run -0 rlock run -w 20s k -- true
    within 0 9000 $(($(now_ms) - start))
}

@test "H28 the server's clock goes back an hour: a living holder stays" {
    bg a rlock run --lease 2s k -- sh -c ": >'$T/up'; sleep 4; exit 9"
    poll_until 10 test -e "$T/up"
    server_clock -3600000
    run -75 rlock run -w 3s k -- true
    finish a
    [[ $status == 9 ]]
    run -0 rlock run -n k -- true
}

@test "H29 the server's clock stands still: the holder works, force-release frees a dead one's lock" {
    server_clock freeze
    bg a rlock run --lease 2s k -- sleep 3
    die_holding dead 1s
    run -75 rlock run -w 3s dead -- true
    run -0 rlock force-release --yes dead
    run -0 rlock run -n dead -- true
    finish a
    [[ $status == 0 ]]
}

@test "H31 the wall clock of rlock's host jumps: nothing happens" {
    local file=$T/clock
    truncate -s 4096 "$file"
    printf '%-32s' 0 1<>"$file"
    LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so SHIM_CLOCK_FILE=$file \
        bg a rlock run --lease 2s k -- sh -c ": >'$T/up'; sleep 5; exit 9"
    poll_until 10 test -e "$T/up"
    printf '%-32s' 86400000 1<>"$file"
    run -75 rlock run -w 1500ms k -- true
    printf '%-32s' -86400000 1<>"$file"
    run -75 rlock run -w 1500ms k -- true
    finish a
    [[ $status == 9 && ! -s $T/a.err ]]
}

@test "H31 a wait lasts as long as it should whatever the wall clock says" {
    local file=$T/clock start
    truncate -s 4096 "$file"
    hold a k
    start=$(now_ms)
    printf '%-32s' 0 1<>"$file"
    LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so SHIM_CLOCK_FILE=$file bg w rlock run -w 2s k -- true
    poll_until 10 has_waiters k 1
    printf '%-32s' 86400000 1<>"$file"
    finish w
    [[ $status == 75 ]]
    within 1900 6000 $(($(now_ms) - start))
}

@test "H32 all of a holder sleeps longer than its lease: the command does not go on" {
    local agent pids after
    work a k 100 --lease 2s -- tree
    working a
    poll_until 10 eval '[[ $(cut -d" " -f2 "$LOG" | sort -u | wc -l) == 3 ]]'
    agent=$(agent_of "${pid[a]}")
    pids=$(cut -d' ' -f2 "$LOG" | sort -u)
    # shellcheck disable=SC2086
    kill -STOP "${pid[a]}" "$agent" $pids
    work b k 1
    working b 10
    kill -CONT "$agent" "${pid[a]}"
    # shellcheck disable=SC2086
    kill -CONT $pids 2>/dev/null || true
    finish a 5
    [[ $status == 79 ]]
    finish b
    # What is left is the moment until rlock itself is scheduled.
    after=$(awk '$1 == "b" { b = 1 } $1 == "a" && b { n++ } END { print n + 0 }' "$LOG")
    within 0 60 "$after"
}
