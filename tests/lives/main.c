/* lives [OPTION...] [FIRST [COUNT]]: lives COUNT lives, of the seeds from FIRST on. FIRST may be
 * the text of a plan (plan.h): then it lives that one.
 *
 *   -t        trace the first one
 *   -n N      end after N that went wrong (5)
 *   -1        end after the first one that went wrong, as it is: do not look for a simpler one
 *   -s SEC    end after so many seconds
 *   -p SEC    end after so many seconds of processor
 *   -g        choose plans by what the lives before have reached (guide.h)
 *   -c        at the end, print the states that were reached together, and those that were not
 *   -q        print the sentences of the manual that it judges by, and end
 *
 * Ends with 1 if a life went wrong. Of such a life it prints the seed and what went wrong, the
 * simplest plan that goes wrong in the same way, and a trace of that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lives/faults.h"
#include "lives/guide.h"
#include "lives/live.h"
#include "lives/network.h"
#include "lives/sentences.h"
#include "lives/server.h"
#include "lives/states.h"

/* A crash ends a batch, not the program. */
#define BATCH 500
/* So many seconds of processor are more than one takes: it hangs. */
#define BATCH_LIMIT 60

/* Calls of the real kernel by this program itself. */
pid_t __real_fork(void); /* NOLINT(bugprone-reserved-identifier) */
pid_t __real_waitpid(pid_t pid, int *status,
                     int options); /* NOLINT(bugprone-reserved-identifier) */
int __real_clock_gettime(clockid_t clock,
                         struct timespec *time);         /* NOLINT(*-reserved-identifier) */
__attribute__((noreturn)) void __real__exit(int status); /* NOLINT(bugprone-reserved-identifier) */

static struct options {
    unsigned long most; /* that went wrong */
    bool simplify, guided, print_states;
    double seconds, of_processor; /* at most */
} options = {.most = 5, .simplify = true, .seconds = 1e9, .of_processor = 1e9};

/* Shared by this process and that of a batch. */
static struct tally {
    uint64_t seed; /* of the life under way */
    unsigned long wrong, calls, switches, commands, struck, twins;
    double processor; /* seconds, of the batches before */
} * tally;

static struct guide *guide;

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

static double seconds_of_processor(int whose)
{
    struct rusage usage;

    getrusage(whose, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 +
           (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
}

/* processor: the seconds that it took to come here. */
static void report_found(const char *plan, const char *verdict, double processor)
{
    printf("seed %s: %s\n    found after %.2f s of processor\n", plan, verdict, processor);
    fflush(stdout);
}

static void report(const struct plan *wrong)
{
    struct plan plan = *wrong;
    char text[2000];

    plan_print(&plan, text, sizeof text);
    report_found(text, world.verdict, tally->processor + seconds_of_processor(RUSAGE_SELF));
    if (!options.simplify)
        return;
    unsigned lives = shrink(&plan);
    plan_print(&plan, text, sizeof text);
    printf("    the simplest of %u: lives -t %s\n", lives, text);
    live_traced(&plan);
}

void __gcov_dump(void) __attribute__((weak)); /* NOLINT(bugprone-reserved-identifier) */

__attribute__((noreturn)) static void end_batch(int status)
{
    if (__gcov_dump)
        __gcov_dump();
    __real__exit(status);
}

__attribute__((noreturn)) static void live_batch(uint64_t first, uint64_t count)
{
    for (tally->seed = first; tally->seed < first + count; tally->seed++) {
        const struct plan plan =
            options.guided ? guide_choose(guide, tally->seed) : (struct plan){.seed = tally->seed};
        bool well = live(&plan, NULL);
        guide_note(guide, &plan);
        count_life();
        if (well)
            continue;
        report(&plan);
        fflush(stdout);
        tally->wrong++;
        end_batch(1);
    }
    end_batch(0);
}

/* Returns the seed behind the last one that was lived. */
static uint64_t run_batch(uint64_t first, uint64_t count)
{
    int status;

    const struct rlimit limit = {BATCH_LIMIT, BATCH_LIMIT};

    fflush(stdout);
    pid_t pid = __real_fork();
    if (pid == 0) {
        setrlimit(RLIMIT_CPU, &limit);
        live_batch(first, count);
    }
    if (pid < 0 || __real_waitpid(pid, &status, 0) < 0) {
        perror("lives");
        exit(2);
    }
    if (WIFSIGNALED(status)) {
        char plan[32], verdict[64];
        snprintf(plan, sizeof plan, "%lu", tally->seed);
        snprintf(verdict, sizeof verdict, "the program died of signal %d", WTERMSIG(status));
        report_found(plan, verdict, seconds_of_processor(RUSAGE_CHILDREN));
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

static int live_all(uint64_t first, uint64_t count)
{
    uint64_t seed = first;
    double began = real_seconds(), took = 0;

    while (seed < first + count && tally->wrong < options.most && took < options.seconds &&
           tally->processor < options.of_processor) {
        uint64_t left = first + count - seed;
        seed = run_batch(seed, left < BATCH ? left : BATCH);
        took = real_seconds() - began;
        tally->processor = seconds_of_processor(RUSAGE_CHILDREN);
    }
    printf("%lu lives in %.1f s, %.2f s of processor, %.0f a second of it; %lu went wrong; "
           "%lu commands, %lu faults, %lu twins, %lu system calls, %lu switches\n",
           seed - first, took, tally->processor, (double)(seed - first) / tally->processor,
           tally->wrong, tally->commands, tally->struck, tally->twins, tally->calls,
           tally->switches);
    printf("%lu states of both guards, %lu with changes and faults; %u plans kept\n", states->pairs,
           states->reached, guide_kept(guide));
    if (options.print_states)
        states_print(states);
    return tally->wrong > 0;
}

static int live_one(const struct plan *plan, bool traced)
{
    char text[2000];
    bool well = live(plan, traced ? stdout : NULL);

    plan_print(plan, text, sizeof text);
    printf("seed %s: %s\n", text, well ? "went well" : world.verdict);
    return !well;
}

static void *share(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

int main(int argc, char **argv)
{
    bool traced = false;
    struct plan first;
    int option;

    while ((option = getopt(argc, argv, "tn:1s:p:gcq")) != -1)
        switch (option) {
        case 't': traced = true; break;
        case 'n': options.most = strtoul(optarg, NULL, 10); break;
        case '1': options.most = 1, options.simplify = false; break;
        case 's': options.seconds = strtod(optarg, NULL); break;
        case 'p': options.of_processor = strtod(optarg, NULL); break;
        case 'g': options.guided = true; break;
        case 'c': options.print_states = true; break;
        case 'q': sentences_print(); return 0;
        default: return 64;
        }
    const char *text = optind < argc ? argv[optind] : "1";
    if (!plan_read(&first, text))
        return 64;
    uint64_t count = optind + 1 < argc ? strtoull(argv[optind + 1], NULL, 10) : 1;
    tally = share(sizeof *tally);
    guide = guide_new(share);
    run_load();
    server_load();
    return traced || text[strspn(text, "0123456789")] ? live_one(&first, traced)
                                                      : live_all(first.seed, count);
}
