/* Where a server is. */
#include "locate.h"
#include "aside.h"
#include "local_start.h"
#include "loop.h"
#include "mem.h"

#include <errno.h>
#include <stdio.h>

struct locator {
    struct loop *loop;
    const struct url *url;
    bool fixed; /* a path or a number: nothing to search for */
    bool local; /* a server to be started when it is not there */
    struct endpoint endpoints[RESOLVE_MAX];
    int count;
    struct resolver *resolver;
    struct aside *starter;
    struct loop_timer failure; /* tells of a search that could not even start */
    int error;
    void (*done)(void *arg, const char *fault);
    void *arg;
};

/* What starting the local server comes to. */
struct start {
    bool up;
    struct local_place place;
    char fault[160];
};

static void tell_failure(struct loop_timer *timer)
{
    struct locator *locator = timer->owner;
    locator->done(locator->arg, strerror(locator->error));
}

/* Where the server is if it runs; a directory that is not to be trusted is told of by the search. */
static void know_local(struct locator *locator)
{
    struct local_place place;
    char fault[160];

    if (local_find(&place, fault, sizeof fault))
        locator->count = resolve_path(place.socket, &locator->endpoints[0]);
}

struct locator *locator_new(struct loop *loop, const struct url *url, char *fault, size_t size)
{
    struct locator *locator = mem_zeroed(sizeof *locator);

    *locator = (struct locator){.loop = loop, .url = url};
    locator->failure = (struct loop_timer){.fire = tell_failure, .owner = locator};
    locator->local = strcmp(url->scheme, "local") == 0;
    if (locator->local) {
        know_local(locator);
        return locator;
    }
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

const char *locator_overdue(const struct locator *locator)
{
    return locator->local ? "it did not start in time" : "no answer from the name service";
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

static void start(const void *question, void *finding)
{
    struct start *start = finding;

    (void)question;
    start->up = local_start(&start->place, start->fault, sizeof start->fault);
}

static void started(void *arg, const void *finding)
{
    static const struct start nothing = {.fault = "starting it ended without an answer"};
    struct locator *locator = arg;
    struct start start = finding ? *(const struct start *)finding : nothing;

    if (start.up)
        locator->count = resolve_path(start.place.socket, &locator->endpoints[0]);
    locator_stop(locator);
    locator->done(locator->arg, start.up ? NULL : start.fault);
}

static bool begin_search(struct locator *locator)
{
    const struct url_host *host = locator->url->hosts;

    if (locator->local)
        locator->starter =
            aside_start(locator->loop, start, NULL, sizeof(struct start), started, locator);
    else
        locator->resolver =
            resolver_start(locator->loop, host->name, host->port, resolved, locator);
    return locator->starter || locator->resolver;
}

void locator_search(struct locator *locator, void (*done)(void *arg, const char *fault), void *arg)
{
    locator->done = done;
    locator->arg = arg;
    if (begin_search(locator))
        return;
    locator->error = errno;
    loop_arm(locator->loop, &locator->failure, loop_now(locator->loop));
}

void locator_stop(struct locator *locator)
{
    loop_disarm(locator->loop, &locator->failure);
    if (locator->resolver)
        resolver_stop(locator->resolver);
    if (locator->starter)
        aside_stop(locator->starter);
    locator->resolver = NULL;
    locator->starter = NULL;
}
