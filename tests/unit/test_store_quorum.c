/* A quorum of simulated nodes under keepers: what single faults lead to, and by chance whatever
 * happens to nodes, requests and answers: no two hold the lock at once, fences rise, and nothing is
 * left behind. */
#include "quorum_simulation.h"
#include "tap.h"

#define MS (NS_PER_MS)
#define S  (NS_PER_SEC)

/* -- one fault at a time ---------------------------------------------------------------------- */

static void stand_still(struct simulation *sim, size_t node, int64_t ns)
{
    sim->nodes[node].still = moment_plus(loop_now(sim->loop), ns);
}

static bool holds(struct client *client, bool wait, int64_t within)
{
    client_open(client, wait);
    simulation_turn(client->sim, within);
    return client->held;
}

/* H85 */
static bool slow_and_dead_nodes_cost_nothing(struct simulation *sim, struct client *a,
                                             struct client *b)
{
    stand_still(sim, 1, 100 * S);
    sim_node_kill(&sim->nodes[4]);
    bool quick = holds(a, false, 10 * MS);
    client_release(a);
    simulation_turn(sim, 60 * MS);
    return quick && a->over && a->ending == KEEPER_RELEASED && holds(b, false, 10 * MS);
}

static bool without_a_majority_is_not_contention(struct simulation *sim, struct client *a,
                                                 struct client *b)
{
    for (size_t i = 0; i < 3; i++)
        sim_node_kill(&sim->nodes[i]);
    client_open(a, true);
    simulation_turn(sim, 7 * S);
    bool failed = a->over && a->ending == KEEPER_FAILED && a->cause == CAUSE_UNREACHABLE;
    for (size_t i = 0; i < 3; i++) {
        sim_node_start(&sim->nodes[i], false);
        stand_still(sim, i, 100 * S);
    }
    client_open(b, false);
    simulation_turn(sim, 8 * S);
    return failed && b->over && b->ending == KEEPER_FAILED && simulation_entries(sim, NULL) == 0;
}

static bool a_refused_try_leaves_nothing(struct simulation *sim, struct client *a, struct client *b)
{
    sim_node_kill(&sim->nodes[3]);
    sim_node_kill(&sim->nodes[4]);
    bool held = holds(a, false, 10 * MS);
    sim_node_start(&sim->nodes[3], false);
    sim_node_start(&sim->nodes[4], false);
    client_open(b, false);
    simulation_turn(sim, 10 * MS);
    bool refused = b->over && b->ending == KEEPER_NOT_ACQUIRED;
    client_close(b, false);
    simulation_turn(sim, 10 * MS);
    return held && refused && simulation_entries(sim, NULL) == 3;
}

/* H86 */
static bool unanswered_tries_are_released(struct simulation *sim, struct client *a,
                                          struct client *b)
{
    bool held = holds(a, false, 10 * MS);
    stand_still(sim, 0, 1500 * MS);
    client_open(b, false);
    simulation_turn(sim, 10 * MS);
    client_close(b, false);
    client_release(a);
    simulation_turn(sim, 60 * MS);
    bool released = a->over && a->ending == KEEPER_RELEASED && simulation_entries(sim, NULL) == 1;
    simulation_turn(sim, 2 * S);
    return held && released && simulation_entries(sim, NULL) == 0;
}

/* H82: the one that forgot, and one that never knew, are not a majority. */
static bool a_node_that_forgot_does_not_count(struct simulation *sim, struct client *a,
                                              struct client *b)
{
    sim_node_kill(&sim->nodes[2]);
    bool held = holds(a, false, 10 * MS);
    client_release(a);
    simulation_turn(sim, 5 * S);
    held &= holds(b, false, 10 * MS);
    keeper_hold_renewals(b->keeper, true);
    sim_node_kill(&sim->nodes[1]);
    simulation_turn(sim, 150 * MS);
    sim_node_start(&sim->nodes[1], true);
    sim_node_start(&sim->nodes[2], false);
    client_close(a, false);
    bool denied = !holds(a, true, 28 * S);
    return held && denied && (simulation_turn(sim, 8 * S), a->held);
}

/* H83: one after the other comes back with nothing, and gets the entry again. */
static bool nodes_that_forgot_are_filled(struct simulation *sim, struct client *a, struct client *b)
{
    bool held = holds(a, false, 10 * MS), filled = true;

    (void)b;
    for (size_t i = 0; i < sim->node_count; i++) {
        sim_node_kill(&sim->nodes[i]);
        simulation_turn(sim, 150 * MS);
        sim_node_start(&sim->nodes[i], true);
        simulation_turn(sim, sim->lease / 2);
        filled &= simulation_entries(sim, a) == sim->node_count;
    }
    return held && filled && a->held && !a->lost;
}

static bool missing_nodes_are_filled(struct simulation *sim, struct client *a, struct client *b)
{
    (void)b;
    sim_node_kill(&sim->nodes[0]);
    bool held = holds(a, false, 10 * MS) && simulation_entries(sim, a) == sim->node_count - 1;
    sim_node_start(&sim->nodes[0], false);
    simulation_turn(sim, sim->lease / 2);
    return held && a->held && simulation_entries(sim, a) == sim->node_count;
}

/* Those that it was taken from on purpose are not filled. */
static bool force_is_noticed(struct simulation *sim, struct client *a, struct client *b)
{
    bool held = holds(a, false, 10 * MS);

    (void)b;
    for (size_t i = 0; i < sim->node_count; i++)
        sim_node_evict(&sim->nodes[i]);
    simulation_turn(sim, sim->lease / 2);
    return held && a->lost && simulation_entries(sim, NULL) == 0;
}

/* H124: no renewal has noticed it; the release does, and says so. */
static bool force_is_told_by_the_release(struct simulation *sim, struct client *a, struct client *b)
{
    bool held = holds(a, false, 10 * MS);

    (void)b;
    simulation_turn(sim, 100 * MS);
    for (size_t i = 0; i < sim->node_count; i++)
        sim_node_evict(&sim->nodes[i]);
    client_release(a);
    simulation_turn(sim, 1 * S);
    return held && a->over && a->lost;
}

/* H124: also where the lock was on a bare majority, and not all of that is left. */
static bool a_majority_that_is_lost_is_told_by_the_release(struct simulation *sim, struct client *a,
                                                           struct client *b)
{
    size_t spare = sim->node_count / 2;

    (void)b;
    for (size_t i = 0; i < spare; i++)
        sim_node_kill(&sim->nodes[i]);
    bool held = holds(a, false, 10 * MS);
    sim_node_evict(&sim->nodes[spare]);
    client_release(a);
    simulation_turn(sim, 1 * S);
    return held && a->over && a->lost && simulation_entries(sim, NULL) == 0;
}

static bool losing_a_minority_is_not_a_loss(struct simulation *sim, struct client *a,
                                            struct client *b)
{
    bool held = holds(a, false, 10 * MS);

    (void)b;
    simulation_turn(sim, 100 * MS);
    for (size_t i = 0; i < sim->node_count / 2; i++)
        sim_node_evict(&sim->nodes[i]);
    client_release(a);
    simulation_turn(sim, 1 * S);
    return held && a->over && !a->lost && a->ending == KEEPER_RELEASED;
}

/* A release of which the answers are lost is repeated: the lock of the first one was not taken
 * away. */
static bool a_repeated_release_is_not_a_loss(struct simulation *sim, struct client *a,
                                             struct client *b)
{
    bool held = holds(a, false, 10 * MS);

    (void)b;
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
static bool force_in_two_halves_is_noticed(struct simulation *sim, struct client *a,
                                           struct client *b)
{
    sim_node_kill(&sim->nodes[2]);
    bool held = holds(a, false, 10 * MS);

    (void)b;
    sim_node_evict(&sim->nodes[0]);
    simulation_turn(sim, sim->lease / 3 + 20 * MS);
    sim_node_evict(&sim->nodes[1]);
    simulation_turn(sim, sim->lease / 3);
    return held && a->lost && simulation_entries(sim, NULL) == 0;
}

/* Two addresses lead to one server from now on, and another server is gone: what is left is no
 * majority. */
static bool twins_are_one_node(struct simulation *sim, struct client *a, struct client *b)
{
    bool held = holds(a, false, 10 * MS);

    (void)b;
    sim_node_kill(&sim->nodes[1]);
    sim_link_lead(a->links[0], &sim->nodes[2]);
    simulation_turn(sim, sim->lease);
    return held && a->lost;
}

static bool an_entry_lost_on_one_node_is_made_again(struct simulation *sim, struct client *a,
                                                    struct client *b)
{
    bool held = holds(a, false, 10 * MS);

    (void)b;
    sim_node_evict(&sim->nodes[0]);
    simulation_turn(sim, sim->lease);
    return held && a->held && !a->lost && simulation_entries(sim, a) == sim->node_count;
}

static bool too_few_renewals_are_a_loss(struct simulation *sim, struct client *a, struct client *b)
{
    bool held = holds(a, false, 10 * MS);

    (void)b;
    for (size_t i = 0; i < 3; i++)
        stand_still(sim, i, 100 * S);
    simulation_turn(sim, sim->lease);
    return held && a->lost;
}

/* H87 */
static bool the_same_node_twice_is_refused(struct simulation *sim, struct client *a,
                                           struct client *b)
{
    strcpy(sim->nodes[1].id, sim->nodes[0].id);
    client_open(a, true);
    simulation_turn(sim, 10 * MS);
    (void)b;
    bool refused = a->over && a->ending == KEEPER_FAILED && a->cause == CAUSE_MISFIT;
    client_close(a, false);
    simulation_turn(sim, 10 * MS);
    return refused && simulation_entries(sim, NULL) == 0;
}

/* H84 */
static bool two_at_once_who_do_not_wait(struct simulation *sim, struct client *a, struct client *b)
{
    client_open(a, false);
    client_open(b, false);
    simulation_turn(sim, 1 * S);
    return a->held != b->held;
}

/* H81 */
static bool a_late_majority_is_renewed_or_none(struct simulation *sim, struct client *a,
                                               struct client *b)
{
    (void)b;
    client_open(a, false);
    for (size_t i = 1; i < sim->node_count; i++)
        stand_still(sim, i, 950 * MS);
    simulation_turn(sim, 949 * MS);
    if (a->held)
        return false;
    simulation_turn(sim, 3 * S);
    return a->held && a->deadline.ns > loop_now(sim->loop).ns;
}

static const struct {
    const char *name;
    size_t nodes;
    int64_t lease;
    bool (*run)(struct simulation *sim, struct client *a, struct client *b);
} faults[] = {
    {"a slow and a dead node cost nothing", 5, 30 * S, slow_and_dead_nodes_cost_nothing},
    {"a missing majority is not contention", 5, 30 * S, without_a_majority_is_not_contention},
    {"a refused try leaves nothing", 5, 30 * S, a_refused_try_leaves_nothing},
    {"unanswered tries are released", 3, 30 * S, unanswered_tries_are_released},
    {"a node that forgot does not count", 3, 30 * S, a_node_that_forgot_does_not_count},
    {"nodes that forgot are filled", 3, 3 * S, nodes_that_forgot_are_filled},
    {"nodes that forgot are filled, of five", 5, 30 * S, nodes_that_forgot_are_filled},
    {"missing nodes are filled", 3, 3 * S, missing_nodes_are_filled},
    {"force is noticed", 3, 3 * S, force_is_noticed},
    {"force is noticed, of five", 5, 300 * S, force_is_noticed},
    {"force is told by the release", 3, 3 * S, force_is_told_by_the_release},
    {"force is told by the release, of five", 5, 30 * S, force_is_told_by_the_release},
    {"a majority that is lost is told by the release", 3, 30 * S,
     a_majority_that_is_lost_is_told_by_the_release},
    {"a majority that is lost is told by the release, of five", 5, 30 * S,
     a_majority_that_is_lost_is_told_by_the_release},
    {"losing a minority is not a loss", 3, 30 * S, losing_a_minority_is_not_a_loss},
    {"losing a minority is not a loss, of five", 5, 30 * S, losing_a_minority_is_not_a_loss},
    {"a repeated release is not a loss", 3, 30 * S, a_repeated_release_is_not_a_loss},
    {"a repeated release is not a loss, of five", 5, 30 * S, a_repeated_release_is_not_a_loss},
    {"force in two halves is noticed", 3, 3 * S, force_in_two_halves_is_noticed},
    {"two addresses of one server are one node", 3, 3 * S, twins_are_one_node},
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
        struct simulation sim = {.fault = NULL};
        bool fine = true;
        unsigned seed = 0;

        for (; fine && seed < 20; seed++) {
            simulation_open(&sim, seed, faults[i].nodes, 2, faults[i].lease);
            fine = faults[i].run(&sim, &sim.clients[0], &sim.clients[1]) && !sim.fault;
            simulation_close(&sim);
        }
        if (!tap_ok(fine, "%s", faults[i].name))
            tap_note("seed %u: %s", seed - 1, sim.fault ? sim.fault : "not so");
    }
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

struct force {
    struct simulation *sim;
    struct loop_timer timer;
};

static void use_force(struct loop_timer *timer)
{
    struct force *force = timer->owner;
    struct loop *loop = force->sim->loop;

    simulation_force(force->sim);
    loop_arm(loop, timer, moment_plus(loop_now(loop), (50 + sim_below(4000)) * MS));
}

/* H124 */
static void pass_through_force(struct simulation *sim)
{
    struct force force = {.sim = sim};

    force.timer = (struct loop_timer){.fire = use_force, .owner = &force};
    loop_arm(sim->loop, &force.timer, loop_now(sim->loop));
    simulation_turn(sim, 60 * S);
    loop_disarm(sim->loop, &force.timer);
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
        simulation_accuse(sim, "no end");
    if (sim->calm && simulation_entries(sim, NULL) > 0)
        simulation_accuse(sim, "something was left");
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
    test_faults();
    test_chance("calm", CALM);
    test_chance("taken away", FORCED);
    test_chance("trouble", TROUBLE);
    test_chance("trouble, and nodes that forget", FORGETFUL);
    return tap_done();
}
