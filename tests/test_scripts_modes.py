#!/usr/bin/env -S python3 -B
"""The scripts of src/rules/lua: what the random model does not play of readers, semaphores, nested
owners and several keys; standing in line; the holder told of several; --at-least. Prints TAP."""
from script_server import PLACE_TTL, Lock
from script_tap import A, B, C, D, fence_of, held_by_a, main, place_of, same, slot_of, test, true

A1, A2, A3 = A + ".1", A + ".2", A + ".3"


def read(lock, *owners):
    for owner in owners:
        fence_of(lock.acquire(owner, mode="s"))


def wait(lock, *owners, **options):
    for owner in owners:
        same(lock.acquire(owner, **options)[0], "QUEUED", owner[0])


def take(lock, owner, limit=3, **options):
    return lock.acquire(owner, mode="l", limit=limit, **options)


# A host writes each record as a whole, six thousand times.
@test("limit: one call clears thousands of dead holders (H88)", hosts=False)
def _(server, lock):
    owners = ["%036d" % number for number in range(6000)]
    words = [lock.acquire_words(owner, mode="l", limit=6000, lease=1000) for owner in owners]
    same(server.pipeline(words)[-1][0], "GRANTED")
    same(take(lock, A, limit=6000, queue=False)[0], "HELD")
    lock.now += 1000
    same(slot_of(take(lock, A, limit=6000)), 1)
    same(sorted(lock.fields()), ["b", "f", "h:" + A, "k", "s"])


@test("nested: a waiter whose ancestor has left waits like any other")
def _(server):
    ear, lock = server.listen(), held_by_a(server, B)[0]
    fence_of(lock.acquire(A1))
    place = place_of(lock.acquire(A2))
    lock.release(A)
    same(ear.heard(), [A2])
    same(lock.acquire(A2, places=place).parts("places", "position", "anew"),
         ["q:2", 2, 1], "behind B")
    true("q:" + A not in lock.fields(), "its queue is there still")
    same(lock.acquire(A3).places, "q:3", "its ancestor has nothing any more")
    lock.now += 30000
    fence_of(lock.acquire(B))


@test("keys: the one of several that cannot be used is named by its number")
def _(server):
    both = Lock(server, "a", "b")
    server.call("SET", both.keys[1], "x")
    for reply in (both.acquire(A), both.renew(A), both.release(A)):
        same(reply[:2] + reply[-1:], ["MISFIT", both.now, 2] if reply[0] == "MISFIT"
             else ["LOST", both.now, ""])
    same(Lock(server, "a").fields(), {})


# -- standing in line -----------------------------------------------------------------------------


def stands(lock, owner, position=1, holders=0, **options):
    reply = lock.acquire(owner, queue_only=True, **options)
    same((reply[0], reply.position, reply.holders), ("QUEUED", position, holders), owner[0])


# A waiter for several keys in a Cluster stands so in a queue, and takes the key when it is first
# everywhere.
@test("queue_only: its owner waits first in line for a free lock, takes nothing, and is not passed")
def _(lock):
    stands(lock, A)
    same(lock.inspect()[5], [], "holders")
    wait(lock, B)
    same(lock.acquire(C, queue=False)[0], "HELD", "no wait")
    stands(lock, D, position=3)
    lock.now += PLACE_TTL - 1
    stands(lock, A)
    fence_of(lock.acquire(A, queue=False))
    stands(lock, D, position=2, holders=1)
    lock.release(A)
    fence_of(lock.acquire(B))


@test("queue_only: an owner stays in its place, behind holders, and is forgotten as any waiter is")
def _(server):
    lock, _fence = held_by_a(server)
    wait(lock, B)
    wait(lock, C)
    stands(lock, B, holders=1)
    lock.release(A)
    stands(lock, C, position=2)
    stands(lock, B)
    lock.now += PLACE_TTL
    fence_of(lock.acquire(C))


# -- who is told of several -----------------------------------------------------------------------


def told(lock, **options):
    """The owner told to one who is refused."""
    for queue in (False, True):
        reply = lock.acquire("r", queue=queue, **options)
        text = reply[-1]
    lock.release("r")
    return text.split(" ")[3] if text else ""


@test("a refusal among nested siblings names the oldest of them")
def _(server):
    lock, _fence = held_by_a(server)
    for owner in (A2, A1, A3):
        fence_of(lock.acquire(owner, mode="s"))
    same(lock.acquire(A + ".4", queue=False)[-1].split(" ")[3], A2)


@test("where too many hold the lock to find the oldest, a refusal names no holder")
def _(server, lock):
    owners = ["%036d" % number for number in range(200)]
    read(lock, *owners)
    same(told(lock), owners[0])
    lock.release(owners[0])
    for owner in owners[1:]:
        lock.renew(owner, lease=60000)
    server.call("CONFIG", "RESETSTAT")
    same(told(lock), "")
    true(
        "cmdstat_hgetall" not in server.call("INFO", "commandstats"), "no call looks at all of them"
    )
    lock.now += 30000
    same(told(lock), owners[1], "when all are looked at anyway")


# -- kept for some time ---------------------------------------------------------------------------


@test("at least: a kept lock has the notes of its release, once, and is else as it was")
def _(lock):
    for number, (who, left) in enumerate(
        [
            ("h u 9 c l", "h u 9 c l kept=1 ran=7"),
            ("", "- - - - - kept=1 ran=7"),
            ("h u 9 c l waited=3", "h u 9 c l waited=3 kept=1 ran=7"),
        ]
    ):
        owner = "%d" % number
        lock.acquire(owner, mode="s", who=who)
        before = lock.fields()["h:" + owner].split(" ", 7)
        for _time in (1, 2):
            same(lock.release(owner, at_least=60000, notes="ran=7"), ["RELEASED", lock.now])
        after = lock.fields()["h:" + owner].split(" ", 7)
        same(after[2:7], before[2:7], "fence, owner, since, mode, slot")
        same(after[:2] + after[7:], [str(lock.now + 60000), "60000", left])
        lock.release(owner, notes="ran=7")
        same(lock.fields().get("h:" + owner), None, "not kept")


main()
