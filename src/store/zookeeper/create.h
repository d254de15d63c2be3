/* The creation of own nodes. */
#pragma once

#include "store/zookeeper/operation.h"

/* Adds to a transaction the creation of a key's own nodes: those of its place in the queue at
 * first; of a semaphore then the lease that is claimed for that place. */
void zk_add_creations(struct zk_store *store, struct zk_nodes *nodes);
/* Notes what such a transaction has created. Returns ZK_OK, and the lease counts from this session;
 * ZK_NO_NODE; or an error with which the operation has ended. */
int zk_take_created(struct zk_store *store, const struct zk_reply *reply);
