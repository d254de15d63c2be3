/* A message over a channel arrives, also where the kernel has no memory for a moment. */
#include "run/channel.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tap.h"

static int refusal; /* an errno; 0: none */

/* In the library's place: fails once. */
ssize_t recvmsg(int fd, struct msghdr *parcel, int flags)
{
    int error = refusal;

    refusal = 0;
    if (!error)
        return syscall(SYS_recvmsg, fd, parcel, flags);
    errno = error;
    return -1;
}

static void test_receive(int *ends, int error, const char *what, int expected)
{
    const int sent = 7;
    int received = 0, fd;

    channel_send(ends[0], &sent, sizeof sent, -1);
    refusal = error;
    int got = channel_receive(ends[1], &received, sizeof received, &fd);
    tap_ok(got == expected, "%s: %d", what, got);
    tap_ok(got == 1 ||
               (channel_receive(ends[1], &received, sizeof received, &fd) == 1 && received == sent),
           "%s: it arrives", what);
}

int main(void)
{
    int ends[2], nothing, fd;

    tap_ok(channel_pair(ends) == 0, "there are two ends");
    test_receive(ends, 0, "a message", 1);
    test_receive(ends, EINTR, "a signal meanwhile", 1);
    test_receive(ends, ENOMEM, "no memory", 0);
    test_receive(ends, ENOBUFS, "no buffer", 0);
    close(ends[0]);
    tap_ok(channel_receive(ends[1], &nothing, sizeof nothing, &fd) == -1,
           "the other end is closed");
    close(ends[1]);
    return tap_done();
}
