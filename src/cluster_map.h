/* A Redis Cluster's slots: which slot a key is in, which node has it. Read from what nodes tell; nothing is
 * asked here. Pure. */
#ifndef RLOCK_CLUSTER_MAP_H
#define RLOCK_CLUSTER_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLUSTER_SLOTS     16384
#define CLUSTER_NODES_MAX 4096
#define CLUSTER_NOWHERE   SIZE_MAX

#define CLUSTER_HOST_SIZE 254

struct redisReply;

/* The slot of a key, by its name in the store: what is between its first '{' and the '}' that follows
 * counts alone, if there is anything. */
unsigned cluster_slot(const char *name);

struct cluster_node {
    char host[CLUSTER_HOST_SIZE]; /* a name or a numeric address, an IPv6 one without brackets */
    int port;
};

/* What a node answers that does not have the slot: "MOVED SLOT HOST:PORT", or "ASK …" for this key alone,
 * which is being moved. */
struct cluster_redirection {
    bool ask;
    unsigned slot;
    struct cluster_node to; /* host "": the same as that of the node that says so */
};

/* False if the text is none, or names no host that could be asked. */
bool cluster_redirection_read(const char *text, struct cluster_redirection *redirection);

/* The nodes as far as they are known, numbered from 0, and which of them has which slot. A number stays
 * that of its node. */
struct cluster_map {
    struct cluster_node *nodes;
    size_t node_count;
    uint16_t slots[CLUSTER_SLOTS]; /* number of the node plus one; 0: not known */
};

struct cluster_map *cluster_map_new(void);
void cluster_map_free(struct cluster_map *map);

/* The number of a node, a new one if need be. NOWHERE if there are too many, or it is none. */
size_t cluster_map_node(struct cluster_map *map, const char *host, int port);
/* The node that has the slot; NOWHERE: not known. */
size_t cluster_map_find(const struct cluster_map *map, unsigned slot);
void cluster_map_move(struct cluster_map *map, unsigned slot, size_t node);

/* Takes over the reply to CLUSTER SLOTS from a node at "asked", which is meant where no host is told. False,
 * and nothing changed, if it makes no sense or has no slot. */
bool cluster_map_read(struct cluster_map *map, const struct redisReply *reply, const char *asked);

/* The numbers of the nodes that have slots, into "nodes", which has room for node_count. Returns how many. */
size_t cluster_map_masters(const struct cluster_map *map, size_t *nodes);

#endif
