/* The program that talks to a database server for a store (src/drivers), as a thing that statements
 * are given to: it is started and connected when there is something to ask, and killed when it does
 * not answer in time. */
#ifndef RLOCK_STORE_SQL_DRIVER_H
#define RLOCK_STORE_SQL_DRIVER_H

#include "store/sql/wire.h"
#include "store/store.h"

struct sql_driver;

/* What came of a statement. */
struct sql_reply {
    bool failed;
    enum wire_error error; /* failed: in which way */
    const char *said;      /* failed: the server's, its library's or the system's words */
    const char *user;      /* failed: who has logged in, or was to; "": not known */
    bool maybe_done;       /* failed: the statement may be executed, or may be yet */
    bool aged;             /* failed: the connection was older than the statement */
    struct moment sent;    /* before this the server has not begun */
    size_t columns, rows;
    const char *const *values; /* rows times columns */
};
typedef void sql_done(void *arg, const struct sql_reply *reply);

/* What the driver is called, "rlock-postgresql". It is looked for beside rlock itself, and then
 * where rlock was installed with it. address: borrowed. called: a channel was notified. */
struct sql_driver *sql_driver_new(struct loop *loop, const struct store_address *address,
                                  const char *program, void (*called)(void *arg), void *arg);
/* Ends the connection; "done" is not called any more. What is under way may be done. */
void sql_driver_free(struct sql_driver *driver);

/* Has a statement executed: "done" is called once, later, at "until" at the latest. One at a time.
 * What "done" is told is valid during the call. */
void sql_driver_ask(struct sql_driver *driver, const char *sql, struct moment until, sql_done *done,
                    void *arg);
/* Ends what is under way, which may be done, and its connection; "done" is not called any more. */
void sql_driver_give_up(struct sql_driver *driver);
/* Has it executed after what is under way, and after what it was told before, and waits for
 * nothing; no "done" is called any more. False where there is no connection. What is asked next
 * goes over another connection. */
bool sql_driver_tell(struct sql_driver *driver, const char *sql, struct moment until);

/* Counts the connections: what belongs to one ends with it. 0: it is not connected now. */
unsigned sql_driver_connection(const struct sql_driver *driver);
/* The server's version; "": it was never connected. */
const char *sql_driver_version(const struct sql_driver *driver);

#endif
