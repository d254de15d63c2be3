/* The agent: a keeper and a watchdog at one end of a channel. */
#include "run/agent.h"
#include "net/loop.h"
#include "run/channel.h"
#include "run/descendants.h"
#include "run/exit_status.h"
#include "run/waiting.h"
#include "run/watchdog.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The longest to try to give a lock back that nobody needs any more. The supervisor
 * waits longer. */
#define RELEASE_NS (8 * NS_PER_SEC)
/* The same when the user wants to go. */
#define CANCEL_NS (800 * NS_PER_MS)
/* How long a supervisor that runs has got to take a grant, or to release the lock when its command
 * has ended. It takes less than a ms, but on a busy machine. */
#define REACT_NS (2 * NS_PER_SEC)
/* How often, at most, to look whether it runs. */
#define LOOK_NS (50 * NS_PER_MS)

struct agent {
    const struct agent_plan *plan;
    struct loop *loop;
    struct store *store;
    struct keeper *keeper;
    struct loop_io channel;
    struct procfs procfs;
    struct watchdog watchdog;
    struct descendants descendants;
    struct waiting waiting;
    struct lease lease; /* while held */
    struct offer *offer;
    bool offered;           /* neither taken nor taken back, as far as is known here */
    struct loop_io command; /* a pidfd of it, until it ends */
    bool ended;             /* it has, by itself as far as is known here */
    struct loop_timer look; /* while the supervisor has to react to one of them */
    struct moment react_by;
    struct loop_timer patience; /* with the wait */
    struct run_news trouble;    /* with the store; RUN_NOTHING: none */
    pid_t supervisor;
    struct moment seen; /* when the supervisor ran, as far as is known */
    bool absent;        /* the supervisor was stopped, and has yet to say that it is there */
    bool accepted;      /* it acknowledged: its command may be running */
    bool lost;          /* and told so: nothing is renewed any more */
    bool leaving;       /* released or cancelled: the watchdog has nothing to do */
    bool alone;         /* the supervisor is dead */
};

static const struct run_events *events_of(const struct agent *agent)
{
    return agent->plan->events;
}

/* A message that does not go out is missed by a supervisor that cannot read; the watchdog sees to
 * that. */
static void post(struct agent *agent, const struct message *message)
{
    if (!agent->alone)
        channel_send(agent->channel.fd, message);
}

static void post_kind(struct agent *agent, enum message_kind kind)
{
    post(agent, &(struct message){.kind = kind, .lease = agent->lease});
}

static void post_loss(struct agent *agent, const struct run_reason *why)
{
    const struct message message = {.kind = MESSAGE_LOST,
                                    .lease = agent->lease,
                                    .stop_begun = agent->watchdog.delayed,
                                    .news = {.reason = *why}};

    agent->lost = true;
    post(agent, &message);
}

/* While a command runs, its supervisor tells the user: it may be stopped, together with the
 * command. */
static void tell(struct agent *agent, const struct run_news *news)
{
    if (agent->accepted)
        post(agent, &(struct message){.kind = MESSAGE_NEWS, .news = *news});
    else
        run_tell(events_of(agent), news);
}

/* -- a supervisor that is stopped -------------------------------------------------------------- */

static bool is_stopped(struct agent *agent)
{
    struct process process;

    if (!procfs_is_usable(&agent->procfs))
        return false;
    procfs_begin(&agent->procfs);
    enum process_look look = procfs_read(&agent->procfs, agent->supervisor, &process);
    procfs_end(&agent->procfs);
    return look == PROCESS_FOUND && process.state == 'T';
}

/* It answers as soon as it runs. */
static void call(struct agent *agent)
{
    const struct message message = {.kind = MESSAGE_CALL};

    if (!agent->absent)
        agent->absent = channel_send(agent->channel.fd, &message);
}

/* It is not looked at again at once: if it has been stopped since, it does not take the grant. */
static bool runs(struct agent *agent)
{
    struct moment now = loop_now(agent->loop);

    if (!moment_reached(moment_plus(agent->seen, LOOK_NS), now))
        return true;
    if (is_stopped(agent))
        return false;
    agent->seen = now;
    return true;
}

static bool is_absent(void *arg)
{
    struct agent *agent = arg;

    if (agent->alone || agent->leaving)
        return false;
    if (!agent->absent && !runs(agent))
        call(agent);
    return agent->absent;
}

static void expect_reaction(struct agent *agent)
{
    struct moment now = loop_now(agent->loop);

    agent->react_by = moment_plus(now, REACT_NS);
    loop_arm(agent->loop, &agent->look, moment_plus(now, LOOK_NS));
}

static void end_offer(struct agent *agent, bool accepted)
{
    agent->offered = false;
    agent->accepted = agent->accepted || accepted;
    loop_disarm(agent->loop, &agent->look);
}

/* False if the supervisor has taken the grant. */
static bool take_back(struct agent *agent)
{
    if (!agent->offered)
        return false;
    end_offer(agent, !offer_end(agent->offer));
    return !agent->accepted;
}

/* Nobody took the grant, so nobody loses it: it is waited for again, when the supervisor is there.
 * False if it has taken it after all. */
static bool withdraw(struct agent *agent)
{
    if (!take_back(agent))
        return false;
    watchdog_dismiss(&agent->watchdog);
    events_of(agent)->granted(events_of(agent)->arg, NULL);
    post_kind(agent, MESSAGE_WITHDRAWN);
    call(agent);
    keeper_restart(agent->keeper);
    return true;
}

static void offer_grant(struct agent *agent, const struct lock_grant *grants)
{
    struct message message = {.kind = MESSAGE_HELD, .lease = agent->lease};

    memcpy(message.grants, grants, sizeof message.grants);
    offer_make(agent->offer);
    agent->offered = true;
    post(agent, &message);
    expect_reaction(agent);
}

/* -- what the keeper says -------------------------------------------------------------------- */

static void on_waiting(void *arg, const struct answer *refusal)
{
    struct agent *agent = arg;

    waiting_heard(&agent->waiting, refusal);
}

/* Where another agent has told so before, it has not become another reason. */
static void on_overdue(struct loop_timer *timer)
{
    struct agent *agent = timer->owner;

    if (agent->leaving || agent->accepted)
        return;
    agent->offer->overdue = waiting_refused(&agent->waiting, &agent->waiting.refusal);
    post(agent, &(struct message){.kind = MESSAGE_OVERDUE, .news = agent->trouble});
}

/* Each lease that is posted has to be acknowledged before the next renewal. */
static void watch(struct agent *agent, struct lease lease)
{
    agent->lease = lease;
    watchdog_watch(&agent->watchdog, lease);
    keeper_hold_renewals(agent->keeper, !agent->watchdog.paused);
}

static void on_held(void *arg, struct lease lease, const struct lock_grant *grants)
{
    struct agent *agent = arg;

    waiting_acquired(&agent->waiting, lease, grants);
    if (agent->plan->stop->command)
        environment_grant(agent->plan->stop->environment, lease.length, grants);
    watch(agent, lease);
    offer_grant(agent, grants);
}

static void on_extended(void *arg, struct lease lease, bool forgotten)
{
    struct agent *agent = arg;

    run_tell_event(events_of(agent), RUN_RENEWED);
    if (agent->leaving || agent->lost)
        return;
    if (forgotten)
        post(agent, &(struct message){.kind = MESSAGE_NEWS, .news = {.event = RUN_FORGOTTEN}});
    watch(agent, lease);
    post_kind(agent, MESSAGE_EXTENDED);
}

static void on_trouble(void *arg, const struct answer *why)
{
    struct agent *agent = arg;
    const struct run_news news = {.event = RUN_TROUBLE, .reason = run_reason_text(why->text)};

    run_tell_server_said(events_of(agent), why->said);
    agent->trouble = news;
    tell(agent, &news);
}

static void on_recovered(void *arg, int64_t after)
{
    struct agent *agent = arg;
    const struct run_news news = {.event = RUN_STORE_BACK, .duration = after};

    agent->trouble.event = RUN_NOTHING;
    tell(agent, &news);
}

static void on_lost(void *arg, const char *why)
{
    struct agent *agent = arg;
    const struct run_reason reason = run_reason_text(why);

    if (agent->leaving || !withdraw(agent))
        post_loss(agent, &reason);
}

static void describe_end(struct agent *agent, const struct keeper_end *end, struct message *message)
{
    const struct acquire_request *request = &agent->plan->keeper.request;
    struct run_news *news = &message->news;

    switch (end->ending) {
    case KEEPER_RELEASED:
    case KEEPER_CANCELLED: break;
    case KEEPER_UNRELEASED:
        *news = (struct run_news){.event = RUN_UNRELEASED, .reason = run_reason_text(end->text)};
        break;
    case KEEPER_NOT_ACQUIRED:
        message->status = agent->plan->conflict_status;
        agent->offer->refusal = waiting_refused(&agent->waiting, end->refusal);
        *news = (struct run_news){.event = RUN_NOT_ACQUIRED, .refusal = &agent->offer->refusal};
        break;
    case KEEPER_FAILED:
        message->status = status_of_cause(end->cause);
        *news = run_news_failure(end, request->key_count);
        break;
    }
}

static void on_over(void *arg, const struct keeper_end *end)
{
    struct agent *agent = arg;
    struct message message = {.kind = MESSAGE_OVER};

    waiting_end(&agent->waiting);
    run_tell_server_said(events_of(agent), end->said);
    describe_end(agent, end, &message);
    post(agent, &message);
    loop_stop(agent->loop);
}

/* -- what the watchdog says ------------------------------------------------------------------- */

static void on_alarmed(void *arg)
{
    struct agent *agent = arg;
    struct run_reason reason = run_reason_text(keeper_trouble(agent->keeper));

    if (withdraw(agent))
        return;
    keeper_hold_renewals(agent->keeper, true);
    reason.cause = reason.text[0] ? RUN_CAUSE_NOT_RENEWED : RUN_CAUSE_WAS_STOPPED;
    post_loss(agent, &reason);
}

static struct moment release_by(const struct agent *agent)
{
    struct moment now = loop_now(agent->loop);
    struct moment least = moment_plus(now, NS_PER_SEC);
    struct moment most = moment_plus(now, RELEASE_NS);

    if (moment_reached(agent->lease.end, least))
        return least;
    return moment_min(agent->lease.end, most);
}

/* The tree has been seen dead: the next in the queue need not wait for the lease. */
static void on_cleared(void *arg)
{
    struct agent *agent = arg;
    bool used = agent->watchdog.tree.group > 0;
    const struct lock_end end = {.how = agent->lost    ? LOCK_LOST
                                        : agent->alone ? LOCK_KILLED
                                                       : LOCK_USED};

    if (withdraw(agent))
        return;
    agent->leaving = true;
    watchdog_dismiss(&agent->watchdog);
    if (!agent->lost)
        post_kind(agent, MESSAGE_CLEARED);
    keeper_release(agent->keeper, release_by(agent), used ? &end : NULL);
}

/* The lease runs out in any case. */
static void on_failed(void *arg, enum tree_state state)
{
    struct agent *agent = arg;

    if (state == TREE_LIVE)
        run_tell_event(events_of(agent), RUN_SURVIVORS);
    else if (state == TREE_UNSEEN)
        run_tell_event(events_of(agent), RUN_UNSEEN);
    loop_stop(agent->loop);
}

/* -- what the supervisor says ---------------------------------------------------------------- */

static void take_acknowledgement(struct agent *agent, struct lease lease)
{
    if (agent->lost || lease.end.ns != agent->lease.end.ns)
        return; /* too late, or of a grant that was withdrawn, or a lease that is over */
    end_offer(agent, true);
    watchdog_acknowledge(&agent->watchdog, lease);
    keeper_hold_renewals(agent->keeper, false);
}

static void take_release(struct agent *agent, const struct message *message)
{
    struct lock_end end = message->end;

    if (agent->lost)
        end.how = LOCK_LOST;
    agent->leaving = true;
    watchdog_dismiss(&agent->watchdog);
    keeper_release(agent->keeper, release_by(agent), message->used ? &end : NULL);
}

static void take_cancel(struct agent *agent)
{
    agent->leaving = true;
    watchdog_dismiss(&agent->watchdog);
    waiting_end(&agent->waiting);
    keeper_cancel(agent->keeper, moment_plus(loop_now(agent->loop), CANCEL_NS));
}

static void on_command_end(struct loop_io *io, int events)
{
    struct agent *agent = io->owner;

    (void)events;
    loop_remove(agent->loop, io);
    agent->ended = true;
    expect_reaction(agent);
}

/* handle: a pidfd of the command; -1: none. */
static void take_started(struct agent *agent, pid_t command, int handle)
{
    agent->watchdog.tree.group = command;
    agent->watchdog.tree.leader = handle;
    descendants_watch(&agent->descendants);
    if (handle < 0 || agent->plan->wait_descendants)
        return;
    agent->command = (struct loop_io){
        .fd = handle, .events = LOOP_READ, .ready = on_command_end, .owner = agent};
    loop_add(agent->loop, &agent->command);
}

static void take_pause(struct agent *agent)
{
    if (agent->accepted) {
        watchdog_pause(&agent->watchdog, true);
        keeper_hold_renewals(agent->keeper, false);
    } else if (!withdraw(agent)) {
        call(agent);
    }
}

/* If its command has ended, it knows. */
static void take_presence(struct agent *agent)
{
    agent->absent = agent->ended = false;
    keeper_resume(agent->keeper);
}

static void take(struct agent *agent, const struct message *message)
{
    switch (message->kind) {
    case MESSAGE_ACK: take_acknowledgement(agent, message->lease); break;
    case MESSAGE_PAUSED: take_pause(agent); break;
    case MESSAGE_HERE: take_presence(agent); break;
    case MESSAGE_VERIFY:
        watchdog_pause(&agent->watchdog, false);
        keeper_verify(agent->keeper);
        break;
    case MESSAGE_STOPPING: agent->watchdog.stopping = true; break;
    case MESSAGE_REAPED: descendants_hurry(&agent->descendants); break;
    case MESSAGE_RELEASE: take_release(agent, message); break;
    case MESSAGE_CANCEL: take_cancel(agent); break;
    case MESSAGE_STARTED: /* take_started() */
    case MESSAGE_HELD:
    case MESSAGE_WITHDRAWN:
    case MESSAGE_CALL:
    case MESSAGE_EXTENDED:
    case MESSAGE_NEWS:
    case MESSAGE_OVERDUE:
    case MESSAGE_LOST:
    case MESSAGE_CLEARED:
    case MESSAGE_OVER: break; /* from the agent, not to it */
    }
}

/* The supervisor is dead. Whatever it had started goes; it may have done so without our knowing. */
static void be_alone(struct agent *agent)
{
    agent->alone = true;
    loop_remove(agent->loop, &agent->channel);
    descendants_stop(&agent->descendants);
    if (agent->leaving)
        return;
    if (agent->watchdog.armed && !take_back(agent)) {
        keeper_hold_renewals(agent->keeper, true);
        watchdog_supervisor_died(&agent->watchdog);
    } else {
        take_cancel(agent);
    }
}

static void listen_to_supervisor(struct agent *agent)
{
    struct message message;
    int got, fd;

    while ((got = channel_receive_with(agent->channel.fd, &message, &fd)) > 0) {
        if (message.kind == MESSAGE_STARTED)
            take_started(agent, message.pid, fd);
        else
            take(agent, &message);
    }
    if (got < 0)
        be_alone(agent);
}

static void on_message(struct loop_io *io, int events)
{
    (void)events;
    listen_to_supervisor(io->owner);
}

static void on_doubt(void *arg)
{
    struct agent *agent = arg;

    if (!agent->alone)
        listen_to_supervisor(agent);
}

/* A supervisor that is ending its command has yet to see to what that has started. */
static bool is_awaited(const struct agent *agent)
{
    return agent->offered || (agent->ended && !agent->watchdog.stopping && !agent->watchdog.termed);
}

/* A supervisor that is stopped does not take a grant, nor see that its command has ended. What
 * ended by itself while the lock was held has lost nothing. */
static void on_look(struct loop_timer *timer)
{
    struct agent *agent = timer->owner;
    struct moment now = loop_now(agent->loop);

    listen_to_supervisor(agent);
    if (agent->leaving || agent->alone || agent->lost || !is_awaited(agent))
        return;
    if (agent->ended)
        call(agent);
    if (!is_stopped(agent) && !moment_reached(agent->react_by, now))
        loop_arm(agent->loop, &agent->look, moment_plus(now, LOOK_NS));
    else if (agent->ended)
        on_cleared(agent);
    else
        withdraw(agent);
}

/* -- the run --------------------------------------------------------------------------------- */

static const struct keeper_events keeper_events = {
    on_waiting, on_held, on_extended, {on_trouble, on_recovered}, on_lost, on_over, is_absent};

/* The supervisor runs the command under that lease already. */
static void go_on_holding(struct agent *agent, struct lease lease)
{
    agent->accepted = true;
    agent->lease = lease;
    watchdog_watch(&agent->watchdog, lease);
    watchdog_acknowledge(&agent->watchdog, lease);
}

static void start_keeper(struct agent *agent, const struct keeper_past *past)
{
    const struct keeper_plan *plan = &agent->plan->keeper;

    if (!past) {
        agent->keeper = keeper_start(agent->loop, agent->store, plan, &keeper_events, agent);
        return;
    }
    agent->waiting.began = past->began;
    agent->keeper = keeper_take_over(agent->loop, agent->store, plan, past, &keeper_events, agent);
    if (past->held)
        go_on_holding(agent, past->lease);
}

static void start(struct agent *agent, const struct process_list *callers,
                  const struct keeper_past *past)
{
    const struct agent_plan *plan = agent->plan;

    agent->watchdog = (struct watchdog){.kill_after = plan->keeper.kill_after,
                                        .enabled = plan->watchdog,
                                        .wait_descendants = plan->wait_descendants,
                                        .stop_command = {.plan = plan->stop},
                                        .tree = {.procfs = &agent->procfs,
                                                 .cgroup = &agent->offer->cgroup,
                                                 .root = agent->supervisor,
                                                 .except = getpid(),
                                                 .leader = -1,
                                                 .owner = plan->keeper.request.owner,
                                                 .callers = callers},
                                        .listen = on_doubt,
                                        .alarmed = on_alarmed,
                                        .cleared = on_cleared,
                                        .failed = on_failed,
                                        .arg = agent};
    watchdog_init(&agent->watchdog, agent->loop);
    descendants_init(&agent->descendants, agent->loop, &agent->watchdog.tree);
    waiting_init(&agent->waiting, agent->loop, &plan->keeper.request, plan->events);
    agent->look = (struct loop_timer){.fire = on_look, .owner = agent};
    agent->channel.ready = on_message;
    agent->channel.events = LOOP_READ;
    agent->channel.owner = agent;
    loop_add(agent->loop, &agent->channel);
    agent->patience = (struct loop_timer){.fire = on_overdue, .owner = agent};
    start_keeper(agent, past);
    if (plan->patience > 0)
        loop_arm(agent->loop, &agent->patience, moment_plus(agent->waiting.began, plan->patience));
}

static int refuse(struct agent *agent, int status, const char *why)
{
    const struct message message = {.kind = MESSAGE_OVER,
                                    .status = status,
                                    .news = {.event = RUN_FAILED, .reason = run_reason_text(why)}};

    channel_send(agent->channel.fd, &message);
    return 1;
}

int agent_main(int channel, struct offer *offer, pid_t supervisor,
               const struct process_list *callers, const struct keeper_past *past,
               const struct agent_plan *plan)
{
    struct agent agent = {
        .plan = plan, .channel = {.fd = channel}, .offer = offer, .supervisor = supervisor};
    char fault[256];

    agent.loop = loop_new();
    if (!agent.loop || procfs_open(&agent.procfs) < 0)
        return refuse(&agent, STATUS_SYSTEM, strerror(errno));
    agent.seen = loop_now(agent.loop); /* it has just forked this process */
    agent.store = store_open(agent.loop, &plan->address, fault, sizeof fault);
    if (!agent.store)
        return refuse(&agent, *plan->address_status, fault);
    start(&agent, callers, past);
    if (loop_run(agent.loop) < 0)
        return refuse(&agent, STATUS_SYSTEM, strerror(errno));
    store_close(agent.store); /* a quorum may have something left to say */
    keeper_free(agent.keeper);
    descendants_free(&agent.descendants);
    if (agent.alone)
        cgroup_remove(&offer->cgroup);
    loop_free(agent.loop);
    procfs_close(&agent.procfs);
    return 0;
}
