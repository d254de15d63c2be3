/* Finds out which node of a Redis Cluster has which slot: asks one after the other, until one tells. */
#ifndef RLOCK_CLUSTER_SCOUT_H
#define RLOCK_CLUSTER_SCOUT_H

#include "cluster_nodes.h"

struct cluster_scout;

/* Borrows both. */
struct cluster_scout *cluster_scout_new(struct loop *loop, struct cluster_nodes *nodes);
void cluster_scout_free(struct cluster_scout *scout);

/* Ends what is under way. Asks "first" first and "last" (CLUSTER_NOWHERE: none) last. "done" comes once, later: with GRANTED when the map was
 * read; otherwise why the first node could not tell, NOT_READY if any was reached, or the refusal of one that let
 * us ask nothing. */
void cluster_scout_start(struct cluster_scout *scout, size_t first, size_t last,
                         struct moment until, store_done *done, void *arg);
/* "done" comes no more. */
void cluster_scout_stop(struct cluster_scout *scout);
/* Who is asked, or has told. */
size_t cluster_scout_node(const struct cluster_scout *scout);

#endif
