/* A Redis Cluster that is asked about one slot at a time. The request goes to the node that is
 * known to have the slot, and from there to the node that it names instead (MOVED, ASK). When a
 * node fails, the map of all slots is read from any other node. A process that stays for a second
 * reads the map then, so that it knows other nodes than those of the URL before one of them fails.
 *
 * There is one request at a time. It completes as an operation of store/store.h does. */
#pragma once

#include "store/cluster/map.h"
#include "store/store.h"

struct cluster;

/* Returns NULL with a message in "fault" if the address cannot be one. events: those of the nodes'
 * stores, for arg; NULL: none. */
struct cluster *cluster_new(struct loop *loop, const struct store_address *address,
                            const struct store_events *events, void *arg, char *fault, size_t size);
void cluster_free(struct cluster *cluster);

/* Returns the slot of a lock's key. */
unsigned cluster_slot_of_key(const char *prefix, const char *key);

/* Starts the operation at the node that has the slot; again at another one where that has to be.
 * Until "retry_until" it tries again where the answer is UNREACHABLE (no node answers) or NOT_READY
 * (another node than the one that is needed answers); after that the caller gets that answer. */
void cluster_call(struct cluster *cluster, unsigned slot, const struct operation *operation,
                  struct moment retry_until);
/* Starts the operation at that node of the map, whatever slots it has. */
void cluster_call_node(struct cluster *cluster, size_t node, const struct operation *operation);
/* Reads the map: GRANTED when it was read. */
void cluster_read_map(struct cluster *cluster, struct moment until, store_done *done, void *arg);
/* Returns the map as it is known now, borrowed. */
const struct cluster_map *cluster_map_of(const struct cluster *cluster);
/* Whether a request is under way. */
bool cluster_is_busy(const struct cluster *cluster);

/* Ends the request under way, whose "done" is not called, and sends the release to the node that an
 * earlier request about the slot has gone to, or would go to. */
enum release_sent cluster_release_nowait(struct cluster *cluster, unsigned slot,
                                         const struct release_request *request);
