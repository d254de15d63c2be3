/* Connections to MySQL and MariaDB over MariaDB's Connector/C, and the meaning of the errors of
 * library and server. */
#pragma once

#include <mysql.h>

#include "host/database.h"
#include "host/primary.h"

struct database_attempt {
    MYSQL *made;
    struct host_target target;
    struct host_error why; /* where it does not ask, and has failed */
    bool asks;
    enum { ATTEMPT_CONNECTS, ATTEMPT_SETS_UP, ATTEMPT_KEEPS_UP, ATTEMPT_LOOKS } phase;
    int waits;          /* for what: MYSQL_WAIT_READ and so on; 0: for nothing */
    struct strbuf text; /* the query of the phase */
};

/* s: how long the server lets a client stand still in a transaction, and outside of one. */
#define MY_IDLE_TIMEOUT "2"
#define MY_REST_TIMEOUT "28800"

/* A variable of a transaction by the name that the server has for it: tx_NAME of MariaDB, and
 * transaction_NAME of MySQL. at: in front of it. */
#define MY_TRANSACTION(at, name) "/*M! " at "tx_" name " */ /*!50720 " at "transaction_" name " */"

/* Connects, and gives the session rlock's settings; waits for both. NULL with why in *fault; else
 * for the caller to close. flags: those of mysql_real_connect(). */
MYSQL *my_connect(const struct host_target *target, unsigned long flags, struct host_error *fault);

/* Takes all rows of a statement that was sent. False: it has failed. taker: NULL: they are
 * skipped. */
bool my_take_rows(MYSQL *connection, const struct database_taker *taker);

/* Whether an error is the client library's own: the server's word on the statement was not heard,
 * or not understood. */
bool my_is_of_client(unsigned number);

/* Whether the server has undone the transaction, also in its COMMIT, by the SQLSTATE of the latest
 * error: a deadlock, another node of Galera or of Group Replication that was quicker. */
bool my_is_undone(MYSQL *connection);

/* Fills the fault with why the latest statement has failed. Returns false. */
bool my_fail(MYSQL *connection, struct host_error *fault);
