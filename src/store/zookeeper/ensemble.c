/* The servers of an ensemble. */
#include "store/zookeeper/ensemble.h"

#include <errno.h>

#include "base/jitter.h"
#include "base/mem.h"

struct ensemble {
    struct loop *loop;
    const struct url *url;
    size_t at;
    unsigned turn; /* of the addresses that a name has, another one each time */
    struct resolver *resolver;
    void (*found)(void *arg, const struct endpoint *endpoint, const char *fault);
    void *arg;
};

/* Clients begin anywhere, so that they spread over the servers. */
struct ensemble *ensemble_new(struct loop *loop, const struct url *url)
{
    struct ensemble *ensemble = mem_zeroed(sizeof *ensemble);

    *ensemble = (struct ensemble){.loop = loop, .url = url, .at = jitter() % url->host_count};
    return ensemble;
}

void ensemble_free(struct ensemble *ensemble)
{
    ensemble_stop(ensemble);
    free(ensemble);
}

void ensemble_stop(struct ensemble *ensemble)
{
    if (ensemble->resolver)
        resolver_stop(ensemble->resolver);
    ensemble->resolver = NULL;
}

static void resolved(void *arg, const struct endpoint *found, int count, const char *fault)
{
    struct ensemble *ensemble = arg;
    struct endpoint one = {0};

    if (count > 0)
        one = found[ensemble->turn++ % (unsigned)count];
    ensemble_stop(ensemble);
    ensemble->found(ensemble->arg, count > 0 ? &one : NULL, fault);
}

void ensemble_next(struct ensemble *ensemble,
                   void (*found)(void *arg, const struct endpoint *endpoint, const char *fault),
                   void *arg)
{
    struct endpoint endpoint;

    ensemble->at = (ensemble->at + 1) % ensemble->url->host_count;
    ensemble->found = found;
    ensemble->arg = arg;
    const struct url_host *host = ensemble_host(ensemble);
    if (resolve_numeric(host->name, host->port, &endpoint)) {
        found(arg, &endpoint, NULL);
        return;
    }
    ensemble->resolver = resolver_start(ensemble->loop, host->name, host->port, resolved, ensemble);
    if (!ensemble->resolver)
        found(arg, NULL, strerror(errno));
}

const struct url_host *ensemble_host(const struct ensemble *ensemble)
{
    return &ensemble->url->hosts[ensemble->at];
}
