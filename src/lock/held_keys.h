/* Of the keys that were asked for, those that are held: all, or as many as were wanted. Pure. */
#ifndef RLOCK_LOCK_HELD_KEYS_H
#define RLOCK_LOCK_HELD_KEYS_H

#include "lock/lock.h"
#include <stddef.h>

struct held_keys {
    const char *keys[LOCK_KEYS_MAX]; /* in the order given; borrowed */
    struct lock_grant grants[LOCK_KEYS_MAX];
    size_t asked[LOCK_KEYS_MAX]; /* which one each is of those that were asked for, from 0 */
    size_t count;
};

/* grants: of each of the keys, as it was granted. NULL: nothing is known of the grant yet, and so
 * all of them are told, with empty grants. */
void held_keys_choose(struct held_keys *held, const char *const *keys, size_t count,
                      const struct lock_grant *grants);

#endif
