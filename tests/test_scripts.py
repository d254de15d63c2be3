#!/usr/bin/env -S python3 -B
"""Each script of src/rules/lua by itself, where the random model (test_scripts_model.py) does not
play it. Prints TAP."""
import glob
import os
import re

from script_server import LUA, PLACE_TTL, Lock
from script_tap import A, B, C, D, E, WHO, acquired, by, fence_of, fences_of, held_by_a, holder
from script_tap import main, same, test, true

# -- each script by itself ------------------------------------------------------------------------


@test("no number is written with %d: it passes through a long, of 32 bits on some servers")
def _():
    for name in sorted(glob.glob("**/*.lua", root_dir=LUA, recursive=True)):
        with open(os.path.join(LUA, name), encoding="utf-8") as file:
            formats = re.findall(r"string\.format\(\s*'([^']*)'", file.read())
        same((name, [text for text in formats if re.search("%[dixu]", text)]), (name, []))


@test("acquire: a free lock is granted, and all it leaves is the lock")
def _(lock):
    fence = "1700000000000000"
    same(lock.acquire(A), ["GRANTED", lock.now, [fence], [0]])
    state = f"x 0 1 {lock.now + 30000} 30000 {A}"
    same(lock.fields(), {"k": "lock/1", "f": fence, "s": state, "h:" + A: holder(lock, A, fence)})


@test("acquire: works with the server's own clock")
def _(server):
    lock = Lock(server, now=None)
    seconds, micros = server.call("TIME")
    before = int(seconds) * 1000000 + int(micros)
    reply = lock.acquire(A)
    fence = fence_of(reply)
    true(before <= fence <= before + 5000000, f"fence {fence} is not the time {before}")
    same(reply.now, fence // 1000, "now")
    same(lock.inspect()[5][0].split()[3], A, "holder")
    same(lock.renew(A)[0], "RENEWED")
    same(lock.release(A)[0], "RELEASED")


@test("each request that is executed after its time is STALE and does nothing (H2)")
def _(lock):
    same(lock.acquire(A, not_after=lock.now - 1), ["STALE", lock.now])
    same(lock.ttl(), -2, "the key")
    fence_of(lock.acquire(A, not_after=lock.now))
    before = lock.fields()
    lock.now += 5000
    for owner, call in ((B, lock.acquire), (A, lock.acquire), (A, lock.renew), (A, lock.release)):
        same(call(owner, not_after=lock.now - 1), ["STALE", lock.now])
    same(lock.fields(), before)
    same(lock.renew(A, not_after=lock.now)[0], "RENEWED")
    same(lock.release(A, not_after=lock.now)[0], "RELEASED")


# "bar": for how many ms a late request of the owner is refused after its release.
@test("release: owners barred long ago are forgotten, those of late are not")
def _(lock):
    lock.release(A, bar=1000)
    lock.now += 500
    lock.release(B, bar=1000)
    lock.now += 500
    lock.release(C, bar=1000)
    names = sorted(entry.split("=")[0] for entry in lock.fields()["t"].split(";") if entry)
    same(names, [B, C])
    lock.release(B, bar=5000)
    same(lock.fields()["t"].count(B), 1, "entries of one owner")
    lock.now += 1500
    same(lock.acquire(B), ["BARRED", lock.now])


@test("renew: extends the holder's lease by what is asked")
def _(server):
    lock, fence = held_by_a(server)
    since = lock.now
    lock.now += 10000
    same(lock.renew(A, lease=60000), ["RENEWED", lock.now, [str(fence)], [0], 0])
    same(lock.fields()["h:" + A], holder(lock, A, fence, lease=60000, since=since), "h")
    lock.now += 1
    same(lock.renew(A, lease=1000), ["RENEWED", lock.now, [str(fence)], [0], 0])
    same(lock.fields()["h:" + A], holder(lock, A, fence, lease=1000, since=since), "h, shortened")
    lock.now += 1
    same(lock.renew(A, lease=0), ["RENEWED", lock.now, [str(fence)], [0], 0])
    same(lock.fields()["h:" + A], holder(lock, A, fence, lease=1000, since=since), "h, as before")


# "strict" are the calls of "rlock renew" and "rlock release". Of the five owners, those that end in
# A are runs; "acquired" marks those of "rlock acquire", and the last one is a reservation.
@test("H162 renew, release: strictly, what a run holds is refused, and no lock changes")
def _(server, lock):
    mine = acquired(B)
    for owner, who in ((A, "w"), (mine + "." + A, "w"), (A + "." + mine, "w"), (mine, "w"),
                       (C, WHO + " reserved=1")):
        fence_of(lock.acquire(owner, who=who))
        before, of_run = lock.fields(), owner.endswith(A)
        told = ["MISFIT", lock.now, "run", 1]
        for reply, done in ((lock.renew(owner, strict=True, lease=1000), "RENEWED"),
                            (lock.release(owner, strict=True), "RELEASED")):
            same(reply if of_run else reply[0], told if of_run else done)
        true(not of_run or lock.fields() == before, "it is as it was")
        lock.release(owner)


@test("renew, release: strictly, what has run out is not held, and no lock changes")
def _(server):
    one, other = acquired(A), acquired(B)
    lock = Lock(server)
    fence = fence_of(lock.acquire(one))
    lock.now += 29999
    same(lock.renew(one, strict=True, lease=10000), ["RENEWED", lock.now, [str(fence)], [0], 0])
    lock.now += 10000
    same(lock.renew(one, strict=True), ["LOST", lock.now, *by(lock)])
    same(lock.release(one, strict=True), ["ABSENT", lock.now, *by(lock)])
    same(lock.acquire(one, lease=1000)[0], "GRANTED")
    same(lock.acquire(other)[0], "QUEUED")
    ear = server.listen()
    lock.now += 1000
    same(lock.release(one, strict=True)[0], "ABSENT")
    same(ear.heard(), [other], "who waits is not forgotten")
    same(lock.acquire(other)[0], "GRANTED")
    same(lock.renew(one, strict=True), ["LOST", lock.now, *by(lock, lock.fields()["h:" + other])])
    holder = by(lock, lock.fields()["h:" + other])
    same(lock.release(one, strict=True), ["ABSENT", lock.now, *holder])
    same(lock.release(other, strict=True), ["RELEASED", lock.now])


@test("release: strictly, what waits is not held, and keeps its place")
def _(server):
    lock, _ = held_by_a(server, B, acquired(C), D)
    before = lock.fields()
    for waiting in (B, acquired(C)):
        same(lock.release(waiting, strict=True),
             ["ABSENT", lock.now, *by(lock, before["h:" + A])])
    same(lock.fields(), before)


@test("force: the queue is emptied only on request, and waiters come back in their order")
def _(server):
    lock, fence = held_by_a(server, B, C, D)
    same(lock.force(purge=True), ["RELEASED", lock.now])
    mine = holder(lock, A, fence)
    left = {name: text for name, text in lock.fields().items() if name not in "kfs"}
    same(left, {"h:" + A: mine, "q": "4 3 0"})
    for owner, place in ((D, "q:3"), (B, "q:1"), (C, "q:2")):
        same(lock.acquire(owner, places=place).parts("places", "anew"),
             [place, 1], "place, queued anew")
    lock.force(A)
    same(lock.acquire(C)[0], "QUEUED")
    fence_of(lock.acquire(B))


# If B took its old place back in one queue, where it is free again, and a new one in the other, it
# would be before C here and behind C there: each would wait for the other.
@test("several keys: a waiter comes back to all of its places, or queues anew in each queue")
def _(server):
    both, one = Lock(server, "a", "b"), Lock(server, "a")
    both.acquire(A)
    same(both.acquire(B).places, "q:1 q:1")
    both.now += PLACE_TTL + 1
    same(both.acquire(C).places, "q:2 q:2")
    # The answer is lost, so B still names its places of before.
    same(both.acquire(B).places, "q:3 q:3")
    one.now = both.now
    same(one.force(purge=True)[0], "RELEASED")
    same(both.acquire(B, places="q:1 q:1").parts("places", "anew"),
         ["q:4 q:4", 1], "places, queued anew")
    same(both.acquire(C, places="q:2 q:2").places, "q:2 q:2")
    same(both.release(A)[0], "RELEASED")
    same([both.acquire(waiter)[0] for waiter in (B, C)], ["QUEUED", "GRANTED"])
    same(both.release(C)[0], "RELEASED")
    fences_of(both.acquire(B))


@test("inspect: shows holder and living waiters in order, and writes nothing")
def _(server, lock):
    same(lock.inspect(), ["LOCK", lock.now, "0", "", 0, [], []])
    same(lock.ttl(), -2, "the key")
    lock, fence = held_by_a(server, B)
    lock.now += PLACE_TTL
    for owner in (C, D, E):
        lock.acquire(owner)
    lock.release(D)
    server.call("PEXPIRE", lock.key, 100000000)  # a script that extends this gives itself away
    before, dump = lock.fields(), server.call("DUMP", lock.key)
    waiters = [before["q:2"], before["q:4"]]
    same(lock.inspect(), ["LOCK", lock.now, str(fence), "x", 0, [before["h:" + A]], waiters])
    lock.now += 30000
    same(lock.inspect(), ["LOCK", lock.now, str(fence), "", 0, [], []], "all dead")
    same((lock.fields(), server.call("DUMP", lock.key)), (before, dump))
    true(lock.ttl() <= 100000000, "the key's time to live was extended")


def inspect_parts(lock):
    """The first part, the owners of all waiters in their order, and how many parts there were."""
    first = part = lock.inspect()
    owners, parts = [text.split()[1] for text in part[6]], 1
    while len(part) > 7:
        part = lock.inspect(**dict(zip(("from", "to"), part[7:])))
        same(part[3:6], ["", 0, []], "holders of a later part")
        owners += [text.split()[1] for text in part[6]]
        parts += 1
    return first, owners, parts


@test("inspect: a long queue is read in parts, its holders with the first one")
def _(server):
    owners = ["%036d" % number for number in range(1000)]
    for mode, limit, held in (("x", 0, [A]), ("l", 3, [A, B, C])):
        server.call("FLUSHALL")
        lock = Lock(server)
        for owner in held:
            lock.acquire(owner, mode=mode, limit=limit)
        server.pipeline([lock.acquire_words(owner, mode=mode, limit=limit) for owner in owners])
        for owner in owners[300:310]:
            lock.release(owner)
        server.call("CONFIG", "RESETSTAT")
        first, seen, parts = inspect_parts(lock)
        stats = server.call("INFO", "commandstats")
        same([text.split()[3] for text in first[5]], held, "holders")
        same([seen, parts], [owners[:300] + owners[310:], 5], "waiters, parts")
        same("cmdstat_hgetall" in stats, mode == "l", "one holder: not read as a whole")
        lock.acquire(A + ".1", mode=mode, limit=limit)
        lock.acquire(A + ".2", mode=mode, limit=limit)
        first, seen, parts = inspect_parts(lock)
        same(len(first[5]), len(held) + 1, "holders with a nested one")
        if mode == "x":
            same([seen[0], len(seen), parts], [A + ".2", 991, 1], "one that nests comes first")
        lock.release(A + ".2")
        lock.set("q", "1 %d 0" % (2**53 - 1))
        first, seen, parts = inspect_parts(lock)
        same([len(seen), parts], [990, 1], "a queue that never ends")


@test("inspect: what a holder said of itself comes back byte by byte")
def _(server):
    for who in ("", " ", "a b  c ", "\"'\\%s%d%%", "na\u00efve \u65e5\u672c", "x" * 1000):
        server.call("FLUSHALL")
        lock = Lock(server)
        fence = fence_of(lock.acquire(A, who=who))
        same(lock.inspect()[5], [holder(lock, A, fence, who=who)])
        lock.acquire(B, who=who)
        same(lock.inspect()[6], [f"{lock.now + PLACE_TTL} {B} {lock.now} x {who}"])


# -- the queue ------------------------------------------------------------------------------------


@test("queue: the place counts waiters, not the holes between them, where asked to count up to 100")
def _(server):
    owners = ["%036d" % number for number in range(101)]
    lock, _fence = held_by_a(server, *owners)
    for owner in owners[1:60]:
        lock.release(owner)
    same(lock.acquire(owners[60]).parts("places", "position"), ["q:61", 2], "place")
    same(lock.acquire(owners[99]).parts("places", "position"),
         ["q:100", 41], "place of the hundredth")
    same(lock.acquire(owners[99], count=False).parts("places", "position"),
         ["q:100", 100], "an upper bound")
    same(lock.acquire(owners[100]).parts("places", "position"),
         ["q:101", 101], "an upper bound of those behind")
    same(lock.acquire(owners[0]).parts("places", "position"), ["q:1", 1], "place of the first")
    lock.release(owners[0])
    same(lock.acquire(owners[100]).parts("places", "position"),
         ["q:101", 41], "place when the first has gone")


@test("poke: only the first in the queue is woken, whoever made way for it (H66)")
def _(server, ear):
    lock, _fence = held_by_a(server, B, C, D)
    same(ear.heard(), [], "no owner made way")
    lock.release(C)
    same(ear.heard(), [], "one in the middle left")
    lock.release(A)
    same(ear.heard(), [B], "the holder released")
    lock.acquire(D)
    same(ear.heard(), [], "another one found the lock free, but the first has called just now")
    lock.now += 1000
    lock.acquire(D)
    same(ear.heard(), [B], "another one found the lock free")
    lock.release(B)
    same(ear.heard(), [D], "the first gave up")
    fence_of(lock.acquire(D))
    lock.acquire(B)
    lock.acquire(C)
    lock.now += 5000
    lock.acquire(C)
    lock.now += 3000
    lock.release(D)
    same(ear.heard(), [C], "the dead are passed over")
    fence_of(lock.acquire(C))
    lock.acquire(E)
    lock.force(C)
    same(ear.heard(), [E], "the holder was forced")
    lock.now += 1000
    lock.acquire(D)
    same(ear.heard(), [E], "another one found the lock free")
    lock.force(purge=True)
    same(sorted(ear.heard()), [D, E], "the queue was emptied")


# -- clocks and tokens ----------------------------------------------------------------------------


@test("clock set back: a dead holder keeps the lock for one more lease, not for the hour (H28)")
def _(server):
    lock, fence = held_by_a(server)
    lock.now -= 3600000
    same(lock.acquire(B)[0], "QUEUED")
    same(lock.fields()["h:" + A].split()[0], str(lock.now + 30000), "the deadline")
    lock.now += 29999
    same(lock.acquire(B)[0], "QUEUED")
    lock.now += 1
    true(fence_of(lock.acquire(B)) > fence, "no greater token")


main()
