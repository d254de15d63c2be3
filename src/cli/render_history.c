/* Former runs. */
#include "cli/render_history.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cli/describe.h"
#include "cli/render.h"
#include "cli/table.h"
#include "lock/key.h"

enum { COLUMN_SINCE, COLUMN_KEY, COLUMN_BY, COLUMN_WAITED, COLUMN_HELD, COLUMN_OUTCOME, COLUMNS };

/* -- choosing ---------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const struct past_run *left = a, *right = b;
    int64_t one = left->run->by.since_ms, other = right->run->by.since_ms;
    int keys = strcmp(left->key, right->key);

    if (one != other)
        return one < other ? -1 : 1;
    if (keys)
        return keys;
    return (left->run->by.fence > right->run->by.fence) -
           (left->run->by.fence < right->run->by.fence);
}

struct past_run *past_runs_collect(const struct lock_views *locks, size_t *count)
{
    struct past_run *runs;
    size_t room = 1;

    for (size_t i = 0; i < locks->count; i++)
        room += locks->views[i].run_count;
    runs = mem_zeroed(room * sizeof *runs);
    *count = 0;
    for (size_t i = 0; i < locks->count; i++) {
        const struct lock_view *lock = &locks->views[i];
        for (size_t n = 0; n < lock->run_count; n++)
            runs[(*count)++] = (struct past_run){lock->key, &lock->runs[n]};
    }
    qsort(runs, *count, sizeof *runs, by_time);
    return runs;
}

/* -- text -------------------------------------------------------------------------------------- */

static void add_row(struct table *table, const struct past_run *past, bool color)
{
    struct table_row *row = table_add(table);
    const struct lock_run *run = past->run;
    char text[RENDER_PARTY_SIZE], outcome[DESCRIBE_OUTCOME_SIZE], since[DESCRIBE_TIME_SIZE],
        revoked[DESCRIBE_REVOCATION_SIZE];

    row->color = !color ? NULL : run_has_failed(&run->by.end) ? TABLE_YELLOW : TABLE_GREEN;
    describe_outcome(&run->by.end, outcome);
    table_set(row, COLUMN_SINCE, describe_local(run->by.since_ms, true, since));
    table_set(row, COLUMN_KEY, utf8_escape(past->key, text, sizeof text));
    table_set(row, COLUMN_BY, render_party(&run->by.who, text, sizeof text));
    table_set_duration(row, COLUMN_WAITED, run->by.waited_ms);
    table_set_duration(row, COLUMN_HELD, run->held_ms);
    snprintf(text, sizeof text, "%s%s", outcome, describe_revocation(&run->by.revoked, revoked));
    table_set(row, COLUMN_OUTCOME, *outcome ? text : "-");
}

void render_history(FILE *out, const struct past_run *runs, size_t count, bool color)
{
    static const char *const titles[COLUMNS] = {"SINCE", "KEY", "BY", "WAITED", "HELD", "OUTCOME"};
    struct table table = {.columns = COLUMNS, .colored = COLUMN_OUTCOME};

    table_add_titles(&table, titles);
    for (size_t i = 0; i < count; i++)
        add_row(&table, &runs[i], color);
    table_print(out, &table);
    table_free(&table);
}

/* -- JSON -------------------------------------------------------------------------------------- */

static json_t *run_object(const struct json_library *json, const struct past_run *past)
{
    json_t *object = json->object();

    json_put_text(json, object, "key", past->key);
    render_run_members(json, object, &past->run->by, past->run->held_ms);
    return object;
}

void render_history_json(FILE *out, const struct json_library *json, const struct past_run *runs,
                         size_t count)
{
    json_t *array = json->array();

    for (size_t i = 0; i < count; i++)
        json->array_append_new(array, run_object(json, &runs[i]));
    json_write(out, json, array);
}
