/* The vote of several Sentinels. H39, H40, H133 */
#include "store/redis/find/sentinel_vote.h"

#include <ctype.h>

#include "tap.h"

/* A letter for each Sentinel: A to C the master that it names; ? has not answered, u knows no such
 * master, s silent, d denies, f is not a Sentinel. Before it: + others tell of it, and the URL does
 * not name it; = both. After it: a digit by which it is known. */
static const struct {
    const char *vote;
    const char *const *words;
} votes[] = {
    /* One. */
    {"open", INPUTS("?")},
    {"A by 1 of 1", INPUTS("A")},
    {"unknown by 1 of 1", INPUTS("u")},
    {"silent", INPUTS("s")},
    {"denied", INPUTS("d")},
    {"unfit", INPUTS("f")},
    /* More than half decide, the others need not be waited for. */
    {"open", INPUTS("A?", "A??", "?A?", "AABB?")},
    {"A by 2 of 2", INPUTS("AA")},
    {"A by 2 of 3", INPUTS("AA?", "?AA")},
    {"A by 3 of 3", INPUTS("AAA")},
    {"A by 3 of 5", INPUTS("AAA??", "AABBA")},
    /* One that sees things differently changes nothing. */
    {"open", INPUTS("AB?", "u?A")},
    {"B by 2 of 3", INPUTS("ABB")},
    {"A by 2 of 3", INPUTS("BAA", "uAA", "sAA", "dAA", "fAA")},
    {"unknown by 2 of 3", INPUTS("uuA")},
    /* H133: one that cannot be reached, for whatever reason, is one of them. */
    {"open", INPUTS("A?s", "s?A")},
    {"few, 1 of 3", INPUTS("Ass", "sAs", "uss")},
    {"few, 1 of 2", INPUTS("As")},
    {"few, 2 of 4", INPUTS("AAss", "ssAA")},
    {"few, 2 of 5", INPUTS("AAsss", "ABsss")},
    {"A by 3 of 5", INPUTS("ssAAA")},
    {"silent", INPUTS("ssss")},
    /* H133: and so are those that others tell of. */
    {"open", INPUTS("A+?", "A+?+?")},
    {"few, 1 of 3", INPUTS("A+s+s", "A=s+s")},
    {"A by 2 of 3", INPUTS("A+A+s", "A+A+?", "A=A=s")},
    {"B by 2 of 3", INPUTS("A+B+B")},
    {"differ", INPUTS("A+B")},
    {"denied", INPUTS("A+d")},
    /* A silent one of the URL may be one that others tell of by its address: one of them. */
    {"A by 2 of 3", INPUTS("AAs+s")},
    {"open", INPUTS("AAs+?")},
    {"few, 1 of 3", INPUTS("Ass+s+s")},
    {"A by 3 of 5", INPUTS("A+A+Ass")},
    {"few, 2 of 4", INPUTS("A+Ass")},
    /* But not where they tell of it as it stands in the URL. */
    {"few, 1 of 5", INPUTS("A=s+s+s+s")},
    {"few, 2 of 4", INPUTS("AA=s+s")},
    {"few, 3 of 7", INPUTS("A=A+A=s=s+s+s")},
    /* One by two addresses. */
    {"A by 1 of 1", INPUTS("A1+A1", "A1+s1", "A1+?1", "s1+A1", "A1+B1")},
    {"A by 2 of 2", INPUTS("A1+A1+A2")},
    {"differ", INPUTS("A1+B1+B2")},
    {"A by 2 of 3", INPUTS("A1A2s+s3")},
    {"few, 1 of 2", INPUTS("A1A1A1s+s")},
    /* The Sentinels differ. */
    {"differ", INPUTS("AB", "ABC", "AABB", "Au", "ABu", "sAB", "ABs")},
    /* Why there is no vote. */
    {"denied", INPUTS("Add", "sds", "fds")},
    {"unfit", INPUTS("fss")},
    {"silent", INPUTS("sss")},
    {"open", INPUTS("sds?")},
};

static size_t read_words(const char *text, struct sentinel_word *words)
{
    static const char letters[] = "?.usdf"; /* in the order of enum sentinel_said */
    size_t count = 0;

    for (; *text; text++) {
        struct sentinel_word *word = &words[count++];
        *word = (struct sentinel_word){.in_url = *text != '+',
                                       .named_by_other = *text == '+' || *text == '='};
        text += word->named_by_other;
        if (isupper((unsigned char)*text)) {
            word->said = SENTINEL_NAMES;
            word->port = 6379;
            sprintf(word->host, "%c", *text);
        } else {
            word->said = (enum sentinel_said)(strchr(letters, *text) - letters);
        }
        if (isdigit((unsigned char)text[1]))
            word->id[0] = *++text;
    }
    return count;
}

static const char *describe(const struct sentinel_word *words, const struct sentinel_vote *vote)
{
    static char text[64];

    switch (vote->outcome) {
    case SENTINELS_OPEN: return "open";
    case SENTINELS_NAME:
        sprintf(text, "%.10s by %zu of %zu", words[vote->speaker].host, vote->votes, vote->all);
        return text;
    case SENTINELS_DO_NOT_KNOW:
        sprintf(text, "unknown by %zu of %zu", vote->votes, vote->all);
        return text;
    case SENTINELS_TOO_FEW: sprintf(text, "few, %zu of %zu", vote->votes, vote->all); return text;
    case SENTINELS_DIFFER: return "differ";
    case SENTINELS_DENY: return "denied";
    case SENTINELS_UNFIT: return "unfit";
    case SENTINELS_SILENT: return "silent";
    }
    return "?";
}

/* The master that a majority of Sentinels names is the one; each row has the words of the
 * Sentinels, and the outcome. */
static void test_votes(void)
{
    struct sentinel_word words[16];

    for (size_t i = 0; i < COUNT(votes); i++) {
        EACH(text, votes[i].words) {
            size_t count = read_words(*text, words);
            struct sentinel_vote vote = sentinel_vote(words, count);
            tap_is(describe(words, &vote), votes[i].vote, "vote", *text);
        }
    }
}

/* Where no majority agrees, the Sentinel that is quoted is one that said why. The letters are
 * those of "votes". */
static void test_speaker(void)
{
    struct sentinel_word words[16];
    size_t count = read_words("sudAs", words);

    tap_ok(words[sentinel_vote(words, count).speaker].said == SENTINEL_DENIED,
           "the speaker is one who said why");
    count = read_words("susAs", words);
    tap_ok(words[sentinel_vote(words, count).speaker].said == SENTINEL_NAMES,
           "of too few, one who names a master");
    count = read_words("AA", words);
    words[1].port = 6380;
    tap_ok(sentinel_vote(words, count).outcome == SENTINELS_DIFFER,
           "another port is another master");
}

/* Later words do not change a decision. */
static void test_decided_is_decided(void)
{
    static const char letters[] = "?ABusdf";
    size_t wrong = 0;

    for (int code = 0; code < 7 * 7 * 7 * 7; code++) {
        char text[5] = "";
        struct sentinel_word words[16];
        for (int i = 0, rest = code; i < 4; i++, rest /= 7)
            text[i] = letters[rest % 7];
        size_t count = read_words(text, words);
        struct sentinel_vote early = sentinel_vote(words, count);
        if (early.outcome == SENTINELS_OPEN)
            continue;
        char *asked = strchr(text, '?');
        for (int i = 1; asked && i < 7; i++) {
            struct sentinel_word later[16];
            *asked = letters[i];
            read_words(text, later);
            struct sentinel_vote vote = sentinel_vote(later, count);
            wrong += vote.outcome != early.outcome ||
                     strcmp(later[vote.speaker].host, words[early.speaker].host) != 0;
        }
    }
    tap_ok(wrong == 0, "no later word changes a decision");
}

int main(void)
{
    test_votes();
    test_speaker();
    test_decided_is_decided();
    return tap_done();
}
