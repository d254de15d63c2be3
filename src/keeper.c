/* One lock's life: tried for, waited for, held, renewed, lost, given back. */
#include "keeper.h"
#include "dice.h"
#include "lease.h"
#include "loop.h"
#include "mem.h"

#include <stdio.h>

/* How often a waiter calls, and by how much that is spread. The store keeps its place for 7 s. */
#define HEARTBEAT_NS (2500 * NS_PER_MS)
#define SPREAD_NS    (250 * NS_PER_MS)
/* How long one request may take beyond the time the user wants to wait. */
#define LAST_CALL_NS (1 * NS_PER_SEC)
/* For the answer to a request that is under way when the user wants to go. A server that has yet to write
 * it when the connection closes drops that connection, with the farewell in it unread. */
#define PARTING_NS (200 * NS_PER_MS)
/* One attempt to release; there may be several. */
#define RELEASE_NS (2 * NS_PER_SEC)

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
    bool busy;               /* a request is under way */
    struct moment sent;      /* when it was */
    struct loop_timer next;  /* the next thing to do by ourselves */
    struct loop_timer end;   /* the lease's, while held */
    unsigned failures;       /* in a row */
    struct moment lasting;   /* while trying: a silent store is given up then */
    struct answer refusal;   /* the latest */
    bool contacted;          /* it has answered us before */
    bool unsure;             /* an acquisition may have been granted without our knowing */
    bool on_hold;            /* no renewals */
    bool lost;               /* and told so */
    bool again;              /* after the release: try again */
    bool used;               /* what is released has done its work: it is kept for as long as asked for */
    bool release_unanswered; /* one was sent before: that nothing is there proves that it worked */
    struct moment release_until;
    struct keeper_end result;
    char trouble[256];
};

static void try_again(struct keeper *keeper, bool listen);
static void send_release(struct keeper *keeper);

static struct moment now_of(const struct keeper *keeper)
{
    return loop_now(keeper->loop);
}

static void schedule(struct keeper *keeper, struct moment due)
{
    loop_arm(keeper->loop, &keeper->next, due);
}

static void schedule_retry(struct keeper *keeper)
{
    schedule(keeper, moment_plus(now_of(keeper), lease_backoff(keeper->failures++, dice())));
}

/* -- the end --------------------------------------------------------------------------------- */

static void over(struct keeper *keeper)
{
    keeper->state = OVER;
    loop_disarm(keeper->loop, &keeper->next);
    loop_disarm(keeper->loop, &keeper->end);
    keeper->events->over(keeper->arg, &keeper->result);
}

static void set_result(struct keeper *keeper, enum keeper_ending ending, enum cause cause,
                       const char *text)
{
    keeper->result.ending = ending;
    keeper->result.cause = cause;
    snprintf(keeper->result.text, sizeof keeper->result.text, "%s", text);
    keeper->result.refusal = keeper->refusal;
}

static void start_release(struct keeper *keeper, struct moment until)
{
    keeper->state = RELEASING;
    keeper->release_until = until;
    keeper->failures = 0;
    loop_disarm(keeper->loop, &keeper->next);
    loop_disarm(keeper->loop, &keeper->end);
    if (!keeper->busy)
        send_release(keeper);
}

/* Ends for a reason that is known already; what may be left in the store goes first. */
static void end_with(struct keeper *keeper, enum keeper_ending ending, const struct answer *why,
                     bool clean)
{
    set_result(keeper, ending, why->cause, why->text);
    if (clean)
        over(keeper);
    else
        start_release(keeper, moment_plus(now_of(keeper), LAST_CALL_NS));
}

static bool result_is_known(const struct keeper *keeper)
{
    return keeper->result.ending != KEEPER_RELEASED;
}

/* -- holding --------------------------------------------------------------------------------- */

static void lose(struct keeper *keeper, const char *why)
{
    keeper->state = LOST;
    keeper->lost = true;
    loop_disarm(keeper->loop, &keeper->next);
    loop_disarm(keeper->loop, &keeper->end);
    keeper->events->lost(keeper->arg, why);
}

static void lease_over(struct loop_timer *timer)
{
    struct keeper *keeper = timer->owner;
    char why[300];

    snprintf(why, sizeof why, "not renewed in time%s%s", keeper->trouble[0] ? ": " : "",
             keeper->trouble);
    lose(keeper, why);
}

static void hold_from(struct keeper *keeper, struct moment sent)
{
    int64_t lease = keeper->plan.request.lease;

    keeper->failures = 0;
    keeper->trouble[0] = '\0';
    loop_arm(keeper->loop, &keeper->end, lease_end(sent, lease));
    if (keeper->plan.renew)
        schedule(keeper, lease_renew_at(sent, lease));
    else
        loop_disarm(keeper->loop, &keeper->next);
}

static void begin_holding(struct keeper *keeper, const struct answer *answer)
{
    keeper->state = HELD;
    hold_from(keeper, keeper->sent);
    keeper->events->held(keeper->arg, keeper->end.due, answer->grants);
}

/* Of several keys, says which one was lost. */
static void describe_loss(const struct keeper *keeper, const struct answer *answer, char *why,
                          size_t size)
{
    const struct lock_party *now = &answer->holder;
    const struct lock_request *request = &keeper->plan.request;
    bool several = request->key_count > 1 && answer->key < request->key_count;
    int used = snprintf(why, size, "%.80s%s", several ? request->keys[answer->key] : "",
                        several ? ": " : "");

    why += used;
    size -= (size_t)used;
    if (answer->cause == CAUSE_MISFIT)
        snprintf(why, size, "%s", answer->text);
    else if (now->owner[0] && now->who.host[0])
        snprintf(why, size, "the store has given it to %.60s@%.80s pid %ld", now->who.user,
                 now->who.host, now->who.pid);
    else if (now->owner[0])
        snprintf(why, size, "the store has given it to another holder");
    else
        snprintf(why, size, "the store does not have it any more");
}

static void renewed(void *arg, const struct answer *answer)
{
    struct keeper *keeper = arg;
    char why[400];

    keeper->busy = false;
    if (keeper->state == RELEASING) {
        send_release(keeper);
        return;
    }
    if (keeper->state != HELD)
        return; /* lost meanwhile */
    if (answer->verdict == VERDICT_GRANTED) {
        if (keeper->plan.renew)
            hold_from(keeper, keeper->sent);
        keeper->events->extended(keeper->arg, keeper->end.due);
    } else if (answer->verdict == VERDICT_REFUSED) {
        describe_loss(keeper, answer, why, sizeof why);
        lose(keeper, why);
    } else {
        if (strcmp(keeper->trouble, answer->text) != 0) {
            snprintf(keeper->trouble, sizeof keeper->trouble, "%s", answer->text);
            keeper->events->trouble(keeper->arg, answer->text);
        }
        schedule_retry(keeper);
    }
}

static void send_renewal(struct keeper *keeper, store_done *done)
{
    int64_t lease = keeper->plan.request.lease;
    struct moment now = now_of(keeper);

    keeper->busy = true;
    keeper->sent = now;
    store_renew(keeper->store, &keeper->plan.request, moment_plus(now, lease_patience(lease)), done,
                keeper);
}

/* -- trying and waiting ---------------------------------------------------------------------- */

/* The user's time is up. */
static void give_up_waiting(struct keeper *keeper)
{
    end_with(keeper, KEEPER_NOT_ACQUIRED, &keeper->refusal, false);
}

static void wait_on(struct keeper *keeper)
{
    struct moment now = now_of(keeper);
    const struct answer *refusal = &keeper->refusal;
    struct moment due =
        moment_plus(now, HEARTBEAT_NS - SPREAD_NS + 2 * SPREAD_NS * (dice() >> 16) / 65536);

    /* Only who is next minds the holder's lease, and is there on time. */
    if (refusal->position == 1 && refusal->left_ms > 0)
        due = moment_min(due, moment_plus(now, (refusal->left_ms + 2) * NS_PER_MS));
    keeper->state = WAITING;
    schedule(keeper, moment_min(due, keeper->plan.wait_until));
}

static void take_refusal(struct keeper *keeper, const struct answer *answer, bool listening)
{
    keeper->refusal = *answer;
    keeper->contacted = true;
    keeper->failures = 0;
    if (answer->cause == CAUSE_MISFIT) {
        end_with(keeper, KEEPER_FAILED, answer, true);
    } else if (!keeper->plan.wait) {
        end_with(keeper, KEEPER_NOT_ACQUIRED, answer, true);
    } else if (moment_reached(keeper->plan.wait_until, now_of(keeper))) {
        give_up_waiting(keeper);
    } else if (!listening) {
        try_again(keeper, true);
    } else {
        keeper->events->waiting(keeper->arg, answer);
        wait_on(keeper);
    }
}

/* A store that cannot be reached at first is given up at once, one that is not ready or does not answer
 * after the time to connect, one that we were in touch with after a lease: by then every holder it had
 * is gone, too. */
static bool may_pass(const struct keeper *keeper, const struct answer *answer)
{
    bool hopeful = keeper->contacted || keeper->unsure || answer->cause == CAUSE_NOT_READY;
    struct moment now = now_of(keeper);

    return hopeful && answer->cause != CAUSE_DENIED && !moment_reached(keeper->lasting, now) &&
           !(keeper->plan.wait && moment_reached(keeper->plan.wait_until, now));
}

static void take_failure(struct keeper *keeper, const struct answer *answer)
{
    keeper->unsure |= answer->maybe_done;
    if (!may_pass(keeper, answer)) {
        end_with(keeper, KEEPER_FAILED, answer, !keeper->unsure);
        return;
    }
    if (strcmp(keeper->trouble, answer->text) != 0) {
        snprintf(keeper->trouble, sizeof keeper->trouble, "%s", answer->text);
        keeper->events->trouble(keeper->arg, answer->text);
    }
    keeper->state = TRYING;
    schedule_retry(keeper);
}

static void confirmed(void *arg, const struct answer *answer);

static void take_grant(struct keeper *keeper, const struct answer *answer)
{
    int64_t lease = keeper->plan.request.lease;
    int64_t left = moment_until(now_of(keeper), lease_end(keeper->sent, lease));

    keeper->contacted = true;
    if (left > lease / 2) {
        begin_holding(keeper, answer);
    } else {
        keeper->state = CONFIRMING;
        send_renewal(keeper, confirmed);
    }
}

static void confirmed(void *arg, const struct answer *answer)
{
    struct keeper *keeper = arg;

    keeper->busy = false;
    if (keeper->state == RELEASING) {
        send_release(keeper);
    } else if (answer->verdict == VERDICT_GRANTED) {
        take_grant(keeper, answer);
    } else if (answer->verdict == VERDICT_REFUSED) {
        try_again(keeper, false);
    } else {
        keeper->unsure = true; /* it may be ours yet */
        take_failure(keeper, answer);
    }
}

static void acquired(struct keeper *keeper, const struct answer *answer, bool listening)
{
    int64_t patience = keeper->plan.request.lease > keeper->plan.connect_timeout
                           ? keeper->plan.request.lease
                           : keeper->plan.connect_timeout;

    keeper->busy = false;
    if (keeper->state == RELEASING) {
        keeper->unsure |= answer->maybe_done;
        send_release(keeper);
        return;
    }
    if (answer->verdict != VERDICT_UNKNOWN) {
        keeper->lasting = moment_plus(now_of(keeper), patience);
        keeper->unsure = false;
        keeper->trouble[0] = '\0';
    }
    switch (answer->verdict) {
    case VERDICT_GRANTED: take_grant(keeper, answer); break;
    case VERDICT_REFUSED: take_refusal(keeper, answer, listening); break;
    case VERDICT_UNKNOWN: take_failure(keeper, answer); break;
    }
}

static void acquired_plainly(void *arg, const struct answer *answer)
{
    acquired(arg, answer, false);
}

static void acquired_listening(void *arg, const struct answer *answer)
{
    acquired(arg, answer, true);
}

/* A first try does not listen: it costs less, and most are granted. One that listens is made after a
 * refusal and with every heartbeat, so that no release goes unnoticed in between. */
static void try_again(struct keeper *keeper, bool listen)
{
    struct lock_request request = keeper->plan.request;
    struct moment now = now_of(keeper);
    struct moment until = moment_plus(now, keeper->plan.connect_timeout);
    struct moment last_call = moment_plus(now, LAST_CALL_NS);

    if (keeper->plan.wait)
        until = moment_min(
            until, keeper->plan.wait_until.ns > last_call.ns ? keeper->plan.wait_until : last_call);
    request.queue = keeper->plan.wait;
    request.listen = listen;
    keeper->state = TRYING;
    keeper->busy = true;
    keeper->sent = now;
    loop_disarm(keeper->loop, &keeper->next);
    store_acquire(keeper->store, &request, until, listen ? acquired_listening : acquired_plainly,
                  keeper);
}

/* -- releasing ------------------------------------------------------------------------------- */

static void start_trying(struct keeper *keeper)
{
    keeper->again = keeper->lost = false;
    keeper->release_unanswered = false;
    try_again(keeper, false);
}

static void release_done(struct keeper *keeper)
{
    if (keeper->again)
        start_trying(keeper);
    else
        over(keeper);
}

static void released(void *arg, const struct answer *answer)
{
    struct keeper *keeper = arg;
    bool known = result_is_known(keeper) || keeper->again;
    char why[400];

    keeper->busy = false;
    if (answer->verdict == VERDICT_UNKNOWN) {
        keeper->release_unanswered |= answer->maybe_done;
        struct moment now = now_of(keeper);
        if (answer->cause != CAUSE_DENIED && !moment_reached(keeper->release_until, now)) {
            schedule_retry(keeper);
            schedule(keeper, moment_min(keeper->next.due, keeper->release_until));
            return;
        }
        /* An outage that was not noticed while waiting is none the less no contention. */
        if (keeper->result.ending == KEEPER_NOT_ACQUIRED)
            set_result(keeper, KEEPER_FAILED, answer->cause, answer->text);
        else if (!known)
            set_result(keeper, KEEPER_UNRELEASED, answer->cause, answer->text);
    } else if (answer->verdict == VERDICT_REFUSED && !known && !keeper->lost &&
               !keeper->release_unanswered) {
        describe_loss(keeper, answer, why, sizeof why);
        keeper->events->lost(keeper->arg, why);
    }
    release_done(keeper);
}

static void send_release(struct keeper *keeper)
{
    struct lock_request request = keeper->plan.request;
    struct moment now = now_of(keeper);
    struct moment until = moment_min(keeper->release_until, moment_plus(now, RELEASE_NS));

    loop_disarm(keeper->loop, &keeper->next);
    keeper->busy = true;
    request.at_least = keeper->used ? request.at_least : 0;
    request.returns = keeper->again;
    store_release(keeper->store, &request, keeper->unsure, until, released, keeper);
}

/* -- what drives it -------------------------------------------------------------------------- */

/* What was under way when the user wanted to go is not answered. */
static void part(struct keeper *keeper)
{
    keeper_farewell(keeper);
    over(keeper);
}

static void due(struct loop_timer *timer)
{
    struct keeper *keeper = timer->owner;

    if (keeper->busy) {
        if (keeper->state == RELEASING)
            part(keeper);
        return;
    }
    switch (keeper->state) {
    case WAITING:
        if (moment_reached(keeper->plan.wait_until, now_of(keeper)))
            give_up_waiting(keeper);
        else
            try_again(keeper, true);
        break;
    case TRYING: try_again(keeper, keeper->contacted && keeper->plan.wait); break;
    case HELD:
        if (!keeper->on_hold)
            send_renewal(keeper, renewed);
        break;
    case RELEASING: send_release(keeper); break;
    case CONFIRMING:
    case LOST:
    case OVER: break;
    }
}

/* Called, or cut off: in both cases the store is asked at once. */
static void poked(void *arg)
{
    struct keeper *keeper = arg;

    if (keeper->busy)
        return;
    if (keeper->state == WAITING)
        try_again(keeper, false);
    else if (keeper->state == HELD && keeper->plan.renew && !keeper->on_hold)
        send_renewal(keeper, renewed);
}

struct keeper *keeper_start(struct loop *loop, struct store *store, const struct keeper_plan *plan,
                            const struct keeper_events *events, void *arg)
{
    struct keeper *keeper = mem_zeroed(sizeof *keeper);

    *keeper =
        (struct keeper){.loop = loop, .store = store, .plan = *plan, .events = events, .arg = arg};
    keeper->next = (struct loop_timer){.fire = due, .owner = keeper};
    keeper->end = (struct loop_timer){.fire = lease_over, .owner = keeper, .urgent = true};
    keeper->lasting = moment_plus(now_of(keeper), plan->connect_timeout);
    store_on_poke(store, poked, keeper);
    start_trying(keeper);
    return keeper;
}

void keeper_free(struct keeper *keeper)
{
    loop_disarm(keeper->loop, &keeper->next);
    loop_disarm(keeper->loop, &keeper->end);
    free(keeper);
}

void keeper_verify(struct keeper *keeper)
{
    if (keeper->state == HELD && !keeper->busy)
        send_renewal(keeper, renewed);
}

void keeper_hold_renewals(struct keeper *keeper, bool hold)
{
    bool missed = keeper->on_hold && !hold && keeper->state == HELD && keeper->plan.renew;

    keeper->on_hold = hold;
    if (missed && !keeper->busy && !keeper->next.added)
        send_renewal(keeper, renewed);
}

void keeper_release(struct keeper *keeper, struct moment until, bool used)
{
    keeper->used = used;
    start_release(keeper, until);
}

void keeper_cancel(struct keeper *keeper, struct moment until)
{
    bool under_way = keeper->busy;

    set_result(keeper, KEEPER_CANCELLED, CAUSE_NONE, "");
    keeper->again = false;
    start_release(keeper, until);
    if (under_way)
        schedule(keeper, moment_min(until, moment_plus(now_of(keeper), PARTING_NS)));
}

void keeper_restart(struct keeper *keeper)
{
    keeper->again = true;
    start_release(keeper, moment_plus(now_of(keeper), LAST_CALL_NS));
}

void keeper_farewell(struct keeper *keeper)
{
    struct lock_request request = keeper->plan.request;

    request.at_least = 0;
    store_farewell(keeper->store, &request);
}
