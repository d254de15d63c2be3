/* In which cgroup a new one is made; and which processes are moved out of one that is removed: only
 * those that it lists. */
#include "os/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tap.h"

#define LAST "4194303" /* the highest number that a process may have */

static int moved, strangers;
static char own_cgroup[40]; /* a file in place of /proc/self/cgroup */
static char made[200];      /* the first directory that was made */

/* In place of the C library's: processes are left in it. */
int rmdir(const char *path)
{
    (void)path;
    errno = EBUSY;
    return -1;
}

/* In place of the C library's. */
ssize_t write(int fd, const void *text, size_t size)
{
    char number[16] = "";

    if (fd <= STDERR_FILENO || size >= sizeof number)
        return syscall(SYS_write, fd, text, size);
    memcpy(number, text, size);
    moved++;
    strangers += strcmp(number, "7") != 0 && strcmp(number, LAST) != 0;
    return (ssize_t)size;
}

/* In place of the C library's. */
int open(const char *path, int flags, ...)
{
    va_list more;

    va_start(more, flags);
    mode_t mode = (flags & O_CREAT) ? va_arg(more, mode_t) : 0;
    va_end(more);
    const char *file = strcmp(path, "/proc/self/cgroup") == 0 ? own_cgroup : path;
    return (int)syscall(SYS_openat, AT_FDCWD, file, flags, mode);
}

/* In place of the C library's: all that is looked for is there. */
int access(const char *path, int mode)
{
    (void)path;
    (void)mode;
    return 0;
}

/* In place of the C library's. */
int mkdir(const char *path, mode_t mode)
{
    (void)mode;
    if (!made[0])
        snprintf(made, sizeof made, "%s", path);
    errno = EACCES;
    return -1;
}

/* Makes a file with that line, and then as many as stated with the last number. */
static void put_file(const char *folder, const char *first, int count)
{
    char path[96];

    snprintf(path, sizeof path, "%s/cgroup.procs", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    fputs(first, file);
    while (count-- > 0)
        fputs(LAST "\n", file);
    fclose(file);
}

static void remove_folder(const char *folder)
{
    char path[96];

    snprintf(path, sizeof path, "%s/cgroup.procs", folder);
    unlink(path);
    syscall(SYS_rmdir, folder);
}

/* A cgroup lists more processes than one read takes, which ends amid a number: so it may in a
 * kernel whose pages are larger than that read. */
static void remove_crowded(void)
{
    char parent[] = "/tmp/rlock-cgroup-XXXXXX";
    static struct cgroup cgroup;

    if (!mkdtemp(parent))
        return;
    snprintf(cgroup.path, sizeof cgroup.path, "%s/rlock", parent);
    syscall(SYS_mkdirat, AT_FDCWD, cgroup.path, 0755);
    put_file(parent, "", 0);
    put_file(cgroup.path, "7\n", 1000);
    cgroup_remove(&cgroup);
    remove_folder(cgroup.path);
    remove_folder(parent);
}

/* A host has the hierarchies of version 1, too, whose lines come first, and this process is deep in
 * them: as in a container in a container. */
static void make_deep(void)
{
    static const char at[] = "/sys/fs/cgroup/outer/inner/rlock-";
    static struct cgroup cgroup;

    strcpy(own_cgroup, "/tmp/rlock-cgroup-XXXXXX");
    FILE *file = fdopen(mkstemp(own_cgroup), "w");
    if (!file)
        return;
    for (int number = 11; number > 0; number--)
        fprintf(file, "%02d:memory:/%0*d\n", number, 406, 0);
    fputs("0::/outer/inner\n", file);
    fclose(file);
    tap_ok(cgroup_make(&cgroup, CGROUP_REQUIRED) < 0 && strncmp(made, at, strlen(at)) == 0,
           "a cgroup is made in that of this process, however long the list of those is");
    unlink(own_cgroup);
}

int main(void)
{
    make_deep();
    remove_crowded();
    tap_ok(moved > 0, "the processes in a cgroup continue in the one above");
    tap_ok(strangers == 0, "a number that is cut off by the end of a read is nobody's");
    return tap_done();
}
