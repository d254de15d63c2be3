/* Counting what the nodes of a quorum say: when is it decided, and how. Pure.
 *
 * A lock is held where a majority of all nodes granted it. Two majorities have a node in common, so it cannot
 * be held twice, as long as no node forgets: a node that may have lost data is not counted for new locks until
 * all leases that it may have forgotten are over. Which one may have is told by how long it remembers: not for as
 * long as there has been a quorum. Where no node remembers more, the quorum itself is new, and all count. */
#ifndef RLOCK_QUORUM_H
#define RLOCK_QUORUM_H

#include "store.h"

#define QUORUM_NODES_MAX 16

enum vote {
    VOTE_NONE, /* not heard of yet */
    VOTE_YES,
    VOTE_NO,      /* the node's own word */
    VOTE_VOID,    /* neither: there is nothing of ours, and that means nothing */
    VOTE_UNKNOWN, /* an UNKNOWN answer, or none in time */
};

enum quorum_rule {
    QUORUM_TAKE, /* YES: granted; NO: refused */
    QUORUM_KEEP, /* YES: renewed; NO: taken away; VOID: not to be had there now */
    QUORUM_FREE, /* YES: given back; NO: was not ours; VOID: nothing was left there */
    QUORUM_READ, /* YES: read to the end; NO: cannot be read */
};

enum quorum_outcome {
    QUORUM_OPEN,    /* depends on those not heard of yet */
    QUORUM_CARRIED, /* by a majority */
    QUORUM_REFUSED, /* a majority is there, and it is not for it */
    QUORUM_FAILED,  /* there is no majority to decide */
};

struct quorum_ballot {
    enum vote vote;
    struct seniority seniority; /* as the node told it last */
    struct answer answer;
};

struct quorum {
    enum quorum_rule rule;
    size_t count; /* of nodes */
    int64_t lease_ms;
    struct quorum_ballot ballots[QUORUM_NODES_MAX];
};

void quorum_begin(struct quorum *quorum, enum quorum_rule rule, size_t count, int64_t lease_ms);
/* Casts a node's vote, or casts it anew. answer: what it said, or NULL. */
void quorum_cast(struct quorum *quorum, size_t node, enum vote vote, const struct answer *answer);
/* Those not heard of by now do not answer. */
void quorum_close(struct quorum *quorum);

size_t quorum_majority(size_t count);
enum quorum_outcome quorum_outcome(const struct quorum *quorum);
/* Whether a majority has spoken, so that the others need not be waited for much longer. */
bool quorum_is_heard(const struct quorum *quorum);

/* What to answer in this state, not OPEN: granted with the highest fence of each key; refused, with the holder that
 * most nodes name; or unknown, and why. */
void quorum_answer(const struct quorum *quorum, enum quorum_outcome outcome, struct answer *answer);
/* How many say YES, and count. */
size_t quorum_approvals(const struct quorum *quorum);
/* Carried, but by nodes alone that do not remember for as long as a lease. */
bool quorum_is_young(const struct quorum *quorum);
/* How many name the same holder, the one that is named most, in refusing. */
size_t quorum_rivals(const struct quorum *quorum);

#endif
