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
    struct moment refused_at;    /* when that came; 0: never */
    bool *announced;             /* as in struct run_shared: an agent that died may have set it */
    struct moment began;         /* the wait */
    bool refused;                /* in this wait */
    bool told_of_ancestor;       /* that an ancestor of this process holds the lock */
    bool told_of_limit;          /* that the limit is another one than was asked for */
    char examined[OWNER_SIZE];   /* the latest holder that was looked for among the ancestors */
};

/* The arguments are borrowed. Release with waiting_free(). */
void waiting_init(struct waiting *waiting, struct loop *loop, const struct acquire_request *request,
                  const struct run_events *events, bool *announced);
/* Takes a refusal: the lock is still waited for. Shows the wait if it is not short, and tells the
 * user what is new in it. */
void waiting_note_refusal(struct waiting *waiting, const struct answer *refusal);
/* Describes a refusal that came at "refused_at", for a report: how old it is, and whether the
 * holder is an ancestor of this process. */
void waiting_describe_refusal(struct waiting *waiting, const struct answer *refusal,
                              struct moment refused_at, struct run_refusal *out);
/* Hides what is shown; a wait that continues is shown again. */
void waiting_hide(const struct waiting *waiting);
/* The wait is over: hides what was shown. */
void waiting_end(struct waiting *waiting);
/* The wait is over, and the lock is held, for this lease and with a grant for each of its keys:
 * tells the user. */
void waiting_acquired(struct waiting *waiting, struct lease lease, const struct lock_grant *grants);

void waiting_free(struct waiting *waiting);
