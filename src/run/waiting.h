/* Decides when a user reads why rlock waits, and that the wait has ended; not in which words. */
#pragma once

#include "net/loop.h"
#include "run/events.h"

struct waiting {
    struct loop *loop;
    const struct acquire_request *request;
    const struct run_events *events;
    struct loop_timer timer;     /* shows the wait, and shows it anew */
    struct run_refusal *refusal; /* the latest; NULL: none yet */
    bool *announced;       /* as in struct run_shared, which knows what another agent has shown */
    struct moment heard;   /* when it came; 0: never */
    struct moment began;   /* the wait */
    bool refused;          /* in this wait */
    bool told_of_ancestor; /* that holds it; only once */
    bool told_of_limit;
    char examined[OWNER_SIZE]; /* the latest holder that was looked for among them */
};

/* The arguments are borrowed. */
void waiting_init(struct waiting *waiting, struct loop *loop, const struct acquire_request *request,
                  const struct run_events *events, bool *announced);
/* Still refused, for this reason. */
void waiting_heard(struct waiting *waiting, const struct answer *refusal);
/* Describes the latest refusal, which came then, as of a wait that has ended. */
void waiting_refused(struct waiting *waiting, const struct answer *refusal, struct moment heard,
                     struct run_refusal *out);
/* Hides what is shown; a wait that continues is shown again. */
void waiting_hide(const struct waiting *waiting);
/* The wait is over: hides what was shown. */
void waiting_end(struct waiting *waiting);
/* The same, and the lock is held, for this lease and with that granted for each of its keys. */
void waiting_acquired(struct waiting *waiting, struct lease lease, const struct lock_grant *grants);

void waiting_free(struct waiting *waiting);
