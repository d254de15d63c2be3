/* Handing over a lock: its text is written to standard output, once whoever is to renew it does. Until
 * then, it can be taken back. */
#ifndef RLOCK_DELIVERY_H
#define RLOCK_DELIVERY_H

#include "clock.h"
#include <signal.h>

struct delivery_plan {
    const char *title; /* of the lock, in messages */
    const char *text;  /* to be written; at most PIPE_BUF bytes, so that no pipe takes half of it */
    /* A channel to the renewer: it says HELD when it is there, and is told ACK when all was written,
     * or CANCEL if nothing came of it; then it gives the lock back and goes. -1: nobody renews. */
    int renewer;
    struct moment until;    /* when the lease ends */
    const sigset_t *caught; /* blocked; the fatal ones take it back */
};

enum delivery {
    DELIVERY_DONE,
    DELIVERY_FAILED,      /* it has been said why */
    DELIVERY_INTERRUPTED, /* by *signo */
};

enum delivery delivery_run(const struct delivery_plan *plan, int *signo);

#endif
