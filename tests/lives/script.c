#include "lives/script.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lives/faults.h"
#include "lives/files.h"
#include "lives/life.h"
#include "lives/network.h"
#include "lives/orders.h"
#include "lives/replication.h"
#include "lives/server.h"
#include "net/loop.h"
#include "os/child.h"
#include "run/exit_status.h"
#include "run/printer.h"

/* How many lives have one with a script. */
#define SCRIPTS_EVERY 4

struct script script;

static struct choices {
    int64_t renews_after; /* of its work, ns; NEVER: not */
    bool gives_back;
    int64_t dies_after;         /* its start; 0: not */
    int64_t acquire_dies_after; /* the grant; 0: not */
    /* The token is read, sooner or later, or no process is there to read it. */
    int64_t reads_after; /* NEVER: never */
    bool closes;
    /* The script is a person, who reserves the lock, and renews that by "reserve" or "extend". */
    bool reserves, again;
    /* A run nests in it, which it begins so long behind the grant, and does not wait for. */
    int64_t nests_after;
    bool in_background;
} choices;

/* -- rlock acquire ----------------------------------------------------------------------------- */

static void compose(void *arg, int64_t lease, const struct lock_grant *grants, char *text)
{
    struct run *run = arg;

    (void)lease;
    run->fences[0] = grants->fence;
    sprintf(text, "%s\n", run->owner);
}

/* As in cmd/acquire.c, behind the command line. */
static int acquire(const void *arg)
{
    struct run *run = (struct run *)(uintptr_t)arg;
    static const int address_status = STATUS_CONFIG;
    struct run_events events = run_events(run);
    struct pid_watch watch = {.io.fd = -1};
    struct printer_outcome outcome = {.status = STATUS_SYSTEM};
    struct printer_plan plan = {.agent = {.address = run_address(),
                                          .address_status = &address_status,
                                          .keeper = run_keeper_plan(run),
                                          .conflict_status = STATUS_NOT_ACQUIRED,
                                          .events = &events},
                                .compose = compose,
                                .arg = run};

    plan.agent.address.server_wait = plan.agent.keeper.server_wait;
    if (choices.reserves) /* with --server-wait 0 */
        plan.agent.keeper.server_wait = 0;
    plan.agent.keeper.reused = choices.reserves;
    plan.agent.keeper.request.had = script.counts_until > 0;
    if (!run->fixed && pid_watch_open(&watch, run->command->pid))
        plan.agent.keep = &watch;
    else if (!run->fixed && errno == ESRCH)
        outcome.status = STATUS_USAGE; /* no such process */
    if (run->fixed || plan.agent.keep)
        printer_run(&plan, &outcome);
    bool done = outcome.status == STATUS_OK && !outcome.signal &&
                (run->fixed || printer_confirm(&plan, &outcome));
    run->ended = true;
    run->ended_at = world.now;
    run->outcome.outcome = done ? OUTCOME_COMPLETED : OUTCOME_FAILED;
    run->outcome.status = outcome.status;
    run->outcome.signal = outcome.signal;
    trace("ends: status %d signal %d", outcome.status, outcome.signal);
    if (outcome.signal)
        process_end(kernel.current, outcome.signal);
    return outcome.status;
}

/* -- rlock renew, rlock release ---------------------------------------------------------------- */

static int status_of(const struct answer *answer)
{
    return answer->verdict == VERDICT_GRANTED ? STATUS_OK : status_of_cause(answer->cause);
}

static struct acquire_request lock_of(const struct run *run)
{
    return (struct acquire_request){
        .keys = run->keys, .key_count = 1, .owner = run->owner, .who = ""};
}

static int renew(const void *arg)
{
    const struct acquire_request lock = lock_of(arg);
    const struct renew_request request = {.lock = &lock, .strict = true};
    const struct answer answer =
        order_ask((struct operation){.verb = VERB_RENEW, .renew = &request});

    return status_of(&answer);
}

static int give_back(const void *arg)
{
    const struct run *run = arg;
    struct acquire_request lock = lock_of(run);
    const struct release_request request = {
        .lock = &lock, .strict = true, .in_time = choices.reserves};

    lock.lease = run->lease;
    const struct answer answer =
        order_ask((struct operation){.verb = VERB_RELEASE, .release = &request});
    return status_of(&answer);
}

/* -- the script -------------------------------------------------------------------------------- */

static void read_token(void *file)
{
    ((struct file *)file)->reader = OUTPUT_READ;
    file_drop(file);
}

/* The end that "rlock acquire" writes to. */
static struct file *make_pipe(void)
{
    struct file *file = file_new(FILE_OUTPUT);

    if (choices.closes)
        file->reader = OUTPUT_CLOSED;
    else if (choices.reads_after)
        file->reader = OUTPUT_FULL;
    if (file->reader == OUTPUT_FULL && choices.reads_after != NEVER) {
        file->references++;
        world_at(world.now + choices.reads_after, read_token, file);
    }
    return file;
}

static void start(struct proc *process, int (*work)(const void *arg), struct run *run)
{
    process->group = kernel.current->group;
    process->session = kernel.current->session;
    process_start(process, work, run);
}

/* Runs "work" in a child in the group of the script, which waits for it. Returns its status, as
 * waitpid() sets it. */
static int perform(struct proc *process, int (*work)(const void *arg), struct run *run)
{
    struct proc *self = kernel.current;

    start(process, work, run);
    self->awaited = signal_bit(SIGCHLD);
    while (process_exists(process)) {
        kernel_wait(WAIT_SIGNAL, NEVER);
        self->pending &= ~signal_bit(SIGCHLD);
    }
    process->life = REAPED;
    return process->status;
}

static int ask(struct run *run, int (*work)(const void *arg))
{
    struct proc *process = process_new(SCRIPT, kernel.current->pid, run);

    process->files[STDOUT_FILENO] = script.output;
    script.output->references++;
    return perform(process, work, run);
}

static void rest(int64_t ns)
{
    int64_t until = world.now + ns;

    while (world.now < until)
        kernel_wait(WAIT_SLEEP, until);
}

int64_t script_end_of_lease(const struct run *run, int64_t since)
{
    return since + run->lease - run->lease / 50;
}

/* False: it is not the script's any more. */
static bool renew_after(struct run *run, int64_t ns)
{
    rest(ns);
    bool counted = life_counts_on(run);
    int64_t since = world.now;
    int status = ask(run, choices.again ? acquire : renew);
    life_on_answered(run, counted, status);
    if (status)
        return false;
    script.counts_until = script_end_of_lease(run, since);
    return true;
}

static void release(struct run *run)
{
    bool counted = life_counts_on(run);

    run->command_alive = false;
    int status = ask(run, give_back);
    life_on_answered(run, counted, status);
    script.released = status == 0;
}

/* A run finds the owner of its user's reservation by a file, or by RLOCK_OWNER. */
static void nest(struct run *run)
{
    struct run *inner = run->inner;

    rest(choices.nests_after);
    inner->starts = world.now;
    inner->supervisor = process_new(SUPERVISOR, kernel.current->pid, inner);
    run_describe(inner);
    if (choices.in_background)
        start(inner->supervisor, run_supervise, inner);
    else
        perform(inner->supervisor, run_supervise, inner);
}

static int work(const void *arg)
{
    struct run *run = (struct run *)(uintptr_t)arg;

    script.output = make_pipe();
    script.output->references++;
    script.unread = script.output->reader != OUTPUT_READ;
    run->supervisor = process_new(SUPERVISOR, kernel.current->pid, run);
    run->supervisor->files[STDOUT_FILENO] = script.output;
    if (perform(run->supervisor, acquire, run)) {
        rest(run->program.runs);
        return 1;
    }
    script.counts_until = script_end_of_lease(run, script.granted_from);
    run->command_alive = true;
    if (run->inner)
        nest(run);
    if (choices.renews_after != NEVER && !renew_after(run, choices.renews_after))
        return 1;
    rest(run->program.runs);
    if (choices.gives_back)
        release(run);
    return 0;
}

static void die(void *process)
{
    trace("FAULT: KILL of the script");
    signal_send(process, SIGKILL);
}

static void kill_acquire(void *arg)
{
    struct run *run = arg;

    if (!process_exists(run->supervisor))
        return;
    trace("FAULT: KILL of rlock acquire");
    run->killed = run->faulted = true;
    signal_send(run->supervisor, SIGKILL);
}

void script_on_granted(struct run *run)
{
    if (!script.granted_from || server_count == 1)
        script.granted_from = run->requested_at;
    if (choices.acquire_dies_after)
        world_at(world.now + choices.acquire_dies_after, kill_acquire, run);
}

static void begin(void *arg)
{
    struct run *run = arg;

    run->command = process_new(SCRIPT, 1, run);
    process_start(run->command, work, run);
    if (choices.dies_after)
        world_at(world.now + choices.dies_after, die, run->command);
    run_describe(run);
    trace("run %d: a %s%s, works for %.3f s", run->number, choices.reserves ? "person" : "script",
          run->fixed ? "" : " with --keep", (double)run->program.runs / 1e9);
}

/* -- the choice -------------------------------------------------------------------------------- */

void script_choose(int flavour)
{
    static const char *const keys[KEYS] = {"k1", "k2", "k3"};
    struct run *run = &runs[run_count];

    script = (struct script){.output = NULL};
    if (!one_in(SCRIPTS_EVERY) || replication.servers) /* which a failover may have forget it */
        return;
    *run = (struct run){.number = run_count++, .is_script = true};
    run->keys[0] = keys[flavour == 3 ? chance_below(KEYS) : 0];
    run->key_count = run->held_count = 1;
    run->held[0] = run->keys[0];
    run->mode = runs[0].mode == LOCK_LIMIT                       ? LOCK_LIMIT
                : flavour == 1 && server_count == 1 && one_in(2) ? LOCK_SHARED
                                                                 : LOCK_EXCLUSIVE;
    run->limit = runs[0].limit;
    /* "use one lease everywhere": rlock-stores(7), of --grace, as of quorums. */
    run->lease =
        server_count > 1 || replication.grace ? runs[0].lease : CHOOSE(1, 1, 2, 3, 5, 10) * SEC;
    run->starts = world.now + chance_below(CHOOSE(1, 100, 1000, 4000) * MS);
    run->waits = !one_in(6) ? NEVER : one_in(3) ? 0 : chance_below(3 * run->lease);
    run->fixed = one_in(3);
    snprintf(run->owner, sizeof run->owner, "00000000-0000-8acc-8000-%012d", run->number + 1);
    snprintf(run->who, sizeof run->who, "host%d user %d script -%s", run->number, 99,
             run->fixed ? "" : " hears=1");
    run->program.runs = chance_below(one_in(4)    ? 20 * MS
                                     : run->fixed ? run->lease
                                                  : 4 * run->lease);
    choices = (struct choices){
        .renews_after = one_in(2) ? NEVER : chance_below(run->program.runs + 1),
        .gives_back = !one_in(3),
        .dies_after = one_in(4) ? 1 + chance_below(one_in(2) ? 100 * MS : 4 * run->lease) : 0,
        .acquire_dies_after =
            one_in(3) ? 1 + chance_below(one_in(2) ? network.delay + 2 * MS : run->lease) : 0,
        .reads_after = !one_in(3)  ? 0
                       : one_in(3) ? NEVER
                                   : chance_below(2 * run->lease),
        .closes = one_in(20)};
    choices.reserves = run->fixed && one_in(2);
    choices.again = choices.reserves && one_in(2);
    if (choices.again)
        choices.renews_after = chance_below(run->program.runs + 1);
    if (choices.acquire_dies_after && one_in(2)) /* before it has printed, as a rule */
        choices.reads_after = choices.acquire_dies_after + SEC;
    world_at(run->starts, begin, run);
    if (!one_in(4))
        return;
    choices.nests_after = chance_below(CHOOSE(1, 100, 2000) * MS);
    choices.in_background = one_in(3);
    run_choose_in(run, &runs[run_count], run_count);
    run_count++;
}
