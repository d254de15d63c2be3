#!/usr/bin/env -S python3 -B
"""Random operations on the scripts of src/lua and on a model of them, side by side. Prints TAP.

Time is the test's: "real" time goes by in steps; the server's clock is that and an offset. Two
judges look at each reply: the model, which says what it must be, and the witness, which knows
nothing of how locks work and says what must never be seen.

RLOCK_SEED=N repeats a run, RLOCK_OPERATIONS=N sets its length.
"""
import os, random, time
from lock_model import Model, Witness
from script_server import PATIENCE, Lock, ReplyError
from script_tap import main, test

BAR = 60000  # ms
START = 1700000000000000  # us
WEIGHTS = {
    "acquire": 30, "try": 8, "renew": 10, "release": 16, "uncertain": 6, "fresh": 5, "sleep": 6,
    "ghost": 5, "force": 4, "inspect": 4, "pass": 12, "back": 1.5, "forward": 0.7, "delete": 0.5,
}
LEASES = (1000, 5000, 30000, 30000, 30000, 30 * 86400000)


class Step:
    """One operation: what is sent, what must come back, and what must be there afterwards."""

    def __init__(self, operation, words, want, world, **facts):
        self.operation, self.words, self.want = operation, words, want
        self.now, self.real, self.micros = world.now, world.real // 1000, world.real + world.offset
        model = world.model
        self.fields, self.tail = model.fields(), model.tail
        self.low = min(model.queue, default=model.tail + 1)
        self.barred = {owner: until for owner, until in model.barred.items() if until > world.now}
        held = model.holder
        self.left = min(held["deadline"] - world.now, held["lease"]) if held else 0
        self.facts = facts
        self.got = None

    def kind(self):
        """What it was, for the statistics."""
        if not isinstance(self.got, list):
            return self.facts["script"]
        late = self.got[0] == "RENEWED" and self.got[3]
        anew = self.got[0] == "QUEUED" and self.got[4]
        return self.got[0] + (" late" if late else " anew" if anew else "")

    def differs(self, ttl, flat):
        """In which way what the server has is not what the model has, or None."""
        fields = dict(zip(flat[::2], flat[1::2]))
        head = int(fields.pop("qh", 1))
        barred = dict(entry.split("=") for entry in fields.pop("t", "").split(";") if entry)
        if fields != self.fields:
            return f"the hash is {fields}, and should be {self.fields}"
        if head > self.low or head > self.tail + 1:
            return f"qh is {head}, the first waiter's ticket {self.low}, the last one {self.tail}"
        barred = {owner: int(until) for owner, until in barred.items() if int(until) > self.now}
        if barred != self.barred:
            return f"barred are {barred}, and should be {self.barred}"
        if flat and ttl < 0:
            return "the key has no time to live"
        if flat and ttl + 60000 < self.left:
            return f"the key lives for {ttl} ms more, the lease for {self.left}"
        return None


class Client:
    """One who wants the lock again and again, each time as another owner."""

    def __init__(self, number):
        self.number, self.count, self.asleep = number, 0, False
        self.renewed()

    def renewed(self):
        self.count += 1
        self.owner = "%08d-0000-4000-8000-%012d" % (self.count, self.number)
        self.ticket = 0


class World:
    """Clients, clocks and the model. play() turns operations into steps, without the server."""

    def __init__(self, server, name):
        self.lock, self.model = Lock(server, name), Model()
        self.real, self.offset = START, 0
        self.clients = [Client(number) for number in range(8)]
        self.gone = []  # owners of former times

    @property
    def now(self):
        return (self.real + self.offset) // 1000

    def step(self, operation, script, args, want, **facts):
        micros = self.real + self.offset
        keys = [self.lock.key, micros // 1000000, micros % 1000000]
        words = ["EVALSHA", self.lock.server.sha[script, True], len(keys), *keys, *args]
        return Step(operation, words, want, self, script=script, args=args, **facts)

    def play(self, operation):
        """The step of an operation, or None if there is nothing to send."""
        return getattr(self, "play_" + operation[0])(operation, *operation[1:])

    def ask(self, operation, owner, lease, patience, not_after, ticket, count):
        args = [owner, lease, patience, not_after, ticket, count, "who " + owner[-1]]
        want = self.model.acquire(self.now, self.real + self.offset, *args)
        return self.step(operation, "acquire", args, want)

    def play_acquire(self, operation, number, lease, queue, late, count, forgot):
        client = self.clients[number]
        not_after = 0 if late is None else self.now - late
        ticket = 0 if forgot else client.ticket
        patience = PATIENCE if queue else 0
        step = self.ask(operation, client.owner, lease, patience, not_after, ticket, count)
        if step.want[0] in ("GRANTED", "QUEUED"):
            client.ticket = step.want[2] if step.want[0] == "QUEUED" else 0
        return step

    def play_ghost(self, operation, which, queue):
        if which >= len(self.gone):
            return None
        return self.ask(operation, self.gone[which], 5000, PATIENCE if queue else 0, 0, 0, 1)

    def play_renew(self, operation, number, lease):
        owner = self.clients[number].owner
        want = self.model.renew(self.now, owner, lease)
        return self.step(operation, "renew", [owner, lease], want)

    def play_release(self, operation, number, uncertain):
        bar = BAR if uncertain else 0
        owner = self.clients[number].owner
        want = self.model.release(self.now, owner, bar)
        if not uncertain:  # otherwise it tries again, and must not succeed
            self.play_fresh(None, number)
        return self.step(operation, "release", [owner, bar], want)

    def play_fresh(self, _operation, number):
        """Gives up without a word."""
        self.gone = [self.clients[number].owner] + self.gone[:7]
        self.clients[number].renewed()

    def play_force(self, operation, others, holder, purge):
        owners = [self.model.holder["owner"]] if holder and self.model.holder else []
        owners += [self.clients[number].owner for number in others]
        want = self.model.force(self.now, purge, owners)
        args = [int(purge), *owners]
        return self.step(operation, "force", args, want, owners=owners, purge=purge)

    def play_inspect(self, operation):
        return self.step(operation, "inspect", [], self.model.inspect(self.now))

    def play_delete(self, operation):
        existed, poked = self.model.exists, self.model.poked
        self.model = Model()
        self.model.poked = poked
        return Step(operation, ["DEL", self.lock.key], int(existed), self, script="delete", args=[])

    def play_pass(self, _operation, micros):
        self.real += micros

    def play_set_clock(self, operation, millis):
        self.offset += millis * 1000
        return Step(operation, ["PING"], "PONG", self, script="set_clock", args=[millis])


def judge(server, world, steps, ear):
    """Sends the steps. The number of the first one that went wrong and why, or None."""
    server.call("DEL", world.lock.key)
    after = [["PTTL", world.lock.key], ["HGETALL", world.lock.key]]
    replies = server.pipeline([words for step in steps for words in (step.words, *after)])
    pokes = ear.heard()
    witness = Witness()
    for number, step in enumerate(steps):
        step.got, ttl, flat = replies[3 * number : 3 * number + 3]
        if isinstance(step.got, ReplyError):
            return number, f"error: {step.got}"
        fault = witness.sees(step)
        if not fault and step.got != step.want:
            fault = f"got {step.got}, and should get {step.want}"
        fault = fault or step.differs(ttl, flat)
        if fault:
            return number, fault
    for owners in world.model.poked:
        if sorted(pokes[: len(owners)]) != sorted(owners):
            return len(steps) - 1, f"poked {pokes}, and should poke {owners}"
        pokes = pokes[len(owners) :]
    return (len(steps) - 1, f"poked {pokes} for nothing") if pokes else None


def replay(server, operations, ear):
    world = World(server, "model")
    steps = [step for step in map(world.play, operations) if step]
    return steps, judge(server, world, steps, ear)


# -- chance ---------------------------------------------------------------------------------------


def heartbeats(dice, world):
    """A moment later all that wait and are awake call, and the holder renews, most of them."""
    yield ("pass", dice.randrange(200000, 2500000))
    for client in dice.sample(world.clients, len(world.clients)):
        if world.model.held_by(client.owner) and dice.random() < 0.8:
            yield ("renew", client.number, world.model.holder["lease"])
        elif world.model.ticket_of(client.owner) and not client.asleep and dice.random() < 0.95:
            yield ask(dice, client.number, queue=True)


def ask(dice, number, queue):
    late = dice.choice((1, 1, 60000, 0, -1, -5000)) if dice.random() < 0.1 else None
    count, forgot = int(dice.random() < 0.8), dice.random() < 0.05
    return ("acquire", number, dice.choice(LEASES), queue, late, count, forgot)


def one_of(dice, world):
    number = dice.randrange(len(world.clients))
    what = dice.choices(list(WEIGHTS), WEIGHTS.values())[0]
    if what in ("acquire", "try"):
        return ask(dice, number, what == "acquire")
    if what == "renew":
        return ("renew", number, dice.choice(LEASES))
    if what in ("release", "uncertain"):
        if dice.random() < 0.5 and world.model.holder:
            owners = [client.owner for client in world.clients]
            if world.model.holder["owner"] in owners:
                number = owners.index(world.model.holder["owner"])
        return ("release", number, what == "uncertain")
    if what == "sleep":
        world.clients[number].asleep = not world.clients[number].asleep
        return ("pass", 0)
    if what == "ghost":
        return ("ghost", dice.randrange(8), dice.random() < 0.5)
    if what == "force":
        others = [number] if dice.random() < 0.3 else []
        return ("force", others, dice.random() < 0.8, dice.random() < 0.3)
    if what == "pass":
        return ("pass", some_time(dice, world.model, world.now))
    if what in ("back", "forward"):
        step = dice.choice((1, 500, 10000, 3600000))
        return ("set_clock", -step if what == "back" else step)
    return (what, number) if what == "fresh" else (what,)


def some_time(dice, model, now):
    """us: any time, or to the very ms at which something ends, or to the one before."""
    if dice.random() < 0.6:
        return dice.choice((0, 1, 999, 50000, PATIENCE * 1000 - 1, 7000000, 30000000, 3600000000))
    ends = [model.holder["deadline"]] if model.holder else []
    ends += [one["deadline"] for one in model.queue.values()]
    return max(dice.choice(ends or [0]) - now - dice.randrange(2), 0) * 1000


def history(dice, server, length):
    """Random operations, at the end of which all leave and time passes."""
    world, operations = World(server, "model"), []
    while len(operations) < length:
        for operation in heartbeats(dice, world) if dice.random() < 0.2 else [one_of(dice, world)]:
            operations.append(operation)
            world.play(operation)
    operations += [("release", client.number, False) for client in world.clients]
    operations += [("pass", 40 * 86400 * 1000000)]
    operations += [("acquire", 0, 1000, True, None, 1, True), ("release", 0, False)]
    return operations


def shorten(operations, fails, seconds=10):
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


def tell(server, operations, fault, seed, ear):
    """Raises the shortest history that fails."""
    operations = shorten(operations, lambda some: replay(server, some, ear)[1] is not None)
    steps, again = replay(server, operations, ear)
    number, why = again or fault
    lines = [f"RLOCK_SEED={seed}; the shortest history found:"]
    told = {id(step.operation): step for step in steps[: number + 1]}
    for operation in operations:
        step = told.get(id(operation))
        lines.append(f"  {operation}" + (f" -> {step.got}" if step else ""))
    raise AssertionError("\n".join(lines + [why]))


@test("model: random operations agree with it, and nothing that must not happen does")
def _(server):
    seed = int(os.environ.get("RLOCK_SEED") or random.SystemRandom().randrange(1 << 32))
    left = int(os.environ.get("RLOCK_OPERATIONS") or 20000)
    print(f"# RLOCK_SEED={seed}, {left} operations")
    dice, ear, seen = random.Random(seed), server.listen(), {}
    while left > 0:
        operations = history(dice, server, min(left, dice.choice((100, 300, 1000))))
        steps, fault = replay(server, operations, ear)
        if fault:
            tell(server, operations, fault, seed, ear)
        leftover = [name for name in steps[-1].fields if name[:2] in ("q:", "w:") or name == "h"]
        if leftover:
            raise AssertionError(f"RLOCK_SEED={seed}: all left, and there still are {leftover}")
        for step in steps:
            seen[step.kind()] = seen.get(step.kind(), 0) + 1
        left -= len(steps)
    print("#", ", ".join(f"{word} {times}" for word, times in sorted(seen.items())))
    ear.close()


if __name__ == "__main__":
    main()
