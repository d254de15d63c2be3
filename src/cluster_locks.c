/* Several keys of a Redis Cluster, one after the other: renewing and releasing them. */
#include "cluster_locks_state.h"

#include "cluster.h"
#include "key.h"
#include "mem.h"

/* -- the request ------------------------------------------------------------------------------- */

static void drop_request(struct cluster_locks *locks)
{
    for (size_t i = 0; i < locks->request.key_count; i++)
        free(locks->keys[i]);
    free(locks->owner);
    free(locks->who);
    locks->owner = locks->who = NULL;
    locks->request.key_count = 0;
}

static void sort_keys(struct cluster_locks *locks)
{
    for (size_t i = 0; i < locks->request.key_count; i++) {
        size_t at = i;
        for (; at > 0 && strcmp(locks->keys[locks->order[at - 1]], locks->keys[i]) > 0; at--)
            locks->order[at] = locks->order[at - 1];
        locks->order[at] = i;
    }
}

void cluster_locks_begin(struct cluster_locks *locks, const struct lock_request *request,
                         struct moment until, store_done *done, void *arg)
{
    locks->request = *request;
    for (size_t i = 0; i < request->key_count; i++)
        locks->keys[i] = mem_strdup(request->keys[i]);
    locks->request.keys = NULL;
    locks->request.owner = locks->owner = mem_strdup(request->owner);
    locks->request.who = locks->who = request->who ? mem_strdup(request->who) : NULL;
    locks->until = until;
    locks->done = done;
    locks->arg = arg;
    locks->step = 0;
    locks->result = (struct answer){.verdict = VERDICT_GRANTED};
    sort_keys(locks);
}

void cluster_locks_finish(struct cluster_locks *locks)
{
    struct answer result = locks->result;

    drop_request(locks);
    cluster_tidy(locks->cluster);
    locks->done(locks->arg, &result);
}

/* -- about one key ------------------------------------------------------------------------------- */

static unsigned slot_of(const struct cluster_locks *locks, const char *key)
{
    char *name = key_in_store(locks->prefix, key);
    unsigned slot = cluster_slot(name);

    free(name);
    return slot;
}

static void ask_node(void *arg, struct store *node, struct moment until, store_done *done,
                     void *done_arg)
{
    struct cluster_locks *locks = arg;
    const char *key = locks->keys[locks->key];
    struct lock_request one = locks->request;

    one.keys = &key;
    one.key_count = 1;
    locks->question(locks, node, &one, until, done, done_arg);
}

static void heard(void *arg, const struct answer *answer)
{
    struct cluster_locks *locks = arg;
    locks->heard(locks, answer);
}

void cluster_locks_ask(struct cluster_locks *locks, size_t key, struct moment until,
                       cluster_question *question, cluster_heard *then)
{
    locks->key = key;
    locks->question = question;
    locks->heard = then;
    cluster_call(locks->cluster, slot_of(locks, locks->keys[key]), ask_node, locks, until,
                 loop_now(locks->loop), heard, locks);
}

/* -- renewing and releasing ----------------------------------------------------------------------- */

/* Of the time that is left, a share for each key that is still to be asked about. */
static struct moment share(const struct cluster_locks *locks)
{
    struct moment now = loop_now(locks->loop);
    int64_t left = (int64_t)(locks->request.key_count - locks->step);

    return moment_plus(now, moment_until(now, locks->until) / (left > 1 ? left : 1));
}

/* Adds the answer about one key to that about all. A refusal counts more than that all is well, silence more than a
 * refusal. Something may have been done as soon as one of them may be. */
static void merge(struct cluster_locks *locks, const struct answer *answer)
{
    struct answer *all = &locks->result;
    bool done = all->maybe_done || answer->maybe_done || answer->verdict != VERDICT_UNKNOWN;

    if (answer->verdict == VERDICT_GRANTED) {
        all->grants[locks->key] = answer->grants[0];
        all->late |= answer->late;
    } else if (answer->verdict > all->verdict) {
        *all = *answer;
        all->key = locks->key;
    }
    all->maybe_done = done;
}

static void settle(struct cluster_locks *locks)
{
    if (locks->result.verdict != VERDICT_UNKNOWN)
        locks->result.maybe_done = false;
    cluster_locks_finish(locks);
}

static void renew_next(struct cluster_locks *locks);

static void renew_key(struct cluster_locks *locks, struct store *node, struct lock_request *one,
                      struct moment until, store_done *done, void *done_arg)
{
    (void)locks;
    store_renew(node, one, until, done, done_arg);
}

static void renewed(struct cluster_locks *locks, const struct answer *answer)
{
    locks->step++;
    if (answer->verdict == VERDICT_REFUSED) {
        /* One is lost, so all are. */
        locks->result = *answer;
        locks->result.key = locks->key;
        cluster_locks_finish(locks);
        return;
    }
    merge(locks, answer);
    if (locks->step == locks->request.key_count)
        settle(locks);
    else
        renew_next(locks);
}

static void renew_next(struct cluster_locks *locks)
{
    cluster_locks_ask(locks, locks->order[locks->step], share(locks), renew_key, renewed);
}

void cluster_locks_renew(struct cluster_locks *locks, const struct lock_request *request,
                         struct moment until, store_done *done, void *arg)
{
    cluster_locks_begin(locks, request, until, done, arg);
    renew_next(locks);
}

static void release_next(struct cluster_locks *locks);

static void release_key(struct cluster_locks *locks, struct store *node, struct lock_request *one,
                        struct moment until, store_done *done, void *done_arg)
{
    store_release(node, one, locks->uncertain, until, done, done_arg);
}

static void released(struct cluster_locks *locks, const struct answer *answer)
{
    locks->step++;
    locks->holds[locks->key] = answer->verdict == VERDICT_UNKNOWN ? CLUSTER_LOCK : CLUSTER_NOTHING;
    merge(locks, answer);
    if (locks->step == locks->request.key_count)
        settle(locks);
    else
        release_next(locks);
}

/* The last one first: whoever waits for that key alone is called before whoever waits for all of them. */
static void release_next(struct cluster_locks *locks)
{
    size_t last = locks->request.key_count - 1 - locks->step;

    cluster_locks_ask(locks, locks->order[last], share(locks), release_key, released);
}

void cluster_locks_release(struct cluster_locks *locks, const struct lock_request *request,
                           bool uncertain, struct moment until, store_done *done, void *arg)
{
    cluster_locks_begin(locks, request, until, done, arg);
    locks->uncertain = uncertain;
    locks->waiting = CLUSTER_NO_KEY;
    locks->misses = 0;
    release_next(locks);
}

void cluster_locks_farewell(struct cluster_locks *locks, const struct lock_request *request)
{
    drop_request(locks);
    for (size_t i = 0; i < request->key_count; i++) {
        struct store *node = cluster_last_node(locks->cluster, slot_of(locks, request->keys[i]));
        struct lock_request one = *request;
        one.keys = &request->keys[i];
        one.key_count = 1;
        if (node)
            store_farewell(node, &one);
    }
    cluster_abandon(locks->cluster);
}

/* -- the whole ----------------------------------------------------------------------------------- */

struct cluster_locks *cluster_locks_new(struct loop *loop, struct cluster *cluster,
                                        const char *prefix)
{
    struct cluster_locks *locks = mem_zeroed(sizeof *locks);

    locks->loop = loop;
    locks->cluster = cluster;
    locks->prefix = prefix;
    locks->waiting = CLUSTER_NO_KEY;
    return locks;
}

void cluster_locks_free(struct cluster_locks *locks)
{
    drop_request(locks);
    free(locks->last_owner);
    free(locks);
}
