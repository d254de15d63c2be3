#!/usr/bin/env -S python3 -B
"""The scripts of src/rules/lua: a lock that is handed over by message. Prints TAP."""
from script_server import HANDED
from script_tap import A, B, C, D, E, F, TOKEN, WHO, fence_of, main, same, test, true


def token(n):
    return str(n) * 22


def hold(lock, owner, **options):
    return fence_of(lock.acquire(owner, who=WHO, **options))


def wait(lock, owner, offer=TOKEN, **options):
    options.setdefault("who", WHO)
    same(lock.acquire(owner, offer=offer, **options)[0], "QUEUED", owner[0])


def entry(lock, owner):
    return lock.fields()["h:" + owner].split()


@test("handed: the place becomes a lease that counts from the heartbeat; the message says what of")
def _(lock, ear):
    fence = hold(lock, A)
    called = lock.now
    wait(lock, B)
    lock.now += 2000
    lock.release(A)
    fields = lock.fields()
    new = fields["f"]
    true(int(new) > int(fence), "a greater token")
    same(ear.handed(), [(B, TOKEN, new, "0")], "message")
    same(
        fields["h:" + B],
        f"{called + HANDED} {HANDED} {new} {B} {lock.now} x 0 {WHO} waited=2000",
        "entry",
    )
    same(fields["s"], f"x 0 1 {called + HANDED} {HANDED} {B}", "state")
    same([name for name in fields if name[0] in "qw"], ["q"], "what is left of the queue")
    same(lock.renew(B)[:3], ["RENEWED", lock.now, [new]])
    same(entry(lock, B)[:2], [str(lock.now + 30000), "30000"], "a whole lease")


@test(
    "handed: the message has the token of the waiter's latest heartbeat, which no inspection "
    "shows"
)
def _(lock, ear):
    hold(lock, A)
    wait(lock, B, offer=token(1))
    wait(lock, B, offer=token(2))
    wait(lock, C, offer=token(3))
    for reply in (lock.inspect(), lock.acquire(D, queue=False), lock.acquire(D)):
        true(token(2) not in repr(reply) and "offer" not in repr(reply), f"a secret: {reply}")
    lock.release(A)
    same([(who, what) for who, what, _fence, _slot in ear.handed()], [(B, token(2))])
    lock.release(B)
    same([(who, what) for who, what, _fence, _slot in ear.handed()], [(C, token(3))])
    true("offer" not in repr(lock.inspect()), "a note of a holder")


@test("handed: a waiter that offers nothing, or no more, is poked")
def _(lock, ear):
    hold(lock, A)
    wait(lock, B)
    wait(lock, B, offer=None)
    lock.release(A)
    same(ear.handed(), [(B,)], "poked")
    true("h:" + B not in lock.fields(), "held")
    hold(lock, B)
    wait(lock, C, who="")
    lock.release(B)
    same(ear.handed()[0][:2], (C, TOKEN), "an unknown one")
    same(entry(lock, C)[7:], ["-"] * 5 + ["waited=0"], "an unknown one")


@test("handed: force-release hands over, and takes away what was handed over")
def _(lock, ear):
    hold(lock, A)
    wait(lock, B)
    wait(lock, C)
    lock.force(A)
    same([owner for owner, *_ in ear.handed()], [B], "handed")
    lock.force(B)
    same([owner for owner, *_ in ear.handed()], [C], "handed")
    same(lock.renew(B)[0], "LOST")
    wait(lock, B, places="q:1")


@test("handed: two readers at once, and the renewal of each calls the next; no other renewal does")
def _(lock, ear):
    hold(lock, A)
    for owner in (B, C, D, E):
        wait(lock, owner, mode="s")
    wait(lock, F)  # a writer
    lock.release(A)
    same([owner for owner, *_ in ear.handed()], [B, C], "two")
    lock.renew(B)
    same(ear.handed(), [], "a renewal")
    same(lock.renew(B, handed=1)[0], "RENEWED")
    same([owner for owner, *_ in ear.handed()], [D, E], "the next")
    same(lock.fields()["s"].split()[:3], ["s", "0", "4"], "state")
    for owner in (B, C, D, E):
        same(ear.handed(), [], "the writer has to wait")
        lock.release(owner)
    same([owner for owner, *_ in ear.handed()], [F], "the writer")


@test("handed: a reader that finds its lock by a heartbeat calls the next as well")
def _(lock, ear):
    hold(lock, A)
    for owner in (B, C, D):
        wait(lock, owner, mode="s")
    lock.release(A)
    ear.handed()
    same(lock.acquire(B, who=WHO, mode="s", offer=token(2))[0], "GRANTED")
    same([owner for owner, *_ in ear.handed()], [D], "the next")


@test("handed: a semaphore's slots, to no more than fit, and to none with another limit")
def _(lock, ear):
    options = {"mode": "l", "limit": 2}
    hold(lock, A, **options)
    hold(lock, B, **options)
    wait(lock, C, **options)
    wait(lock, D, **options)
    lock.release(A)
    same([(owner, slot) for owner, _t, _f, slot in ear.handed()], [(C, "1")], "slot")
    lock.renew(C, handed=1)
    same(ear.handed(), [], "full")
    lock.release(B)
    same([(owner, slot) for owner, _t, _f, slot in ear.handed()], [(D, "2")], "slot")
    same(lock.fields()["s"].split()[:3], ["l", "2", "2"], "state")
    wait(lock, E, **options)
    lock.set("q:3", lock.fields()["q:3"].replace("/2/", "/3/"))
    lock.release(C)
    same(ear.handed(), [(E,)], "another limit")


@test("handed: a waiter is handed nothing beside runs that nest in a lock which it had before")
def _(lock, ear):
    hold(lock, A, mode="s")
    hold(lock, A + ".1", mode="s")
    hold(lock, B, mode="s")
    lock.release(A)
    wait(lock, C)
    wait(lock, A, mode="s")
    lock.release(C)
    same(ear.handed(), [(A,)], "poked")
    fence_of(lock.acquire(A, mode="s"))
    same(len(lock.fields()["h:" + A].split("\n")), 2, "its family")


@test("handed: a waiter that nests in a holder is called, and never handed the lock by message")
def _(lock, ear):
    for owner in (A, A + ".1"):
        hold(lock, owner)
    wait(lock, A + ".2")
    lock.release(A + ".1")
    same(ear.handed(), [(A + ".2",)], "poked")


@test("handed: a server's clock that is set back makes no handed lease longer than it was offered")
def _(lock):
    hold(lock, A, lease=600000)
    wait(lock, B)
    lock.now -= 60000
    lock.release(A)
    same(entry(lock, B)[:2], [str(lock.now + HANDED), str(HANDED)], "entry")


@test("handed: an offer in a form that rlock does not write does not count")
def _(lock, ear):
    fine = TOKEN + "/0/9/9"
    for offer in ("x", "x/0/1", fine + " more", "/0/1/1", "x/0/1e3/5", "x/-1/9/9", "é/0/9/9"):
        hold(lock, A)
        wait(lock, B, offer=None)
        ticket = lock.fields()["w:" + B]
        lock.set(ticket, lock.fields()[ticket] + " offer=" + offer)
        lock.release(A)
        same(ear.handed(), [(B,)], offer)
        lock.release(B)


main()
