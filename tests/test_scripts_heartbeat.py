#!/usr/bin/env -S python3 -B
"""The short way of acquire.lua for a waiter's usual call (quick_heartbeat.lua): whatever happens,
the script without it answers, writes and tells the same. Prints TAP.

RLOCK_SEED=N chooses another run, RLOCK_OPERATIONS=N its length."""
import os, random
from script_server import (
    FAR_TTL, HANDED, MARKER, PAUSES, PLACE_TTL, Empty, ReplyError, Server, changed, pairs,
    read_script, with_clock_given, with_near, with_own, without_short_way,
)
from script_tap import main, same, test, true

TAKEN = "if not blocked then return nil end\n"
COUNTER = "taken"
START = 1700000000000
# So long that a key's time to live tells them apart, however slow the test is.
LEASES = (600000, 3600000, 3600000, 86400000)
STALL = 120000
KEYS = ("a",), ("a",), ("a",), ("a",), ("b",), ("a", "b"), ("b", "a"), ("c", "a", "b")
MODES = ("x", 0), ("x", 0), ("x", 0), ("s", 0), ("l", 1), ("l", 2), ("l", 0)
# As where who has held it for longest has left.
UNKNOWN_OLDEST = """local held = redis.call('HGET', KEYS[1], 's')
if held then redis.call('HSET', KEYS[1], 's', (string.gsub(held, '%S+$', '-'))) end"""
MIRROR = "mirror{%s}"
NO_STRING = "redis.call('DEL', KEYS[1]); redis.call('LPUSH', KEYS[1], 'no string')"
NOTES = {" hears=1": 0.5, " waited=1000": 0.1}
WISHES = (
    ("latest", Empty(""), 0.05), ("latest", "one", 0.05), ("replace", 1, 0.1),
    ("priority", 1, 0.05), ("priority", 5, 0.05), ("bound", 1000, 0.05), ("bound", 10000, 0.05),
    ("unless_done", 1, 0.05), ("unless_done", 3600000, 0.05),
)
NEAR = 2  # tickets: those behind them may be far
HOW_OFTEN = {
    "acquire": 40, "heartbeats": 60, "twin": 10, "release": 5, "renew": 8, "new": 10,
    "pass_time": 12, "clock": 1, "adjust": 1.5, "pauses": 0.5, "force": 1, "delete": 0.2,
    "damage": 1,
}


class Pair:
    """Two servers of which each is asked the same: one takes the short way, and counts how often;
    the other never does."""

    def __init__(self, server):
        self.servers = server, Server()
        for one in self.servers:
            one.load_all(NEAR)
        given = with_clock_given(with_near(read_script("acquire"), NEAR))
        counting = changed(given, TAKEN, f"{TAKEN}redis.call('INCR', '{COUNTER}')\n")
        self.sha = [
            dict(server.sha, acquire=server.load(counting)),
            dict(server.sha, acquire=self.servers[1].load(without_short_way(given))),
        ]
        self.ears = [one.listen() for one in self.servers]
        # In a hash of this kind fields are in the order in which they came, not in one by chance.
        self.call("CONFIG", "SET", "hash-max-listpack-entries", 10000,
                  "hash-max-listpack-value", 100000)

    def taken(self):
        return int(self.servers[0].call("GET", COUNTER) or 0)

    def run(self, now, script, keys, mirrors=(), **arguments):
        """The reply; AssertionError if anything differs."""
        mirrors = with_own(mirrors, arguments)
        args = pairs(script, mirrors=len(mirrors), **arguments)
        seen = []
        for server, sha, ear in zip(self.servers, self.sha, self.ears):
            digest = sha.get(script) or sha[script, True]
            named = [*keys, *mirrors, now // 1000, now % 1000 * 1000]
            words = ["EVALSHA", digest, len(named), *named, *args]
            looks = [word for key in keys for word in (["PTTL", key], ["HGETALL", key])]
            reply, *looked, _heard = server.pipeline([words, *looks, ear.END])
            if isinstance(reply, ReplyError):
                reply = str(reply).split(" script: ")[0].split("user_script")
            fields = [dict(zip(flat[::2], flat[1::2])) for flat in looked[1::2]]
            seen.append(((reply, fields, ear.messages(ended=True)), looked[::2]))
        same(seen[0][0], seen[1][0], f"with the short way (got) and without it, after {args}")
        for one, other in zip(seen[0][1], seen[1][1]):
            true(abs(one - other) < STALL, f"time to live: {one} and {other}, after {args}")
        reply = seen[0][0][0]
        if reply[0] == "MIRROR":
            return self.run(now, script, keys, reply[2], **arguments)
        return reply

    def call(self, *words):
        return [server.call(*words) for server in self.servers][0]


class Client:
    """One who wants a lock, and asks for it again and again in the same way."""

    born = 0

    def __init__(self, rng, clients):
        Client.born += 1
        parent = rng.choice(clients) if clients and rng.random() < 0.3 else None
        above = parent.owner + "." if parent and parent.owner.count(".") < 3 else ""
        self.owner = f"{above}n{Client.born}"
        self.keys = [f"rlock:{{{name}}}" for name in rng.choice(KEYS)]
        if parent and rng.random() < 0.5:
            self.keys = parent.keys
        self.lease = rng.choice(LEASES)
        self.places, self.asleep = "", False
        self.mode, self.limit = rng.choice(MODES)
        self.who, self.more = "", {}
        if self.mode == "x" and len(self.keys) == 1 and rng.random() < 0.1:
            self.more["mirror"] = "string:" + MIRROR % self.keys[0][7:-1]
        if rng.random() < 0.9:
            self.who = "host user 1 cmd -"
            self.who += "".join(note for note, share in NOTES.items() if rng.random() < share)
        self.more |= {name: value for name, value, share in WISHES if rng.random() < share}
        if len(self.keys) > 1 and rng.random() < 0.2:
            self.more["take"] = f"{rng.randrange(1, len(self.keys))}/{len(self.keys)}"
        what = rng.random()
        if what < 0.5:
            self.more |= {"accept_by_message": f"Tt{Client.born:020d}", "accept_ms": HANDED}
        elif what < 0.55:
            self.more["epoch"] = MARKER

    def arguments(self, rng):
        may_be_far = len(self.keys) == 1 and "." not in self.owner and not (
            self.more.keys() - {"accept_by_message", "accept_ms", "bound", "replace"})
        return {
            "far_ttl": may_be_far and FAR_TTL,
            "owner": self.owner, "lease": self.lease, "who": self.who, "pauses": PAUSES,
            "place_ttl": rng.random() < 0.93 and PLACE_TTL, "queue_only": rng.random() < 0.07,
            "places": rng.random() < 0.9 and self.places, "count": rng.random() < 0.7,
            "mode": self.mode, "limit": self.limit, "no_nesting": rng.random() < 0.05, **self.more,
        }


class History:
    """Any of the operations, by chance."""

    def __init__(self, rng, pair):
        self.rng, self.pair, self.now, self.answers = rng, pair, START, {}
        self.clients, self.attempt, self.sent = [], 0, []
        for _number in range(rng.choice((3, 5, 8))):
            self.clients.append(Client(rng, self.clients))
        pair.call("DEL", *(f"rlock:{{{name}}}" for name in "abc"), MARKER, PAUSES,
                  *(MIRROR % name for name in "abc"))

    def step(self):
        what = self.rng.choices(list(HOW_OFTEN), HOW_OFTEN.values())[0]
        getattr(self, what)(self.rng.choice(self.clients))

    def run(self, script, keys, **arguments):
        return self.pair.run(self.now, script, keys, **arguments)

    def request(self, script, keys, **arguments):
        """Most have a number."""
        self.attempt += self.rng.random() < 0.9
        self.sent = [(script, keys, {**arguments, "attempt": self.attempt})] + self.sent[:9]
        return self.run(script, keys, **self.sent[0][2])

    def twin(self, _client):
        """One of the latest requests arrives once more."""
        if self.sent:
            script, keys, arguments = self.rng.choice(self.sent)
            reply = self.run(script, keys, **arguments)
            self.answers["twin " + reply[0]] = self.answers.get("twin " + reply[0], 0) + 1

    def acquire(self, client):
        reply = self.request("acquire", client.keys, **client.arguments(self.rng))
        client.places = reply[2] if reply[0] == "QUEUED" else ""
        self.answers[reply[0]] = self.answers.get(reply[0], 0) + 1

    def heartbeats(self, _client):
        """Of all that wait and are awake, a moment later."""
        self.now += self.rng.randrange(2500)
        for client in self.rng.sample(self.clients, len(self.clients)):
            if client.places and not client.asleep:
                self.acquire(client)

    def release(self, client):
        self.request("release", client.keys, owner=client.owner,
                     bar=self.rng.choice((0, 0, 0, 60000)),
                     notes=self.rng.choice(("ran=1 exit=0", "ran=1 exit=1", "unused=1")))

    def renew(self, client):
        self.request("renew", client.keys, owner=client.owner)

    def new(self, client):
        """Gives up without a word, or is asleep for a while."""
        if self.rng.random() < 0.5:
            client.asleep = not client.asleep
        else:
            self.clients.remove(client)
            self.clients.append(Client(self.rng, self.clients))

    def pass_time(self, client):
        ends = [client.lease, PLACE_TTL, PLACE_TTL // 2, 1000, HANDED, 10]
        self.now += max(self.rng.choice(ends) - self.rng.randrange(2), 0)

    def clock(self, _client):
        self.now += self.rng.choice((-3600000, -5000, -5000, 3600000))

    def adjust(self, client):
        self.run("adjust", client.keys[:1], **self.rng.choice((
            {"what": "limit", "limit": "0"}, {"what": "limit", "limit": 1},
            {"what": "limit", "limit": 2}, {"what": "limit"}, {"what": "limit"},
            {"what": "pause", "ms": 5000, "who": "host user 1 cmd -"}, {"what": "resume"},
            {"what": "globs", "pauses": PAUSES},
        )))

    def pauses(self, _client):
        self.run("pauses", [PAUSES], glob="rlock:{b*}", **self.rng.choice((
            {"what": "pause", "ms": 5000, "who": "host user 1 cmd - glob=b*"}, {"what": "resume"},
        )))

    def force(self, client):
        self.run("force", client.keys[:1], owners=client.owner, notes="by=x",
                 purge=self.rng.randrange(2), how=self.rng.choice(("now", "ask", "again", "over")))

    def delete(self, client):
        self.pair.call("DEL", client.keys[0])

    def damage(self, client):
        """Writes as other programs, or none at all, would do."""
        key, place = client.keys[0], (client.places or "q:1").split()[0].split("/")[0]
        self.pair.call(*self.rng.choice((
            ("HDEL", key, place), ("HDEL", key, "q:1"), ("HSET", key, place, "what"),
            ("HSET", key, "w:" + client.owner, "q:1"), ("HSET", key, "q", "1 3 2"),
            ("HSET", key, "q", "1 1 0"), ("HSET", key, "q", "4 6 0"),
            ("DEL", MIRROR % key[7:-1]), ("EVAL", NO_STRING, 1, MIRROR % key[7:-1]),
            ("EVAL", UNKNOWN_OLDEST, 1, key),
        )))


@test("heartbeat: whatever comes by chance, its short way is not to be noticed")
def _(server):
    seed = int(os.environ.get("RLOCK_SEED") or 1)
    left = int(os.environ.get("RLOCK_OPERATIONS") or 10000)
    print(f"# RLOCK_SEED={seed}, {left} operations")
    rng, pair, answers = random.Random(seed), Pair(server), {}
    try:
        while left > 0:
            history = History(rng, pair)
            for _operation in range(rng.choice((50, 150))):
                history.step()
                left -= 1
            for word, times in history.answers.items():
                answers[word] = answers.get(word, 0) + times
        print("#", pair.taken(), "by the short way;", answers)
        true(pair.taken() > sum(answers.values()) / 10, "the short way is hardly ever taken")
    finally:
        pair.servers[1].stop()


main()
