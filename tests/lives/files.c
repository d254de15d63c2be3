#include "lives/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lives/disk.h"
#include "lives/network.h"

struct file *file_new(enum file_kind kind)
{
    struct file *file = calloc(1, sizeof *file);

    *file = (struct file){.kind = kind, .references = 1, .due = NEVER};
    return file;
}

int file_open(struct file *file)
{
    for (int fd = 3; fd < DESCRIPTORS; fd++)
        if (!kernel.current->files[fd]) {
            kernel.current->files[fd] = file;
            return fd;
        }
    fail("a process has more than %d files", DESCRIPTORS);
    abort();
}

static struct file *file_at(const struct proc *process, int fd)
{
    return fd >= 0 && fd < DESCRIPTORS ? process->files[fd] : NULL;
}

struct file *file_of(int fd)
{
    struct file *file = file_at(kernel.current, fd);

    if (!file)
        errno = EBADF;
    return file;
}

static void close_pair(struct file *file)
{
    if (file->peer) {
        file->peer->peer = NULL;
        file->peer->reset |= file->first != NULL;
    }
    for (struct message *message = file->first, *next; message; message = next) {
        next = message->next;
        if (message->file)
            file_drop(message->file);
        free(message);
    }
}

/* The pipe's other end is closed: what that would have written later does not come. */
static void close_pipe(struct file *file)
{
    file->peer = NULL;
    if (file->due > world.now)
        file->size = 0;
}

void file_drop(struct file *file)
{
    if (--file->references > 0)
        return;
    if (file->kind == FILE_PAIR)
        close_pair(file);
    else if (file->kind == FILE_PIPE && file->peer)
        close_pipe(file->peer);
    else if (file->kind == FILE_SOCKET && file->connection)
        network_close(file->connection);
    else if (file->kind == FILE_DISK)
        disk_close(file);
    free(file->text);
    free(file);
}

int file_close_descriptor(int fd)
{
    struct file *file = file_of(fd);

    if (!file)
        return -1;
    kernel.current->files[fd] = NULL;
    file_drop(file);
    return 0;
}

void files_close_all(struct proc *process)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        struct file *file = process->files[fd];
        process->files[fd] = NULL;
        if (file)
            file_drop(file);
    }
}

void file_inherit(struct proc *child, const struct proc *parent, int fd)
{
    child->files[fd] = parent->files[fd];
    if (child->files[fd])
        child->files[fd]->references++;
}

void files_inherit(struct proc *child, const struct proc *parent)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        file_inherit(child, parent, fd);
}

ssize_t output_write(struct file *file, const void *bytes, size_t size)
{
    if (file->reader != OUTPUT_READ) {
        errno = file->reader == OUTPUT_CLOSED ? EPIPE : EAGAIN;
        return -1;
    }
    file->text = realloc(file->text, file->size + size);
    memcpy(file->text + file->size, bytes, size);
    file->size += size;
    return (ssize_t)size;
}

/* -- poll -------------------------------------------------------------------------------------- */

static int pair_events(const struct file *file)
{
    return (file->first || !file->peer ? POLLIN : 0) | (file->peer ? 0 : POLLHUP) |
           (file->reset ? POLLERR | POLLIN : 0) |
           (!file->peer || file->peer->queued < MESSAGES_MAX ? POLLOUT : 0);
}

static int pipe_events(const struct file *file)
{
    return (file->size > file->at && file->due <= world.now ? POLLIN : 0) |
           (file->peer ? 0 : POLLHUP);
}

static int output_events(const struct file *file)
{
    return (file->reader == OUTPUT_FULL ? 0 : POLLOUT) |
           (file->reader == OUTPUT_CLOSED ? POLLERR : 0);
}

int file_events(const struct proc *process, const struct pollfd *poll)
{
    const struct file *file = file_at(process, poll->fd);
    int events = POLLIN | POLLOUT;

    if (poll->fd < 0)
        return 0;
    if (!file)
        return POLLNVAL;
    switch (file->kind) {
    case FILE_PAIR: events = pair_events(file); break;
    case FILE_SIGNAL: events = process->pending & file->signals ? POLLIN : 0; break;
    case FILE_TIMER: events = file->due <= world.now ? POLLIN : 0; break;
    case FILE_PROCESS: events = process_exists(file->process) ? 0 : POLLIN; break;
    case FILE_PIPE: events = pipe_events(file); break;
    case FILE_SOCKET: events = network_events(file->connection); break;
    case FILE_OUTPUT: events = output_events(file); break;
    case FILE_DISK: events = disk_events(file); break;
    case FILE_TEXT:
    case FILE_TTY:
    case FILE_CGROUP:
    case FILE_NOTHING: break;
    }
    return events & (poll->events | POLLHUP | POLLERR);
}

int64_t file_due(const struct proc *process, int fd)
{
    const struct file *file = file_at(process, fd);

    return file && file->kind == FILE_TIMER ? file->due : NEVER;
}
