/* Leaving: the own nodes are deleted, and then the session is closed.
 *
 * A request may be executed long after it was given up, or after its sender has died, and the next
 * agent of the same owner has taken the session over with its nodes. It must not undo what that one
 * has:
 *
 *   request      | arrives when the session is       | what stops it
 *   -------------|-----------------------------------|-------------------------------------------
 *   any write    | open on a later connection: to    | the leader refuses it: the session has
 *                | another server                    | moved
 *                | to the same server                | that has closed the earlier connection; what
 *                |                                   | it had read is executed before the first
 *                |                                   | write on the later one, which is answered
 *                |                                   | before anything counts
 *   creation     | nobody's: its sender has died,    | nothing: the node is there until the session
 *                | and the next agent found no node  | ends. It is not in its own owner's way, but
 *                |                                   | where it nests: it has the name of the next
 *                |                                   | agent's node, which asks until it is gone
 *   opening      | open on a later connection        | nothing: the session moves; its next write
 *                |                                   | is refused, and it is opened again
 *   closing      | open on a later connection        | nothing. So it is sent only when the session
 *                |                                   | has no node, and nothing under way can make
 *                |                                   | one: no agent takes over such a session
 *
 * The latter is known when the deletion of all own nodes is answered. Where a request that makes or
 * deletes nodes was not answered, its connection has ended. FIND the own nodes then, over a new one
 * and behind a write, so that it has been executed or is refused; READ whose session's they are,
 * and DELETE them. Only an agent that was told to end, so that no other one acquires, closes its
 * session as it is (release_nowait). */
#include "store/zookeeper/leave.h"

#include <stdio.h>

#include "base/mem.h"

/* In the order of the steps. */
static zk_hear on_deleted, on_found, read_found, deleted_found;

static void find_own_nodes(struct zk_store *store);

/* -- the known ones ---------------------------------------------------------------------------- */

void zk_delete_own(struct zk_store *store)
{
    zk_multi(store->batch);
    for (size_t i = 0; i < store->key_count; i++)
        for (size_t j = 0; j < NODES_MAX && store->nodes[i].own[j]; j++)
            zk_multi_change(store->batch, OP_DELETE, store->nodes[i].own[j], NULL);
    zk_multi_end(store->batch);
}

/* Returns the index of the key that the operation of that index in zk_delete_own()'s transaction is
 * about. */
static size_t key_of_operation(const struct zk_store *store, size_t index)
{
    for (size_t i = 0; i < store->key_count; i++)
        for (size_t j = 0; j < NODES_MAX && store->nodes[i].own[j]; j++)
            if (index-- == 0)
                return i;
    return 0;
}

/* No node of the owner is left: the step that waited for this follows. */
static void have_left(struct zk_store *store)
{
    store->place = ZK_NO_PLACE;
    store->left(store);
}

/* Takes the reply to zk_delete_own(): the own nodes are deleted, all or none. If one of them was
 * not there, looks which are. */
static void on_deleted(struct zk_store *store, const struct zk_reply *replies)
{
    size_t index = 0;
    int error = zk_multi_error(&replies[0], &index);

    if (error == ZK_OK) {
        have_left(store);
    } else if (error == ZK_NO_NODE) {
        store->place = ZK_MAY_HAVE_PLACE;
        store->missing = 1 + key_of_operation(store, index); /* 0: none */
        find_own_nodes(store);
    } else {
        zk_tell_error(store, error);
    }
}

/* -- all that there are ------------------------------------------------------------------------ */

/* Asks for all nodes of the keys, behind a write, which changes nothing: the answer then knows of
 * all that the owner has sent before. */
static void find_own_nodes(struct zk_store *store)
{
    zk_multi(store->batch);
    zk_multi_change(store->batch, OP_CHECK, "/", NULL);
    zk_multi_end(store->batch);
    for (size_t i = 0; i < store->key_count; i++)
        zk_ask_branches(store, store->nodes[i].branches);
    zk_send(store, on_found, ZK_NO_EFFECT);
}

void zk_forget_found(struct zk_store *store)
{
    for (size_t i = 0; i < store->found_count; i++)
        free(store->found[i]);
    free(store->found);
    store->found = NULL;
    store->found_count = 0;
}

/* Takes the lists of find_own_nodes(): notes the owner's nodes, and asks for their data. */
static void on_found(struct zk_store *store, const struct zk_reply *replies)
{
    int error = zk_multi_error(replies++, NULL);

    zk_forget_found(store);
    /* The write comes behind all earlier requests, also where the user is refused it. */
    error = error == ZK_NO_AUTH ? ZK_OK : error;
    for (size_t i = 0; i < store->key_count; i++) {
        for (enum zk_branch branch = 0; branch < ZK_BRANCHES && error == ZK_OK; branch++) {
            const char *path = store->nodes[i].branches[branch];
            const struct zk_contender *one = NULL;
            struct zk_queue queue;
            error = zk_queue_read(replies++, branch, &queue);
            while ((one = zk_queue_next_of(&queue, zk_owner_uuid(store->owner), one))) {
                *MEM_APPEND(store->found, store->found_count) = zk_path_join(path, one->name);
                zk_get_child(store->batch, path, one->name);
            }
            zk_queue_free(&queue);
        }
    }
    if (error == ZK_OK) {
        zk_ask(store, read_found);
    } else {
        zk_session_drop_batch(store->session);
        zk_tell_error(store, error);
    }
}

/* The data has been read of the owner's nodes (on_found()): deletes those that this session has
 * made. Those of another session go with that. */
static void read_found(struct zk_store *store, const struct zk_reply *replies)
{
    bool any = false;

    zk_multi(store->batch);
    for (size_t i = 0; i < store->found_count; i++) {
        struct jute_text text;
        struct zk_stat stat;
        if (zk_read_data(&replies[i], &text, &stat) != ZK_OK ||
            stat.session != store->session->identity.id)
            continue;
        zk_multi_change(store->batch, OP_DELETE, store->found[i], NULL);
        any = true;
    }
    zk_multi_end(store->batch);
    if (any) {
        zk_send(store, deleted_found, ZK_NO_EFFECT);
    } else {
        zk_session_drop_batch(store->session);
        have_left(store);
    }
}

/* The nodes that were found are deleted, all or none; if one has just gone, the others are looked
 * for again. */
static void deleted_found(struct zk_store *store, const struct zk_reply *replies)
{
    int error = zk_multi_error(&replies[0], NULL);

    if (error == ZK_OK)
        have_left(store);
    else if (error == ZK_NO_NODE) /* one has just gone */
        find_own_nodes(store);
    else
        zk_tell_error(store, error);
}

/* -- from outside ------------------------------------------------------------------------------ */

void zk_leave(struct zk_store *store, zk_step *left)
{
    store->left = left;
    if (store->place == ZK_HAS_PLACE) {
        zk_delete_own(store);
        zk_send(store, on_deleted, ZK_DELETES);
    } else {
        store->place = ZK_MAY_HAVE_PLACE;
        find_own_nodes(store);
    }
}

void zk_close_session(struct zk_store *store)
{
    zk_close(store->batch);
    zk_session_send_nowait(store->session);
    zk_forget(store);
}
