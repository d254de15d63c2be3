/* How many hold a semaphore, and which slots they have: the leases below its node, as Curator's
 * InterProcessSemaphoreV2 lays them out. Pure.
 *
 * Each lease is a child _c_UUID-lease-########## of KEY/leases. Curator knows no slots, and keeps
 * no limit; rlock's leases tell both in what is in them. Those that nest in a holder have its slot,
 * and count with it. */
#ifndef RLOCK_STORE_ZOOKEEPER_LEASES_H
#define RLOCK_STORE_ZOOKEEPER_LEASES_H

#include "store/zookeeper/message.h"

struct zk_room {
    unsigned taken;
    unsigned slot;  /* the lowest that is free, from 1 */
    unsigned limit; /* that rlock's leases tell, the first of them; 0: there is none */
};

/* data: of each lease the reply to zk_get(); one that has gone meanwhile does not count. */
struct zk_room zk_leases_room(const struct zk_reply *data, size_t count);

#endif
