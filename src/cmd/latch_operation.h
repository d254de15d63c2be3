/* An operation on a latch, or waiting until a latch is open: a state machine over store/store.h and
 * a loop, which asks until the store has answered. A missing latch never counts as open. */
#pragma once

#include "lock/outage.h"
#include "store/store.h"

struct latch_operation;

struct latch_operation_plan {
    /* All members but "listen". Its pointers are borrowed until the operation is freed. */
    struct latch_request request;
    bool until_open;          /* LOOK: wait until the latch exists and is open */
    bool wait;                /* with until_open; false: look once */
    struct moment wait_until; /* MOMENT_NEVER: forever */
    int64_t connect_timeout;  /* ns, of one attempt */
    int64_t server_wait;      /* ns, how long a store that is away at the start is tried again */
};

struct latch_operation_end {
    enum latch_operation_ending {
        LATCH_OPERATION_DONE,    /* until_open: it is open */
        LATCH_OPERATION_REFUSED, /* by the store: see answer */
        LATCH_OPERATION_CLOSED, /* until_open: not open by then, or it does not exist: see answer */
        LATCH_OPERATION_VANISHED, /* until_open: it was there, and is gone, or is another one */
        LATCH_OPERATION_FAILED,   /* no word from the store: see answer */
    } ending;
    struct answer answer; /* the last */
};

struct latch_operation_events {
    /* The latch is not open or does not exist yet; "answer" is the latest one. */
    void (*waiting)(void *arg, const struct answer *answer);
    /* The store fails, and is tried again; it answers again. */
    struct outage_events outage;
    /* The last call. */
    void (*over)(void *arg, const struct latch_operation_end *end);
};

struct latch_operation *latch_operation_start(struct loop *loop, struct store *store,
                                              const struct latch_operation_plan *plan,
                                              const struct latch_operation_events *events,
                                              void *arg);
/* If the operation is not over, close the store first: only that ends the request under way. */
void latch_operation_free(struct latch_operation *operation);
