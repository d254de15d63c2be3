/* Rows of ShedLock's table as records: name, lock_until, locked_at, locked_by. One is a string, its
 * value is locked_by, and it expires at lock_until; rules/lua/mirror.lua says which keys are meant.
 * It is never deleted. The times are in UTC by the server's clock, whatever the zone of the
 * session, as ShedLock writes them with usingDbTime(). Pure: these functions put statements
 * together. */
#pragma once

#include "host/store.h"
#include "store/hosted/dialect.h"

/* Whether that key is a row of the table. */
bool shedlock_has(struct slice key);

/* Adds statements that lock the rows of such keys. */
void shedlock_add_locks(struct sql_text *text, const struct unit *unit);
/* Adds the end of a query for a row that is locked, behind "SELECT …,": locked_by, and how many
 * us are left, which may be negative. */
void shedlock_add_values(struct sql_text *text, const struct unit_key *key);
/* Makes a record of these two. now_us: the server's time, since 1970. */
void shedlock_take(struct record *record, int64_t now_us, struct slice by, const char *left);
/* Adds statements that write the rows that have changed. A row that another client has made
 * meanwhile is a violation of the table's key. */
void shedlock_add_changes(struct sql_text *text, const struct unit *unit);

/* Gives a failure that is about that table, by the server's words, a kind of its own: the table is
 * not there, or a right to it is lacking. */
void shedlock_explain(struct host_error *fault);
