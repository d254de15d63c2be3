/* Looking at all servers behind a store's address. */
#include "checkup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster_facts.h"
#include "judge.h"
#include "judge_sentinels.h"
#include "mem.h"
#include "redis_facts.h"
#include "sentinel_facts.h"

static struct wishes wishes_for(const struct settings *settings, const struct url *url)
{
    const struct store_address *address = &settings->address;

    return (struct wishes){.url = url,
                           .prefix = address->prefix,
                           .lease = settings->lease,
                           .replicas = address->replicas == REPLICAS_NONE ? 0
                                       : address->replicas == REPLICAS_COUNT
                                           ? address->replica_count
                                           : 1,
                           .grace = address->grace,
                           .quorum = address->url_count > 1,
                           .secret = url->password || address->password};
}

static struct patient *add_patient(struct checkup *checkup, const struct url *url)
{
    size_t size = (checkup->count + 1) * sizeof *checkup->patients;

    checkup->patients = mem_checked(realloc(checkup->patients, size));
    struct patient *patient = &checkup->patients[checkup->count++];
    *patient = (struct patient){0};
    url_print(url, patient->name, sizeof patient->name);
    return patient;
}

static struct store_address address_of(const struct settings *settings, const struct url *url)
{
    struct store_address address = settings->address;

    address.urls = url;
    address.url_count = 1;
    return address;
}

static bool look_at_sentinels(const struct store_address *address, struct diagnosis *diagnosis,
                              char *fault, size_t size)
{
    struct sentinel_facts facts;

    if (!sentinel_facts_ask(address, &facts, fault, size))
        return false;
    judge_sentinels(&facts, diagnosis);
    return true;
}

static bool look_at(const struct settings *settings, const struct url *url, struct checkup *checkup,
                    char *fault, size_t size)
{
    struct store_address address = address_of(settings, url);
    struct wishes wishes = wishes_for(settings, url);
    struct patient *patient = add_patient(checkup, url);

    if (!redis_facts_ask(&address, &patient->facts, fault, size))
        return false;
    judge_server(&patient->facts, &wishes, &patient->diagnosis);
    return !url->master || look_at_sentinels(&address, &patient->diagnosis, fault, size);
}

static struct diagnosis *diagnoses_of(const struct checkup *checkup)
{
    struct diagnosis *servers = mem_zeroed(checkup->count * sizeof *servers);

    for (size_t i = 0; i < checkup->count; i++)
        servers[i] = checkup->patients[i].diagnosis;
    return servers;
}

/* -- a Cluster --------------------------------------------------------------------------------- */

/* The one patient that there is when not even a node of the Cluster can be asked. */
static void look_at_none(const struct settings *settings, const struct answer *failure,
                         struct checkup *checkup)
{
    const struct url *url = settings->address.urls;
    struct wishes wishes = wishes_for(settings, url);
    struct patient *patient = add_patient(checkup, url);

    redis_facts_none(&patient->facts, failure);
    judge_server(&patient->facts, &wishes, &patient->diagnosis);
}

static bool look_at_node(const struct settings *settings, struct url_host host,
                         struct checkup *checkup, char *fault, size_t size)
{
    struct url url = *settings->address.urls;

    url.hosts[0] = host;
    url.host_count = 1;
    return look_at(settings, &url, checkup, fault, size);
}

/* Who may not ask for the masters can still be told what else he may not do: by the first that he can reach. */
static bool look_at_any(const struct settings *settings, struct checkup *checkup, char *fault,
                        size_t size)
{
    const struct url *url = settings->address.urls;

    for (size_t i = 0; i < url->host_count; i++) {
        checkup->count = 0;
        if (!look_at_node(settings, url->hosts[i], checkup, fault, size))
            return false;
        if (checkup->patients[0].facts.reached)
            break;
    }
    return true;
}

static bool look_at_masters(const struct settings *settings, const struct cluster_facts *facts,
                            struct checkup *checkup, char *fault, size_t size)
{
    for (size_t i = 0; i < facts->count; i++) {
        struct url_host host = {facts->masters[i].host, facts->masters[i].port};
        if (!look_at_node(settings, host, checkup, fault, size))
            return false;
    }
    struct diagnosis *servers = diagnoses_of(checkup);
    diagnosis_of_cluster(servers, checkup->count, facts->slots, CLUSTER_SLOTS, &checkup->whole);
    free(servers);
    return true;
}

static bool look_at_cluster(const struct settings *settings, struct checkup *checkup, char *fault,
                            size_t size)
{
    struct store_address address = address_of(settings, settings->address.urls);
    struct cluster_facts facts;
    bool able = cluster_facts_ask(&address, &facts, fault, size);

    if (able && facts.count > 0)
        able = look_at_masters(settings, &facts, checkup, fault, size);
    else if (able && facts.failure.cause == CAUSE_DENIED)
        able = look_at_any(settings, checkup, fault, size);
    else if (able)
        look_at_none(settings, &facts.failure, checkup);
    cluster_facts_free(&facts);
    return able;
}

/* -- a quorum ---------------------------------------------------------------------------------- */

static void judge_quorum(struct checkup *checkup)
{
    struct server_facts *facts = mem_zeroed(checkup->count * sizeof *facts);
    struct diagnosis *servers = diagnoses_of(checkup);

    for (size_t i = 0; i < checkup->count; i++)
        facts[i] = checkup->patients[i].facts;
    diagnosis_of_quorum(facts, servers, checkup->count, &checkup->whole);
    free(facts);
    free(servers);
}

static bool look_at_each(const struct settings *settings, struct checkup *checkup, char *fault,
                         size_t size)
{
    const struct store_address *address = &settings->address;

    for (size_t i = 0; i < address->url_count; i++)
        if (!look_at(settings, &address->urls[i], checkup, fault, size))
            return false;
    if (checkup->count > 1)
        judge_quorum(checkup);
    return true;
}

/* -- from outside ------------------------------------------------------------------------------ */

bool checkup_run(const struct settings *settings, struct checkup *checkup, char *fault, size_t size)
{
    *checkup = (struct checkup){0};
    if (strcmp(settings->address.urls->scheme, "cluster") == 0)
        return look_at_cluster(settings, checkup, fault, size);
    return look_at_each(settings, checkup, fault, size);
}

void checkup_free(struct checkup *checkup)
{
    free(checkup->patients);
}
