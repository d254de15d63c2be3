"""Runs that nobody disturbs: what a lock costs when it is free."""
import os
import subprocess

from contestants import Contestant, node_path, node_redlock, rlock
from crowd import run, until
from servers import Redis, Server, free_port, there

TRUE = ['/bin/true']
ENOUGH = 20    # seconds for all runs of one entry


def compare(samples, measure, entries, rounds, more=()):
    """Runs all entries (name, parameter, contestant) in turn, each round beginning with another one."""
    able = []
    for entry in entries:
        try:
            who = entry[2]
            subprocess.run(['timeout', '-k1', '10', *who.argv(who.key('warm'), TRUE)], check=True, env=who.env, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
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
            for what, value in (('processor', (usage.ru_utime + usage.ru_stime) * 1e3), ('faults', usage.ru_minflt),
                                ('switches', usage.ru_nvcsw)):
                if what in more:
                    samples.add(what, name, at, value)


def uncontended(samples, everyone, rounds):
    class Nothing(Contestant):
        def argv(self, key, command):
            return command
    compare(samples, 'run', [(who.name, '', who) for who in [Nothing('no lock', []), *everyone]], rounds,
            ('processor', 'faults', 'switches'))


def round_trips(samples, build, place, redis, everyone):
    """How much longer a run takes per millisecond that the way to the server and back has more."""
    control, way = f'{place}/control', free_port()
    proxy = Server([f'{build}/tests/faultproxy', control, f'127.0.0.1:{way}', f'127.0.0.1:{redis.port}'], way, place)
    try:
        for who in everyone:
            if who.server is not redis:
                continue
            argv = [word.replace(str(redis.port), str(way)) for word in who.argv(who.key('far'), TRUE)]
            seconds = {}
            for delay in 0, 50:
                for direction in 'up', 'down':
                    subprocess.run([f'{build}/tests/faultproxy', '-s', control, 'delay', direction, str(delay)],
                                   check=True, stdout=subprocess.DEVNULL)
                seconds[delay] = min(run(argv, who.env)[0] for _ in range(7))
            samples.add('round trips', who.name, '', (seconds[50] - seconds[0]) / .100)
    finally:
        proxy.stop()


def tls_server(place):
    """A server that speaks TLS, with a certificate of its own."""
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'key', '-out', 'cert',
                    '-days', '1', '-subj', '/CN=bench', '-addext', 'subjectAltName=IP:127.0.0.1'],
                   cwd=place, check=True, stderr=subprocess.DEVNULL)
    port = free_port()
    return port, Redis(place, '--tls-port', str(port), '--tls-cert-file', f'{place}/cert', '--tls-key-file',
                       f'{place}/key', '--tls-auth-clients', 'no')


def stores(samples, build, place, rounds):
    nodes = [Redis(place, '--unixsocket', f'{place}/socket{i}', '--repl-diskless-sync-delay', '0') for i in range(5)]
    replicas = [Redis(place, '--replicaof', '127.0.0.1', str(nodes[0].port)) for _ in range(2)]
    started = nodes + replicas
    try:
        until(lambda: nodes[0].ask('info', 'replication').count('state=online') == 2)
        urls = [f'redis://127.0.0.1:{node.port}' for node in nodes]
        entries = [('rlock, Unix socket', '', rlock('', f'unix://{place}/socket0')),
                   ('rlock, TCP', '', rlock('', urls[0])),
                   ('rlock, --replicas 1', '', rlock('', urls[0], '--replicas', '1')),
                   ('rlock, --replicas 2', '', rlock('', urls[0], '--replicas', '2')),
                   ('rlock, 3 nodes', '', rlock('', urls[:3])),
                   ('rlock, 5 nodes', '', rlock('', urls))]
        if there('openssl'):
            port, server = tls_server(place)
            started.append(server)
            entries.insert(2, ('rlock, TLS', '', rlock('', f'rediss://127.0.0.1:{port}', '--tls-ca', f'{place}/cert')))
        if node_path(build):
            entries += [(f'node-redlock, {n} node{"s" * (n > 1)}', '', node_redlock('', build, nodes[:n])) for n in (1, 3, 5)]
        compare(samples, 'stores', entries, rounds)
        nodes[4].pause()
        hung = [('rlock, 5 nodes, one hangs', '', rlock('', urls))]
        if node_path(build):
            hung.append(('node-redlock, 5 nodes, one hangs', '', node_redlock('', build, nodes)))
        compare(samples, 'stores', hung, rounds)
        nodes[4].stop()
        compare(samples, 'stores', [(name.replace('hangs', 'down'), at, who) for name, at, who in hung], rounds)
    finally:
        for server in started:
            server.stop()


def growth(samples, place, rounds):
    """rlock with more keys, and beside more readers."""
    redis = Redis(place)
    url = f'redis://127.0.0.1:{redis.port}'
    try:
        compare(samples, 'keys', [('rlock', n, rlock('', url, *(f'k{i}' for i in range(n - 1)))) for n in (1, 2, 5, 10, 20)],
                rounds)
        reading = 0
        for readers in 0, 10, 100, 1000:
            for _ in range(readers - reading):
                run([os.environ['RLOCK'], 'acquire', '-u', url, '--read', '--lease', '1h', 'read'])
            reading = readers
            for _ in range(rounds):
                seconds, _ = run(rlock('', url, '--read').argv('read', TRUE))
                samples.add('readers', 'rlock', readers, seconds * 1e3)
    finally:
        redis.stop()
