# rlock pause, resume: nobody new is let in, in any mode, but those who nest in a holder.

load helper

# line_up NAME PLACE OPTION...: waits for k as number PLACE, to hold it until it is told to end.
line_up() {
    bg "$1" rlock run "${@:3}" k -- sleep 1000
    poll_until 10 has_waiters k "$2"
}

# there_are HOLDERS WAITERS
there_are() {
    [[ $(rlock status --json k | jq -c '.[0] | [.holders, .waiters | length]') == "[$1,$2]" ]]
}

@test "holders go on, nobody new is let in, and reads why; a release hands it over to nobody" {
    run -1 rlock resume k
    hold a k
    line_up b 1
    run -0 --separate-stderr rlock pause k 1h -m 'disk full'
    [[ ! $output && ! $stderr ]]
    renewed k
    run -0 rlock status k
    [[ $output == *"exclusive, paused"*"paused by $(id -un)@$(hostname) for another "* ]]
    [[ $output == *": disk full"* ]]
    kill "${pid[a]}"
    finish a
    there_are 0 1
    local mode
    for mode in --write --read '--limit=2'; do
        run -75 --separate-stderr rlock run -n "$mode" k -- true
        stderr_line "^rlock: k: not acquired: paused by .* for another .*, label disk full$"
    done
    line_up c 2
    poll_until 15 contains "$T/c.err" 'waiting for k, paused by'
    # Listed though nobody holds it.
    run -0 rlock status
    [[ $output == *"free, paused"* ]]
    run -0 rlock status --json
    json '.[0] | .reserved == null and .stored_limit == null and (.paused |
        .user == "'"$(id -un)"'" and .host == "'"$(hostname)"'" and .reason == "disk full" and
        .left_ms > 3500000 and .since < .until and (.until | test("Z$")))'
    run -0 rlock check
    [[ $output == *'no lock is held, 2 waiting, 1 paused |'* ]]
    there_are 0 2
    rlock resume k
    poll_until 10 there_are 1 1
    run -1 rlock resume k
}

@test "readers beside readers, a semaphore with room: nobody joins; all come when it ends" {
    hold r k --read
    rlock pause k 1h -m x
    run -75 rlock run -n --read k -- true
    line_up s 1 --read
    line_up t 2 --read
    rlock resume k
    poll_until 10 there_are 3 0
    hold l other --limit 2
    rlock pause other 1h -m x
    run -75 rlock run -n --limit 2 other -- true
    rlock resume other
    run -0 rlock run -n --limit 2 other -- true
}

@test "who nests in a holder is let in; the end of its time lets in who waits, unasked" {
    run -0 rlock run k -- sh -c \
        '"$0" pause k 3s -m short && "$0" run -n k -- echo nested' "$RLOCK"
    [[ $output == nested ]]
    run -75 rlock run -n k -- true
    run -0 rlock run -w 20s k -- true
    run -1 rlock resume k
}

@test "wrong times, no words, globs, latches, stores that cannot" {
    local time
    for time in 0 -1s 500ms x ''; do
        run -64 rlock pause k "$time" -m x
    done
    run -64 rlock pause k 1h
    run -64 rlock pause k 1h -m ''
    run -64 rlock pause k
    run -64 rlock pause 'k*' 1h -m x
    run -64 rlock resume k 1h
    run -64 --separate-stderr rlock pause -u zookeeper://127.0.0.1:1 k 1h -m x
    stderr_line 'zookeeper:// has no pause'
    run -64 --separate-stderr rlock pause -u mysql://127.0.0.1:1/locks k 1h -m x
    stderr_line 'mysql:// has no pause'
    run -64 --separate-stderr rlock resume -u postgresql://127.0.0.1:1/locks k
    stderr_line 'postgresql:// has no pause'
    run -64 --separate-stderr rlock pause -u redis://127.0.0.1:1 -u redis://127.0.0.1:2 k 1h -m x
    stderr_line 'a quorum has no pause'
    rlock latch set gate 1
    run -78 rlock pause gate 1h -m x
    run -1 rlock resume k
}
