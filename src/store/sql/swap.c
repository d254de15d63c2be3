/* The statement that writes locks back. */
#include "store/sql/swap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/sql/mirror.h"

#define INSERT "INSERT INTO @lock (name, version, state) VALUES "

struct swap {
    const struct sql_place *places[LOCK_KEYS_MAX];
    char *states[LOCK_KEYS_MAX];
    enum sql_mirror_need needs[LOCK_KEYS_MAX];
    size_t count;
    int64_t now;
    bool mirrored;
};

static int by_name(const void *a, const void *b)
{
    const struct sql_place *const *left = a, *const *right = b;

    return strcmp((*left)->name, (*right)->name);
}

/* -- mirrors ----------------------------------------------------------------------------------- */

/* " SET …": of the table that is called m and its place's number. prefix: what stands in front of
 * the names of columns. */
static void add_their_values(struct sql_text *text, const struct swap *swap, size_t i,
                             const char *prefix)
{
    const struct sql_mirror *mirror = &swap->places[i]->row.mirror;
    int64_t until = sql_row_mirrored_until(&swap->places[i]->row);
    char by[SQL_MIRROR_BY_SIZE];

    sql_add(text, "%slock_until = ", prefix);
    sql_mirror_add_time(text, until > 0 ? until : swap->now, until == 0);
    if (swap->needs[i] != MIRROR_FREE)
        return;
    sql_add(text, ", %slocked_at = ", prefix);
    sql_mirror_add_time(text, swap->now, true);
    sql_add(text, ", %slocked_by = ", prefix);
    sql_mirror_add_text(text, sql_mirror_by(mirror, by));
}

/* Which row it is, and that it may be changed. */
static void add_their_condition(struct sql_text *text, const struct swap *swap, size_t i)
{
    const struct sql_mirror *mirror = &swap->places[i]->row.mirror;
    char by[SQL_MIRROR_BY_SIZE];

    sql_add(text, "m%zu.name = ", i);
    sql_mirror_add_text(text, mirror->name);
    sql_add(text, " AND (m%zu.locked_by = ", i);
    sql_mirror_add_text(text, sql_mirror_by(mirror, by));
    if (swap->needs[i] == MIRROR_FREE)
        sql_add(text, " OR m%zu.lock_until <= %s", i, text->dialect->utc);
    sql_add(text, ")");
}

/* -- the statement of PostgreSQL, and of all where there is no mirror -------------------------- */

static void add_with(struct sql_text *text, const struct swap *swap)
{
    const char *between = "WITH ";

    for (size_t i = 0; i < swap->count; i++) {
        if (!swap->places[i]->row.mirror.family)
            continue;
        sql_add(text, "%st%zu AS (UPDATE shedlock AS m%zu SET ", between, i, i);
        add_their_values(text, swap, i, "");
        sql_add(text, " WHERE ");
        add_their_condition(text, swap, i);
        sql_add(text, " RETURNING 1) ");
        between = ", ";
    }
}

/* Without what is needed the state becomes NULL, which fails like another version. Where nothing is
 * needed the count makes sure that their rows are locked before ours, as everywhere. */
static void add_condition(struct sql_text *text, const struct swap *swap, size_t i)
{
    if (swap->needs[i] != MIRROR_ANY)
        sql_add(text, "CASE WHEN EXISTS (SELECT 1 FROM t%zu) THEN ", i);
    else
        sql_add(text, "CASE WHEN (SELECT count(*) FROM t%zu) >= 0 THEN ", i);
}

static void add_insert(struct sql_text *text, const struct swap *swap)
{
    add_with(text, swap);
    sql_add(text, INSERT);
    for (size_t i = 0; i < swap->count; i++) {
        bool mirrored = swap->places[i]->row.mirror.family;
        sql_add(text, "%s(", i > 0 ? ", " : "");
        sql_add_literal(text, swap->places[i]->name);
        sql_add(text, ", %" PRId64 ", ", swap->places[i]->row.version + 1);
        if (mirrored)
            add_condition(text, swap, i);
        sql_add_literal(text, swap->states[i]);
        sql_add(text, mirrored ? " END)" : ")");
    }
    sql_add(text, "%s", text->dialect->swap);
}

/* -- the statement of MySQL, with mirrors ------------------------------------------------------ */

/* All values are constants, and all conditions are about the rows as they are, so the order in
 * which they are changed does not matter. */
static void add_update(struct sql_text *text, const struct swap *swap)
{
    const char *between = "UPDATE ";
    char prefix[24];

    for (size_t i = 0; i < swap->count; i++, between = " JOIN ")
        sql_add(text, "%s@lock AS l%zu", between, i);
    for (size_t i = 0; i < swap->count; i++) {
        if (!swap->places[i]->row.mirror.family)
            continue;
        sql_add(text, "%s JOIN shedlock AS m%zu ON ", swap->needs[i] ? "" : " LEFT", i);
        add_their_condition(text, swap, i);
    }
    between = " SET ";
    for (size_t i = 0; i < swap->count; i++, between = ", ") {
        sql_add(text, "%sl%zu.version = %" PRId64 ", l%zu.state = ", between, i,
                swap->places[i]->row.version + 1, i);
        sql_add_literal(text, swap->states[i]);
        if (!swap->places[i]->row.mirror.family)
            continue;
        snprintf(prefix, sizeof prefix, "m%zu.", i);
        sql_add(text, ", ");
        add_their_values(text, swap, i, prefix);
    }
    between = " WHERE ";
    for (size_t i = 0; i < swap->count; i++, between = " AND ") {
        sql_add(text, "%sl%zu.name = ", between, i);
        sql_add_literal(text, swap->places[i]->name);
        sql_add(text, " AND l%zu.version = %" PRId64, i, swap->places[i]->row.version);
    }
}

/* ---------------------------------------------------------------------------------------------- */

/* Always in the same order, so that two statements do not wait for each other. */
bool sql_swap(struct sql_text *text, const struct sql_reading *reading, const char *owner,
              enum sql_mirror_need need)
{
    struct swap swap = {.count = reading->count, .now = reading->now};
    bool fits = true;

    for (size_t i = 0; i < swap.count; i++)
        swap.places[i] = &reading->places[i];
    qsort(swap.places, swap.count, sizeof *swap.places, by_name);
    for (size_t i = 0; i < swap.count; i++) {
        const struct sql_row *row = &swap.places[i]->row;
        swap.states[i] = sql_row_print(row);
        swap.needs[i] = owner && sql_row_mirrors(row, owner) ? need : MIRROR_ANY;
        swap.mirrored |= row->mirror.family != NULL;
        fits &= swap.states[i] != NULL;
    }
    if (fits && swap.mirrored && text->dialect->joins)
        add_update(text, &swap);
    else if (fits)
        add_insert(text, &swap);
    for (size_t i = 0; i < swap.count; i++)
        free(swap.states[i]);
    return fits;
}

bool sql_swap_make(struct sql_text *text, const struct sql_reading *reading)
{
    const char *between = INSERT;
    char *state = sql_row_print(&(struct sql_row){0});
    bool missing = false;

    for (size_t i = 0; i < reading->count; i++) {
        if (reading->places[i].row.version > 0)
            continue;
        missing = true;
        sql_add(text, "%s(", between);
        sql_add_literal(text, reading->places[i].name);
        sql_add(text, ", 1, ");
        sql_add_literal(text, state);
        sql_add(text, ")");
        between = ", ";
    }
    if (missing)
        sql_add(text, "%s", text->dialect->swap);
    free(state);
    return missing;
}
