"""A lock's hash, read without the help of what wrote it, and what must be true of every one."""
import itertools, os, re

from script_server import LUA, WEEK

ENTRY = re.compile(r"(\d+) (\d+) (\d+) (\S+) (\d+) ([xsl]) (\d+) (.*)", re.S)
WAITER = re.compile(r"(\d+) (\S+) (\d+) ([xslXSL]) (.*)", re.S)
HELD = re.compile(r"([xsl]) (\d+) (\d+) (\d+) (\d+) (\S+)")
QUEUE = re.compile(r"(\d+) (\d+) (\d+)")
RUN = re.compile(r"(\d+) (\d+) (\S+) (\d+) ([xsl]) (\d+) (.*)", re.S)
MEMORY = re.compile(r"(\d+) (\d+) (\d+) (\d+)")
TALLY = re.compile(r"(\d+) (\d+)")
RUNS = 20


def layout():
    """The names of a lock's fields, as the first comment of lock.lua has them."""
    with open(os.path.join(LUA, "lock.lua")) as script:
        comment = script.read().split("-- MODE is")[0]
    names = ", ".join(re.findall(r"^--   ([^\s,]+(?:, [^\s,]+)*) ", comment, re.M)).split(", ")
    return re.compile("|".join(re.sub("[A-Z]+", ".+", name) for name in names))


LAYOUT = layout()


def attempt_of(text):
    """The number of the owner's latest request that was executed; 0: it had none."""
    found = re.search(r" attempt=(\d+)", text)
    return int(found[1]) if found else 0


def without_attempt(text):
    return re.sub(r" attempt=\d+", "", text)


def nests_in(owner, ancestor):
    return owner.startswith(ancestor + ".")


def related(one, other):
    return one == other or nests_in(one, other) or nests_in(other, one)


def go_together(one, other):
    """Two modes of holders neither of whom is the other's ancestor, but who have one."""
    return one == other == "s"


def match(pattern, text):
    found = pattern.fullmatch(text)
    if not found:
        raise AssertionError(f"no record: {text!r}")
    return found.groups()


class Entry:
    """A holder."""

    def __init__(self, text, family):
        deadline, lease, fence, self.owner, since, self.mode, slot, self.who = match(ENTRY, text)
        self.deadline, self.lease, self.fence = int(deadline), int(lease), int(fence)
        self.since, self.slot, self.family, self.text = int(since), int(slot), family, text
        self.asked = " asked=" in self.who  # to release it
        self.hears = " hears=1" in self.who and " kept=1" not in self.who  # of such a wish


class Waiter:
    def __init__(self, text, base, ticket):
        deadline, self.owner, since, mode, who = match(WAITER, text)
        self.who, _note, far = who.partition(" far=")
        self.far = int(far) if far else None
        self.deadline, self.since, self.mode = int(deadline), int(since), mode.lower()
        self.elsewhere, self.base, self.ticket = mode.isupper(), base, ticket
        self.priority = self.noted("priority")
        rank = re.search(r" rank=(-?\d):(\d+)", self.who)
        self.item = rank and (int(rank[1]), int(rank[2]))  # the list that it is in, and where

    def noted(self, name):
        found = re.search(rf" {name}=(-?\d+)", self.who)
        return int(found[1]) if found else 0

    def is_overdue(self, view):
        """No owner passes it any more."""
        if self.noted("due"):
            return view.now >= self.noted("due")
        return self.noted("waited") + view.now - self.since >= view.bound

    def group(self):
        """The group in which only it waits; None."""
        found = re.search(r" latest=(\S*)", self.who)
        return found and found[1]

    def shown(self):
        return f"{self.deadline} {self.owner} {self.since} {self.mode} {self.who}"


class View:
    """All fields of a lock, at the moment "now"."""

    def __init__(self, fields, now):
        self.fields, self.now = fields, now
        self.families, self.queues, self.waiters, self.places = {}, {"q": (1, 0, 0)}, {}, {}
        self.groups, self.sent_away = {}, {}
        self.bound, self.lists, self.items = 900000, {}, {}
        self.held, self.unknown, self.ended, self.tallies, self.runs = None, [], 0, {}, {}
        for name, text in fields.items():
            self.take(name, text)
        self.fence = int(fields.get("f", 0))
        self.slots = fields.get("b", "")
        marks = [mark.split("=") for mark in fields.get("t", "").split(";") if mark]
        self.marks = [(*owner.partition("/")[::2], int(until)) for owner, until in marks]
        self.entries = [entry for family in self.families.values() for entry in family]

    def take(self, name, text):
        kind = name[:2]
        if kind == "h:":
            self.families[name[2:]] = [Entry(line, name[2:]) for line in text.split("\n")]
        elif kind == "w:":
            self.places[name[2:]] = text
        elif name[0] == "q":
            base, _colon, ticket = name.rpartition(":")
            if base and ticket.isdigit():
                self.waiters[name] = Waiter(text, base, int(ticket))
            else:
                self.queues[name] = tuple(map(int, match(QUEUE, text)))
        elif name == "g":
            self.sent_away = dict(line.split(" ", 1) for line in text.split("\n"))
        elif kind == "g:":
            self.groups[name[2:]] = text
        elif name == "o":
            bound, *lists = text.split(" ")
            self.bound = int(bound)
            for one in lists:
                priority, *numbers = map(int, one.split(":"))
                self.lists[priority] = tuple(numbers)
        elif kind == "o:":
            self.items[tuple(map(int, name.split(":")[1:]))] = int(text)
        elif name == "s":
            mode, *numbers, oldest = match(HELD, text)
            self.held = (mode, *map(int, numbers), oldest)
        elif name == "c":
            self.ended = int(match(MEMORY, text)[0])
        elif kind == "n:":
            self.tallies[name[2:]] = int(match(TALLY, text)[0])
        elif kind == "r:":
            self.runs[int(name[2:])] = match(RUN, text)
        elif not LAYOUT.fullmatch(name):
            self.unknown.append(name)

    def living(self):
        return [entry for entry in self.entries if entry.deadline > self.now]

    def entry(self, owner):
        return next((entry for entry in self.entries if entry.owner == owner), None)

    def latest(self, owner):
        """The number that its entry or its place has."""
        entry, place = self.entry(owner), self.waiters.get(self.places.get(owner))
        return max(attempt_of(entry.who) if entry else 0, attempt_of(place.who) if place else 0)

    def barred(self, owner, attempt):
        """Until when; 0: it may acquire."""
        return max((until for name, latest, until in self.marks
                    if name == owner and not (attempt and latest and attempt > int(latest))),
                   default=0)

    def parent(self, owner):
        """The nearest ancestor that holds the lock, or None."""
        above = [entry for entry in self.living() if nests_in(owner, entry.owner)]
        return max(above, key=lambda entry: len(entry.owner), default=None)

    def base(self, owner):
        """The queue that owner belongs into."""
        parent = self.parent(owner)
        return "q:" + parent.owner if parent else "q"

    def obstacles(self, owner, mode, limit):
        """Those living entries that keep owner out; its own is none."""
        parent, others = self.parent(owner), self.living()
        if parent:  # whoever came before its ancestor has a slot of its own
            return [entry for entry in others
                    if entry.family == parent.family and nests_in(entry.owner, parent.owner)
                    and entry.owner != owner and not go_together(mode, entry.mode)]
        if mode == "l" and all(entry.mode == "l" for entry in others):
            return others if len({entry.family for entry in others}) >= limit else []
        return others if mode != "s" or any(entry.mode != "s" for entry in others) else []

    def of_group(self, owner, group, name):
        """The other waiter of the group in its queue, or None; name: of this lock's key."""
        if group is None:
            return None
        return next((one for one in self.waiters.values()
                     if one.base == self.base(owner) and one.owner != owner
                     and one.group() is not None and (one.group() or name) == (group or name)),
                    None)

    def line(self, base, caller=None):
        """The living waiters of a queue, and whoever calls, in the order of their turns."""
        line = [one for one in self.waiters.values() if one.base == base
                and (one.deadline > self.now or one.owner == caller)]
        return self.in_turn(line)

    def in_turn(self, line):
        line = sorted(line, key=lambda one: one.ticket)
        if not any(one.item for one in line):
            return line
        first = list(itertools.takewhile(lambda one: one.is_overdue(self), line))
        return first + sorted(line[len(first):],
                              key=lambda one: (-one.item[0], 1, one.item[1]) if one.item
                              else (0, 0, one.ticket))

    # -- what is wrong with it, whatever happened before ------------------------------------------

    def faults(self, ttl):
        """One text for each."""
        if self.fields and self.fields.get("k") != "lock/1":
            yield f"kind {self.fields.get('k')}"
        if self.unknown:
            yield f"fields {self.unknown}"
        left = [min(entry.deadline - self.now, entry.lease) for entry in self.entries]
        if self.fields and ttl < WEEK - 60000 + max([0, *left]):
            yield f"the key has {ttl} ms to live"
        yield from self.faults_of_state()
        yield from self.faults_of_slots()
        yield from self.faults_of_holders()
        yield from self.faults_of_queues()
        yield from self.faults_of_memory()

    def faults_of_far(self, near):
        """Those among the first ones are near, and so are all that are in a list."""
        first = self.queues["q"][0]
        for place, one in self.waiters.items():
            if one.far and (one.ticket < first + near or one.base != "q" or one.item):
                yield f"{place} is far, and the first is {first}"

    def faults_of_state(self):
        if not self.entries:
            if self.held or self.slots:
                yield f"no owner holds it, but s is {self.held}, b is {self.slots}"
            return
        if not self.held:
            yield "there are holders, but no s"
            return
        mode, _limit, count, earliest, longest, oldest = self.held
        if count != len(self.families):
            yield f"s counts {count} families, and there are {len(self.families)}"
        if earliest > min(entry.deadline for entry in self.entries):
            yield f"s has {earliest} for the earliest deadline"
        if longest < max(entry.lease for entry in self.entries):
            yield f"s has {longest} for the longest lease"
        tokens = {name: family[0].fence for name, family in self.families.items()}
        if oldest != "-" and tokens.get(oldest) != min(tokens.values()):
            yield f"s has {oldest} for the oldest of {tokens}"
        strict = [entry.mode for entry in self.entries if entry.mode != "s"] or ["s"]
        if mode not in strict and (earliest > self.now or strict != ["s"]):
            yield f"s has mode {mode}"

    def faults_of_slots(self):
        taken = {}
        for entry in self.entries:
            taken.setdefault(entry.family, set()).add(entry.slot)
        if any(len(slots) > 1 for slots in taken.values()):
            yield "one family has several slots"
        slots = sorted(slot for family in taken.values() for slot in family)
        limit = self.held[1] if self.held else 0
        if limit and (len(set(slots)) < len(slots) or slots[0] < 1 or slots[-1] > limit):
            yield f"slots {slots} of {limit}"
        if limit == 0 and any(slots):
            yield f"slots {slots} without a limit"
        bits = [ord(six) - 48 >> bit & 1 for six in self.slots for bit in range(6)]
        if [n for n, bit in enumerate(bits, 1) if bit] != [n for n in slots if n]:
            yield f"slots {slots} are taken, and b is {self.slots}"

    def faults_of_holders(self):
        owners = [entry.owner for entry in self.entries]
        if len(set(owners)) < len(owners):
            yield "one owner has two entries"
        for entry in self.entries:
            if entry.owner != entry.family and not nests_in(entry.owner, entry.family):
                yield f"{entry.owner} is in the family of {entry.family}"
            if entry.fence > self.fence:
                yield f"token {entry.fence} was never issued"
        living = self.living()
        for i, one in enumerate(living):
            for other in living[:i]:
                permits = one.mode == other.mode == "l" and one.family != other.family
                beside = one.family != other.family or not related(one.owner, other.owner)
                if beside and not go_together(one.mode, other.mode) and not permits:
                    yield f"{one.text} beside {other.text}"

    def faults_of_memory(self):
        ended = self.ended
        ends = sum(count for what, count in self.tallies.items() if what != "refused")
        if sorted(self.runs) != list(range(min(ended, RUNS))):
            yield f"{ended} have ended, and these are remembered: {sorted(self.runs)}"
        if ended < ends:
            yield f"{ended} have ended, and {ends} of them badly"

    def faults_of_queues(self):
        for base, (first, last, _called) in self.queues.items():
            if first < 1 or last < first - 1 or base != "q" and last < first:
                yield f"{base} goes from {first} to {last}"
            if base != "q" and not self.entry(base[2:]):
                yield f"{base} is left behind"
        for place, one in self.waiters.items():
            first, last, _called = self.queues.get(one.base, (1, 0, 0))
            if not first <= one.ticket <= last:
                yield f"{place} is not in its queue"
            if self.places.get(one.owner) != place:
                yield f"{one.owner} has {place}, but w: says {self.places.get(one.owner)}"
        listed = {one.item: one.ticket for one in self.waiters.values() if one.item}
        if listed != self.items:
            yield f"the items are {self.items}, and {listed} have them"
        for one in self.waiters.values():
            if one.base == "q" and one.priority != (one.item or (0, 0))[0]:
                yield f"{one.owner} is in the list {one.item}"
            if one.base == "q" and not one.item and min(self.lists, default=1) <= 0:
                yield f"{one.owner} is in no list, beside lower ones"
        for priority, (first, last, _called) in self.lists.items():
            numbers = [n for of, n in self.items if of == priority]
            if numbers and (min(numbers) < first or max(numbers) > last):
                yield f"{priority}: from {first} to {last}, with {numbers}"
        if not {priority for priority, _n in self.items} <= set(self.lists):
            yield f"lists {self.lists} of {self.items}"
        waiting = {one.owner for one in self.waiters.values() if one.group() is not None}
        if sorted(waiting) != sorted(self.groups.values()):
            yield f"{waiting} are the waiters of groups, and g: says {self.groups}"
        for owner, place in self.places.items():
            if place not in self.waiters:
                yield f"{owner} is said to have {place}"
