/* Reads from the nodes of a Redis Cluster which of them has which slot. It asks the known nodes one
 * after the other, each shortly after the one before without waiting for its answer, until one
 * tells. */
#pragma once

#include "store/cluster/nodes.h"

struct cluster_map_reader;

/* Borrows both. */
struct cluster_map_reader *cluster_map_reader_new(struct loop *loop, struct cluster_nodes *nodes);
void cluster_map_reader_free(struct cluster_map_reader *reader);

/* Ends what is under way, and asks anew, in the order of cluster_map_candidates(). "done" is called
 * once, later: GRANTED when the map was read; the refusal where a node lets us ask nothing;
 * otherwise why the first node could not tell, as NOT_READY if any node was reached. */
void cluster_map_reader_start(struct cluster_map_reader *reader, struct moment until,
                              store_done *done, void *arg);
/* Ends what is under way: "done" is not called. */
void cluster_map_reader_stop(struct cluster_map_reader *reader);
/* Whether "done" is still to be called. */
bool cluster_map_reader_is_busy(const struct cluster_map_reader *reader);
