/* The command's life, from the start to the end in time. */
#include "ward.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lease.h"
#include "say.h"

/* For the agent to answer, beyond what it gives the store for a renewal. */
#define VERIFY_NS (1 * NS_PER_SEC)

static void tell(const struct ward *ward, enum message_kind kind)
{
    struct message message = {.kind = kind, .pid = ward->child.pid};
    deputy_tell(ward->agent, &message);
}

static const char *title_of(const struct ward *ward)
{
    return ward->plan->agent.title;
}

static const char *name_of(const struct ward *ward)
{
    return ward->state == WARD_LINGERING ? "what it left behind" : ward->plan->command[0];
}

static int64_t lease_of(const struct ward *ward)
{
    return ward->plan->agent.keeper.request.lease;
}

static struct tree tree_of(const struct ward *ward)
{
    return (struct tree){.root = getpid(),
                         .except = ward->agent->pid,
                         .group = ward->child.pid,
                         .owner = ward->plan->agent.keeper.request.owner};
}

/* While it runs, its process group is for the terminal and its shells to form; what it left behind has
 * none in common. */
static void send(struct ward *ward, int signo)
{
    if (ward->state == WARD_LINGERING)
        stop_send(&(struct stop){.child = &ward->child, .tree = tree_of(ward)}, signo);
    else
        child_signal(&ward->child, signo);
}

/* With a fixed lease there is no going on without it. */
static bool goes_on_without(const struct ward *ward)
{
    return ward->plan->on_lost != ON_LOST_STOP && ward->plan->agent.keeper.renew;
}

int ward_init(struct ward *ward, const struct supervisor_plan *plan, const struct deputy *agent)
{
    ward->agent = agent;
    ward->plan = plan;
    terminal_init(&ward->terminal);
    sigemptyset(&ward->handed_on);
    return child_init(&ward->child);
}

struct moment ward_term_at(const struct ward *ward)
{
    return lease_term_at(ward->deadline, lease_of(ward), ward->plan->kill_after);
}

int ward_start(struct ward *ward)
{
    struct child_plan plan = {.argv = ward->plan->command,
                              .environment = ward->plan->environment->entries,
                              .start_before = ward_term_at(ward),
                              .inherited = &ward->inherited};

    if (child_start(&ward->child, &plan, &ward->terminal) < 0)
        return -1;
    ward->state = WARD_RUNNING;
    tell(ward, MESSAGE_STARTED);
    return 0;
}

/* -- its end --------------------------------------------------------------------------------- */

/* The end of the lease bounds a clean-up, but for a command that went on without the lock. */
static struct moment kill_at(const struct ward *ward)
{
    struct moment at = moment_plus(ward->stopping_since, ward->plan->kill_after);
    if (ward->lost && goes_on_without(ward))
        return at;
    return moment_min(at, lease_kill_at(ward->deadline, lease_of(ward)));
}

static void go_on_stopping(struct ward *ward)
{
    enum stop_state state;

    ward->stop.kill_at = kill_at(ward);
    state = stop_turn(&ward->stop, moment_now());
    if (state == STOP_GOING)
        return;
    ward->stuck = state == STOP_STUCK;
    ward->state = WARD_ENDED;
    terminal_take(&ward->terminal, true);
}

static void stop(struct ward *ward)
{
    if (ward->state == WARD_STOPPING)
        return;
    ward->state = WARD_STOPPING;
    ward->stopping_since = moment_now();
    ward->stop =
        (struct stop){.child = &ward->child, .kill_at = kill_at(ward), .tree = tree_of(ward)};
    stop_begin(&ward->stop, ward->stopping_since);
    go_on_stopping(ward);
}

void ward_abandon(struct ward *ward)
{
    const struct timespec pause = {.tv_nsec = 20 * NS_PER_MS};
    enum child_change change;
    int status;

    if (ward->state == WARD_IDLE || ward->state == WARD_ENDED)
        return;
    ward->deadline = moment_now(); /* so it is time to KILL */
    stop(ward);
    while (ward->state != WARD_ENDED) {
        nanosleep(&pause, NULL);
        while (child_next_change(&ward->child, &change, &status) > 0)
            ward_changed(ward, change, status);
        go_on_stopping(ward);
    }
}

static void time_out(struct ward *ward, const char *what)
{
    ward->timed_out = true;
    say_warning("%s: %s; stopping %s", title_of(ward), what, name_of(ward));
    stop(ward);
}

/* The last process of a tree becomes a child of this one and ends: SIGCHLD tells. */
static void look_behind(struct ward *ward)
{
    const struct stop all = {.child = &ward->child, .tree = tree_of(ward)};

    if (stop_send(&all, 0) == 0)
        ward->state = WARD_ENDED;
}

void ward_reaped(struct ward *ward)
{
    if (ward->state == WARD_STOPPING)
        go_on_stopping(ward);
    else if (ward->state == WARD_LINGERING)
        look_behind(ward);
}

/* -- the lease ------------------------------------------------------------------------------- */

/* When something has to be done about a lease that is not extended. A command that may go on without
 * the lock has until the very end, as a renewal may still come; but not if it wants a signal. */
static struct moment danger_at(const struct ward *ward)
{
    if (ward->lost || ward->state == WARD_PAUSED)
        return MOMENT_NEVER;
    if (ward->state == WARD_VERIFYING)
        return ward->verify_by;
    if (goes_on_without(ward) && ward->plan->on_lost == ON_LOST_CONTINUE)
        return ward->deadline;
    return ward_term_at(ward);
}

static struct moment limit_at(const struct ward *ward)
{
    return ward->plan->at_most > 0 ? moment_plus(ward->acquired, ward->plan->at_most)
                                   : MOMENT_NEVER;
}

static void resume(struct ward *ward)
{
    ward->state = WARD_RUNNING;
    if (ward->had_terminal)
        terminal_give(&ward->terminal, ward->child.pid);
    ward->had_terminal = false;
    child_signal(&ward->child, SIGCONT);
}

void ward_extend(struct ward *ward, struct moment deadline)
{
    ward->deadline = deadline;
    if (ward->state == WARD_VERIFYING && !moment_reached(ward_term_at(ward), moment_now()))
        resume(ward);
}

void ward_lose(struct ward *ward, const char *why)
{
    if (ward->lost || ward->state == WARD_IDLE)
        return;
    ward->lost = true;
    if (ward->state == WARD_STOPPING || ward->state == WARD_ENDED) {
        say_error("%s: lock lost: %s", title_of(ward), why);
    } else if (!goes_on_without(ward)) {
        say_error("%s: lock lost: %s; stopping %s", title_of(ward), why, name_of(ward));
        stop(ward);
    } else {
        say_error("%s: lock lost: %s; %s goes on", title_of(ward), why, name_of(ward));
        if (ward->plan->on_lost == ON_LOST_SIGNAL)
            send(ward, ward->plan->lost_signal);
        if (ward->state == WARD_PAUSED || ward->state == WARD_VERIFYING)
            resume(ward);
    }
}

/* The lease has run out, as far as this process knows: it may have been stopped itself. */
static void run_out(struct ward *ward)
{
    if (ward->plan->agent.keeper.renew)
        ward_lose(ward, "not renewed in time");
    else if (ward->state == WARD_ENDED)
        ward->timed_out = true;
    else
        time_out(ward, "the lease of --no-renew ends");
}

/* It ended by itself. Processes that it left behind are let alone, or waited for. */
static void end(struct ward *ward, bool had_terminal)
{
    ward->state = ward->plan->wait_descendants && !ward->fault ? WARD_LINGERING : WARD_ENDED;
    terminal_take(&ward->terminal, false);
    if (had_terminal && WIFSIGNALED(ward->status)) {
        int signo = WTERMSIG(ward->status);
        bool by_key = signo == SIGINT || signo == SIGQUIT;
        ward->typed = by_key && !sigismember(&ward->handed_on, signo) ? signo : 0;
    }
}

static void note_end(struct ward *ward, int status)
{
    ward->status = status;
    if (WIFEXITED(status))
        ward->fault = child_fault(&ward->child);
    bool late = ward->state == WARD_RUNNING && moment_reached(danger_at(ward), moment_now());
    if (ward->state != WARD_STOPPING)
        end(ward, ward->terminal.given);
    if (late && !ward->fault)
        run_out(ward);
    if (ward->fault == ETIME)
        ward_lose(ward, "no time was left to start the command");
    else if (ward->fault)
        say_error("%s: %s", name_of(ward), strerror(ward->fault));
}

struct moment ward_due(const struct ward *ward)
{
    switch (ward->state) {
    case WARD_IDLE:
    case WARD_ENDED: break;
    case WARD_RUNNING:
    case WARD_PAUSED:
    case WARD_VERIFYING:
    case WARD_LINGERING: return moment_min(danger_at(ward), limit_at(ward));
    case WARD_STOPPING: return stop_next(&ward->stop, moment_now());
    }
    return MOMENT_NEVER;
}

void ward_tick(struct ward *ward)
{
    struct moment now = moment_now();

    if (ward->state == WARD_STOPPING)
        go_on_stopping(ward);
    else if (ward->state == WARD_IDLE || ward->state == WARD_ENDED)
        return;
    else if (moment_reached(limit_at(ward), now))
        time_out(ward, "the time of --at-most is over");
    else if (moment_reached(danger_at(ward), now))
        run_out(ward);
}

/* -- stop and continue ----------------------------------------------------------------------- */

/* The command has been stopped by "signo" and this process follows. Whoever waits for this job has to
 * see all of it stopped, as if the command were part of it, so the rest of the job is stopped as well,
 * unless the terminal has done it already. What has happened to the lock meanwhile is asked before
 * the command goes on. */
static void pause_with(struct ward *ward, int signo)
{
    bool all = !ward->told_to_stop || ward->terminal.given;

    ward->told_to_stop = false;
    ward->had_terminal = ward->had_terminal || ward->terminal.given;
    terminal_take(&ward->terminal, false);
    tell(ward, MESSAGE_PAUSED);
    if (terminal_stop(signo, all)) {
        ward->state = WARD_PAUSED;
        return;
    }
    tell(ward, MESSAGE_VERIFY); /* no shell would continue it: only the command stays stopped */
    ward->state = WARD_RUNNING;
}

/* Without a terminal there is no job control, and with a plain SIGSTOP it is none of a job in the
 * background: then the lock of a stopped command is kept. */
static bool is_job_control(struct ward *ward, int signo)
{
    if (ward->told_to_stop || ward->terminal.given)
        return true;
    return signo == SIGSTOP ? terminal_is_ours(&ward->terminal) : terminal_exists(&ward->terminal);
}

static void note_stop(struct ward *ward, int signo)
{
    bool wants_terminal = signo == SIGTTIN || signo == SIGTTOU;

    if (ward->state != WARD_RUNNING)
        return;
    if (wants_terminal && terminal_give(&ward->terminal, ward->child.pid))
        child_signal(&ward->child, SIGCONT);
    else if (is_job_control(ward, signo))
        pause_with(ward, wants_terminal ? signo : SIGTSTP);
    else
        say_detail("%s: %s was stopped; the lock is kept", title_of(ward), name_of(ward));
}

void ward_verify(struct ward *ward)
{
    int64_t patience = lease_patience(lease_of(ward)) + VERIFY_NS;

    ward->state = WARD_VERIFYING;
    ward->verify_by = moment_plus(moment_now(), patience);
    tell(ward, MESSAGE_VERIFY);
}

void ward_signal(struct ward *ward, int signo)
{
    sigaddset(&ward->handed_on, signo);
    if (signo == SIGTSTP) {
        ward->told_to_stop = ward->state == WARD_RUNNING || ward->state == WARD_VERIFYING;
        if (ward->told_to_stop && ward->child.stopped)
            pause_with(ward, SIGTSTP);
        else if (ward->told_to_stop)
            child_signal(&ward->child, SIGTSTP);
    } else if (signo == SIGCONT) {
        if (ward->state == WARD_RUNNING || ward->state == WARD_LINGERING)
            send(ward, SIGCONT);
    } else {
        send(ward, signo);
    }
}

void ward_changed(struct ward *ward, enum child_change change, int status)
{
    if (change == CHILD_STOPPED)
        note_stop(ward, WSTOPSIG(status));
    else if (change == CHILD_CONTINUED)
        ward->told_to_stop = false;
    else if (change == CHILD_ENDED)
        note_end(ward, status);
}
