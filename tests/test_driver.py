#!/usr/bin/env -S python3 -B
"""The driver of test files counts their results, and the missing ones. Prints TAP."""
import os, re, subprocess, sys, tempfile, time
from tap import report

DRIVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "driver.py")
# (what, shell script, its results for Automake, a failure that is named)
FILES = [
    ("all is well", "echo 1..2; echo ok 1 - a; echo 'ok 2 -w: b'", ["PASS", "PASS"], None),
    ("the plan at the end", "echo ok 1; echo ok; echo 1..2", ["PASS", "PASS"], None),
    ("one failed", "echo 1..2; echo not ok 1 - a; echo '# why'; echo ok 2; exit 1",
     ["FAIL", "PASS"], "1 a"),
    ("one skipped", "echo 1..2; echo ok 1 a '# skip no b'; echo ok 2", ["SKIP", "PASS"], None),
    ("all skipped", "echo '1..0 # SKIP no b'", ["SKIP"], None),
    ("one is lost", "echo 1..3; echo ok 1; echo ok 3", ["PASS", "FAIL", "PASS"],
     "2 ?: it should have run"),
    ("one is lost, another failed", "echo 1..3; echo not ok 1 a; echo ok 3; exit 1",
     ["FAIL", "FAIL", "PASS"], "2 ?: it should"),
    ("the last are lost", "echo 1..3; echo ok 1; kill -KILL $$", ["PASS", "FAIL", "FAIL"],
     "3 ?: it should have run"),
    ("one too many", "echo 1..1; echo ok 1; echo ok 2", ["PASS", "PASS", "FAIL"],
     "it says 2 results"),
    ("one twice", "echo 1..2; echo ok 1; echo ok 1; echo ok 2", ["PASS", "PASS", "FAIL"],
     "it says the result of test 1"),
    ("no plan", "echo ok 1", ["PASS", "FAIL"], "it has no plan"),
    ("no TAP", "echo all is well", ["FAIL"], "it has no plan"),
    ("nothing", ":", ["FAIL"], "it has no plan"),
    ("a crash", "echo ok 1; echo 1..1; kill -SEGV $$", ["PASS", "FAIL"],
     "it ended with status 139"),
    ("a status that nothing explains", "echo 1..1; echo ok 1; exit 3", ["PASS", "FAIL"],
     "it ended with status 3"),
    ("it gives up", "echo 1..1; echo ok 1; echo Bail out! No b", ["PASS", "FAIL"],
     "Bail out! No b"),
    ("half a line", "echo 1..1; printf 'ok 1'", ["PASS"], None),
    ("standard error", "echo 1..1; printf half >&2; echo ok 1; echo line >&2", ["PASS"], None),
    ("it hangs", "echo 1..2; echo ok 1; sleep 1000", ["PASS", "FAIL", "FAIL"],
     "it was ended after 3 s"),
    ("somebody keeps its output", "setsid sleep 1000 & echo 1..1; echo ok 1", ["PASS"], None),
    # 1 to 28: make ignores two that are glibc's own.
    ("signals are as in a shell",
     "echo 1..1; grep -qE '^Sig(Blk|Ign):.*[1-9a-f].{0,6}$' /proc/self/status || echo ok 1",
     ["PASS"], None),
    ("what it leaves behind ends with it",
     "setsid sh -c 'sleep 1000 & echo $! >left' & until test -s left; do :; done;"
     "echo 1..1; echo ok 1",
     ["PASS"], None),
]


def start(directory, script, timeout="1200", name="tests/x", **more):
    """The driver of a file with that script."""
    env = dict(os.environ, RLOCK_FILE_TIMEOUT=timeout, RLOCK_TEST_FAILED=f"{directory}/failed",
               RLOCK_TEST_LOGS="x.log y.log")
    env.pop("RLOCK_TEST_UNTIL", None)
    env.pop("RLOCK_BUSY", None)
    env.update(more)
    options = f"--test-name {name} --log-file x.log --trs-file x.trs --color-tests no".split()
    words = [sys.executable, "-B", DRIVER, *options, "--", "sh", "-c", script]
    return subprocess.Popen(words, cwd=directory, env=env, stdout=subprocess.PIPE, text=True)


def drive(directory, script):
    """(results, what the driver printed) of a file with that script."""
    with start(directory, script, "3" if script.endswith("sleep 1000") else "60") as driver:
        said = driver.communicate(timeout=120)[0]
    assert driver.returncode == 0
    with open(f"{directory}/x.trs", encoding="utf-8") as file:
        return re.findall(r"^:test-result: (\w+)", file.read(), re.M), said


def faults_of(directory, script, want, failure):
    got, said = drive(directory, script)
    if got != want:
        yield f"got {got}, want {want}"
    if not said.startswith(f"[1/2] {'FAILED' if failure else 'ok'} tests/x: "):
        yield f"it said {said!r}"
    if failure and f"failed: {failure}" not in said:
        yield f"no failure {failure!r} in {said!r}"
    if os.path.exists(f"{directory}/failed/x/log") != bool(failure):
        yield "what a failed file said is kept, and nothing else"
    if os.path.exists(f"{directory}/left"):
        with open(f"{directory}/left", encoding="ascii") as file:
            if alive(int(file.read())):
                yield "what it has left behind is alive"


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def interrupted(directory):
    """Told to end, it ends the file, and says nothing of it."""
    with start(directory, "echo $$ >up; sleep 1000") as driver:
        deadline = time.monotonic() + 60
        while not (os.path.exists(f"{directory}/up") and os.path.getsize(f"{directory}/up")):
            if time.monotonic() > deadline:
                yield "the file was not run"
                driver.kill()
                return
            time.sleep(0.02)
        driver.terminate()
        if driver.wait(60) != 143:
            yield f"status {driver.returncode}"
    with open(f"{directory}/up", encoding="ascii") as file:
        if alive(int(file.read())):
            yield "the file continues"
    if os.path.exists(f"{directory}/x.trs"):
        yield "there are results"


def begins_too_late(directory):
    """After RLOCK_TEST_UNTIL, it is skipped, with the reason."""
    for until, want in ((time.time() - 1, "SKIP no time was left"), (time.time() + 3600, "PASS 1")):
        with start(directory, "echo 1..1; echo ok 1", RLOCK_TEST_UNTIL=str(until)) as driver:
            driver.communicate(timeout=120)
        with open(f"{directory}/x.trs", encoding="utf-8") as file:
            if f":test-result: {want}" not in file.read():
                yield f"no {want!r}"


def comes_last(directory):
    """A file that computes has a lower priority than one that waits, but not beside .ci/busy. The
    scripts' have to answer in time."""
    for name, more, busy in (("tests/x", 0, {}), ("tests/test_scripts_hosts.py", 0, {}),
                             ("tests/tidy.sh", min(10, 19 - os.nice(0)), {}),
                             ("tests/tidy.sh", 0, {"RLOCK_BUSY": "yes"})):
        with start(directory, "nice >nice; echo 1..1; echo ok 1", name=name, **busy) as driver:
            driver.communicate(timeout=120)
        with open(f"{directory}/nice", encoding="ascii") as file:
            if int(file.read()) != os.nice(0) + more:
                yield f"{name} has another priority"


def results():
    cases = [(what, lambda place, rest=rest: faults_of(place, *rest)) for what, *rest in FILES]
    others = (("told to end, it ends the file", interrupted),
              ("a file for which no time is left is skipped", begins_too_late),
              ("a file that computes has a lower priority", comes_last))
    for what, case in (*cases, *others):
        with tempfile.TemporaryDirectory() as directory:
            yield what, list(case(directory))


report(results())
