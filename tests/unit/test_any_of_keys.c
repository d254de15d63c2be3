/* Some of several keys, over simulated stores that take one key each: owners that want any so many
 * of keys that others want too. Whatever answers are late or missing, an owner that was told it has
 * keys has them, one that was refused has none, each gets its turn, and in the end nothing is left
 * that nobody knows of. */
#include "store/any_of_keys.h"

#include "store/several_keys.h"

#include <stdlib.h>

#include "fake_loop.h"
#include "tap.h"

#define KEYS         4
#define OWNERS       5
#define LINKS        8 /* connections of one owner at a time */
#define LEASE_NS     (60 * NS_PER_SEC)
#define PLACE_NS     (7 * NS_PER_SEC)
#define TIMEOUT      (5 * NS_PER_SEC) /* for one operation */
#define HEARTBEAT_NS (2500 * NS_PER_MS)
#define HOLD_NS      (20 * NS_PER_MS)
#define LATEST_NS    (30 * NS_PER_SEC) /* for what was granted without an answer to be given back */
#define SEEDS        300
#define TURNS_MOST   400000

/* -- chance ------------------------------------------------------------------------------------ */

static uint64_t chance_state;

static unsigned chance(unsigned below)
{
    chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(chance_state >> 33) % below;
}

/* -- the server -------------------------------------------------------------------------------- */

struct link;

/* What it knows of one key: who holds it, and who waits, in the order of arrival. */
struct key {
    const char *name;
    const char *holder; /* NULL: nobody */
    struct place {
        const char *owner;
        struct moment since, until;
    } queue[OWNERS];
    size_t waiting;
};

static struct {
    struct loop *loop;
    struct key keys[KEYS];
    unsigned silent;  /* of 100 answers, so many are lost */
    const char *dead; /* a key whose server answers nobody; NULL */
    struct link *links[OWNERS * LINKS];
} server;

static struct moment now_of(void)
{
    return loop_now(server.loop);
}

static struct key *find_key(const char *name)
{
    for (size_t i = 0; i < KEYS; i++) {
        if (strcmp(server.keys[i].name, name) == 0)
            return &server.keys[i];
    }
    abort();
}

static void remove_place(struct key *key, size_t place)
{
    key->waiting--;
    for (; place < key->waiting; place++)
        key->queue[place] = key->queue[place + 1];
}

/* Those that were not heard of for too long are gone. */
static size_t place_of(struct key *key, const char *owner)
{
    size_t place = 0;

    for (size_t i = 0; i < key->waiting;) {
        if (moment_reached(key->queue[i].until, now_of()))
            remove_place(key, i);
        else
            i++;
    }
    while (place < key->waiting && key->queue[place].owner != owner)
        place++;
    return place;
}

static bool leave_queue(struct key *key, const char *owner)
{
    size_t place = place_of(key, owner);

    if (place == key->waiting)
        return false;
    remove_place(key, place);
    return true;
}

static bool leave(struct key *key, const char *owner)
{
    bool held = key->holder == owner;

    if (held)
        key->holder = NULL;
    return leave_queue(key, owner) || held;
}

static void acquire_key(struct key *key, const char *owner, const struct lock_request *request,
                        struct answer *answer)
{
    size_t place = place_of(key, owner);
    bool first = key->waiting == 0 || place == 0;

    if (key->holder == owner || (!request->stand && !key->holder && first)) {
        leave_queue(key, owner);
        key->holder = owner;
        *answer = (struct answer){.verdict = VERDICT_GRANTED, .grants = {{.fence = 1}}};
        return;
    }
    if (request->queue && place == key->waiting)
        key->queue[key->waiting++] = (struct place){.owner = owner, .since = now_of()};
    if (place < key->waiting)
        key->queue[place].until = moment_plus(now_of(), PLACE_NS);
    *answer = (struct answer){
        .verdict = VERDICT_REFUSED,
        .cause = CAUSE_HELD,
        .holders = key->holder != NULL,
        .position = (int64_t)place + 1,
        .first.age_ms =
            key->waiting > 0 ? moment_until(key->queue[0].since, now_of()) / NS_PER_MS : 0};
}

/* -- a store that takes one key ---------------------------------------------------------------- */

struct link {
    struct store base;
    size_t number;
    const char *owner;
    struct loop_timer timer;
    bool busy;
    char task; /* a acquire, n renew, r release */
    struct lock_request request;
    struct key *key;
    struct moment until;
    store_done *done;
    void *arg;
    bool listens;
};

static const char *link_fault;

static struct link *of(struct store *base)
{
    return (struct link *)base;
}

/* Who is first is called, if it listens and has asked for nothing else meanwhile. */
static void call_first(struct key *key)
{
    if (key->holder || key->waiting == 0)
        return;
    for (size_t i = 0; i < OWNERS * LINKS; i++) {
        struct link *link = server.links[i];
        if (link && link->listens && !link->busy && link->key == key &&
            link->owner == key->queue[0].owner)
            store_poke(&link->base);
    }
}

static void obey(struct loop_timer *timer)
{
    static const struct answer mute = {
        .verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE, .maybe_done = true};
    static const struct answer away = {.verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE};
    struct link *link = timer->owner;
    struct answer answer = {.verdict = VERDICT_GRANTED, .grants = {{.fence = 1}}};
    struct key *key = link->key;
    bool changed = false;

    link->busy = false;
    if (server.dead && strcmp(key->name, server.dead) == 0) {
        link->done(link->arg, &away);
        return;
    }
    if (link->task == 'a') {
        acquire_key(key, link->owner, &link->request, &answer);
        link->listens = link->request.listen && answer.verdict == VERDICT_REFUSED;
    } else if (link->task == 'n' ? key->holder != link->owner
                                 : !(changed = leave(key, link->owner))) {
        answer = (struct answer){.verdict = VERDICT_REFUSED, .cause = CAUSE_NOT_HOLDER};
    }
    link->done(link->arg, chance(100) < server.silent ? &mute : &answer);
    if (changed)
        call_first(key);
}

static void ask(struct store *base, char task, const struct lock_request *request,
                struct moment until, store_done *done, void *arg)
{
    struct link *link = of(base);

    if (request->key_count != 1)
        link_fault = "the store was asked about several keys at once";
    if (link->busy)
        link_fault = "the store was asked while it was busy";
    link->busy = true;
    link->listens = false;
    link->task = task;
    link->request = *request;
    link->key = find_key(request->keys[0]);
    link->until = until;
    link->done = done;
    link->arg = arg;
    int64_t trip = (1 + chance(5)) * NS_PER_MS;
    if (server.dead && strcmp(link->key->name, server.dead) == 0)
        trip = moment_until(now_of(), until);
    loop_arm(server.loop, &link->timer, moment_plus(now_of(), trip > 0 ? trip : 0));
}

static void acquire(struct store *base, const struct lock_request *request, struct moment until,
                    store_done *done, void *arg)
{
    ask(base, 'a', request, until, done, arg);
}

static void renew(struct store *base, const struct lock_request *request, struct moment until,
                  store_done *done, void *arg)
{
    ask(base, 'n', request, until, done, arg);
}

static void release(struct store *base, const struct lock_request *request, bool uncertain,
                    struct moment until, store_done *done, void *arg)
{
    (void)uncertain;
    ask(base, 'r', request, until, done, arg);
}

static bool release_nowait(struct store *base, const struct lock_request *request)
{
    struct link *link = of(base);
    struct key *key = find_key(request->keys[0]);

    loop_disarm(server.loop, &link->timer);
    link->busy = false;
    leave(key, link->owner);
    call_first(key);
    return true;
}

static void close_link(struct store *base)
{
    struct link *link = of(base);

    loop_disarm(server.loop, &link->timer);
    server.links[link->number] = NULL;
    free(link);
}

static struct store *open_link(const char *owner)
{
    static const struct store_ops ops = {.close = close_link,
                                         .acquire = acquire,
                                         .renew = renew,
                                         .release = release,
                                         .release_nowait = release_nowait};
    struct link *link = calloc(1, sizeof *link);

    *link = (struct link){.base = {.ops = &ops}, .owner = owner};
    link->timer = (struct loop_timer){.fire = obey, .owner = link};
    while (server.links[link->number])
        link->number++;
    server.links[link->number] = link;
    return &link->base;
}

/* -- one who takes locks, again and again ------------------------------------------------------ */

struct taker {
    struct store_address address; /* the first: by it open_one() knows whose a link is */
    const char *keys[KEYS + 1];   /* up to NULL */
    size_t take;                  /* 0: all */
    char owner[8];
    struct store *store;
    struct loop_timer timer;
    enum { TRYING, HOLDING, RELEASING } state;
    bool busy, quiet, settled;
    size_t held[KEYS], held_count; /* which of its keys */
    unsigned turns;                /* how often it had the lock */
    const char *fault;
};

static struct store *open_one(struct loop *loop, const struct store_address *address, char *fault,
                              size_t size)
{
    (void)loop;
    (void)fault;
    (void)size;
    return open_link(((const struct taker *)(const void *)address)->owner);
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
    size_t held = 0;

    for (size_t i = 0; taker->keys[i]; i++)
        held += find_key(taker->keys[i])->holder == taker->owner;
    return held;
}

static size_t count_places(const struct taker *taker)
{
    size_t places = 0;

    for (size_t i = 0; taker->keys[i]; i++) {
        struct key *key = find_key(taker->keys[i]);
        places += place_of(key, taker->owner) < key->waiting;
    }
    return places;
}

static void go_on(struct taker *taker, int64_t ns)
{
    loop_arm(server.loop, &taker->timer, moment_plus(now_of(), ns));
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
        if (find_key(taker->keys[i])->holder != taker->owner)
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
    go_on(taker, chance(3) * NS_PER_MS);
}

static void act(struct loop_timer *timer)
{
    struct taker *taker = timer->owner;
    struct lock_request request = request_of(taker);
    struct moment until = moment_plus(now_of(), TIMEOUT);
    const char *held[KEYS];

    if (taker->busy || taker->settled)
        return;
    taker->busy = true;
    if (taker->state == TRYING && !taker->quiet) {
        store_acquire(taker->store, &request, until, taken, taker);
        return;
    }
    for (size_t i = 0; taker->state == HOLDING && i < taker->held_count; i++) {
        if (find_key(taker->keys[taker->held[i]])->holder != taker->owner)
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
        const char *keys[KEYS + 1];
    } owners[OWNERS];
    unsigned turns_least; /* that each gets while nobody else gets more than ... */
    unsigned turns_most;
};

static struct taker takers[OWNERS];

static void begin(const struct run *run, unsigned seed)
{
    static const struct store_events events = {.poked = poked};

    chance_state = seed;
    link_fault = NULL;
    server.loop = loop_new();
    server.silent = run->silent;
    server.dead = run->dead;
    memset(server.links, 0, sizeof server.links);
    for (size_t i = 0; i < KEYS; i++)
        server.keys[i] = (struct key){.name = (const char *[]){"a", "b", "c", "d"}[i]};
    for (size_t i = 0; i < OWNERS; i++) {
        struct taker *taker = &takers[i];
        *taker = (struct taker){.take = run->owners[i].take};
        if (!run->owners[i].keys[0])
            continue;
        memcpy(taker->keys, run->owners[i].keys, sizeof taker->keys);
        snprintf(taker->owner, sizeof taker->owner, "o%zu", i);
        taker->store =
            any_of_keys_open(server.loop, several_keys_open(server.loop, open_link(taker->owner)),
                             open_one, &taker->address);
        store_on_event(taker->store, &events, taker);
        taker->timer = (struct loop_timer){.fire = act, .owner = taker};
        go_on(taker, chance(10) * NS_PER_MS);
    }
}

static void end(void)
{
    for (size_t i = 0; i < OWNERS; i++) {
        if (!takers[i].store)
            continue;
        loop_disarm(server.loop, &takers[i].timer);
        store_close(takers[i].store);
    }
    loop_free(server.loop);
}

static bool is_over(const struct run *run)
{
    for (size_t i = 0; i < OWNERS; i++) {
        if (takers[i].store && takers[i].turns < run->turns_least)
            return false;
    }
    return true;
}

/* What is wrong with it; NULL: nothing. */
static const char *find_fault(const struct run *run)
{
    for (size_t i = 0; i < OWNERS; i++) {
        if (takers[i].fault)
            return takers[i].fault;
        if (takers[i].turns > run->turns_most)
            return "an owner waits while another one has its keys again and again";
    }
    return link_fault;
}

/* All give back what they know of. What they do not know of goes as well, before its lease ends. */
static const char *settle(void)
{
    struct moment latest = moment_plus(now_of(), LATEST_NS);
    bool held = true;

    server.silent = 0;
    server.dead = NULL;
    for (size_t i = 0; i < OWNERS; i++) {
        takers[i].quiet = true;
        if (takers[i].store && !takers[i].busy && takers[i].state == TRYING)
            go_on(&takers[i], 0);
    }
    while (held && !moment_reached(latest, now_of())) {
        if (!fake_turn(server.loop))
            break;
        held = false;
        for (size_t i = 0; i < KEYS; i++)
            held |= server.keys[i].holder != NULL;
        for (size_t i = 0; i < OWNERS; i++)
            held |= takers[i].store && !takers[i].settled;
    }
    for (size_t i = 0; i < KEYS; i++) {
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
    return tap_done();
}
