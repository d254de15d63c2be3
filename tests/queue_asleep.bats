# Waiters that sleep longer than the queue waits for them.

load helper

@test "H63 a waiter that slept too long loses its place, not its turn" {
    local agent
    hold a k --lease 60s
    queue asleep k
    queue w k
    agent=$(agent_of "${pid[asleep]}")
    kill -STOP "$agent" "${pid[asleep]}"
    kill "${pid[a]}"
    finish w 20
    [[ $status == 0 && $(<"$LOG") == w ]]
    bg b rlock run k -- sleep 2
    poll_until 10 held k
    kill -CONT "$agent" "${pid[asleep]}"
    finish asleep 20
    [[ $status == 0 && $(tr '\n' ' ' <"$LOG") == "w asleep " ]]
    finish b
}

@test "H63 a waiter whose entry was pruned queues again when all is quiet" {
    local agent
    hold a k --lease 60s
    queue asleep k
    agent=$(agent_of "${pid[asleep]}")
    kill -STOP "$agent" "${pid[asleep]}"
    poll_until 20 has_waiters k 0
    kill "${pid[a]}"
    finish a
    kill -CONT "$agent" "${pid[asleep]}"
    finish asleep 10
    [[ $status == 0 && $(<"$LOG") == asleep ]]
}

@test "a grant that a stopped rlock does not take goes to the next; it is waited for again, and used once" {
    hold a k --lease 60s
    queue asleep k --lease 3s
    queue w k
    kill -STOP "${pid[asleep]}"
    kill "${pid[a]}"
    finish w 20
    [[ $status == 0 && $(<"$LOG") == w ]]
    hold b k
    kill -CONT "${pid[asleep]}"
    poll_until 10 has_waiters k 1
    [[ $(<"$LOG") == w ]]
    kill "${pid[b]}"
    finish asleep 20
    [[ $status == 0 && $(tr '\n' ' ' <"$LOG") == "w asleep " ]]
}

@test "a purged queue forms again" {
    hold a k --lease 60s
    queue w1 k
    queue w2 k
    run -0 rlock force-release --yes --purge k
    finish w1 20
    [[ $status == 0 ]]
    finish w2 20
    [[ $status == 0 ]]
}
