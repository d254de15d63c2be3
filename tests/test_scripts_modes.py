#!/usr/bin/env -S python3 -B
"""The scripts of src/rules/lua: readers, semaphores, nested owners, several keys, who is
woken. Prints TAP."""
from script_server import PLACE_TTL, Lock
from script_tap import A, B, C, D, E, by, fence_of, fences_of, held_by_a, main, place_of, same
from script_tap import slot_of, test, true

A1, A2, A3 = A + ".1", A + ".2", A + ".3"


def read(lock, *owners):
    for owner in owners:
        fence_of(lock.acquire(owner, mode="s"))


def wait(lock, *owners, **options):
    for owner in owners:
        same(lock.acquire(owner, **options)[0], "QUEUED", owner[0])


# -- readers and writers --------------------------------------------------------------------------


@test("read: a waiting writer stops newcomers, and so gets in (H68)")
def _(lock):
    read(lock, A, B)
    wait(lock, C)
    same(lock.acquire(D, mode="s", queue=False)[0], "HELD", "no wait")
    wait(lock, D, mode="s")
    lock.release(A)
    wait(lock, D, mode="s")
    lock.release(B)
    wait(lock, D, mode="s")
    fence_of(lock.acquire(C))
    lock.release(C)
    read(lock, D, E)


@test("read: a dead reader goes at its own time, whatever others renew (H67)")
def _(lock):
    read(lock, A, B)
    for _turn in range(3):
        lock.now += 10000
        same(lock.renew(B)[0], "RENEWED")
        wait(lock, C)
    same([line.split()[3] for line in lock.inspect()[5]], [B], "holders")
    same(lock.renew(A)[0], "LOST")
    lock.release(B)
    fence_of(lock.acquire(C))


@test("read: those that are next to each other go together, called by twos, in any order")
def _(lock, ear):
    readers = ["%036d" % number for number in range(7)]
    fence_of(lock.acquire(A))
    wait(lock, *readers, mode="s")
    wait(lock, B)
    lock.release(A)
    same(ear.heard(), readers[:2], "after the release")
    wait(lock, readers[4], mode="s")
    read(lock, readers[1])
    same(ear.heard(), readers[2:4], "when the second had come")
    read(lock, readers[0])
    same(ear.heard(), readers[4:6], "when the first had come")
    read(lock, readers[5], readers[2])
    same(ear.heard(), readers[6:], "no more than there are")
    read(lock, readers[3], readers[4], readers[6])
    same(ear.heard(), [], "not the writer")
    for owner in readers:
        lock.release(owner)
    same(ear.heard(), [B], "the writer, when all have left")


@test("read: readers that were woken and never come hold up no other: the next one calls itself")
def _(lock):
    fence_of(lock.acquire(A))
    wait(lock, B, C, D, E, mode="s")
    lock.release(A)
    lock.now += 1000
    read(lock, D, E)


# -- semaphores -----------------------------------------------------------------------------------


def take(lock, owner, limit=3, **options):
    return lock.acquire(owner, mode="l", limit=limit, **options)


@test("limit: as many as it says, each a slot of its own, the lowest first (H88)")
def _(lock):
    same([slot_of(take(lock, owner)) for owner in (A, B, C)], [1, 2, 3])
    same(take(lock, D, queue=False)[3:7][1], 3, "holders")
    same(take(lock, D)[0], "QUEUED")
    lock.release(B)
    same(lock.release(B)[0], "ABSENT", "released twice")
    same(slot_of(take(lock, D)), 2)
    same(take(lock, E)[0], "QUEUED", "a slot was released twice")
    lock.now += 20000
    lock.renew(B), lock.renew(C), lock.renew(D)
    lock.now += 10000
    same(slot_of(take(lock, E)), 1, "the slot of one that died")
    same(lock.inspect()[3:5], ["l", 3], "mode, limit")


@test("limit: another limit, or none, is refused while it is held (H88)")
def _(lock):
    slot_of(take(lock, A))
    same(take(lock, B, limit=5), ["MISFIT", lock.now, "limit 3", 1])
    same(lock.acquire(B), ["MISFIT", lock.now, "limit 3", 1])
    same(lock.acquire(B, mode="s"), ["MISFIT", lock.now, "limit 3", 1])
    lock.now += 30000
    fence_of(lock.acquire(B))
    same(take(lock, C), ["MISFIT", lock.now, "lock", 1])
    lock.release(B)
    same(slot_of(take(lock, C, limit=5)), 1)


@test("limit: thousands that died go all at once (H88)")
def _(server, lock):
    owners = ["%036d" % number for number in range(6000)]
    words = [lock.acquire_words(owner, mode="l", limit=6000, lease=1000) for owner in owners]
    same(server.pipeline(words)[-1][0], "GRANTED")
    same(take(lock, A, limit=6000, queue=False)[0], "HELD")
    lock.now += 1000
    same(slot_of(take(lock, A, limit=6000)), 1)
    same(sorted(lock.fields()), ["b", "f", "h:" + A, "k", "s"])


@test("limit: as many are called as there are slots")
def _(lock, ear):
    owners = ["%036d" % number for number in range(6)]
    for owner in (A, B, C):
        take(lock, owner)
    wait(lock, *owners, mode="l", limit=3)
    lock.release(A)
    same(ear.heard(), owners[:1], "one slot")
    lock.release(B)
    lock.release(C)
    same(ear.heard(), owners[1:3], "two more")
    same(slot_of(take(lock, owners[2])), 1)
    same(ear.heard(), [], "all that can go are called")
    same(slot_of(take(lock, owners[1])), 2)
    same(take(lock, owners[3])[0], "QUEUED", "one slot is left, and the first is called to it")
    same(slot_of(take(lock, owners[0])), 3)
    same(ear.heard(), [], "it is full")


# -- nested owners --------------------------------------------------------------------------------


@test("nested: at once, ahead of the waiters, with its ancestor's token; free when all are gone")
def _(server):
    lock, fence = held_by_a(server, B)
    same(fence_of(lock.acquire(A1)), fence)
    same(fence_of(lock.acquire(A1 + ".x")), fence, "two deep")
    same(lock.release(A)[0], "RELEASED", "the outermost")
    wait(lock, B)
    same(lock.release(A1)[0], "RELEASED")
    wait(lock, B)
    same(lock.release(A1 + ".x")[0], "RELEASED")
    fence_of(lock.acquire(B))


@test("nested: two of one holder exclude each other, in their order, ahead of all from outside")
def _(server):
    ear, lock = server.listen(), held_by_a(server, B)[0]
    fence_of(lock.acquire(A1))
    same(lock.acquire(A2)[2:5], [f"q:{A}:1", 1, 0])
    same(lock.acquire(A3)[2:5], [f"q:{A}:2", 2, 0])
    same(lock.acquire(A3)[5:8], [1, 1, 30000], "which key, holders, ms")
    lock.release(A1)
    same(ear.heard(), [A2])
    wait(lock, A3)
    fence_of(lock.acquire(A2))
    lock.release(A2)
    fence_of(lock.acquire(A3))
    lock.release(A)
    same(ear.heard(), [A3], "B waits for A3 still")
    lock.release(A3)
    same(ear.heard(), [B])


@test("nested: readers of one holder go together, and pass a writer that waits (H69)")
def _(lock):
    read(lock, A)
    wait(lock, B)
    read(lock, A1, A2)
    for owner in (A, A1, A2):
        lock.release(owner)
    fence_of(lock.acquire(B))


@test("nested: write to read nests, read to write is refused at once (H70)")
def _(server):
    lock, _fence = held_by_a(server)
    read(lock, A1)
    same(lock.acquire(A1 + ".x"), ["MISFIT", lock.now, "upgrade", 1])
    same(lock.acquire(A2)[0], "QUEUED", "beside a reader")
    same(lock.acquire(A3, nest=False), ["MISFIT", lock.now, "nested", 1])
    same(lock.acquire(B, nest=False)[0], "QUEUED", "who has no ancestor there")


@test("nested: a writer that leaves a reader behind lets other readers in (H71)")
def _(server):
    ear, lock = server.listen(), held_by_a(server)[0]
    read(lock, A1)
    wait(lock, B, mode="s")
    wait(lock, C)
    lock.release(A)
    same(ear.heard(), [B])
    read(lock, B)
    same(ear.heard(), [], "no writer")
    same(lock.release(A1)[0], "RELEASED")
    lock.release(B)
    same(ear.heard(), [C])


@test("nested: a waiter for one that has left waits outside")
def _(server):
    ear, lock = server.listen(), held_by_a(server, B)[0]
    fence_of(lock.acquire(A1))
    place = place_of(lock.acquire(A2))
    lock.release(A)
    same(ear.heard(), [A2])
    same(lock.acquire(A2, places=place)[2:5], ["q:2", 2, 1], "behind B")
    true("q:" + A not in lock.fields(), "its queue is there still")
    same(lock.acquire(A3)[2], "q:3", "its ancestor has nothing any more")
    lock.now += 30000
    fence_of(lock.acquire(B))


@test("nested: one that outlives its ancestor's lease holds on; the ancestor has lost it")
def _(server):
    lock, _fence = held_by_a(server, B)
    lock.acquire(A1, lease=60000)
    lock.now += 30000
    wait(lock, B)
    same(lock.renew(A)[0], "LOST")
    same([line.split()[3] for line in lock.inspect()[5]], [A1])
    same(lock.acquire(A)[0], "QUEUED", "as anybody else")
    lock.release(A1)
    fence_of(lock.acquire(B))


# -- several keys ---------------------------------------------------------------------------------


def free(server, name):
    return fence_of(Lock(server, name).acquire("f" * 36, queue=False))


@test("keys: all or none, and which of them is in the way (H77)")
def _(server):
    both, b = Lock(server, "a", "b"), Lock(server, "b")
    fence_of(b.acquire(B))
    reply = both.acquire(A, queue=False)
    same(reply, ["HELD", both.now, 0, *by(b, b.fields()["h:" + B], key=2)])
    same(both.fields(0), {}, "the other one")
    same(both.acquire(A)[2:6], ["q:1 q:1", 1, 0, 2])
    same([name for name in both.fields(0) if name[0] in "hs"], [], "held in the other one")
    b.release(B)
    same(len(fences_of(both.acquire(A))), 2)
    same(both.renew(A)[0], "RENEWED")
    same(both.release(A)[0], "RELEASED")
    free(server, "a")
    free(server, "b")


@test("keys: dropped from one queue, back in all at their places, or anew in all")
def _(server):
    both, b = Lock(server, "a", "b"), Lock(server, "b")
    fences_of(both.acquire(A))
    wait(both, B, C)
    b.force(purge=True)
    same(both.acquire(C)[2:5], ["q:3 q:3", 2, 1], "who does not know its places")
    same(both.acquire(B, places="q:1 q:1")[2:5], ["q:1 q:1", 1, 1], "who does")
    both.release(A)
    fences_of(both.acquire(B))


@test("keys: one of three is lost, and says so; the rest is released (H80)")
def _(server):
    three = Lock(server, "a", "b", "c")
    fences_of(three.acquire(A))
    server.call("DEL", three.keys[1])
    same(three.renew(A), ["LOST", three.now, 2, 0, 0, ""])
    same(three.release(A), ["ABSENT", three.now, 2, 0, 0, ""])
    for name in "abc":
        free(server, name)


@test("keys: a wrong one is told by its number")
def _(server):
    both = Lock(server, "a", "b")
    server.call("SET", both.keys[1], "x")
    for reply in (both.acquire(A), both.renew(A), both.release(A)):
        same(reply[:2] + reply[-1:], ["MISFIT", both.now, 2] if reply[0] == "MISFIT"
             else ["LOST", both.now, ""])
    same(Lock(server, "a").fields(), {})


@test("keys: one that nests passes one that waits for its ancestor, and all would wait for ever")
def _(server, ear):
    a, b, both = Lock(server, "a"), Lock(server, "b"), Lock(server, "b", "a")
    fence_of(a.acquire(A))
    wait(both, B)
    wait(b, C)
    same(b.inspect()[6][0].split()[3], "x", "the mode shown")
    same(b.acquire(D, queue=False)[0], "HELD", "who does not nest")
    fence_of(b.acquire(A1))
    ear.heard()
    b.release(A1)
    same(ear.heard(), [], "B waits for a")
    a.release(A)
    same(ear.pokes(), [("rlock:{a}", B)])
    fences_of(both.acquire(B))


# -- standing in line -----------------------------------------------------------------------------


def stands(lock, owner, position=1, holders=0, **options):
    reply = lock.acquire(owner, stand=True, **options)
    same((reply[0], reply[3], reply[6]), ("QUEUED", position, holders), owner[0])


@test("stand: the first of them is not granted what is free, and no waiter passes it")
def _(lock):
    stands(lock, A)
    same(lock.inspect()[5], [], "holders")
    wait(lock, B)
    same(lock.acquire(C, queue=False)[0], "HELD", "no wait")
    stands(lock, D, position=3)
    lock.now += PLACE_TTL - 1
    stands(lock, A)
    fence_of(lock.acquire(A, queue=False))
    stands(lock, D, position=3 - 1, holders=1)
    lock.release(A)
    fence_of(lock.acquire(B))


@test("stand: at the place that it has; behind holders; not for longer than any waiter")
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


@test("stand: one that holds it already is granted it again; nested ones pass")
def _(server):
    lock, fence = held_by_a(server)
    same(fence_of(lock.acquire(A, stand=True)), fence, "token")
    stands(lock, B, holders=1)
    same(fence_of(lock.acquire(A1)), fence, "the nested one's token")
    lock.release(A1)
    lock.release(A)
    stands(lock, B)
    fence_of(lock.acquire(B))


@test("stand: readers and slots, where there is room")
def _(server):
    lock = Lock(server, "r")
    read(lock, A)
    stands(lock, B, mode="s")
    wait(lock, C, mode="s")
    read(lock, B, C)
    lock = Lock(server, "l")
    take(lock, A, limit=2)
    stands(lock, B, mode="l", limit=2)
    wait(lock, C, mode="l", limit=2)
    take(lock, B, limit=2)
    stands(lock, C, mode="l", limit=2, holders=2)


# -- who is told of several -----------------------------------------------------------------------


def told(lock, **options):
    """The owner told to one who is refused."""
    for queue in (False, True):
        reply = lock.acquire("r", queue=queue, **options)
        text = reply[-1]
    lock.release("r")
    return text.split(" ")[3] if text else ""


@test("of several holders the oldest is told, whoever comes, renews and goes")
def _(server):
    for mode, limit, other in (("s", 0, "x"), ("l", 4, "l")):
        lock = Lock(server, mode)
        take = {"mode": mode, "limit": limit}
        for owner in (C, A, D, B):
            fence_of(lock.acquire(owner, **take))
            lock.now += 1
        same(told(lock, mode=other, limit=limit), C)
        lock.renew(D)
        same(told(lock, mode=other, limit=limit), C, "after a renewal")
        lock.release(C)
        fence_of(lock.acquire(E, **take))
        lock.renew(B)
        same(told(lock, mode=other, limit=limit), A, "the oldest has left")
        lock.release(A, at_least=600000)
        same(told(lock, mode=other, limit=limit), A, "it is kept")
        lock.now += 29000
        for owner in (D, B, E):
            lock.renew(owner)
        lock.now += 600000
        for owner in (A, D, B, C):
            fence_of(lock.acquire(owner, **take))
        same(told(lock, mode=other, limit=limit), A, "the dead are gone")


@test("of siblings below one holder the oldest is told")
def _(server):
    lock, _fence = held_by_a(server)
    for owner in (A2, A1, A3):
        fence_of(lock.acquire(owner, mode="s"))
    same(lock.acquire(A + ".4", queue=False)[-1].split(" ")[3], A2)


@test("where very many hold it no holder is told rather than not the oldest")
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


@test("at least: a release before lets it run out then, whoever renewed it meanwhile")
def _(server):
    lock, _fence = held_by_a(server, B)
    lock.now += 10000
    lock.renew(A)
    same(lock.release(A, at_least=15000), ["RELEASED", lock.now])
    same(lock.acquire(B)[7], 5000, "ms")
    lock.now += 4999
    wait(lock, B)
    lock.now += 1
    fence_of(lock.acquire(B))
    lock.now += 15000
    lock.release(B, at_least=15000)
    fence_of(lock.acquire(C))


@test("at least: notes are added to the one that keeps it, once, and nothing else of it changes")
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


@test(
    "at least: with the clock set back, no longer than it says; and not at all where not asked for"
)
def _(server):
    lock, _fence = held_by_a(server)
    lock.now -= 3600000
    lock.release(A)
    fence_of(lock.acquire(B))
    lock.now -= 3600000
    lock.release(B, at_least=15000)
    same(lock.acquire(C)[7], 15000, "ms")
    lock.now += 15000
    fence_of(lock.acquire(C))


main()
