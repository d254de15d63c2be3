/* One node of a quorum: a store that does one thing at a time, what it is to do next, and what of ours is there. */
#ifndef RLOCK_QUORUM_NODE_H
#define RLOCK_QUORUM_NODE_H

#include "store.h"

struct quorum_node;

enum quorum_task {
    TASK_NONE,
    TASK_ACQUIRE,
    TASK_RENEW,
    TASK_RELEASE,
    TASK_FORCE,
    TASK_SURVEY,
};

struct quorum_order {
    enum quorum_task task;
    unsigned round; /* whose vote it is */
    struct moment until;
    bool last;        /* RELEASE: the owner does not come again */
    bool bar;         /* RELEASE: and must not, since it may be on its way */
    int64_t at_least; /* RELEASE: as in the lock_request */
};

/* What is asked of all nodes alike; each reads it when it begins. */
struct quorum_matter {
    struct lock_request lock; /* owns its strings; its fences are those below, or NULL */
    uint64_t fences[LOCK_KEYS_MAX];
    struct force_request force; /* owns its strings */
    struct survey_request
        survey; /* owns its strings; "each" is the quorum's, with the node for its argument */
};

struct quorum_node {
    struct store *store;
    struct loop *loop;
    const struct quorum_matter *matter;
    void (*heard)(void *arg, struct quorum_node *node, const struct quorum_order *order,
                  const struct answer *answer);
    void *arg;

    struct quorum_order doing, next; /* the latest wish replaces the one before */
    bool replica;                    /* it is one, as far as is known */
    bool prompt;                     /* its latest answer was one */
    bool held;                       /* our entry is there */
    bool unsure;                     /* or may be: an acquisition was not answered */
    struct moment sent;              /* the request under way */
    struct moment confirmed;         /* when we last heard that it has our entry */
    struct moment lapse;             /* when that entry ends */
};

/* Begins it, or as soon as the node is free. "heard" follows, never before this returned. */
void quorum_node_order(struct quorum_node *node, struct quorum_order order);

/* Whether an entry of ours may be there, or may come yet. */
bool quorum_node_may_hold(const struct quorum_node *node);
/* The node says that it has nothing of ours: whether it was taken away on purpose, rather than run out or
 * forgotten. To be asked in "heard". */
bool quorum_node_was_evicted(const struct quorum_node *node, const struct answer *answer);
/* Gives all back at once, without waiting for an answer; what was under way is not heard of. */
void quorum_node_farewell(struct quorum_node *node);

void quorum_matter_set_lock(struct quorum_matter *matter, const struct lock_request *request);
void quorum_matter_set_force(struct quorum_matter *matter, const struct force_request *request);
void quorum_matter_set_survey(struct quorum_matter *matter, const struct survey_request *request);
/* Whether a grant has the fences that were settled on. */
bool quorum_matter_is_settled(const struct quorum_matter *matter, const struct answer *granted);
void quorum_matter_free(struct quorum_matter *matter);

#endif
