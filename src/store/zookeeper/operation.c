/* Start reading at zk_send() and zk_heard(). Each step of an operation sends requests by the one,
 * and gets their answers from the other; zk_tell() ends the operation. */
#include "store/zookeeper/operation.h"

#include <stdio.h>

#include "base/mem.h"

/* -- the nodes of the keys --------------------------------------------------------------------- */

void zk_clear_ancestors(struct zk_nodes *nodes)
{
    for (size_t i = 0; i < OWNER_DEPTH; i++) {
        zk_set_text(&nodes->ancestors[i], NULL);
        nodes->ancestors_since[i] = 0;
    }
}

void zk_clear_nodes(struct zk_store *store)
{
    for (size_t i = 0; i < store->key_count; i++) {
        struct zk_nodes *nodes = &store->nodes[i];
        zk_clear_ancestors(nodes);
        for (size_t j = 0; j < ZK_BRANCHES; j++)
            free(nodes->branches[j]);
        free(nodes->in_the_way);
        free(nodes->oldest);
        free(nodes->data);
        for (size_t j = 0; j < NODES_MAX; j++)
            free(nodes->own[j]);
        *nodes = (struct zk_nodes){0};
    }
    zk_free_queues(store->holders);
    store->key_count = 0;
    store->place = ZK_NO_PLACE;
    store->missing = 0;
    store->heartbeats = 0;
}

void zk_name_branches(const struct zk_store *store, const char *key, char *branches[ZK_BRANCHES])
{
    static const char *const endings[ZK_BRANCHES] = {"", "/leases", "/locks"};
    char *path = zk_path_of_key(store->folder, key);

    for (size_t i = 0; i < ZK_BRANCHES; i++)
        branches[i] = strbuf_print("%s%s", path, endings[i]);
    free(path);
}

void zk_make_nodes(struct zk_store *store)
{
    const struct acquire_request *request = &store->request;

    zk_clear_nodes(store);
    for (size_t i = 0; i < request->key_count; i++)
        zk_name_branches(store, request->keys[i], store->nodes[i].branches);
    store->key_count = request->key_count;
}

void zk_set_text(char **to, char *text)
{
    free(*to);
    *to = text;
}

/* Returns, in ns, the lease that the operation is about, or what the server grants of it (timeout),
 * which is known when a session was begun once. */
static int64_t granted_lease(const struct zk_store *store)
{
    int64_t timeout = store->session->timeout;

    return timeout && timeout < store->lease ? timeout : store->lease;
}

void zk_print_data(const struct zk_store *store, struct zk_nodes *nodes)
{
    const struct acquire_request *request = &store->request;
    struct zk_node_data data = {.mode = request->mode,
                                .fence = nodes->nests ? nodes->fence : 0,
                                .lease = granted_lease(store),
                                .limit = zk_is_limited(store) ? request->limit : 0,
                                .slot = nodes->slot,
                                .who = request->who,
                                .who_size = strlen(request->who)};

    if (nodes->nests)
        memcpy(data.ancestors, nodes->ancestors_since, sizeof data.ancestors);
    snprintf(data.owner, sizeof data.owner, "%s", request->owner);
    memcpy(data.password, store->session->identity.password, sizeof data.password);
    zk_set_text(&nodes->data, zk_node_data_print(&data));
}

void zk_write_own(struct zk_store *store)
{
    zk_multi(store->batch);
    for (size_t i = 0; i < store->key_count; i++) {
        struct zk_nodes *nodes = &store->nodes[i];
        const struct acquire_request *request = &store->request;
        struct jute_text text = {nodes->data, strlen(nodes->data)};
        struct zk_node_data data;
        /* The lease and the words about the owner are those of today, all else stays. */
        if (zk_node_data_parse(text, &data)) {
            data.lease = granted_lease(store);
            if (*request->who) {
                data.who = request->who;
                data.who_size = strlen(request->who);
            }
            zk_set_text(&nodes->data, zk_node_data_print(&data));
        }
        zk_multi_change(store->batch, OP_SET_DATA, nodes->own[0], nodes->data);
        for (size_t j = 1; j < NODES_MAX && nodes->own[j]; j++) /* must be there */
            zk_multi_change(store->batch, OP_CHECK, nodes->own[j], NULL);
    }
    zk_multi_end(store->batch);
}

void zk_forget(struct zk_store *store)
{
    static const struct zk_identity none;

    zk_clear_nodes(store);
    store->from = (struct moment){0};
    store->roomy = store->moved = false;
    *store->owner = '\0';
    zk_session_take(store->session, &none);
}

bool zk_is_own(const struct zk_store *store)
{
    return strcmp(store->owner, store->request.owner) == 0 && store->session->identity.id != 0;
}

/* -- the course of an operation ---------------------------------------------------------------- */

void zk_wish(struct zk_store *store, int64_t lease)
{
    store->lease = lease;
    zk_session_wish(store->session, lease);
}

void zk_continue(struct zk_store *store, enum zk_next next)
{
    store->steps[next](store);
}

void zk_send(struct zk_store *store, zk_hear *hear, enum zk_effect effect)
{
    store->hear = hear;
    store->effect = effect;
    static const enum zk_way ways[] = {
        [ZK_REOPENS] = ZK_NEW_BY_ALL_MEANS, [ZK_ASKS_FOR_ROOM] = ZK_NEW_CONNECTION};

    /* A session that another server has opened meanwhile has to be opened again. */
    zk_session_send(store->session, store->moved ? ZK_NEW_BY_ALL_MEANS : ways[effect],
                    store->base.operation.until);
}

void zk_ask(struct zk_store *store, zk_hear *hear)
{
    static const struct zk_reply none;

    if (store->batch->count > 0)
        zk_send(store, hear, ZK_NO_EFFECT);
    else
        hear(store, &none);
}

void zk_miss(struct zk_store *store)
{
    struct answer answer;

    switch (store->base.operation.verb) {
    case VERB_ACQUIRE: zk_continue(store, ZK_BEGIN); break;
    case VERB_RENEW:
    case VERB_RELEASE: zk_refuse_not_held(store, store->absent); break;
    default:
        /* A survey or a force has no nodes: only the session can be missing. */
        answer_fail(&answer, CAUSE_NOT_READY, "the session ended meanwhile");
        zk_session_sign(store->session, &answer);
        zk_tell_failure(store, &answer);
    }
}

/* The batch has failed: notes what that leaves open about the own nodes, and ends the operation. If
 * the server had no room for a waiter's next connection, the place is given up first. */
static void on_failure(struct zk_store *store, const struct answer *failure)
{
    if (store->effect == ZK_ASKS_FOR_ROOM && failure->full) {
        store->no_room = *failure;
        zk_continue(store, ZK_LEAVE_FULL);
        return;
    }
    bool changes = store->effect == ZK_CREATES || store->effect == ZK_DELETES;
    if (changes && failure->maybe_done)
        store->place = ZK_MAY_HAVE_PLACE;
    else if (store->effect == ZK_CREATES) /* not done: what was there before is there still */
        store->place = store->nodes[0].own[0] ? ZK_HAS_PLACE : ZK_NO_PLACE;
    zk_tell_failure(store, failure);
}

void zk_heard(void *arg, enum zk_outcome outcome, const struct zk_reply *replies,
              const struct answer *failure)
{
    struct zk_store *store = arg;

    switch (outcome) {
    case ZK_ANSWERED:
        store->moved = false;
        store->hear(store, replies);
        break;
    case ZK_EXPIRED:
        /* The own nodes have gone with the session: a new place is behind all others. */
        store->requeued |= store->place == ZK_HAS_PLACE;
        zk_forget(store);
        zk_miss(store);
        break;
    case ZK_FAILED: on_failure(store, failure); break;
    }
}

void zk_tell(struct zk_store *store, struct answer *answer)
{
    answer->refused.requeued = store->requeued;
    store->base.operation.done(store->base.operation.arg, answer);
}

void zk_tell_failure(struct zk_store *store, const struct answer *failure)
{
    struct answer answer = *failure;

    if (store->base.operation.verb == VERB_ACQUIRE)
        answer.maybe_done |= store->place != ZK_NO_PLACE;
    zk_tell(store, &answer);
}

void zk_refuse(struct zk_store *store, enum cause cause, size_t key, const char *text)
{
    struct answer answer = {.verdict = VERDICT_REFUSED, .cause = cause, .refused.key = key};

    snprintf(answer.text, sizeof answer.text, "%s", text);
    zk_tell(store, &answer);
}

void zk_refuse_not_held(struct zk_store *store, size_t key)
{
    zk_refuse(store, CAUSE_NOT_HOLDER, key, "it is not held");
}

void zk_tell_error(struct zk_store *store, int error)
{
    static const struct {
        enum zk_error error;
        enum cause cause;
        const char *text;
    } known[] = {
        {ZK_NO_AUTH, CAUSE_DENIED, "the server does not allow it: the nodes are others'"},
        {ZK_INVALID_ACL, CAUSE_DENIED, "the server knows no such user"},
        {ZK_UNIMPLEMENTED, CAUSE_UNFIT, "the server is older than ZooKeeper 3.5"},
        {ZK_QUOTA_EXCEEDED, CAUSE_UNFIT, "the quota is exceeded"},
        {ZK_NOT_READ_ONLY, CAUSE_NOT_READY, "the server has no majority, and is read-only"},
        {ZK_THROTTLED, CAUSE_NOT_READY, "the server is too busy"},
        {ZK_SESSION_MOVED, CAUSE_NOT_READY, "the session was opened at another server"},
    };
    struct answer answer;

    store->moved = error == ZK_SESSION_MOVED;
    answer_fail(&answer, CAUSE_NOT_READY, "the server answers with error %d", error);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if ((int)known[i].error == error)
            answer_fail(&answer, known[i].cause, "%s", known[i].text);
    zk_session_sign(store->session, &answer);
    zk_tell_failure(store, &answer);
}

void zk_grant(struct zk_store *store)
{
    struct lock_grant grants[LOCK_KEYS_MAX] = {0};

    for (size_t i = 0; i < store->key_count; i++)
        grants[i] =
            (struct lock_grant){.fence = store->nodes[i].fence, .slot = store->nodes[i].slot};
    struct answer answer = {.verdict = VERDICT_GRANTED,
                            .granted.from = store->from,
                            .granted.lease = granted_lease(store),
                            .granted.grants = grants};
    zk_tell(store, &answer);
}

/* -- reading ----------------------------------------------------------------------------------- */

void zk_free_queues(struct zk_queue queues[LOCK_KEYS_MAX])
{
    for (size_t i = 0; i < LOCK_KEYS_MAX; i++)
        zk_queue_free(&queues[i]);
}

void zk_ask_branches(struct zk_store *store, char *const branches[ZK_BRANCHES])
{
    for (size_t i = 0; i < ZK_BRANCHES; i++)
        zk_query(store->batch, OP_GET_CHILDREN, branches[i], ZK_NO_WATCH);
}

void zk_ask_queues(struct zk_store *store, enum zk_branch branch)
{
    for (size_t i = 0; i < store->key_count; i++)
        zk_query(store->batch, OP_GET_CHILDREN, store->nodes[i].branches[branch], ZK_NO_WATCH);
}

bool zk_read_queues(struct zk_store *store, const struct zk_reply *replies, enum zk_branch branch,
                    struct zk_queue queues[LOCK_KEYS_MAX])
{
    int error = ZK_OK;

    memset(queues, 0, LOCK_KEYS_MAX * sizeof *queues);
    for (size_t i = 0; i < store->key_count && error == ZK_OK; i++)
        error = zk_queue_read(&replies[i], branch, &queues[i]);
    if (error == ZK_OK)
        return true;
    zk_free_queues(queues);
    zk_tell_error(store, error);
    return false;
}

void zk_watch_own(struct zk_store *store)
{
    for (size_t i = 0; i < store->key_count; i++)
        zk_query(store->batch, OP_EXISTS, store->nodes[i].own[0], ZK_WATCH);
}

void zk_watch_in_the_way(struct zk_store *store)
{
    for (size_t i = 0; i < store->key_count && store->request.queue; i++)
        if (store->nodes[i].in_the_way)
            zk_query(store->batch, OP_EXISTS, store->nodes[i].in_the_way, ZK_WATCH);
}

bool zk_is_in_the_way(const struct zk_store *store, const struct zk_reply **replies)
{
    bool there = true;

    for (size_t i = 0; i < store->key_count && store->request.queue; i++) {
        if (store->nodes[i].in_the_way) {
            there &= (*replies)->error != ZK_NO_NODE;
            (*replies)++;
        }
    }
    return there;
}

size_t zk_first_missing(const struct zk_store *store, const struct zk_reply *replies)
{
    size_t i = 0;

    while (i < store->key_count && replies[i].error == ZK_OK)
        i++;
    return i;
}
