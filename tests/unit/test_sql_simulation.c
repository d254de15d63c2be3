/* Keepers in several processes, each over a real store of a database, against a simulated server
 * behind a bad network: whatever happens on the way, no two of them believe that they hold a lock
 * that is for one alone, each by its own view of time; fencing tokens go up; who waits gets it at
 * last; and nothing is left behind.
 *
 * Arguments: the first seed, and how many lives. RLOCK_LIVES: how many. */
#include "sql_simulation.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "lock/keeper.h"
#include "lock/key.h"
#include "lock/owner.h"
#include "store/sql/dialect.h"
#include "store/sql/row.h"

#define LIVES    3000
#define PART     500
#define CLIENTS  4
#define OPERATOR CLIENTS /* the process that takes locks away */
#define KEYS     3
#define GONE_MAX 64
#define LEAVE_NS (8 * NS_PER_SEC)
/* When nothing fails any more, nobody waits longer: for all leases of those that have died, a
 * place in the queue, and all others. */
#define CALM_NS   (200 * NS_PER_SEC)
#define TURNS_MAX 100000
#define LATER     (40 * NS_PER_SEC)

static const char *const all_keys[KEYS] = {"a", "b", "c"};

/* One process, and the lock that it wants; several, one after the other. */
struct client {
    struct life *life;
    size_t number;
    struct loop *loop;
    struct loop_timer action;
    struct store *store; /* NULL: it does nothing now */
    struct keeper *keeper;
    struct keeper_plan plan;
    const char *keys[KEYS];
    char owner[OWNER_SIZE];
    unsigned turns, actions; /* that are left */
    bool held, lost, leaving, over;
    bool forced; /* the lock was taken away from it */
    bool kept;   /* it stays for --at-least */
    bool again;  /* it was given back unused once: nobody nests in it */
    bool outer;  /* somebody nests in it */
    struct moment began, waited, deadline, leave_by;
    struct lock_grant grants[KEYS];
    enum keeper_ending ending;
    /* The release that is under way, or was the latest. */
    store_done *release_done;
    void *release_arg;
    bool confirmed; /* the store has said that it has nothing of this client */
};

struct life {
    struct world world;
    struct url url;
    struct store_address address;
    struct client clients[CLIENTS + 1];
    size_t client_count;
    unsigned limit; /* of the semaphores; 0: there are none */
    unsigned owners;
    bool faults;    /* this life has some */
    bool calm;      /* no more of them, and nobody goes without the lock */
    bool set_back;  /* the server's clock was: leases of the dead begin when they are seen next */
    bool newcomers; /* want all keys for themselves */
    struct moment end_of_faults;
    struct loop_timer trouble;
    /* Owners who have left nothing behind, and since when. */
    char gone[GONE_MAX][OWNER_SIZE];
    struct moment gone_since[GONE_MAX];
    size_t gone_count;

    /* Told so far, of each key. */
    uint64_t fence[KEYS], fence_alone[KEYS];
    char fence_of[KEYS][OWNER_SIZE], alone_of[KEYS][OWNER_SIZE];

    /* For the operator. */
    char target[OWNER_SIZE];
    bool forcing;

    unsigned holds, losses, forced, nested, shared, endings[KEEPER_UNRELEASED + 1];
};

static void accuse(struct client *client, const char *fault)
{
    world_log(&client->life->world, "%zu: %s", client->number, fault);
    world_accuse(&client->life->world, fault);
}

static size_t key_number(const char *key)
{
    return (size_t)(*key - 'a');
}

/* -- what the database has ------------------------------------------------------------------- */

static char *digits_of(const char *text)
{
    struct sql_text out = {.dialect = &sql_postgresql};

    sql_add(&out, "%s", "");
    sql_add_digits(&out, text);
    sql_add(&out, "%s", "");
    return out.bytes;
}

static const char *state_of(struct life *life, const char *key)
{
    char *name = key_in_store(life->address.prefix, key), *digits = digits_of(name);
    const char *state = NULL;

    for (size_t i = 0; i < life->world.database.lock_count; i++)
        if (strcmp(life->world.database.locks[i].name, digits) == 0)
            state = life->world.database.locks[i].state;
    free(name);
    free(digits);
    return state;
}

/* When its lease ends by the server's clock, as this moment; in the past: it has none. */
static struct moment lease_in_store(struct life *life, const char *owner, const char *key)
{
    const char *digits = state_of(life, key);
    struct moment end = {0};
    struct sql_row row = {0};

    if (!digits)
        return end;
    char *state = sql_unhex(digits);
    if (!state || !sql_row_read(&row, state))
        world_accuse(&life->world, "a row is damaged");
    const struct sql_holder *own = sql_row_find(&row, owner);
    if (own)
        end = world_moment(&life->world, own->deadline);
    sql_row_free(&row);
    free(state);
    return end;
}

static uint64_t fence_in(const char *digits)
{
    uint64_t fence = 0;

    for (const char *at = digits + strlen("726c6f636b2f3120"); at[0] == '3'; at += 2)
        fence = fence * 10 + (uint64_t)(at[1] - '0');
    return fence;
}

static bool has_owner(const char *state, const char *owner_digits)
{
    char word[2 * OWNER_SIZE + 8];

    snprintf(word, sizeof word, "20%s20", owner_digits);
    return strstr(state, word);
}

/* Whoever is taken away from is not to blame for what it believes before it hears of it. */
static void written(void *arg, const char *name, const char *before, const char *after)
{
    struct life *life = arg;
    bool forced = world_writer(&life->world) == life->clients[OPERATOR].loop;

    (void)name;
    if (*before && fence_in(after) < fence_in(before))
        world_accuse(&life->world, "a row's fence went down");
    for (size_t i = 0; forced && i < life->client_count; i++) {
        struct client *client = &life->clients[i];
        char *digits = digits_of(client->owner);
        if (has_owner(before, digits) && !has_owner(after, digits)) {
            world_log(&life->world, "%zu: taken away", i);
            client->forced = true;
            life->forced++;
        }
        free(digits);
    }
}

/* -- what each believes ---------------------------------------------------------------------- */

static bool is_related(const char *a, const char *b)
{
    return owner_nests_in(a, b) || owner_nests_in(b, a);
}

/* It holds the lock as far as it knows, and nobody has taken that away. */
static bool believes(const struct client *client, const char *key)
{
    if (!client->held || client->forced ||
        moment_reached(client->deadline, client->life->world.now))
        return false;
    for (size_t i = 0; i < client->plan.request.key_count; i++)
        if (strcmp(client->keys[i], key) == 0)
            return true;
    return false;
}

static unsigned slot_of(const struct client *client, const char *key)
{
    for (size_t i = 0; i < client->plan.request.key_count; i++)
        if (strcmp(client->keys[i], key) == 0)
            return client->grants[i].slot;
    return 0;
}

static void judge_key(struct client *client, size_t at)
{
    struct life *life = client->life;
    const char *key = client->keys[at];
    enum lock_mode mode = client->plan.request.mode;

    for (size_t i = 0; i < life->client_count; i++) {
        struct client *other = &life->clients[i];
        if (other == client || !believes(other, key))
            continue;
        if (is_related(client->owner, other->owner)) {
            life->nested++;
            continue;
        }
        enum lock_mode theirs = other->plan.request.mode;
        if (mode == LOCK_LIMIT && slot_of(other, key) == client->grants[at].slot &&
            strncmp(client->owner, other->owner, 36) != 0)
            accuse(client, "two have the same slot");
        else if (mode != theirs || mode == LOCK_EXCLUSIVE)
            accuse(client, "two hold the lock");
        else
            life->shared++;
    }
    if (lease_in_store(life, client->owner, key).ns < client->deadline.ns)
        accuse(client, "a deadline behind the server's");
}

static void judge_fence(struct client *client, size_t at)
{
    struct life *life = client->life;
    size_t key = key_number(client->keys[at]);
    uint64_t fence = client->grants[at].fence;
    bool alone = client->plan.request.mode == LOCK_EXCLUSIVE;
    const char *latest = alone ? life->fence_of[key] : life->alone_of[key];
    bool same = strncmp(latest, client->owner, 36) == 0;
    uint64_t before = alone ? life->fence[key] : life->fence_alone[key];

    if (fence < before || (fence == before && !same))
        accuse(client, "a fence that is not higher than the one before");
    if (alone && client->grants[at].slot != 0)
        accuse(client, "a slot without a semaphore");
    if (!alone && client->plan.request.mode == LOCK_LIMIT &&
        (client->grants[at].slot < 1 || client->grants[at].slot > life->limit))
        accuse(client, "a slot beyond the limit");
    if (fence >= life->fence[key]) {
        life->fence[key] = fence;
        snprintf(life->fence_of[key], OWNER_SIZE, "%s", client->owner);
    }
    if (alone) {
        life->fence_alone[key] = fence;
        snprintf(life->alone_of[key], OWNER_SIZE, "%s", client->owner);
    }
}

/* Where nothing fails: whoever has waited since before the client began goes first. */
static void judge_order(struct client *client)
{
    struct life *life = client->life;

    if (life->faults || strchr(client->owner, '.'))
        return;
    for (size_t i = 0; i < life->client_count; i++) {
        const struct client *other = &life->clients[i];
        if (other == client || !other->store || other->held || other->lost || other->leaving ||
            strchr(other->owner, '.') || other->waited.ns >= client->began.ns ||
            moment_reached(other->plan.wait_until, life->world.now))
            continue;
        for (size_t k = 0; k < client->plan.request.key_count; k++)
            for (size_t o = 0; o < other->plan.request.key_count; o++)
                if (strcmp(client->keys[k], other->keys[o]) == 0 &&
                    moment_reached(lease_in_store(life, other->owner, other->keys[o]),
                                   life->world.now))
                    accuse(client, "it has passed one who waited longer");
    }
}

static void judge(struct client *client)
{
    if (client->forced)
        return;
    for (size_t i = 0; i < client->plan.request.key_count; i++)
        judge_key(client, i);
}

static void note(struct client *client, const char *what)
{
    world_log(&client->life->world, "%zu: %s", client->number, what);
}

static void on_waiting(void *arg, const struct answer *refusal)
{
    struct client *client = arg;

    (void)refusal;
    client->waited = moment_min(client->waited, client->life->world.now);
}

static void on_held(void *arg, struct lease lease, const struct lock_grant *grants)
{
    struct client *client = arg;

    world_log(&client->life->world, "%zu: HELD %llu", client->number,
              (unsigned long long)grants[0].fence);
    if (client->held || client->leaving || client->over)
        accuse(client, "held twice, or after the end");
    client->held = true;
    client->deadline = lease.end;
    client->life->holds++;
    memcpy(client->grants, grants, sizeof client->grants);
    judge_order(client);
    client->waited = MOMENT_NEVER;
    judge(client);
    for (size_t i = 0; i < client->plan.request.key_count && !client->forced; i++)
        judge_fence(client, i);
}

static void on_extended(void *arg, struct lease lease, bool forgotten)
{
    struct client *client = arg;

    note(client, "extended");
    if (!client->held || forgotten)
        accuse(client, "extended, but not held");
    client->deadline = lease.end;
    judge(client);
}

static void on_trouble(void *arg, const struct answer *why)
{
    (void)arg, (void)why;
}

static void on_recovered(void *arg, int64_t after)
{
    (void)arg, (void)after;
}

static void on_lost(void *arg, const char *why)
{
    struct client *client = arg;

    (void)why;
    note(client, "LOST");
    if (!client->life->faults && !client->forced && client->plan.renew && !client->leaving &&
        !moment_reached(client->deadline, client->life->world.now))
        accuse(client, "lost, and nobody knows why");
    client->held = false;
    client->lost = true;
    client->life->losses++;
}

static void on_over(void *arg, const struct keeper_end *end)
{
    struct client *client = arg;
    struct life *life = client->life;

    world_log(&life->world, "%zu: OVER %d %s", client->number, end->ending, end->text);
    if (client->over)
        accuse(client, "over twice");
    if (client->leaving && !life->faults && moment_until(client->leave_by, life->world.now) > 0)
        accuse(client, "over later than it was told");
    client->over = true;
    client->held = false;
    client->ending = end->ending;
    life->endings[end->ending]++;
    loop_arm(client->loop, &client->action, life->world.now);
}

static const struct keeper_events events = {
    on_waiting, on_held, on_extended, {on_trouble, on_recovered}, on_lost, on_over, NULL};

/* -- between keeper and store ---------------------------------------------------------------- */

static struct life *current;
void __real_store_release(struct store *store, const struct lock_request *request, bool uncertain,
                          struct moment until, store_done *done, void *arg);
void __wrap_store_release(struct store *store, const struct lock_request *request, bool uncertain,
                          struct moment until, store_done *done, void *arg);

static void release_answered(void *arg, const struct answer *answer)
{
    struct client *client = arg;

    client->confirmed = answer->verdict != VERDICT_UNKNOWN;
    client->release_done(client->release_arg, answer);
}

void __wrap_store_release(struct store *store, const struct lock_request *request, bool uncertain,
                          struct moment until, store_done *done, void *arg)
{
    struct client *client = current->clients;

    while (client->store != store)
        client++;
    client->confirmed = false;
    client->release_done = done;
    client->release_arg = arg;
    __real_store_release(store, request, uncertain, until, release_answered, client);
}

/* -- what they do ---------------------------------------------------------------------------- */

static void plan_action(struct client *client)
{
    struct world *world = &client->life->world;
    unsigned most = world_chance(world, 2) ? 300 : 5000;

    loop_arm(client->loop, &client->action,
             moment_plus(world->now, (int64_t)world_chance(world, most) * NS_PER_MS));
}

/* One that nests does so in somebody who holds a lock. */
static void name_owner(struct client *client, const struct client *parent)
{
    struct life *life = client->life;
    char own[40];

    snprintf(own, sizeof own, "%08x-1111-4111-8111-%012x", world_chance(&life->world, 30000),
             ++life->owners);
    if (parent)
        snprintf(client->owner, sizeof client->owner, "%.300s.%s", parent->owner, own);
    else
        snprintf(client->owner, sizeof client->owner, "%s", own);
}

static struct client *choose_parent(struct client *client)
{
    struct life *life = client->life;
    struct client *parent = &life->clients[world_chance(&life->world, CLIENTS)];

    if (!parent->held || parent->again || world_chance(&life->world, 2))
        return NULL;
    parent->outer = true;
    return parent;
}

static size_t choose_keys(struct client *client)
{
    struct world *world = &client->life->world;
    unsigned set = world_chance(world, 2) ? 1 : 1 + world_chance(world, 7);
    size_t count = 0;

    for (size_t i = 0; i < KEYS; i++)
        if (set & 1U << i)
            client->keys[count++] = all_keys[i];
    if (count > 1 && world_chance(world, 2)) {
        client->keys[0] = client->keys[count - 1];
        client->keys[count - 1] = all_keys[__builtin_ctz(set)];
    }
    return count;
}

static enum lock_mode choose_mode(struct client *client)
{
    struct world *world = &client->life->world;

    if (client->life->limit > 0)
        return LOCK_LIMIT;
    return world_chance(world, 3) ? LOCK_EXCLUSIVE : LOCK_SHARED;
}

static void make_plan(struct client *client)
{
    static const int leases[] = {1000, 1000, 3000, 3000, 10000, 30000};
    static const int waits[] = {-1, -1, -1, 0, 1500, 20000};
    struct life *life = client->life;
    struct world *world = &life->world;
    int wait = waits[world_chance(world, COUNT(waits))];

    client->plan = (struct keeper_plan){
        .request = {.keys = client->keys,
                    .key_count = choose_keys(client),
                    .owner = client->owner,
                    .mode = choose_mode(client),
                    .limit = life->limit,
                    .lease = leases[world_chance(world, COUNT(leases))] * NS_PER_MS,
                    .who = "u h 1 - -"},
        .wait = wait != 0,
        .wait_until = wait < 0 ? MOMENT_NEVER : moment_plus(world->now, wait * NS_PER_MS),
        .renew = world_chance(world, 8) > 0,
        .connect_timeout = 5 * NS_PER_SEC,
        .server_wait = 5 * NS_PER_SEC};
    if (life->newcomers) {
        memcpy(client->keys, all_keys, sizeof all_keys);
        client->plan.request.key_count = KEYS;
        client->plan.request.mode = LOCK_EXCLUSIVE;
        client->plan.wait = true;
        client->plan.wait_until = MOMENT_NEVER;
    } else if (world_chance(world, 12) == 0)
        client->plan.request.at_least = 3 * NS_PER_SEC;
}

static struct store *open_store(struct life *life, struct loop *loop)
{
    char fault[256];
    struct store *store = store_open(loop, &life->address, fault, sizeof fault);

    if (!store)
        abort();
    return store;
}

static void open_client(struct client *client)
{
    struct life *life = client->life;

    name_owner(client, choose_parent(client));
    make_plan(client);
    client->held = client->lost = client->leaving = client->over = false;
    client->forced = client->kept = client->again = client->outer = false;
    client->confirmed = false;
    client->waited = MOMENT_NEVER;
    client->began = life->world.now;
    client->actions = world_chance(&life->world, 12);
    client->turns--;
    world_log(&life->world, "%zu: begins, mode %d, %zu keys from %s, lease %lld%s", client->number,
              client->plan.request.mode, client->plan.request.key_count, client->keys[0],
              (long long)(client->plan.request.lease / NS_PER_MS),
              strchr(client->owner, '.') ? ", nested" : "");
    client->store = open_store(life, client->loop);
    client->keeper = keeper_start(client->loop, client->store, &client->plan, &events, client);
    plan_action(client);
}

/* Who has ended like this has left nothing in the rows; at most, a place in a queue for 7 s. */
static void note_gone(struct client *client)
{
    struct life *life = client->life;
    bool clean = client->ending == KEEPER_RELEASED || client->ending == KEEPER_NOT_ACQUIRED;

    clean |= client->confirmed && !client->again;
    if (!client->over || !clean || client->kept || life->gone_count == GONE_MAX)
        return;
    snprintf(life->gone[life->gone_count], OWNER_SIZE, "%s", client->owner);
    life->gone_since[life->gone_count++] = life->world.now;
}

/* The process ends, or is killed. */
static void close_client(struct client *client)
{
    if (!client->store)
        return;
    note_gone(client);
    loop_disarm(client->loop, &client->action);
    keeper_free(client->keeper);
    store_close(client->store);
    client->keeper = NULL;
    client->store = NULL;
    client->held = false;
    client->owner[0] = '\0';
    if (client->turns > 0)
        plan_action(client);
}

static void leave(struct client *client, bool cancel)
{
    struct moment until = moment_plus(client->life->world.now, LEAVE_NS);

    note(client, cancel ? "CANCEL" : "RELEASE");
    client->kept = client->plan.request.at_least > 0;
    client->leaving = true;
    client->held = false;
    client->leave_by = until;
    if (cancel)
        keeper_cancel(client->keeper, until);
    else
        keeper_release(client->keeper, until,
                       &(struct lock_end){.how = client->lost ? LOCK_LOST : LOCK_USED});
}

static void use(struct client *client, unsigned what)
{
    if (what < 3 || client->actions == 0) {
        leave(client, what == 2);
    } else if (what == 3) {
        keeper_verify(client->keeper);
    } else if (what == 4) {
        keeper_hold_renewals(client->keeper, true);
    } else if (what == 5) {
        keeper_hold_renewals(client->keeper, false);
    } else if (what == 6 && !client->outer) {
        note(client, "AGAIN");
        client->again = true;
        client->held = false;
        keeper_restart(client->keeper);
    }
}

static void act(struct loop_timer *timer)
{
    struct client *client = timer->owner;
    unsigned what = world_chance(&client->life->world, 12);

    if (!client->store) {
        open_client(client);
        return;
    }
    if (client->over) {
        close_client(client);
        return;
    }
    if (client->leaving)
        return;
    if (client->lost)
        leave(client, false);
    else if (client->held)
        use(client, what);
    else if (what == 0 && !client->life->calm)
        leave(client, true);
    client->actions -= client->actions > 0;
    if (!client->over)
        plan_action(client);
}

/* -- taking away ----------------------------------------------------------------------------- */

static void end_force(struct loop_timer *timer)
{
    struct client *operator= timer->owner;

    store_close(operator->store);
    operator->store = NULL;
    operator->life->forcing = false;
}

static void forced(void *arg, const struct answer *answer)
{
    struct client *operator= arg;

    world_log(&operator->life->world, "force: %d %d", answer->verdict, answer->cause);
    operator->action =(struct loop_timer){.fire = end_force, .owner = operator};
    loop_arm(operator->loop, &operator->action, operator->life->world.now);
}

/* From one that holds it as far as it knows. */
static void begin_force(struct life *life)
{
    struct client *operator= & life->clients[OPERATOR];
    const struct client *client = &life->clients[world_chance(&life->world, CLIENTS)];
    const char *owner = life->target;

    if (life->forcing || !client->held)
        return;
    snprintf(life->target, sizeof life->target, "%s", client->owner);
    struct force_request request = {.key = client->keys[0],
                                    .owners = &owner,
                                    .owner_count = 1,
                                    .purge = world_chance(&life->world, 4) == 0};
    world_log(&life->world, "FORCE %zu", client->number);
    life->forcing = true;
    operator->store = open_store(life, operator->loop);
    store_force(operator->store, &request, moment_plus(life->world.now, 10 * NS_PER_SEC),
                forced, operator);
}

/* -- trouble --------------------------------------------------------------------------------- */

static void kill_client(struct client *client)
{
    if (!client->store)
        return;
    note(client, "KILLED");
    client->over = false;
    close_client(client);
}

static void make_trouble(struct life *life)
{
    struct world *world = &life->world;
    struct client *client = &life->clients[world_chance(world, CLIENTS)];

    switch (world_chance(world, 7)) {
    case 0: kill_client(client); break;
    case 1: world_restart_server(world, world_some_time(world, 4000)); break;
    case 2:
        world_log(world, "SILENCE");
        world->still = moment_plus(world->now, world_some_time(world, 8000));
        break;
    case 3:
    case 4: world_stop_process(world, client->loop, world_some_time(world, 40000)); break;
    case 5: begin_force(life); break;
    case 6:
        if (world_chance(world, 6) > 0)
            break;
        life->set_back = true;
        world_set_back(world, (int64_t)(1 + world_chance(world, 600)) * 1000000);
        break;
    }
}

static void calm_down(struct life *life)
{
    struct world *world = &life->world;

    world_log(world, "CALM");
    life->calm = true;
    world->failing = world->stopping = 0;
    for (size_t i = 0; i < world->process_count; i++)
        world->stopped[i] = moment_min(world->stopped[i], world->now);
}

static void trouble(struct loop_timer *timer)
{
    struct life *life = timer->owner;
    struct world *world = &life->world;

    if (moment_reached(life->end_of_faults, world->now)) {
        calm_down(life);
        return;
    }
    if (life->faults)
        make_trouble(life);
    loop_arm(world->outside, timer,
             moment_plus(world->now, (int64_t)world_chance(world, 8000) * NS_PER_MS));
}

/* -- a life ---------------------------------------------------------------------------------- */

static void begin(struct life *life, unsigned seed)
{
    struct world *world = &life->world;
    char fault[256];

    memset(life, 0, sizeof *life);
    current = life;
    world_begin(world, seed, true);
    world->database.written = written;
    world->database.arg = life;
    if (!url_parse("mysql://h/d", &life->url, fault, sizeof fault))
        abort();
    life->address = (struct store_address){
        .urls = &life->url, .url_count = 1, .prefix = "p", .connect_timeout = 5 * NS_PER_SEC};
    life->faults = world_chance(world, 5) > 0;
    if (life->faults) {
        world->failing = world_chance(world, 3) ? world_chance(world, 8) : 0;
        world->stopping = world_chance(world, 3) ? 0 : world_chance(world, 60);
    }
    life->limit = world_chance(world, 4) ? 0 : 1 + world_chance(world, 3);
    life->client_count = 2 + world_chance(world, CLIENTS - 1);
    life->end_of_faults =
        moment_plus(world->now, (5 + (int64_t)world_chance(world, 35)) * NS_PER_SEC);
    for (size_t i = 0; i <= CLIENTS; i++) {
        struct client *client = &life->clients[i];
        *client = (struct client){.life = life, .number = i, .loop = world_process(world)};
        client->action = (struct loop_timer){.fire = act, .owner = client};
        if (i >= life->client_count)
            continue;
        client->turns = 1 + world_chance(world, 3);
        plan_action(client);
    }
    life->trouble = (struct loop_timer){.fire = trouble, .owner = life};
    loop_arm(world->outside, &life->trouble, moment_plus(world->now, world_some_time(world, 4000)));
}

static bool is_busy(const struct life *life)
{
    bool busy = life->world.under_way > 0 || life->forcing;

    for (size_t i = 0; i < life->client_count; i++)
        busy |= life->clients[i].store || life->clients[i].turns > 0;
    return busy;
}

static void judge_remains(struct life *life)
{
    for (size_t i = 0; i < life->gone_count; i++)
        for (size_t k = 0; k < KEYS; k++)
            if (lease_in_store(life, life->gone[i], all_keys[k]).ns > life->gone_since[i].ns)
                world_accuse(&life->world, "one who is gone holds the lock");
}

/* When all leases are over, and all places in queues. */
static void come_later(struct life *life)
{
    struct client *client = &life->clients[0];
    struct world *world = &life->world;
    struct moment end = moment_plus(world->now, LATER);

    while (world_turn(world, end))
        ;
    close_client(client);
    world->now = end;
    client->turns = 1;
    fake_turn_at(client->loop, world->now);
    open_client(client);
    end = moment_plus(end, (life->set_back ? 10 : 2) * NS_PER_SEC);
    while (!world->fault && world_turn(world, end))
        ;
}

/* Whoever comes then is let in at once. Where the clock was set back, it is the second one, and the
 * time at which a place in the queue counts may come a second time. */
static void judge_newcomer(struct life *life)
{
    calm_down(life);
    loop_disarm(life->world.outside, &life->trouble);
    life->limit = 0;
    life->newcomers = true;
    if (life->set_back)
        come_later(life);
    unsigned holds = life->holds;
    come_later(life);
    if (life->holds == holds)
        world_accuse(&life->world, "what was left behind keeps others out");
}

static void finish(struct life *life)
{
    for (size_t i = 0; i <= CLIENTS; i++) {
        struct client *client = &life->clients[i];
        client->turns = 0;
        if (client->keeper)
            keeper_free(client->keeper);
        if (client->store)
            store_close(client->store);
    }
    url_free(&life->url);
    world_end(&life->world);
}

static void live(struct life *life, unsigned seed)
{
    struct world *world = &life->world;
    struct moment end;

    begin(life, seed);
    end = moment_plus(life->end_of_faults, CALM_NS);
    for (unsigned turns = 0; !world->fault && is_busy(life) && world_turn(world, end); turns++)
        if (turns == TURNS_MAX)
            world_accuse(world, "no end");
    if (!world->fault && is_busy(life))
        world_accuse(world, "it waits for ever");
    if (!world->fault && !life->set_back)
        judge_remains(life);
    if (!world->fault)
        judge_newcomer(life);
}

static unsigned lives_wanted(int argc, char **argv)
{
    const char *wanted = argc > 2 ? argv[2] : getenv("RLOCK_LIVES");

    return wanted ? (unsigned)atoi(wanted) : LIVES;
}

/* Of all lives, so that a test that proves nothing is noticed. */
struct sums {
    unsigned holds, losses, nested, shared, forced, late, woken, endings[KEEPER_UNRELEASED + 1];
    unsigned long statements;
};

static void add(struct sums *sums, const struct life *life)
{
    sums->holds += life->holds;
    sums->losses += life->losses;
    sums->nested += life->nested;
    sums->shared += life->shared;
    sums->forced += life->forced;
    sums->late += life->world.late;
    sums->woken += life->world.woken;
    sums->statements += life->world.statements;
    for (size_t i = 0; i < COUNT(sums->endings); i++)
        sums->endings[i] += life->endings[i];
}

/* Up to the first that fails. */
static void live_many(unsigned seed, unsigned lives, struct sums *sums)
{
    static struct life life;
    const char *fault = NULL;

    for (unsigned end = seed + lives; seed < end && !fault; seed++) {
        live(&life, seed);
        fault = life.world.fault;
        add(sums, &life);
        finish(&life);
    }
    if (!tap_ok(!fault, "%u lives of keepers over a database", lives))
        tap_note("%s (seed %u): %s", fault, seed - 1, life.world.log);
}

static void judge_sums(const struct sums *sums, unsigned lives)
{
    tap_ok(sums->holds > 2 * lives && sums->losses > lives / 4,
           "many of them held it, and lost it");
    tap_ok(sums->nested > lives / 4 && sums->shared > lives, "many nested, and many shared it");
    tap_ok(sums->late > lives / 2, "many statements were executed when nobody waited for them");
    tap_ok(sums->woken > lives / 5, "many that slept in the server were woken");
    tap_ok(sums->forced > lives / 50, "it was taken away from some");
    for (size_t i = 0; i < COUNT(sums->endings); i++)
        tap_ok(sums->endings[i] > lives / 200, "endings of kind %zu", i);
}

int main(int argc, char **argv)
{
    unsigned first = argc > 1 ? (unsigned)atoi(argv[1]) : 0, lives = lives_wanted(argc, argv);
    struct sums sums = {0};

    for (unsigned done = 0; done < lives; done += PART)
        live_many(first + done, lives - done < PART ? lives - done : PART, &sums);
    if (lives >= PART)
        judge_sums(&sums, lives);
    tap_note("%lu statements, %u of them late; woken %u, held %u, lost %u, nested %u, shared %u, "
             "taken away %u",
             sums.statements, sums.late, sums.woken, sums.holds, sums.losses, sums.nested,
             sums.shared, sums.forced);
    return tap_done();
}
