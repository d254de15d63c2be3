# --notify: a command that is run when something happens to the lock, and is never in the way. told:
# a notifying command that writes "EVENT KEY <HOLDER> WAITED HELD" to a file, the times as 1 from
# 200 ms on, otherwise 0; was_told REGEX: it wrote such a line, once.

load helper

# For --notify: appends "EVENT KEY <HOLDER> WAITED HELD" to the file "told". WAITED and HELD are 1
# from 200 ms on, otherwise 0.
told() {
    echo 'echo "$RLOCK_EVENT $RLOCK_KEY <$RLOCK_HOLDER>" \
        "$((RLOCK_WAITED_MS >= 200)) $((RLOCK_HELD_MS >= 200))" >>"'"$T/told"'"'
}

# was_told REGEX: of a whole line, once.
was_told() {
    [[ $(grep -cxE -- "$1" "$T/told") == 1 ]]
}

@test "--notify: a long wait, a long hold, and a lock that is not acquired, each once" {
    stay a k --notify "$(told)" --notify-after 200ms
    holder="<.*@.* pid ${pid[a]} \(sh\)>"
    poll_until 10 was_told "held k $holder [01] 1"
    bg b rlock run --notify "$(told)" --notify-after 200ms k -- true
    poll_until 10 was_told "waiting k $holder 1 0"
    run -75 rlock run -n --notify "$(told)" k -- true
    poll_until 10 was_told "not-acquired k $holder [01] 0"
    ends_well a
    ends_with b 0
    was_told "held k $holder [01] 1"
    was_told "waiting k $holder 1 0"
}

@test "--notify: a lock that is lost, a command that is stopped, a store that is away" {
    hold a k --lease 9s --notify "$(told)"
    redis del 'rlock:{k}'
    run -124 rlock run --at-most 200ms --notify "$(told)" other -- sleep 1000
    poll_until 10 was_told 'timed-out other <.*> [01] 1'
    run -69 rlock run -u "unix://$T/none" --server-wait 0 --notify "$(told)" k -- true
    poll_until 10 was_told 'not-acquired k <> [01] 0'
    ends_with a 79 20
    poll_until 10 was_told "lost k <.* pid ${pid[a]} \(sh\)> [01] 1"
}

# An inherited descriptor would be the lock's for as long as it runs.
@test "--notify: its command sees no password, no owner, and no descriptor but the streams" {
    RLOCK_PASSWORD=secret RLOCK_URL=unix://rlock:secret@$REDIS_SOCK SEEN=$T/seen \
        run -124 rlock run --at-most 200ms --notify '
            env >"$SEEN.env"; for one in /proc/$$/fd/*; do echo "${one##*/}"; done >"$SEEN.fds"
            mv "$SEEN.env" "$SEEN"' k -- sleep 1000 9<"$TESTS/helper.bash"
    poll_until 10 test -e "$T/seen"
    grep -x RLOCK_EVENT=timed-out "$T/seen"
    run ! grep -E 'secret|^RLOCK_(OWNER|PASSWORD|FENCE|SLOT|LEASE_MS)=' "$T/seen"
    # A shell may have the file open that it writes to.
    [[ $(sort -n "$T/seen.fds" | head -n 3 | tr '\n' ' ') == "0 1 2 " ]]
    run ! grep -x 9 "$T/seen.fds"
}

@test "--notify: a command that cannot be found or fails is told of, and changes nothing" {
    stay a k --notify-after 1ms --notify 'no/such/command'
    poll_until 10 contains "$T/a.err" 'k: the command of --notify ended (status 127)'
    ends_well a
}

# The notifying command ignores TERM, fills a pipe without a reader, and hangs.
stubborn() {
    echo '[ "$RLOCK_EVENT" = held ] || exit 0
        trap "" TERM; echo $$ >"'"$1"'"; yes >&2 & exec sleep 1000'
}

# worded: as told(), the status and the message.
worded() {
    echo 'echo "$RLOCK_EVENT $RLOCK_STATUS $RLOCK_MESSAGE" >>"'"$T/told"'"'
}

@test "--notify: a status tells an outage from contention, the message is the line printed" {
    start_proxy
    stay a k --notify "$(worded)" --notify-after 200ms
    poll_until 10 was_told 'held 0 '
    run -0 --separate-stderr rlock run -n -E 0 --notify "$(worded)" k -- true
    poll_until 10 was_told 'not-acquired 75 k: not acquired: held by .*@.* pid .* \(sh\) for .*'
    bg b rlock run --notify "$(worded)" --notify-after 200ms k -- true
    poll_until 10 was_told 'waiting 75 waiting for k, held by .* \(sh\) for .*; you are next'
    terminate b 143
    bg c rlock run -u "redis://${proxy[proxy]}" -w 20s --notify "$(worded)" --notify-after 9s k -- true
    poll_until 10 has_waiters k 1
    fault refuse
    poll_until 10 was_told 'waiting 69 k: cannot reach .*; trying again'
    ends_with c 69 30
    poll_until 10 was_told 'not-acquired 69 k: cannot reach .*'
    ends_well a
    run -124 rlock run --at-most 200ms --notify "$(worded)" l -- sleep 1000
    poll_until 10 was_told 'timed-out 124 l: stopping sleep: time limit reached .*'
    hold d l --lease 9s --notify "$(worded)"
    redis del 'rlock:{l}'
    ends_with d 79 20
    poll_until 10 was_told 'lost 79 l: lock lost: .*; stopping sh'
}

# In no one's way: not in that of a command's end, whatever it has started; nor that of its tree,
# which goes with rlock.
@test "--notify: its command ends 10 s after rlock, even if that was killed" {
    local one hook=()
    mkfifo "$T/unread"
    exec 8<>"$T/unread"
    for one in a b; do
        bg $one sh -c 'exec "$@" 2>"$0"' "$T/unread" rlock run --wait-descendants \
            --notify-after 10ms --notify "$(stubborn "$T/$one.hook")" $one -- \
            sh -c "echo \$\$ >'$T/$one.command'; await '$T/go'; exit 9"
        poll_until 10 test -s "$T/$one.hook"
    done
    kill -KILL "${pid[b]}"
    poll_until 10 gone "$(<"$T/b.command")"
    poll_until 10 is_free b
    : >"$T/go"
    ends_with a 9
    is_free a
    for one in a b; do
        poll_until 15 gone "$(<"$T/$one.hook")"
    done
    exec 8>&-
}
@test "H171 --notify: what others wrote has no line breaks and no codes for a terminal" {
    local evil=$'\e[31mlate\nBcc: all@example.org\r\u009b2J'
    rlock pause k 1h -m "$evil"
    run -75 rlock run -n --notify "env -0 >'$T/seen.new'; mv '$T/seen.new' '$T/seen'" k -- true
    poll_until 10 test -e "$T/seen"
    message=$(tr '\0\n' '\n\a' <"$T/seen" | grep '^RLOCK_MESSAGE=')
    echo "$message"
    [[ $message == *'\x1b[31mlate\x0aBcc: '*'\x0d\xc2\x9b2J'* ]]
    run ! grep -q '[[:cntrl:]]' <<<"$message"
    rlock resume k
}
