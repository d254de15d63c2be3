/* The rights that rlock needs at a Redis server: the only list of them, which docs/data.md repeats.
 * Pure. */
#ifndef RLOCK_STORE_REDIS_RIGHTS_H
#define RLOCK_STORE_REDIS_RIGHTS_H

#include <stdbool.h>

/* Why the right is needed. */
enum right_use {
    RIGHT_ALL,       /* without it, nothing works */
    RIGHT_SEND,      /* nothing at a server that does not know the scripts */
    RIGHT_LOCK,      /* no lock can be acquired */
    RIGHT_NEW,       /* none whose KEY is new to the server */
    RIGHT_RIVAL,     /* none that others hold, or held until they died */
    RIGHT_LEAVE,     /* none can be released, nor acquired after a dead holder */
    RIGHT_HAND_OVER, /* none can be released that has waiters */
    RIGHT_SHOW,      /* none can be shown */
    RIGHT_QUEUE,     /* none can be waited for */
    RIGHT_WAKE,      /* no waiter is woken */
    RIGHT_SURVEY,    /* lists of locks */
    RIGHT_CHECK,     /* the check that the server is a master */
    RIGHT_DB,        /* databases other than 0 */
    RIGHT_NAME,      /* the names of connections */
    RIGHT_REPLICAS,  /* --replicas */
    RIGHT_MEMORY,    /* --grace, and being a member of a quorum */
    RIGHT_CLUSTER    /* in a Cluster: to find who takes the place of a node, and lists of locks */
};

#define RIGHT_WORDS   5
#define RIGHT_KEY     "%k"
#define RIGHT_CHANNEL "%c"

struct right {
    char name[16]; /* as in ACL SETUSER */
    char call[64]; /* a harmless call of it, words with one space between, RIGHT_WORDS at most */
    enum right_use use;
    bool looks; /* needed even to look at locks and latches only */
};

#define RIGHTS_MAX 32
/* In the order of the manual; the first one without a name ends the list. */
extern const struct right rights[RIGHTS_MAX];

/* Returns the command that gives all rights to a user; the caller frees. clustered: for a node of a
 * Cluster. */
char *rights_command(const char *user, const char *prefix, bool clustered);

/* The missing right, by an error reply to such a call. */
enum rights_lack {
    RIGHTS_FINE, /* another error, or none: the right is there */
    RIGHTS_LACK_COMMAND,
    RIGHTS_LACK_KEYS,
    RIGHTS_LACK_CHANNELS,
};
enum rights_lack rights_judge(const char *error);

#endif
