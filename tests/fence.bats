# rlock fence: on the side of the resource, whoever comes with an older token is refused.
# file_is_locked: another fence of that file is refused at once.

load helper

setup() {
    start_test
    F=$T/site.fence
    unset RLOCK_FENCE
}

# fence TOKEN [OPTION...]: of $F, with no store to be reached.
fence() {
    RLOCK_URL=redis://127.0.0.1:1 rlock fence "$F" --token "$@"
}

# file_has TEXT: the file $F has just this text.
file_has() {
    [[ $(<"$F") == "$1" ]]
}

# A command for "sh -c" with a child, whose process id is in $T/child. The shell stays its parent
# because of the colon.
parent='sh -c "echo \$\$ >\"\$T/child\"; exec sleep 1000"; :'

@test "H152 a token that is older than the one that was here is refused, and the file stays" {
    run -0 --separate-stderr fence 17
    [[ ! $output$stderr ]]
    file_has 17
    run -0 fence 17
    run -79 --separate-stderr fence 16 -q
    [[ $stderr == "rlock: fence: $F: token 16 is older than 17, which was here before" ]]
    file_has 17
    run -79 fence 9 -- touch "$T/ran"
    [[ ! -e $T/ran ]]
    RLOCK_FENCE=100 run -0 rlock fence "$F"
    file_has 100
    run -79 fence 99
    cmp "$F" - <<<100
    # Without a number yet.
    : >"$F"
    run -0 fence 0
    file_has 0
    # A list of numbers, for a text of any length.
    for one in 9 10 99 9223372036854775806 9223372036854775807; do
        run -0 fence "$one"
        file_has "$one"
    done
}

@test "H152 no token, several, or something else in the file: exit 78, and the file stays" {
    echo 5 >"$F"
    run -78 --separate-stderr rlock fence "$F"
    [[ ${stderr_lines[0]} == "rlock: fence: $F: no token: RLOCK_FENCE is not set" && ${stderr_lines[1]} == hint:* ]]
    RLOCK_FENCE='7 8' run -78 rlock fence "$F"
    RLOCK_FENCE=7x run -78 rlock fence "$F"
    run -78 fence ''
    run -78 fence '7 8'
    run -64 fence 7x
    run -64 fence -7
    run -64 fence 9223372036854775808
    run -64 rlock fence
    run -64 rlock fence "$F" true
    run -64 rlock fence "$F" "$F" --token 7 -- true
    run -64 rlock fence "$F" --token 7 --
    run -64 rlock fence "$F" --token 7 -w soon
    file_has 5
    for text in x '5 6' -5 5x ' 5' 99999999999999999999 "$(seq 100)"; do
        echo "$text" >"$F"
        run -78 --separate-stderr fence 7
        stderr_line 'it holds something else than a token'
        file_has "$text"
    done
    run -78 rlock fence /dev/null --token 7
    mkfifo "$T/fifo"
    run -78 rlock fence "$T/fifo" --token 7
    run -71 rlock fence "$T" --token 7
    run -71 rlock fence "$T/none/fence" --token 7
}

@test "a file's mode, owner and links stay, and the text that others put around the number" {
    printf '0017 \n\n' >"$F"
    chmod 640 "$F"
    ln "$F" "$T/hard"
    ln -s hard "$T/soft"
    before=$(stat -c '%i %a %U %s' "$F")
    run -0 rlock fence "$T/soft" --token 18
    [[ -L $T/soft && $(<"$T/hard") == 18 && $(stat -c '%i %a %U %s' "$F") == "$before" ]]
    # A crash between the new length and the new text.
    printf '99\n\0' >"$F"
    run -79 fence 98
    run -0 fence 100
    file_has 100
    # A name without a file behind it.
    ln -s later "$T/dangling"
    run -0 rlock fence "$T/dangling" --token 3
    [[ -L $T/dangling && $(<"$T/later") == 3 ]]
    # A file that may be read, but not be written, is not passed.
    chmod a+x "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$T/.." "$T"
    chmod 444 "$F"
    other=(setpriv --reuid 65534 --clear-groups)
    if [[ $EUID == 0 ]] && "${other[@]}" test -x "$RLOCK" -a -r "$F"; then
        run -71 "${other[@]}" "$RLOCK" fence "$F" --token 200
        file_has 100
    fi
}

@test "the command's status is passed on, and so is its signal" {
    run -0 --separate-stderr fence 3 -- sh -c 'echo "$RLOCK_FENCE"'
    [[ $output == 3 && ! $stderr ]]
    run -0 cat <(echo input | fence 3 -- cat)
    [[ $output == input ]]
    run -9 fence 3 -- sh -c 'exit 9'
    run -127 --separate-stderr fence 3 -- no-such-command
    stderr_line '^rlock: no-such-command: No such file'
    run -126 fence 4 -- "$F"
    file_has 4
    run -137 fence 4 -- sh -c 'kill -KILL $$'
    # A signal to rlock itself is for the command.
    bg a rlock fence "$F" --token 5 -- sh -c "trap 'exit 7' USR1; : >'$T/up'; while :; do sleep 0.05; done"
    poll_until 10 test -e "$T/up"
    kill -USR1 "${pid[a]}"
    ends_with a 7
    bg_up a rlock fence "$F" --token 5 -- sh -c ": >'$T/a.up'; exec sleep 1000"
    terminate a 143
}

# file_is_locked: another one is refused at once.
file_is_locked() {
    local answer=0
    "$RLOCK" fence "$F" --token 0 -n 2>/dev/null 3>&- || answer=$?
    ((answer == 75))
}

@test "the file is locked while the command runs, not for what it leaves in the background" {
    bg a rlock fence "$F" --token 5 -- await "$T/go"
    poll_until 10 file_is_locked
    poll_until 10 file_has 5
    run -75 --separate-stderr fence 6 -n
    [[ $stderr == "rlock: fence: $F: another fence has it locked" ]]
    timed 300 20000 run -75 fence 6 -w 300ms -- touch "$T/ran"
    run -75 fence 6 -w 0
    [[ ! -e $T/ran ]]
    # A waiter says so, and has its turn.
    bg b rlock fence "$F" --token 6
    poll_until 10 contains "$T/b.err" "rlock: fence: waiting for $F, which another fence has locked"
    bg c rlock fence "$F" --token 4 -- touch "$T/ran"
    file_has 5
    : >"$T/go"
    finish a
    ends_with b 0
    finish c
    [[ $status == 79 && ! -e $T/ran ]]
    file_has 6
    # Told to end, it does.
    bg a rlock fence "$F" --token 6 -- sleep 1000
    poll_until 10 file_is_locked
    bg_says b waiting rlock fence "$F" --token 6
    terminate b 143
    terminate a
    # The standard streams of what is left are its own business.
    run -0 bash -c 'rlock fence "$1" --token 7 -- sh -c "sleep 1000 >/dev/null 2>&1 & echo left"' sh "$F" 3>&-
    [[ $output == left ]]
    run -0 fence 8 -n
}

# A command waits for a file that another one has locked. When it gets that, the path leads to
# another file, whose token counts.
@test "a file that is replaced or removed while it is waited for is opened anew" {
    bg a rlock fence "$F" --token 5 -- await "$T/go"
    poll_until 10 file_is_locked
    bg_says b waiting rlock fence "$F" --token 7
    echo 8 >"$T/other"
    mv "$T/other" "$F"
    : >"$T/go"
    ends_with b 79
    file_has 8
}

@test "H152 rlock fence is killed at any moment: the file has the old number or the new one" {
    number=1
    fence 1
    for ((i = 0; i < 60; i++)); do
        # From one length to the next, as well.
        next=$((i % 3 ? number + 1 : number * 10))
        bg a rlock fence "$F" --token "$next"
        pause $((i % 5))
        kill -KILL "${pid[a]}" 2>/dev/null || true
        status=0
        wait "${pid[a]}" || status=$?
        now=$(<"$F")
        [[ $now == "$next" || ($now == "$number" && $status != 0) ]]
        number=$now
        ((number < 100000000000000000)) || { number=1 && rm "$F" && fence 1; }
    done
}

@test "H152 a fence is killed before its new file is on the disk: the next one writes that out" {
    need_strace
    # The first fence fails to write the directory out, and the second one dies then. The third one
    # finds a file, and writes the directory out before it relies on that.
    run strace -f -qq -o /dev/null -e inject=fsync:error=EIO rlock fence "$F" --token 5 3>&-
    [[ $status == 71 && $output == *'Input/output error' ]]
    run strace -f -qq -o /dev/null -e inject=fsync:signal=KILL rlock fence "$F" --token 5 3>&-
    strace -f -qq -e trace=fsync -o "$T/trace" rlock fence "$F" --token 5 3>&-
    contains "$T/trace" 'fsync('
    file_has 5
    # The directory has been written out once, which is enough.
    strace -f -qq -e trace=fsync -o "$T/trace" rlock fence "$F" --token 6 3>&-
    run -1 contains "$T/trace" 'fsync('
}

@test "H152 two dozen fences at once: no token is admitted after a higher one" {
    for ((i = 0; i < 24; i++)); do
        # The tokens 100 to 123, out of order. Each command logs its token at its start and end.
        # shellcheck disable=SC2016 # the command's shell expands them
        bg "f$i" rlock fence "$F" --token $((100 + i * 7 % 24)) -- \
            sh -c 'echo "$RLOCK_FENCE" >>"$LOG"; echo "$RLOCK_FENCE" >>"$LOG"'
    done
    for ((i = 0; i < 24; i++)); do
        finish "f$i" 30
        [[ $status == 0 || $status == 79 ]]
    done
    sort -n -c "$LOG"
    [[ $(uniq -c "$LOG" | awk '$1 != 2') == '' && $(tail -n 1 "$LOG") == 123 ]]
    file_has 123
}

@test "H152 kill -9 of rlock fence: its command's group is dead before the file is unlocked" {
    bg a rlock fence "$F" --token 5 -- \
        sh -c "sh -c 'echo \$\$ >\"$T/child\"; while :; do date +%s%N >>\"$LOG\"; done'; :"
    poll_until 10 test -s "$LOG"
    kill -KILL "${pid[a]}"
    run -0 rlock fence "$F" --token 6 -w 60s -- sh -c "wc -c <'$LOG'"
    seen=$output
    poll_until 10 gone "$(<"$T/child")"
    # Not a line came later than that.
    [[ $(wc -c <"$LOG") == "$seen" ]]
}

@test "H152 kill -9 of rlock fence, and its guard can open no file: the command dies first" {
    need_strace
    bg a rlock fence "$F" --token 5 -- \
        sh -c "$parent"
    poll_until 10 test -s "$T/child"
    guard=$(children_of "${pid[a]}" rlock-guard)
    bg trace strace -qq -o "$T/calls" -e inject=openat:error=ENFILE -p "$guard"
    poll_until 10 eval '[[ $(awk "/TracerPid/ { print \$2 }" "/proc/$guard/status") != 0 ]]'
    kill -KILL "${pid[a]}"
    run -0 rlock fence "$F" --token 6 -w 60s
    gone "$(<"$T/child")"
}

@test "H152 the guard of rlock fence is killed, then rlock: another guard ends the command" {
    bg a rlock fence "$F" --token 5 -- \
        sh -c "$parent"
    poll_until 10 test -s "$T/child"
    guard=$(children_of "${pid[a]}" rlock-guard)
    kill -KILL "$guard"
    poll_until 10 eval '[[ $(children_of "${pid[a]}" rlock-guard) != @(|"$guard") ]]'
    kill -KILL "${pid[a]}"
    run -0 rlock fence "$F" --token 6 -w 60s
    gone "$(<"$T/child")"
}

@test "H92 kill -9 of rlock fence just as its command begins: what that has started dies, too" {
    # The shim stops rlock as soon as it has started the command, before it tells its guard.
    LD_PRELOAD=$RLOCK_TEST_TOOLS/shim_begun.so bg a rlock fence "$F" --token 5 -- \
        sh -c "$parent"
    poll_until 10 in_state "${pid[a]}" T
    poll_until 10 test -s "$T/child"
    kill -KILL "${pid[a]}"
    run -0 rlock fence "$F" --token 6 -w 60s
    gone "$(<"$T/child")"
}

@test "H152 a disk that is full, a file that may not grow: exit 71, and the old number" {
    echo 99 >"$F"
    run -71 bash -c 'ulimit -f 0; exec rlock fence "$1" --token 100 -- touch "$2"' sh "$F" "$T/ran" 3>&-
    [[ ! -e $T/ran ]]
    file_has 99
    unshare --mount true 2>/dev/null || skip "may not mount here"
    mkdir "$T/full"
    run -0 --separate-stderr unshare --mount bash -c '
        mount -t tmpfs -o size=64k none "$1" && cd "$1" || exit
        echo 99 >old
        : >new
        dd if=/dev/zero of=fill bs=4k 2>/dev/null
        rlock fence old --token 98; echo "$?"
        rlock fence new --token 100 -- touch ran; echo "$?"
        rlock fence newer --token 100 -- touch ran; echo "$?"
        cat new newer
        ls | xargs
        rm fill
        rlock fence new --token 100; echo "$? $(cat new)"' sh "$T/full" 3>&-
    [[ $output == $'79\n71\n71\nfill new newer old\n0 100' ]]
    stderr_line 'new: No space left on device'
}

# late_write COMMAND: prints what "a" has written after "b", when "a" with its agent was stopped for
# longer than the lease, and then the command found that it may write.
late_write() {
    rm -f "$T/go" "$T/data"
    bg_up a rlock run --lease 5s k -- sh -c ": >'$T/a.up'; await '$T/go'; $1"
    stop_both a
    late=$(command_of "${pid[a]}")
    run -0 rlock run --lease 9s k -- sh -c "${1//echo old/echo new}"
    : >"$T/go"
    poll_until 10 gone "$late"
    kill -CONT "${pid[a]}" "$agent"
    finish a
}

# The program of the first holder writes after the second one has, as both were let in. Without a
# fence the old write overwrites the new one; with it, it is refused.
@test "H152 a machine that stood still for longer than its lease: its late write is refused" {
    late_write "echo old >>'$T/data'"
    [[ $(xargs <"$T/data") == 'new old' ]]
    late_write "rlock fence '$F' -- sh -c 'echo old >>\"$T/data\"'"
    [[ $(xargs <"$T/data") == new ]]
    contains "$T/a.err" 'is older than'
}

@test "on a terminal the command can read, be stopped and continued, and be ended by Ctrl-C" {
    export F
    in_shell <<'EOF'
send rlock fence "$F" --token 5 -- sh -c 'echo rea""dy; read line; echo "got=$line"; exec sleep 1000'\n
expect ready
stopped
send rlock fence "$F" --token 0 -n; echo "locked=$?"\n
expect locked=75
send fg\n
expect fence
send hello\n
expect got=hello
send \x03
ended 130
send rlock fence "$F" --token 0 -n; echo "free=$?"\n
expect free=79
EOF
}
