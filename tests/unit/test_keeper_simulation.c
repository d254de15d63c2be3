/* A keeper among others, far from its server: whatever happens on the way, it never believes that
 * it holds a lock that somebody else has, and leaves nothing behind that it could have given
 * back. */
#include "lock/keeper.h"

#include "chance.h"
#include "fake_loop.h"
#include "keepers.h"
#include "rules/arguments.h"
#include "rules/handover.h"
#include "store/store.h"
#include "tap.h"

/* -- the server and the network --------------------------------------------------------------- */

/* A store that is a real lock server, only elsewhere: requests and answers are late, lost, cut off,
 * as chance has it; the server's clock runs fast, and somebody else wants the same lock all the
 * time. Some servers forget everything now and then, and grant nothing new for a while. All others
 * hand the lock over by a message, which may be lost, late, doubled, or forged. The simulation
 * knows who really holds the lock, and accuses a caller who believes otherwise. Sessions, which are
 * granted for less time than was asked for, are in test_zookeeper_simulation. */
#define SIMULATION_EVENTS 64

enum simulation_kind {
    SIMULATION_FREE,
    SIMULATION_ACQUIRE,
    SIMULATION_RENEW,
    SIMULATION_RELEASE,
    SIMULATION_ANSWER,
    SIMULATION_MESSAGE,
    SIMULATION_OTHER
};

struct simulation {
    struct store base;
    struct loop *loop;
    unsigned seed;
    unsigned failing; /* of 16 requests, so many fare badly */

    /* The server. */
    enum { NO_OWNER, CALLER, OTHER } holder;
    struct moment expires;
    uint64_t fence;
    struct moment barred; /* the caller's acquisitions until then */
    bool queued;
    bool forgetful;
    int was_holder;                    /* when it forgot */
    struct moment grace;               /* nothing new is granted until then */
    char offered[HANDOVER_TOKEN_SIZE]; /* with the caller's place; "": nothing */
    struct moment place_until;         /* as long as the caller waits without a call */
    struct moment offer_until;         /* until when a hand-over lasts */
    unsigned handed_over;
    bool given_back; /* for good by the caller, since it has forgotten all */

    /* Messages on their way, and future events. */
    struct simulation_event {
        struct loop_timer timer;
        enum simulation_kind kind; /* FREE: not in use */
        struct simulation *sim;
        int64_t lease;
        struct moment sent, not_after;
        bool uncertain, in_time;
        bool claims;     /* it says what was granted */
        unsigned number; /* of the request */
        bool answered;   /* by an ANSWER of its own */
        struct moment answer_at;
        char text[64];                   /* a message */
        char token[HANDOVER_TOKEN_SIZE]; /* of an acquisition */
    } events[SIMULATION_EVENTS];
    struct kept_answer kept; /* the answer to the request under way */
    store_done *done;        /* NULL: none is */
    void *done_arg;
    unsigned number;
    bool acquiring;           /* it is to acquire */
    bool hearing;             /* a message */
    struct handover handover; /* as the store knows it */
    int64_t asked;            /* ns: the lease of the latest acquisition */
    bool owed; /* a release: as far as the answers tell, the caller may hold the lock */

    /* The caller's belief, set by the test that listens to it. */
    struct moment held_until; /* in the past: not held */
    uint64_t held_fence;
    bool quiet; /* no other owner comes any more */
    struct trial trial;
};

#define BAR_NS   (60 * NS_PER_SEC)
#define OTHER_NS (12 * NS_PER_SEC) /* the other's longest lease */
#define GRACE_NS (30 * NS_PER_SEC) /* the longest of all */
#define PLACE_NS (7 * NS_PER_SEC)

/* The fate of a request in a bad network. */
enum fate { LOST, ANSWER_LOST, CUT_OFF, NOT_SENT, NOT_READY, SLOW, FATES };

static struct simulation *of(struct store *base)
{
    return (struct simulation *)base;
}

/* Mostly short, sometimes long. */
static int64_t some_time(struct simulation *sim, unsigned most_ms)
{
    unsigned limit = chance(&sim->seed, 4) ? 1 + most_ms / 50 : most_ms;
    return (int64_t)chance(&sim->seed, limit) * NS_PER_MS;
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
    if (sim->queued && chance(&sim->seed, 4))
        store_changed(&sim->base);
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
    unsigned fate = chance(&sim->seed, 8);

    if (fate > 0)
        publish(sim, moment_plus(now, some_time(sim, fate == 1 ? 20000 : 200)), text);
    if (fate == 2)
        publish(sim, moment_plus(now, some_time(sim, 20000)), text);
}

/* A client that may publish, but not read the lock, knows at most earlier messages. */
static void forge(struct simulation *sim, struct moment now)
{
    char text[64];

    snprintf(text, sizeof text, "%s %llu 0", chance(&sim->seed, 2) ? "AAAAAAAAAAAAAAAAAAAAAA" : "1",
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
    note_at(&sim->trial, now, "handed over");
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
        store_granted(&sim->base, &grant);
    } else {
        store_changed(&sim->base);
    }
    sim->hearing = false;
}

/* The server's clock runs up to 1 % fast. */
static struct moment expiry(struct simulation *sim, struct moment from, int64_t lease)
{
    return moment_plus(from, lease - lease * chance(&sim->seed, 101) / 10000);
}

static struct answer grant(struct simulation *sim, const struct simulation_event *event,
                           struct moment now)
{
    static struct lock_grant grants[LOCK_KEYS_MAX];

    grants[0].fence = sim->fence;
    sim->holder = CALLER;
    sim->expires = expiry(sim, now, event->lease);
    return (struct answer){.verdict = VERDICT_GRANTED, .granted.grants = grants};
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
    struct answer held = {.verdict = VERDICT_REFUSED, .cause = CAUSE_HELD, .refused.position = 1};

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
        sim->fence += sim->holder != CALLER || moment_reached(sim->expires, now);
        sim->queued = sim->given_back = false;
        return grant(sim, event, now);
    }
    sim->queued = true;
    memcpy(sim->offered, event->token, sizeof sim->offered);
    sim->place_until = expiry(sim, now, PLACE_NS);
    sim->offer_until = expiry(sim, now, HANDOVER_MS * NS_PER_MS);
    held.refused.left_ms = moment_until(now, sim->expires) / NS_PER_MS;
    return held;
}

static struct answer renew(struct simulation *sim, const struct simulation_event *event,
                           struct moment now)
{
    bool again = sim->holder == NO_OWNER && event->claims && !moment_reached(sim->grace, now) &&
                 !sim->given_back;

    if (now.ns > event->not_after.ns)
        return answer_unknown(CAUSE_NOT_READY, false);
    if (sim->holder != CALLER && !again)
        return (struct answer){.verdict = VERDICT_REFUSED, .cause = CAUSE_NOT_HOLDER};
    struct answer granted = grant(sim, event, now);
    granted.granted.forgotten = again;
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
    note_at(&sim->trial, now, "all is forgotten");
    sim->given_back = false;
    if (sim->holder != NO_OWNER)
        sim->was_holder = sim->holder;
    sim->holder = NO_OWNER;
    sim->queued = false;
    sim->grace = moment_plus(now, GRACE_NS);
}

/* The other owner takes the lock when it is free, and releases it, or dies with it. */
static void let_other_try(struct simulation *sim, struct moment now)
{
    if (sim->forgetful && chance(&sim->seed, 20) == 0) {
        forget(sim, now);
    } else if (sim->holder == OTHER && chance(&sim->seed, 3)) {
        sim->holder = NO_OWNER;
        hand_over(sim, now);
    } else if (sim->queued && chance(&sim->seed, 8) == 0) {
        forge(sim, now);
    } else if (is_free(sim, now) && moment_reached(sim->grace, now) && !sim->queued &&
               chance(&sim->seed, 3)) {
        sim->was_holder = NO_OWNER;
        if (sim->held_until.ns > now.ns)
            accuse(&sim->trial, "two hold the lock");
        note_at(&sim->trial, now, "other takes it");
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
    sim->handover.open = sim->acquiring && sim->kept.answer.verdict == VERDICT_REFUSED;
    if (sim->acquiring)
        sim->owed = sim->kept.answer.verdict == VERDICT_GRANTED || sim->kept.answer.maybe_done ||
                    (sim->owed && sim->kept.answer.verdict == VERDICT_UNKNOWN);
    else if (sim->kept.answer.verdict == VERDICT_REFUSED)
        sim->owed = false;
    done(sim->done_arg, &sim->kept.answer);
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
        note_at(&sim->trial, timer->due, "%s", names[event.kind]);
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
    answer_keep(&sim->kept, &result);
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
    bool bad = chance(&sim->seed, 16) < sim->failing;
    enum fate fate = bad ? chance(&sim->seed, FATES) : FATES;
    struct moment there = moment_plus(now, some_time(sim, fate == SLOW ? 20000 : 200));
    struct moment back = moment_plus(there, some_time(sim, fate == SLOW ? 20000 : 200));

    note_at(&sim->trial, now, "%s", fates[fate]);
    if (fate == NOT_SENT || fate == NOT_READY) {
        sim->kept.answer =
            answer_unknown(fate == NOT_SENT ? CAUSE_UNREACHABLE : CAUSE_NOT_READY, false);
        plan(sim, SIMULATION_ANSWER, moment_min(until, moment_plus(now, some_time(sim, 300))));
        return;
    }
    bool comes =
        answered && fate != LOST && fate != ANSWER_LOST && fate != CUT_OFF && back.ns <= until.ns;
    if (fate != LOST) {
        struct simulation_event *event = plan(sim, kind, there);
        event->lease = operation_lock(operation)->lease;
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
        sim->kept.answer = answer_unknown(CAUSE_UNREACHABLE, true);
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
        accuse(&sim->trial, "two operations at a time");
    if (kind == SIMULATION_ACQUIRE) {
        sim->asked = operation->acquire->lease;
        sim->handover = (struct handover){0};
        if (operation->acquire->accept_by_message && !sim->forgetful)
            handover_offer(&sim->handover, loop_now(sim->loop));
    }
    sim->done = operation->done;
    sim->done_arg = operation->arg;
    sim->number++;
    sim->acquiring = kind == SIMULATION_ACQUIRE;
    sim->kept.answer = (struct answer){.verdict = VERDICT_UNKNOWN};
    sim->handover.open = false;
    sim->owed &= kind != SIMULATION_RELEASE;
    post(sim, kind, operation, true);
}

/* The caller need not send a release again only if this one was sent. A good network has a
 * connection. */
static enum release_sent release_nowait(struct store *base, const struct release_request *request)
{
    struct simulation *sim = of(base);
    const struct operation operation = {
        .verb = VERB_RELEASE, .release = request, .until = loop_now(sim->loop)};

    sim->done = NULL;
    sim->number++;
    if (sim->failing > 0 && chance(&sim->seed, 4) == 0)
        return RELEASE_UNSENT;
    sim->owed = false;
    post(sim, SIMULATION_RELEASE, &operation, false);
    return RELEASE_SENT;
}

/* To be zeroed before. */
static void sim_begin(struct simulation *sim, struct loop *loop, unsigned seed)
{
    static const struct store_ops ops = {close_nothing, start, release_nowait};

    sim->base.ops = &ops;
    sim->loop = loop;
    sim->seed = seed;
    chance_for_system(&sim->seed); /* the same seed is the same life */
    sim->failing = chance(&sim->seed, 4) ? chance(&sim->seed, 14) : 0;
    sim->forgetful = chance(&sim->seed, 3) == 0;
    if (!sim->forgetful && chance(&sim->seed, 4)) {
        sim->holder = OTHER;
        sim->fence = 1;
        sim->expires = moment_plus(loop_now(loop), OTHER_NS);
    }
    sim->held_until = sim->barred = sim->grace = loop_now(loop);
    fake_descriptor(loop, happen);
    plan(sim, SIMULATION_OTHER, moment_plus(loop_now(loop), some_time(sim, 3000)));
}

/* -- the keeper ------------------------------------------------------------------------------- */

#define SCHEDULES 20000
#define PART      1000
#define TURNS_MAX 50000
#define LEAVE_NS  (8 * NS_PER_SEC)

struct life {
    struct witness me;
    struct simulation sim;
    struct keeper_plan plan;
    struct loop_timer action;
    unsigned actions; /* that are left */
    bool stopped;
    unsigned holds, losses, returns,
        started; /* in all, so that a test that proves nothing is noticed */
};

static void note(struct life *life, const char *what)
{
    note_at(&life->sim.trial, loop_now(life->me.loop), "%s", what);
}

static void let_go(struct life *life)
{
    life->sim.held_until = moment_min(life->sim.held_until, loop_now(life->me.loop));
}

static void take_deadline(struct life *life, struct moment deadline)
{
    struct simulation *sim = &life->sim;

    bool had = sim->holder == NO_OWNER && sim->was_holder == CALLER;

    if ((sim->holder != CALLER && !had) || sim->fence != sim->held_fence)
        accuse(&sim->trial, "held against the server's word");
    else if (sim->expires.ns < deadline.ns)
        accuse(&sim->trial, "a deadline behind the server's");
    sim->held_until = deadline;
}

static void on_held(void *arg, struct lease lease, const struct lock_grant *grants)
{
    struct life *life = arg;

    note(life, "HELD");
    witness_held(&life->me, lease);
    life->holds++;
    life->started += life->sim.hearing;
    life->sim.held_fence = grants[0].fence;
    take_deadline(life, lease.end);
}

static void on_extended(void *arg, struct lease lease, bool forgotten)
{
    struct life *life = arg;

    note(life, "EXTENDED");
    life->returns += forgotten;
    witness_extended(&life->me, lease);
    take_deadline(life, lease.end);
}

static void on_lost(void *arg, const struct keeper_loss *loss)
{
    struct life *life = arg;

    (void)loss;
    note(life, "LOST");
    witness_lost(&life->me);
    life->losses++;
    let_go(life);
}

static void on_over(void *arg, const struct keeper_end *end)
{
    struct life *life = arg;

    note(life, "OVER");
    if (life->sim.owed && !moment_reached(life->me.leave_by, loop_now(life->me.loop)))
        accuse(&life->sim.trial, "left without trying to release it");
    witness_over(&life->me, end, life->stopped);
    let_go(life);
    loop_disarm(life->me.loop, &life->action);
    life->sim.quiet = true;
}

static const struct keeper_events events = {
    quiet_answer, on_held, on_extended,    {witness_trouble, witness_recovered},
    on_lost,      on_over, witness_is_away};

static void leave(struct life *life, bool cancel)
{
    note(life, cancel ? "CANCEL" : "RELEASE");
    let_go(life);
    witness_leave(&life->me, cancel, LEAVE_NS);
}

static void plan_action(struct life *life)
{
    int64_t pause = chance(&life->sim.seed, chance(&life->sim.seed, 2) ? 300 : 9000);

    loop_arm(life->me.loop, &life->action, moment_plus(loop_now(life->me.loop), pause * NS_PER_MS));
}

static void act(struct loop_timer *timer)
{
    struct life *life = timer->owner;
    unsigned what = chance(&life->sim.seed, 12);

    if (life->actions == 0)
        leave(life, true);
    else if (what == 0 && life->me.held)
        leave(life, false);
    else if (what == 1 && chance(&life->sim.seed, 3) == 0)
        leave(life, true);
    else if (what == 2)
        keeper_verify(life->me.keeper);
    else if (what == 3)
        keeper_hold_renewals(life->me.keeper);
    else if (what == 4)
        keeper_allow_renewals(life->me.keeper);
    else if (what == 5 && life->me.held) {
        note(life, "RESTART");
        let_go(life);
        witness_restart(&life->me);
    } else if (what == 7 && !life->me.held) {
        note(life, "AWAY");
        life->me.away = true;
    } else if (what == 8) {
        note(life, "BACK");
        life->me.away = false;
        keeper_resume(life->me.keeper);
    } else if (what == 6) {
        note(life, "STOP");
        life->stopped = true;
        fake_suspend(life->me.loop, chance(&life->sim.seed, 40000) * NS_PER_MS);
    }
    if (life->actions-- > 0 && !life->me.over && !life->me.leaving)
        plan_action(life);
}

static void begin(struct life *life, unsigned seed)
{
    static const int leases[] = {1000, 3000, 30000}, waits[] = {-1, -1, 0, 1500, 20000};
    int lease, wait;

    *life = (struct life){
        .me = {.trial = &life->sim.trial, .loop = loop_new(), .leave_by = MOMENT_NEVER}};
    sim_begin(&life->sim, life->me.loop, seed);
    lease = leases[chance(&life->sim.seed, COUNT(leases))];
    wait = waits[chance(&life->sim.seed, COUNT(waits))];
    life->plan = plan_of("us", lease * NS_PER_MS, wait * NS_PER_MS, loop_now(life->me.loop));
    life->plan.renew = chance(&life->sim.seed, 8) > 0;
    life->actions = chance(&life->sim.seed, 30);
    life->action = (struct loop_timer){.fire = act, .owner = life};
    life->me.keeper = keeper_start(life->me.loop, &life->sim.base, &life->plan, &events, life);
    plan_action(life);
}

/* To the end, and until nothing is on its way any more. */
static void live(struct life *life, unsigned seed)
{
    int turns = 0;

    begin(life, seed);
    while (!life->sim.trial.fault && fake_turn(life->me.loop)) {
        if (++turns == TURNS_MAX)
            accuse(&life->sim.trial, "no end");
    }
    if (!life->me.over)
        accuse(&life->sim.trial, "never over");
    bool clean = life->me.ending == KEEPER_RELEASED || life->me.ending == KEEPER_NOT_ACQUIRED;
    if ((clean || life->sim.failing == 0) && life->sim.holder == CALLER)
        accuse(&life->sim.trial, "gone, but holds the lock");
    keeper_free(life->me.keeper);
    store_close(&life->sim.base);
    loop_free(life->me.loop);
}

int main(int argc, char **argv)
{
    unsigned holds = 0, losses = 0, returns = 0, handed = 0;
    unsigned started = 0;
    unsigned endings[KEEPER_UNRELEASED + 1] = {0};
    unsigned first = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    struct life life;

    for (unsigned seed = first; seed < first + SCHEDULES; seed += PART) {
        unsigned i = 0;
        do {
            live(&life, seed + i);
            holds += life.holds;
            losses += life.losses;
            returns += life.returns;
            handed += life.sim.handed_over;
            started += life.started;
            endings[life.me.ending]++;
        } while (!life.sim.trial.fault && ++i < PART);
        if (!tap_ok(!life.sim.trial.fault, "%d runs of a keeper", PART))
            tap_note("%s (seed %u): %s", life.sim.trial.fault, seed + i, life.sim.trial.log);
    }
    tap_ok(holds > SCHEDULES / 2 && losses > SCHEDULES / 20, "many of them held it, and lost it");
    tap_ok(returns > SCHEDULES / 200, "some had it again");
    tap_ok(handed > SCHEDULES / 20 && started > SCHEDULES / 50,
           "many were handed the lock, and many of them started from the message");
    for (size_t i = 0; i < COUNT(endings); i++)
        tap_ok(endings[i] > 0, "endings of kind %zu", i);
    tap_note("held %u, lost %u, had it again %u, handed over %u, started %u", holds, losses,
             returns, handed, started);
    return tap_done();
}
