/* What the operations on a database share: the store, with the operation under way, and the course
 * that each operation takes. It reads the rows of its keys, decides, and writes them back; where
 * others were quicker it begins anew. The modules of this folder that are operations include it,
 * and nobody else. */
#ifndef RLOCK_STORE_SQL_OPERATION_H
#define RLOCK_STORE_SQL_OPERATION_H

#include "net/loop.h"
#include "store/sql/bell.h"
#include "store/sql/dialect.h"
#include "store/sql/driver.h"
#include "store/sql/mirror.h"
#include "store/sql/reading.h"
#include "store/sql/row.h"
#include "store/sql/swap.h"
#include "store/store.h"

/* How often a waiter that may be next looks again where nobody calls it. */
#define SQL_POLL_NS (200 * NS_PER_MS)
/* How often an operation begins anew because others were quicker. */
#define SQL_ATTEMPTS_MAX 200
/* Stands where an owner would whose own place in a queue does not count. */
#define SQL_NOBODY "latch"

/* What an operation does. */
enum sql_verb {
    SQL_ACQUIRE,
    SQL_RENEW,
    SQL_RELEASE,
    SQL_FORCE,        /* takes holders out of a row */
    SQL_FORCE_MIRROR, /* takes another program's lock away from it, and that alone */
    SQL_LATCH,
    SQL_SURVEY,
    SQL_MARK,
};

struct sql_store {
    struct store base;
    struct loop *loop;
    struct store_address address;
    const struct sql_dialect *dialect;
    struct sql_driver *driver;
    char *prefix;           /* NULL: any */
    struct loop_timer poll; /* fires sql_poll_due() (store/sql/acquire.h) */

    /* What this connection listens for. */
    unsigned listening;        /* the number of the connection; 0: none */
    char listener[OWNER_SIZE]; /* whose calls it hears: an owner's, or a latch's by its channel */

    /* Where nobody is called. */
    struct sql_bell bell;
    bool tired;          /* it goes to sleep when "poll" fires */
    bool asleep;         /* by the bell: the connection is in use */
    struct moment wakes; /* at the latest */

    /* The operation under way; "read" stays until the next. */
    enum sql_verb verb;
    store_done *done; /* NULL: none */
    void *arg;
    struct moment until;
    void (*again)(struct sql_store *store);                           /* to begin anew */
    void (*decide)(struct sql_store *store);                          /* when all is read */
    void (*heard)(struct sql_store *store, const struct sql_reply *); /* the statement's answer */
    void (*swapped)(struct sql_store *store);                         /* when all is written */
    /* Adds to the statement that writes the rows; NULL: nothing is added. */
    void (*add_call)(struct sql_text *text, const struct sql_store *store);
    bool writes;    /* the statement changes something */
    bool optional;  /* it is the last one, and may fail */
    bool uncertain; /* a release: an acquisition may be under way */
    bool abandoned; /* a change that was given up, of this operation or before, may be done yet */
    bool joined;    /* the owner has entered the queues */
    bool fresh;     /* it was in none of them, or was not listening */
    bool called;    /* by a notification since it was read */
    bool rings;     /* when it has left the queues */
    bool cut;       /* leases in the rows end later than they are long */
    bool sure;      /* "read" is what the store has, as far as answers tell */
    bool unheard;   /* a change may have been done without an answer */
    bool retried;   /* over another connection */
    bool purge;     /* everybody leaves the queues */
    unsigned attempts; /* that others were quicker in */
    size_t statement;  /* of the schema */
    struct sql_reading read;
    struct moment read_at;
    struct moment waiting_since; /* for a latch; zero: it does not wait yet */
    struct answer answer;
};

static inline struct sql_store *sql_store_of(struct store *base)
{
    return (struct sql_store *)(void *)base;
}

static inline const struct lock_request *sql_request_of(const struct sql_store *store)
{
    return &store->base.requests.lock;
}

/* An empty text for a statement; sql_ask() takes it over, or sql_text_end() frees it. */
static inline struct sql_text sql_text_of(const struct sql_store *store)
{
    return (struct sql_text){.dialect = store->dialect, .table = store->address.urls->table};
}

/* -- the course of an operation ---------------------------------------------------------------- */

/* Takes up an operation on these keys, which are copied; nothing is sent yet. It goes on to decide
 * when sql_start() has read the rows, and to store->again, which is sql_start() at first, where it
 * has to begin anew. done: called once, by sql_finish(). */
void sql_begin(struct sql_store *store, enum sql_verb verb, void (*decide)(struct sql_store *),
               const char *const *keys, size_t count, struct moment until, store_done *done,
               void *arg);
/* Gives the driver a statement, and takes the text over; "heard" gets the answer unless it failed.
 * writes: it changes something, so that it may be done without an answer. */
void sql_ask(struct sql_store *store, struct sql_text *text, bool writes,
             void (*heard)(struct sql_store *, const struct sql_reply *));
/* Wakes the connection, if it sleeps by a bell: nothing else gets through it before the sleep is
 * over, so that it is given up; the server rings its bells when it notices. */
void sql_get_up(struct sql_store *store);

/* Each of these two ends the operation: with store->answer, or with that failure. */
void sql_finish(struct sql_store *store);
void sql_fail(struct sql_store *store, enum cause cause, const char *text);

/* -- reading ----------------------------------------------------------------------------------- */

/* Reads the rows of the keys, their queues and mirrors into store->read; goes on to store->decide,
 * or refuses rows that are damaged. */
void sql_start(struct sql_store *store);
/* The name of the mirror that the operation depends on, at the key of that index; NULL: it depends
 * on none. Owned by the request or by store->read. */
const char *sql_mirror_of(const struct sql_store *store, size_t i);

/* -- writing ----------------------------------------------------------------------------------- */

/* Somebody else was quicker, or the rows are others now: goes on to store->again, or fails after
 * SQL_ATTEMPTS_MAX of them. */
void sql_begin_anew(struct sql_store *store);
/* Writes all rows, or none if one of them has changed meanwhile; goes on to "swapped", or begins
 * anew. Fails where the time is up (CAUSE_UNREACHABLE) or a row would be too long (CAUSE_UNFIT). */
void sql_swap_rows(struct sql_store *store, enum sql_mirror_need need,
                   void (*swapped)(struct sql_store *));
/* Gives the driver a statement that changes rows, and takes the text over; goes on to "swapped", or
 * begins anew if it has changed none. */
void sql_change(struct sql_store *store, struct sql_text *text,
                void (*swapped)(struct sql_store *));
/* Whether the latest statement is such a one. */
bool sql_is_changing(const struct sql_store *store);

/* -- leaving the queues ------------------------------------------------------------------------ */

/* Adds what takes the owner out of the queues, or everybody, and calls whoever is next. */
void sql_add_leave(struct sql_text *text, const struct sql_store *store);
/* Leaves the queues, and ends the operation with store->answer, whatever comes of that: what it
 * does happens by itself after a while, too. */
void sql_leave_queues(struct sql_store *store);
/* Rings both bells of the owner, or the turn bell alone, and goes on to "heard", or to "again" if
 * that has to be done anew. False if there is nothing to ring. */
bool sql_ring(struct sql_store *store, bool both, void (*again)(struct sql_store *),
              void (*heard)(struct sql_store *, const struct sql_reply *));

/* -- listening --------------------------------------------------------------------------------- */

/* Notes that the connection listens for that owner's calls, or on that channel, and no other. */
void sql_note_listening(struct sql_store *store, const char *listener);
/* Whether it does. */
bool sql_is_listening(const struct sql_store *store, const char *listener);

/* -- holders and refusals ---------------------------------------------------------------------- */

/* The owner's entry in that row, owned by the row; NULL if it holds nothing there, or if the
 * request is strict and the lease has ended. */
struct sql_holder *sql_find_own(const struct sql_store *store, struct sql_place *place);
/* Has store->answer refuse for that cause, and say who has the lock now, to one who does not. */
void sql_refuse_stranger(struct sql_store *store, struct sql_place *place, enum cause cause);
/* Has store->answer say who has the other program's lock of that name, or has taken it, in place of
 * a holder. */
void sql_tell_mirror(struct sql_store *store, const struct sql_place *place, const char *name,
                     bool taken);

#endif
