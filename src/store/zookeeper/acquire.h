/* Acquires locks in a ZooKeeper ensemble, and waits for them. */
#ifndef RLOCK_STORE_ZOOKEEPER_ACQUIRE_H
#define RLOCK_STORE_ZOOKEEPER_ACQUIRE_H

#include "store/zookeeper/operation.h"

/* Goes on with an acquisition that has begun. */
void zk_acquire(struct zk_store *store);

#endif
