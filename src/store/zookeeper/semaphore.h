/* Semaphores in a ZooKeeper ensemble, as Curator's InterProcessSemaphoreV2 has them: KEY/locks is a
 * mutex, and who has it may make a lease in KEY/leases if there is room. */
#ifndef RLOCK_STORE_ZOOKEEPER_SEMAPHORE_H
#define RLOCK_STORE_ZOOKEEPER_SEMAPHORE_H

#include "store/zookeeper/operation.h"

/* Our places in the queues are known (spot->in_the_way, spot->position, store->leads): goes on to
 * store->entered, or refuses. */
void zk_semaphore_consider(struct zk_store *store);

/* The leases were claimed by a process that may have died before it counted them: goes on to
 * store->entered if there are no more than the limit, and begins anew otherwise. */
void zk_semaphore_recount(struct zk_store *store);

/* Nobody is in the way of a plain lock, but there is, or was, a semaphore of that name: goes on to
 * store->entered if nobody holds it or waits for it, and refuses otherwise. */
void zk_semaphore_rule_out(struct zk_store *store);

/* What is wrong with a semaphore of that limit where others hold one of "limit". Returns out. */
char *zk_semaphore_misfit(unsigned limit, char *out, size_t size);

/* A timer of the store's: looks again. */
void zk_semaphore_lingered(struct loop_timer *timer);

#endif
