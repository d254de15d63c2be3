/* Continues the session of another process, of which only the owner is known. */
#ifndef RLOCK_STORE_ZOOKEEPER_ADOPT_H
#define RLOCK_STORE_ZOOKEEPER_ADOPT_H

#include "store/zookeeper/operation.h"

/* Looks for the nodes of the request's owner, be they a holder's or a waiter's. The step "adopted"
 * follows if each key has some: the session that made them is the store's then, and nothing was
 * written in it yet. Otherwise "missing" follows, with store->absent as the first key that has
 * none. */
void zk_adopt(struct zk_store *store, enum zk_step adopted, enum zk_step missing);

#endif
