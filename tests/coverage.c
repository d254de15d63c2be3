/* Part of the library in a build that counts executed lines: a process that ends without exit()
 * writes its counts first. The linker has the calls come here (--wrap). */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void __gcov_dump(void);
void __gcov_reset(void);
void __wrap__exit(int status) __attribute__((noreturn));
void __real__exit(int status) __attribute__((noreturn));
int __wrap_raise(int signo);
int __real_raise(int signo);
int __wrap_kill(pid_t pid, int signo);
int __real_kill(pid_t pid, int signo);

/* Resets the counters, too, so that none counts twice. */
static void write_counts(void)
{
    __gcov_dump();
    __gcov_reset();
}

void __wrap__exit(int status)
{
    write_counts();
    __real__exit(status);
}

int __wrap_raise(int signo)
{
    write_counts();
    return __real_raise(signo);
}

/* Whether it is a program of rlock's, such as rlock-etcd, and no agent. */
static bool is_program(pid_t pid)
{
    char path[32], name[16] = "";

    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, name, sizeof name - 1) < 0)
        name[0] = '\0';
    if (fd >= 0)
        close(fd);
    return strncmp(name, "rlock-", 6) == 0 && strncmp(name, "rlock-agent", 11) != 0;
}

/* rlock ends its programs by KILL: they get a second to write their counts before that. */
int __wrap_kill(pid_t pid, int signo)
{
    siginfo_t info = {0};

    if (pid > 0 && signo == SIGKILL && is_program(pid) && __real_kill(pid, SIGTERM) == 0)
        for (int i = 0; i < 100 && !info.si_pid; i++) {
            usleep(10 * 1000);
            if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
                break;
        }
    return __real_kill(pid, signo);
}

/* A signal that ends the process is counted with it: as before, but for the counts. */
static void die_counted(int signo)
{
    signal(signo, SIG_DFL);
    write_counts();
    __real_raise(signo);
}

__attribute__((constructor)) static void catch_deadly_signals(void)
{
    static const int deadly[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE};

    for (unsigned i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        struct sigaction action;
        if (sigaction(deadly[i], NULL, &action) == 0 && action.sa_handler == SIG_DFL)
            signal(deadly[i], die_counted);
    }
}
