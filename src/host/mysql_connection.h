/* Connections to MySQL and MariaDB over MariaDB's Connector/C, and the meaning of the errors of
 * library and server. */
#pragma once

#include <mysql.h>

#include "host/database.h"

/* Connects, to a session that is strict. NULL with why in *fault; else for the caller to close.
 * flags: those of mysql_real_connect(). */
MYSQL *my_connect(const struct host_target *target, unsigned long flags, struct host_error *fault);

/* Takes all rows of a statement that was sent. False: it has failed. taker: NULL: they are
 * skipped. */
bool my_take_rows(MYSQL *connection, const struct database_taker *taker);

/* Whether an error is the client library's own: the server's word on the statement was not heard,
 * or not understood. */
bool my_is_of_client(unsigned number);

/* Puts down why a statement has failed. Returns false. */
bool my_fail(MYSQL *connection, struct host_error *fault);
