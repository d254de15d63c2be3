/* The agent: the process that speaks to the store. It acquires, waits, renews and releases through
 * a keeper, and has a peer, which has forked it: the supervisor of a command, or the printer of
 * `rlock acquire`. It may block (DNS, a stuck server); its peer has deadlines for that.
 *
 * It reports every new deadline to the supervisor, and guards it in turn: when the supervisor dies
 * or stops answering, the agent ends the command's tree before the lease ends.
 *
 * When a printer has ended, and has printed the lock, the agent ends, too; or, with "keep", it
 * stays behind as the lock's renewer, without a terminal, until that process ends. */
#pragma once

#include "lock/keeper.h"
#include "os/pid_watch.h"
#include "os/procfs.h"
#include "run/channel.h"
#include "run/plan.h"

struct agent_plan {
    struct store_address address;
    const int *address_status; /* exit status where the store refuses its address */
    struct keeper_plan keeper;
    const struct job_plan *job; /* the command of a supervisor; NULL: the peer is a printer */
    struct pid_watch *keep;     /* of a printer: opened; NULL: nothing renews the lock */
    int conflict_status;        /* exit status when not acquired */
    const struct run_events *events;
};

/* An agent's own part. All is borrowed. */
struct agent_task {
    const struct agent_plan *plan;
    pid_t peer;
    /* The supervisor's children that are not the command's; NULL: none. */
    const struct process_list *callers;
    struct run_shared *shared;
    const struct keeper_past *past; /* the state of an agent that has died; NULL: there was none */
};

/* Runs the agent on its end of the channel, until nothing is held and its peer knows; returns its
 * process's exit status. The caller is a fresh fork with all signals blocked. task: a struct
 * agent_task. */
int agent_main(int channel, const void *task);
