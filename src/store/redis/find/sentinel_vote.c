#include "store/redis/find/sentinel_vote.h"

#include <string.h>

bool sentinel_names(const struct sentinel_word *word, const char *host, int port)
{
    return word->said == SENTINEL_NAMES && word->port == port && strcmp(word->host, host) == 0;
}

bool sentinel_votes(const struct sentinel_word *word)
{
    return word->said == SENTINEL_NAMES || word->said == SENTINEL_UNKNOWN;
}

/* Whether the ith Sentinel's word counts. A Sentinel with two addresses has one vote: that of the
 * first address that answered. */
static bool has_own_vote(const struct sentinel_word *words, size_t count, size_t i)
{
    const struct sentinel_word *word = &words[i];
    const char *id = sentinel_id(word);

    if (!sentinel_counts(word))
        return false;
    for (size_t other = 0; *id && other < count; other++) {
        /* An address that votes comes before all that do not. */
        bool before = other < i || !sentinel_votes(word);
        if (other != i && before && sentinel_votes(&words[other]) &&
            strcmp(sentinel_id(&words[other]), id) == 0)
            return false;
    }
    return true;
}

/* Returns how many Sentinels have said that; each counts once, even under two addresses. *first:
 * the index of the first of them; it stays as it is if there is none. */
static size_t count_of(const struct sentinel_word *words, size_t count, enum sentinel_said said,
                       size_t *first)
{
    size_t found = 0;

    for (size_t i = count; i > 0; i--) {
        if (words[i - 1].said != said || !has_own_vote(words, count, i - 1))
            continue;
        *first = i - 1;
        found++;
    }
    return found;
}

/* Returns how many Sentinels there are. A silent one that the URL names may be one that others tell
 * of by another address, so these two kinds are not added up; but only once all answers are there
 * (complete) is it known which are silent. */
static size_t count_all(const struct sentinel_word *words, size_t count, bool complete)
{
    size_t known = 0, named = 0, told = 0;

    for (size_t i = 0; i < count; i++) {
        if (!has_own_vote(words, count, i))
            continue;
        if (sentinel_votes(&words[i]) || (words[i].in_url && words[i].named_by_other))
            known++;
        else if (words[i].in_url)
            named++;
        else
            told++;
    }
    if (!complete)
        return known + named + told;
    return known + (named > told ? named : told);
}

/* Returns the word with the most votes, as a vote that is OPEN. */
static struct sentinel_vote leading_word(const struct sentinel_word *words, size_t count)
{
    struct sentinel_vote best = {.outcome = SENTINELS_OPEN};

    for (size_t i = 0; i < count; i++) {
        size_t votes = 0;
        const struct sentinel_word *one = &words[i];
        for (size_t j = 0; j < count && sentinel_votes(one); j++) {
            bool same =
                one->said == words[j].said &&
                (one->said != SENTINEL_NAMES || sentinel_names(one, words[j].host, words[j].port));
            votes += same && has_own_vote(words, count, j);
        }
        if (votes <= best.votes)
            continue;
        best.speaker = i;
        best.votes = votes;
    }
    return best;
}

/* Returns the vote when all have answered and no answer has enough votes. all: how many Sentinels
 * there are. */
static struct sentinel_vote undecided_vote(const struct sentinel_word *words, size_t count,
                                           size_t all)
{
    struct sentinel_vote vote = {.outcome = SENTINELS_DIFFER, .all = all};

    vote.votes = count_of(words, count, SENTINEL_UNKNOWN, &vote.speaker);
    vote.votes += count_of(words, count, SENTINEL_NAMES, &vote.speaker);
    if (vote.votes > all / 2)
        return vote;
    if (count_of(words, count, SENTINEL_DENIED, &vote.speaker))
        vote.outcome = SENTINELS_DENY;
    else if (count_of(words, count, SENTINEL_UNFIT, &vote.speaker))
        vote.outcome = SENTINELS_UNFIT;
    else if (vote.votes)
        vote.outcome = SENTINELS_TOO_FEW;
    else if (count_of(words, count, SENTINEL_SILENT, &vote.speaker))
        vote.outcome = SENTINELS_SILENT;
    return vote;
}

struct sentinel_vote sentinel_vote(const struct sentinel_word *words, size_t count)
{
    struct sentinel_vote best = leading_word(words, count);
    size_t ignored;
    bool complete = count_of(words, count, SENTINEL_ASKED, &ignored) == 0;

    best.all = count_all(words, count, complete);
    if (best.votes > best.all / 2)
        best.outcome =
            words[best.speaker].said == SENTINEL_NAMES ? SENTINELS_NAME : SENTINELS_DO_NOT_KNOW;
    else if (complete)
        return undecided_vote(words, count, best.all);
    return best;
}
