/* A keeper and a server far away, where nothing is lost: at any round trip below a third of the
 * lease it has the lock and keeps it, at a longer one it ends, soon, and says why (H125); and it
 * never trusts a lease that the server does not. */
#include "lock/keeper.h"

#include "fake_loop.h"
#include "keepers.h"
#include "lock/lease.h"
#include "tap.h"

#define MS         NS_PER_MS
#define S          NS_PER_SEC
#define KILL_AFTER (5 * S)
#define REQUEST    (2 * S) /* as long may a question go unanswered, or two round trips */
#define LEAVE      (8 * S)
#define TURNS_MAX  20000

/* The server, and the way there: two round trips to be connected and greeted, one for a
 * question. */
struct far {
    struct store base;
    struct loop *loop;
    int64_t trip, connect_timeout;
    bool connected;
    struct moment expires; /* the lease; in the past: it is free */
    struct question {
        enum store_verb what;
        int64_t lease, trip;
        struct moment until;
        store_done *done;
        void *arg;
        bool granted, given_up;
        struct loop_timer arrives, answered, over; /* over: it is not waited for any longer */
    } questions[64];
    size_t next;
};

static struct far *of(struct store *base)
{
    return (struct far *)(void *)base;
}

static struct far *current;

static void arrive(struct loop_timer *timer)
{
    struct question *question = timer->owner;
    struct moment now = loop_now(current->loop);

    question->granted = question->what != VERB_ACQUIRE || now.ns <= question->until.ns;
    if (question->what == VERB_RELEASE)
        current->expires = now;
    else if (question->granted)
        current->expires = moment_plus(now, question->lease);
}

static void end(struct question *question, const struct answer *answer)
{
    loop_disarm(current->loop, &question->over);
    question->given_up = true;
    question->done(question->arg, answer);
}

static void answer(struct loop_timer *timer)
{
    struct question *question = timer->owner;
    static const struct lock_grant grants[LOCK_KEYS_MAX] = {{.fence = 1}};
    struct answer granted = {.verdict = VERDICT_GRANTED, .grants = grants};

    granted.from = moment_plus(loop_now(current->loop), -question->trip);
    current->connected = true;
    if (!question->given_up)
        end(question, &granted);
}

static void give_up(struct loop_timer *timer)
{
    struct question *question = timer->owner;
    bool sent =
        moment_reached(question->arrives.due, loop_now(current->loop)) || question->arrives.added;
    struct answer silence = {
        .verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE, .maybe_done = sent};

    strcpy(silence.text, "no answer in time");
    current->connected = false;
    end(question, &silence);
}

static void far_start(struct store *base, const struct operation *operation)
{
    enum store_verb what = operation->verb;
    struct moment until = operation->until;
    struct far *far = of(base);
    struct question *question = &far->questions[far->next++ % COUNT(far->questions)];
    struct moment now = loop_now(far->loop);
    /* A release does not wait for the greeting. */
    int64_t way = far->connected ? 0 : what == VERB_RELEASE ? far->trip : 2 * far->trip;
    struct moment sent = moment_plus(now, way), reached = moment_plus(now, 2 * far->trip);
    struct moment timeout = moment_plus(sent, 2 * far->trip > REQUEST ? 2 * far->trip : REQUEST);
    struct moment connect_by = moment_plus(now, far->connect_timeout);
    bool out = far->connected || reached.ns <= moment_min(until, connect_by).ns;

    *question = (struct question){.what = what,
                                  .lease = operation_lock(operation).lease,
                                  .trip = far->trip,
                                  .until = until,
                                  .done = operation->done,
                                  .arg = operation->arg};
    question->arrives = (struct loop_timer){.fire = arrive, .owner = question};
    question->answered = (struct loop_timer){.fire = answer, .owner = question};
    question->over = (struct loop_timer){.fire = give_up, .owner = question};
    if (what == VERB_ACQUIRE)
        until = moment_min(until, timeout);
    if (out || what == VERB_RELEASE) {
        loop_arm(far->loop, &question->arrives, moment_plus(sent, far->trip / 2));
        loop_arm(far->loop, &question->answered, moment_plus(sent, far->trip));
    }
    loop_arm(far->loop, &question->over, out ? until : moment_min(until, connect_by));
}

/* -- what the keeper says ---------------------------------------------------------------------- */

struct life {
    struct far far;
    struct keeper_plan plan;
    struct moment begun, held_at; /* 0: not held yet */
    struct lease lease;
    bool lost, over;
    struct keeper_end end;
    struct moment over_at;
    unsigned extended;
    const char *fault;
};

static void accuse(struct life *life, const char *fault)
{
    if (!life->fault)
        life->fault = fault;
}

static void trust(struct life *life, struct lease lease)
{
    if (lease.end.ns > life->far.expires.ns)
        accuse(life, "a deadline behind the server's");
    life->lease = lease;
}

static void on_waiting(void *arg, const struct answer *refusal)
{
    (void)refusal;
    accuse(arg, "refused");
}

static void on_held(void *arg, struct lease lease, const struct lock_grant *grants)
{
    struct life *life = arg;

    (void)grants;
    life->held_at = loop_now(life->far.loop);
    trust(life, lease);
}

static void on_extended(void *arg, struct lease lease, bool forgotten)
{
    struct life *life = arg;

    (void)forgotten;
    life->extended++;
    trust(life, lease);
}

static void on_lost(void *arg, const struct keeper_loss *loss)
{
    struct life *life = arg;

    (void)loss;
    life->lost = true;
}

static void on_over(void *arg, const struct keeper_end *end)
{
    struct life *life = arg;

    life->over = true;
    life->end = *end;
    life->over_at = loop_now(life->far.loop);
}

static const struct keeper_events events = {
    on_waiting, on_held, on_extended, {quiet_answer, quiet_recovered}, on_lost, on_over, NULL};

/* -- a keeper from start to end ---------------------------------------------------------------- */

enum waiting { NO_WAIT, WAIT, WAIT_FOR_EVER };

static void begin(struct life *life, int64_t lease, int64_t trip, enum waiting waiting)
{
    static const struct store_ops ops = {close_nothing, far_start, NULL};
    int64_t wait = waiting == NO_WAIT ? 0 : waiting == WAIT ? 3 * lease : -1;

    *life = (struct life){.far = {.base = {.ops = &ops}, .trip = trip}};
    current = &life->far;
    life->far.loop = loop_new();
    life->far.connect_timeout = 5 * S > 4 * lease ? 5 * S : 4 * lease;
    life->begun = loop_now(life->far.loop);
    life->far.expires = life->begun;
    life->plan = plan_of("us", lease, wait, life->begun);
    life->plan.connect_timeout = life->plan.server_wait = life->far.connect_timeout;
}

static struct keeper *start(struct life *life)
{
    return keeper_start(life->far.loop, &life->far.base, &life->plan, &events, life);
}

/* Until then, or until something has ended. While it is held, its command is not to be stopped. */
static void go_on(struct life *life, struct moment until)
{
    for (int turns = 0; !life->over && !life->lost && loop_now(life->far.loop).ns < until.ns;
         turns++) {
        struct moment term =
            life->held_at.ns ? lease_term_at(life->lease, KILL_AFTER) : MOMENT_NEVER;
        if (!fake_turn(life->far.loop) || turns == TURNS_MAX)
            return;
        if (loop_now(life->far.loop).ns > term.ns)
            accuse(life, "not renewed before its command had to be stopped");
    }
}

static void finish(struct life *life, struct keeper *keeper)
{
    while (!life->over && fake_turn(life->far.loop))
        ;
    /* Questions on their way arrive. */
    struct moment last = moment_plus(loop_now(life->far.loop), 4 * life->far.trip);
    while (loop_now(life->far.loop).ns < last.ns && fake_turn(life->far.loop))
        ;
    if (!moment_reached(life->far.expires, loop_now(life->far.loop)))
        accuse(life, "gone, but holds the lock");
    keeper_free(keeper);
    store_close(&life->far.base);
    loop_free(life->far.loop);
}

/* Near enough: had soon, and kept for long. */
static void live_near(struct life *life)
{
    int64_t lease = life->plan.request.lease, trip = life->far.trip;
    struct keeper *keeper = start(life);

    go_on(life, moment_plus(life->begun, 25 * lease));
    if (life->over || life->lost)
        accuse(life, "not kept");
    else if (moment_until(life->begun, life->held_at) > 4 * trip)
        accuse(life, "not had soon");
    else if (life->extended < 20)
        accuse(life, "hardly ever renewed");
    else
        keeper_release(keeper, moment_plus(loop_now(life->far.loop), LEAVE + 2 * trip), NULL);
    finish(life, keeper);
    if (!life->fault && life->end.ending != KEEPER_RELEASED)
        accuse(life, "not released");
}

/* Too far: an end, soon, and why. A server that cannot even be greeted in time is out of reach. */
static void live_far(struct life *life, enum waiting waiting)
{
    int64_t lease = life->plan.request.lease, trip = life->far.trip;
    int64_t tries = 3 * (life->far.connect_timeout + lease), wait = 3 * lease;
    int64_t most = 3 * S + (waiting == WAIT && wait < tries ? wait : tries);
    struct keeper *keeper = start(life);
    bool heard = 3 * trip <= life->far.connect_timeout && waiting != WAIT;

    go_on(life, moment_plus(life->begun, 2 * most));
    finish(life, keeper);
    if (life->held_at.ns)
        accuse(life, "held what cannot be kept");
    else if (moment_until(life->begun, life->over_at) > most)
        accuse(life, "no end in time");
    else if (life->end.ending != KEEPER_FAILED)
        accuse(life, "not for the store's sake");
    else if (heard && !life->end.far.round_trip)
        accuse(life, "not told why");
}

static void test_distances(void)
{
    static const int64_t leases[] = {1, 2, 3, 5, 10, 30, 600};
    static const char *const names[] = {"no wait", "some wait", "endless wait"};

    for (size_t i = 0; i < COUNT(leases); i++) {
        for (enum waiting waiting = NO_WAIT; waiting <= WAIT_FOR_EVER; waiting++) {
            int64_t lease = leases[i] * S;
            int wrong = 0;
            struct life life = {.fault = NULL};
            for (int percent = 1; percent <= 200 && !wrong; percent++) {
                begin(&life, lease, lease / 100 * percent, waiting);
                if (percent <= 33)
                    live_near(&life);
                else
                    live_far(&life, waiting);
                wrong = life.fault ? percent : 0;
            }
            if (!tap_ok(!wrong,
                        "a lease of %" PRId64 " s, %s: round trips from 1 %% to 200 %% of it",
                        leases[i], names[waiting]))
                tap_note("%d %%: %s; \"%s\"", wrong, life.fault, life.end.text);
        }
    }
}

static void test_reason(void)
{
    struct life life;

    begin(&life, 1 * S, 612 * MS, NO_WAIT);
    live_far(&life, NO_WAIT);
    tap_ok(life.end.far.round_trip == 612 * MS && life.end.far.lease == 1 * S &&
               life.end.far.needed == 2 * S,
           "a round trip of 612 ms is too long for a lease of 1 s; it takes 2 s");
    tap_ok(life.end.cause == CAUSE_UNFIT, "that is the store's fault, and does not pass");
}

/* It grows while the lock is held: followed, step by step; or the lock is lost before anybody else
 * can have it. */
static void test_growth(void)
{
    static const struct {
        int from, to; /* % of the lease */
        bool kept;
    } rows[] = {{1, 16, true},  {5, 19, true},  {8, 31, true},
                {16, 33, true}, {5, 30, false}, {1, 90, false}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct life life;
        struct keeper *keeper;
        int64_t lease = 30 * S;

        begin(&life, lease, lease / 100 * rows[i].from, NO_WAIT);
        keeper = start(&life);
        go_on(&life, moment_plus(life.begun, 5 * lease));
        life.far.trip = lease / 100 * rows[i].to;
        struct moment last = life.lease.end;
        go_on(&life, moment_plus(loop_now(life.far.loop), 5 * lease));
        bool fine = rows[i].kept ? !life.lost && !life.fault : life.lost;
        fine &= rows[i].kept || loop_now(life.far.loop).ns >= last.ns;
        tap_ok(fine, "from %d %% to %d %%: %s", rows[i].from, rows[i].to,
               rows[i].kept ? "kept" : "lost, in time");
        if (!life.over)
            keeper_release(keeper, moment_plus(loop_now(life.far.loop), LEAVE + 4 * life.far.trip),
                           NULL);
        life.fault = NULL;
        life.lost = false;
        finish(&life, keeper);
    }
}

int main(void)
{
    test_distances();
    test_reason();
    test_growth();
    return tap_done();
}
