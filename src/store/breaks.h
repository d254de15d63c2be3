/* Tells the owner of a connection that it broke: at once, as the server may have lost its data; but
 * after a pause where it breaks again and again, as behind a proxy that ends each one. */
#pragma once

#include "net/loop.h"

struct breaks {
    struct loop *loop;
    void (*tell)(void *arg); /* a connection broke, perhaps some time ago */
    void *arg;
    struct moment up_since;
    unsigned count;          /* of connections that were not steady, in a row */
    struct loop_timer timer; /* until it is told */
};

/* tell: see breaks_down(). breaks_cancel() at the end. */
void breaks_init(struct breaks *breaks, struct loop *loop, void (*tell)(void *arg), void *arg);
/* A connection is up from now on. */
void breaks_up(struct breaks *breaks);
/* The connection broke: calls "tell" at once, or if it was not steady, after a pause that grows. */
void breaks_down(struct breaks *breaks);
/* Calls "tell" when the loop turns. */
void breaks_soon(struct breaks *breaks);
/* Nothing needs to be told any more. */
void breaks_cancel(struct breaks *breaks);
