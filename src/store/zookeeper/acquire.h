/* Acquires locks in a ZooKeeper ensemble, and waits for them. */
#ifndef RLOCK_STORE_ZOOKEEPER_ACQUIRE_H
#define RLOCK_STORE_ZOOKEEPER_ACQUIRE_H

#include "store/zookeeper/operation.h"

/* Performs an acquisition, also one that continues an earlier one. */
void zk_acquire(struct zk_store *store);

#endif
