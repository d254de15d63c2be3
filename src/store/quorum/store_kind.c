#include "store/quorum/store_kind.h"

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/mem.h"
#include "store/quorum/quorum.h"
#include "store/quorum/store.h"
#include "store/redis/checkup.h"

/* Opens the stores of all nodes, and the quorum over them ("open" of a store_kind). NULL with a
 * message in "fault": one cannot be opened. */
static struct store *open_nodes(struct loop *loop, const struct store_address *address, char *fault,
                                size_t size)
{
    struct store_node nodes[QUORUM_NODES_MAX];
    struct store_address one = *address;
    size_t count = 0;

    one.url_count = 1;
    for (; count < address->url_count; count++) {
        one.urls = &address->urls[count];
        url_print(one.urls, nodes[count].name, sizeof nodes[count].name);
        if (!one.urls->kind->open_member(loop, &one, &nodes[count].member, fault, size))
            break;
    }
    if (count == address->url_count)
        return store_quorum_open(loop, nodes, count);
    while (count > 0)
        store_close(nodes[--count].member.store);
    return NULL;
}

/* -- for the doctor: is it fit to hold locks? -------------------------------------------------- */

/* Looks for a server that is in the URLs twice, perhaps by different names. Returns whether there
 * is one, and adds a finding about it. */
static bool find_double(const struct redis_memory *memories, size_t count,
                        struct diagnosis *diagnosis)
{
    for (size_t i = 1; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (!*memories[i].run_id || strcmp(memories[i].run_id, memories[j].run_id) != 0)
                continue;
            diagnosis_add(diagnosis, "quorum", LEVEL_UNFIT, "a server of its own for each URL",
                          "servers %zu and %zu are the same one", j + 1, i + 1);
            return true;
        }
    }
    return false;
}

/* Adds a finding about each server that has come back without its data: it is not counted for new
 * locks until all leases are over that it may have forgotten, as is_doubtful() of
 * store/quorum/quorum.c judges. lease: ns. As servers were asked one after the other, ages are
 * counted up to the answer of the last one. */
static void judge_memories(const struct redis_memory *memories, size_t count, int64_t lease,
                           struct diagnosis *diagnosis)
{
    struct moment last = {0};
    int64_t age = 0; /* of the quorum, ms: the longest time that a server has been part of it */

    for (size_t i = 0; i < count; i++)
        if (memories[i].told.ns > last.ns)
            last = memories[i].told;
    for (size_t i = 0; i < count; i++) {
        int64_t serves = memories[i].serves_ms + moment_until(memories[i].told, last) / NS_PER_MS;
        age = memories[i].serves_ms >= 0 && serves > age ? serves : age;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t remembers =
            memories[i].remembers_ms + moment_until(memories[i].told, last) / NS_PER_MS;
        if (memories[i].remembers_ms < 0 || remembers >= lease / NS_PER_MS ||
            remembers + QUORUM_FIRST_ASKED_MS >= age)
            continue;
        int64_t seconds = (lease / NS_PER_MS - remembers + 999) / 1000; /* rounded up */
        diagnosis_add(diagnosis, "grace", LEVEL_WARNING, "wait",
                      "server %zu may have lost locks: it is not counted for another %s", i + 1,
                      DURATION_TEXT(seconds * NS_PER_SEC));
    }
}

void quorum_judge(const struct checkup *servers, const struct redis_memory *memories, int64_t lease,
                  struct diagnosis *diagnosis)
{
    size_t count = servers->count, fit = 0, least = count / 2 + 1;

    *diagnosis = (struct diagnosis){0};
    for (size_t i = 0; i < count; i++) {
        enum level worst = servers->servers[i].diagnosis.worst;
        fit += worst < LEVEL_UNFIT;
        if (worst == LEVEL_WARNING || worst == LEVEL_UNFIT)
            diagnosis->worst = LEVEL_WARNING;
    }
    if (find_double(memories, count, diagnosis))
        return;
    /* With two servers, both are needed. */
    diagnosis_add(diagnosis, "quorum",
                  fit < least                     ? LEVEL_UNFIT
                  : fit < count || least == count ? LEVEL_WARNING
                                                  : LEVEL_FINE,
                  fit < count      ? "repair the unfit servers"
                  : least == count ? "a third server, so that one may be down"
                                   : "",
                  "%zu of %zu servers are fit, %zu are needed", fit, count, least);
    judge_memories(memories, count, lease, diagnosis);
}

/* Checks each server by itself, and then what they are together ("check" of a store_kind). False
 * with a message in "fault": one could not even be asked from here. */
static bool check_members(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                          size_t size)
{
    const struct store_address *address = plan->address;
    struct redis_memory *memories = mem_zeroed(address->url_count * sizeof *memories);
    bool able = true;

    for (size_t i = 0; able && i < address->url_count; i++)
        able = redis_check_server(plan, &address->urls[i], checkup, &memories[i], fault, size);
    if (able)
        quorum_judge(checkup, memories, plan->lease, &checkup->whole);
    free(memories);
    return able;
}

const struct store_kind quorum_kind = {.name = "a quorum",
                                       .abilities = STORE_SEVERAL_KEYS | STORE_AT_LEAST |
                                                    STORE_FORCE | STORE_ASK | STORE_DETACHED |
                                                    STORE_MIRROR,
                                       .open = open_nodes,
                                       .check = check_members};
