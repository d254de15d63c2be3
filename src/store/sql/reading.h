/* What the tables say of the keys of one operation: one statement reads the locks and their queues,
 * all by the server's clock at the same moment. Pure. */
#ifndef RLOCK_STORE_SQL_READING_H
#define RLOCK_STORE_SQL_READING_H

#include "store/sql/dialect.h"
#include "store/sql/row.h"

struct sql_reply;

/* A place in the queue counts this long after the last call of its waiter. One that would count for
 * longer yet is not believed: the server's clock was set back. The clocks of several servers of one
 * database may differ by as much as is between. */
#define SQL_PLACE_US      (7000 * US_PER_MS)
#define SQL_PLACE_MOST_US (8000 * US_PER_MS)

/* What an owner's connection has (store/sql/bell.h). */
enum sql_bell_kind { SQL_BELL_OWN, SQL_BELL_TURN, SQL_BELLS };
#define SQL_BELL_SIZE 64

/* A row of another program's table that is held with a lock (store/sql/mirror.h). */
struct sql_foreign {
    char *by;     /* who has it, or had it last; NULL: there is no such row */
    int64_t left; /* us that it is held for; 0: it is free */
};

/* What is known of one key. */
struct sql_place {
    char *name; /* in the store */
    struct sql_row row;
    struct sql_foreign theirs;            /* as it was read last, by sql_mirror_take() */
    bool queued;                          /* the owner has a place in a queue, live or not */
    bool live;                            /* a live one */
    int64_t until;                        /* us, until when that one counts */
    char *scope;                          /* of that place */
    int64_t ahead[OWNER_DEPTH];           /* how many come before it, in each scope */
    struct lock_party first[OWNER_DEPTH]; /* who comes first there; owner "": nobody */
    bool several[OWNER_DEPTH];            /* that one waits for several keys */
    /* Who comes directly before it, owner and mode alone; owner "": nobody. Of a dialect with
     * bells. */
    struct lock_party before[OWNER_DEPTH];

    /* As sql_reading_obstacle() found. */
    size_t depth;          /* which of the scopes it belongs to */
    bool blocked;          /* by holders */
    bool foreign;          /* by nobody but another program, as store/sql/acquire.c finds */
    int64_t holders, till; /* how many, and when the first of their leases ends */
};

/* All zero: of no keys. */
struct sql_reading {
    struct sql_place *places;
    size_t count;
    /* The queues that the owner may belong to, by who it nests in; without them no queue is read.
     * Whoever nests in somebody waits there. */
    char scopes[OWNER_DEPTH][OWNER_SIZE];
    size_t scope_count;
    /* Bells that are to be taken with it, "": none, and those that were. */
    char bells[SQL_BELLS][SQL_BELL_SIZE];
    bool taken[SQL_BELLS];
    int64_t now; /* us, when it was read, by the server's clock */
};

/* Forgets what was read, and takes up these keys. */
void sql_reading_begin(struct sql_reading *reading, const char *prefix, const char *const *keys,
                       size_t count);
/* The queues are to be read, too. */
void sql_reading_queues(struct sql_reading *reading, const char *owner);
/* Adds the statement; owner: whose places are read, where queues are. */
void sql_reading_query(const struct sql_reading *reading, const char *owner, struct sql_text *text);
/* Reads the answer in place of what was known; false where the tables hold other data. */
bool sql_reading_take(struct sql_reading *reading, const struct sql_reply *reply);
/* Finds out where the claim belongs, and forgets places elsewhere. The first key that keeps it out;
 * NULL: none does. The rows hold none whose lease has ended. */
struct sql_place *sql_reading_obstacle(struct sql_reading *reading, const struct sql_claim *claim);
/* Empties it. */
void sql_reading_free(struct sql_reading *reading);

/* A row of rlock_wait as those who wait are told of: four columns, as text. */
struct sql_waiter {
    struct lock_party party;
    int64_t since; /* us */
    bool several;  /* it waits for several keys */
};

/* Adds the condition that a waiter's place counts; table: its name in the statement and a dot, or
 * "". */
void sql_add_live(struct sql_text *text, const char *table);
/* Adds the four columns of a waiter. */
void sql_add_waiter(struct sql_text *text, const char *table);
/* Reads them; false where they are damaged. */
bool sql_waiter_read(struct sql_waiter *waiter, const char *const *values, int64_t now);

#endif
