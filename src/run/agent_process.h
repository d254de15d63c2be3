/* The agent as its peer sees it: a process at the other end of a channel, which may be stuck,
 * stopped or gone at any time. Another one may take the place of one that has died, when that has
 * been reaped: there are never two. */
#pragma once

#include <sys/types.h>

#include "net/loop.h"
#include "run/agent.h"

struct agent_process {
    pid_t pid;   /* 0: it has been reaped */
    int channel; /* the peer's end */
    struct outbox *outbox;
    struct run_shared *shared;
    bool lost;      /* it has said REPORT_LOST */
    bool gone;      /* its end is closed, and all that it said has been heard */
    bool releasing; /* it has said REPORT_CLEARED, and needs no order to release the lock */
    bool over;      /* it has said REPORT_OVER, and ends */
    struct moment started;
    unsigned deaths;         /* of agents soon after their start, in a row */
    struct moment next;      /* it has been reaped: when another one may be started */
    struct loop *loop;       /* of its peer */
    struct loop_timer nudge; /* continues it, as it may be stopped */
};

/* Forks the agent. All signals must be blocked already. loop: of this process. callers: as in
 * struct agent_task. shared: zeroed, in memory that is shared with it. All is borrowed. 0; -1 with
 * errno. */
int agent_process_start(struct agent_process *agent, struct loop *loop,
                        const struct agent_plan *plan, const struct process_list *callers,
                        struct run_shared *shared);
/* Notes that the agent has been reaped. lease: ns, of the lock that is held or waited for; the next
 * agent waits for a small part of it at most. */
void agent_process_ended(struct agent_process *agent, int64_t lease);
/* Forks another agent in place of one that was reaped, to continue with its state, "past". The
 * caller waits until "next". brief: called with "arg" before the fork, when orders can be sent: the
 * agent gets what it is told then, whatever happens to this process. 0; -1 with errno: there is no
 * agent, the orders are lost, "next" is later, and the caller may try again then. */
int agent_process_replace(struct agent_process *agent, const struct agent_plan *plan,
                          const struct process_list *callers, const struct keeper_past *past,
                          void (*brief)(void *arg), void *arg);
/* Sends it an order, now or when the kernel takes it; false if it is gone. fd: goes along, and must
 * stay open as long as this agent is not replaced; -1: none. */
bool agent_process_tell(const struct agent_process *agent, const struct agent_order *order, int fd);
/* Tells it that this process is about to be stopped, and will send nothing then: waits for a while
 * until the kernel has taken that. */
void agent_process_pause(const struct agent_process *agent);
/* The caller awaits an answer from "since" on, and has no deadline for it: an agent that does not
 * give it may be stopped, so it is continued again and again, until it has died or this is called
 * with MOMENT_NEVER. */
void agent_process_await(struct agent_process *agent, struct moment since);
/* Returns when the agent must have ended the wait for the lock: a bit after the time that its user
 * waits for; at once where the user does not. */
struct moment agent_process_overdue_at(const struct agent_plan *plan);
/* Takes the agent's next report, from the channel, or from the shared page if the kernel has
 * refused its message. False if there is none now. The report's reason is in *message, or in the
 * page. */
bool agent_process_hear(struct agent_process *agent, struct agent_message *message);
/* Lets go of the agent, as if this process had died: if there is one, it releases what it has or
 * has asked for, and ends. */
void agent_process_leave(struct agent_process *agent);
/* Makes sure that the agent does not outlive this process: waits for one that ends by itself, as it
 * has said or was let go of, for a second at most, and kills it otherwise. */
void agent_process_end(struct agent_process *agent);
