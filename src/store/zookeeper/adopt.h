/* Goes on with the session of another process, of which only the owner is known. */
#ifndef RLOCK_STORE_ZOOKEEPER_ADOPT_H
#define RLOCK_STORE_ZOOKEEPER_ADOPT_H

#include "store/zookeeper/operation.h"

/* Looks for the nodes of the request's owner, be they a holder's or a waiter's. "adopted" follows
 * if there are some for each key: the session that made them is the store's then, and nothing was
 * written in it yet. Otherwise "missing" follows, with store->absent as the first key that has
 * none. */
void zk_adopt(struct zk_store *store, void (*adopted)(struct zk_store *store),
              void (*missing)(struct zk_store *store));

#endif
