/* Memory that an agent shares with its peer. The agent offers a grant, and then one of the two
 * claims it: the peer to use the lock, or the agent to withdraw the grant. The first claim
 * decides. So a grant can be withdrawn at any time without a command starting at that very
 * moment. */
#ifndef RLOCK_RUN_OFFER_H
#define RLOCK_RUN_OFFER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "os/cgroup.h"
#include "run/events.h"

struct offer {
    atomic_bool stands;
    atomic_bool delivered;      /* the printer of an acquisition has printed the lock */
    struct cgroup cgroup;       /* the command's, from before it is started */
    struct run_refusal overdue; /* why the wait is long, for REPORT_OVERDUE; written once */
    struct run_refusal refusal; /* why there is none, for the news of the last REPORT_OVER */
};

static inline void offer_make(struct offer *offer)
{
    atomic_store(&offer->stands, true);
}

/* True if the caller was first; false if the other process was, or nothing is offered. */
static inline bool offer_claim(struct offer *offer)
{
    return atomic_exchange(&offer->stands, false);
}

#endif
