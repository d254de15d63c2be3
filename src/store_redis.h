/* One Redis server as a store: scripts over one hash a lock, a channel a waiter. */
#ifndef RLOCK_STORE_REDIS_H
#define RLOCK_STORE_REDIS_H

#include "store.h"

/* A place in the queue is kept this long after the last call of its waiter. */
#define QUEUE_PATIENCE_NS (7 * NS_PER_SEC)

/* For redis://, unix:// and local:; see store_open(). */
struct store *store_redis_open(struct loop *loop, const struct store_address *address, char *fault,
                               size_t size);

#endif
