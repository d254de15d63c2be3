#include "run/channel.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

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

/* The kernel drops a descriptor that this process has no room for. */
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

/* A process that ends with a message unread makes the next call here fail with ECONNRESET, once,
 * before the messages that it had sent are handed out (unix(7), net/unix/af_unix.c): the last words
 * of an agent must not get lost by that. */
int channel_receive(int end, void *message, size_t size, int *fd)
{
    bool reset = false;
    for (;;) {
        ssize_t got = receive_once(end, message, size, fd);
        if (got == (ssize_t)size)
            return 1;
        if (got >= 0)
            return -1;
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOMEM || errno == ENOBUFS)
            return 0;
        if (errno != EINTR && (errno != ECONNRESET || reset))
            return -1;
        reset = errno == ECONNRESET;
    }
}
