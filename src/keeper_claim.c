/* How a keeper gets its lock: tries, waits in the queue, outlasts outages, takes a grant. */
#include "keeper_state.h"
#include "dice.h"
#include "lease.h"

#include <stdio.h>
#include <string.h>

/* How often a waiter calls, and by how much that is spread. The store keeps its place for 7 s. */
#define HEARTBEAT_NS (2500 * NS_PER_MS)
#define SPREAD_NS    (250 * NS_PER_MS)

/* Where nobody may be granted anything, it is the store that fails. */
static void end_refused(struct keeper *keeper, bool clean)
{
    bool held = keeper->refusal.cause != CAUSE_GRACE;

    keeper_end_with(keeper, held ? KEEPER_NOT_ACQUIRED : KEEPER_FAILED, &keeper->refusal, clean);
}

void keeper_give_up_waiting(struct keeper *keeper)
{
    end_refused(keeper, false);
}

static void wait_on(struct keeper *keeper)
{
    struct moment now = keeper_now(keeper);
    const struct answer *refusal = &keeper->refusal;
    int64_t until = refusal->cause == CAUSE_GRACE ? refusal->grace_ms : refusal->left_ms;
    struct moment due = moment_plus(now, dice_spread(HEARTBEAT_NS, SPREAD_NS));

    /* Only who is next minds when the holder's lease ends, or the server grants again, and is there on time. */
    if (refusal->position == 1 && until > 0)
        due = moment_min(due, moment_plus(now, (until + 2) * NS_PER_MS));
    keeper->state = WAITING;
    keeper_schedule(keeper, moment_min(due, keeper->plan.wait_until));
}

static void take_refusal(struct keeper *keeper, const struct answer *answer, bool listening)
{
    keeper->refusal = *answer;
    keeper->contacted = true;
    keeper->failures = 0;
    if (answer->cause == CAUSE_MISFIT) {
        keeper_end_with(keeper, KEEPER_FAILED, answer, !keeper_may_leave_traces(keeper));
    } else if (!keeper->plan.wait) {
        end_refused(keeper, !keeper_may_leave_traces(keeper));
    } else if (moment_reached(keeper->plan.wait_until, keeper_now(keeper))) {
        keeper_give_up_waiting(keeper);
    } else if (!listening) {
        keeper_try(keeper, true);
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
    struct moment now = keeper_now(keeper);

    return hopeful && answer->cause != CAUSE_DENIED && !moment_reached(keeper->lasting, now) &&
           !(keeper->plan.wait && moment_reached(keeper->plan.wait_until, now));
}

static void take_failure(struct keeper *keeper, const struct answer *answer)
{
    keeper->unsure |= answer->maybe_done;
    if (!may_pass(keeper, answer)) {
        keeper_end_with(keeper, KEEPER_FAILED, answer, !keeper_may_leave_traces(keeper));
        return;
    }
    keeper->state = TRYING;
    keeper_meet_trouble(keeper, answer->text);
}

static void confirmed(void *arg, const struct answer *answer);

static void take_grant(struct keeper *keeper, const struct answer *answer)
{
    int64_t lease = keeper->plan.request.lease;
    int64_t left = moment_until(keeper_now(keeper), lease_end(keeper->sent, lease));

    keeper->contacted = true;
    if (left > lease / 2) {
        keeper_begin_holding(keeper, answer->grants);
    } else {
        keeper->state = CONFIRMING;
        keeper_send_renewal(keeper, confirmed);
    }
}

static void confirmed(void *arg, const struct answer *answer)
{
    struct keeper *keeper = arg;

    keeper->busy = false;
    if (keeper->state == RELEASING) {
        keeper_send_release(keeper);
    } else if (answer->verdict == VERDICT_GRANTED) {
        take_grant(keeper, answer);
    } else if (answer->verdict == VERDICT_REFUSED) {
        keeper_try(keeper, false);
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
    keeper_note_stray(keeper, answer);
    if (keeper->state == RELEASING) {
        keeper->unsure |= answer->maybe_done;
        keeper_send_release(keeper);
        return;
    }
    if (answer->verdict != VERDICT_UNKNOWN) {
        keeper->lasting = moment_plus(keeper_now(keeper), patience);
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

void keeper_try(struct keeper *keeper, bool listen)
{
    struct lock_request request = keeper->plan.request;
    struct moment now = keeper_now(keeper);
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
    keeper->until = until;
    loop_disarm(keeper->loop, &keeper->next);
    store_acquire(keeper->store, &request, until, listen ? acquired_listening : acquired_plainly,
                  keeper);
}
