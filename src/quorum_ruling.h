/* What a node's answer means for the operation under way. */
#ifndef RLOCK_QUORUM_RULING_H
#define RLOCK_QUORUM_RULING_H

#include "quorum_state.h"

struct quorum_ruling {
    enum vote vote;
    enum quorum_task then; /* no vote yet: the node is asked for this first; NONE: vote */
};

struct quorum_ruling quorum_ruling(const struct quorum_store *store, const struct quorum_node *node,
                                   const struct quorum_order *done, const struct answer *answer);

/* Whether nodes that do not have the lock may be given it: as long as it is held by a majority. After that it may
 * have been somebody else's, and has to be acquired. */
bool quorum_ruling_may_fill(const struct quorum_store *store);
/* Whether this answer to a renewal calls for it: the node has forgotten the lock, or never had it; it was not
 * taken from it on purpose. */
bool quorum_ruling_is_missing(const struct quorum_store *store, const struct quorum_node *node,
                              const struct answer *answer);

/* What is known to be wrong with the nodes, as an answer: one server under two names. False: nothing. */
bool quorum_ruling_find_fault(const struct quorum_store *store, struct answer *fault);
/* Whether with this answer something is, so that the operation cannot go on. */
bool quorum_ruling_is_fault(const struct quorum_store *store, const struct quorum_node *node,
                            const struct answer *heard, struct answer *fault);

#endif
