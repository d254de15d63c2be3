#!/usr/bin/env python3
"""The scripts of src/rules in a host (src/host): their own tests, with its records in memory; with
"postgresql" in RLOCK_SCRIPT_STORES, in a PostgreSQL. Prints TAP."""
import os, re, shutil, signal, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(os.environ.get("RLOCK_TEST_TOOLS", "tests"), "script-host")
FILES = """test_scripts test_scripts_any test_scripts_ask test_scripts_grace test_scripts_handover
    test_scripts_heartbeat test_scripts_latch test_scripts_latest test_scripts_memory
    test_scripts_mirror test_scripts_model test_scripts_modes test_scripts_pauses
    test_scripts_priority test_scripts_refuse""".split()
# They are about users' rights and replicas, which a host has not.
WITHOUT = ["rights: without any channel", "a process that was a replica in between"]
# A record is written as a whole, so they take minutes in a database; and one that forgets all.
WITHOUT_IN_DATABASE = WITHOUT + ["thousands that died go all at once"]


def postgresql():
    """Starts a server; where its records are, and how it is stopped."""
    from chaos_databases import BIN, PostgresqlServer
    from chaos_deployments import free_ports

    if not os.path.exists(os.path.join(BIN, "initdb")):
        return None, None
    directory = tempfile.mkdtemp(prefix="rlock-scripts-")
    server = PostgresqlServer(os.path.join(directory, "postgresql"), free_ports(1)[0])
    server.make()
    server.start()
    server.make_users()

    def stop():
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)

    return f"{server.directory} {server.port} locker - locks rlock", stop


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
    if not os.path.exists(PROGRAM):
        print("1..0 # SKIP the hosts were not built: neither Lua 5.1 nor libpq was there")
        return 0
    count, failed = 0, 0
    for store in os.environ.get("RLOCK_SCRIPT_STORES", "memory").split():
        where, stop = postgresql() if store == "postgresql" else ("", None)
        if where is None:
            print(f"# {store} is not here")
            continue
        environment = {
            **os.environ, "RLOCK_SCRIPT_SERVER": os.path.abspath(PROGRAM),
            "RLOCK_SCRIPT_STORE": where,
            "RLOCK_SCRIPT_WITHOUT": "|".join(WITHOUT_IN_DATABASE if where else WITHOUT),
        }
        if where:
            environment["RLOCK_OPERATIONS"] = "2000"
        try:
            for file in FILES:
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
