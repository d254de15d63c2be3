/* A turn polls, takes signals, fires urgent timers, calls the descriptors that are ready, and fires
 * all timers. Watchers and timers are linked lists through their owners' structs: "next" is the
 * loop's. A callback may add and remove any of them. */
#include "net/loop.h"

#include "base/mem.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define OWN_POLLS 2 /* the signalfd and the timerfd come first */

struct loop {
    struct loop_io *ios;
    size_t io_count;
    struct loop_timer *timers; /* the earliest first */
    struct loop_owned *owned;
    struct pollfd *polls;    /* this turn's, made anew each turn */
    struct loop_io **polled; /* whose they are; NULL when removed during the turn */
    size_t polled_count;     /* 0 when they have been called */
    size_t room;             /* of both lists */
    int signal_fd;
    int timer_fd;        /* -1 until a timer has to be waited for */
    struct moment armed; /* the time of timer_fd; never too late, perhaps too early */
    struct moment now;
    bool stopped;
    void (*caught)(void *owner, int signo);
    void *owner; /* of "caught" */
};

struct loop *loop_new(void)
{
    struct loop *loop = mem_zeroed(sizeof *loop);

    loop->signal_fd = -1;
    loop->timer_fd = -1;
    loop->armed = MOMENT_NEVER;
    loop->now = moment_now();
    return loop;
}

void loop_free(struct loop *loop)
{
    struct loop_owned *owned;

    if (!loop)
        return;
    while ((owned = loop->owned)) {
        loop_disown(loop, owned);
        owned->discard(owned);
    }
    if (loop->signal_fd >= 0)
        close(loop->signal_fd);
    if (loop->timer_fd >= 0)
        close(loop->timer_fd);
    free(loop->polls);
    free(loop->polled);
    free(loop);
}

void loop_own(struct loop *loop, struct loop_owned *owned)
{
    owned->next = loop->owned;
    loop->owned = owned;
}

void loop_disown(struct loop *loop, struct loop_owned *owned)
{
    struct loop_owned **at = &loop->owned;

    while (*at != owned)
        at = &(*at)->next;
    *at = owned->next;
}

void loop_add(struct loop *loop, struct loop_io *io)
{
    if (io->watched)
        return;
    io->watched = true;
    io->next = loop->ios;
    loop->ios = io;
    loop->io_count++;
}

void loop_remove(struct loop *loop, struct loop_io *io)
{
    struct loop_io **at = &loop->ios;

    if (!io->watched)
        return;
    while (*at != io)
        at = &(*at)->next;
    *at = io->next;
    io->watched = false;
    loop->io_count--;
    for (size_t i = 0; i < loop->polled_count; i++) {
        if (loop->polled[i] == io)
            loop->polled[i] = NULL;
    }
}

void loop_arm(struct loop *loop, struct loop_timer *timer, struct moment due)
{
    struct loop_timer **at = &loop->timers;

    loop_disarm(loop, timer);
    while (*at && (*at)->due.ns <= due.ns)
        at = &(*at)->next;
    timer->due = due;
    timer->next = *at;
    timer->armed = true;
    *at = timer;
}

void loop_disarm(struct loop *loop, struct loop_timer *timer)
{
    struct loop_timer **at = &loop->timers;

    if (!timer->armed)
        return;
    while (*at != timer)
        at = &(*at)->next;
    *at = timer->next;
    timer->armed = false;
}

int loop_signals(struct loop *loop, const sigset_t *set, void (*caught)(void *owner, int signo),
                 void *owner)
{
    loop->caught = caught;
    loop->owner = owner;
    loop->signal_fd = signalfd(loop->signal_fd, set, SFD_CLOEXEC | SFD_NONBLOCK);
    return loop->signal_fd < 0 ? -1 : 0;
}

struct moment loop_now(const struct loop *loop)
{
    return loop->now;
}

void loop_stop(struct loop *loop)
{
    loop->stopped = true;
}

/* Makes room for so many descriptors in a turn. -1 with errno: there is no memory; the loop stays
 * as it was. */
static int make_room(struct loop *loop, size_t count)
{
    size_t room = count + 6; /* a few more, so that it seldom grows */
    void *grown;

    if (count <= loop->room)
        return 0;
    grown = realloc(loop->polls, room * sizeof *loop->polls);
    if (!grown)
        return -1;
    loop->polls = grown;
    grown = realloc(loop->polled, room * sizeof *loop->polled);
    if (!grown)
        return -1;
    loop->polled = grown;
    loop->room = room;
    return 0;
}

/* Makes timer_fd wake no later than the first timer; perhaps earlier. -1 with errno. */
static int set_alarm(struct loop *loop)
{
    const struct loop_timer *first = loop->timers;
    bool is_spent = moment_reached(loop->armed, loop->now); /* it has gone off */

    /* Also for a timer that is due "never": it is there to have the descriptor made while there is
     * nothing to lose yet. */
    if (first && loop->timer_fd < 0) {
        loop->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        if (loop->timer_fd < 0)
            return -1;
    }
    /* An alarm that is too early stays: leases are extended and time-outs taken back far more often
     * than they come. */
    bool is_early_enough = !first || first->due.ns >= loop->armed.ns;
    if (loop->timer_fd < 0 || (!is_spent && is_early_enough))
        return 0;
    loop->armed = first ? first->due : MOMENT_NEVER;
    return moment_alarm(loop->timer_fd, loop->armed);
}

/* Polls until a signal, the alarm of the first timer, or a descriptor; without a wait if a timer is
 * due. Then loop->polls and loop->polled say what is ready; polled_count is 0 if the poll was
 * interrupted. Returns 0; -1 with errno. */
static int wait_for_something(struct loop *loop)
{
    size_t n = 0;
    bool due = loop->timers && moment_reached(loop->timers->due, loop->now);

    if (make_room(loop, loop->io_count + OWN_POLLS) < 0 || (!due && set_alarm(loop) < 0))
        return -1;
    loop->polls[n] = (struct pollfd){.fd = loop->signal_fd, .events = POLLIN};
    loop->polled[n++] = NULL;
    loop->polls[n] = (struct pollfd){.fd = loop->timer_fd, .events = POLLIN};
    loop->polled[n++] = NULL;
    for (struct loop_io *io = loop->ios; io; io = io->next, n++) {
        int in = io->events & LOOP_READ ? POLLIN : 0;
        int out = io->events & LOOP_WRITE ? POLLOUT : 0;
        loop->polls[n] = (struct pollfd){.fd = io->fd, .events = (short)(in | out)};
        loop->polled[n] = io;
    }
    loop->polled_count = n;
    if (poll(loop->polls, n, due ? 0 : -1) < 0) {
        if (errno != EINTR && errno != EAGAIN)
            return -1;
        loop->polled_count = 0; /* nothing is known to be ready: revents were not written */
    }
    loop->now = moment_now();
    return 0;
}

/* Reads all signals that have come, until loop_stop(), and hands them to the owner, except those
 * that the process ignores or has sent itself by a limit. */
static void take_signals(struct loop *loop)
{
    struct signalfd_siginfo infos[8];
    ssize_t got = (ssize_t)sizeof infos;

    /* While all of "infos" was filled, there may be more. */
    while (got == (ssize_t)sizeof infos && !loop->stopped) {
        got = read(loop->signal_fd, infos, sizeof infos);
        for (ssize_t i = 0; i < got / (ssize_t)sizeof infos[0] && !loop->stopped; i++) {
            const struct signalfd_siginfo *info = &infos[i];
            int signo = (int)info->ssi_signo;
            struct sigaction action;
            /* A blocked signal arrives on a signalfd even if it is ignored. */
            bool is_ignored = sigaction(signo, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
            /* This process has come to a limit of its own: a message to a file that must not
             * grow fails, and that is all. */
            bool is_limit = (signo == SIGXFSZ && info->ssi_pid == (uint32_t)getpid()) ||
                            (signo == SIGXCPU && info->ssi_code == SI_KERNEL);
            if (!is_ignored && !is_limit)
                loop->caught(loop->owner, signo);
        }
    }
}

enum timers { URGENT_TIMERS, ALL_TIMERS };

/* Fires the timers that are due, the earliest first, until loop_stop(). */
static void fire_timers(struct loop *loop, enum timers which)
{
    /* At most as many as there are now: a timer armed for "now" again and again must not keep the
     * rest from their turn. */
    size_t most = 0;
    struct loop_timer *timer;

    for (timer = loop->timers; timer; timer = timer->next)
        most++;
    while (most-- > 0 && !loop->stopped) {
        timer = loop->timers;
        while (timer && !(which == ALL_TIMERS || timer->urgent))
            timer = timer->next;
        if (!timer || !moment_reached(timer->due, loop->now))
            return;
        loop_disarm(loop, timer);
        timer->fire(timer);
    }
}

int loop_run(struct loop *loop)
{
    loop->stopped = false;
    while (!loop->stopped) {
        if (wait_for_something(loop) < 0)
            return -1;
        if (loop->polled_count > 0 && loop->polls[0].revents)
            take_signals(loop);
        fire_timers(loop, URGENT_TIMERS);
        for (size_t i = OWN_POLLS; i < loop->polled_count && !loop->stopped; i++) {
            int got = loop->polls[i].revents;
            int in = (got & POLLIN) ? LOOP_READ : 0;
            int out = (got & POLLOUT) ? LOOP_WRITE : 0;
            int gone = (got & (POLLHUP | POLLERR | POLLNVAL)) ? LOOP_GONE : 0;
            struct loop_io *io = loop->polled[i];
            if (io && (in | out | gone))
                io->ready(io, in | out | gone);
        }
        loop->polled_count = 0; /* this turn's descriptors have been called */
        fire_timers(loop, ALL_TIMERS);
    }
    return 0;
}

/* For loop_run_for(): the time is over. */
static void end_run(struct loop_timer *timer)
{
    loop_stop(timer->owner);
}

int loop_run_for(struct loop *loop, int64_t ns)
{
    struct loop_timer timer = {.fire = end_run, .owner = loop};

    loop_arm(loop, &timer, moment_plus(moment_now(), ns));
    int result = loop_run(loop);
    bool was_stopped = timer.armed; /* before it has fired */
    loop_disarm(loop, &timer);
    return result < 0 ? result : was_stopped;
}
