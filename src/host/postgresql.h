/* Records in the tables of a PostgreSQL, over libpq. */
#ifndef RLOCK_HOST_POSTGRESQL_H
#define RLOCK_HOST_POSTGRESQL_H

#include "host/store.h"

extern const struct host_store host_postgresql;

#endif
