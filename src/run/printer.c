/* The printer: the process that the script waits for. */
#include "run/printer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "net/loop.h"
#include "os/child.h"
#include "run/exit_status.h"

/* The agent has so long to release the lock, while the user waits. */
#define WITHDRAW_NS (1500 * NS_PER_MS)

struct printer {
    const struct printer_plan *plan;
    struct printer_outcome *outcome;
    struct agent_process *agent;
    enum {
        AWAITING, /* the agent waits for the lock */
        PRINTING, /* the grant is claimed */
        PRINTED,
        WITHDRAWING, /* the agent releases what was not printed */
    } state;
    struct loop *loop;
    struct loop_io out, channel;
    struct loop_timer timer; /* the end of the lease, or (WITHDRAWING) of waiting for the agent */
    char text[PRINTER_TEXT_SIZE];
    size_t written;
};

static const struct run_events *events_of(const struct printer *printer)
{
    return printer->plan->agent.events;
}

/* Sends the agent an order that concerns this lease; false if the agent is gone. */
static bool tell_agent(const struct printer *printer, enum order_kind kind, struct lease lease)
{
    return agent_process_tell(printer->agent, &(struct agent_order){.kind = kind, .lease = lease},
                              -1);
}

/* Has the agent release the lock, which no caller will use, and waits for that for a while. */
static void withdraw_grant(struct printer *printer)
{
    printer->state = WITHDRAWING;
    loop_remove(printer->loop, &printer->out);
    if (!tell_agent(printer, ORDER_CANCEL, (struct lease){0})) {
        loop_stop(printer->loop);
        return;
    }
    loop_arm(printer->loop, &printer->timer, moment_plus(loop_now(printer->loop), WITHDRAW_NS));
    agent_process_await(printer->agent, (struct moment){0}); /* from now on */
}

/* The lock could not be printed: tells the user by this event why, and has it released, as no
 * script knows of it. */
static void fail_to_print(struct printer *printer, enum run_event event,
                          const struct run_reason *why)
{
    run_tell_reason(events_of(printer), event, why);
    printer->outcome->status = STATUS_SYSTEM;
    withdraw_grant(printer);
}

/* Standard output can take more: writes what is left of the text, and ends the loop when all of it
 * is written. */
static void on_writable(struct loop_io *io, int events)
{
    struct printer *printer = io->owner;
    const char *rest = printer->text + printer->written;
    /* A pipe that is ready takes at least PIPE_BUF bytes, so this does not block. */
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

/* The timer: the text was not read by the end of the lease; or the release of the lock is not
 * answered, and the lock ends with its lease. */
static void on_time(struct loop_timer *timer)
{
    struct printer *printer = timer->owner;

    if (printer->state == WITHDRAWING)
        loop_stop(printer->loop);
    else
        fail_to_print(printer, RUN_UNDELIVERED, &(struct run_reason){.cause = RUN_CAUSE_UNPRINTED});
}

/* -- hearing the agent ----------------------------------------------------------------------- */

/* Takes REPORT_HELD: claims the grant, and begins to print the lock. */
static void take_held(struct printer *printer, const struct agent_report *held)
{
    const struct printer_plan *plan = printer->plan;

    if (!run_claim_grant(printer->agent->shared))
        return; /* this process was stopped, and the agent has withdrawn the grant */
    tell_agent(printer, ORDER_ACK, held->lease);
    printer->state = PRINTING;
    agent_process_await(printer->agent, MOMENT_NEVER);
    if (plan->compose)
        plan->compose(plan->arg, held->lease.length, held->grants, printer->text);
    loop_arm(printer->loop, &printer->timer, held->lease.end);
    loop_add(printer->loop, &printer->out);
}

/* The channel: takes the agent's reports. When the agent has ended, so does the printer: a failure,
 * if the lock was not printed by then. */
static void on_report(struct loop_io *io, int events)
{
    struct printer *printer = io->owner;
    struct agent_message message;
    const struct agent_report *report = &message.report;

    (void)events;
    while (agent_process_hear(printer->agent, &message)) {
        if (report->kind == REPORT_HELD && printer->state == AWAITING) {
            take_held(printer, report);
        } else if (report->kind == REPORT_PING) {
            tell_agent(printer, ORDER_PONG, report->lease);
        } else if (report->kind == REPORT_OVER) {
            if (printer->state == AWAITING)
                printer->outcome->status = report->status;
            run_tell(events_of(printer), &report->news);
        }
    }
    if (printer->agent->over || printer->agent->gone) {
        const struct run_reason why = {.cause = printer->plan->agent.keep ? RUN_CAUSE_RENEWER_ENDED
                                                                          : RUN_CAUSE_AGENT_DIED};
        loop_remove(printer->loop, &printer->channel);
        if (printer->state == PRINTING)
            fail_to_print(printer, RUN_UNDELIVERED, &why);
        else if (printer->state == AWAITING && !printer->agent->over)
            fail_to_print(printer, RUN_PARTNER_DIED, &why);
        loop_stop(printer->loop);
    }
}

/* Takes a signal: Ctrl-Z stops this process; a signal that ends it has the request withdrawn, and a
 * second one does not wait for that. */
static void on_signal(void *owner, int signo)
{
    struct printer *printer = owner;

    if (signo == SIGTSTP) {
        agent_process_pause(printer->agent);
        terminal_stop(SIGTSTP, TERMINAL_STOPS_PROCESS);
    } else if (child_signal_is_fatal(signo) && printer->state != WITHDRAWING) {
        printer->outcome->signal = signo;
        withdraw_grant(printer);
    } else if (child_signal_is_fatal(signo)) {
        loop_stop(printer->loop);
    }
}

/* -- the whole ------------------------------------------------------------------------------- */

/* Sets up the loop. False, with errno: there are no descriptors for it. */
static bool prepare_printer(struct printer *printer)
{
    sigset_t caught;

    child_choose_signals(&caught);
    if (loop_signals(printer->loop, &caught, on_signal, printer) < 0)
        return false;
    printer->out = (struct loop_io){
        .fd = STDOUT_FILENO, .events = LOOP_WRITE, .ready = on_writable, .owner = printer};
    printer->channel = (struct loop_io){
        .fd = printer->agent->channel, .events = LOOP_READ, .ready = on_report, .owner = printer};
    printer->timer = (struct loop_timer){.fire = on_time, .urgent = true, .owner = printer};
    agent_process_await(printer->agent, agent_process_overdue_at(&printer->plan->agent));
    loop_add(printer->loop, &printer->channel);
    return true;
}

void printer_run(const struct printer_plan *plan, struct printer_outcome *outcome)
{
    struct printer printer = {.plan = plan, .outcome = outcome, .agent = &outcome->agent};
    struct inherited inherited;

    *outcome = (struct printer_outcome){.status = STATUS_OK};
    child_block_signals(&inherited);
    struct run_shared *shared = child_share_memory(sizeof *shared);
    printer.loop = loop_new();
    if (!shared ||
        agent_process_start(printer.agent, printer.loop, &plan->agent, NULL, shared) != 0) {
        run_tell_refusal(events_of(&printer),
                         plan->agent.keep ? RUN_NO_RENEWER : RUN_SYSTEM_REFUSED);
        outcome->status = STATUS_SYSTEM;
        loop_free(printer.loop);
        return;
    }
    if (plan->agent.keep)
        pid_watch_close(plan->agent.keep); /* the agent has it now */
    if (!prepare_printer(&printer) || loop_run(printer.loop) < 0) {
        run_tell_refusal(events_of(&printer), RUN_SYSTEM_REFUSED);
        outcome->status = STATUS_SYSTEM;
    }
    outbox_finish(outcome->agent.outbox, WITHDRAW_NS);
    outbox_free(outcome->agent.outbox);
    outcome->agent.outbox = NULL;
    loop_free(printer.loop);
    if (printer.state == PRINTED && !plan->agent.keep) {
        /* Nothing renews it, so it is the script's, and the agent has nothing left to do. */
        atomic_store(&outcome->agent.shared->delivered, true);
        close(outcome->agent.channel);
        outcome->agent.over = true;
        agent_process_end(&outcome->agent);
    } else if (printer.state != PRINTED && outcome->agent.over) {
        agent_process_end(&outcome->agent);
    } /* a renewer stays; an agent that has not answered releases the lock when this process ends */
}

bool printer_confirm(const struct printer_plan *plan, struct printer_outcome *outcome)
{
    struct agent_message message;

    /* Nothing is sent: that would wake the renewer up in this process's place, and leave time to
     * kill this one. Where the renewer has ended, hearing all that it said sets "gone". */
    while (agent_process_hear(&outcome->agent, &message)) {
    }
    bool lives = !outcome->agent.gone && !outcome->agent.over;
    atomic_store(&outcome->agent.shared->delivered, lives);
    if (lives)
        return true;
    outcome->status = STATUS_SYSTEM;
    run_tell_event(plan->agent.events, RUN_RENEWER_ENDED);
    return false;
}
