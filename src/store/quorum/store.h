/* A quorum of stores as one store (Redlock): an exclusive lock is held where a majority of the
 * nodes has granted it. Each node is a store of its own that knows nothing of the others.
 *
 * All nodes are asked at once, and what a majority says is the answer; a slow or dead node costs
 * nothing. Nodes continue with their orders after the answer: a grant that comes too late is
 * released, or kept where the lock is held. While it is held, each renewal also acquires it on
 * nodes that do not have it. A try that fails is released on all nodes. There is no queue: a waiter
 * tries again after a random pause. */
#pragma once

#include "store/member.h"

struct store_node {
    struct member member;
    char name[300]; /* of its URL, for messages */
};

/* Takes the nodes' stores over and copies the rest. count: 2 to QUORUM_NODES_MAX. */
struct store *store_quorum_open(struct loop *loop, const struct store_node *nodes, size_t count);
