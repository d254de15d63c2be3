/* Ending a command and all that it started, in time: TERM, and KILL when the moment has come. */
#ifndef RLOCK_STOP_H
#define RLOCK_STOP_H

#include "child.h"
#include "tree.h"

struct stop {
    struct tree tree;
    struct child *child;   /* its leader */
    struct moment kill_at; /* may be changed while it is going on */
    struct moment give_up; /* once killing: when to stop hoping */
    bool killing;
};

enum stop_state {
    STOP_GOING, /* call again at stop_next(), or when a child has ended */
    STOP_DONE,  /* no process of the tree is left */
    STOP_STUCK, /* some could not be killed */
};

/* Sends "signo" to all of the tree; 0 only counts. Returns how many live processes were found. */
int stop_send(const struct stop *stop, int signo);
/* Sends TERM to the tree, and CONT, so that what is stopped can clean up; or KILL, without letting it
 * run, if kill_at has been reached. The owner of tree, child and kill_at is the caller. */
void stop_begin(struct stop *stop, struct moment now);
/* Looks how far it is, and goes on with it. */
enum stop_state stop_turn(struct stop *stop, struct moment now);
struct moment stop_next(const struct stop *stop, struct moment now);

#endif
