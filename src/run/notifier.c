#include "run/notifier.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lock/lock.h"
#include "net/loop.h"
#include "os/file.h"
#include "os/tree.h"
#include "run/channel.h"
#include "run/environment.h"

/* A command that still runs when the time is over has so long to clean up. */
#define CLEAN_UP_NS (1 * NS_PER_SEC)
/* How often to look whether what was killed has ended, and when to leave it to itself. */
#define LOOK_NS     (20 * NS_PER_MS)
#define HOPELESS_NS (2 * NS_PER_SEC)

/* -- the notifier ---------------------------------------------------------------------------- */

struct work {
    const struct job_plan *plan;
    const struct inherited *inherited;
    struct loop *loop;
    struct loop_io socket;
    struct loop_timer timer; /* the supervisor has ended: when to end commands that still run */
    struct moment stay_until;
    struct procfs procfs;
    pid_t commands[NOTICE_EVENTS]; /* 0: not started, or ended */
    bool alone;                    /* the supervisor has ended */
    bool termed;
};

static const char *const event_names[NOTICE_EVENTS] = {"waiting", "held", "lost", "timed-out",
                                                       "not-acquired"};

static void set_number(const char *name, int64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, number);
    setenv(name, text, 1);
}

static void describe_keys(const struct job_plan *plan, const struct notice *notice)
{
    const struct acquire_request *lock = plan->environment->lock;
    struct held_keys held;

    held_keys_choose(&held, lock->keys, lock->key_count, notice->granted ? notice->grants : NULL);
    char *words = environment_keys(held.keys, held.count);
    setenv("RLOCK_KEY", words, 1);
    free(words);
}

static void describe(const struct job_plan *plan, const struct notice *notice)
{
    describe_keys(plan, notice);
    setenv("RLOCK_EVENT", event_names[notice->event], 1);
    setenv("RLOCK_HOLDER", notice->holder, 1);
    setenv("RLOCK_MESSAGE", notice->message, 1);
    set_number("RLOCK_STATUS", notice->status);
    set_number("RLOCK_WAITED_MS", notice->waited / NS_PER_MS);
    set_number("RLOCK_HELD_MS", notice->held / NS_PER_MS);
}

static void start_command(struct work *work, const struct notice *notice)
{
    describe(work->plan, notice);
    pid_t pid = child_start_apart(work->plan->notify, environ, work->inherited);
    if (pid < 0) {
        run_tell_errno(work->plan->events, RUN_NOT_NOTIFIED);
        return;
    }
    work->commands[notice->event] = pid;
}

/* Processes that the commands have started in the background are waited for, too. */
static void leave_if_idle(struct work *work)
{
    if (work->alone && !child_exists())
        loop_stop(work->loop);
}

static void on_notice(struct loop_io *io, int events)
{
    struct work *work = io->owner;
    struct notice notice;
    int got, none;

    (void)events;
    while ((got = channel_receive(io->fd, &notice, sizeof notice, &none)) > 0)
        start_command(work, &notice);
    if (got == 0)
        return;
    loop_remove(work->loop, io);
    work->alone = true;
    work->stay_until = moment_plus(loop_now(work->loop), NOTIFIER_STAY_NS);
    loop_arm(work->loop, &work->timer, moment_plus(work->stay_until, -CLEAN_UP_NS));
    leave_if_idle(work);
}

static void note_end(struct work *work, pid_t pid, int status)
{
    for (size_t i = 0; i < NOTICE_EVENTS; i++) {
        if (work->commands[i] != pid)
            continue;
        work->commands[i] = 0;
        if (status != 0)
            run_tell(work->plan->events,
                     &(struct run_news){.event = RUN_NOTIFIED_BADLY, .number = status});
    }
}

static void on_signal(void *owner, int signo)
{
    struct work *work = owner;
    int status;
    pid_t pid;

    (void)signo;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        note_end(work, pid, status);
    leave_if_idle(work);
}

/* To all that the commands have started. Without /proc, to their process groups. */
static void signal_all(struct work *work, int signo)
{
    const struct tree tree = {.procfs = &work->procfs, .root = getpid(), .leader = -1};

    if (work->procfs.directory || procfs_open(&work->procfs) == 0)
        tree_signal(&tree, signo);
    for (size_t i = 0; i < NOTICE_EVENTS; i++)
        if (work->commands[i] > 0)
            kill(-work->commands[i], signo);
}

static void on_time(struct loop_timer *timer)
{
    struct work *work = timer->owner;
    struct moment now = loop_now(work->loop);

    if (!work->termed) {
        work->termed = true;
        signal_all(work, SIGTERM);
        signal_all(work, SIGCONT);
        loop_arm(work->loop, timer, work->stay_until);
    } else if (!moment_reached(moment_plus(work->stay_until, HOPELESS_NS), now)) {
        signal_all(work, SIGKILL);
        loop_arm(work->loop, timer, moment_plus(now, LOOK_NS));
    } else {
        loop_stop(work->loop);
    }
}

static int run(int socket, const void *arg)
{
    struct work work = *(const struct work *)arg;
    sigset_t chld;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    child_adopt_orphans();
    environ = (char **)(uintptr_t)work.plan->environment->entries;
    unsetenv("RLOCK_OWNER"); /* processes that have it are ended with the command */
    work.socket =
        (struct loop_io){.fd = socket, .events = LOOP_READ, .ready = on_notice, .owner = &work};
    work.timer = (struct loop_timer){.fire = on_time, .owner = &work};
    work.loop = loop_new();
    if (loop_signals(work.loop, &chld, on_signal, &work) < 0)
        return 1;
    loop_add(work.loop, &work.socket);
    return loop_run(work.loop) < 0;
}

/* -- the supervisor -------------------------------------------------------------------------- */

void notifier_start(struct notifier *notifier, const struct job_plan *plan,
                    const struct inherited *inherited)
{
    const struct work work = {.plan = plan, .inherited = inherited};
    int ends[2] = {-1, -1};

    *notifier = (struct notifier){.socket = -1};
    if (!plan->notify)
        return;
    if (channel_pair(ends) == 0 && child_fork_helper("rlock-notifier", ends[1], run, &work) > 0) {
        notifier->socket = ends[0];
    } else {
        run_tell_errno(plan->events, RUN_NOT_NOTIFIED);
        file_close(ends[0]);
    }
    file_close(ends[1]);
}

bool notifier_wants(const struct notifier *notifier, enum notice_event event)
{
    return notifier->socket >= 0 && !notifier->told[event];
}

void notifier_tell(struct notifier *notifier, const struct notice *notice)
{
    notifier->told[notice->event] = true;
    channel_send(notifier->socket, notice, sizeof *notice, -1);
}
