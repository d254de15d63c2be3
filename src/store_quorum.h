/* A quorum of stores as one store (Redlock): an exclusive lock is held where a majority of the nodes, each
 * a store of its own that knows nothing of the others, has granted it.
 *
 * All nodes are asked at once, and what a majority says is the answer; a slow or dead one costs nothing. What
 * is under way there goes on behind it, and a grant that comes too late is given back, or kept. While the lock is
 * held, each renewal takes it anew on nodes that lost it, or did not have it. A try that fails is given back
 * everywhere. There is no queue: who waits comes back after a random pause. */
#ifndef RLOCK_STORE_QUORUM_H
#define RLOCK_STORE_QUORUM_H

#include "store.h"

struct store_node {
    struct store *store; /* opened as a member (store_address) */
    char name[300];      /* of its URL, for messages */
};

/* Takes the nodes' stores over and copies the rest. count: 2 to QUORUM_NODES_MAX. */
struct store *store_quorum_open(struct loop *loop, const struct store_node *nodes, size_t count);

#endif
