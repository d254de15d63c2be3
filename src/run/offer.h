/* Memory that supervisor and agent share. The agent offers a grant; the supervisor takes it, or the
 * agent takes it back, and whichever comes first has decided. So a grant can be taken back at any
 * time, and no command is started at that very moment. */
#ifndef RLOCK_RUN_OFFER_H
#define RLOCK_RUN_OFFER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "os/cgroup.h"
#include "run/events.h"

struct offer {
    atomic_bool stands;
    struct cgroup cgroup;       /* of the command, before that is started */
    struct run_refusal overdue; /* why it has waited for long, for MESSAGE_OVERDUE; written once */
    struct run_refusal refusal; /* why there is none, for the news of the last MESSAGE_OVER */
};

static inline void offer_make(struct offer *offer)
{
    atomic_store(&offer->stands, true);
}

/* Takes it, or takes it back: false if the other process has done its part before, or there is
 * none. */
static inline bool offer_end(struct offer *offer)
{
    return atomic_exchange(&offer->stands, false);
}

#endif
