"""The parts of one run of rlock, by the times at which strace sees certain system calls."""
import re
import subprocess

from servers import there

CALLS = 'execve,clone,clone3,fork,vfork,connect,sendto,recvfrom,exit_group'
# The line that ends a phase: the first that fits, from where the one before ended.
PHASES = [
    ('start, libraries, settings', r'clone|fork\('),
    ('second process', r'connect\('),
    ('connection', r'sendto\(.*ROLE'),
    ('greeting, acquisition', r'GRANTED'),
    ('handing over', r'vfork\(|clone|fork\('),
    ('starting the command', r'execve.* = 0$|execve resumed.* = 0$'),
    ('the command', r'exited with'),
    ('noticing its end', r'sendto\(.*EVALSHA'),
    ('release', r'RELEASED'),
    ('end', None),
]


def split(lines):
    """[(phase, milliseconds)] of one trace, or None where it is not what was expected."""
    times = [(float(line.split()[1]), line) for line in lines]
    found, start = [], times[0][0]
    rest = iter(times[1:])
    for name, pattern in PHASES[:-1]:
        end = next((at for at, line in rest if re.search(pattern, line)), None)
        if end is None:
            return None
        found.append((name, (end - start) * 1e3))
        start = end
    return found + [(PHASES[-1][0], (times[-1][0] - start) * 1e3)]


def phases(samples, place, who, rounds):
    if not there('strace'):
        samples.note('phases: left out, strace is missing')
        return
    trace = f'{place}/trace'
    for _ in range(rounds):
        subprocess.run(
            [
                "strace",
                "-f",
                "-ttt",
                "--seccomp-bpf",
                "-e",
                f"trace={CALLS}",
                "-s",
                "1024",
                "-o",
                trace,
                *who.argv("phases", ["/bin/true"]),
            ],
            check=True,
            stdin=subprocess.DEVNULL,
        )
        with open(trace, encoding="utf-8", errors="replace") as file:
            parts = split(file.readlines())
        if parts is None:
            samples.note('phases: left out, the trace is not what was expected')
            return
        for name, milliseconds in parts:
            samples.add('phases', 'rlock', name, milliseconds)
