#!/usr/bin/env -S python3 -B
"""A holder that is asked to give a lock back. Prints TAP."""
from script_server import Lock
from script_tap import A, B, C, D, E, GIVEN, fence_of, main, same, test, true

WHO = "h u 9 c - hears=1"
NOTES = "by=root@ops why=hot%20fix"


def held(server, who=WHO, name="k", **options):
    lock = Lock(server, name)
    fence_of(lock.acquire(A, who=who, **options))
    return lock


GIVEN["lock"] = held


def line(lock, owner=A):
    return lock.fields()["h:" + owner]


def asked(lock, since, left, owner=A):
    """The answer to it, and to another that asks again."""
    true(line(lock, owner).endswith(f" {WHO} asked={since} {NOTES}"), line(lock, owner))
    return ["ASKED", lock.now, 1, 1, left, line(lock, owner)]


@test("ask: a holder that listens is asked once, and keeps the lock, but is not renewed (H45)")
def _(server, lock):
    ear, since = server.listen(), lock.now
    same(lock.force(A, how="ask", notes=NOTES), asked(lock, since, 30000))
    same(ear.heard(), [A])
    lock.now += 1000
    before = lock.fields()
    same(lock.force(A, how="again", notes="by=else"), asked(lock, since, 29000), "the first counts")
    same(lock.renew(A), asked(lock, since, 29000))
    same(lock.renew(A, 60000), asked(lock, since, 29000))
    same(lock.fields(), before)
    same(ear.heard(), [], "told once")
    same(lock.acquire(B)[0], "QUEUED")
    ear.heard()
    same(lock.release(A, notes="lost=1 ran=5 exit=0"), ["RELEASED", lock.now])
    same(ear.heard(), [B], "the next is woken now")
    same(lock.force(A, how="again"), ["RELEASED", lock.now])
    counters, runs = lock.memory()
    same(counters["revoked"], 1)
    true(runs[0].endswith(f" asked={since} {NOTES} revoked=1 ran=5 exit=0"), runs[0])


@test("ask: a holder that does not answer loses the lock at the end of the lease that it had")
def _(server, lock):
    lock.force(A, how="ask", notes=NOTES)
    lock.now += 29999
    same(lock.force(A, how="again")[0], "ASKED")
    lock.now += 1
    same(lock.force(A, how="again"), ["RELEASED", lock.now])
    same(lock.memory()[0]["revoked"], 1)
    lock = held(server)
    lock.force(A, how="ask", notes=NOTES)
    lock.now += 30000
    same(lock.acquire(B)[0], "GRANTED", "whoever comes first finds it")
    true(lock.memory()[1][0].endswith(f"{NOTES} revoked=1"), lock.memory())


@test(
    "ask: the lock is taken at once with --now, and from a holder that cannot be asked or is "
    "late"
)
def _(server):
    for who in ("h u 9 c -", "h u 9 c - reserved=1", ""):
        lock = held(server, who)
        same(lock.force(A, how="ask", notes=NOTES), ["RELEASED", lock.now])
    lock = held(server)
    lock.release(A, at_least=60000, notes="ran=5 exit=0")
    same(lock.force(A, how="ask", notes=NOTES), ["RELEASED", lock.now], "kept")
    for how in ("over", "now"):
        lock = held(server)
        lock.force(A, how="ask", notes="by=first")
        ear = server.listen()
        same(lock.force(A, how=how, notes=NOTES), ["RELEASED", lock.now])
        same(ear.heard(), [A], "it may find out")


@test("ask: an acquisition that is sent again after the holder was asked changes nothing")
def _(server, lock):
    lock.force(A, how="ask", notes=NOTES)
    lock.acquire(B)
    ear = server.listen()
    lock.now += 29000
    lock.acquire(B)
    since, before = lock.now - 29000, lock.fields()
    same(lock.acquire(A, who=WHO), asked(lock, since, 1000))
    same((lock.fields(), ear.heard()), (before, []))
    lock.release(A)
    same(ear.heard(), [B], "the next is woken")
    same(lock.force(A, how="again"), ["RELEASED", lock.now])
    lock = held(server, name="alone")
    lock.force(A, how="ask", notes=NOTES)
    lock.now += 29000
    lock.release(A)
    fence_of(lock.acquire(A, who=WHO))
    true(" asked=" not in line(lock), "acquired anew")
    lock.now += 2000
    same(lock.force(A, how="over", notes=NOTES), asked(lock, lock.now, 28000), "asked anew")
    lock.now += 28000
    same(lock.force(A, how="over"), ["RELEASED", lock.now])


@test("ask: a holder from whom the lock was taken at once learns by whom and why")
def _(lock):
    lock.force(A, notes=NOTES)
    run = lock.memory()[1][0]
    true(run.endswith(f"{WHO} revoked=1 {NOTES}"), run)
    same(lock.renew(A), ["LOST", lock.now, 1, 0, 0, "", run])
    same(lock.release(A), ["ABSENT", lock.now, 1, 0, 0, "", run])
    lock.acquire(B, who=WHO)
    same(lock.renew(A)[6:], [run])
    same(lock.renew(C)[6:], [], "another one does not")


# how="again" is a later call of the one who has asked and waits for them to go.
@test("ask: only the readers that were named are asked, and all of them or none")
def _(server):
    lock = held(server, mode="s")
    fence_of(lock.acquire(B, who=WHO, mode="s"))
    same(lock.force(A, C, how="ask")[0], "CHANGED")
    true(" asked=" not in line(lock), line(lock))
    same(lock.force(A, how="ask").parts("holders", "free_in"), [1, 30000])
    same(lock.renew(B)[0], "RENEWED")
    same(lock.renew(A)[0], "ASKED")
    same(lock.force(A, B, how="ask").holders, 2)
    lock.release(B)
    same(lock.force(A, B, how="again").holders, 1, "one of them has gone")


@test("replace: all holders in the way are asked; of a semaphore, the oldest")
def _(server, lock):
    since = lock.now
    same(lock.acquire(B, who="h2 u2 8 d -", replace=1)[0], "QUEUED")
    true(line(lock).endswith(f" asked={since} by=u2@h2%20pid%208 why=--replace"), line(lock))
    lock.release(A)
    lock.acquire(B, who=WHO)
    lock.acquire(C, who="c", queue=False)
    true(" asked=" not in line(lock, B), "one that does not replace asks none")
    lock = Lock(server, "some")
    for owner in (A, B):
        fence_of(lock.acquire(owner, who=WHO, mode="l", limit=2))
    same(lock.acquire(C, who="- - - - -", replace=1, mode="l", limit=2)[0], "QUEUED")
    true(line(lock).endswith(f" asked={lock.now} why=--replace"), line(lock))
    true(" asked=" not in line(lock, B), line(lock, B))
    lock = held(server, name="many", mode="s")
    same(lock.acquire(D, who=WHO, replace=1, mode="s")[0], "GRANTED")
    true(" asked=" not in line(lock), "it is in no one's way")


@test("replace: with --take, no more holders are asked than KEYs are missing")
def _(server):
    names = "a", "b", "c", "d"
    lock = Lock(server, *names)
    one = {}
    for name, owner, who in zip(names, (A, B, C, D), ("h u 1 c -", WHO, WHO, WHO)):
        one[name] = Lock(server, name, now=lock.now)
        fence_of(one[name].acquire(owner, who=who))

    def asked_for():
        return [name for name, owner in zip(names, (A, B, C, D))
                if " asked=" in one[name].fields().get("h:" + owner, "")]

    one["d"].release(D)
    same(lock.acquire(E, who=WHO, replace=1, take="2/4")[0], "QUEUED")
    same(asked_for(), ["b"], "the first of them cannot be asked, the last one is free")
    same(one["b"].renew(B)[0], "ASKED")
    one["b"].release(B)
    reply = lock.acquire(E, who=WHO, take="2/4")
    same([fence != "0" for fence in reply.fences], [False, True, False, True])
    same(asked_for(), [])
    some = Lock(server, "b", "d", now=lock.now)
    same(one["d"].force(E, how="ask", notes=NOTES)[0], "ASKED", "who has some of them is asked")
    same(some.renew(E)[:4], ["ASKED", some.now, 2, 1])


main()
