#include "os/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/file.h"
#include "os/kernel.h"

/* The attribute of a cgroup that rlock has made. The name of a cgroup does not tell: that of the
 * unit rlock-backup.service begins in the same way. */
#define OURS "user.rlock"

/* So many lines may tell the cgroups of a process: those of version 1 come first. */
#define HIERARCHIES 24

/* How often the processes that are left in a cgroup are moved out of it, as they may fork. */
#define MOVES 100

/* The places where version 2 may be mounted; the second one is for hosts that have version 1,
 * too. */
static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

/* -- files ----------------------------------------------------------------------------------- */

/* Opens a file of the cgroup with that path, close-on-exec. -1 with errno. */
static int open_in(const char *cgroup, const char *name, int flags)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof path, "%s/%s", cgroup, name);
    return open(path, flags | O_CLOEXEC);
}

/* Writes one text into a file of a cgroup: 0, or -1 with errno. */
static int write_file(const char *cgroup, const char *name, const char *text)
{
    int fd = open_in(cgroup, name, O_WRONLY);
    ssize_t put = fd < 0 ? -1 : write(fd, text, strlen(text));

    file_close(fd);
    return put < 0 ? -1 : 0;
}

/* -- which one ------------------------------------------------------------------------------- */

/* Returns the path of this process's cgroup below the mount, as a part of "text" (of "size" bytes):
 * "" for the topmost; NULL where version 2 is not used. */
static const char *read_own(char *text, size_t size)
{
    char *line = text;

    if (file_read_small(open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC), text, size) <= 0)
        return NULL;
    while (line && strncmp(line, "0::/", 4) != 0) { /* the line of version 2: cgroups(7) */
        line = strchr(line, '\n');
        line += line != NULL;
    }
    if (!line)
        return NULL;
    line += strlen("0::");
    line[strcspn(line, "\n")] = '\0';
    return strcmp(line, "/") == 0 ? "" : line;
}

/* Whether the cgroup has that extended attribute, with the value "1". */
static bool has_value(const char *path, const char *name)
{
    char value[8];
    return getxattr(path, name, value, sizeof value) == 1 && value[0] == '1';
}

/* Whether systemd has left the cgroup to its processes, which it marks: Delegate= in
 * systemd.resource-control(5). */
static bool is_delegated(const char *path)
{
    char names[512];

    return listxattr(path, names, sizeof names) > 0 &&
           (has_value(path, "user.delegate") || has_value(path, "trusted.delegate"));
}

/* Whether the directory is a cgroup of version 2: a host that has version 1 as well has other
 * directories there, too. */
static bool is_cgroup(const char *path)
{
    char file[PATH_MAX + 32];

    snprintf(file, sizeof file, "%s/cgroup.controllers", path);
    return access(file, F_OK) == 0;
}

/* Finds the path of this process's cgroup, if a new one may be made in it; NULL: it may not. The
 * caller frees. */
static char *find_parent(enum cgroup_need need)
{
    const size_t room = PATH_MAX - 64;          /* less the name of the new one */
    const size_t size = HIERARCHIES * PATH_MAX; /* of /proc/self/cgroup */
    char *text FREED = mem_checked(malloc(size));
    const char *own = read_own(text, size);

    for (size_t i = 0; own && i < sizeof mounts / sizeof *mounts; i++) {
        char *parent = strbuf_print("%s%s", mounts[i], own);
        bool fits = need == CGROUP_REQUIRED ? is_cgroup(parent) : is_delegated(parent);
        if (strlen(parent) < room && fits)
            return parent;
        free(parent);
    }
    return NULL;
}

/* -- making one ------------------------------------------------------------------------------ */

/* Makes a cgroup whose processes can be ended at once. 0; -1 with errno: the kernel cannot do that,
 * or may not here. */
static int make_cgroup(const char *path)
{
    char type[32];

    if (mkdir(path, 0755) < 0)
        return -1;
    int fd = open_in(path, "cgroup.kill", O_WRONLY); /* Linux 5.14 */
    /* A threaded cgroup, or one with such cgroups in it, gives a new one the type "domain invalid",
     * which no process can enter. */
    if (fd < 0 || file_read_small(open_in(path, "cgroup.type", O_RDONLY), type, sizeof type) <= 0 ||
        strcmp(type, "domain\n") != 0) {
        file_close(fd);
        rmdir(path);
        errno = ENOTSUP;
        return -1;
    }
    close(fd);
    /* An rlock that nests in it may make a cgroup of its own here. */
    setxattr(path, "user.delegate", "1", 1, 0);
    setxattr(path, OURS, "1", 1, 0);
    return 0;
}

int cgroup_make(struct cgroup *cgroup, enum cgroup_need need)
{
    bool required = need == CGROUP_REQUIRED;

    errno = ENOTSUP;
    char *parent FREED = find_parent(need);
    if (!parent)
        return required ? -1 : 0;
    char *path FREED = strbuf_print("%s/rlock-%ld-%llx", parent, (long)getpid(),
                                    (unsigned long long)moment_now().ns);
    int made = make_cgroup(path);
    if (made == 0) {
        /* Another process may read it at any time: the first byte says that there is one, and comes
         * last. */
        strcpy(cgroup->path + 1, path + 1);
        atomic_thread_fence(memory_order_release);
        cgroup->path[0] = path[0];
    }
    return required ? made : 0;
}

pid_t cgroup_fork(const struct cgroup *cgroup)
{
    int fd = open(cgroup->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    pid_t pid = kernel_fork_into(fd);
    file_close(fd);
    return pid;
}

int cgroup_enter(const struct cgroup *cgroup)
{
    return write_file(cgroup->path, "cgroup.procs", "0");
}

/* -- what is in it --------------------------------------------------------------------------- */

int cgroup_kill(const struct cgroup *cgroup)
{
    return write_file(cgroup->path, "cgroup.kill", "1");
}

int cgroup_is_populated(const struct cgroup *cgroup)
{
    char text[256];

    if (file_read_small(open_in(cgroup->path, "cgroup.events", O_RDONLY), text, sizeof text) <= 0)
        return errno == ENOENT || errno == ENODEV ? 0 : -1;
    return strstr(text, "populated 1") != NULL;
}

void cgroup_remove(const struct cgroup *cgroup)
{
    char processes[4096], *next;

    if (!cgroup_exists(cgroup))
        return;
    const char *path = cgroup->path;
    char *parent FREED = strbuf_print("%.*s", (int)(strrchr(path, '/') - path), path);
    /* Where the command itself has made cgroups in it, it stays, with these. */
    for (int i = 0; i < MOVES && rmdir(path) < 0 && errno == EBUSY; i++) {
        /* The processes continue in the cgroup that this one was made in. */
        int fd = open_in(path, "cgroup.procs", O_RDONLY);
        file_read_small(fd, processes, sizeof processes);
        char *last = strrchr(processes, '\n'); /* behind it may be a part of another's number */
        if (!last)
            continue;
        *last = '\0';
        for (char *pid = strtok_r(processes, "\n", &next); pid; pid = strtok_r(NULL, "\n", &next))
            write_file(parent, "cgroup.procs", pid);
    }
}

void cgroup_leave(void)
{
    char *own = find_parent(CGROUP_REQUIRED), *name = own ? strrchr(own, '/') : NULL;

    if (name && has_value(own, OURS)) {
        *name = '\0';
        write_file(own, "cgroup.procs", "0");
    }
    free(own);
}
