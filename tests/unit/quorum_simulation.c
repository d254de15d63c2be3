/* Keepers over quorums of simulated nodes. */
#include "quorum_simulation.h"
#include "store/quorum/store.h"

#include <stdio.h>
#include <string.h>

/* A waiter for a free lock has it by then. */
#define SOON_NS (3 * NS_PER_SEC)

void simulation_accuse(struct simulation *sim, const char *fault)
{
    if (!sim->fault)
        sim->fault = fault;
}

/* -- the contract of a store ----------------------------------------------------------------- */

static struct client *audited(struct store *base)
{
    return (struct client *)(void *)base;
}

static void audit_done(void *arg, const struct answer *answer)
{
    struct client *client = arg;
    store_done *done = client->done;

    if (client->calling)
        simulation_accuse(client->sim, "answered before it returned");
    if (!done)
        simulation_accuse(client->sim, "answered twice");
    else if (loop_now(client->sim->loop).ns > client->until.ns)
        simulation_accuse(client->sim, "answered later than it was told");
    if (answer->verdict != VERDICT_GRANTED && answer->cause == CAUSE_NONE)
        simulation_accuse(client->sim, "not granted, and for no cause");
    client->done = NULL;
    if (done)
        done(client->done_arg, answer);
}

static void audit_start(struct store *base, const struct operation *operation)
{
    struct client *client = audited(base);
    struct operation inner = *operation;

    if (client->done)
        simulation_accuse(client->sim, "two operations at a time");
    client->done = operation->done;
    client->done_arg = operation->arg;
    client->until = operation->until;
    client->calling = true;
    inner.done = audit_done;
    inner.arg = client;
    store_start(client->quorum, &inner);
    client->calling = false;
}

static bool audit_release_nowait(struct store *base, const struct release_request *request)
{
    struct client *client = audited(base);

    client->done = NULL;
    return store_release_nowait(client->quorum, request);
}

static void audit_poked(void *arg)
{
    struct client *client = arg;

    store_poke(&client->audit);
}

static const struct store_events audit_events = {.poked = audit_poked};

static void stop(struct loop_timer *timer)
{
    (void)timer; /* time has come so far: that is all */
}

/* -- a client -------------------------------------------------------------------------------- */

static void on_waiting(void *arg, const struct answer *refusal)
{
    struct client *client = arg;

    if (refusal->cause != CAUSE_HELD || refusal->position != 0)
        simulation_accuse(client->sim, "waits without a holder, or in a queue");
}

static void on_held(void *arg, struct lease lease, const struct lock_grant *grants)
{
    struct client *client = arg;
    struct simulation *sim = client->sim;

    for (unsigned i = 0; i < sim->client_count; i++) {
        const struct client *other = &sim->clients[i];
        if (other->held && !other->forced && !other->passing && !client->passing)
            simulation_accuse(sim, "two hold it at once");
    }
    struct moment since = client->asked.ns > sim->freed.ns ? client->asked : sim->freed;
    if (sim->calm && moment_until(since, loop_now(sim->loop)) > SOON_NS)
        simulation_accuse(sim, "it was free, and no owner got it");
    if (grants[0].fence <= sim->fence && !client->passing)
        simulation_accuse(sim, "a fence that is not higher than the one before");
    if (grants[0].fence > sim->fence)
        sim->fence = grants[0].fence;
    sim->grants++;
    client->held = true;
    client->deadline = lease.end;
    client->waited = moment_until(since, loop_now(sim->loop));
    if (client->automatic)
        loop_arm(sim->loop, &client->next,
                 moment_plus(loop_now(sim->loop), sim_below(6000) * NS_PER_MS));
}

static void on_extended(void *arg, struct lease lease, bool forgotten)
{
    struct client *client = arg;

    (void)forgotten;
    client->deadline = lease.end;
}

static void on_trouble(void *arg, const struct answer *why)
{
    struct client *client = arg;

    if (!why->text[0])
        simulation_accuse(client->sim, "trouble without a reason");
    client->troubled = true;
}

static void on_recovered(void *arg, int64_t after)
{
    struct client *client = arg;

    if (!client->troubled || after < 0)
        simulation_accuse(client->sim, "recovered without any trouble");
    client->troubled = false;
}

static void on_lost(void *arg, const struct keeper_loss *loss)
{
    struct client *client = arg;

    (void)loss;
    client->held = false;
    client->lost = true;
    if (!client->leaving && client->automatic)
        loop_arm(client->sim->loop, &client->next, loop_now(client->sim->loop));
}

static void on_over(void *arg, const struct keeper_end *end)
{
    struct client *client = arg;

    client->held = false;
    client->over = true;
    if (client->forced && !client->lost && end->ending == KEEPER_RELEASED)
        simulation_accuse(client->sim, "what was taken away is not told as lost");
    client->ending = end->ending;
    client->cause = end->cause;
    client->ended = loop_now(client->sim->loop);
    if (client->automatic)
        loop_arm(client->sim->loop, &client->next, loop_now(client->sim->loop));
}

static const struct keeper_events events = {
    on_waiting, on_held, on_extended, {on_trouble, on_recovered}, on_lost, on_over, NULL};

/* The quorum is closed by itself. */
static void close_store(struct store *base)
{
    (void)base;
}

void client_open(struct client *client, bool wait)
{
    static const char *const keys[] = {"k"};
    static const struct store_ops ops = {close_store, audit_start, audit_release_nowait};
    static unsigned owners;
    struct simulation *sim = client->sim;
    struct store_node nodes[SIM_NODES];
    struct keeper_plan plan = {.request = {.keys = keys,
                                           .key_count = 1,
                                           .mirror = "string:m",
                                           .lease = sim->lease,
                                           .who = ""},
                               .wait = wait,
                               .wait_until = MOMENT_NEVER,
                               .renew = true,
                               .connect_timeout = 5 * NS_PER_SEC,
                               .server_wait = 5 * NS_PER_SEC};

    for (size_t i = 0; i < sim->node_count; i++) {
        nodes[i].member = sim_link(&sim->nodes[i]);
        client->links[i] = nodes[i].member.store;
        snprintf(nodes[i].name, sizeof nodes[i].name, "node %zu", i);
    }
    client->held = client->lost = client->leaving = client->over = false;
    client->forced = client->passing = false;
    client->asked = loop_now(sim->loop);
    client->done = NULL;
    client->audit = (struct store){.ops = &ops};
    client->quorum = store_quorum_open(sim->loop, nodes, sim->node_count);
    store_on_event(client->quorum, &audit_events, client);
    snprintf(client->owner, sizeof client->owner, "owner-%u", ++owners);
    plan.request.owner = client->owner;
    client->keeper = keeper_start(sim->loop, &client->audit, &plan, &events, client);
}

/* Also that of a process that was killed: nothing is said any more. */
void client_close(struct client *client, bool killed)
{
    if (!client->keeper)
        return;
    loop_disarm(client->sim->loop, &client->next);
    keeper_free(client->keeper);
    client->keeper = NULL;
    client->held = false;
    sim_silence(killed);
    store_close(&client->audit);
    store_close(client->quorum);
    sim_silence(false);
}

void client_release(struct client *client)
{
    struct simulation *sim = client->sim;

    client->leaving = true;
    client->held = false;
    sim->freed = loop_now(sim->loop);
    keeper_release(client->keeper, moment_plus(sim->freed, 8 * NS_PER_SEC), &(struct lock_end){0});
}

/* The next thing that a client does which takes turns. */
static void act(struct loop_timer *timer)
{
    struct client *client = timer->owner;
    struct simulation *sim = client->sim;

    if (client->over || !client->keeper) {
        client_close(client, false);
        if (client->turns == 0)
            return;
        client->turns--;
        client_open(client, sim_below(4) > 0);
    } else if (!client->leaving && sim->killing && sim_below(8) == 0) {
        client_close(client, true);
        loop_arm(sim->loop, timer, loop_now(sim->loop));
    } else if (!client->leaving) {
        client_release(client);
    }
}

void client_take_turns(struct client *client, unsigned turns, int64_t first)
{
    struct loop *loop = client->sim->loop;

    client->automatic = true;
    client->turns = turns;
    loop_arm(loop, &client->next, moment_plus(loop_now(loop), first));
}

/* -- the simulation
 * ------------------------------------------------------------------------------- */

void simulation_open(struct simulation *sim, unsigned seed, size_t nodes, unsigned clients,
                     int64_t lease)
{
    sim_seed(seed);
    *sim = (struct simulation){
        .loop = loop_new(), .node_count = nodes, .client_count = clients, .lease = lease};
    for (size_t i = 0; i < nodes; i++) {
        char id[32];
        snprintf(id, sizeof id, "run-%zu", i);
        sim_node_init(&sim->nodes[i], sim->loop, id);
        sim->nodes[i].skew = (int64_t)sim_below(10000) * NS_PER_MS;
    }
    for (unsigned i = 0; i < clients; i++) {
        struct client *client = &sim->clients[i];
        client->sim = sim;
        client->next = (struct loop_timer){.fire = act, .owner = client};
    }
}

void simulation_turn(struct simulation *sim, int64_t ns)
{
    static struct loop_timer end;
    struct moment until = moment_plus(loop_now(sim->loop), ns);

    end = (struct loop_timer){.fire = stop};
    loop_arm(sim->loop, &end, until);
    while (loop_now(sim->loop).ns < until.ns && fake_turn(sim->loop)) {
        for (unsigned i = 0; i < sim->client_count; i++) {
            struct client *client = &sim->clients[i];
            if (client->held && moment_reached(client->deadline, loop_now(sim->loop)))
                simulation_accuse(sim, "held beyond the lease");
        }
    }
    loop_disarm(sim->loop, &end);
    if (sim_fault())
        simulation_accuse(sim, sim_fault());
}

void simulation_force(struct simulation *sim)
{
    for (unsigned i = 0; i < sim->client_count; i++) {
        struct client *client = &sim->clients[i];
        client->forced |= client->held;
        client->passing |= !client->held && simulation_entries(sim, client) > 0;
    }
    for (size_t i = 0; i < sim->node_count; i++)
        sim_node_evict(&sim->nodes[i]);
    sim->freed = loop_now(sim->loop);
}

bool simulation_is_busy(const struct simulation *sim)
{
    for (unsigned i = 0; i < sim->client_count; i++) {
        if (sim->clients[i].keeper)
            return true;
    }
    return false;
}

size_t simulation_entries(const struct simulation *sim, const struct client *client)
{
    size_t count = 0;

    for (size_t i = 0; i < sim->node_count; i++) {
        const char *holder = sim_node_holder(&sim->nodes[i]);
        count += holder && (!client || strcmp(holder, client->owner) == 0);
    }
    return count;
}

void simulation_close(struct simulation *sim)
{
    for (unsigned i = 0; i < sim->client_count; i++)
        client_close(&sim->clients[i], false);
    for (size_t i = 0; i < sim->node_count; i++)
        sim_node_free(&sim->nodes[i]);
    loop_free(sim->loop);
}
