/* One lock's life: tried for, waited for, held, renewed, lost, given back. */
#include "keeper.h"
#include "dice.h"
#include "keeper_state.h"
#include "lease.h"
#include "mem.h"

#include <stdio.h>
#include <string.h>

/* For the answer to a request that is under way when the user wants to go. A server that has yet to write
 * it when the connection closes drops that connection, with the farewell in it unread. */
#define PARTING_NS (200 * NS_PER_MS)
/* One attempt to release; there may be several. */
#define RELEASE_NS (2 * NS_PER_SEC)

void keeper_schedule(struct keeper *keeper, struct moment due)
{
    loop_arm(keeper->loop, &keeper->next, due);
}

void keeper_retry(struct keeper *keeper)
{
    keeper_schedule(keeper,
                    moment_plus(keeper_now(keeper), lease_backoff(keeper->failures++, dice())));
}

void keeper_meet_trouble(struct keeper *keeper, const char *why)
{
    if (strcmp(keeper->trouble, why) != 0) {
        snprintf(keeper->trouble, sizeof keeper->trouble, "%s", why);
        keeper->events->trouble(keeper->arg, why);
    }
    keeper_retry(keeper);
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
        keeper_send_release(keeper);
}

/* Ends for a reason that is known already; what may be left in the store goes first. */
void keeper_end_with(struct keeper *keeper, enum keeper_ending ending, const struct answer *why,
                     bool clean)
{
    set_result(keeper, ending, why->cause, why->text);
    if (clean)
        over(keeper);
    else
        start_release(keeper, moment_plus(keeper_now(keeper), LAST_CALL_NS));
}

static bool result_is_known(const struct keeper *keeper)
{
    return keeper->result.ending != KEEPER_RELEASED;
}

/* -- releasing ------------------------------------------------------------------------------- */

static void start_trying(struct keeper *keeper)
{
    keeper->again = keeper->lost = false;
    keeper->release_unanswered = false;
    keeper_try(keeper, false);
}

static void release_done(struct keeper *keeper)
{
    /* One that was not answered may be executed yet, and must not find what is acquired next. */
    if (keeper->again && keeper->release_unanswered &&
        !moment_reached(keeper->release_until, keeper_now(keeper)))
        keeper_schedule(keeper, keeper->release_until);
    else if (keeper->again)
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
        struct moment now = keeper_now(keeper);
        if (answer->cause != CAUSE_DENIED && !moment_reached(keeper->release_until, now)) {
            keeper_retry(keeper);
            keeper_schedule(keeper, moment_min(keeper->next.due, keeper->release_until));
            return;
        }
        /* An outage that was not noticed while waiting is none the less no contention. */
        if (keeper->result.ending == KEEPER_NOT_ACQUIRED)
            set_result(keeper, KEEPER_FAILED, answer->cause, answer->text);
        else if (!known)
            set_result(keeper, KEEPER_UNRELEASED, answer->cause, answer->text);
    } else if (answer->verdict == VERDICT_REFUSED && !known && !keeper->lost &&
               !keeper->release_unanswered) {
        keeper_describe_loss(keeper, answer, why, sizeof why);
        keeper->events->lost(keeper->arg, why);
    }
    release_done(keeper);
}

void keeper_send_release(struct keeper *keeper)
{
    struct lock_request request = keeper->plan.request;
    struct moment now = keeper_now(keeper);
    struct moment until = moment_min(keeper->release_until, moment_plus(now, RELEASE_NS));

    loop_disarm(keeper->loop, &keeper->next);
    keeper->busy = true;
    request.at_least = keeper->used ? request.at_least : 0;
    request.in_time = keeper->again;
    /* Whoever acquires anew does not mind if an older acquisition of the same owner does it. */
    bool uncertain = keeper->unsure || (!keeper->again && keeper_may_leave_traces(keeper));
    store_release(keeper->store, &request, uncertain, until, released, keeper);
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
        if (moment_reached(keeper->plan.wait_until, keeper_now(keeper)))
            keeper_give_up_waiting(keeper);
        else
            keeper_try(keeper, true);
        break;
    case TRYING: keeper_try(keeper, keeper->contacted && keeper->plan.wait); break;
    case HELD:
        if (!keeper->on_hold)
            keeper_renew(keeper);
        break;
    case RELEASING:
        if (keeper->again && moment_reached(keeper->release_until, keeper_now(keeper)))
            start_trying(keeper);
        else
            keeper_send_release(keeper);
        break;
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
        keeper_try(keeper, false);
    else if (keeper->state == HELD && keeper->plan.renew && !keeper->on_hold)
        keeper_renew(keeper);
}

struct keeper *keeper_start(struct loop *loop, struct store *store, const struct keeper_plan *plan,
                            const struct keeper_events *events, void *arg)
{
    struct keeper *keeper = mem_zeroed(sizeof *keeper);

    *keeper =
        (struct keeper){.loop = loop, .store = store, .plan = *plan, .events = events, .arg = arg};
    keeper->next = (struct loop_timer){.fire = due, .owner = keeper};
    keeper->end = (struct loop_timer){.fire = keeper_lease_over, .owner = keeper, .urgent = true};
    keeper->lasting = moment_plus(keeper_now(keeper), plan->connect_timeout);
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
        keeper_renew(keeper);
}

void keeper_hold_renewals(struct keeper *keeper, bool hold)
{
    bool missed = keeper->on_hold && !hold && keeper->state == HELD && keeper->plan.renew;

    keeper->on_hold = hold;
    if (missed && !keeper->busy && !keeper->next.added)
        keeper_renew(keeper);
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
        keeper_schedule(keeper, moment_min(until, moment_plus(keeper_now(keeper), PARTING_NS)));
}

void keeper_restart(struct keeper *keeper)
{
    keeper->again = true;
    start_release(keeper, moment_plus(keeper_now(keeper), LAST_CALL_NS));
}

void keeper_farewell(struct keeper *keeper)
{
    struct lock_request request = keeper->plan.request;

    request.at_least = 0;
    store_farewell(keeper->store, &request);
}
