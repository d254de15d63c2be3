"""Processes of a benchmark: started, looked at in /proc, waited for, ended."""
import glob
import os
import signal
import time

QUIET = [(os.POSIX_SPAWN_OPEN, 0, '/dev/null', os.O_RDONLY, 0),
         (os.POSIX_SPAWN_OPEN, 1, '/dev/null', os.O_WRONLY, 0),
         (os.POSIX_SPAWN_OPEN, 2, '/dev/null', os.O_WRONLY, 0)]
TICK = 1 / os.sysconf('SC_CLK_TCK')


def spawn(argv, env=None):
    """Starts a program in a session of its own, by which all of its processes are found."""
    return os.posix_spawnp(argv[0], argv, env or os.environ, file_actions=QUIET, setsid=True)


def run(argv, env=None):
    """(seconds from start to end, resources used); raises if it did not succeed."""
    start = time.perf_counter()
    _, status, usage = os.wait4(spawn(argv, env), 0)
    seconds = time.perf_counter() - start
    if status:
        raise OSError(f'{" ".join(argv)}: status {os.waitstatus_to_exitcode(status)}')
    return seconds, usage


def until(condition, seconds=20):
    """Waits for a condition; False if it does not come true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def busy(pid):
    """Seconds of processor time of the threads that a process has now."""
    total = 0
    for task in glob.glob(f'/proc/{pid}/task/*/schedstat'):
        try:
            with open(task, encoding='ascii') as file:
                total += int(file.read().split()[0])
        except OSError:
            pass
    return total / 1e9


def processor(pid):
    """The same with that of the children it has waited for, which the kernel tells less finely."""
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
            fields = file.read().rpartition(')')[2].split()
    except OSError:
        return 0
    return busy(pid) + sum(map(int, fields[13:15])) * TICK


def memory(pid):
    """Bytes of a process, with its share of what it shares (PSS)."""
    try:
        with open(f'/proc/{pid}/smaps_rollup', encoding='utf-8') as file:
            return next(int(line.split()[1]) for line in file if line.startswith('Pss:')) * 1024
    except (OSError, StopIteration):
        return 0


def available():
    """Bytes of memory that are left."""
    with open('/proc/meminfo', encoding='utf-8') as file:
        return next(int(line.split()[1]) for line in file if line.startswith('MemAvailable')) * 1024


class Crowd:
    """Processes that were started and not waited for yet."""

    def __init__(self):
        self.leaders = []

    def start(self, argv, env=None):
        self.leaders.append(spawn(argv, env))
        return self.leaders[-1]

    @staticmethod
    def processes(leaders, but='mark'):
        """All processes of these sessions, without the commands under the lock."""
        wanted = set(leaders)
        found = []
        for name in os.listdir('/proc'):
            if not name.isdigit():
                continue
            try:
                with open(f'/proc/{name}/stat', encoding='utf-8', errors='replace') as file:
                    comm, _, rest = file.read().partition('(')[2].rpartition(')')
            except OSError:
                continue
            if int(rest.split()[3]) in wanted and comm != but:
                found.append(int(name))
        return found

    def wait(self, seconds):
        """Waits for all of them, and ends those that are late. The number of the late."""
        end = time.monotonic() + seconds
        while self.leaders:
            self.leaders = [pid for pid in self.leaders if os.waitpid(pid, os.WNOHANG) == (0, 0)]
            if time.monotonic() > end:
                return self.end()
            time.sleep(0.005)
        return 0

    def end(self):
        late, self.leaders = self.leaders, []
        for pid in self.processes(late, but=None):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for pid in late:
            os.waitpid(pid, 0)
        return len(late)
