/* A Redis Cluster as a store: each key at the node that has its slot. */
#include "store/cluster/store.h"

#include "base/mem.h"
#include "lock/key.h"
#include "net/loop.h"
#include "store/cluster/cluster.h"
#include "store/cluster/survey.h"
#include "store/cluster/layer.h"
#include "store/cluster/several_keys.h"

struct cluster_store {
    struct store base;
    struct loop *loop;
    struct cluster *cluster;
    char *prefix;
    int64_t retry_time; /* ns: for a node that is missing, where the caller has none */

    /* The operation under way. */
    bool uncertain; /* a release */
    struct cluster_survey *survey;
    store_done *done; /* of the survey */
    void *arg;
};

static struct cluster_store *of(struct store *base)
{
    return (struct cluster_store *)(void *)base;
}

static struct moment retry_until(const struct cluster_store *store, struct moment until)
{
    return moment_min(until, moment_plus(loop_now(store->loop), store->retry_time));
}

/* -- the operation under way ------------------------------------------------------------------- */

static void drop_survey(struct cluster_store *store)
{
    if (store->survey)
        cluster_survey_free(store->survey);
    store->survey = NULL;
}

static unsigned slot_of(const struct cluster_store *store, const char *key)
{
    char *name = key_in_store(store->prefix, key);
    unsigned slot = cluster_slot(name);

    free(name);
    return slot;
}

/* Asks the node that has the key. */
static void ask_about_key(struct cluster_store *store, const char *key, cluster_ask *ask,
                          struct moment until, struct moment retry_time, store_done *done,
                          void *arg)
{
    cluster_call(store->cluster, slot_of(store, key), ask, store, until, retry_time, done, arg);
}

/* -- locks, of one key each -------------------------------------------------------------------- */

/* The caller waits between its tries. */
static void ask_about_lock(struct cluster_store *store, const struct lock_request *request,
                           cluster_ask *ask, struct moment until, store_done *done, void *arg)
{
    ask_about_key(store, request->keys[0], ask, until, loop_now(store->loop), done, arg);
}

static void ask_acquire(void *arg, struct store *node, struct moment until, store_done *done,
                        void *done_arg)
{
    struct cluster_store *store = arg;
    store_acquire(node, &store->base.requests.lock, until, done, done_arg);
}

static void acquire(struct store *base, const struct lock_request *request, struct moment until,
                    store_done *done, void *arg)
{
    ask_about_lock(of(base), request, ask_acquire, until, done, arg);
}

static void ask_renew(void *arg, struct store *node, struct moment until, store_done *done,
                      void *done_arg)
{
    struct cluster_store *store = arg;
    store_renew(node, &store->base.requests.lock, until, done, done_arg);
}

static void renew(struct store *base, const struct lock_request *request, struct moment until,
                  store_done *done, void *arg)
{
    ask_about_lock(of(base), request, ask_renew, until, done, arg);
}

static void ask_release(void *arg, struct store *node, struct moment until, store_done *done,
                        void *done_arg)
{
    struct cluster_store *store = arg;
    store_release(node, &store->base.requests.lock, store->uncertain, until, done, done_arg);
}

static void release(struct store *base, const struct lock_request *request, bool uncertain,
                    struct moment until, store_done *done, void *arg)
{
    of(base)->uncertain = uncertain;
    ask_about_lock(of(base), request, ask_release, until, done, arg);
}

static bool release_nowait(struct store *base, const struct lock_request *request)
{
    struct cluster_store *store = of(base);
    struct store *node = cluster_open_node(store->cluster, slot_of(store, request->keys[0]));
    bool sent = node && store_release_nowait(node, request);

    cluster_abandon(store->cluster);
    drop_survey(store);
    return sent;
}

/* -- the other operations ---------------------------------------------------------------------- */

static void ask_force(void *arg, struct store *node, struct moment until, store_done *done,
                      void *done_arg)
{
    struct cluster_store *store = arg;
    store_force(node, &store->base.requests.force, until, done, done_arg);
}

static void force(struct store *base, const struct force_request *request, struct moment until,
                  store_done *done, void *arg)
{
    struct cluster_store *store = of(base);

    ask_about_key(store, request->key, ask_force, until, retry_until(store, until), done, arg);
}

static void ask_adjust(void *arg, struct store *node, struct moment until, store_done *done,
                       void *done_arg)
{
    struct cluster_store *store = arg;
    store_adjust(node, &store->base.requests.adjust, until, done, done_arg);
}

static void adjust(struct store *base, const struct adjust_request *request, struct moment until,
                   store_done *done, void *arg)
{
    struct cluster_store *store = of(base);

    ask_about_key(store, request->key, ask_adjust, until, retry_until(store, until), done, arg);
}

static void survey_done(void *arg, const struct answer *answer)
{
    struct cluster_store *store = arg;

    drop_survey(store);
    store->done(store->arg, answer);
}

static void survey(struct store *base, const struct survey_request *request, struct moment until,
                   store_done *done, void *arg)
{
    struct cluster_store *store = of(base);

    store->done = done;
    store->arg = arg;
    store->survey = cluster_survey_start(store->loop, store->cluster, store->prefix, request, until,
                                         retry_until(store, until), survey_done, store);
}

static void ask_latch(void *arg, struct store *node, struct moment until, store_done *done,
                      void *done_arg)
{
    struct cluster_store *store = arg;
    store_latch(node, &store->base.requests.latch, until, done, done_arg);
}

static void latch(struct store *base, const struct latch_request *request, struct moment until,
                  store_done *done, void *arg)
{
    struct cluster_store *store = of(base);

    ask_about_key(store, request->key, ask_latch, until, loop_now(store->loop), done, arg);
}

/* -- the whole --------------------------------------------------------------------------------- */

static void close_cluster(struct store *base)
{
    struct cluster_store *store = of(base);

    drop_survey(store);
    cluster_free(store->cluster);
    free(store->prefix);
    free(store);
}

/* Of one key. */
static struct store *open_single(struct loop *loop, const struct store_address *address,
                                 char *fault, size_t size)
{
    static const struct store_ops ops = {.close = close_cluster,
                                         .acquire = acquire,
                                         .renew = renew,
                                         .release = release,
                                         .release_nowait = release_nowait,
                                         .force = force,
                                         .adjust = adjust,
                                         .survey = survey,
                                         .latch = latch};
    static const struct store_events events = {.poked = layer_poked, .handed = layer_handed};
    struct cluster_store *store = mem_zeroed(sizeof *store);

    store->base.ops = &ops;
    store->loop = loop;
    store->retry_time = address->connect_timeout;
    store->cluster = cluster_new(loop, address, &events, &store->base, fault, size);
    if (!store->cluster) {
        free(store);
        return NULL;
    }
    store->prefix = mem_strdup(address->prefix);
    return &store->base;
}

struct store *store_cluster_open(struct loop *loop, const struct store_address *address,
                                 char *fault, size_t size)
{
    struct store *single = open_single(loop, address, fault, size);

    if (!single)
        return NULL;
    return several_keys_open(loop, single);
}
