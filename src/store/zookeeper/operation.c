/* The session's operations: what they ask for, read and tell. */
#include "store/zookeeper/operation.h"

#include <stdio.h>

#include "base/mem.h"
#include "net/loop.h"
#include "store/zookeeper/path.h"

/* -- spots ------------------------------------------------------------------------------------- */

void zk_clear_relatives(struct spot *spot)
{
    for (size_t i = 0; i < spot->relative_count; i++)
        free(spot->relatives[i]);
    free(spot->relatives);
    spot->relatives = NULL;
    spot->relative_count = 0;
}

void zk_clear_elders(struct spot *spot)
{
    for (size_t i = 0; i < OWNER_DEPTH; i++) {
        zk_set_text(&spot->elders[i], NULL);
        spot->elders_since[i] = 0;
    }
}

static void clear_spot(struct spot *spot)
{
    zk_clear_relatives(spot);
    free(spot->key);
    free(spot->lock);
    free(spot->leases);
    free(spot->in_the_way);
    free(spot->data);
    for (size_t i = 0; i < NODES_MAX; i++)
        free(spot->nodes[i]);
    zk_clear_elders(spot);
    *spot = (struct spot){0};
}

void zk_clear_spots(struct zk_store *store)
{
    for (size_t i = 0; i < store->spot_count; i++)
        clear_spot(&store->spots[i]);
    for (size_t i = 0; i < LOCK_KEYS_MAX; i++)
        queue_free(&store->leases[i]);
    store->spot_count = 0;
    store->placed = store->unsure = store->leads = false;
    store->heartbeats = 0;
}

void zk_make_spots(struct zk_store *store)
{
    const struct acquire_request *request = zk_request_of(store);

    zk_clear_spots(store);
    for (size_t i = 0; i < request->key_count; i++) {
        struct spot *spot = &store->spots[i];
        spot->key = zk_path_of_key(store->folder, request->keys[i]);
        spot->leases = zk_path_join(spot->key, LEASES);
        spot->lock =
            request->mode == LOCK_LIMIT ? zk_path_join(spot->key, LOCKS) : mem_strdup(spot->key);
    }
    store->spot_count = request->key_count;
}

void zk_set_text(char **to, char *text)
{
    free(*to);
    *to = text;
}

void zk_print_data(const struct zk_store *store, struct spot *spot)
{
    const struct acquire_request *request = zk_request_of(store);
    struct node_data data = {.mode = request->mode,
                             .fence = spot->nested ? spot->fence : 0,
                             .lease = zk_granted_lease(store),
                             .limit = request->mode == LOCK_LIMIT ? request->limit : 0,
                             .slot = spot->slot,
                             .who = request->who,
                             .who_size = strlen(request->who)};

    if (spot->nested)
        memcpy(data.elders, spot->elders_since, sizeof data.elders);
    snprintf(data.owner, sizeof data.owner, "%s", request->owner);
    memcpy(data.password, zk_session_identity(store->session)->password, sizeof data.password);
    zk_set_text(&spot->data, node_data_print(&data));
}

/* What is in a node, with what is new about it. */
static void update_data(struct zk_store *store, struct spot *spot)
{
    const struct acquire_request *request = zk_request_of(store);
    struct jute_text text = {spot->data, strlen(spot->data)};
    struct node_data data;

    if (!node_data_parse(text, &data))
        return;
    data.lease = zk_granted_lease(store);
    if (*request->who) {
        data.who = request->who;
        data.who_size = strlen(request->who);
    }
    zk_set_text(&spot->data, node_data_print(&data));
}

void zk_write_own(struct zk_store *store)
{
    struct zk_multi multi = zk_multi(zk_batch_of(store));

    for (size_t i = 0; i < store->spot_count; i++) {
        struct spot *spot = &store->spots[i];
        update_data(store, spot);
        zk_multi_set(&multi, spot->nodes[0], spot->data);
        for (size_t j = 1; j < NODES_MAX && spot->nodes[j]; j++)
            zk_multi_check(&multi, spot->nodes[j]);
    }
    zk_multi_end(&multi);
}

void zk_forget(struct zk_store *store)
{
    static const struct zk_identity none;

    zk_clear_spots(store);
    store->ending = false;
    store->from = (struct moment){0};
    *store->owner = '\0';
    zk_session_take(store->session, &none);
}

/* -- the course of an operation ---------------------------------------------------------------- */

void zk_ask(struct zk_store *store, bool again,
            void (*next)(struct zk_store *, const struct zk_reply *))
{
    store->next = next;
    store->creating = false;
    zk_session_send(store->session, again, store->until);
}

void zk_tell(struct zk_store *store, struct answer *answer)
{
    answer->requeued = store->requeued;
    store->done(store->arg, answer);
}

void zk_tell_failure(struct zk_store *store, const struct answer *failure)
{
    struct answer answer = *failure;

    answer.maybe_done |= store->placed || store->unsure;
    zk_tell(store, &answer);
}

void zk_refuse(struct zk_store *store, enum cause cause, size_t key, const char *text)
{
    struct answer answer = {.verdict = VERDICT_REFUSED, .cause = cause, .key = key};

    snprintf(answer.text, sizeof answer.text, "%s", text);
    zk_tell(store, &answer);
}

void zk_refuse_not_held(struct zk_store *store, size_t key)
{
    zk_refuse(store, CAUSE_NOT_HOLDER, key, "it is not held");
}

void zk_tell_error(struct zk_store *store, int error)
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
    zk_tell_failure(store, &answer);
}

/* A server that is opened for the first time has not said yet what it grants. */
int64_t zk_granted_lease(const struct zk_store *store)
{
    int64_t timeout = zk_session_timeout(store->session);

    return timeout && timeout < store->lease ? timeout : store->lease;
}

void zk_refuse_again(struct zk_store *store)
{
    struct answer answer = store->refusal;
    int64_t later = moment_until(store->refused, loop_now(store->loop)) / NS_PER_MS;

    answer.holder.age_ms += later;
    answer.first.age_ms += later;
    zk_tell(store, &answer);
}

static void refused_and_closed(struct zk_store *store, const struct zk_reply *replies)
{
    (void)replies;
    zk_forget(store);
    store->refused = loop_now(store->loop);
    zk_refuse_again(store);
}

void zk_refuse_closing(struct zk_store *store)
{
    store->closing = true;
    zk_close(zk_batch_of(store));
    zk_ask(store, false, refused_and_closed);
}

void zk_grant(struct zk_store *store)
{
    struct answer answer = {
        .verdict = VERDICT_GRANTED, .from = store->from, .lease = zk_granted_lease(store)};

    for (size_t i = 0; i < store->spot_count; i++)
        answer.grants[i] =
            (struct lock_grant){.fence = store->spots[i].fence, .slot = store->spots[i].slot};
    zk_tell(store, &answer);
}

/* -- reading ----------------------------------------------------------------------------------- */

void zk_ask_children(struct zk_store *store)
{
    for (size_t i = 0; i < store->spot_count; i++)
        zk_children(zk_batch_of(store), store->spots[i].lock, false);
}

bool zk_read_queues(struct zk_store *store, const struct zk_reply *replies,
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
    zk_tell_error(store, error);
    return false;
}

void zk_free_queues(struct zk_store *store, struct queue queues[LOCK_KEYS_MAX])
{
    for (size_t i = 0; i < store->spot_count; i++)
        queue_free(&queues[i]);
}

bool zk_next_created(struct jute_in *in, const char *parent, char **node)
{
    size_t length = strlen(parent);
    struct zk_result result;

    if (!zk_next_result(in, &result) || result.path.size <= length + 1 ||
        result.path.size >= length + NAME_SIZE || memcmp(result.path.bytes, parent, length) != 0 ||
        result.path.bytes[length] != '/')
        return false;
    zk_set_text(node, mem_checked(strndup(result.path.bytes, result.path.size)));
    return true;
}

void zk_watch_own(struct zk_store *store)
{
    for (size_t i = 0; i < store->spot_count; i++)
        zk_exists(zk_batch_of(store), store->spots[i].nodes[0], true);
}

size_t zk_missing(const struct zk_store *store, const struct zk_reply *replies)
{
    size_t i = 0;

    while (i < store->spot_count && replies[i].error == ZK_OK)
        i++;
    return i;
}

void zk_wish(struct zk_store *store, int64_t lease)
{
    store->lease = lease;
    zk_session_wish(store->session, lease);
}

bool zk_is_own(const struct zk_store *store)
{
    return strcmp(store->owner, zk_request_of(store)->owner) == 0 &&
           zk_session_identity(store->session)->id != 0;
}
