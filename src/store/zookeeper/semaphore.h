/* Semaphores in a ZooKeeper ensemble, as Curator's InterProcessSemaphoreV2 has them: KEY/locks is a
 * mutex, and its holder may make a lease in KEY/leases if there is room. */
#ifndef RLOCK_STORE_ZOOKEEPER_SEMAPHORE_H
#define RLOCK_STORE_ZOOKEEPER_SEMAPHORE_H

#include "store/zookeeper/operation.h"

/* Whether the owner waits for a semaphore, and is the first in the queue of each key. */
bool zk_semaphore_leads(const struct zk_store *store);

#endif
