/* Do the Sentinels agree on the master, and are they enough to name another one? */
#include "store/redis/doctor/judge.h"

#include "base/text.h"

#define LEAST 3

/* Finds the first Sentinel that does not agree with the majority. */
static size_t find_odd(const struct sentinel_facts *facts, const struct sentinel_word *common)
{
    size_t i = 0;

    while (i + 1 < facts->count && (sentinel_names(&facts->words[i], common->host, common->port) ||
                                    (!facts->words[i].named && !facts->words[i].told)))
        i++;
    return i;
}

static void describe(const struct sentinel_facts *facts, size_t i, char *out, size_t size)
{
    const struct sentinel_word *word = &facts->words[i];

    *out = '\0';
    text_append(out, size, "%s:%d ", facts->hosts[i].name, facts->hosts[i].port);
    if (word->said == SENTINEL_NAMES)
        text_append(out, size, "names %s:%d", word->host, word->port);
    else if (word->said == SENTINEL_UNKNOWN)
        text_append(out, size, "knows no such master");
    else
        text_append(out, size, "says nothing (%s)", word->why);
}

static void judge_majority(const struct sentinel_facts *facts, const struct sentinel_vote *vote,
                           struct diagnosis *diagnosis)
{
    const struct sentinel_word *common = &facts->words[vote->speaker];
    size_t all = vote->all;
    char odd[160];

    if (vote->votes < all) {
        describe(facts, find_odd(facts, common), odd, sizeof odd);
        diagnosis_add(diagnosis, "sentinels", LEVEL_WARNING,
                      "repair the others: a failover needs most of them",
                      "%zu of %zu name the master %.60s:%d; %s", vote->votes, all, common->host,
                      common->port, odd);
    } else {
        diagnosis_add(diagnosis, "sentinels", all < LEAST ? LEVEL_NOTE : LEVEL_FINE,
                      all < LEAST ? "at least 3 Sentinels, each on a host of its own" : "",
                      "%zu of %zu name%s the master %.60s:%d", all, all, all == 1 ? "s" : "",
                      common->host, common->port);
    }
}

void judge_sentinels(const struct sentinel_facts *facts, struct diagnosis *diagnosis)
{
    struct sentinel_vote vote = sentinel_vote(facts->words, facts->count);
    char one[160];

    if (vote.outcome == SENTINELS_NAME) {
        judge_majority(facts, &vote, diagnosis);
        return;
    }
    describe(facts, vote.speaker, one, sizeof one);
    diagnosis_add(diagnosis, "sentinels", LEVEL_UNFIT,
                  "see to the Sentinels, and to what the URL calls them and the master",
                  "no majority of the %zu names a master; %s", vote.all, one);
}
