"""Many that want one lock: how fast it goes from hand to hand, in which order, and what waiting
costs."""
import itertools
import os
import statistics
import time

from crowd import Crowd, available, busy, memory, processor, until
from servers import Proxy

WINDOW = 5     # seconds for which the waiting is looked at
LIMIT = 60     # seconds after which those who have not been served are given up
WAY = 40       # milliseconds from the server to one who is far
numbers = itertools.count()


class History:
    """The records of the commands under one lock."""

    def __init__(self, path):
        with open(path, encoding="ascii") as file:
            events = sorted(
                (int(time_), sign, int(name)) for sign, name, time_ in map(str.split, file)
            )
        self.served = [name for _, sign, name in events if sign == "+"]
        self.gaps = [
            (later[0] - earlier[0]) / 1e6
            for earlier, later in itertools.pairwise(events)
            if earlier[1] == "-" and later[1] == "+"
        ]
        self.overlaps = sum(earlier[1] == later[1] for earlier, later in itertools.pairwise(events))
        ends = [at for at, sign, _ in events if sign == '-']
        self.seconds = (ends[-1] - ends[0]) / 1e9 if ends else 0

    def disorder(self):
        """How far the served are from their places in the order of arrival, by what chance would
        give on average."""
        order = [name for name in self.served if name]
        rank = {name: place for place, name in enumerate(sorted(order))}
        count = len(order)
        if count < 2:
            return 0
        return sum(abs(place - rank[name]) for place, name in enumerate(order)) / (
            (count * count - 1) / 3
        )


def look(samples, who, waiters, crowd):
    """The cost of a holder and waiters while nothing happens."""
    holder, waiting = crowd.leaders[0], crowd.leaders[1:]
    if waiters == 10:
        samples.add("holding", who.name, "", sum(map(memory, crowd.processes([holder]))) / 1e6)
        samples.add(
            "waiting", who.name, "", sum(map(memory, crowd.processes(waiting))) / waiters / 1e6
        )
    requests = getattr(who.server, "requests", None)

    def costs():
        return (
            sum(map(processor, crowd.processes(waiting))),
            requests() if requests else 0,
            time.monotonic(),
        )

    before = costs()
    time.sleep(WINDOW)
    after = costs()
    seconds = after[2] - before[2]
    samples.add('idle', who.name, waiters, max(0, after[0] - before[0]) * 1e3 / waiters / seconds)
    if requests:
        samples.add('asking', who.name, waiters, (after[1] - before[1]) / waiters / seconds)


def contend(samples, build, place, who, waiters, looking):
    """One holder and so many waiters, who come one after the other; then the lock is let go."""
    key = f'together{next(numbers)}'
    log, gate = f'{place}/{key}.log', f'{place}/{key}.gate'
    os.mkfifo(gate)
    open(log, 'w', encoding='ascii').close()
    mark = [f'{build}/bench/mark', log]
    apart = 2 * samples.median('run', who.name) / 1e3
    crowd = Crowd()
    memory_before = who.server.memory() if hasattr(who.server, "memory") else 0
    try:
        crowd.start(who.argv(key, [*mark, '0', gate]), who.env)
        if not until(lambda: os.path.getsize(log) > 0):
            raise OSError(f'{who.name}: the first one did not get the lock')
        for number in range(1, waiters + 1):
            crowd.start(who.argv(key, [*mark, str(number)]), who.env)
            time.sleep(apart)
        time.sleep(.3 + waiters / 500)
        if looking:
            look(samples, who, waiters, crowd)
        if memory_before and who.name == "rlock" and waiters > 10:
            grown = who.server.memory() - memory_before
            samples.add("a real waiter's memory", who.name, waiters, grown / waiters)
        server = who.server.process.pid if who.server else 0
        spent = busy(server)
        asked = who.server.requests() if hasattr(who.server, "requests") else None
        os.close(os.open(gate, os.O_WRONLY))
        late = crowd.wait(LIMIT)
        spent = busy(server) - spent
        if asked is not None and not late:
            samples.add(
                "requests", who.name, waiters, (who.server.requests() - asked - 1) / waiters
            )
    finally:
        crowd.end()
    history = History(log)
    for gap in history.gaps:
        samples.add('hand-over', who.name, waiters, gap)
    if waiters > 1:
        samples.add(
            "grants",
            who.name,
            waiters,
            (len(history.served) - 1) / (LIMIT if late else history.seconds),
        )
        samples.add("disorder", who.name, waiters, history.disorder())
        if server:
            samples.add('serving', who.name, waiters, spent * 1e3 / max(1, len(history.served) - 1))
    if late:
        samples.note(f'{who.name}: {late} of {waiters} waiters had not been served after {LIMIT} s')
    if history.overlaps:
        samples.note(f'{who.name}: {history.overlaps} times two had the lock at once')


def far(samples, build, place, redis, everyone, rounds):
    """How much longer a hand-over takes per millisecond of the way from the server to who waits.
    The holder is near."""
    proxy = Proxy(build, place, redis)
    everyone = [who for who in everyone if who.server is redis and who.waits]
    gaps = {who: {0: [], WAY: []} for who in everyone}
    try:
        for _ in range(rounds):
            for delay in 0, WAY:
                proxy.delay(delay)
                for who in everyone:
                    gaps[who][delay] += far_gap(build, place, who, proxy)
    finally:
        proxy.stop()
    for who in everyone:
        near, far_ = (statistics.median(gaps[who][delay]) for delay in (0, WAY))
        samples.add("ways", who.name, "", (far_ - near) / WAY)


def far_gap(build, place, who, proxy):
    key = f'far{next(numbers)}'
    log, gate = f'{place}/{key}.log', f'{place}/{key}.gate'
    os.mkfifo(gate)
    open(log, 'w', encoding='ascii').close()
    mark = [f'{build}/bench/mark', log]
    crowd = Crowd()
    try:
        crowd.start(who.argv(key, [*mark, '0', gate]), who.env)
        if not until(lambda: os.path.getsize(log) > 0):
            raise OSError(f'{who.name}: the first one did not get the lock')
        crowd.start(proxy.through(who.argv(key, [*mark, '1'])), who.env)
        time.sleep(20 * WAY / 1e3)
        os.close(os.open(gate, os.O_WRONLY))
        if crowd.wait(LIMIT):
            raise OSError(f'{who.name}: the distant waiter was not served within {LIMIT} s')
    finally:
        crowd.end()
    return History(log).gaps


def too_much(samples, who, waiters):
    """Why so many cannot take part, or None."""
    each = samples.median('waiting', who.name)
    if each and each * 1e6 * waiters > available() / 2:
        return f"{each * waiters / 1e3:.0f} GB of memory"
    idle = max(
        (
            middle
            for measure, name, _, middle, *_ in samples.rows()
            if (measure, name) == ("idle", who.name)
        ),
        default=0,
    )
    if idle * waiters / 1e3 > os.cpu_count() / 2:
        return f'{idle * waiters / 1e3:.0f} processors to keep them waiting'
    return None


def contention(samples, build, place, everyone, plan):
    """plan: [(waiters, times)]. The contestants take turns."""
    everyone = [who for who in everyone if who.waits]
    for waiters, times in plan:
        able = []
        for who in everyone:
            why = too_much(samples, who, waiters)
            if why:
                samples.note(f'{who.name}: {waiters} waiters left out: they would need {why}')
            else:
                able.append(who)
        for number in range(times):
            for who in able:
                contend(samples, build, place, who, waiters, number == 0 and waiters > 1)
