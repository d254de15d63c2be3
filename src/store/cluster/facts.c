/* Asking for the masters of a Redis Cluster. */
#include "store/cluster/facts.h"
#include "base/mem.h"
#include "net/loop.h"
#include "store/cluster/cluster.h"

#include <errno.h>
#include <stdio.h>

struct inquiry {
    struct loop *loop;
    struct answer answer;
};

static void done(void *arg, const struct answer *answer)
{
    struct inquiry *inquiry = arg;

    inquiry->answer = *answer;
    loop_stop(inquiry->loop);
}

static void take_map(const struct cluster_map *map, struct cluster_facts *facts)
{
    size_t *nodes = mem_zeroed((map->node_count + 1) * sizeof *nodes);

    facts->count = cluster_map_masters(map, nodes);
    facts->masters = mem_zeroed((facts->count + 1) * sizeof *facts->masters);
    for (size_t i = 0; i < facts->count; i++)
        facts->masters[i] = map->nodes[nodes[i]];
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++)
        facts->slots += cluster_map_find(map, slot) != CLUSTER_NOWHERE;
    free(nodes);
}

static bool ask(struct inquiry *inquiry, const struct store_address *address,
                struct cluster_facts *facts, char *fault, size_t size)
{
    struct moment until = moment_plus(moment_now(), address->connect_timeout);
    struct cluster *cluster = cluster_new(inquiry->loop, address, NULL, fault, size);

    if (!cluster)
        return false;
    cluster_read_map(cluster, until, done, inquiry);
    loop_run(inquiry->loop);
    facts->failure = inquiry->answer;
    if (inquiry->answer.verdict == VERDICT_GRANTED)
        take_map(cluster_map_of(cluster), facts);
    cluster_free(cluster);
    return true;
}

bool cluster_facts_ask(const struct store_address *address, struct cluster_facts *facts,
                       char *fault, size_t size)
{
    struct inquiry inquiry = {.loop = loop_new()};

    *facts = (struct cluster_facts){0};
    if (!inquiry.loop) {
        snprintf(fault, size, "cannot wait for the Cluster: %s", strerror(errno));
        return false;
    }
    bool able = ask(&inquiry, address, facts, fault, size);
    loop_free(inquiry.loop);
    return able;
}

void cluster_facts_free(struct cluster_facts *facts)
{
    free(facts->masters);
}
