# Queues with dead and sleeping waiters in them.

load helper

@test "H62 five dead waiters in a row cost ten seconds together at most" {
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
