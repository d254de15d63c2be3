/* A lock server behind a bad network. */
#include "simulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chance.h"

#define BAR_NS   (60 * NS_PER_SEC)
#define OTHER_NS (12 * NS_PER_SEC) /* the other's longest lease */
#define GRACE_NS (30 * NS_PER_SEC) /* the longest of all */
#define PLACE_NS (7 * NS_PER_SEC)

/* The fate of a request in a bad network. */
enum fate { LOST, ANSWER_LOST, CUT_OFF, NOT_SENT, NOT_READY, SLOW, FATES };

unsigned simulation_chance(struct simulation *sim, unsigned limit)
{
    return chance(&sim->seed, limit);
}

void simulation_accuse(struct simulation *sim, const char *fault)
{
    if (!sim->fault)
        sim->fault = fault;
}

void simulation_log(struct simulation *sim, struct moment when, const char *what)
{
    size_t used = strlen(sim->log);

    if (used > sizeof sim->log / 2) {
        memmove(sim->log, sim->log + used / 2, used - used / 2 + 1);
        used -= used / 2;
    }
    snprintf(sim->log + used, sizeof sim->log - used, "%.3f %s, ", (double)when.ns / 1e9 - 1000,
             what);
}

static struct simulation *of(struct store *base)
{
    return (struct simulation *)base;
}

/* Mostly short, sometimes long. */
static int64_t some_time(struct simulation *sim, unsigned most_ms)
{
    unsigned limit = simulation_chance(sim, 4) ? 1 + most_ms / 50 : most_ms;
    return (int64_t)simulation_chance(sim, limit) * NS_PER_MS;
}

static void happen(struct loop_timer *timer);

static struct simulation_event *plan(struct simulation *sim, enum simulation_kind kind,
                                     struct moment when)
{
    for (size_t i = 0; i < SIMULATION_EVENTS; i++) {
        struct simulation_event *event = &sim->events[i];
        if (event->kind != SIMULATION_FREE)
            continue;
        *event = (struct simulation_event){.kind = kind, .sim = sim, .number = sim->number};
        event->timer = (struct loop_timer){.fire = happen, .owner = event};
        loop_arm(sim->loop, &event->timer, when);
        return event;
    }
    abort();
}

/* -- the server ------------------------------------------------------------------------------ */

static bool is_free(const struct simulation *sim, struct moment now)
{
    return sim->holder == NO_OWNER || moment_reached(sim->expires, now);
}

static void poke(struct simulation *sim)
{
    if (sim->queued && simulation_chance(sim, 4))
        store_poke(&sim->base);
}

/* -- hand-overs ------------------------------------------------------------------------------ */

static void publish(struct simulation *sim, struct moment now, const char *text)
{
    struct simulation_event *event = plan(sim, SIMULATION_MESSAGE, now);

    snprintf(event->text, sizeof event->text, "%s", text);
}

/* A published message comes soon, late, twice or never. */
static void publish_badly(struct simulation *sim, struct moment now, const char *text)
{
    unsigned fate = simulation_chance(sim, 8);

    if (fate > 0)
        publish(sim, moment_plus(now, some_time(sim, fate == 1 ? 20000 : 200)), text);
    if (fate == 2)
        publish(sim, moment_plus(now, some_time(sim, 20000)), text);
}

/* A client that may publish, but not read the lock, knows at most earlier messages. */
static void forge(struct simulation *sim, struct moment now)
{
    char text[64];

    snprintf(text, sizeof text, "%s %llu 0",
             simulation_chance(sim, 2) ? "AAAAAAAAAAAAAAAAAAAAAA" : "1",
             (unsigned long long)sim->fence + 1);
    publish(sim, moment_plus(now, some_time(sim, 3000)), text);
}

/* The other one gives the lock back: to the caller, if it waits and is alive. */
static void hand_over(struct simulation *sim, struct moment now)
{
    char text[64];

    if (!sim->queued || !sim->offered[0] || moment_reached(sim->place_until, now)) {
        poke(sim);
        return;
    }
    sim->holder = CALLER;
    sim->fence++;
    sim->expires = sim->offer_until;
    sim->queued = false;
    sim->handed_over++;
    simulation_log(sim, now, "handed over");
    snprintf(text, sizeof text, "%s %llu 0", sim->offered, (unsigned long long)sim->fence);
    publish_badly(sim, now, text);
}

/* At the caller's. */
static void hear(struct simulation *sim, const char *text)
{
    struct answer grant;

    if (sim->done)
        return;
    sim->hearing = true;
    if (handover_take(&sim->handover, text, sim->asked, &grant)) {
        sim->owed = true;
        store_hand(&sim->base, &grant);
    } else {
        store_poke(&sim->base);
    }
    sim->hearing = false;
}

/* The server's clock runs up to 1 % fast. */
static struct moment expiry(struct simulation *sim, struct moment from, int64_t lease)
{
    return moment_plus(from, lease - lease * simulation_chance(sim, 101) / 10000);
}

/* A session is granted between a half and all of the requested lease. It counts from the latest
 * heartbeat, up to a third of that before the request, and never ends an earlier grant sooner. */
static void grant_session(struct simulation *sim, const struct simulation_event *event,
                          struct moment now, bool held, struct answer *answer)
{
    int64_t lease = event->lease / 100 * (50 + simulation_chance(sim, 51));
    int64_t age = lease / 300 * simulation_chance(sim, 100);
    struct moment expires = expiry(sim, moment_plus(now, -age), lease);

    sim->short_grants += lease < event->lease;
    sim->expires = held ? moment_max(sim->expires, expires) : expires;
    answer->lease = lease;
    answer->from = moment_plus(event->sent, -age);
}

/* held: the caller has it already. */
static struct answer grant(struct simulation *sim, const struct simulation_event *event,
                           struct moment now, bool held)
{
    struct answer answer = {.verdict = VERDICT_GRANTED, .grants = {{.fence = sim->fence}}};

    sim->holder = CALLER;
    if (sim->in_sessions)
        grant_session(sim, event, now, held, &answer);
    else
        sim->expires = expiry(sim, now, event->lease);
    return answer;
}

static struct answer answer_unknown(enum cause cause, bool maybe_done)
{
    struct answer answer = {.verdict = VERDICT_UNKNOWN, .cause = cause, .maybe_done = maybe_done};

    snprintf(answer.text, sizeof answer.text, "failure %d", cause);
    return answer;
}

static struct answer acquire(struct simulation *sim, const struct simulation_event *event,
                             struct moment now)
{
    struct answer held = {.verdict = VERDICT_REFUSED, .cause = CAUSE_HELD, .position = 1};

    if (now.ns > event->not_after.ns)
        return answer_unknown(CAUSE_NOT_READY, false);
    if (!moment_reached(sim->barred, now))
        return answer_unknown(CAUSE_UNREACHABLE, false);
    if (sim->holder == NO_OWNER && !moment_reached(sim->grace, now)) {
        sim->queued = true;
        held.cause = CAUSE_GRACE;
        held.grace_ms = moment_until(now, sim->grace) / NS_PER_MS;
        return held;
    }
    if (sim->holder == CALLER || is_free(sim, now)) {
        bool again = sim->holder == CALLER && !moment_reached(sim->expires, now);
        sim->fence += !again;
        sim->queued = sim->given_back = false;
        return grant(sim, event, now, again);
    }
    sim->queued = true;
    memcpy(sim->offered, event->token, sizeof sim->offered);
    sim->place_until = expiry(sim, now, PLACE_NS);
    sim->offer_until = expiry(sim, now, HANDOVER_MS * NS_PER_MS);
    held.left_ms = moment_until(now, sim->expires) / NS_PER_MS;
    return held;
}

static struct answer renew(struct simulation *sim, const struct simulation_event *event,
                           struct moment now)
{
    bool again = sim->holder == NO_OWNER && event->claims && !moment_reached(sim->grace, now) &&
                 !sim->given_back;

    if (again && now.ns > event->not_after.ns)
        return answer_unknown(CAUSE_NOT_READY, false);
    if (sim->holder != CALLER && !again)
        return (struct answer){.verdict = VERDICT_REFUSED, .cause = CAUSE_NOT_HOLDER};
    struct answer granted = grant(sim, event, now, !again);
    granted.forgotten = again;
    return granted;
}

static struct answer release(struct simulation *sim, const struct simulation_event *event,
                             struct moment now)
{
    bool had = sim->holder == CALLER;
    bool forgotten = sim->holder == NO_OWNER && !moment_reached(sim->grace, now);

    if (event->in_time && now.ns > event->not_after.ns)
        return answer_unknown(CAUSE_NOT_READY, false);
    sim->queued = false;
    sim->given_back |= event->uncertain;
    if (event->uncertain)
        sim->barred = moment_plus(now, BAR_NS);
    if (had)
        sim->holder = NO_OWNER;
    if (!had && !forgotten)
        return (struct answer){.verdict = VERDICT_REFUSED, .cause = CAUSE_NOT_HOLDER};
    return (struct answer){.verdict = VERDICT_GRANTED};
}

/* The holder does not know that the lock is forgotten. The other owner never asks for it again. */
static void forget(struct simulation *sim, struct moment now)
{
    simulation_log(sim, now, "all is forgotten");
    sim->given_back = false;
    if (sim->holder != NO_OWNER)
        sim->was_holder = sim->holder;
    sim->holder = NO_OWNER;
    sim->queued = false;
    sim->grace = moment_plus(now, GRACE_NS);
}

/* A session ends before its lease does only if the caller can hear of it at once. */
static bool may_lose_session(const struct simulation *sim, struct moment now)
{
    return sim->in_sessions && sim->holder == CALLER && loop_now(sim->loop).ns == now.ns;
}

/* Locks of the session are free at once. A grant that is on its way back is void. */
static void lose_session(struct simulation *sim, struct moment now)
{
    simulation_log(sim, now, "session lost");
    sim->sessions_lost++;
    sim->holder = NO_OWNER;
    sim->queued = false;
    if (sim->done && !sim->releasing && sim->answer.verdict == VERDICT_GRANTED)
        sim->answer = answer_unknown(CAUSE_NOT_READY, false);
    store_lose(&sim->base, "the session is lost");
}

/* The other owner takes the lock when it is free, and releases it, or dies with it. */
static void let_other_try(struct simulation *sim, struct moment now)
{
    if (sim->forgetful && simulation_chance(sim, 20) == 0) {
        forget(sim, now);
    } else if (may_lose_session(sim, now) && simulation_chance(sim, 20) == 0) {
        lose_session(sim, now);
    } else if (sim->holder == OTHER && simulation_chance(sim, 3)) {
        sim->holder = NO_OWNER;
        hand_over(sim, now);
    } else if (sim->queued && simulation_chance(sim, 8) == 0) {
        forge(sim, now);
    } else if (is_free(sim, now) && moment_reached(sim->grace, now) && !sim->queued &&
               simulation_chance(sim, 3)) {
        sim->was_holder = NO_OWNER;
        if (sim->held_until.ns > now.ns)
            simulation_accuse(sim, "two hold the lock");
        simulation_log(sim, now, "other takes it");
        sim->holder = OTHER;
        sim->fence++;
        sim->expires = moment_plus(now, some_time(sim, OTHER_NS / NS_PER_MS));
    }
    if (!sim->quiet)
        plan(sim, SIMULATION_OTHER, moment_plus(now, 1 + some_time(sim, 3000)));
}

static void answer(struct simulation *sim)
{
    store_done *done = sim->done;

    sim->done = NULL;
    sim->handover.open = sim->acquiring && sim->answer.verdict == VERDICT_REFUSED;
    if (sim->acquiring)
        sim->owed = sim->answer.verdict == VERDICT_GRANTED || sim->answer.maybe_done ||
                    (sim->owed && sim->answer.verdict == VERDICT_UNKNOWN);
    else if (sim->answer.verdict == VERDICT_REFUSED)
        sim->owed = false;
    done(sim->done_arg, &sim->answer);
}

/* At the time it was planned for: the server knows nothing of our process being stopped. */
static void happen(struct loop_timer *timer)
{
    struct simulation_event event = *(struct simulation_event *)timer->owner, *self = timer->owner;
    struct simulation *sim = event.sim;
    struct answer result = {0};
    static const char *const names[] = {"", "acquire", "renew", "release", "answer", "message", ""};

    self->kind = SIMULATION_FREE;
    if (event.kind != SIMULATION_OTHER)
        simulation_log(sim, timer->due, names[event.kind]);
    switch (event.kind) {
    case SIMULATION_ACQUIRE: result = acquire(sim, &event, timer->due); break;
    case SIMULATION_RENEW: result = renew(sim, &event, timer->due); break;
    case SIMULATION_RELEASE: result = release(sim, &event, timer->due); break;
    case SIMULATION_OTHER: let_other_try(sim, timer->due); break;
    case SIMULATION_ANSWER:
        if (sim->done && event.number == sim->number)
            answer(sim);
        break;
    case SIMULATION_MESSAGE: hear(sim, event.text); break;
    case SIMULATION_FREE: break;
    }
    if (!event.answered || event.number != sim->number || !sim->done)
        return;
    sim->answer = result;
    plan(sim, SIMULATION_ANSWER, event.answer_at);
}

/* -- the network ----------------------------------------------------------------------------- */

/* Sends a request: it may be done, at some time, and its answer may come, in time. */
static void post(struct simulation *sim, enum simulation_kind kind,
                 const struct operation *operation, bool answered)
{
    struct moment now = loop_now(sim->loop), until = operation->until;
    const struct lock_grant *grants = kind == SIMULATION_RENEW ? operation->renew->grants : NULL;
    static const char *const fates[] = {"lost",      "answer lost", "cut off", "not sent",
                                        "not ready", "slow",        "sent"};
    bool bad = simulation_chance(sim, 16) < sim->failing;
    enum fate fate = bad ? simulation_chance(sim, FATES) : FATES;
    struct moment there = moment_plus(now, some_time(sim, fate == SLOW ? 20000 : 200));
    struct moment back = moment_plus(there, some_time(sim, fate == SLOW ? 20000 : 200));

    simulation_log(sim, now, fates[fate]);
    if (fate == NOT_SENT || fate == NOT_READY) {
        sim->answer = answer_unknown(fate == NOT_SENT ? CAUSE_UNREACHABLE : CAUSE_NOT_READY, false);
        plan(sim, SIMULATION_ANSWER, moment_min(until, moment_plus(now, some_time(sim, 300))));
        return;
    }
    bool comes =
        answered && fate != LOST && fate != ANSWER_LOST && fate != CUT_OFF && back.ns <= until.ns;
    if (fate != LOST) {
        struct simulation_event *event = plan(sim, kind, there);
        event->lease = operation_lock(operation).lease;
        event->sent = now;
        event->not_after = until;
        if (kind == SIMULATION_RELEASE) {
            event->uncertain = operation->release->uncertain;
            event->in_time = operation->release->in_time;
        }
        event->claims = grants && grants[0].fence == sim->held_fence;
        event->answered = comes;
        event->answer_at = back;
        if (kind == SIMULATION_ACQUIRE)
            memcpy(event->token, sim->handover.token, sizeof event->token);
    }
    if (answered && !comes) {
        sim->answer = answer_unknown(CAUSE_UNREACHABLE, true);
        plan(sim, SIMULATION_ANSWER,
             fate == CUT_OFF ? moment_min(until, moment_plus(now, some_time(sim, 300))) : until);
    }
}

static void start(struct store *base, const struct operation *operation)
{
    static const enum simulation_kind kinds[] = {[VERB_ACQUIRE] = SIMULATION_ACQUIRE,
                                                 [VERB_RENEW] = SIMULATION_RENEW,
                                                 [VERB_RELEASE] = SIMULATION_RELEASE};
    struct simulation *sim = of(base);
    enum simulation_kind kind = kinds[operation->verb];

    if (sim->done)
        simulation_accuse(sim, "two operations at a time");
    if (kind == SIMULATION_ACQUIRE) {
        sim->asked = operation->acquire->lease;
        sim->handover = (struct handover){0};
        if (operation->acquire->offer && !sim->forgetful && !sim->in_sessions)
            handover_offer(&sim->handover, loop_now(sim->loop));
    }
    sim->done = operation->done;
    sim->done_arg = operation->arg;
    sim->number++;
    sim->acquiring = kind == SIMULATION_ACQUIRE;
    sim->releasing = kind == SIMULATION_RELEASE;
    sim->answer = (struct answer){.verdict = VERDICT_UNKNOWN};
    sim->handover.open = false;
    sim->owed &= kind != SIMULATION_RELEASE;
    post(sim, kind, operation, true);
}

/* The caller need not send a release again only if this one was sent. */
static bool release_nowait(struct store *base, const struct release_request *request)
{
    struct simulation *sim = of(base);
    const struct operation operation = {
        .verb = VERB_RELEASE, .release = request, .until = loop_now(sim->loop)};

    sim->done = NULL;
    sim->number++;
    if (simulation_chance(sim, 4) == 0)
        return false;
    sim->owed = false;
    post(sim, SIMULATION_RELEASE, &operation, false);
    return true;
}

static void close_store(struct store *base)
{
    (void)base;
}

void simulation_begin(struct simulation *sim, struct loop *loop, unsigned seed)
{
    static const struct store_ops ops = {close_store, start, release_nowait};

    sim->base.ops = &ops;
    sim->loop = loop;
    sim->seed = seed;
    chance_for_system(&sim->seed); /* the same seed is the same life */
    sim->failing = simulation_chance(sim, 4) ? simulation_chance(sim, 14) : 0;
    sim->forgetful = simulation_chance(sim, 3) == 0;
    sim->in_sessions = !sim->forgetful && simulation_chance(sim, 2);
    if (!sim->forgetful && !sim->in_sessions && simulation_chance(sim, 4)) {
        sim->holder = OTHER;
        sim->fence = 1;
        sim->expires = moment_plus(loop_now(loop), OTHER_NS);
    }
    sim->held_until = sim->barred = sim->grace = loop_now(loop);
    fake_descriptor(loop, happen);
    plan(sim, SIMULATION_OTHER, moment_plus(loop_now(loop), some_time(sim, 3000)));
}
