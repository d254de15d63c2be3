/* One node of a quorum: a store that executes one order at a time, the next order, and the state of
 * our entry there. */
#pragma once

#include "store/member.h"

struct quorum_node;

struct quorum_order {
    enum store_verb task; /* NONE: there is no order */
    unsigned round;       /* whose vote it is */
    struct moment until;
    bool last;        /* RELEASE: the owner does not acquire again */
    bool bar;         /* RELEASE: and must not: an acquisition of its may still arrive */
    int64_t at_least; /* RELEASE: as in the release_request */
};

/* A node's answer to an order. */
struct quorum_reply {
    const struct quorum_order *order;
    const struct answer *answer;
    const struct member_report *report;
    /* Our entry was taken away there: it had not run out and was not forgotten. */
    bool evicted;
};

/* The requests to all nodes; each node reads them when it executes its order. Acquisition, renewal
 * and release are about the same lock: a renewal may let nodes acquire it as well. */
struct quorum_requests {
    struct acquire_request acquire;
    struct renew_request renew;
    struct release_request release;
    struct member_terms terms; /* its fences are those below, or NULL */
    uint64_t fences[LOCK_KEYS_MAX];
    struct force_request force;
    struct survey_request survey; /* "each" is the quorum's, with the node for its argument */
};

struct quorum_node {
    struct member member;
    char name[300]; /* of its URL, for messages */
    struct loop *loop;
    const struct quorum_requests *requests;
    void (*heard)(void *arg, struct quorum_node *node, const struct quorum_reply *reply);
    void *arg;

    struct quorum_order doing, next; /* a later order replaces "next" */
    bool answered;                   /* the latest order was answered */
    bool held;                       /* our entry is there */
    bool not_listening;              /* the node does not report requests for the lock */
    bool unsure;                     /* our entry may be there: an acquisition was not answered */
    bool from_dead_agent; /* a dead process may have acquired it there; no order has ended since */
    bool evicted;       /* our entry was taken away, and no majority has confirmed the lock since */
    bool revoked;       /* it was, and the node says by whom */
    bool released;      /* our entry was, by a release of the lock that may be unanswered */
    struct moment sent; /* when the order under way was given to the store */
    struct moment confirmed; /* when the node last answered that it has our entry; 0: not there */
    struct moment ends;      /* when that entry ends */
};

/* Executes the order now, or as soon as the node is free. "heard" is called with the reply, never
 * before this has returned. */
void quorum_node_order(struct quorum_node *node, struct quorum_order order);

/* Whether an entry of ours may be at the node, or may come yet. */
bool quorum_node_may_hold(const struct quorum_node *node);
/* Releases our entry without waiting for an answer, and ends the order under way without "heard".
 * Returns whether the release has gone out; false: there was no connection to send it over. */
bool quorum_node_release_nowait(struct quorum_node *node);

/* Whether these grants, one for each key, have the fences that were settled on. */
bool quorum_is_settled(const struct quorum_requests *requests, const struct lock_grant *grants);
