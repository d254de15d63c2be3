/* The nodes of an owner, and their session. */
#include "store/zookeeper/adopt.h"

#include <stdio.h>

#include "base/mem.h"
#include "store/zookeeper/path.h"

/* Where the owner may have nodes: a holder or a waiter below KEY; the holder of a semaphore below
 * KEY/leases, and a waiter below KEY/locks. */
enum { PLACES = 3 };

static const char *parent_of(const struct zk_nodes *nodes, size_t place)
{
    return place == 0 ? nodes->key : place == 1 ? nodes->leases : nodes->locks;
}

static void miss(struct zk_store *store, size_t key)
{
    store->absent = key;
    zk_begin(store, ZK_MISSING);
}

static void missing(struct zk_store *store)
{
    zk_begin(store, store->missing);
}

/* Notes the owner's nodes among the children at each place. Returns an error of the server's, or
 * ZK_OK. */
static int find_nodes(const struct zk_store *store, struct zk_nodes *nodes,
                      const struct zk_reply *replies)
{
    const char *uuid = zk_owner_uuid(zk_request_of(store)->owner);

    for (size_t place = 0; place < PLACES && !nodes->own[0]; place++) {
        const struct zk_contender *one = NULL;
        struct zk_queue queue;
        int error = zk_queue_read(&replies[place], &queue);
        if (error != ZK_OK)
            return error;
        for (size_t i = 0; i < NODES_MAX && (one = zk_queue_next_of(&queue, uuid, one)); i++) {
            nodes->own[i] = zk_path_join(parent_of(nodes, place), one->name);
            nodes->number = one->number;
        }
        zk_queue_free(&queue);
    }
    return ZK_OK;
}

/* The session that the nodes were looked for in is closed. */
static void found_nodes(struct zk_store *store, const struct zk_reply *replies)
{
    for (size_t i = 0; i < store->key_count; i++) {
        int error = find_nodes(store, &store->nodes[i], replies + PLACES * i);
        if (error == ZK_OK)
            continue;
        zk_tell_error(store, error);
        return;
    }
    for (size_t i = 0; i < store->key_count; i++) {
        const struct zk_nodes *nodes = &store->nodes[i];
        if (!nodes->own[0]) {
            zk_session_drop_batch(store->session);
            miss(store, i);
            return;
        }
        for (size_t j = 0; j < NODES_MAX && nodes->own[j]; j++)
            zk_get(zk_batch_of(store), nodes->own[j]);
    }
    zk_close(zk_batch_of(store));
    zk_send(store, ZK_READ_NODES);
}

/* Takes what is in one node of a key, and its session where none is known yet. A node of another
 * session is one of a request that came late: it goes with that session. Returns false if the node
 * is not the owner's. */
static bool take_node(struct zk_store *store, struct zk_nodes *nodes, char **node,
                      const struct zk_reply *reply, struct zk_identity *identity)
{
    struct zk_node_data data;
    struct jute_text text;
    struct zk_stat stat;

    if (zk_read_data(reply, &text, &stat) != ZK_OK || !zk_node_data_parse(text, &data) ||
        strcmp(data.owner, zk_request_of(store)->owner) != 0)
        return false;
    if (identity->id && identity->id != stat.session) {
        zk_set_text(node, NULL);
        return node != &nodes->own[0];
    }
    identity->id = stat.session;
    memcpy(identity->password, data.password, sizeof identity->password);
    if (node != &nodes->own[0])
        return true;
    nodes->slot = data.slot;
    nodes->leased = data.slot > 0;
    nodes->nests = data.fence > 0;
    nodes->fence = data.fence ? data.fence : (uint64_t)stat.czxid;
    zk_set_text(&nodes->data, mem_checked(strndup(text.bytes, text.size)));
    if (!zk_request_of(store)->lease)
        zk_wish(store, data.lease);
    return true;
}

static void read_nodes(struct zk_store *store, const struct zk_reply *replies)
{
    struct zk_identity identity = {0};

    for (size_t i = 0; i < store->key_count; i++) {
        struct zk_nodes *nodes = &store->nodes[i];
        for (size_t j = 0; j < NODES_MAX && nodes->own[j]; j++) {
            if (take_node(store, nodes, &nodes->own[j], replies++, &identity))
                continue;
            zk_forget(store);
            miss(store, i);
            return;
        }
    }
    zk_session_take(store->session, &identity);
    snprintf(store->owner, sizeof store->owner, "%s", zk_request_of(store)->owner);
    store->place = ZK_HAS_PLACE;
    zk_begin(store, store->adopted);
}

void zk_adopt(struct zk_store *store, enum zk_step adopted, enum zk_step missing_step)
{
    zk_forget(store);
    zk_make_nodes(store);
    zk_wish(store, zk_request_of(store)->lease);
    store->adopted = adopted;
    store->missing = missing_step;
    for (size_t i = 0; i < store->key_count; i++)
        for (size_t place = 0; place < PLACES; place++)
            zk_children(zk_batch_of(store), parent_of(&store->nodes[i], place), false);
    zk_send(store, ZK_FIND_NODES);
}

const struct zk_step_row zk_adopt_steps[ZK_STEPS] = {
    [ZK_FIND_NODES] = {NULL, found_nodes, ZK_MISSING, ZK_NO_EFFECT},
    [ZK_READ_NODES] = {NULL, read_nodes, ZK_MISSING, ZK_NO_EFFECT},
    [ZK_MISSING] = {missing, NULL, ZK_MISSING, ZK_NO_EFFECT},
};
