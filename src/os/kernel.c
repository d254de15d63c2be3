#include "os/kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/decimal.h"

#ifndef PIDFD_SIGNAL_PROCESS_GROUP
#define PIDFD_SIGNAL_PROCESS_GROUP 4 /* pidfd_send_signal(2) */
#endif

/* No descriptor has a higher number, unless an administrator has raised fs.nr_open for that. */
#define MOST_DESCRIPTORS 1048576

/* -- processes ------------------------------------------------------------------------------- */

int kernel_pidfd(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* Calls pidfd_send_signal(2), which the C library of old systems lacks. */
static int send_signal(int pidfd, int signo, unsigned flags)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, flags);
}

void kernel_signal(pid_t pid, int pidfd, int signo)
{
    /* EPERM is a sandbox's or that of another user's process: kill() works where it is the
     * first. */
    if (pidfd < 0 || (send_signal(pidfd, signo, 0) != 0 && errno != ESRCH))
        kill(pid, signo);
}

bool kernel_has_gone(int pidfd)
{
    return send_signal(pidfd, 0, 0) != 0 && errno == ESRCH;
}

bool kernel_signal_group(int pidfd, int signo)
{
    return send_signal(pidfd, signo, PIDFD_SIGNAL_PROCESS_GROUP) == 0;
}

pid_t kernel_fork_into(int cgroup)
{
    struct clone_args how = {
        .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)cgroup};

    return (pid_t)syscall(SYS_clone3, &how, sizeof how);
}

void kernel_wait_while(const int *word, int value, int64_t most)
{
    const struct timespec rest = {.tv_sec = most / NS_PER_SEC, .tv_nsec = most % NS_PER_SEC};

    syscall(SYS_futex, word, FUTEX_WAIT, value, &rest, NULL, 0);
}

/* Whether two links of /proc, of this process's name space and of that which it forks into, tell
 * two name spaces. host: the text of the link for the name space of the host itself, whose number
 * is fixed (linux/proc_ns.h). */
static bool differ(const char *name, const char *of_children, const char *host)
{
    char own[64], there[64]; /* reading a link costs less than stat(2) */
    struct stat link;
    ssize_t other = readlink(of_children, there, sizeof there);
    int error = errno;

    /* A name space for children is a new one or one below (unshare(2), setns(2)): if it is that of
     * the host, this process is in it as well. */
    if (other == (ssize_t)strlen(host) && memcmp(there, host, (size_t)other) == 0)
        return false;
    ssize_t size = readlink(name, own, sizeof own);
    if (size < 0)
        return false;
    if (other < 0) /* a name space of processes that has none yet: the link leads nowhere */
        return error == ENOENT && lstat(of_children, &link) == 0;
    return other != size || memcmp(own, there, (size_t)size) != 0;
}

const char *kernel_forks_elsewhere(void)
{
    if (differ("/proc/self/ns/pid", "/proc/self/ns/pid_for_children", "pid:[4026531836]"))
        return KERNEL_FORKS_ELSEWHERE;
    if (differ("/proc/self/ns/time", "/proc/self/ns/time_for_children", "time:[4026531834]"))
        return "what it starts would have another clock than itself: unshare needs --fork";
    return NULL;
}

/* -- what it needs --------------------------------------------------------------------------- */

/* Each of these tries a call, without an effect. They return a descriptor, which the caller closes;
 * -1 with errno; or another number that is not a descriptor's, 0 for example. */
static int try_prctl(void)
{
    int adopts;
    return prctl(PR_GET_CHILD_SUBREAPER, &adopts);
}

static int try_timerfd(void)
{
    return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
}

static int try_signalfd(void)
{
    sigset_t none;

    sigemptyset(&none);
    return signalfd(-1, &none, SFD_CLOEXEC);
}

static int try_socketpair(void)
{
    int ends[2], made = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);

    if (made == 0)
        close(ends[1]);
    return made == 0 ? ends[0] : -1;
}

static int try_sendmsg(void)
{
    return (int)sendmsg(-1, &(struct msghdr){0}, 0);
}

static int try_recvmsg(void)
{
    return (int)recvmsg(-1, &(struct msghdr){0}, 0);
}

/* Tries read(2) as a loop does it, on a signalfd, which has no signal to read: EAGAIN is the right
 * answer. A library in front of the C library (LD_PRELOAD) may refuse it as well, or find an end
 * there (EIO): this process would hear of no signal. */
static int try_read(void)
{
    struct signalfd_siginfo info;
    sigset_t none;

    sigemptyset(&none);
    int fd = signalfd(-1, &none, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return 0; /* try_signalfd() tells */
    ssize_t got = read(fd, &info, sizeof info);
    int error = got < 0 ? errno : EIO;
    close(fd);
    errno = error;
    return -1;
}

/* Fails with ECHILD where it is allowed: no process is its own child. */
static int try_waitpid(void)
{
    return waitpid(getpid(), NULL, WNOHANG);
}

static int try_sigprocmask(void)
{
    sigset_t blocked;
    return sigprocmask(SIG_BLOCK, NULL, &blocked);
}

/* The C library's getppid() sets no errno: a refusal would be the number of a parent. */
static int try_getppid(void)
{
    return syscall(SYS_getppid) < 0 ? -1 : 0;
}

static int try_getdents(void)
{
    return (int)syscall(SYS_getdents64, -1, NULL, 0);
}

static int try_waitid(void)
{
    siginfo_t info;
    return waitid(P_PID, (id_t)getpid(), &info, WEXITED | WNOHANG | WNOWAIT);
}

/* No process has that number. */
static int try_kill(void)
{
    return kill(INT_MAX, 0);
}

static int try_setpgid(void)
{
    return setpgid(-1, 1);
}

/* For what rlock needs a call: without it, it is silent, begins nothing, or cannot guard a
 * command. */
enum need { NEED_TO_SPEAK = 1 << 0, NEED_TO_BEGIN = 1 << 1, NEED_TO_GUARD = 1 << 2 };

static const struct needed_call {
    enum need need;
    const char *name;
    int (*try)(void); /* as try_prctl() */
} needed_calls[] = {{NEED_TO_SPEAK, "sendmsg()", try_sendmsg},
                    {NEED_TO_SPEAK, "recvmsg()", try_recvmsg},
                    {NEED_TO_SPEAK, "read()", try_read},
                    {NEED_TO_SPEAK, "wait4()", try_waitpid},
                    {NEED_TO_SPEAK, "getppid()", try_getppid},
                    {NEED_TO_SPEAK, "rt_sigprocmask()", try_sigprocmask},
                    {NEED_TO_BEGIN, "prctl(PR_SET_CHILD_SUBREAPER)", try_prctl},
                    {NEED_TO_BEGIN, "timerfd_create()", try_timerfd},
                    {NEED_TO_BEGIN, "signalfd()", try_signalfd},
                    {NEED_TO_BEGIN, "socketpair()", try_socketpair},
                    {NEED_TO_GUARD, "getdents64()", try_getdents},
                    {NEED_TO_GUARD, "waitid()", try_waitid},
                    {NEED_TO_GUARD, "kill()", try_kill},
                    {NEED_TO_GUARD, "setpgid()", try_setpgid}};

/* Whether a failed call was refused by a sandbox, whose errno may be any. */
static bool is_refusal(int error)
{
    /* The right answers to what is tried here; and that something is used up. */
    static const int others[] = {EBADF, ECHILD, ESRCH, EAGAIN, EMFILE, ENFILE, ENOBUFS, ENOMEM};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (error == others[i])
            return false;
    return true;
}

/* Tries calls that this program needs. needs: of enum need. Returns the name of the first such call
 * that is refused, with errno; NULL: none is. */
static const char *find_refused(unsigned needs)
{
    for (size_t i = 0; i < sizeof needed_calls / sizeof *needed_calls; i++) {
        if (!(needed_calls[i].need & needs))
            continue;
        int made = needed_calls[i].try();
        if (made < 0 && is_refusal(errno))
            return needed_calls[i].name;
        if (made > STDERR_FILENO)
            close(made);
    }
    return NULL;
}

bool kernel_lets_guard(void)
{
    return !find_refused(NEED_TO_GUARD);
}

const char *kernel_refuses_silently(void)
{
    return find_refused(NEED_TO_SPEAK);
}

const char *kernel_refused(void)
{
    int error = errno;
    const char *refused = is_refusal(error) ? find_refused(NEED_TO_BEGIN | NEED_TO_GUARD) : NULL;

    if (!refused)
        errno = error;
    return refused;
}

/* -- descriptors ----------------------------------------------------------------------------- */

/* Closes the descriptors from "first" to "last" that /proc lists. False if it cannot list them:
 * without /proc, or without a free descriptor. */
static bool close_listed(int first, int last)
{
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;
    int64_t fd;

    if (!directory)
        return false;
    while ((errno = 0, entry = readdir(directory)))
        if (decimal_parse(entry->d_name, first, last, &fd) && fd != dirfd(directory))
            close((int)fd);
    bool complete = errno == 0;
    closedir(directory);
    return complete;
}

void kernel_close(int first, int last)
{
    int most = last < 0 ? INT_MAX : last;

    if (first > most || close_range((unsigned)first, (unsigned)most, 0) == 0)
        return;
    if (!close_listed(first, most)) {
        /* A limit may have been lowered since a descriptor was opened, but hardly the hard one. */
        struct rlimit limit = {.rlim_max = MOST_DESCRIPTORS};
        getrlimit(RLIMIT_NOFILE, &limit);
        if (limit.rlim_max > MOST_DESCRIPTORS)
            limit.rlim_max = MOST_DESCRIPTORS;
        for (int fd = first; fd <= most && fd < (int)limit.rlim_max; fd++)
            close(fd);
    }
}
