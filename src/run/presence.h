/* Whether the process at the other end of an agent's channel (the supervisor, or the printer of an
 * acquisition) runs. One that is stopped takes no grant and does not notice that its command has
 * ended; it answers a ping as soon as it is continued. */
#pragma once

#include "net/loop.h"
#include "os/procfs.h"
#include "run/channel.h"

struct presence {
    struct loop *loop;
    struct procfs *procfs;
    pid_t pid;
    struct outbox *outbox; /* of this process, to that */
    enum {
        PRESENCE_ASSUMED, /* it runs, as far as is known */
        PRESENCE_ASKED,   /* it was stopped: it must answer the ping before it counts as running */
        PRESENCE_DEAD,    /* its end of the channel is closed */
    } state;
    struct moment seen;      /* when it ran last, as far as is known */
    struct loop_timer timer; /* while a reaction is awaited: fires each 50 ms; "fire" is to set */
    struct patience waited;  /* for a reaction */
};

/* The process runs now. owner: of the timer. */
void presence_init(struct presence *presence, struct loop *loop, pid_t pid,
                   void (*fire)(struct loop_timer *timer), void *owner);
/* Looks whether it may take a grant. If it is found to be stopped, it is pinged, and false is
 * returned until presence_answered(). */
bool presence_confirm(struct presence *presence);
/* Pings it, unless a ping is unanswered. */
void presence_ask(struct presence *presence);
void presence_answered(struct presence *presence);
/* The process must react to something: starts the timer. */
void presence_expect(struct presence *presence);
/* For the timer. True: the process may still react, and the timer fires again. False: the process
 * is stopped, or has had its time. */
bool presence_wait_on(struct presence *presence);
/* The process has reacted, or need not any more. */
void presence_settle(struct presence *presence);
