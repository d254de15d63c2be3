/* The system calls and library functions that the program under test calls in the place of the real
 * ones: the linker leads here, by the list in the file "wrapped". To add a call, name it there and
 * write it here; its effect on other processes belongs to kernel.c. */
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "lives/cgroups.h"
#include "lives/disk.h"
#include "lives/files.h"
#include "lives/life.h"
#include "lives/names.h"
#include "lives/network.h"
#include "lives/server.h"
#include "lives/tty.h"
#include "os/spawn.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define SIGNALS 64

static bool in_server(void)
{
    return kernel.current && kernel.current->kind == SERVER;
}

static int refused_with(int error)
{
    errno = error;
    return -1;
}

/* For want of that; errno is set. */
static bool is_refused(enum want want)
{
    int error = kernel.current ? life_on_want(kernel.current, want) : 0;

    if (error)
        errno = error;
    return error;
}

/* -- waiting and time -------------------------------------------------------------------------- */

static int look(struct pollfd *polls, nfds_t count)
{
    int ready = 0;

    for (nfds_t i = 0; i < count; i++) {
        polls[i].revents = (short)file_events(kernel.current, &polls[i]);
        ready += polls[i].revents != 0;
    }
    return ready;
}

int __wrap_poll(struct pollfd *polls, nfds_t count, int timeout)
{
    int ready;

    kernel_call();
    int64_t until = timeout < 0 ? NEVER : world.now + timeout * MS;
    while ((ready = look(polls, count)) == 0 && world.now < until) {
        kernel.current->polled = polls;
        kernel.current->polled_count = (unsigned)count;
        if (!kernel_wait(WAIT_POLL, until) && (ready = look(polls, count)) == 0)
            return refused_with(EINTR);
    }
    return ready;
}

static int64_t ns_of(const struct timespec *time)
{
    return time->tv_sec * SEC + time->tv_nsec;
}

static int sleep_until(int64_t when)
{
    while (world.now < when)
        if (!kernel_wait(WAIT_SLEEP, when))
            return refused_with(EINTR);
    return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *rest)
{
    kernel_call();
    int64_t end = world.now + ns_of(time);
    int result = sleep_until(end);
    int64_t left = world.now < end ? end - world.now : 0;
    if (result < 0 && rest)
        *rest = (struct timespec){left / SEC, left % SEC};
    return result;
}

int __wrap_usleep(useconds_t us)
{
    kernel_call();
    return sleep_until(world.now + us * US);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!in_server())
        kernel_call();
    int64_t ns = world.now;
    if (clock == CLOCK_REALTIME)
        ns = in_server() ? server_now() : WALL_BASE + world.now;
    else if (clock == CLOCK_MONOTONIC && !in_server())
        ns -= kernel.current->frozen_for;
    *time = (struct timespec){ns / SEC, ns % SEC};
    return 0;
}

int __wrap_timerfd_create(int clock, int flags)
{
    (void)clock, (void)flags;
    kernel_call();
    return is_refused(WANT_FILE) ? -1 : file_open(file_new(FILE_TIMER));
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *time, struct itimerspec *old)
{
    struct file *file = file_of(fd);
    int64_t due = ns_of(&time->it_value);

    (void)flags, (void)old;
    kernel_call();
    file->due = due ? due : NEVER;
    return 0;
}

/* -- signals ----------------------------------------------------------------------------------- */

static uint64_t set_of(const sigset_t *set)
{
    uint64_t bits = 0;

    for (int signo = 1; signo < SIGNALS; signo++)
        if (sigismember(set, signo) == 1)
            bits |= signal_bit(signo);
    return bits;
}

static void to_sigset(uint64_t bits, sigset_t *set)
{
    sigemptyset(set);
    for (int signo = 1; signo < SIGNALS; signo++)
        if (bits & signal_bit(signo))
            sigaddset(set, signo);
}

/* Takes the lowest of these signals that are pending; 0: none is. */
static int take_signal(uint64_t bits)
{
    uint64_t pending = kernel.current->pending & bits;
    int signo = pending ? __builtin_ctzll(pending) : 0;

    kernel.current->pending &= ~signal_bit(signo);
    return signo;
}

int __wrap_signalfd(int fd, const sigset_t *set, int flags)
{
    (void)fd, (void)flags;
    kernel_call();
    if (is_refused(WANT_FILE))
        return -1;
    struct file *file = file_new(FILE_SIGNAL);
    file->signals = set_of(set);
    return file_open(file);
}

int __wrap_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *time)
{
    uint64_t bits = set_of(set);
    int signo;

    (void)info;
    kernel_call();
    int64_t until = world.now + ns_of(time);
    kernel.current->awaited = bits;
    while ((signo = take_signal(bits)) == 0 && world.now < until)
        if (!kernel_wait(WAIT_SIGNAL, until) && !(kernel.current->pending & bits))
            return refused_with(EINTR);
    return signo ? signo : refused_with(EAGAIN);
}

int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    struct proc *process = kernel.current;

    kernel_call();
    if (old)
        to_sigset(process->blocked, old);
    if (set && how == SIG_SETMASK)
        process->blocked = set_of(set);
    else if (set && how == SIG_UNBLOCK)
        process->blocked &= ~set_of(set);
    else if (set && how == SIG_BLOCK)
        process->blocked |= set_of(set);
    signal_act();
    return 0;
}

int __wrap_sigpending(sigset_t *set)
{
    to_sigset(kernel.current->pending, set);
    return 0;
}

int __wrap_sigaction(int signo, const struct sigaction *action, struct sigaction *old)
{
    (void)signo, (void)action;
    if (old)
        memset(old, 0, sizeof *old);
    return 0;
}

/* Itself last. */
static int signal_group(int group, int signo)
{
    struct proc *self = kernel.current;
    int found = 0, count = kernel.process_count;

    for (int i = 0; i < count; i++) {
        struct proc *process = kernel.processes[i];
        if (process->group != group || process->life == REAPED || process == self)
            continue;
        found++;
        signal_send(process, signo);
    }
    if (self->group == group) {
        found++;
        signal_send(self, signo);
    }
    return found ? 0 : refused_with(ESRCH);
}

static int signal_one(int pid, int signo)
{
    struct proc *process = process_find(pid);

    if (!process)
        return refused_with(ESRCH);
    signal_send(process, signo);
    return 0;
}

/* A signal to the process itself comes before this returns. */
int __wrap_kill(pid_t pid, int signo)
{
    if (signo)
        life_on_deed(kernel.current, DEED_SIGNAL);
    kernel_call();
    if (signo)
        trace("kill(%d, %d)", pid, signo);
    int result =
        pid > 0 ? signal_one(pid, signo) : signal_group(pid ? -pid : kernel.current->group, signo);
    signal_act();
    return result;
}

static int pidfd_open(int pid)
{
    struct proc *process = process_find(pid);

    if (!process)
        return refused_with(ESRCH);
    if (is_refused(WANT_FILE))
        return -1;
    struct file *file = file_new(FILE_PROCESS);
    file->process = process;
    return file_open(file);
}

/* A later group of that number has a leader that was born later. */
static int signal_group_of(const struct proc *leader, int signo)
{
    for (int i = kernel.process_count; kernel.processes[--i] != leader;)
        if (kernel.processes[i]->pid == leader->pid)
            return refused_with(ESRCH);
    return signal_group(leader->pid, signo);
}

/* The flag is PIDFD_SIGNAL_PROCESS_GROUP. */
static int pidfd_send_signal(int fd, int signo, unsigned flags)
{
    const struct file *file = file_of(fd);

    if (!file)
        return -1;
    if (file->kind != FILE_PROCESS)
        return refused_with(EBADF);
    if (flags && !kernel.signals_groups)
        return refused_with(EINVAL);
    if (signo)
        trace("pidfd_send_signal(%s%d, %d)", flags ? "-" : "", file->process->pid, signo);
    if (flags)
        return signal_group_of(file->process, signo);
    if (file->process->life == REAPED)
        return refused_with(ESRCH);
    signal_send(file->process, signo);
    return 0;
}

long __wrap_syscall(long number, ...)
{
    long word[4];
    va_list words;

    va_start(words, number);
    for (int i = 0; i < 4; i++)
        word[i] = va_arg(words, long);
    va_end(words);
    if (number == SYS_clock_gettime)
        return __wrap_clock_gettime((clockid_t)word[0], (struct timespec *)word[1]);
    if (number == SYS_timerfd_settime)
        return __wrap_timerfd_settime((int)word[0], (int)word[1], (struct itimerspec *)word[2],
                                      NULL);
    if (number == SYS_pidfd_send_signal && word[1])
        life_on_deed(kernel.current, DEED_SIGNAL);
    kernel_call();
    switch (number) {
    case SYS_pidfd_open:
        return kernel.no_pidfd ? refused_with(kernel.no_pidfd) : pidfd_open((int)word[0]);
    case SYS_pidfd_send_signal:
        return kernel.no_pidfd_signal
                   ? refused_with(kernel.no_pidfd_signal)
                   : pidfd_send_signal((int)word[0], (int)word[1], (unsigned)word[3]);
    case SYS_close_range: return 0;                  /* all of its files are close-on-exec */
    case SYS_getdents64: return refused_with(EBADF); /* of no directory */
    default: return refused_with(ENOSYS);
    }
}

/* -- processes --------------------------------------------------------------------------------- */

pid_t __wrap_getpid(void)
{
    return kernel.current ? kernel.current->pid : 1;
}

pid_t __wrap_getppid(void)
{
    kernel_call();
    return kernel.current->parent;
}

pid_t __wrap_getpgrp(void)
{
    return kernel.current->group;
}

pid_t __wrap_getsid(pid_t pid)
{
    const struct proc *process = pid ? process_find(pid) : kernel.current;

    return process ? process->session : refused_with(ESRCH);
}

/* The error with which setpgid(2) refuses to move that process into the group; 0: none. */
static int refuse_group(const struct proc *process, int group)
{
    const struct proc *self = kernel.current;
    bool exists = group == process->pid;

    if (process != self && process->parent != self->pid)
        return ESRCH;
    if (process->session != self->session)
        return EPERM;
    if (process != self && !process->is_coroutine)
        return EACCES; /* it has executed a program */
    for (int i = 0; i < kernel.process_count; i++)
        exists |= kernel.processes[i]->group == group && kernel.processes[i]->life != REAPED &&
                  kernel.processes[i]->session == self->session;
    return process->session == process->pid || !exists ? EPERM : 0;
}

int __wrap_setpgid(pid_t pid, pid_t group)
{
    kernel_call();
    struct proc *process = pid ? process_find(pid) : kernel.current;
    if (process && !group)
        group = process->pid;
    int error = process ? refuse_group(process, group) : ESRCH;
    if (error)
        return refused_with(error);
    process->group = group;
    return 0;
}

pid_t __wrap_setsid(void)
{
    struct proc *self = kernel.current;

    kernel_call();
    for (int i = 0; i < kernel.process_count; i++)
        if (kernel.processes[i]->group == self->pid && kernel.processes[i]->life != REAPED)
            return refused_with(EPERM);
    return self->group = self->session = self->pid;
}

int __wrap_prctl(int option, ...)
{
    va_list words;

    va_start(words, option);
    unsigned long word = va_arg(words, unsigned long);
    va_end(words);
    kernel_call();
    if (option == PR_SET_PDEATHSIG)
        kernel.current->death_signal = (int)word;
    else if (option == PR_SET_CHILD_SUBREAPER)
        kernel.current->subreaper = word;
    else if (option == PR_SET_NAME)
        snprintf(kernel.current->name, sizeof kernel.current->name, "%s", (const char *)word);
    return 0;
}

/* Sets the status that waitpid() tells of a child now; false: it tells nothing. */
static bool tell_change(struct proc *child, int options, int *status)
{
    if (child->life == ZOMBIE) {
        process_reap(child);
        *status = child->status;
    } else if ((options & WUNTRACED) && child->stop_untold) {
        child->stop_untold = false;
        *status = W_STOPCODE(child->stop_signal);
    } else if ((options & WCONTINUED) && child->continue_untold) {
        child->continue_untold = false;
        *status = 0xffff;
    } else {
        return false;
    }
    return true;
}

static bool is_child(const struct proc *process)
{
    return process->life != REAPED && process->parent == kernel.current->pid;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    bool any = false;
    int unused;

    kernel_call();
    if (!(options & WNOHANG))
        fail("waitpid() would block"); /* no supervisor or agent may */
    for (int i = 0; i < kernel.process_count; i++) {
        struct proc *child = kernel.processes[i];
        if (!is_child(child) || (pid > 0 && child->pid != pid))
            continue;
        any = true;
        if (tell_change(child, options, status ? status : &unused))
            return child->pid;
    }
    return any ? 0 : refused_with(ECHILD);
}

/* With WNOHANG and WNOWAIT. */
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    bool any = false;

    kernel_call();
    info->si_pid = 0;
    for (int i = 0; i < kernel.process_count; i++) {
        const struct proc *child = kernel.processes[i];
        if (!is_child(child) || (type == P_PID && child->pid != (pid_t)id) ||
            (child->life == ZOMBIE && !(options & WEXITED)))
            continue;
        any = true;
        if (((options & WEXITED) && child->life == ZOMBIE) ||
            ((options & WSTOPPED) && child->stop_untold))
            info->si_pid = child->pid;
    }
    return any ? 0 : refused_with(ECHILD);
}

/* A signal that is not blocked ends a process that a file system keeps waiting. */
static void wait_for_file_system(void)
{
    int64_t end = world.now + chance_below(one_in(2) ? 100 * MS : 12 * SEC);

    while (world.now < end) {
        kernel_wait(WAIT_SLEEP, world.now + 10 * MS);
        signal_act();
    }
}

int __wrap_spawn_execute(const char *path, char *const *argv, char *const *environment)
{
    bool holds_up_its_parent = !kernel.current->shares;

    (void)path;
    if (kernel.slow_exec && !holds_up_its_parent && one_in(3))
        wait_for_file_system();
    kernel_call();
    process_execute(argv, environment);
}

void __wrap__exit(int status)
{
    kernel_call();
    if (kernel.current->finishes)
        process_finish(W_EXITCODE(status & 255, 0));
    process_end(kernel.current, W_EXITCODE(status & 255, 0));
    abort();
}

static struct proc *fork_process(enum kind kind)
{
    const struct proc *parent = kernel.current;
    struct proc *child = process_new(kind, parent->pid, parent->run);

    child->errand = parent->errand;
    memcpy(child->name, parent->name, sizeof child->name);
    child->group = parent->group;
    child->session = parent->session;
    child->blocked = parent->blocked;
    child->output = parent->output;
    child->cgroup = parent->cgroup;
    child->frozen_for = parent->frozen_for;
    process_inherit_environment(child, parent);
    return child;
}

/* A function that switch.S calls in the place of fork(), vfork() and kernel_fork_into(); only those
 * are simulated that lead to a spawn_execute() or _exit(). Returns in the child, on its parent's
 * stack; the parent continues when that has come, or when the child stops. cgroup: a descriptor, or
 * -1. */
int lives_vfork(const struct registers *registers, int cgroup)
{
    life_on_deed(kernel.current, DEED_BIRTH);
    kernel_call();
    if (cgroup >= 0 && kernel.no_fork_into)
        return refused_with(kernel.no_fork_into);
    if (is_refused(WANT_PROCESS))
        return -1;
    struct proc *parent = kernel.current, *child = fork_process(CHILD);
    files_inherit(child, parent);
    cgroup_add(child, parent, cgroup);
    child->is_coroutine = true;
    child->vfork = *registers;
    child->vfork_parent = parent;
    kernel_share_stack(child);
    parent->wait = WAIT_VFORK;
    kernel.current = child;
    trace("is born of %d", parent->pid);
    return 0;
}

pid_t __wrap_spawn_start(struct spawn *spawn, int (*work)(void *arg), void *arg)
{
    life_on_deed(kernel.current, DEED_BIRTH);
    kernel_call();
    if (is_refused(WANT_PROCESS))
        return -1;
    struct proc *parent = kernel.current, *child = fork_process(CHILD);
    files_inherit(child, parent);
    child->vfork_parent = parent;
    child->shares = &spawn->shares;
    spawn->shares = child->pid;
    process_start(child, (int (*)(const void *))(uintptr_t)work, arg);
    trace("spawns %d", child->pid);
    kernel_wait(WAIT_SPAWN, world.now + 20 * MS);
    return child->pid;
}

struct helper {
    int (*work)(int keep, const void *arg);
    int keep;
    const void *arg;
};

static int help(const void *arg)
{
    const struct helper *helper = arg;

    return helper->work(helper->keep, helper->arg);
}

/* A process that continues in the same program has a copy of what it is told (life_copy_task()). */
pid_t __wrap_child_fork_helper(const char *name, int keep, int (*work)(int keep, const void *arg),
                               const void *arg)
{
    life_on_deed(kernel.current, DEED_BIRTH);
    kernel_call();
    if (is_refused(WANT_PROCESS))
        return -1;
    bool notifies = strcmp(name, "rlock-notifier") == 0, guards = strcmp(name, "rlock-guard") == 0;
    struct proc *child = fork_process(notifies ? NOTIFIER : guards ? GUARD : AGENT);
    struct helper *helper = malloc(sizeof *helper);
    *helper = (struct helper){work, keep,
                              notifies ? life_copy_work(arg)
                              : guards ? life_copy_guarded(arg)
                                       : life_copy_task(arg)};
    snprintf(child->name, sizeof child->name, "%s", name);
    child->group = child->pid;
    file_inherit(child, kernel.current, keep);
    process_start(child, help, helper);
    trace("forks %s %d", name, child->pid);
    kernel_call();
    return child->pid;
}

/* The survivor keeps all files but the first two. */
pid_t __wrap_child_fork_survivor(const char *name, int (*work)(const void *arg), const void *arg)
{
    life_on_deed(kernel.current, DEED_BIRTH);
    kernel_call();
    if (is_refused(WANT_PROCESS))
        return -1;
    struct proc *child = fork_process(AGENT);
    const void *copy = life_copy_renewer(arg);
    snprintf(child->name, sizeof child->name, "%s", name);
    for (int fd = STDERR_FILENO + 1; fd < DESCRIPTORS; fd++)
        file_inherit(child, kernel.current, fd);
    process_start(child, work, copy);
    trace("forks %s %d", name, child->pid);
    kernel_call();
    return child->pid;
}

/* -- memory, chance, descriptors --------------------------------------------------------------- */

void *__real_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (is_refused(WANT_MEMORY))
        return MAP_FAILED;
    return kernel.current ? calloc(1, size)
                          : __real_mmap64(at, size, protection, flags, fd, offset);
}

ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)chance();
    return (ssize_t)size;
}

static ssize_t read_signals(const struct file *file, struct signalfd_siginfo *infos, size_t size)
{
    size_t got = 0;
    int signo;

    while ((got + 1) * sizeof *infos <= size && (signo = take_signal(file->signals)) != 0) {
        memset(&infos[got], 0, sizeof *infos);
        infos[got++].ssi_signo = (uint32_t)signo;
    }
    return got ? (ssize_t)(got * sizeof *infos) : refused_with(EAGAIN);
}

static ssize_t read_text(struct file *file, void *bytes, size_t size)
{
    size_t got = file->size - file->at < size ? file->size - file->at : size;

    memcpy(bytes, file->text + file->at, got);
    file->at += got;
    return (ssize_t)got;
}

/* No key is typed. */
static ssize_t read_tty(const struct tty *tty)
{
    int error;

    if (!tty->session)
        return 0;
    while ((error = tty_use(kernel.current, tty, SIGTTIN)) == EINTR)
        signal_act();
    return refused_with(error ? error : EAGAIN);
}

ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
    if (in_server())
        return network_take(network_find(fd - SERVER_DESCRIPTORS), bytes, size);
    kernel_call();
    struct file *file = file_of(fd);
    if (!file)
        return -1;
    switch (file->kind) {
    case FILE_SIGNAL: return read_signals(file, bytes, size);
    case FILE_TEXT:
    case FILE_PIPE: return read_text(file, bytes, size);
    case FILE_TTY: return read_tty(file->tty);
    default: return refused_with(EINVAL);
    }
}

/* The text comes when the writer's last call is over. */
static void write_pipe(struct file *file, const void *bytes, size_t size)
{
    if (!file)
        return;
    file->text = realloc(file->text, file->size + size);
    memcpy(file->text + file->size, bytes, size);
    file->size += size;
    file->due = kernel.current->finishes;
}

/* The program under test writes to the terminal, into pipes, and to a standard output that a script
 * reads. */
ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
    struct file *file = kernel.current && !in_server() ? file_of(fd) : NULL;

    if (in_server())
        network_answer(network_find(fd - SERVER_DESCRIPTORS), bytes, size);
    if (file && file->kind == FILE_CGROUP) {
        kernel_call();
        return cgroup_write(file, bytes, size);
    }
    if (file && file->kind == FILE_OUTPUT) {
        kernel_call();
        return output_write(file, bytes, size);
    }
    if (file && file->kind == FILE_PIPE)
        write_pipe(file->peer, bytes, size);
    return (ssize_t)size;
}

/* Two files that are each other's end. */
static void open_pair(enum file_kind kind, int ends[2])
{
    struct file *a = file_new(kind), *b = file_new(kind);

    a->peer = b;
    b->peer = a;
    ends[0] = file_open(a);
    ends[1] = file_open(b);
}

int __wrap_pipe2(int ends[2], int flags)
{
    (void)flags;
    kernel_call();
    if (is_refused(WANT_FILE))
        return -1;
    open_pair(FILE_PIPE, ends);
    return 0;
}

/* Called by a child behind fork(), which does the rest at once, and has done it when the answer
 * comes. */
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *wanted,
                       struct addrinfo **found)
{
    (void)wanted;
    kernel_call();
    return names_look_up(name, service, found, &kernel.current->finishes);
}

int __real_close(int fd);
int __wrap_close(int fd)
{
    if (!kernel.current)
        return __real_close(fd);
    if (in_server()) {
        server_close(network_find(fd - SERVER_DESCRIPTORS));
        return 0;
    }
    kernel_call();
    return file_close_descriptor(fd);
}

/* Counts of executed lines are written behind a life. In one, only /dev/tty is opened, and files
 * of cgroups and of the disk. */
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    struct tty *tty;

    if (!kernel.current)
        return __real_open(path, flags, 0666);
    kernel_call();
    if (is_refused(WANT_FILE))
        return -1;
    if (strcmp(path, DISK_PATH) == 0)
        return disk_open(flags);
    int fd = cgroup_open(path, flags);
    if (fd >= 0 || errno)
        return fd;
    tty = tty_of(kernel.current);
    if (!tty || strcmp(path, "/dev/tty") != 0)
        return refused_with(ENXIO);
    struct file *file = file_new(FILE_TTY);
    file->tty = tty;
    return file_open(file);
}

int __wrap_file_open_null(int flags)
{
    (void)flags;
    return is_refused(WANT_FILE) ? -1 : file_open(file_new(FILE_NOTHING));
}

int __wrap_open64(const char *path, int flags, ...)
{
    return __wrap_open(path, flags);
}

int __wrap_dup2(int from, int to)
{
    (void)from;
    return to; /* of the standard streams, which nothing here reads */
}

/* The only command that rlock uses here is F_DUPFD_CLOEXEC. */
int __wrap_fcntl64(int fd, int command, ...)
{
    struct file *file = file_of(fd);

    (void)command;
    if (!file || is_refused(WANT_FILE))
        return -1;
    file->references++;
    return file_open(file);
}

int __wrap_close_range(unsigned first, unsigned last, int flags)
{
    (void)first, (void)last, (void)flags;
    return 0; /* child_fork_helper() is simulated as a whole */
}

/* -- socket pairs ------------------------------------------------------------------------------ */

int __wrap_socketpair(int family, int type, int protocol, int ends[2])
{
    (void)family, (void)type, (void)protocol;
    kernel_call();
    if (is_refused(WANT_SOCKET))
        return -1;
    open_pair(FILE_PAIR, ends);
    return 0;
}

static struct message *message_of(const struct msghdr *parcel)
{
    const struct cmsghdr *head = CMSG_FIRSTHDR(parcel);
    size_t size = parcel->msg_iov->iov_len;
    struct message *message = malloc(sizeof *message + size);
    int sent;

    *message = (struct message){.size = size};
    memcpy(message->bytes, parcel->msg_iov->iov_base, size);
    if (head) {
        memcpy(&sent, CMSG_DATA(head), sizeof sent);
        message->file = file_of(sent);
        message->file->references++;
    }
    return message;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *parcel, int flags)
{
    (void)flags;
    life_on_deed(kernel.current, DEED_MESSAGE);
    kernel_call();
    const struct file *file = file_of(fd);
    if (!file || file->kind != FILE_PAIR)
        return refused_with(EBADF);
    struct file *peer = file->peer;
    if (!peer)
        return refused_with(EPIPE);
    if (peer->queued >= MESSAGES_MAX)
        return refused_with(EAGAIN);
    if (is_refused(WANT_MEMORY))
        return -1;
    struct message *message = message_of(parcel);
    if (peer->first)
        peer->last->next = message;
    else
        peer->first = message;
    peer->last = message;
    peer->queued++;
    return (ssize_t)message->size;
}

/* "The ancillary data is truncated" where there is no room for the descriptor: unix(7). */
static void hand_over(struct msghdr *parcel, struct file *file)
{
    if (is_refused(WANT_FILE)) {
        file_drop(file);
        return;
    }
    int fd = file_open(file);

    parcel->msg_controllen = CMSG_SPACE(sizeof fd);
    struct cmsghdr *head = CMSG_FIRSTHDR(parcel);
    *head = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *parcel, int flags)
{
    (void)flags;
    kernel_call();
    struct file *file = file_of(fd);
    if (!file || file->kind != FILE_PAIR)
        return refused_with(EBADF);
    parcel->msg_controllen = 0;
    if (file->reset) {
        file->reset = false;
        return refused_with(ECONNRESET);
    }
    struct message *message = file->first;
    if (!message)
        return file->peer ? refused_with(EAGAIN) : 0;
    file->first = message->next;
    file->queued--;
    size_t room = parcel->msg_iov->iov_len, size = message->size < room ? message->size : room;
    memcpy(parcel->msg_iov->iov_base, message->bytes, size);
    if (message->file)
        hand_over(parcel, message->file);
    free(message);
    life_on_deed(kernel.current, DEED_HEARD);
    return (ssize_t)size;
}

/* -- sockets ----------------------------------------------------------------------------------- */

int __wrap_socket(int family, int type, int protocol)
{
    (void)family, (void)type, (void)protocol;
    kernel_call();
    return is_refused(WANT_SOCKET) ? -1 : file_open(file_new(FILE_SOCKET));
}

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t length)
{
    (void)length;
    kernel_call();
    file_of(fd)->connection = network_connect(to);
    return refused_with(EINPROGRESS);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
    (void)flags;
    life_on_deed(kernel.current, DEED_REQUEST);
    kernel_call();
    return network_send(file_of(fd)->connection, bytes, size);
}

ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
    (void)flags;
    kernel_call();
    return network_receive(file_of(fd)->connection, bytes, size);
}

/* SO_ERROR. */
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    (void)level, (void)name, (void)size;
    kernel_call();
    const struct connection *connection = file_of(fd)->connection;
    *(int *)value = !connection           ? 0
                    : connection->refused ? ECONNREFUSED
                    : connection->reset   ? ECONNRESET
                                          : 0;
    return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    (void)fd, (void)level, (void)name, (void)value, (void)size;
    return 0;
}

int __wrap_shutdown(int fd, int how)
{
    (void)fd, (void)how;
    return 0;
}

/* -- the terminal ------------------------------------------------------------------------------ */

/* The terminal behind a descriptor of the current process; NULL with ENOTTY or EBADF: none. */
static struct tty *tty_behind(int fd)
{
    const struct file *file = fd > STDERR_FILENO ? file_of(fd) : NULL;

    if (fd > STDERR_FILENO && !file)
        return NULL;
    errno = ENOTTY;
    if (file)
        return file->kind == FILE_TTY ? file->tty : NULL;
    return fd == STDOUT_FILENO ? kernel.current->output : NULL;
}

pid_t __wrap_tcgetpgrp(int fd)
{
    kernel_call();
    const struct tty *tty = tty_behind(fd);
    if (!tty)
        return -1;
    if (!tty->session)
        return refused_with(EIO);
    return tty == tty_of(kernel.current) ? tty->foreground : refused_with(ENOTTY);
}

/* Each repetition is that of a call that a signal has interrupted. */
static int change_tty(int fd, int (*change)(const struct proc *, struct tty *, int), int arg)
{
    struct tty *tty = tty_behind(fd);
    int error;

    if (!tty)
        return -1;
    if (!tty->session)
        return refused_with(change == tty_give ? ENOTTY : EIO);
    while ((error = change(kernel.current, tty, arg)) == EINTR)
        signal_act();
    return error ? refused_with(error) : 0;
}

int __wrap_tcsetpgrp(int fd, pid_t group)
{
    life_on_deed(kernel.current, DEED_TERMINAL);
    kernel_call();
    trace("tcsetpgrp(%d)", group);
    return change_tty(fd, tty_give, group);
}

static int set_mode(const struct proc *process, struct tty *tty, int signo)
{
    return tty_use(process, tty, signo);
}

int __wrap_tcsetattr(int fd, int when, const struct termios *mode)
{
    (void)when, (void)mode;
    kernel_call();
    return change_tty(fd, set_mode, SIGTTOU);
}

int __wrap_tcgetattr(int fd, struct termios *mode)
{
    kernel_call();
    const struct tty *tty = tty_behind(fd);
    if (!tty)
        return -1;
    *mode = (struct termios){0};
    return tty->session ? 0 : refused_with(EIO);
}
