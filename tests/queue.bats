# Queues with dead and sleeping waiters in them.

load helper

stop_dead() { # NAME: killed so that nothing of it can say goodbye
    local agent
    agent=$(agent_of "${pid[$1]}")
    kill -STOP "$agent" "${pid[$1]}"
    kill -KILL "$agent" "${pid[$1]}"
}

@test "H62 five dead waiters in a row cost ten seconds together at most" {
    local i start
    hold a k --lease 60s
    for i in 1 2 3 4 5; do
        queue "d$i" k
    done
    queue w k
    for i in 1 2 3 4 5; do
        stop_dead "d$i"
    done
    start=$(now_ms)
    kill "${pid[a]}"
    finish w 20
    [[ $status == 0 && $(<"$LOG") == w ]]
    within 0 11000 $(($(now_ms) - start))
}

@test "H62 a newcomer is not held up by a queue of the dead" {
    hold a k --lease 60s
    queue d k
    stop_dead d
    kill "${pid[a]}"
    run -0 rlock run -w 11s k -- true
}
