/* The descendants of a supervisor, noted again and again while it lives: when it is dead, descent
 * cannot be seen any more, and the environment of a process is its own memory, which it may
 * overwrite (setproctitle(3)). */
#pragma once

#include "net/loop.h"
#include "os/tree.h"

struct descendants {
    struct loop *loop;
    struct tree *tree;
    struct loop_timer timer;
    struct process_list noted[2]; /* by the last two looks; the tree refers to them */
    size_t latest;
    struct moment looked; /* when the last look began */
    int64_t pause;        /* ns from one look to the next, unless there is a reason to hurry */
    int64_t least;        /* ns from one look to the next in any case, as a look takes time */
};

/* tree: borrowed; its "noted" becomes what is noted here. */
void descendants_init(struct descendants *descendants, struct loop *loop, struct tree *tree);
/* The command may be started: begins to look. */
void descendants_watch(struct descendants *descendants);
/* A process of the tree has ended: looks soon, as its children can be seen now, and not for much
 * longer. */
void descendants_hurry(struct descendants *descendants);
/* Stops looking; the processes that were noted stay. */
void descendants_stop(struct descendants *descendants);
void descendants_free(struct descendants *descendants);
