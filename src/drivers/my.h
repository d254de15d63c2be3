/* Connections to MySQL and MariaDB, and what their failures mean, for the programs that have
 * one. */
#pragma once

#include <mysql.h>

#include "drivers/driver.h"

/* NULL with why in *fault. flags: those of mysql_real_connect(). */
MYSQL *my_connect(const struct driver_target *target, unsigned long flags,
                  struct host_error *fault);

/* Whether an error is the client library's own: the server's word on the statement was not heard,
 * or not understood. */
bool my_is_of_client(unsigned number);

/* Puts down why a statement has failed. Returns false. */
bool my_fail(MYSQL *connection, struct host_error *fault);
