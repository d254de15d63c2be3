"""A lock as the scripts promise it, in plain Python, and what must never be seen of one."""

class Model:
    def __init__(self):
        self.exists, self.holder, self.fence, self.tail = False, None, 0, 0
        self.queue = {}  # ticket -> {deadline, owner, since, who}
        self.barred = {}  # owner -> until
        self.poked = []  # lists of owners, within each of which the order is not promised

    def holder_text(self):
        return "{deadline} {lease} {fence} {owner} {since} {who}".format(**self.holder)

    def living(self, now):
        return self.holder_text() if self.holder and self.holder["deadline"] > now else ""

    def held_by(self, owner):
        return bool(self.holder) and self.holder["owner"] == owner

    def ticket_of(self, owner):
        return next((ticket for ticket, one in self.queue.items() if one["owner"] == owner), None)

    def first(self, now, caller=None, patience=0):
        """The ticket of the first living waiter, or None; the dead before it are gone."""
        for ticket in sorted(self.queue):
            one = self.queue[ticket]
            if patience:
                one["deadline"] = min(one["deadline"], now + patience)
            if one["deadline"] > now or one["owner"] == caller:
                return ticket
            del self.queue[ticket]
        return None

    def poke(self, ticket):
        if ticket is not None:
            self.poked.append([self.queue[ticket]["owner"]])

    def grant(self, now, owner, lease, fence, since, who):
        self.exists = True
        self.fence = max(fence, self.fence)
        self.holder = dict(deadline=now + lease, lease=lease, fence=fence)
        self.holder.update(owner=owner, since=since, who=who)
        self.queue.pop(self.ticket_of(owner), None)
        return ["GRANTED", now, str(fence)]

    def acquire(self, now, micros, owner, lease, patience, not_after, ticket, count, who):
        if not_after and now > not_after:
            return ["STALE", now]
        if self.barred.get(owner, 0) > now:
            return ["BARRED", now]
        if self.held_by(owner):
            return self.grant(now, owner, lease, self.holder["fence"], self.holder["since"], who)
        if self.holder:
            self.holder["deadline"] = min(self.holder["deadline"], now + self.holder["lease"])
        shown = self.living(now)
        dropped = patience > 0 and ticket > 0 and self.ticket_of(owner) is None
        if dropped:
            self.join(now, owner, patience, ticket, who)
        first = self.first(now, owner, patience)
        if not shown and (first is None or self.queue[first]["owner"] == owner):
            return self.grant(now, owner, lease, max(self.fence + 1, micros), now, who)
        if not patience:
            return ["HELD", now, 0 if first is None else self.tail - first + 1, shown]
        if not shown:
            self.poke(first)
        mine = self.ticket_of(owner) or self.join(now, owner, patience, 0, who)
        self.queue[mine]["deadline"] = now + patience
        ahead = [other for other in self.queue if other < mine]
        place = len(ahead) + 1 if count else mine - min(ahead, default=mine) + 1
        return ["QUEUED", now, mine, place, int(dropped), shown]

    def join(self, now, owner, patience, ticket, who):
        """A new ticket; or that one, if it was issued and nobody has it."""
        if ticket == 0 or ticket > self.tail or ticket in self.queue:
            self.tail = ticket = self.tail + 1
        self.queue[ticket] = dict(deadline=now + patience, owner=owner, since=now, who=who)
        return ticket

    def renew(self, now, owner, lease):
        if not self.held_by(owner):
            return ["LOST", now, self.living(now)]
        late = self.holder["deadline"] <= now
        self.holder.update(deadline=now + lease, lease=lease)
        return ["RENEWED", now, str(self.holder["fence"]), int(late)]

    def release(self, now, owner, bar):
        mine = self.held_by(owner)
        if mine:
            self.holder = None
        self.queue.pop(self.ticket_of(owner), None)
        if bar:
            self.exists = True
            self.barred = {other: until for other, until in self.barred.items() if until > now}
            self.barred[owner] = now + bar
        if not self.living(now):
            self.poke(self.first(now))
        return ["RELEASED", now] if mine else ["ABSENT", now, self.living(now)]

    def force(self, now, purge, owners):
        if not all(self.held_by(owner) for owner in owners):
            return ["CHANGED", now, self.holder_text() if self.holder else ""]
        if owners:
            self.holder = None
        if purge:
            self.poked.append([one["owner"] for one in self.queue.values()])
            self.queue.clear()
        elif owners:
            self.poke(self.first(now))
        return ["RELEASED", now]

    def inspect(self, now):
        living = self.living(now)
        tickets = [ticket for ticket, one in sorted(self.queue.items()) if one["deadline"] > now]
        waiters = [self.waiter_text(ticket) for ticket in tickets]
        return ["LOCK", now, str(self.fence), [living] if living else [], waiters]

    def waiter_text(self, ticket):
        return "{deadline} {owner} {since} {who}".format(**self.queue[ticket])

    def fields(self):
        """All of the hash but qh and t."""
        fields = {"k": "lock/1"} if self.exists else {}
        if self.fence:
            fields["f"] = str(self.fence)
        if self.holder:
            fields["h"] = self.holder_text()
        if self.tail:
            fields["qt"] = str(self.tail)
        for ticket, one in self.queue.items():
            fields["q:%d" % ticket] = self.waiter_text(ticket)
            fields["w:" + one["owner"]] = str(ticket)
        return fields


class Witness:
    """What must never be seen, whatever the model says: judged by what clients were told alone.

    Goes by real time, in ms. A server's clock that is set forward excuses what depends on it.
    """

    def __init__(self):
        self.trusts = {}  # owner -> until when it has the lock by what it was told
        self.waits = {}  # owner -> (ticket, until when it counts as waiting)
        self.barred = {}  # owner -> until when
        self.last, self.last_owner, self.deleted = 0, None, False

    def sees(self, step):
        """What is wrong with the reply, or None."""
        return getattr(self, "sees_" + step.facts["script"])(step, *step.facts["args"])

    def sees_acquire(self, step, owner, lease, patience, _not_after, ticket, *_rest):
        if step.got[0] in ("GRANTED", "QUEUED") and self.barred.get(owner, 0) > step.real:
            return "let in although it is barred"
        if step.got[0] == "QUEUED":
            self.waits[owner] = (step.got[2], step.real + patience)
        if step.got[0] != "GRANTED":
            return None
        fence = int(step.got[2])
        if fence != self.last or owner != self.last_owner:
            # Without the key only the clock keeps tokens apart.
            if fence <= self.last and not (self.deleted and step.micros <= self.last):
                return f"the new token {fence} is not greater than {self.last}"
            mine = ticket or self.waits.get(owner, (1e18, 0))[0]
            for other, (theirs, until) in self.waits.items():
                if other != owner and until > step.real and theirs < mine:
                    return f"{other} came before and still calls"
        self.last, self.last_owner, self.deleted = fence, owner, False
        self.waits.pop(owner, None)
        return self.alone(step, owner, lease)

    def alone(self, step, owner, lease):
        for other, until in self.trusts.items():
            if other != owner and until > step.real:
                return f"two holders: {other} has it for {until - step.real} ms more"
        self.trusts[owner] = step.real + lease
        return None

    def loses(self, step, owner):
        if self.trusts.get(owner, 0) > step.real:
            return f"the lease was cut short by {self.trusts[owner] - step.real} ms"
        return None

    def sees_renew(self, step, owner, lease):
        if step.got[0] != "RENEWED":
            return self.loses(step, owner)
        if int(step.got[2]) != self.last or owner != self.last_owner:
            return f"renewed for another than the last holder, {self.last_owner}"
        return self.alone(step, owner, lease)

    def sees_release(self, step, owner, bar):
        fault = self.loses(step, owner) if step.got[0] != "RELEASED" else None
        self.trusts.pop(owner, None)
        self.waits.pop(owner, None)
        if owner == self.last_owner:
            self.last_owner = None
        if bar:
            self.barred[owner] = step.real + bar
        return fault

    def sees_force(self, step, *_args):
        if step.got[0] == "RELEASED":
            for owner in step.facts["owners"]:
                self.trusts.pop(owner, None)
                self.last_owner = None
            if step.facts["purge"]:
                self.waits.clear()
        return None

    def sees_inspect(self, step):
        return None

    def sees_delete(self, step):
        self.deleted = True
        self.trusts, self.waits, self.barred, self.last_owner = {}, {}, {}, None
        return None

    def sees_set_clock(self, step, millis):
        if millis > 0:
            self.trusts, self.barred = {}, {}
            self.waits = {owner: (ticket, 0) for owner, (ticket, _until) in self.waits.items()}
        return None
