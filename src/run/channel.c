#include "run/channel.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/mem.h"

/* How often to send what was refused. */
#define AGAIN_NS (50 * NS_PER_MS)

union descriptor {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

int channel_pair(int ends[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
}

bool channel_send(int end, const void *message, size_t size, int fd)
{
    union descriptor descriptor = {.bytes = {0}};
    struct iovec text = {(void *)(uintptr_t)message, size};
    struct msghdr parcel = {.msg_iov = &text, .msg_iovlen = 1};
    ssize_t sent;

    if (fd >= 0) {
        parcel.msg_control = descriptor.bytes;
        parcel.msg_controllen = sizeof descriptor.bytes;
        struct cmsghdr *head = CMSG_FIRSTHDR(&parcel);
        *head = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    do {
        sent = sendmsg(end, &parcel, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)size;
}

/* Calls recvmsg() once: returns what it does, with errno. *fd is the descriptor that came with the
 * message; -1: none, or the kernel has dropped it, as this process has no room for it. */
static ssize_t receive_once(int end, void *message, size_t size, int *fd)
{
    union descriptor descriptor;
    struct iovec text = {message, size};
    struct msghdr parcel = {.msg_iov = &text,
                            .msg_iovlen = 1,
                            .msg_control = descriptor.bytes,
                            .msg_controllen = sizeof descriptor.bytes};
    ssize_t got = recvmsg(end, &parcel, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    *fd = -1;
    if (got > 0 && CMSG_FIRSTHDR(&parcel))
        memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&parcel)), sizeof *fd);
    return got;
}

/* Receives a message of at most "size" bytes. Returns its size; 0: none is there, or no memory for
 * it; -1: the other end is closed. *fd: the descriptor that came with it, the caller's to close; or
 * -1. */
static ssize_t receive(int end, void *message, size_t size, int *fd)
{
    /* A process that ends with a message unread makes the next call here fail with ECONNRESET,
     * once, before the messages that it had sent are handed out (unix(7), net/unix/af_unix.c): the
     * last words of an agent must not get lost by that. */
    bool reset = false;

    for (;;) {
        ssize_t got = receive_once(end, message, size, fd);
        if (got >= 0)
            return got > 0 ? got : -1;
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOMEM || errno == ENOBUFS)
            return 0;
        if (errno != EINTR && (errno != ECONNRESET || reset))
            return -1;
        reset = errno == ECONNRESET;
    }
}

int channel_receive(int end, void *message, size_t size, int *fd)
{
    ssize_t got = receive(end, message, size, fd);

    if (got <= 0)
        return (int)got;
    return got == (ssize_t)size ? 1 : -1;
}

int channel_hear(int end, struct agent_message *message)
{
    int none;
    ssize_t got = receive(end, message, sizeof *message, &none);
    bool has_reason = got == sizeof *message;

    if (got <= 0)
        return (int)got;
    message->report.news.reason = has_reason ? &message->reason : NULL;
    return has_reason || got == sizeof message->report ? 1 : -1;
}

/* -- what is refused ------------------------------------------------------------------------- */

/* A message that waits in an outbox. */
struct letter {
    struct letter *next;
    int fd;
    size_t size;
    char message[];
};

struct outbox {
    struct loop *loop;
    int end;
    struct loop_timer again; /* armed while anything is kept */
    struct letter *first;
};

/* POSTED: the kernel has taken the message; REFUSED: not now; CLOSED: the other end is. */
enum posted { POSTED, REFUSED, CLOSED };

/* Hands a message to the kernel, without its descriptor if the user has too many on the way. */
static enum posted post(const struct outbox *outbox, const void *message, size_t size, int fd)
{
    if (channel_send(outbox->end, message, size, fd) ||
        (errno == ETOOMANYREFS && channel_send(outbox->end, message, size, -1)))
        return POSTED;
    return errno == EPIPE || errno == ECONNRESET ? CLOSED : REFUSED;
}

static void discard_first(struct outbox *outbox)
{
    struct letter *letter = outbox->first;

    outbox->first = letter->next;
    free(letter);
}

/* Hands the kernel the messages that wait, in their order, until one is refused. If the other end
 * is closed, they are discarded. */
static void send_kept(struct outbox *outbox)
{
    struct letter *letter;

    while ((letter = outbox->first) &&
           post(outbox, letter->message, letter->size, letter->fd) != REFUSED)
        discard_first(outbox);
}

/* The timer: tries again to send what waits. */
static void on_again(struct loop_timer *timer)
{
    struct outbox *outbox = timer->owner;

    send_kept(outbox);
    if (outbox->first)
        loop_arm(outbox->loop, timer, moment_plus(loop_now(outbox->loop), AGAIN_NS));
}

struct outbox *outbox_new(struct loop *loop, int end)
{
    struct outbox *outbox = mem_zeroed(sizeof *outbox);

    outbox->loop = loop;
    outbox->end = end;
    outbox->again = (struct loop_timer){.fire = on_again, .owner = outbox};
    return outbox;
}

void outbox_free(struct outbox *outbox)
{
    if (!outbox)
        return;
    while (outbox->first)
        discard_first(outbox);
    loop_disarm(outbox->loop, &outbox->again);
    free(outbox);
}

/* Keeps a message that the socket has refused, behind those that wait, and tries again soon. */
static void keep(struct outbox *outbox, const void *message, size_t size, int fd)
{
    struct letter **end = &outbox->first;
    struct letter *letter = mem_zeroed(sizeof *letter + size);

    *letter = (struct letter){.fd = fd, .size = size};
    memcpy(letter->message, message, size);
    while (*end)
        end = &(*end)->next;
    *end = letter;
    if (!outbox->again.armed)
        loop_arm(outbox->loop, &outbox->again, moment_plus(loop_now(outbox->loop), AGAIN_NS));
}

bool outbox_send(struct outbox *outbox, const void *message, size_t size, int fd)
{
    /* A message does not overtake those that wait. */
    enum posted posted = outbox->first ? REFUSED : post(outbox, message, size, fd);

    if (posted == REFUSED)
        keep(outbox, message, size, fd);
    return posted != CLOSED;
}

/* Most reports have no reason: noinline, so that they do not take its stack. */
__attribute__((noinline)) static bool send_with_reason(struct outbox *outbox,
                                                       const struct agent_report *report)
{
    const struct agent_message message = {*report, *report->news.reason};
    return outbox_send(outbox, &message, sizeof message, -1);
}

bool outbox_report(struct outbox *outbox, const struct agent_report *report)
{
    return report->news.reason ? send_with_reason(outbox, report)
                               : outbox_send(outbox, report, sizeof *report, -1);
}

bool outbox_is_empty(const struct outbox *outbox)
{
    return !outbox->first;
}

bool outbox_finish(struct outbox *outbox, int64_t most)
{
    const struct timespec pause = {.tv_nsec = AGAIN_NS};
    struct moment until = moment_plus(moment_now(), most);

    if (!outbox)
        return true;
    for (send_kept(outbox); outbox->first && !moment_reached(until, moment_now());
         send_kept(outbox))
        nanosleep(&pause, NULL);
    return !outbox->first;
}
