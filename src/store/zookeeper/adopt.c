/* The nodes of an owner, and their session. */
#include "store/zookeeper/adopt.h"

#include <stdio.h>

#include "base/mem.h"
#include "store/zookeeper/path.h"

/* Where the owner may have nodes: a holder or a waiter below KEY; the holder of a semaphore below
 * KEY/leases, and a waiter below KEY/locks. */
enum { PLACES = 3 };

static char *parent_of(const struct spot *spot, size_t place)
{
    return place == 0   ? mem_strdup(spot->key)
           : place == 1 ? mem_strdup(spot->leases)
                        : zk_path_join(spot->key, LOCKS);
}

/* Notes the owner's nodes among these. */
static void note_own(struct zk_store *store, struct spot *spot, const struct queue *queue,
                     const char *parent)
{
    const char *uuid = queue_uuid(zk_request_of(store)->owner);
    const struct contender *one = NULL;

    for (size_t i = 0; i < NODES_MAX && (one = queue_next_of(queue, uuid, one)); i++) {
        zk_set_text(&spot->nodes[i], zk_path_join(parent, one->name));
        spot->number = one->number;
    }
}

/* Reads the children at each place of the spot. False, and told, if they cannot be read. */
static bool find_nodes(struct zk_store *store, struct spot *spot, const struct zk_reply *replies)
{
    for (size_t place = 0; place < PLACES && !spot->nodes[0]; place++) {
        struct queue queue;
        if (replies[place].error == ZK_NO_NODE)
            continue;
        if (replies[place].error != ZK_OK || !queue_read(&replies[place], &queue)) {
            zk_tell_error(store, replies[place].error ? replies[place].error : ZK_MARSHALLING);
            return false;
        }
        char *parent = parent_of(spot, place);
        note_own(store, spot, &queue, parent);
        free(parent);
        queue_free(&queue);
    }
    return true;
}

/* Takes what is in one node of the spot, and its session where none is known yet. A node of another
 * session is a request's that came late: it goes with that session. Returns false if the node is
 * not the owner's. */
static bool take_node(struct zk_store *store, struct spot *spot, char **node,
                      const struct zk_reply *reply, struct zk_identity *identity)
{
    struct node_data data;
    struct jute_text text;
    struct zk_stat stat;

    if (reply->error != ZK_OK || !zk_read_data(reply, &text, &stat) ||
        !node_data_parse(text, &data) || strcmp(data.owner, zk_request_of(store)->owner) != 0)
        return false;
    if (identity->id && identity->id != stat.session) {
        zk_set_text(node, NULL);
        return node != &spot->nodes[0];
    }
    identity->id = stat.session;
    memcpy(identity->password, data.password, sizeof identity->password);
    if (node != &spot->nodes[0])
        return true;
    spot->slot = data.slot;
    spot->leased = data.slot > 0;
    spot->nested = data.fence > 0;
    spot->fence = data.fence ? data.fence : (uint64_t)stat.czxid;
    zk_set_text(&spot->data, mem_checked(strndup(text.bytes, text.size)));
    if (!zk_request_of(store)->lease)
        zk_wish(store, data.lease);
    return true;
}

static void read_nodes(struct zk_store *store, const struct zk_reply *replies)
{
    struct zk_identity identity = {0};

    for (size_t i = 0; i < store->spot_count; i++) {
        struct spot *spot = &store->spots[i];
        for (size_t j = 0; j < NODES_MAX && spot->nodes[j]; j++) {
            if (take_node(store, spot, &spot->nodes[j], replies++, &identity))
                continue;
            zk_forget(store);
            store->absent = i;
            store->missing(store);
            return;
        }
    }
    zk_session_take(store->session, &identity);
    snprintf(store->owner, sizeof store->owner, "%s", zk_request_of(store)->owner);
    store->placed = true;
    store->adopted(store);
}

/* The session that the nodes were looked for in is closed. */
static void found_nodes(struct zk_store *store, const struct zk_reply *replies)
{
    for (size_t i = 0; i < store->spot_count; i++)
        if (!find_nodes(store, &store->spots[i], replies + PLACES * i))
            return;
    for (size_t i = 0; i < store->spot_count; i++) {
        const struct spot *spot = &store->spots[i];
        if (!spot->nodes[0]) {
            zk_session_drop_batch(store->session);
            store->absent = i;
            store->missing(store);
            return;
        }
        for (size_t j = 0; j < NODES_MAX && spot->nodes[j]; j++)
            zk_get(zk_batch_of(store), spot->nodes[j]);
    }
    zk_close(zk_batch_of(store));
    zk_ask(store, false, read_nodes);
}

static void expired(struct zk_store *store)
{
    zk_forget(store);
    store->missing(store);
}

void zk_adopt(struct zk_store *store, void (*adopted)(struct zk_store *store),
              void (*missing)(struct zk_store *store))
{
    zk_forget(store);
    zk_make_spots(store);
    zk_wish(store, zk_request_of(store)->lease);
    store->adopted = adopted;
    store->missing = missing;
    store->expired = expired;
    store->absent = 0;
    for (size_t i = 0; i < store->spot_count; i++) {
        for (size_t place = 0; place < PLACES; place++) {
            char *parent = parent_of(&store->spots[i], place);
            zk_children(zk_batch_of(store), parent, false);
            free(parent);
        }
    }
    zk_ask(store, false, found_nodes);
}
