/* The vote of Sentinels. */
#include "sentinel_vote.h"

#include <string.h>

bool sentinel_names(const struct sentinel_word *word, const char *host, int port)
{
    return word->said == SENTINEL_NAMES && word->port == port && strcmp(word->host, host) == 0;
}

static bool same(const struct sentinel_word *one, const struct sentinel_word *other)
{
    return one->said == other->said &&
           (one->said != SENTINEL_NAMES || sentinel_names(one, other->host, other->port));
}

static bool is_vote(const struct sentinel_word *word)
{
    return word->said == SENTINEL_NAMES || word->said == SENTINEL_UNKNOWN;
}

static size_t count_of(const struct sentinel_word *words, size_t count, enum sentinel_said said,
                       size_t *first)
{
    size_t found = 0;

    for (size_t i = count; i > 0; i--) {
        if (words[i - 1].said != said)
            continue;
        *first = i - 1;
        found++;
    }
    return found;
}

/* What has the most votes. */
static struct sentinel_vote leading(const struct sentinel_word *words, size_t count)
{
    struct sentinel_vote best = {.outcome = SENTINELS_OPEN};

    for (size_t i = 0; i < count; i++) {
        size_t votes = 0;
        for (size_t j = 0; j < count; j++)
            votes += is_vote(&words[i]) && same(&words[i], &words[j]);
        if (votes <= best.votes)
            continue;
        best.speaker = i;
        best.votes = votes;
    }
    return best;
}

/* All have answered who will, and no answer has enough votes. */
static struct sentinel_vote undecided(const struct sentinel_word *words, size_t count,
                                      size_t needed)
{
    struct sentinel_vote vote = {.outcome = SENTINELS_DIFFER};

    vote.votes = count_of(words, count, SENTINEL_UNKNOWN, &vote.speaker);
    vote.votes += count_of(words, count, SENTINEL_NAMES, &vote.speaker);
    if (vote.votes >= needed)
        return vote;
    if (count_of(words, count, SENTINEL_DENIED, &vote.speaker))
        vote.outcome = SENTINELS_DENY;
    else if (count_of(words, count, SENTINEL_UNFIT, &vote.speaker))
        vote.outcome = SENTINELS_UNFIT;
    else if (vote.votes)
        vote.outcome = SENTINELS_TOO_FEW;
    else if (count_of(words, count, SENTINEL_SILENT, &vote.speaker))
        vote.outcome = SENTINELS_SILENT;
    else if (count_of(words, count, SENTINEL_GONE, &vote.speaker))
        vote.outcome = SENTINELS_GONE;
    return vote;
}

struct sentinel_vote sentinel_vote(const struct sentinel_word *words, size_t count)
{
    struct sentinel_vote best = leading(words, count);
    size_t ignored;
    size_t running = count - count_of(words, count, SENTINEL_GONE, &ignored);
    size_t needed = running / 2 + 1;

    if (best.votes >= needed) {
        best.certain = best.votes > count / 2;
        best.outcome =
            words[best.speaker].said == SENTINEL_NAMES ? SENTINELS_NAME : SENTINELS_DO_NOT_KNOW;
        return best;
    }
    return count_of(words, count, SENTINEL_ASKED, &ignored) ? best
                                                            : undecided(words, count, needed);
}
