/* Those who nest in the same holder of a lock, whose nodes all have its number: which of them keeps
 * another one out. Pure.
 *
 * Who nests in another one goes beside it. Siblings, and those within them, exclude each other, and
 * whoever came first is first: of two, the ancestors are compared that they have below the innermost
 * ancestor that both have, as whoever is within the one that came first must not wait for those who
 * wait for that one. An ancestor that has gone counts on: whoever is within it may hold the lock. */
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

/* The last relative that is before all[own] and keeps it from holding the lock; NULL: nobody does.
 * The result points into "all", which has everyone whose node has that number, and may have those
 * of other families. */
const struct zk_nested *zk_nested_in_the_way(const struct zk_nested *all, size_t count, size_t own);

#endif
