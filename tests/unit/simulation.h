/* A store that is a real lock server, only elsewhere: requests and answers are late, lost, cut off,
 * as chance has it; the server's clock runs fast, and somebody else wants the same lock all the
 * time. Some servers forget everything now and then, and grant nothing new for a while. Some grant
 * locks to sessions: for less time than was asked for, another time with each renewal, counted from
 * a heartbeat; and sessions get lost. All others hand the lock over by a message, which may be
 * lost, late, doubled, or forged. The simulation knows who really holds the lock, and accuses a
 * caller who believes otherwise. */
#ifndef SIMULATION_H
#define SIMULATION_H

#include "fake_loop.h"
#include "rules/handover.h"
#include "store/store.h"

#define SIMULATION_EVENTS 64

enum simulation_kind {
    SIMULATION_FREE,
    SIMULATION_ACQUIRE,
    SIMULATION_RENEW,
    SIMULATION_RELEASE,
    SIMULATION_ANSWER,
    SIMULATION_MESSAGE,
    SIMULATION_OTHER
};

struct simulation {
    struct store base;
    struct loop *loop;
    unsigned seed;
    unsigned failing; /* of 16 requests, so many fare badly */

    /* The server. */
    enum { NO_OWNER, CALLER, OTHER } holder;
    struct moment expires;
    uint64_t fence;
    struct moment barred; /* the caller's acquisitions until then */
    bool queued;
    bool forgetful;
    bool in_sessions;
    unsigned short_grants, sessions_lost;
    int was_holder;                    /* when it forgot */
    struct moment grace;               /* nothing new is granted until then */
    char offered[HANDOVER_TOKEN_SIZE]; /* with the caller's place; "": nothing */
    struct moment place_until;         /* as long as the caller waits without a call */
    struct moment offer_until;         /* until when a hand-over lasts */
    unsigned handed_over;
    bool given_back; /* for good by the caller, since it has forgotten all */

    /* Messages on their way, and future events. */
    struct simulation_event {
        struct loop_timer timer;
        enum simulation_kind kind; /* FREE: not in use */
        struct simulation *sim;
        int64_t lease;
        struct moment sent, not_after;
        bool uncertain, in_time;
        bool claims;     /* it says what was granted */
        unsigned number; /* of the request */
        bool answered;   /* by an ANSWER of its own */
        struct moment answer_at;
        char text[64];                   /* a message */
        char token[HANDOVER_TOKEN_SIZE]; /* of an acquisition */
    } events[SIMULATION_EVENTS];
    struct answer answer; /* to the request under way */
    store_done *done;     /* NULL: none is */
    void *done_arg;
    unsigned number;
    bool acquiring;           /* it is to acquire */
    bool releasing;           /* or to release */
    bool hearing;             /* a message */
    struct handover handover; /* as the store knows it */
    int64_t asked;            /* ns: the lease of the latest acquisition */
    bool owed; /* a release: as far as the answers tell, the caller may hold the lock */

    /* The caller's belief, set by the test that listens to it. */
    struct moment held_until; /* in the past: not held */
    uint64_t held_fence;
    bool quiet; /* no other owner comes any more */
    const char *fault;
    char log[4000]; /* the events, and when */
};

/* To be zeroed before. */
void simulation_begin(struct simulation *sim, struct loop *loop, unsigned seed);
unsigned simulation_chance(struct simulation *sim, unsigned limit);
void simulation_accuse(struct simulation *sim, const char *fault);
/* One more word for the log; "when": by the server's time. */
void simulation_log(struct simulation *sim, struct moment when, const char *what);

#endif
