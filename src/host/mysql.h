/* Records in the tables of a MySQL or MariaDB, over MariaDB's Connector/C. */
#ifndef RLOCK_HOST_MYSQL_H
#define RLOCK_HOST_MYSQL_H

#include "host/store.h"

extern const struct host_store host_mysql;

#endif
