"""PostgreSQL and MariaDB for the chaos run, each behind a network that fails."""
import os, signal, subprocess
from chaos_deployments import BehindProxies, Server, free_ports, until
from contenders import RLOCK, descendants, send

# bash -c CALL databases.bash FUNCTION ARGUMENT...
CALL = 'load() { :; }; . "$0"; "$@"'
FUNCTIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "databases.bash")


def state(pid):
    """Returns the letter of /proc/PID/stat, which is Z as well once its entry is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def run(*words, **how):
    return subprocess.run(
        list(map(str, words)), stdin=subprocess.DEVNULL, capture_output=True, text=True, **how
    )


def shell(*words, **environment):
    """A call of a function of databases.bash."""
    given = [f"{name}={value}" for name, value in {"RLOCK": RLOCK, **environment}.items()]
    return ["env", *given, "bash", "-c", CALL, FUNCTIONS, *words]


class DatabaseServer(Server):
    """The processes of a server "postgresql" or "mysql", which share its faults. Its directory is
    "above", and its name."""

    def __init__(self, name, above, port):
        super().__init__(os.path.join(above, name), port)
        self.name, self.above = name, above
        if os.geteuid() == 0:
            for path in (above, os.path.dirname(above)):
                os.chmod(path, os.stat(path).st_mode | 0o011)

    def shell(self, function, *words):
        return shell(function, self.name, *words, BATS_FILE_TMPDIR=self.above,
                     POSTGRESQL_PORT=self.port, MYSQL_PORT=self.port)

    def make(self):
        run(*self.shell("database_make"), check=True)

    def words(self):
        return self.shell("database_run")

    def answers(self):
        return run(*self.shell("database_answers")).returncode == 0

    def make_users(self):
        run(*self.shell("database_users", "p"), check=True)

    def pids(self):
        return [pid for pid, _name in descendants(self.process.pid)]

    def signal(self, number):
        for pid in self.pids():
            send(pid, number)

    def stop(self):
        """The first process stands still before they are counted: one that it forked meanwhile
        would keep the shared memory, beside which PostgreSQL does not start."""
        first = self.process.pid
        send(first, signal.SIGSTOP)
        until("the first process stands still", lambda: state(first) in "TZ")
        pids = self.pids()
        for pid in pids:
            send(pid, signal.SIGKILL)
        self.process.wait()
        until("its processes have ended", lambda: all(state(pid) == "Z" for pid in pids))


class Database(BehindProxies):
    """A server that writes each change to its disk before it answers."""

    promise = "never two, whatever happens to it while it keeps its data"
    options = ["--keep-credentials"]  # for nested ones

    def build(self):
        port, outside = free_ports(2)
        server = DatabaseServer(self.scheme, self.directory, port)
        server.make()
        server.start()
        self.nodes.append(server)
        server.make_users()
        self.connect(self.directory, f"127.0.0.1:{outside}", port)
        self.url = f"{self.scheme}://locker:p@127.0.0.1:{outside}/locks"
        run(RLOCK, "init", "--url", self.url, "--config", "/dev/null", check=True)

    def do_hang_up(self, _chance):
        run(*self.nodes[0].shell("database_sql", self.hang_up))


class Postgresql(Database):
    name, scheme = "PostgreSQL", "postgresql"
    hang_up = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'locker'"


class Mysql(Database):
    name, scheme = "MariaDB", "mysql"
    hang_up = "KILL HARD USER locker"


def missing(name):
    here = run(*shell("database_is_here", name)).returncode == 0
    return None if here else f"there is no {name} here, or not rlock-{name}"


DATABASES = {"postgresql": Postgresql, "mysql": Mysql}
for one in DATABASES.values():
    one.missing = missing(one.scheme)
