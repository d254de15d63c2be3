/* A run of the user's command. The states, and what leads out of each:
 *
 *   ACQUIRING   The agent waits for the lock. It says held ("held"), and the grant is claimed in
 *               time: HOLDING. A signal that ends: CANCELLING. It says why not, or too many agents
 *               have died: done.
 *   HOLDING     The job is begun. It has ended, or could not even be started: RELEASING.
 *   RELEASING   The agent is to release the lock, and one that dies is replaced. Its last word, no
 *               answer until "leave_by", or nothing to wait for: done.
 *   CANCELLING  The agent is to leave the queue. Its last word, its end, or no answer until
 *               "leave_by": done.
 *
 * "done" ends the loop. Where no command was run, the outcome is known by then, by set_outcome();
 * conclude_run() takes it from the job otherwise. */
#include "run/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "net/loop.h"
#include "os/child.h"
#include "os/file.h"
#include "run/agent_process.h"
#include "run/exit_status.h"
#include "run/job.h"

/* How often, at most, the agent is told that the command's tree has changed. */
#define TELL_NS (50 * NS_PER_MS)
/* The agent has so long to release the lock: a bit more than it takes itself, which is until the
 * lease has ended anyway, within bounds. */
#define RELEASE_LEAST_NS (1500 * NS_PER_MS)
#define RELEASE_MOST_NS  (10 * NS_PER_SEC)
/* The time that the agent has to release the lock when the user wants to leave, or this process has
 * overslept the end of the usual time. */
#define HURRY_NS (1 * NS_PER_SEC)
/* So many descriptors must be left for the loop, the command, and a channel to the next agent. */
#define LATER_DESCRIPTORS 4
/* So many agents may die in a row while the lock is waited for. */
#define DEATHS_MAX 5

struct supervisor {
    const struct supervisor_plan *plan;
    struct supervisor_outcome *outcome;
    struct loop *loop;
    struct loop_io channel;
    struct loop_timer clock; /* urgent: the next deadline */
    struct agent_process agent;
    struct job job;
    struct notifier notifier;

    enum { ACQUIRING, HOLDING, RELEASING, CANCELLING } state;
    struct moment leave_by; /* RELEASING, CANCELLING: when to leave without an answer */
    bool release_told;      /* an agent has been told to release the lock, and may have done so */
    bool held;              /* ACQUIRING: the agent says so, and the grant is not claimed yet */
    bool extended;          /* an extension must be acknowledged */
    const struct run_refusal *refusal; /* the last one that was heard of; NULL: none */
    bool kept; /* the lock is lost, and the store has it until the release */
    int end;   /* of the latest agent that has died, as of waitpid() */
    /* Each NULL where there are none, or there was no memory to keep them. */
    struct run_news *last;       /* why no command was run */
    struct run_news *trouble;    /* with the store, during a long wait */
    struct run_news *unreleased; /* the agent's last report: why it has not released the lock */
    bool done;
    struct moment began;
    struct moment told_of_orphan; /* when the agent was told last that one has ended */
};

static const struct run_events *events_of(const struct supervisor *s)
{
    return s->plan->agent.events;
}

/* Sends the agent an order that has nothing to say but its kind, and the present lease. */
static void tell_agent(const struct supervisor *s, enum order_kind kind)
{
    agent_process_tell(&s->agent, &(struct agent_order){.kind = kind, .lease = s->job.lease}, -1);
}

/* Whether the lock is waited for or used, and not being given up. */
static bool wants_lock(const struct supervisor *s)
{
    return s->state == ACQUIRING || s->state == HOLDING;
}

/* -- leaving --------------------------------------------------------------------------------- */

/* Tells the user that the release has failed, and for how long the store may keep the lock. Does
 * nothing where no release is waited for, or the lock was lost before. */
static void report_unreleased(const struct supervisor *s, const struct run_reason *why)
{
    int64_t left = moment_until(moment_now(), s->job.lease.end);

    if (s->state == RELEASING && s->job.fate != FATE_LOST)
        run_tell(events_of(s),
                 &(struct run_news){.event = left > 0 ? RUN_UNRELEASED : RUN_UNRELEASED_ENDED,
                                    .duration = left,
                                    .reason = why});
}

/* Returns until when to wait for the answer to a release: until the lease ends, as the lock is free
 * then anyway, within bounds. An agent that ends the command may have more to end first. */
static struct moment release_by(const struct supervisor *s)
{
    struct moment now = moment_now();
    struct moment least = moment_plus(now, RELEASE_LEAST_NS);
    struct moment most =
        job_is_ended_elsewhere(&s->job) ? MOMENT_NEVER : moment_plus(now, RELEASE_MOST_NS);

    return moment_max(least, moment_min(s->job.lease.end, most));
}

/* Whether an agent that dies must be replaced: while the lock is waited for, held or released. */
static bool needs_agent(const struct supervisor *s)
{
    bool in_store = s->job.fate != FATE_LOST || s->kept; /* also while it is waited for */
    bool released = s->job.cleared && s->agent.over;
    bool cancelled = s->state == CANCELLING; /* such a user waits for no other agent */

    return !s->done && in_store && !released && !cancelled;
}

/* Has the agent release the lock, as nothing of the command is left; called once more for an agent
 * that replaces one that died. False if there is no release to wait for: the lock is lost or
 * released; or something of the command may be left, so that the lease must end first, which the
 * user is told. */
static bool start_release(struct supervisor *s)
{
    const struct job *job = &s->job;
    struct agent_order order = {.kind = ORDER_RELEASE, .used = job_was_executed(job)};

    job_command_end(job, &order.end); /* also if not used: all bytes of a message are sent */
    if (s->state != RELEASING)
        s->leave_by = release_by(s);
    s->state = RELEASING;
    if (s->unreleased)
        report_unreleased(s, s->unreleased->reason);
    if (!needs_agent(s) && (s->agent.gone || s->agent.over))
        return false;
    if (s->agent.releasing) /* without an order, as it has seen the command's end */
        return true;
    if (job->stuck) {
        report_unreleased(s, &(struct run_reason){.cause = RUN_CAUSE_UNKILLED});
        return false;
    }
    s->agent.shared->release = order;
    atomic_store(&s->agent.shared->to_release, true);
    s->release_told |= !s->agent.gone;         /* it may have read that before the message */
    agent_process_tell(&s->agent, &order, -1); /* one that is gone is replaced */
    return true;
}

/* Ends the loop: the outcome is known. */
static void finish_run(struct supervisor *s)
{
    s->done = true;
    loop_stop(s->loop);
}

/* Decides the outcome. status: rlock's exit status, where it does not die of a signal. */
static void set_outcome(struct supervisor *s, enum outcome outcome, int status)
{
    s->outcome->outcome = outcome;
    s->outcome->status = status;
}

/* Ends the run without an answer to the release, and tells the user why there is none. */
static void leave_unanswered(struct supervisor *s, enum run_cause cause)
{
    report_unreleased(s, &(struct run_reason){.cause = cause});
    finish_run(s);
}

/* The command has ended, or could not be started, and all that the agent had to say was heard:
 * tells the user once more what was told while it ran, judges whether it ended under the lock, and
 * has that released. */
static void release_lock(struct supervisor *s)
{
    s->outcome->held = moment_until(s->job.acquired, moment_now());
    job_remind(&s->job);
    job_judge_end(&s->job);
    if (!start_release(s))
        finish_run(s);
}

/* -- notices --------------------------------------------------------------------------------- */

/* Adds to a notice of an event the exit status and the line that the user reads. */
static void describe_event(struct supervisor *s, struct notice *notice)
{
    const struct run_events *events = events_of(s);
    const struct run_news *news = NULL;

    switch (notice->event) {
    case NOTICE_WAITING:
        notice->status = s->trouble ? STATUS_UNAVAILABLE : STATUS_NOT_ACQUIRED;
        news = s->trouble;
        break;
    case NOTICE_LOST: notice->status = STATUS_LOST, news = s->job.verdict; break;
    case NOTICE_TIMED_OUT: notice->status = STATUS_TIMED_OUT, news = s->job.verdict; break;
    case NOTICE_NOT_ACQUIRED: /* the same status whatever -E (conflict_status) says */
        notice->status =
            s->outcome->outcome == OUTCOME_NOT_ACQUIRED ? STATUS_NOT_ACQUIRED : s->outcome->status;
        news = s->last;
        break;
    case NOTICE_HELD:
    case NOTICE_EVENTS: break;
    }
    if (news)
        events->word(events->arg, news, notice->message, sizeof notice->message);
    else if (notice->event == NOTICE_WAITING && s->refusal)
        events->word_wait(events->arg, s->refusal, notice->message, sizeof notice->message);
}

/* Has the notifier run the user's command (--notify) for an event, with the times and the holder as
 * they are now; once for each kind of event. */
static void notify_event(struct supervisor *s, enum notice_event event)
{
    const struct run_events *events = events_of(s);
    struct notice notice = {.event = event};
    struct moment now = moment_now();

    if (!notifier_wants(&s->notifier, event))
        return;
    notice.granted = s->outcome->granted;
    memcpy(notice.grants, s->outcome->grants, sizeof notice.grants);
    notice.waited = s->outcome->granted ? s->outcome->waited : moment_until(s->began, now);
    notice.held = s->outcome->granted ? moment_until(s->job.acquired, now) : 0;
    if (s->outcome->granted || s->refusal) /* NULL: this process is the holder */
        events->name_holder(events->arg, s->outcome->granted ? NULL : s->refusal, notice.holder,
                            sizeof notice.holder);
    describe_event(s, &notice);
    notifier_tell(&s->notifier, &notice);
}

/* Returns when to notify the user that the lock is held for long; MOMENT_NEVER: not, or that was
 * done. */
static struct moment held_long_at(const struct supervisor *s)
{
    if (s->state != HOLDING || !notifier_wants(&s->notifier, NOTICE_HELD))
        return MOMENT_NEVER;
    return moment_plus(s->job.acquired, s->plan->job.notify_after);
}

/* Sends the notices that the state of the lock asks for by now, each once. */
static void notify_of_state(struct supervisor *s)
{
    bool failed =
        s->outcome->outcome == OUTCOME_NOT_ACQUIRED || s->outcome->outcome == OUTCOME_FAILED;

    if (wants_lock(s) && moment_reached(held_long_at(s), moment_now()))
        notify_event(s, NOTICE_HELD);
    if (s->job.fate == FATE_LOST)
        notify_event(s, NOTICE_LOST);
    /* By the verdict, as a command that continues without its lock may be timed out later: its fate
     * stays FATE_LOST. */
    if (s->job.verdict && s->job.verdict->event == RUN_STOPPING)
        notify_event(s, NOTICE_TIMED_OUT);
    if (failed && !s->outcome->granted)
        notify_event(s, NOTICE_NOT_ACQUIRED);
}

/* -- messages -------------------------------------------------------------------------------- */

/* Claims the grant and starts the command; if that fails, tells the user and releases the lock. */
static void start_command(struct supervisor *s)
{
    s->held = false;
    s->job.acquired = moment_now();
    /* While this process was stopped, the time to start a command may have passed: then the grant
     * is not claimed, and the agent takes it back, if it has not done so already. */
    if (moment_reached(job_term_at(&s->job), s->job.acquired) || !run_claim_grant(s->agent.shared))
        return;
    s->state = HOLDING;
    tell_agent(s, ORDER_ACK);
    s->outcome->waited = moment_until(s->began, s->job.acquired);
    s->outcome->granted = true;
    events_of(s)->granted(events_of(s)->arg, s->outcome->grants);
    environment_grant(s->plan->job.environment, s->job.lease.length, s->outcome->grants);
    if (job_start(&s->job) == 0)
        return;
    run_tell_errno(events_of(s), RUN_NOT_STARTED);
    set_outcome(s, OUTCOME_FAILED, STATUS_SYSTEM);
    release_lock(s);
}

/* Takes the agent's last report: the release has failed or worked, or the lock was not acquired. */
static void hear_over(struct supervisor *s, const struct agent_report *over)
{
    bool failed = over->news.event != RUN_NOTHING;

    if (s->state == RELEASING && failed) {
        report_unreleased(s, over->news.reason);
    } else if (s->state == ACQUIRING) {
        bool refused = over->news.event == RUN_NOT_ACQUIRED;
        s->refusal = over->news.refusal;
        s->last = run_news_keep(s->last, &over->news);
        set_outcome(s, refused ? OUTCOME_NOT_ACQUIRED : OUTCOME_FAILED, over->status);
        run_tell(events_of(s), &over->news);
    } else if (wants_lock(s)) {
        s->kept &= failed; /* no other agent must release that */
        if (s->job.cleared)
            s->unreleased = run_news_keep(s->unreleased, &over->news); /* told with its end */
        else if (failed && needs_agent(s))
            run_tell_reason(events_of(s), RUN_AGENT_GAVE_UP, over->news.reason);
        return; /* too early: it will be replaced, when its end is noticed */
    }
    finish_run(s);
}

/* Takes a report of the agent. The caller claims the grant of a REPORT_HELD ("held") when all
 * reports are read, as a REPORT_WITHDRAWN may follow it. */
static void take_report(struct supervisor *s, const struct agent_report *report)
{
    switch (report->kind) {
    case REPORT_HELD:
        if (s->state != ACQUIRING)
            break;
        s->held = true;
        s->job.lease = report->lease;
        memcpy(s->outcome->grants, report->grants, sizeof report->grants);
        break;
    case REPORT_WITHDRAWN: s->held = false; break;
    case REPORT_PING: tell_agent(s, ORDER_PONG); break;
    case REPORT_EXTENDED:
        s->extended = true;
        job_extend(&s->job, report->lease);
        break;
    case REPORT_NEWS:
        run_tell(events_of(s), &report->news);
        if (report->news.event == RUN_TROUBLE)
            job_note_trouble(&s->job, report->news.reason->text);
        break;
    case REPORT_OVERDUE:
        s->refusal = &s->agent.shared->overdue;
        s->trouble = run_news_keep(s->trouble, &report->news);
        notify_event(s, NOTICE_WAITING);
        break;
    case REPORT_LOST:
        s->held = false;
        s->kept |= report->kept;
        job_lose(&s->job, report->news.reason);
        break;
    case REPORT_CLEARED: s->job.cleared = s->release_told = true; break;
    case REPORT_OVER: hear_over(s, report); break;
    }
}

/* -- another agent --------------------------------------------------------------------------- */

/* Tells the user how the agent ended (s->end), and by the event what follows; errno is why another
 * one could not be started. */
static void tell_end_of_agent(const struct supervisor *s, enum run_event event)
{
    const struct run_reason reason = run_reason_errno();
    const struct run_news news = {.event = event, .number = s->end, .reason = &reason};

    run_tell(events_of(s), &news);
}

/* Called before another agent is forked: sends it the orders that the last one did not live to
 * carry out. arg: the supervisor. */
static void brief_agent(void *arg)
{
    struct supervisor *s = arg;

    if (s->job.state != JOB_IDLE)
        job_introduce(&s->job);
    if (s->job.state == JOB_VERIFYING)
        tell_agent(s, ORDER_VERIFY);
    if (!wants_lock(s) && !start_release(s))
        finish_run(s);
}

/* Starts an agent in place of one that has died, tells it what the dead one had, and tells the
 * user. If that fails, settle_state() tries again later. */
static void replace_agent(struct supervisor *s)
{
    struct keeper_past past = {.began = s->began,
                               .held = s->outcome->granted,
                               .released = s->release_told,
                               .lease = s->job.lease,
                               .waited = s->outcome->waited};
    bool first = s->agent.deaths == 1;

    memcpy(past.grants, s->outcome->grants, sizeof past.grants);
    int failed =
        agent_process_replace(&s->agent, &s->plan->agent, &s->job.callers, &past, brief_agent, s);
    if (first)
        tell_end_of_agent(s, failed < 0 ? RUN_AGENT_MISSING : RUN_AGENT_REPLACED);
    else
        tell_end_of_agent(s, RUN_AGENT_DIED_AGAIN);
    if (failed < 0) {
        s->release_told = past.released; /* no agent was told */
        return;
    }
    s->channel.fd = s->agent.channel;
    loop_add(s->loop, &s->channel);
}

/* Whether it is useless to start another agent: too many have died, or the lease has ended. */
static bool is_hopeless(const struct supervisor *s)
{
    if (!s->outcome->granted)
        return s->agent.deaths >= DEATHS_MAX;
    return moment_reached(s->job.lease.end, moment_now());
}

/* The agent is dead, and none takes its place: a release stays without an answer, an acquisition
 * fails. A running command has the rest of its lease, unless it waits for its lock to be
 * verified. */
static void do_without_agent(struct supervisor *s)
{
    if (!wants_lock(s)) {
        leave_unanswered(s, RUN_CAUSE_AGENT_DIED);
    } else if (s->state == ACQUIRING) {
        tell_end_of_agent(s, RUN_AGENTS_DIE);
        set_outcome(s, OUTCOME_FAILED, STATUS_SYSTEM);
        finish_run(s);
    } else if (s->job.state == JOB_VERIFYING) {
        job_lose(&s->job, &(struct run_reason){.cause = RUN_CAUSE_AGENT_DIED});
    }
}

/* Whether an agent is needed and there is none: it was reaped, and all of its reports were read. */
static bool lacks_agent(const struct supervisor *s)
{
    return s->agent.gone && s->agent.pid == 0 && needs_agent(s);
}

/* Returns when to start another agent: at once for a release that no agent knows of yet; otherwise
 * after a pause, as agents that die must not use up the machine. */
static struct moment replace_at(const struct supervisor *s, struct moment now)
{
    bool urgent = s->state == RELEASING && !s->release_told;
    return urgent && s->agent.deaths <= DEATHS_MAX ? now : s->agent.next;
}

/* -- what happens ---------------------------------------------------------------------------- */

/* Takes all reports of the agent that are there, and then starts the command, or acknowledges the
 * lease: the last report counts. */
static void listen_to_agent(struct supervisor *s)
{
    struct agent_message message;
    bool was_gone = s->agent.gone;

    while (!s->done && agent_process_hear(&s->agent, &message))
        take_report(s, &message.report);
    /* While this process was paused, leases were not reported; its command may have ended since. */
    struct moment end = {atomic_load(&s->agent.shared->lease_end)};
    s->job.lease.end = moment_max(s->job.lease.end, end);
    if (s->agent.gone && !was_gone && !s->done) {
        loop_remove(s->loop, &s->channel);
        if (!wants_lock(s) && !needs_agent(s)) /* none will take its place and answer */
            leave_unanswered(s, RUN_CAUSE_AGENT_DIED);
    }
    if (s->held && !s->done)
        start_command(s);
    if (s->extended)
        tell_agent(s, ORDER_ACK);
    s->extended = false;
}

/* Returns from when on the agent owes an answer that has no other end; MOMENT_NEVER: it does not.
 * While a lease runs, it does not: the deadline of the command needs no agent. */
static struct moment answer_owed_since(const struct supervisor *s)
{
    if (s->agent.pid == 0 || s->agent.over)
        return MOMENT_NEVER;
    if (!wants_lock(s) || s->job.state == JOB_VERIFYING)
        return (struct moment){0}; /* long since */
    return s->outcome->granted ? MOMENT_NEVER : agent_process_overdue_at(&s->plan->agent);
}

/* -- events ---------------------------------------------------------------------------------- */

/* Brings everything up to date after any event. The order matters:
 * 1. A process that has just been continued, or finds its command ended, reads the agent's reports
 *    first: they may say that the lock was lost, or released, meanwhile. Only if the command is
 *    still paused then, it asks for a renewal.
 * 2. A command that has ended has its lock released before the agent is looked at, because a
 *    replacement must be started at once for a release, and perhaps not otherwise.
 * 3. A dead agent is replaced, which may fail and so decide the outcome. If no other one can be
 *    started, the command has the rest of its lease.
 * 4. Notices are sent when all of these have changed the state.
 * 5. The timers are armed last, for the deadlines of the new state. */
static void settle_state(struct supervisor *s)
{
    if (wants_lock(s) && (s->job.state == JOB_PAUSED || s->job.state == JOB_ENDED))
        listen_to_agent(s);
    if (s->job.state == JOB_PAUSED)
        job_verify(&s->job);
    if (s->job.state == JOB_ENDED && s->state == HOLDING)
        release_lock(s);
    struct moment now = moment_now();
    if (!s->done && lacks_agent(s) && !is_hopeless(s) && moment_reached(replace_at(s, now), now))
        replace_agent(s);
    if (!s->done && lacks_agent(s) && is_hopeless(s))
        do_without_agent(s);
    notify_of_state(s);

    struct moment due = wants_lock(s) ? moment_min(job_due(&s->job), held_long_at(s)) : s->leave_by;
    if (lacks_agent(s) && !is_hopeless(s))
        due = moment_min(due, replace_at(s, moment_now()));
    agent_process_await(&s->agent, answer_owed_since(s));
    if (!s->clock.armed || due.ns != s->clock.due.ns)
        loop_arm(s->loop, &s->clock, due);
}

/* The agent says something. */
static void on_message(struct loop_io *io, int events)
{
    (void)events;
    listen_to_agent(io->owner);
    settle_state(io->owner);
}

/* The timer: a deadline of the command, or the end of the wait for a release. */
static void on_time(struct loop_timer *timer)
{
    struct supervisor *s = timer->owner;

    listen_to_agent(s); /* while this process was stopped, the lease may have been extended */
    if (wants_lock(s))
        job_tick(&s->job);
    else if (!s->done && moment_overslept(s->leave_by, moment_now())) /* so may the agent have */
        s->leave_by = moment_plus(moment_now(), HURRY_NS);
    else if (!s->done && moment_reached(s->leave_by, moment_now()))
        leave_unanswered(s, RUN_CAUSE_NO_ANSWER);
    settle_state(s);
}

/* Tells the agent that an orphan of the command's tree has ended, so that it looks for others soon;
 * at most once in TELL_NS, and not where an earlier message waits, as the agent may be stopped. */
static void tell_of_orphan(struct supervisor *s)
{
    struct moment now = moment_now();

    if (!wants_lock(s) || !moment_reached(moment_plus(s->told_of_orphan, TELL_NS), now) ||
        !outbox_is_empty(s->agent.outbox))
        return;
    s->told_of_orphan = now;
    tell_agent(s, ORDER_REAPED);
}

/* SIGCHLD: takes the changes of the command, of the agent, and of the command of --stop; other
 * children are orphans that came to this process, as the reaper of its descendants. */
static void reap_children(struct supervisor *s)
{
    enum child_change change;
    int status;
    pid_t pid;

    while ((pid = child_next_change(&s->job.child, &change, &status)) > 0) {
        /* While this process was stopped, the lease may have been extended, or the lock lost or
         * released: an agent says so before it ends the command. */
        listen_to_agent(s);
        if (change != CHILD_OTHER) {
            job_changed(&s->job, change, status);
        } else if (pid == s->agent.pid) {
            int64_t asked = s->plan->agent.keeper.request.lease, granted = s->job.lease.length;
            agent_process_ended(&s->agent, granted > 0 ? granted : asked);
            /* One that ends by itself has done what it had begun to do to the command. */
            if (!s->agent.over && status != 0)
                job_agent_died(&s->job);
            s->end = status;
        } else if (!stop_command_note_end(&s->job.stop_command, pid, status)) {
            tell_of_orphan(s);
        }
    }
    if (s->agent.pid == 0)
        listen_to_agent(s);
    job_reaped(&s->job);
}

/* Takes a signal while the lock is waited for: ends the wait, or stops with the terminal. */
static void interrupt_wait(struct supervisor *s, int signo)
{
    if (signo == SIGTSTP) {
        agent_process_pause(&s->agent); /* so that it acquires nothing meanwhile */
        terminal_stop(SIGTSTP, TERMINAL_STOPS_PROCESS);
    } else if (child_signal_is_fatal(signo)) {
        set_outcome(s, OUTCOME_INTERRUPTED, 0);
        s->outcome->signal = signo;
        s->state = CANCELLING;
        s->leave_by = moment_plus(moment_now(), HURRY_NS);
        if (!agent_process_tell(&s->agent, &(struct agent_order){.kind = ORDER_CANCEL}, -1))
            finish_run(s);
    }
}

/* Takes a signal, by the state: before the command, it ends the wait; then it is the command's;
 * after that, it hurries the release. */
static void on_signal(void *owner, int signo)
{
    struct supervisor *s = owner;

    if (signo == SIGCHLD)
        reap_children(s);
    else if (s->state == ACQUIRING)
        interrupt_wait(s, signo);
    else if (s->state == HOLDING)
        job_signal(&s->job, signo);
    else if (child_signal_is_fatal(signo))
        s->leave_by = moment_min(s->leave_by, moment_plus(moment_now(), HURRY_NS));
    if (!s->done)
        settle_state(s);
}

/* Whether there are LATER_DESCRIPTORS left for this process; if not, errno says why. */
static bool has_room(const struct supervisor *s)
{
    int fds[LATER_DESCRIPTORS], got = 0, error;

    while (got < LATER_DESCRIPTORS && (fds[got] = fcntl(s->agent.channel, F_DUPFD_CLOEXEC, 0)) >= 0)
        got++;
    error = errno;
    for (int i = 0; i < got; i++)
        file_close(fds[i]);
    errno = error;
    return got == LATER_DESCRIPTORS;
}

/* -- the run --------------------------------------------------------------------------------- */

/* Starts the notifier and the agent, and gets all else ready, so that nothing can fail when the
 * lock is held. 0; -1 with errno. */
static int prepare_run(struct supervisor *s)
{
    struct run_shared *shared;
    sigset_t caught;

    child_block_signals(&s->job.inherited);
    s->began = moment_now();
    s->loop = loop_new();
    /* The notifier comes first: processes that exist before the job are not the job's. */
    notifier_start(&s->notifier, s->loop, &s->plan->job, &s->job.inherited);
    /* Calls that a sandbox may refuse come before the agent, which might be granted the lock
     * meanwhile. */
    shared = child_share_memory(sizeof *shared);
    s->agent.shared = shared;
    if (!shared || child_adopt_orphans() < 0 ||
        job_init(&s->job, &s->plan->job, &s->agent, &shared->command) < 0)
        return -1;
    child_choose_signals(&caught);
    if (loop_signals(s->loop, &caught, on_signal, s) < 0)
        return -1;
    if (agent_process_start(&s->agent, s->loop, &s->plan->agent, &s->job.callers, shared) < 0)
        return -1;
    s->channel.fd = s->agent.channel;
    /* The rest takes its time while the agent connects. */
    if (job_prepare(&s->job) < 0 || !has_room(s))
        return -1;
    loop_add(s->loop, &s->channel);
    loop_arm(s->loop, &s->clock, MOMENT_NEVER);
    return 0;
}

/* Fills in the outcome, which follows from the fate of the command, unless it was decided
 * before. */
static void conclude_run(struct supervisor *s)
{
    struct supervisor_outcome *outcome = s->outcome;
    const struct job *job = &s->job;
    bool ran = job_was_executed(job);

    outcome->command_status = ran && WIFEXITED(job->status) ? WEXITSTATUS(job->status) : -1;
    outcome->command_signal = ran && WIFSIGNALED(job->status) ? WTERMSIG(job->status) : 0;
    if (!outcome->granted)
        outcome->waited = moment_until(s->began, moment_now());
    if (outcome->outcome != OUTCOME_UNDECIDED)
        return;
    switch (job->fate) {
    case FATE_NONE:
        set_outcome(s, OUTCOME_COMPLETED, outcome->command_status);
        outcome->signal = outcome->command_signal;
        break;
    case FATE_TIMED_OUT: set_outcome(s, OUTCOME_TIMED_OUT, STATUS_TIMED_OUT); break;
    case FATE_NOT_EXECUTED:
        set_outcome(s, OUTCOME_NOT_EXECUTED, status_of_fault(job->fault));
        break;
    case FATE_LOST:
        outcome->revoked = job->loss == RUN_CAUSE_LOSS + LOSS_REVOKED;
        set_outcome(s, OUTCOME_LOST, STATUS_LOST);
        break;
    }
}

void supervisor_run(const struct supervisor_plan *plan, struct supervisor_outcome *outcome)
{
    struct supervisor s = {.plan = plan, .outcome = outcome};

    s.channel = (struct loop_io){.ready = on_message, .events = LOOP_READ, .owner = &s};
    s.clock = (struct loop_timer){.fire = on_time, .urgent = true, .owner = &s};
    if (prepare_run(&s) < 0 || loop_run(s.loop) < 0) {
        run_tell_refusal(plan->agent.events, s.job.no_cgroup ? RUN_NO_CGROUP : RUN_SYSTEM_REFUSED);
        job_abandon(&s.job);
        agent_process_leave(&s.agent);
        set_outcome(&s, OUTCOME_FAILED, STATUS_SYSTEM);
    }
    agent_process_end(&s.agent);
    job_kill_on(&s.job);
    conclude_run(&s);
    notify_of_state(&s);
    notifier_finish(&s.notifier, plan->agent.events);
    /* Ctrl-C has ended the command, which had the terminal for itself: now the rest of the job, as
     * if it had been typed for all of it. */
    if (s.job.typed && outcome->signal)
        child_signal_group(0, s.job.typed);
    job_free(&s.job);
    free(s.last);
    free(s.trouble);
    free(s.unreleased);
    loop_free(s.loop);
}
