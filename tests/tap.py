"""Results in TAP, for the tests that are written in Python."""
import sys


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
