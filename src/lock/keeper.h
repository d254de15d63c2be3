/* One lock: waited for, held, renewed, lost, released. The keeper is a state machine over
 * store/store.h and a loop; it knows no command, no process and no terminal. Its owner hears of
 * events by callbacks, and decides what they mean for a command. */
#pragma once

#include "lock/lease.h"
#include "lock/outage.h"
#include "store/store.h"

struct keeper;

struct keeper_plan {
    /* All but "queue", "listen" and "numbered". The texts are borrowed for as long as the keeper
     * lives. */
    struct acquire_request request;
    /* The same owner acquires elsewhere, too: on other hosts, or after this one was started again.
     */
    bool reused;
    int64_t at_least;         /* ns for which a lock that was used stays after its acquisition */
    bool wait;                /* false: one try */
    struct moment wait_until; /* MOMENT_NEVER: for ever */
    bool renew;
    bool whole; /* a whole lease is promised from the grant on: the lock is not handed over */
    int64_t connect_timeout; /* ns: for one attempt */
    int64_t server_wait;     /* ns: a store that is away at the start is tried again for so long */
    int64_t kill_after;      /* ns that the command may take to end (lease_term_at()) */
};

/* The share of another process in the same lock, until it died. */
struct keeper_past {
    struct moment began; /* since when it was tried for */
    bool held;
    bool released;                           /* held: it may have been released since */
    struct lease lease;                      /* held: the latest that is known */
    int64_t waited;                          /* held: ns before it was granted */
    struct lock_grant grants[LOCK_KEYS_MAX]; /* held */
};

/* Why a keeper ended. */
struct keeper_end {
    enum keeper_ending {
        KEEPER_RELEASED,     /* or the lock was gone already */
        KEEPER_NOT_ACQUIRED, /* held by others until wait_until, or one try refused */
        KEEPER_FAILED,       /* the store: see cause */
        KEEPER_CANCELLED,
        KEEPER_UNRELEASED, /* the release was not confirmed; the lease will end it */
    } ending;
    /* FAILED, UNRELEASED: the store's answer; text "": see "far". Valid during the call, as the
     * next one is. */
    const struct answer *why;
    const struct answer *refusal; /* the latest */
    struct moment refused_at;     /* when that came */
    /* FAILED, as a lease of this length cannot be kept at this round trip, in ns; "needed" would be
     * enough, 0: the store grants no more. */
    struct {
        int64_t round_trip, lease, needed;
    } far;
};

/* Why a lock is lost. */
struct keeper_loss {
    enum loss_cause {
        LOSS_NOT_RENEWED, /* in time; text: why, or "" */
        LOSS_STATED,      /* text: the store's words */
        LOSS_REVOKED,     /* by: by whom; text: why; "": not told */
        LOSS_TAKEN,       /* by: the new holder */
        LOSS_TAKEN_BY_UNKNOWN,
        LOSS_GONE,           /* the store no longer has it */
        LOSS_MIRROR_TAKEN,   /* text: the mirror's name */
        LOSS_MIRROR_DELETED, /* the same */
        LOSSES
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
    /* The store fails, and the keeper tries again; the store answers again. */
    struct outage_events outage;
    /* The store says that the lock is not held, or the lease has ended without a renewal. Nothing
     * is renewed any more. keeper_release() must follow, or is under way: a release may report a
     * loss, too. */
    void (*lost)(void *arg, const struct keeper_loss *loss);
    /* The last call. */
    void (*over)(void *arg, const struct keeper_end *end);
    /* Asked before each acquisition and after each grant: whether the owner cannot take a grant
     * now. Then the grant is released, and nothing is acquired before keeper_resume(). NULL: it
     * always can. */
    bool (*absent)(void *arg);
};

/* Begins to acquire. plan: copied, its texts borrowed. The store and the events are borrowed, too;
 * the keeper becomes the listener of the store. Release with keeper_free(). */
struct keeper *keeper_start(struct loop *loop, struct store *store, const struct keeper_plan *plan,
                            const struct keeper_events *events, void *arg);
/* Continues for another process that has died: waits for the lock, in the same place of the queue;
 * or holds it, renews it at once, and does not call "held". No two may do so at the same time. */
struct keeper *keeper_take_over(struct loop *loop, struct store *store,
                                const struct keeper_plan *plan, const struct keeper_past *past,
                                const struct keeper_events *events, void *arg);
/* Frees the keeper, in any state, and says nothing more: what is in the store stays there. */
void keeper_free(struct keeper *keeper);

/* Returns the text of the store's latest failure; "": it has answered since, or never failed. */
const char *keeper_trouble(const struct keeper *keeper);

/* Renews a held lock now instead of when that is due; "extended" or "lost" tells. */
void keeper_verify(struct keeper *keeper);
/* From now on no renewal is sent when one is due; the lease runs out. */
void keeper_hold_renewals(struct keeper *keeper);
/* Ends keeper_hold_renewals(); a renewal that has been due meanwhile is sent now. */
void keeper_allow_renewals(struct keeper *keeper);
/* Releases the lock, with attempts until "until"; "over" follows, at "until" at the latest, or soon
 * after a stand-still that lasted beyond it. end: how the command ended, so that plan.at_least
 * counts unless the lock was lost; NULL: there was no command, and the lock is free at once. */
void keeper_release(struct keeper *keeper, struct moment until, const struct lock_end *end);
/* Stops waiting, or releases an unused lock; "over" follows, as for keeper_release(). */
void keeper_cancel(struct keeper *keeper, struct moment until);
/* Releases the unused lock and waits for it again, in its old place where the store has one. */
void keeper_restart(struct keeper *keeper);
/* The absent owner has returned. */
void keeper_resume(struct keeper *keeper);
