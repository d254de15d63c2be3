/* Which store speaks which scheme, and the calls into it. */
#include "store.h"
#include "quorum.h"
#include "store_quorum.h"
#include "store_redis.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *scheme;
    struct store *(*open)(struct loop *loop, const struct store_address *address, char *fault,
                          size_t size);
} schemes[] = {
    {"redis", store_redis_open},
    {"unix", store_redis_open},
    {"sentinel", store_redis_open},
    {"local", store_redis_open},
};

/* Where a server is, the same for two names that cannot but lead to one place. */
static void print_place(const struct url *url, char *out, size_t size)
{
    const char *host = url->host_count ? url->hosts[0].name : "";

    if (strcasecmp(host, "localhost") == 0)
        host = "127.0.0.1";
    if (url->path)
        snprintf(out, size, "%s", url->path);
    else
        snprintf(out, size, "%s %d", host, url->host_count ? url->hosts[0].port : 0);
}

static struct store *open_member(struct loop *loop, const struct store_address *address, size_t i,
                                 char *fault, size_t size)
{
    struct store_address member = *address;
    const struct url *url = &address->urls[i];

    /* Each for itself must be all there is of it: one that fails over, or hands on, may forget. */
    if (strcmp(url->scheme, "redis") != 0 && strcmp(url->scheme, "unix") != 0) {
        snprintf(fault, size, "a quorum is made of single servers, not of %s:", url->scheme);
        return NULL;
    }
    member.urls = url;
    member.url_count = 1;
    member.member = true;
    return store_redis_open(loop, &member, fault, size);
}

static struct store *open_quorum(struct loop *loop, const struct store_address *address,
                                 char *fault, size_t size)
{
    struct store_node nodes[QUORUM_NODES_MAX];
    size_t count = 0;

    if (address->url_count > QUORUM_NODES_MAX) {
        snprintf(fault, size, "a quorum has at most %d servers", QUORUM_NODES_MAX);
        return NULL;
    }
    if (address->replicas != REPLICAS_NONE) {
        snprintf(fault, size, "replicas are for one server: those of a quorum's are not counted");
        return NULL;
    }
    while (count < address->url_count) {
        struct store_node *node = &nodes[count];
        node->store = open_member(loop, address, count, fault, size);
        if (!node->store)
            break;
        url_print(&address->urls[count], node->name, sizeof node->name);
        print_place(&address->urls[count], node->place, sizeof node->place);
        count++;
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
