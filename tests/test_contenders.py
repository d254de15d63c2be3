#!/usr/bin/env -S python3 -B
"""Readers, writers, semaphores, several keys in any order, nested ones, under kills and stops of
one process of a run at a time: what they left behind is judged by intervals.py, and their history
by linearizable.py. Prints TAP.

RLOCK_SEED=N repeats the choices of a run (not its timing), RLOCK_SECONDS=N sets its length.
"""
import collections, os, random, subprocess, time
import history
from contenders import LEASE, LIMITS, PLENTY, RLOCK, WORKER, Contest, as_many_as_asked
from intervals import exclusion, fences, order, read_runs
from script_server import WEEK, Server
from tap import bail_out_by_signals, need, report

PLACE_TTL = 7  # s after which a silent waiter is passed over
SECONDS = float(os.environ.get("RLOCK_SECONDS", "10"))
SEED = int(os.environ.get("RLOCK_SEED") or random.randrange(1 << 32))


class Deployment:
    """One server, which forgets scripts and hangs up."""

    modes, one_more, at_least, any = ("write", "read", "limit"), True, True, True
    decides = ("pause",)
    config = "/dev/null"
    options = ["--connect-timeout", "20s"]  # it hangs up on those who have just come, too

    def __init__(self, server):
        self.server, self.directory, self.url = server, server.directory, "unix://" + server.path
        self.disturbances = {"flush": self.flush, "hang up": self.hang_up}

    def flush(self, _chance):
        self.server.call("SCRIPT", "FLUSH")

    def hang_up(self, _chance):
        for kind in ("normal", "pubsub"):
            self.server.call("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")


def ended_badly(contest):
    """Those that nothing was done to, and yet."""
    for name, status in contest.ends.items():
        # 69: its time ran out while the server had hung up.
        fine = (0,) if contest.waits[name] else (0, 69, 75)
        if name not in contest.hits and status not in fine:
            yield f"{name} ended with {status}"


def left_behind(contest):
    """When the leases and the places in the queue of all that was killed have ended, nothing is
    held or waited for; the next client removes dead entries."""
    end = time.monotonic() + max(LEASE, PLACE_TTL) + 2
    while contest.status() and time.monotonic() < end:
        time.sleep(0.1)
    for lock in contest.status():
        yield f"{lock['key']} is not free: {lock['holders']} {lock['waiters']}"
    for key in ("one", "other", "rw", *LIMITS):
        mode = ["--limit", str(LIMITS[key])] if key in LIMITS else []
        words = [RLOCK, "run", "-w", "60s", "--lease", "2s", *mode, key, "--", "true"]
        subprocess.run(words, env=contest.env, check=True)
    for name in contest.deployment.server.call("KEYS", "*"):
        fields = contest.deployment.server.call("HKEYS", name)
        # The records of former runs stay, and a pause that has ended.
        kinds = {field.split(":")[0] if field[:2] in ("n:", "r:") else field for field in fields}
        if not kinds <= set("kfqtacnrp"):
            yield f"{name} has {' '.join(fields)}"
        if not 0 < contest.deployment.server.call("PTTL", name) <= WEEK + LEASE * 1000:
            yield f"{name} lives for {contest.deployment.server.call('PTTL', name)} ms"
    yield from connected(contest.deployment.server)


def connected(server):
    """Connections and listeners; the agent of a killed run ends some time after its lock."""
    end = time.monotonic() + PLENTY
    while True:
        clients = server.call("CLIENT", "LIST").splitlines()
        found = [f"connected: {client}" for client in clients if "cmd=client" not in client]
        for channel in server.call("PUBSUB", "CHANNELS", "*"):
            found.append(f"someone listens to {channel}")
        if not found:
            return []
        if time.monotonic() > end:
            show = ["ps", "-eo", "pid,ppid,stat,etimes,wchan:30,args"]
            processes = subprocess.run(show, capture_output=True, text=True).stdout.splitlines()
            return found + [line for line in processes if "rlock" in line]
        time.sleep(0.1)


def too_little(contest, runs, pairs):
    """A contest without contention proves nothing."""
    modes = collections.Counter(run.mode for run in runs)
    nested = sum("." in run.name for run in runs)
    several = sum(len(run.grants) > 1 for run in runs)
    some = sum(run.name in contest.some for run in runs)
    disturbances = collections.Counter(contest.hits.values())
    print(f"# {len(runs)} commands: {dict(modes)}, {nested} nested, {several} with several keys,")
    print(f"# {some} with some of theirs")
    print(f"# {pairs} pairs in order; done to them: {dict(disturbances)}")
    statuses = collections.Counter(
        f"{contest.hits.get(name, '-')}: {status}" for name, status in contest.ends.items()
    )
    print("# ended:", dict(sorted(statuses.items())))
    seen = dict(modes, nested=nested, several=several, some=some, pairs=pairs)
    yield from (f"{what}: {number}" for what, number in seen.items() if number < SECONDS / 4)
    if len(modes) < 3:
        yield "not all modes"
    if not contest.hit_enough():
        yield f"hits: {len(contest.hits)}"


def written(contest, runs):
    """The file that the history was written to."""
    path = os.path.join(contest.deployment.directory, "history.edn")
    well = {name for name, status in contest.ends.items() if not status} - set(contest.hits)
    some = history.events(runs, contest.launched, contest.ended, contest.wishes, well, LIMITS)
    history.write(path, f"test_contenders.py, RLOCK_SEED={SEED}", some)
    return path


def results(contest):
    with open(contest.log) as file:
        runs = read_runs(file)
    faults, pairs = order(runs, contest.queues, contest.launched, set(contest.hits), LIMITS)
    stuck = [f"{name}: not within {PLENTY} s" for name in contest.stuck]
    yield "no contender waits for ever", stuck
    yield "each ended as it should", ended_badly(contest)
    yield "no writer beside anyone, no more than a semaphore's limit", exclusion(runs, LIMITS)
    yield "status never showed otherwise", contest.faults
    yield "as many keys as asked for", as_many_as_asked(contest, runs)
    yield "fencing tokens rise", fences(runs)
    yield "the history is linearizable", history.faults(written(contest, runs))
    yield "first come, first served", faults
    yield "nothing is left behind", left_behind(contest)
    yield "there was something to see", too_little(contest, runs, pairs)


def main():
    bail_out_by_signals(int(SECONDS + 3 * PLENTY))
    need(RLOCK, WORKER)
    print(f"# RLOCK_SEED={SEED} RLOCK_SECONDS={SECONDS:g}", flush=True)
    server = Server()
    try:
        contest = Contest(Deployment(server), SEED, SECONDS, hits=SECONDS / 4)
        contest.run()
        report(results(contest))
    finally:
        server.stop()


main()
