/* One lock: waited for, held, renewed, lost, given back. The keeper is a state machine over
 * store/store.h and a loop; it knows no command, no process and no terminal. It calls its owner
 * back when something happens, and the owner decides what that means for a command. */
#ifndef RLOCK_LOCK_KEEPER_H
#define RLOCK_LOCK_KEEPER_H

#include "lock/lease.h"
#include "lock/outage.h"
#include "store/store.h"

struct keeper;

struct keeper_plan {
    /* All but "queue" and "listen". What it points to is borrowed for as long as the keeper
     * lives. */
    struct acquire_request request;
    int64_t at_least;         /* ns: of the release, where what the lock was for was done */
    bool wait;                /* false: one try */
    struct moment wait_until; /* MOMENT_NEVER: for ever */
    bool renew;
    int64_t connect_timeout; /* ns: for one attempt */
    int64_t server_wait;     /* ns: a store that is away at the start is tried again for so long */
    int64_t kill_after;      /* ns: what the lock is for takes so long to end (lease_term_at()) */
};

/* What another process has had of the lock, until it died, with the same request. */
struct keeper_past {
    struct moment began;      /* since when it was tried for */
    struct moment not_before; /* not held: what that process had asked for may be done until then */
    bool held;
    bool released;                           /* held: it may have been given back since */
    struct lease lease;                      /* held: the latest that is known of */
    int64_t waited;                          /* held: ns before it was granted */
    struct lock_grant grants[LOCK_KEYS_MAX]; /* held */
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
    char text[256], said[192]; /* as in the answer */
    enum hint hint;
    const struct answer *refusal; /* holder and position as last seen; valid during the call */
};

/* Why a lock is lost. */
struct keeper_loss {
    enum loss_cause {
        LOSS_NOT_RENEWED,    /* in time; text: why, or "" */
        LOSS_STATED,         /* text: the store's words */
        LOSS_REVOKED,        /* by: by whom; text: why; "": not told */
        LOSS_TAKEN,          /* by: the new holder; "": not known */
        LOSS_GONE,           /* the store no longer has it */
        LOSS_MIRROR_TAKEN,   /* text: the mirror's name */
        LOSS_MIRROR_DELETED, /* the same */
    } cause;
    bool kept;             /* another owner asks for it: the store has it until the release */
    size_t key;            /* the one of several keys, from 1; 0: all of them */
    const char *by, *text; /* borrowed for the call; never NULL */
};

struct keeper_events {
    /* Still waiting: the store's latest refusal. */
    void (*waiting)(void *arg, const struct answer *refusal);
    /* Held for this lease, which may be shorter than was asked for: "held" once, "extended" after
     * each renewal. forgotten: the store had lost it, and has it again. */
    void (*held)(void *arg, struct lease lease, const struct lock_grant *grants);
    void (*extended)(void *arg, struct lease lease, bool forgotten);
    /* The store does not answer as it should, and the keeper tries again; it answers again. */
    struct outage_events outage;
    /* The store says that the lock is not held, or the lease has ended without a renewal. Nothing
     * is renewed any more. keeper_release() is still due, or under way: a release finds out as
     * well. */
    void (*lost)(void *arg, const struct keeper_loss *loss);
    /* The last call. */
    void (*over)(void *arg, const struct keeper_end *end);
    /* Asked before each acquisition and of each grant: whether the owner cannot take a grant now.
     * Then the grant is given back, and nothing is acquired before keeper_resume(). NULL: it always
     * can. */
    bool (*absent)(void *arg);
};

struct keeper *keeper_start(struct loop *loop, struct store *store, const struct keeper_plan *plan,
                            const struct keeper_events *events, void *arg);
/* Goes on where another process has died: waits for the lock, in the same place of the queue; or
 * holds it, renews it at once, and calls "held" no more. No two may do so at the same time. */
struct keeper *keeper_take_over(struct loop *loop, struct store *store,
                                const struct keeper_plan *plan, const struct keeper_past *past,
                                const struct keeper_events *events, void *arg);
void keeper_free(struct keeper *keeper);

/* Why the store has not done what it was asked for lately; "": it has. */
const char *keeper_trouble(const struct keeper *keeper);

/* Renews now instead of when it is due. From then on the keeper hears of who asks for the lock. */
void keeper_verify(struct keeper *keeper);
/* While on hold, no renewal is sent; the lease runs out. */
void keeper_hold_renewals(struct keeper *keeper, bool hold);
/* Gives the lock back; "over" follows, at "until" at the latest. end: how what it was taken for
 * ended, so that plan.at_least counts unless the lock was lost; NULL: it was not done, and the
 * lock is free at once. */
void keeper_release(struct keeper *keeper, struct moment until, const struct lock_end *end);
/* Gives up waiting, or gives back an unused lock; "over" follows, at "until" at the latest. */
void keeper_cancel(struct keeper *keeper, struct moment until);
/* Gives back the unused lock and waits for it again, in its old place where the store has one. */
void keeper_restart(struct keeper *keeper);
/* Whoever was absent is back. */
void keeper_resume(struct keeper *keeper);

#endif
