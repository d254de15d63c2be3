#!/usr/bin/env python3
"""terminal.py [--timeout SECONDS] COMMAND [ARG...]: a command on a terminal of its own. For the
tests.

Reads a dialogue from standard input, a step a line, and fails at the first step that does not come
true in time, with all that the terminal showed (what is typed is shown too: expect something else):

    send TEXT        type TEXT; \\n, \\x03 and the like are as in Python
    expect REGEX     wait for it to appear after what the last expect found
    tab REGEX        press Tab, and again every 3 s, until that appears: completion gives up after
                     a second if a slow machine has not told it the keys by then
    absent REGEX     it has not appeared after what the last expect found
    shows REGEX      wait until the screen as a whole, its lines joined, has it: for programs that
                     draw only what has changed (with TERM=screen, which pyte understands whole)
    sh COMMAND       run it with sh; it has to succeed; $PTY_PID is the command on the terminal
    until COMMAND    run it again and again until it succeeds
    resize ROWS COLS
    hangup           the terminal goes away
    status N         wait for the command to end, with this status (128+N for death by signal N)
"""
import codecs, fcntl, os, pty, re, select, signal, struct, subprocess, sys, termios, time

import pyte


class Failure(Exception):
    pass


class Screen(pyte.Screen):
    """Ignores the private sequences that look like colours, which vim sends."""

    def select_graphic_rendition(self, *attributes, private=False):
        if not private:
            super().select_graphic_rendition(*attributes)


class Terminal:
    def __init__(self, command, timeout):
        self.timeout = timeout
        self.seen = ""  # everything shown
        self.mark = 0  # where the last expect ended
        self.screen = Screen(80, 24)
        self.drawing = pyte.Stream(self.screen)
        self.status = None
        self.decode = codecs.getincrementaldecoder("utf-8")("replace")
        has_size, set_it = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.read(has_size, 1)  # the command may set another one
            # As a terminal's programs start, whatever is ignored here.
            os.execvp("env", ["env", "--default-signal", *command])
        self.resize("24", "80")
        os.write(set_it, b"!")

    def read(self, timeout):
        """Takes what the terminal has to show, waiting at most "timeout" seconds for some."""
        if self.fd < 0:
            time.sleep(timeout)
            return
        if not select.select([self.fd], [], [], timeout)[0]:
            return
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # EIO: no process has the terminal open any more
            data = b""
        if not data:
            time.sleep(timeout)
        text = self.decode.decode(data)
        self.seen += text
        self.drawing.feed(text)

    def wait_for(self, what, test):
        end = time.monotonic() + self.timeout
        while True:
            result = test()
            if result:
                return result
            if time.monotonic() > end:
                raise Failure("not within %g s: %s" % (self.timeout, what))
            self.read(0.02)

    def shell(self, command):
        environment = dict(os.environ, PTY_PID=str(self.pid))
        return subprocess.run(["sh", "-c", command], env=environment).returncode == 0

    def reaped(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                self.status = code if code >= 0 else 128 - code
        return self.status is not None

    def send(self, text):
        os.write(self.fd, codecs.decode(text, "unicode_escape").encode("latin-1"))

    def expect(self, regex):
        found = self.wait_for("expect " + regex, lambda: re.search(regex, self.seen[self.mark :]))
        self.mark += found.end()

    def tab(self, regex):
        pressed = [float("-inf")]

        def found():
            if time.monotonic() - pressed[0] > 3:
                self.send("\\t")
                pressed[0] = time.monotonic()
            return re.search(regex, self.seen[self.mark :])

        self.mark += self.wait_for("tab " + regex, found).end()

    def absent(self, regex):
        self.read(0.05)
        if re.search(regex, self.seen[self.mark :]):
            raise Failure("there is " + regex)

    def shown(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def shows(self, regex):
        self.wait_for("shows " + regex, lambda: re.search(regex, self.shown()))

    def sh(self, command):
        if not self.shell(command):
            raise Failure("failed: " + command)

    def until(self, command):
        self.wait_for(command, lambda: self.shell(command))

    def resize(self, rows, columns):
        self.screen.resize(int(rows), int(columns))
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", int(rows), int(columns), 0, 0))

    def hangup(self):
        os.close(self.fd)
        self.fd = -1

    def expect_status(self, number):
        self.wait_for("the end of the command", self.reaped)
        if self.status != int(number):
            raise Failure("the status is %d, not %s" % (self.status, number))


def step(terminal, line):
    verb, _, rest = line.strip().partition(" ")
    if verb == "resize":
        terminal.resize(*rest.split())
    elif verb == "hangup":
        terminal.hangup()
    elif verb == "status":
        terminal.expect_status(rest)
    elif verb in ("send", "expect", "tab", "absent", "shows", "sh", "until"):
        getattr(terminal, verb)(rest)
    elif verb and not verb.startswith("#"):
        raise Failure("no such step")


def main():
    arguments, timeout = sys.argv[1:], 25.0
    if arguments[0] == "--timeout":
        timeout, arguments = float(arguments[1]), arguments[2:]
    lines = sys.stdin.read().splitlines()
    terminal = Terminal(arguments, timeout)
    try:
        for number, line in enumerate(lines, 1):
            try:
                step(terminal, line)
            except Failure as failure:
                print("terminal.py: step %d: %s: %s" % (number, line.strip(), failure))
                print("--- the terminal showed ---\n%s\n---" % terminal.seen)
                print("--- the screen ---\n%s\n---" % terminal.shown())
                return 1
        return 0
    finally:
        if not terminal.reaped():
            os.kill(terminal.pid, signal.SIGKILL)
            os.waitpid(terminal.pid, 0)


if __name__ == "__main__":
    sys.exit(main())
