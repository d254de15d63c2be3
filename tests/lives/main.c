/* lives [OPTION...] [FIRST [COUNT]]: lives COUNT lives, of the seeds from FIRST on.
 *
 *   -t        trace the first one
 *   -m MASK   only these faults of it, a bit for each
 *   -n N      end after N that went wrong (5)
 *   -s SEC    end after so many seconds
 *   -q        print the sentences of the manual that it judges by, and end
 *
 * Ends with 1 if a life went wrong. Of such a life it prints the seed, what went wrong, and which
 * of its faults are needed for that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lives/faults.h"
#include "lives/network.h"
#include "lives/oracle.h"
#include "lives/server.h"

/* A crash ends a batch, not the program. */
#define BATCH 500

/* Calls of the real kernel by this program itself. */
pid_t __real_fork(void); /* NOLINT(bugprone-reserved-identifier) */
pid_t __real_waitpid(pid_t pid, int *status,
                     int options); /* NOLINT(bugprone-reserved-identifier) */
int __real_clock_gettime(clockid_t clock,
                         struct timespec *time);         /* NOLINT(*-reserved-identifier) */
__attribute__((noreturn)) void __real__exit(int status); /* NOLINT(bugprone-reserved-identifier) */

static unsigned mask = ~0U; /* of the faults */

/* Shared by this process and that of a batch. */
static struct tally {
    uint64_t seed; /* of the life under way */
    unsigned long wrong, calls, switches, commands, struck, twins;
} * tally;

/* -- a life ------------------------------------------------------------------------------------ */

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
    if (!circumstances.calm && one_in(4)) {
        rate = 10000;
        kernel.load = 0;
        kernel.kill_takes = one_in(2) ? 197 * MS : 480 * MS;
    }
    kernel.slow_exec = !circumstances.calm && one_in(6);
    return rate;
}

/* Returns whether it went well. */
static bool live(uint64_t seed, bool traced)
{
    int64_t end;
    int flavour;

    world_begin(seed, traced);
    kernel_begin();
    network_begin(); /* first: the server's clients then have no connection to hang up */
    server_begin(choose_circumstances());
    choose_network();
    oracle_begin();
    flavour = one_in(2) ? 0 : 1 + (int)chance_below(3);
    run_count = 1 + (int)chance_below(one_in(3) ? RUNS : 2);
    for (int i = 0; i < run_count; i++) {
        run_choose(&runs[i], i, flavour);
        world_at(runs[i].starts, run_begin, &runs[i]);
    }
    faults_choose(mask);
    end = world.now + 600 * SEC;
    kernel_run(end);
    trace("%s", server_record("k1"));
    if (!world.over) {
        world.now = end;
        oracle_end();
    }
    return !*world.verdict;
}

/* Leaves out the faults that are not needed for it to go wrong. */
static void shrink(uint64_t seed)
{
    unsigned needed = (1U << fault_count) - 1;
    int count = fault_count;

    for (int i = 0; i < count; i++) {
        mask = needed & ~(1U << i);
        if (!live(seed, false))
            needed = mask;
    }
    mask = needed;
    live(seed, false);
    printf("    -m 0x%x, of %d faults: %s\n", needed, count, world.verdict);
    mask = ~0U;
}

/* -- batches ----------------------------------------------------------------------------------- */

static void count_life(void)
{
    tally->calls += kernel.calls;
    tally->switches += kernel.switches;
    tally->twins += network.twins;
    for (int i = 0; i < run_count; i++)
        tally->commands += runs[i].starts_seen > 0;
    for (int i = 0; i < fault_count; i++)
        tally->struck += faults[i].used;
}

__attribute__((noreturn)) static void live_batch(uint64_t first, uint64_t count)
{
    for (tally->seed = first; tally->seed < first + count; tally->seed++) {
        bool well = live(tally->seed, false);
        count_life();
        if (well)
            continue;
        printf("seed %lu: %s\n", tally->seed, world.verdict);
        shrink(tally->seed);
        fflush(stdout);
        tally->wrong++;
        __real__exit(1);
    }
    __real__exit(0);
}

/* Returns the seed behind the last one that was lived. */
static uint64_t run_batch(uint64_t first, uint64_t count)
{
    int status;

    fflush(stdout);
    pid_t pid = __real_fork();
    if (pid == 0)
        live_batch(first, count);
    if (pid < 0 || __real_waitpid(pid, &status, 0) < 0) {
        perror("lives");
        exit(2);
    }
    if (WIFSIGNALED(status)) {
        printf("seed %lu: the program died of signal %d\n", tally->seed, WTERMSIG(status));
        tally->wrong++;
    }
    return status ? tally->seed + 1 : first + count;
}

static double real_seconds(void)
{
    struct timespec time;

    __real_clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int live_all(uint64_t first, uint64_t count, unsigned long most, double limit)
{
    uint64_t seed = first;
    double began = real_seconds(), took = 0;

    while (seed < first + count && tally->wrong < most && took < limit) {
        uint64_t left = first + count - seed;
        seed = run_batch(seed, left < BATCH ? left : BATCH);
        took = real_seconds() - began;
    }
    printf("%lu lives in %.1f s, %.0f a second; %lu went wrong; %lu commands, %lu faults, %lu "
           "twins, %lu system calls, %lu switches\n",
           seed - first, took, (double)(seed - first) / took, tally->wrong, tally->commands,
           tally->struck, tally->twins, tally->calls, tally->switches);
    return tally->wrong > 0;
}

int main(int argc, char **argv)
{
    unsigned long most = 5;
    double limit = 1e9;
    bool traced = false;
    int option;

    while ((option = getopt(argc, argv, "tm:n:s:q")) != -1)
        switch (option) {
        case 't': traced = true; break;
        case 'm': mask = (unsigned)strtoul(optarg, NULL, 0); break;
        case 'n': most = strtoul(optarg, NULL, 10); break;
        case 's': limit = strtod(optarg, NULL); break;
        case 'q': oracle_print_sentences(); return 0;
        default: return 64;
        }
    uint64_t first = optind < argc ? strtoull(argv[optind], NULL, 10) : 1;
    uint64_t count = optind + 1 < argc ? strtoull(argv[optind + 1], NULL, 10) : 1;
    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    run_load();
    server_load();
    if (!traced)
        return live_all(first, count, most, limit);
    bool well = live(first, true);
    printf("seed %lu: %s\n", first, well ? "went well" : world.verdict);
    return !well;
}
