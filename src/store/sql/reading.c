/* Reading locks and their queues. */
#include "store/sql/reading.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/mem.h"
#include "lock/key.h"
#include "store/sql/driver.h"

/* All values are text: a letter that tells what the row is, which key, which scope, and four
 * more. */
enum { COLUMNS = 7 };

/* -- waiters ----------------------------------------------------------------------------------- */

void sql_add_live(struct sql_text *text, const char *table)
{
    const char *now = text->dialect->clock;

    sql_add(text, "%sdeadline_us > %s AND %sdeadline_us <= %s + %" PRId64, table, now, table, now,
            SQL_PLACE_MOST_US);
}

void sql_add_waiter(struct sql_text *text, const char *table)
{
    const struct sql_dialect *as = text->dialect;

    sql_add(text, "%s%sowner%s, %s%smode%s, %s%ssince_us%s, %s%swho%s", as->hex[0], table,
            as->hex[1], as->hex[0], table, as->hex[1], as->number[0], table, as->number[1],
            as->hex[0], table, as->hex[1]);
}

bool sql_waiter_read(struct sql_waiter *waiter, const char *const *values, int64_t now)
{
    char *owner = sql_unhex(values[0]), *mode = sql_unhex(values[1]), *who = sql_unhex(values[3]);
    struct lock_party *party = &waiter->party;

    *waiter = (struct sql_waiter){0};
    bool sound = owner && mode && who && strlen(owner) < OWNER_SIZE &&
                 decimal_parse(values[2], 0, INT64_MAX, &waiter->since) &&
                 sql_mode_read((char)(*mode | 0x20), &party->mode);
    if (sound) {
        snprintf(party->owner, sizeof party->owner, "%s", owner);
        party->since_ms = waiter->since / US_PER_MS;
        party->age_ms = (now - waiter->since) / US_PER_MS;
        identity_parse(who, strlen(who), &party->who);
        waiter->several = *mode < 'a';
    }
    free(owner);
    free(mode);
    free(who);
    return sound;
}

/* -- the question ------------------------------------------------------------------------------ */

void sql_reading_begin(struct sql_reading *reading, const char *prefix, const char *const *keys,
                       size_t count)
{
    sql_reading_free(reading);
    reading->places = mem_zeroed((count + 1) * sizeof *reading->places);
    reading->count = count;
    for (size_t i = 0; i < count; i++)
        reading->places[i].name = key_in_store(prefix, keys[i]);
}

void sql_reading_queues(struct sql_reading *reading, const char *owner)
{
    reading->scopes[0][0] = '\0';
    reading->scope_count = 1;
    for (const char *dot = strchr(owner, '.'); dot && reading->scope_count < OWNER_DEPTH;
         dot = strchr(dot + 1, '.'))
        snprintf(reading->scopes[reading->scope_count++], OWNER_SIZE, "%.*s", (int)(dot - owner),
                 owner);
}

static void add_own_place(const struct sql_reading *reading, size_t i, const char *owner,
                          struct sql_text *text)
{
    const struct sql_dialect *as = text->dialect;

    sql_add(text,
            " UNION ALL SELECT 'm', '%zu', '', %ssince_us%s, %sdeadline_us%s, %sscope%s, ''"
            " FROM @wait WHERE name = ",
            i, as->number[0], as->number[1], as->number[0], as->number[1], as->hex[0], as->hex[1]);
    sql_add_literal(text, reading->places[i].name);
    sql_add(text, " AND owner = ");
    sql_add_literal(text, owner);
}

/* " FROM rlock_wait w …": live ones other than the owner, in one queue. */
static void add_others(const struct sql_reading *reading, size_t i, size_t scope, const char *owner,
                       struct sql_text *text)
{
    sql_add(text, " FROM @wait w WHERE w.name = ");
    sql_add_literal(text, reading->places[i].name);
    sql_add(text, " AND w.scope = ");
    sql_add_literal(text, reading->scopes[scope]);
    sql_add(text, " AND ");
    sql_add_live(text, "w.");
    sql_add(text, " AND w.owner <> ");
    sql_add_literal(text, owner);
}

/* Whoever comes directly before it. */
static void add_before(const struct sql_reading *reading, size_t i, size_t scope, const char *owner,
                       struct sql_text *text)
{
    const struct sql_dialect *as = text->dialect;

    sql_add(text, " UNION ALL (SELECT 'b', '%zu', '%zu', %sw.owner%s, %sw.mode%s, '', ''", i, scope,
            as->hex[0], as->hex[1], as->hex[0], as->hex[1]);
    add_others(reading, i, scope, owner, text);
    sql_add(text, " AND EXISTS (SELECT 1 FROM @wait o WHERE o.name = w.name AND o.owner = ");
    sql_add_literal(text, owner);
    sql_add(text, " AND (w.since_us < o.since_us OR w.since_us = o.since_us AND w.owner < o.owner))"
                  " ORDER BY w.since_us DESC, w.owner DESC LIMIT 1)");
}

/* Two columns: those that are to be taken are, if nobody else has them. */
static void add_bells(const struct sql_reading *reading, struct sql_text *text)
{
    const struct sql_dialect *as = text->dialect;

    for (size_t i = 0; i < SQL_BELLS; i++) {
        if (!*reading->bells[i]) {
            sql_add(text, ", ''");
            continue;
        }
        sql_add(text, ", %sGET_LOCK(%s", as->number[0], as->text[0]);
        sql_add_digits(text, reading->bells[i]);
        sql_add(text, "%s, 0)%s", as->text[1], as->number[1]);
    }
}

static void add_queue(const struct sql_reading *reading, size_t i, size_t scope, const char *owner,
                      struct sql_text *text)
{
    const struct sql_dialect *as = text->dialect;

    sql_add(text, " UNION ALL (SELECT 'f', '%zu', '%zu', ", i, scope);
    sql_add_waiter(text, "w.");
    add_others(reading, i, scope, owner, text);
    sql_add(text,
            " ORDER BY w.since_us, w.owner LIMIT 1)"
            " UNION ALL SELECT 'a', '%zu', '%zu', %scount(*)%s, '', '', ''",
            i, scope, as->number[0], as->number[1]);
    add_others(reading, i, scope, owner, text);
    sql_add(text, " AND NOT EXISTS (SELECT 1 FROM @wait o WHERE o.name = w.name AND o.owner = ");
    sql_add_literal(text, owner);
    sql_add(text,
            " AND (o.since_us < w.since_us OR o.since_us = w.since_us AND o.owner < w.owner))");
}

/* The clock comes last: a server may open its snapshot when it reads the first row. */
void sql_reading_query(const struct sql_reading *reading, const char *owner, struct sql_text *text)
{
    const struct sql_dialect *as = text->dialect;

    for (size_t i = 0; i < reading->count; i++) {
        sql_add(text,
                "SELECT 'l', '%zu', '', %sversion%s, %sstate%s, '', ''"
                " FROM @lock WHERE name = ",
                i, as->number[0], as->number[1], as->hex[0], as->hex[1]);
        sql_add_literal(text, reading->places[i].name);
        if (reading->scope_count > 0)
            add_own_place(reading, i, owner, text);
        for (size_t scope = 0; scope < reading->scope_count; scope++) {
            add_queue(reading, i, scope, owner, text);
            if (as->bells)
                add_before(reading, i, scope, owner, text);
        }
        sql_add(text, " UNION ALL ");
    }
    sql_add(text, "SELECT 'c', '', '', %s%s%s", as->number[0], as->clock, as->number[1]);
    add_bells(reading, text);
    sql_add(text, ", ''");
}

/* -- the answer -------------------------------------------------------------------------------- */

static bool take_lock(struct sql_place *place, const char *const *values)
{
    char *state = sql_unhex(values[4]);
    bool sound = state && sql_row_read(&place->row, state) &&
                 decimal_parse(values[3], 1, INT64_MAX - 1, &place->row.version);

    free(state);
    return sound;
}

static bool take_own_place(struct sql_place *place, const char *const *values, int64_t now)
{
    free(place->scope);
    place->scope = sql_unhex(values[5]);
    if (!place->scope || !decimal_parse(values[4], 0, INT64_MAX, &place->until))
        return false;
    place->queued = true;
    place->live = place->until > now && place->until <= now + SQL_PLACE_MOST_US;
    return true;
}

static bool take_first(struct sql_place *place, size_t scope, const char *const *values,
                       int64_t now)
{
    struct sql_waiter waiter;
    bool sound = sql_waiter_read(&waiter, values + 3, now);

    if (sound) {
        place->first[scope] = waiter.party;
        place->several[scope] = waiter.several;
    }
    return sound;
}

static bool take_before(struct sql_place *place, size_t scope, const char *const *values)
{
    char *owner = sql_unhex(values[3]), *mode = sql_unhex(values[4]);
    struct lock_party *before = &place->before[scope];
    bool sound = owner && mode && strlen(owner) < OWNER_SIZE &&
                 sql_mode_read((char)(*mode | 0x20), &before->mode);

    if (sound)
        snprintf(before->owner, sizeof before->owner, "%s", owner);
    free(owner);
    free(mode);
    return sound;
}

static bool take_row(struct sql_reading *reading, const char *const *values)
{
    int64_t key, scope = 0;

    if (*values[0] == 'c')
        return true;
    if (!decimal_parse(values[1], 0, (int64_t)reading->count - 1, &key) ||
        (*values[2] && !decimal_parse(values[2], 0, (int64_t)reading->scope_count - 1, &scope)))
        return false;
    struct sql_place *place = &reading->places[key];
    switch (*values[0]) {
    case 'l': return take_lock(place, values);
    case 'm': return take_own_place(place, values, reading->now);
    case 'f': return take_first(place, (size_t)scope, values, reading->now);
    case 'b': return take_before(place, (size_t)scope, values);
    case 'a': return decimal_parse(values[3], 0, INT64_MAX, &place->ahead[scope]);
    default: return false;
    }
}

static void forget_place(struct sql_place *place)
{
    char *name = place->name;

    sql_row_free(&place->row);
    free(place->theirs.by);
    free(place->scope);
    *place = (struct sql_place){.name = name};
}

static bool take_clock(struct sql_reading *reading, const char *const *values)
{
    for (size_t i = 0; i < SQL_BELLS; i++)
        reading->taken[i] = strcmp(values[4 + i], "1") == 0;
    return decimal_parse(values[3], 1, INT64_MAX / 4, &reading->now);
}

bool sql_reading_take(struct sql_reading *reading, const struct sql_reply *reply)
{
    bool sound = reply->columns == COLUMNS;

    for (size_t i = 0; i < reading->count; i++)
        forget_place(&reading->places[i]);
    for (size_t i = 0; sound && i < reply->rows; i++)
        if (*reply->values[i * COLUMNS] == 'c')
            sound = take_clock(reading, reply->values + i * COLUMNS);
    for (size_t i = 0; sound && i < reply->rows; i++)
        sound = take_row(reading, reply->values + i * COLUMNS);
    return sound;
}

void sql_reading_free(struct sql_reading *reading)
{
    for (size_t i = 0; i < reading->count; i++) {
        forget_place(&reading->places[i]);
        free(reading->places[i].name);
    }
    free(reading->places);
    *reading = (struct sql_reading){0};
}

/* -- what it means ----------------------------------------------------------------------------- */

/* Who nests passes a first one that waits for several keys: one of them may be held by an ancestor
 * of the one that nests, and then all would wait for each other. */
static bool is_next(const struct sql_place *place, const char *owner)
{
    return place->ahead[place->depth] == 0 || (strchr(owner, '.') && place->several[place->depth]);
}

static void judge(const struct sql_reading *reading, struct sql_place *place,
                  const struct sql_claim *claim)
{
    const struct sql_holder *parent = sql_row_parent(&place->row, claim->owner);

    place->depth = 0;
    for (size_t i = 1; parent && i < reading->scope_count; i++)
        if (strcmp(reading->scopes[i], parent->owner) == 0)
            place->depth = i;
    place->live = place->live && strcmp(place->scope, reading->scopes[place->depth]) == 0;
    place->blocked = sql_row_is_blocked(&place->row, claim, &place->holders, &place->till);
}

struct sql_place *sql_reading_obstacle(struct sql_reading *reading, const struct sql_claim *claim)
{
    struct sql_place *found = NULL;

    for (size_t i = reading->count; i-- > 0;) {
        struct sql_place *place = &reading->places[i];
        judge(reading, place, claim);
        if (place->blocked || !is_next(place, claim->owner))
            found = place;
    }
    return found;
}
