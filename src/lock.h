/* What a lock looks like from outside: its holders and its queue, as any store reports them. Plain
 * data; whoever was handed a pointer to it borrows it for the call. */
#ifndef RLOCK_LOCK_H
#define RLOCK_LOCK_H

#include "identity.h"
#include <stdint.h>

#define OWNER_SIZE 37 /* a UUID and its NUL */

enum lock_mode { LOCK_EXCLUSIVE, LOCK_SHARED, LOCK_LIMIT };

/* One who holds the lock, or waits for it. */
struct lock_party {
    char owner[OWNER_SIZE];
    enum lock_mode mode;
    int64_t since_ms; /* the store's wall clock, ms since 1970: for display alone */
    int64_t age_ms;   /* the same as an age, by the store's own clock */
    int64_t left_ms;  /* holder: what is left of the lease */
    uint64_t fence;   /* holder */
    struct identity who;
};

struct lock_view {
    const char *key;
    uint64_t fence; /* last one issued, 0 if none */
    const struct lock_party *holders;
    size_t holder_count;
    const struct lock_party *waiters; /* in the queue's order */
    size_t waiter_count;
};

#endif
