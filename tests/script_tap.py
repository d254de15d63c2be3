"""Shared by the tests of the scripts: words for expected records, and TAP."""
import contextlib, inspect, os, sys, traceback
from script_server import PLACE_TTL, Lock, ReplyError, Server
from tap import bail_out_by_signals, say

A, B, C, D, E, F = (letter * 36 for letter in "abcdef")  # owners, as long as real ones
WHO = "host user 1 cmd -"
TOKEN = "Tt0_-" * 4 + "Tt"  # of a hand-over
MINUTE = 60000
DAY = 86400000
TESTS = []
IN_A_HOST = "RLOCK_SCRIPT_STORE" in os.environ  # of test_scripts_hosts.py
# The arguments of a case, by the names of its parameters; each is made of the server.
GIVEN = {"server": lambda server: server, "lock": Lock, "ear": Server.listen}


def test(what, hosts=True):
    """hosts=False: a case of what only a Redis has, or does in a second."""

    def add(function):
        if hosts or not IN_A_HOST:
            TESTS.append((what, function))
        return function

    return add


def acquired(owner):
    """One as rlock acquire marks it (lock/owner.c)."""
    return owner[:13] + "-8acc-" + owner[:4] + "-" + owner[:12]


def same(got, want, what="reply"):
    if got != want:
        raise AssertionError(f"{what}:\n  got  {got!r}\n  want {want!r}")


def true(condition, what):
    if not condition:
        raise AssertionError(what)


def fails(word, call):
    """The server refuses it with an error that has this word."""
    try:
        raise AssertionError(f"not refused: {call()}")
    except ReplyError as error:
        true(word in str(error), str(error))


@contextlib.contextmanager
def full(server):
    """Out of memory."""
    server.call("CONFIG", "SET", "maxmemory", 1)
    try:
        yield
    finally:
        server.call("CONFIG", "SET", "maxmemory", 0)


def holder(lock, owner, fence, lease=30000, since=None, who=None, mode="x", slot=0):
    """The line of an owner that was granted or renewed now."""
    since = lock.now if since is None else since
    who = "who-" + owner if who is None else who
    return f"{lock.now + lease} {lease} {fence} {owner} {since} {mode} {slot} {who}"


def waiter(lock, owner, since=None, mode="x"):
    """The field q:N of an owner that called now; in capitals: that waits for another key."""
    since = lock.now if since is None else since
    return f"{lock.now + PLACE_TTL} {owner} {since} {mode} who-{owner}"


def by(lock, *lines, key=1, next_is=""):
    """The end of a refusal: which key, how many hold it, ms until the first may be dead, the oldest
    of them; or of none, who comes first in the queue."""
    left = min((int(line.split()[0]) for line in lines), default=lock.now) - lock.now
    return [key, len(lines), left, lines[0] if lines else next_is]


def fences_of(reply):
    same(reply[0], "GRANTED")
    return [int(fence) for fence in reply.fences]


def fence_of(reply):
    return fences_of(reply)[0]


def slot_of(reply):
    same(reply[0], "GRANTED")
    return reply.slots[0]


def place_of(reply):
    same(reply[0], "QUEUED")
    return reply.places


def held_by_a(server, *waiters):
    """A lock that A holds and "waiters" wait for, at tickets 1, 2, ...; and A's fence."""
    lock = Lock(server)
    fence = fence_of(lock.acquire(A))
    for ticket, owner in enumerate(waiters, 1):
        same(place_of(lock.acquire(owner)), f"q:{ticket}")
    return lock, fence


def call(function, server):
    function(*(GIVEN[name](server) for name in inspect.signature(function).parameters))


def run(number, what, function, server):
    server.call("FLUSHALL")
    try:
        call(function, server)
        faults = []
    except Exception as error:
        faults = [error if isinstance(error, AssertionError) else traceback.format_exc()]
    server.close_opened()
    return say(number, what, faults)


def main():
    bail_out_by_signals()
    only = sys.argv[1:]
    tests = [entry for entry in TESTS if not only or any(word in entry[0] for word in only)]
    server = Server()
    try:
        print(f"1..{len(tests)}", flush=True)
        good = [run(number, *entry, server) for number, entry in enumerate(tests, 1)]
    finally:
        server.stop()
    sys.exit(0 if all(good) else 1)
