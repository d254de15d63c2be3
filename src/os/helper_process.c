#include "os/helper_process.h"
#include "base/mem.h"
#include "net/loop.h"
#include "os/file.h"
#include "os/pid_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct helper_process {
    struct loop *loop;
    struct loop_io io; /* this process's end of the pipe or socket */
    pid_t pid;
    size_t size;                        /* bytes of the finding */
    void (*done)(void *, const void *); /* takes the finding; not of a program */
    void *owner;
    /* Once the caller has let go of it, and the process has not ended yet: the loop owns this. */
    struct pid_watch watch;
    struct loop_owned owned;
};

/* The process of a helper, which ends with its parent: works, and writes the finding. parent: the
 * pid of the process that has forked it. */
__attribute__((noreturn)) static void run_helper(void (*work)(const void *, void *),
                                                 const void *question, size_t size, pid_t parent,
                                                 int out)
{
    char finding[HELPER_PROCESS_MAX] __attribute__((aligned)) = {0};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    work(question, finding);
    _exit(write(out, finding, size) == (ssize_t)size ? 0 : 1);
}

/* The pipe: hands the finding to "done"; NULL if the helper has ended without one. */
static void on_finding(struct loop_io *io, int events)
{
    struct helper_process *helper_process = io->owner;
    char finding[HELPER_PROCESS_MAX] __attribute__((aligned));
    ssize_t got = read(io->fd, finding, helper_process->size);

    (void)events;
    loop_remove(helper_process->loop, io);
    helper_process->done(helper_process->owner,
                         got == (ssize_t)helper_process->size ? finding : NULL);
}

/* Returns the parent's record of a helper that was just forked, a copy of "plan" with the first of
 * "ends"; the second one is closed. NULL with errno if the fork has failed (plan->pid). */
static struct helper_process *begin_helper(const int *ends, const struct helper_process *plan)
{
    file_close(ends[1]);
    if (plan->pid < 0) {
        file_close(ends[0]);
        return NULL;
    }
    struct helper_process *helper_process = mem_zeroed(sizeof *helper_process);
    *helper_process = *plan;
    helper_process->io = (struct loop_io){
        .fd = ends[0], .events = LOOP_READ, .ready = on_finding, .owner = helper_process};
    return helper_process;
}

struct helper_process *helper_process_start(struct loop *loop,
                                            void (*work)(const void *question, void *finding),
                                            const void *question, size_t size,
                                            void (*done)(void *owner, const void *finding),
                                            void *owner)
{
    int ends[2];
    pid_t parent = getpid();

    if (pipe2(ends, O_CLOEXEC) != 0)
        return NULL;
    pid_t pid = fork();
    if (pid == 0)
        run_helper(work, question, size, parent, ends[1]);
    struct helper_process *helper_process = begin_helper(
        ends, &(struct helper_process){
                  .loop = loop, .pid = pid, .size = size, .done = done, .owner = owner});
    if (helper_process)
        loop_add(loop, &helper_process->io);
    return helper_process;
}

/* Becomes the program at "path": the socket is its standard input and error, and its output goes
 * nowhere. An error is said over the socket. */
__attribute__((noreturn)) static void execute_helper(const char *path, char *const *environment,
                                                     int socket)
{
    const char *name = strrchr(path, '/');
    char *const argv[] = {(char *)(uintptr_t)(name ? name + 1 : path), NULL};
    char *const none[] = {NULL};
    int nothing = file_open_null(O_WRONLY);

    if (nothing >= 0 && dup2(socket, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 &&
        dup2(socket, STDERR_FILENO) >= 0)
        execve(path, argv, environment ? environment : none);
    dprintf(socket, "%s", strerror(errno));
    _exit(127);
}

struct helper_process *helper_process_execute(struct loop *loop, const char *path,
                                              char *const *environment, int *socket)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return NULL;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pid_t pid = fork();
    if (pid == 0)
        execute_helper(path, environment, ends[1]);
    *socket = ends[0];
    return begin_helper(ends, &(struct helper_process){.loop = loop, .pid = pid});
}

/* The process that the caller has let go of has ended: reaps it, and frees what was kept for it. */
static void on_ended(void *arg)
{
    struct helper_process *helper_process = arg;

    loop_disown(helper_process->loop, &helper_process->owned);
    waitpid(helper_process->pid, NULL, WNOHANG);
    free(helper_process);
}

/* The loop is freed: frees what was kept for a process that has not ended yet. */
static void discard_helper(struct loop_owned *owned)
{
    struct helper_process *helper_process = MEM_CONTAINER(struct helper_process, owned, owned);

    pid_watch_close(&helper_process->watch);
    free(helper_process);
}

/* Reaps a helper and frees the record of it: now if it has ended, otherwise when it does, as one
 * that hangs in the kernel, on a dead network file system for example, may outlive a KILL. Where no
 * descriptor is left to notice its end, its next parent reaps it. */
static void reap_when_ended(struct helper_process *helper_process)
{
    if (waitpid(helper_process->pid, NULL, WNOHANG) == 0 &&
        pid_watch_open(&helper_process->watch, helper_process->pid)) {
        helper_process->owned.discard = discard_helper;
        loop_own(helper_process->loop, &helper_process->owned);
        pid_watch_start(&helper_process->watch, helper_process->loop, on_ended, helper_process);
        return;
    }
    waitpid(helper_process->pid, NULL, WNOHANG); /* it has ended since */
    free(helper_process);
}

void helper_process_stop(struct helper_process *helper_process)
{
    loop_remove(helper_process->loop, &helper_process->io);
    close(helper_process->io.fd);
    kill(helper_process->pid, SIGKILL);
    reap_when_ended(helper_process);
}

void helper_process_leave(struct helper_process *helper_process)
{
    close(helper_process->io.fd);
    reap_when_ended(helper_process);
}
