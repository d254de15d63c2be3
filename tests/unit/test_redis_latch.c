/* The replies of latch.lua as answers: above all, only a sound latch is ever open. */
#include "rules/latch.h"

#include "replies.h"
#include "tap.h"

/* A reply as words (replies.h). */
static const struct {
    const char *reply, *wanted;
} rows[] = {
    {"*8 LATCH 1000 2 3 w 400 5000 1", "w: 2 of 3, since 400, ttl 4000, counted"},
    {"*8 LATCH 1000 2 3 w 400 5000 0", "w: 2 of 3, since 400, ttl 4000"},
    {"*8 LATCH 1000 0 3 w 400 5000 0", "w: 0 of 3, since 400, ttl 4000"},
    {"*10 LATCH 1000 2 3 w 400 5000 0 4 *2 a b", "w: 2 of 3, since 400, ttl 4000, a, b"},
    {"*10 LATCH 1000 2 3 w 400 5000 0 4 *3 a 7 ~", "w: 2 of 3, since 400, ttl 4000, a"},
    {"*10 LATCH 1000 2 3 w 400 5000 0 4 ~", "w: 2 of 3, since 400, ttl 4000"},
    {"*2 ABSENT 1000", "absent: no such latch"},
    {"*1 ABSENT", "absent: no such latch"},
    {"*2 EXISTS 1000", "exists: the latch exists already"},
    {"*2 OTHER 1000", "changed: the latch vanished, and another one has its name"},
    {"*3 MISFIT 1000 lock/1",
     "misfit: the key is a lock, or was one within a week; rlock status shows it"},
    {"*3 MISFIT 1000 damaged",
     "misfit: the store's key of that name holds other data, or is damaged"},
    {"*3 MISFIT 1000 x", "misfit: not a latch: the key holds 'x'"},
    {"*2 MISFIT 1000", "misfit: not a latch: the key holds '?'"},
    {"*3 MISFIT 1000 latch/2",
     "misfit: layout latch/2 needs a newer rlock (this one reads latch/1)"},
    {"-WRONGTYPE", "unknown: the store's key of that name holds other data (maybe done)"},
    {"-OOM", "unknown: out of memory: it has used up its maxmemory"},
    {"-NOPERM", "unknown: no right to run a command that it needs"},

    /* H130: numbers that are too large to reckon with. */
    {"*10 LATCH 1000 9007199254740991 9007199254740991 w 9007199254740991 9007199254740992 0 "
     "9007199254740991 *0",
     "w: 9007199254740991 of 9007199254740991, since 9007199254740991, ttl 4611686018427"},
    {"*9 LATCH 1000 2 3 w 400 5000 9223372036854775807 9223372036854775807",
     "w: 2 of 3, since 400, ttl 4000"},
};

/* No latch, and so not open. H130: nor numbers that are too large. */
static const char *const *const nonsense = INPUTS(
    "~", "0", "LATCH", "*0", "*1 LATCH", "*2 LATCH 1000", "*3 LATCH 1000 0", "*4 LATCH 1000 0 3",
    "*5 LATCH 1000 0 3 w", "*6 LATCH 1000 0 3 w 400", "*7 LATCH 1000 ~ 3 w 400 5000",
    "*7 LATCH 1000 x 3 w 400 5000", "*7 LATCH 1000 0 ~ w 400 5000", "*7 LATCH 1000 0 0 w 400 5000",
    "*7 LATCH 1000 4 3 w 400 5000", "*7 LATCH 1000 0 3 ~ 400 5000", "*7 LATCH 1000 0 3 7 400 5000",
    "*7 LATCH 1000 0 3 wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww 400 5000",
    "*7 LATCH 1000 0 3 w ~ 5000", "*7 LATCH 1000 0 3 w 400 1000", "*7 LATCH 1000 0 3 w 400 ~",
    "*7 LATCH ~ 0 3 w 400 5000", "*7 latch 1000 0 3 w 400 5000", "*2 OPEN 1000",
    "*7 LATCH 1000 0 9007199254740992 w 400 5000", "*7 LATCH 1000 0 9223372036854775807 w 400 5000",
    "*7 LATCH 1000 9223372036854775807 9223372036854775807 w 400 5000",
    "*7 LATCH 1000 0 3 w 9223372036854775807 5000", "*7 LATCH 1000 0 3 w 400 9223372036854775807",
    "*7 LATCH 9223372036854775807 0 3 w 400 9223372036854775807", "*1 *2 ABSENT 1000");

static void add_id(void *arg, const char *id)
{
    strcat(strcat(arg, ", "), id);
}

static void print(const struct answer *answer, const char *ids, char *out, size_t size)
{
    static const char *const causes[] = {[CAUSE_ABSENT] = "absent",
                                         [CAUSE_EXISTS] = "exists",
                                         [CAUSE_CHANGED] = "changed",
                                         [CAUSE_MISFIT] = "misfit"};
    const struct latch_state *latch = &answer->granted.latch;

    if (answer->verdict == VERDICT_GRANTED)
        snprintf(out, size,
                 "%s: %" PRId64 " of %" PRId64 ", since %" PRId64 ", ttl %" PRId64 "%s%s",
                 latch->word, latch->left, latch->number, latch->since_ms, latch->ttl_ms,
                 latch->counted ? ", counted" : "", ids);
    else
        snprintf(out, size, "%s: %s%s",
                 answer->verdict == VERDICT_UNKNOWN ? "unknown" : causes[answer->cause],
                 answer->text, answer->maybe_done ? " (maybe done)" : "");
}

/* A reply of the script "latch", written as words, becomes that answer. */
static void test_reply(const char *words, const char *wanted)
{
    redisReply *reply = reply_of_words(words);
    char ids[100] = "", got[FAULT_SIZE + 40];
    struct answer answer;
    int64_t now;

    if (!reply) {
        tap_is("no reply", wanted, "parse", words);
        return;
    }
    redis_latch_answer(reply, add_id, ids, &answer, &now);
    print(&answer, ids, got, sizeof got);
    tap_is(got, wanted, "redis_latch_answer", words);
    freeReplyObject(reply);
}

int main(void)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        test_reply(rows[i].reply, rows[i].wanted);
    EACH(text, nonsense)
        test_reply(*text, "unknown: the server's answer makes no sense (maybe done)");
    return tap_done();
}
