"""A ZooKeeper ensemble for the chaos run."""
import os, shutil, socket
from chaos_deployments import Deployment, Server, free_ports, until

JARS = ("/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar")


class ZookeeperServer(Server):
    def words(self):
        return [
            "java",
            "-Xmx128m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Dzookeeper.admin.enableServer=false",
            "-Dzookeeper.forceSync=no",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-cp",
            ":".join(JARS),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            os.path.join(self.directory, "conf"),
        ]

    def mode(self):
        """leader, follower, or nothing."""
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
    """Three servers."""

    name = "ZooKeeper, three servers"
    promise = "never two, whatever happens to them while a majority keeps its data"
    # Who takes one more may wait for somebody who waits for what it has, see rlock(7).
    one_more, at_least = False, False

    def build(self):
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
                    "tickTime=500\nmaxSessionTimeout=60000\ninitLimit=10\nsyncLimit=5\n"
                    f"dataDir={directory}/data\nclientPort={ports[i]}\n"
                    f"clientPortAddress=127.0.0.1\n4lw.commands.whitelist=srvr\n{servers}"
                )
            self.nodes.append(ZookeeperServer(directory, ports[i]))
            self.nodes[-1].launch()
        until("the servers agree", lambda: all(node.answers() for node in self.nodes))
        self.url = "zookeeper://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def do_stop_the_leader(self, _chance):
        return self.stand_still(*(node for node in self.nodes if node.mode() == "leader"))

    def do_stop_two(self, chance):
        return self.stand_still(*chance.sample(self.nodes, 2))


if not os.path.exists(JARS[0]) or not shutil.which("java"):
    Zookeeper.missing = "there is no ZooKeeper"

ZOOKEEPER = {"zookeeper": Zookeeper}
