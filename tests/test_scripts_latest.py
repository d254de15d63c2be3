#!/usr/bin/env -S python3 -B
"""The scripts of src/rules/lua: who queues up sends away those of its group. Prints TAP."""
from script_server import PLACE_TTL
from script_tap import A, B, C, D, TOKEN, WHO, main, same, test, true


def latest(lock, owner, group="", **options):
    return lock.acquire(owner, who=WHO, group=group, **options)


@test("latest: a waiter of the same group is sent away, poked, and told by whom")
def _(lock, ear):
    lock.acquire(A)
    same(latest(lock, B)[0], "QUEUED")
    same(latest(lock, C, group="k")[0], "QUEUED")
    same(ear.heard(), [B], "poked")
    reply = latest(lock, B, places="q:1")
    same(reply[:3], ["SUPERSEDED", lock.now, 1])
    same(reply.waiter.split()[1:4], [C, str(lock.now), "x"])
    same(latest(lock, B), reply, "asked again, without its place")
    same(lock.fields()["g:q:k"], C, "the group")
    lock.release(A)
    same(ear.heard(), [C], "woken")
    same(latest(lock, C)[0], "GRANTED")
    same([name for name in lock.fields() if name[0] == "g"], ["g"], "what is left")


@test("latest: holders, waiters of other groups or of none, and tries are not sent away")
def _(lock, ear):
    same(latest(lock, A)[0], "GRANTED")
    lock.acquire(B)
    latest(lock, C, group="one")
    same(latest(lock, D, group="two")[0], "QUEUED")
    same(latest(lock, "e" * 36, group="one", queue=False)[0], "HELD")
    same(ear.heard(), [], "poked")
    true("h:" + A in lock.fields(), "the holder")
    same(latest(lock, C, group="one", places="q:2")[0], "QUEUED")
    lock.release(A)
    same(lock.acquire(B)[0], "GRANTED", "who gave no --latest")


@test("latest: a dropped waiter comes back to its place, but not before the one that came instead")
def _(lock):
    lock.acquire(A, lease=600000)
    latest(lock, B)
    lock.acquire(C)
    lock.now += PLACE_TTL
    lock.acquire(C)
    reply = latest(lock, B, places="q:1")
    same([reply[0], reply.places], ["QUEUED", "q:1"], "its old place")
    lock.now += PLACE_TTL
    latest(lock, D)
    lock.now += 3600000
    lock.renew(A)
    same(latest(lock, B, places="q:1")[0], "SUPERSEDED", "an hour later")


@test("latest: who has waited for longer, for another of its keys, sends no later waiter away")
def _(lock, ear):
    lock.acquire(A)
    latest(lock, B)
    lock.now += 1000
    reply = lock.acquire(C, who=WHO + " waited=5000", group="")
    same([reply[0], ear.heard()], ["SUPERSEDED", []])
    same(lock.acquire(D, who=WHO + " waited=500", group="")[0], "QUEUED", "who came later")
    same(latest(lock, B, places="q:1")[0], "SUPERSEDED")


@test("latest: a waiter that was sent away hears so at its next call, also where the lock is free")
def _(lock):
    lock.acquire(A)
    latest(lock, B)
    latest(lock, C)
    lock.release(A)
    same(latest(lock, C)[0], "GRANTED", "who came instead")
    lock.release(C)
    same(latest(lock, B)[0], "SUPERSEDED")
    same(latest(lock, D)[0], "GRANTED", "who was never sent away")


@test("latest: a waiter that is handed the lock while another one supersedes it runs")
def _(lock, ear):
    lock.acquire(A)
    latest(lock, B, offer=TOKEN)
    lock.release(A)
    same(latest(lock, C)[0], "QUEUED", "B has it")
    same([who for who, *_rest in ear.handed()], [B])
    same(lock.renew(B)[0], "RENEWED")
    latest(lock, D, offer=TOKEN)
    lock.release(B)
    same([who for who, *_rest in ear.handed()], [C, D], "C is told, D has it")
    same(latest(lock, C, places="q:2")[0], "SUPERSEDED")


@test("latest: the number of remembered waiters that were sent away is bounded")
def _(lock):
    lock.acquire(A)
    for n in range(200):
        latest(lock, "%036d" % n)
    same(len(lock.fields()["g"].split("\n")), 64)
    same(len([name for name in lock.fields() if name[:2] in ("w:", "q:", "g:")]), 3, "fields")


main()
