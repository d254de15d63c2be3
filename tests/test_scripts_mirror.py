#!/usr/bin/env -S python3 -B
"""The scripts of src/rules/lua with a mirror, another library's key. Prints TAP."""
from script_tap import A, B, C, fence_of, main, same, test, true
from script_server import Lock

THEIRS = "their"


def with_mirror(lock, owner, kind="string", **options):
    return lock.acquire(owner, mirror=f"{kind}:{THEIRS}", **options)


def value(server):
    return server.call("GET", THEIRS)


def left(server):
    return server.call("PTTL", THEIRS)


@test("a mirror is taken, renewed and released with its lock")
def _(server, lock):
    fence_of(with_mirror(lock, A, lease=9000))
    same(value(server), "rlock:" + A)
    same(lock.fields()["m"], f"string {A} {THEIRS}")
    true(left(server) <= 9000, "no longer than the lease")
    same(lock.renew(A, lease=600000)[0], "RENEWED")
    true(left(server) > 500000, "as long as the new lease")
    same(lock.release(A)[0], "RELEASED")
    same((value(server), lock.fields().get("m")), (None, None))


# ASKED stands for a holder that has to release its lock: here because its mirror is another's.
@test("the same request again prolongs the mirror; a lost one has to be released first")
def _(server, lock):
    first = with_mirror(lock, A)
    same(with_mirror(lock, A, lease=600000), first)
    true(left(server) > 500000, "as long as the new lease")
    server.call("SET", THEIRS, "x", "PX", 5000)
    same(with_mirror(lock, A, queue=False)[0], "ASKED")
    lock.release(A)
    refusal = with_mirror(lock, A, queue=False)
    same((refusal[0], refusal[-1]), ("HELD", "foreign " + THEIRS))
    true(0 < refusal.free_in <= 5000, "what is left to it")
    same((value(server), lock.inspect()[5]), ("x", []))


@test(
    "where the mirror is a stranger's or gone, renewals of the holder and of its nested runs "
    "are LOST"
)
def _(server):
    for change, holders in (("SET", 1), ("DEL", 0)):
        lock = Lock(server)
        fence_of(with_mirror(lock, A))
        fence_of(lock.acquire(A + "." + B))
        server.call(*([change, THEIRS, "x"] if holders else [change, THEIRS]))
        for owner in (A, A + "." + B):
            same(lock.renew(owner)[:1] + lock.renew(owner)[3:],
                 ["LOST", holders, 0, "foreign " + THEIRS])
            same(lock.release(owner)[0], "RELEASED")
        same(value(server), "x" if holders else None)
        server.call("FLUSHALL")


@test("a lease that has run out is not renewed: others may have had the mirror since")
def _(server, lock):
    fence_of(with_mirror(lock, A))
    lock.now += 30001
    same(lock.renew(A)[0], "LOST")
    # Without a mirror it is, as no other owner has come.
    plain = Lock(server, "plain")
    fence_of(plain.acquire(A))
    plain.now += 30001
    same(plain.renew(A)[0], "RENEWED")


@test("a mirror that a dead holder has left can be taken")
def _(server, lock):
    fence_of(with_mirror(lock, A))
    lock.now += 30001
    # The mirror's key is there still, by the server's own clock.
    fence_of(with_mirror(lock, B))
    same((value(server), lock.fields()["m"]), ("rlock:" + B, f"string {B} {THEIRS}"))
    lock.now += 30001
    fence_of(lock.acquire(C))
    same(lock.renew(C)[0], "RENEWED")
    true("m" not in lock.fields(), "one without a mirror has none")


@test("nested runs share one mirror: taken by the inner one, it is released by the outer one")
def _(server, lock):
    fence_of(lock.acquire(A))
    fence_of(with_mirror(lock, A + "." + B))
    same(value(server), "rlock:" + A)
    same(lock.release(A + "." + B)[0], "RELEASED")
    same(value(server), "rlock:" + A)
    same(lock.acquire(A + "." + C, mirror="string:other")[:3], ["MISFIT", lock.now, "mirror"])
    same(lock.release(A)[0], "RELEASED")
    same(value(server), None)


@test("a waiter with a mirror is called, and not handed the lock by message")
def _(server, lock):
    fence_of(with_mirror(lock, A))
    same(with_mirror(lock, B)[0], "QUEUED")
    ear = server.listen()
    same(lock.release(A)[0], "RELEASED")
    same(([owner for _, owner in ear.pokes()], value(server)), ([B], None))
    server.call("SET", THEIRS, "x")
    same(with_mirror(lock, B)[0], "QUEUED")
    server.call("DEL", THEIRS)
    fence_of(with_mirror(lock, B))


@test("H155 a call that does not name the mirror is told it, and has done nothing")
def _(server, lock):
    fence_of(with_mirror(lock, A))
    fence_of(lock.acquire(A + "." + B))
    before, told = lock.fields(), ["MIRROR", lock.now, [THEIRS]]
    for script in ("renew", "release"):
        for owner in (A, A + "." + B):
            same(lock.call(*lock.words(script, owner)), told)
    same(lock.call(*lock.words("force", A, how="now")), told)
    same((lock.fields(), value(server)), (before, "rlock:" + A))
    # Others have nothing to do with it.
    same(lock.call(*lock.words("release", C))[0], "ABSENT")
    same(lock.call(*lock.words("renew", C))[0], "LOST")


@test("H155 a release whose answer is not read leaves a mirror that it does not name to its end")
def _(server, lock):
    fence_of(with_mirror(lock, A))
    same(lock.call(*lock.words("release", A, unread=True))[0], "RELEASED")
    same((value(server), lock.inspect()[5]), ("rlock:" + A, []))
    same(with_mirror(lock, B, queue=False)[0], "HELD")
    server.call("DEL", THEIRS)
    fence_of(with_mirror(lock, B))


@test("H155 a mirror of another name is not touched by one who does not name it")
def _(server, lock):
    fence_of(with_mirror(lock, A, lease=1000))
    lock.now += 1001
    fence_of(lock.acquire(B, mirror="string:other"))
    same((value(server), server.call("GET", "other")), ("rlock:" + A, "rlock:" + B))


# The word behind MISFIT is the kind of mirror that the key at the name THEIRS does not fit.
@test("a mirror of Redisson is a hash of one field; a key of another type is refused")
def _(server, lock):
    fence_of(with_mirror(lock, A, "redisson"))
    same(server.call("HGETALL", THEIRS), [A + ":0", "1"])
    same(lock.force(A)[0], "RELEASED")
    same(server.call("EXISTS", THEIRS), 0)
    server.call("HSET", THEIRS, "x:1", 1)
    same(with_mirror(lock, A, "redisson", queue=False)[0], "HELD")
    same(with_mirror(lock, A)[:3], ["MISFIT", lock.now, "string"])
    server.call("DEL", THEIRS)
    server.call("SET", THEIRS, "x")
    same(with_mirror(lock, A, "redisson")[:3], ["MISFIT", lock.now, "redisson"])
    # The lock's own note of its mirror.
    lock.set("m", "nonsense")
    same(lock.acquire(A)[:3], ["MISFIT", lock.now, "damaged"])


main()
