/* A look at one Redis server, and at its Sentinels. */
#include "store/redis/doctor/checkup.h"

#include <stdio.h>

#include "store/redis/doctor/judge.h"

static struct wishes wishes_for(const struct checkup_plan *plan, const struct url *url)
{
    const struct store_address *address = plan->address;

    return (struct wishes){.url = url,
                           .prefix = address->prefix,
                           .lease = plan->lease,
                           .replicas = address->replicas == REPLICAS_NONE ? 0
                                       : address->replicas == REPLICAS_COUNT
                                           ? address->replica_count
                                           : 1,
                           .grace = address->grace,
                           .quorum = address->url_count > 1,
                           .secret = url->password || address->password};
}

static bool check_sentinels(const struct store_address *address, struct diagnosis *diagnosis,
                            char *fault, size_t size)
{
    struct sentinel_facts facts;

    if (!sentinel_facts_ask(address, &facts, fault, size))
        return false;
    judge_sentinels(&facts, diagnosis);
    return true;
}

/* Adds a server to the checkup, with its facts and the findings. */
static struct checked_server *add_server(const struct checkup_plan *plan, const struct url *url,
                                         const struct server_facts *facts, struct checkup *checkup)
{
    struct checked_server *server = checkup_add(checkup, url);
    struct wishes wishes = wishes_for(plan, url);

    server->reached = facts->reached;
    snprintf(server->said, sizeof server->said, "%s", facts->said);
    server->figures = facts->figures;
    judge_server(facts, &wishes, &server->diagnosis);
    return server;
}

bool redis_check_server(const struct checkup_plan *plan, const struct url *url,
                        struct checkup *checkup, struct server_facts *facts, char *fault,
                        size_t size)
{
    struct store_address address = *plan->address;

    address.urls = url;
    address.url_count = 1;
    if (!redis_facts_ask(&address, facts, fault, size))
        return false;
    struct checked_server *server = add_server(plan, url, facts, checkup);
    return !url->master || check_sentinels(&address, &server->diagnosis, fault, size);
}

void redis_check_none(const struct checkup_plan *plan, const struct url *url,
                      const struct answer *failure, struct checkup *checkup)
{
    struct server_facts facts;

    redis_facts_none(&facts, failure);
    add_server(plan, url, &facts, checkup);
}

bool redis_check(const struct checkup_plan *plan, struct checkup *checkup, char *fault, size_t size)
{
    struct server_facts facts;

    return redis_check_server(plan, plan->address->urls, checkup, &facts, fault, size);
}
