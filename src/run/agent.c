/* The agent: a keeper and a watchdog at one end of a channel. The states, and what leads out of
 * each:
 *
 *   SEEKING     The lock is waited for. Held: OFFERED.
 *   OFFERED     Granted, and neither claimed by the peer nor withdrawn, as far as is known.
 *               Acknowledged: HOLDING. The lock is lost or its lease nearly over, the peer is
 *               stopped or does not react: withdrawn, and SEEKING; HOLDING if the peer has claimed
 *               it after all.
 *   HOLDING     The supervisor's command may be running. Lost, or the watchdog has to end the
 *               command: LOST. ORDER_RELEASE, or the watchdog finds nothing left of the command of
 *               a supervisor that is dead or stopped: RELEASING. Of a printer: it could not print
 *               the lock, or the process that the lock is kept for has ended, or another owner asks
 *               for it: RELEASING.
 *   LOST        The supervisor was told that the lock is lost; nothing is renewed any more. As
 *               HOLDING: RELEASING.
 *   RELEASING   The keeper is to release a lock that was used. Its last word: the end.
 *   CANCELLING  The keeper is to leave the queue, or to release an unclaimed lock. Its
 *               last word: the end.
 *
 * SEEKING and OFFERED lead to CANCELLING when the peer says so or is dead (a renewer's may be
 * done), and when the process has ended that the lock would be kept for. An agent that follows one
 * that died begins in SEEKING, or in HOLDING if that lock was claimed. RELEASING waits for a
 * command of --stop that this process has started ("release_order"). Without the keeper's last word
 * an agent ends where its watchdog has failed, its printer is served, or its renewed lock is
 * lost. */
#include "run/agent.h"
#include "net/loop.h"
#include "os/child.h"
#include "os/kernel.h"
#include "run/descendants.h"
#include "run/exit_status.h"
#include "run/fate.h"
#include "run/presence.h"
#include "run/waiting.h"
#include "run/watchdog.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The longest to try to release a lock that is not needed any more. The supervisor waits longer. */
#define RELEASE_NS (8 * NS_PER_SEC)
/* The longest to try to release it when the user wants to leave. */
#define CANCEL_NS (800 * NS_PER_MS)
/* The longest that its last word may take. */
#define REPORT_NS (1 * NS_PER_SEC)

struct agent {
    const struct agent_plan *plan;
    enum { SEEKING, OFFERED, HOLDING, LOST, RELEASING, CANCELLING } state;
    enum fate fate;                   /* of the command, as far as is known here */
    struct agent_order release_order; /* to be carried out as soon as it can be; ORDER_ACK: none */
    struct loop *loop;
    struct store *store;
    struct keeper *keeper;
    struct loop_io channel;
    struct outbox *outbox; /* NULL: the peer is dead */
    struct procfs procfs;
    struct presence presence; /* of the peer */
    struct watchdog watchdog; /* and the lease, while held */
    struct descendants descendants;
    struct waiting waiting;
    struct run_shared *shared;
    struct loop_io command;      /* a pidfd of it, until it ends */
    bool command_ended;          /* by itself as far as is known, unless it is "gone" */
    bool command_gone;           /* nothing is left of what the supervisor had to end */
    struct loop_timer long_wait; /* fires when the wait is long */
    struct run_news *trouble;    /* with the store; NULL: none */
    int status;                  /* the exit status where the wait was cancelled here */
};

static const struct run_events *events_of(const struct agent *agent)
{
    return agent->plan->events;
}

/* Whether the peer is a printer (rlock acquire), which has no command, and not a supervisor. */
static bool has_printer(const struct agent *agent)
{
    return !agent->plan->job;
}

/* Whether this agent gives up the lock, or the wait, and then ends. */
static bool is_leaving(const struct agent *agent)
{
    return agent->state == RELEASING || agent->state == CANCELLING;
}

/* Whether a command may have been started under the lock. */
static bool was_claimed(const struct agent *agent)
{
    return agent->state == HOLDING || agent->state == LOST || agent->state == RELEASING;
}

/* Sends a report, if there is a peer. A supervisor that is stopped reads it later; the watchdog
 * deals with that. */
static void send_report(struct agent *agent, const struct agent_report *report)
{
    if (agent->presence.state != PRESENCE_DEAD)
        outbox_report(agent->outbox, report);
}

/* Sends a report that has nothing to say but its kind, and the latest lease. */
static void send_plain(struct agent *agent, enum report_kind kind)
{
    send_report(agent, &(struct agent_report){.kind = kind, .lease = agent->watchdog.known.lease});
}

/* Copies a report to its place in the shared memory. reason: the place for the reason of its
 * news. */
static void note_report(struct agent_report *place, struct run_reason *reason,
                        const struct agent_report *report)
{
    *place = *report;
    if (!report->news.reason)
        return;
    *reason = *report->news.reason;
    place->news.reason = reason;
}

/* Sends the last report, a REPORT_OVER. The peer finds it in the shared page, too, as the kernel
 * may refuse the message. */
static void send_last(struct agent *agent, const struct agent_report *over)
{
    struct run_shared *shared = agent->shared;

    note_report(&shared->last, &shared->last_reason, over);
    atomic_store(&shared->over, true);
    send_report(agent, over);
}

/* Tells the supervisor that the lock is lost, and why; also in the shared page, as the kernel may
 * refuse the message. loss: a REPORT_LOST. */
static void report_loss(struct agent *agent, const struct agent_report *loss)
{
    fate_raise(&agent->fate, fate_of_loss(agent->plan->keeper.renew, loss->news.reason->cause));
    if (!is_leaving(agent))
        agent->state = LOST;
    atomic_store(&agent->shared->lease_end, 0); /* no extension counts any more */
    if (!atomic_load(&agent->shared->lost))     /* the page is written once */
        note_report(&agent->shared->loss, &agent->shared->loss_reason, loss);
    atomic_store(&agent->shared->lost, true);
    send_report(agent, loss);
}

/* Tells the user what the store does. While a command runs, its supervisor tells it; one that is
 * stopped, and has not read what was sent before, is not sent more. */
static void tell_news(struct agent *agent, const struct run_news *news)
{
    if (!was_claimed(agent))
        run_tell(events_of(agent), news);
    else if (agent->presence.state != PRESENCE_DEAD && outbox_is_empty(agent->outbox))
        send_report(agent, &(struct agent_report){.kind = REPORT_NEWS, .news = *news});
}

/* -- a grant that is offered ----------------------------------------------------------------- */

/* Called by the keeper before it acquires the lock. True: the peer is stopped, and nothing is
 * acquired until it has answered a ping with ORDER_PONG. A dead peer does not count as stopped, as
 * be_alone() has dealt with it; nor does any while this process leaves. */
static bool is_absent(void *arg)
{
    struct agent *agent = arg;

    return agent->presence.state != PRESENCE_DEAD && !is_leaving(agent) &&
           !presence_confirm(&agent->presence);
}

/* Takes back an offered grant, unless the peer has claimed it: then the lock is in use (HOLDING).
 * False if it was claimed, or none was offered. */
static bool withdraw_offer(struct agent *agent)
{
    if (agent->state != OFFERED)
        return false;
    presence_settle(&agent->presence);
    agent->state = run_claim_grant(agent->shared) ? SEEKING : HOLDING;
    return agent->state == SEEKING;
}

/* Takes back an offered grant, and has the keeper release the lock and wait for it again, once the
 * supervisor runs. That is not a loss. False if the peer has claimed it, or none was offered. */
static bool withdraw_grant(struct agent *agent)
{
    if (!withdraw_offer(agent))
        return false;
    watchdog_dismiss(&agent->watchdog);
    descendants_stop(&agent->descendants);
    events_of(agent)->granted(events_of(agent)->arg, NULL); /* no KEY is held any more */
    send_plain(agent, REPORT_WITHDRAWN);
    presence_ask(&agent->presence);
    keeper_restart(agent->keeper);
    return true;
}

/* -- what the keeper says -------------------------------------------------------------------- */

/* The keeper says that the store refuses the lock for now: shows who has it. */
static void on_waiting(void *arg, const struct answer *refusal)
{
    struct agent *agent = arg;

    waiting_note_refusal(&agent->waiting, refusal);
}

/* The timer of a long wait: the lock is not acquired after --notify-after. Reports so, with the
 * latest refusal (in the shared page) and the store's trouble. An agent that has died may have
 * reported it before; the supervisor notifies once. */
static void on_overdue(struct loop_timer *timer)
{
    struct agent *agent = timer->owner;

    if (agent->state != SEEKING && agent->state != OFFERED)
        return;
    if (agent->waiting.refusal)
        waiting_describe_refusal(&agent->waiting, &agent->waiting.refusal->kept.answer,
                                 agent->waiting.refused_at, &agent->shared->overdue);
    struct agent_report overdue = {.kind = REPORT_OVERDUE};
    if (agent->trouble)
        overdue.news = *agent->trouble;
    send_report(agent, &overdue);
}

/* Watches the deadline of this lease. The next renewal waits until the supervisor has acknowledged
 * the lease, which proves that it runs; a paused one cannot, and its lock is renewed all the
 * same. */
static void watch_lease(struct agent *agent, struct lease lease)
{
    watchdog_watch(&agent->watchdog, lease);
    if (agent->watchdog.known.paused)
        keeper_allow_renewals(agent->keeper);
    else
        keeper_hold_renewals(agent->keeper);
}

/* The keeper holds the lock: offers it to the peer, which claims it. */
static void on_held(void *arg, struct lease lease, const struct lock_grant *grants)
{
    struct agent *agent = arg;
    struct agent_report held = {.kind = REPORT_HELD, .lease = lease};

    memcpy(held.grants, grants, sizeof held.grants);
    waiting_acquired(&agent->waiting, lease, grants);
    if (!has_printer(agent) && agent->plan->job->stop) /* which this process may have to run */
        environment_grant(agent->plan->job->environment, lease.length, grants);
    watch_lease(agent, lease);
    /* The notes of an earlier grant, which was taken back, do not count for this one. */
    atomic_store(&agent->shared->command.group, 0);
    run_disclaim_end(agent->shared);
    atomic_store(&agent->shared->stands, true);
    agent->state = OFFERED;
    if (!has_printer(agent)) /* the message that a command was started may come late */
        descendants_watch(&agent->descendants);
    send_report(agent, &held);
    presence_expect(&agent->presence);
}

/* The keeper has renewed the lock. The supervisor must acknowledge the new lease. forgotten: the
 * store had forgotten the lock, and has it again. */
static void on_extended(void *arg, struct lease lease, bool forgotten)
{
    struct agent *agent = arg;

    run_tell_event(events_of(agent), RUN_RENEWED);
    if (is_leaving(agent) || agent->state == LOST)
        return;
    if (has_printer(agent)) { /* a renewer, which has no peer */
        agent->watchdog.known.lease = lease;
        return;
    }
    if (forgotten)
        send_report(agent,
                    &(struct agent_report){.kind = REPORT_NEWS, .news = {.event = RUN_FORGOTTEN}});
    watch_lease(agent, lease);
    atomic_store(&agent->shared->lease_end, lease.end.ns);
    /* A supervisor may be paused for days, and each of these reports would be kept for it. */
    if (!agent->watchdog.known.paused)
        send_plain(agent, REPORT_EXTENDED);
}

/* The keeper says that the store fails, and is tried again: tells the user, and keeps why, for
 * REPORT_OVERDUE. */
static void on_trouble(void *arg, const struct answer *why)
{
    struct agent *agent = arg;
    const struct run_reason reason = run_reason_text(why->text);
    const struct run_news trouble = {.event = RUN_TROUBLE, .reason = &reason};

    run_tell_server_said(events_of(agent), why->said);
    agent->trouble = run_news_keep(agent->trouble, &trouble);
    tell_news(agent, &trouble);
}

/* The keeper says that the store answers again: its trouble, of "after" ns, is over. */
static void on_recovered(void *arg, int64_t after)
{
    struct agent *agent = arg;

    free(agent->trouble);
    agent->trouble = NULL;
    tell_news(agent, &(struct run_news){.event = RUN_STORE_BACK, .duration = after});
}

static bool hear_release(struct agent *agent);

/* The keeper has lost the lock: has the supervisor end the command, and the watchdog, if that does
 * not react. A command that has ended before (hear_release()) has not lost its lock. */
static void on_lost(void *arg, const struct keeper_loss *loss)
{
    struct agent *agent = arg;
    const struct run_reason reason = run_reason_loss(loss);

    if (withdraw_grant(agent) || hear_release(agent))
        return;
    if (has_printer(agent) && agent->state == HOLDING) {
        /* A renewer has no peer to report to: the script finds out when it renews or releases. */
        if (loss->kept) { /* another owner asks for the lock, which is the renewer's until then */
            agent->state = RELEASING;
            keeper_release(agent->keeper, moment_plus(loop_now(agent->loop), CANCEL_NS),
                           &(struct lock_end){.how = LOCK_LOST});
        } else if (agent->plan->keep) {
            loop_stop(agent->loop);
        }
        return;
    }
    report_loss(agent, &(struct agent_report){
                           .kind = REPORT_LOST, .kept = loss->kept, .news.reason = &reason});
    if (agent->watchdog.phase != WATCHDOG_WATCHING) /* there is no command, or it is being ended */
        return;
    watchdog_lose(&agent->watchdog, SUPERVISOR_REACTS);
    presence_expect(&agent->presence);
}

/* Sends the last report with what has failed; nothing where nothing has. Most runs do not fail:
 * noinline, so that they do not take its stack. */
__attribute__((noinline)) static void send_failure(struct agent *agent,
                                                   const struct keeper_end *end)
{
    struct agent_report over = {.kind = REPORT_OVER};
    struct run_reason reason;

    switch (end->ending) {
    case KEEPER_RELEASED:
    case KEEPER_CANCELLED: return;
    case KEEPER_UNRELEASED:
        reason = run_reason_text(end->why->text);
        over.news = (struct run_news){.event = RUN_UNRELEASED, .reason = &reason};
        break;
    case KEEPER_NOT_ACQUIRED:
        over.status = agent->plan->conflict_status;
        waiting_describe_refusal(&agent->waiting, end->refusal, end->refused_at,
                                 &agent->shared->refusal);
        over.news.event = RUN_NOT_ACQUIRED;
        over.news.refusal = &agent->shared->refusal;
        break;
    case KEEPER_FAILED:
        over.status = status_of_cause(end->why->cause);
        over.news = run_news_failure(end, agent->plan->keeper.request.key_count, &reason);
        break;
    }
    send_last(agent, &over);
}

/* The keeper's last word: tells the peer how it ended, and ends the agent. */
static void on_over(void *arg, const struct keeper_end *end)
{
    struct agent *agent = arg;

    waiting_end(&agent->waiting);
    run_tell_server_said(events_of(agent), end->why->said);
    if (end->ending == KEEPER_RELEASED || end->ending == KEEPER_CANCELLED)
        send_last(agent, &(struct agent_report){.kind = REPORT_OVER, .status = agent->status});
    else
        send_failure(agent, end);
    loop_stop(agent->loop);
}

/* -- what the watchdog says ------------------------------------------------------------------- */

/* The watchdog is about to end the command, as the supervisor has not: the lock counts as lost, and
 * is not renewed any more. */
static void on_alarmed(void *arg)
{
    struct agent *agent = arg;
    struct run_reason reason = run_reason_text(keeper_trouble(agent->keeper));

    if (withdraw_grant(agent))
        return;
    keeper_hold_renewals(agent->keeper);
    if (agent->state == LOST)
        return; /* the supervisor was told why */
    /* Where the store had no trouble, the renewal waited for a supervisor that was stopped. */
    reason.cause = reason.text[0] || !agent->plan->keeper.renew ? RUN_CAUSE_NOT_RENEWED
                                                                : RUN_CAUSE_WAS_STOPPED;
    report_loss(agent, &(struct agent_report){.kind = REPORT_LOST, .news.reason = &reason});
}

/* Has the keeper release the lock, which tries until the lease ends, but for a second at least, and
 * for RELEASE_NS at most where a supervisor waits for it. end: how its command has ended; NULL:
 * there was none, so that --at-least does not count. */
static void release_lock(struct agent *agent, const struct lock_end *end)
{
    struct moment now = loop_now(agent->loop), until = agent->watchdog.known.lease.end;

    if (!has_printer(agent))
        until = moment_min(until, moment_plus(now, RELEASE_NS));
    agent->state = RELEASING;
    watchdog_dismiss(&agent->watchdog);
    keeper_release(agent->keeper, moment_max(until, moment_plus(now, NS_PER_SEC)), end);
}

/* Takes ORDER_RELEASE. If the command of --stop that this process has started must end first, the
 * order is kept, and release_unheld() takes it once more then. */
static void take_release(struct agent *agent, const struct agent_order *order)
{
    struct lock_end end = order->end;

    agent->release_order = *order;
    if (stop_command_check(&agent->watchdog.stop_command, loop_now(agent->loop)))
        return;
    if (agent->fate != FATE_NONE) /* the supervisor has been told, or is about to hear */
        end.how = fate_ending(agent->fate);
    release_lock(agent, order->used ? &end : NULL);
}

/* Takes ORDER_RELEASE from the shared page, as its message may be lacking. True if the lock is now
 * being released by that order: it was there, is not known yet, and need not wait. */
static bool hear_release(struct agent *agent)
{
    if (!atomic_load(&agent->shared->to_release) || !was_claimed(agent) || is_leaving(agent))
        return false;
    take_release(agent, &agent->shared->release);
    return is_leaving(agent);
}

/* The watchdog has seen that nothing runs under the lock any more, and the supervisor is dead or
 * stopped: releases the lock without its order, so that the next waiter need not wait for the lease
 * to end. */
static void release_unheld(void *arg)
{
    struct agent *agent = arg;
    /* By the clock as it is now: the host may have slept before this process saw the end. */
    bool late = moment_reached(agent->watchdog.known.lease.end, moment_now());
    bool orphaned = agent->presence.state == PRESENCE_DEAD;
    /* A supervisor may have been killed before it announced the command that it had started. */
    bool used = watchdog_knows_command(&agent->watchdog) || (orphaned && agent->state == HOLDING);
    struct lock_end end = {.how = fate_ending(agent->fate)};

    if (orphaned && agent->fate == FATE_NONE)
        end.how = LOCK_KILLED;
    else if (agent->command_gone && agent->fate == FATE_NONE)
        end.how = fate_ending(atomic_load(&agent->shared->fate));
    if (withdraw_grant(agent))
        return;
    if (agent->release_order.kind == ORDER_RELEASE) {
        take_release(agent, &agent->release_order);
        return;
    }
    /* Whether an end that is seen after the lease came before it is for the supervisor to judge. */
    if (agent->fate != FATE_LOST && !late) {
        atomic_store(&agent->shared->cleared, true);
        send_plain(agent, REPORT_CLEARED);
    }
    release_lock(agent, used ? &end : NULL);
}

/* The watchdog has seen that nothing is left of a command that its supervisor had to end: expects
 * the supervisor to say so soon. */
static void on_ended(void *arg)
{
    struct agent *agent = arg;

    agent->command_ended = agent->command_gone = true;
    presence_expect(&agent->presence);
}

/* The watchdog could not kill all that runs under the lock (state: TREE_LIVE), or could not see
 * whether anything does (TREE_UNSEEN): tells the user, and ends this process, so that the lock ends
 * with its lease. A grant that was not claimed is withdrawn instead. */
static void on_failed(void *arg, enum tree_state state)
{
    struct agent *agent = arg;

    if (withdraw_grant(agent))
        return;
    if (state == TREE_LIVE)
        run_tell_event(events_of(agent), RUN_SURVIVORS);
    else if (state == TREE_UNSEEN)
        run_tell_event(events_of(agent), RUN_UNSEEN);
    loop_stop(agent->loop);
}

/* -- what the supervisor says ---------------------------------------------------------------- */

/* Takes ORDER_ACK: the peer has claimed the grant, or acknowledges this lease, so that renewals may
 * follow. */
static void take_acknowledgement(struct agent *agent, struct lease lease)
{
    if (agent->state == LOST || lease.end.ns != agent->watchdog.known.lease.end.ns)
        return; /* too late, or of a grant that was withdrawn, or of an older lease */
    if (!agent->command_ended) /* otherwise it still should release the lock soon */
        presence_settle(&agent->presence);
    if (agent->state == OFFERED)
        agent->state = HOLDING;
    watchdog_acknowledge(&agent->watchdog);
    keeper_allow_renewals(agent->keeper);
    if (!agent->plan->keep)
        return;
    /* From now on, a renewer ends with the process that it renews for, and with nothing else: a
     * signal to all that a script has started must not free the lock while it still cleans up. */
    events_of(agent)->detach(events_of(agent)->arg);
    child_detach();
    keeper_verify(agent->keeper); /* from then on it hears of requests for the lock */
}

/* Takes ORDER_CANCEL: leaves the queue, or releases the unused lock. */
static void take_cancel(struct agent *agent)
{
    if (has_printer(agent) && agent->state == HOLDING) { /* claimed, but not printed */
        release_lock(agent, NULL);
        return;
    }
    agent->state = CANCELLING;
    watchdog_dismiss(&agent->watchdog);
    waiting_end(&agent->waiting);
    keeper_cancel(agent->keeper, moment_plus(loop_now(agent->loop), CANCEL_NS));
}

/* The command has ended, as its pidfd tells: expects the supervisor to say so soon. */
static void on_command_end(struct loop_io *io, int events)
{
    struct agent *agent = io->owner;

    (void)events;
    loop_remove(agent->loop, io);
    agent->command_ended = true;
    presence_expect(&agent->presence);
}

/* Takes ORDER_STARTED: notes the command's process group, and watches for its end. handle: a pidfd
 * of the command; -1: none. */
static void take_command(struct agent *agent, pid_t command, int handle)
{
    agent->watchdog.tree.group = command;
    agent->watchdog.tree.leader = handle;
    if (handle < 0 || agent->plan->job->wait_descendants) /* the use does not end with it */
        return;
    agent->command = (struct loop_io){
        .fd = handle, .events = LOOP_READ, .ready = on_command_end, .owner = agent};
    loop_add(agent->loop, &agent->command);
}

/* Does what the peer has ordered. fd: the descriptor that came with ORDER_STARTED; -1: none. */
static void take_order(struct agent *agent, const struct agent_order *order, int fd)
{
    switch (order->kind) {
    case ORDER_ACK: take_acknowledgement(agent, order->lease); break;
    case ORDER_STARTED: take_command(agent, order->pid, fd); break;
    case ORDER_STOPPING:
        watchdog_note_stopping(&agent->watchdog, order->since);
        presence_settle(&agent->presence);
        break;
    case ORDER_REAPED: descendants_hurry(&agent->descendants); break;
    case ORDER_PAUSED:
        if (was_claimed(agent)) { /* the command is stopped as well, and the lock is kept */
            watchdog_pause(&agent->watchdog);
            keeper_allow_renewals(agent->keeper);
        } else if (!withdraw_grant(agent)) { /* it waits: nothing is acquired before its answer */
            waiting_hide(&agent->waiting);
            presence_ask(&agent->presence);
        }
        break;
    case ORDER_VERIFY:
        watchdog_continue(&agent->watchdog);
        keeper_verify(agent->keeper);
        break;
    case ORDER_PONG:
        presence_answered(&agent->presence);
        if (agent->command_ended) /* and the supervisor still should say so soon */
            presence_expect(&agent->presence);
        keeper_resume(agent->keeper);
        break;
    case ORDER_RELEASE: take_release(agent, order); break;
    case ORDER_CANCEL: take_cancel(agent); break;
    }
}

/* The peer is dead: ends everything that a supervisor has started; or leaves to the script what a
 * printer has printed, or renews that; or gives up the wait, or a grant that was not claimed. */
static void be_alone(struct agent *agent)
{
    agent->presence.state = PRESENCE_DEAD;
    loop_remove(agent->loop, &agent->channel);
    outbox_free(agent->outbox);
    agent->outbox = NULL;
    close(agent->channel.fd);
    agent->channel.fd = -1;
    descendants_stop(&agent->descendants);
    if (is_leaving(agent))
        return;
    if (atomic_load(&agent->shared->delivered)) {
        if (!agent->plan->keep)
            loop_stop(agent->loop);
        else if (agent->watchdog.known.silent) /* the kernel has refused its ORDER_ACK */
            take_acknowledgement(agent, agent->watchdog.known.lease);
    } else if (!has_printer(agent) && !withdraw_offer(agent) && was_claimed(agent)) {
        /* A supervisor may have started a command without reporting it. */
        keeper_hold_renewals(agent->keeper);
        watchdog_supervisor_died(&agent->watchdog);
    } else {
        take_cancel(agent);
    }
}

/* Takes ORDER_STOPPING from the shared page, as its message may be lacking: a command that has
 * ended by TERM has not ended by itself, and what it has left must end before the lock is
 * released. */
static void hear_stopping(struct agent *agent)
{
    const struct awake since = {atomic_load(&agent->shared->ending)};

    if (since.ns && agent->watchdog.phase == WATCHDOG_WATCHING && !agent->watchdog.stopping)
        take_order(agent, &(struct agent_order){.kind = ORDER_STOPPING, .since = since}, -1);
}

/* Takes all orders of the peer that are there now, from the channel and from the shared page; or
 * notes that it is dead. */
static void drain_channel(void *arg)
{
    struct agent *agent = arg;
    struct agent_order order;
    int got, fd;

    if (agent->presence.state == PRESENCE_DEAD)
        return;
    while ((got = channel_receive(agent->channel.fd, &order, sizeof order, &fd)) > 0)
        take_order(agent, &order, fd);
    hear_stopping(agent);
    hear_release(agent);
    if (got < 0)
        be_alone(agent);
}

/* The peer says something, or is dead. */
static void on_message(struct loop_io *io, int events)
{
    (void)events;
    drain_channel(io->owner);
}

/* SIGCONT: the peer continues this process, as it awaits an answer. Where the kernel refuses its
 * messages, its order may be in the shared page only. */
static void on_continued(void *owner, int signo)
{
    (void)signo;
    drain_channel(owner);
}

/* Whether the peer must do something soon: claim a grant, end the command as the lock is lost, or
 * have the lock released, as its command has ended. */
static bool awaits_reaction(const struct agent *agent)
{
    const struct watchdog *watchdog = &agent->watchdog;
    bool is_being_ended = watchdog->phase != WATCHDOG_WATCHING || watchdog->stopping;

    if (agent->state == OFFERED)
        return true;
    if (agent->state != HOLDING && agent->state != LOST)
        return false;
    if (is_being_ended) /* which takes its time: until nothing is left */
        return agent->command_gone;
    return agent->command_ended || agent->state == LOST;
}

/* The timer that presence_expect() starts: if the peer must react and does not, acts in its place.
 * A peer that may still react is given its time. */
static void on_look(struct loop_timer *timer)
{
    struct agent *agent = timer->owner;

    drain_channel(agent);
    if (agent->presence.state == PRESENCE_DEAD)
        return;
    if (!awaits_reaction(agent))
        return;
    if (agent->command_ended)
        presence_ask(&agent->presence); /* its answer begins the time for its reaction anew */
    if (presence_may_react(&agent->presence))
        return;
    if (agent->command_ended) {
        if (agent->command_gone || watchdog_bar_stop_command(&agent->watchdog))
            release_unheld(agent);
    } else if (agent->state == LOST) {
        watchdog_signal_loss(&agent->watchdog);
        watchdog_lose(&agent->watchdog, SUPERVISOR_ABSENT);
    } else { /* OFFERED */
        withdraw_grant(agent);
    }
}

/* The process has ended that the lock is renewed for (--keep): gives up the lock, or the wait. */
static void on_kept_ended(void *arg)
{
    struct agent *agent = arg;

    withdraw_offer(agent);
    if (agent->state == HOLDING) {
        release_lock(agent, &(struct lock_end){.known = false});
    } else if (agent->state == SEEKING) {
        run_tell(events_of(agent),
                 &(struct run_news){.event = RUN_OWNER_ENDED, .number = agent->plan->keep->pid});
        agent->status = STATUS_NO;
        take_cancel(agent);
    }
}

/* -- the run --------------------------------------------------------------------------------- */

static const struct keeper_events keeper_events = {
    on_waiting, on_held, on_extended, {on_trouble, on_recovered}, on_lost, on_over, is_absent};

/* Starts the keeper. past: the state of an agent that has died, whose wait or lock is continued;
 * NULL: there was none. */
static void start_keeper(struct agent *agent, const struct keeper_past *past)
{
    const struct keeper_plan *plan = &agent->plan->keeper;

    if (!past) {
        agent->keeper = keeper_start(agent->loop, agent->store, plan, &keeper_events, agent);
        return;
    }
    agent->waiting.began = past->began;
    agent->keeper = keeper_take_over(agent->loop, agent->store, plan, past, &keeper_events, agent);
    if (!past->held)
        return;
    agent->state = HOLDING; /* the supervisor runs the command already: it is guarded at once */
    descendants_watch(&agent->descendants);
    watchdog_watch(&agent->watchdog, past->lease);
    watchdog_acknowledge(&agent->watchdog);
}

/* Sets up the watchdog and the channel to the peer, and starts the keeper and the timers. */
static void start_agent(struct agent *agent, const struct agent_task *task)
{
    const struct agent_plan *plan = agent->plan;
    sigset_t cont;

    sigemptyset(&cont);
    sigaddset(&cont, SIGCONT);
    loop_signals(agent->loop, &cont, on_continued, agent);
    agent->watchdog = (struct watchdog){
        .plan = plan->job,
        .shared = agent->shared,
        .stop_command = {.plan = plan->job, .shown = &agent->shared->stop_command},
        .tree = {.procfs = &agent->procfs,
                 .cgroup = &agent->shared->cgroup,
                 .root = agent->presence.pid,
                 .except = getpid(),
                 .leader = -1,
                 .owner = plan->keeper.request.owner,
                 .callers = task->callers},
        .listen = drain_channel,
        .alarmed = on_alarmed,
        .cleared = release_unheld,
        .ended = on_ended,
        .failed = on_failed,
        .arg = agent};
    watchdog_init(&agent->watchdog, agent->loop);
    descendants_init(&agent->descendants, agent->loop, &agent->watchdog.tree);
    waiting_init(&agent->waiting, agent->loop, &plan->keeper.request, plan->events,
                 &agent->shared->announced);
    agent->channel.ready = on_message;
    agent->channel.events = LOOP_READ;
    agent->channel.owner = agent;
    loop_add(agent->loop, &agent->channel);
    agent->long_wait = (struct loop_timer){.fire = on_overdue, .owner = agent};
    if (plan->keep)
        pid_watch_start(plan->keep, agent->loop, on_kept_ended, agent);
    start_keeper(agent, task->past);
    if (plan->job && plan->job->notify)
        loop_arm(agent->loop, &agent->long_wait,
                 moment_plus(agent->waiting.began, plan->job->notify_after));
}

/* Tells the peer why the agent ends before it has begun: by "status", the exit status that the user
 * gets. Returns the exit status of this process, which says that it has failed. */
static int refuse_plan(struct agent *agent, int status, const char *why)
{
    const struct run_reason reason = run_reason_text(why);
    const struct agent_report over = {
        .kind = REPORT_OVER, .status = status, .news = {.event = RUN_FAILED, .reason = &reason}};

    send_last(agent, &over);
    outbox_finish(agent->outbox, REPORT_NS);
    return 1;
}

int agent_main(int channel, const void *arg)
{
    const struct agent_task *task = arg;
    const struct agent_plan *plan = task->plan;
    struct agent agent = {.plan = plan, .channel = {.fd = channel}, .shared = task->shared};
    char fault[256];

    agent.loop = loop_new();
    agent.outbox = outbox_new(agent.loop, channel);
    agent.presence = (struct presence){.procfs = &agent.procfs, .outbox = agent.outbox};
    presence_init(&agent.presence, agent.loop, task->peer, on_look, &agent);
    if (getppid() == 0) /* there was no /proc to tell main() */
        return refuse_plan(&agent, STATUS_SYSTEM, KERNEL_FORKS_ELSEWHERE);
    agent.store = store_open(agent.loop, &plan->address, fault, sizeof fault);
    if (!agent.store)
        return refuse_plan(&agent, *plan->address_status, fault);
    start_agent(&agent, task);
    /* The store connects meanwhile. */
    if (procfs_open(&agent.procfs) < 0 || loop_run(agent.loop) < 0)
        return refuse_plan(&agent, STATUS_SYSTEM, strerror(errno));
    outbox_finish(agent.outbox, REPORT_NS);
    store_close(agent.store); /* a quorum may have something left to say */
    keeper_free(agent.keeper);
    free(agent.trouble);
    waiting_free(&agent.waiting);
    descendants_free(&agent.descendants);
    outbox_free(agent.outbox);
    if (agent.presence.state == PRESENCE_DEAD) /* a supervisor does so itself */
        cgroup_remove(&task->shared->cgroup);
    loop_free(agent.loop);
    procfs_close(&agent.procfs);
    return 0;
}
