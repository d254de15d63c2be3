#!/usr/bin/env -S python3 -B
"""Requests of the scripts of src/rules/lua that arrive once more, after their owner has gone on, or
for the first time, after it has given them up and sent later ones: they change nothing (H154).
Prints TAP."""
from script_server import HANDED, PLACE_TTL, Empty, Lock
from script_tap import A, B, C, fence_of, main, same, test, true

LATEST = 100  # the number of A's latest request; its twins have it, or one below
WHO = "h u 9 c - hears=1"
NOTES = "by=root@ops why=hot%20fix"


def wait(lock):
    fence_of(lock.acquire(B, who=WHO))
    same(lock.acquire(C, latest=Empty(""))[0], "QUEUED")
    same(lock.acquire(A, who=WHO, attempt=LATEST)[0], "QUEUED")


def wait_alone(lock):
    fence_of(lock.acquire(B, who=WHO))
    same(lock.acquire(A, who=WHO, attempt=LATEST)[0], "QUEUED")


def hold(lock):
    same(lock.acquire(A, who=WHO, attempt=LATEST)[0], "GRANTED")
    lock.acquire(B)


def hold_renewed(lock):
    """Renewed to a longer lease than was asked for at first."""
    same(lock.acquire(A, lease=5000, who=WHO, attempt=LATEST - 3)[0], "GRANTED")
    same(lock.renew(A, 60000, attempt=LATEST)[0], "RENEWED")


def hold_extended(lock):
    """By a command that is not numbered."""
    same(lock.acquire(A, lease=5000, who=WHO, attempt=LATEST)[0], "GRANTED")
    same(lock.renew(A, 60000)[0], "RENEWED")


def hold_asked(lock):
    hold(lock)
    same(lock.force(A, how="ask", notes=NOTES)[0], "ASKED")


def hold_handed(lock):
    """By a message, for the place of the latest heartbeat."""
    fence_of(lock.acquire(B))
    lock.acquire(A, who=WHO, attempt=LATEST, accept_by_message="Tt", accept_ms=HANDED)
    lock.release(B)
    true("h:" + A in lock.fields(), "it was not handed over")
    lock.acquire(B)


def hold_below(lock):
    """Another of its family has it as well."""
    same(lock.acquire(A, who=WHO, attempt=LATEST)[0], "GRANTED")
    fence_of(lock.acquire(A + ".1", attempt=LATEST + 7))


def hold_barred(lock):
    """It has come back, by a later request, after a release that bars the earlier ones."""
    same(lock.acquire(A, who=WHO, attempt=LATEST - 4)[0], "GRANTED")
    same(lock.release(A, bar=60000, attempt=LATEST - 2)[0], "RELEASED")
    same(lock.acquire(A, who=WHO, attempt=LATEST)[0], "GRANTED")


def kept(lock):
    """It has released it, and --at-least keeps it."""
    same(lock.acquire(A, lease=5000, who=WHO, attempt=LATEST - 3)[0], "GRANTED")
    same(lock.release(A, at_least=90000, notes="ran=1 exit=0", attempt=LATEST)[0], "RELEASED")


STATES = (wait, wait_alone, hold, hold_renewed, hold_extended, hold_asked, hold_handed, hold_below,
          hold_barred, kept)
TWINS = (
    ("acquire", {"lease": 5000, "place_ttl": PLACE_TTL}),
    ("acquire", {"lease": 5000}),
    ("acquire", {"lease": 5000, "place_ttl": 10, "places": "q:9"}),
    ("acquire", {"lease": 5000, "place_ttl": PLACE_TTL, "latest": Empty("")}),
    ("acquire", {"lease": 5000, "place_ttl": PLACE_TTL, "replace": 1}),
    ("acquire", {"lease": 5000, "place_ttl": PLACE_TTL, "queue_only": 1, "priority": 5}),
    ("renew", {"lease": 1000}),
    ("renew", {}),
    ("release", {}),
    ("release", {"bar": 60000, "notes": "unused=1"}),
    ("release", {"at_least": 60000, "notes": "ran=1 exit=0"}),
)


@test(
    "twins: a request that arrives twice changes nothing and sends no message, in any state "
    "(H154)"
)
def _(server):
    ear = server.listen()
    for state in STATES:
        lock = Lock(server, state.__name__)
        state(lock)
        before = lock.fields()
        ear.messages()
        for script, arguments in TWINS:
            waits = script == "renew" and "h:" + A not in before
            for number in (LATEST, LATEST - 1):
                reply = server.call(*lock.words(script, A, attempt=number, who=script == "acquire"
                                                and WHO, **arguments))
                what = f"{state.__name__}: {script} {number} {arguments}"
                same(reply[0], "LOST" if waits else "STALE", what)
                same(lock.fields(), before, what)
        same(ear.messages(), [], state.__name__)


@test(
    "twins: a second copy does not restore keys that were taken away; the latest request is "
    "told (H154)"
)
def _(server):
    both, one, ear = Lock(server, "a", "b"), Lock(server, "a"), server.listen()
    same(both.acquire(A, who=WHO, attempt=LATEST)[0], "GRANTED")
    one.force(A)
    fence_of(one.acquire(B))
    before = [both.fields(n) for n in range(2)]
    ear.heard()
    for script, arguments in TWINS:
        reply = server.call(*both.words(script, A, attempt=LATEST, **arguments))
        same(reply[0] in ("STALE", "LOST"), True, f"{script}: {reply}")
    same(both.acquire(A, attempt=LATEST + 1)[:3], ["ASKED", both.now, 2])
    same([both.fields(n) for n in range(2)], before)
    same(ear.heard(), [])
    same(both.release(A, attempt=LATEST + 2)[0], "ABSENT")
    same(both.acquire(A, attempt=LATEST + 3)[0], "QUEUED", "as any newcomer")


@test("twins: a release names what it releases: it does not free what was acquired since (H154)")
def _(lock):
    lock.acquire(B)
    for number in (1, 2, 4):
        same(lock.acquire(A, attempt=number)[0], "QUEUED")
    lock.release(B)
    same(lock.acquire(A, attempt=6)[0], "GRANTED")
    same(lock.release(A, attempt=3), ["STALE", lock.now])
    same(lock.release(A, attempt=5, bar=60000), ["STALE", lock.now])
    same(lock.release(A, attempt=7), ["RELEASED", lock.now])


@test("twins: a release bars those before it, and none that comes after it (H2)")
def _(lock):
    fence_of(lock.acquire(A, attempt=5))
    lock.release(A, bar=60000, attempt=7)
    same(lock.acquire(A, attempt=6), ["BARRED", lock.now])
    same(lock.acquire(A, attempt=7), ["BARRED", lock.now])
    same(lock.acquire(A), ["BARRED", lock.now], "one without a number")
    fence_of(lock.acquire(A, attempt=8))
    lock.release(A, bar=60000)
    same(lock.acquire(A, attempt=9), ["BARRED", lock.now], "by one without a number")
    lock.now += 60001
    fence_of(lock.acquire(A, attempt=9))


@test("twins: requests without a number, as rlock 1.0 sends them, are executed as they come")
def _(lock):
    fence_of(lock.acquire(A, attempt=5))
    same(lock.renew(A, 60000)[0], "RENEWED")
    fence_of(lock.acquire(A, lease=60000))
    true(" attempt=5" in lock.fields()["h:" + A], "the number stays")
    same(lock.release(A), ["RELEASED", lock.now])
    lock.server.call(*lock.words("acquire", A, 30000))
    same(lock.renew(A, attempt=1)[0], "RENEWED")
    same(lock.fields()["h:" + A].split(" ")[7:], ["-"] * 5 + ["attempt=1"])


main()
