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
#include "store/zookeeper/store_kind.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/text.h"
#include "store/url_parts.h"
#include "store/zookeeper/acquire.h"
#include "store/zookeeper/leave.h"
#include "store/zookeeper/refuse.h"
#include "store/zookeeper/survey.h"

#define PORT 2181

/* In the order of the steps. */
static zk_hear found_nodes, dropped_rest, read_nodes, on_renewed, listed_holders, on_forced;

static void send_renewal(struct zk_store *store);
static void send_release(struct zk_store *store);
static void take_over(struct zk_store *store);
static zk_step on_released;

/* -- another process' nodes -------------------------------------------------------------------- */

/* Notes the owner's nodes of a key (nodes->own): those in the first branch that has any. replies:
 * the lists of all branches. Returns ZK_OK, or an error of the server's. */
static int find_nodes(const struct zk_store *store, struct zk_nodes *nodes,
                      const struct zk_reply *replies)
{
    const char *uuid = zk_owner_uuid(store->request.owner);

    for (enum zk_branch branch = 0; branch < ZK_BRANCHES && !nodes->own[0]; branch++) {
        const struct zk_contender *one = NULL;
        struct zk_queue queue;
        int error = zk_queue_read(&replies[branch], branch, &queue);
        if (error != ZK_OK)
            return error;
        for (size_t i = 0; i < NODES_MAX && (one = zk_queue_next_of(&queue, uuid, one)); i++) {
            nodes->own[i] = zk_path_join(nodes->branches[branch], one->name);
            nodes->number = one->number;
        }
        zk_queue_free(&queue);
    }
    return ZK_OK;
}

/* The owner has lost the key of that index: deletes its nodes of the other keys, which must not
 * stay until the session of the process that made them ends. Then the operation continues as one of
 * an owner without nodes (zk_miss()). */
static void drop_rest(struct zk_store *store, size_t lost)
{
    bool any = false;

    zk_session_drop_batch(store->session);
    for (size_t i = 0; i < store->key_count; i++)
        any |= store->nodes[i].own[0] != NULL;
    if (any)
        zk_delete_own(store);
    zk_clear_nodes(store);
    store->absent = lost;
    zk_ask(store, dropped_rest);
}

/* The nodes of the other keys are deleted, or one was gone and none is. */
static void dropped_rest(struct zk_store *store, const struct zk_reply *replies)
{
    (void)replies;
    zk_miss(store);
}

/* The branches have been listed (take_over()): notes the nodes that the owner has, and asks what is
 * in them. The session that they were looked for in is closed behind that: it has made nothing, and
 * the one that has made the nodes is continued with. */
static void found_nodes(struct zk_store *store, const struct zk_reply *replies)
{
    for (size_t i = 0; i < store->key_count; i++) {
        int error = find_nodes(store, &store->nodes[i], replies + ZK_BRANCHES * i);
        if (error == ZK_OK)
            continue;
        zk_tell_error(store, error);
        return;
    }
    for (size_t i = 0; i < store->key_count; i++) {
        const struct zk_nodes *nodes = &store->nodes[i];
        if (!nodes->own[0]) {
            drop_rest(store, i);
            return;
        }
        for (size_t j = 0; j < NODES_MAX && nodes->own[j]; j++)
            zk_query(store->batch, OP_GET_DATA, nodes->own[j], ZK_NO_WATCH);
    }
    zk_close(store->batch);
    zk_send(store, read_nodes, ZK_NO_EFFECT);
}

/* Takes what is in one node of a key, and, into *identity, its session where none is known yet.
 * node: its place in nodes->own. Returns false if it is not a node of the owner that can be
 * continued with. */
static bool take_node(struct zk_store *store, struct zk_nodes *nodes, char **node,
                      const struct zk_reply *reply, struct zk_identity *identity)
{
    struct zk_node_data data;
    struct jute_text text;
    struct zk_stat stat;

    if (zk_read_data(reply, &text, &stat) != ZK_OK || !zk_node_data_parse(text, &data) ||
        strcmp(data.owner, store->request.owner) != 0)
        return false;
    if (identity->id && identity->id != stat.session) {
        /* The node is of a request that came late, and goes with that session. */
        zk_set_text(node, NULL);
        return node != &nodes->own[0];
    }
    identity->id = stat.session;
    memcpy(identity->password, data.password, sizeof identity->password);
    if (node != &nodes->own[0]) /* a writer's second node says the same */
        return true;
    nodes->slot = data.slot;
    nodes->leased = data.slot > 0;
    nodes->nests = data.fence > 0;
    nodes->fence = data.fence ? data.fence : (uint64_t)stat.czxid;
    zk_set_text(&nodes->data, mem_checked(strndup(text.bytes, text.size)));
    if (!store->request.lease)
        zk_wish(store, data.lease);
    return true;
}

/* The nodes have been read that an earlier process has made for this owner: continues with their
 * session, and does what was asked for. */
static void read_nodes(struct zk_store *store, const struct zk_reply *replies)
{
    struct zk_identity identity = {0};

    for (size_t i = 0; i < store->key_count; i++) {
        struct zk_nodes *nodes = &store->nodes[i];
        for (size_t j = 0; j < NODES_MAX && nodes->own[j]; j++) {
            if (take_node(store, nodes, &nodes->own[j], replies++, &identity))
                continue;
            if (replies[-1].error == ZK_NO_NODE) { /* it has just gone: the rest has to go, too */
                take_over(store);
                return;
            }
            zk_forget(store); /* it is not the owner's, who so has none */
            store->absent = i;
            zk_miss(store);
            return;
        }
    }
    zk_session_take(store->session, &identity);
    snprintf(store->owner, sizeof store->owner, "%s", store->request.owner);
    store->place = ZK_HAS_PLACE;
    switch (store->base.operation.verb) {
    case VERB_ACQUIRE: zk_touch_own(store); break;
    case VERB_RENEW: send_renewal(store); break;
    default: send_release(store);
    }
}

/* Looks for the nodes of the request's owner, a holder's or a waiter's, that another process made,
 * and continues the operation with them if each key has some: their session is the store's then,
 * and nothing was written in it yet. */
static void take_over(struct zk_store *store)
{
    zk_forget(store);
    zk_make_nodes(store);
    zk_wish(store, store->request.lease);
    for (size_t i = 0; i < store->key_count; i++)
        zk_ask_branches(store, store->nodes[i].branches);
    zk_send(store, found_nodes, ZK_NO_EFFECT);
}

/* -- renewing ---------------------------------------------------------------------------------- */

/* Writes the own nodes, and opens the session again, by which the server counts its timeout
 * anew. */
static void send_renewal(struct zk_store *store)
{
    zk_write_own(store);
    zk_watch_own(store);
    zk_send(store, on_renewed, ZK_REOPENS);
}

/* Takes the answer to a renewal: the own nodes of all keys must be there. */
static void on_renewed(struct zk_store *store, const struct zk_reply *replies)
{
    int error = zk_multi_error(&replies[0], NULL);
    size_t key = zk_first_missing(store, replies + 1); /* behind all keys: none is missing */

    if (error == ZK_NO_NODE || (error == ZK_OK && key < store->key_count)) {
        key = key < store->key_count ? key : 0;
        store->place = ZK_MAY_HAVE_PLACE; /* in other keys */
        store->missing = 1 + key;
        zk_refuse_not_held(store, key);
    } else if (error != ZK_OK) {
        zk_tell_error(store, error);
    } else {
        store->from = store->session->opened;
        zk_grant(store);
    }
}

/* -- releasing --------------------------------------------------------------------------------- */

/* Deletes the own nodes, and then closes the session. */
static void send_release(struct zk_store *store)
{
    if (store->place == ZK_NO_PLACE)
        store->missing = 1;
    zk_leave(store, on_released);
}

/* The own nodes are gone. If one was gone before, that key was not held any more, and the release
 * says so. */
static void on_released(struct zk_store *store)
{
    struct answer answer = {.verdict = VERDICT_GRANTED};
    size_t missing = store->missing;

    zk_close_session(store);
    if (missing > 0)
        zk_refuse_not_held(store, missing - 1);
    else
        zk_tell(store, &answer);
}

/* See store_release_nowait(). Closes the session, if it is the owner's: its end also frees what a
 * request under way makes. This owner was told to end, and no other agent acquires for it. */
static enum release_sent zk_release_nowait(struct store *base,
                                           const struct release_request *request)
{
    struct zk_store *store = zk_store_of(base);

    store->request = *request->lock;
    loop_disarm(store->loop, &store->linger);
    zk_session_drop_batch(store->session);
    if (zk_is_own(store))
        zk_close(store->batch);
    store->place = ZK_MAY_HAVE_PLACE;
    return zk_session_send_nowait(store->session) ? RELEASE_SENT : RELEASE_UNSENT;
}

/* -- force ------------------------------------------------------------------------------------- */

/* The nodes are deleted, all or none: none, if one has gone since they were listed. */
static void on_forced(struct zk_store *store, const struct zk_reply *replies)
{
    struct answer answer = {.verdict = VERDICT_GRANTED};
    int error = zk_multi_error(replies, NULL);

    if (error == ZK_NO_NODE)
        zk_refuse(store, CAUSE_CHANGED, 0, "its holders are others by now");
    else if (error != ZK_OK)
        zk_tell_error(store, error);
    else
        zk_tell(store, &answer);
}

/* How many hold the lock, and how many of these the request names. */
struct holder_counts {
    size_t holders, named;
};

/* Adds to the transaction the deletion of the nodes in one branch (parent) of the holders that the
 * request names, and, for a purge, of all that wait; counts holders in *counts. */
static void add_deletions(struct zk_store *store, const struct zk_queue *queue, const char *parent,
                          struct holder_counts *counts)
{
    const struct force_request *request = store->base.operation.force;

    for (size_t i = 0; i < queue->count; i++) {
        const struct zk_contender *one = &queue->all[i];
        bool named = false; /* the request names it, as its user was shown this holder */
        for (size_t owner = 0; owner < request->owner_count; owner++)
            named |= strcmp(zk_owner_uuid(request->owners[owner]), one->uuid) == 0;
        counts->holders += one->first_of_party && one->holds;
        counts->named += one->first_of_party && one->holds && named;
        if (!named && !(request->purge && !one->holds))
            continue;
        char *path = zk_path_join(parent, one->name);
        zk_multi_change(store->batch, OP_DELETE, path, NULL);
        free(path);
    }
}

/* Deletes the nodes of the holders, if the request names all of them, and no other client; refuses
 * otherwise, as its user was shown other holders. */
static void take_away(struct zk_store *store, const struct zk_queue queues[ZK_BRANCHES])
{
    struct holder_counts counts = {0};

    zk_multi(store->batch);
    for (size_t i = 0; i < ZK_BRANCHES; i++)
        add_deletions(store, &queues[i], store->nodes[0].branches[i], &counts);
    zk_multi_end(store->batch);
    if (counts.named == counts.holders &&
        counts.named == store->base.operation.force->owner_count) {
        zk_send(store, on_forced, ZK_NO_EFFECT);
    } else {
        zk_session_drop_batch(store->session);
        zk_refuse(store, CAUSE_CHANGED, 0, "its holders are others by now");
    }
}

/* Reads who holds the lock, in the lists of force_lock(), and takes it away. */
static void listed_holders(struct zk_store *store, const struct zk_reply *replies)
{
    struct zk_queue queues[ZK_BRANCHES] = {{0}};
    int error = ZK_OK;

    for (enum zk_branch branch = 0; branch < ZK_BRANCHES && error == ZK_OK; branch++)
        error = zk_queue_read(&replies[branch], branch, &queues[branch]);
    if (error == ZK_OK)
        take_away(store, queues);
    else
        zk_tell_error(store, error);
    for (size_t i = 0; i < ZK_BRANCHES; i++)
        zk_queue_free(&queues[i]);
}

/* Lists the nodes of the lock, for take_away(). */
static void force_lock(struct zk_store *store, const struct force_request *request)
{
    store->request.keys = &request->key;
    store->request.key_count = 1;
    zk_make_nodes(store);
    zk_session_wish(store->session, ZK_TIMEOUT_LEAST);
    zk_ask_branches(store, store->nodes[0].branches);
    zk_send(store, listed_holders, ZK_NO_EFFECT);
}

/* -- operations -------------------------------------------------------------------------------- */

/* Starts an operation (store_ops.start). A renewal or release of an owner whose nodes this store
 * has not made, as after the death of an agent, has to find them first (take_over()). */
static void zk_start(struct store *base, const struct operation *operation)
{
    struct zk_store *store = zk_store_of(base);

    store->requeued = false;
    store->absent = 0;
    store->lingered = 0;
    loop_disarm(store->loop, &store->linger);
    store->request = *operation_lock(operation);
    switch (operation->verb) {
    case VERB_ACQUIRE:
        if (!zk_is_own(store) && store->request.from_dead_agent)
            take_over(store);
        else
            zk_acquire(store);
        break;
    case VERB_RENEW:
        if (!zk_is_own(store) || store->place != ZK_HAS_PLACE) {
            take_over(store);
            break;
        }
        if (store->request.lease)
            zk_wish(store, store->request.lease);
        send_renewal(store);
        break;
    case VERB_RELEASE:
        if (zk_is_own(store))
            send_release(store);
        else
            take_over(store);
        break;
    case VERB_FORCE: force_lock(store, operation->force); break;
    case VERB_SURVEY: zk_survey(store, operation->survey); break;
    default: break;
    }
}

/* -- the store --------------------------------------------------------------------------------- */

/* An acquisition has waited for a moment (LINGER_NS), in which others may have taken their leases:
 * looks again. */
static void on_lingered(struct loop_timer *timer)
{
    zk_check_turn(timer->owner);
}

/* Closes the store. A session that has made nothing is closed; one that has is left to its
 * timeout. */
static void zk_end(struct store *base)
{
    struct zk_store *store = zk_store_of(base);

    loop_disarm(store->loop, &store->linger);
    if (store->session->identity.id && store->place == ZK_NO_PLACE) {
        zk_session_drop_batch(store->session);
        zk_close(store->batch);
        zk_session_send_nowait(store->session);
    }
    zk_clear_nodes(store);
    zk_forget_found(store);
    zk_survey_clear(store);
    zk_session_free(store->session);
    free(store->folder);
    free(store);
}

static zk_step *const steps[ZK_NEXT_COUNT] = {[ZK_BEGIN] = zk_begin,
                                              [ZK_START_ANEW] = zk_start_anew,
                                              [ZK_CHECK_TURN] = zk_check_turn,
                                              [ZK_FIND_NESTED] = zk_find_nested,
                                              [ZK_LEAVE_FULL] = zk_leave_full};

static const struct store_ops ops = {zk_end, zk_start, zk_release_nowait};

/* Opens the store, which connects with its first request. NULL with a message in "fault": the
 * address cannot be used. */
static struct store *open_ensemble(struct loop *loop, const struct store_address *address,
                                   char *fault, size_t size)
{
    static const struct zk_session_events events = {zk_heard, store_changed};

    if (address->password && !address->urls->user) {
        snprintf(fault, size,
                 "there is a password, but zookeeper:// needs a user as well: "
                 "zookeeper://USER@HOST");
        return NULL;
    }
    struct zk_store *store = mem_zeroed(sizeof *store);
    store->base.ops = &ops;
    store->steps = steps;
    store->loop = loop;
    store->linger = (struct loop_timer){.fire = on_lingered, .owner = store};
    store->folder = zk_path_folder(address->urls->path, address->prefix);
    store->session = zk_session_new(loop, address, &events, store, fault, size);
    if (!store->session) {
        free(store->folder);
        free(store);
        return NULL;
    }
    store->batch = &store->session->batch;
    store->closed = address->urls->user != NULL;
    return &store->base;
}

/* -- its kind ---------------------------------------------------------------------------------- */

/* Parses HOSTS[/PATH] of a URL in place (store_kind.parse). Returns why it is wrong, as words that
 * follow the URL in a message, or NULL. */
static const char *parse_url(struct url *url, char *rest)
{
    char *path;
    const char *fault = url_take_authority(url, &rest, &path);

    if (fault || (fault = url_take_hosts(url, rest, PORT)))
        return fault;
    if (url->password && !url->user)
        return "has a password without a user";
    if (!path || !*path)
        return NULL;
    size_t length = strlen(path);
    length -= path[length - 1] == '/';
    path[length] = '\0';
    url->path = path;
    if ((fault = url_decode(path, path + length)))
        return fault;
    for (const char *part = path;; part += length + 1) {
        length = strcspn(part, "/");
        if (length == 0)
            return "has an empty part in its path";
        if (length <= 2 && strspn(part, ".") == length)
            return "has a '.' or '..' in its path";
        if (part[length] == '\0')
            return NULL;
    }
}

/* The inverse of parse_url(), without user and password. */
static void print_url(const struct url *url, char *out, size_t size)
{
    url_append_hosts(url, out, size);
    if (url->path) {
        text_append(out, size, "/");
        url_append_encoded(url->path, "?#", out, size);
    }
}

const struct store_kind zookeeper_kind = {.scheme = "zookeeper",
                                          .secure = "zookeepers",
                                          .name = "zookeeper://",
                                          .abilities = STORE_READERS | STORE_SEMAPHORES |
                                                       STORE_SEVERAL_KEYS | STORE_QUEUE |
                                                       STORE_FORCE | STORE_TOGETHER,
                                          .fails_over = true,
                                          .parse = parse_url,
                                          .print = print_url,
                                          .open = open_ensemble,
                                          .check = zookeeper_check};
