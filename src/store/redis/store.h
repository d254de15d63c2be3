/* One Redis server as a store: scripts over one hash a lock, a channel a waiter. */
#pragma once

#include "store/member.h"
#include "store/store_kind.h"

/* Returns the command that gives a user its rights, which the caller frees; NULL for any i but 0
 * (store_kind.h). */
char *redis_schema(const struct store_address *address, const char *user, size_t i);

/* The kinds of store that are one Redis server.
 *
 * redis://[USER[:PASS]@]HOST[:PORT][/DB]   (PORT 6379, DB 0; HOST may be an IPv6 address in [ ])
 * unix:///PATH[?db=N]   or   unix://[USER[:PASS]@]/PATH[?db=N]
 * sentinel://[USER[:PASS]@]HOST[:PORT][,HOST[:PORT]...]/MASTER[/DB]   (PORT 26379)
 *
 * rediss and sentinels are the same over TLS. USER, PASS, PATH and MASTER are percent-decoded. */
extern const struct store_kind redis_kind, unix_kind, sentinel_kind;

#define REDIS_PORT 6379

extern const char *const redis_mirrors[];

/* The abilities of a Redis server. */
#define REDIS_ABILITIES                                                                            \
    (STORE_READERS | STORE_SEMAPHORES | STORE_SEVERAL_KEYS | STORE_QUEUE | STORE_AT_LEAST |        \
     STORE_REPLICAS | STORE_GRACE | STORE_MARK | STORE_FORCE | STORE_ASK | STORE_REPLACE |         \
     STORE_LATCHES | STORE_DETACHED | STORE_GROUPS | STORE_MIRROR | STORE_LIMITS | STORE_MEMORY |  \
     STORE_TOGETHER | STORE_PRIORITIES | STORE_PAUSES | STORE_ANY | STORE_GLOB_PAUSES |            \
     STORE_MINIMUM)

/* For redis://, unix://, sentinel:// and local:, and the hosts of databases; see store_open(). */
struct store *store_redis_open(struct loop *loop, const struct store_address *address, char *fault,
                               size_t size);
/* Opens a store as a member of a quorum, without grace. False with a message in "fault". */
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
