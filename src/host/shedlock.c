/* Statements about ShedLock's table. A record of it is a string whose value, locked_by, is called
 * "by" here; a record without a type is a lock that has ended, whose row stays. */
#include "host/shedlock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/decimal.h"
#include "rules/scripts.h"

#define US_PER_MS  1000
#define MS_PER_SEC 1000

bool shedlock_has(struct slice key)
{
    return key.size > strlen(SHEDLOCK_KEY) &&
           strncmp(key.at, SHEDLOCK_KEY, strlen(SHEDLOCK_KEY)) == 0;
}

/* Adds a text as SQL, by its bytes in hexadecimal: nothing in it needs quotes. */
static void add_value(struct sql_text *text, const char *value)
{
    sql_add(text, "%s", text->dialect->text[0]);
    sql_add_digits(text, value, strlen(value));
    sql_add(text, "%s", text->dialect->text[1]);
}

/* Adds the condition that a row is that of the key. */
static void add_where(struct sql_text *text, const struct unit_key *key)
{
    sql_add(text, " WHERE name = ");
    add_value(text, key->name.at + strlen(SHEDLOCK_KEY));
}

/* -- reading ----------------------------------------------------------------------------------- */

void shedlock_add_locks(struct sql_text *text, const struct unit *unit)
{
    for (size_t i = 0; i < unit->count; i++) {
        if (!shedlock_has(unit->keys[i].name))
            continue;
        sql_add(text, "SELECT 1 FROM shedlock");
        add_where(text, &unit->keys[i]);
        sql_add(text, " FOR UPDATE");
        sql_end(text);
    }
}

void shedlock_add_values(struct sql_text *text, const struct unit_key *key)
{
    sql_add(text, "locked_by, %s FROM shedlock", text->dialect->utc_left);
    add_where(text, key);
}

void shedlock_take(struct record *record, int64_t now_us, struct slice by, const char *left)
{
    int64_t left_us = strtoll(left, NULL, 10);

    record_clear(record);
    record->version = 1; /* the table has such a row */
    record->type = RECORD_STRING;
    /* The lock is held as long as any part of a millisecond is left. */
    record->expires = left_us > 0 ? (now_us + left_us) / US_PER_MS + 1 : 1;
    record_set(record, slice_of(""), by);
}

/* -- writing ----------------------------------------------------------------------------------- */

/* Adds a time, in ms since 1970, as SQL. */
static void add_timestamp(struct sql_text *text, int64_t ms)
{
    time_t seconds = (time_t)(ms / MS_PER_SEC);
    struct tm parts;
    char date[40] = "";

    if (gmtime_r(&seconds, &parts))
        strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &parts);
    sql_add(text, "TIMESTAMP '%s.%03d'", date, (int)(ms % MS_PER_SEC));
}

/* Adds the time lock_until as SQL, in ms since 1970. The column may have no fractions: so it is a
 * whole second, and not before the lease's end. */
static void add_end(struct sql_text *text, int64_t ms)
{
    add_timestamp(text, (ms + MS_PER_SEC - 1) / MS_PER_SEC * MS_PER_SEC);
}

/* Adds the statement that ends a lock, whose row stays. */
static void add_release(struct sql_text *text, const struct unit_key *key, int64_t now_ms)
{
    sql_add(text, "UPDATE shedlock SET lock_until = ");
    add_timestamp(text, now_ms);
    add_where(text, key);
    sql_end(text);
}

/* Adds the statement that writes the holder "by" into a row that exists: another holder than
 * before, or the same, whose lock is to last longer. MySQL sets columns from left to right, so
 * those come first that compare what is there. */
static void add_holder(struct sql_text *text, const struct unit_key *key, const char *by,
                       int64_t now_ms)
{
    /* When this holder took it. */
    sql_add(text, "UPDATE shedlock SET locked_at = CASE WHEN locked_by = ");
    add_value(text, by);
    sql_add(text, " THEN locked_at ELSE ");
    add_timestamp(text, now_ms);
    /* A row that came between the locking and the reading is not locked: another holder may have
     * taken it since. Then locked_by becomes NULL, which the table refuses. */
    sql_add(text, " END, locked_by = CASE WHEN locked_by = ");
    add_value(text, by);
    sql_add(text, " OR %s <= 0 THEN ", text->dialect->utc_left);
    add_value(text, by);
    sql_add(text, " END, lock_until = ");
    add_end(text, key->record.expires);
    add_where(text, key);
    sql_end(text);
}

/* Adds the statement that makes a row with the holder "by". */
static void add_row(struct sql_text *text, const struct unit_key *key, const char *by,
                    int64_t now_ms)
{
    sql_add(text, "INSERT INTO shedlock (name, lock_until, locked_at, locked_by) VALUES (");
    add_value(text, key->name.at + strlen(SHEDLOCK_KEY));
    sql_add(text, ", ");
    add_end(text, key->record.expires);
    sql_add(text, ", ");
    add_timestamp(text, now_ms);
    sql_add(text, ", ");
    add_value(text, by);
    sql_add(text, ")");
    sql_end(text);
}

void shedlock_add_changes(struct sql_text *text, const struct unit *unit)
{
    int64_t now_ms = unit->now_us / US_PER_MS;

    for (size_t i = 0; i < unit->count; i++) {
        const struct unit_key *key = &unit->keys[i];
        bool is_held = key->record.type == RECORD_STRING, has_row = key->record.version;
        if (!shedlock_has(key->name) || !key->record.changed || (!is_held && !has_row))
            continue;
        if (!is_held) {
            add_release(text, key, now_ms);
            continue;
        }
        const char *by = record_find(&key->record, slice_of(""))->value.at;
        if (has_row)
            add_holder(text, key, by, now_ms);
        else
            add_row(text, key, by, now_ms);
        /* A row that is not as it was written undoes the transaction. */
        sql_add(text, SQL_ONE "shedlock");
        add_where(text, key);
        sql_add(text, " AND locked_by = ");
        add_value(text, by);
        sql_add(text, " AND lock_until >= ");
        add_end(text, key->record.expires);
        sql_end(text);
    }
}

void shedlock_explain(struct host_error *fault)
{
    const char *table = strstr(fault->said, " for table ");

    /* "denied to user 'NAME'@'HOST' for table `locks`.`shedlock`", "denied for table shedlock".
     * MySQL denies also what is not there, to a user without rights to the whole database. */
    if (fault->error == WIRE_DENIED && table && strstr(table, "shedlock"))
        fault->error = WIRE_SHEDLOCK_DENIED;
    /* "Table 'locks.shedlock' doesn't exist", 'relation "shedlock" does not exist' */
    if (fault->error == WIRE_NO_TABLES &&
        (strstr(fault->said, ".shedlock'") || strstr(fault->said, "\"shedlock\"")))
        fault->error = WIRE_NO_SHEDLOCK;
}
