#include "run/fenced.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "net/loop.h"
#include "os/pid_watch.h"
#include "run/exit_status.h"

/* How often to kill, and to look whether it is gone, once this process is dead. */
#define LOOK_NS (20 * NS_PER_MS)
/* So many guards are started at most: those that each die at once are not replaced for ever. */
#define GUARDS_MAX 100

static const struct lease no_lease = {.end = MOMENT_NEVER};

/* -- the guard ------------------------------------------------------------------------------- */

/* The argument of a guard. */
struct guarded {
    pid_t parent;
    const struct child_note *command;
};

/* The watched parent has ended. arg: the loop. */
static void on_death(void *arg)
{
    loop_stop(arg);
}

/* Sleeps until the next look. */
static void sleep_between_looks(void)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    nanosleep(&pause, NULL);
}

/* Returns when the parent has ended, even where there is no descriptor left to wait for that. */
static void await_death(pid_t parent)
{
    struct loop *loop = loop_new();
    struct pid_watch watch = {0};

    if (pid_watch_open(&watch, parent) && getppid() == parent) { /* it is still the parent's pid */
        pid_watch_start(&watch, loop, on_death, loop);
        loop_run(loop);
    }
    while (getppid() == parent)
        sleep_between_looks();
    pid_watch_close(&watch);
    loop_free(loop);
}

/* The process of the guard: when its parent has been killed, kills the command's group, and what
 * descends from it, until nothing is left. Returns its exit status. lock: kept open until then. */
static int run_guard(int lock, const void *arg)
{
    const struct guarded *guarded = arg;
    struct procfs procfs = {0};
    /* No process is known by its environment: none has started after the end of time. */
    struct tree tree = {.procfs = &procfs, .leader = -1, .since = UINT64_MAX};

    (void)lock;
    await_death(guarded->parent);
    procfs_open(&procfs);
    /* A command without a group is killed with its parent, and has not started anything. The group
     * is the promise: TREE_UNSEEN says that it is gone, and that /proc does not tell more. */
    tree.group = atomic_load(&guarded->command->group);
    while (tree_signal(&tree, SIGKILL) == TREE_LIVE)
        sleep_between_looks();
    procfs_close(&procfs);
    return 0;
}

/* -- the command ----------------------------------------------------------------------------- */

struct fenced {
    const struct fenced_plan *plan;
    struct agent_process agent; /* none: the job has no agent to tell */
    struct job job;
    struct loop *loop;
    struct loop_timer clock;
    pid_t guard;
    unsigned guards; /* that were started */
};

/* Starts the process that ends the command if this one is killed. fenced->guard is -1, with errno,
 * if that fails. */
static void start_guard(struct fenced *fenced)
{
    const struct guarded guarded = {.parent = getpid(), .command = fenced->job.child.note};

    fenced->guard = child_fork_helper("rlock-guard", fenced->plan->lock, run_guard, &guarded);
    fenced->guards++;
}

/* Brings the loop up to date with the job, after each event: its end, or when something is due. */
static void settle_job(struct fenced *fenced)
{
    if (fenced->job.state == JOB_PAUSED) { /* there is no lease to verify: it continues at once */
        job_verify(&fenced->job);
        job_extend(&fenced->job, no_lease);
    }
    if (fenced->job.state == JOB_ENDED)
        loop_stop(fenced->loop);
    else
        loop_arm(fenced->loop, &fenced->clock, job_due(&fenced->job));
}

/* The timer: a deadline of the job. */
static void on_time(struct loop_timer *timer)
{
    struct fenced *fenced = timer->owner;

    job_tick(&fenced->job);
    settle_job(fenced);
}

/* Passes a signal to the command; or, at SIGCHLD, takes the command's changes, and replaces a guard
 * that has died. */
static void on_signal(void *owner, int signo)
{
    struct fenced *fenced = owner;
    enum child_change change;
    int status;
    pid_t pid;

    if (signo != SIGCHLD)
        job_signal(&fenced->job, signo);
    while ((pid = child_next_change(&fenced->job.child, &change, &status)) > 0) {
        if (change != CHILD_OTHER)
            job_changed(&fenced->job, change, status);
        else if (pid == fenced->guard && fenced->guards < GUARDS_MAX)
            start_guard(fenced);
    }
    job_reaped(&fenced->job);
    settle_job(fenced);
}

/* Runs the command until it has ended, with a guard from before its start if there is a lock. 0; -1
 * with errno: it was not started, or nothing can be heard of it. */
static int run_job(struct fenced *fenced)
{
    sigset_t caught;
    struct child_note *note = child_share_memory(sizeof *note);

    child_block_signals(&fenced->job.inherited);
    if (!note || job_init(&fenced->job, &fenced->plan->job, &fenced->agent, note) < 0 ||
        job_prepare(&fenced->job) < 0)
        return -1;
    child_choose_signals(&caught);
    fenced->loop = loop_new();
    fenced->job.lease = no_lease;
    if (loop_signals(fenced->loop, &caught, on_signal, fenced) != 0)
        return -1;
    if (fenced->plan->lock >= 0)
        start_guard(fenced);
    if (fenced->guard < 0 || job_start(&fenced->job) < 0)
        return -1;
    settle_job(fenced);
    return loop_run(fenced->loop);
}

void fenced_run(const struct fenced_plan *plan, struct fenced_outcome *outcome)
{
    struct fenced fenced = {.plan = plan, .agent = {.channel = -1, .gone = true}};

    *outcome = (struct fenced_outcome){0};
    fenced.clock = (struct loop_timer){.fire = on_time, .owner = &fenced};
    if (run_job(&fenced) < 0) {
        run_tell_refusal(plan->job.events, RUN_NOT_STARTED);
        job_abandon(&fenced.job);
        outcome->status = STATUS_SYSTEM;
    } else if (fenced.job.fault) {
        outcome->status = status_of_fault(fenced.job.fault);
        outcome->not_executed = true;
    } else if (WIFSIGNALED(fenced.job.status)) {
        outcome->signal = WTERMSIG(fenced.job.status);
    } else {
        outcome->status = WEXITSTATUS(fenced.job.status);
    }
    if (fenced.guard > 0)
        child_await(fenced.guard, 0);
    /* A signal that was typed at the terminal is for the rest of this job, too. */
    if (fenced.job.typed && outcome->signal)
        child_signal_group(0, fenced.job.typed);
    job_free(&fenced.job);
    loop_free(fenced.loop);
}
