"""A private redis-server, a client for it, and the lock's scripts as rlock calls them."""
import hashlib, os, re, shutil, socket, subprocess, tempfile, time

LUA = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "src", "lua")
SCRIPTS = ("acquire", "renew", "release", "force", "inspect", "init")
MARKER = "rlock:!epoch"
CLOCK = "redis.call('TIME')"
PATIENCE = 7000  # ms a place in the queue is kept without a call
WEEK = 604800000  # ms that the key of an idle lock lives


class ReplyError(Exception):
    """An error that the server replied."""


class Hung(AssertionError):
    """The server did not answer; it was killed and started again, empty."""


class Client:
    """RESP2 over a Unix socket. Replies are str, int, list or None; call() raises the errors."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(5)
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
    """Hears which owners are poked."""

    def __init__(self, server):
        super().__init__(server.path)
        self.server = server
        self.call("PSUBSCRIBE", "rlock:*")

    def pokes(self):
        """(key, owner) of those poked since the last time, in order."""
        self.server.call("PUBLISH", "rlock:{end}", "")
        pokes = []
        while True:
            channel = self.read()[2]
            if channel == "rlock:{end}":
                return pokes
            key, _colon, owner = channel.rpartition(":")
            pokes.append((key, owner))

    def heard(self):
        """The owners poked since the last time, in order."""
        return [owner for _key, owner in self.pokes()]


def read_script(name):
    """As build-aux/embed-lua puts it together."""
    with open(os.path.join(LUA, name + ".lua")) as file:
        text = file.read()
    return re.sub(r"^-- include (\w+)\.lua\n", lambda part: read_script(part[1]), text, flags=re.M)


def with_clock_given(text):
    """The script with two more KEYS, the last ones, for its clock: seconds and microseconds."""
    if text.count(CLOCK) != 1:
        raise AssertionError(f"{CLOCK} is not in the script exactly once")
    taken = "local given = { KEYS[#KEYS - 1], KEYS[#KEYS] }; KEYS[#KEYS] = nil; KEYS[#KEYS] = nil; "
    return taken + text.replace(CLOCK, "given")


class Server:
    """redis-server in a directory of its own, without a port, keeping nothing."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="rlock-scripts-")
        self.path = os.path.join(self.directory, "socket")
        self.start()

    def start(self):
        options = ["--port", "0", "--unixsocket", self.path, "--dir", self.directory]
        options += ["--save", "", "--appendonly", "no", "--daemonize", "no"]
        self.process = subprocess.Popen(["redis-server"] + options, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while True:
            try:
                self.client = Client(self.path)
                break
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.01)
        self.sha = {}
        for name in SCRIPTS:
            text = read_script(name)
            for given, body in ((False, text), (True, with_clock_given(text))):
                self.sha[name, given] = hashlib.sha1(body.encode()).hexdigest()
                if self.client.call("SCRIPT", "LOAD", body) != self.sha[name, given]:
                    raise AssertionError("SCRIPT LOAD: another digest")

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
        return Ear(self)

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


class Lock:
    """A lock of one key or more. Its scripts see the time "now", in ms; with None, the server's own."""

    def __init__(self, server, *names, now=1700000000000, client=None):
        self.server, self.now = server, now
        self.keys = ["rlock:{%s}" % name for name in names or ["k"]]
        self.key = self.keys[0]
        self.call = client.call if client else server.call

    def words(self, script, *args):
        keys = list(self.keys)
        if self.now is not None:
            keys += [self.now // 1000, self.now % 1000 * 1000]
        return ["EVALSHA", self.server.sha[script, self.now is not None], len(keys), *keys, *args]

    def run(self, script, *args):
        return self.call(*self.words(script, *args))

    def acquire_words(self, owner, lease=30000, queue=True, not_after=0, places="", count=True,
                      mode="x", limit=0, nest=True, who=None, stand=False, grace=False):
        patience = -PATIENCE if stand else PATIENCE if queue else 0
        who = "who-" + owner if who is None else who
        return self.words("acquire", owner, lease, patience, not_after, places, int(count), mode,
                          limit, int(nest), who, *(["grace", MARKER] if grace else []))

    def acquire(self, owner, **options):
        return self.call(*self.acquire_words(owner, **options))

    def renew(self, owner, lease=30000, grace=False, not_after=0, claim=()):
        return self.run("renew", owner, lease, *(["grace", not_after, MARKER] if grace else []), *claim)

    def release(self, owner, bar=0, at_least=0, not_after=0, grace=False):
        return self.run("release", owner, bar, at_least, not_after, *([MARKER, 30000] if grace else []))

    def init(self, force=False):
        keys = [] if self.now is None else [self.now // 1000, self.now % 1000 * 1000]
        sha = self.server.sha["init", self.now is not None]
        return self.call("EVALSHA", sha, len(keys), *keys, MARKER, int(force))

    def force(self, *owners, purge=False):
        return self.run("force", int(purge), *owners)

    def inspect(self):
        return self.run("inspect")

    def set(self, field, value):
        self.call("HSET", self.key, field, value)

    def fields(self, number=0):
        flat = self.call("HGETALL", self.keys[number])
        return dict(zip(flat[::2], flat[1::2]))

    def ttl(self):
        """ms; -1: the key has none; -2: there is no key."""
        return self.call("PTTL", self.key)
