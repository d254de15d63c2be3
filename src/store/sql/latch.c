/* A latch as text, and its rules. */
#include "store/sql/latch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/mem.h"

#define NUMBER_MAX (INT64_MAX / 4) /* sums of two do not overflow */

/* -- text -------------------------------------------------------------------------------------- */

static bool take_number(const char **text, int64_t most, int64_t *number)
{
    return decimal_take(text, most, number) && *(*text)++ == ' ';
}

static bool take_head(const char **text, struct sql_latch *latch)
{
    if (!take_number(text, LATCH_NUMBER_MAX, &latch->left) ||
        !take_number(text, LATCH_NUMBER_MAX, &latch->number) ||
        !take_number(text, NUMBER_MAX, &latch->since) ||
        !take_number(text, NUMBER_MAX, &latch->expires))
        return false;
    size_t length = strcspn(*text, " \n");
    if (length == 0 || length >= sizeof latch->word || (*text)[length] != '\n')
        return false;
    memcpy(latch->word, *text, length);
    *text += length + 1;
    return latch->number >= 1 && latch->left <= latch->number;
}

static void add_count(struct sql_latch *latch, char *field, int64_t count)
{
    /* Room for twice as many, whenever there is none. */
    if ((latch->count & (latch->count + 1)) == 0)
        latch->counts =
            mem_checked(realloc(latch->counts, 2 * (latch->count + 1) * sizeof *latch->counts));
    latch->counts[latch->count++] = (struct sql_count){.field = field, .count = count};
}

static bool take_count(const char **text, struct sql_latch *latch)
{
    int64_t count;

    if (!take_number(text, LATCH_NUMBER_MAX, &count))
        return false;
    size_t length = strcspn(*text, "\n");
    if (length < 3 || !strchr("dr", **text) || (*text)[1] != ':' || (*text)[length] != '\n')
        return false;
    add_count(latch, mem_checked(strndup(*text, length)), count);
    *text += length + 1;
    return true;
}

/* What was counted and what is left are all there was: an open latch is believed only where all of
 * it makes sense. */
static bool take_counts(const char **text, struct sql_latch *latch)
{
    int64_t counted = 0;

    while (**text) {
        if (!take_count(text, latch))
            return false;
        counted += latch->counts[latch->count - 1].count;
        if (counted > latch->number)
            return false;
    }
    return counted + latch->left == latch->number;
}

struct sql_latch *sql_latch_read(const char *text, bool head)
{
    struct sql_latch *latch = mem_zeroed(sizeof *latch);

    if (take_head(&text, latch) && (head || take_counts(&text, latch)))
        return latch;
    sql_latch_free(latch);
    return NULL;
}

void sql_latch_print(const struct sql_latch *latch, FILE *out)
{
    fprintf(out, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %s\n", latch->left, latch->number,
            latch->since, latch->expires, latch->word);
    for (size_t i = 0; i < latch->count; i++)
        fprintf(out, "%" PRId64 " %s\n", latch->counts[i].count, latch->counts[i].field);
}

void sql_latch_free(struct sql_latch *latch)
{
    if (!latch)
        return;
    for (size_t i = 0; i < latch->count; i++)
        free(latch->counts[i].field);
    free(latch->counts);
    free(latch);
}

/* -- the rules --------------------------------------------------------------------------------- */

enum sql_latch_change sql_latch_refuse(struct answer *answer, enum cause cause, const char *text)
{
    answer->verdict = VERDICT_REFUSED;
    answer->cause = cause;
    snprintf(answer->text, sizeof answer->text, "%s", text);
    return SQL_LATCH_SAME;
}

struct latch_state sql_latch_state(const struct sql_latch *latch, int64_t now)
{
    struct latch_state state = {.number = latch->number,
                                .left = latch->left,
                                .since_ms = latch->since / US_PER_MS,
                                .ttl_ms = (latch->expires - now + US_PER_MS - 1) / US_PER_MS};

    /* A clock may be set back. */
    state.age_ms = latch->since < now ? (now - latch->since) / US_PER_MS : 0;
    memcpy(state.word, latch->word, sizeof state.word);
    return state;
}

static struct sql_latch *make(const struct latch_request *request, int64_t now)
{
    struct sql_latch *latch = mem_zeroed(sizeof *latch);

    *latch = (struct sql_latch){.left = request->number,
                                .number = request->number,
                                .since = now,
                                .expires = now + request->ttl / NS_PER_MS * US_PER_MS};
    snprintf(latch->word, sizeof latch->word, "%s", request->word);
    return latch;
}

static bool has_counted(const struct sql_latch *latch, const char *field)
{
    for (size_t i = 0; i < latch->count; i++)
        if (strcmp(latch->counts[i].field, field) == 0)
            return true;
    return false;
}

static enum sql_latch_change count(struct sql_latch *latch, const struct latch_request *request,
                                   struct answer *answer)
{
    int64_t counted = request->number < latch->left ? request->number : latch->left;
    char *field;

    if (request->word && strcmp(request->word, latch->word) != 0)
        return sql_latch_refuse(answer, CAUSE_CHANGED,
                                "the latch vanished, and another one has its name");
    if (asprintf(&field, "%c:%s", request->unnamed ? 'r' : 'd', request->id) < 0)
        abort();
    if (latch->left == 0 || has_counted(latch, field)) {
        free(field);
        return SQL_LATCH_SAME;
    }
    add_count(latch, field, counted);
    latch->left -= counted;
    answer->latch.counted = true;
    return latch->left == 0 ? SQL_LATCH_CALLS : SQL_LATCH_CHANGED;
}

static int by_field(const void *a, const void *b)
{
    const struct sql_count *left = a, *right = b;

    return strcmp(left->field, right->field);
}

static void list(struct sql_latch *latch, const struct latch_request *request,
                 struct answer *answer)
{
    if (latch->count > 0)
        qsort(latch->counts, latch->count, sizeof *latch->counts, by_field);
    for (size_t i = 0; i < latch->count; i++) {
        const char *field = latch->counts[i].field;
        if (*field == 'r')
            answer->latch.unnamed++;
        else if (request->each)
            request->each(request->each_arg, field + 2);
    }
}

static enum sql_latch_change change(struct sql_latch *latch, const struct latch_request *request,
                                    struct answer *answer)
{
    switch (request->verb) {
    case LATCH_LOOK: break;
    case LATCH_LIST: list(latch, request, answer); break;
    case LATCH_SET:
        /* With the same word it is this very call, whose answer was lost. */
        if (strcmp(latch->word, request->word) != 0)
            return sql_latch_refuse(answer, CAUSE_EXISTS, "the latch exists already");
        break;
    case LATCH_COUNT: return count(latch, request, answer);
    case LATCH_DELETE: return SQL_LATCH_CALLS;
    }
    return SQL_LATCH_SAME;
}

static void describe(const struct sql_latch *latch, int64_t now, struct answer *answer)
{
    struct latch_state state = sql_latch_state(latch, now);

    state.counted = answer->latch.counted;
    state.unnamed = answer->latch.unnamed;
    answer->latch = state;
}

enum sql_latch_change sql_latch_apply(struct sql_latch **latch, const struct latch_request *request,
                                      int64_t now, struct answer *answer)
{
    enum sql_latch_change made = SQL_LATCH_CALLS;

    if (!*latch && request->verb != LATCH_SET)
        return sql_latch_refuse(answer, CAUSE_ABSENT, "no such latch");
    answer->verdict = VERDICT_GRANTED;
    if (*latch)
        made = change(*latch, request, answer);
    else
        *latch = make(request, now);
    if (answer->verdict == VERDICT_GRANTED)
        describe(*latch, now, answer);
    if (request->verb == LATCH_DELETE) {
        sql_latch_free(*latch);
        *latch = NULL;
    }
    return made;
}

/* -- calling those who wait -------------------------------------------------------------------- */

/* FNV-1a: a channel's name is short, and a KEY is not. */
static uint64_t hash(uint64_t sum, const char *text)
{
    do
        sum = (sum ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    while (*text++);
    return sum;
}

const char *sql_latch_channel(const char *table, const char *name, char channel[SQL_LATCH_CHANNEL])
{
    uint64_t sum = hash(hash(UINT64_C(0xcbf29ce484222325), table ? table : "rlock"), name);

    snprintf(channel, SQL_LATCH_CHANNEL, "rlock_latch_%016" PRIx64, sum);
    return channel;
}
