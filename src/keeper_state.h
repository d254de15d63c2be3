/* The insides of a keeper, for its own files: keeper.c (what drives it, and its end), keeper_claim.c (trying
 * and waiting) and keeper_lease.c (holding, renewing, losing). */
#ifndef RLOCK_KEEPER_STATE_H
#define RLOCK_KEEPER_STATE_H

#include "keeper.h"
#include "loop.h"

/* How long one request may take beyond the time the user wants to wait. */
#define LAST_CALL_NS (1 * NS_PER_SEC)

enum state {
    TRYING,     /* an acquisition is under way, or due after a failure */
    WAITING,    /* queued, until poked or due */
    CONFIRMING, /* granted, but so late that it is renewed before it is called held */
    HELD,
    LOST,
    RELEASING,
    OVER,
};

struct keeper {
    struct loop *loop;
    struct store *store;
    struct keeper_plan plan;
    const struct keeper_events *events;
    void *arg;

    enum state state;
    bool busy;              /* a request is under way */
    struct moment sent;     /* when it was */
    struct loop_timer next; /* the next thing to do by ourselves */
    struct loop_timer end;  /* the lease's, while held */
    unsigned failures;      /* in a row */
    struct moment lasting;  /* while trying: a silent store is given up then */
    struct answer refusal;  /* the latest */
    bool contacted;         /* it has answered us before */
    bool unsure;            /* an acquisition may have been granted without our knowing */
    struct moment until;    /* the latest acquisition or renewal is given up */
    struct moment straying; /* one that was not answered may be executed until then */
    bool on_hold;           /* no renewals */
    bool lost;              /* and told so */
    bool again;             /* after the release: try again */
    bool used; /* what is released has done its work: it is kept for as long as asked for */
    bool release_unanswered; /* one was sent before: that nothing is there proves that it worked */
    struct moment release_until;
    struct keeper_end result;
    char trouble[256];
    struct lock_grant grants[LOCK_KEYS_MAX]; /* while held */
};

static inline struct moment keeper_now(const struct keeper *keeper)
{
    return loop_now(keeper->loop);
}

/* The one under way was answered, or given up. */
static inline void keeper_note_stray(struct keeper *keeper, const struct answer *answer)
{
    if (answer->maybe_done)
        keeper->straying = keeper->until;
}

/* Whether something may be left in the store, or come to it yet, if nothing is released. */
static inline bool keeper_may_leave_traces(const struct keeper *keeper)
{
    return keeper->unsure || !moment_reached(keeper->straying, keeper_now(keeper));
}

/* keeper.c: the next thing to do by ourselves; soon, after one more failure; the same, and told once; the
 * end for a reason that is known already, what may be left in the store goes first unless all is
 * "clean". */
void keeper_schedule(struct keeper *keeper, struct moment due);
void keeper_retry(struct keeper *keeper);
void keeper_meet_trouble(struct keeper *keeper, const char *why);
void keeper_end_with(struct keeper *keeper, enum keeper_ending ending, const struct answer *why,
                     bool clean);
void keeper_send_release(struct keeper *keeper);

/* keeper_claim.c. A first try does not listen: it costs less, and most are granted. One that listens is
 * made after a refusal and with every heartbeat, so that no release goes unnoticed in between. */
void keeper_try(struct keeper *keeper, bool listen);
/* The user's time is up. */
void keeper_give_up_waiting(struct keeper *keeper);

/* keeper_lease.c. */
void keeper_begin_holding(struct keeper *keeper, const struct lock_grant *grants);
void keeper_renew(struct keeper *keeper);
void keeper_send_renewal(struct keeper *keeper, store_done *done);
void keeper_lose(struct keeper *keeper, const char *why);
void keeper_lease_over(struct loop_timer *timer);
void keeper_describe_loss(const struct keeper *keeper, const struct answer *answer, char *why,
                          size_t size);

#endif
