#!/usr/bin/env python3
"""driver.py OPTIONS -- COMMAND...: runs one test file for Automake's "make check". OPTIONS are
Automake's.

Prints one line when the file has ended: how many of how many files have, its name, its results, how
long it took. The log has all that it said. A result that the plan promises and that never comes, a
file without a plan, one that ends with another status than its results explain, and one that does
not end are failures like any other, with a name.

RLOCK_FILE_TIMEOUT is the time in seconds after which a file is taken to hang. Nothing that a file
has started outlives it. A file that would begin after RLOCK_TEST_UNTIL, in seconds since 1970, is
skipped.
"""
import argparse, contextlib, ctypes, fcntl, os, re, resource, select, shutil, signal, sys, time

TIMEOUT = float(os.environ.get("RLOCK_FILE_TIMEOUT") or 1200)
UNTIL = float(os.environ.get("RLOCK_TEST_UNTIL") or "inf")
PLAN = re.compile(r"1\.\.(\d+)(?:\s*#\s*SKIP\S*\s*(.*))?$", re.I)
RESULT = re.compile(r"(not )?ok\b\s*(\d+)?(?:\s+-\s+|\s+)?(.*)$")
SKIP = re.compile(r"#\s*SKIP\S*\s*(.*)$", re.I)
# Files that compute without waiting for anything: those that wait for moments come first. Where the
# machine is never idle, these hardly get a turn, so none of them may have deadlines of its own.
COMPUTES = re.compile(r"tests/(lint|tidy|lives/lives|unit/test_(store_quorum|"
                      r"zookeeper_simulation|clockless_model|cluster_map))")
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


class Results:
    """The TAP output of a file."""

    def __init__(self):
        self.plan, self.skipped = None, None  # how many tests there are; why there are none
        self.tests, self.last = {}, 0  # {number: (word for Automake, name)}, the last number
        self.faults = []  # of the file as a whole

    def line(self, text):
        """Takes a line of output."""
        plan, result = PLAN.match(text), RESULT.match(text)
        if plan:
            if self.plan is not None:
                self.faults.append("it says two plans")
            self.plan, self.skipped = int(plan[1]), plan[2]
        elif result:
            self.result(*result.groups())
        elif text.startswith("Bail out!"):
            self.faults.append(text)

    def result(self, bad, number, name):
        self.last = int(number or self.last + 1)
        if self.last in self.tests:
            self.faults.append(f"it says the result of test {self.last} twice")
        word = "FAIL" if bad else "SKIP" if SKIP.search(name) else "PASS"
        self.tests[self.last] = (word, name)

    def end(self, status, names):
        """The file has ended with "status", or was ended: None. "names" of its tests, as far as
        they are known."""
        if status is None:
            self.faults.append(f"it was ended after {TIMEOUT:g} s")
        if self.plan is None:
            self.faults.append("it has no plan: that is not TAP")
        for number in range(1, (self.plan or 0) + 1):
            if number not in self.tests:
                name = names[number - 1] if len(names) == self.plan else "?"
                self.tests[number] = ("FAIL", f"{name}: it should have run, and has no result")
        if self.plan is not None and len(self.tests) > self.plan:
            self.faults.append(f"it says {len(self.tests)} results where its plan has {self.plan}")
        if status and not self.count("FAIL"):
            self.faults.append(f"it ended with status {status}, and says of no test that it failed")

    def count(self, word):
        return sum(word == one for one, _ in self.tests.values())

    def all(self):
        """(word, name) of each, in order, and of what is wrong with the file."""
        for number, (word, name) in sorted(self.tests.items()):
            yield word, f"{number} {name}"
        yield from (("FAIL", fault) for fault in self.faults)
        if self.plan == 0 and not self.faults:
            yield "SKIP", self.skipped or "nothing to test"


class Run:
    """The file's process, all that it starts, and what it says."""

    def __init__(self, command, log):
        self.log, self.status, self.pending = log, None, b""
        self.pipe, output = os.pipe()
        os.set_blocking(self.pipe, False)
        self.leader = os.fork()
        if self.leader == 0:
            lead(command, output, log)
        os.close(output)

    def lines(self, deadline):
        """Yields its output, a line at a time, until its end or the deadline."""
        more = True
        while self.status is None and time.monotonic() < deadline:
            if more and select.select([self.pipe], [], [], 0.1)[0]:
                data = os.read(self.pipe, 65536)
                more = bool(data)
                yield from self.whole_lines(data)
            elif not more:
                time.sleep(0.05)
            self.reap()
        try:
            while data := os.read(self.pipe, 65536):
                yield from self.whole_lines(data)
        except BlockingIOError:
            pass  # somebody whom it started still has it
        yield from self.whole_lines(b"\n" if self.pending else b"")

    def whole_lines(self, data):
        os.write(self.log, data)
        *lines, self.pending = (self.pending + data).split(b"\n")
        return [line.decode(errors="replace") for line in lines]

    def reap(self):
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self.leader:
                    self.status = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            return False

    def end(self):
        """Ends what is left of it, and waits for that."""
        while self.reap():
            for pid in descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)


def lead(command, output, log):
    """The leader of a session in which the command is a job, as in a shell on a terminal of which
    there is none: with a terminal or without, the tests see the same. Does not
    return."""
    os.setsid()
    # Where the kernel schedules each session as one, nice(2) counts only inside it.
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as file:
        file.write(str(os.nice(0)))
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        # By Python itself, or by nohup, or by who has put the tests into the background.
        for number in signal.valid_signals():
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(log, 2)
        try:
            os.execvp(command[0], command)
        except OSError as fault:
            print(f"{command[0]}: {fault.strerror}", file=sys.stderr)
            os._exit(127)
    os.close(output)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os._exit(code if code >= 0 else 128 - code)


def descendants(root):
    children = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(parent, []).append(int(name))
    found = children.get(root, [])[:]
    for pid in found:  # which grows meanwhile
        found.extend(children.get(pid, []))
    return found


def names_in(path):
    """The names of a .bats file's tests."""
    if not path.endswith(".bats"):
        return []
    with open(path, encoding="utf-8") as file:
        return re.findall(r'^@test "(.*)" \{$', file.read(), re.M)


def write_trs(path, results):
    bad = any(word == "FAIL" for word, _ in results.all())
    word = "FAIL" if bad else "PASS" if results.count("PASS") else "SKIP"
    with open(path + ".new", "w", encoding="utf-8") as file:
        for one, name in results.all():
            file.write(f":test-result: {one} {name}\n")
        file.write(f":global-test-result: {word}\n:recheck: {'yes' if bad else 'no'}\n"
                   f":copy-in-global-log: {'yes' if bad else 'no'}\n")
    os.replace(path + ".new", path)


def report(name, results, seconds, evidence, color):
    """The file's line, and one for each failure."""
    logs = (os.environ.get("RLOCK_TEST_LOGS") or "").split()
    ended = sum(os.path.exists(log[: -len("log")] + "trs") for log in logs)
    word, counts = "ok", [f"{results.count('PASS')} passed"]
    bad = [name for one, name in results.all() if one == "FAIL"]
    skipped = sum(one == "SKIP" for one, _ in results.all())
    if bad:
        word = "FAILED"
        counts.append(f"{len(bad)} failed")
    if skipped:
        counts.append(f"{skipped} skipped")
    if color:
        word = f"\033[{'1;31' if bad else '32'}m{word}\033[m"
    progress = f"{ended:{len(str(len(logs)))}}/{len(logs)}"
    print(f"[{progress}] {word} {name}: {', '.join(counts)} in {seconds:.0f} s")
    for one in bad:
        print(f"        failed: {one}")
    if bad:
        print(f"        see {evidence}")
    sys.stdout.flush()


def run_file(command, log, deadline, results):
    run = Run(command, log)

    def interrupted(number, _frame):
        run.end()
        sys.exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # when make has been killed
    for line in run.lines(deadline):
        results.line(line)
    status = run.status
    run.end()
    results.end(status, names_in(command[-1]))


def arguments():
    parser = argparse.ArgumentParser()
    for name in "test-name log-file trs-file color-tests enable-hard-errors expect-failure".split():
        parser.add_argument("--" + name)
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def prctl(option, value):
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def main():
    options = arguments()
    # Where a test that fails leaves what it has seen.
    evidence = os.path.join(
        os.environ.get("RLOCK_TEST_FAILED") or "failed", os.path.basename(options.test_name)
    )
    shutil.rmtree(evidence, ignore_errors=True)
    began, results = time.monotonic(), Results()
    log = os.open(options.log_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
    # Processes that a test leaves without a parent become children of this one, and can be ended.
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    if COMPUTES.match(options.test_name) and "RLOCK_BUSY" not in os.environ:
        os.nice(10)
    if time.time() < UNTIL:
        run_file(options.command, log, began + TIMEOUT, results)
    else:
        results.line("1..0 # SKIP no time was left for it")
    seconds, usage = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    os.write(log, "".join(f"# failed: {fault}\n" for fault in results.faults).encode())
    spent = f"{usage.ru_utime:.1f} s user and {usage.ru_stime:.1f} s system"
    os.write(log, f"# {seconds:.1f} s, of which {spent}\n".encode())
    if any(word == "FAIL" for word, _ in results.all()):
        os.makedirs(evidence, exist_ok=True)
        shutil.copy(options.log_file, os.path.join(evidence, "log"))
    directory = os.open(os.path.dirname(options.trs_file) or ".", os.O_RDONLY)
    fcntl.flock(directory, fcntl.LOCK_EX)  # the counter counts
    write_trs(options.trs_file, results)
    report(options.test_name, results, seconds, evidence, options.color_tests == "yes")


main()
