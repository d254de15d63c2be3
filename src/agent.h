/* The agent: the process that speaks to the store. Forked by the supervisor, it acquires, waits,
 * renews and releases through a keeper, posts every new deadline to the supervisor, and guards it in
 * turn: when the supervisor dies or stops answering, the agent ends the command's tree before
 * the lease ends. It may block (DNS, a stuck server); the supervisor never waits for it in vain. */
#ifndef RLOCK_AGENT_H
#define RLOCK_AGENT_H

#include "keeper.h"

struct agent_plan {
    struct store_address address;
    int address_status; /* exit status where the store refuses its address */
    struct keeper_plan keeper;
    const char *title;   /* the lock, in messages */
    int64_t kill_after;  /* ns */
    bool guard;          /* end the tree of a supervisor that stopped answering (--on-lost stop) */
    int conflict_status; /* exit status when not acquired */
    bool report_waiting; /* say who holds it while waiting */
};

/* Runs the agent on its end of the channel, until nothing is held and the supervisor knows; returns its
 * process's exit status. The caller is a fresh fork with all signals blocked. */
int agent_main(int channel, pid_t supervisor, const struct agent_plan *plan);

#endif
