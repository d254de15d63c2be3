/* A message over a channel arrives, also where the kernel does not take it, or give it, at once. */
#include "run/channel.h"

#include <errno.h>
#include <string.h>
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

static int refusals, send_refusal; /* so many calls fail with that errno */

ssize_t sendmsg(int fd, const struct msghdr *parcel, int flags)
{
    if (refusals == 0)
        return syscall(SYS_sendmsg, fd, parcel, flags);
    refusals--;
    errno = send_refusal;
    return -1;
}

/* Two messages of which the kernel refuses the first so often: both arrive, in their order. */
static void test_refused(int *ends, int error, int times, const char *what)
{
    struct loop *loop = loop_new();
    struct outbox *outbox = outbox_new(loop, ends[0]);
    int first = 0, second = 0, fd;

    refusals = times;
    send_refusal = error;
    tap_ok(outbox_send(outbox, &(int){1}, sizeof(int), -1), "%s: the first is sent or kept", what);
    tap_ok(outbox_send(outbox, &(int){2}, sizeof(int), -1), "%s: so is the second", what);
    for (int turn = 0; turn < 100 && !outbox_is_empty(outbox); turn++)
        loop_run_for(loop, 100 * NS_PER_MS);
    channel_receive(ends[1], &first, sizeof first, &fd);
    channel_receive(ends[1], &second, sizeof second, &fd);
    tap_ok(first == 1 && second == 2, "%s: they arrive: %d %d", what, first, second);
    outbox_free(outbox);
    loop_free(loop);
}

/* A descriptor that may not go along stays behind, and holds up nothing. */
static void test_many_references(int *ends)
{
    struct loop *loop = loop_new();
    struct outbox *outbox = outbox_new(loop, ends[0]);
    int received = 0, fd;

    refusals = 1;
    send_refusal = ETOOMANYREFS;
    outbox_send(outbox, &(int){3}, sizeof(int), ends[0]);
    channel_receive(ends[1], &received, sizeof received, &fd);
    tap_ok(received == 3 && fd < 0, "too many descriptors on their way: the message comes alone");
    outbox_free(outbox);
    loop_free(loop);
}

/* A report with a reason and one without arrive as they were sent, also where the first is kept. */
static void test_reports(int *ends)
{
    const struct run_reason why = {.cause = RUN_CAUSE_NO_ANSWER, .by = "b", .text = "t"};
    const struct agent_report plain = {.kind = REPORT_OVER, .status = 3},
                              reasoned = {.kind = REPORT_LOST, .news.reason = &why};
    struct loop *loop = loop_new();
    struct outbox *outbox = outbox_new(loop, ends[0]);
    struct agent_message heard;

    refusals = 1;
    send_refusal = ENOBUFS;
    outbox_report(outbox, &reasoned);
    outbox_report(outbox, &plain);
    for (int turn = 0; turn < 100 && !outbox_is_empty(outbox); turn++)
        loop_run_for(loop, 100 * NS_PER_MS);
    tap_ok(channel_hear(ends[1], &heard) == 1 && heard.report.kind == REPORT_LOST &&
               heard.report.news.reason == &heard.reason &&
               heard.reason.cause == RUN_CAUSE_NO_ANSWER && strcmp(heard.reason.by, "b") == 0 &&
               strcmp(heard.reason.text, "t") == 0,
           "a report with a reason");
    tap_ok(channel_hear(ends[1], &heard) == 1 && heard.report.kind == REPORT_OVER &&
               heard.report.status == 3 && !heard.report.news.reason,
           "a report without one");
    tap_ok(channel_hear(ends[1], &heard) == 0, "no more reports");
    channel_send(ends[0], &(int){5}, sizeof(int), -1);
    tap_ok(channel_hear(ends[1], &heard) == -1, "another message is not taken for a report");
    outbox_free(outbox);
    loop_free(loop);
}

/* A closed end is told, and nothing is kept for it. */
static void test_closed(int end)
{
    struct loop *loop = loop_new();
    struct outbox *outbox = outbox_new(loop, end);

    tap_ok(!outbox_send(outbox, &(int){4}, sizeof(int), -1) && outbox_is_empty(outbox),
           "nothing is kept for an end that is closed");
    outbox_free(outbox);
    loop_free(loop);
}

/* A message is sent, and the first try to receive it meets an error: it is not lost by that. */
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
    test_refused(ends, 0, 0, "a message to be sent");
    test_refused(ends, ENOBUFS, 1, "no buffer to send it");
    test_refused(ends, EAGAIN, 3, "a full queue");
    test_many_references(ends);
    test_reports(ends);
    close(ends[0]);
    tap_ok(channel_receive(ends[1], &nothing, sizeof nothing, &fd) == -1,
           "the other end is closed");
    tap_ok(channel_hear(ends[1], &(struct agent_message){.report.kind = REPORT_PING}) == -1,
           "nor does a report come from there");
    test_closed(ends[1]);
    close(ends[1]);
    tap_ok(outbox_finish(NULL, 0), "a process that is alone has nothing left to send");
    return tap_done();
}
