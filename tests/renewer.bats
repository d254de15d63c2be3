# rlock acquire --keep: the process that stays behind. holding NAME KEY: a background script that
# has acquired KEY, and holds it until it ends; waits_to_keep: a holds k, and w waits for it, to
# keep it for as long as s lives.

load helper

setup_file() { start_file --appendonly yes --appendfsync always; }

# holding NAME KEY [OPTION...]: a background script that has acquired KEY, and holds it until it
# ends.
holding() {
    local name=$1
    cat >"$T/$name.sh" <<'EOF'
token=$(rlock acquire --keep $$ "$@") || exit
echo "$token" >"$0.new" && mv "$0.new" "$0.token"
exec sleep 1000
EOF
    bg "$name" sh "$T/$name.sh" "${@:2}"
    poll_until 15 test -s "$T/$name.sh.token"
}

# token_of NAME: prints the token of the script of that name.
token_of() {
    cat "$T/$1.sh.token"
}

# waits_to_keep [OPTION...]: a holds k, and w waits for it, to keep it for as long as s lives.
waits_to_keep() {
    hold a k
    bg s sleep 1000
    queued k bg w rlock acquire "$@" --keep "${pid[s]}" k
}

# How many sockets that process has.
sockets() {
    find "/proc/$1/fd" -lname 'socket:*' | wc -l
}

@test "the renewer renews while the process of --keep lives, and releases when that has ended" {
    holding a k --lease 21s
    status_json k ".[0].holders[0] | .pid == ${pid[a]} and .command == \"sh\""
    renewed k
    renewed k
    run -75 rlock run -n k -- true
    kill -KILL "${pid[a]}"
    # A lock that was not released would be free after two thirds of its lease, 14 s, or later.
    timed 0 12000 run -0 rlock run -w 25s k -- true
    poll_until 5 no_renewer
}

# A shell waits for the end of a substitution until no process has its pipe open, so the renewer
# must not have it.
@test "a substitution returns at once, both streams, in every shell" {
    for shell in sh bash dash; do
        command -v "$shell" >/dev/null || continue
        run -0 "$shell" -c 'token=$(rlock acquire -v --keep $$ k 2>&1) && rlock status -q k; [ $? = 75 ]' 3>&-
        run -0 "$shell" -c 'rlock acquire -v --keep $$ k2 2>&1 | cat' 3>&-
        [[ $output == *-* ]]
        poll_until 5 no_renewer
    done
}

# Descriptors 8 and 9 are open in the shell that starts acquire, and 9 holds a lock of flock(1),
# which ends when no process has it open.
@test "the renewer has a session and a name of its own, null streams, nothing inherited" {
    exec 8>"$T/file" 9>"$T/flock"
    flock 9
    holding a k
    one=$(renewers)
    flock 9 && exec 9>&- 8>&-
    kill -0 "$one"
    [[ $(ps -o sid= -p "$one" | tr -d ' ') == "$one" && $(ps -o tty= -p "$one") == "?"* ]]
    [[ $(ps -o ppid= -p "$one" | tr -d ' ') != "${pid[a]}" ]]
    for fd in 0 1 2; do
        [[ $(readlink "/proc/$one/fd/$fd") == /dev/null ]]
    done
    run -0 find "/proc/$one/fd" -lname "$T/*"
    [[ $output == "" ]]
    run -0 find "/proc/$one/fd" -lname 'pipe:*'
    [[ $output == "" ]]
}

# The second flock(1) would fail if the renewer had descriptor 9.
@test "a lock of flock(1) is not kept" {
    cat >"$T/script" <<'END'
exec 9>"$T/flock" && flock 9
token=$(rlock acquire --keep "$KEEPER" k) || exit
exec 9>&-
flock -n "$T/flock" true
END
    KEEPER=$BASHPID run -0 bash "$T/script" 3>&-
    run -75 rlock run -n k -- true
}

@test "release ends the renewer; a renewer whose lock was taken away ends" {
    holding a k --lease 9s
    run -0 rlock release --owner "$(token_of a)" k
    run -0 rlock run -n k -- true
    poll_until 3 no_renewer
    holding b k --lease 9s
    run -0 rlock force-release --now --yes k
    poll_until 3 no_renewer
    run -0 rlock run -n k -- true
    alive "${pid[b]}"
}

# has_at_most_8s_left: the lease of k ends within 8 s.
has_at_most_8s_left() {
    (($(lease_left k) <= 8000))
}

# The lease that was set by hand would not come down to 8 s while this waits.
@test "a renewal by hand, for longer: the renewer continues with the lease of the acquisition" {
    holding a k --lease 8s
    run -0 rlock renew --lease 60s --owner "$(token_of a)" k
    poll_until 10 has_at_most_8s_left
    renewed k
    run -75 rlock run -n k -- true
}

@test "a process that does not exist: exit 64, before anything is asked" {
    sleep 1000 &
    one=$!
    kill -KILL "$one"
    wait "$one" || true
    run -64 --separate-stderr rlock acquire --keep "$one" -u unix:///nowhere k
    [[ $output == "" ]]
    stderr_line "no such process"
    for one in 0 -1 x 1x 99999999999 ""; do
        run -64 rlock acquire --keep="$one" -u unix:///nowhere k
    done
    says 64 '^hint: --keep 1 keeps the lock as long as the container runs$' acquire --keep 0 k
    # The process is rlock acquire itself, which ends at once.
    run -64 --separate-stderr bash -c 'exec rlock acquire --keep $$ k' 3>&-
}

@test "--keep of a process that has ended, but was not waited for (a zombie): exit 64" {
    bg s sh -c 'sleep 0.2 & echo $! >"$0"; exec sleep 1000' "$T/number"
    poll_until 5 test -s "$T/number"
    poll_until 5 in_state "$(<"$T/number")" Z
    run -64 rlock acquire --keep "$(<"$T/number")" k
}

@test "the process of --keep ends while acquire waits: exit 1, and the lock is not taken" {
    waits_to_keep
    kill -KILL "${pid[s]}"
    finish w 5
    [[ $status == 1 && ! -s $T/w.out ]]
    contains "$T/w.err" "has ended"
    has_waiters k 0
    poll_until 5 no_renewer
}

@test "an acquire --keep that has waited is renewed, too" {
    waits_to_keep --lease 8s
    kill "${pid[a]}"
    ends_with w 0
    renewed k
    run -75 rlock run -n k -- true
    kill "${pid[s]}"
    run -0 rlock run -w 60s k -- true
}

@test "only the renewer is connected to the store: it survives the end of the other process" {
    waits_to_keep
    # The one socket is that between the two.
    [[ $(sockets "${pid[w]}") == 1 && $(sockets "$(renewers)") == 2 ]]
    kill "${pid[a]}"
    ends_with w 0
    on_its_own() { [[ $(sockets "$(renewers)") == 1 ]]; }
    poll_until 5 on_its_own
}

@test "acquire --keep is stopped while it waits: others take the lock, and it has its turn later" {
    waits_to_keep
    suspend w STOP
    kill "${pid[a]}"
    run -0 rlock run -w 60s k -- true
    kill -CONT "${pid[w]}"
    finish w
    [[ $status == 0 && -s $T/w.out ]]
    held k
}

@test "acquire --keep is killed or interrupted while it waits: no waiter and no process is left" {
    hold a k
    bg s sleep 1000
    for signal in KILL TERM; do
        queued k bg w rlock acquire --keep "${pid[s]}" k
        kill "-$signal" "${pid[w]}"
        finish w 5
        ((status > 128))
        [[ ! -s $T/w.out ]]
        poll_until 5 has_waiters k 0
        poll_until 5 no_renewer
    done
}

@test "the renewer is killed while acquire waits: exit 71, and acquire says so" {
    waits_to_keep
    kill -KILL "$(renewers)"
    finish w 5
    [[ $status == 71 && ! -s $T/w.out ]]
    contains "$T/w.err" 'rlock: k: not acquired: its renewer has ended'
}

@test "a lock that could not be printed is not held, and nothing stays behind" {
    run -71 bash -c 'rlock acquire --keep $$ k >&-; status=$?; rlock status -q k && exit "$status"' 3>&-
    run -71 bash -c 'rlock acquire --keep $$ k >/dev/full; status=$?; rlock status -q k && exit "$status"' 3>&-
    poll_until 2 no_renewer
}

# Standard output is a full pipe, so that the token is not out. First acquire is killed, then told
# to end.
@test "acquire --keep is killed before the token was out: no lock and no process is left" {
    mkfifo "$T/fifo"
    exec 7<>"$T/fifo"
    head -c 65536 /dev/zero >&7
    "$RLOCK" acquire --keep $$ k >&7 2>"$T/w.err" 3>&- 7>&- &
    pid[w]=$!
    poll_until 10 held k
    [[ -n $(renewers) ]]
    kill -KILL "${pid[w]}"
    poll_until 3 is_free k
    poll_until 3 no_renewer
    "$RLOCK" acquire --keep $$ k >&7 2>"$T/w.err" 3>&- 7>&- &
    pid[w]=$!
    poll_until 10 held k
    kill "${pid[w]}"
    ends_with w 143 3
    run -0 rlock status -q k
    poll_until 3 no_renewer
    exec 7>&-
}

# The shim kills acquire where it tidies up, after it has printed the token.
@test "acquire --keep is killed between its token and its end: no lock and no process is left" {
    for i in {1..5}; do
        run -137 env LD_PRELOAD="$RLOCK_TEST_TOOLS/shim_kill.so" rlock acquire --keep $$ k 3>&-
        [[ $output =~ ^[0-9a-f-]{36}$ ]]
        poll_until 3 is_free k
        poll_until 3 no_renewer
    done
}

# cron gives a job neither a terminal nor much of an environment; its output is mailed, so there
# must be none.
@test "the lock is kept under cron: no environment, no terminal, streams that are files" {
    cat >"$T/job" <<'EOF'
store=$1 go=$2
token=$(rlock acquire -u "$store" --lease 9s --keep $$ job) || exit
await "$go"
rlock status -u "$store" -q job
[ "$?" = 75 ] && rlock release -u "$store" --owner "$token" job
EOF
    bg job env -i PATH="$PATH" RLOCK_CONFIG=/dev/null "RLOCK_TEST_ID=$T" \
        setsid -w sh -c 'exec sh "$@" <&-' sh "$T/job" "$RLOCK_URL" "$T/go"
    poll_until 10 held job
    renewed job
    renewed job
    : >"$T/go"
    ends_with job 0
    [[ ! -s $T/job.out && ! -s $T/job.err ]]
    run -0 rlock status -q job
    poll_until 3 no_renewer
}

@test "the lock is kept over ssh: standard input and error closed" {
    run -0 sh -c 'token=$(rlock acquire --keep $$ k <&- 2>&-); rlock status -q k; [ $? = 75 ] && echo "$token"' 3>&- <&-
    [[ $output =~ ^[0-9a-f-]{36}$ ]]
    poll_until 3 no_renewer
}

# The process group of the step is told to end, and so is the renewer, which is not in it. The
# renewer must wait for the end of the step.
@test "a CI step whose process group is told to end still cleans up under the lock" {
    cat >"$T/step" <<'EOF'
token=$(rlock acquire --lease 9s --keep $$ k) || exit
trap ': >"$T/in"; await "$T/go"; rlock status -q k; echo $? >"$T/still"; exit 1' TERM
: >"$T/s.up"
while :; do sleep 0.1; done
EOF
    bg_up s setsid sh "$T/step"
    kill -TERM -- "-${pid[s]}" "$(renewers)"
    poll_until 10 test -e "$T/in"
    renewed k
    renewed k
    : >"$T/go"
    finish s
    [[ $(<"$T/still") == 75 ]]
    poll_until 2 is_free k
    poll_until 2 no_renewer
}

@test "a CI step whose process group is killed frees the lock" {
    bg s setsid sh -c 'token=$(rlock acquire --lease 60s --keep $$ k) || exit; : >"$0"; sleep 1000; :' "$T/up"
    poll_until 10 test -e "$T/up"
    kill -KILL -- "-${pid[s]}"
    poll_until 2 is_free k
    poll_until 2 no_renewer
}

@test "the renewer is killed: the lease runs out, and the script finds out" {
    holding a k --lease 9s
    kill -KILL "$(renewers)"
    poll_until 5 is_free k
    hold b k
    run -1 rlock renew --owner "$(token_of a)" k
}

@test "the renewer leaves no zombie to the script, nor to a supervisor" {
    cat >"$T/job" <<'EOF'
for i in 1 2 3; do
    sh -c 'token=$(rlock acquire --keep $$ k) && rlock release --owner "$token" k'
    sh -c 'token=$(rlock acquire --keep $$ k); :'
done
token=$(rlock acquire --keep $$ k) && rlock release --owner "$token" k
ps -o stat=,comm= --ppid $$ >"$T/children"
: >"$T/s.up"
exec sleep 1000
EOF
    bg_up s rlock run outer -- sh "$T/job"
    run -1 grep '^Z' "$T/children"
    settled() { ! ps -o stat=,comm= --ppid "${pid[s]}" | grep -q '^Z'; }
    poll_until 3 settled
    run -0 ps -o comm= --ppid "${pid[s]}"
    # A renewer that still lives may be there, until it has noticed the end of its process.
    [[ $output != *rlock-renewer* || -n $(renewers) ]]
    kill "${pid[s]}"
}

@test "the renewer ends when the server is away for longer than the lease" {
    holding a k --lease 4s
    redis_stop
    poll_until 10 no_renewer
    alive "${pid[a]}"
    redis_start
    poll_until 3 is_free k
}

@test "the process of --keep ends while the server is away: released when that is back" {
    holding a k --lease 60s
    redis_stop
    kill -KILL "${pid[a]}"
    sleep 1 # of an outage
    redis_start
    poll_until 5 is_free k
    poll_until 2 no_renewer
}

@test "the renewer shows its password nowhere, and connects again with it" {
    redis config set requirepass 'p4ss'
    bg s sh -c 'token=$(rlock acquire -u "unix://:p4ss@$REDIS_SOCK" --lease 8s --keep $$ k) || exit; : >"$0"; sleep 1000; :' "$T/up"
    poll_until 10 test -e "$T/up"
    one=$(renewers)
    run -0 cat "/proc/$one/cmdline"
    [[ $output == *acquire* && $output != *p4ss* ]]
    redis_client() { env REDISCLI_AUTH=p4ss redis-cli -e -s "$REDIS_SOCK" "$@" 3>&-; }
    redis_client client kill type normal skipme yes >/dev/null
    RLOCK_PASSWORD=p4ss renewed k
    RLOCK_PASSWORD=p4ss run -75 rlock status -q k
    redis_client config set requirepass ''
}

@test "where the kernel has no pidfd, the end of the process is noticed all the same" {
    cat >"$T/no_pidfd.py" <<'EOF'
# Runs a command without pidfd_open(2), as some sandboxes do: EPERM.
import ctypes, os, platform, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 434), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
text = b"".join(struct.pack("HBBI", *line) for line in code)
buffer = ctypes.create_string_buffer(text, len(text))
program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    sys.exit(77)
os.execvp(sys.argv[1], sys.argv[1:])
EOF
    run python3 "$T/no_pidfd.py" true
    [[ $status == 0 ]] || skip "no seccomp filters here"
    bg_up s python3 "$T/no_pidfd.py" sh \
        -c 'token=$(rlock acquire --lease 8s --keep $$ k) || exit; : >"$0"; exec sleep 1000' \
        "$T/s.up"
    run -0 find "/proc/$(renewers)/fd" -lname '*pidfd*'
    [[ $output == "" ]]
    renewed k
    run -75 rlock run -n k -- true
    kill -KILL "${pid[s]}"
    poll_until 2 is_free k
    poll_until 2 no_renewer
    run -64 python3 "$T/no_pidfd.py" "$RLOCK" acquire --keep "${pid[s]}" k
}
