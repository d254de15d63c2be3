/* postgresql:// and mysql://: databases whose records a host (src/host) changes by Redis' rules;
 * etcd://; exec: and git+ssh:// with its like: stores whose records another program moves for a
 * host. */
#pragma once

#include "store/diagnosis.h"

extern const struct store_record postgresql_record, mysql_record, mariadb_record, exec_record;
extern const struct store_record etcd_record, git_file_record, git_ssh_record, git_https_record;

struct sql_dialect;

/* Is the store fit to hold locks? dialect: of a database; NULL: the host does those tests, whose
 * names are ended by NULL. Otherwise as a record's "check". */
bool hosted_check(const struct checkup_plan *plan, const struct sql_dialect *dialect,
                  const char *const *tests, struct checkup *checkup, char *fault, size_t size);
