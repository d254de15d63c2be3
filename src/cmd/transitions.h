/* What has happened to locks between two looks at them, by what a store tells and remembers. Pure.
 *
 * Nothing is sent by who acquires or releases a lock, so it costs nobody anything where nobody
 * looks; and who looks seldom is told nevertheless of the last runs of each lock. */
#ifndef RLOCK_CMD_TRANSITIONS_H
#define RLOCK_CMD_TRANSITIONS_H

#include "store/views.h"

enum transition_kind {
    TRANSITION_WAITING,    /* by: the waiter */
    TRANSITION_REFUSED,    /* by: the waiter, who has gone without the lock */
    TRANSITION_SUPERSEDED, /* the same, as another one of its group has come */
    TRANSITION_PAUSED,     /* by: who has paused the lock */
    TRANSITION_RESUMED,    /* by: the same; the pause is over, or somebody has ended it */
    TRANSITION_ACQUIRED,   /* by: the holder */
    /* Of a run that has ended, with how: */
    TRANSITION_RELEASED,
    TRANSITION_TIMED_OUT,
    TRANSITION_LOST,
    TRANSITION_EXPIRED,
    TRANSITION_REVOKED,
    TRANSITION_MISSED, /* more than the store remembers; by nobody */
    TRANSITION_KINDS
};

struct transition {
    enum transition_kind kind;
    const char *key; /* NULL: of any */
    int64_t at_ms;   /* the store's wall clock, ms since 1970 */
    const struct lock_party *by;
    int64_t held_ms; /* of a run that has ended, otherwise -1 */
    int64_t count;   /* MISSED: runs; 0: it is not known how many */
};

/* All zero: none. */
struct transitions {
    struct transition *all;
    size_t count, room;
};

/* Appends what lies between "before" and "after", which are sorted by key and stay borrowed, in the
 * order in which it happened. now_ms: by the clock here, where the store's is not known. */
void transitions_find(struct transitions *transitions, const struct lock_views *before,
                      const struct lock_views *after, int64_t now_ms);
void transitions_free(struct transitions *transitions);

#endif
