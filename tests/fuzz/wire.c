/* Sockets whose other end is the input. */
#include "wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_loop.h"
#include "os/helper_process.h"

#define FIRST_FD 100000 /* no real one */
#define FDS      64

static const uint8_t *next, *end;
static bool paused;
static bool used[FDS];

void wire_feed(const uint8_t *data, size_t size)
{
    next = data;
    end = data + size;
    paused = false;
}

int wire_open(void)
{
    int count = 0;

    for (int i = 0; i < FDS; i++)
        count += used[i];
    return count;
}

/* The event that the input has next, WIRE_EVENTS if it has none. */
static int peek_event(void)
{
    bool marked = end - next >= 2 && *next == WIRE_MARK && next[1] != WIRE_MARK;

    return marked ? next[1] % WIRE_EVENTS : WIRE_EVENTS;
}

static bool take_event(int event)
{
    if (peek_event() != event)
        return false;
    next += 2;
    return true;
}

static bool is_due(const struct loop_io *io)
{
    return (io->events & LOOP_WRITE) || (!paused && next < end);
}

bool wire_turn(struct loop *loop)
{
    size_t count = 0, chosen;
    struct loop_io *io;

    for (io = fake_ios(loop); io; io = io->next)
        count += is_due(io);
    if (count == 0) {
        paused = false;
        return fake_turn(loop);
    }
    chosen = (size_t)(end - next) % count;
    io = fake_ios(loop);
    while (!is_due(io) || chosen-- > 0)
        io = io->next;
    io->ready(io, (io->events & LOOP_WRITE) ? LOOP_WRITE : LOOP_READ);
    return true;
}

/* -- instead of libc ------------------------------------------------------------------------- */

int __wrap_socket(int domain, int type, int protocol);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length);
int __wrap_shutdown(int fd, int how);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags);
struct helper_process *__wrap_helper_process_start(struct loop *loop,
                                                   void (*work)(const void *, void *),
                                                   const void *question, size_t size,
                                                   void (*done)(void *, const void *), void *owner);
int __wrap_close(int fd);
int __real_close(int fd);

int __wrap_socket(int domain, int type, int protocol)
{
    (void)domain, (void)type, (void)protocol;
    for (int i = 0; i < FDS; i++) {
        if (used[i])
            continue;
        used[i] = true;
        return FIRST_FD + i;
    }
    errno = EMFILE;
    return -1;
}

int __wrap_close(int fd)
{
    if (fd < FIRST_FD)
        return __real_close(fd);
    used[fd - FIRST_FD] = false;
    return 0;
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    (void)fd, (void)address, (void)length;
    errno = take_event(WIRE_REFUSE) ? ECONNREFUSED : EINPROGRESS;
    return -1;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
    (void)fd, (void)level, (void)name, (void)length;
    *(int *)value = take_event(WIRE_REFUSE) ? EHOSTUNREACH : 0;
    return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    (void)fd, (void)level, (void)name, (void)value, (void)length;
    return 0;
}

int __wrap_shutdown(int fd, int how)
{
    (void)fd, (void)how;
    return 0;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
    (void)fd, (void)bytes, (void)flags;
    if (take_event(WIRE_RESET)) {
        errno = EPIPE;
        return -1;
    }
    return (ssize_t)size;
}

ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
    size_t length = (size_t)(end - next);

    (void)fd, (void)flags;
    if (peek_event() != WIRE_EVENTS) {
        int event = next[1] % WIRE_EVENTS;
        next += 2;
        paused = event == WIRE_PAUSE || event == WIRE_REFUSE;
        errno = paused ? EAGAIN : ECONNRESET;
        return event == WIRE_END ? 0 : -1;
    }
    if (length > 1 && next[0] == WIRE_MARK && next[1] == WIRE_MARK) {
        next += 2;
        *(uint8_t *)bytes = WIRE_MARK;
        return 1;
    }
    const uint8_t *mark = length > 1 ? memchr(next + 1, WIRE_MARK, length - 1) : NULL;
    length = mark ? (size_t)(mark - next) : length;
    length = length < size ? length : size;
    memcpy(bytes, next, length);
    next += length;
    errno = EAGAIN;
    return length > 0 ? (ssize_t)length : -1;
}

/* No name is looked up, nothing is started. */
struct helper_process *__wrap_helper_process_start(struct loop *loop,
                                                   void (*work)(const void *, void *),
                                                   const void *question, size_t size,
                                                   void (*done)(void *, const void *), void *owner)
{
    (void)loop, (void)work, (void)question, (void)size, (void)done, (void)owner;
    errno = EAGAIN;
    return NULL;
}
