#include "store/cluster/store_kind.h"

#include <stdio.h>

#include "base/mem.h"
#include "net/loop.h"
#include "store/cluster/cluster.h"
#include "store/redis/checkup.h"

/* -- the masters ------------------------------------------------------------------------------- */

/* The reading of the map, under way or done. */
struct probe {
    struct loop *loop;
    struct answer answer;
};

/* Notes how the reading of the map has ended, and ends the wait for that. */
static void map_read(void *arg, const struct answer *answer)
{
    struct probe *probe = arg;

    probe->answer = *answer;
    loop_stop(probe->loop);
}

/* -- judging ----------------------------------------------------------------------------------- */

void cluster_judge(const struct checkup *masters, unsigned slots, struct diagnosis *diagnosis)
{
    size_t count = masters->count;
    size_t unfit = 0;

    *diagnosis = (struct diagnosis){0};
    for (size_t i = 0; i < count; i++) {
        unfit += masters->servers[i].diagnosis.worst == LEVEL_UNFIT;
        if (masters->servers[i].diagnosis.worst == LEVEL_WARNING)
            diagnosis->worst = LEVEL_WARNING;
    }
    if (slots < CLUSTER_SLOTS)
        diagnosis_add(diagnosis, "cluster", LEVEL_UNFIT, "redis-cli --cluster fix",
                      "%u of %u slots have no node: keys there cannot be locked",
                      CLUSTER_SLOTS - slots, CLUSTER_SLOTS);
    else if (unfit > 0)
        diagnosis_add(diagnosis, "cluster", LEVEL_UNFIT, "repair the unfit masters",
                      "%zu of %zu masters are fit: keys of the others cannot be locked",
                      count - unfit, count);
    else
        diagnosis_add(diagnosis, "cluster", LEVEL_FINE, "", "%zu masters have all slots", count);
}

/* Checks one node of the Cluster, as a server of its own. False with a message in "fault" if it
 * could not even be asked from here. */
static bool check_node(const struct checkup_plan *plan, struct url_host host,
                       struct checkup *checkup, char *fault, size_t size)
{
    struct url url = *plan->address->urls;

    url.hosts[0] = host;
    url.host_count = 1;
    return redis_check_server(plan, &url, checkup, NULL, fault, size);
}

/* Checks the first node of the URL that answers, where the user may not ask for the masters: it
 * tells what else the user may not do. False as of check_node(). */
static bool check_any(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                      size_t size)
{
    const struct url *url = plan->address->urls;

    for (size_t i = 0; i < url->host_count; i++) {
        checkup->count = 0;
        if (!check_node(plan, url->hosts[i], checkup, fault, size))
            return false;
        if (checkup->servers[0].reached)
            break;
    }
    return true;
}

/* Checks all masters that the map names, and what they are together. read: how the reading of the
 * map has ended. False as of check_node(). */
static bool check_nodes(const struct checkup_plan *plan, const struct cluster_map *map,
                        const struct answer *read, struct checkup *checkup, char *fault,
                        size_t size)
{
    size_t *masters = mem_zeroed((map->node_count + 1) * sizeof *masters);
    size_t count = cluster_map_masters(map, masters); /* 0: it is not known */
    unsigned slots = 0;
    bool able = true;

    if (count == 0 && read->cause == CAUSE_DENIED)
        able = check_any(plan, checkup, fault, size);
    else if (count == 0)
        redis_check_none(plan, plan->address->urls, read, checkup);
    for (size_t i = 0; able && i < count; i++) {
        const struct cluster_node *node = &map->nodes[masters[i]];
        able = check_node(plan, (struct url_host){node->host, node->port}, checkup, fault, size);
    }
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++)
        slots += cluster_map_find(map, slot) != CLUSTER_NOWHERE;
    if (able && count > 0)
        cluster_judge(checkup, slots, &checkup->whole);
    free(masters);
    return able;
}

bool cluster_check(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                   size_t size)
{
    struct probe probe = {.loop = loop_new()};
    struct cluster *cluster = cluster_new(probe.loop, plan->address, NULL, NULL, fault, size);
    bool able = cluster;

    if (able) {
        cluster_read_map(cluster, moment_plus(moment_now(), plan->address->connect_timeout),
                         map_read, &probe);
        answer_await(probe.loop, &probe.answer);
        able = check_nodes(plan, cluster_map_of(cluster), &probe.answer, checkup, fault, size);
        cluster_free(cluster);
    }
    loop_free(probe.loop);
    return able;
}
