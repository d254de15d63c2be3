/* Acquires locks in a ZooKeeper ensemble, and waits for them. */
#ifndef RLOCK_STORE_ZOOKEEPER_ACQUIRE_H
#define RLOCK_STORE_ZOOKEEPER_ACQUIRE_H

#include "store/zookeeper/operation.h"

/* store_acquire() (store/store.h). */
void zk_acquire(struct store *base, const struct lock_request *request, struct moment until,
                store_done *done, void *arg);

#endif
