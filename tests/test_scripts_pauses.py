#!/usr/bin/env -S python3 -B
"""The scripts of src/rules/lua: pauses of GLOBs, which hold for locks that are there and for
those that are yet to come. Prints TAP."""
import random
from script_server import PAUSES, WEEK, Lock
from script_tap import A, B, C, GIVEN, WHO, main, same, test, true

HOUR = 3600000


class Pausable(Lock):
    def pauses(self, **arguments):
        """pauses.lua is not about a lock."""
        return self.run("pauses", keys=[PAUSES], **arguments)

    def of_globs(self, what, glob, **more):
        return self.pauses(what=what, glob="rlock:{%s}" % glob, **more)

    def pause_glob(self, glob, ms=HOUR, mark=True):
        reply = self.of_globs("pause", glob, ms=ms, who=f"{WHO} glob={glob}")
        same(reply, ["ADJUSTED", self.now])
        if mark:
            self.mark()

    def resume_glob(self, glob):
        reply = self.of_globs("resume", glob)
        self.mark()
        return reply[0]

    def mark(self):
        return self.run("adjust", "globs", pauses=PAUSES)[0]

    def pause(self, ms=HOUR):
        same(self.run("adjust", "pause", pauses=PAUSES, ms=ms, who=WHO), ["ADJUSTED", self.now])

    def resume(self):
        return self.run("adjust", "resume", pauses=PAUSES)[0]

    def opens(self):
        """In how many ms somebody is let in; None: at once."""
        reply = self.acquire(B, queue=False)
        if reply[0] == "GRANTED":
            self.release(B)
            return None
        same(reply[0], "CLOSED")
        return reply.opens_in


GIVEN["lock"] = Pausable


def pause_told(lock):
    """The pause that inspect tells of; None if it tells of none."""
    reply = lock.run("inspect", pauses=PAUSES)
    return reply[12] if len(reply) > 12 else None


def paused_for(lock):
    """The ms since the first of the pauses that inspect knows of began."""
    return lock.run("inspect", pauses=PAUSES)[13]


@test("pauses: of several, the one that began first is known, whichever ends last")
def _(server, lock):
    lock.pause_glob("k*")
    lock.now += 20
    lock.pause(2 * HOUR)
    lock.now += 1
    same(paused_for(lock), 21)
    lock.resume_glob("k*")
    same(paused_for(lock), 1)
    lock.pause_glob("k*", 3 * HOUR)
    lock.now += 5
    same(paused_for(lock), 6)
    lock.resume()
    same(paused_for(lock), 5)


@test("pauses: a try for a new KEY leaves nothing there; a waiter's key is marked as paused")
def _(server, lock):
    lock.pause_glob("k*")
    reply = lock.acquire(A, queue=False)
    text = f"{lock.now + HOUR} pause {lock.now} x {WHO} glob=k*"
    same(reply, ["CLOSED", lock.now, HOUR, "", 0, 0, 1, text])
    same(server.call("EXISTS", lock.key), 0)
    same(pause_told(lock), text)
    same(lock.acquire(A)[0], "CLOSED")
    same(lock.fields()["p"], text)
    true(lock.ttl() > HOUR, "the key goes before the pause")
    same(pause_told(lock), text)
    same(lock.acquire(B).position, 2, "place")
    lock.now += HOUR + 1
    same(lock.acquire(A)[0], "GRANTED")


@test("pauses: a KEY that was never acquired is refused as a new one, with a limit or waiters, too")
def _(server):
    for prepare in (lambda lock: lock.run("adjust", "limit", limit=3),
                    lambda lock: lock.release(C, bar=60000),
                    lambda lock: lock.acquire(C, queue_only=True)):
        lock = Pausable(server)
        prepare(lock)
        true("f" not in lock.fields(), lock.fields())
        lock.pause_glob("k*", mark=False)
        mode = {"mode": "l"} if "l" in lock.fields() else {}
        same(lock.acquire(A, queue=False, **mode)[0], "CLOSED")
        server.call("FLUSHALL")


@test("pauses: a pause marks no lock that is not there, and no key that is not a lock")
def _(server, lock):
    lock.pause_glob("k*", mark=False)
    same(lock.mark(), "NONE")
    same(server.call("EXISTS", lock.key), 0)
    server.call("HSET", lock.key, "k", "latch/1")
    same(lock.mark(), "MISFIT")
    same(lock.fields(), {"k": "latch/1"})


@test(
    "pauses: of a KEY and of a GLOB, the one that ends last counts; each is resumed by its own "
    "name"
)
def _(server, lock):
    lock.acquire(A)
    lock.release(A)
    lock.pause(2 * HOUR)
    lock.pause_glob("k*", HOUR)
    lock.pause_glob("*", 3 * HOUR)
    same(lock.opens(), 3 * HOUR)
    true("po" in lock.fields(), "its own is forgotten")
    same(lock.resume_glob("*"), "ADJUSTED")
    same(lock.opens(), 2 * HOUR)
    true("po" not in lock.fields(), "its own is told twice")
    same(lock.resume(), "ADJUSTED")
    same(lock.opens(), HOUR)
    same(lock.resume(), "NONE", "it is that of a GLOB")
    lock.pause_glob("k*", 4 * HOUR)
    same(lock.opens(), 4 * HOUR)
    same(lock.resume_glob("*"), "NONE")
    same(lock.resume_glob("k*"), "ADJUSTED")
    same(lock.opens(), None)
    same([name for name in lock.fields() if name[0] == "p"], [])
    same(server.call("EXISTS", PAUSES), 0)


@test("pauses: where the longer pause of a GLOB is ended, the shorter one of the KEY still counts")
def _(lock):
    lock.pause_glob("*", 3 * HOUR)
    lock.pause(HOUR)
    same(lock.opens(), 3 * HOUR)
    lock.now += HOUR // 2
    same(lock.resume_glob("*"), "ADJUSTED")
    same(lock.opens(), HOUR // 2)
    lock.now += HOUR
    lock.pause_glob("*")
    same(lock.resume_glob("*"), "ADJUSTED")
    same(lock.opens(), None, "it was over")


@test("pauses: words that look like a note of a GLOB are the reason of a pause")
def _(lock):
    text = f"{lock.now + HOUR} pause {lock.now} x host user 1 cmd glob=k*"
    who = "host user 1 cmd glob=k*"
    same(lock.run("adjust", "pause", pauses=PAUSES, ms=HOUR, who=who)[0], "ADJUSTED")
    same(lock.fields()["p"], text)
    same(lock.mark(), "NONE")
    same(lock.resume(), "ADJUSTED")


@test("pauses: pauses that are over are deleted with the next one, and their key outlives them")
def _(server, lock):
    lock.pause_glob("a*", HOUR)
    lock.pause_glob("b*", 9 * HOUR)
    lock.pause_glob("c*", 2 * HOUR)
    ttl = server.call("PTTL", PAUSES)
    true(9 * HOUR < ttl <= 9 * HOUR + WEEK, ttl)
    lock.now += 3 * HOUR
    same(lock.of_globs("resume", "rlock:{a*}"), ["NONE", lock.now])
    lock.pause_glob("d*")
    lines = server.call("HGET", PAUSES, "p").split("\n")
    same([line.split(" ")[0] for line in lines], ["rlock:{b*}", "rlock:{d*}"])


@test("pauses: a resume calls the waiters, unless another pause lasts or a holder is there")
def _(lock, ear):
    lock.pause_glob("k*")
    same(lock.acquire(A)[0], "CLOSED")
    lock.pause_glob("*", 2 * HOUR)
    ear.messages()
    lock.resume_glob("*")
    same(ear.heard(), [])
    lock.resume_glob("k*")
    same(ear.heard(), [A])
    same(lock.acquire(A)[0], "GRANTED")


@test("pauses: of several keys one that is new keeps out; of any, it is passed over")
def _(server):
    lock = Pausable(server, "old", "new")
    lock.pause_glob("n*")
    reply = lock.acquire(A, queue=False)
    same([reply[0], reply.which], ["CLOSED", 2])
    reply = lock.acquire(A, queue=False, who=WHO, take="1/2")  # one of the two
    same([fence != "0" for fence in reply.fences], [True, False])


@test("pauses: where another type of key has their name, locks are granted, and a pause is refused")
def _(server, lock):
    server.call("SET", PAUSES, "x")
    same(lock.acquire(A)[0], "GRANTED")
    same(pause_told(lock), None)
    same(lock.of_globs("pause", "k*", ms=HOUR, who=WHO), ["MISFIT", lock.now, "damaged", 1])
    same(server.call("GET", PAUSES), "x")


def random_glob(chance):
    parts = ["*", "?", "a", "b", "-", "]", "^", ".", "%", "é", "\\", "\\*", "\\[", "[", "[a-c]",
             "[^a]", "[]", "[^]", "[b-a%]", "[\\]a]", "[a-]", "**", "$", "w", "[!-~]", "[é]"]
    return "".join(chance.choice(parts) for _ in range(chance.randint(1, 5)))


def random_key(chance):
    return "".join(chance.choice("aabbc-]^.%é*[\\w$1") for _ in range(chance.randint(1, 5)))


@test("pauses: a GLOB fits what the server's own MATCH does")
def _(server):
    chance, fits = random.Random(14), 0
    for _round in range(60):
        server.call("FLUSHALL")
        names = sorted({random_key(chance) for _ in range(40)})
        locks = [Pausable(server, name) for name in names]
        glob = random_glob(chance)
        locks[0].pause_glob(glob, mark=False)
        closed = {lock.key for lock in locks if lock.acquire(A, queue=False)[0] == "CLOSED"}
        for lock in locks:
            server.call("SET", lock.key, "x")
        match = server.call("SCAN", 0, "MATCH", "rlock:{%s}" % glob, "COUNT", 1000)[1]
        same(closed, set(match), f"of {glob}")
        fits += len(closed)
    true(fits > 100, f"only {fits} fit")


@test("pauses: many stars in a GLOB cost no more than a few")
def _(server):
    lock = Pausable(server, "a" * 500)
    lock.pause_glob("*a" * 250 + "b*", mark=False)
    same(lock.acquire(A, queue=False)[0], "GRANTED")


def set_minimum(lock, version, *marked):
    same(lock.pauses(what="minimum", version=version), ["ADJUSTED", lock.now])
    for each in marked:
        each.mark()


def refusal(lock, version, **more):
    """Why B is refused. None: it was granted the lock, or queued, and has left it."""
    reply = lock.acquire(B, version=version, **more)
    if reply[0] == "MISFIT":
        return reply.what
    lock.release(B)
    return None


@test("minimum version: versions are compared as numbers; a caller without one is the oldest")
def _(server, lock):
    for minimum, version, fits in (
        ("1.10.0", "1.9.9", False), ("1.9.9", "1.10.0", True), ("1.0.0", "1.0.0", True),
        ("2.0.0", "1.99999.99999", False), ("1.0.1", "1.0.0", False), ("1.0.0", "2.0.0-rc1", True),
        ("0.0.1", None, False), ("1.0.0", "x", False),
    ):
        server.call("FLUSHALL")
        set_minimum(lock, minimum)
        wanted = None if fits else f"minimum {minimum}"
        same(refusal(lock, version), wanted, f"{version}, new, of {minimum}")
        same(server.call("EXISTS", lock.key), int(fits))
        same(refusal(lock, version, queue=False), wanted, f"{version}, again, of {minimum}")


@test("minimum version: locks that are there are marked, new ones take it over, all writes keep it")
def _(server):
    old, free, new, other = (Pausable(server, name) for name in ("old", "free", "new", "other"))
    old.acquire(A, version="1.0.0")
    free.acquire(A, version="1.0.0")
    free.release(A)
    set_minimum(old, "1.2.0", old, free, new)
    same(server.call("EXISTS", new.key), 0, "a lock that is not there is not made")
    # A holder continues; the next one has to be new enough, as well as a waiter.
    same(old.renew(A)[0], "RENEWED")
    same([refusal(lock, "1.1.9") for lock in (old, free, new)], ["minimum 1.2.0"] * 3)
    same(old.acquire(B, version="1.2.0", offer="t" * 22)[0], "QUEUED")
    old.release(A)
    same(old.acquire(B, version="1.2.0")[0], "GRANTED")
    old.release(B)
    free.run("adjust", "limit", limit=3)
    free.pause()
    free.resume()
    same(new.acquire(A, version="1.2.0", who=WHO)[0], "GRANTED")
    same(new.acquire(B, version="1.2.0", latest="")[0], "QUEUED")
    same([lock.fields()["k"] for lock in (old, free, new)], ["lock/1 1.2.0"] * 3)
    # Another lock of several, one by one and together.
    both = Lock(server, "other", "old")
    same(both.acquire(C, version="1.1.9")[2:], ["minimum 1.2.0", 1])
    # Pauses and the version share a hash, and neither ends the other.
    old.pause_glob("o*")
    old.resume_glob("o*")
    true(server.call("PTTL", PAUSES) > 1000 * WEEK, "the version stays")
    same(refusal(other, "1.1.9"), "minimum 1.2.0")
    set_minimum(old, "0.0.0", old, free, new)
    same([refusal(lock, "1.1.9") for lock in (old, other)], [None] * 2)
    same([lock.fields()["k"] for lock in (old, free, new, other)], ["lock/1"] * 4)
    old.set("k", "lock/1 x")
    same(refusal(old, "9.0.0"), "lock/1 x")


main()
