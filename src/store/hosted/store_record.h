/* postgresql:// and mysql://: databases whose records a host (src/host) changes by Redis' rules;
 * exec: and git+ssh:// with its like: stores whose records another program moves for a host. */
#pragma once

#include "store/diagnosis.h"

extern const struct store_record postgresql_record, mysql_record, mariadb_record, exec_record;
extern const struct store_record git_file_record, git_ssh_record, git_https_record;

struct sql_dialect;

/* Is the database, which has that SQL, fit to hold locks? dialect: NULL: it is a store with a
 * driver. Otherwise as a record's "check". */
bool hosted_check(const struct checkup_plan *plan, const struct sql_dialect *dialect,
                  struct checkup *checkup, char *fault, size_t size);
