/* The /proc that os/procfs reads, and the cgroups of os/cgroup: of simulated processes, one after
 * the other, so that a listing is not of one moment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lives/files.h"
#include "os/cgroup.h"
#include "os/procfs.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define DIRECTORY 5 /* a descriptor that is not asked for anything */

int __wrap_procfs_open(struct procfs *procfs)
{
    kernel_call();
    procfs->directory = DIRECTORY;
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
}

void __wrap_procfs_end(struct procfs *procfs)
{
    (void)procfs;
}

pid_t __wrap_procfs_last_pid(const struct procfs *procfs)
{
    (void)procfs;
    kernel_call();
    return kernel.next_pid - 1;
}

/* "environ"; nothing reads another file of a process. */
int __wrap_procfs_open_file(const struct procfs *procfs, pid_t pid, const char *name)
{
    (void)procfs;
    kernel_call();
    const struct proc *proc = process_find(pid);
    if (!proc || strcmp(name, "environ") != 0) {
        errno = ENOENT;
        return -1;
    }
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
    const struct proc *proc = process_find(pid);
    if (!proc)
        return PROCESS_GONE;
    *process = described(proc);
    return PROCESS_FOUND;
}

bool __wrap_procfs_is_process(const struct procfs *procfs, pid_t pid)
{
    (void)procfs;
    kernel_call();
    return process_find(pid) != NULL;
}

bool __wrap_procfs_lists_children(const struct procfs *procfs, pid_t pid)
{
    (void)procfs, (void)pid;
    return true;
}

bool __wrap_procfs_add_children(const struct procfs *procfs, const struct process *process,
                                struct process_list *list)
{
    (void)procfs;
    kernel_call();
    for (int i = 0; i < kernel.process_count; i++) {
        const struct proc *child = kernel.processes[i];
        if (child->parent == process->pid && child->life != REAPED)
            process_list_append(list, &(struct process){.pid = child->pid});
    }
    return true;
}

/* Each process is read at its time; those that are born meanwhile may be missing. */
bool __wrap_procfs_list(const struct procfs *procfs, struct process_list *list)
{
    int pids[PROCESSES], count = 0;
    struct process process;

    kernel_call();
    list->count = 0;
    for (int i = 0; i < kernel.process_count; i++)
        if (kernel.processes[i]->life != REAPED)
            pids[count++] = kernel.processes[i]->pid;
    for (int i = 0; i < count; i++)
        if (__wrap_procfs_read(procfs, pids[i], &process) == PROCESS_FOUND)
            process_list_append(list, &process);
    return true;
}

/* -- cgroups: systemd has delegated none ------------------------------------------------------- */

int __wrap_cgroup_make(struct cgroup *cgroup, bool required)
{
    (void)cgroup, (void)required;
    return 0;
}

void __wrap_cgroup_remove(const struct cgroup *cgroup)
{
    (void)cgroup;
}
