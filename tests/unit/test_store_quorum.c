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
    struct witness me; /* without a keeper: not there */
    struct store audit;
    struct simulation *sim;
    struct store *quorum;
    char owner[SIM_OWNER];
    struct lock_grant grant; /* the latest */
    bool forced;             /* the lock was taken away from it while it held it */
    bool passing;            /* or perhaps while its grant was on the way: it finds out later */
    struct moment asked;     /* when it began to try */
    bool automatic;          /* takes turns */
    unsigned turns;
    enum cause cause; /* of its end */
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
    bool dying;          /* their processes are killed, and others take over */
    struct moment freed; /* when it was last released */
    uint64_t fence;      /* the last one */
    unsigned grants;
    struct trial trial;
};

/* A waiter for a free lock has it by then. */
#define SOON_NS (3 * NS_PER_SEC)

/* -- the contract of a store ----------------------------------------------------------------- */

static struct client *audited(struct store *base)
{
    return (struct client *)(void *)((char *)base - offsetof(struct client, audit));
}

static void audit_done(void *arg, const struct answer *answer)
{
    struct client *client = arg;
    store_done *done = client->done;

    if (client->calling)
        accuse(client->me.trial, "answered before it returned");
    if (!done)
        accuse(client->me.trial, "answered twice");
    else if (loop_now(client->sim->loop).ns > client->until.ns)
        accuse(client->me.trial, "answered later than it was told");
    if (answer->verdict != VERDICT_GRANTED && answer->cause == CAUSE_NONE)
        accuse(client->me.trial, "not granted, and for no cause");
    client->done = NULL;
    if (done)
        done(client->done_arg, answer);
}

static void audit_start(struct store *base, const struct operation *operation)
{
    struct client *client = audited(base);
    struct operation inner = *operation;

    if (client->done)
        accuse(client->me.trial, "two operations at a time");
    client->done = operation->done;
    client->done_arg = operation->arg;
    client->until = operation->until;
    client->calling = true;
    inner.done = audit_done;
    inner.arg = client;
    store_start(client->quorum, &inner);
    client->calling = false;
}

static enum release_sent audit_release_nowait(struct store *base,
                                              const struct release_request *request)
{
    struct client *client = audited(base);

    client->done = NULL;
    return store_release_nowait(client->quorum, request);
}

static void audit_poked(void *arg)
{
    struct client *client = arg;

    store_changed(&client->audit);
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

    if (refusal->cause != CAUSE_HELD || refusal->refused.position != 0)
        accuse(client->me.trial, "waits without a holder, or in a queue");
}

static void on_held(void *arg, struct lease lease, const struct lock_grant *grants)
{
    struct client *client = arg;
    struct simulation *sim = client->sim;

    for (unsigned i = 0; i < sim->client_count; i++) {
        const struct client *other = &sim->clients[i];
        if (other->me.held && !other->forced && !other->passing && !client->passing)
            accuse(&sim->trial, "two hold it at once");
    }
    struct moment since = client->asked.ns > sim->freed.ns ? client->asked : sim->freed;
    if (sim->calm && moment_until(since, loop_now(sim->loop)) > SOON_NS)
        accuse(&sim->trial, "it was free, and no owner got it");
    if (grants[0].fence <= sim->fence && !client->passing)
        accuse(&sim->trial, "a fence that is not higher than the one before");
    if (grants[0].fence > sim->fence)
        sim->fence = grants[0].fence;
    sim->grants++;
    client->grant = grants[0];
    witness_held(&client->me, lease);
    if (client->automatic)
        loop_arm(sim->loop, &client->next,
                 moment_plus(loop_now(sim->loop), sim_below(6000) * NS_PER_MS));
}

static void on_extended(void *arg, struct lease lease, bool forgotten)
{
    struct client *client = arg;

    (void)forgotten;
    witness_extended(&client->me, lease);
}

static void on_lost(void *arg, const struct keeper_loss *loss)
{
    struct client *client = arg;

    (void)loss;
    witness_lost(&client->me);
    if (!client->me.leaving && client->automatic)
        loop_arm(client->sim->loop, &client->next, loop_now(client->sim->loop));
}

static void on_over(void *arg, const struct keeper_end *end)
{
    struct client *client = arg;

    witness_over(&client->me, end, false);
    client->cause = end->why->cause;
    if (client->forced && !client->me.lost && end->ending == KEEPER_RELEASED)
        accuse(client->me.trial, "what was taken away is not told as lost");
    if (client->automatic)
        loop_arm(client->sim->loop, &client->next, loop_now(client->sim->loop));
}

static const struct keeper_events events = {
    on_waiting, on_held, on_extended, {witness_trouble, witness_recovered}, on_lost, on_over, NULL};

/* Opens the store of a process: links to all nodes. */
static void client_connect(struct client *client)
{
    static const struct store_ops ops = {close_nothing, audit_start, audit_release_nowait};
    struct simulation *sim = client->sim;
    struct store_node nodes[SIM_NODES];

    for (size_t i = 0; i < sim->node_count; i++) {
        nodes[i].member = sim_link(&sim->nodes[i]);
        snprintf(nodes[i].name, sizeof nodes[i].name, "node %zu", i);
    }
    client->done = NULL;
    client->audit = (struct store){.ops = &ops};
    client->quorum = store_quorum_open(sim->loop, nodes, sim->node_count);
    store_on_event(client->quorum, &audit_events, client);
}

/* Returns what the client's owner asks for. */
static struct keeper_plan client_plan(const struct client *client, bool wait)
{
    struct keeper_plan plan =
        plan_of(client->owner, client->sim->lease, wait ? -1 : 0, client->asked);

    plan.request.mirror = "string:m";
    return plan;
}

/* Starts to acquire. */
static void client_open(struct client *client, bool wait)
{
    static unsigned owners;
    struct simulation *sim = client->sim;

    client->me =
        (struct witness){.trial = &sim->trial, .loop = sim->loop, .leave_by = MOMENT_NEVER};
    client->forced = client->passing = false;
    client->asked = loop_now(sim->loop);
    snprintf(client->owner, sizeof client->owner, "owner-%u", ++owners);
    client_connect(client);
    struct keeper_plan plan = client_plan(client, wait);
    client->me.keeper = keeper_start(sim->loop, &client->audit, &plan, &events, client);
}

/* Also that of a process that was killed: nothing is said any more. */
static void client_close(struct client *client, bool killed)
{
    if (!client->me.keeper)
        return;
    loop_disarm(client->sim->loop, &client->next);
    keeper_free(client->me.keeper);
    client->me.keeper = NULL;
    client->me.held = false;
    sim_silence(killed);
    store_close(&client->audit);
    store_close(client->quorum);
    sim_silence(false);
}

/* Kills the client's process; the next one of the same owner takes over. released: the first one
 * was told to release before. */
static void client_replace(struct client *client, bool released)
{
    struct keeper_past past = {.began = client->asked,
                               .held = client->me.held,
                               .released = released,
                               .lease = client->me.lease,
                               .grants = {client->grant}};
    struct loop_timer next = client->next;

    client_close(client, true);
    client->me.held = past.held;
    client->forced &= !released; /* whether that came before the release is not known any more */
    client_connect(client);
    struct keeper_plan plan = client_plan(client, true);
    client->me.keeper =
        keeper_take_over(client->sim->loop, &client->audit, &plan, &past, &events, client);
    if (next.armed)
        loop_arm(client->sim->loop, &client->next, next.due);
}

/* Releases it. */
static void client_release(struct client *client)
{
    struct simulation *sim = client->sim;

    sim->freed = loop_now(sim->loop);
    witness_leave(&client->me, false, 8 * NS_PER_SEC);
}

/* The next thing that a client does which takes turns. */
static void act(struct loop_timer *timer)
{
    struct client *client = timer->owner;
    struct simulation *sim = client->sim;

    if (client->me.over || !client->me.keeper) {
        client_close(client, false);
        if (client->turns == 0)
            return;
        client->turns--;
        client_open(client, sim_below(4) > 0);
    } else if (!client->me.leaving && sim->killing && sim_below(8) == 0) {
        client_close(client, true);
        loop_arm(sim->loop, timer, loop_now(sim->loop));
    } else if (!client->me.leaving && client->me.held && sim->dying && sim_below(2)) {
        bool ended = sim_below(2);
        client_replace(client, ended);
        if (ended)
            client_release(client);
        else
            loop_arm(sim->loop, timer,
                     moment_plus(loop_now(sim->loop), sim_below(3000) * NS_PER_MS));
    } else if (!client->me.leaving) {
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

/* -- the simulation --------------------------------------------------------------------------- */

static void simulation_open(struct simulation *sim, unsigned seed, size_t nodes, unsigned clients,
                            int64_t lease)
{
    sim_seed(seed);
    *sim = (struct simulation){
        .loop = loop_new(), .node_count = nodes, .client_count = clients, .lease = lease};
    for (size_t i = 0; i < nodes; i++) {
        char id[32];
        snprintf(id, sizeof id, "run-%zu", i);
        sim_node_init(&sim->nodes[i], sim->loop, &sim->trial, id);
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
            if (client->me.held && moment_reached(client->me.lease.end, loop_now(sim->loop)))
                accuse(&sim->trial, "held beyond the lease");
        }
    }
    loop_disarm(sim->loop, &end);
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
        client->forced |= client->me.held;
        client->passing |= !client->me.held && simulation_entries(sim, client) > 0;
    }
    for (size_t i = 0; i < sim->node_count; i++)
        sim_node_evict(&sim->nodes[i]);
    sim->freed = loop_now(sim->loop);
}

static bool simulation_is_busy(const struct simulation *sim)
{
    for (unsigned i = 0; i < sim->client_count; i++) {
        if (sim->clients[i].me.keeper)
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

#define MS (NS_PER_MS)
#define S  (NS_PER_SEC)

/* -- one fault at a time ---------------------------------------------------------------------- */

/* Steps, one after the other: "a" the client acquires the lock, "r" it releases it, "x" its process
 * is killed, and another one takes over, "X" one that has the order to release from the start;
 * "q" its process ends as soon as its keeper is over, "tMS" time passes, "sMS" the first node
 * stands still for so long, "fMS" all on the way to it or from it takes so long; of the nodes with
 * these numbers, "k" kills them, "e" takes the entry away, "d" deletes it, "m" loses their answers,
 * or no longer. "wanted": how the client ended, or what it does, whether it was told that the lock
 * is lost, and how many nodes have an entry. */
static const struct {
    const char *name;
    size_t nodes;
    int64_t lease;
    const char *steps, *wanted;
} faults[] = {
    /* H124: the release says it. The lock was on a bare majority, and not all of that is left. */
    {"a majority that is lost is told by the release", 3, 30 * S, "k0 a e1 r t1000",
     "released, lost, on 0"},
    /* H124: one of the nodes that it was taken away from stands still: until the first release is
     * answered; until a later one is; for longer. */
    {"a loss that a slow node tells is told", 3, 30 * S, "a t100 e01 s1500 r t3000",
     "released, lost, on 0"},
    {"a loss that a node tells late is told", 3, 30 * S, "a t100 e01 s5000 r t9000",
     "released, lost, on 0"},
    {"a loss that no node tells is unknown", 3, 30 * S, "a t100 e01 s60000 r t9000",
     "unreleased, on 0"},
    {"losing a minority is not a loss", 3, 30 * S, "a t100 e0 r t1000", "released, on 0"},
    /* A release of which the answers are lost is repeated: the first one took the lock away. */
    {"a repeated release is fine", 3, 30 * S, "a t100 m12 r t1000 m12 t5000", "released, on 0"},
    /* H124: a renewal hears of one server that the lock was taken away, the next one hears the same
     * of another one. Nothing is acquired again in between. */
    {"force in two halves is noticed", 3, 3 * S, "k2 a e0 t1020 e1 t1000", "waits, lost, on 0"},
    {"force at one node after the other is noticed", 3, 3 * S, "a t100 e0 t2020 e1 t2020 e2 t1000",
     "waits, lost, on 0"},
    /* H135: the connection of the next process to one node comes later than to the others. */
    {"a release reaches a node that is slow to answer the next process", 5, 30 * S,
     "a t100 s300 x r q t1000", "released, on 0"},
    {"so does one that the next process begins with", 5, 30 * S, "a t100 s300 X r q t1000",
     "released, on 0"},
    {"so does one when the node has not answered the next process yet", 5, 30 * S,
     "a t100 s6000 x t7000 f20 r q t1000", "released, on 0"},
    /* At the first renewal, not the one after it. */
    {"an entry lost on one node is made again", 3, 3 * S, "a d0 t3000", "holds, on 3"},
};

static void take_step(struct simulation *sim, const char *step)
{
    struct client *client = sim->clients;

    switch (*step) {
    case 'a':
        client_open(client, false);
        simulation_turn(sim, 10 * MS);
        if (!client->me.held)
            accuse(&sim->trial, "not had at once");
        break;
    case 'r': client_release(client); break;
    case 'x': client_replace(client, false); break;
    case 'q':
        while (!client->me.over)
            simulation_turn(sim, 1 * MS);
        client_close(client, false);
        break;
    case 'X': client_replace(client, true); break;
    case 't': simulation_turn(sim, atoi(step + 1) * MS); break;
    case 'f': sim->nodes[0].fastest = atoi(step + 1) * MS; break;
    case 's': sim->nodes[0].still = moment_plus(loop_now(sim->loop), atoi(step + 1) * MS); break;
    default:
        for (const char *number = step + 1; *number > ' '; number++) {
            struct sim_node *node = &sim->nodes[*number - '0'];
            if (*step == 'k')
                sim_node_kill(node);
            else if (*step == 'e')
                sim_node_evict(node);
            else if (*step == 'd')
                node->owner[0] = '\0';
            else
                node->mute = !node->mute;
        }
    }
}

/* The steps of a row end as it wants, whatever the network does: with each of twenty seeds. */
static void test_fault(size_t i)
{
    static const char *const endings[] = {"released", "refused", "failed", "cancelled",
                                          "unreleased"};
    struct simulation sim = {.loop = NULL};
    const struct client *client = sim.clients;
    char got[100] = "";
    unsigned seed = 0;
    bool fine = true;

    for (; fine && seed < 20; seed++) {
        simulation_open(&sim, seed, faults[i].nodes, 2, faults[i].lease);
        for (const char *step = faults[i].steps; step; step = strchr(step, ' '))
            take_step(&sim, step += *step == ' ');
        snprintf(got, sizeof got, "%s%s, on %zu",
                 client->me.over   ? endings[client->me.ending]
                 : client->me.held ? "holds"
                                   : "waits",
                 client->me.lost ? ", lost" : "", simulation_entries(&sim, NULL));
        fine = !sim.trial.fault && strcmp(got, faults[i].wanted) == 0;
        simulation_close(&sim);
    }
    if (!tap_ok(fine, "%s, of %zu", faults[i].name, faults[i].nodes))
        tap_note("seed %u: %s, %s", seed - 1, got, sim.trial.fault ? sim.trial.fault : "no fault");
}

/* The grants of one try lie further apart than its lease, and another owner comes and goes between
 * them. Nodes whose clocks are behind take the fence that the try has proposed, however late, so
 * that it need not be settled; and one that knew the other owner is told it later. */
static void test_late_grants(void)
{
    struct simulation sim = {.loop = NULL};
    struct client *slow = &sim.clients[0], *other = &sim.clients[1];
    unsigned grants = 0, seed = 0;

    for (; !sim.trial.fault && seed < 20; seed++) {
        simulation_open(&sim, seed, 5, 2, 1 * S);
        for (size_t i = 0; i < sim.node_count; i++)
            sim.nodes[i].skew = i < 3 ? 0 : -2 * S;
        sim.nodes[2].fastest = 1320 * MS;
        client_open(slow, true);
        /* cppcheck-suppress redundantAssignment; client_open() has read it */
        sim.nodes[2].fastest = 0;
        sim.nodes[3].still = sim.nodes[4].still = moment_plus(loop_now(sim.loop), 1300 * MS);
        simulation_turn(&sim, 1010 * MS);
        client_open(other, false);
        simulation_turn(&sim, 15 * MS);
        client_release(other);
        simulation_turn(&sim, 10 * S);
        if (!slow->me.held)
            accuse(&sim.trial, "not had");
        grants += sim.grants;
        simulation_close(&sim);
    }
    if (!tap_ok(!sim.trial.fault && grants >= 2 * seed, "grants of a try that lie far apart"))
        tap_note("seed %u: %s, %u grants", seed - 1, sim.trial.fault ? sim.trial.fault : "no fault",
                 grants);
}

/* H154 H2: a waiter's requests are slow, and meanwhile its connections break (cut) or its process
 * dies. Its next requests are refused, it gives up, and the lock is released: the slow ones take
 * nothing when they arrive. */
static void test_late_requests(bool cut)
{
    struct simulation sim = {.loop = NULL};
    struct client *waiter = &sim.clients[0], *holder = &sim.clients[1];
    size_t left = 0;
    unsigned seed = 0;

    for (; !sim.trial.fault && left == 0 && seed < 20; seed++) {
        simulation_open(&sim, seed, 3, 2, 30 * S);
        client_open(holder, false);
        simulation_turn(&sim, 100 * MS);
        for (size_t i = 0; i < sim.node_count; i++)
            sim.nodes[i].fastest = 1 * S;
        client_open(waiter, true);
        simulation_turn(&sim, 20 * MS);
        for (size_t i = 0; i < sim.node_count; i++) {
            sim.nodes[i].fastest = 0;
            if (cut)
                sim_node_cut(&sim.nodes[i]);
        }
        if (!cut)
            client_replace(waiter, false);
        simulation_turn(&sim, 300 * MS);
        witness_leave(&waiter->me, true, 8 * S);
        simulation_turn(&sim, 100 * MS);
        if (!waiter->me.over)
            accuse(&sim.trial, "does not end");
        client_close(waiter, false);
        client_release(holder);
        simulation_turn(&sim, 2 * S);
        left = simulation_entries(&sim, NULL);
        simulation_close(&sim);
    }
    if (!tap_ok(!sim.trial.fault && left == 0, "requests are late, and %s",
                cut ? "connections break" : "the process dies"))
        tap_note("seed %u: %s, on %zu", seed - 1, sim.trial.fault ? sim.trial.fault : "no fault",
                 left);
}

/* The longest round trip at which rlock names the lease that would suffice: a try, which may take
 * two, ends with its lease. Beyond that it is an outage, as of servers that are silent. */
static const struct {
    const char *name;
    int64_t way; /* to a node, in % of the lease */
    bool held;
    enum cause cause;
} distances[] = {
    {"near enough", 15, true, CAUSE_NONE},
    {"too far, and told how far", 20, false, CAUSE_UNFIT},
    {"too far for two round trips in a lease", 30, false, CAUSE_UNREACHABLE},
    {"too far for one", 60, false, CAUSE_UNREACHABLE},
};

/* Servers at a distance, in hundredths of the lease of a second: the client holds or gives up. */
static void test_distance(size_t i)
{
    struct simulation sim = {.loop = NULL};
    const struct client *client = sim.clients;

    simulation_open(&sim, 0, 5, 1, 1 * S);
    for (size_t node = 0; node < sim.node_count; node++)
        sim.nodes[node].fastest = sim.lease / 100 * distances[i].way;
    client_open(sim.clients, true);
    simulation_turn(&sim, 60 * S);
    if (!tap_ok(!sim.trial.fault && client->me.held == distances[i].held &&
                    client->me.over != distances[i].held && client->cause == distances[i].cause,
                "servers that are %s", distances[i].name))
        tap_note("%s, cause %d", sim.trial.fault ? sim.trial.fault : "no fault",
                 (int)client->cause);
    simulation_close(&sim);
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
    sim->calm = sim->dying = true;
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
        accuse(&sim->trial, "no end");
    if (sim->calm && simulation_entries(sim, NULL) > 0)
        accuse(&sim->trial, "something was left");
}

/* How many runs by chance there are of each of four kinds, unless RLOCK_RUNS says so; and how many
 * of them are one test. */
#define RUNS_BY_CHANCE 600
#define PART           200

/* Runs by chance, in parts of one result each: no two clients hold the lock, and it is held often
 * enough for that to say something. */
static void test_chance(unsigned first, const char *name, enum conditions conditions)
{
    const char *wanted = getenv("RLOCK_RUNS");
    unsigned runs = wanted ? (unsigned)atoi(wanted) : RUNS_BY_CHANCE;

    for (unsigned part = 0; part < runs / PART; part++) {
        struct simulation sim = {.loop = NULL};
        unsigned seed = first + part * PART, end = seed + PART, grants = 0;

        for (; seed < end && !sim.trial.fault; seed++) {
            run_by_chance(&sim, seed, conditions);
            grants += sim.grants;
            simulation_close(&sim);
        }
        if (!tap_ok(!sim.trial.fault && grants > 1000, "%d runs by chance: %s", PART, name))
            tap_note("%s (seed %u)", sim.trial.fault ? sim.trial.fault : "hardly ever held",
                     seed - 1);
    }
}

int main(int argc, char **argv)
{
    unsigned first = argc > 1 ? (unsigned)atoi(argv[1]) : 0;

    for (size_t i = 0; i < COUNT(faults); i++)
        test_fault(i);
    test_late_grants();
    test_late_requests(true);
    test_late_requests(false);
    for (size_t i = 0; i < COUNT(distances); i++)
        test_distance(i);
    test_chance(first, "calm", CALM);
    test_chance(first, "taken away", FORCED);
    test_chance(first, "trouble", TROUBLE);
    test_chance(first, "trouble, and nodes that forget", FORGETFUL);
    return tap_done();
}
