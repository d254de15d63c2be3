#include "store/cluster/store_record.h"

#include <stdio.h>

#include "base/mem.h"
#include "net/loop.h"
#include "store/cluster/cluster.h"
#include "store/redis/doctor/checkup.h"

/* -- the masters ------------------------------------------------------------------------------- */

struct cluster_facts {
    struct loop *loop; /* while it is asked */
    struct cluster_node *masters;
    size_t count;   /* 0: none is known, for the reason in "failure" */
    unsigned slots; /* that any of them has */
    struct answer failure;
};

static void map_read(void *arg, const struct answer *answer)
{
    struct cluster_facts *facts = arg;

    facts->failure = *answer;
    loop_stop(facts->loop);
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

/* Asks the nodes of address->urls[0] for the masters, for connect_timeout at most. False with a
 * message in "fault" if this process cannot even ask. */
static bool ask_masters(const struct store_address *address, struct cluster_facts *facts,
                        char *fault, size_t size)
{
    struct moment until = moment_plus(moment_now(), address->connect_timeout);

    *facts = (struct cluster_facts){.loop = loop_new()};
    struct cluster *cluster = cluster_new(facts->loop, address, NULL, fault, size);
    bool able = cluster;
    if (able) {
        cluster_read_map(cluster, until, map_read, facts);
        loop_run(facts->loop);
        if (facts->failure.verdict == VERDICT_GRANTED)
            take_map(cluster_map_of(cluster), facts);
        cluster_free(cluster);
    }
    loop_free(facts->loop);
    return able;
}

/* -- judging ----------------------------------------------------------------------------------- */

void cluster_judge(const struct checkup *masters, unsigned slots, unsigned all,
                   struct diagnosis *diagnosis)
{
    size_t count = masters->count;
    size_t unfit = 0;

    *diagnosis = (struct diagnosis){0};
    for (size_t i = 0; i < count; i++) {
        unfit += masters->servers[i].diagnosis.worst == LEVEL_UNFIT;
        if (masters->servers[i].diagnosis.worst == LEVEL_WARNING)
            diagnosis->worst = LEVEL_WARNING;
    }
    if (slots < all)
        diagnosis_add(diagnosis, "cluster", LEVEL_UNFIT, "redis-cli --cluster fix",
                      "%u of %u slots have no node: keys there cannot be locked", all - slots, all);
    else if (unfit > 0)
        diagnosis_add(diagnosis, "cluster", LEVEL_UNFIT, "mend the others",
                      "%zu of %zu masters are fit: keys of the others cannot be locked",
                      count - unfit, count);
    else
        diagnosis_add(diagnosis, "cluster", LEVEL_FINE, "", "%zu masters have all slots", count);
}

static bool check_node(const struct checkup_plan *plan, struct url_host host,
                       struct checkup *checkup, char *fault, size_t size)
{
    struct url url = *plan->address->urls;
    struct server_facts facts;

    url.hosts[0] = host;
    url.host_count = 1;
    return redis_check_server(plan, &url, checkup, &facts, fault, size);
}

/* Where the user may not ask for the masters, the first node that can be reached is checked: it
 * tells what else the user may not do. */
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

static bool check_masters(const struct checkup_plan *plan, const struct cluster_facts *facts,
                          struct checkup *checkup, char *fault, size_t size)
{
    for (size_t i = 0; i < facts->count; i++) {
        struct url_host host = {facts->masters[i].host, facts->masters[i].port};
        if (!check_node(plan, host, checkup, fault, size))
            return false;
    }
    cluster_judge(checkup, facts->slots, CLUSTER_SLOTS, &checkup->whole);
    return true;
}

bool cluster_check(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                   size_t size)
{
    struct cluster_facts facts;
    bool able = ask_masters(plan->address, &facts, fault, size);

    if (able && facts.count > 0)
        able = check_masters(plan, &facts, checkup, fault, size);
    else if (able && facts.failure.cause == CAUSE_DENIED)
        able = check_any(plan, checkup, fault, size);
    else if (able)
        redis_check_none(plan, plan->address->urls, &facts.failure, checkup);
    free(facts.masters);
    return able;
}
