#!/usr/bin/env -S python3 -B
"""suite.py [-C BUILD] [--but|--and] TARGET [FILE...]: builds and runs tests, for quickstart.

Prints its progress from the first second on: how much is built, a line for each file of tests that
has ended, and, twice a minute, which files still run. TARGET is make's "check", "check-long" or
"check-nightly"; with FILEs only those are run; with --but, all others of TARGET; with --and, those
beside its own. Files that failed are run once more, one at a time, and both results are printed. A
failure stays a failure, unless the file passes in the second run, and the machine stood still
during the first, or is slow. The last line has the totals.

A ticker notices that the machine stood still: a tick, due every quarter of a second, comes more
than two seconds late. A machine is slow if it takes several times as long to start a process as
others do: then fewer files run side by side, and each has more time.
"""
import argparse, glob, os, re, shutil, subprocess, sys, threading, time

LATE = 2.0  # seconds
QUIET = 30.0  # seconds without a line, before a line says which files still run
SLOW = 3.0  # milliseconds to start a process; usually they are 0.7 to 1
MANY = 20  # failed files; more do not fail by chance, and are not run once more
LINE = re.compile(r"\[ *\d+/\d+\] ")
color = sys.stdout.isatty() and "NO_COLOR" not in os.environ


def say(text=""):
    print(text, flush=True)


def title(text):
    say(f"\n==> {text}")


def now():
    """Seconds, which pass while the machine is suspended, too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def time_process_starts(times=30):
    """Returns the least that one of them took, in milliseconds."""
    least = float("inf")
    for _ in range(times):
        begin = time.monotonic()
        os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
        least = min(least, 1000 * (time.monotonic() - begin))
    return least


class Ticker(threading.Thread):
    """Notes when the machine stood still."""

    def __init__(self, tick=0.25, clock=now, sleep=time.sleep):
        super().__init__(daemon=True)
        self.tick, self.clock, self.sleep = tick, clock, sleep
        self.stops = []  # (begin, end, time of day at the end)

    def run(self):
        last = self.clock()
        while True:
            last = self.look(last)

    def look(self, last):
        """Sleeps for one tick. Returns the time after it."""
        self.sleep(self.tick)
        after = self.clock()
        if after - last - self.tick > LATE:
            self.stops.append((last, after, time.strftime("%H:%M:%S")))
        return after

    def during(self, begin, end):
        """Returns the longest stop that touches this time, in seconds; 0 if there is none."""
        return max((b - a for a, b, _ in self.stops if a < end and b > begin), default=0)


class File:
    """The results of one file of tests."""

    def __init__(self, path):
        self.path, self.name = path, path[: -len(".trs")]
        with open(path, encoding="utf-8", errors="replace") as file:
            self.results = re.findall(r"^:test-result: (\w+) ?(.*)$", file.read(), re.M)

    def count(self, word):
        return sum(word == one for one, _ in self.results)

    def names(self, word):
        return [name for one, name in self.results if one == word]

    def summary(self):
        counts = ((self.count("FAIL"), "failed"), (self.count("PASS"), "passed"))
        return ", ".join(f"{n} {what}" for n, what in counts if n) or "nothing passed"


def tests_for_make(target, files, others=None):
    """Returns make's TESTS, or None for all of the target. others: "but" or "and" is done with
    these files."""
    own = {"check": "$(check_tests)", "check-long": "$(long_tests)",
           "check-nightly": "$(long_tests_apart) $(nightly_tests)"}[target]  # fmt: skip
    if others == "but":
        return f"$(filter-out {' '.join(files)},{own})"
    return " ".join([*files, own] if others else files) or None


class Suite:
    def __init__(self, build, target, tests, named=False, start=time_process_starts):
        """tests: make's TESTS; None: all of the target."""
        self.build, self.target, self.tests = build, target, tests
        self.ticker = Ticker()
        self.start = start()  # of a process, in milliseconds
        patient = {"RLOCK_FILE_TIMEOUT": "1500", "BATS_TEST_TIMEOUT": "900"}
        self.environment = {**(patient if self.is_slow() else {}), **os.environ}
        # Programs of tests that are named are built as they are run.
        self.goals = [["all"], ["check", "TESTS="]] + ([] if named else [["check-programs"]])
        self.spans = {}  # {name of a file: [when it was first seen, when it had ended]}
        self.done = {}  # {name of a file: its results}
        self.forgiven = False  # make's failure, where its failed files have passed since
        self.told = self.begin = now()

    def make(self, *words, **options):
        return subprocess.Popen(
            ["make", "-C", self.build, *words],
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            env=self.environment,
            **options,
        )

    # -- building

    def build_tests(self):
        """Builds all that the tests need. Prints the reason and returns False if that failed."""
        title("Building rlock and its tests")
        steps = sum(self.steps_to(goal) for goal in self.goals)
        log_name, built, told = os.path.join(self.build, "make.log"), 0, now()
        with open(log_name, "w", encoding="utf-8") as log:
            # One after the other: two makes at once would compile the same files.
            for goal in self.goals:
                make = self.make(
                    "V=0", f"-j{os.cpu_count() or 1}", *goal,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                )  # fmt: skip
                for line in make.stdout:
                    log.write(line)
                    built += line.startswith("  CC")
                    if built and now() - told > 5:
                        say(f"    {built} of {max(steps, built)}")
                        told = now()
                if make.wait() != 0:
                    break
            else:
                return True
        with open(log_name, encoding="utf-8") as log:
            sys.stderr.write(log.read())
        return False

    def steps_to(self, goal):
        """Returns how many files make would compile and link for this goal."""
        plan = subprocess.run(
            ["make", "-n", "-C", self.build, *goal],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, errors="replace", check=False,
        )  # fmt: skip
        return len(re.findall(r'echo "  CC', plan.stdout))

    # -- running

    def run(self):
        """Runs the tests. Returns make's status."""
        for path in glob.glob(f"{self.build}/tests/**/*.trs", recursive=True):
            os.remove(path)
            if os.path.exists(path[: -len("trs")] + "log"):
                os.remove(path[: -len("trs")] + "log")
        shutil.rmtree(os.path.join(self.build, "failed"), ignore_errors=True)
        title("Running the tests: a line for each file that has ended")
        if os.getuid() != 0:
            say("    (not as root: tests that need mounts, other users, name spaces are skipped)")
        if self.is_slow():
            say(f"    (it takes {self.start:.0f} ms here to start a process: few run side by side,")
            say("    and a failure counts if the file fails alone as well)")
        return self.run_files(self.side_by_side() * (os.cpu_count() or 1), self.tests)

    def is_slow(self):
        return self.start > SLOW

    def side_by_side(self):
        """Returns how many files run at once, for each processor: so many that it is never idle.
        More take as long, and each waits longer for its turn, until one is late. With sanitizers
        they compute more, as do some of the long ones."""
        sanitized = ["grep", "-qs", "__asan_init", os.path.join(self.build, "rlock")]
        plain = subprocess.run(sanitized, check=False).returncode != 0
        if self.is_slow():
            return 2
        return 6 if self.target == "check" and plain else 4

    def run_files(self, jobs, tests):
        with open(os.path.join(self.build, "check.log"), "w", encoding="utf-8") as errors:
            make = self.make(
                "-s", f"-j{jobs}", f"AM_COLOR_TESTS={'always' if color else 'no'}",
                *(["check", f"TESTS={tests}"] if tests else [self.target]),
                stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip
            printer = threading.Thread(target=self.print_lines, args=(make.stdout,))
            printer.start()
            while printer.is_alive():
                printer.join(0.5)
                self.look()
            self.look()
            return make.wait()

    def print_lines(self, output):
        """Prints the lines of the test driver, and omits those of make."""
        for line in output:
            if LINE.match(line) or line.startswith("    "):
                say(line.rstrip("\n"))
                self.told = now()

    def look(self):
        """Notes which files run and which have ended; prints that after a time without a line."""
        for path in glob.glob(f"{self.build}/tests/**/*.log", recursive=True):
            span = self.spans.setdefault(self.relative(path), [now(), None])
            if span[1] is None and os.path.exists(path[: -len("log")] + "trs"):
                span[1] = now()
        if now() - self.told > QUIET:
            running = sorted((a, name) for name, (a, b) in self.spans.items() if b is None)
            some = [f"{name[len('tests/'):]} ({now() - a:.0f} s)" for a, name in running[:6]]
            more = f", and {len(running) - 6} more" if len(running) > 6 else ""
            say(f"        after {now() - self.begin:.0f} s still running: {', '.join(some)}{more}")
            self.told = now()

    def relative(self, path):
        return os.path.relpath(path, self.build).rpartition(".")[0]

    def collect(self):
        for path in glob.glob(f"{self.build}/tests/**/*.trs", recursive=True):
            self.done[self.relative(path)] = File(path)

    # -- after the run

    def run_again(self):
        """Runs failed files once more, one at a time. Keeps the output of their first run."""
        failed = sorted(name for name, file in self.done.items() if file.count("FAIL"))
        if not failed or len(failed) > MANY:
            return
        title("Running the files that failed once more, one at a time")
        for name in failed:
            first, base = self.done[name], os.path.join(self.build, name)
            a, b = self.spans.get(name, (self.begin, None))
            stop = self.ticker.during(a, b or now())
            evidence = self.evidence(name)
            shutil.rmtree(evidence + ".first", ignore_errors=True)
            if os.path.isdir(evidence):
                os.rename(evidence, evidence + ".first")
            shutil.copy(base + ".log", base + ".first")
            del self.spans[name]
            os.remove(base + ".trs")  # or it would count as ended
            self.run_files(1, self.source(name))
            again = File(base + ".trs") if os.path.exists(base + ".trs") else None
            said = again.summary() if again else "no result"
            say(f"    {name}: first {first.summary()}; alone {said}")
            if not again or again.count("FAIL") or not again.count("PASS"):
                continue
            if stop or self.is_slow():
                why = f"had stood still for {stop:.0f} s" if stop else "is slow"
                say(f"    {name}: passed; the machine {why}")
                self.done[name], self.forgiven = again, True

    def source(self, name):
        """Returns the file's name for make's TESTS."""
        top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
        for ending in (".bats", ".py", ".sh"):
            if os.path.exists(os.path.join(top, name + ending)):
                return name + ending
        return name

    def evidence(self, name):
        return os.path.join(self.build, "failed", os.path.basename(self.source(name)))

    def report(self, status):
        """Prints each failure, the skipped tests, and the totals. Returns the exit status."""
        failed = [file for _, file in sorted(self.done.items()) if file.count("FAIL")]
        for file in failed:
            self.print_log(file)
        self.print_skipped()
        if failed:
            title(f"These failed; logs and files of each are kept in {self.build}/failed")
            for file in failed:
                for name in file.names("FAIL"):
                    say(f"{self.relative(file.path)}: {name}")
        unended = sorted(set(self.spans) - set(self.done))
        if (status and not failed and not self.forgiven) or unended:
            self.print_make_log(unended)
        for a, b, at in self.ticker.stops:
            say(f"\nThe machine stood still for {b - a:.0f} s until {at}.")
        counts = {w: sum(f.count(w) for f in self.done.values()) for w in ("PASS", "FAIL", "SKIP")}
        if not any(counts.values()):
            say("\nnot run: there is no result of any test")
            return 1
        counts["FAIL"] += len(unended)
        if status and not failed and not self.forgiven and not counts["FAIL"]:
            counts["FAIL"] = 1  # make failed without a failed test
        minutes, seconds = divmod(int(now() - self.begin), 60)
        say(f"\n{len(self.done)} files in {minutes} min {seconds:02d} s")
        skipped = f", {counts['SKIP']} skipped" if counts["SKIP"] else ""
        say(f"{counts['PASS']} passed, {counts['FAIL']} failed{skipped}")
        return 1 if counts["FAIL"] else 0

    def print_log(self, file):
        for log in (file.name + ".first", file.name + ".log"):
            if os.path.exists(log):
                title(log)
                with open(log, encoding="utf-8", errors="replace") as lines:
                    sys.stdout.writelines(line for line in lines if not line.startswith("ok "))
                return

    def print_make_log(self, unended):
        title("make failed")
        with open(os.path.join(self.build, "check.log"), encoding="utf-8") as log:
            sys.stdout.write(log.read())
        for name in unended:
            say(f"not run to its end: {name}")

    def print_skipped(self):
        reasons = {}
        for name, file in sorted(self.done.items()):
            for test in file.names("SKIP"):
                what, _, why = test.rpartition("# ")
                reasons.setdefault(re.sub(r"(?i)^skip\s*", "", why or test), []).append(
                    f"{name[len('tests/'):]} {what.split(' ')[0]}".strip()
                )
        if reasons:
            title("These were skipped, and why")
            for why, names in sorted(reasons.items()):
                say(f"{why}: {', '.join(names)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-C", dest="build", default="build")
    parser.add_argument("--but", dest="others", action="store_const", const="but")
    parser.add_argument("--and", dest="others", action="store_const", const="and")
    parser.add_argument("target", choices=("check", "check-long", "check-nightly"))
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    tests = tests_for_make(options.target, options.files, options.others)
    suite = Suite(options.build, options.target, tests, named=tests and not options.others)
    suite.ticker.start()
    if not suite.build_tests():
        say("\nnot run: the tests could not be built")
        return 1
    status = suite.run()
    suite.collect()
    suite.run_again()
    return suite.report(status)


if __name__ == "__main__":
    sys.exit(main())
