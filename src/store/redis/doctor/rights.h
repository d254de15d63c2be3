/* The rights that rlock needs at a Redis server: the one list of them, as docs/data.md has it too.
 * Pure. */
#ifndef RLOCK_STORE_REDIS_RIGHTS_H
#define RLOCK_STORE_REDIS_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>

/* What does not work without it. */
enum right_use {
    RIGHT_ALL,       /* nothing does */
    RIGHT_SEND,      /* at a server that does not know the scripts */
    RIGHT_LOCK,      /* no lock can be had */
    RIGHT_NEW,       /* none whose KEY is new to the server */
    RIGHT_RIVAL,     /* none that others hold, or held until they died */
    RIGHT_LEAVE,     /* none can be given back, nor had from a dead holder */
    RIGHT_HAND_OVER, /* none can be given back that is waited for */
    RIGHT_SHOW,      /* none can be shown */
    RIGHT_QUEUE,     /* none can be waited for */
    RIGHT_WAKE,      /* nobody is woken */
    RIGHT_SURVEY,    /* lists of locks */
    RIGHT_CHECK,     /* the check that the server is a master */
    RIGHT_DB,        /* databases other than 0 */
    RIGHT_NAME,      /* the names of connections */
    RIGHT_REPLICAS,  /* --replicas */
    RIGHT_MEMORY,    /* --grace, and a quorum of which it is one */
    RIGHT_CLUSTER    /* in a Cluster: to find who takes the place of a node, and lists of locks */
};

#define RIGHT_WORDS   5
#define RIGHT_KEY     "%k"
#define RIGHT_CHANNEL "%c"

struct right {
    const char *name;
    /* A harmless call of it, with a key and its channel. */
    const char *call[RIGHT_WORDS];
    enum right_use use;
    bool looks; /* also of who only looks at locks and latches */
};

#define RIGHTS_MAX 32
/* Ends with one without a name; in the order of the manual. */
extern const struct right rights[RIGHTS_MAX];

/* The command that gives a user of that name all of them, which the caller frees. clustered: for a
 * node of a Cluster. */
char *rights_command(const char *user, const char *prefix, bool clustered);

/* What an error reply to such a call says is missing. */
enum rights_lack {
    RIGHTS_FINE, /* some other error, or none: the right is there */
    RIGHTS_LACK_COMMAND,
    RIGHTS_LACK_KEYS,
    RIGHTS_LACK_CHANNELS,
};
enum rights_lack rights_judge(const char *error);

#endif
