/* For an agent: whether its peer, the supervisor or a printer, runs. A peer that is stopped takes
 * no grant and does not notice that its command has ended; it answers a ping as soon as it is
 * continued. */
#pragma once

#include "net/loop.h"
#include "os/procfs.h"
#include "run/channel.h"

struct presence {
    struct loop *loop;
    struct procfs *procfs;
    pid_t pid;
    struct outbox *outbox; /* of this process, to the peer */
    enum {
        PRESENCE_ASSUMED, /* it runs, as far as is known */
        PRESENCE_ASKED,   /* it was stopped: it must answer the ping before it counts as running */
        PRESENCE_DEAD,    /* its end of the channel is closed */
    } state;
    struct moment seen;      /* when it ran last, as far as is known */
    struct loop_timer timer; /* armed while a reaction is awaited: fires each 50 ms */
    struct patience waited;  /* for a reaction */
};

/* The peer "pid" runs now. fire, owner: of the timer; in "fire" the caller looks for the reaction
 * that it awaits, and calls presence_may_react(). procfs and outbox are set before, borrowed. */
void presence_init(struct presence *presence, struct loop *loop, pid_t pid,
                   void (*fire)(struct loop_timer *timer), void *owner);
/* Looks whether the peer can take a grant now. If it is found to be stopped, it is pinged, and
 * false is returned until presence_answered(). */
bool presence_confirm(struct presence *presence);
/* Pings the peer, unless a ping is unanswered, or the peer is dead. */
void presence_ask(struct presence *presence);
/* The peer has answered a ping: it runs. */
void presence_answered(struct presence *presence);
/* The peer must react to something: starts the timer, and the peer's time anew. */
void presence_expect(struct presence *presence);
/* For the timer's "fire". True: the peer may still react, and the timer was armed again. False: the
 * peer is stopped, or has had its time. */
bool presence_may_react(struct presence *presence);
/* The peer has reacted, or need not any more: stops the timer. */
void presence_settle(struct presence *presence);
