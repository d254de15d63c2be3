/* One struct a message over a socket pair that keeps their bounds. */
#include "channel.h"

#include <errno.h>
#include <sys/socket.h>

int channel_pair(int ends[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
}

bool channel_send(int end, const struct message *message)
{
    ssize_t sent;
    do {
        sent = send(end, message, sizeof *message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof *message;
}

/* Who ends with a message unread makes the next call here fail with ECONNRESET, once, before the
 * messages that it had sent are handed out (unix(7), net/unix/af_unix.c): the last word of an agent
 * must not get lost by that. */
int channel_receive(int end, struct message *message)
{
    bool reset = false;
    for (;;) {
        ssize_t got = recv(end, message, sizeof *message, MSG_DONTWAIT);
        if (got == (ssize_t)sizeof *message) {
            message->text[sizeof message->text - 1] = '\0';
            return 1;
        }
        if (got >= 0)
            return -1;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return 0;
        if (errno != EINTR && (errno != ECONNRESET || reset))
            return -1;
        reset = errno == ECONNRESET;
    }
}
