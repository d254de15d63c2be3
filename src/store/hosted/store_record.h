/* postgresql:// and mysql://: databases whose records a host (src/host) changes by Redis' rules. */
#pragma once

#include "store/diagnosis.h"

extern const struct store_record postgresql_record, mysql_record, mariadb_record;

/* Returns the SQL of the database behind an address of one of these. */
const struct sql_dialect *hosted_dialect(const struct url *url);

/* Is the database fit to hold locks? As a record's "check". */
bool hosted_check(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                  size_t size);
