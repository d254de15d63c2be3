#!/usr/bin/env -S python3 -B
"""The memory that a lock has of its runs. Prints TAP."""
from script_server import PLACE_TTL, Lock
from script_tap import A, B, C, D, TOKEN, fence_of, main, same, test, true


def run_of(lock, owner, fence, since, notes):
    """A run as it is remembered, that ended now."""
    return f"{lock.now} {fence} {owner} {since} x 0 {notes}"


@test("memory: who had it, since when, for how long, and how it ended")
def _(lock):
    same(lock.memory(), ({}, []))
    want = []
    for notes in ("ran=7 exit=0", "ran=7 signal=15", "timed=1 ran=7 signal=15", "lost=1", ""):
        since, fence = lock.now, fence_of(lock.acquire(A, who="h u 9 c - waited=3"))
        lock.now += 7
        lock.release(A, notes=notes)
        want.append(run_of(lock, A, fence, since, ("h u 9 c - waited=3 " + notes).rstrip()))
    ends = [int(run.split()[0]) for run in want]
    same(lock.memory(), ({"acquired": 5, "ended": 5, "waited": 15,
                          "success_began": ends[0] - 7, "success_ended": ends[0],
                          "failed": 1, "failed_last": ends[1], "timed": 1, "timed_last": ends[2],
                          "lost": 1, "lost_last": ends[3]}, want))
    same(lock.memory(2)[1], want[-2:], "the last two")
    same(lock.memory(0)[1], [], "none")


@test("memory: a run with --no-identity is remembered without a name")
def _(lock):
    fence = fence_of(lock.acquire(A, who=""))
    lock.release(A, notes="ran=1 exit=0")
    want = run_of(lock, A, fence, lock.now, "- - - - - ran=1 exit=0")
    same(lock.memory()[1], [want])


@test("memory: an expired or revoked run is written down by the first call that finds it")
def _(lock):
    lock.acquire(A, who="a")
    lock.now += 40000
    lock.acquire(B, who="b")
    lock.force(B)
    counters, runs = lock.memory()
    same(counters, {"acquired": 2, "ended": 2, "expired": 1, "expired_last": lock.now - 10000,
                    "revoked": 1, "revoked_last": lock.now})
    same([run.split(" ", 6)[6] for run in runs], ["a expired=1", "b revoked=1"])


@test("memory: a reservation that is over has ended, and did not disappear")
def _(server):
    lock = Lock(server)
    since = lock.now
    fence = fence_of(lock.acquire(A, who="h u - - why reserved=1"))
    lock.now += 40000
    lock.acquire(B, who="b")
    counters, runs = lock.memory()
    same(counters, {"acquired": 2, "ended": 1})
    same(runs, [f"{lock.now - 10000} {fence} {A} {since} x 0 h u - - why reserved=1"])


@test("memory: a run that nests in a reservation succeeds as one that does not; deeper, a part")
def _(lock):
    run = f"{A}.{B}"
    lock.acquire(A, who="h u - - why reserved=1")
    lock.acquire(run)
    lock.acquire(f"{run}.{C}")
    lock.release(f"{run}.{C}", notes="ran=7 exit=0")
    true("success_ended" not in lock.memory()[0], "a part of the run")
    since = lock.now
    lock.now += 7
    lock.release(run, notes="ran=7 exit=0")
    counters, _ = lock.memory()
    same((counters["success_began"], counters["success_ended"]), (since, lock.now))


@test("memory: an unused acquisition does not count as a run; a refused request is counted")
def _(lock):
    lock.acquire(A)
    lock.release(A, notes="unused=1")
    lock.acquire(A)
    lock.acquire(B, queue=False)
    lock.acquire(B)
    lock.acquire(C)
    lock.release(B, bar=60000, notes="refused=1")
    lock.release(B, bar=60000, notes="refused=1")
    lock.release(C, bar=60000, notes="unused=1")
    same(lock.memory(), ({"acquired": 2, "refused": 2, "refused_last": lock.now}, []))


@test("memory: what --at-least keeps is remembered when its command ends, once")
def _(lock):
    fence, since = fence_of(lock.acquire(A, who="h u 9 c -")), lock.now
    lock.now += 1000
    for _time in (1, 2):
        lock.release(A, at_least=60000, notes="ran=1000 exit=0")
    want = run_of(lock, A, fence, since, "h u 9 c - ran=1000 exit=0")
    lock.now += 60000
    fence_of(lock.acquire(B))
    counters, runs = lock.memory()
    same((counters["acquired"], counters["ended"], runs), (2, 1, [want]))


@test("memory: the last 20 of many runs are kept; readers, permits and nested runs count each")
def _(lock):
    for number in range(45):
        lock.now += 1
        lock.acquire(A, who="%d" % number)
        lock.release(A)
    counters, runs = lock.memory(1000)
    same(counters, {"acquired": 45, "ended": 45})
    same([run.split(" ")[6] for run in runs], ["%d" % number for number in range(25, 45)])
    for mode, limit in (("s", 0), ("l", 2)):
        for owner in (A, B, A + ".1"):
            fence_of(lock.acquire(owner, mode=mode, limit=limit))
        for owner in (A, A + ".1", B):
            same(lock.release(owner)[0], "RELEASED")
    counters, runs = lock.memory()
    same(counters, {"acquired": 51, "ended": 51})
    same([run.split(" ")[2] for run in runs[-3:]], [A, A + ".1", B])


@test("memory: of several waiters that one call hands the lock, each is counted")
def _(lock, ear):
    lock.acquire(A)
    for owner in (B, C):
        lock.acquire(owner, mode="s", who="h u 9 c -", offer=TOKEN)
    lock.release(A)
    same([who for who, *_rest in ear.handed()], [B, C])
    same(lock.memory()[0]["acquired"], 3)


@test("unless-done: only a success that began lately, in all keys; no waiter passes it")
def _(server):
    both, one, other = Lock(server, "k", "m"), Lock(server, "k"), Lock(server, "m")

    def ran(lock, notes):
        fence_of(lock.acquire(D))
        lock.now += 5
        same(lock.release(D, notes=notes)[0], "RELEASED")
        both.now = one.now = other.now = lock.now

    for notes in ("ran=5 exit=1", "timed=1 ran=5 exit=0", "lost=1 ran=5 exit=0", "", "unused=1"):
        ran(one, notes)
        fence_of(one.acquire(A, unless_done=10000))
        one.release(A, notes="unused=1")
    ran(one, "ran=5 exit=0")
    same(one.acquire(A, unless_done=10000)[:4], ["DONE", one.now, 1, 5])
    true(f" {D} " in one.acquire(A, unless_done=10000).run, "the run that succeeded is told")
    fence_of(one.acquire(A, unless_done=5))
    # A client that has it already hears so again.
    fence_of(one.acquire(A, unless_done=10000))
    one.release(A, notes="unused=1")
    fence_of(both.acquire(A, unless_done=10000))
    both.release(A, notes="unused=1")
    ran(other, "ran=5 exit=0")
    same(both.acquire(A, unless_done=10000)[:4], ["DONE", both.now, 1, 10])
    both.now += 9989
    same(both.acquire(A, unless_done=10000)[0], "DONE")
    both.now += 1
    fence_of(both.acquire(A, unless_done=10000))
    # A clock that was set back by more.
    both.release(A, notes="unused=1")
    one.now = both.now - 30000
    fence_of(one.acquire(A, unless_done=10000))
    same(one.acquire(B, unless_done=10000)[0], "QUEUED")
    same(one.acquire(C)[0], "QUEUED")
    ear = server.listen()
    one.release(A, notes="ran=5 exit=0")
    same(ear.heard(), [B], "called, not handed the lock")
    same(one.acquire(B, unless_done=10000, places="q:1")[0], "DONE")
    same(ear.heard(), [C], "called: B has left")
    fence_of(one.acquire(C))


@test("unless-done: a nested run is a part of its ancestor's, and does not count by itself")
def _(lock):
    fence_of(lock.acquire(A))
    fence_of(lock.acquire(A + ".1"))
    lock.release(A + ".1", notes="ran=5 exit=0")
    lock.release(A, notes="ran=5 exit=1")
    fence_of(lock.acquire(B, unless_done=10000))


@test("memory: damage to it harms no client, and it does not outlive the lock's week (H21)")
def _(server, lock):
    huge = "9" * 400
    for damage in ("x", huge, "-1 -1", "1 " * 50, huge + " 1 1 1", "1 1 " + huge + " 1"):
        for field in ("a", "c", "n:refused", "n:timed"):
            lock.set(field, damage)
        lock.set("k", "lock/1")
        fence_of(lock.acquire(A))
        same(lock.acquire(B, queue=False)[0], "HELD")
        same(lock.release(A, notes="timed=1")[0], "RELEASED")
        lock.memory()
        true(lock.ttl() > 0, "it has a time to live")
        server.call("DEL", lock.key)
    lock.acquire(A)
    lock.acquire(B)
    lock.now += PLACE_TTL
    lock.release(A)
    true(0 < lock.ttl() <= 604830000, "time to live")


main()
