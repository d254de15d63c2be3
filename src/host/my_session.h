/* The connection to a MySQL or MariaDB, and requests of several statements. */
#ifndef RLOCK_HOST_MY_SESSION_H
#define RLOCK_HOST_MY_SESSION_H

#include "drivers/my.h"
#include "host/store.h"
#include "store/hosted/dialect.h"

/* One process serves one connection. */
struct my_session {
    MYSQL *connection;
    struct driver_target target; /* for a second connection */
    char table[64];              /* the beginning of the tables' names */
    bool in_transaction;
};

extern struct my_session my_session;

/* Several statements that are being put together; "@record" is the name of that table in what
 * sql_add() adds. The first value of each row says what the row is about. */
struct my_sql {
    struct sql_text text;
    unsigned count;
    unsigned commits; /* so many are done once the request is committed; 0: nothing is */
};

/* Takes the rows that come back. */
struct my_taker {
    void (*take)(void *arg, MYSQL_ROW row, const unsigned long *lengths);
    void *arg;
};

bool my_session_open(const struct host_target *given, struct host_fault *fault);

struct my_sql my_sql(void);
/* Ends a statement. */
void my_sql_next(struct my_sql *sql);
/* Adds a whole statement. */
void my_sql_say(struct my_sql *sql, const char *statement);
/* These add a literal. */
void my_sql_bytes(struct my_sql *sql, struct piece bytes);
void my_sql_text(struct my_sql *sql, const char *text);

/* Sends the statements, and returns how many of them were done. */
unsigned my_send(const struct my_sql *sql, const struct my_taker *taker);
/* Returns the outcome of a failed request, "done" of whose statements were done. */
enum host_outcome my_failed(const struct my_sql *sql, unsigned done, struct host_fault *fault);

#endif
