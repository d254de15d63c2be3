# rlock run: statuses, the command's environment, options, reports.

load helper

returncode() { # negative for death by a signal, as python sees it
    python3 -c 'import subprocess, sys; print(subprocess.run(sys.argv[1:]).returncode)' "$@" 3>&-
}

@test "H100 the command's status is passed on" {
    for n in 0 1 2 75 79 124 126 127 128 137 255; do
        run rlock run k -- sh -c "exit $n"
        [[ $status == "$n" && $output == "" ]]
    done
}

@test "H100 rlock dies of the signal that its command died of, without a core of its own" {
    cd "$T"
    ulimit -c unlimited || skip "no core files here"
    [[ $(returncode rlock run k -- sh -c 'kill -KILL $$') == -9 ]]
    [[ $(returncode rlock run k -- sh -c 'kill -TERM $$') == -15 ]]
    [[ $(returncode rlock run k -- sh -c 'ulimit -c 0; kill -SEGV $$') == -11 ]]
    [[ -z $(find "$T" -name '*core*') ]]
    run -143 bash -c 'rlock run k -- sh -c "kill -TERM \$\$"; exit $?'
}

@test "the command finds key, mode, lease, slot, owner and fence in its environment" {
    RLOCK_SLOT=9 run -0 rlock run --lease 20s job/1 -- \
        sh -c 'echo "$RLOCK_KEY|$RLOCK_MODE|$RLOCK_LEASE_MS|${RLOCK_SLOT-none}|$RLOCK_OWNER|$RLOCK_FENCE"'
    [[ $output =~ ^"job/1|exclusive|20000|none|"([0-9a-f-]{36})"|"[0-9]+$ ]]
    local hex='[0-9a-f]' owner=${BASH_REMATCH[1]} # a random UUID, by RFC 9562
    [[ $owner =~ ^$hex{8}-$hex{4}-4$hex{3}-[89ab]$hex{3}-$hex{12}$ ]]
    run -0 rlock run k -- \
        sh -c 'rlock status --json k | jq -r ".[0].holders[0].owner"; echo "$RLOCK_OWNER"'
    [[ ${lines[0]} == "${lines[1]}" && ${#lines[0]} == 36 ]]
}

@test "H105 streams and arguments reach the command untouched" {
    run -0 bash -c "printf 'a\nb' | rlock run k -- cat"
    [[ $output == $'a\nb' ]]
    run -0 rlock run k -- printf '<%s>' 'a b' '' $'new\nline' '*' '--' '-n' "it's"
    [[ $output == $'<a b><><new\nline><*><--><-n><it\'s>' ]]
    run -0 --separate-stderr rlock run k -- sh -c 'echo out; echo err >&2'
    [[ $output == out && $stderr == err ]]
    prints 0 end::1 run k -- sh -c 'read -r x; echo "end:$x:$?"' </dev/null
}

@test "-c runs a shell command line" {
    prints 0 K run k -c 'echo "$RLOCK_KEY" | tr k K; exit 0'
    run -5 rlock run k -c "x='a  b'; [ \"\$x\" = 'a  b' ] && exit 5"
}

@test "-n does not wait: exit 75 and one line that names the holder" {
    hold a k --label "the holder"
    run -75 --separate-stderr rlock run -n k -- true
    [[ $output == "" && ${#stderr_lines[@]} == 1 && $stderr == rlock:* ]]
    [[ $stderr == *"$(hostname)"* || $stderr == *"the holder"* || $stderr == *"${pid[a]}"* ]]
    run -75 rlock run --no-wait k -- true
    run -75 rlock run --nonblock k -- true
    run -75 rlock run -w 0 k -- true
}

@test "-w gives up after its duration: exit 75" {
    hold a k
    for option in "-w 3" "--wait=3000ms" "--timeout 3s"; do
        timed 2950 20000 run -75 rlock run $option k -- true
    done
    [[ $(waiters k) == 0 ]]
}

@test "-E sets the status for not acquired, and only that" {
    hold a k
    run -11 rlock run -w 3s --conflict-exit-code=11 k -- true
    run -69 rlock run -n -E 0 -u unix:///nowhere k -- true
    run -1 rlock run -n -E 9 other -- false
}

@test "H97 a command that cannot be executed: exit 126 or 127, and the lock is free at once" {
    says 127 '^rlock: .*missing.*[Nn]o such file' run k -- "$T/missing"
    # With no directory in PATH that this user may not enter.
    PATH=/usr/bin:/bin run -127 rlock run k -- no-such-command-anywhere
    printf 'x' >"$T/plain"
    says 126 '^rlock: .*plain.*[Pp]ermission' run k -- "$T/plain"
    run -126 rlock run k -- /
    printf '#!/no/such/interpreter\n' >"$T/script" && chmod +x "$T/script"
    run -127 rlock run k -- "$T/script"
    run -0 rlock status -q k
}

@test "H74 --at-most stops the command after its duration, counted from the acquisition: exit 124" {
    timed 950 20000 says 124 '^rlock: ' run --at-most 1s k -- sleep 100
    run -124 rlock run --at-most 500ms k -- sh -c 'trap "exit 7" TERM; while :; do sleep 0.05; done'
    run -0 rlock run --at-most 0 k -- sleep 0.2
    run -4 rlock run --at-most 20s k -- sh -c 'exit 4'
    run -0 rlock status -q k
}

@test "--kill-after is the time between TERM and KILL" {
    timed 6950 20000 run -124 rlock run --at-most 4s --kill-after 3s k -- \
        sh -c 'trap "echo term" TERM; while :; do sleep 0.05; done'
    [[ $output == *term* ]]
}

@test "--no-renew stops the command before the lease ends: exit 124" {
    start=$(now_ms)
    at_work a k forever --no-renew --lease 6s
    work b k 0.2
    ends_with a 124
    took 4000 20000 "$start"
    finish b
    no_overlap
    run -6 rlock run --no-renew --lease 20s k -- sh -c 'exit 6'
    bg a rlock run --no-renew --lease 2s k -- sh -c 'trap ": >\"$T/termed\"" TERM; while :; do sleep 0.02; done'
    poll_until 10 test -e "$T/termed"
    kill -STOP "${pid[a]}"
    poll_until 10 is_free k
    kill -CONT "${pid[a]}"
    ends_with a 124
}

@test "--no-renew stops a paused command before the lease ends, too: timed out, not lost" {
    as_job hold a k --no-renew --lease 9s
    suspend a TSTP
    poll_until 15 is_free k
    kill -CONT "${pid[a]}"
    ends_with a 124
    contains "$T/a.err" 'rlock: k: stopping sh: the lease ends (--no-renew)'
    run -0 rlock history --json k
    json 'map(.outcome) == ["timed out"]'
}

@test "a command that cannot be found: exit 127, and a hint says what was perhaps meant" {
    printf '#!/bin/sh\r\necho\r\n' >"$T/windows"
    printf '#!/nowhere/sh -e\necho\n' >"$T/strange"
    chmod +x "$T/windows" "$T/strange"
    says 127 "^hint: $T/windows has the ends of lines of Windows \(CRLF\): sed " run k -- "$T/windows"
    sh -ec "${stderr##*: }" # as pasted
    run -0 rlock run k -- "$T/windows"
    printf '#!/bin/sh\r\necho\r\n' >"$T/windows"
    PATH=$T:$PATH says 127 "^hint: $T/strange needs /nowhere/sh, which is not there$" run k -- strange
    says 127 '^hint: export is a word of the shell: use -c$' run k -- export A=1
    says 127 '^hint: env before it sets a variable for a command; or use -c$' run k -- A_1=1 true
    says 127 '^hint: options come before --, and COMMAND after it$' run k -- -n true
    says 127 '^hint: a line for the shell: use -c$' run k -- 'frobnicate now'
    says 127 '^rlock: frobnicate: No such file or directory$' run k -- frobnicate
    [[ ${#stderr_lines[@]} == 1 ]]
    # shellcheck disable=SC2088 # as somebody has quoted it
    for words in '~/x.sh' '$HOME/x.sh' '*.sh' 'a|b' 'x&&y'; do
        says 127 '^hint: a line for the shell: use -c$' run k -- "$words"
    done
    says 127 '^hint: pushd is a word of the shell: use -c$' run k -- pushd /
    echo 'echo done' >"$T/plain text"
    says 126 "^hint: chmod [+]x '$T/plain text' makes it executable$" run k -- "$T/plain text"
    sh -ec "$(sed -n 's/^hint: \(.*\) makes.*/\1/p' <<<"$stderr")" # as pasted
    run -0 rlock run k -- "$T/plain text"
    says 126 "^hint: $T is a directory$" run k -- "$T"
    says 126 '^rlock: /dev/null: Permission denied$' run k -- /dev/null
    [[ ${#stderr_lines[@]} == 1 ]]
    run -0 rlock latch set l 1
    says 126 "^hint: $T is a directory$" fence --token 1 "$T/fence" -- "$T"
    says 126 "^hint: $T is a directory$" latch run l -- "$T"
    for words in "fence --token 1 $T/fence" 'latch run l'; do
        # shellcheck disable=SC2086 # they are words
        says 127 "^hint: $T/windows has the ends of lines of Windows" $words -- "$T/windows"
        says 127 "^hint: $T/strange needs /nowhere/sh, which is not there$" $words -- "$T/strange"
        says 127 '^hint: cd is a word of the shell: use sh -c$' $words -- cd /
        says 127 '^hint: a line for the shell: use sh -c$' $words -- 'frobnicate now'
        run -127 --separate-stderr rlock $words -- sh -c 'exit 127'
        [[ ! $stderr ]]
    done
}

# A signal that comes while the lock is released only hurries that.
ends_by_term() {
    kill -TERM "$1" 2>/dev/null || true
    gone "$1"
}

@test "H107 a report that is not read does not keep rlock from ending by a signal" {
    mkfifo "$T/full"
    exec 8<>"$T/full"
    # Fill the pipe, which is never read.
    timeout 1 dd if=/dev/zero of="$T/full" bs=4096 count=100 2>/dev/null || true
    bg_up a bash -c 'exec rlock run --report-fd 9 k -- touch "$2" 9>"$1" 8>&-' - \
        "$T/full" "$T/a.up"
    poll_until 10 ends_by_term "${pid[a]}"
    finish a
    exec 8>&-
    [[ $status == 143 ]]
}

@test "--report-fd writes one JSON line at the end, with one word for each way to end" {
    reports '.outcome == "completed" and .result == "failure" and .exit_status == 3 and .signal == null and .fence > 0 and
        .held_ms >= 150 and .held_ms < 9000 and .waited_ms >= 0 and .waited_ms < 5000' \
        k -- sh -c 'sleep 0.2; exit 3'
    [[ $(wc -l <"$T/report") == 1 ]]
    reports '.result == "success" and .exit_status == 0' k -- true
    reports '.result == "failure" and .exit_status == null and .signal == "KILL"' \
        k -- sh -c 'kill -KILL $$'
    reports '.outcome == "timed-out" and .result == "timed_out"' --at-most 300ms k -- sleep 100
    reports '.outcome == "not-executed" and .result == null' k -- /nowhere
    reports '.outcome == "failed" and .result == null' --url unix:///nowhere k -- true
    reports '.outcome == "lost" and .result == "lost"' --lease 6s k -- \
        sh -c "redis-cli -s '$REDIS_SOCK' del 'rlock:{k}' >/dev/null; sleep 100"
    reports '.outcome == "lost" and .result == "revoked"' --on-lost continue --at-most 2s k -- \
        sh -c 'rlock force-release --yes k & sleep 100'
    reports '.outcome == "lost" and .result == "revoked"' k -- \
        sh -c 'rlock force-release --yes k & sleep 100'
    hold a k
    reports '.outcome == "not-acquired" and .waited_ms >= 2950 and .fence == null' -w 3s k -- true
    queued k bg b bash -c 'exec rlock run --report-fd 9 k -- true 9>"$1"' - "$T/report"
    kill -INT "${pid[b]}"
    finish b
    jq -e '.outcome == "interrupted"' "$T/report"
    run -0 --separate-stderr rlock run --report-fd 1 --limit 2 s -- true
    json '.outcome == "completed" and .slot == 1'
    run -64 rlock run --report-fd x k -- true
    run -64 rlock run --report-fd 77 k -- true 77>&-
    run -64 rlock run --report-fd 9 k -- true 9</dev/null
}

@test "H102 the command sees no descriptor of rlock's, and keeps those it was given" {
    # The caller gives it 7, and 8 to rlock. bats has 3.
    plain=$(bash -c 'ls /proc/self/fd' 3>&- 7>/dev/null)
    run -0 bash -c 'rlock run --report-fd 8 k -- ls /proc/self/fd' 3>&- 7>/dev/null 8>"$T/report"
    [[ $output == "$plain" && " ${lines[*]} " == *' 7 '* && " ${lines[*]} " != *' 8 '* ]]
}

@test "what a service manager has set for rlock is the command's, who gets the sockets" {
    echo "a socket" >"$T/socket"
    # as_service SUBCOMMAND... : a shell becomes rlock, and so has its number.
    as_service() {
        run -0 bash -c 'export LISTEN_PID=$$ WATCHDOG_PID=$$ LISTEN_FDS=1 LISTEN_PIDFDID=7
            exec rlock "$@"' - "$@" \
            sh -c 'echo "$LISTEN_PID" "$WATCHDOG_PID" "$LISTEN_FDS" "${LISTEN_PIDFDID-none}"
                echo $$; exec cat <&3' 3<"$T/socket"
        [[ $output == "${lines[1]} ${lines[1]} 1 none"$'\n'"${lines[1]}"$'\n'"a socket" ]]
    }
    as_service run k --
    as_service run k -- rlock run l --
    rlock latch set gate 1
    as_service latch run --id 1 gate --
    as_service fence "$T/fence" --token 7 --
    # The variables of another process stay.
    LISTEN_PID=1 WATCHDOG_PID=1 LISTEN_PIDFDID=7 \
        run -0 rlock run k -c 'echo $LISTEN_PID $WATCHDOG_PID $LISTEN_PIDFDID'
    [[ $output == '1 1 7' ]]
}

@test "other users do not see who it is with --no-identity" {
    hold b secret --no-identity
    status_json secret '.[0].holders[0] | [.host, .user, .pid, .command] == [null, null, null, null]'
    [[ $(redis hgetall "rlock:{secret}") != *"$(hostname)"* ]]
}

@test "a CI job's address is the label where none is given" {
    GITHUB_ACTIONS=true GITHUB_SERVER_URL=https://gh.example GITHUB_REPOSITORY=a/b \
        GITHUB_RUN_ID=17 \
        hold a k
    status_json k '.[0].holders[0].label | test("https://gh.example/a/b/actions/runs/17")'
    CI_JOB_URL=https://gl.example/job/3 hold b l
    status_json l '.[0].holders[0].label == "https://gl.example/job/3"'
}

@test "H103 only the command's name is stored, not its arguments" {
    bg a rlock run k -- sh -c ": --token=s3cret; exec sleep 1000"
    poll_until 10 held k
    [[ $(redis hgetall "rlock:{k}") == *sh* && $(redis hgetall "rlock:{k}") != *s3cret* ]]
}

@test "-v says what happens, with times; without it a free lock is silent" {
    says 0 '[0-9]{2}:[0-9]{2}:[0-9]{2}' run -v k -- true
    [[ $output == "" ]]
    quiet 0 run k -- true
}

@test "--on-lost signal:NAME sends that signal, and the command continues" {
    bg a rlock run --lease 6s --on-lost signal:USR1 k -- \
        bash -c "trap 'echo usr1 >>\"$T/got\"; exit 0' USR1; : >'$T/up'; while :; do sleep 0.05; done"
    poll_until 10 test -e "$T/up"
    redis del "rlock:{k}"
    finish a
    [[ $status == 79 && $(<"$T/got") == usr1 ]]
    run -64 rlock run --on-lost signal:NONSENSE k -- true
    run -64 rlock run --on-lost whatever k -- true
}

@test "every key that is left has a time to live" {
    hold a k --lease 9s
    within 1 $((8 * 86400 * 1000)) "$(redis pttl "rlock:{k}")"
    terminate a
    within $((6 * 86400 * 1000)) $((7 * 86400 * 1000 + 9000)) "$(redis pttl "rlock:{k}")"
    [[ $(redis dbsize) == 1 ]]
}

@test "--help and --version answer with 0, before and after a command" {
    run -0 rlock --version
    [[ ${lines[0]} =~ ^rlock\ [0-9.]+(\ \([0-9a-f]+\))?$ ]]
    [[ ${lines[1]} == with*rlock-top* || ${lines[1]} == without* ]]
    prints 0 '*force-release*' --help
    prints 0 '*--lease*' run -h
}
