"""Stores of real Redis servers for the chaos run, each with its faults and its promise; and the
parts that they share with other stores (chaos_databases.py, chaos_etcd.py,
chaos_zookeeper.py).

A timer undoes each fault after a while; heal() undoes it at once.
"""
import collections, itertools, os, random, shutil, signal, socket, subprocess, threading, time
from contenders import LEASE, TOOLS

READY = 120  # s


held = []  # sockets


def free_ports(number):
    """Returns ports that are free, as are those 10000 above, for the bus of a cluster.

    They stay bound as long as this process lives, so another chaos run does not get them before
    a server listens there, or while it is being started again. A server may do so all the same if
    it sets SO_REUSEADDR, as each does.
    """
    ports = []
    for port in random.sample(range(10000, 11000), 1000):
        pair = [socket.socket(), socket.socket()]
        try:
            for one, at in zip(pair, (port, port + 10000)):
                one.bind(("127.0.0.1", at))
        except OSError:
            continue
        for one in pair:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.extend(pair)
        ports.append(port)
        if len(ports) == number:
            return ports
    raise OSError(f"{number} ports are not free")


def addresses(nodes):
    return [f"127.0.0.1:{node.port}" for node in nodes]


def until(what, condition):
    end = time.monotonic() + READY
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"timed out: {what}")
        time.sleep(0.05)


class Server:
    """A process that serves on a port of 127.0.0.1, with a directory of its own for its data."""

    def __init__(self, directory, port):
        self.directory, self.port = directory, port
        os.makedirs(directory, exist_ok=True)

    def words(self):
        """Returns the command that starts it."""
        raise NotImplementedError

    def answers(self):
        raise NotImplementedError

    def launch(self):
        with open(os.path.join(self.directory, "log"), "a") as log:
            self.process = subprocess.Popen(
                list(map(str, self.words())), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def start(self):
        self.launch()
        until(f"{self.directory} answers", self.answers)

    def signal(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)

    def stop(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def revive(self):
        if self.process.poll() is not None:
            self.start()
        self.signal(signal.SIGCONT)


class RedisServer(Server):
    """A redis-server, or a Sentinel."""

    def __init__(self, directory, port, *options, program=("redis-server",)):
        self.program, self.options = program, options
        super().__init__(directory, port)

    def words(self):
        fixed = ["--port", self.port, "--bind", "127.0.0.1", "--dir", self.directory, "--save", ""]
        return [*self.program, *(fixed if len(self.program) == 1 else []), *self.options]

    def answers(self):
        return self.ask("ping") == "PONG"

    def ask(self, *words, seconds=3):
        """Returns the output of redis-cli, or "" if it failed."""
        words = list(map(str, ["redis-cli", "-p", self.port, *words]))
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return ""
        return done.stdout.strip()

    def forget(self):
        for name in os.listdir(self.directory):
            if name.startswith("appendonly") or name.endswith(".rdb"):
                path = os.path.join(self.directory, name)
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


class Deployment:
    """Some nodes. A fault of one is undone before the next fault of any."""

    missing = None  # the program that it needs and that is not installed
    modes, one_more, at_least = ("write", "read", "limit"), True, True
    any, decides = False, ()
    options = []  # of each rlock run
    overlap = 0  # s that two may overlap, according to the store's promise
    settings = ""  # a configuration file for all

    def __init__(self, directory):
        self.directory, self.nodes, self.proxies, self.undo = directory, [], [], None
        os.makedirs(directory)
        self.config = os.path.join(directory, "rlock.conf")
        with open(self.config, "w") as file:
            file.write(self.settings)
        try:
            self.build()
        except BaseException:
            self.stop()
            raise
        names = [name[3:].replace("_", " ") for name in dir(self) if name.startswith("do_")]
        self.disturbances = {
            name: self.disturbance("do_" + name.replace(" ", "_")) for name in names
        }

    def disturbance(self, name):
        def do(chance):
            self.heal()
            undo = getattr(self, name)(chance)
            if undo:
                self.undo = undo
                self.timer = threading.Timer(chance.uniform(0.1, 3), self.heal)
                self.timer.daemon = True
                self.timer.start()

        return do

    lock = threading.Lock()

    def heal(self):
        with self.lock:
            undo, self.undo = self.undo, None
            if undo:
                self.timer.cancel()
                undo()

    def stop(self):
        self.undo = None
        for one in self.nodes + self.proxies:
            one.stop()

    # -- faults of any server ---------------------------------------------------------------------

    def masters(self):
        return self.nodes

    @staticmethod
    def stand_still(*nodes):
        for node in nodes:
            node.signal(signal.SIGSTOP)
        return lambda: [node.signal(signal.SIGCONT) for node in nodes]

    def do_stop_server(self, chance):
        return self.stand_still(chance.choice(self.masters()))

    def do_kill_server(self, chance):
        node = chance.choice(self.masters())
        node.stop()
        return node.revive


class Proxy:
    """Leads from an address (a path or HOST:PORT, see faultproxy.c), .address, to another one."""

    program = os.path.join(TOOLS, "faultproxy")

    def __init__(self, control, listen, target):
        self.control = control
        self.process = subprocess.Popen([self.program, control, listen, target], text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.address = self.process.stdout.readline().strip()
        self.port = int(self.address.rpartition(":")[2]) if ":" in self.address else None

    def tell(self, *words):
        words = [self.program, "-s", self.control, *words]
        subprocess.run(words, stdout=subprocess.DEVNULL, check=True)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class BehindProxies(Deployment):
    """Servers behind a network that fails, at once to all of them or to one."""

    def connect(self, directory, listen, port):
        """Returns what leads to that port."""
        os.makedirs(directory, exist_ok=True)
        proxy = Proxy(os.path.join(directory, "control"), listen, f"127.0.0.1:{port}")
        self.proxies.append(proxy)
        return proxy

    def network(self, chance, *words):
        proxies = chance.choice((self.proxies, [chance.choice(self.proxies)]))
        for proxy in proxies:
            proxy.tell(*words)
        return lambda: [proxy.tell("pass") for proxy in proxies]

    def do_cut(self, chance):
        self.network(chance, "rst")

    def do_black_hole(self, chance):
        return self.network(chance, "blackhole")

    def do_lose_answers(self, chance):
        return self.network(chance, "drop", "down")

    def do_lose_requests(self, chance):
        return self.network(chance, "drop", "up")

    def do_slow(self, chance):
        return self.network(chance, "delay", chance.choice(("up", "down")),
                            str(chance.randrange(5, 300)))


# -- Redis ----------------------------------------------------------------------------------------


class Redis(BehindProxies):
    """Some servers and Sentinels."""

    any = True
    decides = "pause", "priority", "latest"

    def node(self, name, port, *options, **how):
        self.nodes.append(RedisServer(os.path.join(self.directory, name), port, *options, **how))
        self.nodes[-1].start()
        return self.nodes[-1]

    def do_double(self, chance):
        return self.network(chance, "double", str(1000 * LEASE))

    def do_flush_scripts(self, _chance):
        for node in self.masters():
            node.ask("script", "flush")

    def do_hang_up(self, _chance):
        for node in self.masters():
            for kind in ("normal", "pubsub"):
                node.ask("client", "kill", "type", kind, "skipme", "yes")

    def do_pause(self, chance):
        chance.choice(self.masters()).ask("client", "pause", chance.randrange(100, 2000))


# For one lock: repeats the message that handed it over, if its token is among those seen before,
# and publishes tokens of earlier heartbeats, and words that no script writes. Returns the waiting
# owners and their tokens, alternating.
FORGE = """
    local key, seen = KEYS[1], {}
    local function tell(owner, text) redis.call('PUBLISH', key .. ':' .. owner, text) end
    for i = 1, #ARGV, 2 do
      local owner, token = ARGV[i], ARGV[i + 1]
      local entry = redis.call('HGET', key, 'h:' .. owner) or ''
      local lease, fence, slot = string.match(entry, '^%d+ (%d+) (%d+) %S+ %d+ . (%d+)')
      local place = redis.call('HGET', key, 'w:' .. owner)
      place = place and redis.call('HGET', key, place) or ''
      if lease == '9500' then
        tell(owner, token .. ' ' .. fence .. ' ' .. slot)
      elseif place ~= '' and not string.find(place, token, 1, true) then
        tell(owner, token .. ' ' .. redis.call('HGET', key, 'f') .. ' 0')
      end
      tell(owner, 'AAAAAAAAAAAAAAAAAAAAAA 5 0')
    end
    local fields = redis.call('HGETALL', key)
    for i = 2, #fields, 2 do
      local owner, token = string.match(fields[i], '^%d+ (%S+) .* offer=([^/]+)')
      if token then
        seen[#seen + 1] = owner
        seen[#seen + 1] = token
      end
    end
    return seen
"""


class Single(Redis):
    """A server that writes each change to its disk before it answers."""

    name = "one server, with appendfsync always"
    promise = "never two, whatever happens to it while it keeps its data"

    server_options = ("--appendonly", "yes", "--appendfsync", "always")

    def build(self):
        (port,) = free_ports(1)
        self.tokens = collections.defaultdict(list)  # of each key
        self.node("server", port, *self.server_options)
        path = os.path.join(self.directory, "socket")
        self.url = "unix://" + self.connect(self.directory, path, port).address

    def do_forge_messages(self, _chance):
        """Some of these tokens are used, lost with their messages, or too old."""
        for _again in range(5):
            for key in self.nodes[0].ask("keys", "rlock:{*}").split():
                seen = self.nodes[0].ask("eval", FORGE, 1, key, *self.tokens[key][-40:])
                self.tokens[key] += seen.split()


class Forgetful(Single):
    """A server that writes nothing to its disk."""

    name = "one server that keeps nothing, with --grace"
    promise = "never two, whatever it forgets"
    settings = "grace = yes\nlease = 2s\n"
    server_options = ()

    def do_flush(self, _chance):
        self.nodes[0].ask("flushall")


class Announcing(Redis):
    """Each server announces its proxy, and so leads clients to the others. The servers' own traffic
    takes the same way, and is spared."""

    servers_host = "127.0.0.2"
    server_options = ("--bind-source-addr", servers_host)

    def announce(self, names):
        """Returns ports for servers, each behind its proxy."""
        ports = free_ports(len(names))
        for name, port in zip(names, ports):
            proxy = self.connect(os.path.join(self.directory, name), "127.0.0.1:0", port)
            proxy.tell("spare", self.servers_host)
        return ports


class Sentinels(Announcing):
    """A master, two replicas, three Sentinels."""

    name = "Sentinel"
    promise = "two for a lease at most, after a fail-over that lost what the replica had not got"
    overlap = 2
    server_options = (*Announcing.server_options, "--repl-diskless-sync-delay", "0",
                      "--appendonly", "yes")

    def build(self):
        names = [f"{kind}{i}" for kind in ("server", "sentinel") for i in range(3)]
        ports, proxies = self.announce(names), self.proxies
        for i in range(3):
            follows = ("--replicaof", "127.0.0.1", proxies[0].port) if i else ()
            announces = "--replica-announce-ip", "127.0.0.1", "--replica-announce-port"
            self.node(names[i], ports[i], *announces, proxies[i].port, *follows,
                      *self.server_options)
        for i in range(3, 6):
            directory = os.path.join(self.directory, names[i])
            path = directory + ".conf"
            with open(path, "w") as file:
                file.write(
                    f"port {ports[i]}\nbind 127.0.0.1\ndir {directory}\n"
                    f"bind-source-addr {self.servers_host}\n"
                    f"sentinel announce-ip 127.0.0.1\nsentinel announce-port {proxies[i].port}\n"
                    f"sentinel monitor m 127.0.0.1 {proxies[0].port} 2\n"
                    "sentinel down-after-milliseconds m 700\nsentinel failover-timeout m 2000\n"
                )
            self.node(names[i], ports[i], program=("redis-server", path, "--sentinel"))
        self.servers, self.sentinels = self.nodes[:3], self.nodes[3:]
        until("Sentinels agree", self.settled)
        self.url = f"sentinel://{','.join(proxy.address for proxy in proxies[3:])}/m"

    def settled(self):
        return all("num-other-sentinels\n2" in text and "num-slaves\n2" in text
                   for text in (node.ask("sentinel", "master", "m") for node in self.sentinels))

    def masters(self):
        answer = self.sentinels[0].ask("sentinel", "get-master-addr-by-name", "m").split()
        port = int(answer[1]) if len(answer) == 2 else 0
        there = [proxy.port == port for proxy in self.proxies[:3]]
        return list(itertools.compress(self.servers, there)) or self.servers[:1]

    def do_fail_over(self, chance):
        chance.choice(self.sentinels).ask("sentinel", "failover", "m")

    def do_stop_a_sentinel(self, chance):
        return self.stand_still(chance.choice(self.sentinels[1:]))


class Replicas(Sentinels):
    """The same, and a renewal counts only if a replica has it."""

    name = "Sentinel, with --replicas 1 and --grace"
    promise = "never two, whoever takes over"
    overlap = 0
    settings = "grace = yes\nlease = 2s\nreplicas = 1\n"


class Cluster(Announcing):
    """Three masters, each with a replica."""

    name = "Cluster"
    any = False
    promise = "two for a lease at most, after a fail-over that lost what the replica had not got"
    overlap = 2
    server_options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "1000",
                      *Sentinels.server_options)

    def build(self):
        names = [f"node{i}" for i in range(6)]
        ports, proxies = self.announce(names), self.proxies
        for name, port, proxy in zip(names, ports, proxies):
            announces = ("--cluster-announce-ip", "127.0.0.1", "--cluster-announce-port",
                         proxy.port, "--cluster-announce-bus-port", port + 10000)
            self.node(name, port, *announces, *self.server_options)
        words = ["redis-cli", "--cluster", "create", *addresses(self.nodes)]
        words += ["--cluster-replicas", "1", "--cluster-yes"]
        with open(os.path.join(self.directory, "create.log"), "w") as log:
            subprocess.run(words, stdout=log, stderr=log, timeout=READY, check=True)
        until("the cluster is up", lambda: self.saying("cluster_state:ok", "cluster", "info") == 6)
        follows = "master_link_status:up"
        until("replicas follow", lambda: self.saying(follows, "info", "replication") == 3)
        self.url = "cluster://" + ",".join(proxy.address for proxy in proxies[:3])

    def saying(self, text, *words):
        """Returns how many nodes answer with that text."""
        return sum(text in node.ask(*words) for node in self.nodes)

    def of_role(self, role):
        return [node for node in self.nodes if node.ask("role", seconds=1).startswith(role)]

    def masters(self):
        return self.of_role("master") or self.nodes

    def do_fail_over(self, chance):
        replicas = self.of_role("slave")
        if replicas:
            chance.choice(replicas).ask("cluster", "failover")


class Quorum(Redis):
    """Five independent servers."""

    name = "a quorum of five"
    promise = "never two, while no more than two of the five forget or fail"
    decides = ()
    any = False
    modes = ("write",)

    def build(self):
        for i, port in enumerate(free_ports(5)):
            node = self.node(f"server{i}", port, "--appendonly", "yes", "--appendfsync", "always")
            self.connect(node.directory, "127.0.0.1:0", port)
        self.url = " ".join(f"redis://{proxy.address}" for proxy in self.proxies)

    def do_stop_two(self, chance):
        return self.stand_still(*chance.sample(self.nodes, 2))

    def do_restart_empty(self, chance):
        node = chance.choice(self.nodes)
        node.stop()
        node.forget()
        return node.revive


REDIS = {"server": Single, "forgetful": Forgetful, "sentinel": Sentinels, "replicas": Replicas,
         "cluster": Cluster, "quorum": Quorum}
