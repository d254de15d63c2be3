/* The end of a process: by a pidfd, or by looking at /proc. */
#include "os/pid_watch.h"
#include "os/kernel.h"
#include "os/procfs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* How often to look at /proc. */
#define LOOK_NS (250 * NS_PER_MS)

/* Whether the process lives; one that has ended and was not reaped does not. *born: its start, in
 * the kernel's ticks; 0 where that cannot be known, as /proc may hide the processes of other
 * users. */
static bool is_alive(pid_t pid, unsigned long long *born)
{
    struct process process;
    enum process_look look = procfs_read(NULL, pid, &process);

    *born = look == PROCESS_FOUND ? process.started : 0;
    return look == PROCESS_FOUND ? process.live : kill(pid, 0) == 0 || errno != ESRCH;
}

bool pid_watch_open(struct pid_watch *watch, pid_t pid)
{
    *watch = (struct pid_watch){.pid = pid, .io = {.fd = -1}};
    watch->io.fd = kernel_pidfd(pid);
    if (watch->io.fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
        return false;
    /* The number of a thread is not one of a process: pidfd_open(2) says so (EINVAL, ENOENT), while
     * kill(2) takes it all the same. */
    bool none = watch->io.fd < 0 && (errno == ESRCH || errno == EINVAL || errno == ENOENT);
    if (!none && is_alive(pid, &watch->born))
        return true;
    pid_watch_close(watch);
    errno = ESRCH;
    return false;
}

/* Calls "ended", once. */
static void report_end(struct pid_watch *watch)
{
    pid_watch_close(watch);
    watch->ended(watch->arg);
}

/* The pidfd: the process has ended. */
static void on_readable(struct loop_io *io, int events)
{
    (void)events;
    report_end(io->owner);
}

/* The timer, where there is no pidfd: looks whether the process still lives. It is the same one if
 * its number lives, and was born at the same time, as far as that is known (not 0). */
static void look_for_process(struct loop_timer *timer)
{
    struct pid_watch *watch = timer->owner;
    unsigned long long born;

    if (is_alive(watch->pid, &born) && (born == watch->born || born == 0 || watch->born == 0))
        loop_arm(watch->loop, timer, moment_plus(loop_now(watch->loop), LOOK_NS));
    else
        report_end(watch);
}

void pid_watch_start(struct pid_watch *watch, struct loop *loop, void (*ended)(void *arg),
                     void *arg)
{
    watch->loop = loop;
    watch->ended = ended;
    watch->arg = arg;
    watch->io.events = LOOP_READ;
    watch->io.ready = on_readable;
    watch->io.owner = watch;
    watch->timer = (struct loop_timer){.fire = look_for_process, .owner = watch};
    if (watch->io.fd >= 0)
        loop_add(loop, &watch->io);
    else
        loop_arm(loop, &watch->timer, loop_now(loop));
}

void pid_watch_close(struct pid_watch *watch)
{
    if (watch->loop) {
        loop_remove(watch->loop, &watch->io);
        loop_disarm(watch->loop, &watch->timer);
    }
    if (watch->io.fd > STDERR_FILENO) /* 0: it was never opened */
        close(watch->io.fd);
    watch->io.fd = -1;
}

char *pid_watch_name(pid_t pid, char *out, size_t size)
{
    struct process process;
    enum process_look look = procfs_read(NULL, pid, &process);

    snprintf(out, size, "%s", look == PROCESS_FOUND ? process.name : "");
    return out;
}
