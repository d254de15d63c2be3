/* Start reading at child_start(). become_command() is what the new process does before it is the
 * command; child_next_change() tells what has happened to it. */
#include "os/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "os/file.h"
#include "os/kernel.h"
#include "os/spawn.h"

/* The signals that this process hands on to its command; with them those of real time. */
static const int handed_on[] = {SIGHUP,  SIGINT,   SIGQUIT,   SIGUSR1, SIGUSR2, SIGALRM,
                                SIGTERM, SIGWINCH, SIGCONT,   SIGURG,  SIGIO,   SIGPWR,
                                SIGXCPU, SIGXFSZ,  SIGVTALRM, SIGPROF, SIGTSTP};

/* A handler for threads of a library: passes a signal on to the main thread. A child that has not
 * executed its command yet still has this handler, and dies of the signal as the command would. */
static void pass_on(int signo)
{
    int error = errno;

    if (syscall(SYS_gettid) == getpid()) /* that child: the main thread here blocks the signal */
        signal(signo, SIG_DFL);
    syscall(SYS_tgkill, getpid(), getpid(), signo);
    errno = error;
}

/* Has each signal reach the main thread, where a library that was loaded with this program
 * (LD_PRELOAD) has threads. These block nothing, and the kernel would give them what is for this
 * process: it would die of TERM, and not hear of the end of its command. */
static void take_signals_of_threads(void)
{
    struct sigaction action, pass = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
    struct stat tasks; /* with a link for each thread, and two of its own */
    sigset_t caught;

    if (stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink <= 3)
        return;
    child_choose_signals(&caught);
    sigdelset(&caught, SIGTSTP); /* which stops this process as before */
    for (int signo = 1; signo < NSIG; signo++)
        if (sigismember(&caught, signo) == 1 && sigaction(signo, NULL, &action) == 0 &&
            action.sa_handler == SIG_DFL)
            sigaction(signo, &pass, NULL);
}

void child_block_signals(struct inherited *inherited)
{
    struct sigaction chld, by_default = {.sa_handler = SIG_DFL};
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &inherited->mask);
    /* Inherited as ignored it makes the kernel reap children, and their status is lost. */
    sigaction(SIGCHLD, &by_default, &chld);
    inherited->ignores_chld = chld.sa_handler == SIG_IGN;
    take_signals_of_threads();
}

void child_choose_signals(sigset_t *caught)
{
    sigemptyset(caught);
    sigaddset(caught, SIGCHLD);
    for (size_t i = 0; i < sizeof handed_on / sizeof handed_on[0]; i++)
        sigaddset(caught, handed_on[i]);
    for (int signo = SIGRTMIN; signo <= SIGRTMAX; signo++)
        sigaddset(caught, signo);
}

void child_choose_end_signals(sigset_t *ends)
{
    sigemptyset(ends);
    sigaddset(ends, SIGHUP);
    sigaddset(ends, SIGINT);
    sigaddset(ends, SIGQUIT);
    sigaddset(ends, SIGTERM);
}

void child_let_end(void)
{
    sigset_t ends;

    child_choose_end_signals(&ends);
    sigprocmask(SIG_UNBLOCK, &ends, NULL);
}

bool child_signal_is_fatal(int signo)
{
    return signo != SIGWINCH && signo != SIGCONT && signo != SIGURG && signo != SIGCHLD &&
           signo != SIGTSTP;
}

void child_fill_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        /* The file takes the lowest number, which is fd. Using it as the stream fails. */
        if (fcntl(fd, F_GETFD) < 0)
            file_open_null(fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

int child_adopt_orphans(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Replaces the standard streams up to the descriptor "last" by /dev/null: a reader at their other
 * end must not wait for this process. */
static void close_streams(int last)
{
    int nothing = file_open_null(O_RDWR);

    for (int fd = STDIN_FILENO; fd <= last; fd++)
        if (nothing < 0 || dup2(nothing, fd) < 0)
            close(fd);
    if (nothing > STDERR_FILENO)
        close(nothing);
}

pid_t child_fork_helper(const char *name, int keep, int (*work)(int keep, const void *arg),
                        const void *arg)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    setpgid(0, 0); /* the signals of the terminal's keys are not for it */
    prctl(PR_SET_NAME, name);
    close_streams(STDOUT_FILENO);
    if (keep > STDERR_FILENO)
        kernel_close(STDERR_FILENO + 1, keep - 1);
    kernel_close(keep + 1, -1);
    _exit(work(keep, arg));
}

int child_run(const struct inherited *inherited, int (*work)(void *arg), void *arg)
{
    pid_t parent = getpid(), pid, ended;
    int status = 0;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            _exit(0);
        /* The handlers of a library refer to a state that a child of this process does not have. */
        struct sigaction action;
        for (int signo = 1; signo < NSIG; signo++)
            if (sigaction(signo, NULL, &action) == 0 && action.sa_handler != SIG_IGN &&
                action.sa_handler != SIG_DFL)
                signal(signo, SIG_DFL);
        signal(SIGTSTP, SIG_IGN);
        sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
        status = work(arg);
        fflush(NULL);
        _exit(status);
    }
    do {
        ended = pid < 0 ? -1 : waitpid(pid, &status, 0);
    } while (ended < 0 && pid > 0 && errno == EINTR);
    return ended < 0 ? -1 : status;
}

pid_t child_fork_survivor(const char *name, int (*work)(const void *arg), const void *arg)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_NAME, name);
    close_streams(STDOUT_FILENO);
    _exit(work(arg));
}

void child_detach(void)
{
    setsid();
    close_streams(STDERR_FILENO);
}

void child_close_inherited(void)
{
    kernel_close(STDERR_FILENO + 1, -1);
}

void child_await(pid_t pid, int64_t time_limit)
{
    struct moment end = moment_plus(moment_now(), time_limit);
    bool killed = false;
    sigset_t chld;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        int64_t left = moment_until(moment_now(), end);
        struct timespec rest = {left / NS_PER_SEC, left % NS_PER_SEC};
        if (left > 0) {
            sigtimedwait(&chld, NULL, &rest);
        } else if (!killed) {
            killed = true;
            end = moment_plus(end, NS_PER_SEC);
            kill(pid, SIGKILL);
        } else {
            return; /* cannot be killed now; its next parent will reap it */
        }
    }
}

bool child_exists(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool child_waits_to_be_reaped(void)
{
    siginfo_t info = {0};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0;
}

void *child_share_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Sets the signal state to what it was when this process was started. */
static void restore_signals(const struct inherited *inherited)
{
    if (inherited->ignores_chld)
        signal(SIGCHLD, SIG_IGN);
    sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
}

/* All that the process of a command needs, which may share this memory until it executes the
 * command. */
struct start {
    struct child_plan plan;
    struct child_note *note;
    pid_t parent;
    bool on_terminal; /* whose foreground it takes */
    bool enters;      /* it was not born into its cgroup, as in a sandbox without clone3() */
    int terminal;
    char *names;   /* where the command may be, each with its NUL; the last one is empty */
    char **script; /* its argv, with room for those of the shell */
    struct spawn spawn;
};

/* Executes the command at that path. Returns only if it was not executed: an errno; ETIME: it is
 * too late to execute it. */
static int execute_path(const struct start *start, const char *path, char *const *argv)
{
    /* This process may have been stopped on the way, or have waited for a file system before. */
    if (moment_reached(start->plan.start_before, moment_now()))
        return ETIME;
    return spawn_execute(path, argv, start->plan.environment);
}

/* Executes the command by the first of its names that can be executed, as execvpe(3) does. Returns
 * only if none could be: an errno, as execute_path(). */
static int execute_names(const struct start *start)
{
    int error = ENOENT, denied = 0;

    for (const char *name = start->names; *name; name += strlen(name) + 1) {
        error = execute_path(start, name, start->plan.argv);
        if (error == ENOEXEC) { /* a script without "#!": the shell runs it */
            start->script[1] = (char *)(uintptr_t)name;
            error = execute_path(start, start->script[0], start->script);
        }
        if (error == EACCES)
            denied = error;
        else if (error != ENOENT && error != ENOTDIR && error != ESTALE && error != ENODEV &&
                 error != ETIMEDOUT)
            return error;
    }
    return denied ? denied : error;
}

/* Writes a positive number as text. Calls nothing, as another process may share this memory. */
static void write_number(char *place, pid_t number)
{
    size_t length = 1;

    for (pid_t rest = number; rest >= 10; rest /= 10)
        length++;
    place[length] = '\0';
    for (; length > 0; number /= 10)
        place[--length] = (char)('0' + number % 10);
}

/* Notes the caller's group, whose leader it is, before it executes the command. False if a guard
 * has barred that. */
static bool child_note_take(struct child_note *note)
{
    int none = 0;
    return atomic_compare_exchange_strong(&note->group, &none, getpid());
}

/* The process of a command: executes it, or notes why not as the fault, and ends. arg: a struct
 * start. Never returns. A sanitizer would warn of an _exit() on a stack that it does not know. */
__attribute__((no_sanitize_address)) static int become_command(void *arg)
{
    const struct start *start = arg;
    int error = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != start->parent) /* which has died before that */
        _exit(127);
    setpgid(0, 0);
    if (!child_note_take(start->note)) /* a guard has barred it: it is too late */
        error = ETIME;
    if (start->on_terminal)
        tcsetpgrp(start->terminal, getpid());
    restore_signals(start->plan.inherited);
    for (size_t i = 0; i < CHILD_NUMBERS; i++)
        if (start->plan.numbers[i])
            write_number(start->plan.numbers[i], getpid());
    if (!error && start->enters && cgroup_enter(start->plan.cgroup) < 0)
        error = errno;
    if (!error)
        error = execute_names(start);
    start->note->fault = error;
    _exit(127);
}

/* Returns the paths where the command may be, in the folders of PATH: one after the other, each
 * with its NUL, and an empty one as the last. The caller frees. */
static char *list_names(const char *command)
{
    const char *path = strchr(command, '/') ? NULL : getenv("PATH");
    struct strbuf names = {0};

    if (!path && !strchr(command, '/'))
        path = "/bin:/usr/bin";
    for (const char *rest = path; rest; rest = strchr(rest, ':'), rest += rest != NULL) {
        size_t length = strcspn(rest, ":");
        strbuf_printf(&names, "%.*s%s%s", (int)length, rest, length > 0 ? "/" : "", command);
        strbuf_putc(&names, '\0');
    }
    if (!path)
        strbuf_printf(&names, "%s%c", command, '\0');
    return strbuf_detach(&names);
}

/* Makes all that the process of a command needs, as that must not allocate memory itself. Release
 * with free_start(). */
static struct start *plan_start(const struct child_plan *plan)
{
    struct start *start = mem_checked(malloc(sizeof *start));

    start->plan = *plan;
    start->names = list_names(plan->argv[0]);
    /* The arguments with which the shell runs the command, if that is a script without "#!": its
     * path, [1], is set by execute_names(). */
    size_t count = 1;
    while (plan->argv[count])
        count++;
    char **script = mem_zeroed((count + 2) * sizeof *script);
    script[0] = (char *)(uintptr_t) "/bin/sh";
    memcpy(script + 2, plan->argv + 1, (count - 1) * sizeof *script);
    start->script = script;
    start->enters = false;
    start->spawn.shares = 0;
    return start;
}

static void free_start(struct start *start)
{
    free(start->names);
    free(start->script);
    free(start);
}

/* Forks a process into its cgroup, if it has one; where the kernel cannot do that, the process must
 * enter it ("enters"). Returns as fork(). */
static pid_t fork_into_cgroup(struct start *start)
{
    bool apart = cgroup_exists(start->plan.cgroup);
    pid_t pid = apart ? cgroup_fork(start->plan.cgroup) : -1;

    start->enters = apart && pid < 0;
    return pid < 0 ? fork() : pid;
}

int child_start(struct child *child, const struct child_plan *plan, struct terminal *terminal)
{
    struct start *start = plan_start(plan);

    start->note = child->note;
    start->parent = getpid();
    start->on_terminal = terminal_offer(terminal);
    start->terminal = terminal->fd;
    child->start = start;
    /* A process that has the terminal, or may not enter its cgroup, calls what may fail, and so has
     * memory of its own. */
    bool shares = !cgroup_exists(start->plan.cgroup) && !start->on_terminal;
    pid_t pid = shares ? spawn_start(&start->spawn, become_command, start) : -1;
    if (pid < 0)
        pid = fork_into_cgroup(start);
    if (pid == 0)
        become_command(start);
    if (pid < 0) {
        terminal->given = false;
        return -1;
    }
    setpgid(pid, pid); /* as it does itself: one of the two is first */
    child->pid = child->group = pid;
    child->handle = kernel_pidfd(pid);
    return 0;
}

void child_free(struct child *child)
{
    struct start *start = child->start;

    if (!start || spawn_shares(&start->spawn))
        return;
    free_start(start);
    child->start = NULL;
}

pid_t child_start_apart(const char *command, const struct child_plan *plan)
{
    char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)command, NULL};
    static const struct inherited none_blocked;
    struct child_plan whole = *plan;

    whole.argv = argv;
    struct start *start = plan_start(&whole);
    pid_t parent = getpid(), pid = fork_into_cgroup(start);

    if (pid != 0) {
        free_start(start);
        return pid;
    }
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    if (plan->note && !child_note_take(plan->note))
        _exit(0);
    if (plan->number)
        atomic_store(plan->number, getpid());
    close_streams(STDOUT_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    restore_signals(plan->inherited ? plan->inherited : &none_blocked);
    if (start->enters)
        cgroup_enter(plan->cgroup);
    if (execute_names(start) == ETIME) /* too late: ends as if it had been killed in time */
        kill(getpid(), SIGKILL);
    _exit(127);
}

void child_signal_group(pid_t group, int signo)
{
    kill(-group, signo);
}

void child_continue(pid_t pid)
{
    kill(pid, SIGCONT);
    kill(-pid, SIGCONT);
}

pid_t child_reap(pid_t pid, int *status)
{
    return waitpid(pid, status, WNOHANG);
}

void child_signal(const struct child *child, int signo)
{
    if (child->pid > 0 && kill(-child->pid, signo) != 0)
        kill(child->pid, signo);
}

/* Whether there is a change that child_next_change() has not taken yet. kind: WSTOPPED, WEXITED, as
 * of waitid(2). */
static bool has_changed(const struct child *child, int kind)
{
    siginfo_t info = {0};

    return child->pid > 0 &&
           waitid(P_PID, (id_t)child->pid, &info, kind | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0;
}

bool child_may_be_stopped(const struct child *child)
{
    return child->stopped || has_changed(child, WSTOPPED);
}

bool child_has_ended(const struct child *child)
{
    return has_changed(child, WEXITED);
}

pid_t child_next_change(struct child *child, enum child_change *change, int *status)
{
    pid_t pid;

    do { /* whether another child stops or continues is of no interest */
        pid = waitpid(-1, status, WNOHANG | WUNTRACED | WCONTINUED);
    } while (pid > 0 && pid != child->pid && (WIFSTOPPED(*status) || WIFCONTINUED(*status)));
    *change = CHILD_OTHER;
    if (pid <= 0)
        return 0;
    if (pid != child->pid)
        return pid;
    child->stopped = WIFSTOPPED(*status);
    *change = WIFSTOPPED(*status)     ? CHILD_STOPPED
              : WIFCONTINUED(*status) ? CHILD_CONTINUED
                                      : CHILD_ENDED;
    if (*change == CHILD_ENDED)
        child->pid = 0; /* the number may be someone else's from here on */
    return pid;
}

int child_die_of(int signo)
{
    const struct rlimit none = {0, 0};
    sigset_t set;

    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0); /* a core_pattern that is a pipe asks no limit: core(5) */
    signal(signo, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, signo);
    raise(signo); /* which is still blocked */
    /* cppcheck-suppress unreachableCode */
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    return 128 + signo;
}
