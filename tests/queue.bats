# Queues with dead and sleeping waiters in them.

load helper

@test "H62 five dead waiters in a row cost ten seconds together at most" {
    local i start
    hold a k --lease 60s
    for i in 1 2 3 4 5; do
        queue "d$i" k
    done
    queue w k
    for i in 1 2 3 4 5; do
        kill_both "d$i"
    done
    start=$(now_ms)
    kill "${pid[a]}"
    finish w 20
    [[ $status == 0 && $(<"$LOG") == w ]]
    took 0 20000 "$start"
}

@test "H62 one that died far back delays those behind it no longer than a near one" {
    local i start
    hold a k --lease 60s
    for i in {1..21}; do
        queue "n$i" k
    done
    queue d k
    queue w k
    kill_both d
    start=$(now_ms)
    kill "${pid[a]}"
    finish w 60
    [[ $status == 0 && $(wc -l <"$LOG") == 22 && $(tail -n 1 "$LOG") == w ]]
    took 0 40000 "$start"
}

@test "H62 a newcomer is not held up by a queue of the dead" {
    hold a k --lease 60s
    queue d k
    kill_both d
    local start
    start=$(now_ms)
    kill "${pid[a]}"
    run -0 rlock run -w 25s k -- true
    took 0 20000 "$start"
}
