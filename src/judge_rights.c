/* What a user lacks of the rights that rlock needs, and what does not work without. */
#include "judge_rights.h"

#include <stdio.h>
#include <string.h>

static const char *user_of(const struct wishes *wishes)
{
    return wishes->url->user ? wishes->url->user : "default";
}

/* " +hget +hset": those that are missing for one use. */
static bool list_lacks(const struct server_facts *facts, enum right_use use, char *out, size_t size)
{
    size_t used = 0;

    *out = '\0';
    for (size_t i = 0; rights[i].name && used < size; i++)
        if (facts->lacks[i] && rights[i].use == use)
            used += (size_t)snprintf(out + used, size - used, " +%s", rights[i].name);
    return used > 0;
}

static bool is_needed(enum right_use use, const struct wishes *wishes)
{
    if (use == RIGHT_REPLICAS)
        return wishes->replicas > 0;
    if (use == RIGHT_MEMORY)
        return wishes->quorum || wishes->grace;
    return use != RIGHT_CLUSTER || strcmp(wishes->url->scheme, "cluster") == 0;
}

static void judge_lacks(const struct server_facts *facts, const struct wishes *wishes,
                        struct diagnosis *diagnosis)
{
    static const struct {
        enum right_use use;
        enum level level;
        const char *effect;
    } effects[] = {
        {RIGHT_LOCK, LEVEL_UNFIT, "no lock can be had"},
        {RIGHT_QUEUE, LEVEL_UNFIT, "no lock can be waited for"},
        {RIGHT_WAIT, LEVEL_WARNING, "waiters are not woken, but have to ask"},
        {RIGHT_SURVEY, LEVEL_WARNING, "locks cannot be listed"},
        {RIGHT_CHECK, LEVEL_WARNING, "nobody notices that it is a replica"},
        {RIGHT_DB, LEVEL_NOTE, "only database 0 can be used"},
        {RIGHT_REPLICAS, LEVEL_UNFIT, "no lock can be had with --replicas"},
        {RIGHT_MEMORY, LEVEL_UNFIT, "no lock can be had of a quorum, or with --grace"},
        {RIGHT_CLUSTER, LEVEL_WARNING,
         "locks cannot be listed, nor is it known who takes the place of a node"},
    };
    char lacks[256], advice[300];

    for (size_t i = 0; i < sizeof effects / sizeof *effects; i++) {
        if (!is_needed(effects[i].use, wishes))
            continue;
        if (!list_lacks(facts, effects[i].use, lacks, sizeof lacks))
            continue;
        snprintf(advice, sizeof advice, "ACL SETUSER %.30s%s", user_of(wishes), lacks);
        diagnosis_add(diagnosis, "rights", effects[i].level, advice, "without%s %s", lacks,
                      effects[i].effect);
    }
}

static void judge_patterns(const struct server_facts *facts, const struct wishes *wishes,
                           struct diagnosis *diagnosis)
{
    char advice[300];

    if (facts->lacks_keys) {
        snprintf(advice, sizeof advice, "ACL SETUSER %.30s ~%.100s:*", user_of(wishes),
                 wishes->prefix);
        diagnosis_add(diagnosis, "rights", LEVEL_UNFIT, advice,
                      "without ~%.100s:* (keys) no lock can be had", wishes->prefix);
    }
    if (facts->lacks_channels) {
        snprintf(advice, sizeof advice, "ACL SETUSER %.30s &%.100s:*", user_of(wishes),
                 wishes->prefix);
        diagnosis_add(diagnosis, "rights", LEVEL_WARNING, advice,
                      "without &%.100s:* (channels) waiters are not woken, but have to ask",
                      wishes->prefix);
    }
}

void judge_rights(const struct server_facts *facts, const struct wishes *wishes,
                  struct diagnosis *diagnosis)
{
    size_t before = diagnosis->count;

    judge_lacks(facts, wishes, diagnosis);
    judge_patterns(facts, wishes, diagnosis);
    if (!facts->rights_known)
        diagnosis_add(diagnosis, "rights", LEVEL_NOTE, "",
                      "the others cannot be told without +multi");
    else if (diagnosis->count == before)
        diagnosis_add(diagnosis, "rights", LEVEL_FINE, "", "all that are needed");
}
