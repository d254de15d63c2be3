# Readers and writers of one key: together, in turn, and when some of them die. reader and writer
# NAME: in the background, until "let_end NAME"; they write +NAME and -NAME to the log when they are
# in, and out. waiting_are N: so many wait for k.

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

# let_end NAME...: let them end.
let_end() {
    local name
    for name; do
        : >"$T/go.$name"
    done
}

in_log() {
    grep -qsxF -- "$1" "$LOG"
}

has_lock() {
    poll_until "${2:-10}" in_log "+$1"
}

# A waiting one: NAME and how many wait then.
waiting_are() {
    poll_until 10 has_waiters k "$1"
}

done_well() { all_end 0 10 "$@"; }

log_is() {
    [[ $(tr '\n' ' ' <"$LOG") == "$* " ]] || {
        echo "the log is: $(tr '\n' ' ' <"$LOG")"
        return 1
    }
}

# Two readers have the lock together. A writer comes in only when the last of them has left.
@test "readers share; a writer waits for all of them" {
    reader r1
    has_lock r1
    reader r2
    has_lock r2
    writer w
    waiting_are 1
    run -75 rlock run -n k -- true
    let_end r1
    finish r1
    run -0 waiters k
    [[ $output == 1 ]]
    let_end r2 w
    done_well r2 w
    log_is +r1 +r2 -r1 -r2 +w -w
}

# One of two readers is killed with its agent. A writer waits for the other one only, once the lease
# of the dead one is over.
@test "H67 a dead reader goes at the end of its own lease, while others live on" {
    reader dead --lease 6s
    has_lock dead
    reader r
    has_lock r
    writer w
    waiting_are 1
    kill_both dead
    let_end r
    has_lock w
    let_end w
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

# A reader's command asks for the same lock, shared, while a writer waits. The nested reader goes
# first: otherwise both would wait for each other.
@test "H69 a reader's own reader does not wait behind a writer" {
    bg_up r rlock read k -- sh -c ": >'$T/r.up'; await '$T/go'
        exec rlock read -w 60s k -- sh -c 'echo nested >>\"$LOG\"'"
    writer w
    waiting_are 1
    : >"$T/go"
    let_end w
    done_well r w
    log_is nested +w -w
}

@test "H70 a reader that would write waits for itself: exit 78 at once" {
    run -0 rlock read k -- sh -c "rlock write k -- echo never 2>'$T/err'; test \$? = 78"
    [[ $output == "" && $(<"$T/err") == "rlock: k: "* ]]
    run -0 rlock read k -- sh -c "rlock run k -- echo never 2>'$T/err'; test \$? = 78"
    is_free k
}

# A writer ends while a reader that nests in it continues. The rest is shared, so the reader
# that waits comes in, and the writer behind it does not yet.
@test "H71 a writer that leaves its own reader behind wakes those that can read" {
    bg w rlock write k -- \
        sh -c "rlock read k -- sh -c \": >'$T/in'; await '$T/go'\" &
        await '$T/in'; await '$T/end'"
    poll_until 10 test -e "$T/in"
    reader r
    waiting_are 1
    writer w2
    waiting_are 2
    calls_first k touch "$T/end"
    has_lock r
    let_end r w2
    done_well w r
    run -1 in_log +w2
    : >"$T/go"
    done_well w2
}

# A writer in the queue is killed with its agent, and a reader comes behind it: that has the lock
# beside the other reader as soon as the dead writer's place has expired.
@test "H72 a dead writer in the queue costs the readers behind it ten seconds at most" {
    reader r
    has_lock r
    writer dead
    waiting_are 1
    reader late
    waiting_are 2
    kill_both dead
    timed 0 20000 has_lock late 12
    let_end r late
    done_well r late
}
