/* Locks in a Redis Cluster, where each of several keys is at a node of its own: asked for one after the other, in the
 * order of their bytes, and none is held while another is waited for. */
#ifndef RLOCK_CLUSTER_LOCKS_H
#define RLOCK_CLUSTER_LOCKS_H

#include "store.h"

struct cluster;
struct cluster_locks;

/* Borrows all of it. */
struct cluster_locks *cluster_locks_new(struct loop *loop, struct cluster *cluster,
                                        const char *prefix);
void cluster_locks_free(struct cluster_locks *locks);

/* As the operations of store.h. */
void cluster_locks_acquire(struct cluster_locks *locks, const struct lock_request *request,
                           struct moment until, store_done *done, void *arg);
void cluster_locks_renew(struct cluster_locks *locks, const struct lock_request *request,
                         struct moment until, store_done *done, void *arg);
void cluster_locks_release(struct cluster_locks *locks, const struct lock_request *request,
                           bool uncertain, struct moment until, store_done *done, void *arg);
void cluster_locks_farewell(struct cluster_locks *locks, const struct lock_request *request);

#endif
