/* Which replies to WAIT and ROLE make an acquisition count, and what is said of those that do
 * not. */
#include "store/redis/replicas.h"

#include "replies.h"
#include "tap.h"

/* Right after the greeting: "known" replicas, -1: it did not tell. */
static const struct {
    enum replicas rule;
    unsigned number;
    int known;
    const char *wanted; /* NULL: it is worth trying */
} greetings[] = {
    {REPLICAS_NONE, 0, 0, NULL},
    {REPLICAS_NONE, 0, -1, NULL},
    {REPLICAS_COUNT, 1, 1, NULL},
    {REPLICAS_COUNT, 1, -1, NULL},
    {REPLICAS_COUNT, 1, 0,
     "not ready: the server has no replicas, and the lock must wait for some"},
    {REPLICAS_COUNT, 3, 2,
     "not ready: the server has 2 of the 3 replicas that the lock must wait for"},
    {REPLICAS_MAJORITY, 0, 0,
     "not ready: the server has no replicas, and the lock must wait for some"},
    {REPLICAS_MAJORITY, 0, 1, NULL},
    {REPLICAS_MAJORITY, 0, -1, "denied: no right to ask for the number of replicas (ROLE)"},
    {REPLICAS_ALL, 0, 0, "not ready: the server has no replicas, and the lock must wait for some"},
    {REPLICAS_ALL, 0, 2, NULL},
    {REPLICAS_ALL, 0, -1, "denied: no right to ask for the number of replicas (ROLE)"},
};

/* WAIT for "asked" was answered by "wait": a number, or an error; and ROLE tells of "told"
 * replicas, -1: nothing. */
static const struct {
    enum replicas rule;
    unsigned number, asked;
    const char *wait;
    int told;
    const char *wanted;
} rows[] = {
    {REPLICAS_COUNT, 1, 1, "1", -1, "yes"},
    {REPLICAS_COUNT, 1, 1, "2", -1, "yes"},
    {REPLICAS_COUNT, 1, 1, "0", -1, "not ready: only 0 of 1 replicas have it"},
    {REPLICAS_COUNT, 2, 2, "1", -1, "not ready: only 1 of 2 replicas has it"},
    {REPLICAS_COUNT, 2, 2, "-1", -1,
     "unfit: the server does not wait for its replicas: its answer makes no sense"},
    {REPLICAS_COUNT, 1, 1, "ERR unknown command 'WAIT'", -1,
     "unfit: the server does not wait for its replicas: it answers with an error: ERR unknown "
     "command 'WAIT'"},
    {REPLICAS_COUNT, 1, 1, "NOPERM no", -1,
     "denied: the server does not wait for its replicas: no right to run a command that it needs"},
    {REPLICAS_COUNT, 1, 1, "UNBLOCKED force unblock", -1,
     "not ready: the server does not wait for its replicas: it has become a replica meanwhile"},
    {REPLICAS_COUNT, 1, 1, "WRONGTYPE", -1,
     "unfit: the server does not wait for its replicas: the store's key of that name holds other "
     "data"},

    /* 1 of 1, 2 of 2 and 3, 3 of 4 and 5. */
    {REPLICAS_MAJORITY, 0, 1, "1", 1, "yes"},
    {REPLICAS_MAJORITY, 0, 2, "2", 3, "yes"},
    {REPLICAS_MAJORITY, 0, 2, "2", 4, "more"},
    {REPLICAS_MAJORITY, 0, 3, "3", 5, "yes"},
    {REPLICAS_MAJORITY, 0, 3, "2", 5, "not ready: only 2 of 3 replicas have it"},
    {REPLICAS_MAJORITY, 0, 1, "0", 0, "not ready: only 0 of 1 replicas have it"},

    {REPLICAS_ALL, 0, 2, "2", 2, "yes"},
    {REPLICAS_ALL, 0, 2, "1", 2, "not ready: only 1 of 2 replicas has it"},
    /* One has come, or gone, meanwhile. */
    {REPLICAS_ALL, 0, 2, "2", 3, "more"},
    {REPLICAS_ALL, 0, 2, "1", 1, "not ready: only 1 of 2 replicas has it"},
    {REPLICAS_ALL, 0, 2, "0", 0, "not ready: only 0 of 2 replicas have it"},
    {REPLICAS_ALL, 0, 2, "2", 1, "yes"},
    {REPLICAS_MAJORITY, 0, 2, "1", 1, "not ready: only 1 of 2 replicas has it"},
    /* A ROLE that does not tell changes nothing. */
    {REPLICAS_ALL, 0, 2, "2", -1, "yes"},
    {REPLICAS_ALL, 0, 2, "1", -1, "not ready: only 1 of 2 replicas has it"},
};

static const char *tell(const struct answer *answer, char *out, size_t size)
{
    static const char *const causes[] = {[CAUSE_DENIED] = "denied",
                                         [CAUSE_UNFIT] = "unfit",
                                         [CAUSE_NOT_READY] = "not ready",
                                         [CAUSE_UNREACHABLE] = "?"};

    snprintf(out, size, "%s: ", answer->verdict == VERDICT_UNKNOWN ? causes[answer->cause] : "?");
    text_append(out, size, "%s", answer->text);
    return out;
}

/* A number, or an error. */
static redisReply *reply_to_wait(const char *text)
{
    char bytes[200];
    int length = snprintf(bytes, sizeof bytes, "%c%s\r\n",
                          text[strspn(text, "-0123456789")] ? '-' : ':', text);

    return reply_of(bytes, (size_t)length);
}

static redisReply *reply_to_role(int replicas)
{
    char words[60];
    int used = snprintf(words, sizeof words, "*3 %s 42 *%d", replicas < 0 ? "slave" : "master",
                        replicas < 0 ? 0 : replicas);

    for (int i = 0; i < replicas; i++)
        used += snprintf(words + used, sizeof words - (size_t)used, " *0");
    return reply_of_words(words);
}

/* A rule of --replicas that the server cannot fulfil with those it tells of is refused before
 * it is asked for a lock. */
static void test_greetings(void)
{
    for (size_t i = 0; i < COUNT(greetings); i++) {
        struct redis_replicas replicas = {
            .rule = greetings[i].rule, .number = greetings[i].number, .known = greetings[i].known};
        struct answer answer;
        char input[60], got[300];

        snprintf(input, sizeof input, "rule %d %u, known %d", (int)greetings[i].rule,
                 greetings[i].number, greetings[i].known);
        tap_is(redis_replicas_possible(&replicas, &answer) ? NULL : tell(&answer, got, sizeof got),
               greetings[i].wanted, "redis_replicas_possible", input);
    }
}

/* Greetings one after the other: which server, and how many replicas it tells of. */
static const struct {
    const char *name;
    struct {
        const char *server;
        int count;
    } greetings[3];
    int known; /* after the last one */
} counts[] = {
    {"the first one", {{"a", 2}}, 2},
    {"one has left", {{"a", 2}, {"a", 1}}, 2},
    {"one has come", {{"a", 1}, {"a", 2}, {"a", 1}}, 2},
    {"at another server", {{"a", 2}, {"b", 1}}, 1},
    {"at the first one again", {{"a", 2}, {"b", 1}, {"a", 1}}, 1},
    {"it does not tell which it is", {{"", 2}, {"", 1}}, 2},
    {"it does not tell of replicas", {{"a", -1}}, -1},
    {"nor does the other one", {{"a", 2}, {"b", -1}}, -1},
};

/* The most replicas that one server has told of are remembered, until another server answers. */
static void test_counts(void)
{
    for (size_t i = 0; i < COUNT(counts); i++) {
        struct redis_replicas replicas = {.known = -1};
        char got[16], wanted[16];

        for (size_t j = 0; j < 3 && counts[i].greetings[j].server; j++)
            redis_replicas_greet(&replicas, counts[i].greetings[j].server,
                                 counts[i].greetings[j].count);
        snprintf(got, sizeof got, "%d", replicas.known);
        snprintf(wanted, sizeof wanted, "%d", counts[i].known);
        tap_is(got, wanted, "redis_replicas_greet", counts[i].name);
    }
}

/* By the replies to WAIT and ROLE the replicas have the lock, lack it, or have to be asked
 * again for more. */
static void test_replies(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct redis_replicas replicas = {.rule = rows[i].rule,
                                          .number = rows[i].number,
                                          .known = (int)rows[i].asked,
                                          .asked = rows[i].asked};
        redisReply *replies[] = {reply_to_wait(rows[i].wait), reply_to_role(rows[i].told)};
        struct answer answer = {.verdict = VERDICT_GRANTED};
        char input[100], got[300];
        enum replicas_verdict verdict = redis_replicas_hear(&replicas, replies, &answer);

        snprintf(input, sizeof input, "rule %d %u, WAIT %u: %s, ROLE %d", (int)rows[i].rule,
                 rows[i].number, rows[i].asked, rows[i].wait, rows[i].told);
        if (verdict != REPLICAS_LACK_IT)
            snprintf(got, sizeof got, "%s", verdict == REPLICAS_HAVE_IT ? "yes" : "more");
        else
            tell(&answer, got, sizeof got);
        if (verdict == REPLICAS_LACK_IT && !answer.maybe_done)
            strcat(got, ", as if it had not been done");
        tap_is(got, rows[i].wanted, "redis_replicas_hear", input);
        freeReplyObject(replies[0]);
        freeReplyObject(replies[1]);
    }
}

int main(void)
{
    test_greetings();
    test_counts();
    test_replies();
    return tap_done();
}
