#!/usr/bin/env -S python3 -B
"""Random operations on the scripts of src/rules/lua, judged step by step. Prints TAP.

Time is the test's: "real" time goes by in steps; the server's clock is that and an offset. Four
judges look at each step: the model, which says what the answer must be from what there was before;
the view, which says what must be true of every lock; one for who is woken; and one that keeps what
clients were told, knows nothing of how locks work, and says what must never be seen.

RLOCK_SEED=N chooses another run, RLOCK_OPERATIONS=N its length.
"""
import os, random, time
from lock_model import Call, Calls, Told
from lock_view import View
from script_server import FAR_TTL, NEAR, PLACE_TTL, Lock, ReplyError, is_memory
from script_tap import main, same, test, true

BAR = 60000  # ms
START = 1700000000000000  # us
WEIGHTS = {
    "acquire": 30, "try": 8, "renew": 10, "release": 16, "uncertain": 4, "again": 3, "new": 14,
    "ghost": 3, "twin": 12, "force": 6, "inspect": 4, "pass": 12, "clock": 2, "delete": 0.4,
    "sleep": 3,
}
LEASES = (1000, 5000, 30000, 30000, 30000, 30 * 86400000)
KEYS = ("a", "b", "c")
ASKS = (("a",), ("a",), ("b",), ("a", "b"), ("b", "a"), ("c", "a"), ("b", "c"), ("a", "b", "c"))
MODES = (("x", 0), ("x", 0), ("s", 0), ("s", 0), ("s", 0))
LIMITS = (("l", 1), ("l", 2), ("l", 3), ("l", 3), ("l", 3), ("x", 0))


class Client:
    """One who wants a lock again and again, each time as another owner."""

    def __init__(self, number):
        self.number, self.owner, self.asleep = number, "n%d" % number, False
        self.keys, self.mode, self.limit, self.nest, self.places = ("a",), "x", 0, True, ""
        self.group, self.priority, self.bound, self.began = None, 0, 0, START


class Simulation:
    """Clients, clocks and judges around one server. Each operation is a tuple."""

    def __init__(self, server, ear):
        self.server, self.ear = server, ear
        self.real, self.offset, self.born = START, 0, 0
        self.clients = [Client(number) for number in range(9)]
        self.fields = {name: {} for name in KEYS}
        self.modes = {client.owner: ("x", 0) for client in self.clients}
        self.gone = []  # clients' former selves
        self.attempt = 0  # the number of the latest request of all
        self.sent = []  # (script, owner, arguments, keys) of the latest requests, latest first
        self.calls, self.told, self.seen, self.views = Calls(), Told(), {}, {}
        server.call("DEL", *Lock(server, *KEYS).keys)
        ear.heard()

    @property
    def now(self):
        return (self.real + self.offset) // 1000

    def view(self, name):
        """The same one, until something changes. Judges change theirs."""
        view = self.views.get(name)
        if not view or view.fields is not self.fields[name] or view.now != self.now:
            view = self.views[name] = View(self.fields[name], self.now)
        return view

    def play(self, operation):
        """Does it; AssertionError says what is wrong. Returns the reply."""
        return getattr(self, "play_" + operation[0])(*operation[1:])

    def send(self, call, names):
        micros = self.real + self.offset
        lock = Lock(self.server, *names, now=self.now)
        call.now, call.micros = self.now, micros
        call.before = [View(self.fields[name], self.now) for name in names]
        keys = lock.keys + [micros // 1000000, micros % 1000000]
        words = ["EVALSHA", self.server.sha[call.script, True], len(keys), *keys, *call.args()]
        looks = [word for key in lock.keys for word in (["PTTL", key], ["HGETALL", key])]
        call.reply, *looked, _heard = self.server.pipeline([words, *looks, self.ear.END])
        heard = [(key[7:-1], owner) for key, owner in self.ear.pokes(ended=True)]
        true(not isinstance(call.reply, ReplyError), f"error: {call.reply}")
        for name, flat in zip(names, looked[1::2]):
            # The server's order is by chance.
            self.fields[name] = dict(sorted(zip(flat[::2], flat[1::2])))
        call.after = [View(self.fields[name], self.now) for name in names]
        kind = call.script + " " + call.reply[0] + " " + call.mode
        self.seen[kind] = self.seen.get(kind, 0) + 1
        call.near = self.server.near
        call.judge()
        for name, ttl, view in zip(names, looked[::2], call.after):
            same(list(view.faults(ttl)), [], f"faults of {name}")
            same(list(view.faults_of_far(self.server.near)), [], f"far ones of {name}")
            far = any(one.far for one in view.waiters.values())
            self.seen["far waiters"] = self.seen.get("far waiters", 0) + far
        self.calls.judge(call, names, heard)
        self.told.sees(call, names, self.real // 1000, self.modes)
        return call.reply

    def request(self, script, owner, keys, **given):
        """One that is numbered. Others like it may have been lost on their way, and have numbers of
        their own."""
        self.attempt += 2
        self.sent = [(script, owner, {**given, "attempt": self.attempt}, keys)] + self.sent[:29]
        call = Call(script, owner, attempt=self.attempt, **given)
        self.send(call, keys)
        return call

    # -- operations -------------------------------------------------------------------------------

    def play_twin(self, which, earlier):
        """A request arrives once more whose other twin was answered; or one that was sent before
        that, and given up."""
        if which < len(self.sent):
            script, owner, given, names = self.sent[which]
            given = {**given, "attempt": given["attempt"] - earlier}
            self.send(Call(script, owner, **given), names)

    def play_new(self, number, parent, keys, mode, limit, nest, group=None, priority=0, bound=0):
        """Gives up without a word, and wants something else."""
        client = self.clients[number]
        self.gone = [client.__dict__.copy()] + self.gone[:7]
        self.born += 1
        above = self.clients[parent].owner + "." if parent is not None else ""
        client.owner = (above if above.count(".") < 4 else "") + "n%d" % (self.born + 100)
        client.keys, client.mode, client.limit, client.nest = keys, mode, limit, nest
        client.places, client.group = "", group
        client.priority, client.bound, client.began = priority, bound, self.real
        self.modes[client.owner] = (mode, limit)

    def play_acquire(self, number, lease, queue, late, count, forgot, lost):
        client = self.clients[number]
        not_after = 0 if late is None else self.now - late
        may_be_far = queue and len(client.keys) == 1 and "." not in client.owner
        may_be_far = may_be_far and client.group is None and not client.priority
        call = self.request(
            "acquire", client.owner, client.keys, lease=lease, place_ttl=PLACE_TTL if queue else 0,
            not_after=not_after, places="" if forgot else client.places, count=count,
            mode=client.mode, limit=client.limit, nest=client.nest,
            far_ttl=FAR_TTL if may_be_far else 0,
            who="w - - - " + client.owner + (" hears=1" if client.number % 2 else ""),
            group=client.group if queue else None, names=client.keys,
            priority=client.priority, bound=client.bound,
            waited=(self.real - client.began) // 1000)
        reply = call.reply
        self.calls.forget(call, client.keys)
        if reply[0] == "ASKED" and not lost:
            self.request("release", client.owner, client.keys)
        if not lost and reply[0] in ("GRANTED", "QUEUED"):
            client.places = reply[2] if reply[0] == "QUEUED" else ""
        return reply

    def play_ghost(self, which, queue):
        if which < len(self.gone):
            old = self.gone[which]
            self.send(Call("acquire", old["owner"], lease=5000, place_ttl=PLACE_TTL if queue else 0,
                           mode=old["mode"], limit=old["limit"], who="- - - - ghost",
                           priority=old["priority"], bound=old["bound"]), old["keys"])

    def play_renew(self, number, lease):
        client = self.clients[number]
        if not lease:  # as before, which clients were not told
            entries = [self.view(name).entry(client.owner) for name in client.keys]
            lease = min((entry.lease for entry in entries if entry), default=0)
        return self.request("renew", client.owner, client.keys, lease=lease).reply

    def play_release(self, number, uncertain, at_least):
        client = self.clients[number]
        reply = self.request("release", client.owner, client.keys, bar=BAR if uncertain else 0,
                             at_least=at_least).reply
        if not uncertain:  # otherwise it tries again, and must not succeed
            self.play_new(number, None, client.keys, client.mode, client.limit, True)
        return reply

    def play_force(self, name, which, others, purge, how):
        entries = self.view(name).entries
        owners = {entries[n % len(entries)].owner for n in which} if entries else set()
        owners |= {self.clients[number].owner for number in others}
        call = Call("force", "", owners=sorted(owners), purge=purge, how=how)
        return self.send(call, [name])

    def play_inspect(self, name):
        return self.send(Call("inspect", ""), [name])

    def play_delete(self, name):
        self.server.call("DEL", Lock(self.server, name).key)
        self.fields[name] = {}
        self.told.deletes(name)

    def play_pass(self, micros):
        self.real += micros

    def play_clock(self, millis):
        self.offset += millis * 1000
        if millis > 0:
            self.told.excuses()

    def play_sleep(self, number):
        self.clients[number].asleep = not self.clients[number].asleep

    def play_leave(self):
        """All holders go, all waiters come, until no client and no field is left."""
        self.real += 60 * 86400 * 1000000
        for turn in range(60):
            waiting = [client for client in self.clients
                       if any(client.owner in self.view(name).places for name in client.keys)]
            for client in self.clients:
                if client not in waiting:
                    self.play_release(client.number, False, 0)
            if not waiting:
                break
            for client in waiting:
                self.play_acquire(client.number, 5000, True, None, True, False, False)
            self.real += 700000
        true(not waiting, f"after {turn} turns there still wait {[one.owner for one in waiting]}")
        self.real += 60 * 86400 * 1000000
        for name in KEYS:
            last = self.clients[0]
            self.play_new(0, None, (name,), "x", 0, True)
            self.send(Call("acquire", last.owner, lease=1000, place_ttl=PLACE_TTL), [name])
            self.play_release(0, False, 0)
            left = {field for field in self.fields[name] if not is_memory(field)}
            left -= {"k", "f", "q", "t", "g", "o"}
            same(left, set(), f"all left, and in {name} there still are")


def replay(server, ear, operations):
    """(Simulation, number of the first operation that went wrong or None, why)."""
    simulation = Simulation(server, ear)
    for number, operation in enumerate(operations):
        try:
            simulation.play(operation)
        except AssertionError as fault:
            return simulation, number, str(fault)
    return simulation, None, None


# -- chance ---------------------------------------------------------------------------------------


def heartbeats(rng, simulation):
    """A moment later all that wait and are awake call, and holders renew, most of them."""
    yield ("pass", rng.randrange(200000, 2500000))
    for client in rng.sample(simulation.clients, len(simulation.clients)):
        view = simulation.view(client.keys[0])
        if view.entry(client.owner) and rng.random() < 0.8:
            yield ("renew", client.number, 0)
        elif client.owner in view.places and not client.asleep and rng.random() < 0.95:
            yield ask(rng, client.number, queue=True)


def poked(rng, simulation):
    """Those that were called come, in any order."""
    called = [client for client in simulation.clients if not client.asleep
              and any((name, client.owner) in simulation.calls.coming for name in client.keys)]
    for client in rng.sample(called, len(called)):
        yield ask(rng, client.number, queue=True)


def ask(rng, number, queue, lost=False):
    late = rng.choice((1, 1, 60000, 0, -1, -5000)) if rng.random() < 0.1 else None
    count, forgot = rng.random() < 0.8, rng.random() < 0.05
    return ("acquire", number, rng.choice(LEASES), queue, late, count, forgot, lost)


def someone(rng, simulation, number):
    """A holder's number, more often than not."""
    holders = [client.number for client in simulation.clients
               if simulation.view(client.keys[0]).entry(client.owner)]
    return rng.choice(holders) if holders and rng.random() < 0.6 else number


def wish(rng, simulation, number, modes):
    """A new owner: half of them nest in somebody. Most of those that may be far do not."""
    if simulation.server.near < NEAR and rng.random() < 0.75:
        return ("new", number, None, ("a",), *rng.choice(modes), True)
    others = [other for other in range(len(simulation.clients)) if other != number]
    parent = someone(rng, simulation, rng.choice(others)) if rng.random() < 0.5 else None
    parent = parent if parent != number else None
    keys = rng.choice(ASKS)
    if parent is not None and rng.random() < 0.7:
        keys = simulation.clients[parent].keys
    group = rng.choice(("", "a", "g")) if rng.random() < 0.3 else None
    return ("new", number, parent, keys, *rng.choice(modes), rng.random() < 0.9, group,
            rng.choice((0, 0, 0, 0, 1, 5, 5, 9, -1, -1, -9)), rng.choice((0, 0, 0, 1000, 10000)))


def one_of(rng, simulation, modes):
    number = rng.randrange(len(simulation.clients))
    what = rng.choices(list(WEIGHTS), WEIGHTS.values())[0]
    if what in ("acquire", "try", "again"):
        return ask(rng, number, what != "try", lost=what == "again")
    if what == "new":
        return wish(rng, simulation, number, modes)
    if what == "renew":
        return ("renew", number, rng.choice((0,) + LEASES))
    if what in ("release", "uncertain"):
        at_least = rng.choice((1, 5000, 60000)) if rng.random() < 0.2 else 0
        return ("release", someone(rng, simulation, number), what == "uncertain", at_least)
    if what == "twin":
        return ("twin", rng.choice((0, 1, 2, rng.randrange(30))), rng.randrange(2))
    if what == "ghost":
        return ("ghost", rng.randrange(8), rng.random() < 0.5)
    if what == "force":
        which = [rng.randrange(9) for _turn in range(rng.choice((0, 1, 1, 2, 4)))]
        others = [number] if rng.random() < 0.1 else []
        how = rng.choice(("now", "now", "ask", "ask", "ask", "again", "over"))
        return ("force", rng.choice(KEYS), which, others, rng.random() < 0.3, how)
    if what == "pass":
        return ("pass", some_time(rng, simulation))
    if what == "clock":
        step = rng.choice((1, 500, 10000, 3600000))
        return ("clock", -step if rng.random() < 0.7 else step)
    return (what, number if what == "sleep" else rng.choice(KEYS))


def some_time(rng, simulation):
    """us: any time, or to the very ms at which something ends, or to the one before."""
    if rng.random() < 0.6:
        return rng.choice((0, 1, 999, 50000, PLACE_TTL * 1000 - 1, 7000000, 30000000, 3600000000))
    view = simulation.view(rng.choice(KEYS))
    ends = [one.deadline for one in view.entries + list(view.waiters.values())]
    return max(rng.choice(ends or [0]) - simulation.now - rng.randrange(2), 0) * 1000


def history(rng, server, ear, length):
    """Plays random operations, at the end of which all leave. (operations, Simulation, number,
    why)."""
    simulation, operations = Simulation(server, ear), []
    modes = rng.choice((MODES, LIMITS, MODES + LIMITS, (("x", 0),), (("s", 0), ("x", 0))))
    try:
        while len(operations) < length:
            source = rng.choices((heartbeats, poked, None), (10, 20, 70))[0]
            for operation in (
                source(rng, simulation) if source else [one_of(rng, simulation, modes)]
            ):
                operations.append(operation)
                simulation.play(operation)
        operations.append(("leave",))
        simulation.play(operations[-1])
    except AssertionError as fault:
        return operations, simulation, len(operations) - 1, str(fault)
    return operations, simulation, None, None


def shorten(operations, fails, seconds=20):
    """As few of the operations as still fail, by leaving out ever smaller pieces."""
    deadline = time.monotonic() + seconds
    size = len(operations) // 2
    while size and time.monotonic() < deadline:
        start, shrunk = 0, False
        while start < len(operations) and time.monotonic() < deadline:
            rest = operations[:start] + operations[start + size :]
            if fails(rest):
                operations, shrunk = rest, True
            else:
                start += size
        size = size if shrunk and size == 1 else size // 2
    return operations


def tell(server, ear, operations, fault, seed):
    """Raises the shortest history that fails."""
    kind = fault.partition(":")[0]

    def fails(some):
        _world, number, why = replay(server, ear, some)
        return number is not None and why.partition(":")[0] == kind

    operations = shorten(operations, fails)
    simulation, lines = Simulation(server, ear), [f"RLOCK_SEED={seed}; the shortest history found:"]
    try:
        for operation in operations:
            lines.append(f"  {operation}")
            lines[-1] += f" -> {simulation.play(operation)}"
    except AssertionError as again:
        fault = str(again)
    names = [f"{client.number}={client.owner} {client.keys}" for client in simulation.clients]
    held = [f"{name}: {fields}" for name, fields in simulation.fields.items()]
    raise AssertionError("\n".join(lines + names + held + [fault]))


@test("model: an ancestor that acquires after its descendant does not make its family the oldest")
def _(server):
    _world, _number, fault = replay(server, server.listen(), [
        ("new", 8, 4, ("b",), "l", 3, True, "a", 5, 1000),
        ("new", 1, 2, ("b",), "l", 3, True, "g", 9, 0),
        ("acquire", 8, 30000, True, None, True, False, False),
        ("new", 7, 8, ("b",), "l", 3, True, None, -1, 0),
        ("acquire", 7, 1000, True, None, False, False, False),
        ("acquire", 1, 5000, True, -1, True, False, False),
        ("release", 8, False, 0),
        ("ghost", 0, False),
        ("release", 7, True, 0),
    ])
    assert fault is None, fault


@test("model: random operations have the model's answers, and no judge finds a fault")
def _(server):
    compare(server)


@test(
    "model: random operations have the model's answers where all but the first two waiters are "
    "far"
)
def _(server):
    near = server.near
    server.load_all(near=2)
    compare(server, share=2)
    server.load_all(near=near)


def compare(server, share=1):
    seed = int(os.environ.get("RLOCK_SEED") or 1)
    left = int(os.environ.get("RLOCK_OPERATIONS") or 5000) // share
    print(f"# RLOCK_SEED={seed}, {left} operations")
    rng, ear, seen = random.Random(seed), server.listen(), {}
    while left > 0:
        length = rng.choice((100, 300, 1000))
        operations, simulation, number, fault = history(rng, server, ear, length)
        if fault:
            tell(server, ear, operations[: number + 1], fault, seed)
        for kind, times in simulation.seen.items():
            seen[kind] = seen.get(kind, 0) + times
        left -= len(operations)
    print("#", ", ".join(f"{kind} {times}" for kind, times in sorted(seen.items())))


main()
