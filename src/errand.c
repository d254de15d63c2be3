/* An errand to the store about a latch: asked, waited, asked again. */
#include "errand.h"

#include <stdio.h>

#include "dice.h"
#include "lease.h"
#include "loop.h"
#include "mem.h"

/* How often one who waits looks without being called, and by how much that is spread. */
#define LOOK_NS   (2500 * NS_PER_MS)
#define SPREAD_NS (250 * NS_PER_MS)
/* How long one request may take beyond the time the user wants to wait. */
#define LAST_CALL_NS (1 * NS_PER_SEC)
/* How long a store that has answered once may be out of reach. */
#define OUTAGE_NS (30 * NS_PER_SEC)

struct errand {
    struct loop *loop;
    struct store *store;
    struct errand_plan plan;
    const struct errand_events *events;
    void *arg;

    bool busy;                  /* a request is under way */
    bool listening;             /* that request, or the last */
    struct loop_timer next;     /* when to ask again */
    struct moment lasting;      /* a silent store is given up then */
    unsigned failures;          /* in a row */
    bool contacted;             /* it has answered us before */
    bool unsure;                /* it may have done it without our knowing */
    char word[LATCH_WORD_SIZE]; /* of the latch waited for, "": not seen yet */
    char trouble[256];
};

static struct moment now_of(const struct errand *errand)
{
    return loop_now(errand->loop);
}

static void end(struct errand *errand, enum errand_ending ending, const struct answer *answer)
{
    struct errand_end last = {ending, *answer};

    loop_disarm(errand->loop, &errand->next);
    store_on_poke(errand->store, NULL, NULL);
    errand->events->over(errand->arg, &last);
}

static bool time_is_up(const struct errand *errand)
{
    return !errand->plan.wait || moment_reached(errand->plan.wait_until, now_of(errand));
}

static void answered(void *arg, const struct answer *answer);

/* A first look does not listen: it costs less, and the latch may be open. One that listens is made after
 * it and then again and again, so that nothing goes unnoticed in between. */
static void ask(struct errand *errand, bool listen)
{
    struct latch_request request = errand->plan.request;
    struct moment now = now_of(errand);
    struct moment until = moment_plus(now, errand->plan.connect_timeout);
    struct moment last_call = moment_plus(now, LAST_CALL_NS);

    if (errand->plan.wait)
        until = moment_min(
            until, errand->plan.wait_until.ns > last_call.ns ? errand->plan.wait_until : last_call);
    request.listen = errand->listening = listen;
    errand->busy = true;
    loop_disarm(errand->loop, &errand->next);
    store_latch(errand->store, &request, until, answered, errand);
}

/* As a keeper does it: a store that cannot be reached at first is given up at once, unless there is
 * something to lose. */
static void take_failure(struct errand *errand, const struct answer *answer)
{
    struct moment now = now_of(errand);
    bool hopeful;

    errand->unsure |= answer->maybe_done && errand->plan.request.verb >= LATCH_SET;
    hopeful = errand->contacted || errand->unsure || errand->plan.patience > 0 ||
              answer->maybe_done || answer->cause == CAUSE_NOT_READY;
    if (!hopeful || answer->cause == CAUSE_DENIED || moment_reached(errand->lasting, now) ||
        (errand->plan.wait && time_is_up(errand))) {
        end(errand, ERRAND_FAILED, answer);
        return;
    }
    if (strcmp(errand->trouble, answer->text) != 0) {
        snprintf(errand->trouble, sizeof errand->trouble, "%s", answer->text);
        errand->events->trouble(errand->arg, answer->text);
    }
    loop_arm(errand->loop, &errand->next,
             moment_plus(now, lease_backoff(errand->failures++, dice())));
}

static void wait_on(struct errand *errand, const struct answer *answer)
{
    struct moment due = moment_plus(now_of(errand), dice_spread(LOOK_NS, SPREAD_NS));

    if (time_is_up(errand)) {
        end(errand, ERRAND_CLOSED, answer);
    } else if (!errand->listening) {
        ask(errand, true);
    } else {
        errand->events->waiting(errand->arg, answer);
        loop_arm(errand->loop, &errand->next, moment_min(due, errand->plan.wait_until));
    }
}

/* Only a latch that says of itself that it is open is open, and only the one that was seen first. */
static void take_look(struct errand *errand, const struct answer *answer)
{
    const struct latch_state *latch = &answer->latch;
    bool there = answer->verdict == VERDICT_GRANTED;

    if (!there && answer->cause != CAUSE_ABSENT) {
        end(errand, ERRAND_REFUSED, answer);
    } else if (errand->word[0] && (!there || strcmp(errand->word, latch->word) != 0)) {
        end(errand, ERRAND_VANISHED, answer);
    } else if (there && latch->left == 0) {
        end(errand, ERRAND_DONE, answer);
    } else {
        if (there)
            memcpy(errand->word, latch->word, sizeof errand->word);
        wait_on(errand, answer);
    }
}

static void take_word(struct errand *errand, const struct answer *answer)
{
    /* An earlier request, whose answer was lost, has deleted it. */
    bool deleted = errand->plan.request.verb == LATCH_DELETE && errand->unsure &&
                   answer->cause == CAUSE_ABSENT;

    if (answer->verdict == VERDICT_GRANTED || deleted)
        end(errand, ERRAND_DONE, answer);
    else
        end(errand, ERRAND_REFUSED, answer);
}

static void answered(void *arg, const struct answer *answer)
{
    struct errand *errand = arg;
    int64_t patience = errand->plan.connect_timeout;

    errand->busy = false;
    if (answer->verdict == VERDICT_UNKNOWN) {
        take_failure(errand, answer);
        return;
    }
    errand->lasting = moment_plus(now_of(errand), patience > OUTAGE_NS ? patience : OUTAGE_NS);
    errand->contacted = true;
    errand->failures = 0;
    errand->trouble[0] = '\0';
    if (errand->plan.until_open)
        take_look(errand, answer);
    else
        take_word(errand, answer);
}

static void due(struct loop_timer *timer)
{
    struct errand *errand = timer->owner;

    ask(errand, errand->plan.until_open && errand->contacted && !time_is_up(errand));
}

/* Called, or cut off: in both cases the store is asked at once. */
static void poked(void *arg)
{
    struct errand *errand = arg;

    if (!errand->busy && errand->plan.until_open && errand->contacted)
        ask(errand, false);
}

struct errand *errand_start(struct loop *loop, struct store *store, const struct errand_plan *plan,
                            const struct errand_events *events, void *arg)
{
    struct errand *errand = mem_zeroed(sizeof *errand);
    int64_t patience =
        plan->patience > plan->connect_timeout ? plan->patience : plan->connect_timeout;

    *errand =
        (struct errand){.loop = loop, .store = store, .plan = *plan, .events = events, .arg = arg};
    errand->next = (struct loop_timer){.fire = due, .owner = errand};
    errand->lasting = moment_plus(moment_now(), patience);
    store_on_poke(store, poked, errand);
    ask(errand, false);
    return errand;
}

void errand_free(struct errand *errand)
{
    loop_disarm(errand->loop, &errand->next);
    free(errand);
}
