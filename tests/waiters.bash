# Waiters and holders that are killed or stopped: the same for every kind of store. Loaded after
# helper.
# shellcheck shell=bash disable=SC2154

# place_is_kept [OPTION...]: of waiters for k while their agents are killed. No one is shown
# who is not there, and the lock is never idle.
place_is_kept() {
    local name
    rm -f "$LOG"
    stay a k --lease 60s "$@"
    for name in b c; do
        queue $name k --lease 60s "$@"
    done
    for name in b c b; do
        kill_agent $name
        poll_until 10 has_waiters k 2
    done
    status_json k '.[0] | (.holders | length == 1) and (.waiters | length == 2)'
    ends_well a
    in_turn 30 b c
    is_free k
}

# passed_over [HOLDER'S OPTION...] / [SLEEPER'S...] / [OTHER'S...]: of two waiters for k, the first
# one is stopped: the other one has the lock before it, and the stopped one when it continues. A
# word without dashes is a further KEY.
passed_over() {
    local all=() who=0
    while (($#)); do
        [[ $1 != / ]] || who=$((who + 1))
        [[ $1 == / ]] || all[who]+=" $1"
        shift
    done
    rm -f "$LOG"
    # shellcheck disable=SC2086 # they are words
    {
        hold a k --lease 60s ${all[0]}
        queue asleep k --lease 60s ${all[1]}
        queue w k ${all[2]}
        suspend asleep STOP
        [[ ${all[0]} == *--read* ]] || kill "${pid[a]}"
        in_turn 20 w
        kill "${pid[a]}" || true
        finish a
        run -0 rlock run -n ${all[2]} k -- true
        kill -CONT "${pid[asleep]}"
        finish asleep
    }
    [[ $status == 0 && $(paste -sd' ' "$LOG") == "w asleep" ]]
}

# slots: of the live holders, in order.
slots() {
    "$RLOCK" status --json k 3>&- | jq -c '[.[0].holders[].slot] | sort'
}

# crowded_semaphore ROUNDS KILLED SECONDS: 20 want one of three slots, so many times each, and so
# many of them are killed; each ends within these seconds. There are never more than three at once.
crowded_semaphore() {
    local i
    export LOG ROUNDS=$1
    loop() {
        local n
        for ((n = 0; n < ROUNDS; n++)); do
            command rlock run -q --server-wait 2m --lease 5s --limit 3 k -- \
                worker "$LOG" "$1.$n" 0.05 grant
        done
    }
    export -f loop
    for ((i = 0; i < 20; i++)); do
        bg "c$i" bash -c "loop $i"
    done
    for ((i = 0; i < $2; i++)); do
        sleep 0.3 # not for a condition: any moment
        kill -KILL "$(children_of "${pid[c$i]}" rlock)" || true
    done
    for ((i = 0; i < 20; i++)); do
        finish "c$i" "$3"
    done
    run -0 python3 -B - "$TESTS" "$LOG" $((ROUNDS * 50 / 3)) <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from intervals import exclusion, fences, read_runs
runs = read_runs(open(sys.argv[2]))
faults = exclusion(runs, {"k": 3}) + fences(runs)
print(len(runs), *faults, sep="\n")
sys.exit(bool(faults) or len(runs) < int(sys.argv[3]))
END
}
