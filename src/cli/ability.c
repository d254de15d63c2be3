/* Abilities of stores, in the words of the command line. */
#include "cli/ability.h"

#include <stdio.h>

static const struct {
    enum store_ability ability;
    const char *words;
} known[] = {
    {STORE_READERS, "--read"},
    {STORE_SEMAPHORES, "--limit"},
    {STORE_SEVERAL_KEYS, "locks of several KEYs"},
    {STORE_QUEUE, "queue"},
    {STORE_AT_LEAST, "--at-least"},
    {STORE_REPLICAS, "--replicas"},
    {STORE_GRACE, "--grace"},
    {STORE_MARK, "init"},
    {STORE_FORCE, "force-release"},
    {STORE_LATCHES, "latches"},
    {STORE_GROUPS, "--latest"},
    {STORE_LIMITS, "stored limits"},
    {STORE_PRIORITIES, "--priority"},
    {STORE_PAUSES, "pause"},
    {STORE_GLOB_PAUSES, "pause of a GLOB"},
    {STORE_REPLACE, "--replace"},
    {STORE_ASK, "force-release without --now"},
    {STORE_DETACHED, "acquire without --keep"},
    {STORE_MIRROR, "--mirror"},
    {STORE_MEMORY, "memory of former runs"},
    {STORE_TOGETHER, "--unless-done of several KEYs"},
    {STORE_ANY, "--any"},
};

char *ability_print_lack(const struct store_address *address, enum store_ability ability,
                         char out[ABILITY_LACK_SIZE])
{
    const char *words = "";

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].ability == ability)
            words = known[i].words;
    snprintf(out, ABILITY_LACK_SIZE, "%s has no %s", store_record_of(address)->name, words);
    return out;
}

const char *ability_instead(enum store_ability ability)
{
    return ability == STORE_ANY
               ? "rlock run --limit N KEY takes one of N slots; RLOCK_SLOT is its number"
               : NULL;
}
