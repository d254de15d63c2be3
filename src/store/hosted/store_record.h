/* postgresql:// and mysql://: databases whose records a host (src/host) changes by Redis' rules. */
#ifndef RLOCK_STORE_HOSTED_STORE_RECORD_H
#define RLOCK_STORE_HOSTED_STORE_RECORD_H

#include "store/store_record.h"

extern const struct store_record postgresql_record, mysql_record, mariadb_record;

#endif
