#!/usr/bin/env -S python3 -B
"""latch.lua by itself: replies, fields, ids, time to live; and against a model. Prints TAP."""
import random
from script_server import pairs, read_script, with_clock_given
from script_tap import DAY, GIVEN, fails, full, main, same, test, true

W, V = "w" * 36, "v" * 36  # what tells latches of one name apart


class Latch:
    """One latch, whose script sees the time "now", in ms; with None, the server's own."""

    def __init__(self, server, name="k", now=1700000000000):
        text = read_script("latch")
        self.server, self.now, self.key = server, now, "rlock:{%s}" % name
        self.text = text if now is None else with_clock_given(text)

    def run(self, what, **arguments):
        clock = [] if self.now is None else [self.now // 1000, self.now % 1000 * 1000]
        keys = [self.key] + clock
        return self.server.call("EVAL", self.text, len(keys), *keys,
                                *pairs("latch", what=what, **arguments))

    def set(self, number, word=W, ttl=DAY):
        return self.run("set", word=word, number=number, ttl=ttl)

    def count(self, name, number=1, word=""):
        return self.run("count", field=name, number=number, word=word)

    def fields(self):
        flat = self.server.call("HGETALL", self.key)
        return dict(zip(flat[::2], flat[1::2]))

    def ttl(self):
        """ms; -1: the key has none; -2: there is no key."""
        return self.server.call("PTTL", self.key)

    def says(self, left, number, word=W, since=None, ttl=DAY, counted=0):
        """The reply that tells this."""
        since = self.now if since is None else since
        return ["LATCH", self.now, left, number, word, since, since + ttl, counted]


GIVEN["latch"] = Latch


@test("set: a latch has a count, a time to live and no more; a second set is refused")
def _(latch):
    same(latch.set(3, ttl=5000), latch.says(3, 3, ttl=5000))
    since, until = str(latch.now), str(latch.now + 5000)
    fields = {"k": "latch/1", "n": "3", "l": "3", "g": W, "s": since, "e": until}
    same(latch.fields(), fields)
    true(0 < latch.ttl() <= 5000, "ttl")
    same(latch.set(3, word=V), ["EXISTS", latch.now])
    same(latch.fields(), fields)


@test("set: works with the server's own clock")
def _(server):
    latch = Latch(server, now=None)
    seconds, _micros = server.call("TIME")
    reply = latch.set(1)
    true(0 <= reply[1] - int(seconds) * 1000 <= 5000, "now")
    same(reply[6] - reply[5], DAY)
    same(latch.count("d:a")[2], 0)


@test("count: leaves the time to live as it was set")
def _(latch):
    latch.set(2, ttl=10000)
    since = latch.now
    latch.now += 4000
    same(latch.count("d:a"), latch.says(1, 2, since=since, ttl=10000, counted=1))
    true(5000 < latch.ttl() <= 6000, "ttl")


@test("a latch whose time is over is absent, though the server has it yet")
def _(latch):
    latch.set(2, ttl=5000)
    latch.count("d:a", 2)
    latch.now += 5000
    same(latch.run("look"), ["ABSENT", latch.now])
    same(latch.count("d:b"), ["ABSENT", latch.now])
    same(latch.run("delete"), ["ABSENT", latch.now])
    same(latch.set(4, word=V), latch.says(4, 4, word=V))
    true("d:a" not in latch.fields(), "an id of the old one is left")
    true(DAY - 5000 < latch.ttl() <= DAY, "ttl")


@test("delete leaves nothing; list has the ids in order, and how many counted without one")
def _(latch):
    latch.set(9)
    for name in ("d:b", "d:a", "r:x", "r:y", "d:d:c"):
        latch.count(name)
    same(latch.run("list"), latch.says(4, 9) + [2, ["a", "b", "d:c"]])
    same(latch.run("delete"), latch.says(4, 9))
    same(latch.ttl(), -2, "the key")


@test("a lock, another type and an unreadable hash are refused as latches (H21)")
def _(server):
    def refused(what):
        before = server.call("DUMP", latch.key)
        same([latch.set(1), latch.count("d:a")], [["MISFIT", latch.now, what]] * 2)
        for verb in ("look", "list", "delete"):
            same(latch.run(verb), ["MISFIT", latch.now, what])
        same(server.call("DUMP", latch.key), before)

    latch = Latch(server)
    server.call("HSET", latch.key, "k", "lock/1", "f", 7)
    refused("lock/1")
    server.call("DEL", latch.key)
    server.call("SET", latch.key, "0")
    refused("damaged")
    server.call("DEL", latch.key)
    server.call("HSET", latch.key, "l", 0)
    refused("damaged")
    for field, value in (
        ("l", "inf"),
        ("l", "-1"),
        ("l", "4"),
        ("n", "0x3"),
        ("e", "1e99"),
        ("s", ""),
    ):
        server.call("DEL", latch.key)
        latch.set(3)
        server.call("HSET", latch.key, field, value)
        refused("damaged")
    for field in "nlgse":
        server.call("DEL", latch.key)
        latch.set(3)
        server.call("HDEL", latch.key, field)
        refused("damaged")


# test_scripts_refuse.py has the other scripts, with keys of any type.
@test("inspect: a latch is told from a lock, by its layout")
def _(server, latch):
    latch.set(3)
    keys = [latch.key, latch.now // 1000, latch.now % 1000 * 1000]
    reply = server.call("EVALSHA", server.sha["inspect", True], len(keys), *keys)
    same(reply[:3], ["MISFIT", latch.now, "latch/1"])


@test("waiters are called when the latch is set, open or deleted, not by other counts")
def _(latch, ear):
    latch.run("look")
    same(ear.heard(), [])
    latch.set(3)
    same(ear.heard(), ["latch"], "set")
    latch.set(3)
    latch.count("d:a")
    latch.run("list")
    same(ear.heard(), [], "not open yet")
    latch.count("d:b", 2)
    same(ear.heard(), ["latch"], "open")
    latch.count("d:b")
    latch.count("d:c")
    same(ear.heard(), [], "open already")
    latch.run("delete")
    same(ear.heard(), ["latch"], "deleted")


@test("a full server counts and deletes, and sets nothing")
def _(server):
    latch, other = Latch(server), Latch(server, "other")
    latch.set(2)
    with full(server):
        same(latch.count("d:a"), latch.says(1, 2, counted=1))
        fails("OOM", lambda: other.set(1))
        same(latch.run("delete")[0], "LATCH")


@test("random operations have the results that they have in a plain model")
def _(server):
    for seed in range(40):
        rng = random.Random(seed)
        latch, model = Latch(server, f"m{seed}"), None
        for step in range(80):
            latch.now += rng.choice((0, 1, 500, 4000))
            if model and model["until"] <= latch.now:
                model = None
            verb = rng.choice(("set", "count", "count", "count", "count", "look", "delete"))
            word = rng.choice((W, V))
            number = rng.choice((1, 1, 2, 5))
            name = rng.choice("dr") + ":" + rng.choice("abcdefgh")
            only = rng.choice(("", "", "", W))
            ttl = rng.choice((20000, 90000))
            counted = 0
            if verb == "set":
                reply = latch.set(number, word, ttl)
                if model and model["word"] != word:
                    want = ["EXISTS", latch.now]
                else:
                    model = model or {"word": word, "number": number, "counts": {},
                                      "since": latch.now, "until": latch.now + ttl}
                    want = None
            elif not model:
                reply = latch.count(name, number, only) if verb == "count" else latch.run(verb)
                want = ["ABSENT", latch.now]
            elif verb == "count":
                reply = latch.count(name, number, only)
                left = model["number"] - sum(model["counts"].values())
                want = ["OTHER", latch.now] if only and only != model["word"] else None
                if not want and name not in model["counts"] and left:
                    model["counts"][name] = min(number, left)
                    counted = 1
            else:
                reply, want = latch.run(verb), None
            if want is None:
                left = model["number"] - sum(model["counts"].values())
                want = ["LATCH", latch.now, left, model["number"], model["word"], model["since"],
                        model["until"], counted]
            same(reply, want, f"seed {seed}, step {step}, {verb}")
            if model and verb == "delete":
                model = None
            fields = latch.fields() if model else {}
            counts = {key: int(fields[key]) for key in fields if ":" in key}
            same(counts, model["counts"] if model else {}, f"seed {seed}, step {step}, fields")
            if model:
                true(0 < latch.ttl() <= 90000, f"seed {seed}, step {step}: ttl {latch.ttl()}")


main()
