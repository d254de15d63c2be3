/* A command under its deadline. The states, and what leads out of each. "Over" is one of two: the
 * time of --at-most, or the lock is lost and the command does not continue without it (deadline.h).
 *
 *   IDLE       job_start(): RUNNING.
 *   RUNNING    Perhaps stopped, without this process. If it is stopped by its terminal, so is this
 *              process, and it is PAUSED once both may continue. It is stopped where its lease may
 *              be over, as this process has slept: VERIFYING. Over: STOPPING. The command's end:
 *              LINGERING with --wait-descendants, otherwise ENDED.
 *   PAUSED     All that the agent had to say is heard: VERIFYING. The lock is lost: RUNNING if the
 *              command continues without it, otherwise STOPPING.
 *   VERIFYING  Still stopped. The agent has verified the lock: RUNNING. It is lost, or there was no
 *              answer in time: as PAUSED. Over, and the command's end: as RUNNING.
 *   LINGERING  The processes that it left are waited for. None is left: ENDED. Over: STOPPING.
 *   STOPPING   The command of --stop runs, TERM is sent, then KILL ("kill_at"). Nothing is left, or
 *              what is left cannot be killed ("stuck"): ENDED.
 *   ENDED      The lock is the supervisor's to release; job_kill_on() kills what is stuck.
 *
 * job_abandon() leads to ENDED from any state but IDLE. In STOPPING, the guard that has claimed the
 * end runs --stop and sends TERM, which is this one if "ends"; both kill. The agent may end the
 * command while this process is stopped, which changes no state here: job_judge_end() finds out. */
#include "run/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lock/lease.h"
#include "os/kernel.h"

/* The agent has so long to answer, beyond the time that the store has for a renewal. */
#define VERIFY_NS (1 * NS_PER_SEC)
/* How often, at most, to look whether the processes that the command has left have ended: a look
 * takes a while, and where many processes come and go there is always a reason for one. */
#define LOOK_NS (20 * NS_PER_MS)
/* When to look again where not everything could be looked at. */
#define LOOK_AGAIN_NS (200 * NS_PER_MS)
/* When to look again without a reason: a look may have taken another's process group, of whose end
 * nothing tells, for the command's. */
#define LOOK_ANYWAY_NS (5 * NS_PER_SEC)
/* A command that forks faster than it is killed keeps its lock for so long. After that the lock is
 * not renewed any more, and killing continues until the lease has ended. */
#define FORKING_NS (30 * NS_PER_SEC)

/* Sends the agent an order that has nothing to say but its kind. */
static void tell_agent(const struct job *job, enum order_kind kind)
{
    agent_process_tell(job->agent, &(struct agent_order){.kind = kind}, -1);
}

/* Tells the agent since when the command is being stopped. */
static void tell_stopping(const struct job *job)
{
    const struct agent_order stopping = {.kind = ORDER_STOPPING, .since = job->stopping_since};

    agent_process_tell(job->agent, &stopping, -1);
}

/* Tells the user that the command is stopped or has lost its lock, and keeps that to be told again
 * when it has ended (job_remind()). */
static void pronounce(struct job *job, enum run_event event, const struct run_reason *why)
{
    const struct run_news verdict = {
        .event = event, .remains = job->state == JOB_LINGERING, .reason = why};

    run_tell(job->plan->events, &verdict);
    job->verdict = run_news_keep(job->verdict, &verdict);
}

_Static_assert(OWNER_SIZE <= TREE_OWNER_SIZE, "the tree knows any owner");

/* The cgroup of the command; NULL: it can have none. */
static struct cgroup *cgroup_of(const struct job *job)
{
    return job->agent && job->agent->shared ? &job->agent->shared->cgroup : NULL;
}

/* The processes that belong to the command, as seen from this process: its children and theirs, in
 * its cgroup, except for the agent. */
static struct tree tree_of(struct job *job)
{
    const struct acquire_request *lock = job->plan->environment->lock;

    return (struct tree){.procfs = &job->procfs,
                         .cgroup = cgroup_of(job),
                         .root = getpid(),
                         .except = job->agent->pid,
                         .group = job->child.group,
                         .leader = job->child.handle,
                         .reaped = job->child.pid == 0,
                         .owner = lock ? lock->owner : NULL,
                         .callers = &job->callers,
                         .noted = &job->asked,
                         .noted_count = 1};
}

/* Whether the command itself has ended, though perhaps that was not noted yet, and the lock is held
 * for the processes that it has left. */
static bool has_only_leftovers(const struct job *job)
{
    return job->state == JOB_LINGERING ||
           (job->plan->wait_descendants && (job->child.pid == 0 || child_has_ended(&job->child)));
}

/* Sends a signal to the command, or to all that it has left. */
static void send_signal(struct job *job, int signo)
{
    const struct tree tree = tree_of(job);

    if (has_only_leftovers(job))
        kill_tree_signal(&tree, signo); /* these have no process group in common */
    else
        child_signal(&job->child, signo);
}

int job_init(struct job *job, const struct job_plan *plan, const struct agent_process *agent,
             struct child_note *note)
{
    const struct tree children = {.procfs = &job->procfs, .root = getpid(), .leader = -1};

    job->agent = agent;
    job->plan = plan;
    job->look_at = MOMENT_NEVER;
    job->child = (struct child){.handle = -1, .note = note};
    job->stop_command.plan = plan;
    job->stop_command.note = agent->shared ? &agent->shared->stop_note : NULL;
    terminal_init(&job->terminal);
    sigemptyset(&job->handed_on);
    if (!kernel_lets_guard())
        return -1;
    job->no_cgroup = plan->cgroup && cgroup_make(cgroup_of(job), CGROUP_REQUIRED) < 0;
    if (job->no_cgroup)
        return -1;
    /* Children that a process has before it becomes this program by exec(2) are its caller's. */
    if (!child_exists())
        return 0;
    if (procfs_open(&job->procfs) < 0)
        return -1;
    return !procfs_is_usable(&job->procfs) || tree_list(&children, &job->callers) ? 0 : -1;
}

int job_prepare(struct job *job)
{
    if ((!job->procfs.directory && procfs_open(&job->procfs) < 0) ||
        terminal_open(&job->terminal) < 0)
        return -1;
    if (!procfs_shows_self(&job->procfs))
        run_tell_event(job->plan->events, RUN_NO_PROC);
    struct cgroup *cgroup = cgroup_of(job);
    if (cgroup) {
        if (!job->plan->cgroup) /* job_init() makes one that is required */
            cgroup_make(cgroup, CGROUP_IF_DELEGATED);
        if (cgroup_exists(cgroup))
            run_tell_text(job->plan->events, RUN_CGROUP, cgroup->path);
        else
            run_tell_event(job->plan->events, RUN_NO_CGROUP_HERE);
    }
    return 0;
}

void job_free(struct job *job)
{
    procfs_close(&job->procfs);
    process_list_free(&job->callers);
    process_list_free(&job->asked);
    free(job->verdict);
    free(job->trouble);
    child_free(&job->child);
    cgroup_remove(cgroup_of(job));
}

struct moment job_term_at(const struct job *job)
{
    return lease_term_at(job->lease, job->plan->kill_after);
}

void job_introduce(const struct job *job)
{
    const struct agent_order started = {.kind = ORDER_STARTED, .pid = job->child.group};

    agent_process_tell(job->agent, &started, job->child.handle);
    if (job->state == JOB_STOPPING)
        tell_stopping(job);
}

int job_start(struct job *job)
{
    const struct environment *environment = job->plan->environment;
    struct child_plan plan = {.argv = job->plan->command,
                              .environment = environment->entries,
                              .numbers = {environment->numbers[0], environment->numbers[1]},
                              .start_before = job_term_at(job),
                              .inherited = &job->inherited,
                              .cgroup = cgroup_of(job)};

    if (child_start(&job->child, &plan, &job->terminal) < 0)
        return -1;
    job->state = JOB_RUNNING;
    job_introduce(job);
    return 0;
}

/* -- its end --------------------------------------------------------------------------------- */

/* Returns until when the command may continue, by what this guard knows now. */
static struct deadline deadline_now(const struct job *job)
{
    const struct supervised known = {.lease = job->lease,
                                     .paused = job->state == JOB_PAUSED,
                                     .lost = job->fate == FATE_LOST,
                                     .cleared = job->cleared,
                                     .stopping_since = job->stopping_since,
                                     .suspended = job->stopping_since.ns ? clock_suspended() : 0};

    return deadline_of(job->plan, &known);
}

/* Whether one of the two guards has begun to end the command. */
static bool is_being_ended(const struct job *job)
{
    return job->agent->shared && atomic_load(&job->agent->shared->ending);
}

bool job_is_ended_elsewhere(const struct job *job)
{
    /* While this process was stopped, the agent may have barred its --stop, and taken its place. */
    return is_being_ended(job) &&
           (!job->ends_command || atomic_load(&job->agent->shared->stop_note.group) < 0);
}

/* Returns when to send TERM to a command that is being ended: later if the command of --stop runs,
 * here or in the agent; MOMENT_NEVER: it was sent. */
static struct moment term_due(const struct job *job)
{
    bool runs =
        job->stop_command.pid > 0 || (job->stop_command.begun && job_is_ended_elsewhere(job));

    if (job->termed)
        return MOMENT_NEVER;
    return runs ? job->stop_command.term_at : job->term_at;
}

/* Sends TERM, once, if it is due; not to the command of --stop. When KILL is due, TERM is not sent
 * any more, and the command of --stop is killed. */
static void send_term(struct job *job, struct moment now)
{
    bool killing = moment_reached(job->stop.tree.kill_at, now);

    job->stop.tree.spared = killing ? 0 : job->stop_command.pid;
    if (killing)
        stop_command_kill(&job->stop_command);
    if (!killing && !moment_reached(term_due(job), now))
        return;
    job->termed = true;
    if (!killing)
        kill_tree_terminate(&job->stop.tree);
}

/* Does the next step of ending the command, at each event and look: TERM when it is due, KILL when
 * that is. The job has ENDED when nothing is left of the command and of --stop's; or when it is
 * "stuck": a process does not die of KILL, or has forked faster than it was killed for
 * FORKING_NS. */
static void go_on_stopping(struct job *job)
{
    struct moment now = moment_now();

    job->stop.tree.kill_at = deadline_now(job).kill_at;
    job->stop.tree.except = job->agent->pid; /* it may be another one by now */
    job->stop.tree.lenient = deadline_lets_off(job->lease, job->stop.killing_for.ns, now);
    send_term(job, now);
    /* An agent that is stopped cannot kill its own command of --stop. */
    int of_agent = job->agent->shared ? atomic_load(&job->agent->shared->stop_command) : 0;
    int signo = moment_reached(job->stop.tree.kill_at, now) ? SIGKILL : 0; /* 0 only looks */
    job->stop.tree.strays = job->plan->stop; /* its process may be outside the cgroup */
    bool stop_runs = (of_agent > 0 && tree_signal_child(&job->procfs, job->agent->pid, of_agent,
                                                        signo) == TREE_LIVE) ||
                     job->stop_command.pid > 0;
    enum kill_tree_state state = kill_tree_turn(&job->stop, now);
    if (state == KILL_TREE_GOING && job->stop.killing_for.ns < FORKING_NS)
        return;
    if (state == KILL_TREE_DONE && stop_runs)
        return;
    job->stuck = state != KILL_TREE_DONE;
    job->state = JOB_ENDED;
    terminal_restore(&job->terminal);
}

/* Claims to be the guard that runs --stop and sends TERM ("ends_command"): only the first of the
 * two is that. In both, the time until KILL begins when the first of them began. */
static void claim_end(struct job *job)
{
    struct run_shared *shared = job->agent->shared;

    if (shared) /* for an agent that releases the lock in the place of this process */
        atomic_store(&shared->fate, job->fate);
    job->ends_command = !shared || run_claim_end(shared, &job->stopping_since);
    job->stop.tree.kill_at = deadline_now(job).kill_at;
}

/* Starts the command of --stop, if this guard has claimed the end, and sets when to send TERM. If
 * the agent has claimed it, that has half of the time until KILL before this process sends TERM. */
static void prepare_term(struct job *job)
{
    struct moment now = moment_now();

    job->term_at = now;
    if (job->ends_command)
        stop_command_start(&job->stop_command, &job->inherited, cgroup_of(job),
                           job->stop.tree.kill_at);
    else
        job->term_at = moment_plus(now, moment_until(now, job->stop.tree.kill_at) / 2);
}

/* Begins to end the command; harmless if this process has begun. */
static void begin_stopping(struct job *job)
{
    if (job->state == JOB_STOPPING)
        return;
    job->state = JOB_STOPPING;
    job->stopping_since = awake_now();
    job->stop = (struct kill_tree){.child = &job->child, .tree = tree_of(job)};
    job->stop.tree.asked = &job->asked;
    claim_end(job);
    tell_stopping(job); /* before TERM, so that the agent does not do the same */
    prepare_term(job);
    go_on_stopping(job);
}

/* Sends the signal of --on-lost, which this guard has claimed to do. */
static void signal_loss(struct job *job)
{
    send_signal(job, job->plan->lost_signal);
    atomic_store(&job->agent->shared->signalled, RUN_SIGNAL_SENT);
}

void job_agent_died(struct job *job)
{
    /* The agent had claimed to send the signal of --on-lost, and has not said that it did. */
    if (atomic_load(&job->agent->shared->signalled) == RUN_SIGNAL_CLAIMED)
        signal_loss(job);
    if (!job_is_ended_elsewhere(job))
        return;
    /* The command of --stop has died with the agent: this guard begins anew, unless the agent has
     * released the lock, or nothing is left to end. */
    run_disclaim_end(job->agent->shared);
    if (job->state == JOB_STOPPING && !job->cleared &&
        tree_signal(&job->stop.tree, 0) != TREE_GONE) {
        claim_end(job);
        prepare_term(job);
    }
}

void job_abandon(struct job *job)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    enum child_change change;
    int status;
    pid_t pid;

    if (job->state == JOB_IDLE || job->state == JOB_ENDED)
        return;
    job->lease.end = moment_now(); /* so it is time to KILL */
    begin_stopping(job);
    while (job->state != JOB_ENDED) {
        nanosleep(&pause, NULL);
        while ((pid = child_next_change(&job->child, &change, &status)) > 0)
            if (!stop_command_note_end(&job->stop_command, pid, status))
                job_changed(job, change, status);
        go_on_stopping(job);
    }
}

/* Tells the user that --stop had no time, if there is one, and the agent has killed the command at
 * the end of its lease. */
static void tell_stop_was_too_late(const struct job *job)
{
    bool due = job->plan->stop && !is_being_ended(job) && deadline_now(job).by != GUARD_NONE;

    if (due && WIFSIGNALED(job->status) && moment_reached(lease_kill_at(job->lease), moment_now()))
        run_tell_event(job->plan->events, RUN_STOP_COMMAND_TOO_LATE);
}

/* Stops the command, as --at-most or a lease without renewal is over, for the reason "why". */
static void time_out(struct job *job, const struct run_reason *why)
{
    fate_raise(&job->fate, FATE_TIMED_OUT);
    pronounce(job, RUN_STOPPING, why);
    if (job->state == JOB_ENDED) /* the agent has ended it */
        tell_stop_was_too_late(job);
    else
        begin_stopping(job);
}

void job_kill_on(struct job *job)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    enum kill_tree_state state = KILL_TREE_GOING;
    enum child_change change;
    int status;

    if (!job->stuck)
        return;
    job->stop.tree.except = job->agent->pid;
    while (state == KILL_TREE_GOING && !moment_reached(job->lease.end, moment_now())) {
        nanosleep(&pause, NULL);
        while (child_next_change(&job->child, &change, &status) > 0)
            kill_tree_note_death(&job->stop);
        state = kill_tree_turn(&job->stop, moment_now());
    }
}

bool job_was_executed(const struct job *job)
{
    return job->state != JOB_IDLE && !job->fault;
}

void job_command_end(const struct job *job, struct lock_end *end)
{
    end->how = fate_ending(job->fate);
    end->known = job_was_executed(job);
    end->signal = WIFSIGNALED(job->status) ? WTERMSIG(job->status) : 0;
    end->status = WIFEXITED(job->status) ? WEXITSTATUS(job->status) : 0;
    end->ran_ms = moment_until(job->acquired, moment_now()) / NS_PER_MS;
}

void job_remind(const struct job *job)
{
    static const enum run_event reminders[RUN_EVENTS] = {
        [RUN_STOPPING] = RUN_STOPPED_BEFORE,
        [RUN_LOST] = RUN_LOST_BEFORE,
        [RUN_LOST_CONTINUES] = RUN_LOST_BEFORE,
        [RUN_LOST_STOPPING] = RUN_LOST_STOPPED_BEFORE,
    };

    if (!job->verdict)
        return;
    struct run_news reminder = *job->verdict;
    reminder.event = reminders[reminder.event];
    run_tell(job->plan->events, &reminder);
}

/* Looks whether anything is left of what the command has started, and ends the job if not. Called
 * at each SIGCHLD, as the last process of the tree is a child of this one when it ends, and now and
 * then; but looks no more often than LOOK_NS. */
static void look_for_leftovers(struct job *job)
{
    const struct tree tree = tree_of(job);
    struct moment now = moment_now();

    if (!moment_reached(job->next_look, now)) {
        job->look_at = job->next_look;
        return;
    }
    enum tree_state state = kill_tree_signal(&tree, 0);
    job->next_look = moment_plus(now, LOOK_NS);
    job->look_at = moment_plus(now, state == TREE_UNSEEN ? LOOK_AGAIN_NS : LOOK_ANYWAY_NS);
    if (state == TREE_GONE)
        job->state = JOB_ENDED;
}

void job_reaped(struct job *job)
{
    kill_tree_note_death(&job->stop);
    if (job->state == JOB_STOPPING)
        go_on_stopping(job);
    else if (job->state == JOB_LINGERING)
        look_for_leftovers(job);
}

/* -- the lease ------------------------------------------------------------------------------- */

/* Returns when the lock counts as lost, if the lease is not extended before: lose_expired() is due
 * then. */
static struct moment danger_at(const struct job *job)
{
    if (job->fate == FATE_LOST || job->state == JOB_PAUSED || job->child.note->fault)
        return MOMENT_NEVER; /* with a fault, the child ends by itself before it is the command */
    if (job->state == JOB_VERIFYING && !job->cleared)
        return job->verify_by;
    return deadline_now(job).lost_at;
}

/* Returns when --at-most is over. */
static struct moment limit_at(const struct job *job)
{
    if (job->cleared || job->plan->at_most == 0)
        return MOMENT_NEVER;
    return moment_plus(job->acquired, job->plan->at_most);
}

/* Gives the terminal to the command, if it had the terminal when it was paused. */
static void give_terminal_back(struct job *job)
{
    if (job->had_terminal)
        terminal_give(&job->terminal, job->child.pid);
    job->had_terminal = false;
}

/* Sends SIGCONT to the command, or to what it has left. Where its lease may be over, as this
 * process or its host has slept, the agent must verify first that the lock is still held. */
static void continue_command(struct job *job)
{
    bool left = has_only_leftovers(job), stopped = left || child_may_be_stopped(&job->child);
    struct tree tree = tree_of(job);

    tree.kill_at = deadline_now(job).kill_at;
    /* A deadline may have passed of which no timer has told yet: signals are handled before timers
     * and the agent's reports. So the clock is read here, after all else. */
    if (stopped && moment_reached(tree.kill_at, moment_now())) {
        if (job->state == JOB_RUNNING) /* one that is being ended waits for KILL */
            job_verify(job);
    } else if (left) {
        kill_tree_signal(&tree, SIGCONT);
    } else {
        child_signal(&job->child, SIGCONT);
    }
}

/* Continues the command, with the terminal that it had. */
static void resume_command(struct job *job)
{
    job->state = JOB_RUNNING;
    give_terminal_back(job);
    continue_command(job);
}

void job_extend(struct job *job, struct lease lease)
{
    job->lease = lease;
    free(job->trouble);
    job->trouble = NULL;
    /* A lease that is nearly over by now must be renewed once more first. */
    if (job->state == JOB_VERIFYING && !moment_reached(job_term_at(job), moment_now()))
        resume_command(job);
}

void job_note_trouble(struct job *job, const char *text)
{
    free(job->trouble);
    job->trouble = strdup(text); /* NULL if there is no memory */
}

/* Loses the lock for a cause that needs no more words. Few ends are a loss: noinline, so that the
 * others do not take its stack. */
__attribute__((noinline)) static void lose_for(struct job *job, enum run_cause cause)
{
    job_lose(job, &(struct run_reason){.cause = cause});
}

void job_lose(struct job *job, const struct run_reason *why)
{
    enum fate fate = fate_of_loss(job->plan->renew, why->cause);

    if (job->state == JOB_IDLE || !fate_raise(&job->fate, fate))
        return;
    if (fate == FATE_TIMED_OUT) { /* the end of a lease that is not renewed is a time limit */
        time_out(job, &(struct run_reason){.cause = RUN_CAUSE_NO_RENEWAL});
        return;
    }
    job->loss = why->cause;
    if (job->state == JOB_STOPPING || job->state == JOB_ENDED || job->cleared) {
        /* There is nothing to begin: the command is being ended, or has ended. */
        pronounce(job, RUN_LOST, why);
        tell_stop_was_too_late(job);
    } else if (!deadline_is_waived(job->plan)) {
        pronounce(job, RUN_LOST_STOPPING, why);
        begin_stopping(job);
    } else {
        if (job->plan->on_lost == ON_LOST_SIGNAL && run_claim_signal(job->agent->shared))
            signal_loss(job);
        pronounce(job, RUN_LOST_CONTINUES, why);
        if (job->state == JOB_PAUSED || job->state == JOB_VERIFYING)
            resume_command(job);
    }
}

/* Loses the lock, as its lease has run out as far as this process knows. */
static void lose_expired(struct job *job)
{
    struct run_reason why = run_reason_text(job->trouble ? job->trouble : "");

    why.cause = RUN_CAUSE_NOT_RENEWED;
    job_lose(job, &why);
}

void job_judge_end(struct job *job)
{
    /* A command that this process or the agent was ending may have used its lease up to the end. */
    struct moment late = is_being_ended(job) ? job->lease.end : danger_at(job);
    if (!job->cleared && !job->fault && moment_reached(late, moment_now()))
        lose_expired(job);
}

/* The command has ended by itself: enters ENDED, or LINGERING where the processes that it has left
 * are waited for. */
static void note_command_end(struct job *job)
{
    bool had_terminal = job->terminal.given;

    job->state = job->plan->wait_descendants && !job->fault ? JOB_LINGERING : JOB_ENDED;
    terminal_take(&job->terminal);
    if (had_terminal && WIFSIGNALED(job->status)) {
        /* A signal that was typed is for all of the user's job, of which rlock is a part. */
        int signo = WTERMSIG(job->status);
        bool by_key = signo == SIGINT || signo == SIGQUIT;
        job->typed = by_key && !sigismember(&job->handed_on, signo) ? signo : 0;
    }
    /* A Ctrl-Z just before may have stopped what is left of its group, which no shell knows of. The
     * kernel continues a group that becomes orphaned, too. */
    if (had_terminal && job->state == JOB_LINGERING)
        continue_command(job);
}

struct moment job_due(const struct job *job)
{
    switch (job->state) {
    case JOB_IDLE:
    case JOB_ENDED: break;
    case JOB_RUNNING:
    case JOB_PAUSED:
    case JOB_VERIFYING: return moment_min(danger_at(job), limit_at(job));
    case JOB_LINGERING: return moment_min(job->look_at, moment_min(danger_at(job), limit_at(job)));
    case JOB_STOPPING: return moment_min(kill_tree_next(&job->stop, moment_now()), term_due(job));
    }
    return MOMENT_NEVER;
}

void job_tick(struct job *job)
{
    struct moment now = moment_now();

    if (job->state == JOB_LINGERING && moment_reached(job->look_at, now))
        look_for_leftovers(job);
    if (job->state == JOB_STOPPING)
        go_on_stopping(job);
    else if (job->state == JOB_IDLE || job->state == JOB_ENDED)
        return;
    else if (moment_reached(limit_at(job), now))
        time_out(job, &(struct run_reason){.cause = RUN_CAUSE_TIME_LIMIT,
                                           .duration = job->plan->at_most});
    else if (moment_reached(danger_at(job), now))
        lose_expired(job);
}

/* -- stop and continue ----------------------------------------------------------------------- */

/* Stops this process, as its command has been stopped by "signo", and returns when both may
 * continue: the job is PAUSED then. Where this process cannot be stopped, tells the user. */
static void pause_with(struct job *job, int signo)
{
    /* The shell must see all of its job stopped. A terminal that sends SIGTSTP to this process has
     * stopped the rest of the job already; but while the command has it, it does not. */
    bool all = !job->told_to_stop || job->terminal.given;
    enum terminal_stopped what = all ? TERMINAL_STOPS_JOB : TERMINAL_STOPS_PROCESS;

    job->told_to_stop = false;
    job->had_terminal = job->had_terminal || job->terminal.given;
    terminal_take(&job->terminal);
    agent_process_pause(job->agent);
    if (terminal_stop(signo == SIGSTOP ? SIGTSTP : signo, what)) {
        job->state = JOB_PAUSED;
        return;
    }
    tell_agent(job, ORDER_VERIFY);
    if (job->state != JOB_RUNNING)
        return;
    /* No shell can continue this job, and so not the command either. Ctrl-Z is ignored, and SIGSTOP
     * obeyed, as the kernel does in an orphaned process group, such as that of this job. There it
     * refuses the terminal, too, which ends most programs: HUP does so here. */
    if (signo == SIGTSTP) {
        give_terminal_back(job);
        continue_command(job);
    } else if (signo == SIGSTOP || sigismember(&job->handed_on, SIGHUP)) {
        run_tell_event(job->plan->events, RUN_KEPT_STOPPED);
    } else {
        run_tell_event(job->plan->events, RUN_NO_TERMINAL);
        job_signal(job, SIGHUP);
    }
}

/* The command was stopped by "signo": pauses this process with it, if a shell can continue both:
 * this process was told to stop as well (told_to_stop), or there is job control, which needs a
 * terminal, and for a plain SIGSTOP a job in the foreground. Otherwise the lock of the stopped
 * command is kept, and the user is told. */
static void note_stop(struct job *job, int signo)
{
    bool wants_terminal = signo == SIGTTIN || signo == SIGTTOU;
    bool stopping = job->state == JOB_STOPPING;

    if (job->state != JOB_RUNNING && !stopping)
        return;
    if ((stopping && signo == SIGTSTP) || /* Ctrl-Z does not hold up its clean-up */
        (wants_terminal && terminal_give(&job->terminal, job->child.pid)))
        continue_command(job);
    else if (stopping)
        return; /* it stays stopped until KILL */
    else if (job->told_to_stop || job->terminal.given ||
             (signo == SIGSTOP ? terminal_is_ours(&job->terminal)
                               : terminal_exists(&job->terminal)))
        pause_with(job, signo);
    else
        run_tell_event(job->plan->events, RUN_KEPT_STOPPED);
}

void job_verify(struct job *job)
{
    struct moment now = moment_now(), kill = lease_kill_at(job->lease);
    int64_t longest = lease_request_timeout(job->lease.length, 0) + VERIFY_NS;

    /* The command continues without its lock; or the agent has released that before the command was
     * there, so that its process ends when it is continued. */
    if (job->fate == FATE_LOST || job->cleared) {
        resume_command(job);
        return;
    }
    job->state = JOB_VERIFYING;
    /* If the answer is no, a command whose lease still runs needs time to clean up. One whose lease
     * is over cannot be continued for that, and does no harm while it is stopped. */
    job->verify_by = moment_reached(kill, now) ? moment_plus(now, longest) : job_term_at(job);
    tell_agent(job, ORDER_VERIFY);
}

void job_signal(struct job *job, int signo)
{
    if (signo == SIGTSTP) {
        job->told_to_stop = job->state == JOB_RUNNING || job->state == JOB_VERIFYING;
        if (job->told_to_stop && job->child.stopped)
            pause_with(job, SIGSTOP);
        else if (job->told_to_stop)
            child_signal(&job->child, SIGTSTP);
    } else if (signo == SIGCONT) {
        if (job->state == JOB_RUNNING || job->state == JOB_LINGERING)
            continue_command(job);
    } else {
        /* A signal that asks for the end waits in a stopped process until that continues. One that
         * waits for its lock to be verified gets it then. */
        bool waits = job->state == JOB_PAUSED || job->state == JOB_VERIFYING;
        sigset_t ends;
        child_choose_end_signals(&ends);
        sigaddset(&job->handed_on, signo);
        send_signal(job, signo);
        if (sigismember(&ends, signo) && !waits &&
            (has_only_leftovers(job) || child_may_be_stopped(&job->child)))
            continue_command(job);
    }
}

void job_changed(struct job *job, enum child_change change, int status)
{
    if (change == CHILD_STOPPED) {
        note_stop(job, WSTOPSIG(status));
    } else if (change == CHILD_CONTINUED) {
        job->told_to_stop = false;
        if (job->state == JOB_RUNNING) /* this process may have had the terminal meanwhile */
            give_terminal_back(job);
    } else if (change == CHILD_ENDED) {
        job->status = status;
        job->fault = child_note_fault(job->child.note);
        if (job->state != JOB_STOPPING)
            note_command_end(job);
        if (job->fault == ETIME) { /* its process has seen that job_term_at() was over */
            lose_for(job, RUN_CAUSE_TOO_LATE);
        } else if (job->fault) { /* the command was never executed */
            fate_raise(&job->fate, FATE_NOT_EXECUTED);
            run_tell_text(job->plan->events, RUN_NOT_EXECUTED, strerror(job->fault));
        }
    }
}
