/* Transitions of locks between two surveys, from what a store tells and remembers. Pure.
 *
 * Holders send nothing, so events cost only those who watch; the last runs of each lock are seen
 * however seldom it is surveyed. */
#pragma once

#include "store/views.h"

enum transition_kind {
    TRANSITION_WAITING,    /* by: the waiter */
    TRANSITION_REFUSED,    /* by: the waiter, who has gone without the lock */
    TRANSITION_SUPERSEDED, /* the same, because a later one of its group has come */
    TRANSITION_PAUSED,     /* by: the user who has paused the lock */
    TRANSITION_RESUMED,    /* by: the same user; the pause is over or was ended */
    TRANSITION_ACQUIRED,   /* by: the holder */
    /* A run has ended: */
    TRANSITION_RELEASED,
    TRANSITION_TIMED_OUT,
    TRANSITION_LOST,
    TRANSITION_EXPIRED,
    TRANSITION_REVOKED,
    TRANSITION_MISSED, /* more than the store remembers; by: NULL */
    TRANSITION_KINDS
};

static inline bool transition_ends_run(enum transition_kind kind)
{
    return kind >= TRANSITION_RELEASED && kind < TRANSITION_MISSED;
}

struct transition {
    enum transition_kind kind;
    const char *key; /* NULL: any */
    int64_t at_ms;   /* the store's wall clock, ms since 1970 */
    const struct lock_party *by;
    int64_t held_ms; /* -1 unless a run has ended */
    int64_t count;   /* MISSED: runs; 0: unknown */
};

struct transitions {
    struct transition *all;
    size_t count;
};

/* Whether waiters of "before" are missing: they have no place any more and have not had the lock,
 * and the store did not hear that they go. After an outage, or when the store has lost its data,
 * they queue up again. keep: adds them to "after". Both lists are sorted by key. */
bool transitions_miss_waiters(const struct lock_views *before, struct lock_views *after, bool keep);

/* Appends the transitions between "before" and "after", which are sorted by key and stay borrowed,
 * in the order in which they happened. now_ms: by the clock of this host, which counts if the
 * store's is not known; gap_ms: since the survey "before" began. */
void transitions_find(struct transitions *transitions, const struct lock_views *before,
                      const struct lock_views *after, int64_t now_ms, int64_t gap_ms);
void transitions_free(struct transitions *transitions);
