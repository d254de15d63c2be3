/* Which store speaks which scheme, and the calls into it. */
#include "store.h"
#include "store_cluster.h"
#include "quorum.h"
#include "store_quorum.h"
#include "store_redis.h"

#include <stdio.h>
#include <string.h>

#include "duration.h"

static const struct {
    const char *scheme;
    struct store *(*open)(struct loop *loop, const struct store_address *address, char *fault,
                          size_t size);
} schemes[] = {
    {"redis", store_redis_open}, {"unix", store_redis_open},      {"sentinel", store_redis_open},
    {"local", store_redis_open}, {"cluster", store_cluster_open},
};

static struct store *open_quorum(struct loop *loop, const struct store_address *address,
                                 char *fault, size_t size)
{
    struct store_node nodes[QUORUM_NODES_MAX];
    struct store_address member = *address;
    size_t count = 0;

    member.url_count = 1;
    member.member = true;
    for (; count < address->url_count; count++) {
        member.urls = &address->urls[count];
        url_print(member.urls, nodes[count].name, sizeof nodes[count].name);
        nodes[count].store = store_redis_open(loop, &member, fault, size);
        if (!nodes[count].store)
            break;
    }
    if (count == address->url_count)
        return store_quorum_open(loop, nodes, count);
    while (count > 0)
        store_close(nodes[--count].store);
    return NULL;
}

struct store *store_open(struct loop *loop, const struct store_address *address, char *fault,
                         size_t size)
{
    if (address->url_count > 1)
        return open_quorum(loop, address, fault, size);
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        if (strcmp(address->urls->scheme, schemes[i].scheme) == 0)
            return schemes[i].open(loop, address, fault, size);
    }
    snprintf(fault, size, "no store is built in for the scheme '%s'", address->urls->scheme);
    return NULL;
}

void store_close(struct store *store)
{
    store->ops->close(store);
}

void store_on_poke(struct store *store, void (*poked)(void *arg), void *arg)
{
    store->poked = poked;
    store->poked_arg = arg;
}

void store_acquire(struct store *store, const struct lock_request *request, struct moment until,
                   store_done *done, void *arg)
{
    store->ops->acquire(store, request, until, done, arg);
}

void store_renew(struct store *store, const struct lock_request *request, struct moment until,
                 store_done *done, void *arg)
{
    store->ops->renew(store, request, until, done, arg);
}

void store_release(struct store *store, const struct lock_request *request, bool uncertain,
                   struct moment until, store_done *done, void *arg)
{
    store->ops->release(store, request, uncertain, until, done, arg);
}

void store_farewell(struct store *store, const struct lock_request *request)
{
    store->ops->farewell(store, request);
}

void store_force(struct store *store, const struct force_request *request, struct moment until,
                 store_done *done, void *arg)
{
    store->ops->force(store, request, until, done, arg);
}

void store_survey(struct store *store, const struct survey_request *request, struct moment until,
                  store_done *done, void *arg)
{
    store->ops->survey(store, request, until, done, arg);
}

void store_latch(struct store *store, const struct latch_request *request, struct moment until,
                 store_done *done, void *arg)
{
    store->ops->latch(store, request, until, done, arg);
}

void store_mark(struct store *store, bool force, struct moment until, store_done *done, void *arg)
{
    store->ops->mark(store, force, until, done, arg);
}

char *store_print_grace(int64_t grace_ms, char *out, size_t size)
{
    int64_t seconds = (grace_ms + 999) / 1000;
    char left[32];

    snprintf(out, size, "the server may have lost locks; it grants nothing new for another %s",
             duration_print((seconds > 0 ? seconds : 1) * NS_PER_SEC, left, sizeof left));
    return out;
}
