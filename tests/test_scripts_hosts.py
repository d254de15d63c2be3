#!/usr/bin/env python3
"""The scripts of src/rules in a host (src/host): their own tests, with its records in memory, and
in etcd; or in the stores in RLOCK_SCRIPT_STORES, also postgresql and mariadb. Prints TAP."""
import os, re, shutil, signal, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = os.path.abspath(os.environ.get("RLOCK_TEST_TOOLS", "tests"))
PROGRAMS = {
    "memory": "script-host", "postgresql": "script-host-postgresql",
    "mariadb": "script-host-mysql", "etcd": "script-host-etcd",
}
FILES = """test_scripts test_scripts_any test_scripts_ask test_scripts_far test_scripts_grace
    test_scripts_handover test_scripts_latch test_scripts_latest
    test_scripts_memory test_scripts_mirror test_scripts_model test_scripts_modes
    test_scripts_pauses test_scripts_priority test_scripts_refuse""".split()
# The others are about what the scripts decide, wherever the records are.
FILES_IN_ETCD = ["test_scripts_model", "test_scripts_any"]


def start_etcd():
    from chaos_deployments import free_ports
    from chaos_etcd import EtcdServer

    if not shutil.which("etcd"):
        return None, None
    directory = tempfile.mkdtemp(prefix="rlock-scripts-")
    port, peer = free_ports(2)
    server = EtcdServer(directory, port)
    server.options = (
        "--unsafe-no-fsync", f"--listen-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-cluster=default=http://127.0.0.1:{peer}",
        f"--listen-client-urls=http://127.0.0.1:{port}",
        f"--advertise-client-urls=http://127.0.0.1:{port}",
    )
    server.start()

    def stop():
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)

    return f"127.0.0.1 {port} - - -", stop


def start(store):
    """Starts a server; where its records are, and how it is stopped. None: it is not here."""
    from chaos_databases import DatabaseServer, missing
    from chaos_deployments import free_ports

    if store == "etcd":
        return start_etcd()
    name = "mysql" if store == "mariadb" else store
    if missing(name):
        return None, None
    directory = tempfile.mkdtemp(prefix="rlock-scripts-")
    server = DatabaseServer(name, directory, free_ports(1)[0])
    server.make()
    server.start()
    server.make_users()

    def stop():
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)

    host = server.directory if store == "postgresql" else "127.0.0.1"
    return f"{host} {server.port} locker p locks", stop


def run(store, file, environment):
    """Its tests as (good, what, comments)."""
    done = subprocess.run(
        [sys.executable, "-B", os.path.join(HERE, file + ".py")], env=environment,
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )
    results, plan = [], 0
    for line in done.stdout.splitlines():
        if match := re.match(r"(ok|not ok) \d+ - (.*)", line):
            results.append((match[1] == "ok", f"{store}: {match[2]}", []))
        elif match := re.match(r"1\.\.(\d+)", line):
            plan = int(match[1])
        elif results:
            results[-1][2].append(line)
    if len(results) != plan or plan == 0 or (done.returncode == 0) != all(r[0] for r in results):
        tail = (done.stdout + done.stderr).splitlines()[-20:]
        results.append((False, f"{store}: {file} ran to its end", ["# " + line for line in tail]))
    return results


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if not os.path.exists(os.path.join(TOOLS, PROGRAMS["memory"])):
        print("1..0 # SKIP the hosts were not built: they take Lua 5.1, and a database's library")
        return 0
    count, failed = 0, 0
    for store in os.environ.get("RLOCK_SCRIPT_STORES", "memory etcd").split():
        program = os.path.join(TOOLS, PROGRAMS[store])
        where, stop = ("", None)
        if store != "memory":
            where, stop = start(store) if os.path.exists(program) else (None, None)
        if where is None:
            print(f"# {store} is not here")
            continue
        environment = {
            **os.environ, "RLOCK_SCRIPT_SERVER": program, "RLOCK_SCRIPT_STORE": where,
            # Chance has searched the scripts over Redis; a host only keeps their records.
            "RLOCK_OPERATIONS": os.environ.get("RLOCK_OPERATIONS") or "2000",
        }
        try:
            for file in FILES_IN_ETCD if store == "etcd" else FILES:
                for good, what, comments in run(store, file, environment):
                    count += 1
                    failed += not good
                    print(f"{'ok' if good else 'not ok'} {count} - {what}")
                    print("".join(line + "\n" for line in comments if not good), end="", flush=True)
        finally:
            if stop:
                stop()
    print(f"1..{count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
