"""One server with many waiters, many locks, and many keys of others. Where processes would need too
much memory, rlock's scripts are called directly. The least of a script's times counts: other work
of the machine only adds to it."""
import os
import re
import subprocess
import sys
import time

from crowd import run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
from script_server import Client, Lock, Server, pairs  # noqa: E402

WAITERS = 10, 100, 1000, 10000
LOCKS = 100000
FOREIGN = 1000000
CONNECTIONS = 500
CALLS = 20000
ROUNDS = 15
DAY = 86400000
WHO = "build ci-%d.example.com 4121 deploy.sh 12345 -"
HOLDER = "a" * 36


def owner(number):
    return f"{number:036d}"


class Measured:
    """The server's own statistics."""

    def __init__(self, server):
        self.server = server

    def memory(self):
        return int(re.search(r"used_memory:(\d+)", self.server.call("INFO", "memory"))[1])

    def cost(self, words):
        """(reply, microseconds of the call)"""
        self.server.call("CONFIG", "RESETSTAT")
        reply = self.server.call(*words)
        stats = self.server.call("INFO", "commandstats")
        return reply, float(re.search(r"cmdstat_evalsha:\S*usec_per_call=([\d.]+)", stats)[1])

    def least(self, words):
        return min(self.cost(words)[1] for _ in range(ROUNDS))


def waits(lock, number, place=""):
    return lock.words(
        "acquire", owner(number), DAY, place_ttl=DAY, places=place, count=True, who=WHO % number,
        accept_by_message=f"{number:022d}", accept_ms=DAY,
    )


def queue(samples, measured, count):
    """One lock and so many waiters."""
    server = measured.server
    server.call("FLUSHALL")
    lock = Lock(server, "busy", now=None)
    lock.acquire(HOLDER, lease=DAY)
    before = measured.memory()
    server.pipeline([waits(lock, number) for number in range(1, count + 1)])
    samples.add("a waiter's memory", "rlock", count, (measured.memory() - before) / count)
    for what, place in (("first", 1), ("middle", (count + 1) // 2), ("last", count)):
        spent = measured.least(waits(lock, place, f"q:{place}"))
        samples.add(f"heartbeat, {what}", "rlock", count, spent)
    samples.add("renewal", "rlock", count, measured.least(lock.words("renew", HOLDER, DAY)))
    inspect(samples, measured, lock, count)
    hand_on(samples, measured, lock, count)


def inspect(samples, measured, lock, count):
    """As "status KEY" does: the part behind the reply's first nine says where to continue."""
    parts, first, last = [], 0, 0
    while first or not parts:
        words = lock.words("inspect", **{"from": first, "to": last})
        parts.append(measured.least(words))
        first, last = measured.server.call(*words)[9:11] or (0, 0)
        if len(parts) > count:
            raise OSError("status KEY does not come to the end of the queue")
    samples.add("status KEY", "rlock", count, sum(parts))
    samples.add("its longest call", "rlock", count, max(parts))


def hand_on(samples, measured, lock, count):
    """The release hands the lock to the first waiter, who renews it at once."""
    holder, spent = HOLDER, []
    for number in range(1, min(count, ROUNDS) + 1):
        _, release = measured.cost(lock.words("release", holder))
        reply, renewal = measured.cost(lock.words("renew", owner(number), DAY))
        if reply[0] != "RENEWED":
            raise OSError(f"the lock was not handed over: {reply}")
        spent.append(release + renewal)
        holder = owner(number)
    samples.add("hand-over's scripts", "rlock", count, min(spent))


def status(samples, server, what, times, query=""):
    for _ in range(times):
        url = f"unix://{server.path}{query}"
        seconds, _usage = run([os.environ["RLOCK"], "status", "-u", url])
        samples.add(what, "rlock", "", seconds)


def locks(samples, measured):
    """So many locks that are held."""
    server = measured.server
    server.call("FLUSHALL")
    calls = [
        [
            "EVALSHA", server.sha["acquire", False], 1, "rlock:{deploy-%d}" % number,
            *pairs("acquire", owner(number), DAY, who=WHO % number),
        ]
        for number in range(LOCKS)
    ]
    before = measured.memory()
    server.pipeline(calls)
    grown = (measured.memory() - before) / LOCKS
    samples.add("a lock's memory", "rlock", "memory of a lock that is held", grown)
    status(samples, server, "status of 100,000 locks", 1)
    lock = Lock(server, "deploy-7", now=None)
    spent = measured.least(lock.words("renew", owner(7), DAY))
    samples.add("renewal", "rlock", "renewal among 100,000 locks", spent)
    release = server.sha["release", False]
    server.pipeline(
        [
            ["EVALSHA", release, 1, "rlock:{deploy-%d}" % number, *pairs("release", owner(number))]
            for number in range(LOCKS)
        ]
    )
    grown = (measured.memory() - before) / LOCKS
    samples.add("a lock's memory", "rlock", "memory of one that is free", grown)


def rate(server, words):
    """Calls a second over 50 connections; __rand_int__ in a word is another number each time."""
    done = subprocess.run(
        ["redis-benchmark", "-s", server.path, "-c", "50", "-n", str(CALLS), "-r", "100000000",
         "--csv", *map(str, words)],
        check=True,
        capture_output=True,
        text=True,
    )
    line = done.stdout.strip().splitlines()[-1]
    return float(re.search(r'","([\d.]+)"', line)[1])


def rates(samples, measured):
    server = measured.server
    server.call("FLUSHALL")
    lock, free = Lock(server, "busy", now=None), Lock(server, "free-__rand_int__", now=None)
    lock.acquire(HOLDER, lease=DAY)
    server.pipeline([waits(lock, number) for number in range(1, 1001)])
    for what, words in (
        ("renewals", lock.words("renew", HOLDER, DAY)),
        ("heartbeats", waits(lock, 500, "q:500")),
        ("acquisitions", free.acquire_words("o__rand_int__", lease=DAY)),
    ):
        samples.add(what, "rlock", "", max(rate(server, words) for _ in range(3)))


def foreign(samples, measured):
    """So many keys of others, in the database of the locks and beside it."""
    server = measured.server
    server.call("FLUSHALL")
    for start in range(0, FOREIGN, 1000):
        words = ["MSET"]
        for number in range(start, start + 1000):
            words += [f"session:{number:020d}", "x"]
        server.call(*words)
    for number in range(100):
        Lock(server, f"job{number}", now=None).acquire(owner(number), lease=DAY)
    status(samples, server, "status beside 1,000,000 keys", 3)
    server.call("CONFIG", "RESETSTAT")
    cursor = None
    while cursor != "0":
        cursor, _ = server.call("SCAN", cursor or "0", "MATCH", "rlock:{*}", "COUNT", 1000)
    stats = server.call("INFO", "commandstats")
    spent = float(re.search(r"cmdstat_scan:\S*usec_per_call=([\d.]+)", stats)[1])
    samples.add("a SCAN of 1000", "rlock", "", spent)
    status(samples, server, "status in another database", 3, "?db=3")


def connections(samples, measured):
    """Waiters that listen."""
    server = measured.server
    before = measured.memory()
    clients = [Client(server.path) for _ in range(CONNECTIONS)]
    for number, client in enumerate(clients):
        client.call("SUBSCRIBE", "rlock:{busy}:" + owner(number))
    time.sleep(2)  # the server shrinks buffers now and then
    samples.add("a connection's memory", "rlock", "", (measured.memory() - before) / CONNECTIONS)
    for client in clients:
        client.close()


def many(samples):
    server = Server()
    measured = Measured(server)
    try:
        for count in WAITERS:
            queue(samples, measured, count)
        connections(samples, measured)
        rates(samples, measured)
        locks(samples, measured)
        foreign(samples, measured)
    finally:
        server.stop()
