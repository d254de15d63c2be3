/* One of several keys, any of which will do. */
#include "store/any_part.h"

#include "net/loop.h"

/* How long to give back at most. */
#define LEAVE_NS (2 * NS_PER_SEC)
/* How often to try again to give back what may have been granted. */
#define STRAY_NS NS_PER_SEC
/* A request that has no end may be executed for so long after it was given up. */
#define ANY_TIME_NS (60 * NS_PER_SEC)

static struct moment now_of(const struct part *part)
{
    return loop_now(part->home->loop);
}

static void poked(void *arg)
{
    struct part *part = arg;

    part->poked = true;
    part->home->poked(part->home->arg);
}

bool part_open(struct part *part)
{
    static const struct store_events events = {.poked = poked};
    struct part_home *home = part->home;
    char fault[256];

    if (part->store)
        return true;
    part->store = home->open_one(home->loop, home->address, fault, sizeof fault);
    if (part->store) {
        store_on_event(part->store, &events, part);
        return true;
    }
    answer_fail(&part->answer, CAUSE_UNREACHABLE, "%s", fault);
    part->failed = true;
    part->heard = now_of(part);
    return false;
}

void part_close(struct part *part)
{
    if (part->store)
        store_close(part->store);
    part->store = NULL;
    part->doing = IDLE;
}

bool part_may_be_lock(const struct part *part)
{
    return part->hold == HOLD_LOCK || part->unsure;
}

bool part_has_something(const struct part *part)
{
    return part->hold != HOLD_NOTHING || part->unsure;
}

bool part_is_ready(const struct part *part)
{
    const struct answer *answer = &part->answer;

    return part->doing == IDLE && part->hold == HOLD_PLACE && part->heard.ns &&
           answer->verdict == VERDICT_REFUSED && answer->cause == CAUSE_HELD &&
           answer->position == 1 && answer->holders == 0 && !answer->foreign;
}

bool part_is_kept_by_another(const struct part *part)
{
    const struct answer *answer = &part->answer;

    return part->doing == IDLE && part->hold == HOLD_PLACE && part->heard.ns &&
           answer->verdict == VERDICT_REFUSED && answer->cause == CAUSE_HELD &&
           answer->position > 1 && answer->holders == 0;
}

bool part_may_be_asked(const struct part *part)
{
    return part->doing == IDLE && moment_reached(part->until_gone, now_of(part));
}

void part_begin(struct part *part, enum doing doing, struct moment until)
{
    part->doing = doing;
    part->sent = now_of(part);
    part->until = until;
}

/* An acquisition that was given up may be executed yet. */
static void note_loose(struct part *part, const struct answer *answer)
{
    struct moment until = part->until;

    if (answer->any_time)
        until = moment_plus(until, ANY_TIME_NS);
    part->unsure = true;
    part->loose_until = moment_max(part->loose_until, until);
    part->stray_until = moment_plus(part->loose_until, part->home->request.lease);
}

void part_doubt(struct part *part)
{
    if (part->hold == HOLD_LOCK) {
        part->hold = HOLD_PLACE;
        part->unsure = true;
    }
}

void part_note_sure(struct part *part)
{
    if (moment_reached(part->loose_until, part->sent))
        part->unsure = false;
}

static void acquired(void *arg, const struct answer *answer)
{
    struct part *part = arg;
    struct part_home *home = part->home;
    bool stood = part->doing == STANDING;
    bool waits = answer->cause != CAUSE_SUPERSEDED && answer->cause != CAUSE_DONE;

    part->doing = IDLE;
    part->answer = *answer;
    part->heard = now_of(part);
    part->failed = answer->verdict == VERDICT_UNKNOWN;
    if (answer->verdict == VERDICT_GRANTED) {
        part->hold = HOLD_LOCK;
        part->stray_until = moment_plus(part->heard, home->request.lease);
        part_note_sure(part);
    } else if (answer->verdict == VERDICT_REFUSED) {
        if (stood && answer->cause != CAUSE_MISFIT)
            part->hold = HOLD_PLACE;
        else if (part->hold == HOLD_LOCK)
            part->hold = HOLD_NOTHING;
        if (!waits)
            part->hold = HOLD_NOTHING;
        part->poked |= !stood && home->request.queue; /* it listens no more */
        part_note_sure(part);
    } else if (answer->maybe_done && stood) {
        part->hold = part->hold == HOLD_NOTHING ? HOLD_PLACE : part->hold;
    } else if (answer->maybe_done) {
        note_loose(part, answer);
    }
    home->answered(home->arg);
}

void part_ask(struct part *part, enum doing doing, struct moment until)
{
    struct part_home *home = part->home;
    struct lock_request one = home->request;

    part->tried = true;
    part->times++;
    part->poked = false;
    part->chosen = false;
    if (!part_open(part))
        return;
    one.keys = (const char *const[]){part->key};
    one.key_count = 1;
    one.of = home->count;
    one.stand = doing == STANDING;
    one.listen = one.stand;
    one.queue = one.stand || part->hold == HOLD_PLACE;
    one.replace = part->replaces;
    part->replaces = false;
    part_begin(part, doing, until);
    store_acquire(part->store, &one, until, acquired, part);
}

static void left(void *arg, const struct answer *answer)
{
    struct part *part = arg;

    part->doing = IDLE;
    part->failed = answer->verdict == VERDICT_UNKNOWN;
    part->retry = moment_plus(now_of(part), STRAY_NS);
    if (!part->failed) {
        part->hold = HOLD_NOTHING;
        part_note_sure(part);
        if (part->unsure)
            part->retry = moment_max(part->retry, part->loose_until);
    } else {
        part_doubt(part);
        if (answer->maybe_done)
            part->until_gone = part->until;
    }
    part->home->answered(part->home->arg);
}

void part_leave(struct part *part, bool returns)
{
    struct part_home *home = part->home;
    struct moment until = moment_plus(now_of(part), LEAVE_NS);
    struct lock_request one = {.keys = (const char *const[]){part->key},
                               .key_count = 1,
                               .owner = home->owner,
                               .mode = home->request.mode,
                               .limit = home->request.limit,
                               .lease = home->request.lease,
                               .end = {.how = LOCK_UNUSED},
                               .in_time = true,
                               .returns = returns};

    part->heard = (struct moment){0};
    if (!part_open(part))
        return;
    part_begin(part, LEAVING, until);
    store_release(part->store, &one, false, until, left, part);
}
