/* The /proc that os/procfs reads: simulated processes are read one after the other, so that a
 * listing is not of one moment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lives/files.h"
#include "lives/life.h"
#include "os/procfs.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define DIRECTORY 5 /* a descriptor that is not asked for anything */

/* A look at /proc fails: errno is set. */
static bool cannot_look(void)
{
    int error = life_on_want(kernel.current, WANT_LOOK);

    if (error)
        errno = error;
    return error;
}

int __wrap_procfs_open(struct procfs *procfs)
{
    kernel_call();
    int error = life_on_want(kernel.current, WANT_FILE);
    if (error) {
        *procfs = (struct procfs){.directory = 0};
        errno = error;
        return -1;
    }
    procfs->directory = kernel.proc == PROC_NONE ? 0 : DIRECTORY;
    return 0;
}

void __wrap_procfs_close(struct procfs *procfs)
{
    procfs->directory = 0;
}

bool __wrap_procfs_is_usable(struct procfs *procfs)
{
    return procfs->directory != 0;
}

bool __wrap_procfs_shows_self(const struct procfs *procfs)
{
    return procfs->directory != 0;
}

void __wrap_procfs_begin(struct procfs *procfs)
{
    (void)procfs;
    kernel_call();
    kernel.current->has_reserve = true;
}

void __wrap_procfs_end(struct procfs *procfs)
{
    (void)procfs;
    kernel.current->has_reserve = false;
}

pid_t __wrap_procfs_last_pid(const struct procfs *procfs)
{
    (void)procfs;
    kernel_call();
    return kernel.proc == PROC_PROCESSES || cannot_look() ? -1 : kernel.next_pid - 1;
}

/* The process that /proc shows; NULL with ENOENT: none. */
static const struct proc *find_shown(pid_t pid)
{
    const struct proc *proc = kernel.proc == PROC_NONE ? NULL : process_find(pid);

    errno = ENOENT;
    return proc && !proc->hidden ? proc : NULL;
}

/* "environ"; nothing reads another file of a process. */
int __wrap_procfs_open_file(const struct procfs *procfs, pid_t pid, const char *name)
{
    (void)procfs;
    kernel_call();
    const struct proc *proc = find_shown(pid);
    if (!proc || strcmp(name, "environ") != 0 || cannot_look())
        return -1;
    struct file *file = file_new(FILE_TEXT);
    if (process_exists(proc) && proc->environment) {
        file->size = proc->environment_size;
        file->text = memcpy(malloc(file->size), proc->environment, file->size);
    }
    return file_open(file);
}

static struct process described(const struct proc *proc)
{
    struct process process = {.pid = proc->pid,
                              .parent = proc->parent,
                              .group = proc->group,
                              .session = proc->session,
                              .threads = 1,
                              .live = process_exists(proc),
                              .started = proc->started,
                              .state = !process_exists(proc) ? 'Z'
                                       : proc->stopped       ? 'T'
                                                             : 'S'};
    memcpy(process.name, proc->name, sizeof process.name);
    return process;
}

enum process_look __wrap_procfs_read(const struct procfs *procfs, pid_t pid,
                                     struct process *process)
{
    (void)procfs;
    kernel_call();
    const struct proc *proc = find_shown(pid);
    if (cannot_look())
        return PROCESS_UNSEEN;
    if (!proc)
        return PROCESS_GONE;
    *process = described(proc);
    return PROCESS_FOUND;
}

enum process_look __wrap_procfs_read_status(const struct procfs *procfs, pid_t pid,
                                            struct process *process)
{
    enum process_look look = __wrap_procfs_read(procfs, pid, process);

    process->started = 0;
    return look;
}

bool __wrap_procfs_is_process(const struct procfs *procfs, pid_t pid)
{
    (void)procfs;
    kernel_call();
    return cannot_look() || find_shown(pid);
}

bool __wrap_procfs_lists_children(const struct procfs *procfs, pid_t pid)
{
    (void)procfs, (void)pid;
    return kernel.proc != PROC_NO_CHILDREN && !cannot_look();
}

bool __wrap_procfs_add_children(const struct procfs *procfs, const struct process *process,
                                struct process_list *list)
{
    (void)procfs;
    kernel_call();
    if (cannot_look())
        return false;
    for (int i = 0; i < kernel.process_count && kernel.proc != PROC_NO_CHILDREN; i++) {
        const struct proc *child = kernel.processes[i];
        if (child->parent == process->pid && child->life != REAPED)
            process_list_append(list, &(struct process){.pid = child->pid});
    }
    return true;
}

/* Each process is read at its time; those that are born meanwhile may be missing. */
bool __wrap_procfs_list(const struct procfs *procfs, struct moment until, struct process_list *list)
{
    int pids[PROCESSES], count = 0;
    struct process process;
    bool complete = true;

    kernel_call();
    list->count = 0;
    if (cannot_look())
        return false;
    for (int i = 0; i < kernel.process_count; i++)
        if (kernel.processes[i]->life != REAPED)
            pids[count++] = kernel.processes[i]->pid;
    for (int i = 0; i < count; i++) {
        if (moment_reached(until, moment_now())) {
            complete = false;
            break;
        }
        switch (__wrap_procfs_read(procfs, pids[i], &process)) {
        case PROCESS_FOUND: process_list_append(list, &process); break;
        case PROCESS_GONE: break;
        case PROCESS_UNSEEN: complete = false;
        }
    }
    process_list_sort(list);
    return complete;
}
