/* One vote over all nodes of a quorum: the orders that it gives, the votes, and how long it waits
 * for missing ones. The quorum's store (store.c) decides what an answer is worth as a vote, and
 * what follows from the outcome.
 *
 * The store hears the nodes' replies, casts their votes, and ends the round when the votes are
 * enough. When the time is over before that, the timer fires, and the store closes the vote. */
#pragma once

#include "net/loop.h"
#include "store/quorum/node.h"
#include "store/quorum/quorum.h"

/* The least time that nodes get whose votes matter although a majority has answered. */
#define QUORUM_EXTRA_NS (50 * NS_PER_MS)

/* The store sets the members up to the timer. */
struct quorum_round {
    struct loop *loop;
    struct quorum_node *nodes; /* borrowed */
    size_t count;
    struct loop_timer timer; /* when the vote closes */

    unsigned number; /* orders have that of their round; 0 is that of none */
    struct moment begun, until;
    struct quorum votes;
};

/* Begins a vote that closes at "until". lease: ns, of the lock that it is about. */
void quorum_round_begin(struct quorum_round *round, enum quorum_rule rule, int64_t lease,
                        struct moment until);
/* Ends it, if there is one: the timer does not fire, and replies to its orders do not count. */
void quorum_round_end(struct quorum_round *round);

/* Gives a node an order whose answer counts. The order's round and "until" are filled in. */
void quorum_round_ask(struct quorum_round *round, struct quorum_node *node,
                      struct quorum_order order);
/* Gives all nodes an order of that kind, whose answers count. */
void quorum_round_ask_all(struct quorum_round *round, enum store_verb task);
/* Casts a node's vote, or casts it anew. reply: what it said; NULL: it said nothing. */
void quorum_round_cast(struct quorum_round *round, const struct quorum_node *node, enum vote vote,
                       const struct quorum_reply *reply);

/* Has the vote close at that time: the timer fires. */
void quorum_round_close_at(struct quorum_round *round, struct moment due);
/* Has the vote close in so many ns, unless it closes before. */
void quorum_round_close_in(struct quorum_round *round, int64_t ns);
/* Returns how many ns ago it began. */
int64_t quorum_round_elapsed(const struct quorum_round *round);
/* Returns the time, in ns, that nodes get whose votes matter although a majority has answered: as
 * long again as the round has taken, and QUORUM_EXTRA_NS at least. */
int64_t quorum_round_extra_time(const struct quorum_round *round);
