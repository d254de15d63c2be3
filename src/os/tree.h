/* A command and everything it started: found in /proc, and signalled.
 *
 * There are two ways to find it, because two processes may have to end it. The supervisor is parent
 * and subreaper: while it is alive, the tree is all of its descendants but those that it was
 * started with, which are its caller's. When the supervisor is dead, descent is lost. Then the tree
 * is the process group of the command, all processes with RLOCK_OWNER=owner in their environment,
 * all that were seen to descend from the supervisor before, all processes in the sessions of those,
 * and the descendants of them all.
 *
 * Where the command has a cgroup of its own, that is the tree, and the kernel kills it as a whole;
 * only TERM goes to the processes that are found, and KILL while one of them may be let off. The
 * agent's command of --stop is outside the cgroup; once it was there, what is found counts, too.
 *
 * Without a usable /proc, only the command's process group is known of the tree. */
#pragma once

#include "base/clock.h"
#include "os/cgroup.h"
#include "os/procfs.h"

/* A process of this name that has a record lock (fcntl(2)) on its standard input is in no tree: the
 * server of "local:" outlives the rlock that started it. */
#define TREE_SPARED "rlock-server"

/* A process of such a name is the agent of a nested run, or the renewer of a script: it releases
 * its lock when whom it serves is dead, and is let off so long after the first KILL. The name gains
 * it no more than that. */
#define TREE_AGENT      "rlock-agent"
#define TREE_RENEWER    "rlock-renewer"
#define TREE_LENIENT_NS (3 * NS_PER_SEC)

#define TREE_OWNER_SIZE 1024 /* of an owner token, with its NUL */

struct tree {
    struct procfs *procfs;
    const struct cgroup *cgroup; /* all that is in it is the tree; NULL, or none: as above */
    bool strays;                 /* the tree has processes outside the cgroup, too */
    pid_t root;                  /* the supervisor; 0: it is dead */
    pid_t except;                /* the agent, which is left out, with what descends from it */
    bool lenient;                /* agents and renewers are not killed yet */
    pid_t spared;                /* one more that is left out in this way; 0: none */
    pid_t group;                 /* the command's process group, led by the command; 0: none yet */
    int leader;  /* pidfd of the command, -1: none; a later group of that number has another */
    bool reaped; /* the command was: a process of its number has taken that of an empty group */
    const char *owner;        /* the acquisition's owner token */
    unsigned long long since; /* the supervisor's start, as in struct process; 0: not known */
    const struct process_list *callers; /* the supervisor's children at its start; NULL: none */
    const struct process_list *noted;   /* processes that were seen to descend from it */
    size_t noted_count;                 /* of lists */
    struct process_list *asked; /* those that get TERM are added to it; NULL: it is not kept */
    struct moment kill_at;      /* KILL is due then, and must not wait for another look; 0: never */
};

/* Whether anything of a tree is there. */
enum tree_state {
    TREE_LIVE,   /* something was there */
    TREE_GONE,   /* nothing is left; but of a tree whose root is this process, one born while
                  * its parent ended may have been missed (kill_tree_signal()) */
    TREE_UNSEEN, /* not everything could be looked at, and nothing was found, or, by a look, only a
                  * process group that may be the command's */
};

/* Sends "signo" to all of the tree but root and except; 0 only looks. Zombies are left out. Returns
 * what was there; of a cgroup that was killed, what is left. A look for another signal than KILL
 * ends at "kill_at", incomplete. No CONT is sent from "kill_at" on. */
enum tree_state tree_signal(const struct tree *tree, int signo);
/* Sends "signo" to the command's process group; 0 only looks. Zombies count. Returns what was
 * there. */
enum tree_state tree_signal_group(const struct tree *tree, int signo);
/* Signals a process that "parent" has started, and the process group that it leads; 0 only looks.
 * UNSEEN: it could not be looked at, and got no signal. */
enum tree_state tree_signal_child(struct procfs *procfs, pid_t parent, pid_t pid, int signo);
/* Whether more than its process group can be seen. */
bool tree_is_visible(const struct tree *tree);
/* Whether the command itself has ended and waits to be reaped by its supervisor. */
bool tree_leader_ended(const struct tree *tree);
/* Sets *list to all of the tree, also zombies, sorted by their pids; false if not everything could
 * be looked at. */
bool tree_list(const struct tree *tree, struct process_list *list);
