#!/usr/bin/env -S python3 -B
"""Random operations on the scripts of src/lua, judged step by step. Prints TAP.

Time is the test's: "real" time goes by in steps; the server's clock is that and an offset. Four
judges look at each step: the model, which says what the answer must be from what there was before;
the view, which says what must be true of every lock; one for who is woken; and the witness, which
knows nothing of how locks work and says what must never be seen.

RLOCK_SEED=N chooses another run, RLOCK_OPERATIONS=N its length.
"""
import os, random, time
from lock_model import Call, Calls, Witness
from lock_view import View
from script_server import PATIENCE, Lock, ReplyError
from script_tap import main, same, test, true

BAR = 60000  # ms
START = 1700000000000000  # us
WEIGHTS = {
    "acquire": 30, "try": 8, "renew": 10, "release": 16, "uncertain": 4, "again": 3, "new": 14,
    "ghost": 3, "force": 4, "inspect": 4, "pass": 12, "clock": 2, "delete": 0.4, "sleep": 3,
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


class World:
    """Clients, clocks and judges around one server. Each operation is a tuple."""

    def __init__(self, server, ear):
        self.server, self.ear = server, ear
        self.real, self.offset, self.born = START, 0, 0
        self.clients = [Client(number) for number in range(9)]
        self.fields = {name: {} for name in KEYS}
        self.modes = {client.owner: ("x", 0) for client in self.clients}
        self.gone = []  # clients' former selves
        self.calls, self.witness, self.seen = Calls(), Witness(), {}
        server.call("DEL", *Lock(server, *KEYS).keys)
        ear.heard()

    @property
    def now(self):
        return (self.real + self.offset) // 1000

    def view(self, name):
        return View(self.fields[name], self.now)

    def play(self, operation):
        """Does it; AssertionError says what is wrong. Returns the reply."""
        return getattr(self, "play_" + operation[0])(*operation[1:])

    def send(self, call, names):
        micros = self.real + self.offset
        lock = Lock(self.server, *names, now=self.now)
        call.now, call.micros = self.now, micros
        call.before = [self.view(name) for name in names]
        keys = lock.keys + [micros // 1000000, micros % 1000000]
        words = ["EVALSHA", self.server.sha[call.script, True], len(keys), *keys, *call.args()]
        looks = [word for key in lock.keys for word in (["PTTL", key], ["HGETALL", key])]
        call.reply, *looked = self.server.pipeline([words, *looks])
        heard = [(key[7:-1], owner) for key, owner in self.ear.pokes()]
        true(not isinstance(call.reply, ReplyError), f"error: {call.reply}")
        for name, flat in zip(names, looked[1::2]):
            self.fields[name] = dict(sorted(zip(flat[::2], flat[1::2])))  # the server's order is by chance
        call.after = [self.view(name) for name in names]
        kind = call.script + " " + call.reply[0] + " " + call.mode
        self.seen[kind] = self.seen.get(kind, 0) + 1
        call.judge()
        for name, ttl, view in zip(names, looked[::2], call.after):
            same(list(view.faults(ttl)), [], f"faults of {name}")
        self.calls.judge(call, names, heard)
        self.witness.sees(call, names, self.real // 1000, self.modes)
        return call.reply

    # -- operations ---------------------------------------------------------------------------------

    def play_new(self, number, parent, keys, mode, limit, nest):
        """Gives up without a word, and wants something else."""
        client = self.clients[number]
        self.gone = [client.__dict__.copy()] + self.gone[:7]
        self.born += 1
        above = self.clients[parent].owner + "." if parent is not None else ""
        client.owner = (above if above.count(".") < 4 else "") + "n%d" % (self.born + 100)
        client.keys, client.mode, client.limit, client.nest = keys, mode, limit, nest
        client.places = ""
        self.modes[client.owner] = (mode, limit)

    def play_acquire(self, number, lease, queue, late, count, forgot, lost):
        client = self.clients[number]
        not_after = 0 if late is None else self.now - late
        call = Call("acquire", client.owner, lease=lease, patience=PATIENCE if queue else 0,
                    not_after=not_after, places="" if forgot else client.places, count=count,
                    mode=client.mode, limit=client.limit, nest=client.nest, who="w " + client.owner)
        reply = self.send(call, client.keys)
        if not lost and reply[0] in ("GRANTED", "QUEUED"):
            client.places = reply[2] if reply[0] == "QUEUED" else ""
        return reply

    def play_ghost(self, which, queue):
        if which < len(self.gone):
            old = self.gone[which]
            self.send(Call("acquire", old["owner"], lease=5000, patience=PATIENCE if queue else 0,
                           mode=old["mode"], limit=old["limit"], who="ghost"), old["keys"])

    def play_renew(self, number, lease):
        client = self.clients[number]
        call = Call("renew", client.owner, lease=lease)
        if not lease:  # as before, which the witness does not know
            entries = [self.view(name).entry(client.owner) for name in client.keys]
            call.lease = min((entry.lease for entry in entries if entry), default=0)
        return self.send(call, client.keys)

    def play_release(self, number, uncertain, at_least):
        client = self.clients[number]
        call = Call("release", client.owner, bar=BAR if uncertain else 0, at_least=at_least)
        reply = self.send(call, client.keys)
        if not uncertain:  # otherwise it tries again, and must not succeed
            self.play_new(number, None, client.keys, client.mode, client.limit, True)
        return reply

    def play_force(self, name, which, others, purge):
        entries = self.view(name).entries
        owners = {entries[n % len(entries)].owner for n in which} if entries else set()
        owners |= {self.clients[number].owner for number in others}
        return self.send(Call("force", "", owners=sorted(owners), purge=purge), [name])

    def play_inspect(self, name):
        return self.send(Call("inspect", ""), [name])

    def play_delete(self, name):
        self.server.call("DEL", Lock(self.server, name).key)
        self.fields[name] = {}
        self.witness.deletes(name)

    def play_pass(self, micros):
        self.real += micros

    def play_clock(self, millis):
        self.offset += millis * 1000
        if millis > 0:
            self.witness.excuses()

    def play_sleep(self, number):
        self.clients[number].asleep = not self.clients[number].asleep

    def play_leave(self):
        """All that hold go, all that wait come, until nobody is left; and nothing is."""
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
            self.send(Call("acquire", last.owner, lease=1000, patience=PATIENCE), [name])
            self.play_release(0, False, 0)
            left = set(self.fields[name]) - {"k", "f", "q", "t"}
            same(left, set(), f"all left, and in {name} there still are")


def replay(server, ear, operations):
    """(World, number of the first operation that went wrong or None, why)."""
    world = World(server, ear)
    for number, operation in enumerate(operations):
        try:
            world.play(operation)
        except AssertionError as fault:
            return world, number, str(fault)
    return world, None, None


# -- chance ---------------------------------------------------------------------------------------


def heartbeats(dice, world):
    """A moment later all that wait and are awake call, and holders renew, most of them."""
    yield ("pass", dice.randrange(200000, 2500000))
    for client in dice.sample(world.clients, len(world.clients)):
        view = world.view(client.keys[0])
        if view.entry(client.owner) and dice.random() < 0.8:
            yield ("renew", client.number, 0)
        elif client.owner in view.places and not client.asleep and dice.random() < 0.95:
            yield ask(dice, client.number, queue=True)


def poked(dice, world):
    """Those that were called come, in any order."""
    called = [client for client in world.clients if not client.asleep
              and any((name, client.owner) in world.calls.coming for name in client.keys)]
    for client in dice.sample(called, len(called)):
        yield ask(dice, client.number, queue=True)


def ask(dice, number, queue, lost=False):
    late = dice.choice((1, 1, 60000, 0, -1, -5000)) if dice.random() < 0.1 else None
    count, forgot = dice.random() < 0.8, dice.random() < 0.05
    return ("acquire", number, dice.choice(LEASES), queue, late, count, forgot, lost)


def someone(dice, world, number):
    """A holder's number, more often than not."""
    holders = [client.number for client in world.clients
               if world.view(client.keys[0]).entry(client.owner)]
    return dice.choice(holders) if holders and dice.random() < 0.6 else number


def wish(dice, world, number, modes):
    """A new owner: half of them nest in somebody."""
    others = [other for other in range(len(world.clients)) if other != number]
    parent = someone(dice, world, dice.choice(others)) if dice.random() < 0.5 else None
    parent = parent if parent != number else None
    keys = dice.choice(ASKS)
    if parent is not None and dice.random() < 0.7:
        keys = world.clients[parent].keys
    return ("new", number, parent, keys, *dice.choice(modes), dice.random() < 0.9)


def one_of(dice, world, modes):
    number = dice.randrange(len(world.clients))
    what = dice.choices(list(WEIGHTS), WEIGHTS.values())[0]
    if what in ("acquire", "try", "again"):
        return ask(dice, number, what != "try", lost=what == "again")
    if what == "new":
        return wish(dice, world, number, modes)
    if what == "renew":
        return ("renew", number, dice.choice((0,) + LEASES))
    if what in ("release", "uncertain"):
        at_least = dice.choice((1, 5000, 60000)) if dice.random() < 0.2 else 0
        return ("release", someone(dice, world, number), what == "uncertain", at_least)
    if what == "ghost":
        return ("ghost", dice.randrange(8), dice.random() < 0.5)
    if what == "force":
        which = [dice.randrange(9) for _turn in range(dice.choice((0, 1, 1, 2, 4)))]
        others = [number] if dice.random() < 0.1 else []
        return ("force", dice.choice(KEYS), which, others, dice.random() < 0.3)
    if what == "pass":
        return ("pass", some_time(dice, world))
    if what == "clock":
        step = dice.choice((1, 500, 10000, 3600000))
        return ("clock", -step if dice.random() < 0.7 else step)
    return (what, number if what == "sleep" else dice.choice(KEYS))


def some_time(dice, world):
    """us: any time, or to the very ms at which something ends, or to the one before."""
    if dice.random() < 0.6:
        return dice.choice((0, 1, 999, 50000, PATIENCE * 1000 - 1, 7000000, 30000000, 3600000000))
    view = world.view(dice.choice(KEYS))
    ends = [one.deadline for one in view.entries + list(view.waiters.values())]
    return max(dice.choice(ends or [0]) - world.now - dice.randrange(2), 0) * 1000


def history(dice, server, ear, length):
    """Plays random operations, at the end of which all leave. (operations, World, number, why)."""
    world, operations = World(server, ear), []
    modes = dice.choice((MODES, LIMITS, MODES + LIMITS, (("x", 0),), (("s", 0), ("x", 0))))
    try:
        while len(operations) < length:
            source = dice.choices((heartbeats, poked, None), (10, 20, 70))[0]
            for operation in source(dice, world) if source else [one_of(dice, world, modes)]:
                operations.append(operation)
                world.play(operation)
        operations.append(("leave",))
        world.play(operations[-1])
    except AssertionError as fault:
        return operations, world, len(operations) - 1, str(fault)
    return operations, world, None, None


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
    kind = fault.split()[-1]

    def fails(some):
        _world, number, why = replay(server, ear, some)
        return number is not None and why.endswith(kind)

    operations = shorten(operations, fails)
    world, lines = World(server, ear), [f"RLOCK_SEED={seed}; the shortest history found:"]
    try:
        for operation in operations:
            lines.append(f"  {operation}")
            lines[-1] += f" -> {world.play(operation)}"
    except AssertionError as again:
        fault = str(again)
    names = [f"{client.number}={client.owner} {client.keys}" for client in world.clients]
    held = [f"{name}: {fields}" for name, fields in world.fields.items()]
    raise AssertionError("\n".join(lines + names + held + [fault]))


@test("model: random operations agree with it, and nothing that must not happen does")
def _(server):
    seed = int(os.environ.get("RLOCK_SEED") or 1)
    left = int(os.environ.get("RLOCK_OPERATIONS") or 20000)
    print(f"# RLOCK_SEED={seed}, {left} operations")
    dice, ear, seen = random.Random(seed), server.listen(), {}
    while left > 0:
        operations, world, number, fault = history(dice, server, ear, dice.choice((100, 300, 1000)))
        if fault:
            tell(server, ear, operations[: number + 1], fault, seed)
        for kind, times in world.seen.items():
            seen[kind] = seen.get(kind, 0) + times
        left -= len(operations)
    print("#", ", ".join(f"{kind} {times}" for kind, times in sorted(seen.items())))
    ear.close()


if __name__ == "__main__":
    main()
