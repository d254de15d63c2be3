/* Which processes are moved out of a cgroup that is removed: only those that it lists. */
#include "os/cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tap.h"

#define LAST "4194303" /* the highest number that a process may have */

static int moved, strangers;

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
    mkdir(cgroup.path, 0755);
    put_file(parent, "", 0);
    put_file(cgroup.path, "7\n", 1000);
    cgroup_remove(&cgroup);
    remove_folder(cgroup.path);
    remove_folder(parent);
}

int main(void)
{
    remove_crowded();
    tap_ok(moved > 0, "the processes in a cgroup continue in the one above");
    tap_ok(strangers == 0, "a number that is cut off by the end of a read is nobody's");
    return tap_done();
}
