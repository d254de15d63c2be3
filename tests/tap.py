"""Results in TAP, for the tests that are written in Python."""
import os, signal, sys


def bail_out(why):
    print(f"Bail out! {why}", flush=True)
    sys.exit(1)


def bail_out_by_signals(seconds=0):
    """Has signals end the program, and an alarm after so many seconds, unless they are 0."""
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(one, lambda number, _frame: bail_out(f"Signal {number}"))
    signal.alarm(seconds)


def need(*programs):
    for program in programs:
        if not os.access(program, os.X_OK):
            bail_out(f"No {program}: make check builds it")


def say(number, what, faults):
    """Prints a result, and its faults below it. Returns whether there are none."""
    print(f"{'not ok' if faults else 'ok'} {number} - {what}")
    for fault in faults[:20]:
        for line in str(fault).splitlines():
            print("#", line)
    sys.stdout.flush()
    return not faults


def differs(got, want):
    """Returns the faults of a result."""
    return [] if got == want else [f" got  {got!r}", f" want {want!r}"]


def report(results):
    """Prints the results (what, faults) and their plan. Does not return."""
    number = failed = 0
    for number, (what, faults) in enumerate(results, 1):
        failed += not say(number, what, list(faults))
    print(f"1..{number}")
    sys.exit(bool(failed))
