#include "run/notifier.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "lock/lock.h"
#include "net/loop.h"
#include "os/file.h"
#include "os/tree.h"
#include "run/environment.h"

/* A command that still runs when the time is over has so long to clean up. */
#define CLEAN_UP_NS (1 * NS_PER_SEC)
/* How often to look whether what was killed has ended, and when to leave it to itself. */
#define LOOK_NS     (20 * NS_PER_MS)
#define HOPELESS_NS (2 * NS_PER_SEC)
/* A run may last so much longer for a notice that the kernel refuses. */
#define FINISH_NS (1 * NS_PER_SEC)

/* -- the notifier ---------------------------------------------------------------------------- */

/* The notifier's own state. */
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
    bool termed;                   /* TERM was sent to all that still ran then */
};

static const char *const event_names[NOTICE_EVENTS] = {"waiting", "held", "lost", "timed-out",
                                                       "not-acquired"};

/* All that the command is told: entries of its environment. */
enum {
    WORD_KEY,
    WORD_EVENT,
    WORD_HOLDER,
    WORD_MESSAGE,
    WORD_STATUS,
    WORD_WAITED,
    WORD_HELD,
    WORDS
};

/* Makes an entry of the environment, NAME=TEXT. The text is escaped: others wrote it, and it must
 * bring no line breaks and no codes for a terminal into a mail or a log. The caller frees. */
static char *escaped_entry(const char *name, const char *text)
{
    struct strbuf entry = {0};

    strbuf_escape(&entry, "%s=%s", name, text);
    return strbuf_detach(&entry);
}

/* Makes the entries of the environment that tell the command of --notify what has happened. words:
 * of WORDS entries; the caller frees each. */
static void describe_notice(const struct job_plan *plan, const struct notice *notice, char **words)
{
    const struct acquire_request *lock = plan->environment->lock;
    struct held_keys held;

    held_keys_choose(&held, lock->keys, lock->key_count, notice->granted ? notice->grants : NULL);
    char *keys FREED = environment_keys(held.keys, held.count);
    words[WORD_KEY] = strbuf_print("RLOCK_KEY=%s", keys);
    words[WORD_EVENT] = strbuf_print("RLOCK_EVENT=%s", event_names[notice->event]);
    words[WORD_HOLDER] = escaped_entry("RLOCK_HOLDER", notice->holder);
    words[WORD_MESSAGE] = escaped_entry("RLOCK_MESSAGE", notice->message);
    words[WORD_STATUS] = strbuf_print("RLOCK_STATUS=%d", notice->status);
    words[WORD_WAITED] = strbuf_print("RLOCK_WAITED_MS=%" PRId64, notice->waited / NS_PER_MS);
    words[WORD_HELD] = strbuf_print("RLOCK_HELD_MS=%" PRId64, notice->held / NS_PER_MS);
}

/* Starts the command of --notify for a notice, beside those of others; a failure is reported to the
 * user. */
static void start_command(struct work *work, const struct notice *notice)
{
    char *words[WORDS + 1] = {NULL};

    describe_notice(work->plan, notice, words);
    char **environment FREED = environment_beside(work->plan->environment, words);
    const struct child_plan plan = {
        .environment = environment, .start_before = MOMENT_NEVER, .inherited = work->inherited};
    pid_t pid = child_start_apart(work->plan->notify, &plan);
    if (pid < 0)
        run_tell_errno(work->plan->events, RUN_NOT_NOTIFIED);
    else
        work->commands[notice->event] = pid;
    for (size_t i = 0; i < WORDS; i++)
        free(words[i]);
}

/* Ends the notifier, if the supervisor has ended, and so have all that the commands have
 * started. */
static void leave_if_idle(struct work *work)
{
    if (work->alone && !child_exists())
        loop_stop(work->loop);
}

/* The socket: runs the command for each notice. When the supervisor has ended, gives those that
 * still run the rest of their time. */
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

/* SIGCHLD: reaps commands of --notify, and processes that they have left. A command that has failed
 * is reported to the user. */
static void on_signal(void *owner, int signo)
{
    struct work *work = owner;
    int status;
    pid_t pid;

    (void)signo;
    while ((pid = child_reap(-1, &status)) > 0) {
        for (size_t i = 0; i < NOTICE_EVENTS; i++) {
            if (work->commands[i] != pid)
                continue;
            work->commands[i] = 0;
            if (status != 0)
                run_tell(work->plan->events,
                         &(struct run_news){.event = RUN_NOTIFIED_BADLY, .number = status});
        }
    }
    leave_if_idle(work);
}

/* Sends a signal to all that the commands have started, as far as /proc shows that, and to their
 * groups. */
static void signal_all(struct work *work, int signo)
{
    const struct tree tree = {.procfs = &work->procfs, .root = getpid(), .leader = -1};

    if (work->procfs.directory || procfs_open(&work->procfs) == 0)
        tree_signal(&tree, signo);
    for (size_t i = 0; i < NOTICE_EVENTS; i++)
        if (work->commands[i] > 0)
            child_signal_group(work->commands[i], signo);
}

/* The timer: the time of the commands that still run is over. Sends TERM, then KILL again and
 * again, and leaves them to themselves when that is hopeless. */
static void on_time(struct loop_timer *timer)
{
    struct work *work = timer->owner;
    struct moment now = loop_now(work->loop);

    if (!work->termed) {
        work->termed = true;
        signal_all(work, SIGTERM);
        signal_all(work, SIGCONT); /* they need no lock, so no lease is looked at before */
        loop_arm(work->loop, timer, work->stay_until);
    } else if (!moment_reached(moment_plus(work->stay_until, HOPELESS_NS), now)) {
        signal_all(work, SIGKILL);
        loop_arm(work->loop, timer, moment_plus(now, LOOK_NS));
    } else {
        loop_stop(work->loop);
    }
}

/* The notifier's process, which outlives its parent for the commands that it has started. arg: a
 * struct work to begin with. Returns its exit status. */
static int run_notifier(int socket, const void *arg)
{
    struct work work = *(const struct work *)arg;
    sigset_t chld;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    child_adopt_orphans();
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

void notifier_start(struct notifier *notifier, struct loop *loop, const struct job_plan *plan,
                    const struct inherited *inherited)
{
    const struct work work = {.plan = plan, .inherited = inherited};
    int ends[2] = {-1, -1};

    *notifier = (struct notifier){0};
    if (!plan->notify)
        return;
    if (channel_pair(ends) == 0 &&
        child_fork_helper("rlock-notifier", ends[1], run_notifier, &work) > 0) {
        notifier->outbox = outbox_new(loop, ends[0]);
    } else {
        run_tell_errno(plan->events, RUN_NOT_NOTIFIED);
        file_close(ends[0]);
    }
    file_close(ends[1]);
}

bool notifier_wants(const struct notifier *notifier, enum notice_event event)
{
    return notifier->outbox && !notifier->told[event];
}

void notifier_tell(struct notifier *notifier, const struct notice *notice)
{
    notifier->told[notice->event] = true;
    outbox_send(notifier->outbox, notice, sizeof *notice, -1);
}

void notifier_finish(struct notifier *notifier, const struct run_events *events)
{
    if (!outbox_finish(notifier->outbox, FINISH_NS))
        run_tell_errno(events, RUN_NOT_NOTIFIED);
    outbox_free(notifier->outbox);
    notifier->outbox = NULL;
}
