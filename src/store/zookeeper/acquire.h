/* A place in the queues, and its turn. */
#pragma once

#include "store/zookeeper/operation.h"

/* Performs an acquisition, also one that continues an earlier one of this store. */
void zk_acquire(struct zk_store *store);
/* Continues with the nodes of a process that has died: writes them, as a lease counts from
 * something that was written, and it is not known when that process was last heard of. */
void zk_touch_own(struct zk_store *store);
/* Each does what its value of enum zk_next says. */
zk_step zk_begin, zk_start_anew, zk_check_turn, zk_find_nested;
