/* How often a waiter asks: only the pace, and a keeper under a store that answers at once, and with
 * each answer gives it a reason to ask again. H130 */
#include "lock/keeper.h"
#include "lock/throttle.h"

#include "fake_loop.h"
#include "keepers.h"
#include "tap.h"

#define MS      NS_PER_MS
#define S       NS_PER_SEC
#define MINUTE  (60 * S)
#define ASK_MAX 5000

/* -- alone ----------------------------------------------------------------------------------- */

/* A burst at once, then ten a second; after a rest, a burst again. */
static void test_pace(void)
{
    struct throttle throttle = {{0}};
    struct moment now = {1000 * S};
    int burst = 0, steady = 0;

    for (; burst < 100 && moment_reached(throttle_next(&throttle), now); burst++)
        throttle_note(&throttle, now);
    tap_ok(burst == THROTTLE_BURST, "%d at once", burst);
    for (struct moment end = moment_plus(now, MINUTE); now.ns < end.ns; now.ns += MS) {
        if (moment_reached(throttle_next(&throttle), now)) {
            throttle_note(&throttle, now);
            steady++;
        }
    }
    tap_ok(steady >= 590 && steady <= 600, "then %d in a minute", steady);
    now.ns += 10 * S;
    for (burst = 0; burst < 100 && moment_reached(throttle_next(&throttle), now); burst++)
        throttle_note(&throttle, now);
    tap_ok(burst == THROTTLE_BURST, "after a rest %d at once", burst);
}

/* -- under a store --------------------------------------------------------------------------- */

struct eager {
    struct store base;
    struct loop *loop;
    struct answer answer;
    bool pokes;
    struct loop_timer reply, poke;
    store_done *done;
    void *done_arg;
    struct moment asked[ASK_MAX];
    int count;
};

static void start(struct store *base, const struct operation *operation)
{
    struct eager *eager = (struct eager *)(void *)base;

    if (eager->count == ASK_MAX)
        return; /* and is never answered: it was far too often */
    eager->asked[eager->count++] = loop_now(eager->loop);
    eager->done = operation->done;
    eager->done_arg = operation->arg;
    loop_arm(eager->loop, &eager->reply, loop_now(eager->loop));
}

static void reply(struct loop_timer *timer)
{
    struct eager *eager = timer->owner;

    if (eager->pokes)
        loop_arm(eager->loop, &eager->poke, loop_now(eager->loop));
    eager->done(eager->done_arg, &eager->answer);
}

static void poke(struct loop_timer *timer)
{
    struct eager *eager = timer->owner;

    store_changed(&eager->base);
}

static enum release_sent release_nowait(struct store *store, const struct release_request *request)
{
    (void)store, (void)request;
    return RELEASE_SENT;
}

static void on_over(void *arg, const struct keeper_end *end)
{
    (void)arg, (void)end;
}

static void wait_for_lock(struct eager *eager)
{
    static const struct keeper_events events = {.waiting = quiet_answer,
                                                .held = quiet_held,
                                                .extended = quiet_extended,
                                                .outage.trouble = quiet_answer,
                                                .outage.recovered = quiet_recovered,
                                                .lost = quiet_lost,
                                                .over = on_over};
    const struct keeper_plan plan = plan_of("us", 30 * S, -1, loop_now(eager->loop));
    struct moment end = moment_plus(loop_now(eager->loop), MINUTE);
    struct keeper *keeper = keeper_start(eager->loop, &eager->base, &plan, &events, NULL);

    while (loop_now(eager->loop).ns < end.ns && fake_turn(eager->loop))
        ;
    keeper_free(keeper);
}

/* How many were asked in the fullest second. */
static int fullest_second(const struct eager *eager)
{
    int most = 0;

    for (int i = 0; i < eager->count; i++) {
        int end = i;
        while (end < eager->count && eager->asked[end].ns < eager->asked[i].ns + S)
            end++;
        most = end - i > most ? end - i : most;
    }
    return most;
}

static const struct {
    const char *name;
    struct answer answer;
    bool pokes;
} rows[] = {
    ROW("next, and its lease is over at once", .answer.verdict = VERDICT_REFUSED,
        .answer.cause = CAUSE_HELD, .answer.refused.position = 1, .answer.refused.holders = 1,
        .answer.refused.left_ms = 1),
    ROW("nothing is granted for a ms more, for ever", .answer.verdict = VERDICT_REFUSED,
        .answer.cause = CAUSE_GRACE, .answer.refused.position = 1, .answer.grace_ms = 1),
    ROW("called, again and again", .answer.verdict = VERDICT_REFUSED, .answer.cause = CAUSE_HELD,
        .answer.refused.position = 3, .pokes = true),
    ROW("cut off with each renewal", .answer.verdict = VERDICT_GRANTED, .pokes = true),
    ROW("failing, and called", .answer.verdict = VERDICT_UNKNOWN, .answer.cause = CAUSE_NOT_READY,
        .pokes = true),
};

static void close_store(struct store *store)
{
    struct eager *eager = (struct eager *)(void *)store;

    loop_disarm(eager->loop, &eager->reply);
    loop_disarm(eager->loop, &eager->poke);
}

/* A keeper whose store answers at once and gives it a reason to ask again each time keeps to
 * that pace. */
static void test_waiters(void)
{
    static const struct store_ops ops = {close_store, start, release_nowait};
    static const struct lock_grant grants[LOCK_KEYS_MAX] = {{.fence = 1}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct eager *eager = calloc(1, sizeof *eager);
        if (!eager)
            abort();
        *eager = (struct eager){
            .base.ops = &ops, .loop = loop_new(), .answer = rows[i].answer, .pokes = rows[i].pokes};
        eager->reply = (struct loop_timer){.fire = reply, .owner = eager};
        eager->poke = (struct loop_timer){.fire = poke, .owner = eager};
        eager->answer.granted.grants = grants;
        wait_for_lock(eager);
        int most = fullest_second(eager);
        if (!tap_ok(eager->count > 2 && most <= 2 * THROTTLE_BURST + 2 && eager->count <= 625, "%s",
                    rows[i].name))
            tap_note("%d in a second, %d in a minute", most, eager->count);
        store_close(&eager->base);
        loop_free(eager->loop);
        free(eager);
    }
}

int main(void)
{
    test_pace();
    test_waiters();
    return tap_done();
}
