/* A Redis Cluster as a store. */
#ifndef RLOCK_STORE_CLUSTER_STORE_H
#define RLOCK_STORE_CLUSTER_STORE_H

#include "store/store.h"

/* For cluster://; see store_open(). */
struct store *store_cluster_open(struct loop *loop, const struct store_address *address,
                                 char *fault, size_t size);

#endif
