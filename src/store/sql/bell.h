/* Waking those who wait, where the server calls nobody (MySQL, MariaDB): by its user-level locks,
 * of which each owner has two, called bells here. Pure.
 *
 * An owner's connection has the owner's "own" bell from its first statement on, and one that waits
 * to share a lock has its "turn" bell, too. Whoever waits sleeps in the server until it could have
 * the bell of the one directly in front of it: of the waiter before it, or if it is the first, of a
 * holder. A bell that is rung is one that its owner gives back: the own bell when it gives back the
 * lock or its place, the turn bell when a lock is granted that those behind may share. The server
 * rings both when the connection ends. So each hand-over wakes one waiter, in the order of the
 * queue, and a bell that was rung before somebody went to sleep wakes it at once.
 *
 * Nothing depends on it: who is woken looks at the row, and who is not looks after a while. A
 * bell's name has the owner's number in it, so nobody else has reason to take it. */
#ifndef RLOCK_STORE_SQL_BELL_H
#define RLOCK_STORE_SQL_BELL_H

#include "base/clock.h"
#include "store/sql/dialect.h"
#include "store/sql/reading.h"

struct sql_bell {
    bool refused; /* by the server: none is used any more */

    /* What this connection has. */
    unsigned connection; /* its number; 0: nothing */
    char owner[OWNER_SIZE];
    bool has[SQL_BELLS];

    /* Whose is waited for, and for how long; "": nobody's. */
    char name[SQL_BELL_SIZE];
    int64_t sleep;            /* ns */
    bool rang;                /* the latest sleep ended before its time */
    struct moment mute_until; /* that one is not taken by its owner, who keeps others out */
};

/* Has the reading take what the owner should have and has not over that connection. shares: it
 * waits for a lock that others may share. */
void sql_bell_prepare(struct sql_bell *bell, struct sql_reading *reading, const char *owner,
                      bool shares, unsigned connection);
/* Notes what the reading has taken. */
void sql_bell_note(struct sql_bell *bell, const struct sql_reading *reading, const char *owner,
                   unsigned connection);

/* Whether the bells may be why the reading has failed: it is to be tried without them. */
struct sql_reply;
bool sql_bell_fails(struct sql_bell *bell, const struct sql_reading *reading,
                    const struct sql_reply *reply);

/* Whether there is something to ring: its own bell, or else its turn bell. */
bool sql_bell_has(const struct sql_bell *bell, enum sql_bell_kind kind, unsigned connection);
/* Adds the statement that rings: both, or the turn bell alone. */
void sql_bell_ring(const struct sql_bell *bell, bool both, struct sql_text *text);
/* Notes that it was executed. */
void sql_bell_rung(struct sql_bell *bell, bool both);

/* Chooses whose bell a waiter sleeps by, as the reading found it at that place. False if there is
 * none, or none that rings. */
bool sql_bell_choose(struct sql_bell *bell, const struct sql_place *place,
                     const struct sql_claim *claim, struct moment now);
/* Adds the statement that sleeps by that one. */
void sql_bell_sleep(const struct sql_bell *bell, struct sql_text *text);
/* Notes how that ended, just now. */
void sql_bell_wake(struct sql_bell *bell, const struct sql_reply *reply, struct moment now);

#endif
