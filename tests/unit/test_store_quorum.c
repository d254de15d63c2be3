/* A quorum of simulated nodes under keepers: what single faults lead to, and by chance whatever
 * happens to nodes, requests and answers: no two hold the lock at once, fences rise, and nothing is
 * left behind. */

#include "keepers.h"
#include "sim_nodes.h"
#include "store/quorum/store.h"
#include "tap.h"

/* -- keepers over quorums --------------------------------------------------------------------- */

/* Keepers over quorums of simulated nodes, who may hold one lock, and what none of them may ever
 * do. */
#define CLIENTS 4

/* One who wants the lock, and a store between its keeper and its quorum that sees that the contract
 * is kept. */
struct client {
    struct store audit;
    struct simulation *sim;
    struct store *quorum;
    struct keeper *keeper; /* NULL: not there */
    char owner[SIM_OWNER];
    bool held, lost, leaving, over;
    bool forced;            /* the lock was taken away from it while it held it */
    bool passing;           /* or perhaps while its grant was on the way: it finds out later */
    bool troubled;          /* and told so */
    struct moment deadline; /* while held */
    struct moment asked;    /* when it began to try */
    enum keeper_ending ending;
    bool automatic; /* takes turns */
    unsigned turns;
    struct loop_timer next;
    /* The operation that its store is at. */
    store_done *done;
    void *done_arg;
    struct moment until;
    bool calling;
};

struct simulation {
    struct loop *loop;
    struct sim_node nodes[SIM_NODES];
    size_t node_count;
    struct client clients[CLIENTS];
    unsigned client_count;
    int64_t lease;
    bool calm;           /* nothing fails, so that who waits gets it soon */
    bool killing;        /* of clients that take turns */
    struct moment freed; /* when it was last released */
    uint64_t fence;      /* the last one */
    unsigned grants;
    const char *fault;
};

/* A waiter for a free lock has it by then. */
#define SOON_NS (3 * NS_PER_SEC)

/* The first fault is kept. */
static void accuse(struct simulation *sim, const char *fault)
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
        accuse(client->sim, "answered before it returned");
    if (!done)
        accuse(client->sim, "answered twice");
    else if (loop_now(client->sim->loop).ns > client->until.ns)
        accuse(client->sim, "answered later than it was told");
    if (answer->verdict != VERDICT_GRANTED && answer->cause == CAUSE_NONE)
        accuse(client->sim, "not granted, and for no cause");
    client->done = NULL;
    if (done)
        done(client->done_arg, answer);
}

static void audit_start(struct store *base, const struct operation *operation)
{
    struct client *client = audited(base);
    struct operation inner = *operation;

    if (client->done)
        accuse(client->sim, "two operations at a time");
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
        accuse(client->sim, "waits without a holder, or in a queue");
}

static void on_held(void *arg, struct lease lease, const struct lock_grant *grants)
{
    struct client *client = arg;
    struct simulation *sim = client->sim;

    for (unsigned i = 0; i < sim->client_count; i++) {
        const struct client *other = &sim->clients[i];
        if (other->held && !other->forced && !other->passing && !client->passing)
            accuse(sim, "two hold it at once");
    }
    struct moment since = client->asked.ns > sim->freed.ns ? client->asked : sim->freed;
    if (sim->calm && moment_until(since, loop_now(sim->loop)) > SOON_NS)
        accuse(sim, "it was free, and no owner got it");
    if (grants[0].fence <= sim->fence && !client->passing)
        accuse(sim, "a fence that is not higher than the one before");
    if (grants[0].fence > sim->fence)
        sim->fence = grants[0].fence;
    sim->grants++;
    client->held = true;
    client->deadline = lease.end;
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
        accuse(client->sim, "trouble without a reason");
    client->troubled = true;
}

static void on_recovered(void *arg, int64_t after)
{
    struct client *client = arg;

    if (!client->troubled || after < 0)
        accuse(client->sim, "recovered without any trouble");
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
        accuse(client->sim, "what was taken away is not told as lost");
    client->ending = end->ending;
    if (client->automatic)
        loop_arm(client->sim->loop, &client->next, loop_now(client->sim->loop));
}

static const struct keeper_events events = {
    on_waiting, on_held, on_extended, {on_trouble, on_recovered}, on_lost, on_over, NULL};

/* Starts to acquire. */
static void client_open(struct client *client, bool wait)
{
    static const struct store_ops ops = {close_nothing, audit_start, audit_release_nowait};
    static unsigned owners;
    struct simulation *sim = client->sim;
    struct store_node nodes[SIM_NODES];

    for (size_t i = 0; i < sim->node_count; i++) {
        nodes[i].member = sim_link(&sim->nodes[i]);
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
    struct keeper_plan plan = plan_of(client->owner, sim->lease, wait ? -1 : 0, client->asked);
    plan.request.mirror = "string:m";
    client->keeper = keeper_start(sim->loop, &client->audit, &plan, &events, client);
}

/* Also that of a process that was killed: nothing is said any more. */
static void client_close(struct client *client, bool killed)
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

/* Releases it. */
static void client_release(struct client *client)
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

/* So many times, from "first" ns on: acquires, waiting or not, holds it for up to 6 s, gives it
 * back. */
static void client_take_turns(struct client *client, unsigned turns, int64_t first)
{
    struct loop *loop = client->sim->loop;

    client->automatic = true;
    client->turns = turns;
    loop_arm(loop, &client->next, moment_plus(loop_now(loop), first));
}

/* -- the simulation
 * ------------------------------------------------------------------------------- */

static void simulation_open(struct simulation *sim, unsigned seed, size_t nodes, unsigned clients,
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

/* Lets time pass. */
static void simulation_turn(struct simulation *sim, int64_t ns)
{
    static struct loop_timer end;
    struct moment until = moment_plus(loop_now(sim->loop), ns);

    end = (struct loop_timer){.fire = stop};
    loop_arm(sim->loop, &end, until);
    while (loop_now(sim->loop).ns < until.ns && fake_turn(sim->loop)) {
        for (unsigned i = 0; i < sim->client_count; i++) {
            struct client *client = &sim->clients[i];
            if (client->held && moment_reached(client->deadline, loop_now(sim->loop)))
                accuse(sim, "held beyond the lease");
        }
    }
    loop_disarm(sim->loop, &end);
    if (sim_fault())
        accuse(sim, sim_fault());
}

/* On how many nodes the client has a live entry; NULL: anybody. */
static size_t simulation_entries(const struct simulation *sim, const struct client *client)
{
    size_t count = 0;

    for (size_t i = 0; i < sim->node_count; i++) {
        const char *holder = sim_node_holder(&sim->nodes[i]);
        count += holder && (!client || strcmp(holder, client->owner) == 0);
    }
    return count;
}

/* The lock is taken away from whoever holds it, on all nodes. */
static void simulation_force(struct simulation *sim)
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

static bool simulation_is_busy(const struct simulation *sim)
{
    for (unsigned i = 0; i < sim->client_count; i++) {
        if (sim->clients[i].keeper)
            return true;
    }
    return false;
}

static void simulation_close(struct simulation *sim)
{
    for (unsigned i = 0; i < sim->client_count; i++)
        client_close(&sim->clients[i], false);
    for (size_t i = 0; i < sim->node_count; i++)
        sim_node_free(&sim->nodes[i]);
    loop_free(sim->loop);
}

/* -- faults ----------------------------------------------------------------------------------- */

#define MS (NS_PER_MS)
#define S  (NS_PER_SEC)

/* -- one fault at a time ---------------------------------------------------------------------- */

static void evict(struct simulation *sim, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sim_node_evict(&sim->nodes[i]);
}

static bool holds(struct client *client, bool wait, int64_t within)
{
    client_open(client, wait);
    simulation_turn(client->sim, within);
    return client->held;
}

/* H124: no renewal has noticed it; the release does, and says so. */
static bool force_is_told_by_the_release(struct simulation *sim, struct client *a)
{
    bool held = holds(a, false, 10 * MS);

    simulation_turn(sim, 100 * MS);
    evict(sim, sim->node_count);
    client_release(a);
    simulation_turn(sim, 1 * S);
    return held && a->over && a->lost;
}

/* H124: also where the lock was on a bare majority, and not all of that is left. */
static bool a_majority_that_is_lost_is_told_by_the_release(struct simulation *sim, struct client *a)
{
    size_t spare = sim->node_count / 2;

    for (size_t i = 0; i < spare; i++)
        sim_node_kill(&sim->nodes[i]);
    bool held = holds(a, false, 10 * MS);
    sim_node_evict(&sim->nodes[spare]);
    client_release(a);
    simulation_turn(sim, 1 * S);
    return held && a->over && a->lost && simulation_entries(sim, NULL) == 0;
}

static bool losing_a_minority_is_not_a_loss(struct simulation *sim, struct client *a)
{
    bool held = holds(a, false, 10 * MS);

    simulation_turn(sim, 100 * MS);
    evict(sim, sim->node_count / 2);
    client_release(a);
    simulation_turn(sim, 1 * S);
    return held && a->over && !a->lost && a->ending == KEEPER_RELEASED;
}

/* A release of which the answers are lost is repeated: the lock of the first one was not taken
 * away. */
static bool a_repeated_release_is_not_a_loss(struct simulation *sim, struct client *a)
{
    bool held = holds(a, false, 10 * MS);

    simulation_turn(sim, 100 * MS);
    for (size_t i = 1; i < sim->node_count; i++)
        sim->nodes[i].mute = true;
    client_release(a);
    simulation_turn(sim, 1 * S);
    for (size_t i = 1; i < sim->node_count; i++)
        sim->nodes[i].mute = false;
    simulation_turn(sim, 5 * S);
    return held && a->over && !a->lost && a->ending == KEEPER_RELEASED;
}

/* H124: a renewal hears of one server that the lock was taken away, and nothing of another; the
 * next one hears the same of the second. Nothing is acquired again in between. */
static bool force_in_two_halves_is_noticed(struct simulation *sim, struct client *a)
{
    sim_node_kill(&sim->nodes[2]);
    bool held = holds(a, false, 10 * MS);

    sim_node_evict(&sim->nodes[0]);
    simulation_turn(sim, sim->lease / 3 + 20 * MS);
    sim_node_evict(&sim->nodes[1]);
    simulation_turn(sim, sim->lease / 3);
    return held && a->lost && simulation_entries(sim, NULL) == 0;
}

/* At the first renewal, not the one after it. */
static bool an_entry_lost_on_one_node_is_made_again(struct simulation *sim, struct client *a)
{
    bool held = holds(a, false, 10 * MS);

    sim_node_evict(&sim->nodes[0]);
    simulation_turn(sim, sim->lease);
    return held && a->held && !a->lost && simulation_entries(sim, a) == sim->node_count;
}

static const struct {
    const char *name;
    size_t nodes[2]; /* each is tried, with its lease; 0: one is enough */
    int64_t lease[2];
    bool (*run)(struct simulation *sim, struct client *a); /* the next client is another one */
} faults[] = {
    {"force is told by the release", {3, 5}, {3 * S, 30 * S}, force_is_told_by_the_release},
    {"a majority that is lost is told by the release",
     {3, 5},
     {30 * S, 30 * S},
     a_majority_that_is_lost_is_told_by_the_release},
    {"losing a minority is not a loss", {3, 5}, {30 * S, 30 * S}, losing_a_minority_is_not_a_loss},
    {"a repeated release is not a loss",
     {3, 5},
     {30 * S, 30 * S},
     a_repeated_release_is_not_a_loss},
    {"force in two halves is noticed", {3}, {3 * S}, force_in_two_halves_is_noticed},
    {"an entry lost on one node is made again",
     {3},
     {3 * S},
     an_entry_lost_on_one_node_is_made_again},
};

static void test_fault(size_t i, size_t nodes, int64_t lease)
{
    struct simulation sim = {.fault = NULL};
    bool fine = true;
    unsigned seed = 0;

    for (; fine && seed < 20; seed++) {
        simulation_open(&sim, seed, nodes, 2, lease);
        fine = faults[i].run(&sim, sim.clients) && !sim.fault;
        simulation_close(&sim);
    }
    if (!tap_ok(fine, "%s, of %zu", faults[i].name, nodes))
        tap_note("seed %u: %s", seed - 1, sim.fault ? sim.fault : "not so");
}

/* -- by chance ------------------------------------------------------------------------------- */

struct trouble {
    struct simulation *sim;
    struct loop_timer timer;
    unsigned left;
    bool forgets; /* nodes come back without their data */
    struct moment forgot;
};

/* One node at a time forgets, and the next one only after a lease: two at once are a majority of
 * three. */
static void bring_back(struct trouble *trouble, struct sim_node *node)
{
    struct moment now = loop_now(trouble->sim->loop);
    bool forgets = trouble->forgets && sim_below(4) > 0 &&
                   moment_until(trouble->forgot, now) > trouble->sim->lease + 2 * S;

    if (forgets)
        trouble->forgot = now;
    sim_node_start(node, forgets);
}

static void make_trouble(struct loop_timer *timer)
{
    struct trouble *trouble = timer->owner;
    struct simulation *sim = trouble->sim;
    struct moment now = loop_now(sim->loop);
    struct sim_node *node = &sim->nodes[sim_below((unsigned)sim->node_count)];

    if (node->down) {
        bring_back(trouble, node);
    } else {
        switch (sim_below(6)) {
        case 0: sim_node_kill(node); break;
        case 1: node->still = moment_plus(now, sim_below(8000) * MS); break;
        case 2: node->slowest = (1 + sim_below(300)) * MS; break;
        case 3: node->slowest = (1 + sim_below(2000)) * MS; break;
        case 4: node->loss = sim_below(400); break;
        default: node->slowest = MS; node->loss = 0;
        }
    }
    if (trouble->left-- > 0)
        loop_arm(sim->loop, timer, moment_plus(now, (150 + sim_below(3000)) * MS));
}

static void heal(struct simulation *sim)
{
    for (size_t i = 0; i < sim->node_count; i++) {
        struct sim_node *node = &sim->nodes[i];
        if (node->down)
            sim_node_start(node, false);
        node->slowest = MS;
        node->loss = 0;
        node->still = (struct moment){0};
    }
}

static void pass_through_trouble(struct simulation *sim, bool forgets)
{
    struct trouble trouble = {.sim = sim, .left = 40, .forgets = forgets};

    sim->calm = false;
    sim->killing = true;
    trouble.timer = (struct loop_timer){.fire = make_trouble, .owner = &trouble};
    loop_arm(sim->loop, &trouble.timer, moment_plus(loop_now(sim->loop), sim_below(2000) * MS));
    simulation_turn(sim, 60 * S);
    loop_disarm(sim->loop, &trouble.timer);
    heal(sim);
}

static void use_force(struct loop_timer *timer)
{
    struct simulation *sim = timer->owner;

    simulation_force(sim);
    loop_arm(sim->loop, timer, moment_plus(loop_now(sim->loop), (50 + sim_below(4000)) * MS));
}

/* H124 */
static void pass_through_force(struct simulation *sim)
{
    struct loop_timer timer = {.fire = use_force, .owner = sim};

    loop_arm(sim->loop, &timer, loop_now(sim->loop));
    simulation_turn(sim, 60 * S);
    loop_disarm(sim->loop, &timer);
}

enum conditions { CALM, FORCED, TROUBLE, FORGETFUL };

static void run_by_chance(struct simulation *sim, unsigned seed, enum conditions conditions)
{
    static const int leases[] = {1, 2, 5, 30};

    simulation_open(sim, seed, seed % 2 ? 3 : 5, 2 + seed % 3, leases[seed / 6 % 4] * S);
    sim->calm = true;
    /* With nodes their fences are forgotten; then only their clocks keep them rising. */
    for (size_t i = 0; i < sim->node_count && conditions == FORGETFUL; i++)
        sim->nodes[i].skew = 0;
    for (unsigned i = 0; i < sim->client_count; i++)
        client_take_turns(&sim->clients[i], 4, sim_below(sim_below(2) ? 3 : 4000) * MS);
    simulation_turn(sim, 1 * MS);
    if (conditions == FORCED)
        pass_through_force(sim);
    else if (conditions != CALM)
        pass_through_trouble(sim, conditions == FORGETFUL);
    for (int i = 0; i < 40 && simulation_is_busy(sim); i++)
        simulation_turn(sim, 10 * S);
    if (simulation_is_busy(sim))
        accuse(sim, "no end");
    if (sim->calm && simulation_entries(sim, NULL) > 0)
        accuse(sim, "something was left");
}

static void test_chance(const char *name, enum conditions conditions)
{
    for (unsigned part = 0; part < 10; part++) {
        struct simulation sim = {.fault = NULL};
        unsigned seed = part * 200, end = seed + 200, grants = 0;

        for (; seed < end && !sim.fault; seed++) {
            run_by_chance(&sim, seed, conditions);
            grants += sim.grants;
            simulation_close(&sim);
        }
        if (!tap_ok(!sim.fault && grants > 1000, "200 runs by chance: %s", name))
            tap_note("%s (seed %u)", sim.fault ? sim.fault : "hardly ever held", seed - 1);
    }
}

int main(void)
{
    for (size_t i = 0; i < COUNT(faults); i++)
        for (size_t j = 0; j < 2 && faults[i].nodes[j]; j++)
            test_fault(i, faults[i].nodes[j], faults[i].lease[j]);
    test_chance("calm", CALM);
    test_chance("taken away", FORCED);
    test_chance("trouble", TROUBLE);
    test_chance("trouble, and nodes that forget", FORGETFUL);
    return tap_done();
}
