/* A keeper in the process that the script started, and then in one that stays behind. */
#include "acquisition.h"
#include "channel.h"
#include "child.h"
#include "delivery.h"
#include "loop.h"
#include "say.h"
#include "status.h"
#include "waiting.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The longest to give back what could not be handed over, or what is not wanted any more. */
#define RELEASE_NS (3 * NS_PER_SEC)
#define CANCEL_NS  (800 * NS_PER_MS)

struct acquisition {
    const struct acquisition_plan *plan;
    struct acquisition_outcome *outcome;
    struct loop *loop;
    struct store *store;
    struct keeper *keeper;
    struct waiting waiting;
    sigset_t caught;
    struct moment deadline; /* of the lease */
    struct lock_grant grants[LOCK_KEYS_MAX];
    enum { SEEKING, HELD, LEAVING } state;
    bool left_behind;       /* this process renews it; the other one hands it over */
    struct loop_io channel; /* between them, until it was handed over */
};

static struct moment now_of(const struct acquisition *a)
{
    return loop_now(a->loop);
}

static void leave(struct acquisition *a, bool used, struct moment until)
{
    if (a->state == HELD)
        keeper_release(a->keeper, until, used);
    else if (a->state == SEEKING)
        keeper_cancel(a->keeper, until);
    a->state = LEAVING;
}

/* -- what the keeper says -------------------------------------------------------------------- */

static void on_waiting(void *arg, const struct answer *refusal)
{
    struct acquisition *a = arg;

    if (refusal->requeued)
        say_detail("%s: was dropped from the queue, is in it again as number %" PRId64,
                   a->plan->title, refusal->position);
    waiting_heard(&a->waiting, refusal);
}

static void on_held(void *arg, struct moment deadline, const struct lock_grant *grants)
{
    struct acquisition *a = arg;

    waiting_end(&a->waiting);
    say_detail("%s: acquired, fencing token %" PRIu64, a->plan->title, grants[0].fence);
    memcpy(a->grants, grants, sizeof a->grants);
    a->deadline = deadline;
    a->state = HELD;
    loop_stop(a->loop);
}

static void on_extended(void *arg, struct moment deadline, bool forgotten)
{
    struct acquisition *a = arg;

    (void)forgotten; /* and had again: nothing has changed for the script */
    a->deadline = deadline;
}

static void on_trouble(void *arg, const char *why)
{
    struct acquisition *a = arg;

    if (!a->left_behind)
        say_warning("%s: %.250s; trying again", a->plan->title, why);
}

/* Of one who stayed behind there is nobody to tell: the script finds out when it renews or releases. */
static void on_lost(void *arg, const char *why)
{
    struct acquisition *a = arg;

    (void)why;
    if (a->state == HELD)
        loop_stop(a->loop);
}

static void say_failure(const struct acquisition *a, const struct keeper_end *end)
{
    const char *hint = hint_of_cause(end->cause);

    a->outcome->status = status_of_cause(end->cause);
    say_error("%s: %s", a->plan->title, end->text);
    if (hint)
        say_hint("%s", hint);
}

static void say_refusal(const struct acquisition *a, const struct keeper_end *end)
{
    char text[640];

    a->outcome->status = a->plan->conflict_status;
    if (a->plan->conflict_status != STATUS_OK) /* 0 is for those who want to hear nothing of it */
        say_warning("%s", waiting_refused(&a->waiting, &end->refusal, text, sizeof text));
}

static void on_over(void *arg, const struct keeper_end *end)
{
    struct acquisition *a = arg;

    waiting_end(&a->waiting);
    loop_stop(a->loop);
    if (a->left_behind)
        return;
    if (end->ending == KEEPER_FAILED)
        say_failure(a, end);
    else if (end->ending == KEEPER_NOT_ACQUIRED)
        say_refusal(a, end);
    else if (end->ending == KEEPER_UNRELEASED)
        say_warning("%s: could not be released: %s; its lease frees it", a->plan->title, end->text);
}

/* -- the user, and the process that it is for ------------------------------------------------- */

/* What stays behind goes with the process that it renews for, and with nothing else: a signal to all that a
 * script has started must not free the lock while the script still cleans up. */
static void on_signal(void *owner, int signo)
{
    struct acquisition *a = owner;

    if (a->left_behind || (signo != SIGTSTP && !child_signal_is_fatal(signo)))
        return;
    if (signo == SIGTSTP) {
        terminal_stop(SIGTSTP, false);
    } else if (a->state == LEAVING) {
        loop_stop(a->loop);
    } else {
        a->outcome->signal = signo;
        leave(a, false, moment_plus(now_of(a), CANCEL_NS));
    }
}

static void on_ended(void *arg)
{
    struct acquisition *a = arg;

    if (a->left_behind) {
        leave(a, true, a->deadline);
    } else if (a->state == SEEKING) {
        say_warning("%s: not acquired: process %ld, which it was for, has ended", a->plan->title,
                    (long)a->plan->keep->pid);
        a->outcome->status = STATUS_NO;
        leave(a, false, moment_plus(now_of(a), CANCEL_NS));
    }
}

/* -- handing over ---------------------------------------------------------------------------- */

static void on_message(struct loop_io *io, int events)
{
    struct acquisition *a = io->owner;
    struct message message = {.kind = MESSAGE_CANCEL};

    (void)events;
    if (channel_receive(io->fd, &message) == 0)
        return;
    loop_remove(a->loop, io);
    if (message.kind != MESSAGE_ACK) { /* or the other one died before it had printed anything */
        leave(a, false, a->deadline);
        return;
    }
    close(io->fd);
    io->fd = -1;
}

static void stay_behind(struct acquisition *a, int channel)
{
    struct message held = {.kind = MESSAGE_HELD, .deadline = a->deadline};

    say_let_go();
    a->left_behind = a->outcome->left_behind = true;
    a->channel =
        (struct loop_io){.fd = channel, .events = LOOP_READ, .ready = on_message, .owner = a};
    loop_add(a->loop, &a->channel);
    channel_send(channel, &held);
    loop_run(a->loop);
}

/* The other process's end of a channel to the one that stays behind; -1 with errno; or this is the latter. */
static int part(struct acquisition *a)
{
    int ends[2];
    pid_t pid;

    if (channel_pair(ends) < 0)
        return -1;
    pid = child_fork_survivor("rlock-renewer");
    close(ends[pid == 0 ? 0 : 1]);
    if (pid == 0) {
        stay_behind(a, ends[1]);
    } else if (pid < 0) {
        int error = errno;
        close(ends[0]);
        errno = error;
        return -1;
    }
    return ends[0];
}

static void take_back(struct acquisition *a, int signo)
{
    a->outcome->signal = signo;
    a->outcome->status = STATUS_SYSTEM;
    if (a->plan->keep && a->channel.fd >= 0)
        return; /* the other process does */
    leave(a, false, moment_plus(moment_now(), signo ? CANCEL_NS : RELEASE_NS));
    loop_run(a->loop);
}

static void hand_over(struct acquisition *a)
{
    char text[ACQUISITION_TEXT_SIZE];
    struct delivery_plan delivery = {.title = a->plan->title,
                                     .text = text,
                                     .renewer = -1,
                                     .until = a->deadline,
                                     .caught = &a->caught};
    int signo = 0;

    a->plan->compose(a->plan->arg, a->grants, text);
    a->channel.fd = -1;
    if (a->plan->keep) {
        a->channel.fd = delivery.renewer = part(a);
        if (a->left_behind)
            return;
    }
    if (a->plan->keep && delivery.renewer < 0)
        say_error("%s: cannot start its renewer: %s", a->plan->title, strerror(errno));
    else if (delivery_run(&delivery, &signo) == DELIVERY_DONE)
        return;
    take_back(a, signo);
}

/* -- the run --------------------------------------------------------------------------------- */

static const struct keeper_events keeper_events = {on_waiting, on_held, on_extended,
                                                   on_trouble, on_lost, on_over};

static int start(struct acquisition *a)
{
    const struct acquisition_plan *plan = a->plan;
    struct inherited inherited;
    char fault[256];

    child_block_signals(&inherited);
    child_choose_signals(&a->caught);
    say_set_job(getpgrp());
    a->loop = loop_new();
    if (!a->loop || loop_signals(a->loop, &a->caught, on_signal, a) < 0) {
        say_error("%s: the system refuses: %s", plan->title, strerror(errno));
        return STATUS_SYSTEM;
    }
    a->store = store_open(a->loop, &plan->address, fault, sizeof fault);
    if (!a->store) {
        say_error("%s: %s", plan->title, fault);
        return plan->address_status;
    }
    waiting_init(&a->waiting, a->loop, &plan->keeper.request, plan->title, !plan->report_waiting);
    if (plan->keep)
        vigil_watch(plan->keep, a->loop, on_ended, a);
    a->keeper = keeper_start(a->loop, a->store, &plan->keeper, &keeper_events, a);
    return STATUS_OK;
}

/* Closing says nothing over a connection that the process that stays behind goes on with. */
static void end(struct acquisition *a)
{
    if (a->plan->keep)
        vigil_close(a->plan->keep);
    if (a->keeper)
        keeper_free(a->keeper);
    if (a->store)
        store_close(a->store);
    loop_free(a->loop);
}

void acquisition_run(const struct acquisition_plan *plan, struct acquisition_outcome *outcome)
{
    struct acquisition a = {.plan = plan, .outcome = outcome, .channel = {.fd = -1}};

    *outcome = (struct acquisition_outcome){.status = start(&a)};
    if (outcome->status != STATUS_OK) {
        /* said already */
    } else if (loop_run(a.loop) < 0) {
        say_error("%s: the system refuses: %s", plan->title, strerror(errno));
        outcome->status = STATUS_SYSTEM;
    } else if (a.state == HELD) {
        hand_over(&a);
    }
    end(&a);
}
