/* The owners that nest in the same holder of a lock, whose nodes all have its number: which of them
 * keeps another one out. Pure.
 *
 * An owner shares the lock with those that it nests in. Siblings, and those within them, exclude
 * each other, in the order of their arrival: of two, those ancestors are compared that they have
 * below the innermost ancestor of both, as an owner within the first must not wait for those that
 * wait for the first. An ancestor that has gone still counts: an owner within it may hold the
 * lock. */
#ifndef RLOCK_STORE_ZOOKEEPER_NESTING_H
#define RLOCK_STORE_ZOOKEEPER_NESTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock/lock.h"

struct zk_nested {
    char owner[OWNER_SIZE];
    int64_t since; /* the zxid that made its node */
    bool reader;
    const int64_t *ancestors; /* as struct zk_node_data has them, borrowed; NULL: none */
    const char *node;         /* its path, for the caller; borrowed */
};

/* Returns the last one that is before all[own] and keeps it from holding the lock; NULL: none.
 * "all" are those whose nodes have that number; some of them may not be related. */
const struct zk_nested *zk_nested_in_the_way(const struct zk_nested *all, size_t count, size_t own);

#endif
