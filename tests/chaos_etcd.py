"""An etcd cluster for the chaos run."""
import json, os, shutil, urllib.request
from chaos_deployments import BehindProxies, Proxy, Server, free_ports, until
from contenders import LEASE, RLOCK


class EtcdServer(Server):
    options = ()

    def words(self):
        return ["etcd", "--data-dir", os.path.join(self.directory, "data"), *self.options]

    def ask(self, path, body=None):
        """Returns what it answers, or nothing."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", body, 3) as reply:
                return json.load(reply)
        except (OSError, ValueError):
            return {}

    def answers(self):
        return "etcdserver" in self.ask("/version")

    def leads(self):
        status = self.ask("/v3/maintenance/status", b"{}")
        return status.get("leader") == status.get("header", {}).get("member_id", 0)


class Etcd(BehindProxies):
    """Three members, which clients and the other members reach through proxies. A message
    of one member to another takes the way by the proxy of the former."""

    name = "etcd, three members"
    promise = "never two, whatever happens to them while a majority keeps its data"
    any = True
    decides = "pause", "priority", "latest"

    def build(self):
        self.links = []
        clients, peers = free_ports(3), free_ports(3)
        for i in range(3):
            directory = os.path.join(self.directory, f"member{i}")
            self.nodes.append(EtcdServer(directory, clients[i]))
            self.connect(directory, "127.0.0.1:0", clients[i])
            control = os.path.join(directory, "link")
            self.links.append(Proxy(control, "127.0.0.1:0", f"127.0.0.1:{peers[i]}"))
        cluster = ",".join(f"m{i}=http://{link.address}" for i, link in enumerate(self.links))
        for i, node in enumerate(self.nodes):
            node.options = (
                f"--name=m{i}", f"--initial-cluster={cluster}", "--unsafe-no-fsync",
                f"--listen-peer-urls=http://127.0.0.1:{peers[i]}",
                f"--initial-advertise-peer-urls=http://{self.links[i].address}",
                f"--listen-client-urls=http://127.0.0.1:{clients[i]}",
                f"--advertise-client-urls=http://127.0.0.1:{clients[i]}",
            )
            node.launch()
        until("the members agree", lambda: any(node.leads() for node in self.nodes))
        self.url = "etcd://" + ",".join(proxy.address for proxy in self.proxies)

    def stop(self):
        super().stop()
        for link in self.links:
            link.stop()

    def do_double(self, chance):
        return self.network(chance, "double", str(1000 * LEASE))

    def silence(self, links):
        for link in links:
            link.tell("blackhole")
        return lambda: [link.tell("pass") for link in links]

    def do_silence_one(self, chance):
        return self.silence([chance.choice(self.links)])

    def do_silence_all(self, _chance):
        return self.silence(self.links)

    def do_silence_the_leader(self, _chance):
        return self.silence([link for node, link in zip(self.nodes, self.links) if node.leads()])

    def do_stop_the_leader(self, _chance):
        return self.stand_still(*(node for node in self.nodes if node.leads()))

    def do_stop_two(self, chance):
        return self.stand_still(*chance.sample(self.nodes, 2))


if not (shutil.which("etcd") and os.path.exists(RLOCK.removesuffix("rlock") + "rlock-etcd")):
    Etcd.missing = "there is no etcd here, or not rlock-etcd"

ETCD = {"etcd": Etcd}
