/* postgresql:// and mysql://: databases whose records a host (src/host) changes by Redis' rules;
 * etcd://; exec: and git+ssh:// with its like: stores whose records another program moves for a
 * host. */
#pragma once

#include "store/diagnosis.h"

extern const struct store_kind postgresql_kind, mysql_kind, mariadb_kind, exec_kind;
extern const struct store_kind etcd_kind, git_file_kind, git_ssh_kind, git_https_kind;

struct sql_dialect;

/* Is the store fit to hold locks? As "check" of a store_kind, which says what false means. dialect:
 * of a database; NULL: the host does the tests of these names, which end with NULL. */
bool hosted_check(const struct checkup_plan *plan, const struct sql_dialect *dialect,
                  const char *const *tests, struct checkup *checkup, char *fault, size_t size);
