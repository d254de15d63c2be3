/* Keepers with ZooKeeper stores, each a process of its own, far from an ensemble that fails: no two
 * hold a lock that excludes them, tokens grow, no one waits for ever, and nothing is left behind.
 *
 * RLOCK_LIVES: how many lives; the first argument: the seed of the first one, to repeat it. */
#include "lock/keeper.h"
#include "lock/owner.h"

#include "base/mem.h"
#include "chance.h"
#include "keepers.h"
#include "tap.h"
#include "zk_world.h"

#define LIVES       500
#define PARTS       5
#define PLAYERS_MAX 6
#define KEYS        3
#define GRANTS_MAX  200
#define LEAVE_NS    (8 * NS_PER_SEC)
/* Faults cease by then, and all that want a lock have to have had it some time later. */
#define CALM_MS   60000
#define AT_END_NS (1500 * NS_PER_SEC)

struct life;

struct player {
    struct witness me; /* without a keeper: between two acquisitions */
    struct life *life;
    struct moment stopped_until;
    bool dead;

    struct store *store;
    struct keeper_plan plan;
    char owner[OWNER_SIZE];
    const char *keys[KEYS];
    struct loop_timer action;
    unsigned rounds, actions; /* that are left */
    bool on_hold;             /* nothing is renewed */
    bool forced;              /* somebody took its nodes away */
    struct lock_grant grants[KEYS];
    struct moment began;
    bool inherited; /* by another agent, which has not heard of all requests of the one before */
};

/* An owner that has had a lock. */
struct past_grant {
    const char *key;
    bool reader;
    uint64_t fence;
    char owner[OWNER_SIZE];
};

struct life {
    struct zk_world world;
    struct url url;
    struct store_address address;
    struct player players[PLAYERS_MAX];
    size_t count;
    unsigned limit; /* 0: the keys are plain locks */
    unsigned owners;
    struct past_grant past[GRANTS_MAX];
    size_t past_count;

    struct loop *forcer_loop;
    struct store *forcer;
    struct loop_timer force;
    struct force_request force_request; /* under way */
    bool forcing;
    const char *force_owners[PLAYERS_MAX];
    char force_texts[PLAYERS_MAX][OWNER_SIZE];
};

static struct {
    unsigned holds, losses, shared, several, nested, slots, forced, kills, successors, stops;
    unsigned endings[8];
    unsigned elections, expired, reopened_at_old, stale_reads, moved, waited;
} total;

static struct moment now_of(const struct player *player)
{
    return loop_now(player->me.loop);
}

static struct zk_world *world_of(const struct player *player)
{
    return &player->life->world;
}

static unsigned number_of(const struct player *player)
{
    return (unsigned)(player - player->life->players);
}

static void note(struct player *player, const char *what)
{
    note_at(&world_of(player)->trial, now_of(player), "%u %s", number_of(player), what);
}

/* -- the judge --------------------------------------------------------------------------------- */

static bool counts_on_it(const struct player *player, struct moment now)
{
    return player->me.held && !player->forced && !player->dead &&
           !moment_reached(player->me.lease.end, now);
}

static bool is_one_family(const char *one, const char *other)
{
    return strcmp(one, other) == 0 || owner_nests_in(one, other) || owner_nests_in(other, one);
}

static int index_of(const struct player *player, const char *key)
{
    for (size_t i = 0; i < player->plan.request.key_count; i++)
        if (strcmp(player->keys[i], key) == 0)
            return (int)i;
    return -1;
}

/* Whether the two may not have that key at the same time. */
static bool exclude(const struct player *one, int i, const struct player *other, int j)
{
    const struct acquire_request *a = &one->plan.request, *b = &other->plan.request;

    if (is_one_family(one->owner, other->owner))
        return false;
    if (a->mode == LOCK_LIMIT)
        return one->grants[i].slot == other->grants[j].slot;
    return a->mode != LOCK_SHARED || b->mode != LOCK_SHARED;
}

static void judge_holding(struct player *player)
{
    struct life *life = player->life;
    const struct acquire_request *request = &player->plan.request;

    for (size_t i = 0; i < request->key_count; i++) {
        if (life->limit && (player->grants[i].slot < 1 || player->grants[i].slot > life->limit))
            accuse(player->me.trial, "a slot that there is not");
        for (size_t j = 0; j < life->count; j++) {
            struct player *other = &life->players[j];
            int at = other == player || !counts_on_it(other, now_of(player))
                         ? -1
                         : index_of(other, player->keys[i]);
            if (at >= 0 && counts_on_it(player, now_of(player)) &&
                exclude(player, (int)i, other, at))
                accuse(player->me.trial, "two hold the lock");
        }
    }
}

/* A later owner has a greater token than those that it waited for. A nested one has that of its
 * ancestor. */
static void judge_fences(struct player *player)
{
    struct life *life = player->life;
    const struct acquire_request *request = &player->plan.request;

    for (size_t i = 0; i < request->key_count; i++) {
        struct past_grant grant = {player->keys[i], request->mode == LOCK_SHARED,
                                   player->grants[i].fence, ""};
        strcpy(grant.owner, player->owner);
        for (size_t j = 0; j < life->past_count && request->mode != LOCK_LIMIT; j++) {
            const struct past_grant *old = &life->past[j];
            if (strcmp(old->key, grant.key) == 0 && !(old->reader && grant.reader) &&
                strncmp(old->owner, grant.owner, 36) != 0 && old->fence >= grant.fence)
                accuse(player->me.trial, "a token that is not greater");
        }
        if (life->past_count < GRANTS_MAX)
            life->past[life->past_count++] = grant;
    }
}

static struct player *find_owner(struct life *life, const char *path)
{
    for (size_t i = 0; i < life->count; i++) {
        struct player *player = &life->players[i];
        const char *dot = strrchr(player->owner, '.');
        if (*player->owner && strstr(path, dot ? dot + 1 : player->owner))
            return player;
    }
    return NULL;
}

/* Whether it has said that nothing of it is left, and can know. */
static bool is_clean(const struct player *player)
{
    bool gone = player->me.ending == KEEPER_RELEASED || player->me.ending == KEEPER_NOT_ACQUIRED;

    return gone && !player->inherited && player->life->world.denied == 0;
}

/* Whether it was the last one that its owner's part of the lock is held by. A node of an unanswered
 * request goes with its session, when the owner has another one. */
static bool was_last(const struct zk_world *world, const char *path, const char *owner)
{
    const char *dot = strrchr(owner, '.'), *name = strrchr(path, '/');
    char same[300];

    snprintf(same, sizeof same, "%.*s/_c_%s", (int)(name - path), path, dot ? dot + 1 : owner);
    return !strstr(path, "/locks/_c_") && zk_count_nodes(world, same) == 0;
}

static void on_made(void *arg, const char *path)
{
    struct life *life = arg;
    struct player *player = find_owner(life, path);

    note_at(&life->world.trial, loop_now(life->world.loop), "made %.12s…%s", path,
            path + strlen(path) - 12);
    if (player && player->me.over && is_clean(player))
        accuse(player->me.trial, "a node of one who has given all back");
}

static void on_gone(void *arg, const char *path, enum zk_end_of_node how)
{
    struct life *life = arg;
    struct player *player = find_owner(life, path);
    struct moment now = loop_now(life->world.loop);

    note_at(&life->world.trial, now, "gone %s", path + strlen(path) - 12);
    if (!player || player->me.over)
        return;
    if (how == NODE_EXPIRED && counts_on_it(player, now) &&
        was_last(&life->world, path, player->owner))
        accuse(player->me.trial, "the session of one who holds the lock ends");
    if (how == NODE_GIVEN_BACK && counts_on_it(player, now) &&
        was_last(&life->world, path, player->owner))
        accuse(player->me.trial, "a lock is released while it is held");
    if (how == NODE_TAKEN_AWAY) {
        player->forced = true;
        total.forced++;
    }
}

static const struct zk_judge judge = {on_made, on_gone};

/* -- what a keeper tells ----------------------------------------------------------------------- */

/* A grant: its lease is no longer than was asked for, and no other client may hold the lock. */
static void check_lease(struct player *player, struct lease lease)
{
    if (lease.length > player->plan.request.lease)
        accuse(player->me.trial, "a lease that is longer than was asked for");
    judge_holding(player);
}

static void on_waiting(void *arg, const struct answer *refusal)
{
    (void)arg, (void)refusal;
    total.waited++;
}

static void plan_action(struct player *player);

static void on_held(void *arg, struct lease lease, const struct lock_grant *grants)
{
    struct player *player = arg;
    const struct acquire_request *request = &player->plan.request;

    note(player, "HELD");
    witness_held(&player->me, lease);
    player->forced = false;
    memcpy(player->grants, grants, sizeof player->grants);
    total.holds++;
    total.shared += request->mode == LOCK_SHARED;
    total.slots += request->mode == LOCK_LIMIT;
    total.several += request->key_count > 1;
    total.nested += strchr(player->owner, '.') != NULL;
    judge_fences(player);
    check_lease(player, lease);
    plan_action(player);
}

static void on_extended(void *arg, struct lease lease, bool forgotten)
{
    struct player *player = arg;

    note(player, "EXTENDED");
    witness_extended(&player->me, lease);
    if (forgotten)
        accuse(player->me.trial, "forgotten by a store that forgets nothing");
    check_lease(player, lease);
}

static void on_lost(void *arg, const struct keeper_loss *loss)
{
    struct player *player = arg;

    note_at(&world_of(player)->trial, now_of(player), "%u LOST: %d %s", number_of(player),
            loss->cause, loss->text);
    witness_lost(&player->me);
    total.losses++;
    if (!player->me.leaving)
        plan_action(player);
}

static void on_over(void *arg, const struct keeper_end *end)
{
    struct player *player = arg;

    note_at(&world_of(player)->trial, now_of(player), "%u OVER %d %s", number_of(player),
            end->ending, end->why->text);
    witness_over(&player->me, end, player->stopped_until.ns > player->me.leave_by.ns);
    total.endings[end->ending]++;
    loop_arm(player->me.loop, &player->action, now_of(player));
}

static const struct keeper_events events = {
    on_waiting, on_held, on_extended,    {witness_trouble, witness_recovered},
    on_lost,    on_over, witness_is_away};

/* -- what a player does ------------------------------------------------------------------------ */

static void leave(struct player *player, bool cancel)
{
    note(player, cancel ? "CANCEL" : "RELEASE");
    witness_leave(&player->me, cancel, LEAVE_NS);
}

static void plan_action(struct player *player)
{
    struct zk_world *world = world_of(player);

    loop_arm(player->me.loop, &player->action,
             moment_plus(now_of(player), 1 + (chance(&world->seed, 2) ? zk_some_time(world, 3000)
                                                                      : zk_any_time(world, 8000))));
}

/* A holder to nest in; NULL: there is none. */
static const struct player *find_holder(struct player *player)
{
    struct life *life = player->life;
    size_t first = chance(&life->world.seed, (unsigned)life->count);

    for (size_t i = 0; i < life->count; i++) {
        const struct player *other = &life->players[(first + i) % life->count];
        if (other != player && counts_on_it(other, now_of(player)) &&
            strlen(other->owner) < (size_t)3 * OWNER_UUID_SIZE)
            return other;
    }
    return NULL;
}

static void choose_keys(struct player *player)
{
    static const char *const names[KEYS] = {"ka", "kb", "kc"};
    struct zk_world *world = world_of(player);
    struct acquire_request *request = &player->plan.request;
    size_t first = chance(&world->seed, KEYS), step = 1 + chance(&world->seed, KEYS - 1);

    request->key_count = chance(&world->seed, 3) ? 1 : 1 + chance(&world->seed, KEYS);
    first = request->key_count == 1 && chance(&world->seed, 2) ? 0 : first;
    for (size_t i = 0; i < request->key_count; i++)
        player->keys[i] = names[(first + i * step) % KEYS];
}

static void choose_owner(struct player *player, const struct player *outer)
{
    char uuid[OWNER_UUID_SIZE];

    player->life->owners++;
    snprintf(uuid, sizeof uuid, "%08x-1111-4111-8111-%012x", player->life->owners,
             player->life->owners);
    owner_nest(outer ? outer->owner : NULL, uuid, player->owner);
    note_at(&world_of(player)->trial, now_of(player), "%u is %u%s%.8s", number_of(player),
            player->life->owners, outer ? " in " : "", outer ? outer->owner : "");
}

static void begin(struct player *player)
{
    static const int leases[] = {4000, 6000, 15000, 30000}, waits[] = {-1, -1, -1, 0, 1500, 20000};
    struct life *life = player->life;
    struct zk_world *world = &life->world;
    int lease = leases[chance(&world->seed, COUNT(leases))];
    int wait = waits[chance(&world->seed, COUNT(waits))];
    const struct player *outer = chance(&world->seed, 3) == 0 ? find_holder(player) : NULL;
    char fault[256];

    player->me =
        (struct witness){.trial = &world->trial, .loop = player->me.loop, .leave_by = MOMENT_NEVER};
    player->forced = player->on_hold = player->inherited = false;
    player->began = now_of(player);
    choose_owner(player, outer);
    choose_keys(player);
    for (size_t i = 0; outer && i < player->plan.request.key_count; i++)
        if (index_of(outer, player->keys[i]) < 0)
            wait = wait < 0 ? 20000 : wait; /* it might wait for ever: rlock-stores(7) says so */
    size_t key_count = player->plan.request.key_count;
    player->plan = plan_of(player->owner, lease * NS_PER_MS, wait * NS_PER_MS, now_of(player));
    player->plan.request.keys = player->keys;
    player->plan.request.key_count = key_count;
    player->plan.renew = chance(&world->seed, 8) > 0;
    if (life->limit) {
        player->plan.request.mode = LOCK_LIMIT;
        player->plan.request.limit = life->limit;
    } else if (chance(&world->seed, 3) == 0) {
        player->plan.request.mode = LOCK_SHARED;
    }
    player->actions = chance(&world->seed, 24);
    note_at(&world->trial, now_of(player), "%u BEGIN %s%s%s x%zu lease %d wait %d",
            number_of(player), lock_mode_name(player->plan.request.mode), " ", player->keys[0],
            player->plan.request.key_count, lease, wait);
    player->store = store_open(player->me.loop, &life->address, fault, sizeof fault);
    if (!player->store)
        abort();
    player->me.keeper =
        keeper_start(player->me.loop, player->store, &player->plan, &events, player);
    plan_action(player);
}

static void finish(struct player *player)
{
    const char *dot = strrchr(player->owner, '.');

    if (is_clean(player) && zk_count_nodes(world_of(player), dot ? dot + 1 : player->owner) > 0)
        accuse(player->me.trial, "gone, but its nodes are there");
    keeper_free(player->me.keeper);
    store_close(player->store);
    player->me.keeper = NULL;
    player->store = NULL;
    if (player->rounds > 0)
        plan_action(player);
}

static void stop(struct player *player)
{
    note(player, "STOP");
    total.stops++;
    player->stopped_until = moment_plus(now_of(player), zk_some_time(world_of(player), 40000));
}

/* Only the agent, so that another one continues for its owner; or the owner as well. */
static void die(struct player *player)
{
    struct life *life = player->life;
    bool goes_on = !player->me.lost && !player->me.leaving && !player->me.over &&
                   chance(&life->world.seed, 4) > 0;
    struct keeper_past past = {
        .began = player->began, .held = player->me.held, .lease = player->me.lease};
    char fault[256];

    note(player, goes_on ? "KILLED, to be continued" : "KILLED");
    zk_network_kill(&life->world, player->me.loop);
    if (!goes_on) {
        total.kills++;
        player->dead = true;
        return;
    }
    total.successors++;
    player->inherited = true;
    keeper_free(player->me.keeper);
    store_close(player->store);
    memcpy(past.grants, player->grants, sizeof player->grants);
    player->on_hold = player->me.troubled = false;
    player->store = store_open(player->me.loop, &life->address, fault, sizeof fault);
    player->me.keeper =
        keeper_take_over(player->me.loop, player->store, &player->plan, &past, &events, player);
}

static void allow_renewals(struct player *player)
{
    player->on_hold = false;
    keeper_allow_renewals(player->me.keeper);
}

/* When nothing fails any more every life comes to an end. */
static void act_calmly(struct player *player)
{
    player->me.away = false;
    keeper_resume(player->me.keeper);
    if (player->on_hold)
        allow_renewals(player);
    if (player->me.held || player->me.lost)
        leave(player, false);
    else
        plan_action(player);
}

static void act_wildly(struct player *player)
{
    struct zk_world *world = world_of(player);

    switch (chance(&world->seed, 24)) {
    case 0: keeper_verify(player->me.keeper); break;
    case 1:
        player->on_hold = true;
        keeper_hold_renewals(player->me.keeper);
        break;
    case 2: allow_renewals(player); break;
    case 3:
        if (!player->me.held)
            break;
        note(player, "RESTART");
        witness_restart(&player->me);
        break;
    case 4:
        note(player, "AWAY");
        player->me.away = !player->me.held;
        break;
    case 5:
    case 6:
        note(player, "BACK");
        player->me.away = false;
        keeper_resume(player->me.keeper);
        break;
    case 7:
    case 8: stop(player); break;
    case 9: leave(player, true); return;
    case 10:
        if (chance(&world->seed, 3) == 0)
            die(player);
        break;
    default:
        if (player->me.held && chance(&world->seed, 4) == 0) {
            leave(player, false);
            return;
        }
    }
    plan_action(player);
}

static void act(struct loop_timer *timer)
{
    struct player *player = timer->owner;

    if (!player->me.keeper) {
        player->rounds--;
        begin(player);
    } else if (player->me.over) {
        finish(player);
    } else if (player->me.leaving) {
        return;
    } else if (player->me.lost) {
        leave(player, false);
    } else if (world_of(player)->calm) {
        act_calmly(player);
    } else if (player->actions == 0) {
        leave(player, !player->me.held);
    } else {
        player->actions--;
        act_wildly(player);
    }
}

/* -- somebody takes locks away ----------------------------------------------------------------- */

static void on_forced(void *arg, const struct answer *answer)
{
    struct life *life = arg;

    note_at(&life->world.trial, loop_now(life->forcer_loop), "FORCED %d", answer->verdict);
    life->forcing = false;
}

static void use_force(struct loop_timer *timer)
{
    struct life *life = timer->owner;
    struct moment now = loop_now(life->forcer_loop);
    struct force_request *request = &life->force_request;

    if (life->world.calm)
        return;
    loop_arm(life->forcer_loop, timer,
             moment_plus(now, NS_PER_SEC + zk_some_time(&life->world, 30000)));
    if (life->forcing)
        return;
    *request = (struct force_request){.key = "ka", .owners = life->force_owners};
    for (size_t i = 0; i < life->count; i++) {
        struct player *player = &life->players[i];
        if (!counts_on_it(player, now) || index_of(player, "ka") < 0)
            continue;
        strcpy(life->force_texts[request->owner_count], player->owner);
        life->force_owners[request->owner_count] = life->force_texts[request->owner_count];
        request->owner_count++;
    }
    if (request->owner_count == 0)
        return;
    life->forcing = true;
    store_start(life->forcer, &(struct operation){.verb = VERB_FORCE,
                                                  .force = request,
                                                  .until = moment_plus(now, 5 * NS_PER_SEC),
                                                  .done = on_forced,
                                                  .arg = life});
}

/* -- a life ------------------------------------------------------------------------------------ */

static void open_life(struct life *life, unsigned seed)
{
    char fault[256], text[100];
    struct zk_world *world = &life->world;

    zk_world_begin(world, seed, &judge, life);
    snprintf(text, sizeof text, "zookeeper://127.0.0.1:%d%s", ZK_PORT,
             world->server_count > 1 ? ",127.0.0.1:2,127.0.0.1:3" : "");
    if (chance(&world->seed, 2))
        strcat(text, "/team/locks");
    if (!url_parse(text, &life->url, fault, sizeof fault))
        abort();
    life->address = (struct store_address){
        .urls = &life->url, .url_count = 1, .prefix = "rlock", .connect_timeout = 5 * NS_PER_SEC};
    life->limit = chance(&world->seed, 4) ? 0 : 1 + chance(&world->seed, 3);
    life->count = 2 + chance(&world->seed, PLAYERS_MAX - 1);
    for (size_t i = 0; i < life->count; i++) {
        struct player *player = &life->players[i];
        *player = (struct player){.me.loop = loop_new(),
                                  .life = life,
                                  .rounds = 1 + chance(&world->seed, 3),
                                  .action = {.fire = act, .owner = player}};
        player->stopped_until = now_of(player);
        loop_arm(player->me.loop, &player->action,
                 moment_plus(now_of(player), zk_some_time(world, 5000)));
    }
    life->forcer_loop = loop_new();
    life->forcer = store_open(life->forcer_loop, &life->address, fault, sizeof fault);
    life->force = (struct loop_timer){.fire = use_force, .owner = life};
    if (chance(&world->seed, 4) == 0)
        loop_arm(life->forcer_loop, &life->force,
                 moment_plus(loop_now(life->forcer_loop), zk_some_time(world, 30000)));
}

static void close_life(struct life *life)
{
    struct zk_world *world = &life->world;

    world->ended = true;
    for (size_t i = 0; i < life->count; i++) {
        if (life->players[i].me.keeper)
            keeper_free(life->players[i].me.keeper);
        if (life->players[i].store)
            store_close(life->players[i].store);
    }
    store_close(life->forcer);
    total.elections += world->elections;
    total.expired += world->expired;
    total.reopened_at_old += world->reopened_at_old;
    total.stale_reads += world->stale_reads;
    total.moved += world->moved;
    zk_world_end(world);
    for (size_t i = 0; i < life->count; i++)
        loop_free(life->players[i].me.loop);
    loop_free(life->forcer_loop);
    url_free(&life->url);
}

static bool is_alive(const struct player *player)
{
    return !player->dead && (player->me.keeper || player->rounds > 0);
}

static bool is_anybody_alive(const struct life *life)
{
    bool any = life->forcing;

    for (size_t i = 0; i < life->count; i++)
        any |= is_alive(&life->players[i]);
    return any;
}

/* Whatever is due next happens, in whichever process. */
static struct moment turn(struct life *life)
{
    struct player *who = NULL;
    struct loop *next = life->world.loop;
    struct moment due = fake_due(next);

    if (fake_due(life->forcer_loop).ns < due.ns) {
        next = life->forcer_loop;
        due = fake_due(next);
    }
    for (size_t i = 0; i < life->count; i++) {
        struct player *player = &life->players[i];
        struct moment its = fake_due(player->me.loop);
        if (player->dead || its.ns == MOMENT_NEVER.ns)
            continue;
        its = moment_max(its, player->stopped_until);
        if (its.ns < due.ns) {
            who = player;
            next = player->me.loop;
            due = its;
        }
    }
    if (who && fake_due(next).ns < due.ns)
        fake_suspend(next, moment_until(moment_max(fake_due(next), loop_now(next)), due));
    fake_turn(next);
    for (size_t i = 0; i < life->count; i++)
        if (life->players[i].me.loop == life->world.dying && life->players[i].me.keeper)
            die(&life->players[i]);
    life->world.dying = NULL;
    return due;
}

static void live(struct life *life, unsigned seed)
{
    struct zk_world *world = &life->world;

    open_life(life, seed);
    struct moment calm = moment_plus(loop_now(world->loop), zk_any_time(world, CALM_MS));
    struct moment end = moment_plus(calm, AT_END_NS), now = calm;
    while (!world->trial.fault && is_anybody_alive(life)) {
        now = turn(life);
        if (!world->calm && moment_reached(calm, now))
            zk_world_calm(world);
        if (moment_reached(end, now))
            accuse(&world->trial, "a waiter waits for ever");
    }
    /* The rest goes with its sessions. */
    end = moment_plus(now, 120 * NS_PER_SEC);
    zk_world_calm(world);
    while (!world->trial.fault && !moment_reached(end, now))
        now = turn(life);
    if (zk_count_nodes(world, "/") > 0)
        accuse(&world->trial, "nodes are left behind");
}

int main(int argc, char **argv)
{
    unsigned first = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    const char *wanted = getenv("RLOCK_LIVES");
    unsigned lives = wanted ? (unsigned)atoi(wanted) : LIVES;
    struct life *life = mem_zeroed(sizeof *life);

    for (unsigned part = 0; part < PARTS; part++) {
        unsigned seed = first + part * (lives / PARTS), i = 0;
        const char *fault;
        do {
            memset(life, 0, sizeof *life);
            live(life, seed + i);
            fault = life->world.trial.fault;
            if (fault)
                tap_note("%s (seed %u): %s", fault, seed + i, life->world.trial.log);
            close_life(life);
        } while (!fault && ++i < lives / PARTS);
        tap_ok(!fault, "%u lives of keepers at an ensemble", lives / PARTS);
    }
    free(life);
    tap_note("held %u, waited %u, lost %u, readers %u, several keys %u, nested %u, slots %u, "
             "forced %u, killed %u, succeeded %u, stopped %u; elections %u, sessions expired %u, "
             "opened at an old leader %u, stale reads %u, moved %u; endings %u %u %u %u %u",
             total.holds, total.waited, total.losses, total.shared, total.several, total.nested,
             total.slots, total.forced, total.kills, total.successors, total.stops, total.elections,
             total.expired, total.reopened_at_old, total.stale_reads, total.moved, total.endings[0],
             total.endings[1], total.endings[2], total.endings[3], total.endings[4]);
    return tap_done();
}
