#!/usr/bin/env bats
# --server-wait: a store that is away when rlock starts. late_starts, late_ends: the server at that
# URL; two_lines NAME WHAT: it has said that the store is away, and that it is back; away_for MS
# COMMAND, at_once STATUS COMMAND: it ends with 69 after that time, or at once.
load helper
load quorums

setup_file() { quorum_file 3; }

# Another server, which is not there at first.
setup() {
    start_test
    LATE=$T/late
    mkdir "$LATE"
    export RLOCK_URL=unix://$LATE/sock
}

teardown() {
    [[ -n $BATS_TEST_COMPLETED ]] || show_evidence
    late_ends
    end_processes
    quorum_mend
}

# late_starts [OPTION...]
late_starts() {
    start_redis "$LATE" --port 0 --unixsocket "$LATE/sock" "$@"
    poll_until 10 eval '[[ $(redis-cli -s "$LATE/sock" ping 2>&1) =~ ^(PONG|.*NOAUTH) ]]'
}

late_ends() {
    kill_redis "$LATE"
    rm -f "$LATE/sock"
}

# two_lines NAME WHAT: what it has said: that the store is away, and that it is back; besides, what
# "grep -v" is told.
two_lines() {
    local lines
    grep -v "${3:-^\$}" "$T/$1.err" >"$T/said" || true
    mapfile -t lines <"$T/said"
    cat "$T/said"
    [[ ${#lines[@]} == 2 ]]
    [[ ${lines[0]} =~ ^"rlock: $2: ".*"; trying again"$ ]]
    [[ ${lines[1]} =~ ^"rlock: $2: the store is back after "[0-9.]+s$ ]]
}

@test "a server that starts after rlock is waited for, with -n as well: two lines" {
    for option in -n -w1m --label=x; do
        bg a rlock run "$option" k -- sh -c 'exit 9'
        poll_until 10 contains "$T/a.err" \
            "rlock: k: cannot reach $RLOCK_URL: No such file or directory; trying again"
        alive "${pid[a]}"
        late_starts
        ends_with a 9
        two_lines a k
        late_ends
    done
}

# run_without_server STATUS COMMAND...: begun without a server, it ends with that.
run_without_server() {
    bg_says a "trying again" rlock "${@:2}" --server-wait 1m
    late_starts
    ends_with a "$1"
    late_ends
}

# Each command starts without a server, which then starts. It ends as it would have otherwise, and
# has said two things: that the store is away, and that it is back.
@test "all commands that ask a store wait for it" {
    run_without_server 0 acquire k
    [[ -s $T/a.out ]]
    two_lines a k
    run_without_server 1 renew --owner $NO_OWNER k
    two_lines a renew 'not held'
    run_without_server 1 release --owner $NO_OWNER k
    two_lines a release 'not held'
    run_without_server 0 status
    two_lines a status 'no locks'
    run_without_server 1 force-release --now --yes k
    two_lines a force-release 'not held'
    run_without_server 0 latch set l 2
    two_lines a l
    run_without_server 75 latch wait l -w 0
    run_without_server 0 latch list
    two_lines a latch 'no latches'
    run_without_server 0 init
    two_lines a init
}

@test "a server that does not answer is waited for as one that refuses is" {
    late_starts
    server=$(<"$LATE/pid")
    kill -STOP "$server"
    bg a rlock run -n --server-wait 1m k -- sh -c 'exit 9'
    bg b rlock status --server-wait 1m
    poll_until 10 contains "$T/a.err" 'trying again'
    poll_until 10 contains "$T/b.err" 'trying again'
    kill -CONT "$server"
    ends_with a 9
    two_lines a k
    finish b
    two_lines b status 'no locks'
}

# A server that starts with much data answers LOADING for a while, which is not an error for rlock.
@test "a server that is still loading is waited for" {
    late_starts --enable-debug-command yes
    redis-cli -s "$LATE/sock" debug populate 3000 x 10 >/dev/null
    redis-cli -s "$LATE/sock" save >/dev/null
    late_ends
    bg_says a 'trying again' rlock run -n --server-wait 1m k -- sh -c 'exit 9'
    late_starts --key-load-delay 1000 --loading-process-events-interval-bytes 1024 || true
    ends_with a 9 30
    two_lines a k
}

@test "a quorum is waited for until it has a majority" {
    for i in 1 2 3; do
        redis-cli -s "$QUORUM/$i/sock" set some data >/dev/null
    done
    RLOCK_URL=$(node_urls)
    rlock run k -- true
    for i in 2 3; do
        node "$i" save
        node_kill "$i"
    done
    bg a rlock run -n --server-wait 1m k -- sh -c 'exit 9'
    bg b rlock status --server-wait 1m
    poll_until 10 contains "$T/a.err" 'no quorum, 2 of 3 servers failed'
    poll_until 10 contains "$T/b.err" 'no quorum, 2 of 3 servers failed'
    node_start 3
    ends_with a 9 60
    two_lines a k
    ends_with b 0
    two_lines b status 'no locks'
}

@test "--server-wait 0 is one attempt, from the variable and from a file, too" {
    echo 'server-wait = 0' >"$T/config"
    for word in --server-wait=0 --config="$T/config"; do
        run -69 --separate-stderr rlock run "$word" k -- touch "$T/run"
        [[ ${#stderr_lines[@]} == 2 &&
            ${stderr_lines[0]} == "rlock: k: cannot reach $RLOCK_URL: No such file or directory" ]]
        run -69 --separate-stderr rlock status "$word"
        [[ $stderr != *again* ]]
    done
    RLOCK_SERVER_WAIT=0 run -69 --separate-stderr rlock run k -- touch "$T/run"
    [[ $stderr != *again* ]]
    # An option goes over the variable.
    RLOCK_SERVER_WAIT=0 bg_says a 'trying again' rlock run --server-wait 1m k -- true
    late_starts
    finish a
    [[ $status == 0 && ! -e $T/run ]]
}

# away_for MS COMMAND...: rlock ends with 69 when that time is over, and no command has run.
away_for() {
    timed "$1" 12000 run -69 --separate-stderr rlock "${@:2}"
    [[ ! -e $T/run ]]
}

@test "H26 69 when the time is up; by default that is the connect timeout" {
    away_for 1500 run -n -E 0 --server-wait 1500ms k -- touch "$T/run"
    stderr_line "^rlock: k: cannot reach $RLOCK_URL: No such file or directory, for [1-9][0-9]*s\$"
    away_for 1500 status --connect-timeout 1500ms
    away_for 1500 release --owner $NO_OWNER --connect-timeout 1500ms k
    # A silent server has the time of one connection in any case, and no more than that because of
    # others.
    late_starts
    kill -STOP "$(<"$LATE/pid")"
    away_for 2000 run -n --connect-timeout 2s --server-wait 1s k -- touch "$T/run"
    stderr_line '(no answer in time|connecting timed out)$'
    away_for 2500 run -n --connect-timeout 1s --server-wait 2500ms k -- touch "$T/run"
}

# The shorter of the time of -w and that of --server-wait ends the wait; without a server it is an
# outage (69), not a lock that another owner has (75).
@test "-w bounds the wait for a server as well: exit 69, since an outage is not contention" {
    away_for 1500 run -w 1500ms -E 0 --server-wait 1m k -- touch "$T/run"
    stderr_line "^rlock: k: cannot reach $RLOCK_URL: No such file or directory, for [1-9][0-9]*s\$"
    away_for 1500 latch wait l -w 1500ms --server-wait 1m
    away_for 500 acquire -w 500ms --server-wait 1m k
}

@test "-q is silent about the wait for a server, but for its end" {
    run -69 --separate-stderr rlock run -q --server-wait 1500ms k -- true
    [[ ${#stderr_lines[@]} == 2 && ${stderr_lines[0]} == *"No such file or directory, for "* ]]
    bg a rlock run -q --server-wait 1m k -- true
    poll_until 10 agent_of "${pid[a]}"
    late_starts
    finish a
    [[ $status == 0 && ! -s $T/a.err ]]
}

# at_once STATUS COMMAND...: it ends with that, though there would be plenty of time, and says
# nothing of trying again.
at_once() {
    timed 0 60000 run "-$1" --separate-stderr "${@:2}" --server-wait 10m
    [[ $stderr != *again* ]]
}

@test "H26 a lasting failure is not retried: a wrong password, a server that is not Redis" {
    local port command
    late_starts --requirepass s3cret
    for command in 'run k' 'acquire k' status "release k --owner $NO_OWNER" 'latch status l'; do
        at_once 77 rlock_before "$command"
        RLOCK_PASSWORD=wrong at_once 77 rlock_before "$command"
    done
    answering web 'HTTP/1.1 400 Bad Request\r\n\r\n'
    for command in 'run k' 'acquire k' status; do
        RLOCK_URL=redis://127.0.0.1:$port at_once 69 rlock_before "$command"
        stderr_line 'what answers there is not a Redis server$'
    done
    [[ ! -e $T/run ]]
}

@test "H26 names that do not exist are not tried again; a name service that is away is" {
    local store stores='redis://a.invalid sentinel://a.invalid,b.invalid/m cluster://a.invalid
        zookeeper://a.invalid,b.invalid'
    named() {
        SHIM_DNS_AWAY=$T/away LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_dns.so rlock "$@"
    }
    for store in $stores; do
        at_once 69 named status -u "$store"
        stderr_line '^hint: getent hosts NAME'
    done
    for store in sentinel://a.invalid,127.0.0.1:1/m zookeeper://127.0.0.1:1,a.invalid; do
        run -69 --separate-stderr named status -u "$store" --server-wait 1200ms
        stderr_line 'trying again$'
    done
    touch "$T/away"
    for store in $stores; do
        run -69 --separate-stderr named status -u "$store" --server-wait 1200ms
        stderr_line 'trying again$'
    done
}

# rlock_before "COMMAND WORD..." OPTION...: the options between its words and the command that it is
# to run.
rlock_before() {
    local words
    read -ra words <<<"$1"
    shift
    if [[ ${words[0]} == run ]]; then
        rlock "${words[@]}" "$@" -- touch "$T/run"
    else
        rlock "${words[@]}" "$@"
    fi
}

@test "a password that is refused when the server is back ends the wait for it" {
    bg_says a 'trying again' rlock run -n --server-wait 10m k -- touch "$T/run"
    late_starts --requirepass s3cret
    finish a
    [[ $status == 77 && ! -e $T/run ]]
    contains "$T/a.err" 'it asks for a password'
}

# The timers of a process have expired.
is_due() {
    ! grep -hs '^it_value' "/proc/$1/fdinfo/"* | grep -qvF '(0, 0)'
}

@test "signals end the wait for a server at once, also where that stands still" {
    for signo in INT TERM; do
        for command in 'run k' 'acquire k' status 'latch wait l'; do
            bg a bash -c 'words=($1); [[ $1 != run* ]] || set -- "$1" -- true; exec rlock "${words[@]}" --server-wait 10m "${@:2}"' \
                - "$command"
            poll_until 10 contains "$T/a.err" 'trying again'
            poll_until 10 in_state "${pid[a]}" S
            kill -STOP "${pid[a]}"
            kill -"$signo" "${pid[a]}"
            [[ $signo == INT ]] || poll_until 10 is_due "${pid[a]}" # to try again
            kill -CONT "${pid[a]}" 2>/dev/null || true
            finish a 3
            [[ $status == $((128 + $(kill -l "$signo"))) ]]
        done
    done
}

@test "a server that is away is not tried again and again without a pause" {
    local port
    answering closing ''
    run -69 rlock run -n -u "redis://127.0.0.1:$port" --server-wait 4s k -- true
    # The shortest pauses double from 25 ms to half a second, so these are some twelve attempts. The
    # request may have been done, and is undone for another second.
    within 2 22 "$(grep -c one "$T/closing.out")"
    : >"$T/closing.out"
    run -69 rlock status -u "redis://127.0.0.1:$port" --server-wait 4s
    within 2 15 "$(grep -c one "$T/closing.out")"
}
