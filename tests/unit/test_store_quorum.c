/* A quorum of simulated nodes under keepers: what single faults lead to, and by chance whatever happens to nodes,
 * requests and answers: no two hold the lock at once, fences rise, and nothing is left behind. */
#include "quorum_world.h"
#include "tap.h"

#define MS (NS_PER_MS)
#define S  (NS_PER_SEC)

/* -- one fault at a time ---------------------------------------------------------------------- */

static void stand_still(struct world *world, size_t node, int64_t ns)
{
    world->nodes[node].still = moment_plus(loop_now(world->loop), ns);
}

static bool holds(struct client *client, bool wait, int64_t within)
{
    client_open(client, wait);
    world_turn(client->world, within);
    return client->held;
}

/* H85 */
static bool slow_and_dead_nodes_cost_nothing(struct world *world, struct client *a,
                                             struct client *b)
{
    stand_still(world, 1, 100 * S);
    sim_node_kill(&world->nodes[4]);
    bool quick = holds(a, false, 10 * MS);
    client_release(a);
    world_turn(world, 60 * MS);
    return quick && a->over && a->ending == KEEPER_RELEASED && holds(b, false, 10 * MS);
}

static bool without_a_majority_it_is_no_contention(struct world *world, struct client *a,
                                                   struct client *b)
{
    for (size_t i = 0; i < 3; i++)
        sim_node_kill(&world->nodes[i]);
    client_open(a, true);
    world_turn(world, 10 * MS);
    bool failed = a->over && a->ending == KEEPER_FAILED && a->cause == CAUSE_UNREACHABLE;
    for (size_t i = 0; i < 3; i++) {
        sim_node_start(&world->nodes[i], false);
        stand_still(world, i, 100 * S);
    }
    client_open(b, false);
    world_turn(world, 8 * S);
    return failed && b->over && b->ending == KEEPER_FAILED && world_entries(world, NULL) == 0;
}

static bool a_refused_try_leaves_nothing(struct world *world, struct client *a, struct client *b)
{
    sim_node_kill(&world->nodes[3]);
    sim_node_kill(&world->nodes[4]);
    bool held = holds(a, false, 10 * MS);
    sim_node_start(&world->nodes[3], false);
    sim_node_start(&world->nodes[4], false);
    client_open(b, false);
    world_turn(world, 10 * MS);
    bool refused = b->over && b->ending == KEEPER_NOT_ACQUIRED;
    client_close(b, false);
    world_turn(world, 10 * MS);
    return held && refused && world_entries(world, NULL) == 3;
}

/* H86 */
static bool what_was_not_answered_is_given_back(struct world *world, struct client *a,
                                                struct client *b)
{
    bool held = holds(a, false, 10 * MS);
    stand_still(world, 0, 1500 * MS);
    client_open(b, false);
    world_turn(world, 10 * MS);
    client_close(b, false);
    client_release(a);
    world_turn(world, 60 * MS);
    bool released = a->over && a->ending == KEEPER_RELEASED && world_entries(world, NULL) == 1;
    world_turn(world, 2 * S);
    return held && released && world_entries(world, NULL) == 0;
}

/* H82: the one that forgot, and one that never knew, are no majority. */
static bool a_node_that_forgot_does_not_count(struct world *world, struct client *a,
                                              struct client *b)
{
    sim_node_kill(&world->nodes[2]);
    bool held = holds(a, false, 10 * MS);
    client_release(a);
    world_turn(world, 5 * S);
    held &= holds(b, false, 10 * MS);
    keeper_hold_renewals(b->keeper, true);
    sim_node_kill(&world->nodes[1]);
    world_turn(world, 150 * MS);
    sim_node_start(&world->nodes[1], true);
    sim_node_start(&world->nodes[2], false);
    client_close(a, false);
    bool denied = !holds(a, true, 28 * S);
    return held && denied && (world_turn(world, 8 * S), a->held);
}

/* H83: one after the other comes back with nothing, and gets the entry again. */
static bool nodes_that_forgot_are_filled(struct world *world, struct client *a, struct client *b)
{
    bool held = holds(a, false, 10 * MS), filled = true;

    (void)b;
    for (size_t i = 0; i < world->node_count; i++) {
        sim_node_kill(&world->nodes[i]);
        world_turn(world, 150 * MS);
        sim_node_start(&world->nodes[i], true);
        world_turn(world, world->lease / 2);
        filled &= world_entries(world, a) == world->node_count;
    }
    return held && filled && a->held && !a->lost;
}

static bool missing_nodes_are_filled(struct world *world, struct client *a, struct client *b)
{
    (void)b;
    sim_node_kill(&world->nodes[0]);
    bool held = holds(a, false, 10 * MS) && world_entries(world, a) == world->node_count - 1;
    sim_node_start(&world->nodes[0], false);
    world_turn(world, world->lease / 2);
    return held && a->held && world_entries(world, a) == world->node_count;
}

/* Those that it was taken from on purpose are not filled. */
static bool force_is_noticed(struct world *world, struct client *a, struct client *b)
{
    bool held = holds(a, false, 10 * MS);

    (void)b;
    for (size_t i = 0; i < world->node_count; i++)
        sim_node_evict(&world->nodes[i]);
    world_turn(world, world->lease / 2);
    return held && a->lost && world_entries(world, NULL) == 0;
}

static bool an_entry_lost_on_one_node_is_made_again(struct world *world, struct client *a,
                                                    struct client *b)
{
    bool held = holds(a, false, 10 * MS);

    (void)b;
    sim_node_evict(&world->nodes[0]);
    world_turn(world, world->lease);
    return held && a->held && !a->lost && world_entries(world, a) == world->node_count;
}

static bool too_few_renewals_are_a_loss(struct world *world, struct client *a, struct client *b)
{
    bool held = holds(a, false, 10 * MS);

    (void)b;
    for (size_t i = 0; i < 3; i++)
        stand_still(world, i, 100 * S);
    world_turn(world, world->lease);
    return held && a->lost;
}

/* H87 */
static bool the_same_node_twice_is_refused(struct world *world, struct client *a, struct client *b)
{
    strcpy(world->nodes[1].id, world->nodes[0].id);
    client_open(a, true);
    world_turn(world, 10 * MS);
    (void)b;
    bool refused = a->over && a->ending == KEEPER_FAILED && a->cause == CAUSE_MISFIT;
    client_close(a, false);
    world_turn(world, 10 * MS);
    return refused && world_entries(world, NULL) == 0;
}

/* H84 */
static bool two_at_once_who_do_not_wait(struct world *world, struct client *a, struct client *b)
{
    client_open(a, false);
    client_open(b, false);
    world_turn(world, 1 * S);
    return a->held != b->held;
}

/* H81 */
static bool a_late_majority_is_renewed_or_none(struct world *world, struct client *a,
                                               struct client *b)
{
    (void)b;
    client_open(a, false);
    for (size_t i = 1; i < world->node_count; i++)
        stand_still(world, i, 950 * MS);
    world_turn(world, 949 * MS);
    if (a->held)
        return false;
    world_turn(world, 3 * S);
    return a->held && a->deadline.ns > loop_now(world->loop).ns;
}

static const struct {
    const char *name;
    size_t nodes;
    int64_t lease;
    bool (*run)(struct world *world, struct client *a, struct client *b);
} faults[] = {
    {"a slow and a dead node cost nothing", 5, 30 * S, slow_and_dead_nodes_cost_nothing},
    {"without a majority it is no contention", 5, 30 * S, without_a_majority_it_is_no_contention},
    {"a refused try leaves nothing", 5, 30 * S, a_refused_try_leaves_nothing},
    {"what was not answered is given back", 3, 30 * S, what_was_not_answered_is_given_back},
    {"a node that forgot does not count", 3, 30 * S, a_node_that_forgot_does_not_count},
    {"nodes that forgot are filled", 3, 3 * S, nodes_that_forgot_are_filled},
    {"nodes that forgot are filled, of five", 5, 30 * S, nodes_that_forgot_are_filled},
    {"missing nodes are filled", 3, 3 * S, missing_nodes_are_filled},
    {"force is noticed", 3, 3 * S, force_is_noticed},
    {"force is noticed, of five", 5, 300 * S, force_is_noticed},
    {"an entry lost on one node is made again", 3, 3 * S, an_entry_lost_on_one_node_is_made_again},
    {"too few renewals are a loss", 5, 3 * S, too_few_renewals_are_a_loss},
    {"the same node twice is refused", 3, 30 * S, the_same_node_twice_is_refused},
    {"of two at once who do not wait, one gets it", 3, 30 * S, two_at_once_who_do_not_wait},
    {"of two at once who do not wait, one gets it, of five", 5, 30 * S,
     two_at_once_who_do_not_wait},
    {"a late majority is renewed", 3, 1 * S, a_late_majority_is_renewed_or_none},
};

static void test_faults(void)
{
    for (size_t i = 0; i < COUNT(faults); i++) {
        struct world world = {.fault = NULL};
        bool fine = true;
        unsigned seed = 0;

        for (; fine && seed < 20; seed++) {
            world_open(&world, seed, faults[i].nodes, 2, faults[i].lease);
            fine = faults[i].run(&world, &world.clients[0], &world.clients[1]) && !world.fault;
            world_close(&world);
        }
        if (!tap_ok(fine, "%s", faults[i].name))
            tap_note("seed %u: %s", seed - 1, world.fault ? world.fault : "not so");
    }
}

/* -- by chance ------------------------------------------------------------------------------- */

struct trouble {
    struct world *world;
    struct loop_timer timer;
    unsigned left;
    bool forgets; /* nodes come back without their data */
    struct moment forgot;
};

/* One node at a time forgets, and the next one only after a lease: two at once are a majority of three. */
static void bring_back(struct trouble *trouble, struct sim_node *node)
{
    struct moment now = loop_now(trouble->world->loop);
    bool forgets = trouble->forgets && sim_below(4) > 0 &&
                   moment_until(trouble->forgot, now) > trouble->world->lease + 2 * S;

    if (forgets)
        trouble->forgot = now;
    sim_node_start(node, forgets);
}

static void make_trouble(struct loop_timer *timer)
{
    struct trouble *trouble = timer->owner;
    struct world *world = trouble->world;
    struct moment now = loop_now(world->loop);
    struct sim_node *node = &world->nodes[sim_below((unsigned)world->node_count)];

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
        loop_arm(world->loop, timer, moment_plus(now, (150 + sim_below(3000)) * MS));
}

static void heal(struct world *world)
{
    for (size_t i = 0; i < world->node_count; i++) {
        struct sim_node *node = &world->nodes[i];
        if (node->down)
            sim_node_start(node, false);
        node->slowest = MS;
        node->loss = 0;
        node->still = (struct moment){0};
    }
}

static void pass_through_trouble(struct world *world, bool forgets)
{
    struct trouble trouble = {.world = world, .left = 40, .forgets = forgets};

    world->calm = false;
    world->killing = true;
    trouble.timer = (struct loop_timer){.fire = make_trouble, .owner = &trouble};
    loop_arm(world->loop, &trouble.timer, moment_plus(loop_now(world->loop), sim_below(2000) * MS));
    world_turn(world, 60 * S);
    loop_disarm(world->loop, &trouble.timer);
    heal(world);
}

enum weather { CALM, TROUBLE, FORGETFUL };

static void run_by_chance(struct world *world, unsigned seed, enum weather weather)
{
    static const int leases[] = {1, 2, 5, 30};

    world_open(world, seed, seed % 2 ? 3 : 5, 2 + seed % 3, leases[seed / 6 % 4] * S);
    world->calm = true;
    /* With nodes their fences are forgotten; then only their clocks keep them rising. */
    for (size_t i = 0; i < world->node_count && weather == FORGETFUL; i++)
        world->nodes[i].skew = 0;
    for (unsigned i = 0; i < world->client_count; i++)
        client_take_turns(&world->clients[i], 4, sim_below(sim_below(2) ? 3 : 4000) * MS);
    world_turn(world, 1 * MS);
    if (weather != CALM)
        pass_through_trouble(world, weather == FORGETFUL);
    for (int i = 0; i < 40 && world_is_busy(world); i++)
        world_turn(world, 10 * S);
    if (world_is_busy(world))
        world_accuse(world, "no end");
    if (world->calm && world_entries(world, NULL) > 0)
        world_accuse(world, "something was left");
}

static void test_chance(const char *name, enum weather weather)
{
    for (unsigned part = 0; part < 10; part++) {
        struct world world = {.fault = NULL};
        unsigned seed = part * 200, end = seed + 200, grants = 0;

        for (; seed < end && !world.fault; seed++) {
            run_by_chance(&world, seed, weather);
            grants += world.grants;
            world_close(&world);
        }
        if (!tap_ok(!world.fault && grants > 1000, "200 runs by chance: %s", name))
            tap_note("%s (seed %u)", world.fault ? world.fault : "hardly ever held", seed - 1);
    }
}

int main(void)
{
    test_faults();
    test_chance("calm", CALM);
    test_chance("trouble", TROUBLE);
    test_chance("trouble, and nodes that forget", FORGETFUL);
    return tap_done();
}
