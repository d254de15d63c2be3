#!/usr/bin/env -S python3 -B
"""The checker of histories finds what no order explains, and nothing else: histories with a known
verdict, random ones of locks that work and of locks that are broken, and small ones whose orders
are all tried here. Prints TAP.

RLOCK_SEED=N repeats the random ones.
"""
import itertools, os, random, subprocess, sys, tempfile
from contenders import LIMITS
from history import edn, events
from intervals import Run
from linearizable import Malformed, judge, read_edn
from tap import report

SEED = int(os.environ.get("RLOCK_SEED") or random.randrange(1 << 32))
CHECKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "linearizable.py")
LONG = {"a": "acquire", "r": "release", "x": "exclusive", "s": "shared", "l": "limit"}


def history(text, limit=2):
    """Events in order, PROCESS then what: "a" begins to acquire, with a mode x, s or l; "A" has
    acquired, with a token, if any, and a slot after "/"; "r" begins to release, "R" has released;
    "?" may have happened, "!" did not."""
    found, last = [], {}
    for time, word in enumerate(text.split()):
        process, what, rest = int(word[0]), word[1], word[2:]
        if what in "ar":
            mode = LONG[rest or "x"] if what == "a" else last[process]["mode"]
            last[process] = {"process": process, "f": LONG[what], "key": "k", "mode": mode}
            event = {**last[process], "type": "invoke"}
        else:
            kinds = {"A": "ok", "R": "ok", "?": "info", "!": "fail"}
            event = {**last[process], "type": kinds[what]}
            token, _, slot = rest.partition("/")
            event.update({name: int(n) for name, n in (("fence", token), ("slot", slot)) if n})
        if event["mode"] == "limit":
            event["limit"] = limit
        found.append({**event, "time": time})
    return found


# What, whether an order explains it, the history.
KNOWN = [
    ("nothing", True, ""),
    ("one after the other", True, "1a 1A 1r 1R 2a 2A 2r 2R"),
    ("two at once", False, "1a 1A 2a 2A 1r 1R 2r 2R"),
    ("two at once, for ever", False, "1a 1A 2a 2A"),
    ("handed over before the release was answered", True, "1a 1A 2a 1r 2A 1R 2r 2R"),
    ("granted before the release has begun", False, "1a 1A 2a 2A 1r 1R"),
    ("a release that may have happened", True, "1a 1A 1r 1? 2a 2A 2r 2R"),
    ("one that may have happened much later", True, "1a 1A 1r 1? 2a 2! 3a 3A"),
    ("one that did not happen", False, "1a 1A 1r 1! 2a 2A"),
    ("an acquisition that never happened", True, "1a 1? 2a 2A 2r 2R 3a 3A"),
    ("one that may have happened, between two", True, "2a 2A 1a 1? 2r 2R 3a 3A"),
    ("one that failed", True, "1a 1A 2a 2! 1r 1R"),
    ("not answered at all", True, "1a 2a 2A 2r 3a 3A"),
    ("readers at once", True, "1as 2as 1A 2A 1r 2r 1R 2R"),
    ("a writer among readers", False, "1as 1A 2ax 2A"),
    ("a reader beside a writer", False, "1ax 1A 2as 2A"),
    ("a writer after the last reader", True, "1as 2as 3ax 1A 2A 1r 1R 2r 3A 2R"),
    ("a writer before the last reader", False, "1as 2as 3ax 1A 2A 1r 1R 3A 2r 2R"),
    ("a reader that may have gone", True, "1as 1A 2as 2A 1r 1? 2r 2R 3ax 3A"),
    ("two of two", True, "1al 2al 1A 2A"),
    ("three of two", False, "1al 2al 3al 1A 2A 3A"),
    ("three of two, one after another", True, "1al 2al 3al 1A 2A 1r 3A 1R"),
    ("slots", True, "1al 2al 1A1/1 2A2/2 1r 1R 3al 3A3/1"),
    ("one slot twice", False, "1al 2al 1A1/1 2A2/1"),
    ("a slot that there is not", False, "1al 1A1/3"),
    ("tokens rise", True, "1a 1A5 1r 1R 2a 2A6 2r 2R"),
    ("tokens fall", False, "1a 1A6 1r 1R 2a 2A5 2r 2R"),
    ("a token twice", False, "1a 1A5 1r 1R 2a 2A5 2r 2R"),
    ("tokens of readers, answered in another order", True, "1as 2as 2A6 1A5"),
    ("tokens of readers, one after the other", False, "1as 1A6 2as 2A5"),
    ("a token after one that may have been released", False, "1a 1A6 1r 1? 2a 2A5"),
    ("tokens of a semaphore fall", False, "1al 1A6 2al 2A5"),
    ("one that waits long has the token of its turn", True, "1a 2a 1A5 1r 1R 3a 2A6 2r 2R 3A7"),
    ("an earlier token, answered while the later one is held", False, "1a 2a 2A6 1A5 1r 1R"),
    ("an early token that came late", True, "1a 2as 3as 3A2 2A1 3r 2r 1A3"),
]
MALFORMED = [
    ("an end of nothing", "1a 1A 1R"),
    ("two at once of one process", "1a 1a"),
    ("something after what may have happened", "1a 1? 1a"),
    ("a semaphore and a lock", "1al 1A 1r 1R 2ax 2A"),
]
NOT_EDN = ["{:a 1", "}", "{:a}", '{:a "x}', "{:a 1.5}", "@", "[{:a 1}", "{:a 1]"]


def linearizable(some):
    return not any(judge(some).values())


# -- all orders of a small history -----------------------------------------------------------------


def is_free(held, mode, limit):
    """held: the mode of each process that has the lock."""
    if mode == "limit":
        return len(held) < limit
    return not held or mode == "shared" and set(held.values()) == {"shared"}


def allowed(order):
    """Whether a lock that works could have done this, one operation after the other."""
    held, newest = {}, 0
    for one in order:
        if one["f"] == "release":
            if not held.pop(one["process"], None):
                return False
            continue
        token = one.get("fence", newest + 1)
        if not is_free(held, one["mode"], one.get("limit")) or token <= newest:
            return False
        newest = one.get("fence", newest)
        held[one["process"]] = one["mode"]
    return True


def any_order(some):
    """The same question as the checker's, answered by trying all: each order, with and without each
    operation that may have happened."""
    running, done = {}, []
    for at, event in enumerate(some):
        if event["type"] == "invoke":
            running[event["process"]] = {**event, "begin": at, "end": len(some), "sure": False}
            done.append(running[event["process"]])
        else:
            running[event["process"]].update(event, sure=event["type"] == "ok")
            if event["type"] == "ok":
                running[event["process"]]["end"] = at
    done = [one for one in done if one["type"] != "fail"]
    for one in done:
        if not one["sure"]:
            one.pop("fence", None)
    unsure = [one for one in done if not one["sure"]]
    sure = [one for one in done if one["sure"]]
    for number in range(len(unsure) + 1):
        for more in itertools.combinations(unsure, number):
            if any(map(allowed, orders(sure + list(more)))):
                return True
    return False


def orders(some):
    """Those that keep to real time."""
    if not some:
        yield []
    for one in some:
        if not any(other["end"] < one["begin"] for other in some):
            for rest in orders([other for other in some if other is not one]):
                yield [one, *rest]


# -- random histories ------------------------------------------------------------------------------


class Lock:
    """Grants, one call after the other. broken: how often it grants what it should not, or
    gives an old token."""

    def __init__(self, chance, modes, limit, broken=0.0):
        self.chance, self.modes, self.limit, self.broken = chance, modes, limit, broken
        self.held, self.token, self.sins = {}, 100, 0

    def acquire(self, process, mode):
        """The token, or None."""
        sin = self.chance.random() < self.broken
        if not is_free(self.held, mode, self.limit) and not sin:
            return None
        self.held[process] = mode
        self.token += self.chance.randint(1, 3)
        return self.token - (5 if sin else 0)


def play(chance, lock, workers, steps):
    """A history of so many workers, whose calls take time, of which some are cut off."""
    found, state, fresh = [], {}, itertools.count(workers)
    names = list(range(workers))

    def tell(process, kind, f, mode, **more):
        event = {"process": process, "type": kind, "f": f, "key": "k", "mode": mode, **more}
        if mode == "limit":
            event["limit"] = lock.limit
        found.append({**event, "time": len(found)})

    for _ in range(steps):
        at = chance.randrange(workers)
        me = names[at]
        phase, mode, *rest = state.get(me, ("idle", chance.choice(lock.modes)))
        if phase == "idle":
            tell(me, "invoke", "acquire", mode)
            state[me] = ("wants", mode)
        elif phase == "wants":
            token = lock.acquire(me, mode)
            if token is not None:
                state[me] = ("granted", mode, token)
            elif chance.random() < 0.1:
                tell(me, "fail", "acquire", mode)
                del state[me]
        elif phase == "granted" and chance.random() < 0.05:
            # Nothing says that it has the lock; the lease ends it later.
            tell(me, "info", "acquire", mode)
            lock.held.pop(me)
            names[at] = next(fresh)
        elif phase == "granted":
            tell(me, "ok", "acquire", mode, fence=rest[0])
            state[me] = ("holds", mode)
        elif phase == "holds":
            tell(me, "invoke", "release", mode)
            state[me] = ("leaves", mode)
        elif phase == "leaves":
            lock.held.pop(me, None)
            state[me] = ("gone", mode)
        elif chance.random() < 0.2:
            tell(me, "info", "release", mode)
            names[at] = next(fresh)
        else:
            tell(me, "ok", "release", mode)
            del state[me]
    return found


KINDS = [(["exclusive"], 0), (["shared", "shared", "exclusive"], 0), (["limit"], 3)]


def small(chance):
    """(verdict of all orders, of the checker) of some small histories, broken ones among them."""
    for _ in range(1500):
        modes, limit = chance.choice(KINDS)
        lock = Lock(chance, modes, limit and 2, chance.choice((0, 0.3)))
        some = play(chance, lock, 3, chance.randint(5, 22))
        if chance.random() < 0.3:
            some = [{k: v for k, v in event.items() if k != "fence"} for event in some]
        yield any_order(some), linearizable(some), some


def is_refused(call, *errors):
    try:
        return False, call()
    except (Malformed, *errors):
        return True, ""


def results():
    for what, verdict, text in KNOWN:
        yield "known: " + what, linearizable(history(text)) == verdict, text
    for what, text in MALFORMED:
        yield "malformed: " + what, *is_refused(lambda: judge(history(text)))
    for text in NOT_EDN:
        yield "not EDN: " + text, *is_refused(lambda: read_edn(text), ValueError)
    chance = random.Random(SEED)
    seen = list(small(chance))
    different = [some for one, other, some in seen if one != other]
    yield "small histories: as when all orders are tried", not different, different[:1]
    good = sum(one for one, _, _ in seen)
    yield "some of them are, some are not", 50 < good < len(seen) - 50, f"{good} of {len(seen)}"
    for modes, limit in KINDS:
        some = play(chance, Lock(chance, modes, limit), 20, 12000)
        yield f"{modes[-1]}: 20 workers, {len(some)} events", linearizable(some), judge(some)
        missed = [
            seed for seed in range(20)
            if linearizable(play(chance, Lock(chance, modes, limit, 0.02), 20, 3000))
        ]  # fmt: skip
        yield f"{modes[-1]}: broken ones are found", not missed, missed
    yield from written()


# Rows: the runs, with their times and tokens of k, and modes; whether that is possible.
CONTESTS = [
    ("one after the other", True, [("1", 5, 9, 1), ("2", 10, 12, 2)]),
    ("alive for one stamp", True, [("1", 5, 5, 1), ("2", 6, 6, 2)]),
    ("beside each other", False, [("1", 5, 9, 1), ("2", 8, 12, 2)]),
    ("nested", True, [("1", 5, 19, 1), ("1.1", 7, 9, 1), ("1.1.1", 8, 9, 1)]),
    ("nested, and outlives it", False, [("1", 5, 6, 1), ("1.1", 7, 9, 1), ("2", 8, 9, 2)]),
    ("a nested reader outlives it", True,
     [("1", 5, 6, 1), ("1.1", 6, 9, 1, "shared"), ("2", 8, 12, 2, "shared")]),
    ("a nested reader, and a writer", False,
     [("1", 5, 6, 1), ("1.1", 6, 9, 1, "shared"), ("2", 8, 12, 2)]),
    ("a reader beside the writer", False,
     [("1", 5, 8, 1), ("1.1", 6, 9, 1, "shared"), ("2", 8, 12, 2, "shared")]),
    ("siblings", False, [("1", 5, 19, 1), ("1.1", 7, 9, 1), ("1.2", 8, 9, 1)]),
    ("a nested newcomer", False, [("1", 5, 19, 1), ("1.1", 7, 9, 2)]),
    ("an ancestor that is gone", True, [("1", 5, 6, 1), ("1.1", 7, 9, 2)]),
]  # fmt: skip


def written():
    """The history that history.py writes of a contest is the same when it is read again."""
    for what, verdict, times in CONTESTS:
        runs = [
            Run(name, begin, end, *mode, grants={"k": token})
            for name, begin, end, token, *mode in times
        ]
        roots = {run.name.split(".")[0] for run in runs}
        lives = dict.fromkeys(roots, 1), dict.fromkeys(roots, 20)
        some = list(events(runs, *lives, {}, roots, LIMITS))
        again = read_edn("".join(map(edn, some)))
        fine = [list(one.items()) for one in some] == [list(one.items()) for one in again]
        yield "written: " + what, fine and linearizable(again) == verdict, again
    with tempfile.TemporaryDirectory() as directory:
        for text, status in (("1a 1A", 0), ("1a 1A 2a 2A", 1), ("1R", 2)):
            path = os.path.join(directory, "history.edn")
            with open(path, "w", encoding="utf-8") as file:
                file.write("; made by hand\n")
                file.writelines(map(edn, history(text) if text != "1R" else []))
                file.write("{" if status == 2 else "")
            done = subprocess.run(
                [sys.executable, "-B", CHECKER, path], capture_output=True, check=False
            )
            yield f"the program: status {status}", done.returncode == status, done


print(f"# RLOCK_SEED={SEED}")
report((what, [] if fine else [f"{why}"[:2000]]) for what, fine, why in results())
