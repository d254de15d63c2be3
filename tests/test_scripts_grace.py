#!/usr/bin/env -S python3 -B
"""The scripts of src/rules/lua with grace: a server that may have forgotten locks. Prints
TAP."""
import os, random

from lock_view import View
from script_server import MARKER, Lock, Server
from script_tap import A, B, C, D, GIVEN, by, fence_of, full, holder, main, same, test, true

ELSEWHERE = "f" * 40  # another server's run_id
LEASE = 30000


def claim(reply, mode="x", limit=0, who="who"):
    """The claim of a holder to what it was granted."""
    return {"mode": mode, "limit": limit, "who": who, "fences": " ".join(reply.fences),
            "slots": " ".join(map(str, reply.slots))}


def take(lock, owner, **options):
    """Granted with grace; the claim to have it again."""
    reply = lock.acquire(owner, grace=True, **options)
    same(reply[0], "GRANTED")
    return claim(reply, options.get("mode", "x"), options.get("limit", 0), "who-" + owner)


def marked(server, *names):
    lock = Lock(server, *names)
    same(lock.init(), ["MARKED", lock.now])
    return lock


GIVEN["lock"] = marked


def grace(lock, owner=D, **options):
    """For how long nothing is granted; 0: it was granted to owner, and is released."""
    reply = lock.acquire(owner, queue=False, grace=True, **options)
    if reply[0] == "GRANTED":
        lock.release(owner)
        return 0
    same(reply[0], "GRACE")
    return reply.opens_in


def sound(lock):
    for number, _key in enumerate(lock.keys):
        same(list(View(lock.fields(number), lock.now).faults(lock.ttl())), [], "faults")


def marker(server):
    flat = server.call("HGETALL", MARKER)
    return dict(zip(flat[::2], flat[1::2]))


# -- when -----------------------------------------------------------------------------------------


@test(
    "a server that knows nothing grants nothing for one lease, then continues as if it was marked"
)
def _(server):
    lock = Lock(server)
    same(grace(lock), LEASE)
    lock.now += LEASE - 1
    same(grace(lock), 1)
    same(grace(Lock(server, "other", now=lock.now)), 1, "another key")
    lock.now += 1
    same(grace(lock), 0)
    lock.now += 1000 * LEASE
    same(grace(lock), 0)


@test("a server that was marked when it was new grants at once; once marked, it does not change")
def _(server, lock):
    before = marker(server)
    same(lock.init(), ["MARKED", lock.now], "again")
    same(marker(server), before)
    same(grace(lock), 0)
    true(server.call("PTTL", MARKER) > 300 * 86400000, "it stays")


@test("a request without grace is granted at once, and begins no time of grace")
def _(server):
    lock = Lock(server)
    fence_of(lock.acquire(A))
    same(lock.renew(A)[0], "RENEWED")
    same(lock.release(A), ["RELEASED", lock.now])
    same(server.call("EXISTS", MARKER), 0)
    same(grace(lock), LEASE)
    fence_of(lock.acquire(B))


@test("H42 H44 a server that was emptied grants nothing for one lease from the first request on")
def _(server):
    for notice in (lambda lock: lock.acquire(D, grace=True), lambda lock: lock.renew(D, grace=True),
                   lambda lock: lock.release(C, bar=1, grace=True)):
        server.call("FLUSHALL")
        lock = marked(server)
        take(lock, A)
        server.call("FLUSHALL")
        notice(lock)
        lock.now += 10000
        same(grace(lock), LEASE - 10000)


@test("H43 a server that restarted with its data grants nothing new for one lease")
def _(server, lock):
    take(lock, A)
    server.call("HSET", MARKER, "r", ELSEWHERE)
    same(grace(Lock(server, "other")), LEASE)
    same(lock.acquire(B, queue=False, grace=True)[0], "HELD", "what is held is held")
    same(lock.renew(A, grace=True).late, 0, "renewed, and not forgotten")
    lock.now += LEASE - 1
    same(lock.release(A, grace=True), ["RELEASED", lock.now])
    same(grace(lock), 1)
    lock.now += 1
    same(grace(lock), 0)


@test(
    "H38 a server that was a replica meanwhile grants nothing for one lease; one that was not, "
    "at once",
    hosts=False,
)
def _():
    own = Server()
    try:
        lock = marked(own)
        own.call("HSET", MARKER, "i", ELSEWHERE)
        same(grace(lock), 0, "another replication id, and none before")
        true(marker(own)["i"] != ELSEWHERE, "it is noted")
        own.call("REPLICAOF", "127.0.0.1", "1")
        own.call("REPLICAOF", "NO", "ONE")
        same(grace(lock), LEASE, "a replica in between")
        lock.now += LEASE
        same(grace(lock), 0)
    finally:
        own.stop()


@test("grace lasts for the longest lease that was asked for, as far as the server remembers")
def _(server, lock):
    take(lock, A, lease=100000)
    server.call("HSET", MARKER, "r", ELSEWHERE)
    same(grace(Lock(server, "other"), lease=1000), 100000)
    server.call("FLUSHALL")
    lock = Lock(server)
    same(grace(lock, lease=2000), 2000)
    lock.now += 1500
    same(grace(lock, lease=5000), 3500, "as long as if it had begun with that")
    same(grace(lock, lease=1000), 3500)
    server.call("FLUSHALL")
    same(lock.renew(A, lease=0, grace=True)[0], "LOST")
    same(grace(lock, lease=1000), LEASE, "no owner tells one")


@test("H28 a server's clock that is set back makes the time of grace no longer than a lease")
def _(server):
    lock = Lock(server)
    same(grace(lock), LEASE)
    lock.now -= 3600000
    same(grace(lock), LEASE)
    lock.now += LEASE
    same(grace(lock), 0)


@test("init where something may have been forgotten: refused, unless it is forced")
def _(server, lock):
    take(lock, A, lease=LEASE)
    server.call("HSET", MARKER, "r", ELSEWHERE)
    same(lock.init(), ["GRACE", lock.now, LEASE, "", 0, 0])
    lock.now += 10000
    same(lock.init(), ["GRACE", lock.now, LEASE - 10000, "", 0, 0])
    same(lock.init(force=True), ["MARKED", lock.now])
    same(grace(Lock(server, "other", now=lock.now), lease=1000), 0)


@test("the server's marker is not written by each renewal, only once a day or when it changes")
def _(server, lock):
    take(lock, A)
    server.call("CONFIG", "RESETSTAT")
    for _turn in range(5):
        lock.now += 10000
        lock.renew(A, grace=True)
    # Whatever is written gets a time to live: here the lock's record, and nothing else.
    stats = server.call("INFO", "commandstats")
    true("cmdstat_pexpire:calls=5," in stats, stats)
    before = marker(server)
    lock.now += 86400000
    grace(lock)
    true(marker(server)["w"] > before["w"], "written again")


# -- waiting --------------------------------------------------------------------------------------


@test("waiters that come during the grace are granted in their order afterwards")
def _(server):
    lock = Lock(server)
    same(lock.acquire(A, grace=True), ["GRACE", lock.now, LEASE, "q:1", 1, 0])
    same(lock.acquire(B, grace=True), ["GRACE", lock.now, LEASE, "q:2", 2, 0])
    same(lock.acquire(C, grace=True, queue=False), ["GRACE", lock.now, LEASE, "", 2, 0])
    for _turn in range(6):
        lock.now += 5000
        last = [lock.acquire(owner, grace=True, places=f"q:{n}") for n, owner in ((2, B), (1, A))]
    same([reply[0] for reply in last], ["QUEUED", "GRANTED"])
    sound(lock)


@test(
    "a waiter for several keys queues as the first in line, not as one that waits for another "
    "key"
)
def _(server):
    lock = Lock(server, "a", "b")
    same(lock.acquire(A, grace=True)[0], "GRACE")
    same(
        Lock(server, "a", now=lock.now).inspect()[6],
        [f"{lock.now + 7000} {A} {lock.now} x who-{A} due={lock.now + 900000}"],
    )
    true(" x " in lock.fields()["q:1"], "in small letters")


@test("a nested request is new, too, and waits for the end of the grace")
def _(server, lock):
    take(lock, A)
    server.call("HSET", MARKER, "r", ELSEWHERE)
    same(lock.acquire(A + ".1", grace=True)[0], "GRACE")
    lock.now += 25000
    lock.renew(A, grace=True)
    lock.now += 5000
    fence_of(lock.acquire(A + ".1", grace=True))


# -- having it again ------------------------------------------------------------------------------


@test("H42 a forgotten holder has its lock again, with its fence; the next holder's is greater")
def _(server, lock):
    mine = take(lock, A)
    server.call("FLUSHALL")
    lock.now += 1000
    same(grace(lock), LEASE)
    lock.now += 9000
    same(lock.renew(A, grace=True, **mine), ["RENEWED", lock.now, [mine["fences"]], [0], 2])
    sound(lock)
    same(lock.acquire(B, grace=True)[5:], by(lock, holder(lock, A, mine["fences"])))
    lock.now += 10000
    same(lock.renew(A, grace=True, **mine).late, 0)
    lock.now += 29000
    lock.acquire(B, grace=True)
    same(lock.release(A, grace=True), ["RELEASED", lock.now])
    true(fence_of(lock.acquire(B, grace=True)) > int(mine["fences"]), "token")


@test("a lock is had again only with a claim, before its lease ends, and during the grace")
def _(server, lock):
    mine = take(lock, A)
    server.call("FLUSHALL")
    same(lock.renew(A)[0], "LOST")
    same(lock.renew(A, grace=True)[0], "LOST")
    lock.now += LEASE
    same(lock.renew(A, grace=True, **mine)[0], "LOST")
    same(lock.fields(), {})


@test("a claim that arrives late is refused: the lock may have been released meanwhile")
def _(server, lock):
    mine = take(lock, A)
    server.call("FLUSHALL")
    same(lock.renew(A, grace=True, not_after=lock.now - 1, **mine), ["STALE", lock.now])
    same(lock.fields(), {})
    same(lock.renew(A, grace=True, not_after=lock.now, **mine)[0], "RENEWED")
    late = lock.renew(A, grace=True, not_after=lock.now - 1, **mine)
    same(late, ["STALE", lock.now], "nor where it is known")


@test("H36 an old copy has an earlier holder: the later one has the lock again in its place")
def _(server, lock):
    old = take(lock, A)
    copy = server.call("DUMP", lock.key)
    lock.release(A)
    new = take(lock, B)
    server.call("RESTORE", lock.key, 0, copy.encode("utf-8", "surrogateescape"), "REPLACE")
    server.call("HSET", MARKER, "r", ELSEWHERE)
    same(lock.acquire(C, grace=True)[0], "QUEUED", "it is held, as far as that is known")
    same(lock.renew(B, grace=True, **new).late, 2)
    sound(lock)
    same(lock.renew(A, grace=True, **old)[0], "LOST")
    same([line.split()[3] for line in lock.inspect()[5]], [B])


@test("two claim the lock: the one with the greater fence has it, whoever comes first")
def _(server):
    for first, second in ((0, 1), (1, 0)):
        server.call("FLUSHALL")
        lock = marked(server)
        claims = [take(lock, A)]
        lock.release(A)
        claims.append(take(lock, B))
        server.call("FLUSHALL")
        for number in (first, second):
            lock.renew((A, B)[number], grace=True, **claims[number])
        same([line.split()[3] for line in lock.inspect()[5]], [B])
        sound(lock)


@test("a lock is not had again beside a holder that cannot be read")
def _(server, lock):
    mine = take(lock, A, mode="s")
    take(lock, B, mode="s")
    server.call("HDEL", lock.key, "h:" + A)
    server.call("HSET", lock.key, "h:" + B, "no holder")
    server.call("HSET", MARKER, "r", ELSEWHERE)
    same(lock.renew(A, grace=True, **mine)[0], "LOST")
    true("h:" + A not in lock.fields(), "it is held again")


@test("H45 a holder from whom the lock was taken by force does not have it again")
def _(server, lock):
    mine = take(lock, A)
    same(lock.force(A), ["RELEASED", lock.now])
    server.call("HSET", MARKER, "r", ELSEWHERE)
    same(lock.renew(A, grace=True, **mine)[0], "LOST")
    same(lock.release(A, bar=1, grace=True)[0], "ABSENT")


@test("several keys are had again together, or none of them")
def _(server):
    lock, one = marked(server, "a", "b"), Lock(server, "b")
    mine = take(lock, A)
    server.call("FLUSHALL")
    same(lock.renew(A, grace=True, **mine).fences, mine["fences"].split())
    sound(lock)
    server.call("HDEL", lock.keys[0], "s", "h:" + A)
    server.call("HSET", MARKER, "r", ELSEWHERE)
    same(lock.renew(A, grace=True, **mine).late, 2, "one of them")
    sound(lock)
    server.call("FLUSHALL")
    one.init()
    take(one, B)
    server.call("HSET", MARKER, "r", ELSEWHERE)
    reply = lock.renew(A, grace=True, **mine)
    same([reply[0], server.call("EXISTS", lock.keys[0])], ["LOST", 0])


@test("H17 a full server renews what is held, also where its time of grace begins with that")
def _(server, lock):
    take(lock, A)
    server.call("HSET", MARKER, "r", ELSEWHERE)
    with full(server):
        same(lock.renew(A, grace=True)[0], "RENEWED")
        same(marker(server)["u"], str(lock.now + LEASE))


@test("a lock that is had again counts from when it was acquired")
def _(server, lock):
    mine = take(lock, A)
    server.call("FLUSHALL")
    lock.now += 20000
    same(lock.renew(A, grace=True, held=19990, **mine)[0], "RENEWED")
    same(lock.fields()["h:" + A].split()[4], str(lock.now - 19990), "since")
    same(lock.release(A, grace=True, at_least=20000), ["RELEASED", lock.now])
    same(lock.fields()["h:" + A].split()[0], str(lock.now + 10), "kept until")


# -- releasing it ---------------------------------------------------------------------------------


@test("the release of a forgotten lock succeeds during its lease, and later says that it was lost")
def _(server, lock):
    take(lock, A)
    server.call("FLUSHALL")
    same(lock.release(A, grace=True), ["RELEASED", lock.now])
    same(lock.release(A)[0], "ABSENT", "without grace")
    lock.now += LEASE
    same(lock.release(A, grace=True)[0], "ABSENT")


@test("a lock that was released is not had again by an earlier renewal that arrives late")
def _(server, lock):
    mine = take(lock, A)
    server.call("FLUSHALL")
    same(lock.renew(A, grace=True, **mine)[0], "RENEWED")
    same(lock.release(A, bar=60000, grace=True), ["RELEASED", lock.now])
    same(lock.renew(A, grace=True, **mine)[0], "LOST")
    server.call("FLUSHALL")
    same(lock.release(A, bar=60000, grace=True), ["RELEASED", lock.now], "forgotten")
    same(lock.renew(A, grace=True, **mine)[0], "LOST")
    sound(lock)


@test("an owner that has released asks again within grace; only its earlier requests are barred")
def _(server, lock):
    mine = take(lock, A, attempt=1)
    server.call("FLUSHALL")
    same(lock.renew(A, grace=True, attempt=2, **mine)[0], "RENEWED")
    same(lock.release(A, grace=True, attempt=4), ["RELEASED", lock.now])
    same(lock.renew(A, grace=True, attempt=3, **mine)[0], "LOST")
    same(lock.renew(A, grace=True, **mine)[0], "LOST", "another process")
    same(lock.acquire(A, grace=True, attempt=3)[0], "BARRED")
    same(lock.acquire(A, grace=True, attempt=5)[0], "GRACE")
    sound(lock)


# -- anything -------------------------------------------------------------------------------------


def holders(lock):
    """The holders and their modes, as far as they can be known again."""
    view = View(lock.fields(), lock.now)
    kin = sorted(sorted(entry.owner for entry in family) for family in view.families.values())
    return kin, sorted((one.owner, one.mode, one.slot, one.fence, one.who) for one in view.entries)


@test(
    "after a loss, holders that claim in any order have what they had before (seed %s)"
    % os.environ.setdefault("RLOCK_SEED", "1")
)
def _(server):
    chance = random.Random(os.environ["RLOCK_SEED"])
    most = 0
    for _turn in range(300):
        server.call("FLUSHALL")
        lock = marked(server)
        limit = chance.choice((0, 0, 1, 3))
        claims = {}
        for _try in range(chance.randrange(1, 9)):
            above = chance.choice([None, *claims])
            owner = (above + "." if above else "") + str(chance.randrange(10**6))
            mode = "l" if limit else chance.choice("xss")
            reply = lock.acquire(owner, mode=mode, limit=limit, queue=False, grace=True)
            if reply[0] == "GRANTED":
                claims[owner] = claim(reply, mode, limit, "who-" + owner)
            if chance.random() < 0.2 and claims:
                gone = chance.choice(list(claims))
                lock.release(gone)
                del claims[gone]
        before = holders(lock)
        most = max(most, len(claims))
        # Half of the turns lose all, as a restart does; the others some holders, with those that
        # nest in them, as a replica does that lags.
        if chance.random() < 0.5:
            server.call("FLUSHALL")
        else:
            server.call("HSET", MARKER, "r", ELSEWHERE)
            for family in View(lock.fields(), lock.now).families:
                if chance.random() < 0.5:
                    server.call("HDEL", lock.key, "h:" + family)
            view = View(lock.fields(), lock.now)
            if not view.families:
                server.call("DEL", lock.key)
            else:
                server.call("HDEL", lock.key, "t")
                state = lock.fields()["s"].split()
                oldest = min(view.families, key=lambda name: view.families[name][0].fence)
                state[2], state[5] = str(len(view.families)), oldest
                lock.set("s", " ".join(state))
        order = list(claims)
        chance.shuffle(order)
        for owner in order:
            reply = lock.renew(owner, grace=True, **claims[owner])
            same(reply[0], "RENEWED", f"{owner} of {order}")
        same(holders(lock), before, f"{order}")
        sound(lock)
    true(most > 4, "some hold it together")


main()
