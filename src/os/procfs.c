#include "os/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/decimal.h"
#include "os/file.h"

/* -- one process ----------------------------------------------------------------------------- */

enum process_look process_look_of(int error)
{
    bool gone = error == ENOENT || error == ESRCH;
    bool hidden = error == EACCES || error == EPERM;

    return gone || hidden ? PROCESS_GONE : PROCESS_UNSEEN;
}

/* Returns the number that is the text; 0: it is not the number of a process. */
static pid_t pid_of(const char *text)
{
    int64_t pid = 0;

    decimal_parse(text, 1, INT_MAX, &pid);
    return (pid_t)pid;
}

/* Whether a thread of the process has not ended: one whose first thread has ended looks like a
 * zombie ('Z'), but may have others that run on. */
static bool may_live(const struct process *process)
{
    return process->state != 'X' && process->state != 'x' &&
           (process->state != 'Z' || process->threads > 1);
}

int procfs_open_file(const struct procfs *procfs, pid_t pid, const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "%s%d/%s", procfs ? "" : "/proc/", (int)pid, name);
    return openat(procfs ? procfs->directory : AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

enum process_look procfs_read(const struct procfs *procfs, pid_t pid, struct process *process)
{
    char text[1024];
    ssize_t got = file_read_small(procfs_open_file(procfs, pid, "stat"), text, sizeof text);

    if (got <= 0)
        return got < 0 ? process_look_of(errno) : PROCESS_GONE;
    /* The name stands in brackets, and may hold blanks and brackets itself. */
    const char *open = strchr(text, '('), *close = strrchr(text, ')'), *first = text;
    int64_t number;
    if (!open || !close ||
        sscanf(close + 1, /* NOLINT(cert-err34-c): the kernel's own numbers */
               " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
               &process->state, &process->parent, &process->group, &process->session,
               &process->threads, &process->started) != 6 ||
        !decimal_take(&first, INT_MAX, &number))
        return PROCESS_UNSEEN;
    process->pid = (pid_t)number;
    process->live = may_live(process);
    snprintf(process->name, sizeof process->name, "%.*s", (int)(close - open - 1), open + 1);
    return PROCESS_FOUND;
}

/* Returns where the value of a line of /proc/PID/status begins; NULL: there is no such line. name:
 * as in "\nPid:\t". */
static const char *value_of(const char *status, const char *name)
{
    const char *line = strstr(status, name);
    return line ? line + strlen(name) : NULL;
}

/* Returns the first number in a line of a status file, by its name as of value_of(); 0: none. */
static pid_t number_of(const char *status, const char *name)
{
    const char *value = value_of(status, name);
    int64_t number = 0;

    if (value)
        decimal_take(&value, INT_MAX, &number);
    return (pid_t)number;
}

/* Whether a line of a status file, by its name as of value_of(), has this number and no other. */
static bool has_only_number(const char *status, const char *name, pid_t pid)
{
    const char *value = value_of(status, name);
    int64_t number;

    return value && decimal_take(&value, INT_MAX, &number) && number == pid && *value == '\n';
}

enum process_look procfs_read_status(const struct procfs *procfs, pid_t pid,
                                     struct process *process)
{
    char text[4096];
    ssize_t got = file_read_small(procfs_open_file(procfs, pid, "status"), text, sizeof text);
    const char *name = value_of(text, "Name:\t"), *state = value_of(text, "\nState:\t");

    if (got <= 0)
        return got < 0 ? process_look_of(errno) : PROCESS_GONE;
    if (!name || !state)
        return PROCESS_UNSEEN;
    *process = (struct process){.pid = pid,
                                .parent = number_of(text, "\nPPid:\t"),
                                .group = number_of(text, "\nNSpgid:\t"),
                                .session = number_of(text, "\nNSsid:\t"),
                                .threads = number_of(text, "\nThreads:\t"),
                                .state = *state};
    process->live = may_live(process);
    snprintf(process->name, sizeof process->name, "%.*s", (int)strcspn(name, "\n"), name);
    return PROCESS_FOUND;
}

bool procfs_is_process(const struct procfs *procfs, pid_t pid)
{
    char status[512];
    ssize_t got = file_read_small(procfs_open_file(procfs, pid, "status"), status, sizeof status);

    /* Where it cannot be read, it is taken for one. */
    return got <= 0 || has_only_number(status, "\nTgid:\t", pid);
}

/* -- all of them ----------------------------------------------------------------------------- */

bool process_list_append(struct process_list *list, const struct process *process)
{
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        struct process *grown = realloc(list->all, room * sizeof *grown);
        if (!grown)
            return false;
        list->all = grown;
        list->room = room;
    }
    list->all[list->count++] = *process;
    return true;
}

static int by_pid(const void *a, const void *b)
{
    const struct process *p = a, *q = b;
    return (p->pid > q->pid) - (p->pid < q->pid);
}

struct process *process_list_find(const struct process_list *list, pid_t pid)
{
    struct process wanted = {.pid = pid};
    return list->count ? bsearch(&wanted, list->all, list->count, sizeof wanted, by_pid) : NULL;
}

bool process_list_has(const struct process_list *list, const struct process *process)
{
    const struct process *found = process_list_find(list, process->pid);
    return found && found->started == process->started;
}

void process_list_sort(struct process_list *list)
{
    if (list->count > 0)
        qsort(list->all, list->count, sizeof *list->all, by_pid);
}

void process_list_free(struct process_list *list)
{
    free(list->all);
    *list = (struct process_list){0};
}

pid_t procfs_last_pid(const struct procfs *procfs)
{
    char text[32];
    const char *digits = text;
    int64_t pid = -1;
    /* Not /proc/loadavg, of which a container may show its own version (lxcfs). */
    file_read_small(openat(procfs->directory, "sys/kernel/ns_last_pid", O_RDONLY | O_CLOEXEC), text,
                    sizeof text);
    return decimal_take(&digits, INT_MAX, &pid) ? (pid_t)pid : -1;
}

bool procfs_list(const struct procfs *procfs, struct moment until, struct process_list *list)
{
    const struct dirent *entry;
    struct process process;
    int fd = openat(procfs->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    bool complete = directory, late = false;

    list->count = 0;
    /* errno tells an error of readdir() from the end. */
    while (directory && !late && (errno = 0, entry = readdir(directory))) {
        pid_t pid = pid_of(entry->d_name);
        enum process_look look = pid > 0 ? procfs_read(procfs, pid, &process) : PROCESS_GONE;
        if (look == PROCESS_UNSEEN ||
            (look == PROCESS_FOUND && !process_list_append(list, &process)))
            complete = false;
        late = moment_reached(until, moment_now());
    }
    complete = complete && !late && errno == 0;
    if (directory)
        closedir(directory);
    else
        file_close(fd);
    process_list_sort(list);
    return complete;
}

/* -- the children of one --------------------------------------------------------------------- */

/* Opens the list of a thread's children; -1 with errno. */
static int open_children(const struct procfs *procfs, pid_t pid, pid_t thread)
{
    char name[40];

    snprintf(name, sizeof name, "task/%d/children", (int)thread);
    return procfs_open_file(procfs, pid, name);
}

bool procfs_lists_children(const struct procfs *procfs, pid_t pid)
{
    int fd = open_children(procfs, pid, pid);

    file_close(fd);
    return fd >= 0;
}

/* Adds the children of one thread: numbers, with a blank behind each. Returns whether all could be
 * read; a thread that has ended has none. */
static bool add_children_of(const struct procfs *procfs, pid_t pid, pid_t thread,
                            struct process_list *list)
{
    int fd = open_children(procfs, pid, thread);
    FILE *children = fd < 0 ? NULL : fdopen(fd, "r");
    bool complete = children || process_look_of(errno) == PROCESS_GONE;
    struct process child = {.parent = pid};

    while (children && fscanf(children, "%d", &child.pid) == 1) /* NOLINT(cert-err34-c) */
        complete = process_list_append(list, &child) && complete;
    if (children)
        fclose(children);
    else
        file_close(fd);
    return complete;
}

bool procfs_add_children(const struct procfs *procfs, const struct process *process,
                         struct process_list *list)
{
    const struct dirent *entry;
    pid_t pid = process->pid; /* the list may be moved */
    bool complete = true;

    if (process->threads == 1)
        return add_children_of(procfs, pid, pid, list);
    int fd = procfs_open_file(procfs, pid, "task");
    DIR *tasks = fd < 0 ? NULL : fdopendir(fd);
    if (!tasks)
        complete = process_look_of(errno) == PROCESS_GONE;
    while (tasks && (entry = readdir(tasks))) {
        pid_t thread = pid_of(entry->d_name);
        if (thread > 0 && !add_children_of(procfs, pid, thread, list))
            complete = false;
    }
    if (tasks)
        closedir(tasks);
    else
        file_close(fd);
    return complete;
}

/* -- the directory --------------------------------------------------------------------------- */

/* Whether this /proc is that of this process's name space. A /proc of another one does not know
 * this process, or by several numbers, one for each name space (NSpid). */
static bool shows_this_process(const struct procfs *procfs)
{
    char status[4096];
    int fd = openat(procfs->directory, "self/status", O_RDONLY | O_CLOEXEC);

    if (file_read_small(fd, status, sizeof status) < 0 && process_look_of(errno) == PROCESS_UNSEEN)
        return true; /* as far as is known; no process will be seen either */
    /* The line of NSpid is missing where the kernel has none, and may be too far behind where the
     * user is in hundreds of groups. */
    return has_only_number(status, "\nPid:\t", getpid()) &&
           (!strstr(status, "\nNSpid:\t") || has_only_number(status, "\nNSpid:\t", getpid()));
}

/* Opens descriptors that only hold a place: procfs.h says what for. -1 with errno: some could
 * not be opened. */
static int keep_reserve(struct procfs *procfs)
{
    int kept = 0;

    for (size_t i = 0; i < PROCFS_RESERVE; i++) {
        if (procfs->reserve[i] < 0)
            procfs->reserve[i] = openat(procfs->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (procfs->reserve[i] < 0)
            kept = -1;
    }
    return kept;
}

void procfs_begin(struct procfs *procfs)
{
    for (size_t i = 0; i < PROCFS_RESERVE; i++) {
        file_close(procfs->reserve[i]);
        procfs->reserve[i] = -1;
    }
}

int procfs_open(struct procfs *procfs)
{
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    *procfs = (struct procfs){.directory = fd > 0 ? fd : 0, .reserve = {-1, -1, -1}};
    if (fd <= 0)
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -1 : 0;
    if (keep_reserve(procfs) == 0)
        return 0;
    procfs_close(procfs);
    return -1;
}

bool procfs_shows_self(const struct procfs *procfs)
{
    char number[16] = "";
    ssize_t got = readlinkat(procfs->directory, "self", number, sizeof number - 1);

    return procfs->directory && got > 0 && pid_of(number) == getpid();
}

bool procfs_is_usable(struct procfs *procfs)
{
    if (!procfs->directory || procfs->checked)
        return procfs->directory; /* not 0 */
    procfs->checked = true;
    procfs_begin(procfs);
    bool usable = shows_this_process(procfs);
    procfs_end(procfs);
    if (!usable)
        procfs_close(procfs);
    return usable;
}

void procfs_close(struct procfs *procfs)
{
    if (!procfs->directory)
        return;
    procfs_begin(procfs);
    file_close(procfs->directory);
    procfs->directory = 0;
}

void procfs_end(struct procfs *procfs)
{
    keep_reserve(procfs);
}
