"""Frozen machines for the chaos run: a supervisor and its agent are stopped together for longer
than the lease, while their command continues to write. One resource takes each write; another one
is behind `rlock fence`.
"""
import os, random, shutil, signal, subprocess, tempfile, threading, time
from chaos_deployments import REDIS
from contenders import RLOCK, descendants, environment, send

STORE = "frozen"
LEASE = 1  # s
CROWD = 4
# Writes to both resources for a while, with or without the lock.
WRITER = """
cd "$1"
for write in $(seq "$2"); do
    sleep 0.05
    echo "$RLOCK_FENCE" >>bare
    "$3" fence -q token -- sh -c 'echo "$RLOCK_FENCE" >>fenced' 2>/dev/null || echo "$?" >>refused
done
"""


def read(directory, name):
    try:
        with open(os.path.join(directory, name)) as file:
            return [int(line) for line in file.read().split("\n")[:-1]]
    except FileNotFoundError:
        return []


def late(writes):
    """Returns the number of writes with an older token than one before."""
    newest = found = 0
    for token in writes:
        found += token < newest
        newest = max(newest, token)
    return found


class Machines:
    """Contenders, and a thread that stops them."""

    def __init__(self, url, directory, seed, seconds):
        self.directory, self.chance = directory, random.Random(f"{seed} {STORE}")
        self.until, self.latest = time.monotonic() + seconds, time.monotonic() + 5 * seconds
        self.frozen = 0
        self.runs = {}
        self.environment = environment(url)

    def goes_on(self):
        now = time.monotonic()
        return now < self.until or (now < self.latest and not late(read(self.directory, "bare")))

    def contend(self, n):
        chance = random.Random(f"{self.chance.random()} {n}")
        while self.goes_on():
            writes = str(chance.randint(10, 60))
            words = [RLOCK, "run", "-q", "--lease", f"{LEASE}s", "k", "--", "sh", "-c", WRITER]
            words += ["sh", self.directory, writes, RLOCK]
            self.runs[n] = subprocess.Popen(
                words, env=self.environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            self.runs[n].wait()

    def holder(self):
        """Returns the pids of a run with a live command: rlock's and its agent's."""
        for run in list(self.runs.values()):
            below = dict(descendants(run.pid)) if run.poll() is None else {}
            agents = [pid for pid, name in below.items() if name == "rlock-agent"]
            if agents and "sh" in below.values():
                return [run.pid, *agents]
        return None

    def freeze(self):
        """Stops one until its lease is over and another one has written."""
        pids = self.holder()
        if not pids:
            return
        for pid in pids:
            send(pid, signal.SIGSTOP)
        end = time.monotonic() + 4 * LEASE
        newest = max(read(self.directory, "bare"), default=0)
        while time.monotonic() < end and max(read(self.directory, "bare"), default=0) <= newest:
            time.sleep(0.05)
        time.sleep(self.chance.random() * LEASE)
        for pid in pids:
            send(pid, signal.SIGCONT)
        self.frozen += 1

    def run(self):
        threads = [threading.Thread(target=self.contend, args=(n,)) for n in range(CROWD)]
        for thread in threads:
            thread.start()
        while self.goes_on():
            time.sleep(0.1 + self.chance.random())
            self.freeze()
        for thread in threads:
            thread.join()


def play(seed, seconds):
    directory = tempfile.mkdtemp(prefix="rlock-chaos-")
    deployment = REDIS["server"](os.path.join(directory, STORE))
    try:
        machines = Machines(deployment.url, directory, seed, seconds)
        machines.run()
        record = {name: read(directory, name) for name in ("bare", "fenced", "refused")}
        return dict(record, store=STORE, seed=seed, seconds=seconds, frozen=machines.frozen)
    finally:
        deployment.stop()
        shutil.rmtree(directory, ignore_errors=True)


class History:
    """The record of a run, which is judged."""

    def __init__(self, record):
        self.__dict__.update(record)
        self.title = "machines that stand still for longer than the lease"

    def describe(self):
        yield f"{self.frozen} times frozen"
        yield "| resource | writes | refused | with an older token |"
        yield f"| without a fence | {len(self.bare)} | - | {late(self.bare)} |"
        fenced, refused = len(self.fenced), len(self.refused)
        yield f"| behind rlock fence | {fenced} | {refused} | {late(self.fenced)} |"

    def promises(self):
        worse = [f"{late(self.fenced)} writes"] if late(self.fenced) else []
        yield "behind rlock fence no write comes with an older token", worse
        others = [f"status {status}" for status in self.refused if status != 79]
        yield "nothing else is refused there", others
        yield "without it some do", [] if late(self.bare) else ["there was nothing to see"]
