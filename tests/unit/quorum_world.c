/* Keepers over quorums of simulated nodes. */
#include "quorum_world.h"
#include "store_quorum.h"

#include <stdio.h>
#include <string.h>

/* Whoever waits for a free lock has it by then. */
#define SOON_NS (3 * NS_PER_SEC)

void world_accuse(struct world *world, const char *fault)
{
    if (!world->fault)
        world->fault = fault;
}

/* -- the contract of a store ----------------------------------------------------------------- */

static struct client *audited(struct store *base)
{
    return (struct client *)(void *)base;
}

static void audit_begin(struct client *client, struct moment until, store_done *done, void *arg)
{
    if (client->done)
        world_accuse(client->world, "two operations at a time");
    client->done = done;
    client->done_arg = arg;
    client->until = until;
    client->calling = true;
}

static void audit_done(void *arg, const struct answer *answer)
{
    struct client *client = arg;
    store_done *done = client->done;

    if (client->calling)
        world_accuse(client->world, "answered before it returned");
    if (!done)
        world_accuse(client->world, "answered twice");
    else if (loop_now(client->world->loop).ns > client->until.ns)
        world_accuse(client->world, "answered later than it was told");
    if (answer->verdict != VERDICT_GRANTED && answer->cause == CAUSE_NONE)
        world_accuse(client->world, "not granted, and for no cause");
    client->done = NULL;
    if (done)
        done(client->done_arg, answer);
}

static void audit_acquire(struct store *base, const struct lock_request *request,
                          struct moment until, store_done *done, void *arg)
{
    struct client *client = audited(base);

    audit_begin(client, until, done, arg);
    store_acquire(client->quorum, request, until, audit_done, client);
    client->calling = false;
}

static void audit_renew(struct store *base, const struct lock_request *request, struct moment until,
                        store_done *done, void *arg)
{
    struct client *client = audited(base);

    audit_begin(client, until, done, arg);
    store_renew(client->quorum, request, until, audit_done, client);
    client->calling = false;
}

static void audit_release(struct store *base, const struct lock_request *request, bool uncertain,
                          struct moment until, store_done *done, void *arg)
{
    struct client *client = audited(base);

    audit_begin(client, until, done, arg);
    store_release(client->quorum, request, uncertain, until, audit_done, client);
    client->calling = false;
}

static void audit_farewell(struct store *base, const struct lock_request *request)
{
    struct client *client = audited(base);

    client->done = NULL;
    store_farewell(client->quorum, request);
}

static void audit_poked(void *arg)
{
    struct client *client = arg;

    if (client->audit.poked)
        client->audit.poked(client->audit.poked_arg);
}

static void stop(struct loop_timer *timer)
{
    (void)timer; /* time has come so far: that is all */
}

/* -- a client -------------------------------------------------------------------------------- */

static void on_waiting(void *arg, const struct answer *refusal)
{
    struct client *client = arg;

    if (refusal->cause != CAUSE_HELD || refusal->position != 0)
        world_accuse(client->world, "waits for nobody, or in a line");
}

static void on_held(void *arg, struct moment deadline, const struct lock_grant *grants)
{
    struct client *client = arg;
    struct world *world = client->world;

    for (unsigned i = 0; i < world->client_count; i++) {
        if (world->clients[i].held)
            world_accuse(world, "two hold it at once");
    }
    struct moment since = client->asked.ns > world->freed.ns ? client->asked : world->freed;
    if (world->calm && moment_until(since, loop_now(world->loop)) > SOON_NS)
        world_accuse(world, "it was free, and nobody got it");
    if (grants[0].fence <= world->fence)
        world_accuse(world, "a fence that is not higher than the one before");
    world->fence = grants[0].fence;
    world->grants++;
    client->held = true;
    client->deadline = deadline;
    client->waited = moment_until(since, loop_now(world->loop));
    if (client->automatic)
        loop_arm(world->loop, &client->next,
                 moment_plus(loop_now(world->loop), sim_below(6000) * NS_PER_MS));
}

static void on_extended(void *arg, struct moment deadline, bool forgotten)
{
    struct client *client = arg;

    (void)forgotten;
    client->deadline = deadline;
}

static void on_trouble(void *arg, const char *why)
{
    struct client *client = arg;

    if (!*why)
        world_accuse(client->world, "trouble without a reason");
}

static void on_lost(void *arg, const char *why)
{
    struct client *client = arg;

    (void)why;
    client->held = false;
    client->lost = true;
    if (!client->leaving && client->automatic)
        loop_arm(client->world->loop, &client->next, loop_now(client->world->loop));
}

static void on_over(void *arg, const struct keeper_end *end)
{
    struct client *client = arg;

    client->held = false;
    client->over = true;
    client->ending = end->ending;
    client->cause = end->cause;
    client->ended = loop_now(client->world->loop);
    if (client->automatic)
        loop_arm(client->world->loop, &client->next, loop_now(client->world->loop));
}

static const struct keeper_events events = {on_waiting, on_held, on_extended,
                                            on_trouble, on_lost, on_over};

void client_open(struct client *client, bool wait)
{
    static const char *const keys[] = {"k"};
    static const struct store_ops ops = {.acquire = audit_acquire,
                                         .renew = audit_renew,
                                         .release = audit_release,
                                         .farewell = audit_farewell};
    static unsigned owners;
    struct world *world = client->world;
    struct store_node nodes[SIM_NODES];
    struct keeper_plan plan = {
        .request = {.keys = keys, .key_count = 1, .lease = world->lease, .who = ""},
        .wait = wait,
        .wait_until = MOMENT_NEVER,
        .renew = true,
        .connect_timeout = 5 * NS_PER_SEC};

    for (size_t i = 0; i < world->node_count; i++) {
        nodes[i].store = sim_link(&world->nodes[i]);
        snprintf(nodes[i].name, sizeof nodes[i].name, "node %zu", i);
    }
    client->held = client->lost = client->leaving = client->over = false;
    client->asked = loop_now(world->loop);
    client->done = NULL;
    client->audit = (struct store){.ops = &ops};
    client->quorum = store_quorum_open(world->loop, nodes, world->node_count);
    store_on_poke(client->quorum, audit_poked, client);
    snprintf(client->owner, sizeof client->owner, "owner-%u", ++owners);
    plan.request.owner = client->owner;
    client->keeper = keeper_start(world->loop, &client->audit, &plan, &events, client);
}

/* Also that of a process that was killed: nothing is said any more. */
void client_close(struct client *client, bool killed)
{
    if (!client->keeper)
        return;
    loop_disarm(client->world->loop, &client->next);
    keeper_free(client->keeper);
    client->keeper = NULL;
    client->held = false;
    sim_silence(killed);
    store_close(client->quorum);
    sim_silence(false);
}

void client_release(struct client *client)
{
    struct world *world = client->world;

    client->leaving = true;
    client->held = false;
    world->freed = loop_now(world->loop);
    keeper_release(client->keeper, moment_plus(world->freed, 8 * NS_PER_SEC), true);
}

/* The next thing that a client does which takes turns. */
static void act(struct loop_timer *timer)
{
    struct client *client = timer->owner;
    struct world *world = client->world;

    if (client->over || !client->keeper) {
        client_close(client, false);
        if (client->turns == 0)
            return;
        client->turns--;
        client_open(client, sim_below(4) > 0);
    } else if (!client->leaving && world->killing && sim_below(8) == 0) {
        client_close(client, true);
        loop_arm(world->loop, timer, loop_now(world->loop));
    } else if (!client->leaving) {
        client_release(client);
    }
}

void client_take_turns(struct client *client, unsigned turns, int64_t first)
{
    struct loop *loop = client->world->loop;

    client->automatic = true;
    client->turns = turns;
    loop_arm(loop, &client->next, moment_plus(loop_now(loop), first));
}

/* -- the world ------------------------------------------------------------------------------- */

void world_open(struct world *world, unsigned seed, size_t nodes, unsigned clients, int64_t lease)
{
    sim_seed(seed);
    *world = (struct world){
        .loop = loop_new(), .node_count = nodes, .client_count = clients, .lease = lease};
    for (size_t i = 0; i < nodes; i++) {
        char id[32];
        snprintf(id, sizeof id, "run-%zu", i);
        sim_node_init(&world->nodes[i], world->loop, id);
        world->nodes[i].skew = (int64_t)sim_below(10000) * NS_PER_MS;
    }
    for (unsigned i = 0; i < clients; i++) {
        struct client *client = &world->clients[i];
        client->world = world;
        client->next = (struct loop_timer){.fire = act, .owner = client};
    }
}

void world_turn(struct world *world, int64_t ns)
{
    static struct loop_timer end;
    struct moment until = moment_plus(loop_now(world->loop), ns);

    end = (struct loop_timer){.fire = stop};
    loop_arm(world->loop, &end, until);
    while (loop_now(world->loop).ns < until.ns && fake_turn(world->loop)) {
        for (unsigned i = 0; i < world->client_count; i++) {
            struct client *client = &world->clients[i];
            if (client->held && moment_reached(client->deadline, loop_now(world->loop)))
                world_accuse(world, "held beyond the lease");
        }
    }
    loop_disarm(world->loop, &end);
    if (sim_fault())
        world_accuse(world, sim_fault());
}

bool world_is_busy(const struct world *world)
{
    for (unsigned i = 0; i < world->client_count; i++) {
        if (world->clients[i].keeper)
            return true;
    }
    return false;
}

size_t world_entries(const struct world *world, const struct client *client)
{
    size_t count = 0;

    for (size_t i = 0; i < world->node_count; i++) {
        const char *holder = sim_node_holder(&world->nodes[i]);
        count += holder && (!client || strcmp(holder, client->owner) == 0);
    }
    return count;
}

void world_close(struct world *world)
{
    for (unsigned i = 0; i < world->client_count; i++)
        client_close(&world->clients[i], false);
    for (size_t i = 0; i < world->node_count; i++)
        sim_node_free(&world->nodes[i]);
    loop_free(world->loop);
}
