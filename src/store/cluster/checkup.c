/* A look at the masters of a Redis Cluster. */
#include "store/cluster/checkup.h"

#include "store/cluster/facts.h"
#include "store/redis/doctor/checkup.h"

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
                      "%u of %u slots are nobody's: keys there cannot be locked", all - slots, all);
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
    bool able = cluster_facts_ask(plan->address, &facts, fault, size);

    if (able && facts.count > 0)
        able = check_masters(plan, &facts, checkup, fault, size);
    else if (able && facts.failure.cause == CAUSE_DENIED)
        able = check_any(plan, checkup, fault, size);
    else if (able)
        redis_check_none(plan, plan->address->urls, &facts.failure, checkup);
    cluster_facts_free(&facts);
    return able;
}
