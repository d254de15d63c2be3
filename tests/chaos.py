#!/usr/bin/env -S python3 -B
"""Contenders in all modes, on every kind of store, with faults of all kinds. Prints TAP.

Writes a history for each store, chaos-STORE.json: the faults, and the time, token and outcome of
each run. The judge reads only this file:  chaos.py --judge FILE...  judges histories again. The
operations are in chaos-STORE.edn, too, as Knossos reads them, for linearizable.py.

RLOCK_SECONDS=N is the time for all stores together (90), RLOCK_STORES="server forgetful sentinel
replicas cluster quorum postgresql mysql zookeeper etcd frozen" chooses some, RLOCK_SEED=N repeats
the choices of a run (not its timing).
"""
import collections, json, os, random, shutil, sys, tempfile, time
import chaos_frozen, history as edn
from chaos_databases import DATABASES
from chaos_deployments import REDIS
from chaos_etcd import ETCD
from chaos_zookeeper import ZOOKEEPER
from contenders import LIMITS, MODES, PLENTY, RLOCK, WORKER, Contest, as_many_as_asked
from intervals import fences, overlaps, read_runs
from tap import bail_out_by_signals, need, say

SECONDS = float(os.environ.get("RLOCK_SECONDS") or 90)
DEPLOYMENTS = {**REDIS, **DATABASES, **ZOOKEEPER, **ETCD}
SEED = int(os.environ.get("RLOCK_SEED") or random.randrange(1 << 32))
CROWD = 20
DISTURBED = (0, 69, 75, 79)  # statuses of a run of which only the store was disturbed


class History:
    """The record of a run, which is judged."""

    def __init__(self, record):
        self.__dict__.update(record)
        self.runs = read_runs(self.log)
        self.deployment = DEPLOYMENTS[self.store]
        self.title = self.deployment.name

    def disturbed(self, name):
        return name.split(".")[0] in self.hits

    def promises(self):
        """Yields (promise, faults)."""
        found = sorted(overlaps(self.runs, LIMITS), reverse=True)
        allowed = self.deployment.overlap * 1000
        largest = found[0][0] if found else 0
        seen = f"{len(found)} overlaps, the largest {largest:.0f} ms" if found else "no overlap"
        yield f"{self.deployment.promise}: {seen}", [text for ms, text in found if ms > allowed]
        yield "as many keys as asked for", as_many_as_asked(self, self.runs)
        yield "fencing tokens rise", fences(self.runs, self.deployment.overlap)
        yield from explained(self)
        yield "no contender waits for ever", self.stuck
        # If a reader's lock may be lost unnoticed, its nested attempt to write may succeed, and end
        # with 1.
        fair = DISTURBED + ((1,) if self.deployment.overlap else ())
        badly = [f"{name} ended with {status}" for name, status in self.ends.items()
                 if not self.disturbed(name) and status not in fair]
        yield "each ended as it should", badly
        yield "nothing is left behind", self.left
        yield "there was something to see", too_little(self)

    def describe(self):
        modes = collections.Counter(run.mode for run in self.runs)
        disturbances = collections.Counter(disturbance for _ns, disturbance in self.disturbances)
        ends = collections.Counter(self.ends.values())
        some = sum(run.name in self.some for run in self.runs)
        yield f"{len(self.runs)} commands: {dict(modes)}, {some} with --any"
        yield f"done: {dict(sorted(disturbances.items()))}"
        yield f"ended with: {dict(sorted(ends.items()))}"
        for line, times in self.said:
            yield f"said {times} times: {line:.150}"


def history_of(record):
    frozen = record["store"] == chaos_frozen.STORE
    return chaos_frozen.History(record) if frozen else History(record)


class Chaos(Contest):
    """Continues until there is something to see: by chance its store may be away for most of the
    time. Five times as long, at most."""

    def __init__(self, deployment, seed, seconds):
        super().__init__(deployment, seed, seconds, CROWD)
        self.seconds, self.latest = seconds, self.until + 5 * seconds

    def goes_on(self):
        now = time.monotonic()
        if self.until <= now < self.latest and any(too_little(self)):
            self.until = now + 1
        return now < self.until

    @property
    def runs(self):
        with open(self.log) as file:
            return read_runs([line for line in file if line.endswith("\n")])


def play(store, seed, seconds):
    """Returns the history of a contest, ready for JSON."""
    directory = tempfile.mkdtemp(prefix="rlock-chaos-")
    deployment = None
    try:
        deployment = DEPLOYMENTS[store](os.path.join(directory, store))
        contest = Chaos(deployment, f"{seed} {store}", seconds)
        contest.run()
        deployment.heal()
        left = left_behind(contest)
        with open(contest.log) as file:
            log = file.readlines()
        with open(contest.log + ".err", errors="replace") as file:
            said = collections.Counter(line.split(":", 2)[-1].strip() for line in file)
        names = "disturbances hits some launched ended wishes ends stuck".split()
        return {"store": store, "seed": seed, "seconds": seconds, "left": left, "log": log,
                "said": said.most_common(10), **{name: getattr(contest, name) for name in names}}
    finally:
        if deployment:
            deployment.stop()
        shutil.rmtree(directory, ignore_errors=True)


def left_behind(contest):
    """Returns the keys that are held or waited for when all contenders have ended."""
    end = time.monotonic() + PLENTY / 2
    locks = ["it was not asked"]
    while locks and time.monotonic() < end:
        time.sleep(0.2)
        try:
            locks = contest.status()
        except Exception as fault:  # any reason not to answer
            locks = [str(fault)]
    return [str(lock) for lock in locks]


# -- the judge ------------------------------------------------------------------------------------


def explained(history):
    """Returns the verdict of an independent checker on the operations. If the promise of a store
    admits a lost lock, there may be no order that explains them."""
    path = f"chaos-{history.store}.edn"
    well = {name for name, status in history.ends.items()
            if not status and not history.disturbed(name)}  # fmt: skip
    some = edn.events(history.runs, history.launched, history.ended, history.wishes, well, LIMITS)
    edn.write(path, f"{history.title}, RLOCK_SEED={history.seed}", some)
    faults = edn.faults(path)
    if history.deployment.overlap:
        print(f"# {path}: {'not ' if faults else ''}linearizable")
    else:
        yield f"{path} is linearizable", faults


def too_little(history):
    modes = collections.Counter(run.mode for run in history.runs)
    for mode in history.deployment.modes:
        if modes[MODES[mode]] < history.seconds / 4:
            yield f"{modes[MODES[mode]]} commands for {mode}"
    if len(history.disturbances) < history.seconds / 4:
        yield f"{len(history.disturbances)} disturbances"


def judge(history, number):
    """Prints the verdicts, numbered from "number" on. Returns how many there were, and how many
    were bad."""
    bad = 0
    print(f"# {history.title}: {history.seconds:g} s, RLOCK_SEED={history.seed}")
    for line in history.describe():
        print("#", line)
    verdicts = list(history.promises())
    for i, (what, faults) in enumerate(verdicts):
        bad += not say(number + i, f"{history.store}: {what}", list(faults))
    return len(verdicts), bad


# --------------------------------------------------------------------------------------------------


def file_of(store):
    return f"chaos-{store}.json"


def write(record):
    with open(file_of(record["store"]), "w") as file:
        json.dump(record, file)


def keep(store):
    """Keeps the history of a failure where tests leave their evidence: a repetition writes anew."""
    failed = os.environ.get("RLOCK_TEST_FAILED")
    if failed:
        place = os.path.join(failed, os.path.basename(__file__))
        os.makedirs(place, exist_ok=True)
        shutil.copy(file_of(store), place)


def histories(arguments):
    """Yields the histories in the files, or new ones."""
    if arguments[:1] == ["--judge"]:
        for path in arguments[1:]:
            with open(path) as file:
                yield history_of(json.load(file))
        return
    every = " ".join([*DEPLOYMENTS, chaos_frozen.STORE])
    stores = (os.environ.get("RLOCK_STORES") or every).split()
    for store in stores:
        seconds = SECONDS / len(stores)
        if store == chaos_frozen.STORE:
            record = chaos_frozen.play(SEED, seconds)
        elif DEPLOYMENTS[store].missing:
            print(f"# {store}: left out, {DEPLOYMENTS[store].missing}")
            continue
        else:
            record = play(store, SEED, seconds)
        write(record)
        print(f"# the history is in {file_of(store)}")
        yield history_of(record)


def main():
    bail_out_by_signals()
    need(RLOCK, WORKER)
    count = failures = 0
    for history in histories(sys.argv[1:]):
        verdicts, bad = judge(history, count + 1)
        if bad and sys.argv[1:2] != ["--judge"]:
            keep(history.store)
        count, failures = count + verdicts, failures + bad
    print(f"1..{count}")
    sys.exit(bool(failures))


main()
