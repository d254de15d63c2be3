#include "lives/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "lives/life.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define INODES 8

static struct inode inodes[INODES], *there; /* at the path; NULL: none is */
static int inode_count;
static bool is_full;

void disk_begin(void)
{
    memset(inodes, 0, sizeof inodes);
    inode_count = 0;
    there = NULL;
    is_full = false;
}

static struct inode *inode_new(void)
{
    struct inode *inode = &inodes[inode_count];

    *inode = (struct inode){.number = inode_count++, .left = NEVER};
    return inode;
}

int disk_open(int flags)
{
    if (!there && !(flags & O_CREAT)) {
        errno = ENOENT;
        return -1;
    }
    struct file *file = file_new(FILE_DISK);
    file->inode = there ? there : (there = inode_new());
    return file_open(file);
}

void disk_replace(void)
{
    if (!there || inode_count == INODES)
        return;
    trace("%s is replaced", DISK_PATH);
    struct inode *copy = inode_new();
    memcpy(copy->text, there->text, sizeof copy->text);
    copy->size = there->size;
    there->left = world.now;
    there = copy;
}

int __real_unlink(const char *path);
int __wrap_unlink(const char *path)
{
    if (!kernel.current || strcmp(path, DISK_PATH) != 0)
        return __real_unlink(path);
    kernel_call();
    there->left = world.now;
    there = NULL;
    return 0;
}

void disk_fill(bool full)
{
    is_full = full;
}

struct inode *disk_of(const struct proc *process)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        if (process->files[fd] && process->files[fd]->kind == FILE_DISK)
            return process->files[fd]->inode;
    return NULL;
}

/* -- the lock ---------------------------------------------------------------------------------- */

void disk_close(const struct file *file)
{
    if (file->inode->locked != file)
        return;
    file->inode->locked = NULL;
    life_on_unlocked(file->inode);
}

int disk_events(const struct file *file)
{
    return file->inode->locked ? 0 : POLLIN;
}

int __wrap_setitimer(int which, const struct itimerval *time, void *old)
{
    struct proc *process = kernel.current;

    (void)which, (void)old;
    if (!process || process->kind == SERVER)
        return 0;
    kernel_call();
    int64_t first = time->it_value.tv_sec * SEC + time->it_value.tv_usec * US;
    process->alarm = first ? world.now + first : NEVER;
    process->alarm_again = time->it_interval.tv_sec * SEC + time->it_interval.tv_usec * US;
    return 0;
}

/* The handler of SIGALRM does nothing but interrupt what waits. */
static int64_t next_alarm(struct proc *process)
{
    while (process->alarm && process->alarm <= world.now)
        process->alarm = process->alarm_again ? process->alarm + process->alarm_again : NEVER;
    return process->alarm ? process->alarm : NEVER;
}

int __wrap_flock(int fd, int operation)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};

    kernel_call();
    struct file *file = file_of(fd);
    if (!file)
        return -1;
    struct inode *inode = file->inode;
    while (inode->locked && inode->locked != file) {
        int64_t until = next_alarm(kernel.current);
        errno = operation & LOCK_NB ? EWOULDBLOCK : EINTR;
        kernel.current->polled = &polled;
        kernel.current->polled_count = 1;
        if (operation & LOCK_NB)
            return -1;
        bool waits_on = kernel_wait(WAIT_POLL, until) && world.now < until;
        errno = EINTR;
        if (!waits_on && inode->locked)
            return -1;
    }
    inode->locked = file;
    inode->locker = kernel.current;
    inode->locked_at = world.now;
    inode->before = atoll(inode->text);
    trace("has locked the file %d", inode->number);
    return 0;
}

/* -- the text ---------------------------------------------------------------------------------- */

static void describe(const struct inode *inode, struct stat *status)
{
    *status = (struct stat){
        .st_mode = S_IFREG | 0644, .st_ino = (ino_t)inode->number, .st_size = (off_t)inode->size};
}

static struct inode *inode_of(int fd)
{
    const struct file *file = file_of(fd);

    return file && file->kind == FILE_DISK ? file->inode : NULL;
}

int __wrap_fstat64(int fd, struct stat *status)
{
    kernel_call();
    const struct inode *inode = inode_of(fd);
    if (inode)
        describe(inode, status);
    errno = EBADF;
    return inode ? 0 : -1;
}

int __real_stat64(const char *path, struct stat *status);
int __wrap_stat64(const char *path, struct stat *status)
{
    if (!kernel.current || strcmp(path, DISK_PATH) != 0)
        return __real_stat64(path, status);
    kernel_call();
    if (there)
        describe(there, status);
    errno = ENOENT;
    return there ? 0 : -1;
}

ssize_t __wrap_pread64(int fd, void *bytes, size_t size, off_t at)
{
    kernel_call();
    const struct inode *inode = inode_of(fd);
    size_t left = (size_t)at < inode->size ? inode->size - (size_t)at : 0;
    size = size < left ? size : left;
    memcpy(bytes, inode->text + at, size);
    return (ssize_t)size;
}

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t size, off_t at)
{
    kernel_call();
    struct inode *inode = inode_of(fd);
    size_t room = (is_full ? inode->size : sizeof inode->text) - (size_t)at;
    if (!room) {
        errno = ENOSPC;
        return -1;
    }
    size = size < room ? size : room;
    memcpy(inode->text + at, bytes, size);
    if ((size_t)at + size > inode->size)
        inode->size = (size_t)at + size;
    return (ssize_t)size;
}

int __wrap_ftruncate64(int fd, off_t size)
{
    kernel_call();
    inode_of(fd)->size = (size_t)size;
    return 0;
}

int __wrap_fdatasync(int fd)
{
    (void)fd;
    kernel_call();
    return 0;
}
