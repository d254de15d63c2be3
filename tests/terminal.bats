# rlock on a terminal: H99. The dialogues are played by terminal.py. A dialogue: "send" types;
# "expect" waits for a text; "absent": it has not come since; "sh" and "until" run a command beside;
# "stopped" is Ctrl-Z; "ended N": the prompt is back, after status N.

load helper

@test "H99 Ctrl-C reaches the command once, and rlock waits for its clean-up" {
    cat >"$T/command" <<'EOF'
trap 'echo got-int; n=$((n + 1))' INT
echo ready-now
until [ -n "$n" ]; do sleep 0.05; done
sleep 0.5
echo "ints=$n"
exit 5
EOF
    on_terminal rlock run k -- bash "$T/command" <<'EOF'
expect ready-now
send \x03
expect got-int
absent got-int
expect ints=1
status 5
EOF
    run -0 rlock status -q k
}

@test "H99 Ctrl-C ends a command that does not handle it, and the shell continues" {
    in_shell <<'EOF'
send rlock run k -- sleep 1000\n
until ! rlock status -q k
send \x03
ended 130
sh rlock status -q k
EOF
}

@test "H99 Ctrl-C and Ctrl-\\ while waiting: prompt end, no place in the queue" {
    hold a k
    in_shell <<'EOF'
send rlock run k -- echo no\n
until [ "$(rlock status --json k | jq '.[0].waiters | length')" = 1 ]
send \x03
ended 130
sh [ "$(rlock status --json k | jq '.[0].waiters | length')" = 0 ]
send rlock run k -- echo no\n
until [ "$(rlock status --json k | jq '.[0].waiters | length')" = 1 ]
send \x1c
ended 131
sh [ "$(rlock status --json k | jq '.[0].waiters | length')" = 0 ]
EOF
}

@test "H99 Ctrl-Z and fg in time: the command continues under the lock" {
    in_shell <<'EOF'
send rlock run --lease 20s k -- worker "$T/log" a forever\n
until grep -q '^a' "$T/log"
stopped
sh ! rlock status -q k
send fg\n
until n=$(wc -l <"$T/log"); sleep 0.2; [ "$(wc -l <"$T/log")" -gt "$n" ]
send \x03
ended 130
sh rlock status -q k
EOF
}

@test "H99 Ctrl-Z, the lock goes to another, fg: exit 79, and the command did not continue" {
    in_shell <<'EOF'
send rlock run --lease 20s k -- worker "$T/log" a forever\n
until grep -q '^a' "$T/log"
stopped
sh rlock force-release --now --yes k
sh rlock run -w 60s k -- worker "$T/log" b 0.2
send fg\n
ended 79
EOF
    no_overlap
}

@test "H99 Ctrl-Z, the lock is asked for, fg: what the command has left ends before the next one" {
    cat >"$T/command" <<'EOF'
echo $$ >"$T/pid"
worker "$T/log" a forever ignore &
wait
EOF
    in_shell <<'EOF'
send rlock run --lease 60s k -- bash "$T/command"\n
until grep -q '^a' "$T/log"
stopped
sh rlock force-release --yes k >"$T/asked" 2>&1 3>&- &
until grep -q '^State:.Z' /proc/$(cat "$T/pid")/status
send fg\n
ended 79
sh rlock run -w 60s k -- worker "$T/log" b 0.2
EOF
    no_overlap
}

@test "H99 the lock is lost, and the command continues without it: so it does after Ctrl-Z and fg" {
    in_shell <<'EOF'
send rlock run --on-lost continue k -- worker "$T/log" a forever\n
until grep -q '^a' "$T/log"
sh rlock force-release --now --yes k
expect continues
stopped
send fg\n
until n=$(wc -l <"$T/log"); sleep 0.2; [ "$(wc -l <"$T/log")" -gt "$n" ]
send \x03
ended 79
EOF
}

# The command of some tests: tells when it runs, and each time that it is continued.
tells_of_cont() {
    cat >"$T/command" <<'EOF'
trap 'n=$((n + 1)); echo "cont=$n"' CONT
echo ready-now
until [ -e "$T/go" ]; do sleep 0.05; done
EOF
}

@test "H165 Ctrl-Z where no shell could continue the command: it continues at once" {
    tells_of_cont
    export WAY
    for WAY in "run k" "read k" "fence $T/fence --token 7"; do
        for under in '' 'sh -c '"'"'"$0" "$@"; exit $?'"'"; do # the terminal's first process
            echo "$WAY, under $under"
            on_terminal sh -c "exec $under rlock \$WAY -- bash \"\$T/command\"" <<'EOF'
expect ready-now
send \x1a
expect cont=1
send \x1a
expect cont=2
send \x03
status 130
EOF
            run -0 rlock status -q k
        done
    done
}

@test "H165 --wait-descendants: what Ctrl-Z has stopped just before the command ends continues" {
    cat >"$T/command" <<'EOF'
sh -c 'kill -TSTP $$; exit 0' &
until grep -q '^State:.T' /proc/$!/status; do sleep 0.05; done
exit 7
EOF
    in_shell <<'EOF'
send rlock run --wait-descendants k -- sh "$T/command"\n
ended 7
sh rlock status -q k
EOF
}

@test "H165 a command that others have stopped ends by a key, or by a signal to rlock" {
    for end in 'send \x03,130' 'send \x1c,131' 'sh kill -TERM $PTY_PID,143' 'sh kill -HUP $PTY_PID,129'; do
        for way in "run k" "fence $T/fence --token 7"; do
            echo "$way, $end"
            # shellcheck disable=SC2086
            on_terminal rlock $way -- sh -c 'echo $$ >"$T/pid"; echo ready-now; exec sleep 1000' <<EOF
expect ready-now
sh kill -STOP \$(cat "$T/pid")
until [ "\$(ps -o tpgid= -p \$PTY_PID)" -eq \$PTY_PID ]
${end%,*}
status ${end#*,}
EOF
        done
    done
}

@test "H165 a command that others have stopped and continued has the terminal again" {
    on_terminal rlock run k -- sh -c 'echo $$ >"$T/pid"; echo ready-now; read -r x; echo "re:$x"' <<'EOF'
expect ready-now
sh kill -STOP $(cat "$T/pid")
until [ "$(ps -o tpgid= -p $PTY_PID)" -eq $PTY_PID ]
sh kill -CONT $(cat "$T/pid")
until [ "$(ps -o tpgid= -p $PTY_PID)" -eq $(cat "$T/pid") ]
send abc\n
expect re:abc
status 0
EOF
}

@test "H165 a command needs the terminal, which no shell can give: HUP ends it, or its user does" {
    # The shell has the terminal back before rlock begins.
    export NEED BEGIN='until [ $(ps -o tpgid= -p $$) -eq $$ ]; do sleep 0.02; done'
    for NEED in 'cat /dev/tty' 'stty -echo </dev/tty'; do
        rm -f "$T/pid"
        in_shell <<'EOF'
send ({ eval "$BEGIN"; exec rlock run k -- sh -c 'echo $$ >"$T/pid"; '"$NEED"; } &)\n
until [ -s "$T/pid" ] && ! kill -0 "$(cat "$T/pid")"
until rlock status -q k
EOF
        rm -f "$T/pid"
        in_shell <<'EOF'
send ({ eval "$BEGIN"; exec rlock run k -- sh -c 'trap "" HUP; echo "$$ $PPID" >"$T/pid"; '"$NEED"; } &)\n
until [ -s "$T/pid" ]
expect HUP sent
until ps -o stat= -p $(cut -d' ' -f1 "$T/pid") | grep -q T
sh kill -TERM $(cut -d' ' -f2 "$T/pid")
until ! kill -0 $(cut -d' ' -f2 "$T/pid")
until rlock status -q k
EOF
    done
}

@test "H165 Ctrl-Z while the command is being ended does not hold up its clean-up" {
    # A CONT may interrupt echo, which bash does not repeat.
    cat >"$T/command" <<'EOF'
trap 'trap "until echo cont-now; do :; done" CONT
    until echo cleaning-now; do :; done
    until [ -e "$T/go" ]; do sleep 0.05; done
    echo clean-now
    exit 3' TERM
echo ready-now
while :; do sleep 0.05; done
EOF
    on_terminal rlock run k -- bash "$T/command" <<'EOF'
expect ready-now
sh rlock force-release --yes k 3>&- &
expect cleaning-now
send \x1a
expect cont-now
sh touch "$T/go"
expect clean-now
status 79
EOF
}

@test "H126 Ctrl-Z while waiting: others take the lock, and it is the job's turn after fg" {
    hold a k --lease 60s
    export HOLDER=${pid[a]}
    in_shell <<'EOF'
send (true; rlock run --lease 60s k -- echo "it"s-mine) | cat\n
until [ "$(rlock status --json k | jq '.[0].waiters | length')" = 1 ]
stopped
sh kill $HOLDER
sh rlock run -w 50s k -- true
sh rlock run -n k -- true
absent its-mine
send fg\n
expect its-mine
expect <2>
EOF
}

@test "H99 a command in the background does not take the terminal" {
    in_shell <<'EOF'
send rlock run k -- sleep 1000 &\n
expect <2>
until ! rlock status -q k
send echo "$((20+1)) lives"\n
expect 21 lives
send fg\n
until [ "$(ps -o tpgid= -p $PTY_PID)" != "$(ps -o pgid= -p $PTY_PID)" ]
send \x03
expect <2>
EOF
}

@test "a shell under rlock has job control" {
    on_terminal rlock run k -- bash --norc -i <<'EOF'
send PS1='<$((1+1))>'\n
expect <2>
absent no job control
send echo "flags=$-"\n
expect flags=\w*m
send sleep 1000\n
until ps -o args= -t "$(ps -o tty= -p $PTY_PID)" | grep -q '^sleep 1000'
send \x1a
expect Stopped
expect <2>
send fg\n
until ps -o stat=,args= -t "$(ps -o tty= -p $PTY_PID)" | grep -q '^S[^ ]*+ *sleep 1000'
send \x03
expect <2>
send exit 3\n
status 3
EOF
}

@test "an editor under rlock has the terminal" {
    command -v vi >/dev/null || skip "no vi here"
    on_terminal rlock run k -- vi "$T/text" <<'EOF'
expect text
send ihello there\x1b
send :wq\n
status 0
sh [ "$(cat "$T/text")" = "hello there" ]
EOF
}

@test "a pager under rlock has the terminal, and one that rlock's command is piped to" {
    command -v less >/dev/null || skip "no less here"
    seq 1000 1999 >"$T/numbers"
    export TERM=vt100
    on_terminal rlock run k -- less "$T/numbers" <<'EOF'
expect 1010
send G
expect 1999
send q
status 0
EOF
    in_shell <<'EOF'
send rlock run k -- cat "$T/numbers" | less\n
expect 1010
send G
expect 1999
send q
expect <2>
EOF
}

@test "a command whose output is piped can ask on the terminal" {
    in_shell <<'EOF'
send rlock run k -- sh -c 'read -r x </dev/tty; echo "re:$x"' | cat\n
until ! rlock status -q k
send abc\n
expect re:abc
expect <2>
send rlock run k -- sh -c 'stty -echo </dev/tty; read -r x; stty echo; echo "got:$x"'\n
until ! rlock status -q k
send silent\n
expect got:silent
expect <2>
EOF
}

@test "H165 no more descriptors: a command can ask on the terminal all the same" {
    export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
    in_shell <<'EOF'
send rlock run k -- sh -c 'prlimit --pid $PPID --nofile=3; read -r x </dev/tty; echo "re:$x"' | cat\n
until ! rlock status -q k
send abc\n
expect re:abc
expect <2>
EOF
}

@test "H165 a root without a /dev/tty to open: a command can ask on the terminal all the same" {
    unshare --mount true 2>/dev/null || skip "may not mount here"
    mkdir "$T/dev"
    cp -a /dev/null "$T/dev"
    export PREPARE
    for PREPARE in 'mount --bind "$T/dev" /dev' \
        'mount --bind /dev/tty /dev/tty && mount -o remount,bind,nodev /dev/tty'; do
        on_terminal unshare --mount bash -c 'eval "$PREPARE"
            exec rlock run k -- sh -c "read -r x; echo \"re:\$x\"; exit 4"' <<'EOF'
until ! rlock status -q k
send abc\n
expect re:abc
status 4
EOF
    done
}

@test "the terminal goes away: HUP for the command, and the lock is released" {
    on_terminal rlock run k -- \
        bash -c 'trap "echo hup >\"$T/got\"; exit 0" HUP; echo up-now; while :; do sleep 0.05; done' <<'EOF'
expect up-now
hangup
until grep -q hup "$T/got"
until rlock status -q k
EOF
}

@test "a new size of the terminal reaches the command" {
    on_terminal rlock run k -- \
        bash -c 'trap "stty size; exit 0" WINCH; echo up-now; while :; do sleep 0.05; done' <<'EOF'
expect up-now
resize 33 101
expect 33 101
status 0
EOF
}
