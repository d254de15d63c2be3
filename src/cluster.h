/* A Redis Cluster that is asked about one slot at a time: the request goes to the node that has the slot, as far as is
 * known, and follows where that one refers it. The map of all slots is read when a node fails: from any other
 * that answers. Who stays for a moment reads it before that, so as to know of others than those of the URL.
 *
 * One request at a time. It completes as an operation of store.h does. */
#ifndef RLOCK_CLUSTER_H
#define RLOCK_CLUSTER_H

#include "cluster_map.h"
#include "store.h"

struct cluster;

/* Called when a node calls store_on_poke()'s "poked", while no request is under way. NULL with a message in
 * "fault". */
struct cluster *cluster_new(struct loop *loop, const struct store_address *address,
                            void (*poked)(void *arg), void *arg, char *fault, size_t size);
void cluster_free(struct cluster *cluster);

/* Starts an operation of a node's store. Called again where a request has to be repeated. */
typedef void cluster_ask(void *arg, struct store *node, struct moment until, store_done *done,
                         void *done_arg);

/* Asks the node that has the slot. patient: tries again, until then, what may pass or can be had from
 * another node later; otherwise that is left to the caller: UNREACHABLE where no node answers, NOT_READY where
 * one does, but not the one that is needed. */
void cluster_call(struct cluster *cluster, unsigned slot, cluster_ask *ask, void *ask_arg,
                  struct moment until, struct moment patient, store_done *done, void *arg);
/* Asks that node, whatever it has. */
void cluster_call_node(struct cluster *cluster, size_t node, cluster_ask *ask, void *ask_arg,
                       struct moment until, store_done *done, void *arg);
/* Reads the map: GRANTED when it was read. */
void cluster_read_map(struct cluster *cluster, struct moment until, store_done *done, void *arg);
const struct cluster_map *cluster_map_of(const struct cluster *cluster);

/* After an operation: closes connections that were of no use since it was called last. */
void cluster_tidy(struct cluster *cluster);
/* Ends the request under way, without its "done", for a last word at each slot. */
void cluster_abandon(struct cluster *cluster);
/* The store for a last word about a slot: where the request under way has gone, or should go; NULL if it
 * is not open. */
struct store *cluster_last_node(struct cluster *cluster, unsigned slot);

#endif
