# Shared by all .bats files: a private redis-server, background commands, faults, exclusion logs.
# shellcheck shell=bash disable=SC2119,SC2120,SC2154
#
# From outside: RLOCK, the program to test; RLOCK_TEST_TOOLS, the directory of faultproxy, worker
# and the shims. In a test: T, its directory; REDIS_SOCK, the server's socket (RLOCK_URL leads
# there).
#
# No function sleeps for a condition: poll_until has a deadline, many times as long as the condition
# takes, so that a busy machine cannot miss it.

bats_require_minimum_version 1.5.0

# Also if a file is run by hand: tests use text in many scripts, and read messages of programs.
export LC_ALL=C.UTF-8
unset LANGUAGE
# Seconds for a test; it has to be more than what it waits for.
export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-300}

TESTS=$BATS_TEST_DIRNAME
# A file's process hands these on to its tests, of which each loads this again.
if [[ ! ${RLOCK_TEST_SANITIZED-} ]]; then
    RLOCK=$(realpath "${RLOCK:-$TESTS/../rlock}")
    RLOCK_TEST_TOOLS=$(realpath "${RLOCK_TEST_TOOLS:-$(dirname "$RLOCK")/tests}")
    RLOCK_TEST_SANITIZED=no
    ! grep -q __asan_init "$RLOCK" || RLOCK_TEST_SANITIZED=yes
    export RLOCK RLOCK_TEST_TOOLS RLOCK_TEST_SANITIZED
fi
# A preloaded shim comes before a sanitizer's library; that does no harm.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
# A token that no owner has.
NO_OWNER=00000000-0000-0000-0000-000000000000
# "${no_proc[@]}" COMMAND...: runs it without /proc. A sanitizer needs its options there:
# LeakSanitizer would end a process whose threads it cannot list.
no_proc=(unshare --mount sh -c 'umount -l /proc && exec "$0" "$@"')
if [[ $RLOCK_TEST_SANITIZED == yes ]]; then
    no_proc=(unshare --mount sh -c '
        umount -l /proc && mount -t tmpfs tmpfs /proc && mkdir /proc/self &&
        printf "ASAN_OPTIONS=detect_leaks=0\0" >/proc/self/environ && exec "$0" "$@"')
fi

# Skips the test where strace may not trace. LeakSanitizer cannot work in a program that is traced.
need_strace() {
    strace -qq -o /dev/null true 2>/dev/null || skip "no strace here"
    export ASAN_OPTIONS+=:detect_leaks=0
}

# trace PID OPTION...: strace is attached to that process, with these options. Sets "tracer".
trace() {
    strace -qq "${@:2}" -p "$1" 3>&- &
    tracer=$!
    poll_until 5 grep -q 'TracerPid:.[1-9]' "/proc/$1/status"
}

# refuses PID [WHEN]: the kernel refuses the messages that this process sends from now on, for want
# of memory; or only those that WHEN chooses (strace(1), "when"). They are in $T/refused.
refuses() {
    trace "$1" -o "$T/refused" -e trace=sendmsg -e "inject=sendmsg:error=ENOBUFS${2:+:when=$2}"
}

# ---------------------------------------------------------------- set-up of a file and of a test

# start_file [REDIS OPTION...]: for setup_file.
start_file() {
    [[ -x $RLOCK && -x $RLOCK_TEST_TOOLS/faultproxy ]] || {
        echo "no program $RLOCK or no tools in $RLOCK_TEST_TOOLS: make check-programs builds them"
        return 1
    }
    trace_errors_only
    clean_environment
    export REDIS_DIR=$BATS_FILE_TMPDIR/redis REDIS_OPTIONS="$*"
    export REDIS_SOCK=$REDIS_DIR/sock
    export RLOCK_URL=unix://rlock:pw@$REDIS_SOCK
    redis_start
}

# clean_environment: for a setup_file that does not call start_file: unsets the settings of the user
# who runs the tests. In a script of a test, "rlock" is the program to test; await, worker and the
# other tools are in PATH, too.
clean_environment() {
    mkdir -p "$BATS_FILE_TMPDIR/path"
    ln -sf "$RLOCK" "$BATS_FILE_TMPDIR/path/rlock"
    export PATH=$BATS_FILE_TMPDIR/path:$RLOCK_TEST_TOOLS:$PATH
    unset RLOCK_OWNER RLOCK_PREFIX RLOCK_PASSWORD RLOCK_SENTINEL_PASSWORD XDG_CONFIG_HOME NO_COLOR
    unset CI CI_JOB_URL GITHUB_ACTIONS GITHUB_RUN_ID BUILD_URL BUILDKITE_BUILD_URL CIRCLE_BUILD_URL
    export RLOCK_CONFIG=/dev/null HOME="$BATS_FILE_TMPDIR" TERM=xterm
}

# free_ports NUMBER: prints ports below those that the kernel gives to connections, and in a range
# of this file: a late client of another file's server must not reach this one. The ports 10000
# above are free as well, for the bus of a cluster. Where two checkouts run tests side by side,
# RLOCK_TEST_LANE is 1 for one of them, so that none takes a port that the other has just found.
free_ports() {
    local file files=("$TESTS"/*.bats)
    for file in "${!files[@]}"; do
        [[ ${files[$file]} != "$TESTS/${BATS_TEST_FILENAME##*/}" ]] || break
    done
    python3 - "$1" "$((11000 + 100 * file + 50 * ${RLOCK_TEST_LANE:-0}))" <<'END'
import random, socket, sys
number, base = map(int, sys.argv[1:])
free = []
for port in random.sample(range(base, base + 50), 50):
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

# trace_errors_only: bats records the place of each command before it runs, in two fifths of a
# file's processor time. The place of a failed command suffices. The trap is one line, since its own
# lines would count.
trace_errors_only() {
    declare -F bats_debug_trap bats_check_status_from_trap >/dev/null || return 0
    trap - DEBUG
    # shellcheck disable=SC2064
    trap 'bats_check_status_from_trap; [[ -n $BATS_DEBUG_LAST_STACK_TRACE_IS_VALID ]] || bats_debug_trap "$BASH_SOURCE"; BATS_DEBUG_LAST_STACK_TRACE_IS_VALID=1' ERR
}

# start_test: for setup, as the first command.
start_test() {
    trace_errors_only
    export T=$BATS_TEST_TMPDIR
    export LOG=$T/log RLOCK_TEST_ID=$T
    declare -gA pid=()
}

setup() { start_test; }

teardown() {
    [[ -n $BATS_TEST_COMPLETED ]] || show_evidence
    end_processes
    kill -CONT "$(redis_pid)" 2>/dev/null || true
    [[ ! -e $T/redis.dirty ]] && redis flushall >/dev/null 2>&1 || redis_restart_empty
}

# After a failure: prints the last results, the output of background commands and the server's log,
# and keeps them in RLOCK_TEST_FAILED/FILE/NUMBER, if that is set.
show_evidence() {
    local file evidence
    printf '%s\n' "$output" >"$T/run.output"
    printf '%s\n' "$stderr" >"$T/run.stderr"
    sed '1,/ready to accept/d' "$REDIS_DIR/log" >"$T/redis.log" 2>/dev/null || true
    for file in "$T"/run.* "$T"/*.out "$T"/*.err "$T"/log "$T"/*.log; do
        [[ -s $file ]] || continue
        echo "--- ${file##*/} ---"
        tail -n 15 "$file"
    done
    [[ -n ${RLOCK_TEST_FAILED-} ]] || return 0
    evidence=$RLOCK_TEST_FAILED/${BATS_TEST_FILENAME##*/}/$BATS_TEST_NUMBER
    mkdir -p "$evidence"
    find "$T" -maxdepth 2 -type f -size -1000k ! -name '*.so' \
        -exec cp -t "$evidence" -- {} + 2>/dev/null
    echo "$BATS_TEST_DESCRIPTION" >"$evidence/NAME"
}

# Kills the processes that this test has left, which all inherit its variable.
end_processes() {
    local file
    for file in $(grep -lsz "^RLOCK_TEST_ID=$RLOCK_TEST_ID\$" /proc/[0-9]*/environ); do
        # Meanwhile the process may have ended, and another one may have its number.
        grep -qsz "^RLOCK_TEST_ID=$RLOCK_TEST_ID\$" "$file" || continue
        file=${file%/environ}
        kill -KILL "${file#/proc/}" 2>/dev/null || true
    done
}

# ---------------------------------------------------------------- the server

# redis WORD...: sends that command; prints the reply, or fails with the server's error.
redis() {
    case ${1,,} in
    config | acl | debug | replicaof | client | script | swapdb) : >"${T:-$BATS_FILE_TMPDIR}/redis.dirty" ;;
    esac
    "$RLOCK_TEST_TOOLS/redis_command" "$REDIS_SOCK" "$@" 3>&-
}

# Prints the lines of docs/data.md from "ACL SETUSER $1" on, which are one command.
rights_in_manual() {
    sed -n "/^    ACL SETUSER $1/,/^\$/p" "$TESTS/../docs/data.md"
}

# The rights that docs/data.md tells an administrator to give.
manual_rights() {
    local command
    command=$(rights_in_manual rlock | tr -s ' \n' ' ')
    [[ $command == " ACL SETUSER rlock on >PASSWORD "* && $command != *'\'* ]]
    echo "${command#*>PASSWORD }"
}

# For passwords, for prefixes that those rights do not cover, and for further commands.
as_default_user() {
    RLOCK_URL=unix://$REDIS_SOCK
}

# Makes a user "limited" with password "pw" and these rights.
limited_user() {
    # shellcheck disable=SC2046 # they are words
    redis acl setuser limited reset on '>pw' $(manual_rights)
}

# redis_pid: prints the server's process.
redis_pid() {
    local one
    { read -r one <"$REDIS_DIR/pid"; } 2>/dev/null && echo "$one"
}

# redis_answers: the server answers, be it that it wants a password.
redis_answers() {
    [[ $(REDISCLI_AUTH="" redis ping 2>&1) =~ ^(PONG|NOAUTH) ]]
}

# start_redis DIRECTORY OPTION...: a redis-server of its own, with its data, log and pid there.
# REDIS_PRELOAD is a shim for it.
start_redis() {
    mkdir -p "$1"
    env -u RLOCK_TEST_ID ${REDIS_PRELOAD:+LD_PRELOAD="$REDIS_PRELOAD"} redis-server "${@:2}" \
        --dir "$1" --pidfile "$1/pid" --logfile "$1/log" --daemonize yes --save "" 3>&- >/dev/null
}

# kill_redis DIRECTORY: it, if it runs.
kill_redis() {
    local one
    one=$(cat "$1/pid" 2>/dev/null) || return 0
    kill -KILL "$one" 2>/dev/null || true
    poll_until 10 gone "$one"
    rm -f "$1/pid" # the number may be another process's soon
}

# Starts the server on the present data. The user in RLOCK_URL has only the rights of the manual.
redis_start() {
    # shellcheck disable=SC2046 # they are words
    start_redis "$REDIS_DIR" --port 0 --unixsocket "$REDIS_SOCK" \
        --user rlock on nopass $(manual_rights) $REDIS_OPTIONS
    poll_until 20 redis_answers || { tail -n 3 "$REDIS_DIR/log" && return 1; }
}

# redis_stop: kills the server, and removes its socket.
redis_stop() {
    kill_redis "$REDIS_DIR"
    rm -f "$REDIS_SOCK"
}

# With the data that it keeps.
redis_restart() {
    redis_stop
    redis_start
}

# redis_restart_empty: kills the server, which starts again without its data.
redis_restart_empty() {
    redis_stop
    rm -rf "$REDIS_DIR"
    redis_start
}

# redis_calls evalsha: prints how often clients have sent that command.
redis_calls() {
    redis info commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\).*/\1/p" | grep . || echo 0
}

# ---------------------------------------------------------------- conditions

# poll_until SECONDS COMMAND...: repeats it until it succeeds. SECONDS suffice on an idle machine;
# the deadline is 15 s later, or twice as late. 10 s become 25 s at most, so that an event that must
# come at once is not mistaken for the end of the default lease of 30 s.
poll_until() {
    local seconds=$(($1 < 15 ? $1 + 15 : 2 * $1)) errors=${T:-$BATS_FILE_TMPDIR}/poll.errors \
        start=${EPOCHREALTIME/[.,]/} passed
    shift
    until "$@" 2>"$errors"; do
        passed=$((${EPOCHREALTIME/[.,]/} - start))
        if ((passed > seconds * 1000000)); then
            echo "not within $seconds s: $*"
            cat "$errors"
            return 1
        fi
        # Poll less often after a while.
        pause $((passed < 200000 ? 30 : passed < 1000000 ? 80 : passed < 3000000 ? 200 : 400))
    done
}

# acknowledged NUMBER COMMAND...: NUMBER replicas of the server that the redis-cli COMMAND asks have
# a write of this moment. The master sends an "online" replica nothing before its first
# acknowledgement, which may take a second. A message is a write that leaves no key.
acknowledged() {
    [[ $(printf '%s\n' 'publish acknowledged now' "wait $1 1000" | "${@:2}" | tail -n 1) == "$1" ]]
}

# pause MS: sleeps without a process.
pause() {
    local fifo=$BATS_FILE_TMPDIR/nothing seconds
    printf -v seconds '%d.%03d' $(($1 / 1000)) $(($1 % 1000))
    [[ -p $fifo ]] || mkfifo "$fifo" 2>/dev/null || true
    read -rt "$seconds" <>"$fifo" || true
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

# gone PID: that process has ended.
gone() {
    ! alive "$1"
}

# in_state PID LETTER: so /proc says, as T: it is stopped.
in_state() {
    local line
    { read -r line <"/proc/$1/stat"; } 2>/dev/null && [[ ${line##*) } == "$2"* ]]
}

# listens SOCKET: true once it accepts connections; its name exists earlier.
listens() {
    awk -v path="$1" '$4 == "00010000" && $8 == path { found = 1 } END { exit !found }' \
        /proc/net/unix
}

# contains FILE TEXT
contains() {
    local parts
    { mapfile -d '' parts <"$1"; } 2>/dev/null && [[ ${parts[*]} == *"$2"* ]]
}

# fails COMMAND...: fails if the command succeeds; "! COMMAND" does not end a test, unless it is the
# last line.
fails() {
    if "$@"; then
        echo "succeeded: $*" >&2
        return 1
    fi
}

# within LOW HIGH VALUE
within() {
    if (($3 < $1 || $3 > $2)); then
        echo "$3 is not from $1 to $2"
        return 1
    fi
}

# took LOW HIGH START [END]: from START to END (now), by now_ms, LOW to HIGH ms have passed; the
# limit grows on a slow machine. HIGH is just less than the time of a failure: if that is a lease of
# 30 s or no end at all, "finish" is enough.
took() {
    local passed=$((${4:-$(now_ms)} - $3)) high=$2
    ((passed <= high)) || high=$((high + 100 * $(unit_ms)))
    within "$1" "$high" "$passed"
}

# timed LOW HIGH COMMAND...: it takes LOW to HIGH ms, by "took".
timed() {
    local begun
    begun=$(now_ms)
    "${@:3}"
    took "$1" "$2" "$begun"
}

# patience MS: prints MS, or what 500 runs of a small program take now, if that is more: a limit
# that a slow machine moves, for what takes a few of them where nothing is wrong.
patience() {
    local slow=$((100 * $(unit_ms)))
    echo $((slow > $1 ? slow : $1))
}

# Prints the time of five runs of a small program, in ms: some 10 on an idle machine.
unit_ms() {
    local start
    start=$(now_ms)
    for _ in 1 2 3 4 5; do
        "$RLOCK" --version >/dev/null 3>&-
    done
    echo $(($(now_ms) - start))
}

# ask_status KEY: sets "answer" to the JSON of status. The questions that are polled for find what
# they ask in its text: jq takes as long to start as ten other programs.
ask_status() {
    answer=$("$RLOCK" status --json "$1" 3>&-)
}

# owner_of KEY: prints the token of its first holder; fails if it is free.
owner_of() { # KEY
    local answer
    ask_status "$1" && [[ $answer =~ \"holders\":\[\{\"owner\":\"([^\"]*) ]] && echo "${BASH_REMATCH[1]}"
}

# is_free KEY: no owner holds it. held KEY: one does.
is_free() {
    "$RLOCK" status -q "$1" 3>&-
}

held() {
    local answer=0
    "$RLOCK" status -q "$1" 3>&- || answer=$?
    ((answer == 75))
}

# Prints the number of waiters for KEY, which alone have a position; nothing if that is unknown.
waiters() {
    local answer others
    ask_status "$1" || return
    others=${answer//'"position"'/}
    echo $(((${#answer} - ${#others}) / 10))
}

# has_waiters KEY NUMBER: so many wait for it.
has_waiters() {
    [[ $(waiters "$1") == "$2" ]]
}

# has_place NAME KEY POSITION: the process that "bg" started has that place in the queue.
has_place() {
    local answer before
    ask_status "$2" || return
    before=${answer%%"\"pid\":${pid[$1]},"*}
    [[ $before != "$answer" && ${before##*'"position":'} == "$3,"* ]]
}

# holds NAME KEY: the process that "bg" started holds KEY.
holds() {
    local answer
    ask_status "$2" && [[ ${answer%%'"waiters":'*} == *"\"pid\":${pid[$1]},"* ]]
}

# no_waiters KEY...
no_waiters() {
    local key
    for key; do
        [[ $(waiters "$key") == 0 ]] || return 1
    done
}

# Prints the rest of the lease of KEY's first holder, in ms.
lease_left() {
    local answer
    ask_status "$1" && [[ $answer =~ \"lease_left_ms\":([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}

# renewed KEY: waits for the next renewal of its lease. That may be under way already, so a test
# that means one from now on waits for two.
renewed() {
    local least=99999999
    poll_until 30 is_renewed "$1"
}

is_renewed() {
    local left
    left=$(lease_left "$1") || return
    ((left <= least)) || return 0
    least=$left
    return 1
}

# renewals NAME: prints how often it has said with -v that its lease was renewed.
renewals() { grep -c ': renewed$' "$T/$1.err" || true; }

# has_renewed NAME NUMBER: it has said that more often.
has_renewed() { (($(renewals "$1") > $2)); }

# renews NAME: that holder does so, which has -v. Where a store has no clock, each process reckons
# the time left anew, and it may grow without that.
renews() {
    poll_until 30 has_renewed "$1" "$(renewals "$1")"
}

# is_listening NAME: that process is subscribed to a channel.
is_listening() {
    redis client list | grep -qE " name=rlock:[^ ]*:${pid[$1]} .* sub=1 "
}

# has_left KEY MS: its lease has more than that left; so it was renewed, if it had less before.
has_left() {
    local left
    left=$(lease_left "$1") && ((left > $2))
}

# ---------------------------------------------------------------- commands

# Runs rlock in the foreground, with a time limit, since bats cannot end a command of "run". A
# process that outlives the test must not hold the descriptor that bats waits for.
rlock() {
    timeout --foreground -k 5 240 "$RLOCK" "$@" 3>&-
}

# bounded COMMAND...: another program that answers at once, or hangs, when bats cannot end it. The
# limit exceeds any stand-still of the machine that a test survives.
bounded() {
    timeout --foreground -k 5 120 "$@"
}

# bg NAME COMMAND...: runs it in the background; its pid is ${pid[NAME]}, its output NAME.out and
# NAME.err. Signals have their default actions: a shell without job control ignores INT and QUIT,
# and the caller of the tests may ignore others.
bg() {
    local name=$1
    shift
    [[ $1 != rlock ]] || set -- "$RLOCK" "${@:2}"
    # When this returns, the output of an earlier one of that name is gone.
    : >"$T/$name.out" 2>"$T/$name.err"
    env --default-signal "$@" </dev/null >"$T/$name.out" 2>"$T/$name.err" 3>&- &
    pid[$name]=$!
}

# bg_up NAME COMMAND...: as bg; returns when there is a file $T/NAME.up, which the command makes.
bg_up() {
    rm -f "$T/$1.up"
    bg "$@"
    poll_until 10 test -e "$T/$1.up"
}

# bg_prints NAME COMMAND...: as bg; returns when it has written to standard output.
bg_prints() {
    bg "$@"
    poll_until 20 test -s "$T/$1.out"
}

# began_or_gone NAME: its command has made $T/NAME.up, or rlock has ended without that.
began_or_gone() {
    [[ -e $T/$1.up ]] || gone "${pid[$1]}"
}

# answering NAME ANSWER: a server at "port" that sends that to each connection, with the escapes of
# Python, and ends it when the other has sent something, or at once if that is nothing. For each it
# prints "one".
answering() {
    bg_prints "$1" python3 -uc '
import contextlib, socket, sys
answer = sys.argv[1].encode().decode("unicode_escape").encode("latin1")
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1])
while True:
    with server.accept()[0] as client, contextlib.suppress(OSError):
        client.sendall(answer)
        client.recv(100000 if answer else 0)
    print("one")' "$2"
    port=$(head -n 1 "$T/$1.out")
}

# bg_says NAME TEXT COMMAND...: as bg; returns when that text is on its standard error.
bg_says() {
    bg "$1" "${@:3}"
    poll_until 10 contains "$T/$1.err" "$2"
}

# on_terminal COMMAND...: runs it on a terminal, with a dialogue for terminal.py on standard input.
on_terminal() {
    "$TESTS/terminal.py" "$@" 3>&-
}

# in_shell: plays the dialogue of standard input with an interactive shell, whose prompt is <2>.
# "stopped" there is Ctrl-Z, "ended N" the next prompt and that status.
in_shell() {
    on_terminal bash --norc -i < <(
        printf '%s\n' "send PS1='<\$((1+1))>'\\n" 'expect <2>'
        sed 's/^stopped$/send \\x1a\nexpect Stopped\nexpect <2>/
            s/^ended \(.*\)/expect <2>\nsend echo "status=$?"\\n\nexpect status=\1/'
        printf '%s\n' 'send exit 0\n' 'status 0'
    )
}

# shows STATUS REGEX COMMAND...: on a terminal rlock prints that, and ends with that status.
shows() {
    on_terminal rlock "${@:3}" <<<"expect $2
status $1"
}

# as_job COMMAND...: its background processes can be stopped as by Ctrl-Z: the kernel ignores TSTP
# in a process group that no other process of its session could continue.
as_job() {
    set -m
    "$@"
    set +m
}

# finish NAME [SECONDS]: waits for its end as poll_until does, and sets status.
finish() {
    poll_until "${2:-10}" gone "${pid[$1]}"
    status=0
    wait "${pid[$1]}" || status=$?
}

# ends_with NAME STATUS [SECONDS]: finishes, with that status.
ends_with() {
    finish "$1" "${@:3}"
    [[ $status == "$2" ]] || {
        echo "$1 ended with $status, not with $2"
        return 1
    }
}

# handed_over [SECONDS]: a is told to end, and then b works and ends.
handed_over() {
    terminate a 143
    ends_with b 0 "$@"
    no_overlap
}

# all_end STATUS SECONDS NAME...: each of them ends with that.
all_end() {
    local one
    for one in "${@:3}"; do
        ends_with "$one" "$1" "$2"
    done
}

# calls_first KEY COMMAND...: by that, the first waiter for KEY is called; later it asks by itself.
calls_first() {
    local answer
    ask_status "$1"
    [[ $answer =~ \"waiters\":\[\{\"owner\":\"([^\"]*) ]]
    bg_prints call redis-cli -s "$REDIS_SOCK" subscribe "rlock:{$1}:${BASH_REMATCH[1]}"
    "${@:2}"
    poll_until 10 contains "$T/call.out" message
}

# in_turn SECONDS NAME...: they end with 0, and have written their names to the log in this order,
# and no others have.
in_turn() {
    all_end 0 "$@"
    [[ $(xargs <"$LOG") == "${*:2}" ]]
}

# terminate NAME [STATUS]: sends it TERM, and finishes; with that status.
terminate() {
    kill "${pid[$1]}"
    finish "$1"
    [[ $status == "${2:-$status}" ]]
}

# once_of NUMBER COMMAND...: it succeeds at the first try, or at a later one where the machine stood
# still. Each "try" has another lock, "key".
once_of() {
    for ((try = 1; try <= $1; try++)); do
        key=k$try
        "${@:2}" && return
    done
    return 1
}

# one_after_the_other NUMBER [SCRIPT]: NUMBER contenders want key k at the same time, and only one
# has it at a time; each runs SCRIPT meanwhile. Their traces are in $LOG. All of them greet the
# store at once: a slow machine takes longer for that than rlock waits by default.
one_after_the_other() {
    local i
    for ((i = 0; i < $1; i++)); do
        bg "of$i" rlock run --server-wait 2m k -- sh -c "echo + >>'$LOG'; ${2:-:}; echo - >>'$LOG'"
    done
    for ((i = 0; i < $1; i++)); do
        finish "of$i" 60
        [[ $status == 0 ]] || return 1
    done
    [[ $(xargs <"$LOG") == "$(yes '+ -' | head -n "$1" | xargs)" ]]
}

# hold NAME KEY [OPTION...]: a background rlock that holds KEY until it is told to end.
hold() {
    bg_up "$1" rlock run "${@:3}" "$2" -- sh -c ": >'$T/$1.up'; exec sleep 1000"
}

# has_listener KEY [OWNER]: its holder hears when it is asked; or OWNER, also a waiter.
has_listener() {
    [[ $(redis pubsub channels "rlock:{$1}:${2:-*}") ]]
}

# hears NAME KEY: returns when NAME, which holds KEY, hears at once that it is asked to release it:
# it listens, and has acknowledged the renewal that it listens with.
hears() {
    poll_until 10 has_listener "$2"
    poll_until 10 in_state "$(agent_of "${pid[$1]}")" S
    poll_until 10 in_state "${pid[$1]}" S
}

# stay NAME KEY [OPTION...]: a background rlock that holds KEY until "ends_well NAME" tells its
# command to end.
stay() {
    rm -f "$T/$1.go"
    bg_up "$1" rlock run "${@:3}" "$2" -- \
        sh -c ": >'$T/$1.up'; await '$T/$1.go'; exit 9"
}

# ends_well NAME: its command ends now, and was not disturbed before.
ends_well() {
    alive "${pid[$1]}"
    : >"$T/$1.go"
    ends_with "$1" 9
}

# The processes of this test that renew, by number.
renewers() {
    local one
    for one in $(pgrep -x rlock-renewer); do
        ! grep -qsz "^RLOCK_TEST_ID=$RLOCK_TEST_ID\$" "/proc/$one/environ" || echo "$one"
    done
}

# no_renewer: no renewer of this test is left.
no_renewer() {
    [[ -z $(renewers) ]]
}

# queued KEY COMMAND...: starts it in the background, and returns when one more waits for KEY.
queued() {
    local before
    before=$(waiters "$1")
    "${@:2}"
    poll_until 15 has_waiters "$1" $((before + 1))
}

# queue NAME KEY [OPTION...]: a background rlock that waits in KEY's queue, and writes NAME to the
# log at its turn.
queue() {
    queued "$2" bg "$1" rlock run "${@:3}" "$2" -- sh -c "echo $1 >>'$LOG'"
}

# line_up NAME PLACE OPTION...: a background rlock that waits for k as number PLACE, and then holds
# it.
line_up() {
    bg "$1" rlock run "${@:3}" k -- sleep 1000
    poll_until 10 has_waiters k "$2"
}

# children_of PID [PATTERN]: prints its children, those with a name like PATTERN; fails if there are
# none. pgrep would read of all processes of the machine, and take as long as ten programs.
children_of() {
    local one name found=1 children
    { read -ra children <"/proc/$1/task/$1/children"; } 2>/dev/null || true
    for one in "${children[@]}"; do
        name=
        { read -r name <"/proc/$one/comm"; } 2>/dev/null || true
        # shellcheck disable=SC2053 # a pattern
        [[ $name && $name == ${2-*} ]] || continue
        echo "$one"
        found=0
    done
    return "$found"
}

# agent_of PID: prints the agent of that rlock.
agent_of() {
    children_of "$1" rlock-agent
}

# kill_agent NAME: kills it and waits for the next one, which is $agent then. A test that does so
# twice wants an agent that takes over from one that has taken over itself.
kill_agent() {
    local before
    poll_until 10 has_agent "$1"
    before=$agent
    kill -KILL "$before"
    poll_until 10 has_agent "$1" "$before"
}

# has_agent NAME [PID]: it has an agent, other than PID.
has_agent() {
    agent=$(agent_of "${pid[$1]}") && [[ $agent != "${2-}" ]]
}

# suspend NAME SIGNAL: by that; returns when the process is stopped.
suspend() {
    kill "-$2" "${pid[$1]}"
    poll_until 5 in_state "${pid[$1]}" T
}

# stop_both NAME: stops rlock and its agent, before either reacts to the other one. Sets "agent".
stop_both() {
    agent=$(agent_of "${pid[$1]}")
    kill -STOP "${pid[$1]}" "$agent"
    poll_until 10 in_state "${pid[$1]}" T
    poll_until 10 in_state "$agent" T
}

# kill_both NAME: the same, and then they are killed; rlock last, as its death may continue an agent
# that is stopped.
kill_both() {
    local agent
    stop_both "$1"
    kill -KILL "$agent" "${pid[$1]}"
}

# command_of PID: prints the command's process, a child that is not the agent.
command_of() {
    children_of "$1" '!(rlock-agent)'
}

# ---------------------------------------------------------------- exclusion

# work NAME KEY SECONDS [OPTION...] [-- FLAG...]: a background worker under the lock KEY, for that
# long, or "forever": until it is ended. FLAGs are those of worker.c.
work() {
    local name=$1 key=$2 seconds=$3 options=()
    shift 3
    while (($#)) && [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    bg "$name" rlock run "${options[@]}" "$key" -- worker "$LOG" "$name" "$seconds" "${@:2}"
}

works() {
    grep -qs "^$1 " "$LOG"
}

# The processes that have left traces in the log.
traced() {
    cut -d' ' -f2 "$LOG" 2>/dev/null | sort -u
}

# have_traced NUMBER: so many have.
have_traced() {
    [[ $(traced | wc -l) == "$1" ]]
}

# working NAME: until its first trace is in the log.
working() {
    poll_until "${2:-15}" works "$1"
}

# at_work: as work, and returns when its first trace is in the log.
at_work() {
    work "$@"
    working "$1"
}

# no_more NAME: it has left traces, and leaves no more.
no_more() {
    local seen
    seen=$(grep -c "^$1 " "$LOG")
    pause 300
    [[ $(grep -c "^$1 " "$LOG") == "$seen" ]]
}

# No two names have their lines in the log interleaved.
no_overlap() {
    awk '$1 != last && $1 in seen { print "overlap: " $1 " again after " last ", line " NR; bad = 1 }
         { seen[$1]; last = $1 } END { exit bad || NR == 0 }' "$LOG"
}

# overlap FIRST SECOND: prints the ms of SECOND's first trace to FIRST's last one.
overlap() {
    awk -v first="$1" -v second="$2" '$1 == first { end = $3 } $1 == second && !begin { begin = $3 }
        END { print int((end - begin) / 1000000) }' "$LOG"
}

# contend ROW LEASE [OPTION...] -- FLAG...: aROW works under the lock kROW as a tree of three
# generations, the last in a session of its own, and bROW waits, or has its turn already. Rows may
# run at the same time.
contend() {
    local LOG=$LOG$1
    at_work "a$1" "k$1" forever --lease "$2" "${@:3}" tree
    poll_until 10 have_traced 3
    work "b$1" "k$1" 0.3 --lease 10s
    poll_until 15 waits_or_works "$1"
}

# waits_or_works ROW: bROW waits for kROW, or its command has begun.
waits_or_works() {
    has_waiters "k$1" 1 || works "b$1"
}

# b_begins_after_a [ROW]: aROW has ended, with its tree, before bROW began.
b_begins_after_a() {
    local one LOG=$LOG${1-}
    ends_with "b${1-}" 0 40
    no_overlap
    for one in $(awk -v name="a${1-}" '$1 == name { print $2 }' "$LOG" | sort -u); do
        poll_until 10 gone "$one"
    done
}

# ---------------------------------------------------------------- faults

# start_proxy [NAME [LISTEN [TARGET]]]: starts a proxy to the server; ${proxy[NAME]} is its address.
start_proxy() {
    local name=${1:-proxy} listen=${2:-127.0.0.1:0} target=${3:-$REDIS_SOCK}
    declare -gA proxy
    # The file of another one of this name would be taken for this one's address.
    [[ ! -e $T/$name.address ]]
    "$RLOCK_TEST_TOOLS/faultproxy" "$T/$name.ctl" "$listen" "$target" \
        </dev/null >"$T/$name.address" 2>"$T/$name.err" 3>&- &
    pid[$name]=$!
    poll_until 10 test -s "$T/$name.address"
    proxy[$name]=$(<"$T/$name.address")
}

# fault COMMAND...: controls the proxy named "proxy"; fault_of NAME COMMAND... another one.
fault() {
    fault_of proxy "$@"
}

fault_of() {
    "$RLOCK_TEST_TOOLS/faultproxy" -s "$T/$1.ctl" "${@:2}"
}

# fault_command COMMAND...: prints what a shell has to do for that fault.
fault_command() {
    printf '%q ' "$RLOCK_TEST_TOOLS/faultproxy" -s "$T/proxy.ctl" "$@"
}

# server_clock_file: for setup_file, before servers are started with the shim.
server_clock_file() {
    export SHIM_CLOCK_FILE=$BATS_FILE_TMPDIR/clock
    truncate -s 4096 "$SHIM_CLOCK_FILE"
    server_clock 0
}

# server_clock MS|freeze: sets the clock of a server started with REDIS_PRELOAD or
# DATABASE_PRELOAD=shim_clock.so.
server_clock() {
    printf '%-32s' "$1" 1<>"$SHIM_CLOCK_FILE"
}

# ---------------------------------------------------------------- a server in trouble

# Starts two holders "long" and "short" of keys with these names. Trouble that begins now and lasts
# until "trouble_is_felt" costs the short one its lease. The long one's renewal after 6 s fails and
# is retried; its lease is trusted for 17 s.
two_holders() {
    stay long long --lease 18s --kill-after 0
    at_work short short forever --lease 2s -- tree
}

# The short one was stopped in time, and the long one has reported a failed renewal.
trouble_is_felt() {
    ends_with short 79
    poll_until 15 contains "$T/long.err" "rlock: long: "
}

# After the trouble the long one is renewed and continues; no other owner had the short one's lock
# beside it.
long_goes_on() {
    poll_until 15 has_left long 13500
    ends_well long
    run -0 rlock status -q long
    work after short 0.2
    finish after
    no_overlap
}

# ---------------------------------------------------------------- assertions

# refused STATUS COMMAND...: rlock ends with that; its messages are in $stderr. A command that ends
# with touch $T/ran, or $T/run, has not run.
refused() {
    local trace=${*: -1}
    run "-$1" --separate-stderr rlock "${@:2}"
    [[ $trace != "$T"/r[au]n || ! -e $trace ]]
}

# refusals PREFIX [SUFFIX]: each row WORDS|REGEX of standard input is refused with 64 and that
# message.
refusals() {
    local words regex
    while IFS='|' read -r words regex; do
        # shellcheck disable=SC2086 # a list of words
        says 64 "^rlock: ${words%% *}: $1$regex${2-}" $words
    done
}

# has_status STATUS COMMAND...: the same, to be polled for.
has_status() {
    local got=0
    rlock "${@:2}" || got=$?
    ((got == $1))
}

# stderr_line REGEX: one line on standard error (of "run --separate-stderr") matches.
stderr_line() {
    local line
    while IFS= read -r line; do
        [[ ! $line =~ $1 ]] || return 0
    done <<<"$stderr"
    printf 'no line like %s in:\n%s\n' "$1" "$stderr"
    return 1
}

# says STATUS REGEX COMMAND...: it is refused with that, and a line of its standard error matches.
says() {
    refused "$1" "${@:3}"
    stderr_line "$2"
}

# quiet STATUS COMMAND...: rlock ends with that, and has no message.
quiet() {
    refused "$@"
    [[ ! $stderr ]]
}

# prints_nothing STATUS COMMAND...: nor anything on standard output.
prints_nothing() {
    quiet "$@"
    [[ ! $output ]]
}

# prints STATUS PATTERN COMMAND...: rlock ends with that, and its standard output is like PATTERN.
prints() {
    refused "$1" "${@:3}"
    # shellcheck disable=SC2053 # a pattern
    [[ $output == $2 ]]
}

# json FILTER: jq's answer about $output is true.
json() {
    if ! jq -e "$1" <<<"$output" >/dev/null; then
        printf 'not so: %s\n%s\n' "$1" "$output"
        return 1
    fi
}

# status_json [KEY...] FILTER: what status tells about these passes jq's FILTER.
status_json() {
    run -0 rlock status --json "${@:1:$#-1}"
    json "${@: -1}"
}

# reports FILTER OPTION... KEY... -- COMMAND...: what run writes to --report-fd passes jq's FILTER.
reports() {
    rlock run --report-fd 9 "${@:2}" 9>"$T/report" || true
    output=$(<"$T/report")
    json "$1"
}
