"""PostgreSQL and MariaDB for the chaos run, each behind a network that fails."""
import glob, os, shutil, signal, subprocess
from chaos_deployments import BehindProxy, Server, free_ports, until
from contenders import RLOCK, descendants, send

BIN = max(glob.glob("/usr/lib/postgresql/*/bin"), default="")
# PostgreSQL refuses to run as root.
AS_USER = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def as_user(*words):
    return [*(AS_USER if os.geteuid() == 0 else ()), *words]


def run(*words, **how):
    return subprocess.run(
        list(map(str, words)), stdin=subprocess.DEVNULL, capture_output=True, text=True, **how
    )


class DatabaseServer(Server):
    """The processes of a server, which share its faults."""

    def __init__(self, directory, port):
        super().__init__(directory, port)
        self.data = os.path.join(directory, "data")
        if os.geteuid() == 0:
            shutil.chown(directory, "nobody", "nogroup")
            for path in (os.path.dirname(directory), os.path.dirname(os.path.dirname(directory))):
                os.chmod(path, 0o711)

    def sql(self, text, database):
        """Runs it as an administrator, and returns its output."""
        raise NotImplementedError

    def answers(self):
        return self.sql("SELECT 1", self.administration) == "1"

    def signal(self, number):
        for pid, _name in descendants(self.process.pid):
            send(pid, number)

    def stop(self):
        pids = [pid for pid, _name in descendants(self.process.pid)]
        self.signal(signal.SIGKILL)
        self.process.wait()
        until("its processes have ended", lambda: all(map(is_gone, pids)))


class PostgresqlServer(DatabaseServer):
    administration = "postgres"

    def make(self):
        words = as_user(f"{BIN}/initdb", "-D", self.data, "-U", "root", "-A", "trust", "--no-sync")
        run(*words, check=True)

    def words(self):
        settings = ("listen_addresses=127.0.0.1", "shared_buffers=4MB", "fsync=off")
        options = [word for setting in settings for word in ("-c", setting)]
        return as_user(
            f"{BIN}/postgres", "-D", self.data, "-k", self.directory, "-p", self.port, *options
        )

    def sql(self, text, database):
        where = ("-h", self.directory, "-p", self.port, "-U", "root", "-d", database)
        return run("psql", "-qAt", *where, "-c", text).stdout.strip()

    def make_users(self):
        self.sql("CREATE ROLE locker LOGIN", "postgres")
        self.sql("CREATE DATABASE locks OWNER locker", "postgres")


class MysqlServer(DatabaseServer):
    administration = "mysql"

    def make(self):
        words = as_user("mariadb-install-db", "--no-defaults", f"--datadir={self.data}")
        words += [f"--tmpdir={self.directory}", "--skip-test-db"]
        run(*words, "--auth-root-authentication-method=normal", check=True)

    def words(self):
        text = f"""--no-defaults --datadir={self.data} --tmpdir={self.directory}
            --socket={self.directory}/sock --pid-file={self.directory}/pid --port={self.port}
            --bind-address=127.0.0.1 --skip-name-resolve --innodb-buffer-pool-size=16M
            --innodb-log-file-size=8M --innodb-flush-log-at-trx-commit=2 --performance-schema=off"""
        return as_user("mariadbd", *text.split())

    def sql(self, text, database):
        where = ("-N", "-S", f"{self.directory}/sock", "-u", "root", database)
        return run("mariadb", "--no-defaults", *where, "-e", text).stdout.strip()

    def make_users(self):
        self.sql("CREATE DATABASE locks", "mysql")
        self.sql("CREATE USER locker@'%' IDENTIFIED BY 'p'", "mysql")
        self.sql(
            "GRANT CREATE, SELECT, INSERT, UPDATE, DELETE ON locks.* TO locker@'%'", "mysql"
        )


class Database(BehindProxy):
    """A server that writes each change to its disk before it answers."""

    promise = "never two, whatever happens to it while it keeps its data"
    options = ["--keep-credentials"]  # for nested ones

    def build(self):
        port, outside = free_ports(2)
        server = self.server(os.path.join(self.directory, "server"), port)
        server.make()
        server.start()
        self.nodes.append(server)
        server.make_users()
        self.connect(f"127.0.0.1:{outside}", port)
        self.url = f"{self.scheme}://locker:p@127.0.0.1:{outside}/locks"
        run(RLOCK, "init", "--url", self.url, "--config", "/dev/null", check=True)

    def do_hang_up(self, _chance):
        self.nodes[0].sql(self.hang_up, "locks")


class Postgresql(Database):
    name, scheme, server = "PostgreSQL", "postgresql", PostgresqlServer
    hang_up = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'locker'"


class Mysql(Database):
    name, scheme, server = "MariaDB", "mysql", MysqlServer
    hang_up = "KILL HARD USER locker"


def missing(program, *programs):
    driver = os.path.join(os.path.dirname(RLOCK), program)
    lacking = [one for one in (driver, *programs) if not shutil.which(one)]
    return f"there is no {lacking[0]}" if lacking else None


Postgresql.missing = missing("rlock-postgresql", f"{BIN}/initdb", "psql")
Mysql.missing = missing("rlock-mysql", "mariadbd", "mariadb-install-db", "mariadb")

DATABASES = {"postgresql": Postgresql, "mysql": Mysql}
