# The same promises in many places, for the .bats files that vary where rlock runs, and nothing
# else: one command at a time; dead before the lease ends, whoever of the two guards is killed or
# stopped; loss; --at-most; signals; status; true words; nothing left, and nothing leaked. Loaded
# after helper.
# shellcheck shell=bash disable=SC2030,SC2031,SC2154
#
# To add a place, write a test that calls "run_rlock_under" with what leads into it, or starts the
# server and the proxy, and then keeps_promises.

outside=$RLOCK

# run_rlock_under COMMAND...: from now on each rlock is executed by that, in its place.
run_rlock_under() {
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
        one=$(children_of "$one" | head -n 1) && [[ $one ]] || return 1
    done
    echo "$one"
}

# guard_of NAME: prints the process, as "guard" finds it, and waits for it first.
guard_of() {
    poll_until 10 guard "$1" >/dev/null
    guard "$1"
}

# continue_with_wrapper NAME PID: rlock, and the program that leads there, which may have stopped
# too. script(1) has, continues rlock itself, and never hears of its end if that came before.
continue_with_wrapper() {
    if [[ $(cat "/proc/${pid[$1]}/comm") == script ]]; then
        poll_until 10 in_state "${pid[$1]}" T
        kill -CONT "${pid[$1]}"
    else
        kill -CONT "$2" "${pid[$1]}" 2>/dev/null || true
    fi
}

# Each holder works as a tree of processes that ignore TERM, and another one waits. CONTEND starts
# them; MEANWHILE is called when all are there. Where the kernel lists no children, the process that
# is in a session of its own is found among all of the machine's, between TERM and KILL.
excludes() {
    local row lease=${LEASE:-8s}
    for row in killed stopped agent-stopped taken; do
        ${CONTEND:-contend} $row "$lease" --kill-after 2s -- ignore
    done
    ${CONTEND:-contend} limited "$lease" --kill-after 2s --at-most 1s -- ignore
    for row in killed stopped agent-stopped taken; do
        declare -g "${row/-/_}=$(guard_of a$row)"
    done
    "$outside" force-release --yes --reason test ktaken >/dev/null 2>&1
    ${MEANWHILE:-:}
    kill -KILL "$killed"
    kill -STOP "$stopped" "$(agent_of "$agent_stopped")"
    for row in killed taken limited stopped agent-stopped; do
        ends_with b$row 0 20
        LOG=$LOG$row no_overlap
    done
    continue_with_wrapper astopped "$stopped"
    ends_with ataken 79
    ends_with astopped 79
    ends_with aagent-stopped 79
    ends_with alimited 124
    finish akilled
    [[ $status != 0 ]]
}

# The same where there are words.
exclusion() {
    excludes
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

# shown: from outside, the holder is seen with its process and host, and keeps others out.
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
