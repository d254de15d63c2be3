/* Connections to PostgreSQL, and what their failures mean, for the programs that have one. */
#pragma once

#include <libpq-fe.h>

#include "drivers/driver.h"

/* NULL with why in *fault. */
PGconn *pq_connect(const struct driver_target *target, struct host_error *fault);

/* Puts down why a statement has failed; result: NULL where there is none. Returns false. */
bool pq_fail(const PGconn *connection, const PGresult *result, struct host_error *fault);
