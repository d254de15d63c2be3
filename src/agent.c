/* The agent: a keeper and a guard at one end of a channel. */
#include "agent.h"
#include "channel.h"
#include "guard.h"
#include "loop.h"
#include "say.h"
#include "status.h"
#include "waiting.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The longest to try to give a lock back that nobody needs any more. The supervisor waits longer. */
#define RELEASE_NS (8 * NS_PER_SEC)
/* The same when the user wants to go. */
#define CANCEL_NS (800 * NS_PER_MS)

struct agent {
    const struct agent_plan *plan;
    struct loop *loop;
    struct store *store;
    struct keeper *keeper;
    struct loop_io channel;
    struct guard guard;
    struct waiting waiting;
    struct moment deadline; /* of the lease, while held */
    bool accepted;          /* the supervisor acknowledged: its command may be running */
    bool lost;              /* and told so: nothing is renewed any more */
    bool leaving;           /* released or cancelled: nothing is to be guarded */
    bool alone;             /* the supervisor is dead */
};

static const char *title_of(const struct agent *agent)
{
    return agent->plan->title;
}

/* A message that does not go out is missed by a supervisor that cannot read; the guard sees to that. */
static void post(struct agent *agent, enum message_kind kind, struct moment deadline,
                 const char *text)
{
    struct message message = {.kind = kind, .deadline = deadline};

    snprintf(message.text, sizeof message.text, "%s", text);
    if (!agent->alone)
        channel_send(agent->channel.fd, &message);
}

/* -- what the keeper says -------------------------------------------------------------------- */

static void on_waiting(void *arg, const struct answer *refusal)
{
    struct agent *agent = arg;

    if (refusal->requeued)
        say_detail("%s: was dropped from the queue, is in it again as number %lld", title_of(agent),
                   (long long)refusal->position);
    waiting_heard(&agent->waiting, refusal);
}

/* Each deadline that is posted has to be acknowledged before the next renewal. */
static void watch(struct agent *agent, struct moment deadline)
{
    agent->deadline = deadline;
    guard_watch(&agent->guard, deadline);
    keeper_hold_renewals(agent->keeper, !agent->guard.excused);
}

static void say_grants(const struct lock_request *request, const struct lock_grant *grants)
{
    for (size_t i = 0; i < request->key_count; i++) {
        char slot[24] = "";
        if (request->mode == LOCK_LIMIT)
            snprintf(slot, sizeof slot, ", slot %u", grants[i].slot);
        say_detail("%s: acquired, fencing token %llu%s", request->keys[i],
                   (unsigned long long)grants[i].fence, slot);
    }
}

static void on_held(void *arg, struct moment deadline, const struct lock_grant *grants)
{
    struct agent *agent = arg;
    struct message message = {.kind = MESSAGE_HELD, .deadline = deadline};

    waiting_end(&agent->waiting);
    say_grants(&agent->plan->keeper.request, grants);
    watch(agent, deadline);
    memcpy(message.grants, grants, sizeof message.grants);
    if (!agent->alone)
        channel_send(agent->channel.fd, &message);
}

static void on_extended(void *arg, struct moment deadline, bool forgotten)
{
    struct agent *agent = arg;

    say_detail("%s: renewed", title_of(agent));
    if (agent->leaving || agent->lost)
        return;
    if (forgotten)
        post(agent, MESSAGE_TROUBLE, agent->deadline,
             "the store had forgotten it, and has it again");
    watch(agent, deadline);
    post(agent, MESSAGE_EXTENDED, deadline, "");
}

static void on_trouble(void *arg, const char *why)
{
    struct agent *agent = arg;
    char text[300];

    snprintf(text, sizeof text, "%.250s; trying again", why);
    if (agent->accepted)
        post(agent, MESSAGE_TROUBLE, agent->deadline, text);
    else
        say_warning("%s: %s", title_of(agent), text);
}

/* Nobody took the grant, so nobody loses it: it is waited for again. A supervisor that was stopped finds
 * both messages, and starts nothing. */
static void withdraw(struct agent *agent)
{
    guard_dismiss(&agent->guard);
    post(agent, MESSAGE_WITHDRAWN, agent->deadline, "");
    keeper_restart(agent->keeper);
}

static void on_lost(void *arg, const char *why)
{
    struct agent *agent = arg;

    if (!agent->accepted && !agent->leaving) {
        withdraw(agent);
        return;
    }
    agent->lost = true;
    post(agent, MESSAGE_LOST, agent->deadline, why);
}

static void describe_failure(const struct agent *agent, const struct keeper_end *end, char *text,
                             size_t size)
{
    const char *hint = hint_of_cause(end->cause);
    const struct lock_request *request = &agent->plan->keeper.request;
    size_t key = end->refusal.key; /* as the server says */
    bool of_one = end->cause == CAUSE_MISFIT && key < request->key_count;
    const char *name = of_one ? request->keys[key] : title_of(agent);

    snprintf(text, size, "%.100s: %s%s%s", name, end->text, hint ? "\nhint: " : "",
             hint ? hint : "");
}

static void on_over(void *arg, const struct keeper_end *end)
{
    struct agent *agent = arg;
    struct message message = {.kind = MESSAGE_OVER};

    waiting_end(&agent->waiting);
    switch (end->ending) {
    case KEEPER_RELEASED:
    case KEEPER_CANCELLED: break;
    case KEEPER_UNRELEASED: snprintf(message.text, sizeof message.text, "%s", end->text); break;
    case KEEPER_NOT_ACQUIRED:
        message.refused = true;
        message.status = agent->plan->conflict_status;
        if (message.status != STATUS_OK) /* 0 is for those who want to hear nothing of it */
            waiting_refused(&agent->waiting, &end->refusal, message.text, sizeof message.text);
        break;
    case KEEPER_FAILED:
        message.status = status_of_cause(end->cause);
        describe_failure(agent, end, message.text, sizeof message.text);
        break;
    }
    if (!agent->alone)
        channel_send(agent->channel.fd, &message);
    loop_stop(agent->loop);
}

/* -- what the guard says --------------------------------------------------------------------- */

static void on_alarmed(void *arg)
{
    struct agent *agent = arg;

    if (!agent->accepted) {
        withdraw(agent);
        return;
    }
    agent->lost = true;
    keeper_hold_renewals(agent->keeper, true);
    post(agent, MESSAGE_LOST, agent->deadline, "rlock was stopped, so its lease runs out");
}

static struct moment release_by(const struct agent *agent)
{
    struct moment now = loop_now(agent->loop);
    struct moment least = moment_plus(now, NS_PER_SEC);
    struct moment most = moment_plus(now, RELEASE_NS);

    if (moment_reached(agent->deadline, least))
        return least;
    return moment_min(agent->deadline, most);
}

/* The tree has been seen dead: the next in the queue need not wait for the lease. */
static void on_cleared(void *arg)
{
    struct agent *agent = arg;

    bool used = agent->guard.tree.group > 0 && !agent->lost;

    agent->leaving = true;
    keeper_release(agent->keeper, release_by(agent), used);
}

static void on_failed(void *arg)
{
    struct agent *agent = arg;

    say_error("%s: some processes of its command could not be killed", title_of(agent));
    loop_stop(agent->loop);
}

/* -- what the supervisor says ---------------------------------------------------------------- */

static void take_acknowledgement(struct agent *agent, struct moment deadline)
{
    if (agent->lost || deadline.ns != agent->deadline.ns)
        return; /* too late, or of a grant that was withdrawn, or a deadline that is over */
    agent->accepted = true;
    guard_acknowledge(&agent->guard, deadline);
    keeper_hold_renewals(agent->keeper, false);
}

static void take_release(struct agent *agent, bool used)
{
    agent->leaving = true;
    guard_dismiss(&agent->guard);
    keeper_release(agent->keeper, release_by(agent), used && !agent->lost);
}

static void take_cancel(struct agent *agent)
{
    agent->leaving = true;
    guard_dismiss(&agent->guard);
    waiting_end(&agent->waiting);
    keeper_cancel(agent->keeper, moment_plus(loop_now(agent->loop), CANCEL_NS));
}

static void take(struct agent *agent, const struct message *message)
{
    switch (message->kind) {
    case MESSAGE_ACK: take_acknowledgement(agent, message->deadline); break;
    case MESSAGE_STARTED: agent->guard.tree.group = message->pid; break;
    case MESSAGE_PAUSED:
        guard_excuse(&agent->guard, true);
        keeper_hold_renewals(agent->keeper, false);
        break;
    case MESSAGE_VERIFY:
        guard_excuse(&agent->guard, false);
        keeper_verify(agent->keeper);
        break;
    case MESSAGE_RELEASE: take_release(agent, message->used); break;
    case MESSAGE_CANCEL: take_cancel(agent); break;
    case MESSAGE_HELD:
    case MESSAGE_WITHDRAWN:
    case MESSAGE_EXTENDED:
    case MESSAGE_TROUBLE:
    case MESSAGE_LOST:
    case MESSAGE_OVER: break; /* from the agent, not to it */
    }
}

/* The supervisor is dead. Whatever it had started goes; it may have done so without our knowing. */
static void be_alone(struct agent *agent)
{
    agent->alone = true;
    loop_remove(agent->loop, &agent->channel);
    if (agent->leaving)
        return;
    if (agent->guard.armed) {
        keeper_hold_renewals(agent->keeper, true);
        guard_avenge(&agent->guard);
    } else {
        take_cancel(agent);
    }
}

static void listen_to_supervisor(struct agent *agent)
{
    struct message message;
    int got;

    while ((got = channel_receive(agent->channel.fd, &message)) > 0)
        take(agent, &message);
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

/* -- the run --------------------------------------------------------------------------------- */

static const struct keeper_events keeper_events = {on_waiting, on_held, on_extended,
                                                   on_trouble, on_lost, on_over};

static void start(struct agent *agent, pid_t supervisor)
{
    const struct agent_plan *plan = agent->plan;

    agent->guard = (struct guard){
        .lease = plan->keeper.request.lease,
        .kill_after = plan->kill_after,
        .enabled = plan->guard,
        .tree = {.root = supervisor, .except = getpid(), .owner = plan->keeper.request.owner},
        .listen = on_doubt,
        .alarmed = on_alarmed,
        .cleared = on_cleared,
        .failed = on_failed,
        .arg = agent};
    guard_init(&agent->guard, agent->loop);
    waiting_init(&agent->waiting, agent->loop, &plan->keeper.request, plan->title,
                 !plan->report_waiting);
    agent->channel.ready = on_message;
    agent->channel.events = LOOP_READ;
    agent->channel.owner = agent;
    loop_add(agent->loop, &agent->channel);
    agent->keeper = keeper_start(agent->loop, agent->store, &plan->keeper, &keeper_events, agent);
}

static int refuse(struct agent *agent, int status, const char *why)
{
    struct message message = {.kind = MESSAGE_OVER, .status = status};

    snprintf(message.text, sizeof message.text, "%.100s: %.255s", title_of(agent), why);
    channel_send(agent->channel.fd, &message);
    return 1;
}

int agent_main(int channel, pid_t supervisor, const struct agent_plan *plan)
{
    struct agent agent = {.plan = plan, .channel = {.fd = channel}};
    char fault[256];

    agent.loop = loop_new();
    if (!agent.loop)
        return refuse(&agent, STATUS_SYSTEM, strerror(errno));
    agent.store = store_open(agent.loop, &plan->address, fault, sizeof fault);
    if (!agent.store)
        return refuse(&agent, plan->address_status, fault);
    start(&agent, supervisor);
    if (loop_run(agent.loop) < 0)
        return refuse(&agent, STATUS_SYSTEM, strerror(errno));
    store_close(agent.store); /* a quorum may have something left to say */
    keeper_free(agent.keeper);
    loop_free(agent.loop);
    return 0;
}
