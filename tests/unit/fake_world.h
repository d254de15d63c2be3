/* A store that is a real lock server, only elsewhere: requests and answers are late, lost, cut off, as chance has it;
 * the server's clock runs fast, and somebody else wants the same lock all the time. Some servers forget everything now
 * and then, and grant nothing new for a while. It knows who really holds the lock, and accuses a caller who believes
 * otherwise. */
#ifndef FAKE_WORLD_H
#define FAKE_WORLD_H

#include "fake_loop.h"
#include "store.h"

#define WORLD_EVENTS 64

enum world_kind {
    WORLD_FREE,
    WORLD_ACQUIRE,
    WORLD_RENEW,
    WORLD_RELEASE,
    WORLD_ANSWER,
    WORLD_OTHER
};

struct world {
    struct store base;
    struct loop *loop;
    unsigned seed;
    unsigned weather; /* of 16 requests, so many fare badly */

    /* The server. */
    enum { NOBODY, CALLER, OTHER } holder;
    struct moment expires;
    uint64_t fence;
    struct moment barred; /* the caller's acquisitions until then */
    bool queued;
    bool forgetful;
    int was_holder;      /* when it forgot */
    struct moment grace; /* nothing new is granted until then */
    bool given_back;     /* for good by the caller, since it has forgotten all */

    /* What is on its way, and what will happen. */
    struct world_event {
        struct loop_timer timer;
        enum world_kind kind; /* FREE: not in use */
        struct world *world;
        int64_t lease;
        struct moment not_after;
        bool uncertain, in_time;
        bool claims;     /* it says what was granted */
        unsigned number; /* of the request */
        bool answered;   /* by an ANSWER of its own */
        struct moment answer_at;
    } events[WORLD_EVENTS];
    struct answer answer; /* to the request under way */
    store_done *done;     /* NULL: none is */
    void *done_arg;
    unsigned number;
    bool acquiring; /* it is to acquire */
    bool owed;      /* a release: as far as the answers tell, the caller may hold the lock */

    /* What the caller believes, as it is told by whoever listens to it. */
    struct moment held_until; /* in the past: not held */
    uint64_t held_fence;
    bool quiet; /* nobody else comes any more */
    const char *fault;
    char log[4000]; /* what happened, and when */
};

/* To be zeroed before. */
void world_begin(struct world *world, struct loop *loop, unsigned seed);
unsigned world_chance(struct world *world, unsigned limit);
void world_accuse(struct world *world, const char *fault);
/* One more word for the log; "when": by the server's time. */
void world_log(struct world *world, struct moment when, const char *what);

#endif
