#!/usr/bin/env -S python3 -B
"""mutants.py [--check] [--lives] [--seed N] [--jobs N] [--write PAGE] [WORD...]: removes each guard
of tests/mutants in turn, and reports which test finds it and how soon; at the end, how soon lives
(tests/lives) have found theirs. WORDs select the guards whose name contains one of them. With
--lives, only lives are tried, for the guards that name them. N is the seed of the first life (1);
so many guards are tried at a time (as many as there are processors). With --check, nothing is
tried: guards whose text is not in their file exactly once or that have no test are printed, tests
that are not in their file, and sentences that are not in the page.

With --write, the guards that were found go into the table of PAGE between the lines
"<!-- mutants -->", and what is known of others stays there. The table between the lines
"<!-- sentences -->" says which guards lives have found by each sentence of the manual that they are
judged by; without WORDs, the line between the lines "<!-- lives -->" says how soon.

It works on copies of the checkout, in mutants/ of the build directory (top_builddir), configured
as that is, but without debugging information. They stay, so that the next time is quicker. A guard
that no test finds, a mutant that does not compile, and a text that is not in its file exactly once
are failures. "make mutants" calls it.
"""
import argparse, concurrent.futures, filecmp, os, queue, re, shlex, shutil, signal, statistics
import subprocess, sys, time

SOURCE = os.path.abspath(os.environ.get("top_srcdir", "."))
BUILD = os.path.abspath(os.environ.get("top_builddir", "build"))
TABLE = os.path.join(SOURCE, "tests/mutants")
PAGE = os.path.join(SOURCE, "docs/proof.md")
COPIES = os.path.join(BUILD, "mutants")
MARK = "<!-- mutants -->"
ORACLE = os.path.join(SOURCE, "tests/lives")
SENTENCES = "<!-- sentences -->"
FIGURES = "<!-- lives -->"
TIME_LIMIT = 600  # seconds for one test: a mutant may make it hang, which finds it too
LIVES = "lives"  # the test that has the program live until something goes wrong
LIVES_LIMIT = 60  # seconds of processor
LIVES_GOAL = "-C lives HARDEN_CPPFLAGS= tests/lives/lives"
QUICK = "CFLAGS=-O2"  # debugging information takes half of the time of a link


def read_table(path):
    """The stanzas of the table as dictionaries. "edits" are dictionaries of file, old and new."""
    mutants = []
    with open(path) as file:
        text = "\n".join(line for line in file.read().split("\n") if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", text.strip()):
        mutant = {"edits": [], "test": []}
        for line in stanza.split("\n"):
            field, _, value = line.partition(":")
            value = value.removeprefix(" ").replace("\\n", "\n")
            if field == "guard":
                mutant["guard"] = value
            elif field == "file":
                place = value
            elif field == "old":
                mutant["edits"].append({"file": place, "old": value})
            elif field == "new":
                mutant["edits"][-1]["new"] = value
            elif field == "test":
                mutant["test"].append(value)
            else:
                sys.exit(f"mutants.py: {path}: not a field: {line}")
        mutants.append(mutant)
    return mutants


def flags_of(build):
    """Returns how a build directory was configured; None: it was not."""
    status = os.path.join(build, "config.status")
    if not os.path.exists(status):
        return None
    return subprocess.run([status, "--config"], check=True, capture_output=True,
                          text=True).stdout.strip()


class Copy:
    """A copy of the checkout, configured as the build directory is, with the goals made. A life
    that goes wrong is traced if its faults are asked for."""

    def __init__(self, number, goals, traced):
        self.top = os.path.join(COPIES, str(number))
        self.build = os.path.join(self.top, "build")
        self.traced = traced
        self.building = 0.0  # seconds of processor, in all
        files = subprocess.run(["git", "-c", f"safe.directory={SOURCE}", "ls-files", "-z"],
                               cwd=SOURCE, check=True, capture_output=True, text=True).stdout
        for name in filter(None, files.split("\0")):
            there, here = os.path.join(SOURCE, name), os.path.join(self.top, name)
            if os.path.lexists(there) and not (os.path.exists(here) and
                                               filecmp.cmp(there, here, shallow=False)):
                os.makedirs(os.path.dirname(here), exist_ok=True)
                shutil.copy(there, here, follow_symlinks=False)
        if flags_of(self.build) != flags_of(BUILD):
            os.makedirs(self.build, exist_ok=True)
            self.must("autoreconf -fi", self.top)
            self.must(f"../configure {flags_of(BUILD)}")
        broken = self.make("lives-build", *goals)
        if broken is not None:
            sys.exit(f"mutants.py: {broken}")

    def must(self, command, place=None):
        done = subprocess.run(["sh", "-c", command], cwd=place or self.build, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            sys.exit(f"mutants.py: {command}\n{done.stdout}")

    def make(self, *goals):
        """Builds one goal after the other. Returns None, or the output of the one that failed. A
        mutant may leave something unused, so warnings are off."""
        for goal in goals:
            process = subprocess.Popen(["make", "-s", "WARN_CFLAGS=", QUICK, *goal.split(" ")],
                                       cwd=self.build, text=True, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT)
            output = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status
            self.building += usage.ru_utime + usage.ru_stime
            if status:
                return output
        return None

    def run(self, test):
        """Runs one test, "FILE" or "FILE -f PATTERN". Returns (whether it failed, seconds)."""
        if test == LIVES:
            return self.live()
        name, *filters = shlex.split(test)
        kind = os.path.splitext(name)[1]
        broken = self.make(*{".bats": ["all"], ".py": []}.get(kind, [f"tests/{name}"]))
        if broken is not None:
            raise RuntimeError(broken[-2000:])
        path = os.path.join(self.top if kind else self.build, "tests", name)
        command = {".bats": ["bats", "--tap", *filters, path],
                   ".py": ["python3", "-B", path]}.get(kind, [path])
        environment = dict(os.environ, top_srcdir=self.top, top_builddir=self.build,
                           RLOCK=os.path.join(self.build, "rlock"), LC_ALL="C.UTF-8",
                           RLOCK_TEST_TOOLS=os.path.join(self.build, "tests"))
        start = time.monotonic()
        process = subprocess.Popen(command, cwd=self.build, env=environment, text=True,
                                   start_new_session=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            output, _ = process.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            self.failures = [f"it has not ended after {TIME_LIMIT} s"]
            return True, time.monotonic() - start
        self.failures = re.findall(r"^not ok.*", output, re.M)
        failed = process.returncode != 0 or self.failures
        if not re.search(r"^(not )?ok", output, re.M) and not failed:
            raise RuntimeError(f"{test}: no test ran\n{output[-1000:]}")
        return bool(failed), time.monotonic() - start

    def begin_lives(self, seed):
        """seed: of the first life of the next mutant."""
        self.seed, self.lived, self.told = seed, 0.0, None

    def live(self):
        """Has the program live, from where the mutant's lives before have ended. Returns the same,
        in seconds of processor of all of them."""
        broken = self.make(LIVES_GOAL)
        if broken is not None:
            raise RuntimeError(broken[-2000:])
        first = ["-n", "1"] if self.traced else ["-1"]
        done = subprocess.run([f"{self.build}/lives/tests/lives/lives", "-g", *first, "-p",
                               str(LIVES_LIMIT - self.lived), str(self.seed), str(10**9)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        found = re.search(r"^seed (.*?): (.*)\n(?:.*\n)* *found after ([0-9.]+) s", done.stdout,
                          re.M)
        if done.returncode not in (0, 1) or (done.returncode == 1) != bool(found):
            raise RuntimeError(done.stdout[-2000:])
        if not found:
            return False, LIVES_LIMIT
        print(f"# {found[2]}", flush=True)
        self.plan, self.told = found[1], (found[2], done.stdout)
        self.seed = int(re.match(r"\d+", self.plan)[0]) + 1
        self.lived += float(found[3])
        return True, self.lived

    def live_again(self):
        """Whether the life that went wrong with the latest mutant goes well without it."""
        if broken := self.make(LIVES_GOAL):
            raise RuntimeError(broken[-2000:])
        return subprocess.run([f"{self.build}/lives/tests/lives/lives", "-t", self.plan],
                              stdout=subprocess.DEVNULL).returncode == 0


# -- the sentences of the manual that lives are judged by ------------------------------------------

def read_sentences():
    """{text: (page, the functions that check it)}, in the order of the table of sentences."""
    text = "".join(open(os.path.join(ORACLE, name)).read() for name in sorted(os.listdir(ORACLE))
                   if name.endswith(".c"))
    table = re.findall(r'\[(\w+)\] = \{"([\w.-]+)",\s*((?:"[^"]*"\s*)+)\}', text)
    checks = {}
    functions = r"^\w[^\n]* \*?(\w+)\([^;{]*\)\n\{\n(.*?)^\}"
    for function, body in re.findall(functions, text, re.M | re.S):
        for name in re.findall(r"BROKEN\((\w+)", body):
            checks.setdefault(name, {})[function] = True
    return {"".join(re.findall(r'"([^"]*)"', words)): (page, list(checks.get(name, ())))
            for name, page, words in table}


def faults_of(trace):
    """The kinds of faults in the trace of a life."""
    details = r" (?:of|to) run \d+|, pid \d+|,? for [0-9.]+ s|(?<=signal) \d+| by -?[0-9.]+ s"
    kinds = [re.sub(details, "", kind) for kind in re.findall(r"FAULT: (.*)", trace)]
    kinds += ["a request comes twice"] * ("a second time" in trace)
    return list(dict.fromkeys(kinds))


def first_cell(text, page):
    return f"| {page[:-2]}({page[-1]}): {text} |"


def cells_of_sentence(text, page, checks):
    where = ", ".join(f"`{check}()`" for check in checks) or "an exception of others"
    return f"{first_cell(text, page)} {where} |"


def cells_of_caught(caught):
    """caught: [(guard, faults)]."""
    guards = "; ".join(dict.fromkeys(guard for guard, _ in caught))
    faults = "; ".join(dict.fromkeys(fault for _, faults in caught for fault in faults))
    return f" {faults or '–'} | {guards or '–'} |"


def read_page(page):
    with open(page) as file:
        return file.read().split(SENTENCES)[1]


def earlier_cells(page):
    """{text: the last cells of the row of that sentence}."""
    rows = re.findall(r"^\| \S+\): (.*?) \| [^|]* \|( .*\|)$", read_page(page), re.M)
    return dict(rows)


def missing_sentences():
    table = read_page(PAGE)
    return [f"not in {PAGE} (--lives --write adds it): {text}"
            for text, (page, _) in read_sentences().items() if first_cell(text, page) not in table]


def write_sentences(page, caught):
    """A row that nothing is known of now stays as it is."""
    cells = earlier_cells(page) | {text: cells_of_caught(some) for text, some in caught.items()}
    rows = [cells_of_sentence(text, *facts) + cells.get(text, cells_of_caught([]))
            for text, facts in read_sentences().items()]
    write_table(page, SENTENCES, "| sentence of the manual | check | faults that it took | guards "
                "whose lack was found by it |\n|---|---|---|---|", rows)


# -- trying ----------------------------------------------------------------------------------------

def misplaced(top, mutant):
    """Why the guard is not in its files exactly once; None: it is."""
    for edit in mutant["edits"]:
        with open(os.path.join(top, edit["file"])) as file:
            times = file.read().count(edit["old"])
        if times != 1:
            return f"{times} times in {edit['file']}: {edit['old']}"
    return None


def has_tests(test):
    """Whether its file has a test that its pattern is in the name of."""
    name, *filters = shlex.split(test)
    if not filters:
        return True
    with open(os.path.join(SOURCE, "tests", name)) as file:
        return any(re.search(filters[1], title)
                   for title in re.findall(r'^@test "(.*)" \{$', file.read(), re.M))


def try_mutant(copy, mutant):
    """Returns its fate: (the test that found it, or None, seconds), or a text that says why it
    cannot be tried."""
    if why := misplaced(copy.top, mutant):
        return why
    texts = {}
    try:
        for edit in mutant["edits"]:
            path = os.path.join(copy.top, edit["file"])
            with open(path) as file:
                text = file.read()
            texts.setdefault(path, text)
            with open(path, "w") as file:
                file.write(text.replace(edit["old"], edit["new"]))
        for test in mutant["test"]:
            failed, seconds = copy.run(test)
            if failed:
                return test, seconds
        return None, 0
    except RuntimeError as error:
        return str(error)
    finally:
        for path, text in texts.items():
            with open(path, "w") as file:
                file.write(text)


def find(copy, mutant, sound, seed):
    """The same, by a test that goes well without the mutant; sound: {test: it does}. Of lives, the
    very life must do so: now and then one goes wrong for another reason, and they continue after
    it. seed: of the first life."""
    copy.begin_lives(seed)
    while True:
        result = try_mutant(copy, mutant)
        if isinstance(result, str) or not result[0]:
            return result
        test = result[0]
        if test != LIVES and test not in sound:
            sound[test] = not copy.run(test)[0]
            for line in [] if sound[test] else copy.failures:
                print(f"# without it: {line}", flush=True)
        if copy.live_again() if test == LIVES else sound[test]:
            return result
        rest = mutant["test"].index(test) + (test != LIVES)
        mutant = dict(mutant, test=mutant["test"][rest:])
        print(f"# {copy.plan if test == LIVES else test} fails without it, too", flush=True)


def tried(mutants, jobs, goals, seed, traced):
    """Yields the fate of each mutant, what a life told of it, and the seconds of processor that its
    builds took, in their order."""
    copies, sound = queue.Queue(), {}

    def one(mutant):
        copy = copies.get()
        try:
            before = copy.building
            return find(copy, mutant, sound, seed), copy.told, copy.building - before
        finally:
            copies.put(copy)

    with concurrent.futures.ThreadPoolExecutor(jobs) as threads:
        for copy in threads.map(lambda n: Copy(n, goals, traced), range(jobs)):
            copies.put(copy)
        yield from threads.map(one, mutants)


def write_table(page, mark, head, rows):
    """Puts the table between the marks of the page."""
    with open(page) as file:
        before, _, after = file.read().split(mark)
    table = "\n".join([head] + rows)
    with open(page, "w") as file:
        file.write(f"{before}{mark}\n{table}\n{mark}{after}")


def note_sentence(caught, guard, told):
    """told: the verdict, with the sentence in quotes, and the whole output."""
    verdict, output = told
    if broken := re.search(r'\([\w.-]+: "(.*)"\)$', verdict):
        caught.setdefault(broken[1], []).append((guard, faults_of(output)))


def row_of(mutant, test, seconds):
    files = ", ".join(dict.fromkeys(f"`{edit['file']}`" for edit in mutant["edits"]))
    return f"| {mutant['guard']} | {files} | `{test}` | {seconds:.1f} s |"


def write_guards(page, rows):
    """rows: {guard: its row}. A row that nothing is known of now stays as it is."""
    with open(page) as file:
        earlier = file.read().split(MARK)[1]
    rows = {re.match(r"\| (.*?) \|", row)[1]: row for row in earlier.split("\n")
            if row.startswith("| ")} | rows
    write_table(page, MARK, "| guard that is removed | where | found by | after |\n"
                "|---|---|---|---|", [rows[m["guard"]] for m in read_table(TABLE)
                                      if m["guard"] in rows])


def figures_of(seconds, lost):
    """How soon lives found what they found; seconds of processor. lost: the guards that they did
    not find."""
    if len(seconds) < 2:
        return f"Lives found {len(seconds)} of {len(seconds) + len(lost)}."
    return (f"Lives found {len(seconds)} of {len(seconds) + len(lost)}: half of them within "
            f"{statistics.median(seconds):.1f} s of processor, nine of ten within "
            f"{statistics.quantiles(seconds, n=10, method='inclusive')[-1]:.1f} s, the last after "
            f"{max(seconds):.1f} s.")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--lives", action="store_true")
    parser.add_argument("--seed", metavar="N", type=int, default=1)
    parser.add_argument("--jobs", metavar="N", type=int, default=os.cpu_count())
    parser.add_argument("--write", metavar="PAGE")
    parser.add_argument("word", nargs="*")
    options = parser.parse_args()
    mutants = [m for m in read_table(TABLE)
               if not options.word or any(word in m["guard"] for word in options.word)]
    if options.check:
        wrong = [misplaced(SOURCE, mutant) for mutant in mutants] + missing_sentences()
        wrong += [f"{m['guard']}: no test" for m in mutants if not m["test"]]
        wrong += [f"no such test: {t}" for m in mutants for t in m["test"] if not has_tests(t)]
        wrong = [line for line in wrong if line]
        print("\n".join(wrong))
        return 1 if wrong else 0
    if options.lives:
        mutants = [dict(m, test=[LIVES]) for m in mutants if LIVES in m["test"]]
    caught, rows, lives, lost, builds, faults = {}, {}, [], [], [], 0
    print(f"1..{len(mutants)}", flush=True)
    results = tried(mutants, options.jobs, [] if options.lives else ["all", "check TESTS="],
                    options.seed, options.write)
    for number, (mutant, (result, told, building)) in enumerate(zip(mutants, results), 1):
        builds.append(building)
        by_test = isinstance(result, tuple) and result[0]
        if by_test == LIVES:
            lives.append(result[1])
            note_sentence(caught, mutant["guard"], told)
        elif LIVES in mutant["test"]:
            lost.append(mutant["guard"])
        if by_test:
            print(f"ok {number} - {mutant['guard']}: {by_test}, {result[1]:.1f} s", flush=True)
            rows[mutant["guard"]] = row_of(mutant, *result)
        else:
            faults += 1
            print(f"not ok {number} - {mutant['guard']}", flush=True)
            why = result if isinstance(result, str) else "no test finds it"
            print("\n".join(f"# {line}" for line in why.split("\n")), flush=True)
    figures = figures_of(lives, lost)
    print("\n".join([f"# {figures}"] + [f"# not by lives: {guard}" for guard in lost]))
    if builds:
        print(f"# the builds of a guard took {statistics.median(builds):.1f} s of processor")
    if options.write and not faults:
        write_guards(options.write, rows)
        write_sentences(options.write, caught)
        if not options.word:
            write_table(options.write, FIGURES, figures, [])
    print(f"{len(mutants) - faults} passed, {faults} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
