/* Locks in a ZooKeeper ensemble.
 *
 * A lock belongs to a session, and lasts as long as that does: one session for each owner. The
 * leader ends a session when nothing that it takes for a sign of life has come for the session's
 * timeout, but a follower answers pings and reads by itself, also when it is cut off from the
 * leader. So the lease counts from the moment that a connection was opened on which the session was
 * begun, or opened again, and something written was answered: to open it the leader has to say yes,
 * which touches the session; that a write is answered shows that the leader had a majority then, so
 * that whoever leads next counts from later. Each renewal opens the session again over a new
 * connection, and writes. */
#include "store/zookeeper/store.h"

#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "lock/key.h"
#include "net/loop.h"
#include "store/zookeeper/path.h"
#include "store/zookeeper/queue.h"
#include "store/zookeeper/session.h"
#include "store/zookeeper/survey.h"

/* So many heartbeats look whether those in the way are still there; the next one at all of the
 * queue, for the position. */
#define HEARTBEATS 9
/* A writer has two nodes in each lock. */
#define NODES_MAX 2
#define NAME_SIZE 128

/* Our nodes in one lock. */
struct spot {
    char *lock;             /* the lock's node */
    char *nodes[NODES_MAX]; /* ours; NULL: none */
    char *in_the_way;       /* the node that is watched; NULL: none */
    char beside[NAME_SIZE]; /* the first node of the ancestor that we nest in; "": none */
    int32_t number;         /* of that */
    uint64_t fence;
    char *data; /* what is in our nodes */
};

struct zk_store {
    struct store base;
    struct loop *loop;
    char *folder;
    struct zk_session *session;

    /* What there is of ours in the ensemble. */
    char owner[OWNER_SIZE]; /* whose session it is; "": nobody's */
    struct spot spots[LOCK_KEYS_MAX];
    size_t spot_count;
    bool placed;        /* our nodes are there, as far as we know */
    bool unsure;        /* they may be */
    bool closing;       /* the operation under way closes the session */
    bool ending;        /* it may have been closed: nothing new may rely on it */
    int64_t lease;      /* ns: as it was asked for */
    struct moment from; /* the lease counts from then */

    /* While we wait. */
    struct answer refusal; /* the latest, at "refused" */
    struct moment refused;
    unsigned heartbeats; /* since the queue was looked at */

    /* The operation under way. */
    void (*next)(struct zk_store *store, const struct zk_reply *replies);
    void (*expired)(struct zk_store *store);
    void (*adopted)(struct zk_store *store);
    struct moment until;
    bool requeued;
    store_done *done;
    void *arg;
    struct zk_survey *survey;
};

static void begin_place(struct zk_store *store);
static void look(struct zk_store *store);

static struct zk_store *of(struct store *base)
{
    return (struct zk_store *)(void *)base;
}

static const struct lock_request *request_of(const struct zk_store *store)
{
    return &store->base.requests.lock;
}

static struct zk_batch *batch_of(struct zk_store *store)
{
    return zk_session_batch(store->session);
}

static bool is_closed(const struct zk_store *store)
{
    return zk_session_is_closed_to_others(store->session);
}

/* -- spots ------------------------------------------------------------------------------------- */

static void clear_spot(struct spot *spot)
{
    free(spot->lock);
    free(spot->in_the_way);
    free(spot->data);
    for (size_t i = 0; i < NODES_MAX; i++)
        free(spot->nodes[i]);
    *spot = (struct spot){0};
}

static void clear_spots(struct zk_store *store)
{
    for (size_t i = 0; i < store->spot_count; i++)
        clear_spot(&store->spots[i]);
    store->spot_count = 0;
    store->placed = store->unsure = false;
    store->heartbeats = 0;
}

static void make_spots(struct zk_store *store)
{
    const struct lock_request *request = request_of(store);

    clear_spots(store);
    for (size_t i = 0; i < request->key_count; i++)
        store->spots[i].lock = zk_path_of_key(store->folder, request->keys[i]);
    store->spot_count = request->key_count;
}

static void set_text(char **to, char *text)
{
    free(*to);
    *to = text;
}

static const char *last_part(const char *path)
{
    return strrchr(path, '/') + 1;
}

/* The session is nobody's any more: another one begins with the next request. */
static void forget(struct zk_store *store)
{
    static const struct zk_identity none;

    clear_spots(store);
    store->ending = false;
    *store->owner = '\0';
    zk_session_take(store->session, &none);
}

/* -- the end of an operation ------------------------------------------------------------------- */

static void ask(struct zk_store *store, bool again,
                void (*next)(struct zk_store *, const struct zk_reply *))
{
    store->next = next;
    zk_session_send(store->session, again, store->until);
}

static void tell(struct zk_store *store, struct answer *answer)
{
    answer->requeued = store->requeued;
    store->done(store->arg, answer);
}

/* Nodes of ours that are there may come to hold the lock. */
static void tell_failure(struct zk_store *store, const struct answer *failure)
{
    struct answer answer = *failure;

    answer.maybe_done |= store->placed || store->unsure;
    tell(store, &answer);
}

static void refuse(struct zk_store *store, enum cause cause, size_t key, const char *text)
{
    struct answer answer = {.verdict = VERDICT_REFUSED, .cause = cause, .key = key};

    snprintf(answer.text, sizeof answer.text, "%s", text);
    tell(store, &answer);
}

static void refuse_not_held(struct zk_store *store, size_t key)
{
    refuse(store, CAUSE_NOT_HOLDER, key, "it is not held");
}

/* What the server did not do. */
static void tell_error(struct zk_store *store, int error)
{
    struct answer answer;

    switch (error) {
    case ZK_NO_AUTH:
        answer_fail(&answer, CAUSE_DENIED, "the server does not allow it: the nodes are others'");
        break;
    case ZK_INVALID_ACL: answer_fail(&answer, CAUSE_DENIED, "the server knows no such user"); break;
    case ZK_UNIMPLEMENTED:
        answer_fail(&answer, CAUSE_UNFIT, "the server is older than ZooKeeper 3.5");
        break;
    case ZK_QUOTA_EXCEEDED: answer_fail(&answer, CAUSE_UNFIT, "the quota is exceeded"); break;
    case ZK_NOT_READ_ONLY:
        answer_fail(&answer, CAUSE_NOT_READY, "the server has no majority, and is read-only");
        break;
    case ZK_THROTTLED: answer_fail(&answer, CAUSE_NOT_READY, "the server is too busy"); break;
    default: answer_fail(&answer, CAUSE_NOT_READY, "the server answers with error %d", error);
    }
    zk_session_sign(store->session, &answer);
    tell_failure(store, &answer);
}

/* A server that is opened for the first time has not said yet what it grants. */
static int64_t granted_lease(const struct zk_store *store)
{
    int64_t timeout = zk_session_timeout(store->session);

    return timeout && timeout < store->lease ? timeout : store->lease;
}

static void grant(struct zk_store *store)
{
    struct answer answer = {
        .verdict = VERDICT_GRANTED, .from = store->from, .lease = granted_lease(store)};

    for (size_t i = 0; i < store->spot_count; i++)
        answer.grants[i].fence = store->spots[i].fence;
    tell(store, &answer);
}

/* -- reading ----------------------------------------------------------------------------------- */

static void ask_children(struct zk_store *store)
{
    for (size_t i = 0; i < store->spot_count; i++)
        zk_children(batch_of(store), store->spots[i].lock, false);
}

/* The queues of all keys; a lock that has no node has none. False, and told, if they cannot be
 * read. */
static bool read_queues(struct zk_store *store, const struct zk_reply *replies,
                        struct queue queues[LOCK_KEYS_MAX])
{
    int error = ZK_OK;

    for (size_t i = 0; i < store->spot_count; i++) {
        queues[i] = (struct queue){0};
        if (error == ZK_OK && replies[i].error != ZK_NO_NODE)
            error = replies[i].error                      ? replies[i].error
                    : queue_read(&replies[i], &queues[i]) ? ZK_OK
                                                          : ZK_MARSHALLING;
    }
    if (error == ZK_OK)
        return true;
    for (size_t i = 0; i < store->spot_count; i++)
        queue_free(&queues[i]);
    tell_error(store, error);
    return false;
}

static void free_queues(struct zk_store *store, struct queue queues[LOCK_KEYS_MAX])
{
    for (size_t i = 0; i < store->spot_count; i++)
        queue_free(&queues[i]);
}

/* -- a place in the queues --------------------------------------------------------------------- */

static void print_data(const struct zk_store *store, struct spot *spot)
{
    const struct lock_request *request = request_of(store);
    struct node_data data = {.mode = request->mode,
                             .fence = *spot->beside ? spot->fence : 0,
                             .lease = granted_lease(store),
                             .who = request->who,
                             .who_size = strlen(request->who)};

    snprintf(data.owner, sizeof data.owner, "%s", request->owner);
    memcpy(data.password, zk_session_identity(store->session)->password, sizeof data.password);
    set_text(&spot->data, node_data_print(&data));
}

static const char *const *words_of(enum lock_mode mode)
{
    static const char *const writer[] = {"lock-", "__WRIT__", NULL};
    static const char *const reader[] = {"__READ__", NULL};

    return mode == LOCK_SHARED ? reader : writer;
}

/* Who nests in a holder has its number, and so is before all that wait. */
static void add_creations(struct zk_store *store, struct zk_multi *multi, struct spot *spot)
{
    const char *const *words = words_of(request_of(store)->mode);
    char name[NAME_SIZE];
    bool nested = *spot->beside;

    print_data(store, spot);
    if (nested) {
        char *ancestor = zk_path_join(spot->lock, spot->beside);
        zk_multi_check(multi, ancestor);
        free(ancestor);
    }
    for (; *words; words++) {
        snprintf(name, sizeof name, nested ? "_c_%s-%s%010d" : "_c_%s-%s", queue_uuid(store->owner),
                 *words, (int)spot->number);
        char *path = zk_path_join(spot->lock, name);
        zk_multi_create(multi, nested ? ZK_EPHEMERAL : ZK_EPHEMERAL_SEQUENTIAL, path, spot->data,
                        is_closed(store));
        free(path);
    }
}

/* Notes what was created: of each spot its nodes, behind a check where it is nested. */
static bool note_created(struct zk_store *store, const struct zk_reply *reply)
{
    const char *const *words = words_of(request_of(store)->mode);
    struct jute_in in = reply->body;
    struct zk_result result = {0};
    bool sound = reply->zxid > 0;

    for (size_t i = 0; sound && i < store->spot_count; i++) {
        struct spot *spot = &store->spots[i];
        sound = !*spot->beside || zk_next_result(&in, &result);
        for (size_t j = 0; sound && words[j]; j++) {
            sound = zk_next_result(&in, &result) && result.path.size > strlen(spot->lock) + 1 &&
                    result.path.size < KEY_MAX_BYTES * 4 + 4096;
            if (sound)
                set_text(&spot->nodes[j],
                         mem_checked(strndup(result.path.bytes, result.path.size)));
            sound = sound && strncmp(spot->nodes[j], spot->lock, strlen(spot->lock)) == 0 &&
                    spot->nodes[j][strlen(spot->lock)] == '/';
        }
        if (!*spot->beside)
            spot->fence = (uint64_t)reply->zxid;
    }
    return sound;
}

static void judge(struct zk_store *store, struct queue queues[LOCK_KEYS_MAX]);
static void find_ancestors(struct zk_store *store);

static void made_locks(struct zk_store *store, const struct zk_reply *replies)
{
    const char *slashes = store->folder;
    size_t count = store->spot_count;

    for (; *slashes; slashes++)
        count += *slashes == '/';
    for (size_t i = 0; i < count; i++) {
        if (replies[i].error == ZK_OK || replies[i].error == ZK_NODE_EXISTS)
            continue;
        /* Who may not create what is there already is told that it may not. */
        if (replies[i].error == ZK_NO_AUTH && i + store->spot_count < count)
            continue;
        tell_error(store, replies[i].error);
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
        zk_container(batch_of(store), folder, is_closed(store));
        if (!kept)
            break;
    }
    for (size_t i = 0; i < store->spot_count; i++)
        zk_container(batch_of(store), store->spots[i].lock, is_closed(store));
    free(folder);
    ask(store, false, made_locks);
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
        tell_error(store, error);
    } else if (!note_created(store, replies)) {
        store->unsure = true;
        tell_error(store, ZK_MARSHALLING);
    } else {
        store->placed = true;
        store->from = zk_session_opened(store->session);
        if (read_queues(store, replies + 1, queues))
            judge(store, queues);
    }
}

/* All or none, and all with one zxid: whoever is before us in one queue that we share is before us
 * in all of them. */
static void create(struct zk_store *store)
{
    struct zk_multi multi = zk_multi(batch_of(store));

    for (size_t i = 0; i < store->spot_count; i++)
        add_creations(store, &multi, &store->spots[i]);
    zk_multi_end(&multi);
    ask_children(store);
    store->unsure = true;
    ask(store, false, created);
}

/* -- nesting ----------------------------------------------------------------------------------- */

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
        if (!*spot->beside)
            continue;
        const struct zk_reply *reply = replies++;
        if (reply->error == ZK_NO_NODE) {
            *spot->beside = '\0'; /* it has just gone: to the end of the queue */
        } else if (reply->error != ZK_OK || !zk_read_data(reply, &text, &stat)) {
            tell_error(store, reply->error ? reply->error : ZK_MARSHALLING);
            return;
        } else {
            queue_party(&ancestor, text, &stat, 0, &party);
            spot->fence = party.fence > 0 ? party.fence : 1;
        }
    }
    create(store);
}

static void found_ancestors(struct zk_store *store, const struct zk_reply *replies)
{
    const struct lock_request *request = request_of(store);
    struct queue queues[LOCK_KEYS_MAX];
    const char *misfit = NULL;
    size_t key = 0;

    if (!read_queues(store, replies, queues))
        return;
    for (size_t i = 0; i < store->spot_count; i++) {
        struct spot *spot = &store->spots[i];
        const struct contender *one = queue_ancestor(&queues[i], store->owner);
        *spot->beside = '\0';
        if (!one || strlen(one->name) >= sizeof spot->beside)
            continue;
        key = i;
        if (request->no_nesting)
            misfit = "it is held by an ancestor of this process, and nesting was ruled out";
        else if (one->reader && request->mode == LOCK_EXCLUSIVE)
            misfit = "an ancestor of this process holds it for reading, and cannot make way";
        strcpy(spot->beside, one->name);
        spot->number = one->number;
        char *path = zk_path_join(spot->lock, one->name);
        zk_get(batch_of(store), path);
        free(path);
    }
    free_queues(store, queues);
    if (misfit) {
        zk_session_drop_batch(store->session);
        refuse(store, CAUSE_MISFIT, key, misfit);
    } else if (batch_of(store)->count > 0) {
        ask(store, false, read_ancestors);
    } else {
        create(store);
    }
}

static void find_ancestors(struct zk_store *store)
{
    if (strchr(store->owner, '.')) {
        ask_children(store);
        ask(store, false, found_ancestors);
    } else {
        create(store);
    }
}

/* -- our turn, or not -------------------------------------------------------------------------- */

/* The age of what was read earlier. */
static void refuse_again(struct zk_store *store)
{
    struct answer answer = store->refusal;
    int64_t later = moment_until(store->refused, loop_now(store->loop)) / NS_PER_MS;

    answer.holder.age_ms += later;
    answer.first.age_ms += later;
    tell(store, &answer);
}

/* The replies about who is in the way, and then about who holds the lock. */
static void described(struct zk_store *store, const struct zk_reply *replies)
{
    const struct lock_request *request = request_of(store);
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
        store->refusal.left_ms = store->refusal.holder.left_ms;
    }
    store->refused = loop_now(store->loop);
    if (!request->queue)
        forget(store);
    refuse_again(store);
}

static void note_refusal(struct zk_store *store, size_t key, const struct queue *queue,
                         const struct contender *own)
{
    const struct contender *oldest = queue_oldest(queue);
    struct answer *refusal = &store->refusal;

    *refusal = (struct answer){.verdict = VERDICT_REFUSED,
                               .cause = CAUSE_HELD,
                               .key = key,
                               .holders = (int64_t)queue_holders(queue)};
    refusal->position = request_of(store)->queue ? (int64_t)queue_position(queue, own)
                                                 : (int64_t)queue_position(queue, NULL) - 1;
    if (oldest) {
        strcpy(refusal->holder.owner, oldest->uuid);
        refusal->holder.mode = oldest->reader ? LOCK_SHARED : LOCK_EXCLUSIVE;
        char *path = zk_path_join(store->spots[key].lock, oldest->name);
        zk_get(batch_of(store), path);
        free(path);
    }
}

/* Whoever takes the lock away deletes our nodes. */
static void watch_own(struct zk_store *store)
{
    for (size_t i = 0; i < store->spot_count; i++)
        zk_exists(batch_of(store), store->spots[i].nodes[0], true);
}

/* The index of the first of our nodes that is not there; the number of spots if all are. */
static size_t missing(const struct zk_store *store, const struct zk_reply *replies)
{
    size_t i = 0;

    while (i < store->spot_count && replies[i].error == ZK_OK)
        i++;
    return i;
}

static void watched(struct zk_store *store, const struct zk_reply *replies)
{
    if (missing(store, replies) == store->spot_count)
        grant(store);
    else
        look(store);
}

/* Our first node in each queue tells whether there is somebody in the way. */
static void judge(struct zk_store *store, struct queue queues[LOCK_KEYS_MAX])
{
    size_t refused = store->spot_count;
    bool lost = false;

    for (size_t i = 0; i < store->spot_count; i++) {
        struct spot *spot = &store->spots[i];
        const struct contender *own = queue_named(&queues[i], last_part(spot->nodes[0]));
        const struct contender *other = own ? queue_in_the_way(&queues[i], own) : NULL;
        lost |= !own;
        set_text(&spot->in_the_way, other ? zk_path_join(spot->lock, other->name) : NULL);
        if (other && request_of(store)->queue)
            zk_exists(batch_of(store), spot->in_the_way, true);
        if (other && refused == store->spot_count)
            refused = i;
    }
    if (!lost && refused < store->spot_count)
        note_refusal(store, refused, &queues[refused],
                     queue_named(&queues[refused], last_part(store->spots[refused].nodes[0])));
    free_queues(store, queues);
    store->heartbeats = 0;
    if (lost) {
        zk_session_drop_batch(store->session);
        store->requeued = true;
        forget(store);
        begin_place(store);
    } else if (refused == store->spot_count) {
        watch_own(store);
        ask(store, false, watched);
    } else {
        store->closing = !request_of(store)->queue;
        if (store->closing)
            zk_close(batch_of(store));
        ask(store, false, described);
    }
}

static void looked(struct zk_store *store, const struct zk_reply *replies)
{
    struct queue queues[LOCK_KEYS_MAX];

    if (read_queues(store, replies, queues))
        judge(store, queues);
}

static void look(struct zk_store *store)
{
    ask_children(store);
    ask(store, false, looked);
}

/* -- acquiring --------------------------------------------------------------------------------- */

static void place_expired(struct zk_store *store)
{
    store->requeued = store->placed;
    forget(store);
    begin_place(store);
}

static void wish(struct zk_store *store, int64_t lease)
{
    store->lease = lease;
    zk_session_wish(store->session, lease);
}

static void began(struct zk_store *store, const struct zk_reply *replies)
{
    (void)replies;
    find_ancestors(store);
}

/* The session is begun first: its password belongs into the nodes. */
static void begin_place(struct zk_store *store)
{
    const struct lock_request *request = request_of(store);

    make_spots(store);
    snprintf(store->owner, sizeof store->owner, "%s", request->owner);
    wish(store, request->lease);
    store->expired = place_expired;
    if (zk_session_identity(store->session)->id)
        find_ancestors(store);
    else
        ask(store, false, began);
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
        refuse_again(store);
}

/* A list of some thousand waiters is long: mostly it is enough that nothing has changed. */
static void beat(struct zk_store *store)
{
    for (size_t i = 0; i < store->spot_count; i++)
        if (store->spots[i].in_the_way)
            zk_exists(batch_of(store), store->spots[i].in_the_way, true);
    zk_exists(batch_of(store), store->spots[0].nodes[0], false);
    ask(store, false, heard);
}

/* Nodes may be there that an unanswered request has made: they go with their session. */
static void begin_anew(struct zk_store *store)
{
    forget(store);
    begin_place(store);
}

static void closed_old(struct zk_store *store, const struct zk_reply *replies)
{
    (void)replies;
    begin_anew(store);
}

static void close_old(struct zk_store *store)
{
    zk_close(batch_of(store));
    store->closing = true;
    store->expired = begin_anew;
    ask(store, false, closed_old);
}

/* -- the operations ---------------------------------------------------------------------------- */

static void start(struct zk_store *store, struct moment until, store_done *done, void *arg)
{
    store->until = until;
    store->done = done;
    store->arg = arg;
    store->requeued = store->closing = false;
}

/* Whether the session is this owner's; one that was another's is left to its timeout. */
static bool is_own(const struct zk_store *store)
{
    return strcmp(store->owner, request_of(store)->owner) == 0 &&
           zk_session_identity(store->session)->id != 0;
}

static void zk_acquire(struct store *base, const struct lock_request *request, struct moment until,
                       store_done *done, void *arg)
{
    struct zk_store *store = of(base);

    (void)request;
    start(store, until, done, arg);
    store->expired = place_expired;
    if (!is_own(store) || store->ending)
        begin_anew(store);
    else if (store->unsure)
        close_old(store);
    else if (!store->placed)
        begin_place(store);
    else if (store->refusal.cause == CAUSE_HELD && store->heartbeats++ < HEARTBEATS)
        beat(store);
    else
        look(store);
}

/* -- the session of another process ------------------------------------------------------------ */

static void is_not_held(struct zk_store *store)
{
    forget(store);
    refuse_not_held(store, 0);
}

static void adopt(struct zk_store *store, const struct zk_reply *replies);

/* The owner's nodes in all locks, or it does not hold them. */
static void found_own(struct zk_store *store, const struct zk_reply *replies)
{
    struct queue queues[LOCK_KEYS_MAX];
    size_t key = store->spot_count;

    if (!read_queues(store, replies, queues))
        return;
    for (size_t i = 0; i < store->spot_count; i++) {
        struct spot *spot = &store->spots[i];
        const char *uuid = queue_uuid(request_of(store)->owner);
        const struct contender *one = NULL;
        for (size_t j = 0; j < NODES_MAX && (one = queue_next_of(&queues[i], uuid, one)); j++)
            set_text(&spot->nodes[j], zk_path_join(spot->lock, one->name));
        if (spot->nodes[0])
            zk_get(batch_of(store), spot->nodes[0]);
        else if (key == store->spot_count)
            key = i;
    }
    free_queues(store, queues);
    if (key == store->spot_count) {
        zk_close(batch_of(store));
        ask(store, false, adopt);
    } else {
        zk_session_drop_batch(store->session);
        refuse_not_held(store, key);
    }
}

/* A process that knows nothing but the owner goes on with its session. "store->adopted" follows, or
 * the refusal. */
static void find_own(struct zk_store *store, void (*adopted)(struct zk_store *store))
{
    forget(store);
    make_spots(store);
    wish(store, request_of(store)->lease);
    store->adopted = adopted;
    store->expired = is_not_held;
    ask_children(store);
    ask(store, false, found_own);
}

static void adopt(struct zk_store *store, const struct zk_reply *replies)
{
    struct zk_identity identity = {0};
    int64_t lease = request_of(store)->lease;

    for (size_t i = 0; i < store->spot_count; i++) {
        struct spot *spot = &store->spots[i];
        struct node_data data;
        struct jute_text text;
        struct zk_stat stat;
        if (replies[i].error != ZK_OK || !zk_read_data(&replies[i], &text, &stat) ||
            !node_data_parse(text, &data) || strcmp(data.owner, request_of(store)->owner) != 0) {
            is_not_held(store);
            return;
        }
        identity.id = stat.session;
        memcpy(identity.password, data.password, sizeof identity.password);
        spot->fence = data.fence ? data.fence : (uint64_t)stat.czxid;
        set_text(&spot->data, mem_checked(strndup(text.bytes, text.size)));
        lease = request_of(store)->lease ? lease : data.lease;
    }
    wish(store, lease);
    zk_session_take(store->session, &identity);
    snprintf(store->owner, sizeof store->owner, "%s", request_of(store)->owner);
    store->placed = true;
    store->adopted(store);
}

/* -- renewing ---------------------------------------------------------------------------------- */

static void renewed(struct zk_store *store, const struct zk_reply *replies)
{
    size_t index, key;
    int error = zk_multi_error(&replies[0], &index);

    key = missing(store, replies + 1);
    if (error == ZK_NO_NODE || (error == ZK_OK && key < store->spot_count)) {
        clear_spots(store);
        refuse_not_held(store, key < request_of(store)->key_count ? key : 0);
    } else if (error != ZK_OK) {
        tell_error(store, error);
    } else {
        store->from = zk_session_opened(store->session);
        grant(store);
    }
}

/* What is in a node, with what is new about it. */
static void update_data(struct zk_store *store, struct spot *spot)
{
    const struct lock_request *request = request_of(store);
    struct jute_text text = {spot->data, strlen(spot->data)};
    struct node_data data;

    if (!node_data_parse(text, &data))
        return;
    data.lease = granted_lease(store);
    if (*request->who) {
        data.who = request->who;
        data.who_size = strlen(request->who);
    }
    set_text(&spot->data, node_data_print(&data));
}

static void send_renewal(struct zk_store *store)
{
    struct zk_multi multi = zk_multi(batch_of(store));

    for (size_t i = 0; i < store->spot_count; i++) {
        struct spot *spot = &store->spots[i];
        update_data(store, spot);
        zk_multi_set(&multi, spot->nodes[0], spot->data);
        for (size_t j = 1; j < NODES_MAX && spot->nodes[j]; j++)
            zk_multi_check(&multi, spot->nodes[j]);
    }
    zk_multi_end(&multi);
    watch_own(store);
    store->expired = is_not_held;
    ask(store, true, renewed);
}

static void zk_renew(struct store *base, const struct lock_request *request, struct moment until,
                     store_done *done, void *arg)
{
    struct zk_store *store = of(base);

    start(store, until, done, arg);
    if (!is_own(store) || !store->placed || store->ending) {
        find_own(store, send_renewal);
        return;
    }
    if (request->lease)
        wish(store, request->lease);
    send_renewal(store);
}

/* -- releasing --------------------------------------------------------------------------------- */

static void add_release(struct zk_store *store)
{
    if (store->placed) {
        struct zk_multi multi = zk_multi(batch_of(store));
        for (size_t i = 0; i < store->spot_count; i++)
            for (size_t j = 0; j < NODES_MAX && store->spots[i].nodes[j]; j++)
                zk_multi_delete(&multi, store->spots[i].nodes[j]);
        zk_multi_end(&multi);
    }
    zk_close(batch_of(store));
}

/* Which key the operation of the transaction is about. */
static size_t key_of_operation(const struct zk_store *store, size_t index)
{
    for (size_t i = 0; i < store->spot_count; i++)
        for (size_t j = 0; j < NODES_MAX && store->spots[i].nodes[j]; j++)
            if (index-- == 0)
                return i;
    return 0;
}

static void released(struct zk_store *store, const struct zk_reply *replies)
{
    struct answer answer = {.verdict = VERDICT_GRANTED};
    bool there = store->placed || store->unsure;
    size_t index = 0;

    if (store->placed && zk_multi_error(&replies[0], &index) != ZK_OK)
        there = false;
    size_t key = key_of_operation(store, index);
    forget(store);
    if (there)
        tell(store, &answer);
    else
        refuse_not_held(store, key);
}

/* The session is closed as well: nothing of it can come later. Its end frees what the transaction
 * has not. */
static void send_release(struct zk_store *store)
{
    add_release(store);
    store->closing = true;
    store->expired = is_not_held;
    ask(store, false, released);
}

static void zk_release(struct store *base, const struct lock_request *request, bool uncertain,
                       struct moment until, store_done *done, void *arg)
{
    struct zk_store *store = of(base);

    (void)request;
    (void)uncertain;
    start(store, until, done, arg);
    if (is_own(store))
        send_release(store);
    else
        find_own(store, send_release);
}

static bool zk_release_nowait(struct store *base, const struct lock_request *request)
{
    struct zk_store *store = of(base);

    (void)request;
    zk_session_drop_batch(store->session);
    if (is_own(store))
        add_release(store);
    store->ending = true;
    return zk_session_send_nowait(store->session);
}

/* -- force ------------------------------------------------------------------------------------- */

static bool is_told(const struct force_request *request, const struct contender *one)
{
    for (size_t i = 0; i < request->owner_count; i++)
        if (strcmp(queue_uuid(request->owners[i]), one->uuid) == 0)
            return true;
    return false;
}

static void forced(struct zk_store *store, const struct zk_reply *replies)
{
    struct answer answer = {.verdict = VERDICT_GRANTED};
    size_t index;
    int error = zk_multi_error(replies, &index);

    if (error == ZK_NO_NODE)
        refuse(store, CAUSE_CHANGED, 0, "its holders are others by now");
    else if (error != ZK_OK)
        tell_error(store, error);
    else
        tell(store, &answer);
}

/* Deletes the nodes of the holders that were told, if there are no others. */
static void take_away(struct zk_store *store, const struct queue *queue)
{
    const struct force_request *request = &store->base.requests.force;
    struct zk_multi multi = zk_multi(batch_of(store));
    size_t holders = 0, told = 0;

    for (size_t i = 0; i < queue->count; i++) {
        const struct contender *one = &queue->all[i];
        bool wanted = is_told(request, one);
        holders += one->heads && one->holds;
        told += one->heads && one->holds && wanted;
        if (!wanted && !(request->purge && !one->holds))
            continue;
        char *path = zk_path_join(store->spots[0].lock, one->name);
        zk_multi_delete(&multi, path);
        free(path);
    }
    zk_multi_end(&multi);
    if (told == holders && told == request->owner_count) {
        ask(store, false, forced);
    } else {
        zk_session_drop_batch(store->session);
        refuse(store, CAUSE_CHANGED, 0, "its holders are others by now");
    }
}

static void listed_for_force(struct zk_store *store, const struct zk_reply *replies)
{
    struct queue queues[LOCK_KEYS_MAX] = {{0}};

    if (!read_queues(store, replies, queues))
        return;
    take_away(store, &queues[0]);
    free_queues(store, queues);
}

static void ask_anew(struct zk_store *store)
{
    struct answer answer;

    answer_fail(&answer, CAUSE_NOT_READY, "the session ended meanwhile");
    zk_session_sign(store->session, &answer);
    tell_failure(store, &answer);
}

static void zk_force(struct store *base, const struct force_request *request, struct moment until,
                     store_done *done, void *arg)
{
    struct zk_store *store = of(base);

    start(store, until, done, arg);
    clear_spots(store);
    store->spots[0].lock = zk_path_of_key(store->folder, request->key);
    store->spot_count = 1;
    zk_session_wish(store->session, ZK_TIMEOUT_LEAST);
    store->expired = ask_anew;
    ask_children(store);
    ask(store, false, listed_for_force);
}

/* -- surveys ----------------------------------------------------------------------------------- */

static void surveyed(struct zk_store *store, const struct zk_reply *replies)
{
    struct answer answer = {.verdict = VERDICT_GRANTED};
    int error = zk_survey_take(store->survey, replies, batch_of(store));

    if (error == ZK_OK && batch_of(store)->count > 0) {
        ask(store, false, surveyed);
        return;
    }
    if (error == ZK_OK)
        zk_survey_report(store->survey, clock_wall() / NS_PER_MS);
    zk_survey_free(store->survey);
    store->survey = NULL;
    if (error == ZK_OK)
        tell(store, &answer);
    else
        tell_error(store, error);
}

static void zk_survey_locks(struct store *base, const struct survey_request *request,
                            struct moment until, store_done *done, void *arg)
{
    struct zk_store *store = of(base);

    start(store, until, done, arg);
    zk_survey_free(store->survey);
    zk_session_wish(store->session, ZK_TIMEOUT_LEAST);
    store->expired = ask_anew;
    store->survey = zk_survey_new(store->folder, request, batch_of(store));
    ask(store, false, surveyed);
}

/* -- the store --------------------------------------------------------------------------------- */

static void answered(void *arg, enum zk_outcome outcome, const struct zk_reply *replies,
                     const struct answer *failure)
{
    struct zk_store *store = arg;

    if (outcome == ZK_ANSWERED) {
        store->next(store, replies);
    } else if (outcome == ZK_EXPIRED) {
        store->expired(store);
    } else {
        store->ending |= store->closing && failure->maybe_done;
        if (store->next == created)
            store->unsure = failure->maybe_done;
        tell_failure(store, failure);
    }
}

static void poked(void *arg)
{
    struct zk_store *store = arg;

    store_poke(&store->base);
}

/* A session that has made nothing is closed; one that has is left to its timeout. */
static void zk_end(struct store *base)
{
    struct zk_store *store = of(base);

    if (zk_session_identity(store->session)->id && !store->placed && !store->unsure &&
        !store->ending) {
        zk_session_drop_batch(store->session);
        zk_close(batch_of(store));
        zk_session_send_nowait(store->session);
    }
    clear_spots(store);
    zk_survey_free(store->survey);
    zk_session_free(store->session);
    free(store->folder);
    free(store);
}

static const struct store_ops ops = {.close = zk_end,
                                     .acquire = zk_acquire,
                                     .renew = zk_renew,
                                     .release = zk_release,
                                     .release_nowait = zk_release_nowait,
                                     .force = zk_force,
                                     .survey = zk_survey_locks};

struct store *zookeeper_open(struct loop *loop, const struct store_address *address, char *fault,
                             size_t size)
{
    static const struct zk_session_events events = {answered, poked};

    if (address->password && !address->urls->user) {
        snprintf(fault, size,
                 "there is a password, but zookeeper:// needs a user as well: "
                 "zookeeper://USER:@HOST");
        return NULL;
    }
    struct zk_store *store = mem_zeroed(sizeof *store);
    store->base.ops = &ops;
    store->loop = loop;
    store->folder = zk_path_folder(address->urls->path, address->prefix);
    store->session = zk_session_new(loop, address, &events, store, fault, size);
    if (store->session)
        return &store->base;
    free(store->folder);
    free(store);
    return NULL;
}
