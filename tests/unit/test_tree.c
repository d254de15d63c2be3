/* The processes of a command's tree, in a /proc that is made of files: while its supervisor lives,
 * from lists of children and without them, and after its death.
 *
 * make_world() makes that of the table: 120 is the command, 121 to 128 are its tree, 110 to 114 the
 * caller's, 50 is a stranger. A signal is not sent but noted, as "kill 122" in "deeds"; there, "see
 * in the list 50" means that all processes were listed. */
#include "os/tree.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

#define OWNER "6c807ae5-d3fd-554c-dcae-87fe288c8e42"
#define US    0       /* this process, its group, its session */
#define FAR   5000000 /* all others have numbers that no process has */

/* Expected: 'd' by descent, 'l' left when the supervisor is dead. */
static const struct row {
    int pid, parent, group, session;
    int threads;
    int started;
    const char *name, *variable, *expected, *what;
    const char *lock; /* of its standard input */
    bool dead;        /* a zombie */
} rows[] = {
    {1, 1, 1, 1, 1, 1, "init", "", "", "process 1"},
    {50, 1, 50, 50, 1, 300, "getty", "", "", "somebody else's"},
    {US, 50, US, US, 1, 100, "rlock", "", "", "the supervisor"},
    {101, US, 101, US, 1, 110, "rlock-agent", "", "", "the agent"},
    {102, 101, 101, US, 1, 111, "rlock-agent", "", "", "what the agent has started"},
    {110, US, US, US, 1, 90, "sleep", "", "", "the caller's job"},
    {111, 110, US, US, 1, 200, "sleep", "", "", "what that has started"},
    {112, US, US, US, 1, 201, "sleep", "", "", "what one of its group has left behind"},
    {113, US, 113, 113, 1, 91, "daemon", "", "", "the caller's daemon"},
    {114, US, 114, 113, 1, 202, "daemon", "", "", "what one of its session has left behind"},
    {120, US, 120, US, 1, 120, "sh", "RLOCK_OWNER=" OWNER, "dl", "the command"},
    {121, 120, 120, US, 2, 121, "a) S (b", "", "dl", "one with a strange name"},
    {122, 121, 122, 122, 1, 122, "x", "", "dl", "what its second thread has started"},
    {123, US, 120, US, 1, 123, "x", "", "dl", "an orphan in its group"},
    {124, US, 124, 124, 1, 124, "x", "RLOCK_OWNER=" OWNER ".b", "dl", "one that nests in it"},
    {125, US, 125, 125, 1, 125, "x", "RLOCK_OWNER=" OWNER "b", "d", "one with another owner"},
    {126, US, 126, 126, 1, 126, "x", "XRLOCK_OWNER=" OWNER, "d", "one with another variable"},
    {127, US, 127, 127, 1, 127, "x", "", "dl", "an orphan that was noted"},
    {128, 127, 128, 128, 1, 210, "x", "", "dl", "what that has started since"},
    {129, 1, 129, 130, 1, 211, "x", "", "l", "a new one in a session that was noted"},
    {131, 1, 131, 131, 1, 212, "x", "", "", "one with the number of one that was noted"},
    {132, 1, 132, 133, 1, 213, "x", "", "", "one in a session of such a number"},
    {133, 1, 133, 133, 1, 214, "x", "", "", "its leader"},
    {134, 1, 134, 134, 1, 80, "x", "RLOCK_OWNER=" OWNER, "", "one that is older than rlock"},
    {140, US, 140, 140, 1, 128, TREE_SPARED, "RLOCK_OWNER=" OWNER, "", "the local server",
     "pos:\t0\nlock:\t1: POSIX  ADVISORY  WRITE 5000140 00:1c:7 0 EOF\n"},
    {141, 140, 140, 140, 1, 129, "x", "", "", "what that has started"},
    {142, US, 142, 142, 1, 130, TREE_SPARED, "RLOCK_OWNER=" OWNER ".c", "dl", "one of that name",
     "pos:\t0\n"},
};

/* Seen while the supervisor lived: 131 and 133 have ended since, and their numbers are others'. */
static struct process noted[] = {
    {.pid = FAR + 120, .session = FAR + 120, .started = 120},
    {.pid = FAR + 127, .session = FAR + 127, .started = 127},
    {.pid = FAR + 130, .session = FAR + 130, .started = 127},
    {.pid = FAR + 131, .session = FAR + 131, .started = 128},
    {.pid = FAR + 133, .session = FAR + 133, .started = 129},
};

static char directory[64];

static pid_t pid_of(int number)
{
    return number == US ? getpid() : FAR + number;
}

static pid_t session_of(int number)
{
    return number == US ? getsid(0) : FAR + number;
}

static void must(bool done)
{
    if (!done)
        abort();
}

static void make_directory(int number, const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%d/%s", directory, (int)pid_of(number), name);
    must(mkdir(path, 0700) == 0);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    bool written = file && fputs(text, file) >= 0;
    if (file && fclose(file) != 0)
        written = false;
    must(written);
}

static void make_file(int number, const char *name, const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%d/%s", directory, (int)pid_of(number), name);
    write_file(path, text);
}

/* All are children of the last thread. */
static void make_thread(const struct row *row, int thread)
{
    char name[64], text[256] = "";
    int used = 0;

    for (size_t i = 0; thread == row->threads - 1 && i < COUNT(rows); i++)
        if (rows[i].parent == row->pid && &rows[i] != row)
            used +=
                snprintf(text + used, sizeof text - (size_t)used, "%d ", (int)pid_of(rows[i].pid));
    snprintf(name, sizeof name, "task/%d", (int)pid_of(row->pid) + thread * FAR);
    make_directory(row->pid, name);
    strcat(name, "/children");
    make_file(row->pid, name, text);
}

/* The number is that of this row from now on. */
static void make_status(const struct row *row)
{
    char stat[400], status[400];

    snprintf(stat, sizeof stat,
             "%d (%s) %c %d %d %d 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 %d 0 %d 1 2 3\n",
             (int)pid_of(row->pid), row->name, row->dead ? 'Z' : 'S', (int)pid_of(row->parent),
             (int)pid_of(row->group), (int)session_of(row->session), row->threads, row->started);
    make_file(row->pid, "stat", stat);
    snprintf(status, sizeof status,
             "Name:\t%s\nUmask:\t0022\nState:\t%s\nTgid:\t%d\nPid:\t%d\nPPid:\t%d\n"
             "NSpgid:\t%d\t1\nNSsid:\t%d\t1\nThreads:\t%d\n",
             row->name, row->dead ? "Z (zombie)" : "S (sleeping)", (int)pid_of(row->pid),
             (int)pid_of(row->pid), (int)pid_of(row->parent), (int)pid_of(row->group),
             (int)session_of(row->session), row->threads);
    make_file(row->pid, "status", status);
}

static void make_process(const struct row *row, bool children)
{
    make_directory(row->pid, "");
    make_status(row);
    make_file(row->pid, "environ", row->variable);
    if (row->lock) {
        make_directory(row->pid, "fdinfo");
        make_file(row->pid, "fdinfo/0", row->lock);
    }
    for (int thread = 0; children && thread < row->threads; thread++) {
        if (thread == 0)
            make_directory(row->pid, "task");
        make_thread(row, thread);
    }
}

static void make_empty_world(void)
{
    strcpy(directory, "/tmp/test_tree.XXXXXX");
    must(mkdtemp(directory) != NULL);
}

static void make_world(bool children)
{
    make_empty_world();
    for (size_t i = 0; i < COUNT(rows); i++)
        make_process(&rows[i], children);
}

static void remove_tree(const char *below)
{
    char command[128];

    snprintf(command, sizeof command, "rm -r %s/%s", directory, below);
    must(system(command) == 0); /* NOLINT(cert-env33-c) */
}

/* A world in place of /proc. */
static struct procfs procfs_of(const char *place)
{
    return (struct procfs){.directory = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                           .reserve = {-1, -1, -1},
                           .checked = true};
}

static void test(const char *how, char sign, bool children, pid_t root)
{
    struct process_list list = {0}, seen = {noted, COUNT(noted), 0};
    struct process callers[] = {
        {.pid = pid_of(110), .group = pid_of(US), .session = session_of(US), .started = 90},
        {.pid = pid_of(113), .group = pid_of(113), .session = pid_of(113), .started = 91}};
    const struct process_list others = {callers, COUNT(callers), 0};

    make_world(children);
    struct procfs procfs = procfs_of(directory);
    const struct tree tree = {.procfs = &procfs,
                              .root = root,
                              .except = pid_of(101),
                              .group = pid_of(120),
                              .leader = -1,
                              .owner = OWNER,
                              .since = 100,
                              .callers = &others,
                              .noted = &seen,
                              .noted_count = 1};
    tap_ok(tree_list(&tree, &list), "%s: all is seen", how);
    for (size_t i = 0; i < COUNT(rows); i++) {
        bool wanted = strchr(rows[i].expected, sign) != NULL;
        tap_ok((process_list_find(&list, pid_of(rows[i].pid)) != NULL) == wanted, "%s: %s is %s",
               how, rows[i].what, wanted ? "in it" : "not");
    }
    process_list_free(&list);
    procfs_close(&procfs);
    remove_tree("");
}

/* -- one that forks and ends again and again --------------------------------------------------- */

static struct row runner = {200, 1,         200, 200, 1, 250, "x", "RLOCK_OWNER=" OWNER ".c",
                            "l", "a runner"};
static bool runs;
static struct row late_child = {300, US, 300, 300, 1, 260, "x", "", "d", "a late child"};
static int late_looks;  /* so many do not show it */
static bool tells_late; /* that it was born then */

static void tell_latest(int number)
{
    char path[128], text[24];

    snprintf(path, sizeof path, "%s/sys/kernel/ns_last_pid", directory);
    snprintf(text, sizeof text, "%d\n", (int)pid_of(number));
    write_file(path, text);
}

/* In the library's place: notes signals instead of sending them, if "notes_deeds" says so, and that
 * a list of all processes was begun. */
static char deeds[1024];
static bool notes_deeds;
static size_t entries; /* of directories, that were read */
static pid_t group;    /* that has processes; 0: none */
static pid_t single;   /* a process that can be signalled by its number; 0: none */

static void note_deed(const char *what, int number)
{
    size_t used = strlen(deeds);

    if (notes_deeds)
        snprintf(deeds + used, sizeof deeds - used, "%s%s %d", used ? ", " : "", what, number);
}

int kill(pid_t pid, int signo)
{
    if (signo != 0)
        note_deed(signo == SIGKILL ? "kill" : "signal", pid - FAR);
    errno = ESRCH;
    return (group && pid == -group) || (single && pid == single) ? 0 : -1;
}

static size_t environments; /* that were opened */
static bool memory_ends;    /* behind the first look at the command */

/* In the library's place: counts those. */
int openat(int at, const char *path, int flags, ...)
{
    static int looks;
    const char *name = strrchr(path, '/');

    environments += name && strcmp(name, "/environ") == 0;
    if (memory_ends && atoi(path) == pid_of(120) && looks++ > 0) {
        errno = ENOMEM;
        return -1;
    }
    return (int)syscall(SYS_openat, at, path, flags, 0);
}

/* In the library's place: whenever the runner is about to be looked at, it has forked and ended. A
 * late child was born behind the first look at its number. */
struct dirent *readdir(DIR *from)
{
    static struct dirent *(*next)(DIR *);

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "readdir64");
    struct dirent *entry = next(from);
    entries++;
    if (entry && strtol(entry->d_name, NULL, 10) == pid_of(50) && !strstr(deeds, "list"))
        note_deed("see in the list", 50);
    if (late_looks && entry && strtol(entry->d_name, NULL, 10) == pid_of(late_child.pid)) {
        late_looks--;
        if (tells_late)
            tell_latest(late_child.pid);
        entry = next(from);
    }
    if (runs && entry && strtol(entry->d_name, NULL, 10) == pid_of(runner.pid)) {
        char number[24];
        snprintf(number, sizeof number, "%d", (int)pid_of(runner.pid));
        remove_tree(number);
        runner.pid++;
        make_process(&runner, false);
        tell_latest(runner.pid);
    }
    return entry;
}

/* A process that is born during the look is found. Whether there was one the kernel tells only
 * where /proc/sys/kernel/ns_last_pid is there ("told"): without it nothing is known to be gone. */
static void test_births(bool told)
{
    char name[128];

    make_world(false);
    snprintf(name, sizeof name, "%s/sys", directory);
    must(mkdir(name, 0700) == 0);
    strcat(name, "/kernel");
    must(!told || mkdir(name, 0700) == 0);
    if (told)
        tell_latest(runner.pid);
    struct procfs procfs = procfs_of(directory);
    const struct tree tree = {.procfs = &procfs, .leader = -1, .owner = OWNER, .since = 220};
    tap_ok(tree_signal(&tree, 0) == (told ? TREE_GONE : TREE_UNSEEN),
           "nothing is found, and births are %stold", told ? "" : "not ");
    make_process(&runner, false);
    runs = told;
    tap_ok(tree_signal(&tree, 0) == TREE_LIVE, "one that %s is found",
           told ? "forks and ends before it is looked at" : "stays");
    runs = false;
    procfs_close(&procfs);
    remove_tree("");
}

/* One look misses a process whose parent ends during it. The supervisor inherits the orphan, so it
 * looks once more before it believes that nothing is left. */
static void test_second_look(void)
{
    struct row us = {US, 1, US, US, 1, 100, "rlock", "", "", "the supervisor"};

    make_empty_world();
    make_process(&us, false);
    struct procfs procfs = procfs_of(directory);
    const struct tree tree = {.procfs = &procfs, .root = getpid(), .leader = -1, .owner = OWNER};
    tap_ok(tree_signal(&tree, 0) == TREE_GONE, "the supervisor itself is not of its tree");
    make_process(&late_child, false);
    late_looks = 1;
    tap_ok(tree_signal(&tree, 0) == TREE_LIVE, "H121 a process that one look missed is found");
    tap_ok(!late_looks, "and one look has missed it");
    procfs_close(&procfs);
    remove_tree("");
}

/* A session of the tree has ended, and its number is that of a process which was born while all
 * were listed. */
static void test_number_of_session(void)
{
    struct row us = {US, 1, US, US, 1, 100, "rlock", "", "", "the supervisor"};
    struct process once = {.pid = pid_of(300), .session = session_of(300), .started = 90};
    const struct process_list seen = {&once, 1, 0};
    char name[128];

    make_empty_world();
    snprintf(name, sizeof name, "%s/sys", directory);
    must(mkdir(name, 0700) == 0);
    strcat(name, "/kernel");
    must(mkdir(name, 0700) == 0);
    make_process(&us, false);
    make_process(&late_child, false);
    tell_latest(late_child.pid - 1);
    struct procfs procfs = procfs_of(directory);
    const struct tree tree = {.procfs = &procfs,
                              .leader = -1,
                              .owner = OWNER,
                              .since = 220,
                              .noted = &seen,
                              .noted_count = 1};
    late_looks = 2;
    tells_late = true;
    tap_ok(tree_signal(&tree, 0) == TREE_GONE && !late_looks,
           "H125 a later session of a number that was noted is not of the tree");
    tells_late = false;
    procfs_close(&procfs);
    remove_tree("");
}

/* H163: a list takes long where there are many processes. */
static void test_known_first(void)
{
    const char *before = "kill 122, kill 121, kill 120, kill 128, kill 127, see in the list 50, ";
    struct process_list seen = {noted, COUNT(noted), 0};

    make_world(true);
    struct procfs procfs = procfs_of(directory);
    const struct tree tree = {.procfs = &procfs,
                              .leader = -1,
                              .owner = OWNER,
                              .since = 100,
                              .noted = &seen,
                              .noted_count = 1};
    notes_deeds = true;
    tap_ok(tree_signal(&tree, 0) == TREE_LIVE && !*deeds, "H163 what is known lives: no list");
    tree_signal(&tree, SIGKILL);
    tap_ok(strncmp(deeds, before, strlen(before)) == 0, "H163 what is known is killed first: %s",
           deeds);
    notes_deeds = false;
    procfs_close(&procfs);
    remove_tree("");
}

/* Ancestors are those of many: their environments are read once. */
static void test_ancestors(void)
{
    make_world(false);
    struct procfs procfs = procfs_of(directory);
    const struct tree tree = {.procfs = &procfs, .leader = -1, .owner = OWNER, .since = 1};
    environments = 0;
    bool live = tree_signal(&tree, 0) == TREE_LIVE;
    tap_ok(live && environments > 0 && environments <= COUNT(rows),
           "a look reads no environment twice: %zu of %zu processes", environments, COUNT(rows));
    procfs_close(&procfs);
    remove_tree("");
}

/* The supervisor finds its tree by descent, also where its caller had started processes, of which
 * one has ended and its number is that of another. */
static void test_term_by_descent(bool has_callers)
{
    struct process callers[] = {
        {.pid = pid_of(110), .group = pid_of(US), .session = session_of(US), .started = 90},
        {.pid = pid_of(113), .group = pid_of(113), .session = pid_of(113), .started = 91},
        {.pid = pid_of(127), .group = pid_of(127), .session = pid_of(127), .started = 92}};
    const struct process_list others = {callers, COUNT(callers), 0};

    make_world(true);
    struct procfs procfs = procfs_of(directory);
    const struct tree tree = {.procfs = &procfs,
                              .root = getpid(),
                              .except = pid_of(101),
                              .leader = -1,
                              .owner = OWNER,
                              .callers = has_callers ? &others : NULL};
    notes_deeds = true;
    *deeds = '\0';
    tap_ok(tree_signal(&tree, SIGTERM) == TREE_LIVE && strstr(deeds, "signal 122, ") &&
               strstr(deeds, "signal 127, ") && !strstr(deeds, "list"),
           "H163 TERM does without a list of all processes: %s", deeds);
    for (int one = 110; has_callers && one <= 114; one++) {
        char words[40];
        snprintf(words, sizeof words, "signal %d, ", one);
        tap_ok(!strstr(deeds, words), "and does not reach %d, which is the caller's", one);
    }
    notes_deeds = false;
    procfs_close(&procfs);
    remove_tree("");
}

/* The command was found, and the host has no memory for the look that tells that it still is what
 * was found. TERM is sent once. */
static void test_term_without_memory(void)
{
    char expected[40];

    make_world(true);
    struct procfs procfs = procfs_of(directory);
    const struct tree tree = {.procfs = &procfs,
                              .root = getpid(),
                              .except = pid_of(101),
                              .group = pid_of(120),
                              .leader = -1,
                              .owner = OWNER};
    snprintf(expected, sizeof expected, "signal %d", -tree.group - FAR);
    group = tree.group;
    memory_ends = notes_deeds = true;
    *deeds = '\0';
    tree_signal(&tree, SIGTERM);
    tap_ok(strstr(deeds, expected) != NULL, "TERM reaches a command that cannot be looked at: %s",
           deeds);
    memory_ends = notes_deeds = false;
    group = 0;
    procfs_close(&procfs);
    remove_tree("");
}

static char deeds_before[sizeof deeds]; /* the first wait was given up */

static void give_up_waiting(int signo)
{
    (void)signo;
    if (!*deeds_before)
        memcpy(deeds_before, deeds, sizeof deeds);
}

static void wait_at_most(int seconds)
{
    const struct itimerval times = {{0, 20000}, {seconds, 0}};

    *deeds_before = *deeds = '\0';
    must(setitimer(ITIMER_REAL, &times, NULL) == 0);
}

/* Makes what is locked of a process a pipe without a writer. */
static void lock(int number)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%d/stat", directory, (int)pid_of(number));
    must(unlink(path) == 0 && mkfifo(path, 0600) == 0);
}

/* Where the supervisor is dead, the command is known, and what descends from it. */
static void test_locked_below(struct procfs *procfs)
{
    const char *before = "kill 122, kill 121, kill 120";
    struct process_list seen = {noted, 1, 0};
    struct tree tree = {
        .procfs = procfs, .leader = -1, .owner = OWNER, .noted = &seen, .noted_count = 1};

    wait_at_most(3);
    tree_signal(&tree, SIGKILL);
    tap_ok(strncmp(deeds_before, before, strlen(before)) == 0,
           "H163 without the supervisor, too: %s", deeds_before);
    lock(120);
    tree.group = pid_of(120);
    tree.root = getpid();
    wait_at_most(20);
    note_deed("look at", 120);
    tap_ok(!tree_leader_ended(&tree) && !*deeds_before,
           "H163 whether the command has ended is seen without what is locked");
}

/* While a process executes another program, a part of its files is locked. Neither that of the tree
 * nor that of another one holds its end up. */
static void test_locked(void)
{
    const struct sigaction action = {.sa_handler = give_up_waiting};
    const int signals[] = {SIGTERM, SIGCONT, 0}, locked[] = {50, 122};
    const struct itimerval never = {0};

    make_world(true);
    for (size_t i = 0; i < COUNT(locked); i++)
        lock(locked[i]);
    must(sigaction(SIGALRM, &action, NULL) == 0);
    struct procfs procfs = procfs_of(directory);
    const struct tree tree = {
        .procfs = &procfs, .root = getpid(), .except = pid_of(101), .leader = -1, .owner = OWNER};
    notes_deeds = true;
    for (size_t i = 0; i < COUNT(signals); i++) {
        wait_at_most(20);
        tap_ok(tree_signal(&tree, signals[i]) == TREE_LIVE && !*deeds_before,
               "H163 signal %d waits for no locked file", signals[i]);
    }
    wait_at_most(3);
    tree_signal(&tree, SIGKILL);
    tap_ok(strstr(deeds_before, "kill 122") != NULL,
           "H163 KILL waits for a locked file when all is killed: %s", deeds_before);
    test_locked_below(&procfs);
    notes_deeds = false;
    setitimer(ITIMER_REAL, &never, NULL);
    procfs_close(&procfs);
    remove_tree("");
}

/* Where the kernel lists no children, known processes are killed first, too, as long as the
 * supervisor inherits what they leave. KILL knows what TERM has reached, and no look lasts until
 * after it is due. */
static void test_asked_first(void)
{
    const char *before = "kill 120, kill 121, kill 122, kill 123, kill 124, kill 125, kill 126, "
                         "kill 127, kill 128, kill 142, see in the list 50, ";
    struct process callers[] = {
        {.pid = pid_of(110), .group = pid_of(US), .session = session_of(US), .started = 90},
        {.pid = pid_of(113), .group = pid_of(113), .session = pid_of(113), .started = 91}};
    const struct process_list others = {callers, COUNT(callers), 0};
    struct process_list asked = {0};

    make_world(false);
    struct procfs procfs = procfs_of(directory);
    struct tree tree = {.procfs = &procfs,
                        .root = getpid(),
                        .except = pid_of(101),
                        .leader = -1,
                        .owner = OWNER,
                        .callers = &others,
                        .noted = &asked,
                        .noted_count = 1,
                        .asked = &asked};
    tree_signal(&tree, SIGTERM);
    notes_deeds = true;
    *deeds = '\0';
    tree_signal(&tree, SIGKILL);
    tap_ok(strncmp(deeds, before, strlen(before)) == 0,
           "H163 what TERM reached is killed first: %s", deeds);
    notes_deeds = false;
    tree.noted_count = 0;
    tree.kill_at = moment_now();
    entries = 0;
    tap_ok(tree_signal(&tree, 0) != TREE_GONE && entries < COUNT(rows),
           "H163 a look ends when KILL is due");
    process_list_free(&asked);
    procfs_close(&procfs);
    remove_tree("");
}

/* H122: hidepid= (proc(5)) hides untraceable processes of the same user, too. */
static void test_hidden_group(void)
{
    make_empty_world();
    make_process(&rows[1], false);
    struct procfs procfs = procfs_of(directory);
    const struct tree tree = {
        .procfs = &procfs, .group = pid_of(120), .leader = -1, .owner = OWNER, .since = 220};
    group = tree.group;
    notes_deeds = true;
    *deeds = '\0';
    tap_ok(tree_signal(&tree, 0) == TREE_LIVE, "H122 a group that is hidden lives");
    tap_ok(tree_signal(&tree, SIGTERM) == TREE_LIVE && strstr(deeds, "signal"),
           "H122 and gets its signals: %s", deeds);
    struct row child = rows[11]; /* the command's child, which is dead */
    child.threads = 1;
    child.dead = true;
    make_process(&child, false);
    tap_ok(tree_signal(&tree, 0) != TREE_LIVE, "H122 a zombie is left of a group");
    single = tree.group;
    tap_ok(tree_signal(&tree, 0) == TREE_LIVE, "H122 a zombie is shown of a group that is hidden");
    notes_deeds = false;
    group = single = 0;
    procfs_close(&procfs);
    remove_tree("");
}

/* The command has been reaped, its number is that of another process now, and nothing can be looked
 * at. */
static void test_number_of_another(void)
{
    int ends[2];
    char byte;

    must(pipe(ends) == 0);
    pid_t other = fork();
    if (other == 0) {
        setsid();
        must(write(ends[1], "", 1) == 1);
        pause();
    }
    must(read(ends[0], &byte, 1) == 1);
    struct procfs nothing = {.directory = 0};
    const struct tree tree = {.procfs = &nothing, .group = other, .leader = -1, .owner = OWNER};
    group = other;
    notes_deeds = true;
    *deeds = '\0';
    tap_ok(tree_signal(&tree, SIGKILL) == TREE_GONE && !*deeds,
           "H125 the number of another session's process is not signalled: %s", deeds);
    notes_deeds = false;
    group = 0;
    syscall(SYS_kill, other, SIGKILL);
    must(waitpid(other, NULL, 0) == other);
    close(ends[0]);
    close(ends[1]);
}

/* A group without processes is not signalled: meanwhile its number may become another group's.
 * Without /proc only kill() tells of a group: a look cannot say whether it is the command's, and
 * after a signal it is looked at again. */
static void test_empty_group(void)
{
    struct procfs nothing = {.directory = 0};
    const struct tree tree = {
        .procfs = &nothing, .group = pid_of(120), .leader = -1, .owner = OWNER};

    notes_deeds = true;
    *deeds = '\0';
    tap_ok(tree_signal(&tree, SIGKILL) == TREE_GONE && !*deeds,
           "H125 a group without processes is not signalled: %s", deeds);
    notes_deeds = false;
    group = tree.group;
    tap_ok(tree_signal(&tree, 0) == TREE_UNSEEN && tree_signal(&tree, SIGKILL) == TREE_LIVE,
           "a group that only kill() tells of: not known after a look, alive after a signal");
    group = 0;
}

/* There are no pidfds, but the command was reaped by who asks: a process of its number is another
 * one, also if it is of this session, as a shell's next job is, or the agent of an outer run. */
static void test_group_of_a_reaped_command(void)
{
    struct procfs nothing = {.directory = 0};
    const struct tree tree = {
        .procfs = &nothing, .group = pid_of(120), .leader = -1, .reaped = true, .owner = OWNER};

    group = tree.group;
    tap_ok(tree_signal(&tree, SIGKILL) == TREE_LIVE, "what a reaped command has left is its own");
    single = tree.group;
    notes_deeds = true;
    *deeds = '\0';
    tap_ok(tree_signal(&tree, 0) == TREE_GONE && tree_signal(&tree, SIGKILL) == TREE_GONE &&
               !*deeds,
           "H125 the next group of its number is not signalled: %s", deeds);
    notes_deeds = false;
    group = single = 0;
}

/* In the library's place: before Linux 6.9, which signals no group by a pidfd; and that of each
 * process says that it has gone. */
static bool is_old_kernel;
static enum { LIVES, HAS_GONE, ENDS } pidfd; /* ENDS: behind the look at its group */
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __real_syscall(long number, long a, long b, long c, long d, long e, long f);

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (number != SYS_pidfd_send_signal || (pidfd == LIVES && !is_old_kernel))
        return __real_syscall(number, a, b, c, d, e, f);
    if (pidfd == ENDS && d)
        return 0;
    pidfd = pidfd == ENDS ? HAS_GONE : pidfd;
    errno = is_old_kernel && d ? EINVAL : ESRCH;
    return -1;
}

/* A later group with the number of the command's is not signalled, even if its own first process
 * has ended, too. leader: a pidfd of the command; -1: the caller has reaped it. */
static void test_group_without_its_first(const char *guard, int leader)
{
    static const struct row others = {151, 1, 150, 150, 1, 230, "x", "", "", "another's"};

    make_world(true);
    make_process(&others, true);
    struct procfs procfs = procfs_of(directory);
    const struct tree tree = {.procfs = &procfs,
                              .root = getpid(),
                              .group = pid_of(150),
                              .leader = leader,
                              .reaped = leader < 0,
                              .except = pid_of(101),
                              .owner = OWNER};
    group = tree.group;
    is_old_kernel = true;
    notes_deeds = true;
    *deeds = '\0';
    tree_signal(&tree, SIGTERM);
    tree_signal(&tree, SIGKILL);
    tap_ok(strstr(deeds, "signal 122") && !strchr(deeds, '-'),
           "H125 a later group whose first process has ended is not signalled by %s: %s", guard,
           deeds);
    is_old_kernel = false;
    notes_deeds = false;
    group = 0;
    procfs_close(&procfs);
    remove_tree("");
}

/* The guard is stopped between the list of children and a look at one of them. */
static void test_number_of_a_child(void)
{
    static const struct row stranger = {151, 1, 151, 151, 1, 230, "x", "", "", "a stranger"};
    struct process_list seen = {noted, COUNT(noted), 0};
    char name[40], children[40];

    make_world(true);
    make_process(&stranger, true);
    snprintf(name, sizeof name, "task/%d/children", (int)pid_of(120));
    snprintf(children, sizeof children, "%d %d ", (int)pid_of(121), (int)pid_of(151));
    make_file(120, name, children);
    struct procfs procfs = procfs_of(directory);
    const struct tree tree = {.procfs = &procfs,
                              .root = getpid(),
                              .except = pid_of(101),
                              .leader = -1,
                              .owner = OWNER,
                              .noted = &seen,
                              .noted_count = 1};
    notes_deeds = true;
    *deeds = '\0';
    tree_signal(&tree, SIGKILL);
    tap_ok(strstr(deeds, "kill 121") && !strstr(deeds, "kill 151"),
           "H125 a stranger that has got the number of a child is not killed: %s", deeds);
    const struct tree orphaned = {
        .procfs = &procfs, .leader = -1, .owner = OWNER, .noted = &seen, .noted_count = 1};
    *deeds = '\0';
    tree_signal(&orphaned, SIGKILL);
    tap_ok(strstr(deeds, "kill 121") && !strstr(deeds, "kill 151"),
           "H125 nor when the supervisor is dead: %s", deeds);
    notes_deeds = false;
    struct process_list all = {0};
    tap_ok(tree_list(&tree, &all) && process_list_find(&all, pid_of(121)) &&
               !process_list_find(&all, pid_of(151)),
           "H125 nor is it noted");
    process_list_free(&all);
    procfs_close(&procfs);
    remove_tree("");
}

/* The guard is stopped between the look at a process and the list of its children. */
static void test_number_of_a_parent(void)
{
    static const struct row later = {127, 1, 127, 127, 1, 230, "x", "", "", "another's"},
                            strangers = {151, 127, 151, 151, 1, 231, "x", "", "", "its child"};
    char path[128], children[40];

    make_world(true);
    make_process(&strangers, true);
    snprintf(path, sizeof path, "%s/%d/task/%d/children", directory, (int)pid_of(127),
             (int)pid_of(127));
    snprintf(children, sizeof children, "%d ", (int)pid_of(151));
    must(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    pid_t giver = fork();
    if (giver == 0) { /* the number is another's when the list is read */
        signal(SIGPIPE, SIG_IGN);
        int list = open(path, O_WRONLY | O_CLOEXEC);
        make_status(&later);
        for (;; list = open(path, O_WRONLY | O_CLOEXEC))
            must((write(list, children, strlen(children)) > 0 || errno == EPIPE) &&
                 close(list) == 0);
    }
    struct procfs procfs = procfs_of(directory);
    const struct tree tree = {
        .procfs = &procfs, .root = getpid(), .except = pid_of(101), .leader = -1, .owner = OWNER};
    notes_deeds = true;
    *deeds = '\0';
    tree_signal(&tree, SIGKILL);
    notes_deeds = false;
    must(syscall(SYS_kill, giver, SIGKILL) == 0 && waitpid(giver, NULL, 0) == giver);
    tap_ok(strstr(deeds, "kill 121") && !strstr(deeds, "kill 151"),
           "H125 a child of one that has got the number of a parent is not killed: %s", deeds);
    procfs_close(&procfs);
    remove_tree("");
}

/* The guard is stopped between a look at the command and the signal. */
static void test_number_of_the_command(void)
{
    static const struct row stranger = {150, 1, 150, 150, 1, 230, "x", "", "", "a stranger"};

    make_world(true);
    make_process(&stranger, true);
    struct procfs procfs = procfs_of(directory);
    const struct tree tree = {.procfs = &procfs,
                              .group = pid_of(150),
                              .except = pid_of(101),
                              .leader = 0, /* told of by __wrap_syscall() */
                              .owner = OWNER};
    pidfd = ENDS;
    notes_deeds = true;
    *deeds = '\0';
    tree_signal(&tree, SIGKILL);
    tap_ok(pidfd == HAS_GONE && strstr(deeds, "kill 124") && !strstr(deeds, "kill 150"),
           "H125 a stranger that has got the number of the command is not killed: %s", deeds);
    pidfd = LIVES;
    notes_deeds = false;
    procfs_close(&procfs);
    remove_tree("");
}

/* The file may be refused, or no descriptor be left for it. */
static void test_cgroup_that_does_not_kill(void)
{
    static struct cgroup cgroup;
    char path[128];

    make_empty_world();
    snprintf(cgroup.path, sizeof cgroup.path, "%s", directory);
    snprintf(path, sizeof path, "%s/cgroup.events", directory);
    write_file(path, "populated 1\n");
    struct procfs nothing = {.directory = 0};
    const struct tree tree = {
        .procfs = &nothing, .cgroup = &cgroup, .group = pid_of(120), .leader = -1, .owner = OWNER};
    group = tree.group;
    notes_deeds = true;
    *deeds = '\0';
    tap_ok(tree_signal(&tree, SIGKILL) == TREE_LIVE && strstr(deeds, "kill"),
           "where cgroup.kill is refused, processes are killed one by one: %s", deeds);
    notes_deeds = false;
    group = 0;
    remove_tree("");
}

/* Stops when its child has written its own number to "to". Returns what was forked. */
static pid_t fork_stopped_guard(int to)
{
    pid_t guard = fork();

    if (guard != 0)
        return guard;
    if (fork() == 0) {
        pid_t child = setsid();
        must(write(to, &child, sizeof child) == sizeof child);
        alarm(120);
        pause();
        _exit(0);
    }
    for (;;)
        raise(SIGSTOP);
}

/* KILL for a child of another process is sent only while it is that one's child, also if its
 * parent is stopped. */
static void test_child_of_another(void)
{
    struct moment until = moment_plus(moment_now(), 60 * NS_PER_SEC);
    const struct timespec rest = {.tv_nsec = NS_PER_MS};
    struct procfs procfs = {0};
    pid_t child;
    int ends[2], status;

    must(procfs_open(&procfs) == 0 && pipe(ends) == 0);
    pid_t guard = fork_stopped_guard(ends[1]);
    must(guard > 0 && read(ends[0], &child, sizeof child) == sizeof child);
    must(waitpid(guard, &status, WUNTRACED) == guard && WIFSTOPPED(status));
    tap_ok(tree_signal_child(&procfs, getpid(), child, SIGKILL) == TREE_GONE &&
               tree_signal_child(&procfs, guard, child, 0) == TREE_LIVE,
           "a process is not killed as the child of another one than its parent");
    bool lived = tree_signal_child(&procfs, guard, child, SIGKILL) == TREE_LIVE;
    while (tree_signal_child(&procfs, guard, child, 0) == TREE_LIVE &&
           !moment_reached(until, moment_now()))
        nanosleep(&rest, NULL);
    tap_ok(lived && !moment_reached(until, moment_now()) && waitpid(guard, NULL, WNOHANG) == 0,
           "the child of a stopped process is killed");
    syscall(SYS_kill, guard, SIGKILL);
    waitpid(guard, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    procfs_close(&procfs);
}

/* Copies of one descriptor (dup(2)) would be no reserve where the host has no open files left. */
static void test_reserve(void)
{
    struct procfs procfs = {0};
    bool own = true;

    must(procfs_open(&procfs) == 0);
    for (size_t i = 0; i < PROCFS_RESERVE; i++) {
        int one = procfs.reserve[i], next = i > 0 ? procfs.reserve[i - 1] : procfs.directory;
        lseek(one, 0, SEEK_SET);
        lseek(next, 3, SEEK_SET);
        own = own && lseek(one, 0, SEEK_CUR) == 0;
    }
    tap_ok(own, "each descriptor in reserve has an open file of its own");
    procfs_close(&procfs);
}

int main(void)
{
    test("by lists of children", 'd', true, getpid());
    test("by parents", 'd', false, getpid());
    test("without the supervisor", 'l', false, 0);
    test_births(false);
    test_births(true);
    test_second_look();
    test_number_of_session();
    test_known_first();
    test_ancestors();
    test_term_by_descent(false);
    test_term_by_descent(true);
    test_term_without_memory();
    test_locked();
    test_asked_first();
    test_hidden_group();
    test_number_of_another();
    test_empty_group();
    test_group_of_a_reaped_command();
    test_group_without_its_first("who has reaped the command", -1);
    test_group_without_its_first("who has a pidfd of it", STDIN_FILENO);
    test_number_of_a_child();
    test_number_of_a_parent();
    test_number_of_the_command();
    test_cgroup_that_does_not_kill();
    test_child_of_another();
    test_reserve();
    return tap_done();
}
