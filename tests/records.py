#!/usr/bin/env -S python3 -B
"""records.py [--write [STATE...]]: what rlock 1.0.0 has left in a server, and what this rlock makes
of it.

records-1.0.0.json has the keys of a server in each of STATES, as 1.0.0 wrote them, and what 1.0.0
said of them. Each state is loaded, with its times moved to now, and this rlock has to say the same,
to be refused and let in the same, and to take over what it finds. docs/stability.md promises that
old and new share locks.

With --write and RLOCK=PROGRAM of that version, it writes the file, or only those STATEs: once, when
a layout is new. tests/versions.bats builds such a program.
Prints TAP."""
import json, os, re, shutil, subprocess, sys, time
from contenders import RLOCK, environment
from script_server import Server
from script_tap import GIVEN, main, same, test, true

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = os.path.join(HERE, "records-1.0.0.json")
LEASE = "2h"  # nothing of a state ends while it is looked at
# Members that depend on the time.
VOLATILE = re.compile(r"_ms$|^since$|^until$|^at$|^began$|^ended$|^time$")
# A time of the server, in milliseconds or microseconds since 1970.
TIME = re.compile(r"(?<![0-9])(1[6-9][0-9]{11}(?:[0-9]{3})?)(?![0-9])")
WAIT = 60  # s, for a command to be where a state needs it


class Store:
    """The server, and rlock with it."""

    def __init__(self, server):
        self.call, self.started, self.stderr = server.call, [], ""
        config = os.path.join(server.directory, "config")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"lease = {LEASE}\n")
        self.environment = environment("unix://" + server.path, XDG_STATE_HOME=server.directory,
                                       RLOCK_CONFIG=config, HOME=server.directory)
        self.environment.pop("CI", None)
        server.opened.append(self)

    def start(self, words):
        self.started.append(subprocess.Popen([RLOCK, *words.split()], env=self.environment,
                                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                             stderr=subprocess.DEVNULL))

    def run(self, *words):
        """Returns its status and its standard output."""
        done = subprocess.run([RLOCK, *words], env=self.environment, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=WAIT)
        self.stderr = done.stderr
        return done.returncode, done.stdout

    def json(self, *words):
        _, text = self.run(*words)
        return json.loads(text or "null")

    def wait_for(self, key, holders, waiters=0):
        deadline = time.monotonic() + WAIT
        while True:
            found = [lock for lock in self.json("status", "--json") if lock["key"] == key]
            if found and (len(found[0]["holders"]), len(found[0]["waiters"])) == (holders, waiters):
                return
            true(time.monotonic() < deadline, f"{key}: {found}")
            time.sleep(0.02)

    def close(self):
        for command in self.started:
            command.terminate()
        for command in self.started:
            command.wait()


GIVEN["store"] = Store

# name: what leads to it. Of a run: its words, the key, then how many hold it and wait for it.
SLEEP = "-- sleep 1000"
STATES = {
    "a run": [(f"run k {SLEEP}", "k", 1, 0)],
    "a label and no identity": [(f"run --label a'b --no-identity k {SLEEP}", "k", 1, 0)],
    "a fixed lease": [(f"run --no-renew k {SLEEP}", "k", 1, 0)],
    "one waits": [(f"run k {SLEEP}", "k", 1, 0), ("run k -- true", "k", 1, 1)],
    "waiters with priorities": [(f"run k {SLEEP}", "k", 1, 0), ("run k -- true", "k", 1, 1),
                                ("run --priority 9 k -- true", "k", 1, 2),
                                ("run --priority -9 k -- true", "k", 1, 3)],
    "the latest waits": [(f"run k {SLEEP}", "k", 1, 0), ("run --latest k -- true", "k", 1, 1)],
    "a group's latest": [(f"run k {SLEEP}", "k", 1, 0),
                         ("run --latest --group g k -- true", "k", 1, 1)],
    "readers": [(f"run --read k {SLEEP}", "k", 1, 0), (f"run --read k {SLEEP}", "k", 2, 0)],
    "readers, and a writer waits": [(f"run --read k {SLEEP}", "k", 1, 0),
                                    ("run k -- true", "k", 1, 1),
                                    ("run --read k -- true", "k", 1, 2)],
    "a writer, and readers wait": [(f"run k {SLEEP}", "k", 1, 0),
                                   ("run --read k -- true", "k", 1, 1),
                                   ("run --read k -- true", "k", 1, 2)],
    "a semaphore with a slot left": [(f"run --limit=3 k {SLEEP}", "k", 1, 0),
                                     (f"run --limit=3 k {SLEEP}", "k", 2, 0)],
    "a full semaphore": [(f"run --limit=2 k {SLEEP}", "k", 1, 0),
                         (f"run --limit=2 k {SLEEP}", "k", 2, 0),
                         ("run --limit=2 k -- true", "k", 2, 1)],
    "several KEYs": [(f"run k other {SLEEP}", "k", 1, 0),
                     ("run other more -- true", "other", 1, 1)],
    "one of several KEYs": [(f"run --any k other {SLEEP}", "k", 1, 0)],
    "two of three KEYs": [(f"run --any --take 2 k other more {SLEEP}", "k", 1, 0)],
    "nested": [("run k -- RLOCK run k -- sleep 1000", "k", 2, 0)],
    "nested, another KEY": [("run k -- RLOCK run other -- sleep 1000", "other", 1, 0)],
    "a script's": [("acquire k",)],
    "a script's, for readers": [("acquire --read k",)],
    "reserved": [("reserve -m upgrade k 2h",)],
    "it was held": [("run k -- true",), ("run k -- false",)],
    "held for a while yet": [("run --at-least 1h k -- true",)],
    "a stored limit": [("limit k 2",), (f"run --limit k {SLEEP}", "k", 1, 0)],
    "paused": [("pause -m repair k 2h",)],
    "paused while it is held": [(f"run k {SLEEP}", "k", 1, 0),
                                ("pause -m repair k* 2h",)],
    "asked to be released": [("acquire k",), ("force-release --yes --reason x k",)],
    "taken away": [("acquire k",), ("force-release --now --yes --reason x k",)],
    "a newer rlock is asked for": [("init --minimum-version 1.0.0",)],
    "a server that was prepared": [("init",), (f"run --grace k {SLEEP}", "k", 1, 0)],
    "a latch": [("latch set k 3",), ("latch count-down k",)],
    "an open latch": [("latch set k 1",), ("latch count-down k",)],
    "Redisson's as well": [(f"run --mirror redisson:theirs k {SLEEP}", "k", 1, 0)],
    "a string as well": [(f"run --mirror string:theirs k {SLEEP}", "k", 1, 0)],
}


def bring_about(store, state):
    for words, *where in STATES[state]:
        words = words.replace("RLOCK", RLOCK)
        if where:
            store.start(words)
            store.wait_for(*where)
        else:
            status, _ = store.run(*words.split())
            true(status < 64, f"{words}: {status}, {store.stderr}")


def dump(store):
    """Returns the keys of the server: [name, type, value, ms that it lives or -1]."""
    found = []
    for key in sorted(store.call("KEYS", "*")):
        kind = store.call("TYPE", key)
        value = (store.call("HGETALL", key) if kind == "hash" else
                 store.call("ZRANGE", key, 0, -1, "WITHSCORES") if kind == "zset" else
                 store.call("LRANGE", key, 0, -1) if kind == "list" else
                 store.call("SMEMBERS", key) if kind == "set" else [store.call("GET", key)])
        found.append([key, kind, value, store.call("PTTL", key)])
    return found


ADD = {"hash": "HSET", "list": "RPUSH", "set": "SADD", "string": "SET"}


def load(store, record):
    """Loads it as if it had been written just now."""
    seconds, micros = map(int, store.call("TIME"))
    later = seconds * 1000 + micros // 1000 - record["ms"]

    def move(match):
        time_ = int(match.group(1))
        return str(time_ + later * (1000 if len(match.group(1)) == 16 else 1))

    for key, kind, value, left in record["keys"]:
        value = [TIME.sub(move, word) for word in value]
        if kind == "zset":
            store.call("ZADD", key, *(word for pair in zip(value[1::2], value[::2])
                                      for word in pair))
        else:
            store.call(ADD[kind], key, *value)
        if left > 0:
            store.call("PEXPIRE", key, left)


def settled(value):
    """Without what depends on the time."""
    if isinstance(value, dict):
        return {name: settled(one) for name, one in value.items() if not VOLATILE.search(name)}
    if isinstance(value, list):
        return [settled(one) for one in value]
    return value if not isinstance(value, int) or value < 10**12 else "a time or a fence"


def known(value, model):
    """Only the members that the model has: newer versions add some."""
    if isinstance(value, dict) and isinstance(model, dict):
        return {name: known(one, model[name]) for name, one in value.items() if name in model}
    if isinstance(value, list) and isinstance(model, list) and len(value) == len(model):
        return [known(one, other) for one, other in zip(value, model)]
    return value


ATTEMPTS = ("run -n k -- true", "read -n k -- true", "run -n --limit=2 k -- true",
            "run -n --limit=3 k -- true", "run -n other -- true", "run --any -n k other -- true",
            "latch wait -n k", "latch status k", "status -q k")


def looks(store):
    """Returns what is shown of a state."""
    return {words: settled(store.json(*words.split()))
            for words in ("status --json", "history --json", "latch list --json")}


def looked_at(store, record, words):
    """The status of an attempt; the state is as before."""
    store.call("FLUSHALL")
    load(store, record)
    return store.run(*words.split())[0]


def make_records(states):
    server, records = Server(), {}
    if states:
        with open(FILE, encoding="utf-8") as file:
            records = json.load(file)
    for state in states or STATES:
        server.call("FLUSHALL")
        store = Store(server)
        bring_about(store, state)
        seconds, micros = map(int, store.call("TIME"))
        record = {"ms": seconds * 1000 + micros // 1000, "keys": dump(store)}
        store.close()
        # A reservation is that of another person.
        shutil.rmtree(os.path.join(server.directory, "rlock"), ignore_errors=True)
        server.call("FLUSHALL")
        load(store, record)
        record["shown"] = looks(store)
        record["attempts"] = {words: looked_at(store, record, words) for words in ATTEMPTS}
        records[state] = record
        server.opened.clear()
    server.stop()
    with open(FILE, "w", encoding="utf-8") as file:
        json.dump(records, file, indent=1, sort_keys=True)
        file.write("\n")


def check_state(state, record):
    @test(f"1.0.0 left: {state}")
    def _(store):
        load(store, record)
        for words, want in record["shown"].items():
            same(known(settled(store.json(*words.split())), want), want, words)
        for words, want in record["attempts"].items():
            same(looked_at(store, record, words), want, f"{words}: its status")
        # Whatever it was, it can be taken away; of those that wait, each one is the holder then.
        store.call("FLUSHALL")
        load(store, record)
        store.run("latch", "delete", "k")
        for _ in range(5):
            for key in filter(None, (lock["key"] for lock in store.json("status", "--json"))):
                store.run("force-release", "--now", "--yes", key)
        same(store.run("status", "-q", "k")[0], 0, f"taken away, {store.stderr}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        make_records(sys.argv[2:])
        sys.exit()
    with open(FILE, encoding="utf-8") as file:
        for state, record in json.load(file).items():
            check_state(state, record)
    main()
