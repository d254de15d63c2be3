#!/usr/bin/env -S python3 -B
"""linearizable.py FILE...: whether there is an order of the operations in a history that explains
it, for each key: one that keeps to real time, and in which a lock does what a lock does.

A history is EDN, one map for each event, in the order of time, as Knossos and Elle read them:

    {:process 3, :type :invoke, :f :acquire, :key "k", :mode :shared, :time 17}
    {:process 3, :type :ok, :f :acquire, :key "k", :mode :shared, :fence 41, :time 25}

:type    :invoke, then :ok (it happened between the two), :fail (it did not happen), or :info, or
         nothing more: it may have happened at any time since, or never
:f       :acquire or :release
:mode    :exclusive, :shared, or :limit with :limit N and perhaps :slot N
:fence   the token that the acquisition was given, if it got one

A process has one operation at a time, and none after :info.

The search is that of Wing and Gong with Lowe's improvements: an operation is put into the order
just in time, when an answer shows that it has happened, and no configuration is looked at twice.
It knows histories only: nothing of rlock is used here.

Prints a line for each file. The status is 0 if all are linearizable, 1 if one is not, 2 if one
cannot be read.
"""
import collections, re, sys


class Malformed(Exception):
    """A history that is not one."""


# -- EDN ------------------------------------------------------------------------------------------

TOKEN = re.compile(
    r"""[\s,]*(?:;[^\n]*[\s,]*)*(?:
    (?P<open>[{\[(]) | (?P<close>[}\])]) | "(?P<text>(?:[^"\\]|\\.)*)"
    | :(?P<word>[^\s,{}\[\]()";]+)
    | (?P<number>[+-]?\d+)(?![^\s,{}\[\]()";]) | (?P<symbol>nil|true|false)\b | (?P<end>$)
    )""",
    re.X,
)
PAIRS = {"{": "}", "[": "]", "(": ")"}
SYMBOLS = {"nil": None, "true": True, "false": False}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def read_edn(text):
    """All values of a text: maps as dicts, vectors and lists as lists, keywords as str without
    the colon."""
    stack, at = [("", [])], 0
    while True:
        found = TOKEN.match(text, at)
        if not found:
            line, here = text.count("\n", 0, at) + 1, text[at : at + 30]
            raise Malformed(f"line {line}: not EDN, or not what a history has: {here!r}")
        at = found.end()
        kind, value = found.lastgroup, found[found.lastgroup]
        if kind == "end":
            break
        if kind == "open":
            stack.append((PAIRS[value], []))
            continue
        if kind == "close":
            closer, value = stack.pop()
            if closer != found["close"]:
                raise Malformed(f"line {text.count(chr(10), 0, at) + 1}: {found['close']!r}")
            if closer == "}":
                value = dict(zip(value[::2], value[1::2], strict=True))
        elif kind == "number":
            value = int(value)
        elif kind == "symbol":
            value = SYMBOLS[value]
        elif kind == "text":
            value = re.sub(r"\\(.)", lambda hit: ESCAPES.get(hit[1], hit[1]), value)
        stack[-1][1].append(value)
    if len(stack) > 1:
        raise Malformed(f"{stack[-1][0]!r} is missing at the end")
    values = stack[0][1]
    return values[0] if len(values) == 1 and isinstance(values[0], list) else values


# -- operations -----------------------------------------------------------------------------------


class Operation:
    """known: it has happened, between its two events."""

    def __init__(self, event):
        self.process, self.f = event["process"], event["f"]
        self.mode = event.get("mode", "exclusive")
        self.limit = self.slot = self.fence = None
        self.known, self.time = False, None
        self.learn(event)

    def learn(self, event):
        self.limit = event.get("limit", self.limit)
        self.slot = event.get("slot", self.slot)
        self.fence = event.get("fence", self.fence)
        self.known, self.time = event["type"] == "ok", event.get("time")

    def __str__(self):
        token = "" if self.fence is None else f", token {self.fence}"
        when = "" if self.time is None else f" at {self.time}"
        return f"{self.f} ({self.mode}{token}) of process {self.process}{when}"


def operations(events):
    """[(operation, whether this is its end)] in order of time, without those that failed; of those
    that may have happened there is no end."""
    running, gone, found, failed = {}, set(), [], set()
    for event in events:
        process, kind, f = event.get("process"), event.get("type"), event.get("f")
        if process is None or f not in ("acquire", "release"):
            raise Malformed(f"not an event of a lock: {event}")
        if process in gone:
            raise Malformed(f"process {process} has an event after :info")
        if kind == "invoke":
            if process in running:
                raise Malformed(f"process {process} begins two operations at once")
            running[process] = Operation(event)
            found.append((running[process], False))
            continue
        operation = running.pop(process, None)
        if kind not in ("ok", "fail", "info") or not operation or operation.f != f:
            raise Malformed(f"the end of nothing: {event}")
        operation.learn(event)
        if kind == "ok":
            found.append((operation, True))
        elif kind == "fail":
            failed.add(operation)
        else:
            gone.add(process)
    return [(operation, end) for operation, end in found if operation not in failed]


# -- models: a state is a value; step() returns the next one, or None where that cannot be ---------


def without(state, process):
    rest = frozenset(one for one in state if one[0] != process)
    return rest if len(rest) < len(state) else None


class ReadersWriter:
    """Any number that share, or one that does not. The state is who, and how."""

    empty = frozenset()

    @staticmethod
    def step(state, operation):
        if operation.f == "release":
            return without(state, operation.process)
        alone = operation.mode == "exclusive" or any(mode == "exclusive" for _, mode in state)
        return None if alone and state else state | {(operation.process, operation.mode)}


class Semaphore:
    """So many at a time, each in a slot of its own where slots are told. The state is who, and
    where."""

    empty = frozenset()

    @staticmethod
    def step(state, operation):
        if operation.f == "release":
            return without(state, operation.process)
        slot = operation.slot
        if len(state) >= operation.limit or (slot is not None and not 1 <= slot <= operation.limit):
            return None
        taken = slot is not None and any(slot == other for _, other in state)
        return None if taken else state | {(operation.process, slot)}


class Fence:
    """Tokens rise strictly. Each operation that is known to have happened is in the order, so it is
    known from the start which token comes next. The state is how many have come."""

    empty = 0

    def __init__(self, tokens):
        self.tokens = sorted(tokens)

    def step(self, state, operation):
        if operation.f == "release" or operation.fence is None:
            return state
        return state + 1 if self.tokens[state : state + 1] == [operation.fence] else None


class Both:
    """The intersection of two models."""

    def __init__(self, one, two):
        self.one, self.two, self.empty = one, two, (one.empty, two.empty)

    def step(self, state, operation):
        one, two = self.one.step(state[0], operation), self.two.step(state[1], operation)
        return None if one is None or two is None else (one, two)


def model_for(history):
    modes = {operation.mode for operation, _ in history if operation.f == "acquire"}
    if "limit" in modes and len(modes) > 1:
        raise Malformed(f"a semaphore and another lock: {' '.join(sorted(modes))}")
    lock = Semaphore if "limit" in modes else ReadersWriter
    tokens = [one.fence for one, end in history if end and one.fence is not None]
    if len(set(tokens)) < len(tokens):
        (twice, _), *_ = collections.Counter(tokens).most_common(1)
        return None, f"token {twice} was given twice"
    return Both(lock, Fence(tokens)), None


# -- the search ------------------------------------------------------------------------------------


def explain(history):
    """Why no order explains these operations on one key, or None.

    Two choices are none, with these models: an acquisition that may have happened would only be in
    the way of others, so it is left out; and a release is never in the way of any, so it comes as
    early as it can. Everything else is tried.

    A configuration is: so many events have passed, these operations have been put into the order
    before they ended, and the state after that."""
    history = [(one, end) for one, end in history if one.f == "release" or one.known]
    model, why = model_for(history)
    if why:
        return why
    waiting, running = [], ()  # before each event: the acquisitions that have begun, and not ended
    for operation, end in history:
        waiting.append(running)
        if operation.f == "acquire":
            running = tuple(one for one in running if one is not operation)
            running += () if end else (operation,)
    stack, seen, furthest, stuck = [(0, frozenset(), model.empty)], set(), -1, None
    while stack:
        at, early, state = stack.pop()
        # Steps without a choice.
        while at < len(history):
            operation, end = history[at]
            if operation.f == "release" and not end:
                state = model.step(state, operation)
                if state is None:
                    break
            elif operation.f == "acquire" and end:
                if operation not in early:
                    break
                early -= {operation}
            at += 1
        if at == len(history):
            return None
        if at > furthest:
            furthest, stuck = at, operation
        if state is None or (at, early, state) in seen:
            continue
        seen.add((at, early, state))
        # The one that has to be next comes last onto the stack, and first from it.
        for one in (*(one for one in waiting[at] if one is not operation), operation):
            after = None if one in early else model.step(state, one)
            if after is not None:
                stack.append((at, early | {one}, after))
    return f"no order explains the {stuck}"


def judge(events):
    """{key: why it is not linearizable, or None}"""
    keys = collections.defaultdict(list)
    for event in events:
        if not isinstance(event, dict):
            raise Malformed(f"not an event: {event}")
        keys[event.get("key")].append(event)
    return {key: explain(operations(some)) for key, some in keys.items()}


def main():
    status = 0
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for path in sys.argv[1:]:
        try:
            with open(path, encoding="utf-8") as file:
                events = read_edn(file.read())
            verdicts = judge(events)
        except (OSError, ValueError, Malformed) as fault:
            print(f"{path}: {fault}")
            status = 2
            continue
        bad = {key: why for key, why in verdicts.items() if why}
        kinds = collections.Counter(event["type"] for event in events)
        seen = f"{kinds['invoke']} operations on {len(verdicts)} keys"
        print(f"{path}: {'not ' if bad else ''}linearizable: {seen}, {kinds['info']} of them :info")
        for key, why in bad.items():
            print(f"{path}: {key}: {why}")
        status = max(status, int(bool(bad)))
    sys.exit(status)


if __name__ == "__main__":
    main()
