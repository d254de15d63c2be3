#!/usr/bin/env -S python3 -B
"""The scripts of src/rules/lua on other keys than locks, and on servers that refuse. Prints TAP."""
from script_server import PLACE_TTL, WEEK, Client, Lock
from script_tap import A, B, C, D, DAY, E, by, fails, fence_of, full, held_by_a, holder, main
from script_tap import same, test, true

# -- other keys, or damaged locks -----------------------------------------------------------------


def each_call(lock):
    """(name, call) for every script as holder A, waiter B and newcomer C call it."""
    for who, owner in (("holder", A), ("waiter", B), ("newcomer", C)):
        yield who + " acquire", lambda owner=owner: lock.acquire(owner)
        yield who + " try", lambda owner=owner: lock.acquire(owner, queue=False)
        yield who + " renew", lambda owner=owner: lock.renew(owner)
        yield who + " release", lambda owner=owner: lock.release(owner)
        yield who + " uncertain release", lambda owner=owner: lock.release(owner, bar=60000)
    yield "force", lambda: lock.force(A)
    yield "force purge", lambda: lock.force(purge=True)
    yield "inspect", lambda: lock.inspect()


def each_on(server, what, *owners, only=""):
    """(lock, call, what and its name) for each of these, on a lock that these owners asked for."""
    lock = Lock(server)
    start = lock.now
    for name, call in each_call(lock):
        if name.startswith(only):
            server.call("FLUSHALL")
            lock.now = start
            for owner in owners:
                lock.acquire(owner)
            yield lock, call, f"{what!r:.100}, {name}"


def refused(server, changes, want, only="", owners=(A, B)):
    """Each call on a lock with these fields (None: deleted) is MISFIT and changes nothing."""
    for lock, call, what in each_on(server, changes, *owners, only=only):
        for field, value in changes.items():
            server.call("HDEL", lock.key, field) if value is None else lock.set(field, value)
        server.call("PEXPIRE", lock.key, 1000000)
        before = lock.fields()
        same(call()[:3], ["MISFIT", lock.now, want], what)
        same(lock.fields(), before, what)
        true(lock.ttl() <= 1000000, f"{what} extended its time to live")


NUMBERS = ("", "x", " 1", "-1", "1.5", "1e3", "0x10", "nan", "inf", "-inf", str(2**53), "9" * 400)
LINES = (
    "", "x", "1 2 3", "x 30000 5 %s 1 x 0 w" % A, "1700000030000 x 5 %s 1 x 0 w" % A,
    "1700000030000 30000 x %s 1 x 0 w" % A, "1700000030000 30000 5", "-1 30000 5 %s 1 x 0 w" % A,
    "nan 30000 5 %s 1 x 0 w" % A, "%s %s 5 %s 1 x 0 w" % ("9" * 400, "9" * 400, A),
    "1700000030000 30000 %s %s 1 x 0 w" % ("9" * 400, A), "1700000030000 30000 5 %s 1 z 0 w" % A,
    "1700000030000 30000 5 %s 1 x -1 w" % A, "1700000030000 30000 5 %s 1 x 0 w\nx" % A,
)
STATES = (
    "", "x", "x 0 1 5 5", "z 0 1 5 5 %s" % A, "x -1 1 5 5 %s" % A, "x 0 1 nan 5 %s" % A,
    "x 0 1 5 inf %s" % A, "x 0 1 %s 5 %s" % ("9" * 400, A), "x 0 1 5 5 %s more" % A,
)
QUEUES = (
    "", "x", "1", "1 1", "1 1 1 1", "-1 1 0", "1 -1 0", "0 1 0", "5 1 0", "1 nan 0", "1 1 inf",
    "1 0x10 0", "1 %d 0" % 2**53, "1 %s 0" % ("9" * 400),
)
PLACES = ("q", "q:", "q:x", "s", "h:" + A, "k")
BARRED = ("x", "=", "=1;", A, A + "=", A + "=;", A + "=1;x", A + "=nan;")
WAITERS = ("", "x", "1 2", "nan %s 1 x w" % B, "-1 %s 1 x w" % B, "%s %s 1 x w" % ("9" * 400, B))
KINDS = ("latch/1", "lock/2", "lock/10", "lock", "", "sem")


@test("damage: what cannot be read is MISFIT to each that needs it, and nothing changes (H21)")
def _(server):
    for field, texts, only in (
        ("h:" + A, LINES, "holder"), ("h:" + A, LINES, "inspect"), ("s", STATES, ""),
        ("s", (None,), "holder"), ("f", NUMBERS, ""), ("q", QUEUES, ""),
        ("w:" + B, NUMBERS + PLACES, "waiter"), ("t", BARRED, ""), ("k", (None,), ""),
    ):
        for text in texts:
            refused(server, {field: text}, "damaged", only)
    for text in NUMBERS:
        refused(server, {"f": text, "h:" + A: None, "s": None}, "damaged")
    refused(server, {"user": "bob"}, "damaged", owners=())


@test("damage: a lock of another kind or layout is MISFIT, by its name (H22)")
def _(server):
    for kind in KINDS:
        for owners in ((A, B), ()):
            refused(server, {"k": kind}, kind, owners=owners)


@test("damage: a key of another type is MISFIT and left alone (H21)")
def _(server):
    for verb, *words in (["SET", "x"], ["RPUSH", "x"], ["SADD", "x"], ["ZADD", 1, "x"],
                         ["XADD", "1-1", "x", "y"]):
        for lock, call, what in each_on(server, verb):
            server.call(verb, lock.key, *words)
            dump = server.call("DUMP", lock.key)
            same(call()[:3], ["MISFIT", lock.now, "damaged"], what)
            same((server.call("DUMP", lock.key), lock.ttl()), (dump, -1), what)


@test("damage: no call runs for ever or for long, however long the queue claims to be (H21)")
def _(server):
    for text in ("4000000000", "9007199254740991"):
        for lock, call, what in each_on(server, text, A, B):
            lock.now += PLACE_TTL
            lock.set("q", f"1 {text} 0")
            true(isinstance(call(), list), what)  # Hung where it does not come back


@test("damage: a waiter that cannot be read lets no other in beside the holder (H21)")
def _(server):
    for text in WAITERS:
        for lock, call, what in each_on(server, text, A, B):
            lock.set("q:1", text)
            reply = call()
            true(reply[0] != "GRANTED" or ", holder " in what, f"{what}: {reply}")


@test("damage: a holder that cannot be read lets no other in beside it (H21)")
def _(server):
    for text in LINES:
        for mode in "xs":
            server.call("FLUSHALL")
            lock, _fence = held_by_a(server, B)
            lock.set("h:" + A, text)
            same(lock.acquire(B)[0], "QUEUED", text)
            same(lock.acquire(C, mode=mode, queue=False)[0], "HELD", text)
            lock.now += 30000
            for owner in (B, C):
                same(lock.acquire(owner, mode=mode)[:3], ["MISFIT", lock.now, "damaged"], text)
            same(lock.fields()["h:" + A], text, "the holder")


@test("damage: one reader that cannot be read lets no writer in (H21)")
def _(lock):
    for owner in (A, B, C):
        fence_of(lock.acquire(owner, mode="s"))
    lock.set("h:" + A, "x")
    lock.release(B)
    lock.release(C)
    # A lease later as well: when it ends cannot be read either.
    for _turn in range(2):
        same(lock.acquire(D)[0] in ("QUEUED", "MISFIT"), True, "a writer came in")
        lock.now += 30000


@test(
    "damage: a waiter whose place has become another's takes a new one, and leaves the rest "
    "(H21)"
)
def _(server):
    for text in ("q:77", "q:0", "q:%s:1" % A):
        server.call("FLUSHALL")
        lock, _fence = held_by_a(server, B)
        lock.set("w:" + B, text)
        same(lock.acquire(B).parts("places", "position"), ["q:2", 2], text)
        same(lock.acquire(B).parts("places", "position"), ["q:2", 2], text)


@test("damage: a waiter that cannot be read is not passed over by later ones, if it calls (H21)")
def _(server):
    for text in ("", "x", "1 2", "nan %s 1 x w" % B, "5 %s 1 z w" % B):
        for callers in ((B, C), (C, B)):
            server.call("FLUSHALL")
            lock, _fence = held_by_a(server, B, C)
            lock.set("q:1", text)
            for caller in callers:
                lock.acquire(caller, places="q:1" if caller == B else "q:2")
            lock.release(A)
            for caller in (C, B):
                lock.acquire(caller, places="q:1" if caller == B else "q:2")
            true("h:" + B in lock.fields(), f"q:1 was {text!r:.50}: the holder")
            lock.release(B)
            fence_of(lock.acquire(C, places="q:2"))
            left = [field for field in lock.fields() if field[:2] in ("q:", "w:")]
            same(left, [], f"q:1 was {text!r:.50}: left in the queue")


@test("damage: inspect reads what it can of a queue with odd fields (H21)")
def _(server):
    names = ("q:", "q:x", "q:007", "q:-1", "q:1e3", "q:" + "9" * 20, "q:" + "9" * 400, "z")
    for field in names:
        server.call("FLUSHALL")
        lock, fence = held_by_a(server, B)
        lock.set(field, "1700000030000 %s 1 x w" % D)
        reply = lock.inspect()
        same(reply[:6], ["LOCK", lock.now, str(fence), "x", 0, [holder(lock, A, fence)]], field)
        true(lock.fields()["q:1"] in reply[6], f"{field}: B is not shown")


# -- what a server may refuse ---------------------------------------------------------------------


@test("out of memory: a waiter with a place and a holder are served (H17)")
def _(server):
    lock, fence = held_by_a(server, B, C, D)
    with full(server):
        lock.now += 1000
        same(lock.renew(A), ["RENEWED", lock.now, [str(fence)], [0], 0])
        same(lock.acquire(A), ["GRANTED", lock.now, [str(fence)], [0]], "asked again")
        same(lock.acquire(B)[:5], ["QUEUED", lock.now, "q:1", 1, 0], "the heartbeat")
        same(lock.force(purge=True), ["RELEASED", lock.now], "emptying the queue")
        same(lock.acquire(B, places="q:1").parts("places", "position", "anew"),
             ["q:1", 1, 1], "queueing again")
        same(lock.acquire(C, places="q:2").parts("places", "position", "anew"),
             ["q:2", 2, 1], "queueing again")
        same(lock.release(C)[0], "ABSENT", "giving up")
        same(lock.release(A), ["RELEASED", lock.now])
        fence = fence_of(lock.acquire(B))
        same(lock.fields()["h:" + B], holder(lock, B, fence), "h")
        same(lock.force(B, purge=True), ["RELEASED", lock.now])
        same(lock.inspect(), ["LOCK", lock.now, str(fence), "", 0, [], []])
        same(lock.release(D, bar=60000), ["ABSENT", lock.now, *by(lock)])
    same(lock.acquire(D), ["BARRED", lock.now], "barred on a full server")


@test("out of memory: a release of what may have been acquired still bars that request (H17)")
def _(server, lock):
    with full(server):
        same(lock.release(A, bar=60000), ["ABSENT", lock.now, *by(lock)])
    same(lock.acquire(A), ["BARRED", lock.now])


@test("out of memory: a newcomer is refused and leaves nothing (H17)")
def _(server, lock):
    held = Lock(server, "held")
    fence_of(held.acquire(A))
    same(held.acquire(B)[0], "QUEUED")
    before = held.fields()
    with full(server):
        fails("OOM", lambda: lock.acquire(A))
        fails("OOM", lambda: held.acquire(C))
        same(held.acquire(C, queue=False)[0], "HELD", "that needs no memory")
    same(lock.ttl(), -2, "the key")
    same(held.fields(), before)


@test("out of memory: of several holders the oldest is told, and a newcomer leaves nothing (H17)")
def _(server, lock):
    for owner in (A, B, C):
        fence_of(lock.acquire(owner, mode="s"))
    lock.release(A)
    before = lock.fields()
    with full(server):
        same(lock.acquire(D, queue=False)[-1], lock.fields()["h:" + B])
        fails("OOM", lambda: lock.acquire(D))
    same(lock.fields(), before)
    same(lock.acquire(D, queue=False)[-1], lock.fields()["h:" + B])
    true(lock.fields() != before, "it is kept where there is room")


@test("rights: without channels, or without PUBLISH, all works, but no waiter is called (H20)",
      hosts=False)
def _(server, ear):
    for rights, woken in ((["allchannels"], [B, C]), (["resetchannels"], []),
                          (["allchannels", "-publish"], [])):
        server.call("FLUSHALL")
        server.call("ACL", "SETUSER", "u", "reset", "on", "nopass", "~rlock:*", "+@all", *rights)
        client = Client(server.path)
        client.call("AUTH", "u", "any")
        lock = Lock(server, now=None, client=client)
        fence_of(lock.acquire(A))
        lock.acquire(B)
        same(lock.release(A)[0], "RELEASED", f"{rights}")
        fence_of(lock.acquire(B))
        lock.acquire(C)
        same(lock.force(B)[0], "RELEASED", f"{rights}")
        same(lock.acquire(D)[0], "QUEUED", f"{rights}: it pokes C")
        same(lock.force(purge=True)[0], "RELEASED", f"{rights}")
        fence_of(lock.acquire(C))
        pokes = ear.heard()
        same(pokes[:2] if woken else pokes, woken, f"{rights}: pokes")
        client.close()


# A script that may not call a command has an error with "run", and keeps what it wrote before that:
# so the right has to be missed before the mirror "their" or the lock is written.
@test("rights: without HDEL no waiter is granted what it could not release (H156)",
      hosts=False)
def _(server, lock):
    rights = ("~*", "allchannels", "+@all", "-hdel")
    server.call("ACL", "SETUSER", "u", "reset", "on", "nopass", *rights)
    client = Client(server.path)
    client.call("AUTH", "u", "any")
    denied = Lock(server, now=None, client=client)
    lock.now = None
    fence_of(lock.acquire(A))
    same(denied.acquire(B, mirror="string:their")[0], "QUEUED")
    same(lock.release(A)[0], "RELEASED")
    fails("run", lambda: denied.acquire(B, mirror="string:their"))
    same((lock.inspect()[5], server.call("EXISTS", "their")), ([], 0))
    client.close()


@test("time to live: every script leaves one, never shorter than the lease")
def _(server):
    lease = 30 * DAY
    for uncertain in (0, 60000):
        server.call("FLUSHALL")
        lock = Lock(server)

        def left(what, least, most=WEEK + lease):
            ttl = lock.ttl()
            true(least - 60000 <= ttl <= most, f"{what}: {ttl} is not in {least} to {most}")

        lock.release(B, bar=uncertain)
        if uncertain:
            left("release", WEEK, WEEK)
        else:
            same(lock.ttl(), -2, "the key")
        lock.acquire(A, lease=1000)
        left("acquire", 1000 + WEEK)
        lock.renew(A, lease=lease)
        left("renew", lease + WEEK)
        for what, call in (
            ("inspect", lambda: lock.inspect()),
            ("force failed", lambda: lock.force(E)),
            ("a stranger's renewal", lambda: lock.renew(E, lease=1000)),
            ("one did not wait", lambda: lock.acquire(D, lease=1000, queue=False)),
        ):
            call()
            left(what, lease + 1)
        for what, call in (
            ("a waiter came", lambda: lock.acquire(C, lease=1000)),
            ("a waiter called", lambda: lock.acquire(C, lease=1000)),
            ("a waiter left", lambda: lock.release(C, bar=uncertain)),
            ("the queue was emptied", lambda: lock.force(purge=True)),
            ("asked again", lambda: lock.acquire(A, lease=lease)),
            ("renewed", lambda: lock.renew(A, lease=lease)),
        ):
            server.call("PEXPIRE", lock.key, 1000000)
            call()
            left(what, lease + 1)
        lock.acquire(A)
        server.call("PEXPIRE", lock.key, 1000000)
        lock.force(A)
        left("forced", WEEK)
        # The arguments of its acquisition are enough.
        lock.acquire(A)
        lock.release(A)
        left("release", WEEK)
        lock.acquire(A, lease=1000)
        server.call("PEXPIRE", lock.key, 1000000)
        lock.now += 2000
        lock.release(A)
        left("release after the lease's end", WEEK)


main()
