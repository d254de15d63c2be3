/* Counts the votes of the nodes of a quorum: when the vote is decided, and how. Pure.
 *
 * A lock is held where a majority of all nodes granted it. Two majorities have a node in common, so
 * the lock cannot be held twice, as long as no node forgets. A node that may have lost data is not
 * counted for new locks until all leases that it may have forgotten are over. It may have lost data
 * if it remembers less time than another node has been part of the quorum. Where no node remembers
 * more than the others, the quorum itself is new, and all nodes count. */
#pragma once

#include "store/member.h"

/* The nodes of a new quorum are all first asked within this time. A node that loses its data later
 * is younger than the others by more. */
#define QUORUM_FIRST_ASKED_MS 100

enum vote {
    VOTE_NONE, /* the node has not answered yet */
    VOTE_YES,
    VOTE_NO,      /* it has refused */
    VOTE_VOID,    /* it has no entry of ours, and that is neither for nor against */
    VOTE_UNKNOWN, /* it has answered UNKNOWN, or not in time */
};

enum quorum_rule {
    QUORUM_TAKE,   /* YES: granted; NO: refused */
    QUORUM_KEEP,   /* YES: renewed; NO: taken away; VOID: not to be had there now */
    QUORUM_RETURN, /* YES: released; NO: was taken away before; VOID: there was nothing */
    QUORUM_FREE,   /* YES: released; NO: not that owner's; VOID: there was no holder */
    QUORUM_READ,   /* YES: read to the end, or free; NO: cannot be read, or held */
};

enum quorum_outcome {
    QUORUM_OPEN,    /* nodes that have not answered yet decide it */
    QUORUM_CARRIED, /* a majority is for it */
    QUORUM_REFUSED, /* a majority has answered, and no majority is for it */
    QUORUM_FAILED,  /* no majority has answered, and none can any more */
};

struct quorum_ballot {
    enum vote vote;
    char server[MEMBER_SERVER_SIZE]; /* whose it is; "": not known */
    struct seniority seniority;      /* as the node told it last */
    struct kept_answer kept;
};

struct quorum {
    enum quorum_rule rule;
    size_t count; /* of nodes */
    int64_t lease_ms;
    struct quorum_ballot ballots[QUORUM_NODES_MAX];
};

/* Empties the ballots of so many nodes. lease_ms: of the request. */
void quorum_begin(struct quorum *quorum, enum quorum_rule rule, size_t count, int64_t lease_ms);
/* Casts a node's vote, or casts it anew. A server that has voted as another node has no second
 * vote: UNKNOWN. report: what it tells of itself, NULL: nothing. answer: what it said, or NULL. */
void quorum_cast(struct quorum *quorum, size_t node, enum vote vote,
                 const struct member_report *report, const struct answer *answer);
/* Ends the vote: nodes that have not answered by now count as UNKNOWN. */
void quorum_close(struct quorum *quorum);

/* Returns the smallest number that is more than half of them. */
size_t quorum_majority(size_t count);
/* Returns the outcome of the votes so far, by the rule. */
enum quorum_outcome quorum_outcome(const struct quorum *quorum);
/* Whether a majority has spoken, so that the others need not be waited for much longer. */
bool quorum_is_heard(const struct quorum *quorum);

/* The answer for an outcome other than OPEN: granted, with the highest fence of each key; refused,
 * with the holder that most nodes name; or unknown, and why. It points into *quorum, or to
 * "grants", which has room for LOCK_KEYS_MAX of them. */
void quorum_answer(const struct quorum *quorum, enum quorum_outcome outcome, struct answer *answer,
                   struct lock_grant *grants);
/* Returns how many nodes say YES and are counted. */
size_t quorum_approvals(const struct quorum *quorum);
/* Whether no node of the quorum has been part of it for as long as a lease. */
bool quorum_is_young(const struct quorum *quorum);
/* Returns how many nodes name the holder that refusals name most; 0: none names a holder. */
size_t quorum_rivals(const struct quorum *quorum);
