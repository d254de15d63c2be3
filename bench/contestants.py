"""The contestants: ways to run a command under a lock."""
import os
import subprocess
import sys

from servers import Etcd, there

HERE = os.path.dirname(os.path.abspath(__file__))


class Contestant:
    """A name, the start of its command line, and the server behind it (None: none)."""

    waits = True  # for a lock that is held

    def __init__(self, name, before, server=None, between=(), env=None):
        self.name, self.before, self.server, self.between = name, before, server, list(between)
        self.env = {**os.environ, **env} if env else None

    def key(self, what):
        """A key of this contestant's own: each keeps other data in it."""
        return f'{what}-{"".join(letter for letter in self.name if letter.isalnum())}'

    def argv(self, key, command):
        return [*self.before, key, *self.between, *command]


class Flock(Contestant):
    def __init__(self, place):
        super().__init__('flock', ['flock'])
        self.place = place

    def argv(self, key, command):
        return ['flock', f'{self.place}/{key}', *command]


class Floor(Contestant):
    """A list with one element must exist before."""

    def __init__(self, program, redis):
        super().__init__('floor', [program, str(redis.port)], redis)
        self.known = set()

    def argv(self, key, command):
        if key not in self.known:
            self.server.ask('rpush', key, 'free')
            self.known.add(key)
        return super().argv(key, command)


class Bare(Contestant):
    waits = False


def python_with_redis():
    for python in sys.executable, "/usr/bin/python3":
        if os.path.exists(python) and not subprocess.call(
            [python, "-c", "import redis"], stderr=subprocess.DEVNULL
        ):
            return python
    return None


def node_path(build):
    """Where node finds the packages that npm has installed in the build directory; None without."""
    modules = f'{build}/bench/node_modules'
    return modules if there('node') and os.path.isdir(f'{modules}/redlock') else None


def rlock(name, url, *options, program=None):
    urls = [url] if isinstance(url, str) else url
    return Contestant(
        name,
        [program or os.environ["RLOCK"], "run", *(word for one in urls for word in ("-u", one)),
         *options],
        between=["--"],
    )


def node_redlock(name, build, redises):
    ports = ','.join(str(redis.port) for redis in redises)
    return Contestant(name, ['node', f'{HERE}/lock-node-redlock.js', ports], redises[0],
                      env={'NODE_PATH': node_path(build)})


def build_commit(build, commit):
    """The program rlock of another commit, built once, with the compiler of this build."""
    source = f"{build}/bench/against/{commit}"
    if not os.path.exists(f"{source}/rlock"):
        with open(f"{build}/Makefile", encoding="utf-8") as file:
            cc = next(line.split("=", 1)[1].strip() for line in file if line.startswith("CC ="))
        os.makedirs(source, exist_ok=True)
        print(f"note: building {commit} in {source}", flush=True)
        subprocess.run(
            f"git -C {HERE}/.. archive {commit} | tar -x && autoreconf -fi && ./configure &&"
            " make rlock",
            cwd=source, env={**os.environ, "CC": cc}, shell=True, check=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
    return f"{source}/rlock"


def contestants(build, place, redis, against=None):
    """(those that can take part, notes about those that cannot)"""
    port = str(redis.port)
    lock = rlock('rlock', f'redis://127.0.0.1:{port}')
    lock.server = redis
    all_of_them = [
        Floor(f"{build}/bench/floor", redis),
        Bare("bare", [f"{build}/bench/bare", port], redis),
        Contestant("naive", [f"{build}/bench/bare", "-w", port], redis),
        Flock(place),
        lock,
    ]
    notes = []
    if against:
        other = rlock(f"rlock {against}", lock.before[3], program=build_commit(build, against))
        other.server = redis
        all_of_them.append(other)
    if there('etcd', 'etcdctl'):
        etcd = Etcd(place)
        all_of_them.append(
            Contestant(
                "etcdctl",
                ["etcdctl", "--endpoints", f"127.0.0.1:{etcd.port}", "lock"],
                etcd,
                between=["--"],
                env={"ETCDCTL_API": "3"},
            )
        )
        if os.path.exists(f"{build}/rlock-etcd"):
            over_etcd = rlock("rlock, etcd", f"etcd://127.0.0.1:{etcd.port}")
            over_etcd.server = etcd
            all_of_them.append(over_etcd)
    else:
        notes.append('etcdctl lock: left out, etcd or etcdctl is missing')
    all_of_them.append(Contestant('redis-cli', [f'{HERE}/lock-redis-cli', port], redis))
    python = python_with_redis()
    if python:
        all_of_them.append(
            Contestant("redis-py", [python, "-B", f"{HERE}/lock-redis-py", port], redis)
        )
    else:
        notes.append('redis-py: left out, no Python here has the module redis')
    if node_path(build):
        all_of_them.append(node_redlock('node-redlock', build, [redis]))
    else:
        notes.append(
            "node-redlock: left out, node or the packages redlock and ioredis are not here"
        )
    return all_of_them, notes
