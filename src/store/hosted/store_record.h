/* postgresql:// and mysql://: databases whose records a host (src/host) changes by Redis' rules;
 * exec: a store whose records a program of the user's moves for a host. */
#pragma once

#include "store/diagnosis.h"

extern const struct store_record postgresql_record, mysql_record, mariadb_record, exec_record;

struct sql_dialect;

/* Is the database, which has that SQL, fit to hold locks? dialect: NULL: it is a store with a
 * driver. Otherwise as a record's "check". */
bool hosted_check(const struct checkup_plan *plan, const struct sql_dialect *dialect,
                  struct checkup *checkup, char *fault, size_t size);
