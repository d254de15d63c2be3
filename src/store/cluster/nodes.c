#include "store/cluster/nodes.h"

#include <stdio.h>

#include "base/mem.h"
#include "store/redis/store.h"

struct node {
    struct url url; /* only of this node */
    struct store_address address;
    char host[CLUSTER_HOST_SIZE];
    struct store *store; /* NULL: not opened, or closed again */
    bool used;
};

struct cluster_nodes {
    struct loop *loop;
    struct store_address address;
    const struct store_events *events; /* of each node's store */
    void *arg;
    struct cluster_map *map;
    struct node **nodes; /* as many as the map had when one was needed last; NULL: not needed yet */
    size_t count;
};

/* The node's URL is the Cluster's, with one host. */
static struct node *new_node(const struct cluster_nodes *nodes, const struct cluster_node *place)
{
    struct node *node = mem_zeroed(sizeof *node);

    strcpy(node->host, place->host);
    node->url = *nodes->address.urls;
    node->url.hosts[0] = (struct url_host){node->host, place->port};
    node->url.host_count = 1;
    node->address = nodes->address;
    node->address.urls = &node->url;
    node->address.url_count = 1;
    return node;
}

static struct node *node_at(struct cluster_nodes *nodes, size_t i)
{
    size_t count = nodes->map->node_count;

    if (count > nodes->count)
        nodes->nodes = mem_checked(realloc(nodes->nodes, count * sizeof(struct node *)));
    for (; nodes->count < count; nodes->count++)
        nodes->nodes[nodes->count] = NULL;
    if (!nodes->nodes[i])
        nodes->nodes[i] = new_node(nodes, &nodes->map->nodes[i]);
    return nodes->nodes[i];
}

static void close_node(struct node *node)
{
    if (node->store)
        store_close(node->store);
    node->store = NULL;
}

struct cluster_map *cluster_nodes_map(struct cluster_nodes *nodes)
{
    return nodes->map;
}

const struct store_address *cluster_nodes_address(struct cluster_nodes *nodes, size_t i)
{
    return &node_at(nodes, i)->address;
}

struct store *cluster_nodes_use(struct cluster_nodes *nodes, size_t i, char *fault, size_t size)
{
    struct node *node = node_at(nodes, i);

    if (!node->store) {
        node->store = store_redis_open(nodes->loop, &node->address, fault, size);
        if (node->store)
            store_on_event(node->store, nodes->events, nodes->arg);
    }
    return node->store;
}

struct store *cluster_nodes_store(const struct cluster_nodes *nodes, size_t i)
{
    return i < nodes->count && nodes->nodes[i] ? nodes->nodes[i]->store : NULL;
}

void cluster_nodes_keep(struct cluster_nodes *nodes, size_t i)
{
    node_at(nodes, i)->used = true;
}

void cluster_nodes_forget(struct cluster_nodes *nodes, size_t i)
{
    if (i < nodes->count && nodes->nodes[i]) {
        close_node(nodes->nodes[i]);
        free(nodes->nodes[i]);
        nodes->nodes[i] = NULL;
    }
    cluster_map_forget(nodes->map, i);
}

void cluster_nodes_tidy(struct cluster_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++) {
        struct node *node = nodes->nodes[i];
        if (node && !node->used)
            close_node(node);
        if (node)
            node->used = false;
    }
}

struct cluster_nodes *cluster_nodes_new(struct loop *loop, const struct store_address *address,
                                        const struct store_events *events, void *arg, char *fault,
                                        size_t size)
{
    struct cluster_nodes *nodes = mem_zeroed(sizeof *nodes);
    const struct url *url = address->urls;

    *nodes =
        (struct cluster_nodes){.loop = loop, .address = *address, .events = events, .arg = arg};
    nodes->map = cluster_map_new();
    for (size_t i = 0; i < url->host_count; i++) {
        size_t seed = cluster_map_node(nodes->map, url->hosts[i].name, url->hosts[i].port);
        if (seed != CLUSTER_NOWHERE)
            nodes->map->nodes[seed].seed = true;
    }
    if (nodes->map->node_count == 0)
        snprintf(fault, size, "no host of that name can exist");
    if (nodes->map->node_count > 0 && cluster_nodes_use(nodes, 0, fault, size))
        return nodes;
    cluster_nodes_free(nodes);
    return NULL;
}

void cluster_nodes_free(struct cluster_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++) {
        if (nodes->nodes[i])
            close_node(nodes->nodes[i]);
        free(nodes->nodes[i]);
    }
    free(nodes->nodes);
    cluster_map_free(nodes->map);
    free(nodes);
}
