"""A private redis-server, a client for it, and the lock's scripts as rlock calls them."""
import hashlib, os, re, shutil, socket, subprocess, tempfile, time

LUA = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), os.pardir, "src", "rules", "lua"
)
EMBED = os.path.join(LUA, "..", "..", "..", "build-aux", "embed-lua")
# The scripts run in redis-server, or in a program that takes its options and speaks as it does.
PROGRAM = os.environ.get("RLOCK_SCRIPT_SERVER", "redis-server")
SCRIPTS = ("acquire", "renew", "release", "force", "inspect", "init", "adjust", "pauses",
           "unmirror")
MARKER = "rlock:!epoch"
PAUSES = "rlock:!paused"
CLOCK = "redis.call('TIME')"
PLACE_TTL = 7000  # ms a place in the queue is kept without a call
FAR_TTL = 120000  # the same at most, of a waiter that is far from its turn
NEAR = 20  # tickets of the queue whose waiters are not
HANDED = 9500  # ms from that call that a lock lasts which is handed over
WEEK = 604800000  # ms that the key of an idle lock lives


class ReplyError(Exception):
    """An error that the server replied."""


class Hung(AssertionError):
    """The server did not answer; it was killed and started again, empty."""


class Client:
    """RESP2 over a Unix socket. Replies are str, int, list or None; call() raises the errors."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def send(self, *commands):
        parts = []
        for words in commands:
            parts.append(b"*%d\r\n" % len(words))
            for word in words:
                data = word if isinstance(word, bytes) else str(word).encode()
                parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
        self.socket.sendall(b"".join(parts))

    def read(self):
        line = self.file.readline()
        if not line:
            raise EOFError("the server hung up")
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            if rest == b"-1":
                return None
            return self.file.read(int(rest) + 2)[:-2].decode("utf-8", "surrogateescape")
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        if kind == b"-":
            return ReplyError(rest.decode())
        return int(rest) if kind == b":" else rest.decode()

    def call(self, *words):
        self.send(words)
        reply = self.read()
        if isinstance(reply, ReplyError):
            raise reply
        return reply

    def pipeline(self, commands, batch=500):
        replies = []
        for start in range(0, len(commands), batch):
            slice_ = commands[start : start + batch]
            self.send(*slice_)
            replies += [self.read() for _ in slice_]
        return replies

    def close(self):
        self.file.close()
        self.socket.close()


class Ear(Client):
    """Hears which owners are told that the lock is free, or that they have it."""

    def __init__(self, server):
        super().__init__(server.path)
        self.server = server
        self.call("PSUBSCRIBE", "rlock:*")

    END = "PUBLISH", "rlock:{end}", ""

    def messages(self, ended=False):
        """(key, owner, text) of what was published since the last time, in order. ended: the caller
        has published END."""
        if not ended:
            self.server.call(*self.END)
        messages = []
        while True:
            channel, text = self.read()[2:4]
            if channel == "rlock:{end}":
                return messages
            key, _colon, owner = channel.rpartition(":")
            messages.append((key, owner, text))

    def pokes(self, ended=False):
        """(key, owner) of those poked since the last time, in order."""
        messages = self.messages(ended)
        if any(text != "1" for _key, _owner, text in messages):
            raise AssertionError(f"no poke: {messages}")
        return [(key, owner) for key, owner, _text in messages]

    def handed(self):
        """(owner, token, fence, slot) of those handed the lock; only the owner of those poked."""
        return [
            (owner, *(text.split() if text != "1" else []))
            for _key, owner, text in self.messages()
        ]

    def heard(self):
        """The owners poked since the last time, in order."""
        return [owner for _key, owner in self.pokes()]


def read_script(name, folder=LUA):
    """As the program has it."""
    words = [EMBED, "-p", os.path.join(folder, name + ".lua")]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def changed(text, old, new):
    if text.count(old) != 1:
        raise AssertionError(f"{old} is not in the script exactly once")
    return text.replace(old, new)


def with_near(text, near):
    """The script with that many tickets instead of NEAR."""
    return re.sub(r"(?m)^local NEAR = \d+", f"local NEAR = {near}", text)


def with_clock_given(text):
    """The script with two more KEYS, the last ones, for its clock: seconds and microseconds."""
    taken = "local given = { KEYS[#KEYS - 1], KEYS[#KEYS] }; KEYS[#KEYS] = nil; KEYS[#KEYS] = nil; "
    return taken + changed(text, CLOCK, "given")


class Server:
    """PROGRAM in a directory of its own, without a port, keeping nothing."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="rlock-scripts-")
        self.path = os.path.join(self.directory, "socket")
        self.near, self.opened = NEAR, []
        self.start()

    def start(self):
        options = ["--port", "0", "--unixsocket", self.path, "--dir", self.directory]
        options += ["--save", "", "--appendonly", "no", "--daemonize", "no"]
        self.process = subprocess.Popen([PROGRAM] + options, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while True:
            try:
                self.client = Client(self.path)
                break
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.01)
        self.load_all()

    def load_all(self, near=None):
        """Loads the scripts; near: tickets, instead of NEAR, from now on."""
        self.near = near or self.near
        self.sha = {}
        for name in SCRIPTS:
            text = with_near(read_script(name), self.near)
            for given, body in ((False, text), (True, with_clock_given(text))):
                self.sha[name, given] = hashlib.sha1(body.encode()).hexdigest()
                if self.client.call("SCRIPT", "LOAD", body) != self.sha[name, given]:
                    raise AssertionError("SCRIPT LOAD: another digest")

    def load(self, text):
        """The digest of that script, which it is called by."""
        return self.call("SCRIPT", "LOAD", text)

    def call(self, *words):
        try:
            return self.client.call(*words)
        except (TimeoutError, EOFError):
            self.kill()
            self.start()
            raise Hung(f"no answer to {words!r:.200}")

    def pipeline(self, commands):
        try:
            return self.client.pipeline(commands)
        except (TimeoutError, EOFError):
            self.kill()
            self.start()
            raise Hung("no answer to a pipeline")

    def listen(self):
        self.opened.append(Ear(self))
        return self.opened[-1]

    def close_opened(self):
        while self.opened:
            self.opened.pop().close()

    def kill(self):
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()  # a script that loops after a write can be ended by nothing less
            self.process.wait()
        if os.path.exists(self.path):
            os.unlink(self.path)

    def stop(self):
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def commands_run(self):
        """How many commands ran since CONFIG RESETSTAT, those of scripts included."""
        stats = self.call("INFO", "commandstats")
        calls = re.findall(r"cmdstat_(?!config|info|evalsha)\S+?:calls=(\d+)", stats)
        return sum(map(int, calls))


def is_memory(field):
    return field in ("a", "c") or field[:2] in ("n:", "r:")


# The names of the arguments that tests often give by their place.
ORDER = {
    "acquire": ("owner", "lease"),
    "renew": ("owner", "lease"),
    "release": ("owner", "bar", "at_least"),
    "force": ("owners",),
    "inspect": ("runs",),
    "adjust": ("what",),
}


class Empty(str):
    """A text that is given though it may be empty."""


def pairs(script, *values, **arguments):
    """The arguments of a script, by name. 0, False, None and "" are not given."""
    words = []
    for name, value in (*zip(ORDER.get(script, ()), values), *arguments.items()):
        if value or isinstance(value, Empty):
            words += [name, int(value) if value is True else value]
    return words


def with_own(mirrors, arguments):
    """The mirrors that a call names among its keys: the one in its arguments, and others."""
    own = arguments.get("mirror")
    return [own.partition(":")[2]] if own else list(mirrors)


# The parts of replies behind the verdict, as the first comment of each script explains them.
PARTS = {
    "GRANTED": "now fences slots late limits",
    "RENEWED": "now fences slots late",
    "QUEUED": "now places position anew which holders free_in first limit far_ms",
    "HELD": "now waiters which holders free_in first limit",
    "CLOSED": "now opens_in places position anew which pause free_in",
    "GRACE": "now opens_in places position anew",
    "SUPERSEDED": "now which waiter",
    "DONE": "now which begun_ago run",
    "ASKED": "now which holders free_in first",
    "LOST": "now which holders free_in first run",
    "ABSENT": "now which holders free_in first run",
    "MISFIT": "now what which",
    "MEMBER": "remembered_ms asked_ms answer locks",
    "LATCH": "now left number word set_at ends_at counted without_id ids",
}


class Reply(list):
    """A reply of a script, whose parts have names."""

    def __getattr__(self, name):
        names = PARTS.get(self[0], "").split()
        if name not in names:
            raise AttributeError(f"{self} has no {name}")
        return self[1 + names.index(name)]

    def parts(self, *names):
        return [getattr(self, name) for name in names]


class Lock:
    """A lock of one key or more. Its scripts see the time "now", in ms; with None, the server's
    own."""

    def __init__(self, server, *names, now=1700000000000, client=None):
        self.server, self.now = server, now
        self.keys = ["rlock:{%s}" % name for name in names or ["k"]]
        self.key = self.keys[0]
        self.call = client.call if client else server.call

    def words(self, script, *values, keys=None, mirrors=(), **arguments):
        """The call; values: the arguments that come first in ORDER; mirrors: keys of others."""
        mirrors = with_own(mirrors, arguments)
        keys = [*(self.keys if keys is None else keys), *mirrors]
        arguments["mirrors"] = len(mirrors)
        if self.now is not None:
            keys += [self.now // 1000, self.now % 1000 * 1000]
        sha = self.server.sha[script, self.now is not None]
        return ["EVALSHA", sha, len(keys), *keys, *pairs(script, *values, **arguments)]

    def run(self, script, *values, **arguments):
        """Called again with the mirrors that the lock has, as rlock does."""
        reply = self.call(*self.words(script, *values, **arguments))
        if reply[0] == "MIRROR":
            mirrors = reply[2]
            reply = self.call(*self.words(script, *values, mirrors=mirrors, **arguments))
        return Reply(reply)

    def acquire_words(self, owner, lease=30000, queue=True, places="", count=True, nest=True,
                      who=None, grace=False, offer=None, group=None, **more):
        if grace:
            more["epoch"] = MARKER
        elif offer:
            more.update(accept_by_message=offer, accept_ms=HANDED)
        if group is not None:
            more["latest"] = Empty(group)
        who = "who-" + owner if who is None else who
        return self.words("acquire", owner, lease, place_ttl=queue and PLACE_TTL, places=places,
                          count=count, no_nesting=not nest, who=who, pauses=PAUSES, **more)

    def acquire(self, owner, **options):
        return Reply(self.call(*self.acquire_words(owner, **options)))

    def renew(self, owner, lease=30000, grace=False, **more):
        return self.run("renew", owner, lease, epoch=grace and MARKER, **more)

    def release(self, owner, grace=False, **more):
        if grace:
            more.update(epoch=MARKER, lease=30000)
        return self.run("release", owner, **more)

    def init(self, force=False):
        return self.run("init", keys=[], epoch=MARKER, force=force)

    def force(self, *owners, how="now", **more):
        return self.run("force", " ".join(owners), how=how, **more)

    def inspect(self, **part):
        """All but what it remembers."""
        reply = self.run("inspect", **part)
        return reply[:7] + reply[9:]

    def memory(self, runs=20):
        """Numbers by name, those that are not 0; and the last runs."""
        numbers, remembered = self.run("inspect", runs)[7:9]
        names = "acquired ended waited success_began success_ended".split()
        for what in "refused failed timed lost expired revoked".split():
            names += [what, what + "_last"]
        return {name: int(n) for name, n in zip(names, numbers) if n != "0"}, remembered

    def set(self, field, value):
        self.call("HSET", self.key, field, value)

    def fields(self, number=0):
        """All but what it remembers."""
        flat = self.call("HGETALL", self.keys[number])
        fields = dict(zip(flat[::2], flat[1::2]))
        return {name: fields[name] for name in fields if not is_memory(name)}

    def ttl(self):
        """ms; -1: the key has none; -2: there is no key."""
        return self.call("PTTL", self.key)
