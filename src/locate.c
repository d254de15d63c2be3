/* Where a server is. */
#include "locate.h"
#include "loop.h"
#include "mem.h"

#include <errno.h>
#include <stdio.h>

struct locator {
    struct loop *loop;
    const struct url *url;
    bool fixed; /* a path or a number: nothing to search for */
    struct endpoint endpoints[RESOLVE_MAX];
    int count;
    struct resolver *resolver;
    struct loop_timer failure; /* tells of a search that could not even start */
    int error;
    void (*done)(void *arg, const char *fault);
    void *arg;
};

static void tell_failure(struct loop_timer *timer)
{
    struct locator *locator = timer->owner;
    locator->done(locator->arg, strerror(locator->error));
}

struct locator *locator_new(struct loop *loop, const struct url *url, char *fault, size_t size)
{
    struct locator *locator = mem_zeroed(sizeof *locator);

    *locator = (struct locator){.loop = loop, .url = url};
    locator->failure = (struct loop_timer){.fire = tell_failure, .owner = locator};
    if (url->path && !resolve_path(url->path, &locator->endpoints[0])) {
        snprintf(fault, size, "the path is too long for a Unix socket");
        free(locator);
        return NULL;
    }
    locator->fixed = url->path || resolve_numeric(url->hosts[0].name, url->hosts[0].port,
                                                  &locator->endpoints[0]);
    locator->count = locator->fixed;
    return locator;
}

void locator_free(struct locator *locator)
{
    locator_stop(locator);
    free(locator);
}

int locator_known(const struct locator *locator, const struct endpoint **endpoints)
{
    *endpoints = locator->endpoints;
    return locator->count;
}

bool locator_can_search(const struct locator *locator)
{
    return !locator->fixed;
}

const char *locator_host(const struct locator *locator)
{
    return locator->url->host_count ? locator->url->hosts[0].name : NULL;
}

static void resolved(void *arg, const struct endpoint *found, int count, const char *fault)
{
    struct locator *locator = arg;

    if (count > 0) {
        memcpy(locator->endpoints, found, (size_t)count * sizeof *found);
        locator->count = count;
    }
    locator_stop(locator);
    locator->done(locator->arg, count > 0 ? NULL : fault);
}

void locator_search(struct locator *locator, void (*done)(void *arg, const char *fault), void *arg)
{
    locator->done = done;
    locator->arg = arg;
    locator->resolver =
        resolver_start(locator->loop, locator->url->hosts[0].name, locator->url->hosts[0].port,
                       resolved, locator);
    if (locator->resolver)
        return;
    locator->error = errno;
    loop_arm(locator->loop, &locator->failure, loop_now(locator->loop));
}

void locator_stop(struct locator *locator)
{
    loop_disarm(locator->loop, &locator->failure);
    if (locator->resolver)
        resolver_stop(locator->resolver);
    locator->resolver = NULL;
}
