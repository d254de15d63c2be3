/* What the operations on a ZooKeeper ensemble share: what there is of ours in the ensemble, and the
 * course of an operation. The modules of this folder that are operations include it, and nobody
 * else. */
#ifndef RLOCK_STORE_ZOOKEEPER_OPERATION_H
#define RLOCK_STORE_ZOOKEEPER_OPERATION_H

#include "net/loop.h"
#include "store/zookeeper/queue.h"
#include "store/zookeeper/session.h"

/* A writer has two nodes in each lock. */
#define NODES_MAX 2
#define NAME_SIZE 128
/* Below the node of a semaphore's key. */
#define LOCKS  "locks"
#define LEASES "leases"

/* Our nodes in one lock. */
struct spot {
    char *key;                 /* the key's node */
    char *lock;                /* the node whose children are the queue; of a semaphore KEY/locks */
    char *leases;              /* KEY/leases, whose children hold a semaphore */
    char *nodes[NODES_MAX];    /* ours; NULL: none */
    char *in_the_way;          /* the node that is watched; NULL: none */
    bool nested;               /* in an ancestor that holds it */
    char beside[NAME_SIZE];    /* that ancestor's first node, when ours is made */
    int32_t number;            /* of that, and of ours */
    char *elders[OWNER_DEPTH]; /* where we nest, the nodes of all our ancestors, outermost
                                           first; NULL: it has none */
    int64_t elders_since[OWNER_DEPTH]; /* their czxids; 0: it has none */
    char **relatives;                  /* who may nest in it as well: their nodes, and ours */
    size_t relative_count;
    bool leased;      /* our node is a lease of the semaphore, no place in its queue */
    unsigned slot;    /* of the semaphore */
    int64_t position; /* in its queue; without a place in it: how many wait */
    uint64_t fence;
    char *data; /* what is in our nodes */
};

struct zk_survey;

struct zk_store {
    struct store base;
    struct loop *loop;
    char *folder;
    struct zk_session *session;

    /* What there is of ours in the ensemble. */
    char owner[OWNER_SIZE]; /* whose session it is; "": nobody's */
    struct spot spots[LOCK_KEYS_MAX];
    size_t spot_count;
    bool placed;        /* our nodes are there, as far as we know */
    bool unsure;        /* they may be */
    bool closing;       /* the operation under way closes the session */
    bool ending;        /* it may have been closed: nothing new may rely on it */
    int64_t lease;      /* ns: as it was asked for */
    struct moment from; /* the lease counts from then; 0: nothing was written in this session */

    /* While we wait. */
    struct answer refusal; /* the latest, at "refused" */
    struct moment refused;
    unsigned heartbeats; /* since the queue was looked at */
    bool leads;          /* of a semaphore: first in the queue of each key */

    /* The operation under way. */
    struct acquire_request request;
    void (*next)(struct zk_store *store, const struct zk_reply *replies);
    void (*expired)(struct zk_store *store);
    void (*adopted)(struct zk_store *store);
    void (*missing)(struct zk_store *store);
    size_t absent; /* the key that "missing" is about */
    bool creating; /* what was sent makes nodes of ours */
    struct moment until;
    bool requeued;
    store_done *done;
    void *arg;
    struct zk_survey *survey;

    /* An acquisition: how it goes on (acquire.c). */
    void (*look)(struct zk_store *store);    /* at the queues, again */
    void (*entered)(struct zk_store *store); /* all is ours, if it is still there */
    void (*anew)(struct zk_store *store);    /* with another session; this one is closed */
    struct queue leases[LOCK_KEYS_MAX];      /* of semaphores, as they were read last */
    struct loop_timer linger;
    unsigned lingered; /* how often */
};

static inline struct zk_store *zk_store_of(struct store *base)
{
    return (struct zk_store *)(void *)base;
}

/* What the operation is about: of a renewal or a release, as far as that says so. */
static inline const struct acquire_request *zk_request_of(const struct zk_store *store)
{
    return &store->request;
}

static inline struct zk_batch *zk_batch_of(struct zk_store *store)
{
    return zk_session_batch(store->session);
}

/* Whether what is created is for its creator alone. */
static inline bool zk_is_closed(const struct zk_store *store)
{
    return zk_session_is_closed_to_others(store->session);
}

/* -- spots ------------------------------------------------------------------------------------- */

void zk_clear_spots(struct zk_store *store);
void zk_clear_relatives(struct spot *spot);
void zk_clear_elders(struct spot *spot);
/* One for each key of the request. */
void zk_make_spots(struct zk_store *store);
/* Frees *to, and takes "text" over. */
void zk_set_text(char **to, char *text);
/* Adds to the batch a transaction that writes our nodes anew, with the lease as it is granted. */
void zk_write_own(struct zk_store *store);
/* The session is nobody's any more: another one begins with the next request. */
void zk_forget(struct zk_store *store);
/* Whether the session is this owner's; one that was another's is left to its timeout. */
bool zk_is_own(const struct zk_store *store);
/* The text for a node of ours, into spot->data. */
void zk_print_data(const struct zk_store *store, struct spot *spot);

/* -- the course of an operation ---------------------------------------------------------------- */

/* The lease that the operation is about, ns. */
void zk_wish(struct zk_store *store, int64_t lease);
/* Sends the batch, as zk_session_send() does; "next" hears the replies. */
void zk_ask(struct zk_store *store, bool again,
            void (*next)(struct zk_store *, const struct zk_reply *));

/* Each of these ends the operation. */
void zk_tell(struct zk_store *store, struct answer *answer);
/* Nodes of ours that are there may come to hold the lock. */
void zk_tell_failure(struct zk_store *store, const struct answer *failure);
/* What the server did not do. */
void zk_tell_error(struct zk_store *store, int error);
void zk_refuse(struct zk_store *store, enum cause cause, size_t key, const char *text);
void zk_refuse_not_held(struct zk_store *store, size_t key);
/* As store->refusal says, with the age that it has by now. */
void zk_refuse_again(struct zk_store *store);
/* The same when the session is closed, which this does first. */
void zk_refuse_closing(struct zk_store *store);
void zk_grant(struct zk_store *store);

/* ns: no more than the server grants. */
int64_t zk_granted_lease(const struct zk_store *store);

/* -- reading ----------------------------------------------------------------------------------- */

/* Asks for the children of all queues. */
void zk_ask_children(struct zk_store *store);
/* The children of one node for each key; a node that is not there has none. False, and told, if
 * they cannot be read. */
bool zk_read_queues(struct zk_store *store, const struct zk_reply *replies,
                    struct queue queues[LOCK_KEYS_MAX]);
void zk_free_queues(struct zk_store *store, struct queue queues[LOCK_KEYS_MAX]);
/* The next result of a transaction that creates nodes of ours: one below "parent", whose path comes
 * to *node. False if it is none, or the reply is damaged. */
bool zk_next_created(struct jute_in *in, const char *parent, char **node);
/* Whoever takes the lock away deletes our nodes. */
void zk_watch_own(struct zk_store *store);
/* The index of the first of our nodes that is not there; the number of spots if all are. */
size_t zk_missing(const struct zk_store *store, const struct zk_reply *replies);

#endif
