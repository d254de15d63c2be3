# Semaphores: never more than N at once, a slot of its own for each, and nothing to leak. "slots"
# prints those of the live holders; crowded_semaphore ROUNDS KILLED SECONDS: 20 want one of three.

load helper
load waiters

# slots_are TEXT: the slots in use, as "slots" prints them.
slots_are() {
    [[ $(slots) == "$1" ]]
}

@test "each holder of a semaphore has the lowest slot that is free" {
    for name in a b c; do
        hold "$name" k --limit 3
    done
    slots_are '[1,2,3]'
    kill "${pid[b]}" "${pid[a]}"
    finish a
    finish b
    prints 0 '1 limit' run --limit 3 k -- sh -c 'echo $RLOCK_SLOT $RLOCK_MODE'
    hold d k --limit 3
    prints 0 2 run --limit 3 k -- sh -c 'echo $RLOCK_SLOT'
}

@test "H22 another limit, or another kind of lock, on what is held: 78; on what is free: as asked" {
    hold a k --limit 3
    says 78 '^rlock: k: .*3' run -n --limit 5 k -- true
    run -78 rlock run -n k -- true
    run -78 rlock run -n --read k -- true
    terminate a
    run -0 rlock run -n --limit 5 k -- true
    hold w k
    run -78 rlock run -n --limit 5 k -- true
    terminate w
    hold r k --read
    run -78 rlock run -n --limit 1 k -- true
}

@test "a limit that is not a number from 1 to 100000: exit 64" {
    for limit in 0 -1 1.5 x "" 100001 99999999999999999999; do
        run -64 rlock run --limit="$limit" k -- true
    done
    run -64 rlock run --limit 3 --read k -- true
    run -64 rlock run --limit 3 -x k -- true
    run -0 rlock run --limit 100000 k -- true
}

@test "H88 twenty at a semaphore of three, some killed: never more than three, and none is leaked" {
    crowded_semaphore 3 5 40 # rounds of each, killed ones, s for each
    poll_until 8 is_free k
    hold a k --limit 3
    hold b k --limit 3
    hold c k --limit 3
    slots_are '[1,2,3]'
}

@test "H88 a killed holder's slot is taken by a waiter, not beside its command" {
    hold a k --limit 2 --lease 60s
    at_work dead k 100 --limit 2 --lease 4s -- ignore
    queued k work next k 0.2 --limit 2
    kill -KILL "${pid[dead]}" # its agent kills the worker before the lease is over
    ends_with next 0
    no_overlap
}

@test "H89 in order: a stream of newcomers does not pass those that wait" {
    hold a k --limit 2
    hold b k --limit 2
    for i in {1..8}; do
        queue "w$i" k --limit 2
    done
    run -75 rlock run -n --limit 2 k -- true
    # A single slot is left for the waiters, so they run one after the other.
    kill "${pid[a]}"
    in_turn 10 w{1..8}
}
