/* Ending a command and all that it started, in time: TERM, and KILL when the moment has come. */
#pragma once

#include "os/child.h"
#include "os/tree.h"

struct stop {
    struct tree tree;          /* its root is this process; "kill_at" may be changed meanwhile */
    const struct child *child; /* its leader */
    bool killing;
    struct patience killed; /* once killing */
    int64_t death;          /* of that, when a process had ended last, or was let off */
};

enum stop_state {
    STOP_GOING, /* call again at stop_next(), or when a child has ended */
    STOP_DONE,  /* no process of the tree is left */
    STOP_STUCK, /* some do not die of KILL, or could not be looked at */
};

/* Sends "signo" to all of a tree whose root is this process; 0 only looks. TREE_GONE is
 * certain, if all children that had ended before were reaped. */
enum tree_state stop_send(const struct tree *tree, int signo);
/* Sends TERM to all of any tree, and CONT, so that stopped processes can clean up: not when it is
 * time to KILL. */
enum tree_state stop_ask(const struct tree *tree);
/* Looks for processes that are left, and kills them when it is time. */
enum stop_state stop_turn(struct stop *stop, struct moment now);
/* Notes that a process has ended and was reaped. A tree that continues to fork is never STOP_STUCK;
 * the caller decides when to stop killing it. */
void stop_note_death(struct stop *stop);
struct moment stop_next(const struct stop *stop, struct moment now);
