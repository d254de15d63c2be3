/* Ending a command and all that it started, in time: TERM, and KILL when the moment has come. */
#pragma once

#include "os/child.h"
#include "os/tree.h"

struct kill_tree {
    struct tree tree;            /* its root is this process; "kill_at" may be changed meanwhile */
    const struct child *child;   /* its leader */
    bool killing;                /* KILL was sent */
    struct patience killing_for; /* ns since the first KILL; see base/clock.h */
    int64_t death;               /* its ns when a process had ended last, or was let off */
};

enum kill_tree_state {
    KILL_TREE_GOING, /* call again at kill_tree_next(), or when a child has ended */
    KILL_TREE_DONE,  /* no process of the tree is left */
    KILL_TREE_STUCK, /* some do not die of KILL, or could not be looked at */
};

/* Sends "signo" to all of a tree whose root is this process; 0 only looks. Returns what was there.
 * TREE_GONE is certain, if all children that had ended before were reaped. */
enum tree_state kill_tree_signal(const struct tree *tree, int signo);
/* Sends TERM to all of any tree, and CONT, so that stopped processes can clean up; not for use when
 * it is time to KILL. Returns what was there. */
enum tree_state kill_tree_terminate(const struct tree *tree);
/* Looks for processes that are left, and sends them KILL from "kill_at" on. */
enum kill_tree_state kill_tree_turn(struct kill_tree *stop, struct moment now);
/* Notes that a process has ended and was reaped. A tree that continues to fork is never
 * KILL_TREE_STUCK; the caller decides when to stop killing it. */
void kill_tree_note_death(struct kill_tree *stop);
/* Returns when to call kill_tree_turn() again, unless a child ends before. */
struct moment kill_tree_next(const struct kill_tree *stop, struct moment now);
