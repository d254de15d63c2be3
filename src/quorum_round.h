/* One operation over all nodes of a quorum, from its orders to its answer, and what is left to do behind it. */
#ifndef RLOCK_QUORUM_ROUND_H
#define RLOCK_QUORUM_ROUND_H

#include "loop.h"
#include "quorum.h"
#include "quorum_node.h"
#include "quorum_views.h"
#include "store_quorum.h"

/* What this process has to do with the lock that it asked for last. */
enum quorum_hold {
    HOLD_FOREIGN, /* another process acquired it, if anybody did */
    HOLD_SOUGHT,  /* an acquisition is under way */
    HOLD_OURS,
    HOLD_OVER, /* given back or lost, or not acquired: nothing of it is to be left */
};

struct quorum_store {
    struct store base;
    struct loop *loop;
    struct store_node *names;
    struct quorum_node nodes[QUORUM_NODES_MAX];
    size_t count;
    struct quorum_matter matter;
    enum quorum_hold hold;
    struct moment lapse;    /* held: when the lease ends */
    struct loop_timer rest; /* until the next try */
    struct answer refusal;  /* of the latest try */

    /* The operation under way. */
    enum quorum_task task; /* NONE: there is none */
    store_done *done;
    void *done_arg;
    struct quorum votes;
    unsigned round; /* each has votes of its own */
    struct moment begun, until;
    struct loop_timer timer; /* the end of the time for it, or of a part of it */
    enum quorum_stage {
        STAGE_VOTING,
        STAGE_CLOSING,  /* those not heard of when the timer fires are not waited for */
        STAGE_RETRYING, /* a try failed, and the next follows */
        STAGE_LEAVING,  /* it failed for good, and is given back before that is told */
        STAGE_TOLD,     /* the answer was known before: it is given when the loop turns */
    } stage;
    bool settling; /* acquired, if a majority takes the fence */
    struct answer answer;
    unsigned tries;
    struct quorum_views views;
    struct survey_request asked;
};

/* Begins a round of votes, until the operation's "until". */
void quorum_round_begin(struct quorum_store *store, enum quorum_rule rule);
/* Asks all nodes for it. */
void quorum_round_order_all(struct quorum_store *store, enum quorum_task task);
/* A whole try. */
void quorum_round_acquire(struct quorum_store *store);

/* For the nodes and timers of a new store. */
void quorum_round_heard(void *arg, struct quorum_node *node, const struct quorum_order *order,
                        const struct answer *answer);
void quorum_round_timer(struct loop_timer *timer);

#endif
