#!/usr/bin/env -S python3 -B
"""The scripts of src/rules/lua: who asks for some of its keys gets the first that are free,
and waits in the queue of each. Prints TAP.

RLOCK_OPERATIONS=N is as in test_scripts_model.py."""
import os, random
from lock_view import View
from script_server import Lock
from script_tap import A, B, C, D, E, F, GIVEN, TOKEN, WHO, main, same, test

NAMES = ("a", "b", "c")
GIVEN["lock"] = lambda server: Lock(server, *NAMES)


def some(lock, owner, take=1, **options):
    return lock.acquire(owner, who=WHO, take=f"{take}/{len(lock.keys)}", **options)


def granted(reply):
    """Which of the keys, from 0; every other one has neither fence nor slot."""
    same(reply[0], "GRANTED")
    taken = [i for i, fence in enumerate(reply.fences) if fence != "0"]
    same([i for i, slot in enumerate(reply.slots) if slot and i not in taken], [], "slots")
    return taken


def one(lock, name, now=None):
    """The lock of one key alone."""
    single = Lock(lock.server, name)
    single.now = lock.now if now is None else now
    return single


def is_held(lock, number, owner):
    return "h:" + owner in lock.fields(number)


def has_place(lock, number, owner):
    return "w:" + owner in lock.fields(number)


@test("any: the first one that is free, in the order given; nothing is left at the others")
def _(lock):
    same(granted(some(lock, A)), [0])
    same(granted(some(lock, B)), [1])
    same(granted(some(lock, C)), [2])
    same(some(lock, D, queue=False)[0], "HELD")
    lock.release(B)
    same(granted(some(lock, D, queue=False)), [1])
    same([is_held(lock, n, owner) for n, owner in enumerate((A, D, C))], [True] * 3)
    for n in range(3):
        same([name for name in lock.fields(n) if name[:2] in ("w:", "q:")], [], "places")


@test("any: what was taken away before its answer was heard is released, and asked for anew")
def _(lock):
    same(granted(some(lock, A, take=2)), [0, 1])
    one(lock, "a").force(A)
    same(one(lock, "a").acquire(B)[0], "GRANTED")
    same(some(lock, A, take=2)[:3], ["ASKED", lock.now, 2], "the second one is its still")
    lock.release(A)
    same(granted(some(lock, A, take=2)), [1, 2])
    same([is_held(lock, n, A) for n in range(3)], [False, True, True])


@test("any: a release of the one key that was granted bars a late request for all of them (H2)")
def _(lock):
    same(granted(some(lock, A)), [0])
    same(one(lock, "a").release(A, bar=60000)[0], "RELEASED")
    one(lock, "a").acquire(B)
    same(some(lock, A), ["BARRED", lock.now])
    same([is_held(lock, n, A) or has_place(lock, n, A) for n in range(3)], [False] * 3)


@test("any: all held: a place in each queue, which go when one of them is free")
def _(lock, ear):
    for name, owner in zip(NAMES, (A, B, C)):
        one(lock, name).acquire(owner)
    reply = some(lock, D)
    same(reply[:3], ["QUEUED", lock.now, "q:1 q:1 q:1"])
    same(reply.position, 1, "ahead and I")
    ear.messages()
    one(lock, "c").release(C)
    same(ear.pokes(), [("rlock:{c}", D)], "called where it is free")
    same(one(lock, "c").acquire(E, queue=False)[0], "HELD", "it comes first there")
    same(granted(some(lock, D, places=reply.places)), [2])
    same([has_place(lock, n, D) for n in range(3)], [False] * 3, "places")


@test(
    "any: a waiter that is granted one KEY leaves the queue of another: who is behind it is "
    "called"
)
def _(lock, ear):
    for name, owner in zip(NAMES, (A, B, C)):
        one(lock, name).acquire(owner)
    some(lock, D)
    one(lock, "a").acquire(E, who=WHO, offer=TOKEN)
    one(lock, "b").acquire(F, who=WHO, offer=TOKEN)
    one(lock, "b").release(B)
    one(lock, "a").release(A)
    ear.messages()
    same(granted(some(lock, D)), [0])
    heard = [(key, owner, text.split()[0]) for key, owner, text in ear.messages()]
    same(heard, [("rlock:{b}", F, TOKEN)], "b is handed on, a is held")
    same([is_held(lock, 0, D), is_held(lock, 1, F)], [True, True])


@test("any: first come, first served in each queue, over sets that overlap")
def _(server):
    ab, bc = Lock(server, "a", "b"), Lock(server, "b", "c")
    for name, owner in zip(NAMES, (A, B, C)):
        one(ab, name).acquire(owner)
    some(ab, D)
    some(bc, E)
    one(ab, "b").release(B)
    same(some(bc, E)[0], "QUEUED", "D was first at b")
    same(granted(some(ab, D)), [1])
    one(ab, "c").release(C)
    same(granted(some(bc, E)), [1])
    one(ab, "a").release(A)
    same(one(ab, "a").acquire(F)[0], "GRANTED", "no owner waits at a")


@test(
    "any: a refusal says when the first KEY may be free, and names a held one rather than a "
    "closed one"
)
def _(server, lock):
    one(lock, "a").set("p", f"{lock.now + 60000} {E} {lock.now} x {WHO}")
    server.call("HSET", "rlock:{a}", "k", "lock/1")
    one(lock, "b").acquire(B, lease=20000)
    one(lock, "c").acquire(C, lease=4000)
    reply = some(lock, D)
    same(reply[0], "QUEUED")
    same(reply.parts("which", "holders", "free_in"), [2, 1, 4000])
    same(some(lock, E, queue=False)[0], "HELD")


@test("any: a key that is paused is passed over; where all of them are, the answer is CLOSED")
def _(server):
    lock = Lock(server, "a", "b")
    pause = f"{lock.now + 60000} {E} {lock.now} x {WHO}"
    server.call("HSET", "rlock:{a}", "k", "lock/1", "p", pause)
    same(granted(some(lock, A)), [1])
    one(lock, "b").release(A)
    server.call("HSET", "rlock:{b}", "k", "lock/1", "p", pause)
    reply = some(lock, A)
    same(reply[:3], ["CLOSED", lock.now, 60000])
    lock.now += 60001
    same(granted(some(lock, A)), [0])


class Contenders:
    """Owners who want some, all or one of a few keys, and call in any order; each of them gives
    back what it holds. No client dies, so none must be left waiting."""

    NAMES = "abcd"

    def __init__(self, server, seed):
        self.server, self.dice, self.seed = server, random.Random(seed), seed
        self.now = 1700000000000
        self.waiting, self.holding, self.served = {}, {}, 0

    def lock(self, keys):
        return Lock(self.server, *keys, now=self.now)

    def come(self, number):
        keys = self.dice.sample(self.NAMES, self.dice.randint(1, 4))
        self.waiting[f"{number:036d}"] = (keys, self.dice.randint(1, len(keys)))

    def call_one(self, owner):
        keys, take = self.waiting[owner]
        lock = self.lock(keys)
        reply = some(lock, owner, take) if take < len(keys) else lock.acquire(owner)
        self.now += 1
        if reply[0] != "GRANTED":
            return
        taken = {keys[n] for n in granted(reply)}
        same(len(taken), take, "how many")
        same(taken & {key for held in self.holding.values() for key in held}, set(), "held twice")
        same([has_place(lock, n, owner) for n in range(len(keys))], [False] * len(keys), "places")
        self.holding[owner] = taken
        del self.waiting[owner]
        self.served += 1

    def leave_one(self, owner):
        same(self.lock(self.holding.pop(owner)).release(owner)[0], "RELEASED")

    def step(self, leaving):
        if self.holding and self.dice.random() < leaving:
            self.leave_one(self.dice.choice(list(self.holding)))
        elif self.waiting:
            self.call_one(self.dice.choice(list(self.waiting)))

    def check(self):
        lock = self.lock(self.NAMES)
        looks = [word for key in lock.keys for word in (["HGETALL", key], ["PTTL", key])]
        looked = self.server.pipeline(looks)
        for name, flat, ttl in zip(self.NAMES, looked[::2], looked[1::2]):
            fields = dict(zip(flat[::2], flat[1::2]))
            same(list(View(fields, self.now).faults(ttl)), [], name)


@test("any: by chance: no client has too many, no key two holders, and all get theirs in the end")
def _(server):
    for seed in range(int(os.environ.get("RLOCK_OPERATIONS") or 5000) // 500):
        server.call("FLUSHALL")
        contenders = Contenders(server, seed)
        for number in range(40):
            contenders.come(number)
            for _step in range(contenders.dice.randint(0, 6)):
                contenders.step(0.3)
            contenders.check()
        for _step in range(3000):
            if not contenders.waiting:
                break
            contenders.step(0.3)
        same((contenders.served, contenders.waiting), (40, {}), f"seed {seed}")
        contenders.check()


main()
