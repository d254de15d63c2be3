/* The rights that rlock needs at a Redis server: the one list of them, as rlock(7) has it too. Pure. */
#ifndef RLOCK_RIGHTS_H
#define RLOCK_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>

/* What does without it. */
enum right_use {
    RIGHT_LOCK,     /* nothing: no lock can be had */
    RIGHT_QUEUE,    /* only what is free at once */
    RIGHT_WAIT,     /* waiting, but slower: nobody is woken */
    RIGHT_SURVEY,   /* all but lists of locks */
    RIGHT_CHECK,    /* all but the check that the server is a master */
    RIGHT_DB,       /* all but databases other than 0 */
    RIGHT_REPLICAS, /* all but --replicas */
    RIGHT_MEMORY,   /* all but --grace, and a quorum of which it is one */
    RIGHT_CLUSTER   /* in a Cluster: to find who takes the place of a node, and lists of locks */
};

#define RIGHT_WORDS 5

struct right {
    const char *name;
    /* A harmless call of it: %k is a key, %c its channel. */
    const char *call[RIGHT_WORDS];
    enum right_use use;
};

#define RIGHTS_MAX 32
/* Ends with one without a name; in the order of the manual. */
extern const struct right rights[RIGHTS_MAX];

/* What an error reply to such a call says is missing. */
enum rights_lack {
    RIGHTS_FINE, /* some other error, or none: the right is there */
    RIGHTS_LACK_COMMAND,
    RIGHTS_LACK_KEYS,
    RIGHTS_LACK_CHANNELS,
};
enum rights_lack rights_judge(const char *error);

#endif
