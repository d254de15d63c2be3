#!/usr/bin/env -S python3 -B
"""docs/stability.md lists what the program has: options, statuses, variables, members of JSON,
metrics, events, schemes, layouts. Prints TAP."""
import json
import os
import re
import subprocess
import time
from contenders import RLOCK, environment
from script_tap import GIVEN, main, test

TOP = os.environ.get("top_srcdir") or os.path.join(os.path.dirname(__file__), "..")


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


PAGE = read("docs/stability.md")


def section(title):
    """Returns the text below that heading."""
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S).group(1)


def words(text):
    """Returns the words of all code spans."""
    return [word for span in re.findall(r"`([^`]+)`", text) for word in span.split()]


def rows(title):
    """Returns the rows of the tables below that heading, as lists of cells."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if not set(row[0]) <= set("-")]


def same(what, program, page):
    program, page = set(program), set(page)
    if program != page:
        raise AssertionError(
            f"{what}\n  only the program has: {sorted(program - page)}"
            f"\n  only docs/stability.md has: {sorted(page - program)}"
        )


class Store:
    """A server, and rlock with it."""

    def __init__(self, server):
        self.call, self.place, self.commands = server.call, server.directory, []
        self.environment = environment("unix://" + server.path, XDG_STATE_HOME=self.place)
        self.environment.pop("CI", None)
        server.opened.append(self)

    def run(self, *arguments, status=0, **more):
        """Runs rlock, and returns its standard output."""
        done = subprocess.run([RLOCK, *arguments], env={**self.environment, **more},
                              capture_output=True, text=True)
        if status is not None and done.returncode != status:
            raise AssertionError(f"rlock {arguments}: {done.returncode}\n{done.stderr}")
        self.error = done.stderr
        return done.stdout

    def start(self, *arguments, **more):
        command = subprocess.Popen([RLOCK, *arguments], env=self.environment, **more)
        self.commands.append(command)
        return command

    def status(self, *arguments):
        return json.loads(self.run("status", "--json", *arguments))

    def wait_for(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError("timed out")
            time.sleep(0.05)

    def close(self):
        for command in self.commands:
            command.terminate()
            command.wait()


GIVEN["store"] = Store


def options_in_help(store, *command):
    """Returns the options that begin a line of that help."""
    found = []
    for line in store.run("help", *command, status=None).splitlines():
        if re.match(r" {1,8}-[-a-zA-Z]", line):
            names = re.split(r" {2,}", line.strip())[0]
            names = re.match(r"(?:-{1,2}[A-Za-z][-a-z]*(?:, )?)+", names)
            found += re.findall(r"-{1,2}[A-Za-z][-a-z]*", names.group(0)) if names else []
    return set(found)


@test("commands and options")
def _(store):
    table = {}
    for commands, options in rows("Commands and options")[1:]:
        for command in words(commands) or [commands]:
            table[command] = set(words(options))
    common = table.pop("all")
    listed = re.findall(r"^ {2}([a-z][-a-z]+) {2,}", store.run("help"), re.M)
    same("commands", set(listed) - {"help"}, table)
    at_all = options_in_help(store, "run") | options_in_help(store, "options")
    same("options of all commands", common & at_all, common)
    for command, options in table.items():
        same(command, options_in_help(store, command) - common, options)


@test("operations of latch and local")
def _():
    sentences = dict(re.findall(r"(?:operations|those)\s+of\s+`(\w+)` are\s+([^;.]*)[;.]",
                                section("Commands and options")))
    same("commands with operations", sentences, {"latch", "local"})
    for command, operations in sentences.items():
        table = re.search(r"struct command_action \w+\[\] = \{\n(.*?)\n\};",
                          read(f"src/cmd/{command}.c"), re.S).group(1)
        same(command, re.findall(r'^ +\{(?:\.name = )?"([-a-z]+)"', table, re.M), words(operations))


@test("exit statuses")
def _():
    page = {int(word) for row in rows("Exit statuses")[1:] for word in row[0].split(", ")}
    source = read("src/run/exit_status.h")
    found = {int(number) for number in re.findall(r"STATUS_\w+ = (\d+),", source)}
    same("exit statuses", found | {2, 3}, page)


@test("variables that rlock reads")
def _():
    tables = section("Environment variables").partition("| set for |")[0]
    page = set(re.findall(r"`([A-Z_]+)`", tables))
    found = in_sources("src", r'(?:getenv\(|is_set\(|variable_text\(|\.variable = )"(\w+)"')
    found -= {"HOME", "LOGNAME", "OPENSSL_CONF", "PATH", "TERM", "USER"}  # the system's
    found -= in_sources("src/lock", r'"(\w+)"')  # those of CI services
    found.remove("RLOCK_SLOT")  # it is only unset
    same("variables", found, page)


@test("events of --notify, outcomes of --report-fd")
def _():
    events = re.search(r"`RLOCK_EVENT` is one of ([^.]*)\.", PAGE).group(1)
    names = re.search(r"event_names\[\w+\] = \{(.*?)\};", read("src/run/notifier.c"), re.S)
    same("RLOCK_EVENT", re.findall(r'"([-a-z]+)"', names.group(1)), words(events))
    outcomes = re.search(r"`--report-fd` is one of ([^.]*)\.", PAGE).group(1)
    same("outcome", in_sources("src/cmd", r'\[OUTCOME_\w+\] = "([-a-z]+)"'), words(outcomes))


@test("variables of a command, of --notify, and of --stop")
def _(store):
    table = {row[0]: set(words(row[1])) for row in rows("Environment variables")}
    place = store.place

    def seen(name):
        try:
            with open(os.path.join(place, name), encoding="utf-8") as file:
                return set(re.findall(r"^(RLOCK_\w+)=", file.read(), re.M))
        except OSError:
            return set()

    settings = {"RLOCK_URL", "RLOCK_CONFIG"}
    notify, stop = f"env >{place}/notify", f"env >{place}/stop"
    store.run("run", "--limit", "2", "env", "-c", f"env >{place}/command")
    same("the command", seen("command") - settings, table["the command"])
    store.run("run", "--lease", "10m", "--at-most", "1s", "--notify", notify, "--stop", stop,
              "env2", "--", "sleep", "600", status=124)
    store.wait_for(lambda: "RLOCK_EVENT" in seen("notify"))
    same("--notify", seen("notify") - settings, table["`--notify`"] | table["the command"]
         & seen("notify"))
    same("--stop", seen("stop") - settings - {"RLOCK_MODE", "RLOCK_OWNER", "RLOCK_LEASE_MS"},
         table["`--stop`"])


@test("keys of configuration files")
def _(store):
    keys = words(section("Configuration files").partition("An unknown key")[0])
    manual = read("man/rlock.1").partition("The keys are the long names")[2]
    manual = manual.partition("An option without")[0]
    same("the manual", re.findall(r"^\.Ql ([-a-z]+)", manual, re.M), keys)
    same("rlock config", re.findall(r"^([-a-z]+) =", store.run("config"), re.M), keys)
    path = os.path.join(store.place, "config")
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(f"{key} =\n" for key in keys) + "no-such-key = 1\n")
    store.run("status", "--config", path, status=None)
    for key in keys:
        if re.search(rf"unknown.*{key}\b", store.error):
            raise AssertionError(f"rlock does not know {key}: {store.error}")
    for key in keys:
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{key} = \x01\n")
        store.run("status", "--config", path, status=None)
        if "unknown" in store.error:
            raise AssertionError(f"rlock does not know {key}: {store.error}")


def in_sources(folder, pattern):
    """Returns the matches of the pattern in the .c files of a folder and those below it."""
    found = set()
    for place, _, names in os.walk(os.path.join(TOP, folder)):
        for name in names:
            if name.endswith(".c"):
                found |= set(re.findall(pattern, read(os.path.join(place, name))))
    return found


@test("schemes of URLs")
def _():
    found = in_sources("src/store", r'\.(?:scheme|secure|alias|secure_alias) = "([\w+]+)"')
    same("schemes", found, [word for row in rows("URLs")[1:] for word in words(" ".join(row))])


def members(table, name):
    return set(words(table[name]))


@test("the manual of each command names the members of its JSON")
def _(store):
    lacking = []
    for row in rows("JSON")[1:]:
        if not row[0].startswith("…"):
            command = words(row[0])[0].partition(" ")[0].replace("--report-fd", "run")
            manual = set(re.findall(r"[-a-z_]+", read(f"man/rlock-{command}.1")))
        lacking += [f"rlock-{command}(1): {word}" for word in words(row[1])
                    if not word.startswith("--") and word not in manual]
    if lacking:
        raise AssertionError("; ".join(lacking))


@test("members of JSON")
def _(store):
    table = {row[0]: row[1] for row in rows("JSON")[1:]}
    run_lines = os.path.join(store.place, "report")
    events = store.start("events", "--json", stdout=subprocess.PIPE, text=True)
    store.run("run", "json", "-c", f"exec {RLOCK} run --report-fd 3 inner -- true 3>{run_lines}")
    of_run = members(table, "`--report-fd`")
    with open(run_lines, encoding="utf-8") as file:
        same("--report-fd", json.load(file), of_run - {"--limit", "slot"})
    store.run("run", "-c", f"exec {RLOCK} run --limit 2 --report-fd 3 s -- true 3>{run_lines}", "o")
    with open(run_lines, encoding="utf-8") as file:
        same("--report-fd with --limit", json.load(file), of_run - {"--limit"})
    store.start("run", "json", "--", "sleep", "600")
    store.wait_for(lambda: store.status("json")[0]["holders"])
    store.start("run", "json", "--", "true", stderr=subprocess.DEVNULL)
    store.wait_for(lambda: store.status("json")[0]["waiters"])
    store.run("reserve", "kept", "1h", "-m", "reason")
    store.run("pause", "json", "1h", "-m", "reason")
    store.run("pause", "ci/*", "1h", "-m", "reason")
    of_status = members(table, "`status`: an array of") - {"glob"}
    locks = {lock["key"]: lock for lock in store.status("--all")}
    same("status", locks["json"], of_status)
    same("status of a pause", locks[None], of_status | {"glob"})
    same("holders", locks["json"]["holders"][0], members(table, "… `holders[]`"))
    same("waiters", locks["json"]["waiters"][0], members(table, "… `waiters[]`"))
    same("paused", locks[None]["paused"], members(table, "… `paused`"))
    same("reserved", locks["kept"]["reserved"], members(table, "… `reserved`"))
    same("last_run", locks["inner"]["last_run"], members(table, "… `last_run`"))
    history = json.loads(store.run("history", "--json"))
    same("history", history[0], members(table, "`history`: an array of"))
    of_events = members(table, "`events`: a line each")
    event = json.loads(events.stdout.readline())
    same("events", event, of_events - {"result", "exit_status", "signal"})
    while event["event"] != "released":
        event = json.loads(events.stdout.readline())
    same("events that end a run", event, of_events)
    doctor = json.loads(store.run("doctor", "--json", status=None))
    store.run("run", "json2", "-c", f"{RLOCK} force-release --yes --reason why json2; sleep 9",
              status=79)
    same("history of a revoked run", json.loads(store.run("history", "--json", "json2"))[0],
         members(table, "`history`: an array of") | {"revoked_by", "reason"})
    same("doctor", doctor, members(table, "`doctor`"))
    findings = members(table, "… `findings[]`")
    for finding in doctor["findings"] + doctor["servers"][0]["findings"]:
        same("findings", finding, findings)
    same("servers", {"url", "verdict", "findings"} & set(doctor["servers"][0]),
         {"url", "verdict", "findings"})
    store.run("latch", "set", "l", "1")
    latch = members(table, "`latch status`, `latch list`") - {"status"}
    same("latch status", json.loads(store.run("latch", "status", "--json", "l", status=None)),
         latch)
    same("latch list", json.loads(store.run("latch", "list", "--json"))[0],
         latch - {"ids", "unnamed"})


@test("events")
def _():
    found = in_sources("src", r'\[TRANSITION_\w+\] = "([-a-z]+)"')
    same("events", found, words(section("Events")))


@test("metrics")
def _(store):
    store.run("run", "--limit", "2", "metric", "--", "true")
    store.run("reserve", "kept2", "1h", "-m", "reason")
    store.start("run", "--limit", "2", "metric", "--", "sleep", "600")
    store.wait_for(lambda: store.status("metric")[0]["holders"])
    found = re.findall(r"^# TYPE (\w+) (\w+)$", store.run("metrics"), re.M)
    page = [(words(row[0])[0], row[1]) for row in rows("Metrics")[1:]]
    same("metrics", found, page)
    outcomes = re.search(r"label `outcome` is one of ([^.]*)\.", section("Metrics")).group(1)
    same("outcome", in_sources("src/cli", r'\{"(\w+)", +memory->'), words(outcomes))


@test("layouts")
def _(store):
    store.run("run", "lock", "--", "true")
    store.run("latch", "set", "latch", "1")
    found = [store.call("HGET", "rlock:{%s}" % key, "k") for key in ("lock", "latch")]
    same("layouts", found, re.findall(r"`(\w+/\d+)`", section("Data in the store")))


@test("a later layout is refused, and stays")
def _(store):
    for key, kind, commands in (
        ("later", "lock/2 1.4.0", ("run later -- false", "run --any later other -- false",
                                   "read later -- false", "acquire later", "status later",
                                   "limit later 3", "force-release --yes later", "history later",
                                   "status", "status -q l*", "history", "metrics")),
        ("later-latch", "latch/2 1.4.0", ("latch set later-latch 1", "latch status later-latch",
                                          "latch count-down later-latch",
                                          "latch wait -n later-latch", "latch delete later-latch",
                                          "latch list"))
    ):
        store.call("HSET", "rlock:{%s}" % key, "k", kind)
        for command in commands:
            store.run(*command.split(), status=78)
            layout, version = kind.split()
            if f"{key}: layout {layout} needs rlock {version} or" not in store.error:
                raise AssertionError(f"{command}: {store.error}")
        same("fields", store.call("HGETALL", "rlock:{%s}" % key), ["k", kind])


@test("the drivers' protocol")
def _():
    number = re.search(r'HOST_PROTOCOL "(\w+)"', read("src/rules/wire_error.h")).group(1)
    same("protocol", {number}, re.findall(r"protocol `(\w+)`", section("Programs of rlock")))


main()
