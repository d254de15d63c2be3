/* Sentinels as those who know the master, and who have to be enough to name another one. */
#include "judge_sentinels.h"

#include <stdio.h>
#include <string.h>

#define LEAST 3

/* Those who do not say what the majority says: how many, and the first of them. */
static size_t find_odd(const struct sentinel_facts *facts, const struct sentinel_word *common,
                       size_t *first)
{
    size_t count = 0;

    for (size_t i = facts->count; i > 0; i--) {
        if (sentinel_names(&facts->words[i - 1], common->host, common->port))
            continue;
        *first = i - 1;
        count++;
    }
    return count;
}

static void describe(const struct sentinel_facts *facts, size_t i, char *out, size_t size)
{
    const struct sentinel_word *word = &facts->words[i];
    int used = snprintf(out, size, "%s:%d ", facts->hosts[i].name, facts->hosts[i].port);

    if (used < 0 || (size_t)used >= size)
        return;
    if (word->said == SENTINEL_NAMES)
        snprintf(out + used, size - (size_t)used, "names %s:%d", word->host, word->port);
    else if (word->said == SENTINEL_UNKNOWN)
        snprintf(out + used, size - (size_t)used, "knows no such master");
    else
        snprintf(out + used, size - (size_t)used, "says nothing (%s)", word->why);
}

static void judge_majority(const struct sentinel_facts *facts, const struct sentinel_word *common,
                           struct diagnosis *diagnosis)
{
    char odd[160];
    size_t first, others = find_odd(facts, common, &first), all = facts->count;

    if (others > 0) {
        describe(facts, first, odd, sizeof odd);
        diagnosis_add(diagnosis, "sentinels", LEVEL_WARNING,
                      "mend the others: without most of them there is no failover",
                      "%zu of %zu name the master %.60s:%d; %s", all - others, all, common->host,
                      common->port, odd);
    } else {
        diagnosis_add(diagnosis, "sentinels", all < LEAST ? LEVEL_NOTE : LEVEL_FINE,
                      all < LEAST ? "all Sentinels of the master in the URL, at least 3" : "",
                      "%zu of %zu name%s the master %.60s:%d", all, all, all == 1 ? "s" : "",
                      common->host, common->port);
    }
}

void judge_sentinels(const struct sentinel_facts *facts, struct diagnosis *diagnosis)
{
    struct sentinel_vote vote = sentinel_vote(facts->words, facts->count);
    char one[160];

    if (vote.outcome == SENTINELS_NAME) {
        judge_majority(facts, &facts->words[vote.speaker], diagnosis);
        return;
    }
    describe(facts, vote.speaker, one, sizeof one);
    diagnosis_add(diagnosis, "sentinels", LEVEL_UNFIT,
                  "see to the Sentinels, and to what the URL calls them and the master",
                  "no majority of the %zu names a master; %s", facts->count, one);
}
