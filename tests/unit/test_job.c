/* The command under its deadline: that it is not continued without its lease, nor ended without
 * need, and that the command of --stop begins in time, and ends with it. */
#include "run/job.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel_clock.h"
#include "tap.h"

static int64_t slept;   /* ns, for which this process has stood still */
static pid_t sleepless; /* the process that has not, but all others for a minute; 0: any */
static bool terminal_is_slow;
static int conts, ends; /* signals that were sent */
static int usr1s;       /* those of --on-lost */
static int news_before; /* that the user was told before them */

/* In place of the C library's. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = kernel_time(clock, time);

    time->tv_sec += slept / NS_PER_SEC + (sleepless && sleepless != getpid() ? 60 : 0);
    return result;
}

#define COMMAND 4000000 /* which nothing is done to */

/* In place of the C library's. */
int kill(pid_t pid, int signo)
{
    conts += signo == SIGCONT;
    ends += signo == SIGTERM || signo == SIGKILL;
    usr1s += signo == SIGUSR1;
    return pid == -COMMAND ? 0 : (int)syscall(SYS_kill, pid, signo);
}

#define TERMINAL 1000

/* In place of the C library's: this job has the terminal. */
pid_t tcgetpgrp(int fd)
{
    return fd == TERMINAL ? getpgrp() : -1;
}

/* In place of the C library's: this process may be stopped on the way back. */
int tcsetpgrp(int fd, pid_t group)
{
    (void)fd, (void)group;
    if (terminal_is_slow)
        slept += 60 * NS_PER_SEC;
    return 0;
}

static void tell_nobody(void *arg, const struct run_news *news)
{
    (void)arg, (void)news;
}

static void note_news(void *arg, const struct run_news *news)
{
    (void)arg, (void)news;
    news_before += usr1s == 0;
}

static const struct run_events quiet = {.tell = tell_nobody}, noting = {.tell = note_news};
static struct environment environment;
static const struct job_plan plan = {
    .events = &quiet, .environment = &environment, .renew = true, .kill_after = NS_PER_SEC};
static struct run_shared shared;
static struct agent_process agent = {.shared = &shared, .gone = true};

static struct lease lease_for(int64_t ns)
{
    return (struct lease){moment_plus(moment_now(), ns), 10 * NS_PER_SEC};
}

/* A command whose lease lasts so long from now on. */
static struct job job_in(enum job_state state, int64_t lasts)
{
    slept = 0;
    conts = ends = 0;
    return (struct job){
        .plan = &plan,
        .state = state,
        .agent = &agent,
        .terminal = {.fd = TERMINAL, .job = getpgrp()},
        .child = {.pid = COMMAND, .group = COMMAND, .handle = -1, .note = &shared.command},
        .acquired = moment_now(),
        .lease = lease_for(lasts)};
}

/* A stopped command had the terminal, and its lock has been verified. Returns whether it is
 * continued. */
static bool is_continued(bool slow)
{
    struct job job = job_in(JOB_VERIFYING, 10 * NS_PER_SEC);

    terminal_is_slow = slow;
    job.child.stopped = job.had_terminal = true;
    job_extend(&job, lease_for(10 * NS_PER_SEC));
    return conts > 0;
}

/* Somebody has stopped a command, of which this process has not heard, and continues that. Returns
 * whether the command is continued. */
static bool is_continued_unheard(int64_t lasts)
{
    struct job job = job_in(JOB_RUNNING, lasts);
    siginfo_t info;
    pid_t child = fork();

    if (child == 0)
        for (;;)
            raise(SIGSTOP);
    waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOWAIT);
    job.child.pid = job.child.group = child;
    job_signal(&job, SIGCONT);
    syscall(SYS_kill, child, SIGKILL);
    waitpid(child, NULL, 0);
    return conts > 0;
}

/* A process with a child, which holds that end of a pipe for as long as it lives, and whose pid is
 * written to it. */
static pid_t fork_parent(int end)
{
    pid_t parent = fork();

    if (parent != 0)
        return parent;
    pid_t pid = fork();
    if (pid > 0 && write(end, &pid, sizeof pid) > 0)
        close(end);
    for (;;)
        pause();
}

/* The agent is stopped while its command of --stop runs, and KILL is due or not. Returns whether
 * that command is killed. */
static bool is_killed_of_agent(int64_t lasts)
{
    struct job job = job_in(JOB_STOPPING, lasts);
    int ends_of_pipe[2];
    pid_t pid;

    if (pipe(ends_of_pipe) != 0 || procfs_open(&job.procfs) != 0)
        return false;
    struct agent_process stopped = {
        .pid = fork_parent(ends_of_pipe[1]), .shared = &shared, .gone = true};
    struct pollfd end = {.fd = ends_of_pipe[0], .events = POLLIN};
    close(ends_of_pipe[1]);
    if (read(end.fd, &pid, sizeof pid) != sizeof pid)
        return false;
    atomic_store(&shared.stop_command, pid);
    job.agent = &stopped;
    job.child.pid = job.child.group = 0;
    job.stop = (struct kill_tree){
        .child = &job.child,
        .tree = {.procfs = &job.procfs, .root = getpid(), .except = stopped.pid, .leader = -1}};
    job.termed = true;
    job_tick(&job);
    bool killed = poll(&end, 1, lasts > 0 ? 0 : 10000) == 1;
    atomic_store(&shared.stop_command, 0);
    syscall(SYS_kill, pid, SIGKILL);
    syscall(SYS_kill, stopped.pid, SIGKILL);
    waitpid(stopped.pid, NULL, 0);
    close(end.fd);
    procfs_close(&job.procfs);
    return killed;
}

/* A command that continues without its lock was stopped when that was lost. Returns whether it is
 * continued at once. */
static bool is_continued_lost(void)
{
    static const struct job_plan continues = {
        .events = &quiet, .environment = &environment, .renew = true, .on_lost = ON_LOST_CONTINUE};
    struct job job = job_in(JOB_PAUSED, -NS_PER_SEC);

    job.plan = &continues;
    job.fate = FATE_LOST;
    job.child.stopped = true;
    job_verify(&job);
    return conts > 0 && job.state == JOB_RUNNING;
}

/* The command's process was stopped before it became the command, whose lock the agent has released
 * since. Returns whether it is continued, so that it ends. */
static bool is_continued_released(void)
{
    struct job job = job_in(JOB_PAUSED, -NS_PER_SEC);

    job.cleared = true;
    job.child.stopped = true;
    job_verify(&job);
    return conts > 0 && job.state == JOB_RUNNING;
}

/* Returns the status of a command of --stop, as waitpid() sets it. late: its process stands still
 * before it is executed. */
static int status_of_stop(bool late)
{
    static char *nothing[] = {NULL};
    static struct environment empty = {.entries = nothing};
    static const struct job_plan with_stop = {
        .events = &quiet, .environment = &empty, .stop = "exit 3"};
    struct stop_command stop = {.plan = &with_stop};
    int status = -1;

    sleepless = late ? getpid() : 0;
    if (stop_command_start(&stop, NULL, NULL, moment_plus(moment_now(), 30 * NS_PER_SEC)))
        waitpid(stop.pid, &status, 0);
    sleepless = 0;
    return status;
}

/* Whether the loss of its lock ends the command. cleared: it has ended by itself, and the agent has
 * released the lock. */
static bool is_ended_by_loss(bool cleared)
{
    struct job job = job_in(JOB_RUNNING, 10 * NS_PER_SEC);

    job.cleared = cleared;
    job_lose(&job, &(struct run_reason){.cause = RUN_CAUSE_LOSS + LOSS_REVOKED});
    free(job.verdict);
    return job.state == JOB_STOPPING || ends > 0;
}

/* A command wants a signal when its lock is lost. Returns whether it has got that by the time that
 * the user is told: the command may end meanwhile. */
static bool is_asked_before_told(void)
{
    static const struct job_plan asks = {.events = &noting,
                                         .environment = &environment,
                                         .renew = true,
                                         .on_lost = ON_LOST_SIGNAL,
                                         .lost_signal = SIGUSR1};
    struct job job = job_in(JOB_RUNNING, 10 * NS_PER_SEC);

    job.plan = &asks;
    job_lose(&job, &(struct run_reason){.cause = RUN_CAUSE_LOSS + LOSS_REVOKED});
    free(job.verdict);
    return usr1s == 1 && news_before == 0;
}

/* The agent has died while it ended the command. cleared: it had seen that this has ended. Returns
 * whether this process ends the command from then on. */
static bool is_ended_for_agent(bool cleared)
{
    struct job job = job_in(JOB_STOPPING, 10 * NS_PER_SEC);

    job.cleared = cleared;
    job.stopping_since = awake_now();
    job.stop = (struct kill_tree){.child = &job.child,
                                  .tree = {.procfs = &job.procfs, .group = COMMAND, .leader = -1}};
    atomic_store(&shared.ending, 1);
    job_agent_died(&job);
    atomic_store(&shared.ending, 0);
    return job.ends_command;
}

/* The command's process notes why it cannot be executed, 0: it has not got that far, or is barred;
 * and is killed. Returns what is taken for the fault. */
static int fault_of_killed(int noted, bool barred, enum fate *fate)
{
    struct job job = job_in(JOB_RUNNING, 10 * NS_PER_SEC);

    shared.command.fault = noted;
    atomic_store(&shared.command.group, barred ? -1 : COMMAND);
    job_changed(&job, CHILD_ENDED, SIGKILL);
    shared.command.fault = 0;
    atomic_store(&shared.command.group, 0);
    free(job.verdict);
    *fate = job.fate;
    return job.fault;
}

int main(void)
{
    enum fate fate;

    tap_ok(is_continued(false), "a command whose lock was verified is continued");
    tap_ok(!is_continued(true), "not when the lease ends while it is given the terminal");
    tap_ok(is_continued_unheard(10 * NS_PER_SEC), "a stop was not heard of: it is continued");
    tap_ok(!is_continued_unheard(-NS_PER_SEC), "not when its lease was slept through");
    tap_ok(is_continued_lost(), "one that continues without its lock does not wait for that");
    tap_ok(is_continued_released(), "nor one that was not started before its lock was released");
    tap_ok(WEXITSTATUS(status_of_stop(false)) == 3, "the command of --stop is executed");
    tap_ok(status_of_stop(true) == SIGKILL, "not when its time is over by then");
    tap_ok(!is_killed_of_agent(60 * NS_PER_SEC), "the agent's --stop has until KILL");
    tap_ok(is_killed_of_agent(-NS_PER_SEC), "then it is killed, though the agent is stopped");
    tap_ok(is_ended_by_loss(false), "a loss ends the command");
    tap_ok(!is_ended_by_loss(true), "not one whose lock its agent has released");
    tap_ok(is_asked_before_told(),
           "--on-lost's signal is sent before the user is told of the loss");
    tap_ok(is_ended_for_agent(false), "a command whose agent died while it ended it is ended");
    tap_ok(!is_ended_for_agent(true), "not one that the agent had seen to have ended");
    tap_ok(fault_of_killed(0, false, &fate) == 0 && fate == FATE_NONE,
           "a command that somebody has killed has ended");
    tap_ok(fault_of_killed(ETIME, false, &fate) == ETIME && fate == FATE_LOST,
           "no command ran where its process was killed as it found that it was too late");
    tap_ok(fault_of_killed(ENOENT, false, &fate) == ENOENT && fate == FATE_NOT_EXECUTED,
           "nor where it had found no file");
    tap_ok(fault_of_killed(0, true, &fate) == ETIME && fate == FATE_LOST,
           "nor where the agent had barred it before");
    return tap_done();
}
