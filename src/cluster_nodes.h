/* The nodes of a Redis Cluster as far as they are known: which of them has which slot, and a store for each, opened
 * when it is first needed. */
#ifndef RLOCK_CLUSTER_NODES_H
#define RLOCK_CLUSTER_NODES_H

#include "cluster_map.h"
#include "store.h"

struct cluster_nodes;

/* Those of the URL, in its order; "poked" is called by each of their stores. NULL with a message in "fault". */
struct cluster_nodes *cluster_nodes_new(struct loop *loop, const struct store_address *address,
                                        void (*poked)(void *arg), void *arg, char *fault,
                                        size_t size);
void cluster_nodes_free(struct cluster_nodes *nodes);

/* Nodes are numbered as in the map. */
struct cluster_map *cluster_nodes_map(struct cluster_nodes *nodes);

const struct store_address *cluster_nodes_address(struct cluster_nodes *nodes, size_t i);

/* The store of a node, for use: opened if need be. NULL with a message in "fault". */
struct store *cluster_nodes_use(struct cluster_nodes *nodes, size_t i, char *fault, size_t size);
/* NULL if it is not open. */
struct store *cluster_nodes_store(const struct cluster_nodes *nodes, size_t i);

/* It has referred us to others. */
void cluster_nodes_dismiss(struct cluster_nodes *nodes, size_t i);
/* Closes those that were dismissed, or not used, since the last time. Not "calling", whose store is just calling us. */
void cluster_nodes_tidy(struct cluster_nodes *nodes, size_t calling);

#endif
