#!/usr/bin/env -S python3 -B
"""The cost of the scripts of src/rules/lua, by the server's own statistics: only ratios.
Prints TAP."""
import re
from script_server import PLACE_TTL, Lock
from script_tap import A, B, C, D, DAY, E, fence_of, main, same, test, true

ROUNDS = 11, 200  # at least, and where something is in the way
MANY = 1000
OWNERS = ["%036d" % number for number in range(MANY)]


def microseconds(server, words):
    """Of a call; and its reply."""
    server.call("CONFIG", "RESETSTAT")
    reply = server.call(*words)
    stats = server.call("INFO", "commandstats")
    return reply, float(re.search(r"cmdstat_evalsha:\S*usec_per_call=([\d.]+)", stats)[1])


def waited_for(lock, number):
    """A holds it, so many wait."""
    fence_of(lock.acquire(A, lease=DAY))
    return [lock.words("acquire", owner, DAY, place_ttl=DAY, who="w")
            for owner in OWNERS[:number]]


def read_by(lock, number):
    return [lock.acquire_words(owner, lease=DAY, mode="s") for owner in OWNERS[:number]]


def permitted(lock, number):
    """So many of ten times as many slots are taken."""
    return [
        lock.acquire_words(owner, lease=DAY, mode="l", limit=10 * MANY) for owner in OWNERS[:number]
    ]


def with_waiters(lock):
    """(what, words of the call, the first word of its answer)"""
    first, last = OWNERS[0], OWNERS[-1]
    yield "a newcomer that waits", lock.acquire_words(B), "QUEUED"
    yield "its heartbeat", lock.acquire_words(B), "QUEUED"
    yield "a newcomer that does not wait", lock.acquire_words(C, queue=False), "HELD"
    yield "a reader that waits", lock.acquire_words(D, mode="s"), "QUEUED"
    yield "the first's heartbeat", lock.acquire_words(first), "QUEUED"
    yield "a nested one", lock.acquire_words(A + ".1"), "GRANTED"
    yield "its release", lock.words("release", A + ".1", 0, 0), "RELEASED"
    yield "renewal", lock.words("renew", A, DAY), "RENEWED"
    yield "asking again", lock.acquire_words(A, lease=DAY), "GRANTED"
    yield "a waiter leaves", lock.words("release", B, 0, 0), "ABSENT"
    yield "release", lock.words("release", A, 0, 0), "RELEASED"
    yield "grant to the first", lock.acquire_words(first, lease=DAY), "GRANTED"
    yield "uncertain release", lock.words("release", first, 60000, 0), "RELEASED"
    yield "the last gives up", lock.words("release", last, 0, 0), "ABSENT"


def with_readers(lock):
    yield "one more reader", lock.acquire_words(A, mode="s", lease=DAY), "GRANTED"
    yield "renewal", lock.words("renew", A, DAY), "RENEWED"
    yield "asking again", lock.acquire_words(A, mode="s", lease=DAY), "GRANTED"
    yield "a nested one", lock.acquire_words(A + ".1", mode="s"), "GRANTED"
    yield "a writer that does not wait", lock.acquire_words(B, queue=False), "HELD"
    yield "a writer that waits", lock.acquire_words(B), "QUEUED"
    yield "its heartbeat", lock.acquire_words(B), "QUEUED"
    yield "a reader behind it", lock.acquire_words(C, mode="s"), "QUEUED"
    yield "release", lock.words("release", A, 0, 0), "RELEASED"
    yield "the writer gives up", lock.words("release", B, 0, 0), "ABSENT"
    yield "the reader comes", lock.acquire_words(C, mode="s"), "GRANTED"


def with_permits(lock):
    options = {"mode": "l", "limit": 10 * MANY, "lease": DAY}
    yield "one more", lock.acquire_words(A, **options), "GRANTED"
    yield "renewal", lock.words("renew", A, DAY), "RENEWED"
    yield "a nested one", lock.acquire_words(A + ".1", **options), "GRANTED"
    yield "another limit", lock.acquire_words(B, mode="l", limit=3), "MISFIT"
    yield "its release", lock.words("release", A + ".1", 0, 0), "RELEASED"
    yield "release", lock.words("release", A, 0, 0), "RELEASED"
    yield "the lowest released", lock.words("release", OWNERS[0], 0, 0), "RELEASED"
    yield "and taken", lock.acquire_words(E, **options), "GRANTED"


def compare(server, prepare, calls):
    """The least of several rounds, on the server's own clock: whatever else the machine does only
    adds to it. Both hashes are of the same kind, so that it is their size alone that differs."""
    cost = {}
    server.call("CONFIG", "SET", "hash-max-listpack-entries", 0)
    for turn in range(ROUNDS[1]):
        if turn >= ROUNDS[0] and all(
            min(spent[MANY]) <= 2 * min(spent[1]) for spent in cost.values()
        ):
            break
        server.call("FLUSHALL")
        for number in (1, MANY):
            lock = Lock(server, str(number), now=None)
            server.pipeline(prepare(lock, number))
            # The hash has just grown; and the server collects garbage every 50th call, not always
            # in the same.
            server.pipeline([lock.words("release", "nobody", 0, 0)] * (20 + 11 * (turn % 11)))
            for what, words, word in calls(lock):
                reply, spent = microseconds(server, words)
                same(reply[0], word, f"{what}, with {number}")
                cost.setdefault(what, {1: [], MANY: []})[number].append(spent)
    for what, spent in cost.items():
        few, many = min(spent[1]), min(spent[MANY])
        print(f"# {what}: {many / few:.2f} times")
        true(many <= 2 * few, f"{what}: {few} us with one, {many} us with {MANY}")


@test("cost: acquire, renew and release with a thousand waiters, at most twice that with one")
def _(server):
    compare(server, waited_for, with_waiters)


@test("cost: acquire, renew and release with a thousand readers, at most twice that with one")
def _(server):
    compare(server, read_by, with_readers)


@test("cost: acquire, renew and release with a thousand permits taken, at most twice that with one")
def _(server):
    compare(server, permitted, with_permits)


@test("cost: a look at a lock without waiters does not read all that is remembered")
def _(server, lock):
    for held in (False, True):
        if held:
            fence_of(lock.acquire(A))
        server.call("CONFIG", "RESETSTAT")
        same(len(lock.inspect()[5]), int(held), "holders")
        true("cmdstat_hgetall" not in server.call("INFO", "commandstats"), "all fields were read")
        true(server.commands_run() <= 5, f"{server.commands_run()} commands")
        lock.release(A)


@test("cost: the dead are passed over once, not by every call")
def _(server):
    for what, waits in (("none lives", False), ("one lives", True)):
        server.call("FLUSHALL")
        lock = Lock(server)
        fence_of(lock.acquire(A, lease=DAY))
        server.pipeline([lock.acquire_words(owner, lease=DAY) for owner in OWNERS])
        lock.now += PLACE_TTL - 1
        if waits:
            lock.acquire(B)
        lock.now += 1
        lock.acquire(C, queue=False)
        server.call("CONFIG", "RESETSTAT")
        same(lock.acquire(C, queue=False)[2], int(waits), f"{what}: how many are ahead")
        runs = server.commands_run()
        true(runs < 10, f"{what}: {runs} commands after the dead were gone")
        same(lock.fields().get("w:" + OWNERS[999]), None, "one of the dead")


@test("cost: a thousand readers that renew are looked at now and then, not by every call")
def _(server, lock):
    server.pipeline([lock.acquire_words(owner, mode="s") for owner in OWNERS])
    scans = 0
    for _second in range(60):
        lock.now += 1000
        server.pipeline([lock.words("renew", owner, 30000) for owner in OWNERS[_second % 10 :: 10]])
        server.call("CONFIG", "RESETSTAT")
        same(lock.acquire(A)[0], "QUEUED")
        scans += "cmdstat_hgetall" in server.call("INFO", "commandstats")
    true(1 <= scans <= 4, f"{scans} scans in a minute")


main()
