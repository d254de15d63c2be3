/* A keeper among others, far from its server: whatever weather there is on the way, it never believes that it holds
 * a lock that somebody else has, and leaves nothing behind that it could have given back. */
#include "keeper.h"

#include "fake_world.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

#define SCHEDULES 20000
#define PART      1000
#define TURNS_MAX 50000
#define LEAVE_NS  (8 * NS_PER_SEC)

struct life {
    struct world world;
    struct loop *loop;
    struct keeper *keeper;
    struct keeper_plan plan;
    struct loop_timer action;
    unsigned actions; /* that are left */
    bool held, leaving, over, stopped;
    struct moment leave_by;
    enum keeper_ending ending;
    unsigned holds, losses, returns; /* in all, so that a test that proves nothing is noticed */
};

static void note(struct life *life, const char *what)
{
    world_log(&life->world, loop_now(life->loop), what);
}

static void let_go(struct life *life)
{
    life->held = false;
    life->world.held_until = moment_min(life->world.held_until, loop_now(life->loop));
}

static void take_deadline(struct life *life, struct moment deadline)
{
    struct world *world = &life->world;

    bool had = world->holder == NOBODY && world->was_holder == CALLER;

    if ((world->holder != CALLER && !had) || world->fence != world->held_fence)
        world_accuse(world, "held against the server's word");
    else if (world->expires.ns < deadline.ns)
        world_accuse(world, "a deadline behind the server's");
    world->held_until = deadline;
}

static void on_waiting(void *arg, const struct answer *refusal)
{
    (void)arg, (void)refusal;
}

static void on_held(void *arg, struct moment deadline, const struct lock_grant *grants)
{
    struct life *life = arg;

    note(life, "HELD");
    if (life->held || life->leaving)
        world_accuse(&life->world, "held twice, or after the end");
    life->held = true;
    life->holds++;
    life->world.held_fence = grants[0].fence;
    take_deadline(life, deadline);
}

static void on_extended(void *arg, struct moment deadline, bool forgotten)
{
    struct life *life = arg;

    note(life, "EXTENDED");
    life->returns += forgotten;
    if (!life->held)
        world_accuse(&life->world, "extended, but not held");
    take_deadline(life, deadline);
}

static void on_trouble(void *arg, const char *why)
{
    (void)arg, (void)why;
}

static void on_lost(void *arg, const char *why)
{
    struct life *life = arg;

    (void)why;
    note(life, "LOST");
    if (!life->held && !life->leaving)
        world_accuse(&life->world, "lost, but not held");
    life->losses++;
    let_go(life);
}

static void on_over(void *arg, const struct keeper_end *end)
{
    struct life *life = arg;

    note(life, "OVER");
    if (life->over)
        world_accuse(&life->world, "over twice");
    if (life->world.owed)
        world_accuse(&life->world, "left without trying to give it back");
    if (loop_now(life->loop).ns > life->leave_by.ns && !life->stopped)
        world_accuse(&life->world, "over later than it was told");
    life->over = true;
    life->ending = end->ending;
    let_go(life);
    loop_disarm(life->loop, &life->action);
    life->world.quiet = true;
}

static const struct keeper_events events = {on_waiting, on_held, on_extended,
                                            on_trouble, on_lost, on_over};

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
        keeper_release(life->keeper, until, true);
}

static void plan_action(struct life *life)
{
    int64_t pause = world_chance(&life->world, world_chance(&life->world, 2) ? 300 : 9000);

    loop_arm(life->loop, &life->action, moment_plus(loop_now(life->loop), pause * NS_PER_MS));
}

static void act(struct loop_timer *timer)
{
    struct life *life = timer->owner;
    unsigned what = world_chance(&life->world, 10);

    if (life->actions == 0)
        leave(life, true);
    else if (what == 0 && life->held)
        leave(life, false);
    else if (what == 1 && world_chance(&life->world, 3) == 0)
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
    } else if (what == 6) {
        note(life, "STOP");
        life->stopped = true;
        fake_suspend(life->loop, world_chance(&life->world, 40000) * NS_PER_MS);
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
    world_begin(&life->world, life->loop, seed);
    lease = leases[world_chance(&life->world, COUNT(leases))];
    wait = waits[world_chance(&life->world, COUNT(waits))];
    life->plan = (struct keeper_plan){
        .request =
            {.keys = keys, .key_count = 1, .owner = "us", .lease = lease * NS_PER_MS, .who = ""},
        .wait = wait != 0,
        .wait_until = wait < 0 ? MOMENT_NEVER : moment_plus(loop_now(life->loop), wait * NS_PER_MS),
        .renew = world_chance(&life->world, 8) > 0,
        .connect_timeout = 5 * NS_PER_SEC};
    life->actions = world_chance(&life->world, 30);
    life->action = (struct loop_timer){.fire = act, .owner = life};
    life->keeper = keeper_start(life->loop, &life->world.base, &life->plan, &events, life);
    plan_action(life);
}

/* To the end, and until nothing is on its way any more. */
static void live(struct life *life, unsigned seed)
{
    int turns = 0;

    begin(life, seed);
    while (!life->world.fault && fake_turn(life->loop)) {
        if (++turns == TURNS_MAX)
            world_accuse(&life->world, "no end");
    }
    if (!life->over)
        world_accuse(&life->world, "never over");
    bool clean = life->ending == KEEPER_RELEASED || life->ending == KEEPER_NOT_ACQUIRED;
    if ((clean || life->world.weather == 0) && life->world.holder == CALLER)
        world_accuse(&life->world, "gone, but holds the lock");
    keeper_free(life->keeper);
    loop_free(life->loop);
}

int main(int argc, char **argv)
{
    unsigned holds = 0, losses = 0, returns = 0, endings[KEEPER_UNRELEASED + 1] = {0};
    unsigned first = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    struct life life;

    for (unsigned seed = first; seed < first + SCHEDULES; seed += PART) {
        unsigned i = 0;
        do {
            live(&life, seed + i);
            holds += life.holds;
            losses += life.losses;
            returns += life.returns;
            endings[life.ending]++;
        } while (!life.world.fault && ++i < PART);
        if (!tap_ok(!life.world.fault, "%d lives", PART))
            tap_note("%s (seed %u): %s", life.world.fault, seed + i, life.world.log);
    }
    tap_ok(holds > SCHEDULES / 2 && losses > SCHEDULES / 20, "many of them held it, and lost it");
    tap_ok(returns > SCHEDULES / 200, "some had it again");
    for (size_t i = 0; i < COUNT(endings); i++)
        tap_ok(endings[i] > 0, "endings of kind %zu", i);
    tap_note("held %u, lost %u, had it again %u", holds, losses, returns);
    return tap_done();
}
