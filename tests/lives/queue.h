/* The queues at the server: who waits for which lock, and since when, in an order of the oracle's
 * own. */
#pragma once

#include "host/record.h"
#include "lives/run.h"

struct waiter {
    const struct run *run;
    char key[24];         /* the name of its record */
    unsigned long ticket; /* its place: it may come back to it */
    bool waited, waits;   /* before the latest change of the record; and now */
    int order;            /* the first to come has the lowest */
    int64_t since;        /* it has come */
    int64_t until;        /* the server's clock, ns: it counts as alive until then */
    char mode;            /* x, s, l; a capital: it waits only for another of its keys */
    int priority;
    int64_t bound;  /* ns in the queue after which it is not passed; 0: as long as a life lasts */
    char group[24]; /* of --latest, with "=" before it; "": none */
};

#define WAITERS 200

extern struct waiter waiters[WAITERS];
extern int waiter_count;

void queue_begin(void);
/* A lock's record is another one now. */
void queue_read(const char *name, const struct record *record);
/* The latest place that it has had there: one that was dropped comes back to it. NULL: none. */
const struct waiter *queue_find(const char *name, const struct run *run);
