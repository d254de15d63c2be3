# What all the .bats files share: a private redis-server, background commands, faults, exclusion logs.
# shellcheck shell=bash disable=SC2119,SC2120,SC2154
#
# From outside: RLOCK, the program to test; RLOCK_TEST_TOOLS, where faultproxy, worker and the shims are.
# In a test: T, its directory; REDIS_SOCK, the server's socket (RLOCK_URL leads there).
# Nothing here sleeps for a condition: poll_until has a deadline.

bats_require_minimum_version 1.5.0

TESTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
RLOCK=$(realpath "${RLOCK:-$TESTS/../rlock}")
RLOCK_TEST_TOOLS=$(realpath "${RLOCK_TEST_TOOLS:-$(dirname "$RLOCK")/tests}")
export RLOCK RLOCK_TEST_TOOLS
# A sanitizer's library would not come first where a shim is preloaded; that does no harm.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"

# ---------------------------------------------------------------- set-up of a file and of a test

# start_file [REDIS OPTION...]: for setup_file.
start_file() {
    [[ -x $RLOCK && -x $RLOCK_TEST_TOOLS/faultproxy ]] || {
        echo "no program $RLOCK or no tools in $RLOCK_TEST_TOOLS: make check builds them"
        return 1
    }
    export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-60}
    unset RLOCK_OWNER RLOCK_PREFIX RLOCK_PASSWORD XDG_CONFIG_HOME NO_COLOR
    unset CI_JOB_URL GITHUB_ACTIONS GITHUB_RUN_ID BUILD_URL BUILDKITE_BUILD_URL CIRCLE_BUILD_URL
    export RLOCK_CONFIG=/dev/null HOME="$BATS_FILE_TMPDIR"
    export REDIS_DIR=$BATS_FILE_TMPDIR/redis REDIS_OPTIONS="$*"
    export REDIS_SOCK=$REDIS_DIR/sock
    export RLOCK_URL=unix://rlock:pw@$REDIS_SOCK
    redis_start
}

# free_ports NUMBER: below those that the kernel gives to connections, and nobody else's as long as files run side by
# side: whoever is left over from a server that another test has ended must not meet this one. The ports 10000 above
# are free as well, for a cluster's nodes among themselves.
free_ports() {
    local file files=("$TESTS"/*.bats)
    for file in "${!files[@]}"; do
        [[ ${files[$file]} != "$TESTS/${BATS_TEST_FILENAME##*/}" ]] || break
    done
    python3 - "$1" "$((11000 + 100 * file))" <<'END'
import random, socket, sys
number, base = map(int, sys.argv[1:])
free = []
for port in random.sample(range(base, base + 100), 100):
    try:
        for one in (port, port + 10000):
            with socket.socket() as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(("127.0.0.1", one))
        free.append(port)
    except OSError:
        pass
print(*free[:number])
END
}

setup_file() { start_file; }

teardown_file() {
    redis_stop
}

setup() {
    T=$BATS_TEST_TMPDIR
    LOG=$T/log
    export RLOCK_TEST_ID=$T
    declare -gA pid=()
}

teardown() {
    [[ -n $BATS_TEST_COMPLETED ]] || show_evidence
    end_processes
    kill -CONT "$(redis_pid)" 2>/dev/null || true
    if [[ -e $T/redis.dirty ]] || ! redis ping >/dev/null 2>&1; then
        redis_restart_empty
    else
        redis flushall >/dev/null
    fi
}

# After a failure: what was seen last, what the background commands said and what the server logged.
show_evidence() {
    local file
    printf '%s\n' "--- output ---" "$output" "--- stderr ---" "$stderr"
    for file in "$T"/*.out "$T"/*.err "$T"/log; do
        [[ -s $file ]] || continue
        echo "--- ${file##*/} ---"
        tail -n 15 "$file"
    done
    echo "--- redis ---"
    sed '1,/ready to accept/d' "$REDIS_DIR/log" | tail -n 15
}

# Ends what this test has left running, found by the variable that it all inherits.
end_processes() {
    local file
    # shellcheck disable=SC2013 # the names have no white space
    for file in $(grep -lsz "^RLOCK_TEST_ID=$RLOCK_TEST_ID\$" /proc/[0-9]*/environ); do
        file=${file%/environ}
        kill -KILL "${file#/proc/}" 2>/dev/null || true
    done
}

# ---------------------------------------------------------------- the server

redis() {
    case ${1,,} in
    config | acl | debug | replicaof | client | script | swapdb) : >"${T:-$BATS_FILE_TMPDIR}/redis.dirty" ;;
    esac
    redis-cli -e -s "$REDIS_SOCK" "$@" 3>&-
}

# The rights that rlock(7) tells an administrator to give: a paragraph of several lines to be typed as one.
manual_rights() {
    local command
    command=$(sed -n '/^ACL SETUSER/,/^\.Ed/p' "$TESTS/../man/rlock.7" | grep -v '^\.Ed' | tr -s ' \n' ' ')
    [[ $command == "ACL SETUSER rlock on >PASSWORD "* && $command != *'\'* ]]
    echo "${command#*>PASSWORD }"
}

# For passwords, prefixes that those rights do not cover, and those who ask for more.
as_default_user() {
    RLOCK_URL=unix://$REDIS_SOCK
}

# A user "limited" with password "pw" and these rights.
limited_user() {
    # shellcheck disable=SC2046 # they are words
    redis acl setuser limited reset on '>pw' $(manual_rights)
}

redis_pid() {
    cat "$REDIS_DIR/pid" 2>/dev/null
}

redis_answers() {
    [[ $(env -u REDISCLI_AUTH redis-cli -s "$REDIS_SOCK" ping 2>&1) =~ ^(PONG|.*NOAUTH) ]]
}

# Starts the server on the data that there is. RLOCK_URL's user has no more rights than the manual says.
redis_start() {
    mkdir -p "$REDIS_DIR"
    # shellcheck disable=SC2086,SC2046 # they are words
    env -u RLOCK_TEST_ID ${REDIS_PRELOAD:+LD_PRELOAD="$REDIS_PRELOAD"} redis-server --port 0 \
        --unixsocket "$REDIS_SOCK" --dir "$REDIS_DIR" --pidfile "$REDIS_DIR/pid" \
        --logfile "$REDIS_DIR/log" --daemonize yes --save "" --user rlock on nopass $(manual_rights) \
        $REDIS_OPTIONS 3>&- >/dev/null
    poll_until 20 redis_answers
}

redis_stop() {
    local one
    one=$(redis_pid) || return 0
    kill -KILL "$one" 2>/dev/null || true
    poll_until 10 gone "$one"
    rm -f "$REDIS_DIR/pid" "$REDIS_SOCK"
}

redis_restart_empty() {
    redis_stop
    rm -rf "$REDIS_DIR"
    redis_start
}

# The commands that clients have asked the server for, by name: redis_calls evalsha
redis_calls() {
    redis info commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\).*/\1/p" | grep . || echo 0
}

# ---------------------------------------------------------------- conditions

# poll_until SECONDS COMMAND...: until it succeeds.
poll_until() {
    local end=$(($(now_ms) + $1 * 1000)) seconds=$1 errors=${T:-$BATS_FILE_TMPDIR}/poll.errors
    shift
    until "$@" 2>"$errors"; do
        if (($(now_ms) > end)); then
            echo "not within $seconds s: $*"
            cat "$errors"
            return 1
        fi
        sleep 0.02
    done
}

now_ms() {
    echo $((${EPOCHREALTIME/[.,]/} / 1000))
}

# True while a process runs; a zombie does not.
alive() {
    local line
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    [[ ${line##*) } != [ZX]* ]]
}

gone() {
    ! alive "$1"
}

in_state() {
    local line
    { read -r line <"/proc/$1/stat"; } 2>/dev/null && [[ ${line##*) } == "$2"* ]]
}

contains() {
    grep -qF -- "$2" "$1" 2>/dev/null
}

# within LOW HIGH VALUE
within() {
    if (($3 < $1 || $3 > $2)); then
        echo "$3 is not from $1 to $2"
        return 1
    fi
}

is_free() {
    "$RLOCK" status -q "$1" 3>&-
}

held() {
    local answer=0
    "$RLOCK" status -q "$1" 3>&- || answer=$?
    ((answer == 75))
}

waiters() {
    "$RLOCK" status --json "$1" 3>&- | jq '.[0].waiters | length'
}

has_waiters() {
    [[ $(waiters "$1") == "$2" ]]
}

# ---------------------------------------------------------------- commands

# In the foreground; bounded, since bats cannot end what "run" waits for. A process that outlives the
# test must not hold the descriptor that bats waits for.
rlock() {
    timeout --foreground -k 5 50 "$RLOCK" "$@" 3>&-
}

# bg NAME COMMAND...: in the background; its pid is ${pid[NAME]}, its output NAME.out and NAME.err.
# Without a shell's job control INT and QUIT would start out as ignored.
bg() {
    local name=$1
    shift
    [[ $1 != rlock ]] || set -- "$RLOCK" "${@:2}"
    env --default-signal=INT,QUIT "$@" </dev/null >"$T/$name.out" 2>"$T/$name.err" 3>&- &
    pid[$name]=$!
}

# finish NAME [SECONDS]: waits for its end and sets status.
finish() {
    poll_until "${2:-15}" gone "${pid[$1]}"
    # shellcheck disable=SC2034 # for the test, as after "run"
    status=0
    wait "${pid[$1]}" || status=$?
}

# hold NAME KEY [OPTION...]: a background rlock that holds KEY until it is told to end.
hold() {
    local name=$1 key=$2
    shift 2
    rm -f "$T/$name.up"
    bg "$name" rlock run "$@" "$key" -- sh -c ": >'$T/$name.up'; exec sleep 1000"
    poll_until 15 test -e "$T/$name.up"
}

# queue NAME KEY [OPTION...]: a background rlock that waits in KEY's queue; writes NAME to the log
# when it is its turn.
queue() {
    local name=$1 key=$2 before
    shift 2
    before=$(waiters "$key")
    bg "$name" rlock run "$@" "$key" -- sh -c "echo $name >>'$LOG'"
    poll_until 15 has_waiters "$key" $((before + 1))
}

agent_of() {
    pgrep -P "$1" -x rlock-agent
}

# The command's process, by its parent and that it is not the agent.
command_of() {
    local one
    for one in $(pgrep -P "$1"); do
        [[ $(cat "/proc/$one/comm") == rlock-agent ]] || echo "$one"
    done
}

# ---------------------------------------------------------------- exclusion

# work NAME KEY SECONDS [OPTION...] [-- FLAG...]: a background worker under the lock KEY.
work() {
    local name=$1 key=$2 seconds=$3 options=()
    shift 3
    while (($#)) && [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    bg "$name" rlock run "${options[@]}" "$key" -- \
        "$RLOCK_TEST_TOOLS/worker" "$LOG" "$name" "$seconds" "${@:2}"
}

works() {
    grep -qs "^$1 " "$LOG"
}

# working NAME: until its first trace is in the log.
working() {
    poll_until "${2:-15}" works "$1"
}

# No two names have their lines in the log interleaved.
no_overlap() {
    awk '$1 != last && $1 in seen { print "overlap: " $1 " again after " last ", line " NR; bad = 1 }
         { seen[$1]; last = $1 } END { exit bad || NR == 0 }' "$LOG"
}

# ---------------------------------------------------------------- faults

# start_proxy [NAME [LISTEN [TARGET]]]: a proxy to the server; its address is ${proxy[NAME]}.
start_proxy() {
    local name=${1:-proxy} listen=${2:-127.0.0.1:0} target=${3:-$REDIS_SOCK}
    declare -gA proxy
    "$RLOCK_TEST_TOOLS/faultproxy" "$T/$name.ctl" "$listen" "$target" \
        </dev/null >"$T/$name.address" 2>"$T/$name.err" 3>&- &
    pid[$name]=$!
    poll_until 10 test -s "$T/$name.address"
    # shellcheck disable=SC2034 # for the test
    proxy[$name]=$(<"$T/$name.address")
}

# fault COMMAND...: for the proxy named "proxy"; fault_of NAME COMMAND... for another.
fault() {
    fault_of proxy "$@"
}

fault_of() {
    "$RLOCK_TEST_TOOLS/faultproxy" -s "$T/$1.ctl" "${@:2}"
}

# server_clock MS|freeze: another time of day for a server started with REDIS_PRELOAD=shim_clock.so.
server_clock() {
    printf '%-32s' "$1" 1<>"$SHIM_CLOCK_FILE"
}

# ---------------------------------------------------------------- a server in trouble

# A holder with a lease of 8 s renews after 2.7 s and is stopped after 5.7 s without an answer; one with
# 2 s is stopped after 1.3 s. Trouble of 3.3 s is survived by the first and not by the second.
two_holders() {
    bg long rlock run --lease 8s long -- sh -c ": >'$T/long.up'; sleep 6; exit 9"
    work short short 100 --lease 2s -- tree
    poll_until 10 test -e "$T/long.up"
    working short
}

# The short one was stopped in time and the long one went on.
long_survived_short_lost() {
    finish short
    [[ $status == 79 ]]
    work after short 0.2
    finish after
    no_overlap
    finish long
    [[ $status == 9 ]]
    run -0 rlock status -q long
}

# ---------------------------------------------------------------- assertions

# stderr_line REGEX: one line on standard error (of "run --separate-stderr") matches.
stderr_line() {
    if ! grep -qE -- "$1" <<<"$stderr"; then
        printf 'no line like %s in:\n%s\n' "$1" "$stderr"
        return 1
    fi
}

# json FILTER: jq's answer about $output is true.
json() {
    if ! jq -e "$1" <<<"$output" >/dev/null; then
        printf 'not so: %s\n%s\n' "$1" "$output"
        return 1
    fi
}
