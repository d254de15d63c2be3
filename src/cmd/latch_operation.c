#include "cmd/latch_operation.h"

#include <stdio.h>

#include "base/jitter.h"
#include "base/mem.h"
#include "lock/lease.h"
#include "lock/throttle.h"
#include "net/loop.h"

/* How often a waiter asks when the store does not poke it, and by how much that is spread. */
#define LOOK_NS   (2500 * NS_PER_MS)
#define SPREAD_NS (250 * NS_PER_MS)
/* How long a store that has answered once may be out of reach. */
#define OUTAGE_NS (30 * NS_PER_SEC)

struct latch_operation {
    struct loop *loop;
    struct store *store;
    struct latch_operation_plan plan;
    const struct latch_operation_events *events;
    void *arg;

    bool busy;              /* plan.request is under way */
    struct loop_timer next; /* when to ask again */
    struct throttle pace;   /* of the requests */
    struct outage outage;
    bool unsure;                /* a request without an answer may have been executed */
    char word[LATCH_WORD_SIZE]; /* identifies the latch that was seen first; "": none yet */
};

static struct moment now_of(const struct latch_operation *operation)
{
    return loop_now(operation->loop);
}

static void end(struct latch_operation *operation, enum latch_operation_ending ending,
                const struct answer *answer)
{
    struct latch_operation_end last = {ending, *answer};

    loop_disarm(operation->loop, &operation->next);
    outage_end(&operation->outage);
    store_on_event(operation->store, NULL, NULL);
    operation->events->over(operation->arg, &last);
}

static bool time_is_up(const struct latch_operation *operation)
{
    return !operation->plan.wait || moment_reached(operation->plan.wait_until, now_of(operation));
}

/* Returns the latest moment to ask. */
static struct moment last_ask(const struct latch_operation *operation)
{
    return operation->plan.wait ? operation->plan.wait_until : MOMENT_NEVER;
}

static void answered(void *arg, const struct answer *answer);

/* The first request does not listen: it costs less, and the latch may be open. All later ones
 * listen, so that nothing goes unnoticed in between. */
static void ask(struct latch_operation *operation, bool listen)
{
    struct moment now = now_of(operation);
    struct moment until = outage_limit(&operation->outage, now, operation->plan.connect_timeout);

    if (operation->plan.wait)
        until = moment_min(until, lease_last_call(now, operation->plan.wait_until));
    operation->plan.request.listen = listen;
    operation->busy = true;
    throttle_note(&operation->pace, now);
    loop_disarm(operation->loop, &operation->next);
    store_start(operation->store, &(struct operation){.verb = VERB_LATCH,
                                                      .latch = &operation->plan.request,
                                                      .until = until,
                                                      .done = answered,
                                                      .arg = operation});
}

static void take_failure(struct latch_operation *operation, const struct answer *answer)
{
    struct moment now = now_of(operation);
    bool late = operation->plan.wait && time_is_up(operation);

    operation->unsure |= answer->maybe_done && operation->plan.request.verb >= LATCH_SET;
    if (!late && outage_may_pass(&operation->outage, now, answer))
        loop_arm(operation->loop, &operation->next,
                 moment_min(outage_note(&operation->outage, now, answer), last_ask(operation)));
    else
        end(operation, LATCH_OPERATION_FAILED, outage_give_up(&operation->outage, now, answer));
}

static void wait_on(struct latch_operation *operation, const struct answer *answer)
{
    struct moment due = moment_plus(now_of(operation), jitter_spread(LOOK_NS, SPREAD_NS));

    if (time_is_up(operation)) {
        end(operation, LATCH_OPERATION_CLOSED, answer);
    } else if (!operation->plan.request.listen) {
        ask(operation, true);
    } else {
        operation->events->waiting(operation->arg, answer);
        loop_arm(operation->loop, &operation->next, moment_min(due, operation->plan.wait_until));
    }
}

/* A latch is open only if the store says so, and only if it is the one that was seen first. */
static void take_look(struct latch_operation *operation, const struct answer *answer)
{
    const struct latch_state *latch = &answer->latch;
    bool there = answer->verdict == VERDICT_GRANTED;

    if (!there && answer->cause != CAUSE_ABSENT) {
        end(operation, LATCH_OPERATION_REFUSED, answer);
    } else if (operation->word[0] && (!there || strcmp(operation->word, latch->word) != 0)) {
        end(operation, LATCH_OPERATION_VANISHED, answer);
    } else if (there && latch->left == 0) {
        end(operation, LATCH_OPERATION_DONE, answer);
    } else {
        if (there)
            memcpy(operation->word, latch->word, sizeof operation->word);
        wait_on(operation, answer);
    }
}

static void take_word(struct latch_operation *operation, const struct answer *answer)
{
    /* An earlier request, whose answer was lost, has deleted the latch. */
    bool deleted = operation->plan.request.verb == LATCH_DELETE && operation->unsure &&
                   answer->cause == CAUSE_ABSENT;

    if (answer->verdict == VERDICT_GRANTED || deleted)
        end(operation, LATCH_OPERATION_DONE, answer);
    else
        end(operation, LATCH_OPERATION_REFUSED, answer);
}

static void answered(void *arg, const struct answer *answer)
{
    struct latch_operation *operation = arg;

    operation->busy = false;
    if (answer->verdict == VERDICT_UNKNOWN) {
        take_failure(operation, answer);
        return;
    }
    outage_answered(&operation->outage, now_of(operation));
    if (operation->plan.until_open)
        take_look(operation, answer);
    else
        take_word(operation, answer);
}

static void timer_due(struct loop_timer *timer)
{
    struct latch_operation *operation = timer->owner;

    ask(operation,
        operation->plan.until_open && operation->outage.contacted && !time_is_up(operation));
}

/* Asks the store at once, as far as the throttle allows. */
static void poked(void *arg)
{
    struct latch_operation *operation = arg;
    struct moment next = throttle_next(&operation->pace);

    if (operation->busy || !operation->plan.until_open || !operation->outage.contacted)
        return;
    if (moment_reached(next, now_of(operation)))
        ask(operation, false);
    else
        loop_arm(operation->loop, &operation->next, moment_min(operation->next.due, next));
}

static const struct store_events store_events = {.poked = poked};

struct latch_operation *latch_operation_start(struct loop *loop, struct store *store,
                                              const struct latch_operation_plan *plan,
                                              const struct latch_operation_events *events,
                                              void *arg)
{
    struct latch_operation *operation = mem_zeroed(sizeof *operation);
    *operation = (struct latch_operation){
        .loop = loop, .store = store, .plan = *plan, .events = events, .arg = arg};
    operation->next = (struct loop_timer){.fire = timer_due, .owner = operation};
    outage_begin(&operation->outage, loop, moment_now(), plan->server_wait,
                 plan->connect_timeout > OUTAGE_NS ? plan->connect_timeout : OUTAGE_NS,
                 &events->outage, arg);
    store_on_event(store, &store_events, operation);
    ask(operation, false);
    return operation;
}

void latch_operation_free(struct latch_operation *operation)
{
    loop_disarm(operation->loop, &operation->next);
    outage_end(&operation->outage);
    free(operation);
}
