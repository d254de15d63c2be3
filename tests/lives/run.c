#include "lives/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "lives/errand.h"
#include "lives/life.h"
#include "lives/names.h"
#include "lives/orders.h"
#include "lives/replication.h"
#include "lives/sentinels.h"
#include "lives/server.h"
#include "lives/shell.h"
#include "lock/owner.h"
#include "net/loop.h"
#include "run/exit_status.h"
#include "store/url.h"

struct run runs[RUNS + 2];
int run_count;

static struct url urls[SERVERS], url_by_name, url_of_sentinels;

int run_number(const struct run *run)
{
    return run->number;
}

struct run *run_of_owner(const char *owner)
{
    for (int i = 0; i < run_count; i++)
        if (strcmp(runs[i].owner, owner) == 0)
            return &runs[i];
    return NULL;
}

struct store_address run_address(void)
{
    return (struct store_address){.urls = sentinels_here.used ? &url_of_sentinels
                                          : naming.used       ? &url_by_name
                                                              : urls,
                                  .url_count = (size_t)server_count,
                                  .prefix = "rlock",
                                  .connect_timeout = 5 * SEC,
                                  .replicas = replication.rule,
                                  .replica_count = replication.number,
                                  .grace = replication.grace,
                                  .server_wait = 60 * SEC};
}

void run_load(void)
{
    char fault[200], text[40];

    for (int i = 0; i < SERVERS; i++) {
        snprintf(text, sizeof text, "redis://10.0.0.%d:6379", i + 1);
        if (!url_parse(text, &urls[i], fault, sizeof fault))
            abort();
    }
    if (!url_parse(SENTINEL_URL, &url_of_sentinels, fault, sizeof fault))
        abort();
    if (!url_parse("redis://" NAME_OF_SERVER ":6379", &url_by_name, fault, sizeof fault))
        abort();
}

/* -- what the program under test says ---------------------------------------------------------- */

static void on_tell(void *arg, const struct run_news *news)
{
    struct run *run = arg;

    trace("tells %d: cause %d %s", (int)news->event, news->reason ? (int)news->reason->cause : 0,
          news->reason ? news->reason->text : "");
    switch (news->event) {
    case RUN_STOP_COMMAND:
    case RUN_STOP_COMMAND_NOT_STARTED:
    case RUN_STOP_COMMAND_TOO_LATE: run->stop_told = true; break;
    case RUN_STOPPING:
    case RUN_LOST:
    case RUN_LOST_STOPPING: run->loss_told = true; break;
    case RUN_STOPPED_BEFORE: /* and what cannot be seen now is not looked for any more */
    case RUN_LOST_BEFORE:
    case RUN_LOST_STOPPED_BEFORE:
        if (world.now < run->blind_until)
            run->blind_until = NEVER;
        break;
    case RUN_NO_TERMINAL: run->hung_up = true; break;
    case RUN_NOT_NOTIFIED: run->unnotified_told = true; break;
    case RUN_SURVIVORS:
    case RUN_UNSEEN: run->survivors_told = true; break;
    case RUN_AGENT_REPLACED:
    case RUN_AGENT_MISSING: run->agent_unstarted = true; /* fall through */
    case RUN_AGENT_DIED_AGAIN: run->agent_missed = true; break;
    case RUN_LOST_CONTINUES:
        run->loss_told = true;
        run->continues_told |= run->command_alive;
        break;
    case RUN_UNRELEASED:
    case RUN_UNRELEASED_ENDED: run->unreleased_told = true; break;
    default: break;
    }
}

static int64_t on_show_wait(void *arg, const struct run_refusal *refusal, bool *announced)
{
    (void)arg, (void)refusal, (void)announced;
    return 0;
}

static void on_hide_wait(void *arg)
{
    (void)arg;
}

static void on_word(void *arg, const struct run_news *news, char *out, size_t size)
{
    (void)arg, (void)news, (void)size;
    *out = '\0';
}

static void on_word_wait(void *arg, const struct run_refusal *refusal, char *out, size_t size)
{
    (void)arg, (void)refusal, (void)size;
    *out = '\0';
}

static void on_granted(void *arg, const struct lock_grant *grants)
{
    (void)arg;
    if (grants)
        trace("is granted the lock, fence %llu", (unsigned long long)grants->fence);
}

static void on_detach(void *arg)
{
    (void)arg;
}

struct run_events run_events(struct run *run)
{
    return (struct run_events){on_tell,      on_show_wait, on_hide_wait, on_word, on_word_wait,
                               on_word_wait, on_granted,   on_detach,    run};
}

/* -- the program under test -------------------------------------------------------------------- */

struct keeper_plan run_keeper_plan(const struct run *run)
{
    const struct acquire_request request = {.keys = run->keys,
                                            .key_count = run->key_count,
                                            .owner = run->owner,
                                            .who = run->who,
                                            .mode = run->mode,
                                            .limit = run->limit,
                                            .lease = run->lease,
                                            .take = run->take,
                                            .priority = run->priority,
                                            .priority_bound = run->bound,
                                            .group = run->group,
                                            .replace = run->replace,
                                            .unless_done = run->unless_done};
    return (struct keeper_plan){.request = request,
                                .wait = run->waits != 0,
                                .wait_until = run->waits == NEVER || !run->waits
                                                  ? MOMENT_NEVER
                                                  : moment_plus(moment_now(), run->waits),
                                .renew = !run->fixed,
                                .whole = run->is_script,
                                .at_least = run->at_least,
                                .connect_timeout = 5 * SEC,
                                .server_wait = 60 * SEC,
                                .kill_after = run->kill_after};
}

#define INHERITED_MOST 20

/* Lists the environment with which the process has executed the program. */
static void list_environment(const struct proc *process, char **entries)
{
    char *at = process->environment, *end = at + process->environment_size;

    for (; at < end; at += strlen(at) + 1)
        *entries++ = strdup(at);
    *entries = NULL;
}

int run_supervise(const void *arg)
{
    struct run *run = (struct run *)(uintptr_t)arg;
    static const int address_status = STATUS_CONFIG;
    char *inherited[INHERITED_MOST] = {(char[]){"PATH=/bin"}, NULL};
    char *command[] = {run->inner ? (char[]){"rlock"} : (char[]){"command"}, NULL};
    struct run_events events = run_events(run);
    struct keeper_plan keeper = run_keeper_plan(run);
    struct environment *environment = calloc(1, sizeof *environment);

    if (run->outer)
        list_environment(kernel.current, inherited);
    environment_make(environment, inherited, &keeper.request, PASSWORDS_REMOVED);
    struct supervisor_plan plan = {.agent = {.address = run_address(),
                                             .address_status = &address_status,
                                             .keeper = keeper,
                                             .conflict_status = STATUS_NOT_ACQUIRED,
                                             .events = &events},
                                   .job = {.events = &events,
                                           .command = command,
                                           .environment = environment,
                                           .renew = !run->fixed,
                                           .at_most = run->at_most,
                                           .cgroup = run->cgroup,
                                           .kill_after = run->kill_after,
                                           .wait_descendants = run->wait_descendants,
                                           .on_lost = run->lost_signal ? ON_LOST_SIGNAL
                                                      : run->goes_on   ? ON_LOST_CONTINUE
                                                                       : ON_LOST_STOP,
                                           .lost_signal = run->lost_signal,
                                           .stop = run->has_stop ? "stop" : NULL,
                                           .notify = run->notifies ? "notify" : NULL,
                                           .notify_after = run->notify_after}};
    plan.agent.job = &plan.job;
    supervisor_run(&plan, &run->outcome);
    run->ended = true;
    run->ended_at = world.now;
    trace("ends: outcome %d status %d signal %d command %d/%d", (int)run->outcome.outcome,
          run->outcome.status, run->outcome.signal, run->outcome.command_status,
          run->outcome.command_signal);
    if (run->outcome.signal)
        process_end(kernel.current, run->outcome.signal);
    return run->outcome.status;
}

void run_begin(void *arg)
{
    struct run *run = arg;

    if (run->outer)
        return;
    if (run->pause_lasts)
        world_at(world.now + run->pauses_after, order_pause, run);
    run->supervisor = process_new(SUPERVISOR, 1, run);
    shell_begin(run);
    process_start(run->supervisor, run_supervise, run);
    run_describe(run);
}

bool life_begin_within(struct proc *process, char *const *argv)
{
    if (strcmp(argv[0], "rlock") != 0)
        return false;
    struct run *run = process->run->inner;
    process->kind = SUPERVISOR;
    process->run = run;
    run->supervisor = process;
    run->starts = world.now;
    process_start(process, run_supervise, run);
    run_describe(run);
    return true;
}

bool run_is_in(const struct run *run, const struct run *outer)
{
    while (run && run != outer)
        run = run->outer;
    return run;
}

static const struct run *outermost(const struct run *run)
{
    return run->outer ? outermost(run->outer) : run;
}

bool run_is_beside(const struct run *run, const struct run *other)
{
    return outermost(run) == outermost(other);
}

/* -- what fork(2) copies, and both processes change -------------------------------------------- */

static struct environment *copy_environment(const struct environment *from)
{
    struct environment *to = malloc(sizeof *to);
    size_t count = 0;

    *to = *from;
    while (from->entries[count])
        count++;
    to->entries = calloc(count + ENVIRONMENT_WORDS + 2, sizeof *to->entries);
    memcpy(to->entries, from->entries, count * sizeof *to->entries);
    for (size_t word = 0; word < ENVIRONMENT_WORDS; word++) {
        if (!from->words[word])
            continue;
        to->words[word] = strdup(from->words[word]);
        for (char **entry = to->entries; *entry; entry++)
            if (*entry == from->words[word])
                *entry = to->words[word];
    }
    return to;
}

static void *copied(const void *from, size_t size)
{
    return from ? memcpy(malloc(size), from, size) : NULL;
}

static struct job_plan *copy_job(const struct job_plan *from)
{
    struct job_plan *job = copied(from, sizeof *job);

    if (job)
        job->environment = copy_environment(job->environment);
    return job;
}

const void *life_copy_task(const void *arg)
{
    struct agent_task *task = copied(arg, sizeof *task);
    struct agent_plan *plan = copied(task->plan, sizeof *plan);

    plan->job = copy_job(plan->job);
    plan->keep = copied(plan->keep, sizeof *plan->keep);
    plan->events = copied(plan->events, sizeof *plan->events);
    task->plan = plan;
    task->past = copied(task->past, sizeof *task->past);
    return task;
}

/* As run/agent_process.c has it. */
struct renewer {
    const int *ends;
    const struct agent_task *task;
};

const void *life_copy_renewer(const void *arg)
{
    struct renewer *renewer = copied(arg, sizeof *renewer);

    renewer->ends = copied(renewer->ends, 2 * sizeof *renewer->ends);
    renewer->task = life_copy_task(renewer->task);
    return renewer;
}

/* The notifier's struct begins so, and is copied once more before the rest matters. */
struct notifier_work {
    const struct job_plan *plan;
    char rest[1000];
};

const void *life_copy_work(const void *arg)
{
    struct notifier_work *work = copied(arg, sizeof *work);

    work->plan = copy_job(work->plan);
    return work;
}

/* As run/fenced.c has it. */
struct guarded {
    pid_t parent;
    const void *command;
};

const void *life_copy_guarded(const void *arg)
{
    return copied(arg, sizeof(struct guarded));
}

struct program life_program(const struct proc *process, char *const *argv)
{
    const struct run *run = process->run;

    if (process->errand)
        return process->errand->program;
    if (process->kind == NOTICE)
        return (struct program){.runs = run->notice_runs, .on_term = run->program.on_term};
    return strcmp(argv[0], "command") == 0 ? run->program
                                           : (struct program){.runs = run->stop_runs};
}

struct proc *run_guard(const struct run *run, enum kind kind)
{
    for (int i = kernel.process_count; i-- > 0;)
        if (kernel.processes[i]->run == run && kernel.processes[i]->kind == kind &&
            process_exists(kernel.processes[i]))
            return kernel.processes[i];
    return NULL;
}

/* -- the choice -------------------------------------------------------------------------------- */

/* Flavour 3 takes several KEYs: some, in some order. */
static void choose_keys(struct run *run, int flavour)
{
    static const char *const keys[KEYS] = {"k1", "k2", "k3"};
    size_t first = flavour == 3 ? (size_t)chance_below(KEYS) : 0, step = 1 + one_in(2);

    for (size_t i = 0; i < KEYS; i++)
        run->keys[i] = keys[(first + i * step) % KEYS];
    run->key_count = flavour == 3 ? 1 + (size_t)chance_below(KEYS) : 1;
    run->take = run->key_count > 1 && one_in(4) ? 1 + one_in(3) * (run->key_count - 2) : 0;
    run->mode = flavour == 1   ? (one_in(2) ? LOCK_SHARED : LOCK_EXCLUSIVE)
                : flavour == 2 ? LOCK_LIMIT
                               : LOCK_EXCLUSIVE;
    run->limit = flavour == 2 ? 2 : 0;
}

static void choose_command(struct run *run)
{
    struct program *program = &run->program;

    program->runs = chance_below(one_in(4) ? 20 * MS : one_in(3) ? run->lease : 4 * run->lease);
    program->status = one_in(3) ? (int)chance_below(256) : 0;
    program->on_term = (unsigned)chance_below(3);
    program->cleans = chance_below(CHOOSE(10, 500, 5000) * MS);
    if (one_in(3)) {
        program->child = one_in(2) ? CHILD_IN_GROUP : CHILD_IN_SESSION;
        program->child_at = chance_below(program->runs + 1);
        program->child_runs = chance_below(2 * run->lease);
        program->child_ignores_term = one_in(2);
    }
}

/* Where runs compete, the first one chooses for all. */
static void choose_order(struct run *run)
{
    static bool priorities, groups, successes;

    if (run->number == 0) {
        priorities = one_in(5);
        groups = one_in(6);
        successes = one_in(10);
    }
    if (priorities && one_in(2))
        run->priority = (int)CHOOSE(-1, 1, 5);
    if (priorities)
        run->bound = CHOOSE(0, 500, 3000) * MS;
    if (groups && !one_in(4))
        run->group = one_in(6) ? "a" : "";
    if (successes && run->key_count == 1 && !run->outer)
        run->unless_done = SEC + chance_below(3 * run->lease);
    run->replace = one_in(12) && !run->outer;
    if (run->number == 0 && one_in(12)) {
        run->pauses_after = chance_below(CHOOSE(2, 100, 3000) * MS);
        run->pause_lasts = SEC + chance_below(2 * run->lease);
        run->resumes_after = one_in(2) ? chance_below(run->pause_lasts) : 0;
    }
}

/* The run is the command of another, for the same KEYs, or one that only those ask for that nest,
 * so that no circle of them waits. */
static void nest_in(struct run *run, struct run *outer)
{
    bool same = one_in(2) || strcmp(outer->keys[0], "k4") == 0;

    run->outer = outer;
    outer->inner = run;
    run->take = 0;
    run->key_count = same ? outer->key_count : 1;
    for (size_t i = 0; same && i < KEYS; i++)
        run->keys[i] = outer->keys[i];
    if (!same)
        run->keys[0] = "k4";
    if (same && outer->mode == LOCK_EXCLUSIVE && one_in(3))
        run->mode = LOCK_SHARED;
    else if (same)
        run->mode = outer->mode;
}

static int depth_of(const struct run *run)
{
    return run->outer ? 1 + depth_of(run->outer) : 1;
}

static void name_owner(struct run *run)
{
    if (run->outer)
        snprintf(run->owner, sizeof run->owner, "%.80s.", run->outer->owner);
    snprintf(strchr(run->owner, '\0'), OWNER_UUID_SIZE, "00000000-0000-4000-8000-%012d",
             run->number + 1);
}

static void choose_nesting(struct run *run)
{
    static bool nested;
    struct run *outer = run->number > 0 ? &runs[run->number - 1] : NULL;

    if (run->number == 0)
        nested = one_in(6);
    if (nested && outer && !outer->take && depth_of(outer) < 3 && !one_in(3))
        nest_in(run, outer);
    name_owner(run);
}

/* rlock-stores(7) says of QUORUMS: only exclusive locks, no queue, and the same lease for a KEY
 * everywhere. */
static void fit_quorum(struct run *run)
{
    run->mode = LOCK_EXCLUSIVE;
    run->limit = 0;
    run->take = 0;
    run->priority = 0;
    run->bound = run->unless_done = 0;
    run->group = NULL;
    run->replace = false;
    run->pause_lasts = 0;
    run->lease = runs[0].lease;
}

/* All but its keys, and whether it nests. */
static void choose_rest(struct run *run)
{
    snprintf(run->who, sizeof run->who, "host%d user %d command - hears=1", run->number,
             100 + run->number);
    run->lease =
        (kernel.kill_takes > 200 * MS ? CHOOSE(5, 7, 10) : CHOOSE(1, 1, 2, 3, 10, 30)) * SEC;
    run->starts = world.now + chance_below(CHOOSE(1, 100, 1000, 4000) * MS);
    run->kill_after = CHOOSE(0, 100, 500, 2000, 5000) * MS;
    choose_command(run);
    run->wait_descendants = one_in(3);
    run->has_stop = one_in(3);
    run->stop_runs = chance_below(CHOOSE(5, 200, 3000) * MS);
    run->notifies = one_in(6);
    run->notify_after = 1 + chance_below(one_in(2) ? run->lease : 100 * MS);
    run->notice_runs = chance_below(CHOOSE(5, 1000, 15000) * MS);
    run->fixed = one_in(10);
    run->goes_on = one_in(6);
    run->lost_signal = run->goes_on && one_in(3) ? SIGUSR2 : 0;
    choose_order(run);
    run->waits = one_in(2) ? NEVER : one_in(3) ? 0 : chance_below(3 * run->lease);
    run->at_least = one_in(10) ? chance_below(2 * run->lease) : 0;
    run->at_most = one_in(5) ? 1 + chance_below(2 * run->lease) : 0;
    if (server_count > 1)
        fit_quorum(run);
    if (replication.grace)
        run->lease = runs[0].lease; /* "use one lease everywhere": rlock-stores(7) */
    shell_choose(run);
}

void run_choose(struct run *run, int number, int flavour)
{
    *run = (struct run){.number = number};
    choose_keys(run, flavour);
    choose_nesting(run);
    choose_rest(run);
}

void run_choose_in(struct run *script, struct run *run, int number)
{
    *run = (struct run){.number = number,
                        .mode = script->limit ? LOCK_LIMIT : LOCK_EXCLUSIVE,
                        .limit = script->limit};
    nest_in(run, script);
    name_owner(run);
    choose_rest(run);
    run->starts = script->starts;
}

void run_choose_more(void)
{
    unsigned options = one_in(2) ? (unsigned)chance_below(1 << 5) : 0;

    for (int i = 0; i < run_count; i++) {
        struct run *run = &runs[i];
        unsigned more = options & (unsigned)chance();
        if (more & 1 && !run->at_most)
            run->at_most = 1 + chance_below(2 * run->lease);
        if (more & 2 && !run->at_least)
            run->at_least = chance_below(2 * run->lease);
        run->has_stop |= more >> 2 & 1;
        run->goes_on |= more >> 3 & 1;
        run->wait_descendants |= more >> 4 & 1;
    }
}

static double seconds(int64_t ns)
{
    return ns == NEVER ? -1 : (double)ns / 1e9;
}

void run_describe(const struct run *run)
{
    static const char *const modes[] = {
        [LOCK_EXCLUSIVE] = "exclusive", [LOCK_SHARED] = "shared", [LOCK_LIMIT] = "limit 2"};
    static const char *const on_term[] = {"dies", "cleans up", "ignores"};

    trace("run %d: %s%s%s%s%s, %s, lease %.1f s, -w %.3f s%s%s%s%s", run->number, run->keys[0],
          run->key_count > 1 ? " " : "", run->key_count > 1 ? run->keys[1] : "",
          run->key_count > 2 ? " " : "", run->key_count > 2 ? run->keys[2] : "", modes[run->mode],
          seconds(run->lease), seconds(run->waits), run->fixed ? ", --no-renew" : "",
          run->goes_on ? ", --on-lost continue" : "", run->has_stop ? ", --stop" : "",
          run->wait_descendants ? ", --wait-descendants" : "");
    if (run->outer)
        trace("run %d nests in run %d", run->number, run->outer->number);
    if (run->notifies)
        trace("run %d: --notify after %.3f s, takes %.3f s", run->number,
              seconds(run->notify_after), seconds(run->notice_runs));
    trace("run %d: takes %zu, priority %d bound %.1f s, group %s%s, unless done for %.1f s",
          run->number, run->take, run->priority, seconds(run->bound), run->group ? run->group : "-",
          run->replace ? ", --replace" : "", seconds(run->unless_done));
    trace("run %d: at least %.3f s, at most %.3f s, kill after %.1f s; its command takes %.3f s, "
          "ends with %d, %s at TERM (%.3f s); child %d for %.3f s; --stop takes %.3f s",
          run->number, seconds(run->at_least), seconds(run->at_most), seconds(run->kill_after),
          seconds(run->program.runs), run->program.status, on_term[run->program.on_term],
          seconds(run->program.cleans), (int)run->program.child, seconds(run->program.child_runs),
          seconds(run->stop_runs));
}
