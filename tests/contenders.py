"""Contenders for a few locks, in the modes of their store, and faults that kill and stop some.

A deployment of a store has: .url, .directory for the logs, .modes, .any (does it have locks of some
of several keys?), .options for each run and .disturbances, its faults: name -> function(chance).
.decides: further features, of "pause", "priority" and "latest".

The acts of each contender are in Contest.log (the traces of worker), .queues (the output of status
meanwhile), .launched, .wishes, .ended and .ends; .hits has the faults of processes, .disturbances
those of the store, with their times.
"""
import contextlib, itertools, json, math, os, random, shlex, signal, subprocess, threading, time
from intervals import Queue

RLOCK = os.path.realpath(os.environ.get("RLOCK", "./rlock"))
# Where RLOCK_BESIDE names another version, chance decides for each run which of them it is.
PROGRAMS = [RLOCK, *os.environ.get("RLOCK_BESIDE", "").split()]
TOOLS = os.path.realpath(os.environ.get("RLOCK_TEST_TOOLS", os.path.dirname(RLOCK) + "/tests"))
WORKER = os.path.join(TOOLS, "worker")
LEASE = 4  # s
LIMITS = {"two": 2, "three": 3}
PLENTY = 40  # s, in which every run has had its turn once nothing is disturbed any more

# To one process of a run: of which name, and by which signal.
DISTURBANCES = {
    "kill": ("rlock", signal.SIGKILL), "kill agent": ("rlock-agent", signal.SIGKILL),
    "kill command": ("worker", signal.SIGKILL), "term": ("rlock", signal.SIGTERM),
    "stop": ("rlock", signal.SIGSTOP), "stop agent": ("rlock-agent", signal.SIGSTOP),
}
WEIGHTS = {"write": 4, "read": 5, "limit": 4}
MODES = {"write": "exclusive", "read": "shared", "limit": "limit"}  # of worker's traces


def environment(url, **more):
    """Returns that of a run, without the variables of whoever runs the tests."""
    others = {name: value for name, value in os.environ.items()
              if not name.startswith(("RLOCK_", "XDG_"))}
    return {**others, "RLOCK_URL": url, "RLOCK_CONFIG": "/dev/null", **more}


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Wish:
    """The plan of a contender: the options and keys of a run, and the script to run under them."""

    def __init__(self, contest, chance, name):
        self.contest, self.chance, self.name = contest, chance, name
        modes = contest.deployment.modes
        self.mode = chance.choices(modes, [WEIGHTS[mode] for mode in modes])[0]
        if self.mode == "limit":
            self.keys = [chance.choice(list(LIMITS))]
        elif chance.random() < 0.4:
            self.keys = chance.sample(["one", "other", "rw"], chance.choice((2, 2, 3)))
        else:
            self.keys = ["rw" if chance.random() < 0.7 else "one"]
        self.waits, self.some = True, 0
        if len(self.keys) > 1 and contest.deployment.any and chance.random() < 0.5:
            self.some = chance.randint(1, len(self.keys) - 1)
        self.options = self.common_options(name)
        if self.some:
            self.options += ["--any", "--take", str(self.some)]
        if chance.random() < 0.15:
            self.options += chance.choice((["-n"], ["-w", "300ms"]))
            self.waits = False
        if chance.random() < 0.05 and contest.deployment.at_least:
            self.options += ["--at-least", "400ms"]
        if "priority" in contest.decides and chance.random() < 0.2:
            self.options += ["--priority", str(chance.randint(1, 9))]
        if "latest" in contest.decides and chance.random() < 0.1:
            self.options.append("--latest")
            self.waits = False

    def common_options(self, name):
        options = f"--lease {LEASE}s --kill-after 300ms --label {name}".split()
        return options + self.contest.deployment.options

    def mode_options(self, mode):
        return ["--limit", str(LIMITS[self.keys[0]])] if mode == "limit" else ["--" + mode]

    def work(self, name, most=0.12):
        seconds = f"{self.chance.uniform(0.01, most):.3f}"
        return shlex.join([WORKER, self.contest.log, name, seconds, "grant"])

    def nested(self, name, mode, held, more=False):
        """Returns a run of some of the keys "held", just those of its caller, and perhaps of one
        more. Children that want a key of their parent's sibling could deadlock."""
        keys = self.chance.sample(held, self.chance.randint(1, len(held)))
        if more:
            keys.append("rw")
        inner = self.work(name, 0.05)
        if self.chance.random() < 0.2:
            inner = "; ".join([inner, self.nested(name + ".1", mode, keys), self.work(name, 0.03)])
        options = self.common_options(name) + self.mode_options(mode)
        program = self.chance.choice(PROGRAMS)
        return shlex.join([program, "run", "-q", *options, *keys, "--", "sh", "-ec", inner])

    def nested_mode(self):
        modes = [mode for mode in ("write", "read") if mode in self.contest.deployment.modes]
        return self.chance.choice(modes) if self.mode == "write" else self.mode

    def script(self):
        """Plain, nested, two siblings, or an attempt to make a write lock of a read lock."""
        plain, rng = self.work(self.name), self.chance.random()
        if self.some:
            return plain  # the keys that nested ones may want are not known yet
        if rng < 0.15:
            # One more key while others are held: always the same one is last, otherwise the users
            # themselves would deadlock.
            more = (
                self.mode != "limit"
                and self.contest.deployment.one_more
                and "rw" not in self.keys
                and self.chance.random() < 0.5
            )
            inner = self.nested(self.name + ".1", self.nested_mode(), self.keys, more)
            return "; ".join([plain, inner, self.work(self.name, 0.03)])
        if rng < 0.25:
            one = self.nested(self.name + ".1", self.nested_mode(), self.keys)
            two = self.nested(self.name + ".2", self.nested_mode(), self.keys)
            return f"{plain}; {one} & a=$!; {two} & b=$!; wait $a; wait $b"
        if rng < 0.3 and self.mode == "read":
            program = self.chance.choice(PROGRAMS)
            upgrade = shlex.join([program, "run", "-q", "--write", self.keys[0], "--", "true"])
            return f"{plain}; s=0; {upgrade} || s=$?; [ $s = 78 ] || exit $((s ? s : 1))"
        return plain

    def words(self):
        program, modes = self.chance.choice(PROGRAMS), self.mode_options(self.mode)
        words = [program, "run", "-q", *self.options, *modes, *self.keys, "--"]
        script = self.script()
        return words + (shlex.split(script) if ";" not in script else ["sh", "-ec", script])


def as_many_as_asked(contest, runs):
    """Returns the faults of runs that had another number of keys."""
    for run in runs:
        wanted = contest.some.get(run.name, len(run.grants))
        if len(run.grants) != wanted:
            yield f"{run.name} has {' '.join(run.grants)}, and wanted {wanted}"


class Contest:
    """Runs "crowd" contenders for "seconds", and on a busy machine until faults have hit "hits" of
    them, then lets all end."""

    def __init__(self, deployment, seed, seconds, crowd=10, hits=0):
        self.deployment, self.seed, self.crowd = deployment, seed, crowd
        self.decides = deployment.decides
        self.log = os.path.join(deployment.directory, "log")
        # A LeakSanitizer that has lost its helper process spins for ever, so that process is never
        # hit.
        asan = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        self.env = environment(deployment.url, RLOCK_CONFIG=deployment.config, LC_ALL="C",
                               ASAN_OPTIONS=asan)
        self.until = time.monotonic() + seconds
        self.hits_wanted, self.last = hits, self.until + 6 * seconds
        self.calm = math.inf  # time of the last disturbance
        self.running, self.launched, self.ends, self.waits = {}, {}, {}, {}
        self.wishes, self.ended = {}, {}  # (mode, keys); when
        self.some = {}  # of how many keys each wants, where those are not all that it names
        self.hits, self.disturbances, self.queues, self.faults, self.stuck = {}, [], [], [], []
        self.timers = []
        self.observers, self.deciders = itertools.cycle(PROGRAMS), itertools.cycle(PROGRAMS)

    def goes_on(self):
        return time.monotonic() < (self.until if self.hit_enough() else self.last)

    def hit_enough(self):
        return len(self.hits) >= self.hits_wanted

    def run(self):
        open(self.log, "w").close()
        threading.excepthook = lambda caught: self.faults.append(
            f"{caught.exc_type.__name__}: {caught.exc_value}"
        )
        threads = [threading.Thread(target=self.contend, args=(n,)) for n in range(self.crowd)]
        threads.append(threading.Thread(target=self.watch))
        for thread in threads:
            thread.start()
        self.disturb_all(random.Random(f"{self.seed} disturbances"))
        self.calm = time.monotonic()
        for timer in self.timers:
            timer.join()
        for thread in threads:
            thread.join()

    # -- contenders -------------------------------------------------------------------------------

    def contend(self, n):
        chance, i = random.Random(f"{self.seed} {n}"), 0
        while self.goes_on():
            i += 1
            name = f"{n}-{i}"
            wish = Wish(self, chance, name)
            words = wish.words()
            self.launched[name], self.waits[name] = now_ns(), wish.waits
            self.wishes[name] = (MODES[wish.mode], wish.keys)
            if wish.some:
                self.some[name] = wish.some
            with open(self.log + ".err", "a") as errors:
                process = subprocess.Popen(
                    words, env=self.env, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors
                )
            self.running[name] = process
            self.wait_for(name, process)
            self.ended[name] = now_ns()
            del self.running[name]
            if chance.random() < 0.3 or self.ends.get(name) == 69:
                time.sleep(chance.uniform(0, 0.2))

    def wait_for(self, name, process):
        """A store that fails again and again may grant nothing for long: waiters must have their
        turns after the last disturbance."""
        while name not in self.ends and name not in self.stuck:
            try:
                self.ends[name] = process.wait(1)
            except subprocess.TimeoutExpired:
                if time.monotonic() > self.calm + PLENTY:
                    self.stuck.append(name)
                    process.kill()
                    process.wait()

    # -- the watch --------------------------------------------------------------------------------

    def status(self, *keys):
        words = [next(self.observers), "status", "--json", *keys]
        done = subprocess.run(words, env=self.env, check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        return json.loads(done.stdout)

    def watch(self):
        """Records the queue, and judges the holders that the server shows."""
        while self.goes_on() or self.running:
            time.sleep(0.05)
            try:
                locks = self.status()
            except subprocess.CalledProcessError:
                continue  # the connection was closed
            for lock in locks:
                waiters = [(one["label"], one["mode"]) for one in lock["waiters"]]
                self.queues.append(Queue(lock["key"], now_ns(), waiters))
                self.judge(lock)

    def judge(self, lock):
        families = {one["owner"].split(".")[0]: one for one in lock["holders"]}
        modes = {one["mode"] for one in families.values()}
        slots = [one["slot"] for one in families.values()]
        wrong = len(families) > 1 and (len(modes) > 1 or "exclusive" in modes)
        if "limit" in modes:
            wrong = wrong or len(families) > LIMITS[lock["key"]] or len(set(slots)) < len(slots)
        if wrong:
            self.faults.append(f"status: {lock['key']}: " + json.dumps(lock["holders"]))

    # -- the disturbances -------------------------------------------------------------------------

    def disturb_all(self, chance):
        """Disturbs the store again, most often only after another grant."""
        served = 0
        while self.goes_on():
            time.sleep(chance.uniform(0.3, 1.3))
            store = self.deployment.disturbances
            if os.path.getsize(self.log) == served and chance.random() < 0.7:
                store = {}
            if "pause" in self.decides:
                store = {**store, "pause": self.pause}
            disturbance = chance.choice([*DISTURBANCES, *store])
            self.disturbances.append((now_ns(), disturbance))
            if disturbance in store:
                store[disturbance](chance)
                served = os.path.getsize(self.log)
            else:
                self.hit(chance, disturbance)

    def pause(self, chance):
        """Waits until it ends or is resumed; not while the store is away."""
        key, seconds = chance.choice(["one", "rw"]), chance.uniform(1, 2)
        self.decide("pause", key, f"{seconds:.1f}s", "-m", "contest")
        if chance.random() < 0.5:
            time.sleep(chance.uniform(0, seconds))
            self.decide("resume", key)

    def decide(self, *words):
        words = [next(self.deciders), *words, "--server-wait", "0", "--connect-timeout", "1s"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        done = subprocess.run(words, env=self.env, check=False, **quiet)
        if done.returncode not in (0, 1, 69):
            self.faults.append(f"{' '.join(words[1:])} ended with {done.returncode}")

    def hit(self, chance, disturbance):
        """Returns a process of a run, perhaps nested, that was not disturbed yet; more often of a
        holder."""
        trees = {name: descendants(process.pid) for name, process in list(self.running.items())
                 if name not in self.hits}
        working = [name for name, tree in trees.items() if "worker" in dict(tree).values()]
        if not trees:
            return
        name = chance.choice(working if working and chance.random() < 0.7 else list(trees))
        target, number = DISTURBANCES[disturbance]
        targets = [pid for pid, comm in trees[name] if comm == target]
        if not targets:
            return
        pid = chance.choice(targets)
        self.hits[name] = disturbance
        send(pid, number)
        if number == signal.SIGSTOP:
            timer = threading.Timer(chance.uniform(0.1, 1.2 * LEASE), send, (pid, signal.SIGCONT))
            self.timers.append(timer)
            timer.daemon = True
            timer.start()


def send(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def descendants(pid):
    """Returns (pid, name) of a process and its descendants."""
    try:
        with open(f"/proc/{pid}/comm") as file:
            found = [(pid, file.read().strip())]
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            for child in file.read().split():
                found += descendants(int(child))
    except OSError:
        return []
    return found
