#!/usr/bin/env python3
"""earlier.py COMMAND...: what the first version of rlock sends to a server, and what it leaves
there. For compat.bats.

    run [-n] [--lease SECONDS] [--read | --limit N] KEY... -- COMMAND [ARG...]
    acquire [--lease SECONDS] KEY
    renew --owner TOKEN KEY
    release --owner TOKEN KEY
    force-release --yes KEY

The scripts beside this file are that version's, as they were. They must not be changed: there are
servers on which programs of that version hold locks. RLOCK_URL is unix:///PATH; RLOCK_OWNER is the
owner of the lock around this one. The statuses are those of rlock(1). It waits for its turn as that
version does: by a call to its channel, or by asking every 2.5 s.
"""
import argparse, os, select, subprocess, sys, time, uuid
from urllib.parse import urlsplit

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from script_server import PLACE_TTL, Client, read_script

HERE = os.path.dirname(os.path.abspath(__file__))
HEARTBEAT = 2.5  # s between two attempts of a waiter that nobody calls
MODES = {"exclusive": "x", "shared": "s", "limit": "l"}


class Earlier:
    """One invocation."""

    def __init__(self, options):
        self.options = options
        self.names = ["rlock:{%s}" % key for key in options.keys]
        self.path = urlsplit(os.environ["RLOCK_URL"]).path
        self.client = Client(self.path)
        outer = os.environ.get("RLOCK_OWNER")
        self.owner = options.owner or (outer + "." if outer else "") + str(uuid.uuid4())

    def script(self, name, *arguments):
        return self.client.call(
            "EVAL", read_script(name, HERE), len(self.names), *self.names, *arguments
        )

    def acquire(self, queue, listens):
        """The answer to one attempt."""
        limit = self.options.limit or 0
        mode = "limit" if limit else "shared" if self.options.read else "exclusive"
        who = "%s %s %d %s -" % (
            os.uname().nodename,
            os.environ.get("USER") or "root",
            os.getpid(),
            "earlier",
        )
        place_ttl = PLACE_TTL if queue else 0
        return self.script(
            "acquire",
            self.owner,
            self.lease_ms(),
            place_ttl,
            0,
            "",
            int(listens),
            MODES[mode],
            limit,
            1,
            who,
        )

    def lease_ms(self):
        return int(self.options.lease * 1000)

    def get(self):
        """Returns None when the locks are held, or the status to end with."""
        answer = self.acquire(queue=not self.options.no_wait, listens=False)
        if answer[0] == "QUEUED":
            answer = self.wait()
        if answer[0] == "GRANTED":
            return None
        return 78 if answer[0] == "MISFIT" else 75

    def wait(self):
        calls = Client(self.path)
        for name in self.names:
            calls.call("SUBSCRIBE", f"{name}:{self.owner}")
        answer = self.acquire(queue=True, listens=True)
        while answer[0] == "QUEUED":
            if select.select([calls.socket], [], [], HEARTBEAT)[0]:
                calls.read()
            answer = self.acquire(queue=True, listens=True)
        calls.close()
        return answer

    def run(self):
        status = self.get()
        if status is not None:
            return status
        command = subprocess.Popen(
            self.options.command, env=dict(os.environ, RLOCK_OWNER=self.owner)
        )
        renewed = time.monotonic()
        while command.poll() is None:
            time.sleep(0.02)
            if time.monotonic() - renewed < self.options.lease / 3:
                continue
            renewed = time.monotonic()
            if self.script("renew", self.owner, self.lease_ms())[0] != "RENEWED":
                command.kill()
                command.wait()
                return 79
        self.script("release", self.owner, 0, 0, 0)
        return command.returncode if command.returncode >= 0 else 128 - command.returncode

    def take(self):
        status = self.get()
        if status is None:
            print(self.owner)
        return status or 0

    def renew(self):
        return 0 if self.script("renew", self.owner, 0)[0] == "RENEWED" else 1

    def release(self):
        return 0 if self.script("release", self.owner, 0, 0, 0)[0] == "RELEASED" else 1

    def force(self):
        """From whoever holds it now."""
        fields = self.client.call("HKEYS", self.names[0])
        owners = [field[2:] for field in fields if field.startswith("h:")]
        return 0 if owners and self.script("force", 0, *owners)[0] == "RELEASED" else 1


def main():
    words, command = sys.argv[1:], []
    if "--" in words:
        words, command = words[: words.index("--")], words[words.index("--") + 1 :]
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=("run", "acquire", "renew", "release", "force-release"))
    parser.add_argument("-n", dest="no_wait", action="store_true")
    parser.add_argument("--yes", action="store_true")
    parser.add_argument("--lease", type=lambda text: float(text.rstrip("s")), default=30)
    parser.add_argument("--read", action="store_true")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--owner")
    parser.add_argument("keys", nargs="+")
    options = parser.parse_args(words)
    options.command = command
    one = Earlier(options)
    actions = {
        "run": one.run,
        "acquire": one.take,
        "renew": one.renew,
        "release": one.release,
        "force-release": one.force,
    }
    return actions[options.action]()


if __name__ == "__main__":
    sys.exit(main())
