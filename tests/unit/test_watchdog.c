/* The agent's watch over the supervisor: how long it kills what does not die, what it remembers of
 * an earlier grant, how long it lets a command end, and of which command nothing was told. */
#include "run/watchdog.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel_clock.h"
#include "tap.h"

static struct loop *until_killed;
static pid_t killed, killed_first;
static int unborn;        /* looks for a process group in which none is there */
static bool unborn_again; /* KILL empties it at once */
static int alarms;        /* losses that the supervisor was told of */
static int untold_terms;  /* that came before the first of them */
static struct run_shared shared;
static bool bars_unclaimed; /* --stop was barred at a look, and the end was not claimed */

/* In place of the C library's: nothing dies of it. */
int kill(pid_t pid, int signo)
{
    if (atomic_load(&shared.stop_note.group) < 0 && atomic_load(&shared.ending) == 0)
        bars_unclaimed = true;
    if (signo == 0 && unborn > 0) {
        unborn--;
        errno = ESRCH;
        return -1;
    }
    untold_terms += signo == SIGTERM && alarms == 0;
    if (signo == SIGKILL) {
        killed = pid;
        killed_first = killed_first ? killed_first : pid;
    }
    if (signo == SIGKILL && unborn_again)
        unborn = 1000;
    if (signo == SIGKILL && until_killed)
        loop_stop(until_killed);
    return 0;
}

/* The machine is suspended from then on, for so long. */
static struct moment suspended_from = MOMENT_NEVER;
static int64_t suspended_for;

/* In place of the C library's. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = kernel_time(clock, time);

    if (clock == CLOCK_MONOTONIC && suspended_from.ns != INT64_MAX) {
        int64_t since = moment_until(suspended_from, moment_now());
        int64_t ns = time->tv_sec * NS_PER_SEC + time->tv_nsec;
        ns -= since < suspended_for ? since : suspended_for;
        *time = (struct timespec){ns / NS_PER_SEC, ns % NS_PER_SEC};
    }
    return result;
}

static struct procfs none;
static const struct job_plan plan = {.renew = true, .kill_after = NS_PER_SEC};
static struct moment given_up;

static void do_nothing(void *arg)
{
    (void)arg;
}

static void on_failed(void *arg, enum tree_state state)
{
    (void)state;
    given_up = moment_now();
    loop_stop(arg);
}

static void do_nothing_of(void *arg, enum tree_state state)
{
    (void)arg, (void)state;
}

/* A watchdog whose events do nothing, over a command that cannot be found. */
static struct watchdog watchdog_for(const struct job_plan *its_plan, struct loop *loop)
{
    return (struct watchdog){.plan = its_plan,
                             .shared = &shared,
                             .stop_command = {.plan = its_plan},
                             .tree = {.procfs = &none, .group = 4000000, .leader = -1},
                             .listen = do_nothing,
                             .alarmed = do_nothing,
                             .cleared = do_nothing,
                             .ended = do_nothing,
                             .failed = do_nothing_of,
                             .arg = loop};
}

static void on_time(struct loop_timer *timer)
{
    loop_stop(timer->owner);
}

/* The supervisor dies when its lease has been over for so long. Without /proc, only the process
 * group is asked for. Returns after how many ms killing is given up. */
static int64_t kill_for(int64_t late)
{
    struct loop *loop = loop_new();
    struct moment start = moment_now();
    struct loop_timer most = {.fire = on_time, .owner = loop};
    struct watchdog watchdog = watchdog_for(&plan, loop);

    watchdog.tree.owner = "o";
    watchdog.failed = on_failed;
    watchdog_init(&watchdog, loop);
    watchdog_watch(&watchdog, (struct lease){moment_plus(start, -late), 2 * NS_PER_SEC});
    watchdog_acknowledge(&watchdog);
    watchdog_supervisor_died(&watchdog);
    loop_arm(loop, &most, moment_plus(start, 8 * NS_PER_SEC));
    if (!given_up.ns)
        loop_run(loop);
    loop_free(loop);
    return moment_until(start, given_up) / NS_PER_MS;
}

static int cleared;

static void on_cleared(void *arg)
{
    cleared++;
    loop_stop(arg);
}

/* A grant is offered to a supervisor that is stopped until it is over, and then another one, which
 * lasts. Returns how often nothing was found to run under one. */
static int clear_twice(void)
{
    static const struct job_plan short_plan = {.renew = true, .kill_after = 50 * NS_PER_MS};
    struct procfs procfs = {0};
    struct loop *loop = loop_new();
    struct loop_timer most = {.fire = on_time, .owner = loop};
    struct watchdog watchdog = watchdog_for(&short_plan, loop);

    watchdog.tree = (struct tree){.procfs = &procfs, .root = getpid(), .leader = -1};
    watchdog.cleared = on_cleared;
    if (procfs_open(&procfs) != 0)
        return 1;
    watchdog_init(&watchdog, loop);
    watchdog_watch(&watchdog, (struct lease){moment_plus(moment_now(), NS_PER_SEC), NS_PER_SEC});
    loop_run(loop);
    watchdog_watch(&watchdog,
                   (struct lease){moment_plus(moment_now(), 60 * NS_PER_SEC), 60 * NS_PER_SEC});
    loop_arm(loop, &most, moment_plus(moment_now(), 500 * NS_PER_MS));
    loop_run(loop);
    loop_free(loop);
    procfs_close(&procfs);
    return cleared;
}

static void tell_nobody(void *arg, const struct run_news *news)
{
    (void)arg;
    (void)news;
}

/* A grant is offered to a supervisor that is stopped until it is over, and has a child, such as the
 * command of --notify, but no command yet. Returns whether the command of --stop was run. */
static bool stops_nothing(void)
{
    static char *nothing[] = {NULL};
    static struct environment environment = {.entries = nothing};
    static const struct run_events quiet = {.tell = tell_nobody};
    static const struct job_plan with_stop = {.events = &quiet,
                                              .environment = &environment,
                                              .renew = true,
                                              .kill_after = 500 * NS_PER_MS,
                                              .stop = "exit 0"};
    struct procfs procfs = {0};
    struct loop *loop = loop_new();
    struct loop_timer most = {.fire = on_time, .owner = loop};
    struct watchdog watchdog = watchdog_for(&with_stop, loop);
    pid_t child = fork();

    if (child == 0) {
        pause();
        _exit(0);
    }
    watchdog.tree = (struct tree){.procfs = &procfs, .root = getpid(), .leader = -1};
    watchdog.cleared = on_cleared;
    if (procfs_open(&procfs) == 0) {
        watchdog_init(&watchdog, loop);
        watchdog_watch(&watchdog,
                       (struct lease){moment_plus(moment_now(), NS_PER_SEC), NS_PER_SEC});
        loop_arm(loop, &most, moment_plus(moment_now(), 1500 * NS_PER_MS));
        loop_run(loop);
        procfs_close(&procfs);
    }
    syscall(SYS_kill, child, SIGKILL);
    waitpid(child, NULL, 0);
    loop_free(loop);
    return watchdog.stop_command.begun || watchdog.phase == WATCHDOG_WATCHING;
}

/* The supervisor has claimed the grant, and is stopped when its command's process has noted that
 * process group, 0: when there is none yet; the lock is lost. Without /proc. Returns whether that
 * group gets KILL. */
static bool kills_untold(int group)
{
    struct loop *loop = loop_new();
    struct loop_timer most = {.fire = on_time, .owner = loop};
    struct watchdog watchdog = watchdog_for(&plan, loop);

    atomic_store(&shared.command.group, group);
    watchdog.tree.group = 0;
    watchdog.failed = on_failed;
    killed = 0;
    until_killed = loop;
    watchdog_init(&watchdog, loop);
    watchdog_watch(&watchdog, (struct lease){moment_plus(moment_now(), NS_PER_SEC), NS_PER_SEC});
    watchdog_lose(&watchdog, SUPERVISOR_ABSENT);
    loop_arm(loop, &most, moment_plus(moment_now(), 10 * NS_PER_SEC));
    loop_run(loop);
    until_killed = NULL;
    loop_free(loop);
    return group > 0 && killed == -group;
}

/* The supervisor has claimed the grant, and is killed when its command's process has noted nothing
 * yet. Returns whether that is barred. */
static bool bars_orphan(void)
{
    struct loop *loop = loop_new();
    struct watchdog watchdog = watchdog_for(&plan, loop);

    atomic_store(&shared.command.group, 0);
    watchdog.tree.group = 0;
    watchdog_init(&watchdog, loop);
    watchdog_watch(&watchdog, (struct lease){moment_plus(moment_now(), NS_PER_SEC), NS_PER_SEC});
    watchdog_supervisor_died(&watchdog);
    loop_free(loop);
    return atomic_load(&shared.command.group) == -1;
}

/* The supervisor dies while the terminal has stopped it with its command, and a renewal that was
 * under way is answered. Returns whether the lock is still to be renewed for it. */
static bool stays_paused(void)
{
    struct loop *loop = loop_new();
    struct watchdog watchdog = watchdog_for(&plan, loop);
    struct lease lease = {moment_plus(moment_now(), 60 * NS_PER_SEC), 60 * NS_PER_SEC};

    watchdog_init(&watchdog, loop);
    watchdog_watch(&watchdog, lease);
    watchdog_pause(&watchdog);
    watchdog_supervisor_died(&watchdog);
    watchdog_watch(&watchdog, lease);
    watchdog_dismiss(&watchdog);
    loop_free(loop);
    return watchdog.known.paused;
}

/* The supervisor is stopped until the lock must be lost, and the command runs. Returns whether the
 * end was claimed whenever this process might have died after it had barred the supervisor's
 * command of --stop: then the supervisor runs that (job_agent_died()). */
static bool claims_before_it_bars(void)
{
    struct loop *loop = loop_new();
    struct loop_timer most = {.fire = on_time, .owner = loop};
    struct watchdog watchdog = watchdog_for(&plan, loop);

    run_disclaim_end(&shared);
    bars_unclaimed = false;
    watchdog_init(&watchdog, loop);
    watchdog_watch(&watchdog,
                   (struct lease){moment_plus(moment_now(), 2 * NS_PER_SEC), 60 * NS_PER_SEC});
    loop_arm(loop, &most, moment_plus(moment_now(), 100 * NS_PER_MS));
    loop_run(loop);
    loop_free(loop);
    return !bars_unclaimed && atomic_load(&shared.stop_note.group) < 0;
}

static void on_alarmed(void *arg)
{
    alarms++;
    loop_stop(arg);
}

/* The lock is lost, and the supervisor is silent. Returns whether that is told before its command
 * gets TERM: it may be continued then, and find that this has ended. */
static bool tells_before_term(void)
{
    struct loop *loop = loop_new();
    struct loop_timer most = {.fire = on_time, .owner = loop};
    struct watchdog watchdog = watchdog_for(&plan, loop);

    watchdog.alarmed = on_alarmed;
    alarms = untold_terms = 0;
    watchdog_init(&watchdog, loop);
    watchdog_watch(&watchdog,
                   (struct lease){moment_plus(moment_now(), 60 * NS_PER_SEC), 60 * NS_PER_SEC});
    watchdog_lose(&watchdog, SUPERVISOR_ABSENT);
    loop_arm(loop, &most, moment_plus(moment_now(), 10 * NS_PER_SEC));
    loop_run(loop);
    loop_free(loop);
    return alarms == 1 && untold_terms == 0;
}

/* The same, and the command has 10 ms. Returns whether it is looked at again when they are over, at
 * the latest. */
static bool looks_in_time(void)
{
    static const struct job_plan quick = {.renew = true, .kill_after = 10 * NS_PER_MS};
    struct loop *loop = loop_new();
    struct watchdog watchdog = watchdog_for(&quick, loop);

    run_disclaim_end(&shared);
    watchdog.alarmed = on_alarmed;
    watchdog_init(&watchdog, loop);
    watchdog_watch(&watchdog,
                   (struct lease){moment_plus(moment_now(), 60 * NS_PER_SEC), 60 * NS_PER_SEC});
    watchdog_lose(&watchdog, SUPERVISOR_ABSENT);
    loop_run(loop);
    loop_free(loop);
    return watchdog.timer.due.ns <= watchdog.tree.kill_at.ns + NS_PER_MS;
}

/* KILL is due, and the command's process is born behind the first look. Returns whether the
 * supervisor is told that this was killed. */
static bool tells_of_newborn(void)
{
    struct loop *loop = loop_new();
    struct loop_timer most = {.fire = on_time, .owner = loop};
    struct watchdog watchdog = watchdog_for(&plan, loop);

    watchdog.alarmed = on_alarmed;
    watchdog.failed = on_failed;
    alarms = 0;
    unborn = 1;
    unborn_again = true;
    watchdog_init(&watchdog, loop);
    watchdog_watch(&watchdog, (struct lease){moment_plus(moment_now(), NS_PER_MS), NS_PER_SEC});
    loop_arm(loop, &most, moment_plus(moment_now(), 2 * NS_PER_SEC));
    loop_run(loop);
    loop_free(loop);
    unborn = 0;
    unborn_again = false;
    return alarms == 1;
}

/* KILL is due, and the command of --stop still runs. Returns whether that is killed before the
 * command: to look for all of its processes takes time, in which this process may be stopped. */
static bool kills_stop_command_first(void)
{
    struct loop *loop = loop_new();
    struct watchdog watchdog = watchdog_for(&plan, loop);

    watchdog.stop_command.pid = 3000000;
    killed = killed_first = 0;
    until_killed = loop;
    watchdog_init(&watchdog, loop);
    watchdog_watch(&watchdog, (struct lease){moment_plus(moment_now(), NS_PER_MS), NS_PER_SEC});
    loop_run(loop);
    until_killed = NULL;
    loop_free(loop);
    return killed_first == -3000000 && killed == -4000000;
}

static pid_t stop_of_other;
static bool has_outlived; /* that process, the end of the watch */

static void on_end_of_watch(void *arg)
{
    siginfo_t info = {0};

    has_outlived = waitid(P_PID, (id_t)stop_of_other, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
                   info.si_pid == 0;
    loop_stop(arg);
}

/* KILL is due, and the supervisor is stopped beside its command of --stop, which is not among the
 * processes of the command, as it could not get into that one's cgroup. Returns whether it is
 * killed before nothing counts as left. */
static bool kills_stop_command_of_other(void)
{
    struct procfs procfs = {0};
    struct loop *loop = loop_new();
    struct loop_timer most = {.fire = on_time, .owner = loop};
    struct watchdog watchdog = watchdog_for(&plan, loop);

    stop_of_other = fork();
    while (stop_of_other == 0)
        pause();
    has_outlived = true;
    watchdog.tree =
        (struct tree){.procfs = &procfs, .root = getpid(), .except = stop_of_other, .leader = -1};
    watchdog.cleared = on_end_of_watch;
    atomic_store(&shared.stop_note.group, stop_of_other);
    bool opened = procfs_open(&procfs) == 0;
    watchdog_init(&watchdog, loop);
    watchdog_watch(&watchdog, (struct lease){moment_plus(moment_now(), NS_PER_MS), NS_PER_SEC});
    loop_arm(loop, &most, moment_plus(moment_now(), 20 * NS_PER_SEC));
    loop_run(loop);
    run_disclaim_end(&shared);
    syscall(SYS_kill, stop_of_other, SIGKILL);
    waitpid(stop_of_other, NULL, 0);
    loop_free(loop);
    procfs_close(&procfs);
    return opened && !has_outlived;
}

/* The same, and the host has nothing left to look at that one with, for three looks that find no
 * process of the command, and then find one. Returns whether they are made. */
static bool waits_for_unseen_stop_command(void)
{
    struct loop *loop = loop_new();
    struct watchdog watchdog = watchdog_for(&plan, loop);

    watchdog.tree.root = getpid();
    watchdog.failed = on_failed;
    given_up = (struct moment){0};
    unborn = 3;
    until_killed = loop;
    atomic_store(&shared.stop_note.group, 3000000);
    watchdog_init(&watchdog, loop);
    watchdog_watch(&watchdog, (struct lease){moment_plus(moment_now(), NS_PER_MS), NS_PER_SEC});
    loop_run(loop);
    run_disclaim_end(&shared);
    until_killed = NULL;
    unborn = 0;
    loop_free(loop);
    return !given_up.ns;
}

/* The supervisor says that it ends its command, and is stopped; the machine is suspended at once.
 * Returns after how many ms the command gets KILL. */
static int64_t end_suspended(int64_t ns, int64_t lease)
{
    struct loop *loop = loop_new();
    struct moment start = moment_now();
    struct watchdog watchdog = watchdog_for(&plan, loop);

    suspended_from = start;
    suspended_for = ns;
    until_killed = loop;
    watchdog_init(&watchdog, loop);
    watchdog_watch(&watchdog, (struct lease){moment_plus(start, lease), lease});
    watchdog_acknowledge(&watchdog);
    watchdog_note_stopping(&watchdog, awake_now());
    loop_run(loop);
    until_killed = NULL;
    suspended_from = MOMENT_NEVER;
    loop_free(loop);
    return moment_until(start, moment_now()) / NS_PER_MS;
}

static struct watchdog *listener;

static void hear_acknowledgement(void *arg)
{
    watchdog_acknowledge(listener);
    loop_stop(arg);
}

/* TERM is due, and the supervisor has acknowledged the lease, which was not read yet: an agent that
 * was stopped meanwhile finds both. Returns whether it leaves the command to the supervisor. */
static bool hears_before_it_acts(void)
{
    static const struct job_plan patient = {.renew = true, .kill_after = 10 * NS_PER_SEC};
    struct loop *loop = loop_new();
    struct moment start = moment_now();
    struct loop_timer most = {.fire = on_time, .owner = loop};
    struct watchdog watchdog = watchdog_for(&patient, loop);

    listener = &watchdog;
    watchdog.listen = hear_acknowledgement;
    watchdog.alarmed = on_alarmed;
    alarms = 0;
    watchdog_init(&watchdog, loop);
    watchdog_watch(&watchdog, (struct lease){moment_plus(start, 9 * NS_PER_SEC), 60 * NS_PER_SEC});
    loop_arm(loop, &most, moment_plus(start, 5 * NS_PER_SEC));
    loop_run(loop);
    loop_free(loop);
    return alarms == 0 && watchdog.phase == WATCHDOG_WATCHING;
}

int main(void)
{
    int64_t ms = kill_for(60 * NS_PER_SEC);

    tap_ok(ms >= 4900,
           "the machine was suspended until a minute after the lease: given up after %d ms",
           (int)ms);
    tap_ok(clear_twice() == 1, "a grant that lasts is not measured by the end of one before it");
    tap_ok(!stops_nothing(), "--stop is not run for a supervisor that has no command yet");
    tap_ok(kills_untold(4000000), "a command of which the supervisor has not told gets KILL");
    kills_untold(0);
    tap_ok(atomic_load(&shared.command.group) == -1,
           "one that was not started when nothing was left to end is not executed");
    tap_ok(bars_orphan(), "nor is one whose supervisor is killed before");
    tap_ok(claims_before_it_bars(),
           "an agent that dies when it has barred the supervisor's --stop has claimed the end");
    tap_ok(!stays_paused(), "rlock is killed while it is paused: the lock is not renewed for ever");
    tap_ok(tells_of_newborn(),
           "a command is born between look and KILL: it has not ended by itself");
    tap_ok(kills_stop_command_first(), "the command of --stop is killed before the command");
    tap_ok(kills_stop_command_of_other(), "so is that of a stopped supervisor, wherever it is");
    tap_ok(waits_for_unseen_stop_command(), "one that cannot be looked at counts as live");
    tap_ok(tells_before_term(), "the supervisor is told of a loss before its command gets TERM");
    tap_ok(hears_before_it_acts(), "what the supervisor has said is heard before TERM");
    tap_ok(looks_in_time(), "KILL does not wait for the next look");
    ms = end_suspended(500 * NS_PER_MS, 60 * NS_PER_SEC);
    tap_ok(ms >= 1500, "the machine was suspended for half of --kill-after: KILL after %d ms",
           (int)ms);
    ms = end_suspended(60 * NS_PER_SEC, 2 * NS_PER_SEC);
    tap_ok(ms >= 1000 && ms < 30000, "suspended until the lease ends: KILL after %d ms", (int)ms);
    return tap_done();
}
