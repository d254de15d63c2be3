/* A place in the queues, and our turn. */
#include "store/zookeeper/acquire.h"

#include <stdio.h>

#include "base/mem.h"
#include "net/loop.h"
#include "store/zookeeper/adopt.h"
#include "store/zookeeper/family.h"
#include "store/zookeeper/path.h"
#include "store/zookeeper/semaphore.h"

/* So many heartbeats look whether those in the way are still there; the next one at all of the
 * queue, for the position. */
#define HEARTBEATS 9

static void begin_place(struct zk_store *store);
static void look(struct zk_store *store);

static const char *last_part(const char *path)
{
    return strrchr(path, '/') + 1;
}

static bool is_limited(const struct zk_store *store)
{
    return zk_request_of(store)->mode == LOCK_LIMIT;
}

/* -- a place in the queues --------------------------------------------------------------------- */

/* Of the nodes of a spot. */
static const char *const *words_of(const struct zk_store *store, const struct spot *spot)
{
    static const char *const writer[] = {"lock-", "__WRIT__", NULL};
    static const char *const reader[] = {"__READ__", NULL};
    static const char *const place[] = {"lock-", NULL};
    static const char *const lease[] = {"lease-", NULL};

    switch (zk_request_of(store)->mode) {
    case LOCK_SHARED: return reader;
    case LOCK_LIMIT: return spot->nested ? lease : place;
    default: return writer;
    }
}

/* The node that ours are children of at first. */
static const char *parent_of(const struct zk_store *store, const struct spot *spot)
{
    return is_limited(store) && spot->nested ? spot->leases : spot->lock;
}

/* The family is there yet, and so is each elder that is noted: who waited for one that has gone may
 * hold the lock. */
static void add_checks(struct zk_multi *multi, const struct spot *spot, const char *parent)
{
    char *ancestor = zk_path_join(parent, spot->beside);

    zk_multi_check(multi, ancestor);
    free(ancestor);
    for (size_t i = 0; i < OWNER_DEPTH; i++)
        if (spot->elders[i])
            zk_multi_check(multi, spot->elders[i]);
}

/* Who nests in a holder has its number, and so is before all that wait. Of a semaphore it has a
 * lease at once, whose number says nothing. */
static void add_creations(struct zk_store *store, struct zk_multi *multi, struct spot *spot)
{
    const char *const *words = words_of(store, spot);
    const char *parent = parent_of(store, spot);
    char name[NAME_SIZE];
    bool same = spot->nested && !is_limited(store);

    zk_print_data(store, spot);
    if (spot->nested)
        add_checks(multi, spot, parent);
    for (; *words; words++) {
        snprintf(name, sizeof name, same ? "_c_%s-%s%010d" : "_c_%s-%s", queue_uuid(store->owner),
                 *words, (int)spot->number);
        char *path = zk_path_join(parent, name);
        zk_multi_create(multi, same ? ZK_EPHEMERAL : ZK_EPHEMERAL_SEQUENTIAL, path, spot->data,
                        zk_is_closed(store));
        free(path);
    }
}

/* Notes what was created: of each spot its nodes, behind the checks where it is nested. */
static bool note_created(struct zk_store *store, const struct zk_reply *reply)
{
    struct jute_in in = reply->body;
    struct zk_result result = {0};
    bool sound = reply->zxid > 0;

    for (size_t i = 0; sound && i < store->spot_count; i++) {
        struct spot *spot = &store->spots[i];
        const char *const *words = words_of(store, spot), *parent = parent_of(store, spot);
        sound = !spot->nested || zk_next_result(&in, &result);
        for (size_t j = 0; sound && spot->nested && j < OWNER_DEPTH; j++)
            sound = !spot->elders[j] || zk_next_result(&in, &result);
        for (size_t j = 0; sound && words[j]; j++)
            sound = zk_next_created(&in, parent, &spot->nodes[j]);
        spot->leased = is_limited(store) && spot->nested;
        if (!spot->nested)
            spot->fence = (uint64_t)reply->zxid;
    }
    return sound;
}

static void take_queues(struct zk_store *store, struct queue queues[LOCK_KEYS_MAX]);
static void find_ancestors(struct zk_store *store);

static void made_locks(struct zk_store *store, const struct zk_reply *replies)
{
    const char *slashes = store->folder;
    size_t own = store->spot_count * (is_limited(store) ? 3 : 1), count = own;

    for (; *slashes; slashes++)
        count += *slashes == '/';
    for (size_t i = 0; i < count; i++) {
        if (replies[i].error == ZK_OK || replies[i].error == ZK_NODE_EXISTS)
            continue;
        /* Who may not create what is there already is told that it may not. */
        if (replies[i].error == ZK_NO_AUTH && i + own < count)
            continue;
        zk_tell_error(store, replies[i].error);
        return;
    }
    find_ancestors(store);
}

/* The nodes of the locks, and those above them. Servers delete them some time after the last child
 * is gone. */
static void make_locks(struct zk_store *store)
{
    char *folder = mem_strdup(store->folder);

    for (char *slash = folder; *slash; *slash = '/') {
        slash += 1 + strcspn(slash + 1, "/");
        char kept = *slash;
        *slash = '\0';
        zk_container(zk_batch_of(store), folder, zk_is_closed(store));
        if (!kept)
            break;
    }
    for (size_t i = 0; i < store->spot_count; i++) {
        const struct spot *spot = &store->spots[i];
        zk_container(zk_batch_of(store), spot->key, zk_is_closed(store));
        if (is_limited(store)) {
            zk_container(zk_batch_of(store), spot->lock, zk_is_closed(store));
            zk_container(zk_batch_of(store), spot->leases, zk_is_closed(store));
        }
    }
    free(folder);
    zk_ask(store, false, made_locks);
}

static void created(struct zk_store *store, const struct zk_reply *replies)
{
    struct queue queues[LOCK_KEYS_MAX];
    size_t index;
    int error = zk_multi_error(replies, &index);

    store->unsure = false;
    if (error == ZK_NO_NODE) {
        make_locks(store);
    } else if (error != ZK_OK) {
        zk_tell_error(store, error);
    } else if (!note_created(store, replies)) {
        store->unsure = true;
        zk_tell_error(store, ZK_MARSHALLING);
    } else {
        store->placed = true;
        store->from = zk_session_opened(store->session);
        if (zk_read_queues(store, replies + 1, queues))
            take_queues(store, queues);
    }
}

/* All or none, and all with one zxid: whoever is before us in one queue that we share is before us
 * in all of them. */
static void create(struct zk_store *store)
{
    struct zk_multi multi = zk_multi(zk_batch_of(store));

    for (size_t i = 0; i < store->spot_count; i++)
        add_creations(store, &multi, &store->spots[i]);
    zk_multi_end(&multi);
    zk_ask_children(store);
    store->unsure = true;
    zk_ask(store, false, created);
    store->creating = true;
}

/* -- nesting ----------------------------------------------------------------------------------- */

/* Whether the ancestor's lease is of a semaphore with our limit: then its slot is ours. */
static bool fits(const struct zk_store *store, struct jute_text text, struct spot *spot)
{
    struct node_data ancestor;

    if (!node_data_parse(text, &ancestor) || ancestor.limit != zk_request_of(store)->limit)
        return false;
    spot->slot = ancestor.slot;
    return true;
}

static void refuse_limit(struct zk_store *store, size_t key, struct jute_text text)
{
    struct node_data ancestor;
    char why[80];

    unsigned limit = node_data_parse(text, &ancestor) ? ancestor.limit : 0;
    zk_refuse(store, CAUSE_MISFIT, key, zk_semaphore_misfit(limit, why, sizeof why));
}

/* Notes since when the elders have their nodes. False, and told, if that cannot be read. */
static bool read_elders(struct zk_store *store, struct spot *spot, const struct zk_reply **replies)
{
    for (size_t i = 0; i < OWNER_DEPTH; i++) {
        struct jute_text text;
        struct zk_stat stat;
        if (!spot->elders[i])
            continue;
        const struct zk_reply *reply = (*replies)++;
        if (reply->error == ZK_NO_NODE) {
            zk_set_text(&spot->elders[i], NULL); /* it has just gone */
        } else if (reply->error != ZK_OK || !zk_read_data(reply, &text, &stat)) {
            zk_tell_error(store, reply->error ? reply->error : ZK_MARSHALLING);
            return false;
        } else {
            spot->elders_since[i] = stat.czxid;
        }
    }
    return true;
}

/* The fence of who nests is that of its outermost ancestor, as its own node is younger than those
 * of who wait. */
static void read_ancestors(struct zk_store *store, const struct zk_reply *replies)
{
    for (size_t i = 0; i < store->spot_count; i++) {
        struct spot *spot = &store->spots[i];
        struct jute_text text;
        struct zk_stat stat;
        struct lock_party party;
        struct contender ancestor = {.uuid = ""};
        if (!spot->nested)
            continue;
        const struct zk_reply *reply = replies++;
        if (!read_elders(store, spot, &replies))
            return;
        if (reply->error == ZK_NO_NODE) {
            spot->nested = false; /* it has just gone: to the end of the queue */
        } else if (reply->error != ZK_OK || !zk_read_data(reply, &text, &stat)) {
            zk_tell_error(store, reply->error ? reply->error : ZK_MARSHALLING);
            return;
        } else if (is_limited(store) && !fits(store, text, spot)) {
            refuse_limit(store, i, text);
            return;
        } else {
            queue_party(&ancestor, text, &stat, 0, &party);
            spot->fence = party.fence > 0 ? party.fence : 1;
        }
    }
    create(store);
}

/* Asks for the node that we nest beside, and then for those of all our ancestors, that one among
 * them. */
static void ask_elders(struct zk_store *store, struct spot *spot, const struct queue *queue)
{
    char *path = zk_path_join(parent_of(store, spot), spot->beside), uuid[OWNER_UUID_SIZE];
    const char *at = store->owner, *dot;

    zk_get(zk_batch_of(store), path);
    free(path);
    for (size_t i = 0; i < OWNER_DEPTH && (dot = strchr(at, '.')); i++, at = dot + 1) {
        snprintf(uuid, sizeof uuid, "%.*s", (int)(dot - at), at);
        const struct contender *elder = queue_find(queue, uuid);
        if (!elder)
            continue;
        spot->elders[i] = zk_path_join(parent_of(store, spot), elder->name);
        zk_get(zk_batch_of(store), spot->elders[i]);
    }
}

static void found_ancestors(struct zk_store *store, const struct zk_reply *replies)
{
    const struct acquire_request *request = zk_request_of(store);
    struct queue queues[LOCK_KEYS_MAX];
    const char *misfit = NULL;
    size_t key = 0;

    if (!zk_read_queues(store, replies, queues))
        return;
    for (size_t i = 0; i < store->spot_count; i++) {
        struct spot *spot = &store->spots[i];
        if (is_limited(store))
            queue_set_holding(&queues[i], true);
        const struct contender *one = queue_ancestor(&queues[i], store->owner);
        spot->nested = false;
        zk_clear_elders(spot);
        if (!one || strlen(one->name) >= sizeof spot->beside)
            continue;
        key = i;
        if (request->no_nesting)
            misfit = "it is held by an ancestor of this process, and nesting was ruled out";
        else if (one->reader && request->mode == LOCK_EXCLUSIVE)
            misfit = "an ancestor of this process holds it for reading, and cannot make way";
        spot->nested = true;
        strcpy(spot->beside, one->name);
        spot->number = one->number;
        ask_elders(store, spot, &queues[i]);
    }
    zk_free_queues(store, queues);
    if (misfit) {
        zk_session_drop_batch(store->session);
        zk_refuse(store, CAUSE_MISFIT, key, misfit);
    } else if (zk_batch_of(store)->count > 0) {
        zk_ask(store, false, read_ancestors);
    } else {
        create(store);
    }
}

static void find_ancestors(struct zk_store *store)
{
    if (strchr(store->owner, '.')) {
        for (size_t i = 0; i < store->spot_count; i++)
            zk_children(zk_batch_of(store),
                        is_limited(store) ? store->spots[i].leases : store->spots[i].lock, false);
        zk_ask(store, false, found_ancestors);
    } else {
        create(store);
    }
}

/* -- our turn, or not -------------------------------------------------------------------------- */

/* The replies about who is in the way, and then about who holds the lock. */
static void described(struct zk_store *store, const struct zk_reply *replies)
{
    const struct acquire_request *request = zk_request_of(store);
    struct jute_text text;
    struct zk_stat stat;
    bool gone = false;

    for (size_t i = 0; i < store->spot_count && request->queue; i++)
        if (store->spots[i].in_the_way)
            gone |= (replies++)->error == ZK_NO_NODE;
    if (gone) {
        look(store);
        return;
    }
    if (store->refusal.holders > 0) {
        struct contender holder = {.reader = store->refusal.holder.mode == LOCK_SHARED};
        snprintf(holder.uuid, sizeof holder.uuid, "%.36s", store->refusal.holder.owner);
        if (replies->error == ZK_OK && zk_read_data(replies, &text, &stat))
            queue_party(&holder, text, &stat, clock_wall() / NS_PER_MS, &store->refusal.holder);
        else if (replies->error == ZK_NO_NODE)
            *store->refusal.holder.owner = '\0'; /* it has just gone */
        else
            store->refusal.holder.unread = true;
        store->refusal.left_ms = store->refusal.holder.left_ms;
    }
    store->refused = loop_now(store->loop);
    if (!request->queue)
        zk_forget(store);
    zk_refuse_again(store);
}

static void note_refusal(struct zk_store *store, size_t key, const struct queue *queue)
{
    const struct contender *oldest = queue_oldest(queue);
    struct answer *refusal = &store->refusal;

    *refusal = (struct answer){.verdict = VERDICT_REFUSED,
                               .cause = CAUSE_HELD,
                               .key = key,
                               .holders = (int64_t)queue_holders(queue)};
    refusal->position = store->spots[key].position;
    if (oldest) {
        strcpy(refusal->holder.owner, oldest->uuid);
        refusal->holder.mode = oldest->reader ? LOCK_SHARED : LOCK_EXCLUSIVE;
        char *path = zk_path_join(store->spots[key].lock, oldest->name);
        zk_get(zk_batch_of(store), path);
        free(path);
    }
}

/* What we had is not there. */
static void lose(struct zk_store *store)
{
    store->requeued = true;
    zk_forget(store);
    begin_place(store);
}

static void watched(struct zk_store *store, const struct zk_reply *replies)
{
    if (zk_missing(store, replies) == store->spot_count)
        zk_grant(store);
    else if (is_limited(store))
        lose(store);
    else
        look(store);
}

static void watch(struct zk_store *store)
{
    zk_watch_own(store);
    zk_ask(store, false, watched);
}

/* Notes who is in the way, if anybody is. False if our node is not there. */
static bool judge_spot(struct zk_store *store, struct spot *spot, const struct queue *queue)
{
    const struct contender *own = queue_named(queue, last_part(spot->nodes[0]));
    const struct contender *other = own ? queue_in_the_way(queue, own) : NULL;

    zk_set_text(&spot->in_the_way, other ? zk_path_join(spot->lock, other->name) : NULL);
    spot->position = zk_request_of(store)->queue ? (int64_t)queue_position(queue, own)
                                                 : (int64_t)queue_position(queue, NULL) - 1;
    return own;
}

static void be_refused(struct zk_store *store)
{
    store->closing = !zk_request_of(store)->queue;
    if (store->closing)
        zk_close(zk_batch_of(store));
    zk_ask(store, false, described);
}

/* -- relatives --------------------------------------------------------------------------------- */

/* What the replies say about those of a spot; *count of them are there. elders: room for as many as
 * there may be. The caller frees. */
static struct relative *read_relatives(const struct spot *spot, const struct zk_reply *replies,
                                       int64_t (*elders)[OWNER_DEPTH], size_t *count)
{
    struct relative *all = mem_zeroed((spot->relative_count + 1) * sizeof *all);

    *count = 0;
    for (size_t i = 0; i < spot->relative_count; i++) {
        struct relative *one = &all[*count];
        struct node_data data;
        struct jute_text text;
        struct zk_stat stat;
        if (replies[i].error != ZK_OK || !zk_read_data(&replies[i], &text, &stat) ||
            !node_data_parse(text, &data))
            continue;
        strcpy(one->owner, data.owner);
        one->since = stat.czxid;
        one->reader = data.mode == LOCK_SHARED;
        one->node = spot->relatives[i];
        memcpy(elders[*count], data.elders, sizeof data.elders);
        one->elders = elders[*count];
        (*count)++;
    }
    return all;
}

/* Notes who of them is in the way, if anybody is. False if our node is not there. */
static bool judge_relatives(struct zk_store *store, struct spot *spot,
                            const struct zk_reply *replies)
{
    size_t count, own = 0;
    int64_t(*elders)[OWNER_DEPTH] = mem_zeroed((spot->relative_count + 1) * sizeof *elders);
    struct relative *all = read_relatives(spot, replies, elders, &count);

    while (own < count && strcmp(all[own].owner, store->owner) != 0)
        own++;
    const struct relative *other = own < count ? family_in_the_way(all, count, own) : NULL;
    zk_set_text(&spot->in_the_way, other ? mem_strdup(other->node) : NULL);
    if (other) {
        store->refusal.holder.mode = other->reader ? LOCK_SHARED : LOCK_EXCLUSIVE;
        strcpy(store->refusal.holder.owner, queue_uuid(other->owner));
    }
    free(all);
    free(elders);
    return own < count;
}

static void met_relatives(struct zk_store *store, const struct zk_reply *replies)
{
    size_t refused = store->spot_count;
    bool lost = false;

    for (size_t i = 0; i < store->spot_count && refused == store->spot_count; i++) {
        struct spot *spot = &store->spots[i];
        if (spot->nested)
            lost |= !judge_relatives(store, spot, replies);
        replies += spot->relative_count;
        if (spot->in_the_way)
            refused = i;
    }
    if (lost) {
        lose(store);
    } else if (refused == store->spot_count) {
        watch(store);
    } else {
        const struct spot *spot = &store->spots[refused];
        struct lock_party sibling = store->refusal.holder;
        store->refusal = (struct answer){.verdict = VERDICT_REFUSED,
                                         .cause = CAUSE_HELD,
                                         .key = refused,
                                         .holders = 1,
                                         .holder = sibling,
                                         .position = 1};
        if (zk_request_of(store)->queue)
            zk_exists(zk_batch_of(store), spot->in_the_way, true);
        zk_get(zk_batch_of(store), spot->in_the_way);
        be_refused(store);
    }
}

/* Those in a list of children who may be our relatives: in a lock they have the number of the
 * ancestor that we nest in, and in a semaphore any. */
static void note_relatives(struct zk_store *store, struct spot *spot, const struct queue *queue)
{
    zk_clear_relatives(spot);
    spot->relatives = mem_zeroed((queue->count + 1) * sizeof *spot->relatives);
    for (size_t i = 0; i < queue->count; i++) {
        const struct contender *one = &queue->all[i];
        if (!one->heads || (one->number != spot->number && !is_limited(store)))
            continue;
        char *path = zk_path_join(parent_of(store, spot), one->name);
        zk_get(zk_batch_of(store), path);
        spot->relatives[spot->relative_count++] = path;
    }
}

static void ask_relatives(struct zk_store *store, const struct zk_reply *replies)
{
    for (size_t i = 0; i < store->spot_count; i++) {
        struct spot *spot = &store->spots[i];
        struct queue queue;
        if (!spot->nested)
            continue;
        const struct zk_reply *reply = replies++;
        if (reply->error != ZK_OK || !queue_read(reply, &queue)) {
            zk_session_drop_batch(store->session);
            zk_tell_error(store, reply->error ? reply->error : ZK_MARSHALLING);
            return;
        }
        note_relatives(store, spot, &queue);
        queue_free(&queue);
    }
    zk_ask(store, false, met_relatives);
}

/* Nobody but relatives may be in the way, if we nest in a holder. */
static void entered(struct zk_store *store)
{
    for (size_t i = 0; i < store->spot_count; i++)
        if (store->spots[i].nested)
            zk_children(zk_batch_of(store), parent_of(store, &store->spots[i]), false);
    if (zk_batch_of(store)->count > 0)
        zk_ask(store, false, ask_relatives);
    else
        watch(store);
}

static void judge_semaphore(struct zk_store *store, const struct queue queues[LOCK_KEYS_MAX])
{
    bool lost = false, leased = true;

    store->leads = true;
    for (size_t i = 0; i < store->spot_count; i++) {
        struct spot *spot = &store->spots[i];
        if (spot->leased)
            continue;
        leased = false;
        lost |= !judge_spot(store, spot, &queues[i]);
        spot->position++; /* who is first in the queue has no lease yet */
        store->leads &= !spot->in_the_way;
    }
    if (lost)
        lose(store);
    else if (leased)
        entered(store);
    else
        zk_semaphore_consider(store);
}

/* -- the verdict ------------------------------------------------------------------------------- */

/* Nobody is in the way: of a semaphore that is a beginning. */
static void come_first(struct zk_store *store, bool semaphores)
{
    if (semaphores)
        zk_semaphore_rule_out(store);
    else
        entered(store);
}

/* Our first node in each queue tells whether there is somebody in the way. */
static void judge(struct zk_store *store, const struct queue queues[LOCK_KEYS_MAX])
{
    size_t refused = store->spot_count;
    bool lost = false, semaphores = false;

    for (size_t i = 0; i < store->spot_count; i++) {
        struct spot *spot = &store->spots[i];
        lost |= !judge_spot(store, spot, &queues[i]);
        semaphores |= queues[i].semaphore;
        if (spot->in_the_way && zk_request_of(store)->queue)
            zk_exists(zk_batch_of(store), spot->in_the_way, true);
        if (spot->in_the_way && refused == store->spot_count)
            refused = i;
    }
    if (!lost && refused < store->spot_count)
        note_refusal(store, refused, &queues[refused]);
    if (lost) {
        zk_session_drop_batch(store->session);
        lose(store);
    } else if (refused < store->spot_count) {
        be_refused(store);
    } else {
        come_first(store, semaphores);
    }
}

static void take_queues(struct zk_store *store, struct queue queues[LOCK_KEYS_MAX])
{
    size_t count = store->spot_count; /* there may be others behind them already */

    store->heartbeats = 0;
    if (is_limited(store))
        judge_semaphore(store, queues);
    else
        judge(store, queues);
    for (size_t i = 0; i < count; i++)
        queue_free(&queues[i]);
}

static void looked(struct zk_store *store, const struct zk_reply *replies)
{
    struct queue queues[LOCK_KEYS_MAX];

    if (zk_read_queues(store, replies, queues))
        take_queues(store, queues);
}

static void look(struct zk_store *store)
{
    zk_ask_children(store);
    zk_ask(store, false, looked);
}

/* -- acquiring --------------------------------------------------------------------------------- */

static void place_expired(struct zk_store *store)
{
    store->requeued = store->placed;
    zk_forget(store);
    begin_place(store);
}

static void began(struct zk_store *store, const struct zk_reply *replies)
{
    (void)replies;
    find_ancestors(store);
}

/* The session is begun first: its password belongs into the nodes. */
static void begin_place(struct zk_store *store)
{
    const struct acquire_request *request = zk_request_of(store);

    zk_make_spots(store);
    snprintf(store->owner, sizeof store->owner, "%s", request->owner);
    zk_wish(store, request->lease);
    store->expired = place_expired;
    if (zk_session_identity(store->session)->id)
        find_ancestors(store);
    else
        zk_ask(store, false, began);
}

static void heard(struct zk_store *store, const struct zk_reply *replies)
{
    bool changed = false;

    for (size_t i = 0; i < store->spot_count; i++)
        changed |= store->spots[i].in_the_way && (replies++)->error != ZK_OK;
    changed |= replies->error != ZK_OK; /* our own node */
    if (changed)
        look(store);
    else
        zk_refuse_again(store);
}

/* A list of some thousand waiters is long: mostly it is enough that nothing has changed. */
static void beat(struct zk_store *store)
{
    for (size_t i = 0; i < store->spot_count; i++)
        if (store->spots[i].in_the_way)
            zk_exists(zk_batch_of(store), store->spots[i].in_the_way, true);
    zk_exists(zk_batch_of(store), store->spots[0].nodes[0], false);
    zk_ask(store, false, heard);
}

/* -- the place of another process -------------------------------------------------------------- */

/* Whether we have a lease for each place of a semaphore, and do not nest everywhere. */
static bool is_claimed(const struct zk_store *store)
{
    bool leased = is_limited(store), nested = true;

    for (size_t i = 0; i < store->spot_count; i++) {
        leased &= store->spots[i].leased;
        nested &= store->spots[i].nested;
    }
    return leased && !nested;
}

static void retaken(struct zk_store *store, const struct zk_reply *replies)
{
    size_t index;
    int error = zk_multi_error(&replies[0], &index);

    if (error == ZK_NO_NODE) {
        lose(store);
    } else if (error != ZK_OK) {
        zk_tell_error(store, error);
    } else {
        store->from = zk_session_opened(store->session);
        if (is_claimed(store))
            zk_semaphore_recount(store);
        else
            look(store);
    }
}

/* A lease counts from something that was written: that process has died, and nobody knows when it
 * was heard of last. */
static void retake(struct zk_store *store)
{
    store->expired = place_expired;
    zk_write_own(store);
    zk_ask(store, false, retaken);
}

/* -- beginning, or going on -------------------------------------------------------------------- */

/* Nodes may be there that an unanswered request has made: they go with their session. */
static void begin_anew(struct zk_store *store)
{
    zk_forget(store);
    begin_place(store);
}

static void closed_old(struct zk_store *store, const struct zk_reply *replies)
{
    (void)replies;
    begin_anew(store);
}

static void close_old(struct zk_store *store)
{
    zk_close(zk_batch_of(store));
    store->closing = true;
    store->expired = begin_anew;
    zk_ask(store, false, closed_old);
}

void zk_acquire(struct zk_store *store)
{
    store->expired = place_expired;
    store->look = look;
    store->entered = entered;
    store->anew = close_old;
    if (!zk_is_own(store) && zk_request_of(store)->inherited)
        zk_adopt(store, retake, begin_place);
    else if (!zk_is_own(store))
        begin_anew(store);
    else if (store->unsure || store->ending)
        close_old(store);
    else if (!store->placed)
        begin_place(store);
    else if (!store->from.ns)
        retake(store);
    else if (zk_request_of(store)->queue && store->refusal.cause == CAUSE_HELD && !store->leads &&
             store->heartbeats++ < HEARTBEATS)
        beat(store);
    else
        look(store);
}
