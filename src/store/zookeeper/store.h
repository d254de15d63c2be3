/* A ZooKeeper ensemble as a store (store/store.h). */
#ifndef RLOCK_STORE_ZOOKEEPER_STORE_H
#define RLOCK_STORE_ZOOKEEPER_STORE_H

#include "store/store.h"

struct store *zookeeper_open(struct loop *loop, const struct store_address *address, char *fault,
                             size_t size);

#endif
