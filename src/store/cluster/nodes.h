/* The nodes of a Redis Cluster that are known: the map of which node has which slot, and a store
 * for each node, opened when it is first needed. */
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

/* Nodes are numbered as in the map. */
struct cluster_map *cluster_nodes_map(struct cluster_nodes *nodes);

const struct store_address *cluster_nodes_address(struct cluster_nodes *nodes, size_t i);

/* The store of a node: opened if need be. NULL with a message in "fault". */
struct store *cluster_nodes_use(struct cluster_nodes *nodes, size_t i, char *fault, size_t size);
/* NULL if it is not open. */
struct store *cluster_nodes_store(const struct cluster_nodes *nodes, size_t i);

/* Notes that the node was of use: it has not just referred the request to others. */
void cluster_nodes_keep(struct cluster_nodes *nodes, size_t i);
/* Closes its store and forgets the node: its number is free. */
void cluster_nodes_forget(struct cluster_nodes *nodes, size_t i);
/* Closes the stores of nodes that have been of no use since the last time. */
void cluster_nodes_tidy(struct cluster_nodes *nodes);
