/* The agent as its peer sees it: a process at the other end of a channel, which may be stuck,
 * stopped or gone at any time. Another one may take the place of one that has died, when that has
 * been reaped: there are never two. */
#pragma once

#include <sys/types.h>

#include "net/loop.h"
#include "run/agent.h"

struct agent_process {
    pid_t pid;   /* 0 when it has been reaped */
    int channel; /* our end */
    struct outbox *outbox;
    struct run_shared *shared;
    bool lost;      /* it has said REPORT_LOST */
    bool gone;      /* its end is closed, and all that it said has been heard */
    bool releasing; /* it has said REPORT_CLEARED, and needs no order to release the lock */
    bool over;      /* it has said REPORT_OVER, and ends */
    struct moment started;
    unsigned deaths;         /* soon after the start, in a row */
    struct moment next;      /* it has been reaped: when another one may be started */
    struct loop *loop;       /* of its peer */
    struct loop_timer nudge; /* continues it */
};

/* Forks the agent. All signals must be blocked already. loop: of this process. shared: zeroed, in
 * memory that is shared with it. -1 with errno. */
int agent_process_start(struct agent_process *agent, struct loop *loop,
                        const struct agent_plan *plan, const struct process_list *callers,
                        struct run_shared *shared);
/* Notes that the agent has been reaped. lease: ns, of the lock that is held or waited for; the next
 * agent waits for a small part of it at most. */
void agent_process_ended(struct agent_process *agent, int64_t lease);
/* Forks another agent, which continues with the state of the last one; not before "next", which is
 * later from one death to the next. brief: called when the agent can be told, and before it is
 * forked: it knows what it is told then, whatever happens to this process. -1 with errno: the
 * caller may retry, and there is no agent that was told. */
int agent_process_replace(struct agent_process *agent, const struct agent_plan *plan,
                          const struct process_list *callers, const struct keeper_past *past,
                          void (*brief)(void *arg), void *arg);
/* Tells it that, now or when it reads again; false if it is gone. An fd goes along, and stays open
 * as long as this one is not replaced; -1: none. */
bool agent_process_tell(const struct agent_process *agent, const struct agent_order *order, int fd);
/* Tells it that this process is about to be stopped, and will send nothing then: waits for a while
 * until the kernel has taken that. */
void agent_process_pause(const struct agent_process *agent);
/* From that moment on its peer awaits an answer, and has no other end: an agent that has not given
 * it may be stopped, and is continued again and again, until it has died or this is called with
 * MOMENT_NEVER. */
void agent_process_await(struct agent_process *agent, struct moment since);
/* When it must have ended the wait for the lock, which it does a bit after its user's time. One
 * that does not wait is to answer at once. */
struct moment agent_process_overdue(const struct agent_plan *plan);
/* The agent's next report; false if there is none now, or the agent is gone. */
bool agent_process_hear(struct agent_process *agent, struct agent_message *message);
/* Lets go of it, as if this process had died: the agent, if there is one, releases what it has or
 * has asked for, and ends. */
void agent_process_leave(struct agent_process *agent);
/* Makes sure that the agent does not outlive this process: kills it, unless it ends by itself soon
 * and has said so, or was let go of. */
void agent_process_end(struct agent_process *agent);
