/* Work in a process of its own. */
#include "aside.h"
#include "loop.h"
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct aside {
    struct loop *loop;
    struct loop_io io;
    pid_t pid;
    size_t size;
    void (*done)(void *, const void *);
    void *owner;
};

__attribute__((noreturn)) static void
helper(void (*work)(const void *, void *), const void *question, size_t size, pid_t parent, int out)
{
    char finding[ASIDE_MAX] __attribute__((aligned)) = {0};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    work(question, finding);
    _exit(write(out, finding, size) == (ssize_t)size ? 0 : 1);
}

static void found_out(struct loop_io *io, int events)
{
    struct aside *aside = io->owner;
    char finding[ASIDE_MAX] __attribute__((aligned));
    ssize_t got = read(io->fd, finding, aside->size);

    (void)events;
    loop_remove(aside->loop, io);
    aside->done(aside->owner, got == (ssize_t)aside->size ? finding : NULL);
}

struct aside *aside_start(struct loop *loop, void (*work)(const void *question, void *finding),
                          const void *question, size_t size,
                          void (*done)(void *owner, const void *finding), void *owner)
{
    int ends[2];
    pid_t parent = getpid();

    if (pipe2(ends, O_CLOEXEC) != 0)
        return NULL;
    pid_t pid = fork();
    if (pid == 0)
        helper(work, question, size, parent, ends[1]);
    int error = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        errno = error;
        return NULL;
    }

    struct aside *aside = mem_zeroed(sizeof *aside);
    *aside = (struct aside){.loop = loop, .pid = pid, .size = size, .done = done, .owner = owner};
    aside->io =
        (struct loop_io){.fd = ends[0], .events = LOOP_READ, .ready = found_out, .owner = aside};
    loop_add(loop, &aside->io);
    return aside;
}

void aside_stop(struct aside *aside)
{
    loop_remove(aside->loop, &aside->io);
    close(aside->io.fd);
    kill(aside->pid, SIGKILL);
    waitpid(aside->pid, NULL, 0);
    free(aside);
}
