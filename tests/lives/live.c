#include "lives/live.h"

#include <errno.h>

#include "lives/cgroups.h"
#include "lives/database.h"
#include "lives/faults.h"
#include "lives/fence.h"
#include "lives/latch.h"
#include "lives/names.h"
#include "lives/network.h"
#include "lives/oracle.h"
#include "lives/orders.h"
#include "lives/replication.h"
#include "lives/sentinels.h"
#include "lives/script.h"
#include "lives/server.h"
#include "lives/shortage.h"
#include "lives/states.h"

_Static_assert(PLAN_FAULT + FAULTS_MAX <= PLAN_NAMES && PLAN_RUN + RUNS <= PLAN_FAULTS,
               "each run and each fault is a part of the plan");

/* How many lives have one in which calls are refused that rlock does without. */
#define REFUSED_EVERY 8

static void choose_network(void)
{
    network.delay = 20 * US + chance_below(CHOOSE(100, 2000, 20000, 400000) * US);
    network.jitter = chance_below(2 * network.delay);
    if (!circumstances.calm && one_in(3))
        network.late_of_1000 = (unsigned)chance_below(60);
    if (!circumstances.calm && one_in(4)) {
        network.first_has_twin = one_in(2);
        network.twins_of_1000 = network.first_has_twin ? 0 : (unsigned)chance_below(200);
    }
    circumstances.network_bad = network.delay > 20 * MS || network.late_of_1000 ||
                                network.twins_of_1000 || network.first_has_twin;
}

/* Some lives are as bad as the manual's assumptions allow. */
static int64_t choose_circumstances(void)
{
    int64_t rate;

    circumstances = (struct circumstances){.calm = one_in(20), .wild = one_in(8)};
    rate = circumstances.calm || one_in(2) ? 0 : chance_below(20000) - 10000;
    kernel.load = (int)chance_below(4);
    kernel.kill_takes = circumstances.calm || one_in(2) ? 0 : chance_below(190 * MS);
    /* A guard that is 90 ms late (choose_latency()) is still in time: rlock(7), "Assumptions". */
    if (kernel.load > 2 && kernel.kill_takes > 100 * MS)
        kernel.kill_takes = 100 * MS;
    if (!circumstances.calm && one_in(4)) {
        rate = 10000;
        kernel.load = 0;
        kernel.kill_takes = one_in(2) ? 197 * MS : 480 * MS;
    }
    kernel.slow_exec = !circumstances.calm && one_in(6);
    if (one_in(REFUSED_EVERY)) {
        int error = one_in(2) ? ENOSYS : EPERM;
        kernel.no_pidfd = one_in(3) ? 0 : error;
        kernel.no_pidfd_signal = one_in(3) ? 0 : error;
    }
    return rate;
}

/* signal(7): a call that waits may end with EINTR when its process is continued, also without a
 * handler. Of the calls here, Linux ends only sigtimedwait() so; a sandbox that is a kernel of its
 * own, or a tracer, may end any of them, at any time. */
static void choose_interrupts(void)
{
    plan_part(PLAN_INTERRUPTS);
    kernel.interrupts_of_1000 = one_in(5) ? 1 + (unsigned)chance_below(CHOOSE(3, 100, 1000)) : 0;
}

static void choose_proc(void)
{
    plan_part(PLAN_PROC);
    kernel.reuses_of_100 = one_in(4) ? (unsigned)CHOOSE(10, 50, 100) : 0;
    kernel.proc = one_in(6) ? 1 + (unsigned)chance_below(PROC_NONE) : PROC_WHOLE;
    kernel.signals_groups = one_in(2);
}

static void choose_runs(void)
{
    int flavour = one_in(2) ? 0 : 1 + (int)chance_below(3);

    run_count = 1 + (int)chance_below(one_in(3) ? RUNS : 2);
    for (int i = 0; i < run_count; i++) {
        plan_part(PLAN_RUN + (unsigned)i);
        run_choose(&runs[i], i, flavour);
        world_at(runs[i].starts, run_begin, &runs[i]);
    }
    if (replication.grace && !one_in(3))
        world_at(world.now, order_mark, NULL);
    plan_part(PLAN_OPTIONS);
    run_choose_more();
    plan_part(PLAN_SCRIPT);
    script_choose(flavour);
    plan_part(PLAN_LATCH);
    latch_choose();
    plan_part(PLAN_FENCE);
    fence_choose();
}

static void choose_cgroups(void)
{
    plan_part(PLAN_CGROUPS);
    cgroups_choose();
    kernel.no_fork_into = one_in(3) ? (one_in(2) ? ENOSYS : EPERM) : 0;
    for (int i = 0; i < run_count; i++)
        runs[i].cgroup = one_in(cgroups_have_a_way() ? 3 : 30);
}

void plan_make(const struct plan *plan)
{
    world_begin(plan);
    kernel_begin();
    network_begin(); /* first: the server's clients then have no connection to hang up */
    server_begin(choose_circumstances());
    choose_network();
    plan_part(PLAN_REPLICAS);
    replication_choose();
    sentinels_choose();
    server_begin_replicas();
    plan_part(PLAN_DATABASE);
    database_choose();
    server_begin_database();
    plan_part(PLAN_NAMES);
    names_choose();
    circumstances.network_bad |= names_are_slow() || replication.servers || replication.grace;
    oracle_begin();
    states_begin();
    choose_interrupts();
    choose_proc();
    plan_part(PLAN_RUNS);
    choose_runs();
    shortages_choose();
    choose_cgroups();
    plan_part(PLAN_FAULTS);
    faults_choose(~plan->left_out);
    plan_end();
}

bool live(const struct plan *plan, FILE *trace_to)
{
    plan_make(plan);
    world.trace = trace_to;
    int64_t end = world.now + 1200 * SEC;
    kernel_run(end);
    trace("%s", server_record("k1"));
    if (!world.over) {
        world.now = end;
        oracle_end();
    }
    return !*world.verdict;
}
