/* A keeper among others, far from its server: whatever happens on the way, it never believes that
 * it holds a lock that somebody else has, and leaves nothing behind that it could have given
 * back. */
#include "lock/keeper.h"

#include "simulation.h"
#include "quiet_events.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

#define SCHEDULES 20000
#define PART      1000
#define TURNS_MAX 50000
#define LEAVE_NS  (8 * NS_PER_SEC)

struct life {
    struct simulation sim;
    struct loop *loop;
    struct keeper *keeper;
    struct keeper_plan plan;
    struct loop_timer action;
    unsigned actions; /* that are left */
    bool held, leaving, over, stopped;
    bool away; /* the owner cannot take a grant */
    struct moment leave_by;
    enum keeper_ending ending;
    unsigned holds, losses, returns,
        started; /* in all, so that a test that proves nothing is noticed */
};

static void note(struct life *life, const char *what)
{
    simulation_log(&life->sim, loop_now(life->loop), what);
}

static void let_go(struct life *life)
{
    life->held = false;
    life->sim.held_until = moment_min(life->sim.held_until, loop_now(life->loop));
}

static void take_deadline(struct life *life, struct moment deadline)
{
    struct simulation *sim = &life->sim;

    bool had = sim->holder == NO_OWNER && sim->was_holder == CALLER;

    if ((sim->holder != CALLER && !had) || sim->fence != sim->held_fence)
        simulation_accuse(sim, "held against the server's word");
    else if (sim->expires.ns < deadline.ns)
        simulation_accuse(sim, "a deadline behind the server's");
    sim->held_until = deadline;
}

static void on_held(void *arg, struct lease lease, const struct lock_grant *grants)
{
    struct life *life = arg;

    note(life, "HELD");
    if (life->held || life->leaving)
        simulation_accuse(&life->sim, "held twice, or after the end");
    if (life->away)
        simulation_accuse(&life->sim, "held by one who is away");
    life->held = true;
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
    if (!life->held)
        simulation_accuse(&life->sim, "extended, but not held");
    take_deadline(life, lease.end);
}

static void on_lost(void *arg, const struct keeper_loss *loss)
{
    struct life *life = arg;

    (void)loss;
    note(life, "LOST");
    if (!life->held && !life->leaving)
        simulation_accuse(&life->sim, "lost, but not held");
    life->losses++;
    let_go(life);
}

static void on_over(void *arg, const struct keeper_end *end)
{
    struct life *life = arg;

    note(life, "OVER");
    if (life->over)
        simulation_accuse(&life->sim, "over twice");
    if (life->sim.owed)
        simulation_accuse(&life->sim, "left without trying to release it");
    if (loop_now(life->loop).ns > life->leave_by.ns && !life->stopped)
        simulation_accuse(&life->sim, "over later than it was told");
    life->over = true;
    life->ending = end->ending;
    let_go(life);
    loop_disarm(life->loop, &life->action);
    life->sim.quiet = true;
}

static bool is_absent(void *arg)
{
    return ((struct life *)arg)->away;
}

static const struct keeper_events events = {
    quiet_answer, on_held, on_extended, {quiet_answer, quiet_recovered},
    on_lost,      on_over, is_absent};

static void leave(struct life *life, bool cancel)
{
    struct moment until = moment_plus(loop_now(life->loop), LEAVE_NS);

    note(life, cancel ? "CANCEL" : "RELEASE");
    life->leave_by = until;
    life->leaving = true;
    let_go(life);
    if (cancel)
        keeper_cancel(life->keeper, until);
    else
        keeper_release(life->keeper, until, &(struct lock_end){0});
}

static void plan_action(struct life *life)
{
    int64_t pause = simulation_chance(&life->sim, simulation_chance(&life->sim, 2) ? 300 : 9000);

    loop_arm(life->loop, &life->action, moment_plus(loop_now(life->loop), pause * NS_PER_MS));
}

static void act(struct loop_timer *timer)
{
    struct life *life = timer->owner;
    unsigned what = simulation_chance(&life->sim, 12);

    if (life->actions == 0)
        leave(life, true);
    else if (what == 0 && life->held)
        leave(life, false);
    else if (what == 1 && simulation_chance(&life->sim, 3) == 0)
        leave(life, true);
    else if (what == 2)
        keeper_verify(life->keeper);
    else if (what == 3)
        keeper_hold_renewals(life->keeper, true);
    else if (what == 4)
        keeper_hold_renewals(life->keeper, false);
    else if (what == 5 && life->held) {
        note(life, "RESTART");
        let_go(life);
        keeper_restart(life->keeper);
    } else if (what == 7 && !life->held) {
        note(life, "AWAY");
        life->away = true;
    } else if (what == 8) {
        note(life, "BACK");
        life->away = false;
        keeper_resume(life->keeper);
    } else if (what == 6) {
        note(life, "STOP");
        life->stopped = true;
        fake_suspend(life->loop, simulation_chance(&life->sim, 40000) * NS_PER_MS);
    }
    if (life->actions-- > 0 && !life->over && !life->leaving)
        plan_action(life);
}

static void begin(struct life *life, unsigned seed)
{
    static const char *const keys[] = {"k"};
    static const int leases[] = {1000, 3000, 30000}, waits[] = {-1, -1, 0, 1500, 20000};
    int lease, wait;

    *life = (struct life){.loop = loop_new(), .leave_by = MOMENT_NEVER};
    simulation_begin(&life->sim, life->loop, seed);
    lease = leases[simulation_chance(&life->sim, COUNT(leases))];
    wait = waits[simulation_chance(&life->sim, COUNT(waits))];
    life->plan = (struct keeper_plan){
        .request =
            {.keys = keys, .key_count = 1, .owner = "us", .lease = lease * NS_PER_MS, .who = ""},
        .wait = wait != 0,
        .wait_until = wait < 0 ? MOMENT_NEVER : moment_plus(loop_now(life->loop), wait * NS_PER_MS),
        .renew = simulation_chance(&life->sim, 8) > 0,
        .connect_timeout = 5 * NS_PER_SEC,
        .server_wait = 5 * NS_PER_SEC};
    life->actions = simulation_chance(&life->sim, 30);
    life->action = (struct loop_timer){.fire = act, .owner = life};
    life->keeper = keeper_start(life->loop, &life->sim.base, &life->plan, &events, life);
    plan_action(life);
}

/* To the end, and until nothing is on its way any more. */
static void live(struct life *life, unsigned seed)
{
    int turns = 0;

    begin(life, seed);
    while (!life->sim.fault && fake_turn(life->loop)) {
        if (++turns == TURNS_MAX)
            simulation_accuse(&life->sim, "no end");
    }
    if (!life->over)
        simulation_accuse(&life->sim, "never over");
    bool clean = life->ending == KEEPER_RELEASED || life->ending == KEEPER_NOT_ACQUIRED;
    if ((clean || life->sim.failing == 0) && life->sim.holder == CALLER)
        simulation_accuse(&life->sim, "gone, but holds the lock");
    keeper_free(life->keeper);
    store_close(&life->sim.base);
    loop_free(life->loop);
}

int main(int argc, char **argv)
{
    unsigned holds = 0, losses = 0, returns = 0, shorter = 0, sessions = 0, handed = 0;
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
            shorter += life.sim.short_grants;
            sessions += life.sim.sessions_lost;
            handed += life.sim.handed_over;
            started += life.started;
            endings[life.ending]++;
        } while (!life.sim.fault && ++i < PART);
        if (!tap_ok(!life.sim.fault, "%d runs of a keeper", PART))
            tap_note("%s (seed %u): %s", life.sim.fault, seed + i, life.sim.log);
    }
    tap_ok(holds > SCHEDULES / 2 && losses > SCHEDULES / 20, "many of them held it, and lost it");
    tap_ok(returns > SCHEDULES / 200, "some had it again");
    tap_ok(shorter > SCHEDULES / 2, "many got less time than they asked for");
    tap_ok(sessions > SCHEDULES / 20, "many sessions got lost");
    tap_ok(handed > SCHEDULES / 20 && started > SCHEDULES / 50,
           "many were handed the lock, and many of them started from the message");
    for (size_t i = 0; i < COUNT(endings); i++)
        tap_ok(endings[i] > 0, "endings of kind %zu", i);
    tap_note("held %u, lost %u, had it again %u, for less time %u, sessions lost %u, "
             "handed over %u, started %u",
             holds, losses, returns, shorter, sessions, handed, started);
    return tap_done();
}
