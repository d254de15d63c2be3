/* A place is the first one, or nearly: with a limit it becomes a lease of the semaphore; without
 * one, the key may have no semaphore. */
#pragma once

#include "store/zookeeper/operation.h"

/* With a limit: looks for room, and claims a lease of each semaphore. */
void zk_list_leases(struct zk_store *store);
/* With a limit: counts the leases that a process claimed which has died. */
void zk_recount(struct zk_store *store);
/* Without a limit: refuses if there is a semaphore of one of the keys. */
void zk_rule_out(struct zk_store *store);
/* Whether the owner waits for a semaphore, and is the first in the queue of each key. */
bool zk_semaphore_leads(const struct zk_store *store);
