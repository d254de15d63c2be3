/* The process that speaks to the store: the one that the script has started or, where the lock is
 * to be renewed, one that is forked before the store is opened. So a store's session is the
 * renewer's from its start, and the end of the process that the script waits for does
 * not touch it. */
#include "run/acquisition.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "net/loop.h"
#include "os/child.h"
#include "os/procfs.h"
#include "run/channel.h"
#include "run/exit_status.h"
#include "run/waiting.h"

/* The longest to give back what could not be printed, or what is not wanted any more. */
#define RELEASE_NS (3 * NS_PER_SEC)
#define CANCEL_NS  (800 * NS_PER_MS)
/* For the renewer to give it back, while the user waits. */
#define WITHDRAW_NS (1500 * NS_PER_MS)

struct acquisition {
    const struct acquisition_plan *plan;
    struct acquisition_outcome *outcome;
    struct loop *loop;
    struct store *store;
    struct keeper *keeper;
    struct waiting waiting;
    sigset_t caught;
    struct lease lease; /* while held */
    struct lock_grant grants[LOCK_KEYS_MAX];
    enum { SEEKING, HELD, LEAVING } state;

    /* Of a renewer: */
    struct loop_io channel; /* to the process that prints, until that has ended */
    pid_t printer;          /* that process */
    bool absent;            /* it was stopped, and has yet to say that it is there */
    bool detached;          /* the lock is held, and nothing is told any more */
    atomic_bool
        *delivered; /* in memory that both share: it was printed, if the printer has ended */
};

static const struct run_events *events_of(const struct acquisition *a)
{
    return a->plan->events;
}

static void fail_by_errno(const struct acquisition *a, enum run_event event)
{
    const struct run_reason why = run_reason_errno();

    run_tell_reason(events_of(a), event, &why);
    a->outcome->status = STATUS_SYSTEM;
}

static void leave(struct acquisition *a, bool used, struct moment until)
{
    const struct lock_end end = {.known = false};

    if (a->state == HELD)
        keeper_release(a->keeper, until, used ? &end : NULL);
    else if (a->state == SEEKING)
        keeper_cancel(a->keeper, until);
    a->state = LEAVING;
}

static void cancel(struct acquisition *a)
{
    leave(a, false, moment_plus(loop_now(a->loop), CANCEL_NS));
}

/* -- what the keeper says -------------------------------------------------------------------- */

/* From now on, the renewer ends with the process that it renews for, and with nothing else: a
 * signal to all that a script has started must not free the lock while the script still
 * cleans up. */
static void stay_behind(struct acquisition *a)
{
    struct agent_report held = {.kind = REPORT_HELD, .lease = a->lease};

    memcpy(held.grants, a->grants, sizeof held.grants);
    events_of(a)->detach(events_of(a)->arg);
    child_detach();
    a->detached = true;
    keeper_verify(a->keeper); /* from then on it hears of who asks for the lock */
    channel_report(a->channel.fd, &held);
}

static void on_waiting(void *arg, const struct answer *refusal)
{
    struct acquisition *a = arg;

    waiting_heard(&a->waiting, refusal);
}

static void on_held(void *arg, struct lease lease, const struct lock_grant *grants)
{
    struct acquisition *a = arg;

    waiting_acquired(&a->waiting, lease, grants);
    memcpy(a->grants, grants, sizeof a->grants);
    a->lease = lease;
    a->state = HELD;
    if (a->plan->keep)
        stay_behind(a);
    else
        loop_stop(a->loop);
}

static void on_extended(void *arg, struct lease lease, bool forgotten)
{
    struct acquisition *a = arg;

    (void)forgotten; /* and had again: nothing has changed for the script */
    a->lease = lease;
}

static void on_trouble(void *arg, const struct answer *why)
{
    struct acquisition *a = arg;
    const struct run_reason reason = run_reason_text(why->text);

    if (a->detached)
        return;
    run_tell_server_said(events_of(a), why->said);
    run_tell_reason(events_of(a), RUN_TROUBLE, &reason);
}

static void on_recovered(void *arg, int64_t after)
{
    struct acquisition *a = arg;
    const struct run_news news = {.event = RUN_STORE_BACK, .duration = after};

    if (!a->detached)
        run_tell(events_of(a), &news);
}

/* A renewer has nobody to tell: the script finds out when it renews or releases. Who was asked to
 * give the lock back has it yet. */
static void on_lost(void *arg, const char *why)
{
    struct acquisition *a = arg;
    const struct lock_end end = {.how = LOCK_LOST};

    (void)why;
    if (a->state != HELD)
        return;
    if (!keeper_was_asked(a->keeper)) {
        loop_stop(a->loop);
        return;
    }
    a->state = LEAVING;
    keeper_release(a->keeper, moment_plus(loop_now(a->loop), CANCEL_NS), &end);
}

static void report_failure(const struct acquisition *a, const struct keeper_end *end)
{
    const struct run_news news = run_news_failure(end, 1);

    a->outcome->status = status_of_cause(end->cause);
    run_tell_server_said(events_of(a), end->said);
    run_tell(events_of(a), &news);
}

static void report_conflict(const struct acquisition *a, const struct keeper_end *end)
{
    const struct run_refusal refusal = waiting_refused(&a->waiting, end->refusal);
    const struct run_news news = {.event = RUN_NOT_ACQUIRED, .refusal = &refusal};

    a->outcome->status = a->plan->conflict_status;
    run_tell(events_of(a), &news);
}

static void on_over(void *arg, const struct keeper_end *end)
{
    struct acquisition *a = arg;
    const struct run_reason why = run_reason_text(end->text);

    waiting_end(&a->waiting);
    loop_stop(a->loop);
    if (a->detached)
        return;
    if (end->ending == KEEPER_FAILED)
        report_failure(a, end);
    else if (end->ending == KEEPER_NOT_ACQUIRED)
        report_conflict(a, end);
    else if (end->ending == KEEPER_UNRELEASED)
        run_tell_reason(events_of(a), RUN_UNRELEASED, &why);
}

/* A printer that is stopped does not take a grant. It answers as soon as it runs. */
static bool is_absent(void *arg)
{
    struct acquisition *a = arg;
    const struct agent_report ping = {.kind = REPORT_PING};
    struct process process;

    if (!a->plan->keep || a->state != SEEKING)
        return false;
    if (!a->absent && process_find(a->printer, &process) == PROCESS_FOUND && process.state == 'T')
        a->absent = channel_report(a->channel.fd, &ping);
    return a->absent;
}

/* -- seeking --------------------------------------------------------------------------------- */

static const struct keeper_events keeper_events = {
    on_waiting, on_held, on_extended, {on_trouble, on_recovered}, on_lost, on_over, is_absent};

/* The process that it is for has ended. */
static void on_ended(void *arg)
{
    struct acquisition *a = arg;
    const struct run_news news = {.event = RUN_OWNER_ENDED, .number = a->plan->keep->pid};

    if (a->detached) {
        leave(a, true, a->lease.end);
    } else if (a->state == SEEKING) {
        run_tell(events_of(a), &news);
        a->outcome->status = STATUS_NO;
        cancel(a);
    }
}

static bool open_store(struct acquisition *a)
{
    char fault[256];

    a->store = store_open(a->loop, &a->plan->address, fault, sizeof fault);
    if (a->store)
        return true;
    const struct run_reason why = run_reason_text(fault);
    run_tell_reason(events_of(a), RUN_FAILED, &why);
    a->outcome->status = *a->plan->address_status;
    return false;
}

/* Runs the keeper; returns when the loop is stopped. */
static void seek(struct acquisition *a)
{
    const struct acquisition_plan *plan = a->plan;

    if (!open_store(a))
        return;
    waiting_init(&a->waiting, a->loop, &plan->keeper.request, plan->events);
    if (plan->keep)
        pid_watch_start(plan->keep, a->loop, on_ended, a);
    a->keeper = keeper_start(a->loop, a->store, &plan->keeper, &keeper_events, a);
    if (loop_run(a->loop) < 0)
        fail_by_errno(a, RUN_SYSTEM_REFUSED);
}

static void end(struct acquisition *a)
{
    if (a->plan->keep)
        pid_watch_close(a->plan->keep);
    if (a->keeper)
        keeper_free(a->keeper);
    if (a->store)
        store_close(a->store);
    loop_free(a->loop);
}

/* -- printing -------------------------------------------------------------------------------- */

/* Prints the lock to standard output, at once or when its renewer holds it. Until then, it can be
 * given back. */
struct printer {
    const struct acquisition_plan *plan;
    struct acquisition_outcome *outcome;
    int channel; /* to the renewer; -1: there is none */
    struct loop *loop;
    struct loop_io out, renewer;
    struct loop_timer timer; /* the end of the lease, or of waiting for the renewer */
    char text[ACQUISITION_TEXT_SIZE];
    size_t written;
    enum { AWAITING, PRINTING, PRINTED, WITHDRAWING } state;
};

/* False if there is no renewer to hear it. */
static bool tell_renewer(const struct printer *printer, enum order_kind kind)
{
    const struct agent_order order = {.kind = kind};
    return printer->channel >= 0 && channel_order(printer->channel, &order, -1);
}

static void withdraw(struct printer *printer)
{
    printer->state = WITHDRAWING;
    loop_remove(printer->loop, &printer->out);
    if (tell_renewer(printer, ORDER_CANCEL))
        loop_arm(printer->loop, &printer->timer, moment_plus(loop_now(printer->loop), WITHDRAW_NS));
    else
        loop_stop(printer->loop);
}

static void fail_to_print(struct printer *printer, enum run_event event,
                          const struct run_reason *why)
{
    run_tell_reason(printer->plan->events, event, why);
    printer->outcome->status = STATUS_SYSTEM;
    withdraw(printer);
}

/* What is ready takes at least PIPE_BUF bytes, so this does not block. */
static void writable(struct loop_io *io, int events)
{
    struct printer *printer = io->owner;
    const char *rest = printer->text + printer->written;
    ssize_t n = write(io->fd, rest, strlen(rest));

    (void)events;
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        struct run_reason why = run_reason_errno();
        why.cause = RUN_CAUSE_UNWRITABLE;
        fail_to_print(printer, RUN_UNDELIVERED, &why);
        return;
    }
    printer->written += n > 0 ? (size_t)n : 0;
    if (printer->text[printer->written] == '\0') {
        printer->state = PRINTED;
        loop_stop(printer->loop);
    }
}

static void print(struct printer *printer, struct lease lease, const struct lock_grant *grants)
{
    printer->state = PRINTING;
    printer->plan->compose(printer->plan->arg, lease.length, grants, printer->text);
    loop_arm(printer->loop, &printer->timer, lease.end);
    loop_add(printer->loop, &printer->out);
}

static void timed_out(struct loop_timer *timer)
{
    const struct run_reason unread = {.cause = RUN_CAUSE_UNREAD};
    struct printer *printer = timer->owner;

    if (printer->state == WITHDRAWING)
        loop_stop(printer->loop);
    else
        fail_to_print(printer, RUN_UNDELIVERED, &unread);
}

/* -- hearing the renewer --------------------------------------------------------------------- */

/* It has ended. What it was not acquired for, it has told the user itself before it said OVER. */
static void part(struct printer *printer, bool told)
{
    const struct run_reason why = {.cause = RUN_CAUSE_RENEWER_ENDED};

    loop_remove(printer->loop, &printer->renewer);
    if (printer->state == PRINTING)
        fail_to_print(printer, RUN_UNDELIVERED, &why);
    else if (printer->state == AWAITING && !told)
        fail_to_print(printer, RUN_RENEWER_DIED, &why);
    loop_stop(printer->loop);
}

static void heard(struct loop_io *io, int events)
{
    struct printer *printer = io->owner;
    struct agent_report message;
    bool over = false;
    int got;

    (void)events;
    while ((got = channel_hear_report(io->fd, &message)) > 0) {
        if (message.kind == REPORT_HELD && printer->state == AWAITING) {
            print(printer, message.lease, message.grants);
        } else if (message.kind == REPORT_PING) {
            tell_renewer(printer, ORDER_PONG);
        } else if (message.kind == REPORT_OVER) {
            over = true;
            if (printer->state == AWAITING)
                printer->outcome->status = message.status;
        }
    }
    if (got < 0 || over)
        part(printer, over);
}

static void caught(void *owner, int signo)
{
    struct printer *printer = owner;

    if (signo == SIGTSTP) {
        tell_renewer(printer, ORDER_PAUSED);
        terminal_stop(SIGTSTP, false);
    } else if (child_signal_is_fatal(signo) && printer->state != WITHDRAWING) {
        printer->outcome->signal = signo;
        withdraw(printer);
    } else if (child_signal_is_fatal(signo)) {
        loop_stop(printer->loop);
    }
}

/* A lock that is held already is printed at once. */
static bool prepare(struct printer *printer, const struct acquisition *held,
                    const sigset_t *signals)
{
    printer->loop = loop_new();
    if (!printer->loop || loop_signals(printer->loop, signals, caught, printer) < 0)
        return false;
    printer->out = (struct loop_io){
        .fd = STDOUT_FILENO, .events = LOOP_WRITE, .ready = writable, .owner = printer};
    printer->renewer = (struct loop_io){
        .fd = printer->channel, .events = LOOP_READ, .ready = heard, .owner = printer};
    printer->timer = (struct loop_timer){.fire = timed_out, .urgent = true, .owner = printer};
    if (held)
        print(printer, held->lease, held->grants);
    else
        loop_add(printer->loop, &printer->renewer);
    return true;
}

/* Prints the lock that this process holds, or its renewer on that channel. True when it is printed;
 * otherwise the user has been told why, and the outcome has the status, or the signal to die of. */
static bool deliver(struct acquisition *a, int channel)
{
    struct printer printer = {.plan = a->plan, .outcome = a->outcome, .channel = channel};

    if (!prepare(&printer, channel < 0 ? a : NULL, &a->caught) || loop_run(printer.loop) < 0)
        fail_by_errno(a, RUN_SYSTEM_REFUSED);
    loop_free(printer.loop);
    return printer.state == PRINTED;
}

/* -- a lock that nothing renews -------------------------------------------------------------- */

static void on_signal(void *owner, int signo)
{
    struct acquisition *a = owner;

    if (signo == SIGTSTP) {
        waiting_hide(&a->waiting);
        terminal_stop(SIGTSTP, false);
    } else if (child_signal_is_fatal(signo) && a->state == LEAVING) {
        loop_stop(a->loop);
    } else if (child_signal_is_fatal(signo)) {
        a->outcome->signal = signo;
        cancel(a);
    }
}

static void take_back(struct acquisition *a)
{
    leave(a, false, moment_plus(moment_now(), a->outcome->signal ? CANCEL_NS : RELEASE_NS));
    loop_run(a->loop);
}

static void print_it(struct acquisition *a)
{
    if (!deliver(a, -1))
        take_back(a);
}

static void acquire_alone(struct acquisition *a)
{
    a->loop = loop_new();
    if (!a->loop || loop_signals(a->loop, &a->caught, on_signal, a) < 0)
        fail_by_errno(a, RUN_SYSTEM_REFUSED);
    else
        seek(a);
    if (a->state == HELD)
        print_it(a);
    end(a);
}

/* -- a lock that is renewed ------------------------------------------------------------------ */

static void take(struct acquisition *a, const struct agent_order *message)
{
    if (message->kind == ORDER_PAUSED) {
        waiting_hide(&a->waiting);
    } else if (message->kind == ORDER_PONG) {
        a->absent = false;
        keeper_resume(a->keeper);
    } else if (message->kind == ORDER_CANCEL && a->state == HELD) {
        leave(a, false, a->lease.end);
    } else if (message->kind == ORDER_CANCEL) {
        cancel(a);
    }
}

/* The printer may have ended before it had printed anything. */
static void on_message(struct loop_io *io, int events)
{
    struct acquisition *a = io->owner;
    struct agent_order message;
    int got, none;

    (void)events;
    while ((got = channel_hear_order(io->fd, &message, &none)) > 0)
        take(a, &message);
    if (got == 0)
        return;
    loop_remove(a->loop, io);
    if (!atomic_load(a->delivered))
        take(a, &(struct agent_order){.kind = ORDER_CANCEL});
    close(io->fd);
    io->fd = -1;
}

static void renew(struct acquisition *a, int channel)
{
    struct agent_report over = {.kind = REPORT_OVER};

    a->outcome->left_behind = true;
    a->channel =
        (struct loop_io){.fd = channel, .events = LOOP_READ, .ready = on_message, .owner = a};
    a->loop = loop_new();
    if (a->loop) {
        loop_add(a->loop, &a->channel);
        seek(a);
    } else {
        fail_by_errno(a, RUN_SYSTEM_REFUSED);
    }
    over.status = a->outcome->status;
    if (a->channel.fd >= 0)
        channel_report(a->channel.fd, &over);
    end(a);
}

/* The printer's part. */
static void wait_for_renewer(struct acquisition *a, int channel)
{
    pid_watch_close(a->plan->keep);
    if (deliver(a, channel)) {
        a->outcome->renewer = channel;
        a->outcome->delivered = a->delivered;
    }
}

static void acquire_with_renewer(struct acquisition *a)
{
    int ends[2];

    a->printer = getpid();
    a->delivered = child_share_memory(sizeof *a->delivered);
    if (!a->delivered || channel_pair(ends) < 0) {
        fail_by_errno(a, RUN_NO_RENEWER);
        return;
    }
    pid_t pid = child_fork_survivor("rlock-renewer");
    if (pid < 0)
        fail_by_errno(a, RUN_NO_RENEWER);
    close(ends[pid == 0 ? 0 : 1]);
    if (pid == 0)
        renew(a, ends[1]);
    else if (pid > 0)
        wait_for_renewer(a, ends[0]);
}

/* -- both ------------------------------------------------------------------------------------ */

void acquisition_run(const struct acquisition_plan *plan, struct acquisition_outcome *outcome)
{
    struct acquisition a = {.plan = plan, .outcome = outcome, .channel = {.fd = -1}};
    struct inherited inherited;

    *outcome = (struct acquisition_outcome){.status = STATUS_OK, .renewer = -1};
    child_block_signals(&inherited);
    child_choose_signals(&a.caught);
    if (plan->keep)
        acquire_with_renewer(&a);
    else
        acquire_alone(&a);
}

/* Nothing is sent: that would wake the renewer up in this one's place, and leave time to
 * kill it. */
bool acquisition_confirm(const struct acquisition_plan *plan, struct acquisition_outcome *outcome)
{
    struct agent_report message;
    bool lives = channel_hear_report(outcome->renewer, &message) >= 0;

    atomic_store(outcome->delivered, lives);
    if (lives)
        return true;
    outcome->status = STATUS_SYSTEM;
    run_tell_event(plan->events, RUN_RENEWER_ENDED);
    return false;
}
