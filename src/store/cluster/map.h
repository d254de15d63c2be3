/* The slots of a Redis Cluster: which slot a key is in, and which node has the slot, read from what
 * nodes tell. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

#define CLUSTER_SLOTS     16384
#define CLUSTER_NODES_MAX 4096
#define CLUSTER_NOWHERE   SIZE_MAX

#define CLUSTER_HOST_SIZE 254

struct redisReply;

/* Returns the slot of a key, by its name in the store. Only the text between its first '{' and the
 * next '}' counts, if there is any. */
unsigned cluster_slot(const char *name);

struct cluster_node {
    char host[CLUSTER_HOST_SIZE]; /* a name or a numeric address, an IPv6 one without brackets */
    int port;
    bool seed; /* one of the URL's: it is never forgotten */
    /* The node is in the map that was read last, or another one has referred to it since. */
    bool current;
    struct moment answered, failed; /* when it did so last; 0: never */
    struct cluster_way *way;        /* to it (nodes.c); NULL: not needed yet */
};

/* The answer of a node that does not have the slot: "MOVED SLOT HOST:PORT", or "ASK …" where it is
 * handing the slot over and this key has gone already. */
struct cluster_redirection {
    bool ask;
    unsigned slot;
    struct cluster_node to; /* host "": the same as that of the node that says so */
};

/* Reads a redirection. False if the text is none, or names no host that could be asked. */
bool cluster_redirection_read(const char *text, struct cluster_redirection *redirection);

/* The nodes that are known, numbered from 0, and which of them has which slot. A node keeps its
 * number until it is forgotten. All zero: none is known. */
struct cluster_map {
    struct cluster_node *nodes;
    size_t node_count;
    uint16_t slots[CLUSTER_SLOTS]; /* number of the node plus one; 0: not known */
};

void cluster_map_free(struct cluster_map *map);

/* Returns the number of the node at that host and port, a new one if need be; it counts as current.
 * NOWHERE if there are too many, or there can be no such host. */
size_t cluster_map_node(struct cluster_map *map, const char *host, int port);
/* Whether no node names it any more: it is not asked, and may be forgotten. */
bool cluster_map_is_stale(const struct cluster_map *map, size_t node);
/* Forgets it: the number is free, and there is no host at it. */
void cluster_map_forget(struct cluster_map *map, size_t node);
/* Puts the nodes to ask, in their order, into "nodes", which has room for node_count; returns how
 * many.
 * First those that answered when they were asked last, the latest first; then those that were never
 * asked; last those that failed, the latest last. */
size_t cluster_map_candidates(const struct cluster_map *map, size_t *nodes);
/* Returns the node that has the slot; NOWHERE: not known. */
size_t cluster_map_find(const struct cluster_map *map, unsigned slot);
/* From now on that node has it; NOWHERE: not known. */
void cluster_map_move(struct cluster_map *map, unsigned slot, size_t node);

/* Takes over the reply to CLUSTER SLOTS from the node at host "asked"; an entry without a host
 * means that one. False, and nothing has changed, if the reply makes no sense or has no slot. */
bool cluster_map_read(struct cluster_map *map, const struct redisReply *reply, const char *asked);

/* Puts the numbers of the nodes that have slots into "nodes", which has room for node_count;
 * returns how many. */
size_t cluster_map_masters(const struct cluster_map *map, size_t *nodes);
