/* Some of several keys, over simulated stores that take one key each: owners that want any so many
 * of keys that others want too. Whatever answers are late or missing, an owner that was told it has
 * keys has them, one that was refused has none, each gets its turn, and in the end nothing is left
 * that nobody knows of. */
#include "store/any_of_keys.h"

#include "store/several_keys.h"

#include <stdlib.h>

#include "sim_keys.h"
#include "tap.h"

#define LEASE_NS     (60 * NS_PER_SEC)
#define TIMEOUT      (5 * NS_PER_SEC) /* for one operation */
#define HEARTBEAT_NS (2500 * NS_PER_MS)
#define HOLD_NS      (20 * NS_PER_MS)
#define LATEST_NS    (30 * NS_PER_SEC) /* for what was granted without an answer to be given back */
#define SEEDS        300
#define TURNS_MOST   400000

static struct sim_server server;

/* -- one who takes locks, again and again ------------------------------------------------------ */

struct taker {
    struct store_address address;   /* the first: by it open_one() knows whose a link is */
    const char *keys[SIM_KEYS + 1]; /* up to NULL */
    size_t take;                    /* 0: all */
    char owner[8];
    struct store *store;
    struct loop_timer timer;
    enum { TRYING, HOLDING, RELEASING } state;
    bool busy, quiet, settled;
    size_t held[SIM_KEYS], held_count; /* which of its keys */
    unsigned turns;                    /* how often it had the lock */
    const char *fault;
};

static struct store *open_one(struct loop *loop, const struct store_address *address, char *fault,
                              size_t size)
{
    (void)loop;
    (void)fault;
    (void)size;
    return sim_connect(&server, ((const struct taker *)(const void *)address)->owner);
}

static struct lock_request request_of(const struct taker *taker)
{
    struct lock_request request = {.keys = taker->keys,
                                   .take = taker->take,
                                   .owner = taker->owner,
                                   .mode = LOCK_EXCLUSIVE,
                                   .lease = LEASE_NS,
                                   .who = "",
                                   .queue = true,
                                   .listen = true};

    while (taker->keys[request.key_count])
        request.key_count++;
    return request;
}

static size_t count_held(const struct taker *taker)
{
    return sim_count_held(&server, taker->keys, taker->owner);
}

static size_t count_places(const struct taker *taker)
{
    size_t places = 0;

    for (size_t i = 0; taker->keys[i]; i++)
        places += sim_is_queued(&server, taker->keys[i], taker->owner);
    return places;
}

static void go_on(struct taker *taker, int64_t ns)
{
    loop_arm(server.loop, &taker->timer, moment_plus(loop_now(server.loop), ns));
}

static bool all_is_heard(void)
{
    return server.silent == 0 && !server.dead;
}

static void check_grant(struct taker *taker, const struct answer *answer)
{
    size_t all = request_of(taker).key_count;

    taker->held_count = 0;
    for (size_t i = 0; i < all; i++) {
        if (answer->grants[i].absent)
            continue;
        taker->held[taker->held_count++] = i;
        if (sim_find_key(&server, taker->keys[i])->holder != taker->owner)
            taker->fault = "granted a key that it does not hold";
    }
    if (taker->held_count != (taker->take ? taker->take : all))
        taker->fault = "granted another number of keys";
    if (all_is_heard() && count_held(taker) != taker->held_count)
        taker->fault = "holds a key besides";
    if (all_is_heard() && taker->take && count_places(taker) > 0)
        taker->fault = "granted, and still in a queue";
}

static void taken(void *arg, const struct answer *answer)
{
    struct taker *taker = arg;

    taker->busy = false;
    if (answer->verdict == VERDICT_GRANTED) {
        check_grant(taker, answer);
        taker->state = HOLDING;
        taker->turns++;
        go_on(taker, HOLD_NS);
        return;
    }
    if (answer->verdict == VERDICT_REFUSED && all_is_heard()) {
        if (count_held(taker) > 0)
            taker->fault = "refused, and holds a key";
        if (taker->take && count_places(taker) != request_of(taker).key_count)
            taker->fault = "refused, and not in every queue";
    }
    go_on(taker, answer->verdict == VERDICT_REFUSED ? HEARTBEAT_NS : 200 * NS_PER_MS);
}

static void returned(void *arg, const struct answer *answer)
{
    struct taker *taker = arg;

    taker->busy = false;
    if (answer->verdict != VERDICT_UNKNOWN) {
        taker->state = TRYING;
        taker->settled = taker->quiet;
    }
    go_on(taker, chance(&server.seed, 3) * NS_PER_MS);
}

static void act(struct loop_timer *timer)
{
    struct taker *taker = timer->owner;
    struct lock_request request = request_of(taker);
    struct moment until = moment_plus(loop_now(server.loop), TIMEOUT);
    const char *held[SIM_KEYS];

    if (taker->busy || taker->settled)
        return;
    taker->busy = true;
    if (taker->state == TRYING && !taker->quiet) {
        store_acquire(taker->store, &request, until, taken, taker);
        return;
    }
    for (size_t i = 0; taker->state == HOLDING && i < taker->held_count; i++) {
        if (sim_find_key(&server, taker->keys[taker->held[i]])->holder != taker->owner)
            taker->fault = "lost a key that nobody took from it";
    }
    /* As the keeper does: what was granted, where that is known. */
    request.take = 0;
    request.listen = request.queue = false;
    if (taker->state != TRYING) {
        for (size_t i = 0; i < taker->held_count; i++)
            held[i] = taker->keys[taker->held[i]];
        request.keys = held;
        request.key_count = taker->held_count;
        taker->state = RELEASING;
    }
    store_release(taker->store, &request, false, until, returned, taker);
}

static void poked(void *arg)
{
    struct taker *taker = arg;

    if (taker->state == TRYING && !taker->busy)
        go_on(taker, 0);
}

/* -- runs -------------------------------------------------------------------------------------- */

struct run {
    const char *name;
    unsigned silent; /* of 100 answers */
    const char *dead;
    struct {
        size_t take;
        const char *keys[SIM_KEYS + 1];
    } owners[SIM_OWNERS];
    unsigned turns_least; /* that each gets while nobody else gets more than ... */
    unsigned turns_most;
};

static struct taker takers[SIM_OWNERS];

static void begin(const struct run *run, unsigned seed)
{
    static const struct store_events events = {.poked = poked};

    sim_server_begin(&server, seed);
    server.silent = run->silent;
    server.dead = run->dead;
    for (size_t i = 0; i < SIM_OWNERS; i++) {
        struct taker *taker = &takers[i];
        *taker = (struct taker){.take = run->owners[i].take};
        if (!run->owners[i].keys[0])
            continue;
        memcpy(taker->keys, run->owners[i].keys, sizeof taker->keys);
        snprintf(taker->owner, sizeof taker->owner, "o%zu", i);
        taker->store = any_of_keys_open(
            server.loop, several_keys_open(server.loop, sim_connect(&server, taker->owner)),
            open_one, &taker->address);
        store_on_event(taker->store, &events, taker);
        taker->timer = (struct loop_timer){.fire = act, .owner = taker};
        go_on(taker, chance(&server.seed, 10) * NS_PER_MS);
    }
}

static void end(void)
{
    for (size_t i = 0; i < SIM_OWNERS; i++) {
        if (!takers[i].store)
            continue;
        loop_disarm(server.loop, &takers[i].timer);
        store_close(takers[i].store);
    }
    sim_server_end(&server);
}

static bool is_over(const struct run *run)
{
    for (size_t i = 0; i < SIM_OWNERS; i++) {
        if (takers[i].store && takers[i].turns < run->turns_least)
            return false;
    }
    return true;
}

/* What is wrong with it; NULL: nothing. */
static const char *find_fault(const struct run *run)
{
    for (size_t i = 0; i < SIM_OWNERS; i++) {
        if (takers[i].fault)
            return takers[i].fault;
        if (takers[i].turns > run->turns_most)
            return "an owner waits while another one has its keys again and again";
    }
    return server.fault;
}

/* All give back what they know of. What they do not know of goes as well, before its lease ends. */
static const char *settle(void)
{
    struct moment latest = moment_plus(loop_now(server.loop), LATEST_NS);
    bool held = true;

    server.silent = 0;
    server.dead = NULL;
    for (size_t i = 0; i < SIM_OWNERS; i++) {
        takers[i].quiet = true;
        if (takers[i].store && !takers[i].busy && takers[i].state == TRYING)
            go_on(&takers[i], 0);
    }
    while (held && !moment_reached(latest, loop_now(server.loop))) {
        if (!fake_turn(server.loop))
            break;
        held = false;
        for (size_t i = 0; i < SIM_KEYS; i++)
            held |= server.keys[i].holder != NULL;
        for (size_t i = 0; i < SIM_OWNERS; i++)
            held |= takers[i].store && !takers[i].settled;
    }
    for (size_t i = 0; i < SIM_KEYS; i++) {
        if (server.keys[i].holder)
            return "a key is held that nobody knows of";
    }
    return NULL;
}

static const char *play(const struct run *run, unsigned seed)
{
    const char *fault = NULL;
    unsigned turns = 0;

    begin(run, seed);
    while (!fault && !is_over(run)) {
        if (!fake_turn(server.loop) || ++turns == TURNS_MOST)
            fault = "it does not go on";
        else
            fault = find_fault(run);
    }
    if (!fault)
        fault = settle();
    end();
    return fault;
}

static const struct run runs[] = {
    {"one of the same keys",
     0,
     NULL,
     {{1, {"a", "b", "c"}},
      {1, {"c", "b", "a"}},
      {1, {"b", "c", "a"}},
      {1, {"b", "a"}},
      {1, {"a", "c"}}},
     10,
     60},
    {"two of three, by many",
     0,
     NULL,
     {{2, {"a", "b", "c"}},
      {2, {"c", "b", "a"}},
      {2, {"b", "c", "a"}},
      {2, {"c", "a", "b"}},
      {2, {"a", "c", "b"}}},
     10,
     60},
    {"sets that overlap, beside those who want one key, or all",
     0,
     NULL,
     {{2, {"a", "b", "c"}},
      {3, {"d", "c", "b", "a"}},
      {0, {"a", "d"}},
      {0, {"c"}},
      {2, {"d", "a", "b"}}},
     10,
     400},
    {"answers are lost",
     10,
     NULL,
     {{2, {"a", "b", "c"}},
      {1, {"d", "c", "b", "a"}},
      {0, {"a", "d"}},
      {1, {"c", "a"}},
      {2, {"d", "a", "b"}}},
     10,
     600},
    {"a server that answers nobody keeps nobody from the others",
     0,
     "b",
     {{1, {"b", "a", "c"}}, {1, {"a", "b"}}, {2, {"a", "b", "c"}}},
     5,
     600},
};

/* -- one try ----------------------------------------------------------------------------------- */

struct ask {
    bool answered;
    struct answer answer;
};

static void note_answer(void *arg, const struct answer *answer)
{
    struct ask *ask = arg;

    *ask = (struct ask){true, *answer};
}

static void wait_for(const struct ask *ask)
{
    for (unsigned turns = 0; !ask->answered && turns < TURNS_MOST; turns++)
        fake_turn(server.loop);
}

/* One of the keys is granted without an answer, and the others are held: so it is refused, and may
 * hold that one. Whoever is told so gives it back. */
static void test_refused_and_perhaps_granted(void)
{
    static const struct run run = {.owners = {{2, {"a", "b", "c"}}}};
    struct ask acquired = {0}, released = {0};
    struct taker *taker = &takers[0];

    begin(&run, 1);
    loop_disarm(server.loop, &taker->timer);
    server.keys[1].holder = server.keys[2].holder = "another";
    struct lock_request request = request_of(taker);
    struct moment until = moment_plus(loop_now(server.loop), TIMEOUT);
    request.queue = request.listen = false;
    store_acquire(taker->store, &request, until, note_answer, &acquired);
    server.silent = 100;
    for (unsigned turns = 0; !server.keys[0].holder && turns < TURNS_MOST; turns++)
        fake_turn(server.loop);
    server.silent = 0;
    wait_for(&acquired);
    tap_ok(acquired.answer.verdict == VERDICT_REFUSED && acquired.answer.maybe_done,
           "refused, and it may hold one of the keys");
    request.take = 0;
    store_release(taker->store, &request, true, until, note_answer, &released);
    wait_for(&released);
    tap_ok(released.answered && count_held(taker) == 0, "that one is given back");
    end();
}

/* A grant that came without an answer is found by the next try, or given back. */
int main(void)
{
    for (size_t i = 0; i < COUNT(runs); i++) {
        const char *fault = NULL;
        unsigned seed = 0;
        while (!fault && seed < SEEDS)
            fault = play(&runs[i], ++seed);
        if (!tap_ok(!fault, "%s", runs[i].name))
            tap_note("seed %u: %s", seed, fault);
    }
    test_refused_and_perhaps_granted();
    return tap_done();
}
