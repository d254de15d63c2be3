/* Makes the nodes of an owner: two for each KEY as a writer, otherwise one. They have the names
 * that Curator would give them. */
#include "store/zookeeper/create.h"

#include <stdio.h>

#include "base/mem.h"

#define NAME_SIZE 128

/* Whether the nodes that are made for a key next hold the lock: they nest in one that does, or are
 * the lease of a semaphore, which takes the place of the one in its queue. */
static bool makes_holders(const struct zk_nodes *nodes)
{
    return nodes->nests || nodes->own[0];
}

/* Returns the words in the names of the own nodes of a key. */
static const char *const *words_of(const struct zk_store *store, const struct zk_nodes *nodes)
{
    static const char *const writer[] = {"lock-", "__WRIT__", NULL};
    static const char *const reader[] = {"__READ__", NULL};
    static const char *const place[] = {"lock-", NULL};
    static const char *const lease[] = {"lease-", NULL};

    switch (store->request.mode) {
    case LOCK_SHARED: return reader;
    case LOCK_LIMIT: return makes_holders(nodes) ? lease : place;
    default: return writer;
    }
}

/* Returns the path of the node that the own ones become children of; the branch is the key's. */
static const char *parent_of(const struct zk_store *store, const struct zk_nodes *nodes)
{
    return nodes
        ->branches[makes_holders(nodes) ? zk_holders_branch(store) : zk_queue_branch(store)];
}

/* An owner that nests in a holder has its number, and so is before all that wait. With a limit it
 * has a lease at once, whose number says nothing. The names are as Curator makes them. */
void zk_add_creations(struct zk_store *store, struct zk_nodes *nodes)
{
    const char *const *words = words_of(store, nodes);
    const char *parent = parent_of(store, nodes);
    char name[NAME_SIZE];
    bool has_number = nodes->nests && !zk_is_limited(store); /* that of the holder */

    zk_print_data(store, nodes);
    if (nodes->nests) {
        /* Each ancestor whose node is noted must be there still, the holder among them: a client
         * that waited for one that has gone may hold the lock. */
        for (size_t i = 0; i < OWNER_DEPTH; i++)
            if (nodes->ancestors[i])
                zk_multi_change(store->batch, OP_CHECK, nodes->ancestors[i], NULL);
    }
    for (; *words; words++) {
        snprintf(name, sizeof name, has_number ? "_c_%s-%s%010d" : "_c_%s-%s",
                 zk_owner_uuid(store->owner), *words, (int)nodes->number);
        char *path = zk_path_join(parent, name);
        zk_multi_create(store->batch, has_number ? ZK_EPHEMERAL : ZK_EPHEMERAL_SEQUENTIAL, path,
                        nodes->data, store->closed);
        free(path);
    }
}

/* Reads the next result of a transaction that has created a node, which must be one below "parent";
 * its path replaces *node. False if there is none, or the reply is damaged. */
static bool next_created(struct jute_in *in, const char *parent, char **node)
{
    size_t length = strlen(parent);
    struct zk_result result;

    do {
        if (!zk_next_result(in, &result))
            return false;
    } while (result.path.size == 0);
    if (result.path.size <= length + 1 || result.path.size >= length + NAME_SIZE ||
        memcmp(result.path.bytes, parent, length) != 0 || result.path.bytes[length] != '/')
        return false;
    zk_set_text(node, mem_checked(strndup(result.path.bytes, result.path.size)));
    return true;
}

/* Notes what was created: of each key that has no lease yet, its nodes. False: the reply is
 * damaged. */
static bool note_created(struct zk_store *store, const struct zk_reply *reply)
{
    struct jute_in in = reply->body;
    bool sound = reply->zxid > 0;

    for (size_t i = 0; sound && i < store->key_count; i++) {
        struct zk_nodes *nodes = &store->nodes[i];
        const char *const *words = words_of(store, nodes), *parent = parent_of(store, nodes);
        if (nodes->leased)
            continue;
        for (size_t j = 0; sound && words[j]; j++)
            sound = next_created(&in, parent, &nodes->own[j]);
        nodes->leased = zk_is_limited(store) && nodes->nests;
        if (!nodes->nests)
            nodes->fence = (uint64_t)reply->zxid;
    }
    return sound;
}

enum zk_creation zk_take_created(struct zk_store *store, const struct zk_reply *reply)
{
    int error = zk_multi_error(reply, NULL);

    if (error == ZK_NO_NODE)
        return ZK_LACKS_NODE;
    if (error == ZK_OK && !note_created(store, reply)) {
        store->place = ZK_MAY_HAVE_PLACE;
        error = ZK_MARSHALLING;
    }
    if (error != ZK_OK) {
        zk_tell_error(store, error);
        return ZK_NOT_CREATED;
    }
    store->place = ZK_HAS_PLACE;
    store->from = store->session->opened;
    return ZK_CREATED;
}
