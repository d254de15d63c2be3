/* Semaphores: room for one more, a slot, and a lease. */
#include "store/zookeeper/semaphore.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/zookeeper/leases.h"
#include "store/zookeeper/path.h"

/* Who does not wait, but finds room and others that are about to take a lease, looks again for a
 * second: they take milliseconds. */
#define LINGER_NS  (25 * NS_PER_MS)
#define LINGER_MAX 40

/* Where the key is ours already, by the ancestor that we nest in, nothing is to be asked. */
static bool is_open(const struct spot *spot)
{
    return !spot->leased;
}

static void free_leases(struct zk_store *store)
{
    for (size_t i = 0; i < LOCK_KEYS_MAX; i++)
        queue_free(&store->leases[i]);
}

/* -- refusing ---------------------------------------------------------------------------------- */

char *zk_semaphore_misfit(unsigned limit, char *out, size_t size)
{
    if (limit > 0)
        snprintf(out, size, "it is held as a semaphore with a limit of %u", limit);
    else
        snprintf(out, size, "it is held as a semaphore");
    return out;
}

static struct answer *begin_refusal(struct zk_store *store, enum cause cause, size_t key)
{
    store->refusal = (struct answer){.verdict = VERDICT_REFUSED, .cause = cause, .key = key};
    return &store->refusal;
}

static void refuse_plain(struct zk_store *store, size_t key)
{
    struct answer *refusal = begin_refusal(store, CAUSE_MISFIT, key);

    snprintf(refusal->text, sizeof refusal->text, "it is held as a plain lock, not as a semaphore");
    zk_refuse_closing(store);
}

static void refuse_limit(struct zk_store *store, size_t key, unsigned limit)
{
    struct answer *refusal = begin_refusal(store, CAUSE_MISFIT, key);

    zk_semaphore_misfit(limit, refusal->text, sizeof refusal->text);
    zk_refuse_closing(store);
}

/* The one that has held it for longest, and when the first lease of all may end. */
static void note_holders(struct answer *refusal, const struct queue *leases,
                         const struct zk_reply *data)
{
    int64_t left_ms = 0;

    for (size_t i = 0; i < leases->count; i++) {
        struct lock_party party;
        struct jute_text text;
        struct zk_stat stat;
        if (data[i].error != ZK_OK || !zk_read_data(&data[i], &text, &stat))
            continue;
        queue_party(&leases->all[i], text, &stat, clock_wall() / NS_PER_MS, &party);
        party.mode = LOCK_LIMIT;
        if (!*refusal->holder.owner)
            refusal->holder = party;
        if (party.left_ms > 0 && (left_ms == 0 || party.left_ms < left_ms))
            left_ms = party.left_ms;
    }
    refusal->left_ms = left_ms;
}

static void refuse_held(struct zk_store *store, size_t key, unsigned taken,
                        const struct zk_reply *data)
{
    struct answer *refusal = begin_refusal(store, CAUSE_HELD, key);

    refusal->holders = taken;
    refusal->position = store->spots[key].position;
    note_holders(refusal, &store->leases[key], data);
    store->refused = loop_now(store->loop);
    if (zk_request_of(store)->queue)
        zk_refuse_again(store);
    else
        zk_refuse_closing(store);
}

/* -- reading ----------------------------------------------------------------------------------- */

/* The children of KEY/leases, and of KEY, where none may be. */
static void ask_leases(struct zk_store *store, bool watch)
{
    for (size_t i = 0; i < store->spot_count; i++) {
        const struct spot *spot = &store->spots[i];
        if (!is_open(spot))
            continue;
        zk_children(zk_batch_of(store), spot->leases, watch);
        zk_children(zk_batch_of(store), spot->key, false);
    }
}

/* False if they make no sense. */
static bool read_names(const struct zk_reply *reply, struct queue *queue)
{
    *queue = (struct queue){0};
    if (reply->error == ZK_NO_NODE)
        return true;
    return reply->error == ZK_OK && queue_read(reply, queue);
}

/* Reads what ask_leases() asked for. False, and told, if it cannot be read, or if there is a plain
 * lock. */
static bool read_leases(struct zk_store *store, const struct zk_reply *replies)
{
    size_t plain = store->spot_count;
    int error = ZK_OK;

    free_leases(store);
    for (size_t i = 0; i < store->spot_count && error == ZK_OK; i++) {
        struct queue others;
        if (!is_open(&store->spots[i]))
            continue;
        if (!read_names(&replies[0], &store->leases[i]) || !read_names(&replies[1], &others)) {
            error = replies[0].error ? replies[0].error : replies[1].error;
            error = error ? error : ZK_MARSHALLING;
            break;
        }
        if (others.count > 0 && plain == store->spot_count)
            plain = i;
        queue_free(&others);
        replies += 2;
    }
    if (error != ZK_OK)
        zk_tell_error(store, error);
    else if (plain < store->spot_count)
        refuse_plain(store, plain);
    return error == ZK_OK && plain == store->spot_count;
}

/* Asks what is in all leases that have been read. There may be none. */
static void ask_data(struct zk_store *store,
                     void (*next)(struct zk_store *, const struct zk_reply *))
{
    static const struct zk_reply none;

    for (size_t i = 0; i < store->spot_count; i++) {
        for (size_t j = 0; j < store->leases[i].count; j++) {
            char *path = zk_path_join(store->spots[i].leases, store->leases[i].all[j].name);
            zk_get(zk_batch_of(store), path);
            free(path);
        }
    }
    if (zk_batch_of(store)->count > 0)
        zk_ask(store, false, next);
    else
        next(store, &none);
}

/* -- a lease ----------------------------------------------------------------------------------- */

/* Somebody made a lease without the mutex, as a program may whose session has ended: it looks how
 * many there are afterwards, and so do we. */
static void verified(struct zk_store *store, const struct zk_reply *replies)
{
    bool over = false;

    for (size_t i = 0; i < store->spot_count; i++) {
        struct room room = leases_room(replies, store->leases[i].count);
        over |= room.taken > zk_request_of(store)->limit;
        replies += store->leases[i].count;
    }
    if (over) {
        store->requeued = true;
        store->anew(store);
    } else {
        store->entered(store);
    }
}

static void verify(struct zk_store *store)
{
    bool crowded = false;

    for (size_t i = 0; i < store->spot_count; i++)
        crowded |= store->leases[i].count > zk_request_of(store)->limit;
    if (crowded)
        ask_data(store, verified);
    else
        store->entered(store);
}

/* Of each spot that was claimed: the lease that was created, and the place that was deleted. */
static bool note_claimed(struct zk_store *store, const struct zk_reply *reply)
{
    struct jute_in in = reply->body;
    struct zk_result result = {0};
    bool sound = reply->zxid > 0;

    for (size_t i = 0; sound && i < store->spot_count; i++) {
        struct spot *spot = &store->spots[i];
        if (!is_open(spot))
            continue;
        sound = zk_next_created(&in, spot->leases, &spot->nodes[0]) && zk_next_result(&in, &result);
        spot->fence = (uint64_t)reply->zxid;
    }
    return sound;
}

static void made_leases(struct zk_store *store, const struct zk_reply *replies)
{
    size_t count = 0;

    for (size_t i = 0; i < store->spot_count; i++)
        count += is_open(&store->spots[i]);
    for (size_t i = 0; i < count; i++) {
        if (replies[i].error == ZK_OK || replies[i].error == ZK_NODE_EXISTS)
            continue;
        if (replies[i].error == ZK_NO_NODE) /* KEY has gone, and our place with it */
            store->anew(store);
        else
            zk_tell_error(store, replies[i].error);
        return;
    }
    store->look(store);
}

/* Servers delete KEY/leases some time after the last lease has gone. Where it is our place in the
 * queue that is missing, the next look finds that out. */
static void make_leases(struct zk_store *store)
{
    for (size_t i = 0; i < store->spot_count; i++)
        if (is_open(&store->spots[i]))
            zk_container(zk_batch_of(store), store->spots[i].leases, zk_is_closed(store));
    zk_ask(store, false, made_leases);
}

/* Ours are among them. */
static void take_leases(struct zk_store *store, const struct zk_reply *replies)
{
    if (!read_leases(store, replies))
        return;
    for (size_t i = 0; i < store->spot_count; i++)
        store->spots[i].leased = true;
    verify(store);
}

void zk_semaphore_recount(struct zk_store *store)
{
    for (size_t i = 0; i < store->spot_count; i++)
        store->spots[i].leased = store->spots[i].nested;
    ask_leases(store, false);
    zk_ask(store, false, take_leases);
}

static void claimed(struct zk_store *store, const struct zk_reply *replies)
{
    size_t index;
    int error = zk_multi_error(&replies[0], &index);

    if (error == ZK_NO_NODE) {
        make_leases(store);
    } else if (error != ZK_OK) {
        zk_tell_error(store, error);
    } else if (!note_claimed(store, &replies[0])) {
        store->unsure = true;
        zk_tell_error(store, ZK_MARSHALLING);
    } else {
        store->from = zk_session_opened(store->session);
        take_leases(store, &replies[1]);
    }
}

/* All leases for all places, or none. The name is as Curator makes one. */
static void claim(struct zk_store *store)
{
    struct zk_multi multi = zk_multi(zk_batch_of(store));
    char name[NAME_SIZE];

    snprintf(name, sizeof name, "_c_%s-lease-", queue_uuid(store->owner));
    for (size_t i = 0; i < store->spot_count; i++) {
        struct spot *spot = &store->spots[i];
        if (!is_open(spot))
            continue;
        zk_print_data(store, spot);
        char *path = zk_path_join(spot->leases, name);
        zk_multi_create(&multi, ZK_EPHEMERAL_SEQUENTIAL, path, spot->data, zk_is_closed(store));
        zk_multi_delete(&multi, spot->nodes[0]);
        free(path);
    }
    zk_multi_end(&multi);
    ask_leases(store, false);
    zk_ask(store, false, claimed);
    store->creating = true;
}

/* -- room -------------------------------------------------------------------------------------- */

void zk_semaphore_lingered(struct loop_timer *timer)
{
    struct zk_store *store = timer->owner;

    store->look(store);
}

static void linger(struct zk_store *store)
{
    store->lingered++;
    loop_arm(store->loop, &store->linger, moment_plus(loop_now(store->loop), LINGER_NS));
}

/* What is in the leases of all keys. */
static void counted(struct zk_store *store, const struct zk_reply *replies)
{
    const struct acquire_request *request = zk_request_of(store);
    size_t refused = store->spot_count;
    const struct zk_reply *data = replies;
    struct room room = {0}, of_refused = {0};
    bool full = false;

    for (size_t i = 0; i < store->spot_count; replies += store->leases[i++].count) {
        struct spot *spot = &store->spots[i];
        if (!is_open(spot))
            continue;
        room = leases_room(replies, store->leases[i].count);
        if (room.limit && room.limit != request->limit) {
            refuse_limit(store, i, room.limit);
            return;
        }
        spot->slot = room.slot;
        full |= room.taken >= request->limit;
        if (refused < store->spot_count || (room.taken < request->limit && !spot->in_the_way))
            continue;
        refused = i;
        of_refused = room;
        data = replies;
    }
    if (refused == store->spot_count)
        claim(store);
    else if (!full && !request->queue && store->lingered < LINGER_MAX)
        linger(store);
    else
        refuse_held(store, refused, of_refused.taken, data);
}

static void listed(struct zk_store *store, const struct zk_reply *replies)
{
    bool gone = false;

    for (size_t i = 0; i < store->spot_count && zk_request_of(store)->queue; i++)
        if (store->spots[i].in_the_way)
            gone |= (replies++)->error == ZK_NO_NODE;
    if (gone)
        store->look(store);
    else if (read_leases(store, replies))
        ask_data(store, counted);
}

/* Who is first in all queues is called by every change among the leases, all others by whom is in
 * their way. */
void zk_semaphore_consider(struct zk_store *store)
{
    bool queue = zk_request_of(store)->queue;

    for (size_t i = 0; i < store->spot_count && queue; i++)
        if (store->spots[i].in_the_way)
            zk_exists(zk_batch_of(store), store->spots[i].in_the_way, true);
    ask_leases(store, queue && store->leads);
    zk_ask(store, false, listed);
}

/* -- a plain lock of that name ----------------------------------------------------------------- */

static void found_limit(struct zk_store *store, const struct zk_reply *replies)
{
    struct room room = leases_room(replies, 1);

    refuse_limit(store, store->refusal.key, room.limit);
}

/* The children of KEY/leases and KEY/locks. */
static void found_semaphores(struct zk_store *store, const struct zk_reply *replies)
{
    for (size_t i = 0; i < 2 * store->spot_count; i++) {
        const struct spot *spot = &store->spots[i / 2];
        struct queue queue;
        if (!read_names(&replies[i], &queue)) {
            zk_tell_error(store, replies[i].error ? replies[i].error : ZK_MARSHALLING);
            return;
        }
        char *locks = zk_path_join(spot->key, LOCKS);
        char *first =
            queue.count > 0 ? zk_path_join(i % 2 ? locks : spot->leases, queue.all[0].name) : NULL;
        free(locks);
        queue_free(&queue);
        if (!first)
            continue;
        begin_refusal(store, CAUSE_MISFIT, i / 2);
        zk_get(zk_batch_of(store), first);
        free(first);
        zk_ask(store, false, found_limit);
        return;
    }
    store->entered(store);
}

void zk_semaphore_rule_out(struct zk_store *store)
{
    for (size_t i = 0; i < store->spot_count; i++) {
        char *locks = zk_path_join(store->spots[i].key, LOCKS);
        zk_children(zk_batch_of(store), store->spots[i].leases, false);
        zk_children(zk_batch_of(store), locks, false);
        free(locks);
    }
    zk_ask(store, false, found_semaphores);
}
