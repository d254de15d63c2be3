#include "os/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

void terminal_init(struct terminal *terminal)
{
    *terminal = (struct terminal){.fd = -1, .job = getpgrp()};
}

bool terminal_exists(struct terminal *terminal)
{
    /* Not a standard descriptor: all may be redirected when a command asks for a password. */
    if (terminal->fd < 0)
        terminal->fd = open("/dev/tty", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (terminal->fd >= 0)
        return true;
    int error = errno; /* for terminal_open(); ENXIO: there is no controlling terminal */
    /* In a root directory without that file or without devices (chroot(2)), these may be it. */
    for (int fd = STDIN_FILENO; error != ENXIO && terminal->fd < 0 && fd <= STDERR_FILENO; fd++)
        if (tcgetpgrp(fd) >= 0)
            terminal->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    errno = error;
    return terminal->fd >= 0;
}

int terminal_open(struct terminal *terminal)
{
    bool wants =
        !terminal_exists(terminal) && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);

    return wants ? -1 : 0;
}

bool terminal_is_ours(struct terminal *terminal)
{
    return terminal_exists(terminal) && tcgetpgrp(terminal->fd) == terminal->job;
}

bool terminal_offer(struct terminal *terminal)
{
    /* tcgetpgrp() fails for what is not the controlling terminal: without one, that is all that
     * this costs. */
    terminal->given = tcgetpgrp(STDOUT_FILENO) == terminal->job && terminal_exists(terminal) &&
                      tcgetattr(terminal->fd, &terminal->mode) == 0;
    return terminal->given;
}

bool terminal_give(struct terminal *terminal, pid_t group)
{
    if (terminal->given && tcgetpgrp(terminal->fd) == group)
        return true;
    if (!terminal_is_ours(terminal))
        return false;
    tcgetattr(terminal->fd, &terminal->mode);
    terminal->given = tcsetpgrp(terminal->fd, group) == 0;
    return terminal->given;
}

void terminal_take(struct terminal *terminal)
{
    /* A shell that was killed has left it to the group of one of its jobs: the owner is not
     * asked. */
    if (terminal->given)
        tcsetpgrp(terminal->fd, terminal->job);
    terminal->given = false;
}

void terminal_restore(struct terminal *terminal)
{
    bool given = terminal->given;

    terminal_take(terminal);
    if (given)
        tcsetattr(terminal->fd, TCSANOW, &terminal->mode); /* others wait for output to be read */
}

bool terminal_stop(int signo, enum terminal_stopped what)
{
    sigset_t stop, was, pending;

    sigemptyset(&stop);
    sigaddset(&stop, signo);
    pid_t whom = what == TERMINAL_STOPS_JOB ? 0 : getpid();
    kill(whom, signo);                     /* blocked yet, so that it is one with what is pending */
    sigprocmask(SIG_UNBLOCK, &stop, &was); /* stops here */
    sigprocmask(SIG_SETMASK, &was, NULL);
    /* A stop signal removes a pending SIGCONT: if one is pending, it came since, and continued this
     * process. */
    sigpending(&pending);
    return sigismember(&pending, SIGCONT) == 1;
}
