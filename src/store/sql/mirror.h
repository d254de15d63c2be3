/* A lock of ShedLock's that is held together with ours: a row of its table shedlock (name,
 * lock_until, locked_at, locked_by). It is held until lock_until, by whoever locked_by says, and
 * never deleted. The times are in UTC by the server's clock, whatever the zone of the session, as
 * ShedLock writes them with usingDbTime(). Pure.
 *
 * The row is taken, kept and given back in the statement that writes ours (store/sql/swap.h). */
#ifndef RLOCK_STORE_SQL_MIRROR_H
#define RLOCK_STORE_SQL_MIRROR_H

#include "store/sql/dialect.h"
#include "store/sql/reading.h"

struct sql_reply;

#define SQL_MIRROR_BY_SIZE 160

/* As which the table knows the holder: "HOST rlock UUID", of no other acquisition. Returns out. */
char *sql_mirror_by(const struct sql_mirror *mirror, char out[SQL_MIRROR_BY_SIZE]);

/* Adds the statement that reads the row of that name for each place; NULL: of none. */
void sql_mirror_query(struct sql_text *text, const char *const *names, size_t count);
/* Reads the answer into places[i].theirs; false where the table holds other data. */
bool sql_mirror_take(struct sql_place *places, size_t count, const struct sql_reply *reply);

/* Whether the row that was read of that place is held, and by the holder of that mirror. */
bool sql_mirror_is_ours(const struct sql_place *place, const struct sql_mirror *mirror);
/* The same by anybody else. */
bool sql_mirror_is_taken(const struct sql_place *place, const struct sql_mirror *mirror);
/* Whether somebody else has had it since, too. */
bool sql_mirror_is_others(const struct sql_place *place, const struct sql_mirror *mirror);

/* Adds the statement that makes a free row where there is none of that name. */
void sql_mirror_make(struct sql_text *text, const char *name);

/* Adds the statement that gives back the row, held by that one. */
void sql_mirror_end(struct sql_text *text, const char *name, const char *by);

/* Whether what a server says of a table that is not there is about that table. */
bool sql_mirror_is_missing(const char *said);

/* Adds a text as the table has it. */
void sql_mirror_add_text(struct sql_text *text, const char *value);
/* Adds a time, us since 1970: the next whole second, since a column may have no fractions; or
 * "past", no later than it is. */
void sql_mirror_add_time(struct sql_text *text, int64_t us, bool past);

#endif
