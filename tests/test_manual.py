#!/usr/bin/env -S python3 -B
"""The numbers in the pages are those of the constants in the sources. Prints TAP.

The table of moments of a lease is computed by tests/unit/test_lease.c."""
import datetime
import os
import re
from tap import report

TOP = os.environ.get("top_srcdir") or os.path.join(os.path.dirname(__file__), "..")
UNITS = {"NS_PER_MS": 0.001, "NS_PER_SEC": 1, "US_PER_S": 1}
# Page, a sentence in it with {} for each number, and for each number the folder and the name of its
# constant, or the sum of several; in seconds if the constant is a time. A third member is a factor.
STORES = "rlock-stores.7"
KEEPER = "lock"
HANDOVER = ("rules", "HANDOVER_MS", 0.001)
PLACE = ("rules", "QUEUE_PLACE_MS", 0.001)
NEAR = ("rules/lua", "NEAR")
SENTENCES = [
    ("rlock.7", "A waiter tells the server every {} s", (KEEPER, "HEARTBEAT_NS")),
    ("rlock.7", "was not heard of for {} s is passed over", PLACE),
    ("rlock.7", "cut off for more than {} seconds may be passed over", PLACE),
    ("rlock.7", "than that, or than {} s if the lock was handed over", HANDOVER),
    ("rlock.7", "its holder, until {} s after that waiter's last request", HANDOVER),
    ("rlock.7", "holds the lock: for {} s from before it sent that request", HANDOVER),
    ("rlock.7", "renews {} ms later, and only if the command", (KEEPER, "CONFIRM_AFTER_NS", 1000)),
    ("rlock.7", "waiter's next call, {} s", (KEEPER, "HEARTBEAT_NS+SPREAD_NS")),
    ("rlock.7", "notices after {} s that the grant is not taken", ("run", "REACT_NS")),
    (STORES, "asks the Sentinels every {} s", ("store/redis/find", "LOOK_NS")),
    (STORES, "third of the lease or {} s, whichever", ("store/redis/find", "LOOK_NS")),
    (STORES, "is never shorter than {} s", ("store/zookeeper", "ZK_TIMEOUT_LEAST")),
    ("rlock.7", "nothing has ended for {} s", ("os", "STUCK_NS")),
    ("rlock.7", "keeps killing for {} s", ("run", "FORKING_NS")),
    ("rlock.7", "continues until {} s after the lease", ("run", "HOPELESS_NS")),
    (
        STORES,
        "random pause of {} to {} ms",
        ("store/quorum", "PAUSE_LEAST_NS", 1000),
        ("store/quorum", "PAUSE_MOST_NS", 1000),
    ),
    ("rlock.7", "must call within {} s then", PLACE),
    ("rlock.7", "Behind the first {}, a waiter for one KEY", NEAR),
    ("rlock.7", "waiter that is passed over, {} more get such a message", NEAR),
    ("rlock.7", "Where more than {} waiters in a row die", NEAR),
    ("rlock.7", "shows it for up to {} minutes", ("rules", "FAR_PLACE_MS", 0.001 / 60)),
    ("rlock.7", "bytes of a KEY Ta {}", ("lock", "KEY_MAX_BYTES")),
    ("rlock.7", "KEYs of one acquisition Ta {}", ("lock", "LOCK_KEYS_MAX")),
    ("rlock.7", "holders of a semaphore Ta {}", ("lock", "LOCK_LIMIT_MAX")),
    ("rlock.7", "depth of nesting Ta {}", ("lock", "OWNER_DEPTH")),
    ("rlock.7", "number of a latch Ta {}", ("lock", "LATCH_NUMBER_MAX")),
    ("README.md", "a dead waiter the queue for {} s", HANDOVER),
    (STORES, "takes no writes, or has not answered within {} seconds", ("host", "SLOW_NS")),
    (STORES, "wait for a host that has not answered within {} seconds", ("host", "SLOW_NS")),
    (STORES, "gets a message; it also asks every {} seconds", (KEEPER, "HEARTBEAT_NS")),
    (STORES, "the waiter looks for messages every {} seconds", ("host", "SLEEP_NS")),
    (STORES, "their clocks may differ by {} seconds", ("host", "MARGIN_US")),
    ("docs/etcd.md", "time, which may differ by {} s", ("host", "MARGIN_US")),
    ("docs/databases.md", "takes no writes, or is silent for {} s", ("host", "SLOW_NS")),
    ("docs/databases.md", "The first twenty waiters ask every {} s", (KEEPER, "HEARTBEAT_NS")),
    ("docs/drivers.md", "instead of every {} s", (KEEPER, "HEARTBEAT_NS")),
    ("docs/drivers.md", "a waiter asks every MS, at least {},", ("host", "POLL_LEAST")),
    ("docs/drivers.md", "servers may differ by {} s", ("host", "MARGIN_US")),
    ("docs/drivers.md", "No message calls a waiter: it asks every {} s", (KEEPER, "HEARTBEAT_NS")),
    ("docs/ci.md", "notices a release within {} s", (KEEPER, "HEARTBEAT_NS")),
    ("rlock.1", "A KEY is 1 to {} bytes", ("lock", "KEY_MAX_BYTES")),
    (
        "rlock-run.1",
        "after {} second and then every {} seconds",
        ("cli", "QUIET_NS"),
        ("cli", "REPEAT_NS"),
    ),
    ("rlock-run.1", "waited for {} minutes", ("lock", "LOCK_PRIORITY_BOUND_NS", 1 / 60)),
    ("rlock-run.1", "at most {}, are taken together", ("lock", "LOCK_KEYS_MAX")),
    ("rlock-run.1", "holders, 1 to {}", ("lock", "LOCK_LIMIT_MAX")),
    ("rlock-run.1", "At most {} levels nest", ("lock", "OWNER_DEPTH")),
    ("rlock-history.1", "remembers the last {} runs", ("rules/lua", "RUNS")),
    ("rlock-run.1", "table, of at most {} characters", ("cli", "SHEDLOCK_NAME_MAX")),
    ("rlock-limit.1", "from 0 to {}", ("lock", "LOCK_LIMIT_MAX")),
    ("rlock-serve.1", "not answered after {} seconds", ("serve", "PATIENCE")),
    ("rlock-serve.1", "at most {} connections", ("serve", "CONNECTIONS_MAX")),
    ("rlock-serve.1", "after {} seconds in any case", ("serve", "LIFETIME")),
    ("docs/proof.md", "play {} lives of a keeper", ("tests", "SCHEDULES")),
    ("docs/proof.md", "and {} lives at a ZooKeeper ensemble", ("tests", "LIVES")),
    ("docs/proof.md", "{} runs of a quorum", ("tests", "RUNS_BY_CHANCE", 4)),
    ("tests/README.md", "runs {} lives of a keeper", ("tests", "SCHEDULES")),
]
# Page, a sentence in it with {} for a number, and the file and the pattern whose matches it counts.
COUNTS = [
    ("docs/proof.md", "each of the {} hazards", "tests/HAZARDS.md", r"^- \*\*H\d+\*\* "),
    ("docs/proof.md", "`tests/model`, with {} seeded mistakes", "tests/model/model.sh", "^finds '"),
]


CONSTANT = {
    ".c": r"^#define (\w+)\s+(.*?)(?:/\*.*)?$",
    ".h": r"^#define (\w+)\s+(.*?)(?:/\*.*)?$",
    ".lua": r"^local ([A-Z]+) = ([0-9]+)\b",
}


def definitions():
    """Returns the text of each constant in src, as {name: {folder: text}}."""
    found = {}
    folders = [*os.walk(os.path.join(TOP, "src")), *os.walk(os.path.join(TOP, "tests", "unit"))]
    for folder, _, names in folders:
        for name in names:
            pattern = CONSTANT.get(os.path.splitext(name)[1])
            if pattern:
                with open(os.path.join(folder, name), encoding="utf-8") as source:
                    for name, text in re.findall(pattern, source.read(), re.M):
                        found.setdefault(name, {})[folder] = text
    return found


DEFINITIONS = definitions()


def constant(folder, name):
    """The folder, below src, decides if there are several constants of that name."""
    texts = DEFINITIONS[name]
    text = texts.get(os.path.join(TOP, "src", folder)) if len(texts) > 1 else [*texts.values()][0]
    value = 1
    for word in text.replace("(", " ").replace(")", " ").split("*"):
        value *= UNITS[word.strip()] if word.strip() in UNITS else int(word.strip().rstrip("U"))
    return value


def path_of(page):
    return os.path.join(TOP, page if page.endswith(".md") else os.path.join("man", page))


def text_of(page):
    """Without macros, in one line."""
    with open(path_of(page), encoding="utf-8") as source:
        lines = [re.sub(r"^\.(It|Pq|Dq|Nm|Va|Pa|Em|Fl|Dv) ?", "", line) for line in source]
    return re.sub(r"\s+", " ", " ".join(lines))


def said_numbers(page, sentence):
    """The numbers that the page has in the place of each {}; None if it lacks the sentence."""
    number = r"([0-9](?:[0-9.,]*[0-9])?(?: [0-9]{3})*)"
    found = re.search(re.escape(sentence).replace(r"\{\}", number), text_of(page))
    return found and [float(re.sub("[, ]", "", said)) for said in found.groups()]


def faults(page, sentence, *sources):
    numbers = said_numbers(page, sentence)
    if not numbers:
        yield "the page does not say that"
        return
    for said, (folder, names, *times) in zip(numbers, sources):
        value = sum(constant(folder, name) for name in names.split("+")) * (times or [1])[0]
        if abs(said - value) > 1e-9:
            yield f"{names} is {value:g}, and the page says {said:g}"


def count_faults(page, sentence, path, pattern):
    with open(os.path.join(TOP, path), encoding="utf-8") as source:
        count = len(re.findall(pattern, source.read(), re.M))
    if said_numbers(page, sentence) != [count]:
        yield f"{path} has {count}"


def fields(path, begin, end, pattern):
    """The names of fields that a description has between two of its lines."""
    with open(os.path.join(TOP, path), encoding="utf-8") as source:
        text = source.read()
    lines = text[text.index(begin) : text.index(end)]
    return set(re.findall(r"[a-z]+(?::\w+)*", " ".join(re.findall(pattern, lines, re.M))))


def layout_faults():
    """docs/data.md has the fields of a lock that lock.lua has."""
    in_script = r"^--   ([^\s,]+(?:, [^\s,]+)*) "
    in_page = r"^\| (`.*?) \|"
    script = fields("src/rules/lua/lock.lua", "--   k  ", "-- MODE is", in_script)
    page = fields("docs/data.md", "## The fields of a lock", "## The fields of a latch", in_page)
    if len(script) <= 20 or script != page:
        yield f"only in lock.lua: {script - page}; only in docs/data.md: {page - script}"


# Macros of mdoc(7) that begin a heading of markup, and those that a heading of text may not have:
# the heading "No usable /proc" was printed as "usable /proc".
MARKUP = set("Ar Cm Dv Em Ev Fl Fn Ic Li Nm Pa Ql Sy Va Xr".split())
TEXT = set(
    "Ac Ad An Ao Ap Aq At Bc Bo Bq Brc Bro Brq Bsx Bx Cd Dc Do Dq Ec Eo Er Es Fa Fc Fo Fr Ft Fx Hf "
    "In Lb Lk Ms Mt No Ns Nx Oc Oo Op Ot Ox Pc Pf Po Pq Qc Qo Qq Sc So Sq Sx Tn Ux Vt Xc Xo".split()
)


def heading_faults(page):
    """A word of a heading that is a macro's name is taken for the macro, unless \\& precedes it."""
    with open(os.path.join(TOP, "man", page), encoding="utf-8") as source:
        for heading in re.findall(r"^\.(?:It|Sh|Ss) (.*)", source.read(), re.M):
            words = heading.split()
            if words[0] not in MARKUP:
                yield from (f"{heading}: {word} is a macro" for word in words if word in TEXT)


def quote_faults(page):
    """A quotation ends with its line: "Ql a , Ql b" is printed as one, with the other in it."""
    with open(os.path.join(TOP, "man", page), encoding="utf-8") as source:
        return re.findall(r"^\.(?:\w+ )*(?:Ql|Dq|Sq|Qq) .* [,;:] \S.*", source.read(), re.M)


def synopsis_faults(page):
    """A line of a synopsis is what people type: rlock init, where the page is called rlock-init."""
    with open(os.path.join(TOP, "man", page), encoding="utf-8") as source:
        text = source.read().partition(".Sh SYNOPSIS\n")[2].partition(".Sh ")[0]
    return re.findall(r"^\.Nm(?! rlock(?: |$)).*", text, re.M)


def twice(page):
    """The items of a page's list of commands that it has more than once."""
    with open(os.path.join(TOP, "man", page), encoding="utf-8") as source:
        items = re.findall(r"^\.It Cm (.*)", source.read(), re.M)
    return [item for item in sorted(set(items)) if items.count(item) > 1]


PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "tests/README.md"]
PAGES += [f"docs/{name}" for name in sorted(os.listdir(os.path.join(TOP, "docs")))
          if name.endswith(".md")]


def counts_of_tests():
    """Each change adds tests, and no page follows."""
    for page in PAGES:
        for count in re.findall(r"\b\d[\d,]* tests\b", text_of(page)):
            yield f"{page}: {count}"


def names_of(folders, pattern):
    """Returns the first group of each match in the files of these folders."""
    names = set()
    for folder, _, files in (entry for top in folders for entry in os.walk(os.path.join(TOP, top))):
        for name in files:
            if name.endswith((".c", ".h", ".lua", ".py")):
                with open(os.path.join(folder, name), encoding="utf-8") as source:
                    names.update(re.findall(pattern, source.read()))
    return names


def lost_names():
    """The pages about the code are in a release, and name files and functions that there are."""
    functions = names_of(["src", "tests"], r"\b(\w+) ?\(")
    pages = ["CONTRIBUTING.md", "tests/README.md", "tests/lives/README.md"]
    pages += [
        os.path.relpath(os.path.join(folder, "README.md"), TOP)
        for folder, _, files in os.walk(os.path.join(TOP, "src"))
        if "README.md" in files
    ]
    with open(os.path.join(TOP, "Makefile.am"), encoding="utf-8") as source:
        released = source.read().split()
    for page in pages:
        if page not in released:
            yield f"{page} is not in Makefile.am"
        text = text_of(page)
        for path in re.findall(r"`([\w.-]+/[\w./-]+\.(?:c|h|lua|py|bats|bash|md))`", text):
            tops = ("", "src", "tests", "src/rules", "src/store", os.path.dirname(page))
            if not re.search("NAME|FOLDER", path) and not any(
                os.path.exists(os.path.join(TOP, top, path)) for top in tops
            ):
                yield f"{page}: {path}"
        for function in re.findall(r"`(\w+)\(\)`", text):
            if function not in functions:
                yield f"{page}: {function}()"


def other_versions():
    """Where a page or a package names the version of the program, and names another one."""
    now = None
    for page, pattern in (
        ("configure.ac", r"AC_INIT\(\[rlock\], \[(.*?)\]\)"),
        ("README.md", r"Version (\S+) \("),
        ("debian/changelog", r"^rlock \((\S+)\)"),
        ("packaging/rlock.spec", r"Version: +(\S+)"),
        ("packaging/github-action/README.md", r"version: (\S+)"),
        ("packaging/jenkins/vars/underLock.groovy", r"version: '(\S+?)'"),
        ("examples/ansible.yml", r"rlock_version: (\S+)"),
        ("examples/cloud-init.yaml", r"/rlock-(\S+)-linux-"),
    ):
        with open(os.path.join(TOP, page), encoding="utf-8") as source:
            found = re.search(pattern, source.read())
        now = now or found[1]
        if not found or found[1] != now:
            yield f"{page}: {found and found[1]}, not {now}"


def other_writers():
    """The commands that write to standard output; three do so by means of their own."""
    folder = os.path.join(TOP, "src/cmd")
    writers = {"acquire", "top", "help"}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as source:
            if re.search(r"\bcommand_(?:print|flush)\(", source.read()):
                writers.add(name.partition(".")[0])
    writers -= {"README", "complete"}  # the latter is for the shells
    with open(os.path.join(TOP, "man/rlock.1"), encoding="utf-8") as source:
        said = re.search(r"^Only\n((?:.*\n)+?)write to standard output", source.read(), re.M)[1]
    for name in sorted(writers ^ set(re.findall(r"^\.Cm (\S+)", said, re.M))):
        yield f"rlock.1: {name}"


def other_dates():
    """A page of the manual has the day of the release: it says what that program does."""
    with open(os.path.join(TOP, "CHANGELOG.md"), encoding="utf-8") as source:
        day = datetime.date.fromisoformat(re.search(r"^## \[.*\] - (\S+)$", source.read(), re.M)[1])
    wanted = f"{day:%B} {day.day}, {day.year}"
    for page in sorted(os.listdir(os.path.join(TOP, "man"))):
        with open(os.path.join(TOP, "man", page), encoding="utf-8") as source:
            for found in re.findall(r"^\.Dd (.*)$", source.read(), re.M):  # none in a link
                if found != wanted:
                    yield f"{page}: {found}, not {wanted}"


def packages_not_told():
    """docs/install.md names what a Debian package is built with, or dpkg-buildpackage refuses."""
    with open(os.path.join(TOP, "debian/control"), encoding="utf-8") as source:
        needed = re.search(r"^Build-Depends: ((?:.*\n )*.*)$", source.read(), re.M)[1]
    _, _, steps = text_of("docs/install.md").partition("sudo apt-get install ")
    told = steps.partition("autoreconf")[0]
    # That of libcrypt comes with the compiler's.
    for name in sorted({*re.findall(r"lib\S+-dev\b", needed)} - {"libcrypt-dev"}):
        if name not in told.split():
            yield f"docs/install.md: no {name} among the packages of a build from source"


def results():
    for sentence in SENTENCES:
        yield f"{sentence[0]}: {sentence[1]}", faults(*sentence)
    for count in COUNTS:
        yield f"{count[0]}: {count[1]}", count_faults(*count)
    for page in sorted(os.listdir(os.path.join(TOP, "man"))):
        yield f"{page}: its headings are printed as they are written", heading_faults(page)
        if page.startswith("rlock-"):
            yield f"{page}: its synopsis is what people type", synopsis_faults(page)
        yield f"{page}: a quotation has one thing in it", quote_faults(page)
    yield "rlock.1: each command once", twice("rlock.1")
    yield "rlock.1: which commands write to standard output", [*other_writers()]
    yield "pages and packages name one version", [*other_versions()]
    yield "the pages of the manual have the day of the release", [*other_dates()]
    yield "docs/install.md names the packages of a build", [*packages_not_told()]
    yield "no page has a number of tests", [*counts_of_tests()]
    yield "docs/data.md: the fields of a lock", layout_faults()
    yield "pages about the code are released, and name nothing that is gone", [*lost_names()]


report(results())
