"""Samples by measure, contestant and parameter, and what is said about them."""
import statistics

# The unit of each measure, and what it is.
MEASURES = {
    "run": ("ms", "from start to end of `TOOL KEY -- true` while no other client wants the lock"),
    "processor": ("ms", "processor time of that, all of its processes"),
    "faults": ("", "page faults of that"),
    "switches": ("", "context switches of that"),
    "round trips": ("", "to the server and back, one after the other, once connected"),
    "ways": (
        "",
        "hand-over to one who is 40 ms away: ways from the server or to it, one after the other",
    ),
    "stores": ("ms", "the same run over other stores"),
    "keys": ("ms", "the same run with several keys at once"),
    "readers": ("ms", "`rlock read` while that many others read"),
    "hand-over": ("ms", "from the end of one command to the start of the next"),
    "requests": ("", "that the server reads for one hand-over, with those of all who wait"),
    "grants": ("1/s", "commands a second while a queue is worked off"),
    "disorder": (
        "",
        "order of service against order of arrival: 0 first come, first served; 1 at random",
    ),
    "holding": ("MB", "memory of a holder (PSS)"),
    "waiting": ("MB", "memory of a waiter (PSS)"),
    "idle": ("ms/s", "processor time of a waiter"),
    "asking": ("1/s", "requests to the server from a waiter"),
    "serving": ("ms", "processor time of the server for one hand-over"),
    "a waiter's memory": ("bytes", "of the server, without its connection"),
    "a connection's memory": ("bytes", "of the server, for one that listens"),
    "a real waiter's memory": ("bytes", "of the server, all that one process more takes"),
    "a lock's memory": ("bytes", "of the server; one that is free is kept for a week"),
    "renewal": ("µs", "the server's time for the script"),
    "heartbeat, first": ("µs", "the same of the first waiter's"),
    "heartbeat, middle": ("µs", "the same of one in the middle of the queue"),
    "heartbeat, last": ("µs", "the same of the last one's"),
    "hand-over's scripts": ("µs", "the same of the release and of the renewal that follows"),
    "status KEY": ("µs", "the same of all calls for one `rlock status KEY`"),
    "its longest call": ("µs", "for so long no other client is served"),
    "acquisitions": ("1/s", "of free locks, over 50 connections; with redis-benchmark beside it"),
    "renewals": ("1/s", "of a lock for which 1000 wait"),
    "heartbeats": ("1/s", "of one of 1000 waiters"),
    "status of 100,000 locks": ("s", "`rlock status`"),
    "status beside 1,000,000 keys": ("s", "of 100 locks among 1,000,000 foreign keys"),
    "a SCAN of 1000": ("µs", "one of its calls: the server's time"),
    "status in another database": ("s", "where those foreign keys are not"),
    "phases": ("ms", "the parts of one run of rlock, under strace"),
}


class Samples:
    def __init__(self):
        self.values, self.notes = {}, []

    def add(self, measure, who, at, value):
        self.values.setdefault((measure, who, at), []).append(value)

    def median(self, measure, who, at=''):
        values = self.values.get((measure, who, at))
        return statistics.median(values) if values else None

    def rows(self):
        """(measure, who, at, median, 10th and 90th percentile, samples, unit), in order of
        measures."""
        order = list(MEASURES)
        for (measure, who, at), values in sorted(
            self.values.items(), key=lambda item: order.index(item[0][0])
        ):
            values = sorted(values)
            last = len(values) - 1
            yield (
                measure,
                who,
                at,
                statistics.median(values),
                values[round(last * 0.1)],
                values[round(last * 0.9)],
                len(values),
                MEASURES[measure][0],
            )

    def note(self, text):
        print(f'note: {text}', flush=True)
        self.notes.append(text)
