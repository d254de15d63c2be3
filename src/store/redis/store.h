/* One Redis server as a store: scripts over one hash a lock, a channel a waiter. */
#ifndef RLOCK_STORE_REDIS_STORE_H
#define RLOCK_STORE_REDIS_STORE_H

#include "store/member.h"

/* For redis://, unix://, sentinel:// and local:, and the hosts of databases; see store_open(). */
struct store *store_redis_open(struct loop *loop, const struct store_address *address, char *fault,
                               size_t size);
/* The same as a member of a quorum, without grace. False with a message in "fault". */
bool store_redis_open_member(struct loop *loop, const struct store_address *address,
                             struct member *member, char *fault, size_t size);

/* For a Cluster's nodes, each opened with a URL of its own, of that scheme. A node refuses keys of
 * other nodes: CAUSE_CLUSTER, and store_redis_moved(). */

/* Whether there is a connection to it. */
bool store_redis_is_up(const struct store *node);
/* Returns where the latest answer refers to, in the node's words (store/cluster/map.h); "":
 * nowhere. Valid in "done". */
const char *store_redis_moved(const struct store *node);
/* The next operation is about a slot that the node is about to get (ASK). */
void store_redis_asking(struct store *node);

#endif
