"""Writes what a contest has left behind as a history in EDN, for linearizable.py and others that
judge histories: Knossos, Elle.

The times are those of the command: an acquisition has happened between the start of rlock and the
command's first stamp, a release begins with its last one. The release of a run that something was
done to, or that failed, is :info: the lease of a dead holder ends by itself, at some time.

A run that nests in another one has no token of its own. It takes a lock inside that of its
ancestor, which is a key of its own: "k in 3-7". An ancestor holds its key for as long as any that
nests in it runs: a writer whose last nested writer has ended, but not a nested reader, holds it as
a reader from then on.
"""
import itertools, os, subprocess, sys
from intervals import by_key


class Holding:
    """One key of one run, in one mode. within: the name of the run that it nests in, or "". rest:
    it is what is left of a writer, from that moment on, or None."""

    def __init__(self, run, key, within, end, rest=None):
        self.run, self.key, self.within, self.end, self.rest = run, key, within, end, rest
        self.mode = run.mode if rest is None else "shared"


def nests(run, other):
    return run.name.startswith(other.name + ".")


def holdings(runs):
    """Returns the holdings of all keys."""
    for key, group in by_key(runs).items():
        for run in group:
            family = [one for one in group if one.grants[key] == run.grants[key]]
            above = [one.name for one in family if nests(run, one)]
            within = max(above, key=len, default="")
            below = [one for one in family if one is run or nests(one, run)]
            last = max(one.end for one in below)
            end = max(one.end for one in below if one.mode == run.mode)
            yield Holding(run, key, within, end)
            if end < last:
                yield Holding(run, key, within, last, end)


def fields(holding, limits):
    """Returns its members from the first event, and those from its grant."""
    run, key = holding.run, holding.key
    if holding.within:
        # Nested runs of one holder of a semaphore share its slot, one after the other.
        mode = "shared" if holding.mode == "shared" else "exclusive"
        return {"key": f"{key} in {holding.within}", "mode": mode}, {}
    asked, granted = {"key": key, "mode": holding.mode}, {"fence": run.grants[key]}
    if holding.rest is not None:
        return asked, {}
    if run.mode == "limit":
        asked["limit"], granted["slot"] = limits[key], run.slot
    return asked, granted


def operation(name, f, asked, granted, times):
    """Returns its two events. times: (begin, end, outcome)."""
    begin, end, kind = times
    common = {"f": f, **asked, "name": name}
    yield {"type": "invoke", **common, "time": begin}
    yield {"type": kind, **common, **(granted if kind == "ok" else {}), "time": end}


def events(runs, launched, ended, wishes, well, limits):
    """Returns all events in order of time. launched, ended: the times of each run (ns, by name);
    wishes: its (mode, keys); well: the names of runs that ended well without a fault. A run that
    has not ended ends with the last event."""
    last = max([*launched.values(), *ended.values(), *(run.end for run in runs)], default=0)
    number, found, held = itertools.count(), [], set()

    def add(*operations):
        process = next(number)
        found.extend({"process": process, **event} for one in operations for event in one)

    for holding in holdings(runs):
        name, root = holding.run.name, holding.run.name.split(".")[0]
        asked, granted = fields(holding, limits)
        leaves = holding.end + 1  # after the last stamp
        end = max(ended.get(root, last), leaves)
        begins = launched[root], holding.run.begin
        if holding.rest is not None:
            begins = holding.rest + 1, holding.rest + 1  # as the writer leaves
        add(
            operation(name, "acquire", asked, granted, (*begins, "ok")),
            operation(name, "release", asked, {}, (leaves, end, "ok" if root in well else "info")),
        )
        held.add((name, holding.key))
    some = {name for name, _ in held}
    for name, (mode, keys) in wishes.items():
        for key in keys:
            if (name, key) not in held:
                asked = {"key": key, "mode": mode}
                if mode == "limit":
                    asked["limit"] = limits[key]
                # A run that took some of its keys did not take the others.
                kind = "fail" if name in some else "info"
                end = max(ended.get(name, last), launched[name])
                add(operation(name, "acquire", asked, {}, (launched[name], end, kind)))
    # Events of the same moment may have happened in either order.
    return sorted(found, key=lambda event: (event["time"], event["type"] != "invoke"))


WORDS = ("type", "f", "mode")


def edn(event):
    parts = []
    for name, value in event.items():
        if name in WORDS:
            value = ":" + value
        elif isinstance(value, str):
            value = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        parts.append(f":{name} {value}")
    return "{" + ", ".join(parts) + "}\n"


def write(path, title, some):
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"; {title}\n")
        file.writelines(map(edn, some))


CHECKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "linearizable.py")


def faults(path):
    """Returns the objections of the checker, a program of its own, to the history in a file."""
    done = subprocess.run([sys.executable, "-B", CHECKER, path], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return [] if done.returncode == 0 else done.stdout.splitlines()
