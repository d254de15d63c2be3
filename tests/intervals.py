"""Judges the traces of commands under locks: overlaps, and their order. Knows the promises of
locks, not how they work.

A run is a command under one acquisition; run "7.1" is nested in run "7".
"""
import collections, itertools


class Run:
    """A command, alive at least from begin to end."""

    def __init__(self, name, begin, end, mode="exclusive", slot=0, grants=()):
        self.name, self.begin, self.end = name, begin, end
        self.mode, self.slot, self.grants = mode, slot, dict(grants)

    def beside(self, other):
        return self.begin <= other.end and other.begin <= self.end

    def line(self, other):
        """True if one of them is nested in the other."""
        one, two = self.name + ".", other.name + "."
        return one.startswith(two) or two.startswith(one)


def read_runs(lines):
    """Reads the log of worker with "grant"."""
    runs = {}
    for line in lines:
        head, _, rest = line.rstrip("\n").partition("\t")
        name, _, ns = head.split()
        run = runs.setdefault(name, Run(name, int(ns), int(ns)))
        run.begin, run.end = min(run.begin, int(ns)), max(run.end, int(ns))
        if rest:
            run.mode, slot, keys, fences = rest.split("\t")
            run.slot = int(slot or 0)
            run.grants = dict(zip(keys.split(), map(int, fences.split()), strict=True))
    return list(runs.values())


def by_key(runs):
    groups = collections.defaultdict(list)
    for run in sorted(runs, key=lambda run: run.begin):
        for key in run.grants:
            groups[key].append(run)
    return groups


def conflict(key, one, two):
    """Returns why they must not have run at the same time, or None."""
    family = one.grants[key] == two.grants[key]
    if family and one.line(two):
        return None
    if one.mode == two.mode == "shared":
        return None
    if one.mode == two.mode == "limit" and not family:
        return f"both have slot {one.slot}" if one.slot == two.slot else None
    return f"{one.mode} and {two.mode}"


def overlaps(runs, limits):
    """Returns (ms, names and reason) of overlaps. limits: those of the semaphores, by key."""
    for key, group in by_key(runs).items():
        alive = []
        for run in group:
            alive = [other for other in alive if other.end >= run.begin]
            for other in alive:
                why = conflict(key, other, run)
                if why:
                    ms = (min(other.end, run.end) - run.begin) / 1e6
                    yield ms, f"{key}: {other.name} and {run.name} for {ms:.1f} ms: {why}"
            alive.append(run)
            families = {one.grants[key]: one for one in alive if one.mode == "limit"}
            if len(families) > limits.get(key, 0):
                ms = (min(one.end for one in alive) - run.begin) / 1e6
                names = " ".join(one.name for one in alive)
                yield ms, f"{key}: more than {limits.get(key, 0)} at once for {ms:.1f} ms: {names}"


def exclusion(runs, limits):
    """Returns the faults: overlaps, and slots beyond the limit."""
    faults = [fault for _ms, fault in overlaps(runs, limits)]
    for run in runs:
        for key in run.grants if run.mode == "limit" else ():
            if not 1 <= run.slot <= limits.get(key, 0):
                faults.append(f"{key}: {run.name} has slot {run.slot}")
    return faults


def fences(runs, overlap=0):
    """Returns the faults of tokens: a later run must have a greater one, a nested run the same one.
    Runs that can be together may begin in another order than they were granted. overlap: for so
    many s, by their tokens, which count microseconds, two may be granted one lock, and one may
    begin when the other has ended already; and a new master may know only an earlier request of a
    holder, and give nested runs the token of that one."""
    faults = []
    for key, group in by_key(runs).items():
        firsts = {}
        for run in group:
            first = firsts.setdefault(run.grants[key], run)
            if first.name.split(".")[0] != run.name.split(".")[0]:
                faults.append(f"{key}: {first.name} and {run.name} both have {run.grants[key]}")
        for one, two in itertools.combinations(firsts.values(), 2):
            if (
                one.end < two.begin
                and one.grants[key] > two.grants[key] + overlap * 1000000
                and conflict(key, one, two)
                and not (overlap and one.line(two))
            ):
                faults.append(
                    f"{key}: {two.name} has {two.grants[key]}"
                    f" after {one.name} had {one.grants[key]}"
                )
    return faults


# A queue at one moment: its waiters are (name, mode) in order.
Queue = collections.namedtuple("Queue", "key taken_ns waiters")


def may_pass(waiters, i, j, limit):
    """True if the one at j may go before the one at i: both can hold the lock together."""
    modes = {mode for _, mode in waiters[i : j + 1]}
    return modes == {"shared"} or modes == {"limit"} and j - i < limit


def order(runs, queues, launched, disturbed, limits):
    """The faults of those who came out of their turn, and how many pairs were looked at.
    launched: when each was started, by name; disturbed: those that something was done to."""
    granted = {(run.name, key): fence for run in runs for key, fence in run.grants.items()}
    faults, pairs = {}, set()

    def judge(key, first, second, waiters):
        one, two = granted.get((first, key)), granted.get((second, key))
        if one and two and not disturbed & {first.split(".")[0], second.split(".")[0]}:
            pairs.add((key, first, second))
            if one > two:
                seen = " ".join(f"{name} ({mode[0]})" for name, mode in waiters)
                faults[
                    key, first, second
                ] = f"{key}: {second} came before {first}; there waited {seen}"

    for queue in queues:
        key = queue.key
        # Waiters that gave up stood in no one's way after that; nested ones pass others, and are
        # passed.
        waiters = [one for one in queue.waiters if (one[0], key) in granted and "." not in one[0]]
        late = [
            run for run in runs if key in run.grants and launched.get(run.name, 0) > queue.taken_ns
        ]
        for i, (first, _) in enumerate(waiters):
            for j in range(i + 1, len(waiters)):
                if not may_pass(waiters, i, j, limits.get(key, 0)):
                    judge(key, first, waiters[j][0], waiters)
            for run in late:
                behind = waiters + [(run.name, run.mode)]
                if not may_pass(behind, i, len(waiters), limits.get(key, 0)):
                    judge(key, first, run.name, behind)
    return sorted(faults.values()), len(pairs)
