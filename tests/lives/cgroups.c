#include "lives/cgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lives/plan.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define MOUNT     "/sys/fs/cgroup"
#define CGROUPS   64
#define LONGEST   200
#define TOP       0 /* that of all processes at first */
#define NO_CGROUP (-1)

static struct cgroup_dir {
    char path[LONGEST];
    bool exists, delegated, ours; /* extended attributes */
} cgroups[CGROUPS];
static int cgroup_count;

static enum {
    ABLE,
    BEFORE_5_14, /* no cgroup.kill */
    UNDELEGATED, /* only for --cgroup */
    READ_ONLY,   /* none can be made */
    VERSION_1,   /* no cgroup is of version 2 */
    NOT_KILLING, /* cgroup.kill is refused, as by a security module */
    KINDS
} able;

void cgroups_begin(void)
{
    memset(cgroups, 0, sizeof cgroups);
    cgroup_count = 1;
    able = VERSION_1;
    cgroups[TOP] = (struct cgroup_dir){.path = MOUNT "/u", .exists = true};
}

void cgroups_choose(void)
{
    plan_part(PLAN_CGROUPS);
    able = one_in(4) ? (one_in(2) ? ABLE : (unsigned)chance_below(KINDS)) : VERSION_1;
    cgroups[TOP].delegated = able != UNDELEGATED && able != VERSION_1;
}

bool cgroups_have_a_way(void)
{
    return able == ABLE || able == UNDELEGATED || able == NOT_KILLING;
}

static int find(const char *path, size_t length)
{
    for (int i = 0; i < cgroup_count; i++)
        if (cgroups[i].exists && strlen(cgroups[i].path) == length &&
            memcmp(cgroups[i].path, path, length) == 0)
            return i;
    return NO_CGROUP;
}

static bool is_below(int cgroup, int above)
{
    size_t length = strlen(cgroups[above].path);

    return strncmp(cgroups[cgroup].path, cgroups[above].path, length) == 0 &&
           (cgroups[cgroup].path[length] == '/' || !cgroups[cgroup].path[length]);
}

static bool is_in(const struct proc *process, int cgroup)
{
    return process->life != REAPED && is_below(process->cgroup, cgroup);
}

/* "Zombie processes do not appear" in cgroup.procs, nor do they populate a cgroup: cgroups(7). */
static bool is_populated(int cgroup)
{
    for (int i = 0; i < kernel.process_count; i++)
        if (is_in(kernel.processes[i], cgroup) && process_exists(kernel.processes[i]))
            return true;
    return false;
}

/* -- files ------------------------------------------------------------------------------------- */

static int open_text(const char *text)
{
    struct file *file = file_new(FILE_TEXT);

    file->size = strlen(text);
    file->text = strdup(text);
    return file_open(file);
}

static int open_processes(int cgroup)
{
    char text[4096] = "";

    for (int i = 0; i < kernel.process_count; i++) {
        const struct proc *process = kernel.processes[i];
        if (process->cgroup == cgroup && process_exists(process))
            snprintf(strchr(text, '\0'), 16, "%d\n", process->pid);
    }
    return open_text(text);
}

static int refused(int error)
{
    errno = error;
    return -1;
}

static int open_to_write(int cgroup, bool kills)
{
    struct file *file = file_new(FILE_CGROUP);

    file->cgroup = cgroup;
    file->kills = kills;
    return file_open(file);
}

int cgroup_open(const char *path, int flags)
{
    const char *name = strrchr(path, '/');
    char text[LONGEST + 10];
    int cgroup = find(path, strlen(path));

    errno = 0;
    if (strcmp(path, "/proc/self/cgroup") == 0) {
        snprintf(text, sizeof text, "0::%s\n",
                 cgroups[kernel.current->cgroup].path + strlen(MOUNT));
        return able == VERSION_1 ? refused(ENOENT) : open_text(text);
    }
    if (strncmp(path, MOUNT, strlen(MOUNT)) != 0)
        return -1;
    if (cgroup >= 0)
        return open_to_write(cgroup, false); /* the directory, to be born in it */
    cgroup = find(path, (size_t)(name - path));
    if (cgroup < 0)
        return refused(ENOENT);
    if (strcmp(name, "/cgroup.kill") == 0)
        return able == BEFORE_5_14 ? refused(ENOENT) : open_to_write(cgroup, true);
    if (strcmp(name, "/cgroup.type") == 0)
        return open_text("domain\n");
    if (strcmp(name, "/cgroup.procs") == 0)
        return flags & O_WRONLY ? open_to_write(cgroup, false) : open_processes(cgroup);
    if (strcmp(name, "/cgroup.events") == 0)
        return open_text(is_populated(cgroup) ? "populated 1\nfrozen 0\n"
                                              : "populated 0\nfrozen 0\n");
    return refused(ENOENT);
}

static void kill_all(int cgroup)
{
    trace("kills all in %s", cgroups[cgroup].path);
    for (int i = 0; i < kernel.process_count; i++)
        if (is_in(kernel.processes[i], cgroup))
            signal_send(kernel.processes[i], SIGKILL);
}

ssize_t cgroup_write(const struct file *file, const void *bytes, size_t size)
{
    struct proc *process = kernel.current;
    int pid = atoi(bytes);

    if (!cgroups[file->cgroup].exists)
        return refused(ENODEV);
    if (file->kills && able == NOT_KILLING)
        return refused(EPERM);
    if (file->kills) {
        kill_all(file->cgroup);
        return (ssize_t)size;
    }
    if (pid)
        process = process_find(pid);
    if (!process)
        return refused(ESRCH);
    process->cgroup = file->cgroup;
    return (ssize_t)size;
}

void cgroup_add(struct proc *child, const struct proc *parent, int fd)
{
    const struct file *file = fd < 0 ? NULL : file_of(fd);

    child->cgroup = file && file->kind == FILE_CGROUP ? file->cgroup : parent->cgroup;
}

/* -- directories ------------------------------------------------------------------------------- */

static bool is_cgroup_path(const char *path)
{
    return kernel.current && strncmp(path, MOUNT, strlen(MOUNT)) == 0;
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    if (!is_cgroup_path(path))
        return __real_mkdir(path, mode);
    kernel_call();
    if (able == READ_ONLY || cgroup_count == CGROUPS)
        return refused(EROFS);
    if (find(path, (size_t)(strrchr(path, '/') - path)) < 0)
        return refused(ENOENT);
    if (find(path, strlen(path)) >= 0)
        return refused(EEXIST);
    struct cgroup_dir *made = &cgroups[cgroup_count++];
    snprintf(made->path, sizeof made->path, "%s", path);
    made->exists = true;
    return 0;
}

int __real_rmdir(const char *path);
int __wrap_rmdir(const char *path)
{
    if (!is_cgroup_path(path))
        return __real_rmdir(path);
    kernel_call();
    int cgroup = find(path, strlen(path));
    if (cgroup < 0)
        return refused(ENOENT);
    for (int i = 0; i < cgroup_count; i++)
        if (i != cgroup && cgroups[i].exists && is_below(i, cgroup))
            return refused(EBUSY);
    if (is_populated(cgroup))
        return refused(EBUSY);
    cgroups[cgroup].exists = false;
    return 0;
}

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
    if (!is_cgroup_path(path))
        return __real_access(path, mode);
    kernel_call();
    bool exists = able != VERSION_1 && find(path, (size_t)(strrchr(path, '/') - path)) >= 0;
    return exists ? 0 : refused(ENOENT);
}

ssize_t __wrap_listxattr(const char *path, char *names, size_t size)
{
    int cgroup = find(path, strlen(path));

    kernel_call();
    if (cgroup < 0)
        return refused(ENOENT);
    return snprintf(names, size, "%s", cgroups[cgroup].delegated ? "user.delegate" : "");
}

static bool *attribute_of(int cgroup, const char *name)
{
    if (strcmp(name, "user.delegate") == 0)
        return &cgroups[cgroup].delegated;
    return strcmp(name, "user.rlock") == 0 ? &cgroups[cgroup].ours : NULL;
}

ssize_t __wrap_getxattr(const char *path, const char *name, void *value, size_t size)
{
    int cgroup = find(path, strlen(path));
    const bool *attribute = cgroup < 0 ? NULL : attribute_of(cgroup, name);

    kernel_call();
    if (!attribute || !*attribute || size == 0)
        return refused(ENODATA);
    *(char *)value = '1';
    return 1;
}

int __wrap_setxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    int cgroup = find(path, strlen(path));
    bool *attribute = cgroup < 0 ? NULL : attribute_of(cgroup, name);

    (void)value, (void)size, (void)flags;
    kernel_call();
    if (!attribute)
        return refused(ENOENT);
    *attribute = true;
    return 0;
}
