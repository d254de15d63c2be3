/* A lock's text on its way to standard output. */
#include "delivery.h"
#include "channel.h"
#include "child.h"
#include "loop.h"
#include "say.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* For the renewer to give it back, while the user waits. */
#define WITHDRAW_NS (1500 * NS_PER_MS)

struct delivery_run {
    const struct delivery_plan *plan;
    struct loop *loop;
    struct loop_io out, renewer;
    struct loop_timer timer;
    size_t written;
    bool withdrawing;
    enum delivery result;
    int signo;
};

static void withdraw(struct delivery_run *run, enum delivery why)
{
    struct message cancel = {.kind = MESSAGE_CANCEL};

    run->result = why;
    run->withdrawing = true;
    loop_remove(run->loop, &run->out);
    if (run->plan->renewer >= 0 && channel_send(run->plan->renewer, &cancel))
        loop_arm(run->loop, &run->timer, moment_plus(loop_now(run->loop), WITHDRAW_NS));
    else
        loop_stop(run->loop);
}

static void fail(struct delivery_run *run, const char *what, const char *why)
{
    say_error("%s: released again: %s%s%s", run->plan->title, what, *why ? ": " : "", why);
    withdraw(run, DELIVERY_FAILED);
}

static void delivered(struct delivery_run *run)
{
    struct message go = {.kind = MESSAGE_ACK};

    run->result = DELIVERY_DONE;
    if (run->plan->renewer >= 0 && !channel_send(run->plan->renewer, &go)) {
        run->result = DELIVERY_FAILED;
        say_error("%s: its renewer has ended; it is not renewed", run->plan->title);
    }
    loop_stop(run->loop);
}

/* What is ready takes at least PIPE_BUF bytes, so this does not block. */
static void writable(struct loop_io *io, int events)
{
    struct delivery_run *run = io->owner;
    const char *rest = run->plan->text + run->written;
    ssize_t n = write(io->fd, rest, strlen(rest));

    (void)events;
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        fail(run, "cannot write to standard output", strerror(errno));
        return;
    }
    run->written += n > 0 ? (size_t)n : 0;
    if (run->plan->text[run->written] == '\0')
        delivered(run);
}

static void heard(struct loop_io *io, int events)
{
    struct delivery_run *run = io->owner;
    struct message message;
    int got;

    (void)events;
    while ((got = channel_receive(io->fd, &message)) > 0)
        if (message.kind == MESSAGE_HELD && !run->withdrawing)
            loop_add(run->loop, &run->out);
    if (got == 0)
        return;
    loop_remove(run->loop, io);
    if (run->withdrawing)
        loop_stop(run->loop);
    else
        fail(run, "its renewer has ended", "");
}

static void timed_out(struct loop_timer *timer)
{
    struct delivery_run *run = timer->owner;

    if (run->withdrawing)
        loop_stop(run->loop);
    else
        fail(run, "standard output took nothing until the lease ended", "");
}

static void caught(void *owner, int signo)
{
    struct delivery_run *run = owner;

    if (signo == SIGTSTP) {
        terminal_stop(SIGTSTP, false);
    } else if (child_signal_is_fatal(signo) && !run->withdrawing) {
        run->signo = signo;
        withdraw(run, DELIVERY_INTERRUPTED);
    } else if (child_signal_is_fatal(signo)) {
        loop_stop(run->loop);
    }
}

static bool start(struct delivery_run *run)
{
    const struct delivery_plan *plan = run->plan;

    run->loop = loop_new();
    if (!run->loop || loop_signals(run->loop, plan->caught, caught, run) < 0)
        return false;
    run->out = (struct loop_io){
        .fd = STDOUT_FILENO, .events = LOOP_WRITE, .ready = writable, .owner = run};
    run->renewer =
        (struct loop_io){.fd = plan->renewer, .events = LOOP_READ, .ready = heard, .owner = run};
    run->timer = (struct loop_timer){.fire = timed_out, .urgent = true, .owner = run};
    loop_arm(run->loop, &run->timer, plan->until);
    loop_add(run->loop, plan->renewer >= 0 ? &run->renewer : &run->out);
    return true;
}

enum delivery delivery_run(const struct delivery_plan *plan, int *signo)
{
    struct delivery_run run = {.plan = plan};

    if (!start(&run) || loop_run(run.loop) < 0) {
        say_error("%s: the system refuses: %s", plan->title, strerror(errno));
        run.result = DELIVERY_FAILED;
    }
    loop_free(run.loop);
    *signo = run.signo;
    return run.result;
}
