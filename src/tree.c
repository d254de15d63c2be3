/* Processes of a command, found and signalled through /proc (proc(5)). */
#include "tree.h"
#include "lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A KILL is repeated until two passes find the same processes, as those that fork meanwhile are faster
 * than one pass; but not for ever. */
#define MOST_PASSES 10

struct process {
    pid_t pid;
    pid_t parent;
    pid_t group;
    pid_t session;
    bool live;
    bool spared;
    unsigned long long started; /* clock ticks since boot */
};

/* All processes there are, in the order of their pids. */
struct table {
    int proc;
    struct process *all;
    size_t count;
    size_t room;
};

/* How to tell the tree's own. */
struct search {
    const struct tree *tree;
    const struct table *table;
    bool by_descent;
    pid_t session;
    unsigned long long since;   /* what is older was there before the command */
    char mark[OWNER_SIZE + 16]; /* the owner's word in an environment */
};

static int open_of(int proc, pid_t pid, const char *what)
{
    char name[40];
    snprintf(name, sizeof name, "%d/%s", (int)pid, what);
    return openat(proc, name, O_RDONLY | O_CLOEXEC); /* NOLINT(*StdCLibraryFunctions): of a DIR */
}

/* A thread group whose first thread has ended looks like a zombie, but has others that run on. */
static bool is_live(char state, long threads)
{
    return state != 'X' && state != 'x' && (state != 'Z' || threads > 1);
}

static bool read_process(int proc, pid_t pid, struct process *process)
{
    char text[1024];
    const char *after;
    char state;
    long threads;
    ssize_t got;
    int fd = open_of(proc, pid, "stat");

    if (fd < 0)
        return false;
    got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0)
        return false;
    text[got] = '\0';
    after = strrchr(text, ')'); /* a name may hold blanks and brackets */
    process->pid = pid;
    if (!after ||
        sscanf(after + 1, /* NOLINT(cert-err34-c): the kernel's own numbers */
               " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
               &state, &process->parent, &process->group, &process->session, &threads,
               &process->started) != 6)
        return false;
    process->live = is_live(state, threads);
    process->spared = strstr(text, "(" TREE_SPARED ")") != NULL;
    return true;
}

static bool table_append(struct table *table, const struct process *process)
{
    if (table->count == table->room) {
        size_t room = table->room ? 2 * table->room : 256;
        struct process *grown = realloc(table->all, room * sizeof *grown);
        if (!grown)
            return false;
        table->all = grown;
        table->room = room;
    }
    table->all[table->count++] = *process;
    return true;
}

static int by_pid(const void *a, const void *b)
{
    const struct process *p = a, *q = b;
    return (p->pid > q->pid) - (p->pid < q->pid);
}

static bool table_read(struct table *table, DIR *directory)
{
    const struct dirent *entry;
    struct process process;

    table->count = 0;
    while ((entry = readdir(directory))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && read_process(table->proc, pid, &process) && !table_append(table, &process))
            return false;
    }
    if (table->count > 0)
        qsort(table->all, table->count, sizeof *table->all, by_pid);
    return true;
}

static const struct process *table_find(const struct table *table, pid_t pid)
{
    struct process wanted = {.pid = pid};
    return table->count ? bsearch(&wanted, table->all, table->count, sizeof wanted, by_pid) : NULL;
}

/* Started under this owner, or under one that nests in it. */
static bool has_mark(const struct search *search, pid_t pid)
{
    char text[4096];
    ssize_t got;
    size_t matched = 0;
    bool found = false, differs = false;
    int fd = open_of(search->table->proc, pid, "environ");

    if (fd < 0)
        return false;
    while (!found && (got = read(fd, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < got && !found; i++) {
            found = !differs && !search->mark[matched] && (text[i] == '\0' || text[i] == '.');
            differs = differs || text[i] != search->mark[matched];
            matched = text[i] == '\0' ? 0 : matched + !differs;
            differs = differs && text[i] != '\0';
        }
    }
    close(fd);
    return found;
}

/* One of the tree by itself, not for its ancestors. A group's number may have been given anew to
 * another group, but hardly to one of this session. */
static bool is_root_of_some(const struct search *search, const struct process *process)
{
    const struct tree *tree = search->tree;

    if (search->by_descent)
        return process->parent == tree->root && process->started >= search->since;
    if (process->started < search->since)
        return false;
    return (tree->group > 0 && process->group == tree->group &&
            process->session == search->session) ||
           has_mark(search, process->pid);
}

static bool belongs(const struct search *search, const struct process *process)
{
    const struct tree *tree = search->tree;
    size_t steps = search->table->count; /* parents read at different times may form a ring */

    for (; process && steps > 0; steps--) {
        if (process->pid == tree->root || process->pid == tree->except || process->spared)
            return false;
        if (is_root_of_some(search, process))
            return true;
        process = table_find(search->table, process->parent);
    }
    return false;
}

/* Through a descriptor of the process, as its pid may be someone else's by now if this process was
 * stopped since it was read. */
static void deliver(int proc, const struct process *process, int signo)
{
    struct process now;
    int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);

    if (!read_process(proc, process->pid, &now) || now.started != process->started) {
        /* gone */
    } else if (fd >= 0) {
        syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0);
    } else {
        kill(process->pid, signo); /* a kernel or a sandbox without pidfd_open() */
    }
    if (fd >= 0)
        close(fd);
}

/* Without its root as an ancestor, the caller cannot tell descendants of it from others. */
static void search_init(struct search *search, const struct tree *tree, const struct table *table)
{
    const struct process *except = table_find(table, tree->except);

    *search = (struct search){.tree = tree, .table = table};
    search->by_descent = tree->root > 0 && (getpid() == tree->root || getppid() == tree->root);
    search->session = getsid(0);
    search->since = except ? except->started : 0;
    snprintf(search->mark, sizeof search->mark, "RLOCK_OWNER=%s", tree->owner);
}

/* Signals the tree as it is in "table"; "print" tells one set of processes from another. */
static int signal_found(const struct tree *tree, const struct table *table, int signo,
                        uint64_t *print)
{
    struct search search;
    int live = 0;

    *print = 0;
    search_init(&search, tree, table);
    for (size_t i = 0; i < table->count; i++) {
        const struct process *process = &table->all[i];
        if (!process->live || !belongs(&search, process))
            continue;
        if (signo != 0)
            deliver(table->proc, process, signo);
        *print = (*print + (uint64_t)process->pid) * 0x9e3779b97f4a7c15U + process->started;
        live++;
    }
    return live;
}

int tree_signal(const struct tree *tree, int signo)
{
    struct table table = {0};
    uint64_t print = 0, last;
    int live = -1;
    DIR *directory = opendir("/proc");

    if (!directory)
        return -1;
    table.proc = dirfd(directory);
    for (int pass = 0; pass < MOST_PASSES; pass++) {
        last = print;
        live = -1;
        if (!table_read(&table, directory))
            break;
        live = signal_found(tree, &table, signo, &print);
        if (signo != SIGKILL || live == 0 || print == last)
            break;
        rewinddir(directory);
    }
    free(table.all);
    closedir(directory);
    return live;
}
