/* ShedLock's table. */
#include "store/sql/mirror.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/decimal.h"
#include "base/mem.h"
#include "store/sql/driver.h"

#define US_PER_SEC (1000 * US_PER_MS)

/* Which place, how many us are left, or "-" and how many it has been free, and who has it. */
enum { COLUMNS = 4 };

char *sql_mirror_by(const struct sql_mirror *mirror, char out[SQL_MIRROR_BY_SIZE])
{
    const char *dot = strrchr(mirror->family, '.');
    bool known = strcmp(mirror->host, "-") != 0;

    snprintf(out, SQL_MIRROR_BY_SIZE, "%s%srlock %.36s", known ? mirror->host : "",
             known ? " " : "", dot ? dot + 1 : mirror->family);
    return out;
}

/* -- reading ----------------------------------------------------------------------------------- */

void sql_mirror_query(struct sql_text *text, const char *const *names, size_t count)
{
    const struct sql_dialect *as = text->dialect;
    const char *between = "";

    for (size_t i = 0; i < count; i++) {
        if (!names[i])
            continue;
        sql_add(text,
                "%sSELECT '%zu', CASE WHEN lock_until > %s THEN '' ELSE '-' END, %sABS(%s)%s, "
                "%slocked_by%s FROM shedlock WHERE name = ",
                between, i, as->utc, as->number[0], as->utc_left, as->number[1], as->text_hex[0],
                as->text_hex[1]);
        sql_mirror_add_text(text, names[i]);
        between = " UNION ALL ";
    }
}

static bool take_row(struct sql_place *places, size_t count, const char *const *values)
{
    int64_t key, left;

    if (!decimal_parse(values[0], 0, (int64_t)count - 1, &key) ||
        !decimal_parse(values[2], 0, INT64_MAX, &left))
        return false;
    struct sql_foreign *theirs = &places[key].theirs;
    free(theirs->by);
    theirs->by = sql_unhex(values[3]);
    theirs->left = *values[1] ? 0 : left + 1;
    return theirs->by;
}

bool sql_mirror_take(struct sql_place *places, size_t count, const struct sql_reply *reply)
{
    bool sound = reply->columns == COLUMNS;

    for (size_t i = 0; sound && i < reply->rows; i++)
        sound = take_row(places, count, reply->values + i * COLUMNS);
    return sound;
}

static bool is_by(const struct sql_place *place, const struct sql_mirror *mirror)
{
    char by[SQL_MIRROR_BY_SIZE];

    return place->theirs.by && strcmp(place->theirs.by, sql_mirror_by(mirror, by)) == 0;
}

bool sql_mirror_is_ours(const struct sql_place *place, const struct sql_mirror *mirror)
{
    return place->theirs.left > 0 && is_by(place, mirror);
}

bool sql_mirror_is_taken(const struct sql_place *place, const struct sql_mirror *mirror)
{
    return place->theirs.left > 0 && !is_by(place, mirror);
}

bool sql_mirror_is_others(const struct sql_place *place, const struct sql_mirror *mirror)
{
    return place->theirs.by && !is_by(place, mirror);
}

/* "Table 'locks.shedlock' doesn't exist", 'relation "shedlock" does not exist' */
bool sql_mirror_is_missing(const char *said)
{
    return strstr(said, ".shedlock'") || strstr(said, "\"shedlock\"");
}

/* -- writing ----------------------------------------------------------------------------------- */

void sql_mirror_add_text(struct sql_text *text, const char *value)
{
    sql_add(text, "%s", text->dialect->text[0]);
    sql_add_digits(text, value);
    sql_add(text, "%s", text->dialect->text[1]);
}

void sql_mirror_add_time(struct sql_text *text, int64_t us, bool past)
{
    time_t seconds = (time_t)(past ? us / US_PER_SEC : (us + US_PER_SEC - 1) / US_PER_SEC);
    int ms = past ? (int)(us % US_PER_SEC / US_PER_MS) : 0;
    struct tm parts;
    char date[40] = "";

    if (gmtime_r(&seconds, &parts))
        strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &parts);
    sql_add(text, "TIMESTAMP '%s.%03d'", date, ms);
}

/* A time that has never been left out in any zone. */
void sql_mirror_make(struct sql_text *text, const char *name)
{
    sql_add(text, "INSERT INTO shedlock (name, lock_until, locked_at, locked_by) VALUES (");
    sql_mirror_add_text(text, name);
    sql_add(text, ", TIMESTAMP '2000-01-01 00:00:00', TIMESTAMP '2000-01-01 00:00:00', ");
    sql_mirror_add_text(text, "rlock");
    sql_add(text, ")%s", text->dialect->unless_there);
}

void sql_mirror_end(struct sql_text *text, const char *name, const char *by)
{
    const char *utc = text->dialect->utc;

    sql_add(text, "UPDATE shedlock SET lock_until = %s WHERE lock_until > %s", utc, utc);
    sql_add(text, " AND name = ");
    sql_mirror_add_text(text, name);
    sql_add(text, " AND locked_by = ");
    sql_mirror_add_text(text, by);
}
