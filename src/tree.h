/* A command and everything it started, found in /proc.
 *
 * Two ways, because two may have to end a tree. The supervisor is parent and subreaper, so the tree
 * is its descendants. When the supervisor is dead, descent is lost: then it is the process group of
 * the command, whoever has RLOCK_OWNER=owner in the environment it was started with, and
 * their descendants. What cleared its environment and left the group escapes that second way. */
#ifndef RLOCK_TREE_H
#define RLOCK_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What has this name belongs to nobody: the server of "local:", which outlives whoever had it started. */
#define TREE_SPARED "rlock-server"

struct tree {
    pid_t root;        /* the supervisor */
    pid_t except;      /* the agent */
    pid_t group;       /* the command's process group, 0: none yet */
    const char *owner; /* the acquisition's owner token */
};

/* Sends "signo" to all of the tree but root and except; 0 only counts. Returns how many live processes
 * (zombies left out) were found, -1 with errno if /proc cannot be read. */
int tree_signal(const struct tree *tree, int signo);

#endif
