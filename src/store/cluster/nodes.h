/* The nodes of a Redis Cluster that are known: the map of which node has which slot, and a store
 * for each node, opened when it is first needed.
 *
 * The map is read from the known nodes, which are asked one after the other, each shortly after the
 * one before without waiting for its answer, until one tells. */
#pragma once

#include "store/cluster/map.h"
#include "store/store.h"

struct cluster_nodes;

/* The nodes of the URL, in its order. events: of the store of each of them, borrowed. NULL with a
 * message in "fault". */
struct cluster_nodes *cluster_nodes_new(struct loop *loop, const struct store_address *address,
                                        const struct store_events *events, void *arg, char *fault,
                                        size_t size);
void cluster_nodes_free(struct cluster_nodes *nodes);

/* Returns the map, borrowed. Nodes are numbered as in it. */
struct cluster_map *cluster_nodes_map(struct cluster_nodes *nodes);

/* Returns the store of a node, opened if need be, borrowed. NULL with a message in "fault". */
struct store *cluster_nodes_use(struct cluster_nodes *nodes, size_t i, char *fault, size_t size);
/* Returns the store of a node, borrowed; NULL if it is not open. */
struct store *cluster_nodes_store(const struct cluster_nodes *nodes, size_t i);

/* Notes that the node was of use: it has not just referred the request to others. */
void cluster_nodes_keep(struct cluster_nodes *nodes, size_t i);
/* Closes the stores of nodes that have been of no use since the last time, and forgets the nodes
 * that no other node mentions any more, except "needed", unless the map is being read. */
void cluster_nodes_tidy(struct cluster_nodes *nodes, size_t needed);

/* Reads the map anew; ends a reading that is under way. The nodes are asked in the order of
 * cluster_map_candidates(). "done" is called once, later: GRANTED when the map was read; the
 * refusal where a node lets us ask nothing; otherwise why the first node could not tell, as
 * NOT_READY if any node was reached. */
void cluster_nodes_read(struct cluster_nodes *nodes, struct moment until, store_done *done,
                        void *arg);
/* Ends the reading: "done" is not called. */
void cluster_nodes_stop(struct cluster_nodes *nodes);
