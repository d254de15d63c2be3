"""A model of the scripts: the answer of each, and the lock that it leaves behind."""
import re

from lock_view import Waiter, attempt_of, nests_in, without_attempt
from script_server import NEAR, PLACE_TTL, Empty, pairs
from script_tap import same, true


class Call:
    """One call: what was sent, what the keys were like before and after, and the reply."""

    DEFAULTS = {
        "lease": 0, "place_ttl": 0, "far_ttl": 0, "not_after": 0, "places": "", "mode": "x",
        "limit": 0, "count": True, "nest": True, "who": "", "bar": 0, "at_least": 0,
        "purge": False, "owners": (), "how": "now", "group": None, "names": (), "priority": 0,
        "bound": 0, "waited": 0, "attempt": 0,
    }

    def __init__(self, script, owner, **given):
        same(given.keys() - self.DEFAULTS.keys(), set(), "unknown arguments")
        self.script, self.owner, self.near = script, owner, NEAR
        self.__dict__.update(self.DEFAULTS, **given)
        if self.waited:
            self.who += f" waited={self.waited}"
        self.sent_who = self.who
        if self.attempt and script == "acquire":
            self.who = (self.who or "- - - - -") + f" attempt={self.attempt}"
        notes = {"latest": self.group, "priority": self.priority or None,
                 "bound": self.bound or None}
        given = {name: value for name, value in notes.items() if value is not None}
        self.who += "".join(f" {name}={value}" for name, value in given.items())
        self.sent_away = []  # owners that it has sent away from a queue
        self.now, self.micros, self.before, self.after, self.reply = 0, 0, [], [], None

    def args(self):
        named = {
            "acquire": {
                "lease": self.lease, "place_ttl": self.place_ttl, "far_ttl": self.far_ttl,
                "not_after": self.not_after,
                "places": self.places, "count": self.count, "mode": self.mode, "limit": self.limit,
                "no_nesting": not self.nest, "who": self.sent_who, "priority": self.priority,
                "bound": self.bound, "latest": None if self.group is None else Empty(self.group),
                "attempt": self.attempt,
            },
            "renew": {"lease": self.lease, "attempt": self.attempt},
            "release": {"bar": self.bar, "at_least": self.at_least, "attempt": self.attempt},
            "force": {"purge": self.purge, "how": self.how, "notes": "why=none",
                      "owners": " ".join(self.owners)},
            "inspect": {},
        }[self.script]
        return pairs(self.script, owner=self.owner, **named)

    def judge(self):
        """Raises AssertionError for what must not be."""
        globals()["judge_" + self.script](self)


# -- what no call may do to others ----------------------------------------------------------------


def others_unchanged(call, gone=()):
    """Clients that live and were not named are as before, except after a clock was set back."""
    for before, after in zip(call.before, call.after):
        for entry in before.living():
            if entry.owner == call.owner or entry.owner in gone:
                continue
            now = after.entry(entry.owner)
            true(now, f"{entry.text} is gone")
            soon = min(entry.deadline, call.now + entry.lease)
            true(now.text == entry.text or now.deadline == soon
                 and now.text.split(" ", 1)[1] == entry.text.split(" ", 1)[1],
                 f"{entry.text} is now {now.text}")
        same({entry.owner for entry in after.entries} - {entry.owner for entry in before.entries}
             - {call.owner}, set(), "new holders")
        if not call.purge:
            waiters_unchanged(call, before, after)


def waiters_unchanged(call, before, after):
    for place, one in before.waiters.items():
        if one.owner == call.owner or one.deadline <= call.now:
            continue
        if one.base != "q" and not after.entry(one.base[2:]):
            true(place not in after.waiters, f"{place} waits for one who has left")
            continue
        now = after.waiters.get(place)
        true(now and now.owner == one.owner, f"{one.owner} has lost its place {place}")
        soon = min(one.deadline, call.now + PLACE_TTL)
        true(now.deadline in (one.deadline, soon), f"{place} is kept until {now.deadline}")
        who = now.who
        if call.priority < 0 and not one.item and one.base == "q":
            # The first with a lower one puts it into a list.
            who = re.sub(" rank=0:[0-9]+$", "", who)
        same((now.mode, now.since, now.elsewhere, who),
             (one.mode, one.since, one.elsewhere, one.who), place)


def nothing_changed(call):
    for before, after in zip(call.before, call.after):
        remembered = {"n:refused": after.fields["n:refused"]} if call.reply[0] == "HELD" else {}
        same(after.fields, {**before.fields, **remembered}, "fields")


def is_overtaken(call):
    """A later request of the same owner, or this one itself, was executed before."""
    return call.attempt and any(view.latest(call.owner) >= call.attempt for view in call.before)


def judge_overtaken(call):
    same(call.reply, ["STALE", call.now], "overtaken")
    nothing_changed(call)


def noted(call, before, after):
    """The text changes in its number only."""
    same(without_attempt(after), without_attempt(before), "the rest")
    same(attempt_of(after), call.attempt or attempt_of(before), "its number")


def holders_told(call, told, i, found, comes_first=""):
    """[which key, how many, ms, the oldest], where "found" are those in the way; of none, who comes
    first."""
    which, many, left, text = told[:4]  # behind it, where it was taken away, by whom
    same(which, i + 1, "which key")
    families = {entry.family for entry in found}
    nested = call.script == "acquire" and call.before[i].parent(call.owner)
    same(many, len(found) if nested else len(families), "how many hold it")
    if not found:
        if call.script == "acquire" and call.priority < 0:  # which may just have listed it
            comes_first = re.sub(" rank=0:[0-9]+$", "", comes_first)
            text = re.sub(" rank=0:[0-9]+$", "", text)
        same((left, text), (0, comes_first), "the holder told, of none")
        return
    soonest = min(entry.deadline for entry in found)
    true(0 < left <= soonest - call.now, f"{left} ms left of {found}")
    owners = {entry.owner for entry in found}
    known = [entry.text for entry in call.after[i].living() if entry.owner in owners]
    if not nested: # of one family all tokens are the same
        lowest = min(int(text.split()[2]) for text in known)
        known = [text for text in known if int(text.split()[2]) == lowest][:1]
    true(text in known[:1], f"the oldest holder told is {text}, of {known}")


# -- acquire --------------------------------------------------------------------------------------


def misfit(call, view):
    parent, living = view.parent(call.owner), view.living()
    if parent and not call.nest:
        return "nested"
    if parent and parent.mode == "s" and call.mode == "x":
        return "upgrade"
    if not living or living[0].mode == "l" == call.mode and view.held[1] == call.limit:
        return None
    if living[0].mode == "l":
        return f"limit {view.held[1]}"
    return "lock" if call.mode == "l" else None


def places(call):
    """The tickets that it has in its queues, by key; None where it has none. And if it was
    dropped."""
    mine, had = [], [place.split("/")[0] for place in call.places.split()]
    for view in call.before:
        place = view.waiters.get(view.places.get(call.owner))
        mine.append(place.ticket if place and place.base == view.base(call.owner) else None)
    dropped = call.place_ttl and None in mine and (had or any(mine))
    if not dropped:
        bases = [view.queues.get(view.base(call.owner), (1, 0, 0)) for view in call.before]
        return mine, [called for _first, _last, called in bases], 0
    called = []
    for i, view in enumerate(call.before):
        base = view.base(call.owner)
        _first, last, so_far = view.queues.get(base, (1, 0, 0))
        name, _colon, ticket = had[i].rpartition(":") if i < len(had) else ("", "", "")
        theirs = view.waiters.get(base + ":" + ticket)
        if name != base or int(ticket) > last or theirs and theirs.owner != call.owner \
                or int(ticket) != (mine[i] or int(ticket)):
            return [None] * len(mine), [0] * len(mine), 1
        if not mine[i]:
            mine[i] = int(ticket)
            so_far = min(so_far, mine[i] - 1)
        called.append(so_far)
    return mine, called, 1


def superseded(call):
    """Which lock's queue it was sent away from, and who came instead; None."""
    if call.group is None:
        return None
    for i, view in enumerate(call.before):
        place = view.waiters.get(view.places.get(call.owner))
        if place and place.base == view.base(call.owner):
            continue
        one = view.of_group(call.owner, call.group, call.names[i])
        if call.owner in view.sent_away:
            return i, view.sent_away[call.owner]
        if one and (call.places or call.waited and
                    call.now - call.waited < one.since - one.noted("waited")):
            return i, one.shown()
    return None


def send_away(call):
    """Those of its group that wait where it has no place yet."""
    for i, (view, after) in enumerate(zip(call.before, call.after)):
        place = view.waiters.get(view.places.get(call.owner))
        one = view.of_group(call.owner, call.group, call.names[i] if call.names else "")
        if place and place.base == view.base(call.owner) or not one:
            continue
        told = one.owner in after.sent_away
        true(told or one.deadline <= call.now, f"{one.owner} does not learn that {call.owner} came")
        call.sent_away += [one.owner] if told else []
        del view.waiters[view.places.pop(one.owner)]


def judge_superseded(call, i, record):
    same(call.reply, ["SUPERSEDED", call.now, i + 1, record])
    others_unchanged(call)
    same([view.places.get(call.owner) for view in call.after], [None] * len(call.after), "places")


def by_time(view, first, line):
    """Whether it is the first because it has waited for so long."""
    oldest = min(line, key=lambda one: one.ticket)
    return first.base == "q" and first is oldest and first.is_overdue(view)


def least_bound(call, views):
    """That of the call, and, of one for several keys, of all the queues in which others wait."""
    waited_for = [view.bound for view in views if view.queues["q"][0] <= view.queues["q"][1]]
    return min([call.bound or 900000] + (waited_for if len(views) > 1 else []))


def outranks(call, view, line):
    late = by_time(view, line[0], line)
    return not late and call.priority > (line[0].item or (0, 0))[0]


def former_item(call, i, view):
    """Where in its list it is again that comes back to its place."""
    had = call.places.split()
    n = int(had[i].partition("/")[2] or 0) if i < len(had) else 0
    first, last, _called = view.lists.get(call.priority, (1, 0, 0))
    free = 1 <= n <= last and (call.priority, n) not in view.items
    return call.priority, n if free else last + 1


def myself(call, i, view, mine):
    """Its place, if need be as it is when it has come back."""
    one = view.waiters.get(view.places.get(call.owner))
    if one and one.ticket == mine and one.base == view.base(call.owner):
        return one
    base = view.base(call.owner)
    one = Waiter(f"0 {call.owner} {call.now} {call.mode} {call.who}", base, mine)
    listed = call.priority or min(view.lists, default=1) <= 0
    one.item = former_item(call, i, view) if listed and base == "q" else None
    return one


def goes_along(call, view, me, first, late, called):
    if call.mode == "x" or first.mode != call.mode:
        return False
    line = None if late or not first.item else first.item[0]
    if line != (me.item[0] if me.item else None):
        return False
    if me.item:
        called = min(view.lists.get(line, (1, 0, 0))[2], called if called < 0 else 10**9)
        return me.item[1] <= called + int(call.mode == "s")
    return me.ticket <= called + int(call.mode == "s" and not late)


def is_next(call, i, view, mine, called):
    others = [one for one in view.line(view.base(call.owner)) if one.owner != call.owner]
    line = view.in_turn(others)  # one that has left stood in front of others whose time is over
    if not line:
        return True
    if not mine:
        if view.base(call.owner) == "q" and outranks(call, view, line):
            return True
        return "." in call.owner and line[0].elsewhere
    me = myself(call, i, view, mine)
    first = view.in_turn(line + [me])[0]
    late = view.lists and by_time(view, first, line + [me])
    if first is me or goes_along(call, view, me, first, late, called):
        return True
    return "." in call.owner and first.elsewhere


def judge_acquire(call):
    owner, views = call.owner, call.before
    if call.not_after and call.now > call.not_after:
        same(call.reply, ["STALE", call.now])
        return nothing_changed(call)
    if any(view.barred(owner, call.attempt) > call.now for view in views):
        same(call.reply, ["BARRED", call.now])
        return nothing_changed(call)
    if is_overtaken(call):
        return judge_overtaken(call)
    own = [view.entry(owner) for view in views]
    asked = [i for i, entry in enumerate(own) if entry and entry.asked]
    if all(own) and not asked:
        others_unchanged(call)
        return judge_extended(call, own)
    if any(own):
        which = asked[0] if asked else next(i for i, entry in enumerate(own) if entry)
        left = max(own[which].deadline - call.now, 0)
        same(call.reply, ["ASKED", call.now, which + 1, 1, left, own[which].text])
        return nothing_changed(call)
    for i, view in enumerate(views):
        what = misfit(call, view)
        if what:
            others_unchanged(call)
            return same(call.reply, ["MISFIT", call.now, what, i + 1])
    instead = superseded(call)
    if instead:
        return judge_superseded(call, *instead)
    if call.place_ttl:
        send_away(call)
    others_unchanged(call)
    bound = least_bound(call, views)
    for view in views:
        view.bound = min(view.bound, bound)
        place = view.waiters.get(view.places.get(owner))
        if place and place.noted("due"):
            due = place.since - place.noted("waited") + bound
            place.who = re.sub(r" due=\d+", f" due={due}", place.who)
    mine, called, dropped = places(call)
    found = [view.obstacles(owner, call.mode, call.limit) for view in views]
    ready = [
        not found[i] and is_next(call, i, view, mine[i], called[i]) for i, view in enumerate(views)
    ]
    if all(ready):
        return judge_granted(call)
    blocked = ready.index(False)
    if call.place_ttl:
        return judge_queued(call, blocked, found, mine, dropped, ready)
    view = call.after[blocked]
    view.bound = min(view.bound, bound)
    line = view.line(call.before[blocked].base(owner))
    first, last, _called = view.queues.get(call.before[blocked].base(owner), (1, 0, 0))
    same(call.reply[:3], ["HELD", call.now, last - first + 1])
    holders_told(call, call.reply[3:], blocked, found[blocked], line[0].shown() if line else "")


def judge_extended(call, own):
    fences, slots = [str(entry.fence) for entry in own], [entry.slot for entry in own]
    same(call.reply, ["GRANTED", call.now, fences, slots], "asked again")
    for entry, after in zip(own, call.after):
        now = after.entry(call.owner)
        same((now.deadline, now.lease), (call.now + call.lease, call.lease), "deadline, lease")
        noted(call, entry.text.split(" ", 2)[2], now.text.split(" ", 2)[2])
        true(call.owner not in after.places, "it has the lock, and waits")


def judge_granted(call):
    same(call.reply[:2], ["GRANTED", call.now])
    for i, (before, after) in enumerate(zip(call.before, call.after)):
        parent, now = before.parent(call.owner), after.entry(call.owner)
        true(now, "granted, and holds nothing")
        fence = parent.fence if parent else max(before.fence + 1, call.micros)
        same((now.deadline, now.lease, now.since), (call.now + call.lease, call.lease, call.now))
        same((now.mode, now.who, now.fence), (call.mode, call.who, fence), "mode, who, token")
        same(after.fence, before.fence if parent else fence, "the last token issued")
        others = {entry.slot for entry in after.entries if entry.family != now.family}
        lowest = next(n for n in range(1, len(others) + 2) if n not in others)
        kin = [entry.slot for entry in after.families[now.family] if entry is not now]
        same(now.slot, kin[0] if kin else lowest if call.mode == "l" else 0, "slot")
        same([call.reply[2][i], call.reply[3][i]], [str(fence), now.slot], "token, slot told")
        true(call.owner not in after.places, "it has the lock, and waits")


def kept_for(call, one, after):
    """ms for which the caller's place is kept."""
    distance = (one.ticket - after.queues[one.base][0]) / call.near
    first = after.line(one.base)[0]
    if not call.far_ttl or distance <= 1 or after.lists or one.base != "q" or first.far is not None:
        return call.place_ttl
    return max(call.place_ttl, min(call.far_ttl, int(call.place_ttl * distance * distance)))


def judge_queued(call, blocked, found, mine, dropped, ready):
    same(call.reply[0], "QUEUED")
    _word, now, told, position, anew, *holders = call.reply
    same([now, anew], [call.now, dropped])
    same([place.split("/")[0] for place in told.split()],
         [view.places[call.owner] for view in call.after], "places")
    for i, (before, after) in enumerate(zip(call.before, call.after)):
        one = after.waiters[after.places[call.owner]]
        kept = kept_for(call, one, after)
        place = (before.base(call.owner), call.now + kept, PLACE_TTL if kept > PLACE_TTL else None)
        same((one.base, one.deadline, one.far), place, "place")
        if kept > PLACE_TTL:
            same(call.reply[10], kept, "kept")
        same((one.mode, one.elsewhere), (call.mode, ready[i]), "mode, waits for another key")
        was = before.waiters.get(before.places.get(call.owner))
        kept_place = was and was.base == one.base and was.ticket == one.ticket
        same(attempt_of(one.who), call.attempt or (attempt_of(was.who) if kept_place else 0),
             "its number")
        last = before.queues.get(one.base, (1, 0, 0))[1]
        same(one.ticket, mine[i] or last + 1, "ticket")
    view = call.after[blocked]
    place = view.waiters[view.places[call.owner]]
    line = view.line(place.base)
    ahead = line[: line.index(place)]
    most = place.ticket - view.queues[place.base][0] + 1
    most += sum(last - first + 1 for first, last, _called in view.lists.values())
    least = len([one for one in ahead if not place.item or not one.is_overdue(view)])
    if anew and view.lists:
        return  # who is back before one that has waited for longer learns it with the next call
    true(least < position <= most and (position > 1) == bool(ahead),
         f"position {position}, with {len(ahead)} ahead")
    holders_told(call, holders, blocked, found[blocked], ahead[0].shown() if ahead else "")


# -- the others -----------------------------------------------------------------------------------


def judge_renew(call):
    own = [view.entry(call.owner) for view in call.before]
    others_unchanged(call)
    if call.attempt:
        first = next((i for i, entry in enumerate(own) if not entry or entry.asked), len(own))
        if any(entry and attempt_of(entry.who) >= call.attempt for entry in own[: first + 1]):
            return judge_overtaken(call)
    i = next((i for i, entry in enumerate(own) if not entry or entry.asked), None)
    if i is not None and own[i]:
        left = max(own[i].deadline - call.now, 0)
        same(call.reply, ["ASKED", call.now, i + 1, 1, left, own[i].text])
        return nothing_changed(call)
    if not all(own):
        same(call.reply[:2], ["LOST", call.now])
        return holders_told(call, call.reply[2:], i, call.after[i].living())
    late = int(any(entry.deadline <= call.now for entry in own))
    fences, slots = [str(entry.fence) for entry in own], [entry.slot for entry in own]
    same(call.reply, ["RENEWED", call.now, fences, slots, late])
    for entry, after in zip(own, call.after):
        now, lease = after.entry(call.owner), call.lease or entry.lease
        same((now.deadline, now.lease), (call.now + lease, lease), "deadline, lease")
        noted(call, entry.text.split(" ", 2)[2], now.text.split(" ", 2)[2])


def judge_release(call):
    own = [view.entry(call.owner) for view in call.before]
    others_unchanged(call)
    if is_overtaken(call):
        return judge_overtaken(call)
    if all(own):
        same(call.reply, ["RELEASED", call.now])
    else:
        same(call.reply[:2], ["ABSENT", call.now])
        i = own.index(None)
        holders_told(call, call.reply[2:], i, call.after[i].living())
    for entry, before, after in zip(own, call.before, call.after):
        now = after.entry(call.owner)
        until = min(entry.since, call.now) + call.at_least if entry else 0
        same(now.deadline if now else 0, until if until > call.now else 0, "kept until")
        if now:
            same(attempt_of(now.who), call.attempt or attempt_of(entry.who), "its number")
        true(call.owner not in after.places, "it left, and waits")
        barred = [view.barred(call.owner, call.attempt) for view in (before, after)]
        # Where the clock was set back, an earlier release of its may bar it for longer.
        true(barred[1] in (barred[0], call.now + call.bar) and barred[1] >= call.now + call.bar
             or not call.bar and barred[1] == barred[0], f"barred until {barred}")


def judge_force(call):
    view, after = call.before[0], call.after[0]
    own = [view.entry(owner) for owner in call.owners]
    if call.how in ("now", "ask") and not all(own):
        same(call.reply[:2], ["CHANGED", call.now])
        call.purge = False
        others_unchanged(call)
        return holders_told(call, call.reply[2:], 0, after.living())
    asked = [entry for entry in own if entry and entry.deadline > call.now and entry.hears
             and call.how != "now" and not (call.how == "over" and entry.asked)]
    left = max((entry.deadline - call.now for entry in asked), default=0)
    # The answer is made before others are taken away, when a lease is cut that a clock that was set
    # back has made longer.
    texts = [entry.text + ("" if entry.asked else f" asked={call.now} why=none") for entry in asked]
    same(call.reply, ["ASKED", call.now, 1, len(asked), left, texts[0]] if asked
         else ["RELEASED", call.now])
    others_unchanged(call, gone=call.owners)
    for entry, text in zip(asked, texts):
        cut = str(call.now + entry.lease) + text[len(str(entry.deadline)):]
        true(after.entry(entry.owner).text in (text, min(text, cut)), "asked")
    kept = {entry.owner for entry in asked}
    same([one for one in call.owners if after.entry(one) and one not in kept], [], "still there")
    if call.purge:
        same((after.waiters, after.places), ({}, {}), "still in a queue")


def judge_inspect(call):
    nothing_changed(call)
    view = call.before[0]
    word, now, fence, mode, limit, holders, waiters = call.reply[:7]
    same([word, now, fence], ["LOCK", call.now, str(view.fence)])
    same(sorted(holders), sorted(entry.text for entry in view.living()), "holders")
    modes = [entry.mode for entry in view.living()]
    same(mode in modes or mode == "" and not modes, True, "mode")
    true("x" not in modes or mode in "xl", f"mode {mode} of {modes}")
    same(limit, view.held[1] if mode == "l" else 0, "limit")
    waiters = [text.partition(" turn=") for text in waiters]
    waiters.sort(key=lambda parts: int(parts[2] or 12))
    waiters = [text for text, _note, _turn in waiters]
    for base in view.queues:
        line = [one.shown() for one in view.line(base)]
        at = waiters.index(line[0]) if line else 0
        same(waiters[at : at + len(line)], line, f"the waiters of {base}")
    same(len(waiters), sum(len(view.line(base)) for base in view.queues), "how many wait")


# -- who is woken ---------------------------------------------------------------------------------


def room_of(view):
    return view.held[1] if view.held else 1


def passes(one, line):
    """Whether it nests, and may go before a first one that waits for another key."""
    return "." in one.owner and line[0].elsewhere


def told_to_call(call, before, after):
    """The waiters that were far and have come near, and perhaps the caller."""
    return [one.owner for place, one in before.waiters.items()
            if one.far and (one.owner == call.owner
                            or place in after.waiters and after.waiters[place].far == 0)]


class Calls:
    """The owners that were called to a key and have not come since."""

    def __init__(self):
        self.coming = set()  # (key, owner)
        # (key, owner): dead once; a clock that is set back calls it to life again
        self.late = set()

    def judge(self, call, names, heard):
        """heard: (key, owner) of those that "call" poked."""
        for name, before, after in zip(names, call.before, call.after):
            if call.reply[0] in ("QUEUED", "GRANTED", "RELEASED", "ABSENT", "SUPERSEDED"):
                self.coming.discard((name, call.owner))
                self.late.discard((name, call.owner))
            self.late |= {(name, one.owner) for view in (before, after)
                          for one in view.waiters.values() if one.deadline <= call.now}
            # Holders that lose the lock or are asked for it hear of it.
            pokes = [owner for key, owner in heard if key == name
                     and not (owner in call.owners and before.entry(owner))]
            for owner in told_to_call(call, before, after):
                if owner in pokes:
                    pokes.remove(owner)  # it may be called as well
            called = {(name, owner) for owner in pokes
                      if not self.is_told(owner, after)} - self.coming
            self.coming |= called
            place = before.waiters.get(before.places.get(call.owner))
            if place and place.base != before.base(call.owner):
                continue  # neither happens to a client that asks only once
            for owner in pokes:
                if owner not in call.sent_away:
                    self.judge_poke(call, owner, before, after)
            self.judge_slots(name, called, before, after)
            for base in after.queues:
                self.judge_first(call, name, base, before, after)
        same([one for one in heard if one[0] not in names], [], "pokes at other keys")

    def forget(self, call, names):
        """Those that were sent away come to hear it."""
        for name, after in zip(names, call.after):
            gone = [owner for owner in call.sent_away if owner not in after.places]
            self.coming -= {(name, owner) for owner in gone}

    def is_told(self, owner, view):
        """Whether it cannot run, and was woken to hear how long a lease lasts now."""
        one = view.waiters.get(view.places.get(owner))
        return one and view.obstacles(owner, one.mode, room_of(view))

    def judge_poke(self, call, owner, before, after):
        """Only those are woken who can run, or lost their place, or have become the first to wait
        for a lease, or for one that ends sooner now."""
        one = after.waiters.get(after.places.get(owner))
        if not one:
            true(owner in before.places, f"{owner} is woken, and does not wait")
            return
        true(not one.elsewhere, f"{owner} is woken, and waits for another key")
        line = after.line(one.base)
        ahead = line[: line.index(one)] if one in line else line
        if self.is_told(owner, after):
            was = before.line(one.base)
            was_first = was and was[0].owner == call.owner
            true(call.script == "release" and not ahead and (was_first or after.entry(call.owner)),
                 f"{owner} is woken for nothing")
            return
        together = one.mode != "x" and {other.mode for other in ahead} == {one.mode}
        true(not ahead or together or passes(one, line), f"{owner} is woken before its turn")

    def judge_slots(self, name, called, before, after):
        """No more are called than there are slots."""
        limit = max(room_of(before), room_of(after))
        for _name, owner in called:
            one = after.waiters.get(after.places.get(owner))
            line = after.line(one.base) if one else []
            if one and one.mode == "l" and not after.lists and not passes(one, line):
                coming = [other for other in line if (name, other.owner) in self.coming]
                room = limit - len(after.families) if not after.parent(owner) else 1
                true(len(coming) <= max(room, 1), f"{len(coming)} are woken for {room} slots")

    def judge_first(self, call, name, base, before, after):
        """Each waiter that can run from now on is woken now."""
        line = after.line(base)
        first = line[0] if line else None
        if not first or first.owner == call.owner or first.elsewhere:
            return
        if after.base(first.owner) != base:  # its ancestor came after it, as none does
            return
        if (name, first.owner) in self.coming | self.late:
            return
        if after.lists and call.script == "acquire" and call.reply[0] == "QUEUED" and call.reply[4]:
            return  # who comes back stands before one that has waited for long enough, and has not
        if after.obstacles(first.owner, first.mode, room_of(after)):
            return
        was = before.line(base)
        was_first = was and was[0].owner == first.owner
        true(was_first and not before.obstacles(first.owner, first.mode, room_of(before)),
             f"{first.owner} can run from now on, and is not woken")


class Told:
    """Events that must never be seen, judged only by the answers that clients have had.

    Goes by real time, in ms. A server's clock that is set forward excuses what depends on it.
    """

    def __init__(self):
        # key -> owner -> (mode, limit, until when it has the lock by what it was told)
        self.trusts = {}
        # key -> owner -> its token; key -> the last before it was deleted
        self.tokens, self.floors = {}, {}

    def sees(self, call, names, real, modes):
        """modes: owner -> (mode, limit)."""
        if call.reply[0] in ("GRANTED", "RENEWED"):
            for name, fence in zip(names, call.reply[2]):
                self.alone(name, call.owner, real, *modes[call.owner], call.lease)
                self.increasing(name, call, int(fence))
        elif call.script == "renew" and call.reply[0] == "LOST":
            keys = [name for name in names if self.until(name, call.owner) > real]
            true(len(keys) < len(names), "lost before its lease ended")
        elif call.script == "acquire" and call.reply[0] in ("QUEUED", "HELD"):
            keys = [name for name in names if self.until(name, call.owner) > real]
            true(len(keys) < len(names), "told to wait for what it has")
        if call.reply[0] in ("RELEASED", "ABSENT", "LOST", "QUEUED", "HELD", "MISFIT",
                             "SUPERSEDED"):
            for name in names:
                for owner in call.owners or [call.owner]:
                    self.trusts.get(name, {}).pop(owner, None)
        if call.script == "force" and call.reply[0] == "ASKED":
            for owner in call.owners:
                if not call.after[0].entry(owner):
                    self.trusts.get(names[0], {}).pop(owner, None)

    def until(self, name, owner):
        return self.trusts.get(name, {}).get(owner, (0, 0, 0))[2]

    def alone(self, name, owner, real, mode, limit, lease):
        trusts = self.trusts.setdefault(name, {})
        others = {other: trust for other, trust in trusts.items()
                  if other != owner and trust[2] > real and not nests_in(owner, other)
                  and not nests_in(other, owner)}
        if owner not in trusts:
            for other, (theirs, _limit, _until) in others.items():
                true(theirs == mode != "x", f"{owner} beside {other}")
            top = [one for one in others if not any(nests_in(one, other) for other in trusts)]
            true(mode != "l" or len(top) < limit, f"{owner} beside {top}, of {limit}")
        trusts[owner] = (mode, limit, real + lease)

    def increasing(self, name, call, fence):
        tokens = self.tokens.setdefault(name, {})
        if fence in tokens.values():
            nested = [owner for owner, token in tokens.items() if token == fence]
            roots = {owner.split(".")[0] for owner in nested}
            same(roots, {call.owner.split(".")[0]}, "token's owners")
        else:
            # Without the key only the clock keeps tokens apart.
            last = max(tokens.values(), default=min(self.floors.get(name, 0), call.micros - 1))
            true(fence > last, f"the new token {fence} is not greater than {last}")
        tokens[call.owner] = fence

    def deletes(self, name):
        self.trusts.pop(name, None)
        tokens = self.tokens.pop(name, {}).values()
        self.floors[name] = max(tokens, default=self.floors.get(name, 0))

    def excuses(self):
        """The clock was set forward."""
        self.trusts.clear()
