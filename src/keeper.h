/* Waits for, holds, renews, loses, gives back one lock: a state machine over store.h and a loop, with
 * no process and no terminal about it. It calls back what happens; whoever started it decides what
 * that means for a command. */
#ifndef RLOCK_KEEPER_H
#define RLOCK_KEEPER_H

#include "store.h"

struct keeper;

struct keeper_plan {
    struct lock_request
        request; /* all but queue and listen: borrowed for as long as the keeper lives */
    bool wait;   /* false: one try */
    struct moment wait_until; /* MOMENT_NEVER: for ever */
    bool renew;
    int64_t connect_timeout; /* ns: a store that answers nothing at first is given up after it */
};

/* Why a keeper ended. */
struct keeper_end {
    enum keeper_ending {
        KEEPER_RELEASED,     /* given back, or gone already */
        KEEPER_NOT_ACQUIRED, /* held by others until wait_until, or one try refused */
        KEEPER_FAILED,       /* the store: see cause */
        KEEPER_CANCELLED,
        KEEPER_UNRELEASED, /* the release was not confirmed; the lease will end it */
    } ending;
    enum cause cause;
    char text[256];
    struct answer refusal; /* NOT_ACQUIRED: holder and position as last seen */
};

struct keeper_events {
    /* Still waiting: the store's latest refusal. */
    void (*waiting)(void *arg, const struct answer *refusal);
    /* Held until "deadline"; "held" once, "extended" after each renewal. forgotten: the store had lost it, and has it
     * again. */
    void (*held)(void *arg, struct moment deadline, const struct lock_grant *grants);
    void (*extended)(void *arg, struct moment deadline, bool forgotten);
    /* The store does not answer as it should; the keeper goes on trying. */
    void (*trouble)(void *arg, const char *why);
    /* The store says that it is not ours, or the lease ran out unrenewed. Nothing is renewed any more;
     * keeper_release() is still due, or under way: a release finds out as well. */
    void (*lost)(void *arg, const char *why);
    /* The last call. */
    void (*over)(void *arg, const struct keeper_end *end);
};

struct keeper *keeper_start(struct loop *loop, struct store *store, const struct keeper_plan *plan,
                            const struct keeper_events *events, void *arg);
void keeper_free(struct keeper *keeper);

/* Renews now instead of when it is due. */
void keeper_verify(struct keeper *keeper);
/* While on hold, no renewal is sent; the lease runs out. */
void keeper_hold_renewals(struct keeper *keeper, bool hold);
/* Gives the lock back; "over" follows, at "until" at the latest. used: what it was taken for was done, so
 * that request.at_least counts; in every other way out the lock is free at once. */
void keeper_release(struct keeper *keeper, struct moment until, bool used);
/* Gives up waiting, or gives back an unused lock; "over" follows, at "until" at the latest. */
void keeper_cancel(struct keeper *keeper, struct moment until);
/* Gives back the unused lock and waits for it again. */
void keeper_restart(struct keeper *keeper);
/* Nobody will wait for an answer: gives all back over a connection that is up, at once, or leaves it to
 * the lease. "over" does not follow. */
void keeper_farewell(struct keeper *keeper);

#endif
