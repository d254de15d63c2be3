/* The creation of own nodes. */
#pragma once

#include "store/zookeeper/operation.h"

/* Adds to a transaction the creation of a key's own nodes: those of its place in the queue at
 * first; of a semaphore then the lease that is claimed for that place. */
void zk_add_creations(struct zk_store *store, struct zk_nodes *nodes);
enum zk_creation {
    ZK_CREATED,     /* the lease counts from the opening of this session */
    ZK_LACKS_NODE,  /* nothing was created, as a node is not there that it needs */
    ZK_NOT_CREATED, /* for another reason, with which the operation has ended */
};

/* Notes what such a transaction has created. */
enum zk_creation zk_take_created(struct zk_store *store, const struct zk_reply *reply);
