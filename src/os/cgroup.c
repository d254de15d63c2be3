/* Cgroups, by their files. */
#include "os/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"

#define PREFIX "rlock-" /* of names */

/* Where version 2 is mounted; the second is for hosts that have version 1 as well. */
static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

/* -- files ----------------------------------------------------------------------------------- */

/* The whole of a small file; "" where it cannot be read. */
static ssize_t read_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);

    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got;
}

static int open_file(const struct cgroup *cgroup, const char *name, int flags)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof path, "%s/%s", cgroup->path, name);
    return open(path, flags | O_CLOEXEC);
}

static int write_file(const struct cgroup *cgroup, const char *name, const char *text)
{
    int fd = open_file(cgroup, name, O_WRONLY);
    ssize_t put = fd < 0 ? -1 : write(fd, text, strlen(text));
    int error = errno;

    if (fd >= 0)
        close(fd);
    errno = error;
    return put < 0 ? -1 : 0;
}

/* -- which one ------------------------------------------------------------------------------- */

/* The cgroup of this process below the mount, in the text: "" for the topmost; NULL where version 2
 * is not used. */
static const char *read_own(char *text, size_t size)
{
    char *line = text;

    if (read_file("/proc/self/cgroup", text, size) <= 0)
        return NULL;
    while (line && strncmp(line, "0::/", 4) != 0) {
        line = strchr(line, '\n');
        line += line != NULL;
    }
    if (!line)
        return NULL;
    line += strlen("0::");
    line[strcspn(line, "\n")] = '\0';
    return strcmp(line, "/") == 0 ? "" : line;
}

static bool has_value(const char *path, const char *name)
{
    char value[8];
    return getxattr(path, name, value, sizeof value) == 1 && value[0] == '1';
}

/* systemd marks a cgroup that it leaves to its processes: Delegate= in systemd.resource-control(5).
 */
static bool is_delegated(const char *path)
{
    char names[512];

    return listxattr(path, names, sizeof names) > 0 &&
           (has_value(path, "user.delegate") || has_value(path, "trusted.delegate"));
}

/* Not a directory of version 1, nor one beside. */
static bool is_cgroup(const char *path)
{
    char file[PATH_MAX + 32];

    snprintf(file, sizeof file, "%s/cgroup.controllers", path);
    return access(file, F_OK) == 0;
}

/* The cgroup that a new one may be made in. */
static bool find_parent(struct cgroup *parent, bool required)
{
    const int room = sizeof parent->path - 64; /* for the name of the new one */
    static char text[PATH_MAX + 512];
    const char *own = read_own(text, sizeof text);

    for (size_t i = 0; own && i < sizeof mounts / sizeof *mounts; i++) {
        int length = snprintf(parent->path, (size_t)room, "%s%s", mounts[i], own);
        if (length < room && (required ? is_cgroup(parent->path) : is_delegated(parent->path)))
            return true;
    }
    return false;
}

/* -- making one ------------------------------------------------------------------------------ */

/* Makes one below the parent whose path the cgroup has. */
static int make(struct cgroup *cgroup)
{
    size_t length = strlen(cgroup->path);

    snprintf(cgroup->path + length, sizeof cgroup->path - length, "/" PREFIX "%ld-%llx",
             (long)getpid(), (unsigned long long)moment_now().ns);
    if (mkdir(cgroup->path, 0755) < 0)
        return -1;
    int fd = open_file(cgroup, "cgroup.kill", O_WRONLY); /* Linux 5.14 */
    if (fd < 0) {
        rmdir(cgroup->path);
        errno = ENOTSUP;
        return -1;
    }
    close(fd);
    setxattr(cgroup->path, "user.delegate", "1", 1, 0); /* to whatever nests in it */
    return 0;
}

/* Another process may read it at any time: the first byte says that there is one, and comes
 * last. */
static void publish(struct cgroup *cgroup, const struct cgroup *made)
{
    memcpy(cgroup->path + 1, made->path + 1, sizeof made->path - 1);
    atomic_thread_fence(memory_order_release);
    cgroup->path[0] = made->path[0];
}

int cgroup_make(struct cgroup *cgroup, bool required)
{
    static struct cgroup made; /* not on the stack, each page of which would be touched */

    errno = ENOTSUP;
    if (!find_parent(&made, required) || make(&made) < 0)
        return required ? -1 : 0;
    publish(cgroup, &made);
    return 0;
}

/* Not vfork(): only the C library could have the child return on the memory of its parent. */
pid_t cgroup_fork(const struct cgroup *cgroup)
{
    int fd = open(cgroup->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct clone_args how = {
        .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)fd};

    if (fd < 0)
        return -1;
    pid_t pid = (pid_t)syscall(SYS_clone3, &how, sizeof how);
    int error = errno;
    close(fd);
    errno = error;
    return pid;
}

int cgroup_enter(const struct cgroup *cgroup)
{
    return write_file(cgroup, "cgroup.procs", "0");
}

/* -- what is in it --------------------------------------------------------------------------- */

void cgroup_kill(const struct cgroup *cgroup)
{
    write_file(cgroup, "cgroup.kill", "1");
}

int cgroup_is_populated(const struct cgroup *cgroup)
{
    char path[PATH_MAX + 32], text[256];

    snprintf(path, sizeof path, "%s/cgroup.events", cgroup->path);
    if (read_file(path, text, sizeof text) <= 0)
        return errno == ENOENT || errno == ENODEV ? 0 : -1;
    return strstr(text, "populated 1") != NULL;
}

void cgroup_remove(const struct cgroup *cgroup)
{
    if (cgroup_exists(cgroup))
        rmdir(cgroup->path);
}

void cgroup_leave(void)
{
    struct cgroup own;

    if (!find_parent(&own, true))
        return;
    char *name = strrchr(own.path, '/');
    if (strncmp(name + 1, PREFIX, strlen(PREFIX)) != 0)
        return;
    *name = '\0';
    cgroup_enter(&own);
}
