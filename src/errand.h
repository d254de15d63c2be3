/* Something to be done with a latch, or to wait until it is open: a state machine over store.h and a loop,
 * which asks until it has the store's own word. A latch that is not there is never taken for an open
 * one. */
#ifndef RLOCK_ERRAND_H
#define RLOCK_ERRAND_H

#include "store.h"

struct errand;

struct errand_plan {
    struct latch_request request; /* all but listen: borrowed for as long as the errand lives */
    bool until_open;              /* LOOK: until it is open; waits for it to be set, too */
    bool wait;                    /* until_open; false: one look */
    struct moment wait_until;     /* MOMENT_NEVER: for ever */
    int64_t connect_timeout; /* ns: a store that answers nothing at first is given up after it */
    int64_t patience;        /* ns: one that cannot be reached at first, too; 0: at once */
};

struct errand_end {
    enum errand_ending {
        ERRAND_DONE,     /* until_open: it is open */
        ERRAND_REFUSED,  /* by the store: see answer */
        ERRAND_CLOSED,   /* until_open: not open until wait_until; or not there, see answer */
        ERRAND_VANISHED, /* until_open: it was there, and is no more, or is another one */
        ERRAND_FAILED,   /* no word from the store: see answer */
    } ending;
    struct answer answer; /* the last */
};

struct errand_events {
    /* Not open yet, or not there yet: the latest answer. */
    void (*waiting)(void *arg, const struct answer *answer);
    /* The store does not answer as it should; the errand goes on trying. */
    void (*trouble)(void *arg, const char *why);
    /* The last call. */
    void (*over)(void *arg, const struct errand_end *end);
};

struct errand *errand_start(struct loop *loop, struct store *store, const struct errand_plan *plan,
                            const struct errand_events *events, void *arg);
/* Of one that is not over, the store is to be closed first: only that ends what is under way. */
void errand_free(struct errand *errand);

#endif
