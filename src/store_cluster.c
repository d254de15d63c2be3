/* A Redis Cluster as a store: each key at the node that has its slot. */
#include "store_cluster.h"

#include <stdio.h>

#include "cluster.h"
#include "cluster_locks.h"
#include "cluster_survey.h"
#include "key.h"
#include "loop.h"
#include "mem.h"

struct cluster_store {
    struct store base;
    struct loop *loop;
    struct cluster *cluster;
    struct cluster_locks *locks;
    char *prefix;
    int64_t patience; /* ns: for a node that is missing, where the caller has none */

    /* The operation under way about one key alone, and a copy of what it is given. */
    struct force_request force;
    struct latch_request latch;
    char **owners, *key, *id, *word;
    struct cluster_survey *survey;
    store_done *done;
    void *arg;
};

static struct cluster_store *of(struct store *base)
{
    return (struct cluster_store *)(void *)base;
}

static void poked(void *arg)
{
    struct cluster_store *store = arg;

    if (store->base.poked)
        store->base.poked(store->base.poked_arg);
}

static struct moment patient(const struct cluster_store *store, struct moment until)
{
    return moment_min(until, moment_plus(loop_now(store->loop), store->patience));
}

static void drop_operation(struct cluster_store *store)
{
    for (size_t i = 0; store->owners && i < store->force.owner_count; i++)
        free(store->owners[i]);
    free(store->owners);
    free(store->key);
    free(store->id);
    free(store->word);
    store->owners = NULL;
    store->key = store->id = store->word = NULL;
    if (store->survey)
        cluster_survey_free(store->survey);
    store->survey = NULL;
}

static void cluster_done(void *arg, const struct answer *answer)
{
    struct cluster_store *store = arg;

    cluster_tidy(store->cluster);
    drop_operation(store);
    store->done(store->arg, answer);
}

static void survey_done(void *arg, const struct answer *answer)
{
    struct cluster_store *store = arg;
    struct answer copy = *answer;

    drop_operation(store);
    store->done(store->arg, &copy);
}

static void close_cluster(struct store *base)
{
    struct cluster_store *store = of(base);

    drop_operation(store);
    cluster_locks_free(store->locks);
    cluster_free(store->cluster);
    free(store->prefix);
    free(store);
}

static void acquire(struct store *base, const struct lock_request *request, struct moment until,
                    store_done *done, void *arg)
{
    cluster_locks_acquire(of(base)->locks, request, until, done, arg);
}

static void renew(struct store *base, const struct lock_request *request, struct moment until,
                  store_done *done, void *arg)
{
    cluster_locks_renew(of(base)->locks, request, until, done, arg);
}

static void release(struct store *base, const struct lock_request *request, bool uncertain,
                    struct moment until, store_done *done, void *arg)
{
    cluster_locks_release(of(base)->locks, request, uncertain, until, done, arg);
}

static void farewell(struct store *base, const struct lock_request *request)
{
    cluster_locks_farewell(of(base)->locks, request);
}

static void ask_about_key(struct cluster_store *store, cluster_ask *ask, struct moment until,
                          struct moment patience)
{
    char *name = key_in_store(store->prefix, store->key);
    unsigned slot = cluster_slot(name);

    free(name);
    cluster_call(store->cluster, slot, ask, store, until, patience, cluster_done, store);
}

static void ask_force(void *arg, struct store *node, struct moment until, store_done *done,
                      void *done_arg)
{
    struct cluster_store *store = arg;
    store_force(node, &store->force, until, done, done_arg);
}

static void force(struct store *base, const struct force_request *request, struct moment until,
                  store_done *done, void *arg)
{
    struct cluster_store *store = of(base);

    store->owners = mem_zeroed((request->owner_count + 1) * sizeof *store->owners);
    for (size_t i = 0; i < request->owner_count; i++)
        store->owners[i] = mem_strdup(request->owners[i]);
    store->key = mem_strdup(request->key);
    store->force = *request;
    store->force.key = store->key;
    store->force.owners = (const char *const *)store->owners;
    store->done = done;
    store->arg = arg;
    ask_about_key(store, ask_force, until, patient(store, until));
}

static void survey(struct store *base, const struct survey_request *request, struct moment until,
                   store_done *done, void *arg)
{
    struct cluster_store *store = of(base);

    store->done = done;
    store->arg = arg;
    store->survey = cluster_survey_start(store->loop, store->cluster, store->prefix, request, until,
                                         patient(store, until), survey_done, store);
}

static void ask_latch(void *arg, struct store *node, struct moment until, store_done *done,
                      void *done_arg)
{
    struct cluster_store *store = arg;
    store_latch(node, &store->latch, until, done, done_arg);
}

static void latch(struct store *base, const struct latch_request *request, struct moment until,
                  store_done *done, void *arg)
{
    struct cluster_store *store = of(base);

    store->key = mem_strdup(request->key);
    store->id = request->id ? mem_strdup(request->id) : NULL;
    store->word = request->word ? mem_strdup(request->word) : NULL;
    store->latch = *request;
    store->latch.key = store->key;
    store->latch.id = store->id;
    store->latch.word = store->word;
    store->done = done;
    store->arg = arg;
    ask_about_key(store, ask_latch, until, loop_now(store->loop));
}

struct store *store_cluster_open(struct loop *loop, const struct store_address *address,
                                 char *fault, size_t size)
{
    static const struct store_ops ops = {close_cluster, acquire, renew,  release,
                                         farewell,      force,   survey, latch, NULL};
    struct cluster_store *store = mem_zeroed(sizeof *store);

    store->base.ops = &ops;
    store->loop = loop;
    store->patience = address->connect_timeout;
    if (address->grace)
        snprintf(fault, size,
                 "a Cluster cannot know which of its nodes have lost writes: no grace");
    else
        store->cluster = cluster_new(loop, address, poked, store, fault, size);
    if (!store->cluster) {
        free(store);
        return NULL;
    }
    store->prefix = mem_strdup(address->prefix);
    store->locks = cluster_locks_new(loop, store->cluster, store->prefix);
    return &store->base;
}
