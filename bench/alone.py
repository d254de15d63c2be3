"""Undisturbed runs: the cost of a lock that is free."""
import itertools
import os
import subprocess

from contestants import Contestant, node_path, node_redlock, rlock
from crowd import run, until
from servers import Proxy, Redis, free_port, there

TRUE = ['/bin/true']
ENOUGH = 20    # seconds for all runs of one entry


def compare(samples, measure, entries, rounds, more=()):
    """Runs all entries (name, parameter, contestant) in turn, each round beginning with another
    one."""
    able = []
    for entry in entries:
        try:
            who = entry[2]
            subprocess.run(
                ["timeout", "-k1", "10", *who.argv(who.key("warm"), TRUE)],
                check=True,
                env=who.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            able.append(entry)
        except subprocess.CalledProcessError as fault:
            why = (fault.stderr.strip().splitlines() or ['not done after 10 s'])[0]
            samples.note(f'{measure}: {entry[0]} {entry[1]}: left out: {why}')
    spent = dict.fromkeys(able, 0)
    for number in range(rounds if able else 0):
        turn = number % len(able)
        for entry in able[turn:] + able[:turn]:
            name, at, who = entry
            if spent[entry] > ENOUGH:
                continue
            seconds, usage = run(who.argv(who.key('alone'), TRUE), who.env)
            spent[entry] += seconds
            samples.add(measure, name, at, seconds * 1e3)
            for what, value in (
                ("processor", (usage.ru_utime + usage.ru_stime) * 1e3),
                ("faults", usage.ru_minflt),
                ("switches", usage.ru_nvcsw),
            ):
                if what in more:
                    samples.add(what, name, at, value)


def uncontended(samples, everyone, rounds):
    class Nothing(Contestant):
        def argv(self, key, command):
            return command

    compare(
        samples,
        "run",
        [(who.name, "", who) for who in [Nothing("no lock", []), *everyone]],
        rounds,
        ("processor", "faults", "switches"),
    )


def round_trips(samples, build, place, redis, everyone):
    """How much longer a run takes per millisecond that the way to the server and back has more."""
    proxy = Proxy(build, place, redis)
    try:
        for who in everyone:
            if who.server is not redis:
                continue
            argv = proxy.through(who.argv(who.key("far"), TRUE))
            seconds = {}
            for delay in 0, 40:
                proxy.delay(delay)
                seconds[delay] = min(run(argv, who.env)[0] for _ in range(7))
            samples.add("round trips", who.name, "", (seconds[40] - seconds[0]) / 0.080)
    finally:
        proxy.stop()


def tls_server(place):
    """A server that speaks TLS, with a certificate of its own."""
    subprocess.run(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key"
        " -out cert -days 1 -subj /CN=bench -addext subjectAltName=IP:127.0.0.1".split(),
        cwd=place,
        check=True,
        stderr=subprocess.DEVNULL,
    )
    port = free_port()
    return port, Redis(
        place,
        "--tls-port",
        str(port),
        "--tls-cert-file",
        f"{place}/cert",
        "--tls-key-file",
        f"{place}/key",
        "--tls-auth-clients",
        "no",
    )


def stores(samples, build, place, rounds):
    states = "", ", one hangs", ", one down"
    nodes = {
        state: [
            Redis(
                place,
                "--repl-diskless-sync-delay",
                "0",
                "--unixsocket",
                f"{place}/{state}{i}.socket",
            )
            for i in range(5)
        ]
        for state in states
    }
    well = nodes[""]
    replicas = [Redis(place, "--replicaof", "127.0.0.1", str(well[0].port)) for _ in range(2)]
    started = [*itertools.chain(*nodes.values()), *replicas]
    try:
        until(lambda: well[0].ask("info", "replication").count("state=online") == 2)
        urls = {
            state: [f"redis://127.0.0.1:{node.port}" for node in nodes[state]] for state in states
        }
        url = urls[""][0]
        entries = [
            ("rlock, Unix socket", rlock("", f"unix://{place}/0.socket")),
            ("rlock, TCP", rlock("", url)),
        ]
        if there("openssl"):
            port, server = tls_server(place)
            started.append(server)
            entries.append(
                ("rlock, TLS", rlock("", f"rediss://127.0.0.1:{port}", "--tls-ca", f"{place}/cert"))
            )
        entries += [
            (f"rlock, --replicas {n}", rlock("", url, "--replicas", str(n))) for n in (1, 2)
        ]
        entries += [("rlock, 3 nodes", rlock("", urls[""][:3]))]
        entries += [(f"rlock, 5 nodes{state}", rlock("", urls[state])) for state in states]
        if node_path(build):
            entries += [
                (f'node-redlock, {n} node{"s" * (n > 1)}', node_redlock("", build, well[:n]))
                for n in (1, 3)
            ]
            entries += [
                (f"node-redlock, 5 nodes{state}", node_redlock("", build, nodes[state]))
                for state in states
            ]
        nodes[", one hangs"][4].pause()
        nodes[", one down"][4].stop()
        compare(samples, "stores", [(name, "", who) for name, who in entries], rounds)
    finally:
        for server in started:
            server.stop()


class Reader(Contestant):
    """One more reader of a key that many others read."""

    def __init__(self, url, others):
        super().__init__(
            "", [os.environ["RLOCK"], "run", "-u", url, "--read", f"read-by-{others}", "--"]
        )
        for _ in range(others):
            run(
                [
                    os.environ["RLOCK"],
                    "acquire",
                    "-u",
                    url,
                    "--read",
                    "--lease",
                    "1h",
                    f"read-by-{others}",
                ]
            )

    def argv(self, key, command):
        return [*self.before, *command]


def growth(samples, place, rounds):
    """rlock with more keys, and beside more readers."""
    redis = Redis(place)
    url = f'redis://127.0.0.1:{redis.port}'
    try:
        compare(
            samples,
            "keys",
            [
                ("rlock", n, rlock("", url, *(f"k{i}" for i in range(n - 1))))
                for n in (1, 2, 5, 10, 20)
            ],
            rounds,
        )
        compare(
            samples,
            "readers",
            [("rlock", others, Reader(url, others)) for others in (0, 10, 100, 1000)],
            rounds,
        )
    finally:
        redis.stop()
