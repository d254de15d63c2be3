/* The state of the store, and the course of an operation: shared by the modules of this folder that
 * are operations, and included only there.
 *
 * An operation is a sequence of steps. A step sends a batch of requests, and names the function
 * that hears the replies: that one begins the next step, or ends the operation. A module calls only
 * those below it (README.md): the steps that it leads back to are in a table of store.c. */
#pragma once

#include "net/loop.h"
#include "store/zookeeper/queue.h"
#include "store/zookeeper/session.h"

/* A writer has two nodes in each lock. */
#define NODES_MAX 2

/* The nodes of one key. */
struct zk_nodes {
    char *branches[ZK_BRANCHES];
    char *own[NODES_MAX]; /* this owner's; NULL: none */
    char *in_the_way;     /* the node that keeps this owner out, and is watched; NULL: none */
    char *oldest;         /* the node of the holder that the refusal names; NULL: it names none */
    bool nests;           /* in an ancestor that holds the lock */
    size_t holder;        /* that ancestor, of those below, when the own nodes are made */
    int32_t number;       /* of that one's first node, and of the own ones */
    /* The first nodes of all ancestors, outermost first, and their czxids; NULL, 0: none. */
    char *ancestors[OWNER_DEPTH];
    int64_t ancestors_since[OWNER_DEPTH];
    bool leased;      /* the own node is a lease of the semaphore, not a place in its queue */
    unsigned slot;    /* of the semaphore */
    int64_t position; /* in its queue; without a place in it: how many wait */
    uint64_t fence;
    char *data; /* of the own nodes */
};

struct zk_store;

/* Hears the replies to a step's requests. */
typedef void zk_hear(struct zk_store *store, const struct zk_reply *replies);
/* Begins a step. */
typedef void zk_step(struct zk_store *store);

/* The steps that modules below theirs lead to. */
enum zk_next {
    ZK_BEGIN,       /* take places in the queues, in a session of its own (acquire.c) */
    ZK_START_ANEW,  /* the same when the own nodes have gone, also those that an unanswered request
                     * has made */
    ZK_CHECK_TURN,  /* read the queues, and judge the own places */
    ZK_FIND_NESTED, /* those are the first ones, or nest in holders: only others that nest in the
                     * same holders may be in the way */
    ZK_LEAVE_FULL,  /* leave a server that has no room for a renewal, and tell store->no_room
                     * (refuse.c) */
    ZK_NEXT_COUNT
};

/* The effect of a step's requests, as far as it matters when they are not answered. */
enum zk_effect {
    ZK_NO_EFFECT,
    ZK_CREATES,      /* make nodes of this owner */
    ZK_DELETES,      /* delete them */
    ZK_REOPENS,      /* nothing more; the session is opened again over a new connection */
    ZK_ASKS_FOR_ROOM /* the same, by a waiter, if there is room for one */
};

/* This owner's nodes in the ensemble. */
enum zk_place {
    ZK_NO_PLACE,
    ZK_MAY_HAVE_PLACE, /* a request that makes or deletes nodes was not answered */
    ZK_HAS_PLACE       /* its nodes are there, as far as is known */
};

struct zk_sight;

struct zk_store {
    struct store base;
    struct loop *loop;
    char *folder;
    struct zk_session *session;
    struct zk_batch *batch; /* the session's */
    bool closed;            /* nodes are for their creator only: there is a user */

    char owner[OWNER_SIZE]; /* whose session it is; "": it has no owner */
    enum zk_place place;
    struct zk_nodes nodes[LOCK_KEYS_MAX];
    size_t key_count;
    int64_t lease;      /* ns: as it was asked for */
    struct moment from; /* the lease counts from then; 0: nothing was written in this session */

    /* A waiter. */
    struct kept_answer refusal; /* the latest, at "refused" */
    struct moment refused;
    unsigned heartbeats; /* since the queue was looked at */
    bool roomy;          /* a server had room for one connection more */

    /* The operation under way, base.operation. */
    struct acquire_request request; /* a renewal and a release fill in a part of it */
    zk_hear *hear;                  /* the step under way */
    enum zk_effect effect;
    bool moved;     /* the session was opened elsewhere: it has to be opened again */
    zk_step *left;  /* when the own nodes have gone */
    size_t missing; /* the key whose nodes were not there then, from 1; 0: none */
    char **found;   /* nodes of the owner that may have to go */
    size_t found_count;
    size_t absent;         /* the key that is not held */
    struct answer no_room; /* to be told when the place is given up */
    bool requeued;
    struct zk_sight *sights; /* of a survey: the locks */
    size_t sight_count;
    struct zk_queue holders[LOCK_KEYS_MAX]; /* their branch, as it was read last */
    struct loop_timer linger;
    unsigned lingered;     /* how often */
    zk_step *const *steps; /* ZK_NEXT_COUNT of them */
};

static inline struct zk_store *zk_store_of(struct store *base)
{
    return (struct zk_store *)(void *)base;
}

static inline bool zk_is_limited(const struct zk_store *store)
{
    return store->request.mode == LOCK_LIMIT;
}

/* The branch of the nodes that hold the lock. */
static inline enum zk_branch zk_holders_branch(const struct zk_store *store)
{
    return zk_is_limited(store) ? ZK_LEASES : ZK_PLAIN;
}

/* The branch of the nodes that are the queue. */
static inline enum zk_branch zk_queue_branch(const struct zk_store *store)
{
    return zk_is_limited(store) ? ZK_LOCKS : ZK_PLAIN;
}

/* -- the nodes of the keys --------------------------------------------------------------------- */

/* Forgets all nodes, and the place. */
void zk_clear_nodes(struct zk_store *store);
/* Forgets what is known of the ancestors' nodes of a key. */
void zk_clear_ancestors(struct zk_nodes *nodes);
/* Names a key's nodes that owners have theirs below. The caller frees each. */
void zk_name_branches(const struct zk_store *store, const char *key, char *branches[ZK_BRANCHES]);
/* Forgets all nodes, and names the branches of each key of the request. */
void zk_make_nodes(struct zk_store *store);
/* Frees *to, and sets it to "text", which it owns now. */
void zk_set_text(char **to, char *text);
/* Adds to the batch a transaction that writes the own nodes anew, with the lease as granted. */
void zk_write_own(struct zk_store *store);
/* Leaves the session: another one begins with the next request. */
void zk_forget(struct zk_store *store);
/* Whether the session is the request's owner's; one of another owner is left to its timeout. */
bool zk_is_own(const struct zk_store *store);
/* Puts the text for an own node into nodes->data. */
void zk_print_data(const struct zk_store *store, struct zk_nodes *nodes);

/* -- the course of an operation ---------------------------------------------------------------- */

/* Sets the lease that the operation is about, ns. */
void zk_wish(struct zk_store *store, int64_t lease);
/* Begins that step. */
void zk_continue(struct zk_store *store, enum zk_next next);
/* Sends the batch, of which "hear" gets the replies if they come. effect: what the batch may do
 * otherwise. */
void zk_send(struct zk_store *store, zk_hear *hear, enum zk_effect effect);
/* Sends a batch without an effect (ZK_NO_EFFECT). If the batch is empty, the step is over at
 * once. */
void zk_ask(struct zk_store *store, zk_hear *hear);
/* The session has ended, or the owner has no nodes: an acquisition begins, and any other operation
 * ends. */
void zk_miss(struct zk_store *store);
/* Takes the session's report on the batch; arg: the store (struct zk_session_events). */
void zk_heard(void *arg, enum zk_outcome outcome, const struct zk_reply *replies,
              const struct answer *failure);

/* Each of these ends the operation: its "done" gets the answer, to which refused.requeued is
 * added. */
void zk_tell(struct zk_store *store, struct answer *answer);
/* By that answer, an UNKNOWN one. To an acquisition it is maybe_done as well if the owner has
 * nodes, or may have: they may come to hold the lock. */
void zk_tell_failure(struct zk_store *store, const struct answer *failure);
/* By an UNKNOWN answer for that error, which the server reports. */
void zk_tell_error(struct zk_store *store, int error);
/* By a refusal for the key of that index. */
void zk_refuse(struct zk_store *store, enum cause cause, size_t key, const char *text);
void zk_refuse_not_held(struct zk_store *store, size_t key);
/* By a grant or a renewal of all keys, with the fences and slots that their nodes have. */
void zk_grant(struct zk_store *store);

/* -- reading ----------------------------------------------------------------------------------- */

/* Asks for the children of all branches of a key. */
void zk_ask_branches(struct zk_store *store, char *const branches[ZK_BRANCHES]);
/* Asks for the children of that branch of each key. */
void zk_ask_queues(struct zk_store *store, enum zk_branch branch);
/* Reads the replies to that; queues: the caller frees them by zk_free_queues(). False, and the
 * operation has ended, if they cannot be read. */
bool zk_read_queues(struct zk_store *store, const struct zk_reply *replies, enum zk_branch branch,
                    struct zk_queue queues[LOCK_KEYS_MAX]);
void zk_free_queues(struct zk_queue queues[LOCK_KEYS_MAX]);
/* Adds a watch of the own nodes to the batch: a client that takes the lock away deletes them. */
void zk_watch_own(struct zk_store *store);
/* Adds a watch of what keeps a waiter out; nothing for a request that does not wait. */
void zk_watch_in_the_way(struct zk_store *store);
/* Reads the replies to that, and moves *replies behind them. Returns whether all that was in the
 * way is there still. */
bool zk_is_in_the_way(const struct zk_store *store, const struct zk_reply **replies);
/* Reads the replies to zk_watch_own(). Returns the index of the first key whose own node is not
 * there; the number of keys if all are. */
size_t zk_first_missing(const struct zk_store *store, const struct zk_reply *replies);
