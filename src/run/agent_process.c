#include "run/agent_process.h"

#include <unistd.h>

#include "os/child.h"
#include "os/file.h"
#include "os/tree.h"

#define END_NS   (1 * NS_PER_SEC) /* for a process that has nothing left to do */
#define PAUSE_NS (1 * NS_PER_SEC) /* for a message that the kernel refuses */
/* An agent that has not answered for so long is continued. */
#define NUDGE_NS (100 * NS_PER_MS)
/* After a death soon after the start, the next one waits: twice as long each time, but not so long
 * that the lease ends. */
#define SOON_NS        (10 * NS_PER_SEC)
#define PAUSE_LEAST_NS (100 * NS_PER_MS)
#define PAUSE_MOST_NS  (5 * NS_PER_SEC)
#define PAUSES         10 /* so many pauses fit into a lease, at least */

struct renewer {
    const int *ends; /* of the channel: the printer's, and the agent's */
    const struct agent_task *task;
};

/* The process of a printer's agent: returns its exit status. It keeps the session and process group
 * of the caller's job until it holds the lock. */
static int renewer_main(const void *arg)
{
    const struct renewer *renewer = arg;

    close(renewer->ends[0]);
    return agent_main(renewer->ends[1], renewer->task);
}

/* Continues an agent that may be stopped, as long as its answer is awaited. */
static void on_nudge(struct loop_timer *timer)
{
    struct agent_process *agent = timer->owner;

    child_continue(agent->pid);
    loop_arm(agent->loop, timer, moment_plus(loop_now(agent->loop), NUDGE_NS));
}

/* Forks an agent: *agent becomes what its peer knows of it. brief: called before the fork, when
 * orders can be sent; NULL: there are none. 0; -1 with errno: *agent stays as it was. */
static int fork_agent(struct agent_process *agent, struct loop *loop, const struct agent_task *task,
                      void (*brief)(void *arg), void *arg)
{
    const struct agent_process before = *agent;
    int ends[2];

    if (channel_pair(ends) < 0)
        return -1;
    *agent = (struct agent_process){.loop = loop,
                                    .nudge = {.fire = on_nudge, .owner = agent},
                                    .channel = ends[0],
                                    .outbox = outbox_new(loop, ends[0]),
                                    .shared = task->shared,
                                    .deaths = before.deaths};
    if (brief)
        brief(arg);
    const struct renewer renewer = {ends, task};
    /* A supervisor's agent is a helper; a printer's may outlive the printer. */
    agent->pid = task->plan->job ? child_fork_helper(TREE_AGENT, ends[1], agent_main, task)
                                 : child_fork_survivor(task->plan->keep ? TREE_RENEWER : TREE_AGENT,
                                                       renewer_main, &renewer);
    file_close(ends[1]);
    if (agent->pid < 0) {
        outbox_free(agent->outbox);
        file_close(ends[0]);
        *agent = before;
        return -1;
    }
    agent->started = moment_now();
    return 0;
}

int agent_process_start(struct agent_process *agent, struct loop *loop,
                        const struct agent_plan *plan, const struct process_list *callers,
                        struct run_shared *shared)
{
    const struct agent_task task = {
        .plan = plan, .peer = getpid(), .callers = callers, .shared = shared};

    return fork_agent(agent, loop, &task, NULL, NULL);
}

/* Returns for how long (ns) to wait before another agent is started. The pauses double from one
 * death to the next, up to a part of the lease (ns). */
static int64_t pause_after(unsigned deaths, int64_t lease)
{
    int64_t pause = PAUSE_LEAST_NS;
    int64_t most = lease / PAUSES < PAUSE_MOST_NS ? lease / PAUSES : PAUSE_MOST_NS;

    if (deaths <= 1) /* a first death may be by chance */
        return 0;
    for (; deaths > 2 && pause < most; deaths--)
        pause *= 2;
    return pause < most ? pause : most;
}

void agent_process_ended(struct agent_process *agent, int64_t lease)
{
    struct moment now = moment_now();

    loop_disarm(agent->loop, &agent->nudge);
    agent->pid = 0;
    if (moment_reached(moment_plus(agent->started, SOON_NS), now))
        agent->deaths = 0;
    agent->deaths++;
    agent->next = moment_plus(now, pause_after(agent->deaths, lease));
}

int agent_process_replace(struct agent_process *agent, const struct agent_plan *plan,
                          const struct process_list *callers, const struct keeper_past *past,
                          void (*brief)(void *arg), void *arg)
{
    const struct agent_task task = {
        .plan = plan, .peer = getpid(), .callers = callers, .shared = agent->shared, .past = past};
    const struct agent_process before = *agent;

    run_claim_grant(agent->shared); /* so that what the dead one had offered is not claimed */
    atomic_store(&agent->shared->stop_command, 0); /* it has died with its agent */
    atomic_store(&agent->shared->cleared, false);  /* all that it said has been heard */
    atomic_store(&agent->shared->over, false);
    if (fork_agent(agent, agent->loop, &task, brief, arg) == 0) {
        outbox_free(before.outbox);
        close(before.channel);
        return 0;
    }
    int64_t lease = past->held ? past->lease.length : plan->keeper.request.lease;
    agent->deaths++;
    agent->next = moment_plus(moment_now(), pause_after(agent->deaths, lease));
    return -1;
}

bool agent_process_tell(const struct agent_process *agent, const struct agent_order *order, int fd)
{
    return !agent->gone && outbox_send(agent->outbox, order, sizeof *order, fd);
}

void agent_process_pause(const struct agent_process *agent)
{
    agent_process_tell(agent, &(struct agent_order){.kind = ORDER_PAUSED}, -1);
    outbox_finish(agent->outbox, PAUSE_NS);
}

struct moment agent_process_overdue_at(const struct agent_plan *plan)
{
    const struct keeper_plan *keeper = &plan->keeper;

    return keeper->wait ? moment_plus(keeper->wait_until, LEASE_LAST_CALL_NS) : (struct moment){0};
}

void agent_process_await(struct agent_process *agent, struct moment since)
{
    struct moment due = moment_plus(moment_max(since, loop_now(agent->loop)), NUDGE_NS);

    if (since.ns == MOMENT_NEVER.ns)
        loop_disarm(agent->loop, &agent->nudge);
    else if (!agent->nudge.armed || !moment_reached(agent->nudge.due, due))
        loop_arm(agent->loop, &agent->nudge, due);
}

/* Takes a report that the agent has noted in the shared page, and that was not heard. False if
 * there is none. */
static bool hear_note(const struct agent_process *agent, struct agent_report *report)
{
    if (!agent->releasing && atomic_load(&agent->shared->cleared)) {
        *report = (struct agent_report){.kind = REPORT_CLEARED};
        return true;
    }
    if (!agent->lost && atomic_load(&agent->shared->lost)) {
        *report = agent->shared->loss;
        return true;
    }
    /* The last word of an agent is taken only when it is gone, as all that it said before has been
     * heard then. */
    if (!agent->gone || agent->over || !atomic_load(&agent->shared->over))
        return false;
    *report = agent->shared->last;
    return true;
}

bool agent_process_hear(struct agent_process *agent, struct agent_message *message)
{
    struct agent_report *report = &message->report;
    int got = 0;

    if (!agent->gone)
        got = channel_hear(agent->channel, message);
    /* One that has been reaped is gone, even if a process of its own keeps its end open. */
    agent->gone = agent->gone || got < 0 || (got == 0 && agent->pid == 0);
    if (got <= 0)
        got = hear_note(agent, report);
    if (got > 0) {
        agent->lost |= report->kind == REPORT_LOST;
        agent->releasing |= report->kind == REPORT_CLEARED;
        agent->over |= report->kind == REPORT_OVER;
    }
    return got > 0;
}

void agent_process_leave(struct agent_process *agent)
{
    if (agent->pid > 0)
        file_close(agent->channel);
    agent->over = true;
}

void agent_process_end(struct agent_process *agent)
{
    if (agent->pid > 0)
        child_await(agent->pid, agent->over ? END_NS : 0);
    agent->pid = 0;
    outbox_free(agent->outbox);
    agent->outbox = NULL;
}
