#!/usr/bin/env -S python3 -B
"""The scripts of src/lua on what is no lock, on servers that refuse; what they cost. Prints TAP."""
from script_server import PATIENCE, WEEK, Client, Lock, ReplyError
from script_tap import A, B, C, D, DAY, E, fence_of, held_by_a, holder, main, same, test, true

# -- what is no lock, or a damaged one ------------------------------------------------------------


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


def refused(server, lock, changes, want, only="", free=False):
    """Every call on a lock with these fields (None: deleted) is MISFIT and changes nothing."""
    for name, call in each_call(lock):
        if not name.startswith(only):
            continue
        server.call("FLUSHALL")
        if not free:
            lock.acquire(A)
            lock.acquire(B)
        for field, value in changes.items():
            server.call("HDEL", lock.key, field) if value is None else lock.set(field, value)
        server.call("PEXPIRE", lock.key, 1000000)
        before = lock.fields()
        try:
            same(call(), ["MISFIT", lock.now, want], f"{changes!r:.100}, {name}")
        except ReplyError as error:
            raise AssertionError(f"{changes!r:.100}, {name}: {error}")
        same(lock.fields(), before, f"{changes!r:.100} after {name}")
        true(lock.ttl() <= 1000000, f"{changes!r:.100}: {name} extended its time to live")


NUMBERS = ("", "x", " 1", "-1", "1.5", "1e3", "0x10", "nan", "inf", "-inf", str(2**53), "9" * 400)
HOLDERS = ("", "x", "1 2 3", "x 30000 5 %s 1 w" % D, "1700000030000 x 5 %s 1 w" % D,
           "1700000030000 30000 x %s 1 w" % D, "1700000030000 30000 5", "-1 30000 5 %s 1 w" % D,
           "nan 30000 5 %s 1 w" % D, "%s %s 5 %s 1 w" % ("9" * 400, "9" * 400, D),
           "1700000030000 30000 %s %s 1 w" % ("9" * 400, D))


@test("damage: a holder that cannot be read is MISFIT to everyone, and stays (H21)")
def _(server):
    for text in HOLDERS:
        refused(server, Lock(server), {"h": text}, "damaged")


@test("damage: a last token that is no number is MISFIT to everyone, held or free (H21)")
def _(server):
    for text in NUMBERS:
        refused(server, Lock(server), {"f": text}, "damaged")
        refused(server, Lock(server), {"f": text, "h": None}, "damaged")


@test("damage: a queue whose ends make no sense is MISFIT to everyone (H21)")
def _(server):
    for field in ("qh", "qt"):
        for text in NUMBERS:
            refused(server, Lock(server), {field: text}, "damaged")
    refused(server, Lock(server), {"qh": "0"}, "damaged")
    refused(server, Lock(server), {"qh": "5"}, "damaged")


@test("damage: a ticket that makes no sense is MISFIT to its owner (H21)")
def _(server):
    for text in NUMBERS + ("0", "77"):
        refused(server, Lock(server), {"w:" + B: text}, "damaged", only="waiter")


@test("damage: owners barred in no readable way are MISFIT (H21)")
def _(server):
    for text in ("x", "=", "=1;", A, A + "=", A + "=;", A + "=1;x", A + "=nan;"):
        refused(server, Lock(server), {"t": text}, "damaged")


@test("damage: no call runs for ever or for long, however long the queue claims to be (H21)")
def _(server):
    for text in ("4000000000", "9007199254740991"):
        for name, call in each_call(Lock(server)):
            server.call("FLUSHALL")
            lock = Lock(server)
            lock.acquire(A)
            lock.acquire(B)
            lock.now += PATIENCE
            lock.set("qt", text)
            call_in = dict(each_call(lock))[name]
            reply = call_in()  # Hung where it does not come back
            true(isinstance(reply, list), f"{name}: {reply}")


@test("damage: a waiter that cannot be read lets nobody in beside the holder (H21)")
def _(server):
    for text in ("", "x", "1 2", "nan %s 1 w" % B, "-1 %s 1 w" % B, "%s %s 1 w" % ("9" * 400, B)):
        for name, call in each_call(Lock(server)):
            server.call("FLUSHALL")
            lock = Lock(server)
            lock.acquire(A)
            lock.acquire(B)
            lock.set("q:1", text)
            what = f"q:1 is {text!r:.50}, {name}"
            try:
                reply = dict(each_call(lock))[name]()
            except ReplyError as error:
                raise AssertionError(f"{what}: {error}")
            true(reply[0] != "GRANTED" or name.startswith("holder"), f"{what}: {reply}")


@test("damage: a waiter that cannot be read is not passed over by later ones, if it calls (H21)")
def _(server):
    for text in ("", "x", "1 2", "nan %s 1 w" % B):
        for callers in ((B, C), (C, B)):
            server.call("FLUSHALL")
            lock, _fence = held_by_a(server, B, C)
            lock.set("q:1", text)
            for caller in callers:
                lock.acquire(caller, ticket=1 if caller == B else 2)
            lock.release(A)
            for caller in (C, B):
                lock.acquire(caller, ticket=1 if caller == B else 2)
            same(lock.fields()["h"].split()[3], B, f"q:1 was {text!r:.50}: the holder")
            lock.release(B)
            fence_of(lock.acquire(C, ticket=2))
            left = [field for field in lock.fields() if field[:2] in ("q:", "w:")]
            same(left, [], f"q:1 was {text!r:.50}: left in the queue")


@test("damage: inspect reads what it can of a queue with odd fields (H21)")
def _(server):
    names = ("q:", "q:x", "q:007", "q:-1", "q:1e3", "q:" + "9" * 20, "q:" + "9" * 400, "z")
    for field in names:
        server.call("FLUSHALL")
        lock, fence = held_by_a(server, B)
        lock.set(field, "1700000030000 %s 1 w" % D)
        try:
            reply = lock.inspect()
        except ReplyError as error:
            raise AssertionError(f"{field}: {error}")
        same(reply[:4], ["LOCK", lock.now, str(fence), [holder(lock, A, fence)]], field)
        true(lock.fields()["q:1"] in reply[4], f"{field}: B is not shown")


@test("damage: a lock of another kind or layout is MISFIT, by its name (H22)")
def _(server):
    for kind in ("latch/1", "lock/2", "lock/10", "lock", "", "sem"):
        refused(server, Lock(server), {"k": kind}, kind)
        refused(server, Lock(server), {"k": kind}, kind, free=True)


@test("damage: a hash that is no lock is MISFIT and left alone (H21)")
def _(server):
    refused(server, Lock(server), {"user": "bob"}, "damaged", free=True)
    refused(server, Lock(server), {"k": None}, "damaged")


@test("damage: a key of another type is an error of its own and left alone (H21)")
def _(server):
    lock = Lock(server)
    for words in (["SET", lock.key, "x"], ["RPUSH", lock.key, "x"], ["SADD", lock.key, "x"],
                  ["ZADD", lock.key, 1, "x"], ["XADD", lock.key, "1-1", "x", "y"]):
        for name, call in each_call(lock):
            server.call("FLUSHALL")
            server.call(*words)
            dump = server.call("DUMP", lock.key)
            try:
                raise AssertionError(f"{words[0]}, {name}: {call()}")
            except ReplyError as error:
                true("WRONGTYPE" in str(error), f"{words[0]}, {name}: {error}")
            after = server.call("DUMP", lock.key), lock.ttl()
            same(after, (dump, -1), f"{words[0]} after {name}")


# -- what a server may refuse ---------------------------------------------------------------------


def full(server, on):
    server.call("CONFIG", "SET", "maxmemory", 1 if on else 0)


@test("out of memory: who is in already is served (H17)")
def _(server):
    lock, fence = held_by_a(server, B, C, D)
    try:
        full(server, True)
        lock.now += 1000
        same(lock.renew(A), ["RENEWED", lock.now, str(fence), 0])
        same(lock.acquire(A), ["GRANTED", lock.now, str(fence)], "asked again")
        same(lock.acquire(B)[:5], ["QUEUED", lock.now, 1, 1, 0], "the heartbeat")
        same(lock.force(purge=True), ["RELEASED", lock.now], "emptying the queue")
        same(lock.acquire(B, ticket=1)[:5], ["QUEUED", lock.now, 1, 1, 1], "queueing again")
        same(lock.acquire(C, ticket=2)[:5], ["QUEUED", lock.now, 2, 2, 1], "queueing again")
        same(lock.release(C)[0], "ABSENT", "giving up")
        same(lock.release(A), ["RELEASED", lock.now])
        fence = fence_of(lock.acquire(B))
        same(lock.fields()["h"], holder(lock, B, fence), "h")
        same(lock.force(B, purge=True), ["RELEASED", lock.now])
        same(lock.inspect(), ["LOCK", lock.now, str(fence), [], []])
        same(lock.release(D, bar=60000), ["ABSENT", lock.now, ""])
    finally:
        full(server, False)
    same(lock.acquire(D), ["BARRED", lock.now], "barred on a full server")


@test("out of memory: an uncertain release of a lock that is not there leaves its word (H17)")
def _(server):
    lock = Lock(server)
    try:
        full(server, True)
        same(lock.release(A, bar=60000), ["ABSENT", lock.now, ""])
    finally:
        full(server, False)
    same(lock.acquire(A), ["BARRED", lock.now])


@test("out of memory: a newcomer is refused and leaves nothing (H17)")
def _(server):
    lock = Lock(server)
    held, _fence = held_by_a(server, B, name="held")
    before = held.fields()
    try:
        full(server, True)
        for what, call in (("free", lambda: lock.acquire(A)), ("held", lambda: held.acquire(C))):
            try:
                raise AssertionError(f"{what}: {call()}")
            except ReplyError as error:
                true("OOM" in str(error), f"{what}: {error}")
        same(held.acquire(C, queue=False)[0], "HELD", "that needs no memory")
    finally:
        full(server, False)
    same(lock.ttl(), -2, "the key")
    same(held.fields(), before)


@test("rights: without any channel, or without PUBLISH, everything works but the poke (H20)")
def _(server):
    ear = server.listen()
    for rights, woken in (
        (["allchannels"], [B, C]),
        (["resetchannels"], []),
        (["allchannels", "-publish"], []),
    ):
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
    ear.close()


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
        for what, call in (("forced", lambda: lock.force(A)), ("release", lambda: lock.release(A))):
            lock.acquire(A)
            server.call("PEXPIRE", lock.key, 1000000)
            call()
            left(what, WEEK)


# -- what it costs --------------------------------------------------------------------------------


def costs(server, waiters):
    """How many commands each call runs with so many waiters, on scripts as they are."""
    server.call("FLUSHALL")
    lock = Lock(server, now=None)
    owners = ["%036d" % number for number in range(waiters)]
    fence_of(lock.acquire(A, lease=DAY))
    server.pipeline([lock.words("acquire", owner, DAY, DAY, 0, 0, 1, "w") for owner in owners])
    cost = {}
    for what, call in (
        ("a newcomer", lambda: lock.acquire(B)),
        ("a newcomer that does not wait", lambda: lock.acquire(C, queue=False)),
        ("the first's heartbeat", lambda: lock.acquire(owners[0])),
        ("the last's heartbeat", lambda: lock.acquire(B)),
        ("renewal", lambda: lock.renew(A, lease=DAY)),
        ("asking again", lambda: lock.acquire(A)),
        ("a waiter leaves", lambda: lock.release(B)),
        ("release", lambda: lock.release(A)),
        ("grant to the first", lambda: fence_of(lock.acquire(owners[0]))),
        ("uncertain release", lambda: lock.release(owners[0], bar=60000)),
    ):
        server.call("CONFIG", "RESETSTAT")
        call()
        cost[what] = server.commands_run()
    return cost


@test("cost: a thousand waiters cost at most twice what one costs")
def _(server):
    few, many = costs(server, 1), costs(server, 1000)
    for what in few:
        told = f"{what}: {few[what]} commands with 1, {many[what]} with 1000"
        true(0 < many[what] <= 2 * few[what], told)


@test("cost: the dead are passed over once, not by every call")
def _(server):
    owners = ["%036d" % number for number in range(1000)]
    for what, waits in (("nobody lives", False), ("one lives", True)):
        server.call("FLUSHALL")
        lock = Lock(server)
        fence_of(lock.acquire(A, lease=DAY))
        words = [lock.words("acquire", owner, DAY, PATIENCE, 0, 0, 1, "w") for owner in owners]
        server.pipeline(words)
        lock.now += PATIENCE - 1
        if waits:
            lock.acquire(B)
        lock.now += 1
        lock.acquire(C, queue=False)
        server.call("CONFIG", "RESETSTAT")
        same(lock.acquire(C, queue=False)[2], int(waits), f"{what}: how many are ahead")
        runs = server.commands_run()
        true(runs < 10, f"{what}: {runs} commands after the dead were gone")
        same(lock.fields().get("w:" + owners[999]), None, "one of the dead")


if __name__ == "__main__":
    main()
