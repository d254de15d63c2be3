#!/usr/bin/env -S python3 -B
"""scripts.py FOLDER FOLDER [ROUNDS]: the cost to a server of one folder's scripts beside those of
another, both in turn against one server of its own.

Each round acquires 100 locks, and releases them; the server itself says how long that took (INFO
commandstats). First come so many rounds that all that a lock remembers is there. Ratios are the
medians of pairs, and those of the least times."""
import os
import re
import statistics
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
from script_server import ReplyError, Server, pairs, read_script  # noqa: E402

LOCKS = 100
FILL = 25  # rounds before any counts
CALLS = {
    "acquire": {"lease": 30000, "place_ttl": 7000, "not_after": 9999999999999,
                "who": "host user 16656 command -", "pauses": "rlock:!paused"},
    "release": {"notes": "ran=1 exit=0"},
}


def cost(server, commands):
    """Of one of them, in microseconds."""
    server.call("CONFIG", "RESETSTAT")
    for reply in server.pipeline(commands):
        if isinstance(reply, ReplyError) or reply[0] not in ("GRANTED", "RELEASED"):
            sys.exit(f"scripts: {reply}")
    stats = server.call("INFO", "commandstats")
    return float(re.search(r"cmdstat_evalsha:\S*usec_per_call=([\d.]+)", stats)[1])


def turn(server, side, scripts):
    """{script: its cost}, of one round."""
    owners = [str(uuid.uuid4()) for _ in range(LOCKS)]
    return {
        name: cost(server, [["EVALSHA", scripts[name], 1, f"rlock:{{{side}{n}}}",
                             *pairs(name, owner=owner, **words)] for n, owner in enumerate(owners)])
        for name, words in CALLS.items()
    }


def main():
    folders, rounds = sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 200
    server = Server()
    try:
        sides = [{name: server.call("SCRIPT", "LOAD", read_script(name, folder)) for name in CALLS}
                 for folder in folders]
        found = [[], []]
        for number in range(FILL + rounds):
            for side in (0, 1) if number % 2 else (1, 0):
                costs = turn(server, side, sides[side])
                if number >= FILL:
                    found[side].append(costs)
    finally:
        server.stop()
    for name in CALLS:
        one, other = ([costs[name] for costs in side] for side in found)
        pairs = statistics.median(a / b for a, b in zip(one, other))
        print(f"{name}: median {statistics.median(one):.1f} and {statistics.median(other):.1f} us,"
              f" pairs {pairs:.3f}; least {min(one):.1f} and {min(other):.1f} us,"
              f" {min(one) / min(other):.3f}")


if len(sys.argv) < 3:
    sys.exit(__doc__)
main()
