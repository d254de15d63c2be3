# A daemon that works elsewhere, and programs that ask it to, as docker asks dockerd.
# shellcheck shell=bash disable=SC2016,SC2154

# The program "elsewhere" is in PATH then: elsewhere run NAME; elsewhere kill NAME. Whatever works
# writes lines "NAME works" to the log.
start_daemon() {
    mkdir "$T/bin"
    mkfifo "$T/daemon"
    export LOG T
    PATH=$T/bin:$PATH
    bg daemon bash -c '
        exec <>"$T/daemon"
        while read -r verb name pid; do
            case $verb in
            run) setsid env -i RLOCK_TEST_ID="$RLOCK_TEST_ID" bash -c "
                    while :; do echo $name works >>\"$LOG\"; sleep 0.02; done" </dev/null &
                echo $! >"$T/worker.$name" ;;
            hang-up) while kill -0 "$pid"; do sleep 0.02; done 2>/dev/null
                kill -HUP "$(<"$T/worker.$name")" ;;
            kill) kill -KILL "$(<"$T/worker.$name")" && wait "$(<"$T/worker.$name")"
                echo gone >"$T/gone.$name" ;;
            job) setsid env -i RLOCK_TEST_ID="$RLOCK_TEST_ID" PATH="$PATH" LOG="$LOG" T="$T" \
                    RLOCK_URL="$RLOCK_URL" RLOCK_CONFIG=/dev/null sh "$name" </dev/null & ;;
            esac
        done'
    cat >"$T/bin/elsewhere" <<'END'
#!/bin/sh
echo "$*" >"$T/daemon"
case $1 in
run) trap 'echo TERM >>"$T/termed"; exit 1' TERM; while :; do sleep 0.02; done ;;
kill) while ! [ -e "$T/gone.$2" ]; do sleep 0.02; done ;;
esac
END
    chmod +x "$T/bin/elsewhere"
}
