#!/usr/bin/env -S python3 -B
"""The judge of intervals.py finds what is wrong, and nothing else. Prints TAP."""
from intervals import Queue, Run, exclusion, fences, order, read_runs
from tap import differs, report

LIMITS = {"s": 2}


def run(name, begin, end, mode="exclusive", slot=0, **grants):
    return Run(name, begin, end, mode, slot, grants)


X, R, L = "exclusive", "shared", "limit"
EXCLUSION = [
    ("one after the other", 0, [run("1", 0, 5, k=1), run("2", 6, 9, k=2)]),
    ("two at once", 1, [run("1", 0, 5, k=1), run("2", 5, 9, k=2)]),
    ("other keys", 0, [run("1", 0, 5, k=1), run("2", 0, 5, m=1)]),
    ("one common key of two", 1, [run("1", 0, 5, k=1, m=1), run("2", 5, 9, m=2, n=1)]),
    ("readers together", 0, [run("1", 0, 5, R, k=1), run("2", 0, 5, R, k=2)]),
    ("a writer among readers", 2,
     [run(n, 0, 5, m, k=int(n)) for n, m in (("1", R), ("2", X), ("3", R))]),
    ("nested", 0, [run("1", 0, 9, k=1), run("1.1", 2, 3, k=1), run("1.1.1", 2, 3, k=1)]),
    ("siblings", 1, [run("1", 0, 9, k=1), run("1.1", 2, 4, k=1), run("1.2", 3, 5, k=1)]),
    ("siblings that read", 0, [run("1.1", 2, 4, R, k=1), run("1.2", 3, 5, R, k=1)]),
    ("a nested one beside another", 1, [run("1.1", 0, 5, k=1), run("2", 4, 9, k=2)]),
    ("one who lost its ancestor is a newcomer", 1, [run("1", 0, 5, k=1), run("1.1", 4, 9, k=2)]),
    ("a semaphore", 0, [run("1", 0, 5, L, 1, s=1), run("2", 0, 5, L, 2, s=2)]),
    ("one too many", 2, [run(str(n), 0, 5, L, n, s=n) for n in (1, 2, 3)]),
    ("a slot twice", 1, [run("1", 0, 5, L, 1, s=1), run("2", 0, 5, L, 1, s=2)]),
    ("no slot", 1, [run("1", 0, 5, L, 0, s=1)]),
    ("nested in a semaphore", 0,
     [run(n, 0, 5, L, 1, s=1) for n in ("1", "1.1")] + [run("2", 0, 5, L, 2, s=2)]),
    ("a semaphore and a lock", 1, [run("1", 0, 5, L, 1, s=1), run("2", 0, 5, s=2)]),
]
FENCES = [
    ("rising", 0, [run("1", 0, 5, k=1), run("2", 6, 9, k=2)]),
    ("falling", 1, [run("1", 0, 5, k=2), run("2", 6, 9, k=1)]),
    ("falling, not by the last", 2,
     [run("1", 0, 5, k=9), run("2", 6, 7, k=10), run("3", 8, 9, k=7)]),
    ("the same again", 1, [run("1", 0, 5, k=2), run("2", 6, 9, k=2)]),
    ("readers, in any order", 0, [run("1", 0, 5, R, k=2), run("2", 6, 9, R, k=1)]),
    ("a writer after a reader", 1, [run("1", 0, 5, R, k=2), run("2", 6, 9, k=1)]),
    ("one slot after another", 0, [run("1", 0, 5, L, 1, k=2), run("2", 6, 9, L, 2, k=1)]),
    ("one slot again", 1, [run("1", 0, 5, L, 1, k=2), run("2", 6, 9, L, 1, k=1)]),
    ("nested: falling", 1, [run("1", 0, 1, k=2), run("1.1", 2, 3, k=1)]),
    ("nested: the same", 0, [run("1", 0, 9, k=2), run("1.1", 2, 3, k=2)]),
    ("nested: the same, after others", 0,
     [run("1", 0, 9, L, 1, k=2), run("2", 1, 2, L, 2, k=3), run("1.1", 4, 5, L, 1, k=2)]),
    ("one key of two", 1, [run("1", 0, 5, k=1, m=2), run("2", 6, 9, k=2, m=1)]),
]
# The same where a new master may have lost what the old one granted.
LOSSY_FENCES = [
    ("nested: falling", 0, [run("1", 0, 1, k=2), run("1.1", 2, 3, k=1)]),
    ("siblings: falling", 1, [run("1.1", 0, 1, k=2000002), run("1.2", 2, 3, k=1)]),
    ("falling", 1, [run("1", 0, 5, k=2000002), run("2", 6, 9, k=1)]),
    ("falling, granted by both at a time", 0, [run("1", 0, 5, k=2000001), run("2", 6, 9, k=1)]),
]


def came(*names):
    """Those who came, in this order; a letter tells the mode."""
    modes = {"x": X, "r": R, "l": L}
    return [run(name, i, i, modes[name[0]], i, k=i) for i, name in enumerate(names, 1)]


def queue(*names):
    modes = {"x": X, "r": R, "l": L}
    return Queue("k", 0, [(name, modes[name[0]]) for name in names])


# The arrivals, in order; the queue that was seen; later arrivals; disturbed; faults and pairs
# looked at.
ORDER = [
    ("in order", came("x1", "x2", "x3"), queue("x1", "x2", "x3"), "", "", 0, 3),
    ("out of order", came("x2", "x1"), queue("x1", "x2"), "", "", 1, 1),
    ("a disturbed one", came("x2", "x1"), queue("x1", "x2"), "", "x1", 0, 0),
    ("one who never came", came("x2"), queue("x1", "x2"), "", "", 0, 0),
    ("readers together", came("r2", "r1"), queue("r1", "r2"), "", "", 0, 0),
    ("a reader before a writer", came("r2", "x1"), queue("x1", "r2"), "", "", 1, 1),
    ("readers, a writer between them", came("r3", "x2", "r1"), queue("r1", "x2", "r3"), "", "", 3,
     3),
    ("readers, a writer between them that gave up", came("r3", "r1"), queue("r1", "x2", "r3"), "",
     "", 0, 0),
    ("a nested one passes", came("x3.1", "x1"), queue("x1", "x3.1"), "", "", 0, 0),
    ("readers, a nested writer between them", came("r3", "x2.1", "r1"), queue("r1", "x2.1", "r3"),
     "", "", 0, 0),
    ("a semaphore's neighbours", came("l2", "l1"), queue("l1", "l2"), "", "", 0, 0),
    ("a semaphore's, far apart", came("l3", "l2", "l1"), queue("l1", "l2", "l3"), "", "", 1, 1),
    ("a newcomer behind", came("x1", "x2"), queue("x1"), "x2", "", 0, 1),
    ("a newcomer before", came("x2", "x1"), queue("x1"), "x2", "", 1, 1),
    ("a new reader before a writer", came("r2", "x1"), queue("x1"), "r2", "", 1, 1),
    ("a new reader with a reader", came("r2", "r1"), queue("r1"), "r2", "", 0, 0),
]


def results():
    for what, faults, runs in EXCLUSION:
        yield "exclusion: " + what, faults, len(exclusion(runs, LIMITS))
    for what, faults, runs in FENCES:
        yield "fences: " + what, faults, len(fences(runs))
    for what, faults, runs in LOSSY_FENCES:
        yield "fences after a lost write: " + what, faults, len(fences(runs, 2))
    for what, runs, seen, late, disturbed, faults, pairs in ORDER:
        launched = {name: 1 for name in late.split()}
        found, looked_at = order(runs, [seen], launched, set(disturbed.split()), {"k": 2})
        yield "order: " + what, (faults, pairs), (len(found), looked_at)
    log = ["1 10 5\tlimit\t2\ta b\t7 8\n", "1 10 9\n", "2 11 6\texclusive\t\ta\t9\n", "1 12 4\n"]
    read = [
        (one.name, one.begin, one.end, one.mode, one.slot, one.grants) for one in read_runs(log)
    ]
    want = [("1", 4, 9, L, 2, {"a": 7, "b": 8}), ("2", 6, 6, X, 0, {"a": 9})]
    yield "a log is read", want, read


report((what, differs(got, want)) for what, want, got in results())
