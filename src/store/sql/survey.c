/* A look at the two tables. */
#include "store/sql/survey.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/mem.h"
#include "lock/key.h"
#include "store/sql/dialect.h"
#include "store/sql/driver.h"
#include "store/sql/latch.h"
#include "store/sql/reading.h"
#include "store/sql/row.h"
#include "store/views.h"

/* A letter that tells what the row is, the lock's name, and four more. */
enum { COLUMNS = 6 };
/* A lock that is free is its first line alone, "rlock/1 FENCE". */
#define FREE_SIZE 40

#define DAMAGED "the database's row of that name holds other data, or is damaged"

/* One lock. */
struct found {
    char *name;
    struct sql_row row;
    struct sql_waiter *waiters;
    size_t waiter_count;
    bool damaged;
};

struct survey {
    const struct survey_request *request;
    const char *prefix;
    int64_t now;
    struct found *found;
    size_t count;
};

/* -- the question ------------------------------------------------------------------------------ */

/* The names are those of the keys that are asked for, or all of the prefix: PREFIX:{…. */
static void add_names(struct sql_text *text, const struct survey_request *request,
                      const char *prefix)
{
    bool globs = request->pattern_count == 0;
    char *start = NULL, *end = NULL;

    sql_add(text, "(name IN (");
    sql_add_literal(text, "");
    for (size_t i = 0; i < request->pattern_count; i++) {
        globs |= key_is_glob(request->patterns[i]);
        char *key = key_from_pattern(request->patterns[i]);
        char *name = prefix ? key_in_store(prefix, key) : mem_strdup(key);
        sql_add(text, ", ");
        sql_add_literal(text, name);
        free(name);
        free(key);
    }
    sql_add(text, ")");
    if (globs && !prefix) {
        sql_add(text, " OR name >= ");
        sql_add_literal(text, "");
    } else if (globs && asprintf(&start, "%s:{", prefix) > 0 &&
               asprintf(&end, "%s:|", prefix) > 0) {
        sql_add(text, " OR name >= ");
        sql_add_literal(text, start);
        sql_add(text, " AND name < ");
        sql_add_literal(text, end);
    }
    sql_add(text, ")");
    free(start);
    free(end);
}

/* Of a latch the beginning is enough. */
static void add_state(struct sql_text *text)
{
    const struct sql_dialect *as = text->dialect;

    sql_add(text, "%sCASE WHEN substr(state, 1, %zu) = ", as->hex[0], strlen(SQL_LATCH_MARK));
    sql_add_literal(text, SQL_LATCH_MARK);
    sql_add(text, " THEN substr(state, 1, %d) ELSE state END%s", SQL_LATCH_HEAD, as->hex[1]);
}

void sql_survey_query(struct sql_text *text, const struct survey_request *request,
                      const char *prefix)
{
    const struct sql_dialect *as = text->dialect;

    sql_add(text, "SELECT 'l', %sname%s, ", as->hex[0], as->hex[1]);
    add_state(text);
    sql_add(text, ", '', '', '' FROM @lock WHERE ");
    add_names(text, request, prefix);
    sql_add(text, " AND octet_length(state) > %d", FREE_SIZE);
    sql_add(text, " UNION ALL SELECT 'w', %sname%s, ", as->hex[0], as->hex[1]);
    sql_add_waiter(text, "");
    sql_add(text, " FROM @wait WHERE ");
    sql_add_live(text, "");
    sql_add(text, " AND ");
    add_names(text, request, prefix);
    sql_add(text, " UNION ALL SELECT 'c', '', %s%s%s, '', '', ''", as->number[0], as->clock,
            as->number[1]);
}

/* -- the answer -------------------------------------------------------------------------------- */

static struct found *find(struct survey *survey, const char *name)
{
    for (size_t i = survey->count; i-- > 0;)
        if (strcmp(survey->found[i].name, name) == 0)
            return &survey->found[i];
    survey->found =
        mem_checked(realloc(survey->found, (survey->count + 1) * sizeof *survey->found));
    struct found *found = &survey->found[survey->count++];
    *found = (struct found){.name = mem_strdup(name)};
    return found;
}

static bool hear_lock(struct survey *survey, const char *name, const char *const *values)
{
    struct found *found = find(survey, name);
    char *state = sql_unhex(values[2]);

    found->damaged = !state || !sql_row_read_head(&found->row, state);
    sql_row_clean(&found->row, survey->now);
    free(state);
    return true;
}

static bool hear_waiter(struct survey *survey, const char *name, const char *const *values)
{
    struct sql_waiter waiter;
    bool sound = sql_waiter_read(&waiter, values + 2, survey->now);

    if (sound) {
        struct found *found = find(survey, name);
        found->waiters = mem_checked(
            realloc(found->waiters, (found->waiter_count + 1) * sizeof *found->waiters));
        found->waiters[found->waiter_count++] = waiter;
    }
    return sound;
}

static bool hear_row(struct survey *survey, const char *const *values)
{
    char *name = sql_unhex(values[1]);
    bool sound = name && (*values[0] == 'c'   ? true
                          : *values[0] == 'l' ? hear_lock(survey, name, values)
                          : *values[0] == 'w' ? hear_waiter(survey, name, values)
                                              : false);

    free(name);
    return sound;
}

static bool hear_clock(struct survey *survey, const struct sql_reply *reply)
{
    for (size_t i = 0; reply->columns == COLUMNS && i < reply->rows; i++)
        if (*reply->values[i * COLUMNS] == 'c')
            return decimal_parse(reply->values[i * COLUMNS + 2], 1, INT64_MAX / 4, &survey->now);
    return false;
}

/* -- what is reported -------------------------------------------------------------------------- */

static int by_turn(const void *a, const void *b)
{
    const struct sql_waiter *left = a, *right = b;

    if (left->since != right->since)
        return left->since < right->since ? -1 : 1;
    return strcmp(left->party.owner, right->party.owner);
}

static void add_view(const struct survey *survey, struct found *found, const char *key,
                     struct lock_views *views)
{
    const struct sql_row *row = &found->row;
    struct lock_party *holders = mem_zeroed((row->count + 1) * sizeof *holders);
    struct lock_party *waiters = mem_zeroed((found->waiter_count + 1) * sizeof *waiters);
    struct lock_view view = {.key = key,
                             .fence = row->fence,
                             .holders = holders,
                             .holder_count = row->count,
                             .waiters = waiters,
                             .waiter_count = found->waiter_count};

    view.mode = row->count > 0 ? LOCK_SHARED : LOCK_EXCLUSIVE;
    for (size_t i = 0; i < row->count; i++) {
        holders[i] = sql_row_party(row, &row->holders[i], survey->now);
        if (holders[i].mode != LOCK_SHARED)
            view.mode = holders[i].mode;
        if (row->holders[i].limit)
            view.limit = row->holders[i].limit;
    }
    if (found->waiter_count > 0)
        qsort(found->waiters, found->waiter_count, sizeof *found->waiters, by_turn);
    for (size_t i = 0; i < found->waiter_count; i++)
        waiters[i] = found->waiters[i].party;
    if (found->damaged)
        view.misfit = DAMAGED;
    if (row->latch) {
        view.misfit = SQL_LATCH_IS_ONE;
        view.waiter_count = 0; /* they are about to find out */
    }
    lock_views_add(views, &view);
    free(holders);
    free(waiters);
}

static void add_latch(const struct survey *survey, const struct found *found, const char *key,
                      struct lock_views *views)
{
    struct lock_view view = {.key = key};

    if (found->row.latch)
        view.latch = sql_latch_state(found->row.latch, survey->now);
    else if (found->damaged)
        view.misfit = DAMAGED;
    else if (found->row.count > 0 || found->waiter_count > 0)
        view.misfit = SQL_LATCH_IS_LOCK;
    else
        return;
    lock_views_add(views, &view);
}

static bool has_view(const struct lock_views *views, const char *key)
{
    for (size_t i = 0; i < views->count; i++)
        if (strcmp(views->views[i].key, key) == 0)
            return true;
    return false;
}

/* Keys that are asked for by their names are reported when they are free, too. */
static void add_free(const struct survey_request *request, struct lock_views *views)
{
    for (size_t i = 0; i < request->pattern_count; i++) {
        if (key_is_glob(request->patterns[i]))
            continue;
        char *key = key_from_pattern(request->patterns[i]);
        if (!has_view(views, key))
            lock_views_add(views, &(struct lock_view){.key = key});
        free(key);
    }
}

static void report(struct survey *survey)
{
    struct lock_views views = {0};

    for (size_t i = 0; i < survey->count; i++) {
        struct found *found = &survey->found[i];
        char *key =
            survey->prefix ? key_from_store(survey->prefix, found->name) : mem_strdup(found->name);
        bool wanted = key && survey_wants(survey->request, key);
        if (wanted && survey->request->latches)
            add_latch(survey, found, key, &views);
        else if (wanted)
            add_view(survey, found, key, &views);
        free(key);
    }
    if (!survey->request->latches)
        add_free(survey->request, &views);
    lock_views_report(&views, survey->request);
    lock_views_free(&views);
}

bool sql_survey_report(const struct survey_request *request, const char *prefix,
                       const struct sql_reply *reply)
{
    struct survey survey = {.request = request, .prefix = prefix};
    bool sound = hear_clock(&survey, reply);

    for (size_t i = 0; sound && i < reply->rows; i++)
        sound = hear_row(&survey, reply->values + i * COLUMNS);
    if (sound)
        report(&survey);
    for (size_t i = 0; i < survey.count; i++) {
        sql_row_free(&survey.found[i].row);
        free(survey.found[i].waiters);
        free(survey.found[i].name);
    }
    free(survey.found);
    return sound;
}
