"""A ZooKeeper ensemble for the chaos run."""
import itertools, os, shutil, socket
from chaos_deployments import Deployment, Proxy, Server, addresses, free_ports, until
from contenders import TOOLS

JARS = ("/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar")
JAVA = f"""-Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dzookeeper.admin.enableServer=false
    -Dzookeeper.forceSync=no -Dzookeeper.fastleader.maxNotificationInterval=1000
    -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp {":".join(JARS)}
    org.apache.zookeeper.server.quorum.QuorumPeerMain""".split()


class ZookeeperServer(Server):
    detours = ""  # the ports that it reaches elsewhere, see shim_connect.c

    def words(self):
        preload = [f"LD_PRELOAD={TOOLS}/shim_connect.so", f"SHIM_CONNECT={self.detours}"]
        return ["env", *preload, "java", *JAVA, os.path.join(self.directory, "conf")]

    def mode(self):
        """Returns "leader", "follower" or ""."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 3) as one:
                one.settimeout(3)
                one.sendall(b"srvr")
                text = b"".join(iter(lambda: one.recv(4096), b""))
        except OSError:
            return ""
        modes = [line for line in text.decode().splitlines() if line.startswith("Mode: ")]
        return modes[0][6:] if modes else ""

    def answers(self):
        return self.mode() != ""


class Zookeeper(Deployment):
    """Three servers, each of which reaches the others through proxies of its own."""

    name = "ZooKeeper, three servers"
    promise = "never two, whatever happens to them while a majority keeps its data"
    # A holder that takes one more may deadlock with another one, see rlock-stores(7).
    one_more, at_least = False, False

    def build(self):
        self.links = {}  # the proxies of each two servers
        ports = free_ports(9)
        servers = "".join(
            f"server.{i + 1}=127.0.0.1:{ports[3 + i]}:{ports[6 + i]}\n" for i in range(3)
        )
        for i in range(3):
            directory = os.path.join(self.directory, f"server{i + 1}")
            os.makedirs(os.path.join(directory, "data"))
            with open(os.path.join(directory, "data", "myid"), "w") as file:
                file.write(f"{i + 1}\n")
            with open(os.path.join(directory, "conf"), "w") as file:
                file.write(
                    "tickTime=500\nmaxSessionTimeout=60000\ninitLimit=10\nsyncLimit=2\n"
                    f"dataDir={directory}/data\nclientPort={ports[i]}\n"
                    f"clientPortAddress=127.0.0.1\n4lw.commands.whitelist=srvr\n{servers}"
                )
            self.nodes.append(ZookeeperServer(directory, ports[i]))
        self.lead_astray(ports[3:])
        for node in self.nodes:
            node.launch()
        until("the servers agree", lambda: all(node.answers() for node in self.nodes))
        self.url = "zookeeper://" + ",".join(addresses(self.nodes))

    def lead_astray(self, ports):
        """ports: for followers, then for elections."""
        for one, other in itertools.permutations(range(3), 2):
            for kind, port in (("follow", ports[other]), ("elect", ports[3 + other])):
                control = os.path.join(self.directory, f"{kind}-{one}-{other}")
                proxy = Proxy(control, "127.0.0.1:0", f"127.0.0.1:{port}")
                self.links.setdefault(frozenset((one, other)), []).append(proxy)
                self.nodes[one].detours += f" {port}={proxy.address.split(':')[1]}"

    def stop(self):
        super().stop()
        for proxy in itertools.chain(*self.links.values()):
            proxy.stop()

    def between(self, nodes, word):
        """Sends a command to the proxies between these and the others."""
        for two, proxies in self.links.items():
            if len([one for one in two if self.nodes[one] in nodes]) == 1:
                for proxy in proxies:
                    proxy.tell(word)

    def cut_off(self, nodes):
        self.between(nodes, "blackhole")
        return lambda: self.between(nodes, "pass")

    def do_cut_off_one(self, chance):
        return self.cut_off([chance.choice(self.nodes)])

    def do_cut_off_the_leader(self, _chance):
        return self.cut_off([node for node in self.nodes if node.mode() == "leader"])

    def do_stop_the_leader(self, _chance):
        return self.stand_still(*(node for node in self.nodes if node.mode() == "leader"))

    def do_stop_two(self, chance):
        return self.stand_still(*chance.sample(self.nodes, 2))


if not os.path.exists(JARS[0]) or not shutil.which("java"):
    Zookeeper.missing = "there is no ZooKeeper"

ZOOKEEPER = {"zookeeper": Zookeeper}
