/* Messages in MySQL and MariaDB: rows that are committed together with the records.
 *
 * A waiter sleeps in the server, by a statement that looks for messages and, if there is none, goes
 * to sleep. A client that has committed a message finds that statement in the list of processes and
 * ends it: either it has begun by then, or it will see the row. Where this fails, it ends by itself
 * soon. */
#ifndef RLOCK_HOST_MY_SLEEP_H
#define RLOCK_HOST_MY_SLEEP_H

#include "host/my_session.h"

/* Members of host_store (host/store.h). */
void my_listen(struct piece name);
void my_unlisten(struct piece name);
int my_rest(enum host_ears ears, int *ms);
bool my_hear(void (*tell)(void *arg, struct piece channel, struct piece text), void *arg);

/* A new connection does not sleep. */
void my_forget_sleep(void);

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

#endif
