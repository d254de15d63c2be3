/* What a lock looks like from outside: its holders and its queue, as any store reports them. Plain
 * data; whoever was handed a pointer to it borrows it for the call. */
#ifndef RLOCK_LOCK_H
#define RLOCK_LOCK_H

#include "identity.h"
#include <stdbool.h>
#include <stdint.h>

/* An owner token is the path of its ancestors' tokens and its own, outermost first, as "UUID.UUID": who
 * nests in whom is told by prefix, in the store as well. */
#define OWNER_DEPTH 16
#define OWNER_SIZE  (OWNER_DEPTH * 37)

/* Keys of one acquisition. */
#define LOCK_KEYS_MAX 32

#define LOCK_LIMIT_MAX 100000 /* holders of a semaphore */

enum lock_mode { LOCK_EXCLUSIVE, LOCK_SHARED, LOCK_LIMIT };

/* "exclusive", "shared" or "limit". */
static inline const char *lock_mode_name(enum lock_mode mode)
{
    static const char *const names[] = {"exclusive", "shared", "limit"};
    return names[mode];
}

/* What a holder got, for each key. */
struct lock_grant {
    uint64_t fence;
    unsigned slot; /* 1 to the limit; 0 without one */
    bool nested;   /* of a quorum's member: it has an ancestor there, whose fence this is */
};

/* One who holds the lock, or waits for it. */
struct lock_party {
    char owner[OWNER_SIZE];
    enum lock_mode mode;
    unsigned slot;    /* holder of a semaphore, otherwise 0 */
    unsigned count;   /* holder: it and those nested in it */
    int64_t since_ms; /* the store's wall clock, ms since 1970: for display alone */
    int64_t age_ms;   /* the same as an age, by the store's own clock */
    int64_t left_ms;  /* holder: what is left of the lease */
    uint64_t fence;   /* holder */
    struct identity who;
};

struct lock_view {
    const char *key;
    enum lock_mode mode; /* while held */
    unsigned limit;      /* of the semaphore, otherwise 0 */
    uint64_t fence;      /* last one issued, 0 if none */
    const struct lock_party *holders;
    size_t holder_count;
    const struct lock_party *waiters; /* in the queue's order */
    size_t waiter_count;
};

#endif
