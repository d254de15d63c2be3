/* The agent: the process that speaks to the store. Forked by the supervisor, it acquires, waits,
 * renews and releases through a keeper, posts every new deadline to the supervisor, and guards it
 * in turn: when the supervisor dies or stops answering, the agent ends the command's tree before
 * the lease ends. It may block (DNS, a stuck server); the supervisor never waits for it in vain. */
#ifndef RLOCK_RUN_AGENT_H
#define RLOCK_RUN_AGENT_H

#include "lock/keeper.h"
#include "os/procfs.h"
#include "run/events.h"
#include "run/offer.h"
#include "run/stop_command.h"

struct agent_plan {
    struct store_address address;
    const int *address_status; /* exit status where the store refuses its address */
    struct keeper_plan keeper;
    bool watchdog;         /* end the tree of a supervisor that stopped answering */
    bool wait_descendants; /* what the command leaves behind is under the lock, too */
    int64_t patience;      /* ns of a wait that the supervisor is to be told of; 0: of none */
    const struct stop_plan *stop; /* what is run before the command is stopped */
    int conflict_status;          /* exit status when not acquired */
    const struct run_events *events;
};

/* Runs the agent on its end of the channel, until nothing is held and the supervisor knows; returns
 * its process's exit status. The caller is a fresh fork with all signals blocked. callers: the
 * supervisor's children that are none of the command's. past: what an agent has had that is dead;
 * NULL: this is the first one. */
int agent_main(int channel, struct offer *offer, pid_t supervisor,
               const struct process_list *callers, const struct keeper_past *past,
               const struct agent_plan *plan);

#endif
