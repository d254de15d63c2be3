/* A place in the queues, and its turn.
 *
 * BEGIN a session; FIND and READ ANCESTORS that hold the locks; CREATE the own nodes, and MAKE the
 * LOCKS' nodes first where they are missing; LOOK at the queues. Where another client is in the
 * way, DESCRIBE it and refuse. With a limit, a lease comes next (semaphore.c). Then, in a holder
 * that this owner nests in, FIND and READ the NESTED ones; WATCH the own nodes, and grant. */
#include "store/zookeeper/acquire.h"

#include <stdio.h>

#include "base/mem.h"
#include "store/zookeeper/create.h"
#include "store/zookeeper/leave.h"
#include "store/zookeeper/refuse.h"
#include "store/zookeeper/semaphore.h"

/* So many heartbeats ask whether the nodes in the way are still there; the next one reads the whole
 * queue, for the position. */
#define HEARTBEATS 9

/* In the order of the steps. */
static zk_hear on_begun, found_ancestors, take_ancestors, on_created, made_locks, take_queues,
    on_described, found_nested, take_nested, on_watched, heard_beat, on_retaken;

static void find_ancestors(struct zk_store *store);

/* -- a place in the queues --------------------------------------------------------------------- */

/* Creates the own nodes of all keys or none, with one zxid: an owner that is before this one in one
 * queue that both share is before it in all of them. Lists the queues behind that. */
static void create_nodes(struct zk_store *store)
{
    zk_multi(store->batch);
    for (size_t i = 0; i < store->key_count; i++)
        zk_add_creations(store, &store->nodes[i]);
    zk_multi_end(store->batch);
    zk_ask_queues(store, zk_queue_branch(store));
    store->place = ZK_MAY_HAVE_PLACE;
    zk_send(store, on_created, ZK_CREATES);
}

/* Returns how many branches of each key the lock needs: a semaphore also those of leases and of
 * places. */
static size_t branches_of(const struct zk_store *store)
{
    return zk_is_limited(store) ? ZK_BRANCHES : 1;
}

/* Makes the folders and the locks' nodes, each from the top: one that is there already does no
 * harm. The servers delete these nodes some time after the last child has gone. */
static void make_locks(struct zk_store *store)
{
    char *folder = mem_strdup(store->folder);

    for (char *slash = folder; *slash; *slash = '/') {
        slash += 1 + strcspn(slash + 1, "/");
        char kept = *slash;
        *slash = '\0';
        zk_container(store->batch, folder, store->closed);
        if (!kept)
            break;
    }
    for (size_t i = 0; i < store->key_count; i++)
        for (size_t j = 0; j < branches_of(store); j++)
            zk_container(store->batch, store->nodes[i].branches[j], store->closed);
    free(folder);
    zk_send(store, made_locks, ZK_NO_EFFECT);
}

/* Takes the replies to create_nodes(): the own nodes are made, and the queues were listed behind
 * that; or a parent of the nodes is missing, and is made first. */
static void on_created(struct zk_store *store, const struct zk_reply *replies)
{
    store->place = ZK_NO_PLACE;
    switch (zk_take_created(store, replies)) {
    case ZK_CREATED: take_queues(store, replies + 1); break;
    case ZK_LACKS_NODE: make_locks(store); break;
    case ZK_NOT_CREATED: break; /* the operation has ended */
    }
}

/* Takes the replies to make_locks(): the folders, one for each '/' of the path, and then the own
 * keys' branches have been made, or were there. Begins once more. */
static void made_locks(struct zk_store *store, const struct zk_reply *replies)
{
    const char *slashes = store->folder;
    size_t own = store->key_count * branches_of(store), count = own; /* replies to the branches */

    for (; *slashes; slashes++)
        count += *slashes == '/';
    for (size_t i = 0; i < count; i++) {
        if (replies[i].error == ZK_OK || replies[i].error == ZK_NODE_EXISTS)
            continue;
        /* A user who may not create a node is told so also where the node is there already. */
        if (replies[i].error == ZK_NO_AUTH && i + own < count)
            continue;
        zk_tell_error(store, replies[i].error);
        return;
    }
    find_ancestors(store);
}

/* -- nesting ----------------------------------------------------------------------------------- */

/* Notes the nodes of all ancestors of the owner (nodes->ancestors), and which of them is "holder";
 * asks what is in them. Returns whether the nearest one that holds the lock only reads. */
static bool ask_ancestors(struct zk_store *store, struct zk_nodes *nodes,
                          const struct zk_queue *queue, const struct zk_contender *holder)
{
    const char *at = store->owner, *dot;
    char uuid[OWNER_UUID_SIZE];
    bool reads = false;

    for (size_t i = 0; i < OWNER_DEPTH && (dot = strchr(at, '.')); i++, at = dot + 1) {
        snprintf(uuid, sizeof uuid, "%.*s", (int)(dot - at), at);
        const struct zk_contender *ancestor = zk_queue_find(queue, uuid);
        if (!ancestor)
            continue;
        if (ancestor == holder)
            nodes->holder = i;
        nodes->ancestors[i] =
            zk_path_join(nodes->branches[zk_holders_branch(store)], ancestor->name);
        zk_query(store->batch, OP_GET_DATA, nodes->ancestors[i], ZK_NO_WATCH);
        reads = ancestor->holds ? ancestor->reader : reads;
    }
    return reads;
}

/* An owner that nests takes the number of an ancestor that holds the lock: so lists the holders
 * first. Any other one makes its nodes. */
static void find_ancestors(struct zk_store *store)
{
    if (!strchr(store->owner, '.')) {
        create_nodes(store);
        return;
    }
    zk_ask_queues(store, zk_holders_branch(store));
    zk_send(store, found_ancestors, ZK_NO_EFFECT);
}

/* The holders' branches have been listed: asks for the ancestors among them, or refuses where this
 * owner cannot nest in one. */
static void found_ancestors(struct zk_store *store, const struct zk_reply *replies)
{
    const struct acquire_request *request = &store->request;
    struct zk_queue queues[LOCK_KEYS_MAX];
    const char *misfit = NULL;
    size_t key = 0; /* of the misfit: the last one that is held by an ancestor */

    if (!zk_read_queues(store, replies, zk_holders_branch(store), queues))
        return;
    for (size_t i = 0; i < store->key_count; i++) {
        struct zk_nodes *nodes = &store->nodes[i];
        const struct zk_contender *one = zk_queue_ancestor(&queues[i], store->owner);
        nodes->nests = one;
        zk_clear_ancestors(nodes);
        if (!one)
            continue;
        key = i;
        nodes->number = one->number;
        bool reads = ask_ancestors(store, nodes, &queues[i], one);
        if (request->no_nesting)
            misfit = "it is held by an ancestor of this process, and nesting was ruled out";
        else if (reads && request->mode == LOCK_EXCLUSIVE)
            misfit = "an ancestor of this process holds it for reading, and cannot make way";
    }
    zk_free_queues(queues);
    if (misfit) {
        zk_session_drop_batch(store->session);
        zk_refuse(store, CAUSE_MISFIT, key, misfit);
    } else {
        zk_ask(store, take_ancestors);
    }
}

/* Reads what ask_ancestors() has asked for: notes since when the ancestors have their nodes, and
 * puts what is in the holder's into *holder. Moves *replies behind that. Returns ZK_OK, or an error
 * of the server's. */
static int read_ancestors(struct zk_nodes *nodes, const struct zk_reply **replies,
                          struct zk_node_data *holder)
{
    int error = ZK_OK;

    for (size_t i = 0; i < OWNER_DEPTH && error == ZK_OK; i++) {
        struct jute_text text;
        struct zk_stat stat = {0};
        if (!nodes->ancestors[i])
            continue;
        error = zk_read_data((*replies)++, &text, &stat);
        nodes->ancestors_since[i] = stat.czxid;
        if (error == ZK_OK && i == nodes->holder && !zk_node_data_parse(text, holder))
            *holder = (struct zk_node_data){0};
        if (error == ZK_NO_NODE) { /* it has just gone */
            zk_set_text(&nodes->ancestors[i], NULL);
            error = ZK_OK;
        }
    }
    return error;
}

/* Takes what is in the ancestors' nodes, and makes the own ones. The fencing token and the slot of
 * an owner that nests are those of its outermost ancestor, as its own node is younger than those of
 * the waiters. */
static void take_ancestors(struct zk_store *store, const struct zk_reply *replies)
{
    for (size_t i = 0; i < store->key_count; i++) {
        struct zk_nodes *nodes = &store->nodes[i];
        struct zk_node_data holder;
        if (!nodes->nests)
            continue;
        int error = read_ancestors(nodes, &replies, &holder);
        int64_t since = nodes->ancestors_since[nodes->holder];
        if (error != ZK_OK) {
            zk_tell_error(store, error);
            return;
        }
        if (!nodes->ancestors[nodes->holder]) {
            nodes->nests = false; /* it has just gone: to the end of the queue */
            continue;
        }
        if (zk_is_limited(store) && holder.limit != store->request.limit) {
            zk_begin_misfit(store, i, holder.limit);
            zk_refuse_again(store);
            return;
        }
        nodes->slot = holder.slot;
        nodes->fence = holder.fence ? holder.fence : since > 0 ? (uint64_t)since : 1;
    }
    create_nodes(store);
}

/* -- refused ----------------------------------------------------------------------------------- */

/* Reads the replies about what is in the way, and then about the holder, whom the refusal names;
 * and refuses. If what was in the way has gone, reads the queues again instead. */
static void on_described(struct zk_store *store, const struct zk_reply *replies)
{
    struct lock_party *holder = &store->refusal.party;
    struct answer *refusal = &store->refusal.answer;
    struct jute_text text;
    struct zk_stat stat;

    if (!zk_is_in_the_way(store, &replies)) {
        zk_check_turn(store);
        return;
    }
    if (refusal->refused.holders > 0) {
        struct zk_contender one = {.reader = holder->mode == LOCK_SHARED};
        snprintf(one.uuid, sizeof one.uuid, "%.36s", holder->owner);
        int error = zk_read_data(replies, &text, &stat);
        if (error == ZK_OK)
            zk_read_party(&one, text, &stat, clock_wall() / NS_PER_MS, holder);
        else if (error == ZK_NO_NODE)
            *holder->owner = '\0'; /* it has just gone */
        else
            holder->unread = true;
        refusal->refused.left_ms = holder->left_ms;
        refusal->refused.holder = *holder->owner ? holder : NULL;
    }
    store->refused = loop_now(store->loop);
    if (store->request.queue)
        zk_refuse_again(store);
    else
        zk_refuse_and_leave(store);
}

/* Begins the refusal of a plain lock, and asks what is in the oldest holder's node, for
 * on_described(). queue: that of the key. */
static void note_refusal(struct zk_store *store, size_t key, const struct zk_queue *queue)
{
    const struct zk_contender *oldest = zk_queue_oldest(queue);
    struct answer *refusal = zk_begin_refusal(store, CAUSE_HELD, key);

    refusal->refused.holders = (int64_t)zk_queue_holders(queue);
    refusal->refused.position = store->nodes[key].position;
    if (!oldest)
        return;
    strcpy(store->refusal.party.owner, oldest->uuid);
    zk_note_oldest(store, key, ZK_PLAIN, oldest);
    store->refusal.party.mode = oldest->reader ? LOCK_SHARED : LOCK_EXCLUSIVE;
    zk_get_child(store->batch, store->nodes[key].branches[ZK_PLAIN], oldest->name);
}

/* Own nodes have gone: deletes the others, and takes new places behind all other owners, which the
 * answer will tell (requeued). */
static void lose_places(struct zk_store *store)
{
    zk_session_drop_batch(store->session);
    store->requeued = true;
    store->place = ZK_MAY_HAVE_PLACE;
    zk_start_anew(store);
}

/* -- those that nest in the same holder -------------------------------------------------------- */

/* Whether a node of the holders' branch may nest in the same holder: in a lock it has that one's
 * number, and in a semaphore any. */
static bool may_nest(const struct zk_store *store, const struct zk_nodes *nodes,
                     const struct zk_contender *one)
{
    return one->first_of_party && (one->number == nodes->number || zk_is_limited(store));
}

/* Reads the nodes that may nest in the same holder of a key, and moves *replies behind what is in
 * them. Returns how many are there; *gone: one has gone since they were listed. */
static size_t read_nested(const struct zk_store *store, size_t key, const struct zk_reply **replies,
                          struct zk_nested *all, bool *gone)
{
    const struct zk_queue *queue = &store->holders[key];
    size_t count = 0;

    for (size_t i = 0; i < queue->count; i++) {
        struct zk_nested *one = &all[count];
        struct jute_text text;
        struct zk_stat stat;
        if (!may_nest(store, &store->nodes[key], &queue->all[i]))
            continue;
        int error = zk_read_data((*replies)++, &text, &stat);
        *gone |= error == ZK_NO_NODE;
        if (error != ZK_OK || !zk_node_data_parse(text, &one->data))
            continue;
        one->since = stat.czxid;
        one->name = queue->all[i].name;
        count++;
    }
    return count;
}

/* Notes which of those that nest in the same holder of a key is in the way (nodes->in_the_way), and
 * begins the refusal, if any is. False if the own node is not there. replies, gone: as of
 * read_nested(). */
static bool judge_nested(struct zk_store *store, size_t key, const struct zk_reply **replies,
                         bool *gone)
{
    struct zk_nodes *nodes = &store->nodes[key];
    struct zk_nested *all = mem_zeroed((store->holders[key].count + 1) * sizeof *all);
    size_t count = read_nested(store, key, replies, all, gone), own = 0;

    while (own < count && strcmp(all[own].data.owner, store->owner) != 0)
        own++;
    const struct zk_nested *other = own < count ? zk_nested_in_the_way(all, count, own) : NULL;
    zk_set_text(&nodes->in_the_way,
                other ? zk_path_join(nodes->branches[zk_holders_branch(store)], other->name)
                      : NULL);
    if (other) {
        struct answer *refusal = zk_begin_refusal(store, CAUSE_HELD, key);
        refusal->refused.holders = refusal->refused.position = 1;
        store->refusal.party.mode = other->data.mode == LOCK_SHARED ? LOCK_SHARED : LOCK_EXCLUSIVE;
        strcpy(store->refusal.party.owner, zk_owner_uuid(other->data.owner));
    }
    free(all);
    return own < count;
}

/* Owners that nest in the same holders have been read: refuses where one of them is in the way, and
 * watches its node; where none is, watches the own nodes and grants. */
static void take_nested(struct zk_store *store, const struct zk_reply *replies)
{
    const char *in_the_way = NULL;
    bool lost = false, gone = false;

    for (size_t i = 0; i < store->key_count && !in_the_way; i++) {
        if (store->nodes[i].nests)
            lost |= !judge_nested(store, i, &replies, &gone);
        in_the_way = store->nodes[i].in_the_way;
    }
    if (gone) { /* an owner within that one may have come meanwhile, and hold the lock */
        zk_find_nested(store);
    } else if (lost) {
        lose_places(store);
    } else if (in_the_way) {
        zk_watch_in_the_way(store);
        zk_query(store->batch, OP_GET_DATA, in_the_way, ZK_NO_WATCH);
        zk_send(store, on_described, ZK_NO_EFFECT);
    } else {
        zk_watch_own(store);
        zk_send(store, on_watched, ZK_NO_EFFECT);
    }
}

/* Lists the holders' branch of each key where the owner nests: others that nest in the same holder
 * may be in the way. */
void zk_find_nested(struct zk_store *store)
{
    for (size_t i = 0; i < store->key_count; i++)
        if (store->nodes[i].nests)
            zk_query(store->batch, OP_GET_CHILDREN,
                     store->nodes[i].branches[zk_holders_branch(store)], ZK_NO_WATCH);
    zk_ask(store, found_nested);
}

/* The holders' branches have been listed: reads what may nest in the same holders. */
static void found_nested(struct zk_store *store, const struct zk_reply *replies)
{
    zk_free_queues(store->holders);
    for (size_t i = 0; i < store->key_count; i++) {
        const struct zk_nodes *nodes = &store->nodes[i];
        struct zk_queue *queue = &store->holders[i];
        if (!nodes->nests)
            continue;
        int error = replies->error ? replies->error
                                   : zk_queue_read(replies, zk_holders_branch(store), queue);
        if (error != ZK_OK) {
            zk_session_drop_batch(store->session);
            zk_tell_error(store, error);
            return;
        }
        for (size_t j = 0; j < queue->count; j++)
            if (may_nest(store, nodes, &queue->all[j]))
                zk_get_child(store->batch, nodes->branches[zk_holders_branch(store)],
                             queue->all[j].name);
        replies++;
    }
    zk_ask(store, take_nested);
}

/* -- the verdict ------------------------------------------------------------------------------- */

/* The own nodes are watched from now on. If all are there, the lock is granted: any that goes later
 * is told of. */
static void on_watched(struct zk_store *store, const struct zk_reply *replies)
{
    if (zk_first_missing(store, replies) == store->key_count)
        zk_grant(store);
    else if (zk_is_limited(store))
        lose_places(store);
    else
        zk_check_turn(store);
}

/* Notes what is in the way of a key's place, if anything is, and the position: of the place in the
 * queue; of a request that does not wait, how many others wait. False if the own node is not
 * there. */
static bool judge_place(struct zk_store *store, struct zk_nodes *nodes,
                        const struct zk_queue *queue)
{
    const struct zk_contender *own = zk_queue_named(queue, strrchr(nodes->own[0], '/') + 1);
    const struct zk_contender *other = own ? zk_queue_in_the_way(queue, own) : NULL;

    zk_set_text(&nodes->in_the_way,
                other ? zk_path_join(nodes->branches[zk_queue_branch(store)], other->name) : NULL);
    /* The own place counts only where the owner stays in the queue. */
    nodes->position = store->request.queue ? (int64_t)zk_queue_position(queue, own)
                                           : (int64_t)zk_queue_position(queue, NULL) - 1;
    return own;
}

/* Judges the places of those keys that have no lease yet: with all places there, looks for room.
 * Where each key has a lease, looks for others that nest. */
static void judge_semaphore(struct zk_store *store, const struct zk_queue queues[LOCK_KEYS_MAX])
{
    bool lost = false, leased = true;

    for (size_t i = 0; i < store->key_count; i++) {
        struct zk_nodes *nodes = &store->nodes[i];
        if (nodes->leased)
            continue;
        leased = false;
        lost |= !judge_place(store, nodes, &queues[i]);
    }
    if (lost)
        lose_places(store);
    else if (leased)
        zk_find_nested(store);
    else
        zk_list_leases(store);
}

/* Judges all places by the queues that were read, and refuses for the first key where another owner
 * is in the way. With none in the way, rules out semaphores of that name, or looks for others that
 * nest. */
static void judge_queues(struct zk_store *store, const struct zk_queue queues[LOCK_KEYS_MAX])
{
    size_t refused = store->key_count;
    bool lost = false, semaphores = false;

    for (size_t i = store->key_count; i-- > 0;) {
        lost |= !judge_place(store, &store->nodes[i], &queues[i]);
        semaphores |= queues[i].semaphore;
        if (store->nodes[i].in_the_way)
            refused = i;
    }
    if (lost) {
        lose_places(store);
    } else if (refused < store->key_count) {
        zk_watch_in_the_way(store);
        note_refusal(store, refused, &queues[refused]);
        zk_ask(store, on_described);
    } else if (semaphores) {
        zk_rule_out(store);
    } else {
        zk_find_nested(store);
    }
}

/* Reads the queues, in which the own nodes are, and judges the places there. */
static void take_queues(struct zk_store *store, const struct zk_reply *replies)
{
    struct zk_queue queues[LOCK_KEYS_MAX];

    if (!zk_read_queues(store, replies, zk_queue_branch(store), queues))
        return;
    store->heartbeats = 0;
    if (zk_is_limited(store))
        judge_semaphore(store, queues);
    else
        judge_queues(store, queues);
    zk_free_queues(queues);
}

/* Reads the queues anew, to judge the own places. */
void zk_check_turn(struct zk_store *store)
{
    zk_ask_queues(store, zk_queue_branch(store));
    zk_send(store, take_queues, ZK_NO_EFFECT);
}

/* -- waiting ----------------------------------------------------------------------------------- */

/* Returns the node of the holder that the latest refusal has named; NULL: it named none. */
static const char *oldest_of(const struct zk_store *store)
{
    return store->nodes[store->refusal.answer.refused.key].oldest;
}

/* The heartbeat of a waiter: asks whether the nodes in its way, its own and the named holder's are
 * there still, which mostly is enough: a list of some thousand waiters is long. */
static void ask_for_changes(struct zk_store *store)
{
    const char *oldest = oldest_of(store);

    zk_watch_in_the_way(store);
    zk_query(store->batch, OP_EXISTS, store->nodes[0].own[0], ZK_NO_WATCH);
    if (oldest)
        zk_query(store->batch, OP_EXISTS, oldest, ZK_NO_WATCH);
    zk_send(store, heard_beat, ZK_NO_EFFECT);
}

/* If nothing has changed, refuses again with the latest refusal; otherwise reads the queues. */
static void heard_beat(struct zk_store *store, const struct zk_reply *replies)
{
    if (zk_is_in_the_way(store, &replies) && replies[0].error == ZK_OK &&
        (!oldest_of(store) || replies[1].error == ZK_OK))
        zk_refuse_again(store);
    else
        zk_check_turn(store);
}

/* -- beginning, or continuing ------------------------------------------------------------------ */

/* A session that is not there is begun first: its password belongs into the nodes. */
void zk_begin(struct zk_store *store)
{
    const struct acquire_request *request = &store->request;

    zk_make_nodes(store);
    snprintf(store->owner, sizeof store->owner, "%s", request->owner);
    zk_wish(store, request->lease);
    if (store->session->identity.id)
        find_ancestors(store);
    else
        zk_send(store, on_begun, ZK_NO_EFFECT);
}

/* The session is there, with the password that the nodes will have. */
static void on_begun(struct zk_store *store, const struct zk_reply *replies)
{
    (void)replies;
    find_ancestors(store);
}

/* Deletes whatever own nodes there are, and takes new places. */
void zk_start_anew(struct zk_store *store)
{
    zk_leave(store, zk_begin);
}

void zk_touch_own(struct zk_store *store)
{
    zk_write_own(store);
    zk_send(store, on_retaken, ZK_NO_EFFECT);
}

/* Takes the answer to zk_touch_own(): the own nodes have been written again, if they are there. */
static void on_retaken(struct zk_store *store, const struct zk_reply *replies)
{
    int error = zk_multi_error(&replies[0], NULL);
    bool leased = zk_is_limited(store), nests = true;

    if (error == ZK_NO_NODE) {
        lose_places(store);
    } else if (error != ZK_OK) {
        zk_tell_error(store, error);
    } else {
        store->from = store->session->opened;
        for (size_t i = 0; i < store->key_count; i++) {
            leased &= store->nodes[i].leased;
            nests &= store->nodes[i].nests;
        }
        /* There is a lease for each place of a semaphore, and not only nested ones. */
        if (leased && !nests)
            zk_recount(store);
        else
            zk_check_turn(store);
    }
}

/* Whether the latest refusal still holds, as far as is known: its node is in the way. With nothing
 * in the way, the lock was found free, and the answer was lost or not confirmed. */
static bool refusal_holds(const struct zk_store *store)
{
    bool behind = false;

    for (size_t i = 0; i < store->key_count; i++)
        behind |= store->nodes[i].in_the_way != NULL;
    /* The first one in the queue of a semaphore waits for room, not for a node. */
    return behind && store->refusal.answer.cause == CAUSE_HELD && !zk_semaphore_leads(store);
}

void zk_acquire(struct zk_store *store)
{
    if (!zk_is_own(store))
        zk_forget(store);
    switch (store->place) {
    case ZK_NO_PLACE: zk_begin(store); break;
    case ZK_MAY_HAVE_PLACE: zk_start_anew(store); break;
    case ZK_HAS_PLACE:
        /* A waiter need mostly ask only if its refusal still holds. */
        if (!store->from.ns)
            zk_touch_own(store);
        else if (store->request.queue && refusal_holds(store) && store->heartbeats++ < HEARTBEATS)
            ask_for_changes(store);
        else
            zk_check_turn(store);
    }
}
