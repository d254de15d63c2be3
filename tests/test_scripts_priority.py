#!/usr/bin/env -S python3 -B
"""The scripts of src/rules/lua: who waits with a priority is served first. Prints TAP."""
from script_server import PLACE_TTL, Lock
from script_tap import A, B, C, D, E, F, MINUTE, TOKEN, WHO, main, same, test


def wait(lock, owner, priority=0, bound=0, **options):
    return lock.acquire(owner, who=WHO, priority=priority, bound=bound, **options)


def beat(lock, *owners, ms=2500, **options):
    """They call once more after so many ms, over and over, no later than they have to."""
    while ms > 0:
        lock.now += min(ms, 5000)
        ms -= 5000
        for owner in owners:
            wait(lock, owner, **options)


def order(lock):
    """Owners in the order in which readers of status see them."""
    def turn(waiter):
        notes = dict(word.split("=") for word in waiter.split()[9:])
        return int(notes.get("turn", 12))

    return [waiter.split()[1] for waiter in sorted(lock.inspect()[6], key=turn)]


def served(lock, ear, holder, offers):
    """The owners that are handed the lock, one after the other."""
    ear.heard()
    line = []
    for _owner in range(offers):
        lock.release(holder)
        holder = ear.handed()[0][0]
        line.append(holder)
    return line


def all_served(lock, ear, line):
    """They are shown and served in that order after A, and nothing is left of them."""
    same(order(lock), line, "shown")
    same(served(lock, ear, A, len(line)), line, "served")
    lock.release(line[-1])
    same(sorted(lock.fields()), ["f", "k", "q"], "what is left")


@test("priority: the higher first, of equals the one that came first; status shows the same")
def _(lock, ear):
    lock.acquire(A, lease=10 * MINUTE)
    for owner, priority in ((B, 0), (C, 5), (D, 0), (E, 9), (F, 5)):
        same(wait(lock, owner, priority, offer=TOKEN)[0], "QUEUED")
    all_served(lock, ear, [E, C, F, B, D])


@test("priority: a waiter below 0 is behind all others; only then these have a list")
def _(lock, ear):
    lock.acquire(A, lease=10 * MINUTE)
    wait(lock, B, offer=TOKEN)
    same("o" in lock.fields(), False, "a list of those that come first anyway")
    for owner, priority in ((C, -5), (D, 0), (E, -9), (F, 3)):
        same(wait(lock, owner, priority, offer=TOKEN)[0], "QUEUED")
    all_served(lock, ear, [F, B, D, C, E])


@test("priority: waiters are told their places; a newcomer goes before waiters of a lower priority")
def _(lock):
    lock.acquire(A)
    same(wait(lock, B).position, 1)
    same(wait(lock, C, 3).position, 1)
    same(wait(lock, D, 3).position, 2)
    same(wait(lock, E).position, 4)
    same(wait(lock, B).position, 3)
    same(wait(lock, B, count=False).position, 3)
    lock.release(A)
    same(wait(lock, F, 3, queue=False)[0], "HELD", "of equals")
    same(wait(lock, F, 4, queue=False)[0], "GRANTED")


@test("priority: no higher priority passes a waiter that has waited for 15 minutes")
def _(lock, ear):
    lock.acquire(A, lease=100 * MINUTE)
    wait(lock, B, offer=TOKEN)
    wait(lock, C, offer=TOKEN)
    beat(lock, B, C, ms=14 * MINUTE, offer=TOKEN)
    wait(lock, D, 9, offer=TOKEN)
    same(order(lock), [D, B, C], "before")
    beat(lock, B, C, D, ms=1 * MINUTE, offer=TOKEN)
    same(order(lock), [B, C, D], "after")
    same(wait(lock, D, 9, offer=TOKEN).position, 2, "its place")
    same(served(lock, ear, A, 3), [B, C, D])


@test("priority: the smallest bound of those that wait counts")
def _(lock):
    lock.acquire(A, lease=100 * MINUTE)
    wait(lock, B)
    lock.now += 3000
    wait(lock, C, 9)
    same(order(lock), [C, B])
    wait(lock, D, bound=3000)
    same(order(lock), [B, C, D], "a lower bound")
    for owner in (B, C, D):
        lock.release(owner)
    wait(lock, B)
    lock.now += 3000
    wait(lock, C, 9)
    same(order(lock), [C, B], "the queue was empty")
    lock.acquire(D, who=WHO + f" waited={15 * MINUTE}")
    same(order(lock), [C, B, D], "who came later is not before who came first")


@test("priority: readers come together, one list after the other")
def _(lock, ear):
    lock.acquire(A)
    for owner, priority in ((B, 0), (C, 5), (D, 5), (E, 5)):
        wait(lock, owner, priority, mode="s")
    lock.release(A)
    same(ear.heard(), [C, D], "of the first list")
    same(wait(lock, D, 5, mode="s")[0], "GRANTED")
    same(ear.heard(), [E], "the rest of it")
    same([wait(lock, owner, 5, mode="s")[0] for owner in (C, E)], ["GRANTED"] * 2)
    same(ear.heard(), [B], "the next one")
    same(wait(lock, B, mode="s")[0], "GRANTED")


@test("priority: a waiter that was dropped comes back to its place in the list")
def _(lock):
    lock.acquire(A, lease=100 * MINUTE)
    places = wait(lock, B, 5).places
    wait(lock, C, 5)
    lock.now += PLACE_TTL
    wait(lock, C, 5)
    wait(lock, D, 5)
    same(order(lock), [C, D])
    same(wait(lock, B, 5, places=places).anew, 1, "queued anew")
    same(order(lock), [B, C, D])


@test("priority: a waiter comes back before those that came when its list was empty")
def _(lock, ear):
    lock.acquire(A, lease=100 * MINUTE)
    places = wait(lock, B, 5).places
    lock.now += PLACE_TTL
    wait(lock, C, 5)
    wait(lock, D)
    same(wait(lock, B, 5, places=places).places, places, "B has its places")
    wait(lock, E, 5)
    line = [B, C, E, D]
    same(order(lock), line, "shown")
    for owner, priority in ((B, 5), (C, 5), (E, 5), (D, 0)):
        wait(lock, owner, priority, offer=TOKEN)
    same(served(lock, ear, A, 4), line, "served")


# B is passed by none in one queue, where a waiter has a short bound, and by D in the other queue:
# if each went by the bounds of one queue, each would wait for the other.
@test("priority: two that wait for the same keys never wait for each other")
def _(server):
    both, one = Lock(server, "k", "m"), Lock(server, "k")
    both.acquire(A, lease=100 * MINUTE)
    wait(both, B)
    wait(one, C, bound=3000)
    both.now += 4000
    one.now += 4000
    wait(both, D, 9)
    wait(both, B)
    both.release(A)
    same([wait(both, B)[0], wait(both, D, 9)[0]].count("GRANTED"), 1)


@test("priority: one that comes to wait within a holder does not change how long others are passed")
def _(lock):
    lock.acquire(A)
    lock.acquire(A + ".1")
    wait(lock, B, -1)
    wait(lock, C, bound=3000)
    lock.now += 4000
    wait(lock, A + ".2")
    same(order(lock)[1:], [B, C])
    for owner in (A + ".1", A + ".2", A):
        lock.release(owner)
    same([wait(lock, B, -1)[0], wait(lock, C, bound=3000)[0]].count("GRANTED"), 1, "one goes")


def all_come(waiters, ms=10000):
    """They call for so long, and each gives the lock back when it has it. waiters: (lock, owner,
    priority) of each."""
    waiting, now = list(waiters), waiters[0][0].now
    for now in range(now, now + ms, 2500):
        for lock, owner, priority in list(waiting):
            lock.now = now
            if wait(lock, owner, priority)[0] == "GRANTED":
                lock.release(owner)
                waiting.remove((lock, owner, priority))
    same([owner for _lock, owner, _priority in waiting], [], "who waits for ever")


# Again B is passed by none in the queue of m. In that of k an older waiter, which may be passed for
# longer, stands before it: if that hid B there, D would be first there.
def hides(server, *older):
    both, one, other = Lock(server, "k", "m"), Lock(server, "m"), Lock(server, *older)
    both.acquire(A, lease=100 * MINUTE)
    wait(other, E)
    wait(one, C, bound=3000)
    wait(both, B)
    one.release(C)
    both.now += 4000
    wait(both, D, 9)
    both.release(A)
    all_come([(both, B, 0), (both, D, 9), (other, E, 0)])


@test("priority: an older waiter for one of two keys does not have two others wait for each other")
def _(server):
    hides(server, "k")


@test("priority: nor does one for that key and a third one")
def _(server):
    hides(server, "k", "n")


main()
