/* Latches as rows of a database: their text, the rules, and what a row may be before and after.
 * Above all, that nothing but a sound latch is ever open. */
#include "store/sql/latch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/sql/row.h"
#include "store/sql/swap.h"
#include "store/store.h"
#include "chance.h"
#include "tap.h"

#define A    "aaaaaaaa-0000-4000-8000-000000000000"
#define W    "wwwwwwww-0000-4000-8000-000000000000"
#define V    "vvvvvvvv-0000-4000-8000-000000000000"
#define NOW  INT64_C(1764000000000000)
#define DAY  (INT64_C(86400000) * US_PER_MS)
#define HEAD "latch/1 7\n"

/* What one call has brought. */
struct result {
    enum sql_latch_change change;
    struct answer answer;
    char ids[200];
};

static void add_id(void *arg, const char *id)
{
    strcat(strcat(arg, "+"), id);
}

static struct result apply(struct sql_row *row, struct latch_request request, int64_t now,
                           bool waited)
{
    struct result result = {0};

    request.key = "k";
    request.each = add_id;
    request.each_arg = result.ids;
    result.change = sql_row_latch(row, &request, now, waited, &result.answer);
    return result;
}

static struct result set(struct sql_row *row, const char *word, int64_t number, int64_t now)
{
    return apply(
        row,
        (struct latch_request){
            .verb = LATCH_SET, .word = word, .number = number, .ttl = DAY / US_PER_MS * NS_PER_MS},
        now, false);
}

static struct result count(struct sql_row *row, const char *id, bool unnamed, int64_t number,
                           const char *word)
{
    return apply(
        row,
        (struct latch_request){
            .verb = LATCH_COUNT, .id = id, .unnamed = unnamed, .number = number, .word = word},
        NOW, false);
}

static struct result verb(struct sql_row *row, enum latch_verb what, int64_t now)
{
    return apply(row, (struct latch_request){.verb = what}, now, false);
}

static bool is(const struct result *result, enum sql_latch_change change, int64_t left,
               bool counted)
{
    const struct answer *answer = &result->answer;

    return result->change == change && answer->verdict == VERDICT_GRANTED &&
           answer->latch.left == left && answer->latch.counted == counted;
}

static bool is_refused(const struct result *result, enum cause cause)
{
    return result->change == SQL_LATCH_SAME && result->answer.verdict == VERDICT_REFUSED &&
           result->answer.cause == cause && *result->answer.text;
}

static void take(struct sql_row *row, int64_t now)
{
    struct sql_claim claim = {
        .owner = A, .who = "h u 1 c -", .mode = LOCK_EXCLUSIVE, .lease = 30000 * US_PER_MS};

    sql_row_take(row, &claim, now);
}

/* -- text -------------------------------------------------------------------------------------- */

static void test_text(void)
{
    static const char *const damaged[] = {
        "latch/1",
        "latch/2 7\n0 1 5 9 w\n1 d:a\n",
        HEAD,
        HEAD "0 1 5 9 w",
        HEAD "0 1 5 9 \n1 d:a\n",
        HEAD "0 0 5 9 w\n",
        HEAD "2 1 5 9 w\n",
        HEAD "-1 1 5 9 w\n1 d:a\n1 d:b\n",
        HEAD "0 1000000001 5 9 w\n",
        HEAD "0 1 5 9 w x\n1 d:a\n",
        HEAD "0 1 5 99999999999999999999 w\n1 d:a\n",
        HEAD "0 1 5 9 wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww\n1 d:a\n",
        /* Open, and nobody has counted, or not all, or too many. */
        HEAD "0 1 5 9 w\n",
        HEAD "0 3 5 9 w\n1 d:a\n1 d:b\n",
        HEAD "0 1 5 9 w\n1 d:a\n1 d:b\n",
        HEAD "1 1 5 9 w\n1 d:a\n",
        HEAD "0 1 5 9 w\n1 d:a",
        HEAD "0 1 5 9 w\n1 x:a\n",
        HEAD "0 1 5 9 w\n1 d:\n",
        HEAD "0 1 5 9 w\n1 d\n",
        HEAD "0 1 5 9 w\n1000000001 d:a\n",
        HEAD "0 1 5 9 w\n1 d:a\nmirror shedlock o h n\n",
    };
    struct sql_row row = {.fence = 7}, again = {0};

    set(&row, W, 5, NOW);
    count(&row, "a", false, 2, NULL);
    count(&row, "x", true, 1, NULL);
    char *text = sql_row_print(&row);
    tap_ok(tap_same(text, HEAD "2 5 1764000000000000 1764086400000000 " W "\n2 d:a\n1 r:x\n"),
           "what is written");
    tap_ok(sql_row_read(&again, text) && again.fence == 7 && again.count == 0 && again.latch &&
               again.latch->count == 2 && again.latch->left == 2 && again.latch->number == 5,
           "and read");
    text[strlen(text) - 2] = '\0';
    tap_ok(!sql_row_read(&again, text) && !again.latch && sql_row_read_head(&again, text) &&
               again.latch->left == 2 && again.latch->count == 0,
           "a look at all of them needs no more than the beginning");
    free(text);
    sql_row_free(&again);
    sql_row_free(&row);
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        tap_ok(!sql_row_read(&row, damaged[i]) && !row.latch && row.fence == 0, "damaged: %zu", i);
        sql_row_free(&row);
    }
}

static void test_head(void)
{
    struct sql_row row = {.fence = INT64_MAX / 4};
    char word[LATCH_WORD_SIZE];

    memset(word, 'w', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    set(&row, word, LATCH_NUMBER_MAX, INT64_MAX / 8);
    char *text = sql_row_print(&row);
    tap_ok(strlen(text) < SQL_LATCH_HEAD && strlen(text) > 40, "a beginning is long enough");
    tap_ok(strncmp(text, SQL_LATCH_MARK, strlen(SQL_LATCH_MARK)) == 0, "and can be told");
    free(text);
    sql_row_free(&row);
}

/* -- the rules --------------------------------------------------------------------------------- */

static void test_set(void)
{
    struct sql_row row = {0};

    struct result result = set(&row, W, 3, NOW);
    tap_ok(is(&result, SQL_LATCH_CALLS, 3, false) && result.answer.latch.number == 3 &&
               result.answer.latch.since_ms == NOW / US_PER_MS &&
               result.answer.latch.ttl_ms / 1000 == 86400 &&
               strcmp(result.answer.latch.word, W) == 0,
           "set, and those who wait for it are called");
    result = set(&row, V, 5, NOW);
    tap_ok(is_refused(&result, CAUSE_EXISTS) && row.latch->number == 3, "not a second time");
    count(&row, "a", false, 1, NULL);
    result = set(&row, W, 3, NOW);
    tap_ok(is(&result, SQL_LATCH_SAME, 2, false), "H1 asked again after a lost answer: the same");
    sql_row_free(&row);
}

static void test_count(void)
{
    struct sql_row row = {0};

    set(&row, W, 5, NOW);
    struct result result = count(&row, "a", false, 1, NULL);
    tap_ok(is(&result, SQL_LATCH_CHANGED, 4, true), "counted, and nobody is called");
    result = count(&row, "a", false, 3, NULL);
    tap_ok(is(&result, SQL_LATCH_SAME, 4, false), "H91 an id counts once, whatever it asks for");
    result = count(&row, "a", true, 1, NULL);
    tap_ok(is(&result, SQL_LATCH_CHANGED, 3, true), "a call's own word is no id");
    result = count(&row, "a", true, 1, NULL);
    tap_ok(is(&result, SQL_LATCH_SAME, 3, false), "H91 and counts once, too");
    result = count(&row, "b", false, 1, V);
    tap_ok(is_refused(&result, CAUSE_CHANGED), "H90 not on another latch than the one meant");
    result = count(&row, "b", false, 1, W);
    tap_ok(is(&result, SQL_LATCH_CHANGED, 2, true), "on that one");
    result = count(&row, "c", false, 7, NULL);
    tap_ok(is(&result, SQL_LATCH_CALLS, 0, true) && row.latch->counts[3].count == 2,
           "never below 0; those who wait are called when it is open");
    result = count(&row, "d", false, 1, NULL);
    tap_ok(is(&result, SQL_LATCH_SAME, 0, false), "an open one stays as it is");
    result = verb(&row, LATCH_LIST, NOW);
    tap_ok(is(&result, SQL_LATCH_SAME, 0, false) && result.answer.latch.unnamed == 1 &&
               tap_same(result.ids, "+a+b+c"),
           "its ids");
    sql_row_free(&row);
}

static void test_absent(void)
{
    static const enum latch_verb verbs[] = {LATCH_LOOK, LATCH_LIST, LATCH_COUNT, LATCH_DELETE};
    struct sql_row row = {.fence = 9};

    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        struct result result = verb(&row, verbs[i], NOW);
        tap_ok(is_refused(&result, CAUSE_ABSENT), "H90 what is not there is not open: %zu", i);
    }
    set(&row, W, 1, NOW);
    count(&row, "a", false, 1, NULL);
    struct result result = verb(&row, LATCH_LOOK, NOW + DAY - 1);
    tap_ok(is(&result, SQL_LATCH_SAME, 0, false), "open until it expires");
    result = verb(&row, LATCH_LOOK, NOW + DAY);
    tap_ok(is_refused(&result, CAUSE_ABSENT) && !row.latch, "H90 then it is missing");
    set(&row, V, 4, NOW + DAY);
    result = verb(&row, LATCH_DELETE, NOW + DAY);
    char *text = sql_row_print(&row);
    tap_ok(is(&result, SQL_LATCH_CALLS, 4, false) && tap_same(text, "rlock/1 9\n"),
           "deleted: a row that is free; its waiters are called");
    free(text);
    sql_row_free(&row);
}

/* -- a latch and a lock never share a row ------------------------------------------------------ */

static void test_locks(void)
{
    static const enum latch_verb verbs[] = {LATCH_LOOK, LATCH_LIST, LATCH_SET, LATCH_COUNT,
                                            LATCH_DELETE};
    struct sql_row row = {0};
    struct sql_claim claim = {.owner = A, .who = "", .mode = LOCK_SHARED, .lease = 1000};
    char why[256];

    take(&row, NOW);
    uint64_t fence = row.fence;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        struct result result =
            apply(&row, (struct latch_request){.verb = verbs[i], .word = W, .id = "a", .number = 1},
                  NOW, false);
        tap_ok(is_refused(&result, CAUSE_MISFIT) && row.count == 1, "a lock is no latch: %zu", i);
    }
    sql_row_remove(&row, row.holders);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        struct result result =
            apply(&row, (struct latch_request){.verb = verbs[i], .word = W, .id = "a", .number = 1},
                  NOW, true);
        tap_ok(is_refused(&result, CAUSE_MISFIT), "nor while somebody waits for it: %zu", i);
    }
    set(&row, W, 1, NOW);
    tap_ok(row.latch && row.fence == fence, "one that nobody has may become a latch");
    tap_ok(sql_row_is_misfit(&row, &claim, why, sizeof why) &&
               tap_same(why, "the key is a latch; rlock latch status shows it"),
           "a latch is no lock");
    sql_row_clean(&row, NOW + DAY - 1);
    tap_ok(sql_row_is_misfit(&row, &claim, why, sizeof why), "until it expires");
    sql_row_clean(&row, NOW + DAY);
    tap_ok(!sql_row_is_misfit(&row, &claim, why, sizeof why), "then it can be had as a lock");
    take(&row, NOW - DAY);
    tap_ok(row.fence > fence, "whose fences go on, whatever the clock does");
    sql_row_free(&row);

    take(&row, NOW);
    struct result result = set(&row, W, 1, NOW + 30000 * US_PER_MS);
    tap_ok(is(&result, SQL_LATCH_CALLS, 1, false) && row.count == 0,
           "a lock whose lease has ended is nobody's");
    sql_row_free(&row);
}

/* The server's clock was set back: whoever was dead is a holder for one lease more. */
static void test_clock(void)
{
    struct sql_row row = {0};

    take(&row, NOW);
    struct result result = set(&row, W, 1, NOW - DAY);
    tap_ok(result.change == SQL_LATCH_CHANGED && result.answer.cause == CAUSE_MISFIT &&
               result.answer.verdict == VERDICT_REFUSED && row.count == 1,
           "a lease that was cut is written");
    result = set(&row, W, 1, NOW - DAY + 30000 * US_PER_MS);
    tap_ok(is(&result, SQL_LATCH_CALLS, 1, false), "and ends");
    sql_row_free(&row);
}

/* The statement that makes a latch of a lock whose mirror nobody shares any more. */
static void test_swap(void)
{
    struct sql_reading reading = {.now = NOW + DAY};
    struct sql_claim claim = {.owner = A, .who = "h u 1 c -", .lease = 1000};
    struct sql_text text = {.dialect = &sql_mysql};
    const char *key = "k";

    sql_reading_begin(&reading, "p", &key, 1);
    reading.places->row.version = 7;
    sql_row_take(&reading.places->row, &claim, NOW);
    sql_row_mirror(&reading.places->row, &claim, "n");
    set(&reading.places->row, W, 1, NOW + DAY);
    tap_ok(sql_swap(&text, &reading, NULL, MIRROR_ANY) && !strstr(text.bytes, "shedlock") &&
               strstr(text.bytes, "(x'703a7b6b7d', 8, x'6c617463682f31"),
           "one statement writes it, of the version that follows");
    sql_text_end(&text);
    sql_reading_free(&reading);
}

static void test_size(void)
{
    struct sql_row row = {0};
    char id[40];
    int counted = 0;

    set(&row, W, LATCH_NUMBER_MAX, NOW);
    for (char *text; (text = sql_row_print(&row)); counted += 100) {
        free(text);
        for (int i = 0; i < 100; i++) {
            snprintf(id, sizeof id, "%036d", counted + i);
            count(&row, id, true, 1, NULL);
        }
    }
    tap_ok(counted > 20000, "room for %d count-downs", counted);
    sql_row_free(&row);
}

static void test_channel(void)
{
    char one[SQL_LATCH_CHANNEL], other[SQL_LATCH_CHANNEL];

    sql_latch_channel(NULL, "rlock:{k}", one);
    tap_ok(strlen(one) == 28 && strcmp(one, sql_latch_channel("rlock", "rlock:{k}", other)) == 0,
           "the channel of a latch, %s", one);
    tap_ok(strcmp(one, sql_latch_channel(NULL, "rlock:{l}", other)) != 0 &&
               strcmp(one, sql_latch_channel("other", "rlock:{k}", other)) != 0,
           "others have others");
}

/* -- and a plain model ------------------------------------------------------------------------- */

struct model {
    bool there;
    char word;
    int64_t number, left, until;
    bool counted[2][4]; /* with an id, without; which */
};

/* The answer that the model gives: 'E' exists, 'A' absent, 'O' another, '+' counted, '='. */
static char model_step(struct model *model, struct latch_request *request, int64_t now)
{
    bool *counted = &model->counted[request->unnamed][request->id[0] - 'a'];

    if (model->there && model->until <= now)
        model->there = false;
    if (request->verb == LATCH_SET) {
        if (model->there)
            return model->word == *request->word ? '=' : 'E';
        *model = (struct model){.there = true,
                                .word = *request->word,
                                .number = request->number,
                                .left = request->number,
                                .until = now + request->ttl / NS_PER_MS * US_PER_MS};
        return '=';
    }
    if (!model->there)
        return 'A';
    if (request->verb == LATCH_COUNT && request->word && *request->word != model->word)
        return 'O';
    if (request->verb != LATCH_COUNT || *counted || model->left == 0)
        return '=';
    *counted = true;
    model->left -= request->number < model->left ? request->number : model->left;
    return '+';
}

static char answer_of(const struct answer *answer)
{
    if (answer->verdict == VERDICT_GRANTED)
        return answer->latch.counted ? '+' : '=';
    return answer->cause == CAUSE_EXISTS ? 'E' : answer->cause == CAUSE_ABSENT ? 'A' : 'O';
}

/* Through the text each time, as in a database. */
static const char *live(unsigned seed)
{
    static const enum latch_verb verbs[] = {LATCH_SET,   LATCH_COUNT, LATCH_COUNT, LATCH_COUNT,
                                            LATCH_COUNT, LATCH_LOOK,  LATCH_DELETE};
    static const char *const ids[] = {"a", "b", "c", "d"};
    struct model model = {0};
    struct sql_row row = {.fence = 3};
    const char *fault = NULL;
    int64_t now = NOW;

    for (int step = 0; step < 100 && !fault; step++) {
        now += chance(&seed, 4) * 1000 * US_PER_MS;
        struct latch_request request = {.verb = verbs[chance(&seed, 7)],
                                        .id = ids[chance(&seed, 4)],
                                        .unnamed = chance(&seed, 2),
                                        .number = 1 + chance(&seed, 4),
                                        .ttl = (int64_t)(10 + chance(&seed, 60)) * NS_PER_SEC,
                                        .word = chance(&seed, 2) ? W : V};
        if (request.verb == LATCH_COUNT && chance(&seed, 3))
            request.word = NULL;
        struct result result = apply(&row, request, now, false);
        char wanted = model_step(&model, &request, now);
        if (answer_of(&result.answer) != wanted)
            fault = "another answer";
        if (wanted != 'E' && wanted != 'A' && wanted != 'O' &&
            (result.answer.latch.left != model.left || result.answer.latch.number != model.number))
            fault = "another number";
        model.there = model.there && request.verb != LATCH_DELETE;
        char *text = sql_row_print(&row);
        if (!sql_row_read(&row, text) || row.fence != 3 || !row.latch == model.there)
            fault = "another row";
        free(text);
    }
    sql_row_free(&row);
    return fault;
}

static void test_model(void)
{
    const char *fault = NULL;
    unsigned seed = 0;

    while (seed < 2000 && !(fault = live(seed)))
        seed++;
    tap_ok(!fault, "whatever is asked for in any order: %s (seed %u)", fault ? fault : "as a model",
           seed);
}

int main(void)
{
    test_text();
    test_head();
    test_set();
    test_count();
    test_absent();
    test_locks();
    test_clock();
    test_swap();
    test_size();
    test_channel();
    test_model();
    return tap_done();
}
