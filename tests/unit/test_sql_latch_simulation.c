/* A latch in a simulated database behind a bad network: several processes set it, count it down,
 * wait for it, and want its key as a lock, each over a real store. Whatever happens on the way, it
 * is counted once for each id, it is open when all have counted and not before, who waits goes on
 * then, and a latch and a lock are never one.
 *
 * Arguments: the first seed, and how many lives. RLOCK_LIVES: how many. */
#include "sql_simulation.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "lock/key.h"
#include "lock/latch_operation.h"
#include "store/sql/dialect.h"
#include "store/sql/latch.h"
#include "store/sql/row.h"

#define LIVES     1500
#define PART      500
#define KEY       "k"
#define IDS       3 /* of one who counts */
#define TURNS_MAX 100000
#define CALM_NS   (120 * NS_PER_SEC)
/* Sooner than a waiter looks that nobody calls; and than one looks that is called by nobody. */
#define CALLED_NS (1000 * NS_PER_MS)
#define LOOKED_NS (2200 * NS_PER_MS)

/* Each is a process, one time after the other. */
enum role { SETTER, FIRST_COUNTER, LAST_COUNTER = 3, WAITER, LOCKER, ACTORS };

struct actor {
    struct life *life;
    enum role role;
    struct loop *loop;
    struct loop_timer action;
    struct store *store;               /* NULL: it does nothing now */
    struct latch_operation *operation; /* NULL, too: of the locker */
    unsigned step;                     /* what it does next; "steps": it has done all */
    unsigned steps;
    char id[20], owner[40];
    bool over;
    bool unsure; /* it was killed, or given up, and may have done it */
    struct moment began;
    struct latch_operation_end end;
};

struct life {
    struct world world;
    struct url url;
    struct store_address address;
    struct actor actors[ACTORS];
    struct loop_timer trouble;
    bool faults;  /* this life has some */
    bool closed;  /* one more is set than ever counts */
    bool deleted; /* the latch is to go, and a lock to come */
    unsigned owners, ids;
    int64_t number;
    struct moment end_of_faults, opened;
    uint64_t fence;

    unsigned locked, refused, woken, repeated;
};

static void accuse(struct actor *actor, const char *fault)
{
    world_log(&actor->life->world, "%d: %s", actor->role, fault);
    world_accuse(&actor->life->world, fault);
}

/* -- what the database has ------------------------------------------------------------------- */

static void read_state(struct life *life, struct sql_row *row, const char *digits)
{
    char *state = sql_unhex(digits);

    if (*digits && (!state || !sql_row_read(row, state)))
        world_accuse(&life->world, "a row is damaged");
    sql_row_clean(row, life->world.database.now);
    free(state);
}

/* Of the latch; -1: there is none. */
static int64_t left_in_store(struct life *life)
{
    const struct sim_database *database = &life->world.database;
    struct sql_row row = {0};
    int64_t left = -1;

    if (database->lock_count > 0)
        read_state(life, &row, database->locks[0].state);
    if (row.latch)
        left = row.latch->left;
    sql_row_free(&row);
    return left;
}

/* Only what is there already, and more. */
static bool goes_on(const struct sql_latch *before, const struct sql_latch *after)
{
    if (strcmp(before->word, after->word) != 0 || before->number != after->number ||
        before->expires != after->expires || after->count < before->count)
        return false;
    for (size_t i = 0; i < before->count; i++)
        if (strcmp(before->counts[i].field, after->counts[i].field) != 0)
            return false;
    for (size_t i = 0; i < after->count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(after->counts[i].field, after->counts[j].field) == 0)
                return false;
    return true;
}

static void written(void *arg, const char *name, const char *before, const char *after)
{
    struct life *life = arg;
    struct sql_row old = {0}, new = {0};

    (void)name;
    read_state(life, &old, before);
    read_state(life, &new, after);
    if (new.fence < old.fence)
        world_accuse(&life->world, "a row's fence went down");
    if (old.latch && new.latch && !goes_on(old.latch, new.latch))
        world_accuse(&life->world, "a latch became another one");
    if (old.latch && !new.latch && (!life->deleted || new.count > 0))
        world_accuse(&life->world, "a latch is gone");
    if (old.count > 0 && new.latch)
        world_accuse(&life->world, "a lock that is held became a latch");
    if (new.latch &&new.latch->left == 0 && life->opened.ns == 0)
        life->opened = life->world.now;
    sql_row_free(&old);
    sql_row_free(&new);
}

/* -- what they do ---------------------------------------------------------------------------- */

static void plan_action(struct actor *actor)
{
    struct world *world = &actor->life->world;
    unsigned most = world_chance(world, 2) ? 300 : 5000;

    loop_arm(actor->loop, &actor->action,
             moment_plus(world->now, (int64_t)world_chance(world, most) * NS_PER_MS));
}

static void close_actor(struct actor *actor)
{
    if (!actor->store)
        return;
    loop_disarm(actor->loop, &actor->action);
    store_close(actor->store);
    if (actor->operation)
        latch_operation_free(actor->operation);
    actor->store = NULL;
    actor->operation = NULL;
    if (actor->step < actor->steps)
        plan_action(actor);
}

static void open_store(struct actor *actor)
{
    char fault[256];

    actor->over = false;
    actor->began = actor->life->world.now;
    actor->store = store_open(actor->loop, &actor->life->address, fault, sizeof fault);
    if (!actor->store)
        abort();
}

static void on_waiting(void *arg, const struct answer *answer)
{
    (void)arg, (void)answer;
}

static void on_trouble(void *arg, const struct answer *why)
{
    (void)arg, (void)why;
}

static void on_recovered(void *arg, int64_t after)
{
    (void)arg, (void)after;
}

static void on_over(void *arg, const struct latch_operation_end *end)
{
    struct actor *actor = arg;

    world_log(&actor->life->world, "%d: OVER %d %s", actor->role, end->ending, end->answer.text);
    if (actor->over)
        accuse(actor, "over twice");
    actor->over = true;
    actor->end = *end;
    if (actor->role == WAITER && end->ending == LATCH_OPERATION_DONE && actor->life->opened.ns == 0)
        accuse(actor, "it goes on, and the latch is closed");
    loop_arm(actor->loop, &actor->action, actor->life->world.now);
}

/* The last of them is the same for all who count. Some are words of calls without an id. */
static void name_id(struct actor *actor, bool *unnamed)
{
    bool shared = actor->step + 1 == actor->steps;

    *unnamed = !shared && actor->step % 2;
    snprintf(actor->id, sizeof actor->id, "%u-%u", shared ? 0U : (unsigned)actor->role,
             shared ? 0U : actor->step);
}

static void begin_operation(struct actor *actor)
{
    static const struct latch_operation_events events = {
        on_waiting, {on_trouble, on_recovered}, on_over};
    struct life *life = actor->life;
    struct latch_operation_plan plan = {
        .request = {.key = KEY}, .connect_timeout = 5 * NS_PER_SEC, .server_wait = 5 * NS_PER_SEC};

    if (actor->role == SETTER) {
        plan.request.verb = life->deleted ? LATCH_DELETE : LATCH_SET;
        plan.request.word = "word";
        plan.request.number = life->number;
        plan.request.ttl = 86400 * NS_PER_SEC;
    } else if (actor->role == WAITER) {
        plan.request.verb = LATCH_LOOK;
        plan.until_open = plan.wait = true;
        plan.wait_until =
            life->closed ? moment_plus(life->end_of_faults, 60 * NS_PER_SEC) : MOMENT_NEVER;
    } else {
        plan.request.verb = LATCH_COUNT;
        name_id(actor, &plan.request.unnamed);
        plan.request.id = actor->id;
        plan.request.number = 1;
    }
    actor->operation = latch_operation_start(actor->loop, actor->store, &plan, &events, actor);
}

/* What is said not to be done may be on its way, but is not there. */
static void judge_failure(struct actor *actor, const struct answer *answer)
{
    const struct sim_database *database = &actor->life->world.database;
    struct sql_row row = {0};

    if (answer->verdict != VERDICT_UNKNOWN || answer->maybe_done || database->lock_count == 0)
        return;
    read_state(actor->life, &row, database->locks[0].state);
    if (sql_row_find(&row, actor->owner))
        accuse(actor, "it has the lock, and was told that it cannot have it");
    sql_row_free(&row);
}

static void locked(void *arg, const struct answer *answer)
{
    struct actor *actor = arg;
    struct life *life = actor->life;

    world_log(&life->world, "lock: %d %d %s", answer->verdict, answer->cause, answer->text);
    actor->over = true;
    actor->end = (struct latch_operation_end){.answer = *answer};
    if (answer->verdict == VERDICT_GRANTED) {
        if (answer->grants[0].fence <= life->fence)
            accuse(actor, "a fence that is not higher than the one before");
        life->fence = answer->grants[0].fence;
        life->locked++;
    }
    judge_failure(actor, answer);
    life->refused += answer->verdict == VERDICT_REFUSED && answer->cause == CAUSE_MISFIT;
    loop_arm(actor->loop, &actor->action, life->world.now);
}

/* Always somebody new, whose lease runs out. */
static void begin_lock(struct actor *actor)
{
    struct life *life = actor->life;
    const char *key = KEY;
    struct lock_request request = {.keys = &key,
                                   .key_count = 1,
                                   .owner = actor->owner,
                                   .mode = LOCK_EXCLUSIVE,
                                   .lease = NS_PER_SEC,
                                   .who = ""};

    snprintf(actor->owner, sizeof actor->owner, "%08x-1111-4111-8111-%012x", 7, ++life->owners);
    store_acquire(actor->store, &request, moment_plus(life->world.now, 5 * NS_PER_SEC), locked,
                  actor);
}

/* Whether it has done what it was about to do. */
static bool judge(struct actor *actor)
{
    struct life *life = actor->life;
    const struct answer *answer = &actor->end.answer;

    if (actor->role == LOCKER)
        return !life->deleted || answer->verdict == VERDICT_GRANTED;
    switch (actor->end.ending) {
    case LATCH_OPERATION_DONE:
        if (actor->role == WAITER)
            life->woken++;
        life->repeated += answer->latch.left > 0 && !answer->latch.counted &&
                          actor->role != SETTER && actor->role != WAITER;
        return true;
    case LATCH_OPERATION_REFUSED:
        if (actor->role == SETTER && life->deleted && answer->cause == CAUSE_ABSENT &&
            actor->unsure)
            return true;
        if (answer->cause != CAUSE_MISFIT &&
            (answer->cause != CAUSE_ABSENT || actor->role == SETTER))
            accuse(actor, "refused, and nobody knows why");
        return false;
    case LATCH_OPERATION_CLOSED:
        if (!life->closed)
            accuse(actor, "it does not wait for ever");
        return true;
    case LATCH_OPERATION_VANISHED: accuse(actor, "the latch vanished"); return false;
    case LATCH_OPERATION_FAILED: actor->unsure = true; return false;
    }
    return false;
}

static void act(struct loop_timer *timer)
{
    struct actor *actor = timer->owner;

    if (!actor->store) {
        open_store(actor);
        if (actor->role == LOCKER)
            begin_lock(actor);
        else
            begin_operation(actor);
    } else if (actor->over) {
        actor->step += judge(actor);
        close_actor(actor);
    }
}

/* -- trouble --------------------------------------------------------------------------------- */

static void make_trouble(struct life *life)
{
    struct world *world = &life->world;
    struct actor *actor = &life->actors[world_chance(world, ACTORS)];

    switch (world_chance(world, 5)) {
    case 0:
        if (actor->over)
            break;
        world_log(world, "%d: KILLED", actor->role);
        actor->unsure = true;
        close_actor(actor);
        break;
    case 1: world_restart_server(world, world_some_time(world, 4000)); break;
    case 2:
        world_log(world, "SILENCE");
        world->still = moment_plus(world->now, world_some_time(world, 8000));
        break;
    default: world_stop_process(world, actor->loop, world_some_time(world, 40000)); break;
    }
}

static void trouble(struct loop_timer *timer)
{
    struct life *life = timer->owner;
    struct world *world = &life->world;

    if (moment_reached(life->end_of_faults, world->now)) {
        world_log(world, "CALM");
        world->failing = world->stopping = 0;
        for (size_t i = 0; i < world->process_count; i++)
            world->stopped[i] = moment_min(world->stopped[i], world->now);
        return;
    }
    if (life->faults)
        make_trouble(life);
    loop_arm(world->outside, timer,
             moment_plus(world->now, (int64_t)world_chance(world, 8000) * NS_PER_MS));
}

static void begin_faults(struct life *life)
{
    struct world *world = &life->world;

    if (life->faults) {
        world->failing = world_chance(world, 3) ? world_chance(world, 8) : 0;
        world->stopping = world_chance(world, 3) ? 0 : world_chance(world, 60);
    }
    life->end_of_faults =
        moment_plus(world->now, (5 + (int64_t)world_chance(world, 35)) * NS_PER_SEC);
    life->trouble = (struct loop_timer){.fire = trouble, .owner = life};
    loop_arm(world->outside, &life->trouble, moment_plus(world->now, world_some_time(world, 4000)));
}

/* -- a life ---------------------------------------------------------------------------------- */

static void begin(struct life *life, unsigned seed)
{
    struct world *world = &life->world;
    char fault[256];

    memset(life, 0, sizeof *life);
    world_begin(world, seed, true);
    world->database.written = written;
    world->database.arg = life;
    if (!url_parse("mysql://h/d", &life->url, fault, sizeof fault))
        abort();
    life->address = (struct store_address){
        .urls = &life->url, .url_count = 1, .prefix = "p", .connect_timeout = 5 * NS_PER_SEC};
    life->faults = world_chance(world, 5) > 0;
    begin_faults(life);
    life->closed = world_chance(world, 4) == 0;
    for (unsigned i = 0; i < ACTORS; i++) {
        struct actor *actor = &life->actors[i];
        *actor = (struct actor){.life = life, .role = i, .loop = world_process(world), .steps = 1};
        actor->action = (struct loop_timer){.fire = act, .owner = actor};
        if (i == LOCKER)
            actor->steps = world_chance(world, 12);
        if (i >= FIRST_COUNTER && i <= LAST_COUNTER) {
            actor->steps = 1 + world_chance(world, IDS);
            life->ids += actor->steps - 1;
        }
        plan_action(actor);
    }
    life->ids++;
    life->number = life->ids + life->closed;
}

static bool is_busy(const struct life *life)
{
    bool busy = life->world.under_way > 0;

    for (size_t i = 0; i < ACTORS; i++)
        busy |= life->actors[i].store || life->actors[i].step < life->actors[i].steps;
    return busy;
}

/* Where nothing fails, whoever waits goes on as soon as it is called, or has looked. */
static void judge_waiter(struct life *life)
{
    const struct actor *waiter = &life->actors[WAITER];
    struct world *world = &life->world;
    struct moment since = moment_max(life->opened, waiter->began);

    if (life->faults || life->opened.ns == 0 || !waiter->store || waiter->over)
        return;
    if (moment_reached(moment_plus(since, world->database.mysql ? LOOKED_NS : CALLED_NS),
                       world->now))
        world_accuse(world, "open, and who waits does not go on");
}

static void run(struct life *life, struct moment end)
{
    struct world *world = &life->world;

    for (unsigned turns = 0; !world->fault && is_busy(life) && world_turn(world, end); turns++) {
        if (turns == TURNS_MAX)
            world_accuse(world, "no end");
        judge_waiter(life);
    }
    if (!world->fault && is_busy(life))
        world_accuse(world, "it waits for ever");
}

/* All have counted. Then it is deleted, and the key can be had as a lock. */
static void judge_end(struct life *life)
{
    struct actor *setter = &life->actors[SETTER], *locker = &life->actors[LOCKER];

    if (left_in_store(life) != life->number - life->ids)
        world_accuse(&life->world, "an id did not count, or more than once");
    if (life->closed == (life->opened.ns > 0) || life->woken != !life->closed)
        world_accuse(&life->world, "open though closed, or the reverse");
    life->deleted = true;
    loop_disarm(life->world.outside, &life->trouble);
    begin_faults(life);
    setter->step = 0;
    setter->unsure = false;
    plan_action(setter);
    run(life, moment_plus(life->world.now, CALM_NS));
    locker->step = 0;
    locker->steps = 1;
    plan_action(locker);
    run(life, moment_plus(life->world.now, CALM_NS));
}

static void finish(struct life *life)
{
    for (size_t i = 0; i < ACTORS; i++) {
        life->actors[i].steps = 0;
        close_actor(&life->actors[i]);
    }
    url_free(&life->url);
    world_end(&life->world);
}

/* Of all lives, so that a test that proves nothing is noticed. */
struct sums {
    unsigned locked, refused, woken, repeated, late;
    unsigned long statements;
};

static void add(struct sums *sums, const struct life *life)
{
    sums->locked += life->locked;
    sums->refused += life->refused;
    sums->woken += life->woken;
    sums->repeated += life->repeated;
    sums->late += life->world.late;
    sums->statements += life->world.statements;
}

/* Up to the first that fails. */
static void live_many(unsigned seed, unsigned lives, struct sums *sums)
{
    static struct life life;
    const char *fault = NULL;

    for (unsigned end = seed + lives; seed < end && !fault; seed++) {
        begin(&life, seed);
        run(&life, moment_plus(life.end_of_faults, CALM_NS));
        if (!life.world.fault)
            judge_end(&life);
        fault = life.world.fault;
        add(sums, &life);
        finish(&life);
    }
    if (!tap_ok(!fault, "%u lives of latches in a database", lives))
        tap_note("%s (seed %u): %s", fault, seed - 1, life.world.log);
}

int main(int argc, char **argv)
{
    const char *wanted = argc > 2 ? argv[2] : getenv("RLOCK_LIVES");
    unsigned first = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    unsigned lives = wanted ? (unsigned)atoi(wanted) : LIVES;
    struct sums sums = {0};

    for (unsigned done = 0; done < lives; done += PART)
        live_many(first + done, lives - done < PART ? lives - done : PART, &sums);
    if (lives >= PART) {
        tap_ok(sums.woken > lives / 2 && sums.repeated > lives,
               "many waited, and many counted again under an id");
        tap_ok(sums.locked > lives && sums.refused > lives,
               "many had the key as a lock, and were refused it");
        tap_ok(sums.late > lives / 2, "many statements were executed when nobody waited for them");
    }
    tap_note("%lu statements, %u of them late; locked %u, refused %u, woken %u, repeated %u",
             sums.statements, sums.late, sums.locked, sums.refused, sums.woken, sums.repeated);
    return tap_done();
}
