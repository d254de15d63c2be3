# Readers and writers of one key: together, in turn, and when some of them die.

load helper

# reader NAME [OPTION...], writer NAME [OPTION...]: in the background; their lines in the log say
# when they are in, and out.
reader() { party "$1" --read "${@:2}"; }
writer() { party "$1" --write "${@:2}"; }

party() {
    bg "$1" rlock run "${@:2}" k -- \
        sh -c "echo +$1 >>'$LOG'; await '$T/go.$1'
        echo -$1 >>'$LOG'"
}

# go NAME...: let them end.
go() {
    local name
    for name; do
        : >"$T/go.$name"
    done
}

in_log() {
    grep -qsxF -- "$1" "$LOG"
}

is_in() {
    poll_until "${2:-10}" in_log "+$1"
}

# A waiting one: NAME and how many wait then.
waits() {
    poll_until 10 has_waiters k "$1"
}

done_well() { all_end 0 10 "$@"; }

log_is() {
    [[ $(tr '\n' ' ' <"$LOG") == "$* " ]] || {
        echo "the log is: $(tr '\n' ' ' <"$LOG")"
        return 1
    }
}

@test "readers share; a writer waits for all of them" {
    reader r1
    is_in r1
    reader r2
    is_in r2
    writer w
    waits 1
    run -75 rlock run -n k -- true
    go r1
    finish r1
    run -0 waiters k
    [[ $output == 1 ]]
    go r2 w
    done_well r2 w
    log_is +r1 +r2 -r1 -r2 +w -w
}

@test "H67 a dead reader goes at the end of its own lease, while others live on" {
    reader dead --lease 6s
    is_in dead
    reader r
    is_in r
    writer w
    waits 1
    kill_both dead
    go r
    is_in w
    go w
    done_well r w
}

@test "H68 a writer is not starved by readers that come and go" {
    readers() {
        while [[ ! -e $T/enough ]]; do
            command rlock read k -- sleep 0.3
        done
    }
    export -f readers
    for i in 1 2 3 4 5; do
        bg "loop$i" bash -c readers
        sleep 0.06 # not for a condition: so that they overlap
    done
    for i in 1 2 3; do
        # A writer takes as long as the readers that were in already; each of them ends soon, all
        # of them never.
        run -0 rlock write -w 60s k -- true
    done
    : >"$T/enough"
    for i in 1 2 3 4 5; do
        finish "loop$i"
    done
}

@test "H69 a reader's own reader does not wait behind a writer" {
    bg_up r rlock read k -- sh -c ": >'$T/r.up'; await '$T/go'
        exec rlock read -w 60s k -- sh -c 'echo nested >>\"$LOG\"'"
    writer w
    waits 1
    : >"$T/go"
    go w
    done_well r w
    log_is nested +w -w
}

@test "H70 a reader that would write waits for itself: exit 78 at once" {
    run -0 rlock read k -- sh -c "rlock write k -- echo never 2>'$T/err'; test \$? = 78"
    [[ $output == "" && $(<"$T/err") == "rlock: k: "* ]]
    run -0 rlock read k -- sh -c "rlock run k -- echo never 2>'$T/err'; test \$? = 78"
    is_free k
}

@test "H71 a writer that leaves its own reader behind wakes those that can read" {
    bg w rlock write k -- \
        sh -c "rlock read k -- sh -c \": >'$T/in'; await '$T/go'\" &
        await '$T/in'; await '$T/end'"
    poll_until 10 test -e "$T/in"
    reader r
    waits 1
    writer w2
    waits 2
    calls_first k touch "$T/end"
    is_in r
    go r w2
    done_well w r
    run -1 in_log +w2
    : >"$T/go"
    done_well w2
}

@test "H72 a dead writer in the queue costs the readers behind it ten seconds at most" {
    reader r
    is_in r
    writer dead
    waits 1
    reader late
    waits 2
    kill_both dead
    timed 0 20000 is_in late 12
    go r late
    done_well r late
}
