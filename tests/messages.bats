# Messages of run and acquire: on a terminal, in a log, in a mail from cron. said NAME REGEX...: its
# standard error is these lines, and no others.

load helper

# A program with a screen of its own, as vi has, until TERM.
editor() {
    cat >"$T/editor" <<'EOF'
trap 'printf "\033[?1049l"; exit 1' TERM
printf '\033[?1049h'
echo "editing-now"
while :; do sleep 0.05; done
EOF
}

# said NAME REGEX...: the standard error of that background command is these lines, and no others.
said() {
    local name=$1 line lines=()
    shift
    mapfile -t lines <"$T/$name.err"
    [[ ${#lines[@]} == "$#" ]] || { echo "${#lines[@]} lines, not $#"; return 1; }
    for line in "${lines[@]}"; do
        grep -qE -- "$1" <<<"$line" || { echo "not like $1: $line"; return 1; }
        shift
    done
}

# The log is from the beginning as long as the files of these processes may be, so that no message
# can be written.
@test "a log that may not grow any more loses messages, and nothing else" {
    export LOG=$T/log
    head -c 1024 /dev/zero >"$LOG"
    echo 'nonsense = 1' >"$T/config" # a warning
    hold a held
    limited() {
        bash -c 'ulimit -f 1; exec "$@" 2>>"$LOG"' bash "$@"
    }
    run -0 limited rlock run -v --config "$T/config" k -- echo ran
    [[ $output == ran ]]
    run -0 limited rlock status 'nothing-*'
    run -75 limited rlock run -n held -- true
    run -1 limited rlock release held
    run -0 limited rlock force-release --yes held
    ends_with a 79
    [[ $(wc -c <"$LOG") == 1024 ]]
}

# ---------------------------------------------------------------- cron

# mailed STATUS LINES REGEX OPTION...: a job mails so many lines from cron; the first one matches
# REGEX.
mailed() {
    local wanted=$1 number=$2 regex=$3
    shift 3
    # The job is run again where a process stood still for as long as the wait.
    for _ in 1 2 3; do
        bg job rlock run "$@" -- sh -c 'sleep 100'
        finish job 20
        if [[ $status == "$wanted" && ! -s $T/job.out && $(wc -l <"$T/job.err") == "$number" ]]; then
            ((number == 0)) || grep -qE -- "$regex" <(head -n 1 "$T/job.err")
            return
        fi
        echo "$*: $status:" && cat "$T/job.out" "$T/job.err"
    done
    return 1
}

@test "run writes to standard error what cron should mail, and nothing else" {
    local by="rlock: k: not acquired: held by .*, label green$"
    hold a k --label green
    mailed 0 0 "" -q -n -E 0 k
    mailed 75 0 "" -q -n k
    mailed 9 0 "" -q -n -E 9 k
    mailed 9 0 "" -q -w 600ms -E 9 k
    mailed 0 0 "" -q -w 600ms -E 0 k
    mailed 0 0 "" -n -E 0 k
    mailed 75 1 "$by" -n k
    mailed 75 1 "$by" -w 900ms k # a second and more has a word of its own
    mailed 75 1 "$by" -q -w 600ms k
    mailed 75 1 "$by" -q -w 1500ms k
    printf 'conflict-exit-code = 7\n' >"$T/config"
    mailed 7 0 "" -q -w 600ms --config "$T/config" k
    mailed 69 2 "rlock: free: .*/nowhere" -q -n -E 0 -u unix:///nowhere --connect-timeout 1s free
    mailed 124 1 "rlock: free: stopping sh: time limit reached" -q -n -E 0 --at-most 500ms free
    mailed 64 2 "rlock: run: " -q --bogus free
}

@test "acquire writes to standard error what cron should mail, and nothing else" {
    hold a k --label green
    quiet 75 acquire -q -n k
    quiet 0 acquire -q -n -E 0 k
    quiet 9 acquire -q -w 3s -E 9 k
    run -75 --separate-stderr rlock acquire -q -w 3s k
    [[ ${#stderr_lines[@]} == 1 && $stderr == "rlock: k: not acquired: held by "*", label green" ]]
}

# ---------------------------------------------------------------- stopped commands

@test "a command that is stopped is an error, also with -q" {
    run -124 --separate-stderr rlock run -q --at-most 500ms k -- sleep 100
    [[ ${#stderr_lines[@]} == 1 ]]
    stderr_line '^rlock: k: stopping sleep: time limit reached \(--at-most 500ms\)$'
    run -124 --separate-stderr rlock run -q --no-renew --lease 5s k -- sleep 100
    [[ ${#stderr_lines[@]} == 1 ]]
    stderr_line '^rlock: k: stopping sleep: the lease ends \(--no-renew\)$'
    bg_up a rlock run -q --lease 6s k -- sh -c ": >'$T/a.up'; exec sleep 100"
    redis del "rlock:{k}"
    ends_with a 79
    said a '^rlock: k: lock lost: .*; stopping sh$'
}

# The first message is written into the screen of the editor, which vanishes with it, so the second
# one comes after the end of the command.
@test "a lock that is lost beside an editor is reported again when its screen has gone" {
    editor
    on_terminal rlock run --lease 6s k -- bash "$T/editor" <<'EOF'
expect editing-now
sh redis-cli -s "$REDIS_SOCK" del 'rlock:{k}' >/dev/null
expect rlock: k: lock lost: .*; stopping bash\r\n
expect \[\?1049l
expect rlock: k: lock lost: .*; bash was stopped\r\n
status 79
EOF
}

@test "a time limit that an editor reaches is reported again when its screen has gone" {
    editor
    on_terminal rlock run -q --at-most 4s k -- bash "$T/editor" <<'EOF'
expect stopping bash: time limit reached
expect \[\?1049l
expect rlock: k: bash was stopped: time limit reached \(--at-most 4s\)\r\n
status 124
EOF
}

@test "the loss of a lock is repeated after a command that continued, only on a terminal" {
    local command='echo now-up; await "$T/go"; echo "the-end"'
    on_terminal rlock run --lease 6s --on-lost continue k -- bash -c "$command" <<'EOF'
expect now-up
sh redis-cli -s "$REDIS_SOCK" del 'rlock:{k}' >/dev/null
expect rlock: k: lock lost: .*; bash continues\r\n
sh : >"$T/go"
expect the-end
expect rlock: k: lock lost: [^;]*\r\n
status 79
EOF
    rm "$T/go"
    bg a rlock run --lease 6s --on-lost continue k -- bash -c "$command"
    poll_until 10 contains "$T/a.out" now-up
    redis del "rlock:{k}"
    poll_until 10 contains "$T/a.err" 'bash continues'
    : >"$T/go"
    ends_with a 79
    said a 'lock lost'
}

# ---------------------------------------------------------------- waiting

# "w" is a run, "t" an acquire, and "q" is quiet: it announces nothing, so it reports no end of it
# either.
@test "a wait that was announced ends with how long it took" {
    hold a k
    queued k bg w rlock run k -- true
    queued k bg q rlock run -q k -- true
    bg t rlock acquire k
    poll_until 10 grep -q 'waiting for k' "$T/w.err"
    poll_until 10 grep -q 'waiting for k' "$T/t.err"
    kill "${pid[a]}"
    finish w
    finish q
    finish t
    said w 'waiting for k, held by' '^rlock: k: acquired after [0-9.]+m?s$'
    said t 'waiting for k, held by' '^rlock: k: acquired after [0-9.]+m?s$'
    said q
}

@test "a CI job, and a terminal that cannot redraw: plain lines, and a trace of the wait" {
    for setting in CI=true TERM=dumb; do
        hold a k
        HOLDER=${pid[a]} on_terminal env $setting rlock run k -- echo "mine now" <<'EOF'
expect ^rlock: waiting for k, held by [^\r]*; you are next\r\n
sh sleep 2.5 # that no other follows
absent waiting
sh kill $HOLDER
expect ^rlock: k: acquired after [0-9.]+m?s\r\nmine now\r\n
status 0
EOF
    done
}

# CI=false: where the tests run as a CI job, rlock would print whole lines instead.
@test "on a terminal the line of the wait is gone when it tells how long it took" {
    hold a k
    export HOLDER=${pid[a]}
    on_terminal env CI=false rlock run k -- echo "mine now" <<'EOF'
expect \r\x1b\[Kwaiting for k, held by
sh kill $HOLDER
expect \r\x1b\[Krlock: k: acquired after [0-9.]+m?s\r\nmine now
status 0
EOF
}

@test "in a narrow window the holder is cut, not the place; Ctrl-C leaves nothing of the line" {
    hold a k --label "a label that is long enough for no window of fifty columns"
    on_terminal rlock run k -- true <<'EOF'
resize 24 50
expect \r\x1b\[Kwaiting for k, held by [^\r]{15}\.\.\.; next\r
send \x03
expect \^C\r\x1b\[K
status 130
EOF
}

# ---------------------------------------------------------------- who is in the way

ENDED='kept until [-0-9 ]*[0-9]{2}:[0-9]{2}; the command ended with 3 after [0-9.]+m?s'

# The pid of the command that has ended may be another process's by now, so it is shown nowhere.
@test "a lock that --at-least keeps is not held by a command that has ended" {
    local pid
    bg a rlock run --at-least 60s --label nightly k -- sh -c 'exit 3'
    finish a
    pid=${pid[a]}
    [[ $status == 3 ]]
    run -0 rlock status
    [[ $output =~ $ENDED && $output != *"$pid"* ]]
    run -0 rlock status k
    [[ $output =~ $ENDED ]]
    status_json k '.[0].holders | length == 1 and .[0].kept == true'
    run -75 --separate-stderr rlock run -n k -- true
    stderr_line "^rlock: k: not acquired: $ENDED; it was run by .* \\(sh\\), label nightly\$"
    [[ $stderr != *"$pid"* ]]
    bg w rlock run k -- true
    poll_until 10 test -s "$T/w.err"
    grep -qE "^rlock: waiting for k, $ENDED; it was run by .* \(sh\), label nightly; you are next\$" "$T/w.err"
    says 0 "^k is $ENDED" force-release --now --yes k
    finish w
    run -0 rlock run --at-least 60s k -- rlock status --json k
    json '.[0].holders[0].kept == false'
}

# "c" has been killed before its command ended: its agent ends the command, and cannot tell how it
# would have ended.
@test "a refusal says how the command ended whose lock is kept: by a signal, stopped, unknown" {
    bg a rlock run --at-least 60s a -- sh -c 'kill -KILL $$'
    bg b rlock run --at-least 60s --at-most 500ms b -- sleep 100
    bg_up c rlock run --at-least 60s c -- sh -c ": >'$T/c.up'; exec sleep 100"
    poll_until 10 in_state "${pid[c]}" S # it has nothing more to say to its agent
    kill -KILL "${pid[c]}"
    finish a
    finish b
    run -75 --separate-stderr rlock run -n a -- true
    stderr_line 'kept until [-0-9 ]*[0-9]{2}:[0-9]{2}; the command died of signal KILL after'
    run -75 --separate-stderr rlock run -n b -- true
    stderr_line 'kept until [-0-9 ]*[0-9]{2}:[0-9]{2}; the command died of signal TERM after'
    poll_until 15 eval "rlock status --json c 3>&- | jq -e '.[0].holders[0].kept' >/dev/null"
    says 75 'kept until [-0-9 ]*[0-9]{2}:[0-9]{2}; the command has ended' run -n c -- true
}

@test "of several holders the oldest is named, with its label and since when" {
    hold a s --limit 2 --label first
    hold b s --limit 2 --label second
    run -75 --separate-stderr rlock run -n --limit 2 s -- true
    stderr_line "^rlock: s: not acquired: all 2 slots are taken, the oldest by .*@$(hostname) pid ${pid[a]} \(sh\) for .*, label first$"
    terminate a
    hold c s --limit 2 --label third
    says 75 'the oldest by .*, label second$' run -n --limit 2 s -- true
    hold d r --read --label first
    hold e r --read --label second
    run -75 --separate-stderr rlock run -n r -- true
    stderr_line '^rlock: r: not acquired: held by 2 readers, longest by .* for .*, label first$'
}

@test "a waiter for an ancestor, because RLOCK_OWNER got lost, reads so, once" {
    local hint='^hint: pass RLOCK_OWNER on, as by sudo --preserve-env=RLOCK_OWNER'
    bg a rlock run --lease 20s k -- \
        sh -c "echo \$\$ >'$T/pid'; env -u RLOCK_OWNER rlock run k -- true"
    poll_until 20 grep -q '^hint' "$T/a.err"
    sleep 3 # that it is for once: the next heartbeat has been
    said a 'waiting for k, held by' \
        "^rlock: k: rlock waits for itself: pid ${pid[a]}, which holds it, is an ancestor of this process$" "$hint"
    terminate a
    # A shell that has acquired it, and has not exported the token.
    bg s bash -c 'token=$(rlock acquire --lease 20s s); rlock run -q -w 5s s -- true; echo "$?"'
    finish s
    [[ $(<"$T/s.out") == 75 ]]
    said s 'rlock waits for itself: pid [0-9]+, which' "$hint" \
        '^rlock: s: not acquired: held by .*; that is an ancestor of this process$'
    run -75 --separate-stderr rlock run k -- sh -c 'env -u RLOCK_OWNER rlock run -n k -- true'
    [[ ${#stderr_lines[@]} == 1 ]]
    stderr_line '^rlock: k: not acquired: held by .* \(sh\) for .*; that is an ancestor of this process$'
}

# Their first processes have the same number, and the one that waits is older.
@test "H161 a holder in another container of the same name is not an ancestor" {
    local apart=(unshare --pid --fork --mount-proc)
    "${apart[@]}" true 2>/dev/null || skip "no process name spaces here"
    bg w "${apart[@]}" sh -c "await '$T/go'
        rlock run -w 1s k -- true; echo \$?; rlock reserve -w 1s k 1h -m x; echo \$?"
    bg_up a "${apart[@]}" rlock run k -- sh -c ": >'$T/a.up'; exec sleep 1000"
    rlock status --json k | jq -e '.[0].holders[0].pid == 1'
    : >"$T/go"
    finish w
    [[ $(xargs <"$T/w.out") == '75 75' ]]
    fails grep -E 'itself|ancestor' "$T/w.err"
}

@test "a waiter for another process, or for one of several slots, does not wait for itself" {
    hold a k
    bg w rlock run -w 4s k -- true
    bg s rlock run --limit 2 s -- sh -c "env -u RLOCK_OWNER rlock run --limit 2 s -- \
        env -u RLOCK_OWNER rlock run -w 4s --limit 2 s -- true"
    finish w
    finish s
    said w 'waiting for' 'not acquired: held by .* for [0-9.]+s$'
    said s 'waiting for' 'not acquired: all 2 slots are taken, the oldest by .* for [0-9.]+s$'
}

# ---------------------------------------------------------------- outages

# "a" holds, "w" and "t" wait for a lock, "l" for a latch: each has announced the outage, and so
# announces its end. "q" is quiet about both.
@test "an outage that was announced and is over is announced as over" {
    start_proxy
    local url=redis://${proxy[proxy]} one
    rlock latch set l 1
    hold b b
    bg_up a rlock run -u "$url" --lease 20s k -- \
        sh -c ": >'$T/a.up'; await '$T/go'"
    bg w rlock run -u "$url" --lease 20s b -- true
    bg t rlock acquire -u "$url" --lease 20s b
    bg l rlock latch wait -u "$url" l
    bg q rlock run -q -u "$url" --lease 20s b -- true
    poll_until 10 has_waiters b 3
    for one in w t l; do
        poll_until 10 grep -q 'waiting for' "$T/$one.err"
    done
    fault refuse
    for one in a w t l; do
        poll_until 20 grep -qE '^rlock: [kbl]: .*; trying again$' "$T/$one.err"
        [[ $(<"$T/$one.err") != *"is back"* ]]
    done
    fault pass
    for one in a w t l; do
        poll_until 20 grep -qE '^rlock: [kbl]: the store is back after [0-9.]+m?s$' "$T/$one.err"
    done
    : >"$T/go"
    finish a
    [[ $status == 0 && ! -s $T/q.err ]]
}

@test "H171 what others wrote is escaped wherever it leaves rlock" {
    local evil=$'\e[31m\u009b2J\rnew\nline' each
    hold a k --label "$evil"
    rlock pause p 1h -m "$evil" -q
    for each in status 'status -v' 'status --json' 'run -n k -- true' 'run -n p -- true' \
        'check --held 0 k' 'check --paused 0 p' 'force-release --yes k' history 'history --json' metrics; do
        # shellcheck disable=SC2086
        "$RLOCK" $each >"$T/out" 2>&1 3>&- || true
        echo "$each: $(cat -v "$T/out")"
        LC_ALL=C.UTF-8 run ! grep -aP '[^\P{Cc}\n]|^line' "$T/out"
    done
    rlock resume p
}
