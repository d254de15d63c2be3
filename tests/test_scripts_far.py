#!/usr/bin/env -S python3 -B
"""The scripts of src/rules/lua: waiters far from their turn call less often. Prints TAP."""
from script_server import FAR_TTL, NEAR, PLACE_TTL, Lock
from script_tap import main, same, test, true

WHO = "host user 1 command run"
HEARTBEATS = 3  # in a place that is kept
COST = 0.0124  # s: a heartbeat in a record with 1,000 waiters, in PostgreSQL


def call(lock, n, mode="x", limit=0, offer=None, place=True, **more):
    return lock.acquire(f"n{n}", far_ttl=FAR_TTL, who=WHO, places=f"q:{n}" if place else "",
                        mode=mode, limit=limit, offer=offer, **more)


def kept(reply):
    """ms for which its place is kept: longer than PLACE_TTL if it is far."""
    at = {"QUEUED": 10, "CLOSED": 8}[reply[0]]
    return reply[at] if len(reply) > at else PLACE_TTL


def join(lock, count, **more):
    return [call(lock, n, place=False, **more) for n in range(1, count + 1)]


def queue_of(server, count, **more):
    """A lock that is held, with that many waiters, n1 and so on; and an ear."""
    lock, ear = Lock(server, "k"), server.listen()
    server.call("DEL", lock.key)
    lock.acquire("h", lease=10**9, mode=more.get("mode", "x") if more.get("limit") else "x",
                 limit=more.get("limit", 0))
    join(lock, count, **more)
    ear.messages()
    return lock, ear


def waiter(lock, n):
    """ms until the deadline of its place, and its mark."""
    text = lock.fields()[f"q:{n}"]
    mark = text.partition(" far=")[2]
    return int(text.split()[0]) - lock.now, int(mark) if mark else None


def serve(lock, ear, count, silent=()):
    """Waiters that are poked call, and those granted release: the order in which they were granted.
    The silent ones are dead."""
    order, heard = [], [0]
    while heard:
        heard = [int(owner[1:]) for owner, *_rest in ear.handed() if owner != "low"]
        for n in heard:
            if n in silent or n in order:
                continue
            if call(lock, n)[0] == "GRANTED":
                order.append(n)
                lock.release(f"n{n}")
    return order


@test("H149 far: 1,000 waiters keep a database busy for less than half of the time")
def _(lock):
    lock.acquire("h", lease=10**9)
    periods = [kept(reply) / HEARTBEATS / 1000 for reply in join(lock, 1000)]
    rate = sum(1 / max(period, 2.5) for period in periods)
    true(rate * COST < 0.5, f"{rate:.1f} calls/s: busy for {100 * rate * COST:.0f} %")
    true(1000 / rate >= 25, f"a mean period of {1000 / rate:.1f} s")
    same(periods, sorted(periods), "the further back, the less often")
    again = [kept(call(lock, n)) / HEARTBEATS / 1000 for n in range(1, 1001)]
    same(again, periods, "the same with each heartbeat")


@test(
    "far: waiters behind the first ones are far, without --priority in the queue and without "
    "nesting"
)
def _(server):
    lock, ear = queue_of(server, NEAR + 3)
    same([waiter(lock, n)[1] for n in (1, NEAR, NEAR + 1, NEAR + 2)], [None] * 3 + [PLACE_TTL])
    true(PLACE_TTL < kept(call(lock, NEAR + 2)) < kept(call(lock, NEAR + 3)) < 10000, "kept")
    # Without the argument a waiter is as near as before.
    same(kept(lock.acquire(f"n{NEAR + 2}", who=WHO, places=f"q:{NEAR + 2}")), PLACE_TTL)
    same(waiter(lock, NEAR + 2), (PLACE_TTL, None))
    # No reader sees the mark.
    call(lock, NEAR + 2)
    same([text for text in lock.inspect()[6] if "far=" in text], [])
    # One with a priority: from now on there are lists.
    lock.acquire("p", who=WHO, priority=3)
    same(kept(call(lock, NEAR + 3)), PLACE_TTL)
    same(waiter(lock, NEAR + 3), (PLACE_TTL, None))
    same(ear.messages(), [])


@test("far: the first waiter with a lower priority brings all others near")
def _(server):
    lock, ear = queue_of(server, 60)
    lock.acquire("low", who=WHO, priority=-1)
    same(ear.heard(), [f"n{n}" for n in range(NEAR + 2, 61)])
    same([waiter(lock, n) for n in (NEAR + 2, 60)], [(PLACE_TTL, 0)] * 2)
    same(kept(call(lock, 60)), PLACE_TTL, "kept for no longer than the place of any near one")
    lock.release("h")
    same(serve(lock, ear, 60), list(range(1, 61)))


@test("far: whoever comes near is poked, once, and offers; all are served in the order of arrival")
def _(server):
    lock, ear = queue_of(server, 100)
    call(lock, 50, offer="t50")
    true("offer=" not in lock.fields()["q:50"], "a far waiter offers")
    lock.release("h")
    same(ear.heard(), ["n1"])
    for n in range(1, 30):
        same(call(lock, n)[0], "GRANTED")
        lock.release(f"n{n}")
        heard = ear.heard()
        same(heard, [f"n{n + NEAR}"] * (n > 1) + [f"n{n + 1}"], f"after {n}")
        if n > 1:
            same(waiter(lock, n + NEAR), (PLACE_TTL, 0))
    true(call(lock, 49, offer="t49")[0] == "QUEUED", "queued")
    true("offer=t49" in lock.fields()["q:49"], "a near one does not offer")
    call(lock, 30)
    lock.release("n30")
    same(serve(lock, ear, 100), list(range(31, 101)))


@test("far: a hand-over moves the first ticket, too")
def _(server):
    lock, ear = queue_of(server, 60)
    for n in range(1, 4):
        call(lock, n, offer=f"t{n}")
    lock.release("h")
    for n in range(1, 4):
        same([owner for owner, *_rest in ear.handed() if owner != f"n{n}"],
             [f"n{n + NEAR}"] * (n > 1))
        lock.release(f"n{n}")


@test("far: dead waiters are passed over, many by one call (H62)")
def _(server):
    for dead in (5, NEAR - 1, NEAR, 45, 200):
        lock, ear = queue_of(server, dead + 1)
        last, start = dead + 1, lock.now
        lock.release("h")
        beat = lock.now + kept(call(lock, last)) // HEARTBEATS
        while True:
            lock.now = beat
            while (reply := call(lock, last))[0] != "GRANTED" and f"n{last}" in ear.heard():
                pass
            if reply[0] == "GRANTED":
                break
            beat = lock.now + max(kept(reply) // HEARTBEATS, 2500)
        took = lock.now - start
        most = 10000 if dead <= NEAR else 7000 * 3 + FAR_TTL // HEARTBEATS
        true(took <= most, f"{dead} dead waiters cost {took} ms")


@test(
    "far: dead waiters in the middle cost no more than near ones, and the living keep their "
    "order"
)
def _(server):
    lock, ear = queue_of(server, 80)
    dead = set(range(30, 45)) | {70}
    lock.release("h")
    order = serve(lock, ear, 80, silent=dead)
    same(order, list(range(1, 30)))
    start = lock.now
    while len(order) < 80 - len(dead):
        lock.now += 2500
        true(lock.now - start < 2 * 10000, f"{len(order)} after {lock.now - start} ms")
        near = [n for n in range(1, 81) if n not in dead and f"q:{n}" in lock.fields()
                and waiter(lock, n)[1] in (None, 0)]
        for n in near:
            if n not in order and call(lock, n)[0] == "GRANTED":
                order.append(n)
                lock.release(f"n{n}")
                order += serve(lock, ear, 80, silent=dead)
    same(order, [n for n in range(1, 81) if n not in dead])


# All lie far behind the first 20, so most of them have to be told before they call: here each call
# is made by a message, and none by a clock.
@test("far: a group that is granted together comes in promptly, far ones included")
def _(server):
    for mode, limit, count in (("s", 0, 70), ("l", 50, 50)):
        lock, ear = queue_of(server, 0)
        if limit:
            lock.release("h")
            for n in range(limit):
                lock.acquire(f"h{n}", lease=10**9, mode="l", limit=limit)
        join(lock, count, mode=mode, limit=limit)
        ear.messages()
        for n in range(limit or 1):
            lock.release(f"h{n}" if limit else "h")
        granted = []
        while heard := ear.heard():
            for owner in heard:
                n = int(owner[1:])
                if n not in granted and call(lock, n, mode=mode, limit=limit)[0] == "GRANTED":
                    granted.append(n)
        # Readers go together: one that was told to call may pass some that were called.
        same(sorted(granted) if mode == "s" else granted, list(range(1, count + 1)), mode)


@test("far: a pause tells how long the place is kept, and its end calls the first")
def _(server):
    lock, ear = queue_of(server, 50)
    lock.run("adjust", "pause", who=WHO, ms=600000)
    reply = call(lock, 50)
    same(reply[0], "CLOSED")
    true(kept(reply) > PLACE_TTL, f"{reply}")
    lock.release("h")
    same(ear.heard(), [])
    lock.run("adjust", "resume")
    same(ear.heard(), ["n1"])


@test("far: waiters that leave bring others near; so does force-release with --purge")
def _(server):
    lock, ear = queue_of(server, 100)
    for n in range(1, 31):
        lock.release(f"n{n}")
    heard = ear.heard()
    same([owner for owner in heard if int(owner[1:]) > 50], [])
    true(all(f"n{n}" in heard for n in range(31, 51) if n > NEAR + 1), f"{heard}")
    lock.force(purge=True)
    same(set(ear.heard()), {f"n{n}" for n in range(31, 101)})
    for n in range(100, 30, -1):
        same(call(lock, n)[0], "QUEUED")
    lock.release("h")
    same(serve(lock, ear, 100), list(range(31, 101)))


main()
