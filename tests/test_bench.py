#!/usr/bin/env -S python3 -B
"""The benchmark reads right what it has measured, and runs. Prints TAP."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
from phases import PHASES, split
from report import number, put_into, ratios
from samples import Samples
from tap import differs, report
from together import History

# (served in this order, gaps in ms, overlaps, disorder, seconds)
HISTORIES = [
    ("in their order", "+ 0 0\n- 0 5000000\n+ 1 6000000\n- 1 6000000\n+ 2 9000000\n- 2 9000000\n",
     ([0, 1, 2], [1, 3], 0, 0, .004)),
    ("the other way round", "+ 0 0\n- 0 10\n+ 3 20\n- 3 30\n+ 2 40\n- 2 50\n+ 1 60\n- 1 70\n",
     ([0, 3, 2, 1], [1e-5] * 3, 0, 1.5, 6e-8)),
    ("two at once", "+ 0 0\n+ 1 5\n- 0 7\n- 1 9\n", ([0, 1], [], 2, 0, 2e-9)),
    ("no client was served", "", ([], [], 0, 0, 0)),
]
TRACE = """1 1.000 execve("rlock", ["rlock"], 0x1 /* 4 vars */) = 0
1 1.001 clone(child_stack=NULL) = 2
2 1.003 connect(3, {sa_family=AF_INET}) = -1 EINPROGRESS
2 1.006 sendto(3, "*1\\r\\n$4\\r\\nROLE\\r\\n*14\\r\\n$7\\r\\nEVALSHA", 259) = 259
2 1.010 recvfrom(3, "*4\\r\\n$7\\r\\nGRANTED", 16384) = 68
1 1.015 vfork( <unfinished ...>
3 1.016 execve("/nowhere/true", ["true"], 0x1) = -1 ENOENT
3 1.021 execve("/bin/true", ["true"], 0x1) = 0
3 1.028 +++ exited with 0 +++
2 1.036 sendto(3, "*8\\r\\n$7\\r\\nEVALSHA", 150) = 150
2 1.045 recvfrom(3, "*2\\r\\n$8\\r\\nRELEASED", 16384) = 34
1 1.055 +++ exited with 0 +++
""".splitlines()


def results():
    """(what, what it should be, what it is)"""
    with tempfile.TemporaryDirectory() as place:
        log = f"{place}/log"
        for what, text, want in HISTORIES:
            with open(log, "w", encoding="ascii") as file:
                file.write(text)
            seen = History(log)
            yield what, want, (seen.served, seen.gaps, seen.overlaps, seen.disorder(), seen.seconds)
        yield "phases", [(PHASES[i][0], i + 1) for i in range(10)], [
            (name, round(ms)) for name, ms in split(TRACE)
        ]
        yield "a trace that is cut off", None, split(TRACE[:8])
        yield "numbers", ["0", "0.00123", "1.23", "12.3", "123", "12300"], [
            number(value) for value in (0, .001234, 1.234, 12.34, 123.4, 12345)]
        samples = Samples()
        for who, at, value in (("rlock", 1, 3), ("flock", 1, 2), ("rlock", 10, 4), ("naive", 1, 1)):
            samples.add("hand-over", who, at, value)
        rows = ["| hand-over at 1 | 1.5 | 3 |", "| hand-over at 10 | – | – |"]
        yield "ratios", rows, list(ratios(samples)[2:])
        for ours, theirs in ((1, 2), (4, 2), (9, 3)):  # the machine was slower in the last round
            samples.add("run", "rlock", "", ours)
            samples.add("run", "rlock abc", "", theirs)
        yield "ratios of rounds", "| run | 2 | – | – |", ratios(samples)[2]
        document, new = f"{place}/document", f"{place}/new"
        begin, end = '<!-- results: made by "make bench" -->', "<!-- end of results -->"
        for path, text in (
            (document, f"before\n{begin}\nold\n{end}\nafter\n"),
            (new, f"{begin}\nnew\n{end}\n"),
        ):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        put_into(document, new)
        with open(document, encoding="ascii") as file:
            expected = f"before\n{begin}\nnew\n{end}\nafter\n"
            yield "new results replace old ones", expected, file.read()
        options = f"--quick --only run --contestants flock,rlock --output {place}".split()
        done = subprocess.run([f"{os.path.dirname(__file__)}/../bench/bench", *options], text=True,
                              cwd=os.environ["top_builddir"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        rows = [line.split("\t") for line in done.stdout.splitlines() if line.startswith("run\t")]
        yield "it runs", [("no lock", "10"), ("flock", "10"), ("rlock", "10")], [
            (row[1], row[6]) for row in rows
        ]
        yield "nothing but a lock costs nothing: " + done.stdout[-200:] * (len(rows) < 3), True, (
            len(rows) == 3 and float(rows[0][4]) < float(rows[2][4]))


report((what, differs(got, want)) for what, want, got in results())
