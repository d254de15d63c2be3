/* A lock server behind a bad network. */
#include "fake_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define BAR_NS   (60 * NS_PER_SEC)
#define OTHER_NS (12 * NS_PER_SEC) /* the other's longest lease */
#define GRACE_NS (30 * NS_PER_SEC) /* the longest of all */

/* What becomes of a request in bad weather. */
enum fate { LOST, ANSWER_LOST, CUT_OFF, NOT_SENT, NOT_READY, SLOW, FATES };

/* Instead of the system's chance (ld --wrap): the same seed is the same life. */
static struct world *current;
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags);

ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)world_chance(current, 256);
    return (ssize_t)size;
}

unsigned world_chance(struct world *world, unsigned limit)
{
    world->seed = world->seed * 1103515245 + 12345;
    return (world->seed >> 16) % limit;
}

void world_accuse(struct world *world, const char *fault)
{
    if (!world->fault)
        world->fault = fault;
}

void world_log(struct world *world, struct moment when, const char *what)
{
    size_t used = strlen(world->log);

    if (used > sizeof world->log / 2) {
        memmove(world->log, world->log + used / 2, used - used / 2 + 1);
        used -= used / 2;
    }
    snprintf(world->log + used, sizeof world->log - used, "%.3f %s, ", (double)when.ns / 1e9 - 1000,
             what);
}

static struct world *of(struct store *base)
{
    return (struct world *)base;
}

/* Mostly short, sometimes long. */
static int64_t some_time(struct world *world, unsigned most_ms)
{
    unsigned limit = world_chance(world, 4) ? 1 + most_ms / 50 : most_ms;
    return (int64_t)world_chance(world, limit) * NS_PER_MS;
}

static void happen(struct loop_timer *timer);

static struct world_event *plan(struct world *world, enum world_kind kind, struct moment when)
{
    for (size_t i = 0; i < WORLD_EVENTS; i++) {
        struct world_event *event = &world->events[i];
        if (event->kind != WORLD_FREE)
            continue;
        *event = (struct world_event){.kind = kind, .world = world, .number = world->number};
        event->timer = (struct loop_timer){.fire = happen, .owner = event};
        loop_arm(world->loop, &event->timer, when);
        return event;
    }
    abort();
}

/* -- the server ------------------------------------------------------------------------------ */

static bool is_free(const struct world *world, struct moment now)
{
    return world->holder == NOBODY || moment_reached(world->expires, now);
}

static void poke(struct world *world)
{
    if (world->queued && world->base.poked && world_chance(world, 4))
        world->base.poked(world->base.poked_arg);
}

/* The server's clock runs up to 1 % fast. */
static void set_expiry(struct world *world, struct moment now, int64_t lease)
{
    world->expires = moment_plus(now, lease - lease * world_chance(world, 101) / 10000);
}

static struct answer answer_granted(const struct world *world)
{
    return (struct answer){.verdict = VERDICT_GRANTED, .grants = {{.fence = world->fence}}};
}

static struct answer answer_unknown(enum cause cause, bool maybe_done)
{
    struct answer answer = {.verdict = VERDICT_UNKNOWN, .cause = cause, .maybe_done = maybe_done};

    snprintf(answer.text, sizeof answer.text, "weather %d", cause);
    return answer;
}

static struct answer acquire(struct world *world, const struct world_event *event,
                             struct moment now)
{
    struct answer held = {.verdict = VERDICT_REFUSED, .cause = CAUSE_HELD, .position = 1};

    if (now.ns > event->not_after.ns)
        return answer_unknown(CAUSE_NOT_READY, false);
    if (!moment_reached(world->barred, now))
        return answer_unknown(CAUSE_UNREACHABLE, false);
    if (world->holder == NOBODY && !moment_reached(world->grace, now)) {
        world->queued = true;
        held.cause = CAUSE_GRACE;
        held.grace_ms = moment_until(now, world->grace) / NS_PER_MS;
        return held;
    }
    if (world->holder == CALLER || is_free(world, now)) {
        world->fence += world->holder != CALLER || moment_reached(world->expires, now);
        world->holder = CALLER;
        world->queued = world->given_back = false;
        set_expiry(world, now, event->lease);
        return answer_granted(world);
    }
    world->queued = true;
    held.left_ms = moment_until(now, world->expires) / NS_PER_MS;
    return held;
}

static struct answer renew(struct world *world, const struct world_event *event, struct moment now)
{
    bool again = world->holder == NOBODY && event->claims && !moment_reached(world->grace, now) &&
                 !world->given_back;

    if (again && now.ns > event->not_after.ns)
        return answer_unknown(CAUSE_NOT_READY, false);
    if (world->holder != CALLER && !again)
        return (struct answer){.verdict = VERDICT_REFUSED, .cause = CAUSE_NOT_HOLDER};
    world->holder = CALLER;
    set_expiry(world, now, event->lease);
    struct answer granted = answer_granted(world);
    granted.forgotten = again;
    return granted;
}

static struct answer release(struct world *world, const struct world_event *event,
                             struct moment now)
{
    bool had = world->holder == CALLER;
    bool forgotten = world->holder == NOBODY && !moment_reached(world->grace, now);

    if (event->in_time && now.ns > event->not_after.ns)
        return answer_unknown(CAUSE_NOT_READY, false);
    world->queued = false;
    world->given_back |= event->uncertain;
    if (event->uncertain)
        world->barred = moment_plus(now, BAR_NS);
    if (had)
        world->holder = NOBODY;
    return had || forgotten
               ? answer_granted(world)
               : (struct answer){.verdict = VERDICT_REFUSED, .cause = CAUSE_NOT_HOLDER};
}

/* Whoever had the lock has it still, and does not know. The other one never says so again. */
static void forget(struct world *world, struct moment now)
{
    world_log(world, now, "all is forgotten");
    world->given_back = false;
    if (world->holder != NOBODY)
        world->was_holder = world->holder;
    world->holder = NOBODY;
    world->queued = false;
    world->grace = moment_plus(now, GRACE_NS);
}

/* Somebody else takes the lock when it is free, and gives it back, or dies with it. */
static void let_other_try(struct world *world, struct moment now)
{
    if (world->forgetful && world_chance(world, 20) == 0) {
        forget(world, now);
    } else if (world->holder == OTHER && world_chance(world, 3)) {
        world->holder = NOBODY;
        poke(world);
    } else if (is_free(world, now) && moment_reached(world->grace, now) && !world->queued &&
               world_chance(world, 3)) {
        world->was_holder = NOBODY;
        if (world->held_until.ns > now.ns)
            world_accuse(world, "two hold the lock");
        world_log(world, now, "other takes it");
        world->holder = OTHER;
        world->fence++;
        world->expires = moment_plus(now, some_time(world, OTHER_NS / NS_PER_MS));
    }
    if (!world->quiet)
        plan(world, WORLD_OTHER, moment_plus(now, 1 + some_time(world, 3000)));
}

static void answer(struct world *world)
{
    store_done *done = world->done;

    world->done = NULL;
    if (world->acquiring)
        world->owed = world->answer.verdict == VERDICT_GRANTED || world->answer.maybe_done ||
                      (world->owed && world->answer.verdict == VERDICT_UNKNOWN);
    else if (world->answer.verdict == VERDICT_REFUSED)
        world->owed = false;
    done(world->done_arg, &world->answer);
}

/* At the time it was planned for: the server knows nothing of our process being stopped. */
static void happen(struct loop_timer *timer)
{
    struct world_event event = *(struct world_event *)timer->owner, *self = timer->owner;
    struct world *world = event.world;
    struct answer result = {0};
    static const char *const names[] = {"", "acquire", "renew", "release", "answer", ""};

    self->kind = WORLD_FREE;
    if (event.kind != WORLD_OTHER)
        world_log(world, timer->due, names[event.kind]);
    switch (event.kind) {
    case WORLD_ACQUIRE: result = acquire(world, &event, timer->due); break;
    case WORLD_RENEW: result = renew(world, &event, timer->due); break;
    case WORLD_RELEASE: result = release(world, &event, timer->due); break;
    case WORLD_OTHER: let_other_try(world, timer->due); break;
    case WORLD_ANSWER:
        if (world->done && event.number == world->number)
            answer(world);
        break;
    case WORLD_FREE: break;
    }
    if (!event.answered || event.number != world->number || !world->done)
        return;
    world->answer = result;
    plan(world, WORLD_ANSWER, event.answer_at);
}

/* -- the network ----------------------------------------------------------------------------- */

/* Sends a request: it may be done, at some time, and its answer may come, in time. */
static void post(struct world *world, enum world_kind kind, const struct lock_request *request,
                 bool uncertain, struct moment until, bool answered)
{
    struct moment now = loop_now(world->loop);
    static const char *const fates[] = {"lost",      "answer lost", "cut off", "not sent",
                                        "not ready", "slow",        "sent"};
    bool bad = world_chance(world, 16) < world->weather;
    enum fate fate = bad ? world_chance(world, FATES) : FATES;
    struct moment there = moment_plus(now, some_time(world, fate == SLOW ? 20000 : 200));
    struct moment back = moment_plus(there, some_time(world, fate == SLOW ? 20000 : 200));

    world_log(world, now, fates[fate]);
    if (fate == NOT_SENT || fate == NOT_READY) {
        world->answer =
            answer_unknown(fate == NOT_SENT ? CAUSE_UNREACHABLE : CAUSE_NOT_READY, false);
        plan(world, WORLD_ANSWER, moment_min(until, moment_plus(now, some_time(world, 300))));
        return;
    }
    bool comes =
        answered && fate != LOST && fate != ANSWER_LOST && fate != CUT_OFF && back.ns <= until.ns;
    if (fate != LOST) {
        struct world_event *event = plan(world, kind, there);
        event->lease = request->lease;
        event->not_after = until;
        event->uncertain = uncertain;
        event->in_time = request->in_time;
        event->claims = request->grants && request->grants[0].fence == world->held_fence;
        event->answered = comes;
        event->answer_at = back;
    }
    if (answered && !comes) {
        world->answer = answer_unknown(CAUSE_UNREACHABLE, true);
        plan(world, WORLD_ANSWER,
             fate == CUT_OFF ? moment_min(until, moment_plus(now, some_time(world, 300))) : until);
    }
}

static void begin(struct store *base, enum world_kind kind, const struct lock_request *request,
                  bool uncertain, struct moment until, store_done *done, void *arg)
{
    struct world *world = of(base);

    if (world->done)
        world_accuse(world, "two operations at a time");
    world->done = done;
    world->done_arg = arg;
    world->number++;
    world->acquiring = kind == WORLD_ACQUIRE;
    world->owed &= kind != WORLD_RELEASE;
    post(world, kind, request, uncertain, until, true);
}

static void acquire_op(struct store *base, const struct lock_request *request, struct moment until,
                       store_done *done, void *arg)
{
    begin(base, WORLD_ACQUIRE, request, false, until, done, arg);
}

static void renew_op(struct store *base, const struct lock_request *request, struct moment until,
                     store_done *done, void *arg)
{
    begin(base, WORLD_RENEW, request, false, until, done, arg);
}

static void release_op(struct store *base, const struct lock_request *request, bool uncertain,
                       struct moment until, store_done *done, void *arg)
{
    begin(base, WORLD_RELEASE, request, uncertain, until, done, arg);
}

static void farewell_op(struct store *base, const struct lock_request *request)
{
    struct world *world = of(base);

    world->done = NULL;
    world->owed = false;
    world->number++;
    post(world, WORLD_RELEASE, request, true, loop_now(world->loop), false);
}

void world_begin(struct world *world, struct loop *loop, unsigned seed)
{
    static const struct store_ops ops = {
        .acquire = acquire_op, .renew = renew_op, .release = release_op, .farewell = farewell_op};

    current = world;
    world->base.ops = &ops;
    world->loop = loop;
    world->seed = seed;
    world->weather = world_chance(world, 4) ? world_chance(world, 14) : 0;
    world->forgetful = world_chance(world, 3) == 0;
    world->held_until = world->barred = world->grace = loop_now(loop);
    fake_descriptor(loop, happen);
    plan(world, WORLD_OTHER, moment_plus(loop_now(loop), some_time(world, 3000)));
}
