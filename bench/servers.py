"""The servers that a benchmark needs: private ones, in memory, on free ports of the loopback."""
import os
import shutil
import signal
import socket
import subprocess

from crowd import until


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(('127.0.0.1', port)) == 0


class Server:
    """A server process."""

    def __init__(self, argv, port, place):
        self.port = port
        with open(f"{place}/log", "wb") as log:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=place
            )
        if (
            not until(lambda: listens(port) or self.process.poll() is not None)
            or self.process.poll() is not None
        ):
            with open(f"{place}/log", encoding="utf-8") as log:
                raise OSError(f"{argv[0]} did not start: {log.read()}")

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Redis(Server):
    def __init__(self, place, *options):
        port = free_port()
        os.makedirs(f"{place}/{port}")
        super().__init__(
            ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", *options],
            port,
            f"{place}/{port}",
        )

    def ask(self, *words):
        """The answer to one command, as redis-cli prints it."""
        return subprocess.run(['redis-cli', '-p', str(self.port), *words], check=True, text=True,
                              capture_output=True).stdout

    def fields(self, section):
        """A section of INFO."""
        return dict(
            line.split(":", 1) for line in self.ask("info", section).splitlines() if ":" in line
        )

    def memory(self):
        return int(self.fields("memory")["used_memory"])

    def requests(self):
        """How many it has read. (Its count of commands has those that scripts call, too; and that
        of reads the ends of connections.)"""
        seen = self.fields("all")
        ended = int(seen["total_connections_received"]) - int(seen["connected_clients"])
        return int(seen["total_reads_processed"]) - ended


class Proxy(Server):
    """A slow way to a server. Connections are accepted at once."""

    def __init__(self, build, place, server):
        self.program, self.control, self.server = f"{build}/tests/faultproxy", f"{place}/c", server
        port = free_port()
        super().__init__(
            [self.program, self.control, f"127.0.0.1:{port}", f"127.0.0.1:{server.port}"],
            port,
            place,
        )

    def delay(self, milliseconds):
        """Each way."""
        for direction in "up", "down":
            subprocess.run(
                [self.program, "-s", self.control, "delay", direction, str(milliseconds)],
                check=True,
                stdout=subprocess.DEVNULL,
            )

    def through(self, argv):
        """A command line that goes this way instead of straight to the server."""
        return [word.replace(str(self.server.port), str(self.port)) for word in argv]


class Etcd(Server):
    def __init__(self, place):
        port, peers = free_port(), free_port()
        os.makedirs(f"{place}/{port}")
        super().__init__(
            [
                "etcd",
                "--data-dir",
                "data",
                "--log-level",
                "error",
                "--listen-client-urls",
                f"http://127.0.0.1:{port}",
                "--advertise-client-urls",
                f"http://127.0.0.1:{port}",
                "--listen-peer-urls",
                f"http://127.0.0.1:{peers}",
            ],
            port,
            f"{place}/{port}",
        )


def there(*programs):
    return all(shutil.which(program) for program in programs)
