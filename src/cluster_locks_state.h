/* What the files of cluster_locks.h share: a request about several keys, asked key by key. */
#ifndef RLOCK_CLUSTER_LOCKS_STATE_H
#define RLOCK_CLUSTER_LOCKS_STATE_H

#include "cluster_locks.h"
#include "loop.h"

#define CLUSTER_NO_KEY SIZE_MAX

/* Asks a node about one key: "one" is the request, cut down to it. */
typedef void cluster_question(struct cluster_locks *locks, struct store *node,
                              struct lock_request *one, struct moment until, store_done *done,
                              void *done_arg);
typedef void cluster_heard(struct cluster_locks *locks, const struct answer *answer);

/* What may be ours at a key. */
enum cluster_hold { CLUSTER_NOTHING, CLUSTER_PLACE, CLUSTER_LOCK };

struct cluster_locks {
    struct loop *loop;
    struct cluster *cluster;
    const char *prefix;

    /* The request under way, a copy. */
    struct lock_request request;
    char *keys[LOCK_KEYS_MAX], *owner, *who;
    size_t order[LOCK_KEYS_MAX]; /* the keys by their bytes */
    bool uncertain;              /* a release */
    struct moment until;
    store_done *done;
    void *arg;
    struct answer result; /* about all keys */

    /* About which key it is asked now. */
    size_t step, key;
    cluster_question *question;
    cluster_heard *heard;

    /* An acquisition; what is known from one to the next. */
    char *last_owner;
    enum cluster_hold holds[LOCK_KEYS_MAX];
    size_t waiting;            /* the key in whose queue it begins; NO_KEY */
    unsigned misses;           /* rounds that got something, and not all */
    bool taken[LOCK_KEYS_MAX]; /* in this round */
    bool again;                /* after giving back: another round */
};

/* Takes the request over; "result" is GRANTED until something else is put there. */
void cluster_locks_begin(struct cluster_locks *locks, const struct lock_request *request,
                         struct moment until, store_done *done, void *arg);
/* Completes it with the result. */
void cluster_locks_finish(struct cluster_locks *locks);
void cluster_locks_ask(struct cluster_locks *locks, size_t key, struct moment until,
                       cluster_question *question, cluster_heard *heard);

#endif
