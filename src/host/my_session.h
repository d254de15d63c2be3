/* The connection to a MySQL or MariaDB, and requests of several statements. */
#pragma once

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

/* -- messages ---------------------------------------------------------------------------------- */

/* They are rows that are committed together with the records. A waiter sleeps in the server, by a
 * statement that looks for messages and, if there is none, goes to sleep. A client that has
 * committed a message finds that statement in the list of processes and ends it: either it has
 * begun by then, or it will see the row. Where this fails, it ends by itself soon. */

/* Members of host_store (host/store.h). */
void my_listen(struct piece name);
void my_unlisten(struct piece name);
int my_rest(enum host_ears ears, int *ms);
bool my_hear(void (*tell)(void *arg, struct piece channel, struct piece text), void *arg);

/* Sends what was put together, and frees it. A sleep is ended first. */
enum host_outcome my_ask(struct my_sql *sql, const struct my_taker *taker,
                         struct host_fault *fault);

/* Adds a question for the latest message of each channel that is new; my_take_position() takes its
 * rows. Messages behind it are heard, once the request has succeeded: my_note_listening(). */
void my_add_positions(struct my_sql *sql);
void my_take_position(MYSQL_ROW row);
void my_note_listening(void);

/* Adds the unit's messages. */
void my_add_messages(struct my_sql *sql, const struct unit *unit);

/* Those that sleep for a message, by the number of their connection. */
struct my_sleepers {
    uint64_t *at;
    size_t count;
};

/* Adds what wakes the first sleeper that waits for a message of the unit, and reports the others
 * in rows for my_take_sleeper(). Without sleepers the request ends there. */
void my_add_waking(struct my_sql *sql, const struct unit *unit);
void my_take_sleeper(void *sleepers, MYSQL_ROW row, const unsigned long *lengths);
/* Wakes them, and frees the list. */
void my_wake(struct my_sleepers *sleepers);
