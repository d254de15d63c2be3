/* The insides of a quorum store, for its own files: store_quorum.c (what is asked of it), quorum_claim.c (acquiring),
 * quorum_round.c (an operation over all nodes) and quorum_ruling.c (what their answers mean). */
#ifndef RLOCK_QUORUM_STATE_H
#define RLOCK_QUORUM_STATE_H

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

/* A majority has spoken, but it depends on others: they get as long again, this at least. */
#define QUORUM_HURRY_NS (50 * NS_PER_MS)
/* What is set right, or given back, behind an answer. */
#define QUORUM_AFTERMATH_NS (2 * NS_PER_SEC)

static inline struct moment quorum_now(const struct quorum_store *store)
{
    return loop_now(store->loop);
}

/* Since the round began. */
static inline int64_t quorum_elapsed(const struct quorum_store *store)
{
    return moment_until(store->begun, quorum_now(store));
}

/* quorum_round.c. An operation is one round of votes or more; what nodes still do when it is over goes on behind it.
 * Begins a round, until the operation's "until". */
void quorum_round_begin(struct quorum_store *store, enum quorum_rule rule);
/* Asks one node, or all, and their answers count; or aside of that. */
void quorum_round_order(struct quorum_store *store, struct quorum_node *node,
                        enum quorum_task task);
void quorum_round_order_all(struct quorum_store *store, enum quorum_task task);
void quorum_round_order_aside(struct quorum_store *store, struct quorum_node *node,
                              enum quorum_task task);
/* Gives store->answer: the operation is over. */
void quorum_round_complete(struct quorum_store *store);
/* Whether a node does something that has gone out. */
bool quorum_is_busy(const struct quorum_store *store);
/* For the nodes and the timer of a new store. */
void quorum_round_heard(void *arg, struct quorum_node *node, const struct quorum_order *order,
                        const struct answer *answer);
void quorum_round_timer(struct loop_timer *timer);

/* quorum_claim.c. Begins a try. */
void quorum_claim_start(struct quorum_store *store);
/* All grants are there; now all of them get the highest fence. Those that have it already agree. */
void quorum_claim_settle(struct quorum_store *store);
/* Held now; or given back, and tried again or told. The answer is known. */
void quorum_claim_end(struct quorum_store *store, enum quorum_outcome outcome);
/* Tells that it was not acquired. */
void quorum_claim_fail(struct quorum_store *store);

#endif
