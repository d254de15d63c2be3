/* What the words of several Sentinels amount to. H39, H40 */
#include "sentinel_vote.h"

#include <ctype.h>

#include "tap.h"

/* A letter for each Sentinel: A to C the master that it names; ? has not answered, u knows no such master, x
 * does not run, s silent, d denies, f is no Sentinel. */
static const struct {
    const char *words;
    const char *vote;
} votes[] = {
    /* One. */
    {"?", "open"},
    {"A", "A by 1 of all"},
    {"u", "unknown by 1 of all"},
    {"x", "gone"},
    {"s", "silent"},
    {"d", "denied"},
    {"f", "unfit"},
    /* More than half decide, the others need not be waited for. */
    {"A?", "open"},
    {"AA", "A by 2 of all"},
    {"A??", "open"},
    {"?A?", "open"},
    {"AA?", "A by 2 of all"},
    {"?AA", "A by 2 of all"},
    {"AAA", "A by 3 of all"},
    {"AAA??", "A by 3 of all"},
    {"AABB?", "open"},
    {"AABBA", "A by 3 of all"},
    /* One that sees things differently changes nothing. */
    {"AB?", "open"},
    {"ABB", "B by 2 of all"},
    {"BAA", "A by 2 of all"},
    {"uAA", "A by 2 of all"},
    {"sAA", "A by 2 of all"},
    {"dAA", "A by 2 of all"},
    {"fAA", "A by 2 of all"},
    {"xAA", "A by 2 of all"},
    {"uuA", "unknown by 2 of all"},
    {"u?A", "open"},
    /* One alone decides nothing while others may be running. */
    {"A?s", "open"},
    {"Ass", "few, 1 answered"},
    {"sAs", "few, 1 answered"},
    {"uss", "few, 1 answered"},
    {"As", "few, 1 answered"},
    {"AAss", "few, 2 answered"},
    {"AAsss", "few, 2 answered"},
    {"Axs", "few, 1 answered"},
    {"ABsss", "few, 2 answered"},
    /* Those that do not run do not count. */
    {"x?A", "open"},
    {"xxA", "A by 1"},
    {"xA", "A by 1"},
    {"xxAA", "A by 2"},
    {"xxAAs", "A by 2"},
    {"xxxAA", "A by 2"},
    {"xxxAB", "differ"},
    {"xxu", "unknown by 1"},
    {"xxxxAAAsA", "A by 4"},
    {"x?", "open"},
    {"xs", "silent"},
    {"xxx", "gone"},
    /* They differ. */
    {"AB", "differ"},
    {"ABC", "differ"},
    {"AABB", "differ"},
    {"Au", "differ"},
    {"ABu", "differ"},
    {"xAB", "differ"},
    {"ABs", "differ"},
    /* Why there is no vote. */
    {"Add", "denied"},
    {"sdx", "denied"},
    {"fsx", "unfit"},
    {"fds", "denied"},
    {"sss", "silent"},
    {"sds?", "open"},
};

static size_t read_words(const char *text, struct sentinel_word *words)
{
    static const char letters[] = "?.uxsdf"; /* in the order of enum sentinel_said */
    size_t count = strlen(text);

    memset(words, 0, count * sizeof *words);
    for (size_t i = 0; i < count; i++) {
        if (isupper((unsigned char)text[i])) {
            words[i].said = SENTINEL_NAMES;
            words[i].port = 6379;
            sprintf(words[i].host, "%c", text[i]);
        } else {
            words[i].said = (enum sentinel_said)(strchr(letters, text[i]) - letters);
        }
    }
    return count;
}

static const char *describe(const struct sentinel_word *words, const struct sentinel_vote *vote)
{
    static char text[64];
    const char *all = vote->certain ? " of all" : "";

    switch (vote->outcome) {
    case SENTINELS_OPEN: return "open";
    case SENTINELS_NAME:
        sprintf(text, "%.10s by %zu%s", words[vote->speaker].host, vote->votes, all);
        return text;
    case SENTINELS_DO_NOT_KNOW: sprintf(text, "unknown by %zu%s", vote->votes, all); return text;
    case SENTINELS_TOO_FEW: sprintf(text, "few, %zu answered", vote->votes); return text;
    case SENTINELS_DIFFER: return "differ";
    case SENTINELS_DENY: return "denied";
    case SENTINELS_UNFIT: return "unfit";
    case SENTINELS_GONE: return "gone";
    case SENTINELS_SILENT: return "silent";
    }
    return "?";
}

static void test_votes(void)
{
    struct sentinel_word words[16];

    for (size_t i = 0; i < COUNT(votes); i++) {
        size_t count = read_words(votes[i].words, words);
        struct sentinel_vote vote = sentinel_vote(words, count);
        tap_is(describe(words, &vote), votes[i].vote, "vote", votes[i].words);
    }
}

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

/* Whatever those say who have not answered yet: what is decided stays so. */
static void test_decided_is_decided(void)
{
    static const char letters[] = "?ABuxsdf";
    size_t wrong = 0;

    for (int code = 0; code < 8 * 8 * 8 * 8; code++) {
        char text[5] = "";
        struct sentinel_word words[16];
        for (int i = 0, rest = code; i < 4; i++, rest /= 8)
            text[i] = letters[rest % 8];
        size_t count = read_words(text, words);
        struct sentinel_vote early = sentinel_vote(words, count);
        if (early.outcome == SENTINELS_OPEN)
            continue;
        char *asked = strchr(text, '?');
        for (int i = 1; asked && i < 8; i++) {
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
