"""What was measured: samples by measure, contestant and parameter, and what is said about them."""
import statistics

# The unit of each measure, and what it is.
MEASURES = {
    'run': ('ms', 'from start to end of `TOOL KEY -- true` while nobody else wants the lock'),
    'processor': ('ms', 'processor time of that, all of its processes'),
    'faults': ('', 'page faults of that'),
    'switches': ('', 'context switches of that'),
    'round trips': ('', 'to the server and back, one after the other, once connected'),
    'stores': ('ms', 'the same run over other stores'),
    'keys': ('ms', 'the same run with several keys at once'),
    'readers': ('ms', '`rlock read` while so many others read'),
    'hand-over': ('ms', 'from the end of one command to the start of the next'),
    'grants': ('1/s', 'commands a second while a queue is worked off'),
    'disorder': ('', 'order of service against order of arrival: 0 first come, first served; 1 at random'),
    'holding': ('MB', 'memory of who holds the lock (PSS)'),
    'waiting': ('MB', 'memory of who waits (PSS)'),
    'idle': ('ms/s', 'processor time of one who waits'),
    'asking': ('1/s', 'requests to the server from one who waits'),
    'serving': ('ms', 'processor time of the server for one hand-over'),
    'phases': ('ms', 'the parts of one run of rlock, under strace'),
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
        """(measure, who, at, median, 10th and 90th percentile, samples, unit), in order of measures."""
        order = list(MEASURES)
        for (measure, who, at), values in sorted(self.values.items(), key=lambda item: order.index(item[0][0])):
            values = sorted(values)
            last = len(values) - 1
            yield (measure, who, at, statistics.median(values), values[round(last * .1)], values[round(last * .9)],
                   len(values), MEASURES[measure][0])

    def note(self, text):
        print(f'note: {text}', flush=True)
        self.notes.append(text)
