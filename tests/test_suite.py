#!/usr/bin/env -S python3 -B
"""suite.py with a false make: checks the lines that it prints and its exit status. Prints TAP."""
import contextlib, io, os, tempfile
import suite
from tap import report

# This make builds two programs; runs what TESTS names, "a" and "b" without; each run of a file
# takes its results from the next of its scripts, x.1, x.2.
MAKE = """#!/bin/sh
case " $* " in
*" -n "*) printf 'echo "  CC a"\\necho "  CC b"\\n'; exit 0 ;;
*" all "*)
    echo "  CC a"; echo "  CC b"
    [ ! -e %(place)s/broken ] || { echo broken; exit 2; }
    exit 0 ;;
*" check TESTS= "* | *" check-programs "*) exit 0 ;;
esac
files="tests/a tests/b" status=0
for word; do
    case $word in TESTS=*) files=${word#TESTS=} ;; esac
done
for file in $files; do
    run=$(($(cat %(place)s/$file.runs 2>/dev/null || echo 0) + 1))
    echo $run >%(place)s/$file.runs
    : >%(place)s/$file.log
    [ -e %(place)s/$file.$run ] || { status=2; continue; }
    cp %(place)s/$file.$run %(place)s/$file.trs
    ! grep -q FAIL %(place)s/$file.$run || status=2
    echo "[1/2] ended $file"
done
exit $status
"""
PASS, FAIL = ":test-result: PASS 1 one\n", ":test-result: FAIL 1 one\n"
SKIP = ":test-result: SKIP 2 two # SKIP there is no fish\n"


def play(place, runs, machine=None, broken=False):
    """(status, all that it printed) of a suite whose files have these results, run by run. machine:
    when it stands still, or how many milliseconds it takes to start a process."""
    start = machine if isinstance(machine, float) else 1.0
    os.makedirs(f"{place}/tests")
    os.makedirs(f"{place}/bin")
    for name, results in runs.items():
        for number, result in enumerate(results, 1):
            with open(f"{place}/tests/{name}.{number}", "w", encoding="utf-8") as file:
                file.write(result)
    if broken:
        open(f"{place}/broken", "w", encoding="utf-8").close()
    with open(f"{place}/bin/make", "w", encoding="utf-8") as file:
        file.write(MAKE % {"place": place})
    os.chmod(f"{place}/bin/make", 0o755)
    path, os.environ["PATH"] = os.environ["PATH"], f"{place}/bin:{os.environ['PATH']}"
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            one = suite.Suite(place, "check", None, start=lambda: start)
            if isinstance(machine, tuple):
                one.ticker.stops.append(machine)
            status = one.build_tests() and one.run()
            if status is False:
                return "not built", said.getvalue()
            one.collect()
            one.run_again()
            return one.report(status), said.getvalue()
    finally:
        os.environ["PATH"] = path


ALWAYS, NEVER = (0, 1e12, "12:00:00"), (0, 1, "12:00:00")
SLOW = 9.0
# (what, results of each run, the machine, status, lines to find, the last line)
CASES = [
    ("all pass", {"a": [PASS], "b": [PASS]}, None, 0, ["ended tests/a"], "2 passed, 0 failed"),
    (
        "a skipped test is listed with what is missing",
        {"a": [PASS + SKIP], "b": [PASS]}, None, 0, ["there is no fish: a 2"],
        "2 passed, 0 failed, 1 skipped",
    ),
    (
        "a failure that passes alone stays a failure, and both results are printed",
        {"a": [FAIL, PASS], "b": [PASS]}, None, 1, ["tests/a: first 1 failed; alone 1 passed"],
        "1 passed, 1 failed",
    ),
    (
        "a stop at another time changes nothing",
        {"a": [FAIL, PASS], "b": [PASS]}, NEVER, 1, ["tests/a: first 1 failed; alone 1 passed"],
        "1 passed, 1 failed",
    ),
    (
        "the machine stood still, and the second run passes: it counts as passed",
        {"a": [FAIL, PASS], "b": [PASS]}, ALWAYS, 0,
        ["tests/a: first 1 failed; alone 1 passed", "tests/a: passed; the machine had stood still",
         "The machine stood still for"],
        "2 passed, 0 failed",
    ),
    (
        "the machine stood still, and the second run fails: it stays a failure",
        {"a": [FAIL, FAIL], "b": [PASS]}, ALWAYS, 1,
        ["tests/a: first 1 failed; alone 1 failed"], "1 passed, 1 failed",
    ),
    (
        "the machine is slow, and the second run passes: it counts as passed",
        {"a": [FAIL, PASS], "b": [PASS]}, SLOW, 0,
        ["it takes 9 ms here to start a process", "tests/a: passed; the machine is slow"],
        "2 passed, 0 failed",
    ),
    (
        "the machine is slow, and the second run fails: it stays a failure",
        {"a": [FAIL, FAIL], "b": [PASS]}, SLOW, 1,
        ["tests/a: first 1 failed; alone 1 failed"], "1 passed, 1 failed",
    ),
    (
        "the machine is slow, and there is no time for the second run: it stays a failure",
        {"a": [FAIL, SKIP], "b": [PASS]}, SLOW, 1, ["alone nothing passed"], "1 passed, 1 failed",
    ),
    (
        "a file without a result counts as a failure",
        {"a": [], "b": [PASS]}, None, 1, ["not run to its end: tests/a"], "1 passed, 1 failed",
    ),
    ("nothing ran", {"a": [], "b": []}, None, 1, [], "not run: there is no result of any test"),
]  # fmt: skip


def faults_of(place, runs, machine, status, wanted, last):
    got, said = play(place, runs, machine)
    lines = said.rstrip("\n").split("\n")
    if got != status:
        yield f"status {got}, want {status}"
    if lines[-1] != last:
        yield f"the last line is {lines[-1]!r}"
    for line in wanted:
        if line not in said:
            yield f"no {line!r} in {said!r}"


def broken_build(place):
    got, said = play(place, {"a": [PASS]}, broken=True)
    if got != "not built" or "broken" not in said or os.path.exists(f"{place}/tests/a.runs"):
        yield f"{got}: {said!r}"


def chosen_tests(_place):
    """With --but and --and, make is told of the target's own tests by their variable."""
    for others, want in ((None, "a b"), ("but", "$(filter-out a b,$(check_tests))"),
                         ("and", "a b $(check_tests)")):
        got = suite.tests_for_make("check", ["a", "b"], others)
        if got != want:
            yield f"{others}: {got!r}"
    nightly = suite.tests_for_make("check-nightly", ["a"], "and")
    if nightly != "a $(long_tests_apart) $(nightly_tests)":
        yield f"nightly: {nightly!r}"
    if suite.tests_for_make("check", []) is not None:
        yield "without a FILE, the target has its own"


def ticker(_place):
    """Ticks that come late by less than two seconds are none of its business."""
    times = iter([0.25, 2.4, 42.7, 43])
    one = suite.Ticker(clock=lambda: next(times), sleep=lambda seconds: None)
    last = 0
    for _ in range(4):
        last = one.look(last)
    if [(a, b) for a, b, _ in one.stops] != [(2.4, 42.7)]:
        yield f"stops: {one.stops}"
    if one.during(0, 2) or one.during(43, 44) or round(one.during(30, 31), 1) != 40.3:
        yield "during() is wrong"


def results():
    cases = [(what, lambda place, rest=rest: faults_of(place, *rest)) for what, *rest in CASES]
    cases += [("a build that fails: nothing is run", broken_build), ("the ticker", ticker),
              ("some tests are left to others, or come along", chosen_tests)]
    for what, case in cases:
        with tempfile.TemporaryDirectory() as place:
            yield what, list(case(place))


report(results())
