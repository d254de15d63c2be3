#!/usr/bin/env -S python3 -B
"""The scripts of src/rules/lua on a server that is one of a quorum: for how long it
remembers, fences that the holder settled on with the others. Prints TAP."""
import time
from script_server import WEEK, Lock, Server, read_script, with_clock_given
from script_tap import A, B, GIVEN, by, fails, full, holder, main, same, test, true

MARKER = "rlock:!quorum"


class Member(Lock):
    """A lock on a server whose process is "run"."""

    run_id = "one"

    def acquire(self, owner, fences=(), proposal=0, queue=False, **options):
        return super().acquire(owner, queue=queue, member=MARKER, server=self.run_id,
                               proposal=proposal, fences=" ".join(map(str, fences)), **options)

    def renew(self, owner, fences=(), lease=30000):
        return self.run("renew", owner, lease, member=MARKER, server=self.run_id,
                        fences=" ".join(map(str, fences)))


GIVEN["lock"] = Member


def member(memory, service, *answer, nested=()):
    return ["MEMBER", memory, service, list(answer), list(nested)]


@test("member: each answer says for how long the server has remembered and served")
def _(server, lock):
    fence = str(lock.now * 1000)
    same(lock.acquire(A), member(1, 1, "GRANTED", lock.now, [fence], [0], nested=[0]))
    same(server.call("HGETALL", MARKER),
         ["run", "one", "since", str(lock.now), "first", str(lock.now)], "marker")
    granted = holder(lock, A, fence)
    lock.now += 5000
    same(lock.acquire(B), member(5001, 5001, "HELD", lock.now, 0, *by(lock, granted)))
    same(lock.renew(A), member(5001, 5001, "RENEWED", lock.now, [fence], [0], 0))
    same(lock.release(A), ["RELEASED", lock.now])
    same(lock.renew(A), member(5001, 5001, "LOST", lock.now, 1, 0, 0, ""))
    true(0 <= WEEK - server.call("PTTL", MARKER) < 60000, "the marker does not live for a week")


@test("member: a server that restarted with its data remembers anew, and has served for as long")
def _(lock):
    lock.acquire(A)
    lock.now += 7000
    lock.run_id = "two"
    same(lock.renew(A)[:3], ["MEMBER", 1, 7001])
    lock.now += 1000
    same(lock.renew(A)[:3], ["MEMBER", 1001, 8001])


def uptime(server):
    return int(server.call("INFO", "server").split("uptime_in_seconds:")[1].split()[0])


@test(
    "member: a server that has run no script since its start remembers from then on; after"
    " FLUSHALL from now on"
)
def _():
    server = Server()
    try:
        deadline = time.monotonic() + 10
        while uptime(server) < 3 and time.monotonic() < deadline:
            time.sleep(0.1)
        fails("NOSCRIPT", lambda: server.call("EVALSHA", "0" * 40, 0))  # runs no script
        server.call("SCRIPT", "FLUSH")
        server.load(with_clock_given(read_script("acquire")))
        lock = Member(server)
        lock.acquire(A)
        server.load(with_clock_given(read_script("renew")))
        reply = lock.renew(A)
        true(1000 < reply.remembered_ms <= uptime(server) * 1000,
             f"remembers {reply.remembered_ms} ms")
        same(reply.asked_ms, 1)
        server.call("FLUSHALL")
        lock.now += 5
        same(lock.renew(A)[:3], ["MEMBER", 1, 1])
        server.call("FLUSHALL")
        server.call("CONFIG", "RESETSTAT")
        lock.now += 5
        same(lock.renew(A)[:3], ["MEMBER", 1, 1])
    finally:
        server.stop()


@test("H28 member: a server whose clock was put back counts as young, not as old")
def _(lock):
    lock.acquire(A)
    lock.now -= 3600000
    same(lock.renew(A)[:3], ["MEMBER", 1, 1])
    lock.now += 2000
    same(lock.renew(A)[:3], ["MEMBER", 2001, 2001])


@test("member: a fence that is proposed is taken if it is the highest, and not from the far future")
def _(lock):
    now_us = lock.now * 1000
    for proposal, want in (
        (now_us + 50000, now_us + 50000),
        (now_us + 40000, now_us + 50001),
        (now_us + 1000001, now_us + 50002),
        (now_us + 1000000, now_us + 1000000),
    ):
        same(lock.acquire(A, proposal=proposal).answer[2], [str(want)],
             f"proposed {proposal - now_us}")
        same(lock.fields()["f"], str(want), "f")
        lock.release(A)


@test("member: an owner that has the lock elsewhere already has the fence that it names here, too")
def _(server):
    lock = Member(server, "a", "b")
    now_us = lock.now * 1000
    same(
        lock.acquire(A, fences=[5, now_us + 9]).answer,
        ["GRANTED", lock.now, ["5", str(now_us + 9)], [0, 0]],
    )
    lock.release(A)
    got = lock.acquire(B).answer[2]
    true(int(got[0]) >= now_us and int(got[1]) == now_us + 10, f"the next one's fences: {got}")


@test("member: a lock that is held elsewhere counts from when it was acquired there")
def _(lock):
    lock.acquire(A, fences=[5], held=7000)
    lock.acquire(A + "." + B, fences=[5], held=6000)
    entries = lock.fields()["h:" + A].split("\n")
    same([lock.now - int(entry.split()[4]) for entry in entries], [7000, 6000])


@test("member: a renewal, or the same request again, brings the fence that the majority settled on")
def _(lock):
    now_us = lock.now * 1000
    lock.acquire(A)
    for n, call in enumerate((lock.renew, lock.acquire), 1):
        same(call(A, fences=[now_us + n]).answer[2], [str(now_us + n)])
        same(lock.fields()["f"], str(now_us + n), "f")
        same(lock.fields()["h:" + A], holder(lock, A, now_us + n), "h")
    same(lock.renew(A, fences=[7]).answer[2], ["7"])
    same(lock.fields()["f"], str(now_us + 2), "f is never less")


@test("member: a nested owner has its ancestor's fence, or the one that was settled on")
def _(lock):
    fence = lock.acquire(A).answer[2]
    # A repeated request has the same answer. The fence that it proposes is a greater one.
    for _again in range(2):
        same(lock.acquire(A + "." + B, proposal=lock.now * 1000 + 5)[3:],
             [["GRANTED", lock.now, fence, [0]], [1]])
    lock.release(A + "." + B)
    same(lock.acquire(A + "." + B, fences=[3]).answer[2], ["3"])
    lock.release(A + "." + B)
    lock.release(A)
    for _again in range(2):
        same(lock.acquire(A + "." + B).locks, [0], "where it nests in none")


@test("member: a force bars the holders that this server does not know, for as long as it is told")
def _(lock):
    for how, told in (("now", "CHANGED"), ("over", "RELEASED")):
        lock.acquire(A)
        same(lock.force(A, B, how=how, bar=60000)[0], told)
        same(lock.acquire(B), ["BARRED", lock.now])
        same(lock.release(A)[0], "RELEASED" if how == "now" else "ABSENT")
        lock.now += 60001
        same(lock.acquire(B).answer[0], "GRANTED")
        lock.release(B)
    same(lock.force(A)[0], "CHANGED")
    same(lock.acquire(A).answer[0], "GRANTED", "without a quorum none is barred")


@test(
    "H17 H21 member: a marker that is something else is an error, as is a full server to a newcomer"
)
def _(server, lock):
    server.call("SET", MARKER, "x")
    fails("WRONGTYPE", lambda: lock.acquire(A))
    server.call("FLUSHALL")
    lock.acquire(A)
    with full(server):
        same(lock.renew(A).answer[0], "RENEWED")
        same(lock.acquire(B).answer[0], "HELD")
        lock.release(A)
        fails("OOM", lambda: lock.acquire(B))


main()
