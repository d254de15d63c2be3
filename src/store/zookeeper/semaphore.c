/* Semaphores: room for one more, a slot, and a lease.
 *
 * The places in the queues are known: LIST the LEASES, COUNT them, and CLAIM one for each key;
 * VERIFY the result where another program may have made one without the mutex. RECOUNT does that
 * for leases that a process claimed which has died. RULE OUT is for a plain lock of a key that has,
 * or had, a semaphore; it READs the LIMIT of one that is held, to refuse. */
#include "store/zookeeper/semaphore.h"

#include <stdio.h>

#include "base/mem.h"
#include "store/zookeeper/create.h"
#include "store/zookeeper/refuse.h"

/* An acquisition that does not wait, and finds room and others that are about to take a lease,
 * looks again for a second: they take milliseconds. */
#define LINGER_NS  (25 * NS_PER_MS)
#define LINGER_MAX 40

/* In the order of the steps. */
static zk_hear on_listed, on_counted, on_claimed, made_leases, take_leases, on_verified,
    found_semaphores, found_limit;

bool zk_semaphore_leads(const struct zk_store *store)
{
    bool leads = zk_is_limited(store);

    for (size_t i = 0; i < store->key_count; i++) /* a key with a lease needs no place any more */
        leads &= store->nodes[i].leased || !store->nodes[i].in_the_way;
    return leads;
}

/* -- reading ----------------------------------------------------------------------------------- */

/* Asks for the children of KEY/leases, and of KEY, which must not have any, of each key that has no
 * lease yet. */
static void ask_leases(struct zk_store *store, enum zk_watching watch)
{
    for (size_t i = 0; i < store->key_count; i++) {
        const struct zk_nodes *nodes = &store->nodes[i];
        if (nodes->leased)
            continue;
        zk_query(store->batch, OP_GET_CHILDREN, nodes->branches[ZK_LEASES], watch);
        zk_query(store->batch, OP_GET_CHILDREN, nodes->branches[ZK_PLAIN], ZK_NO_WATCH);
    }
}

/* Reads the replies to ask_leases() into store->holders. False, and the operation ends, if they
 * cannot be read, or if there is a plain lock, which is a refusal. */
static bool read_leases(struct zk_store *store, const struct zk_reply *replies)
{
    size_t plain = store->key_count; /* the first key with a plain lock; behind all: none */
    int error = ZK_OK;

    zk_free_queues(store->holders);
    for (size_t i = 0; i < store->key_count && error == ZK_OK; i++) {
        struct zk_queue others = {0};
        if (store->nodes[i].leased)
            continue;
        error = zk_queue_read(&replies[0], ZK_LEASES, &store->holders[i]);
        if (error == ZK_OK)
            error = zk_queue_read(&replies[1], ZK_PLAIN, &others);
        if (others.count > 0 && plain == store->key_count)
            plain = i;
        zk_queue_free(&others);
        replies += 2;
    }
    if (error != ZK_OK) {
        zk_tell_error(store, error);
    } else if (plain < store->key_count) {
        struct answer *refusal = zk_begin_refusal(store, CAUSE_MISFIT, plain);
        snprintf(refusal->text, sizeof refusal->text,
                 "it is held as a plain lock, not as a semaphore");
        zk_refuse_and_leave(store);
    }
    return error == ZK_OK && plain == store->key_count;
}

/* Asks what is in all leases that have been read (store->holders), of one key after the other.
 * hear: gets the replies; none if there are no leases. */
static void ask_data(struct zk_store *store, zk_hear *hear)
{
    for (size_t i = 0; i < store->key_count; i++)
        for (size_t j = 0; j < store->holders[i].count; j++)
            zk_get_child(store->batch, store->nodes[i].branches[ZK_LEASES],
                         store->holders[i].all[j].name);
    zk_ask(store, hear);
}

/* -- a lease ----------------------------------------------------------------------------------- */

/* Takes what is in all leases, after too many were counted. If the limit is exceeded, another
 * program took one meanwhile, and all is begun anew; otherwise the claim holds. */
static void on_verified(struct zk_store *store, const struct zk_reply *replies)
{
    bool over = false, gone = false;

    for (size_t i = 0; i < store->key_count; i++) {
        struct zk_room room = zk_leases_room(replies, store->holders[i].count);
        over |= room.taken > store->request.limit;
        gone |= room.gone;
        replies += store->holders[i].count;
    }
    store->requeued |= over;
    if (over)
        zk_continue(store, ZK_START_ANEW);
    else if (gone)
        zk_recount(store);
    else
        zk_continue(store, ZK_FIND_NESTED);
}

/* Reads the leases, among which the own ones are. If there are more than the limit, looks into
 * them; otherwise the claim holds. */
static void take_leases(struct zk_store *store, const struct zk_reply *replies)
{
    if (!read_leases(store, replies))
        return;
    for (size_t i = 0; i < store->key_count; i++)
        store->nodes[i].leased = true;
    /* A program may make a lease without the mutex, if its session has ended: it counts the leases
     * afterwards, and so does this. */
    bool crowded = false;
    for (size_t i = 0; i < store->key_count; i++)
        crowded |= store->holders[i].count > store->request.limit;
    if (crowded)
        ask_data(store, on_verified);
    else
        zk_continue(store, ZK_FIND_NESTED);
}

void zk_recount(struct zk_store *store)
{
    for (size_t i = 0; i < store->key_count; i++)
        store->nodes[i].leased = store->nodes[i].nests;
    ask_leases(store, ZK_NO_WATCH);
    zk_send(store, take_leases, ZK_NO_EFFECT);
}

/* Takes the replies to the creation of KEY/leases, which may have been there, for each key that has
 * no lease: judges the places once more, since others may have come first meanwhile. */
static void made_leases(struct zk_store *store, const struct zk_reply *replies)
{
    int error = ZK_OK;

    for (size_t i = 0; i < store->key_count && error == ZK_OK; i++) {
        if (store->nodes[i].leased)
            continue;
        error = replies->error == ZK_NODE_EXISTS ? ZK_OK : replies->error;
        replies++;
    }
    if (error == ZK_OK)
        zk_continue(store, ZK_CHECK_TURN);
    else if (error == ZK_NO_NODE) /* KEY has gone, and the place with it */
        zk_continue(store, ZK_START_ANEW);
    else
        zk_tell_error(store, error);
}

/* Replaces all places in the queues by leases, or none of them: two requests for the same keys must
 * not each have a part. */
static void claim_leases(struct zk_store *store)
{
    zk_multi(store->batch);
    for (size_t i = 0; i < store->key_count; i++) {
        struct zk_nodes *nodes = &store->nodes[i];
        if (nodes->leased)
            continue;
        zk_add_creations(store, nodes);
        zk_multi_change(store->batch, OP_DELETE, nodes->own[0], NULL);
    }
    zk_multi_end(store->batch);
    ask_leases(store, ZK_NO_WATCH);
    zk_send(store, on_claimed, ZK_CREATES);
}

/* Takes the replies to claim_leases(). Leases that were made are counted once more. Otherwise their
 * parent KEY/leases is made first. */
static void on_claimed(struct zk_store *store, const struct zk_reply *replies)
{
    switch (zk_take_created(store, &replies[0])) {
    case ZK_CREATED: take_leases(store, &replies[1]); break;
    case ZK_LACKS_NODE:
        /* Servers delete KEY/leases some time after the last lease has gone. Where it is the place
         * in the queue that is missing, the next look finds that out. */
        for (size_t i = 0; i < store->key_count; i++)
            if (!store->nodes[i].leased)
                zk_container(store->batch, store->nodes[i].branches[ZK_LEASES], store->closed);
        zk_send(store, made_leases, ZK_NO_EFFECT);
        break;
    case ZK_NOT_CREATED: break; /* the operation has ended */
    }
}

/* -- room -------------------------------------------------------------------------------------- */

/* Notes, in the refusal, the holder that has had its lease for longest, and in how many ms the
 * first lease of all may end. Returns the node of that holder; NULL: none can be read. */
static const struct zk_contender *note_holders(struct kept_answer *refusal,
                                               const struct zk_queue *leases,
                                               const struct zk_reply *data)
{
    const struct zk_contender *oldest = NULL;
    int64_t left_ms = 0;

    for (size_t i = 0; i < leases->count; i++) {
        struct lock_party party;
        struct jute_text text;
        struct zk_stat stat;
        if (zk_read_data(&data[i], &text, &stat) != ZK_OK)
            continue;
        zk_read_party(&leases->all[i], text, &stat, clock_wall() / NS_PER_MS, &party);
        party.mode = LOCK_LIMIT;
        if (!oldest) {
            oldest = &leases->all[i];
            refusal->party = party;
        }
        if (party.left_ms > 0 && (left_ms == 0 || party.left_ms < left_ms))
            left_ms = party.left_ms;
    }
    refusal->answer.refused.left_ms = left_ms;
    if (*refusal->party.owner)
        refusal->answer.refused.holder = &refusal->party;
    return oldest;
}

/* Refuses, as so many leases of the key are taken; only a waiter keeps its place. data: what is in
 * these leases. */
static void refuse_held(struct zk_store *store, size_t key, unsigned taken,
                        const struct zk_reply *data)
{
    struct answer *refusal = zk_begin_refusal(store, CAUSE_HELD, key);

    refusal->refused.holders = taken;
    refusal->refused.position = store->nodes[key].position;
    const struct zk_contender *oldest = note_holders(&store->refusal, &store->holders[key], data);
    zk_note_oldest(store, key, ZK_LEASES, oldest);
    store->refused = loop_now(store->loop);
    if (store->request.queue)
        zk_refuse_again(store);
    else
        zk_refuse_and_leave(store);
}

/* Refuses, as the semaphore has another limit. limit: 0 if it is not known. */
static void refuse_limit(struct zk_store *store, size_t key, unsigned limit)
{
    zk_begin_misfit(store, key, limit);
    zk_refuse_and_leave(store);
}

/* The first in all queues watches the leases, and is woken by every change among them; all others
 * are woken by what is in their way. */
void zk_list_leases(struct zk_store *store)
{
    zk_watch_in_the_way(store);
    bool leads = store->request.queue && zk_semaphore_leads(store);
    ask_leases(store, leads ? ZK_WATCH : ZK_NO_WATCH);
    zk_send(store, on_listed, ZK_NO_EFFECT);
}

/* Reads the leases, unless what was in the way has gone: then places are judged anew. */
static void on_listed(struct zk_store *store, const struct zk_reply *replies)
{
    if (!zk_is_in_the_way(store, &replies))
        zk_continue(store, ZK_CHECK_TURN);
    else if (read_leases(store, replies))
        ask_data(store, on_counted);
}

/* Judges by what is in the leases whether each key has room, and whether this owner is the first in
 * its queue: then claims leases. Otherwise refuses by the first key that keeps it out. */
static void on_counted(struct zk_store *store, const struct zk_reply *replies)
{
    const struct acquire_request *request = &store->request;
    size_t refused = store->key_count; /* the first key that keeps it out; behind all: none */
    const struct zk_reply *data = replies;
    unsigned taken = 0;
    bool full = false;

    for (size_t i = 0; i < store->key_count; replies += store->holders[i++].count) {
        struct zk_nodes *nodes = &store->nodes[i];
        if (nodes->leased)
            continue;
        struct zk_room room = zk_leases_room(replies, store->holders[i].count);
        if (room.gone) {
            zk_list_leases(store);
            return;
        }
        if (room.limit && room.limit != request->limit) {
            refuse_limit(store, i, room.limit);
            return;
        }
        nodes->slot = room.slot;
        bool key_is_full = room.taken >= request->limit;
        full |= key_is_full;
        if (refused == store->key_count && (key_is_full || nodes->in_the_way)) {
            refused = i;
            taken = room.taken;
            data = replies;
        }
    }
    if (refused == store->key_count) {
        claim_leases(store);
    } else if (!full && !request->queue && store->lingered < LINGER_MAX) {
        /* There is room everywhere, so those before it are about to take a lease: a request that
         * does not wait looks again soon. */
        store->lingered++;
        loop_arm(store->loop, &store->linger, moment_plus(loop_now(store->loop), LINGER_NS));
    } else {
        refuse_held(store, refused, taken, data);
    }
}

/* -- a plain lock of that name ----------------------------------------------------------------- */

void zk_rule_out(struct zk_store *store)
{
    for (size_t i = 0; i < store->key_count; i++)
        for (enum zk_branch branch = ZK_LEASES; branch <= ZK_LOCKS; branch++)
            zk_query(store->batch, OP_GET_CHILDREN, store->nodes[i].branches[branch], ZK_NO_WATCH);
    zk_send(store, found_semaphores, ZK_NO_EFFECT);
}

/* The leases and places of semaphores of the keys have been listed: where there is one, begins a
 * refusal, and reads it for the limit; where none is, continues. */
static void found_semaphores(struct zk_store *store, const struct zk_reply *replies)
{
    for (size_t i = 0; i < 2 * store->key_count; i++) {
        enum zk_branch branch = i % 2 ? ZK_LOCKS : ZK_LEASES;
        struct zk_queue queue;
        int error = zk_queue_read(&replies[i], branch, &queue);
        bool found = queue.count > 0;
        if (error != ZK_OK) {
            zk_tell_error(store, error);
            return;
        }
        if (found)
            zk_get_child(store->batch, store->nodes[i / 2].branches[branch], queue.all[0].name);
        zk_queue_free(&queue);
        if (!found)
            continue;
        zk_begin_refusal(store, CAUSE_MISFIT, i / 2);
        zk_send(store, found_limit, ZK_NO_EFFECT);
        return;
    }
    zk_continue(store, ZK_FIND_NESTED);
}

/* A node of the semaphore has been read, which tells the limit: refuses the plain lock. */
static void found_limit(struct zk_store *store, const struct zk_reply *replies)
{
    struct zk_room room = zk_leases_room(replies, 1);

    refuse_limit(store, store->refusal.answer.refused.key, room.limit);
}
