/* The end of a process: by a pidfd, or by looking at /proc. */
#include "vigil.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_NS (250 * NS_PER_MS)

/* Where "state" and "starttime" are in /proc/PID/stat behind the name, which may have anything in it:
 * proc(5). */
#define FIELD_STATE 0
#define FIELD_BORN  19

/* Reads all that fits of a file in /proc. False with errno. */
static bool read_proc(pid_t pid, const char *file, char *text, size_t size)
{
    char path[48];
    ssize_t n;

    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static char *field(char *text, int number)
{
    char *at = strrchr(text, ')');

    for (at = at ? at + 1 : NULL; at && number > 0; number--)
        at = strchr(at + 1, ' ');
    return at ? at + 1 : NULL;
}

/* False if it has ended, even if nobody has reaped it yet. born: 0 where it cannot be known, as /proc may
 * hide the processes of others. */
static bool lives(pid_t pid, unsigned long long *born)
{
    char text[1024], *state, *start;

    *born = 0;
    if (!read_proc(pid, "stat", text, sizeof text))
        return kill(pid, 0) == 0 || errno != ESRCH;
    state = field(text, FIELD_STATE);
    start = field(text, FIELD_BORN);
    if (start)
        *born = strtoull(start, NULL, 10);
    return !state || !strchr("ZX", *state);
}

bool vigil_open(struct vigil *vigil, pid_t pid)
{
    *vigil = (struct vigil){.pid = pid, .io = {.fd = -1}};
    vigil->io.fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (vigil->io.fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
        return false;
    /* The number of a thread is none of a process: kill(2) takes it all the same, pidfd_open(2) says so. */
    bool none = vigil->io.fd < 0 && (errno == ESRCH || errno == EINVAL || errno == ENOENT);
    if (!none && lives(pid, &vigil->born))
        return true;
    vigil_close(vigil);
    errno = ESRCH;
    return false;
}

static void over(struct vigil *vigil)
{
    vigil_close(vigil);
    vigil->ended(vigil->arg);
}

static void readable(struct loop_io *io, int events)
{
    (void)events;
    over(io->owner);
}

static void look(struct loop_timer *timer)
{
    struct vigil *vigil = timer->owner;
    unsigned long long born;

    if (lives(vigil->pid, &born) && (born == vigil->born || born == 0 || vigil->born == 0))
        loop_arm(vigil->loop, timer, moment_plus(loop_now(vigil->loop), LOOK_NS));
    else
        over(vigil);
}

void vigil_watch(struct vigil *vigil, struct loop *loop, void (*ended)(void *arg), void *arg)
{
    vigil->loop = loop;
    vigil->ended = ended;
    vigil->arg = arg;
    vigil->io.events = LOOP_READ;
    vigil->io.ready = readable;
    vigil->io.owner = vigil;
    vigil->timer = (struct loop_timer){.fire = look, .owner = vigil};
    if (vigil->io.fd >= 0)
        loop_add(loop, &vigil->io);
    else
        loop_arm(loop, &vigil->timer, loop_now(loop));
}

void vigil_close(struct vigil *vigil)
{
    if (vigil->loop) {
        loop_remove(vigil->loop, &vigil->io);
        loop_disarm(vigil->loop, &vigil->timer);
    }
    if (vigil->io.fd > STDERR_FILENO)
        close(vigil->io.fd);
    vigil->io.fd = -1;
}

char *vigil_name(pid_t pid, char *out, size_t size)
{
    if (!read_proc(pid, "comm", out, size))
        *out = '\0';
    out[strcspn(out, "\n")] = '\0';
    return out;
}
