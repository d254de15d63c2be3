/* To add a case: write what it does and what it finds out, and name it in the table at the end. Its
 * facts must not depend on who is faster: it waits for a state, and only then looks. */
#include "lives/contract.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "os/child.h"
#include "os/kernel.h"
#include "os/procfs.h"
#include "os/spawn.h"
#include "run/channel.h"

#define MS       1000000
#define PATIENCE 10000 /* ms that anything takes at most */

char contract_facts[2000];

/* -- what is found ----------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void say(const char *what, const char *format, ...)
{
    size_t used = strlen(contract_facts);
    va_list words;

    used += (size_t)snprintf(contract_facts + used, sizeof contract_facts - used, "%s%s ",
                             used ? ", " : "", what);
    va_start(words, format);
    vsnprintf(contract_facts + used, sizeof contract_facts - used, format, words);
    va_end(words);
}

/* The result of a call, or its errno. */
static void say_result(const char *what, long result)
{
    if (result < 0)
        say(what, "%s", strerror(errno));
    else
        say(what, "%ld", result);
}

static void say_whether(const char *what, bool is_so)
{
    say(what, "%s", is_so ? "yes" : "no");
}

static void say_signals(const char *what, uint64_t set)
{
    char text[600] = "none";

    for (int signo = 1, at = 0; signo < 64; signo++)
        if (set >> signo & 1)
            at += snprintf(text + at, sizeof text - (size_t)at, "%s%s", at ? "+" : "",
                           sigabbrev_np(signo));
    say(what, "%s", text);
}

/* -- time -------------------------------------------------------------------------------------- */

static void rest(int64_t ns)
{
    const struct timespec time = {ns / 1000000000, ns % 1000000000};

    nanosleep(&time, NULL);
}

static int64_t boot_time(void)
{
    struct timespec time;

    clock_gettime(CLOCK_BOOTTIME, &time);
    return time.tv_sec * (int64_t)1000000000 + time.tv_nsec;
}

static char state_of(pid_t pid)
{
    struct process process;

    return procfs_read(NULL, pid, &process) == PROCESS_FOUND ? process.state : '-';
}

static void await_state(pid_t pid, char state)
{
    for (int i = 0; i < PATIENCE && state_of(pid) != state; i++)
        rest(MS);
}

/* -- signals and children ---------------------------------------------------------------------- */

static uint64_t bit(int signo)
{
    return UINT64_C(1) << signo;
}

static sigset_t set_of(uint64_t signals)
{
    sigset_t set;

    sigemptyset(&set);
    for (int signo = 1; signo < 64; signo++)
        if (signals >> signo & 1)
            sigaddset(&set, signo);
    return set;
}

static uint64_t pending(void)
{
    uint64_t found = 0;
    sigset_t set;

    sigpending(&set);
    for (int signo = 1; signo < 64; signo++)
        if (sigismember(&set, signo) == 1)
            found |= bit(signo);
    return found;
}

/* Takes one of these signals that is pending, or comes within that time. */
static int take(uint64_t signals, int ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * (long)MS};
    const sigset_t set = set_of(signals);
    int signo;

    do {
        signo = sigtimedwait(&set, NULL, &time);
    } while (signo < 0 && errno == EINTR);
    return signo;
}

static void say_change(const char *what, pid_t got, int status)
{
    if (got < 0)
        say(what, "%s", strerror(errno));
    else if (got == 0)
        say(what, "nothing");
    else if (WIFEXITED(status))
        say(what, "exit %d", WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        say(what, "killed by %s", sigabbrev_np(WTERMSIG(status)));
    else if (WIFSTOPPED(status))
        say(what, "stopped by %s", sigabbrev_np(WSTOPSIG(status)));
    else
        say(what, "continued");
}

/* Says what waitpid() tells now. */
static void say_now(const char *what, pid_t pid, int options)
{
    int status = 0;
    pid_t got = waitpid(pid, &status, options | WNOHANG);

    say_change(what, got, status);
}

/* Says what it tells next. */
static void say_next(const char *what, pid_t pid, int options)
{
    int status = 0;
    pid_t got = 0;

    for (int i = 0; i < PATIENCE && got == 0; i++) {
        got = waitpid(pid, &status, options | WNOHANG);
        if (got == 0)
            rest(MS);
    }
    say_change(what, got, status);
}

/* Says whom waitid() shows, which takes nothing. */
static void say_shown(const char *what, pid_t pid, int options)
{
    siginfo_t info = {0};

    if (waitid(P_ALL, 0, &info, options | WNOHANG | WNOWAIT) < 0)
        say(what, "%s", strerror(errno));
    else
        say(what, "%s", info.si_pid == pid ? "it" : info.si_pid ? "another" : "none");
}

/* -- puppets: processes that carry out orders -------------------------------------------------- */

struct puppet {
    pid_t pid;
    int fd; /* the channel to it */
};

enum verb {
    EXIT,
    PENDING,
    PARENT,
    GROUP,
    SESSION,
    NEW_SESSION,
    SET_GROUP,
    DEATH_SIGNAL,
    ADOPT,
    KILL,
    UNBLOCK,
    FORK,
    REAP,
    RENAME,
    FOREGROUND,
    TAKE,
    SET_MODE,
    READ,
    AWAIT,
    REST,
    POLL
};

struct order {
    enum verb verb;
    int64_t a, b;
};

struct reply {
    int64_t result;
    int error;
};

static int puppet_main(int channel, const void *arg);
static int64_t ask(struct puppet puppet, enum verb verb);

static struct puppet puppet_new(void)
{
    int ends[2];

    channel_pair(ends);
    pid_t pid = child_fork_helper("puppet", ends[1], puppet_main, NULL);
    close(ends[1]);
    struct puppet puppet = {pid, ends[0]};
    ask(puppet, GROUP); /* it has one of its own by now */
    return puppet;
}

static int open_terminal(void)
{
    return open("/dev/tty", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static int64_t use_terminal(const struct order *order)
{
    struct termios mode;
    int fd = open_terminal(), result = -1;
    char byte;

    if (fd < 0)
        return -1;
    switch (order->verb) {
    case FOREGROUND: result = tcgetpgrp(fd); break;
    case TAKE: result = tcsetpgrp(fd, (pid_t)order->a); break;
    case SET_MODE: result = tcgetattr(fd, &mode) < 0 ? -1 : tcsetattr(fd, TCSANOW, &mode); break;
    default: result = (int)read(fd, &byte, 1);
    }
    int error = errno;
    close(fd);
    errno = error;
    return result;
}

static int64_t carry_out(const struct order *order, int *fd)
{
    const struct timespec time = {order->a / 1000, order->a % 1000 * MS};
    struct puppet child;
    sigset_t set;
    int status;

    switch (order->verb) {
    case EXIT: _exit((int)order->a);
    case PENDING: return (int64_t)pending();
    case PARENT: return getppid();
    case GROUP: return getpgrp();
    case SESSION: return getsid(0);
    case NEW_SESSION: return setsid();
    case SET_GROUP: return setpgid((pid_t)order->a, (pid_t)order->b);
    case DEATH_SIGNAL: return prctl(PR_SET_PDEATHSIG, (unsigned long)order->a);
    case ADOPT: return prctl(PR_SET_CHILD_SUBREAPER, 1);
    case KILL: return kill((pid_t)order->a, (int)order->b);
    case UNBLOCK: set = set_of((uint64_t)order->a); return sigprocmask(SIG_UNBLOCK, &set, NULL);
    case FORK:
        child = puppet_new();
        *fd = child.fd;
        return child.pid;
    case REAP: return waitpid((pid_t)order->a, &status, WNOHANG) > 0 ? status : -1;
    case RENAME: return prctl(PR_SET_NAME, "renamed");
    case FOREGROUND:
    case TAKE:
    case SET_MODE:
    case READ: return use_terminal(order);
    case AWAIT: set = set_of(bit(SIGUSR1)); return sigtimedwait(&set, NULL, &time);
    case REST: return nanosleep(&time, NULL);
    case POLL: return poll(NULL, 0, (int)order->a);
    }
    return -1;
}

static int puppet_main(int channel, const void *arg)
{
    struct pollfd polled = {.fd = channel, .events = POLLIN};
    struct order order;
    int got, none;

    (void)arg;
    while ((got = channel_receive(channel, &order, sizeof order, &none)) >= 0) {
        int fd = -1;
        if (got == 0) {
            poll(&polled, 1, -1);
            continue;
        }
        struct reply reply = {.result = carry_out(&order, &fd)};
        reply.error = errno;
        channel_send(channel, &reply, sizeof reply, fd);
        if (fd >= 0)
            close(fd);
    }
    return 0;
}

static void order(struct puppet puppet, enum verb verb, int64_t a, int64_t b)
{
    const struct order order = {verb, a, b};

    channel_send(puppet.fd, &order, sizeof order, -1);
}

static int64_t answer_of(struct puppet puppet, int *fd)
{
    struct pollfd polled = {.fd = puppet.fd, .events = POLLIN};
    struct reply reply;

    poll(&polled, 1, PATIENCE);
    if (channel_receive(puppet.fd, &reply, sizeof reply, fd) <= 0)
        return say("a puppet", "is gone"), -1;
    errno = reply.error;
    return reply.result;
}

/* The puppet is stopped and continued again and again, until it has answered. */
static int64_t answer_between_stops(struct puppet puppet)
{
    struct pollfd polled = {.fd = puppet.fd, .events = POLLIN};
    int none;

    while (poll(&polled, 1, 20) == 0) {
        kill(puppet.pid, SIGSTOP);
        await_state(puppet.pid, 'T');
        kill(puppet.pid, SIGCONT);
    }
    return answer_of(puppet, &none);
}

static int64_t ask_with(struct puppet puppet, enum verb verb, int64_t a, int64_t b)
{
    int none;

    order(puppet, verb, a, b);
    return answer_of(puppet, &none);
}

static int64_t ask(struct puppet puppet, enum verb verb)
{
    return ask_with(puppet, verb, 0, 0);
}

/* A child of that puppet. */
static struct puppet puppet_of(struct puppet parent)
{
    struct puppet child;

    order(parent, FORK, 0, 0);
    child.pid = (pid_t)answer_of(parent, &child.fd);
    return child;
}

/* Has it end, by itself, and waits until it has. */
static void end_puppet(struct puppet puppet, int status)
{
    order(puppet, EXIT, status, 0);
    await_state(puppet.pid, 'Z');
}

/* An actor, of whose life only the beginning and the end can be seen; it has executed its program
 * when this returns. Signals are not blocked in it. */
static pid_t actor_new(int ms, int status)
{
    char text[2][20];
    char *argv[] = {(char[]){CONTRACT_ACTOR}, text[0], text[1], NULL}, *environment[] = {NULL};
    struct pollfd polled = {.events = POLLIN};
    sigset_t none;
    int ends[2];

    snprintf(text[0], sizeof text[0], "%d", ms);
    snprintf(text[1], sizeof text[1], "%d", status);
    sigemptyset(&none);
    channel_pair(ends);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        sigprocmask(SIG_SETMASK, &none, NULL);
        spawn_execute("/proc/self/exe", argv, environment);
        _exit(127);
    }
    close(ends[1]);
    polled.fd = ends[0];
    if (poll(&polled, 1, PATIENCE) != 1)
        say("an actor", "keeps its descriptors");
    close(ends[0]);
    return pid;
}

/* -- channels ---------------------------------------------------------------------------------- */

static int send_byte(int fd, char byte)
{
    return channel_send(fd, &byte, 1, -1) ? 1 : -1;
}

static ssize_t receive_raw(int fd, char *bytes, size_t size)
{
    struct iovec text = {bytes, size};
    struct msghdr parcel = {.msg_iov = &text, .msg_iovlen = 1};

    return recvmsg(fd, &parcel, MSG_DONTWAIT);
}

/* -- cases: signals ---------------------------------------------------------------------------- */

static void a_signal_is_pending_once(void)
{
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR1);
    say_signals("pending", pending());
    say_whether("first", take(bit(SIGUSR1), 0) == SIGUSR1);
    say_result("second", take(bit(SIGUSR1), 0));
}

static void the_lowest_signal_is_first(void)
{
    kill(getpid(), SIGTERM);
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGUSR2);
    for (int i = 0; i < 3; i++)
        say("then", "%s", sigabbrev_np(take(bit(SIGTERM) | bit(SIGHUP) | bit(SIGUSR2), 0)));
}

static void a_signalfd_hands_out_pending_signals(void)
{
    const sigset_t set = set_of(bit(SIGTERM) | bit(SIGHUP));
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    struct signalfd_siginfo infos[8];

    say_result("nothing to read", read(fd, infos, sizeof infos));
    say_result("polled", poll(&polled, 1, 0));
    kill(getpid(), SIGTERM);
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGUSR1);
    say_result("polled", poll(&polled, 1, PATIENCE));
    ssize_t got = read(fd, infos, sizeof infos);
    say_result("read", got / (ssize_t)sizeof infos[0]);
    say("first", "%s", sigabbrev_np((int)infos[0].ssi_signo));
    say_signals("left", pending());
    close(fd);
}

static void continue_and_stop_take_each_other_back(void)
{
    kill(getpid(), SIGTSTP);
    say_signals("after TSTP", pending());
    kill(getpid(), SIGCONT);
    say_signals("after CONT", pending());
    kill(getpid(), SIGTTIN);
    say_signals("after TTIN", pending());
    kill(getpid(), SIGTTOU);
    say_signals("after TTOU", pending());
    kill(getpid(), SIGCONT);
    say_signals("after CONT", pending());
}

static void a_stop_that_is_unblocked_stops_there(void)
{
    struct puppet puppet = puppet_new();

    ask_with(puppet, KILL, puppet.pid, SIGTSTP);
    order(puppet, UNBLOCK, (int64_t)bit(SIGTSTP), 0);
    say_next("told", puppet.pid, WUNTRACED);
    kill(puppet.pid, SIGCONT);
    say_next("told", puppet.pid, WUNTRACED | WCONTINUED);
    int none;
    say_result("unblocked", answer_of(puppet, &none));
    say_signals("pending", (uint64_t)ask(puppet, PENDING));
}

static void a_continue_before_it_is_unblocked_prevents_the_stop(void)
{
    struct puppet puppet = puppet_new();

    ask_with(puppet, KILL, puppet.pid, SIGTSTP);
    kill(puppet.pid, SIGCONT);
    say_result("unblocked", ask_with(puppet, UNBLOCK, (int64_t)bit(SIGTSTP), 0));
    say_now("told", puppet.pid, WUNTRACED | WCONTINUED);
}

static void a_signal_waits_in_a_stopped_process(void)
{
    pid_t actor = actor_new(60000, 0);

    kill(actor, SIGSTOP);
    say_next("told", actor, WUNTRACED);
    kill(actor, SIGTERM);
    rest(20 * MS);
    say("state", "%c", state_of(actor));
    kill(actor, SIGCONT);
    say_next("end", actor, 0);
}

static void a_stopped_process_is_killed(void)
{
    pid_t actor = actor_new(60000, 0);

    kill(actor, SIGSTOP);
    await_state(actor, 'T');
    kill(actor, SIGKILL);
    say_next("end", actor, 0);
}

static void a_group_is_signalled_as_a_whole(void)
{
    struct puppet a = puppet_new(), b = puppet_new();

    ask_with(b, SET_GROUP, 0, a.pid);
    say_result("kill", kill(-a.pid, SIGUSR1));
    say_signals("leader", (uint64_t)ask(a, PENDING));
    say_signals("member", (uint64_t)ask(b, PENDING));
    say_signals("we", pending() & ~bit(SIGCHLD));
    say_result("own group", kill(0, SIGUSR2));
    say_signals("we", pending() & ~bit(SIGCHLD));
}

static void a_group_lives_as_long_as_its_last_process(void)
{
    struct puppet a = puppet_new(), b = puppet_new();

    ask_with(b, SET_GROUP, 0, a.pid);
    end_puppet(a, 0);
    say_now("leader", a.pid, 0);
    say_result("with a member", kill(-a.pid, 0));
    end_puppet(b, 0);
    say_result("with a zombie", kill(-a.pid, 0));
    say_now("member", b.pid, 0);
    say_result("empty", kill(-a.pid, 0));
}

static void a_zombie_can_be_signalled(void)
{
    struct puppet puppet = puppet_new();

    end_puppet(puppet, 3);
    say_result("kill", kill(puppet.pid, SIGKILL));
    say_result("session", getsid(puppet.pid) == getsid(0));
    say_now("reaped", puppet.pid, 0);
    say_result("kill", kill(puppet.pid, 0));
    say_result("session", getsid(puppet.pid));
}

static void what_is_not_blocked_ends_a_process(void)
{
    struct puppet puppet = puppet_new();

    ask_with(puppet, UNBLOCK, (int64_t)(bit(SIGTERM) | bit(SIGCHLD) | bit(SIGWINCH)), 0);
    kill(puppet.pid, SIGWINCH);
    kill(puppet.pid, SIGCHLD);
    kill(puppet.pid, SIGHUP);
    say_signals("pending", (uint64_t)ask(puppet, PENDING));
    kill(puppet.pid, SIGTERM);
    say_next("end", puppet.pid, 0);
}

static void pending_signals_are_not_inherited(void)
{
    struct puppet parent = puppet_new();

    ask_with(parent, KILL, parent.pid, SIGUSR1);
    struct puppet child = puppet_of(parent);
    say_signals("parent", (uint64_t)ask(parent, PENDING));
    say_signals("child", (uint64_t)ask(child, PENDING));
    kill(child.pid, SIGTERM);
    say_signals("the mask is: child", (uint64_t)ask(child, PENDING));
}

/* -- cases: stops, ends, and who is told ------------------------------------------------------- */

static void stops_are_told_once(void)
{
    struct puppet puppet = puppet_new();

    kill(puppet.pid, SIGSTOP);
    await_state(puppet.pid, 'T');
    say_whether("CHLD", take(bit(SIGCHLD), PATIENCE) == SIGCHLD);
    say_shown("shown", puppet.pid, WSTOPPED);
    say_shown("shown", puppet.pid, WSTOPPED);
    say_now("not asked for", puppet.pid, 0);
    say_now("told", puppet.pid, WUNTRACED);
    say_now("told", puppet.pid, WUNTRACED);
    say_shown("shown", puppet.pid, WSTOPPED);
    kill(puppet.pid, SIGCONT);
    say_whether("CHLD", take(bit(SIGCHLD), PATIENCE) == SIGCHLD);
    say_now("told", puppet.pid, WUNTRACED);
    say_now("told", puppet.pid, WUNTRACED | WCONTINUED);
    say_now("told", puppet.pid, WUNTRACED | WCONTINUED);
}

static void a_stop_that_is_over_is_not_told(void)
{
    struct puppet puppet = puppet_new();

    kill(puppet.pid, SIGSTOP);
    await_state(puppet.pid, 'T');
    kill(puppet.pid, SIGCONT);
    say_result("it runs", ask(puppet, PARENT) == getpid());
    say_now("told", puppet.pid, WUNTRACED);
    say_now("told", puppet.pid, WUNTRACED | WCONTINUED);
}

static void a_continue_that_is_over_is_not_told(void)
{
    struct puppet puppet = puppet_new();

    kill(puppet.pid, SIGSTOP);
    say_next("told", puppet.pid, WUNTRACED);
    kill(puppet.pid, SIGCONT);
    ask(puppet, PARENT);
    kill(puppet.pid, SIGSTOP);
    await_state(puppet.pid, 'T');
    say_next("told", puppet.pid, WUNTRACED | WCONTINUED);
    say_now("told", puppet.pid, WUNTRACED | WCONTINUED);
}

static void a_second_stop_changes_nothing(void)
{
    struct puppet puppet = puppet_new();

    kill(puppet.pid, SIGSTOP);
    say_next("told", puppet.pid, WUNTRACED);
    kill(puppet.pid, SIGSTOP);
    rest(10 * MS);
    say_now("told", puppet.pid, WUNTRACED);
}

static void a_continue_that_is_blocked_continues(void)
{
    struct puppet puppet = puppet_new();

    kill(puppet.pid, SIGSTOP);
    await_state(puppet.pid, 'T');
    kill(puppet.pid, SIGCONT);
    say_signals("pending", (uint64_t)ask(puppet, PENDING));
}

static void continuing_what_runs_is_not_told(void)
{
    struct puppet puppet = puppet_new();

    kill(puppet.pid, SIGCONT);
    ask(puppet, PARENT);
    say_now("told", puppet.pid, WUNTRACED | WCONTINUED);
}

static void ends_are_shown_until_taken(void)
{
    say_shown("no child", 0, WEXITED);
    struct puppet puppet = puppet_new();
    say_shown("alive", puppet.pid, WEXITED);
    end_puppet(puppet, 300);
    say_shown("zombie", puppet.pid, WEXITED);
    say_shown("zombie", puppet.pid, WEXITED);
    say_shown("not asked for", puppet.pid, WSTOPPED);
    say_now("any", -1, 0);
    say_now("any", -1, 0);
    say_now("not ours", getppid(), 0);
}

static void one_signal_tells_of_several_ends(void)
{
    struct puppet a = puppet_new(), b = puppet_new();

    end_puppet(a, 1);
    end_puppet(b, 2);
    take(bit(SIGCHLD), PATIENCE);
    say_result("another CHLD", take(bit(SIGCHLD), 0));
    say_now("a", a.pid, 0);
    say_now("b", b.pid, 0);
}

static void files_are_closed_before_the_end_is_told(void)
{
    struct puppet puppet = puppet_new();
    struct pollfd polled = {.fd = puppet.fd, .events = POLLIN};
    char byte;

    order(puppet, EXIT, 0, 0);
    take(bit(SIGCHLD), PATIENCE);
    say_shown("zombie", puppet.pid, WEXITED);
    say_result("polled", poll(&polled, 1, 0));
    say_whether("hung up", polled.revents == (POLLIN | POLLHUP));
    say_result("received", receive_raw(puppet.fd, &byte, 1));
}

static void an_end_is_not_told_to_grandparents(void)
{
    struct puppet parent = puppet_new(), child = puppet_of(parent);

    order(child, EXIT, 4, 0);
    await_state(child.pid, 'Z');
    say_now("we", child.pid, 0);
    say_signals("parent", (uint64_t)ask(parent, PENDING));
    say_result("parent reaps", ask_with(parent, REAP, child.pid, 0) >> 8);
    say("state", "%c", state_of(child.pid));
}

/* -- cases: parents that end ------------------------------------------------------------------- */

static void orphans_go_to_the_nearest_subreaper(void)
{
    child_adopt_orphans();
    struct puppet near = puppet_new(), parent = puppet_of(near), child = puppet_of(parent);
    ask(near, ADOPT);
    say_whether("parent", ask(child, PARENT) == parent.pid);
    end_puppet(parent, 0);
    say_whether("nearest", ask(child, PARENT) == near.pid);
    end_puppet(near, 0);
    say_whether("next", ask(child, PARENT) == getpid());
    say_now("the nearest", near.pid, 0);
    say_now("its zombie", parent.pid, 0);
    end_puppet(child, 5);
    say_now("child", child.pid, 0);
}

static void without_a_subreaper_orphans_are_not_ours(void)
{
    struct puppet parent = puppet_new(), child = puppet_of(parent);

    end_puppet(parent, 0);
    say_whether("ours", ask(child, PARENT) == getpid());
    say_now("child", child.pid, 0);
    end_puppet(child, 0);
}

static void a_subreaper_is_told_of_a_zombie_that_it_gets(void)
{
    child_adopt_orphans();
    struct puppet parent = puppet_new(), child = puppet_of(parent);
    end_puppet(child, 6);
    say_now("not yet", child.pid, 0);
    end_puppet(parent, 0);
    say_now("parent", parent.pid, 0);
    say_now("child", child.pid, 0);
}

static void being_a_subreaper_is_not_inherited(void)
{
    child_adopt_orphans();
    struct puppet parent = puppet_new();
    ask(parent, ADOPT);
    struct puppet child = puppet_of(parent), grandchild = puppet_of(child);
    end_puppet(child, 0);
    say_whether("the child's parent", ask(grandchild, PARENT) == parent.pid);
    struct puppet other = puppet_of(grandchild), last = puppet_of(other);
    end_puppet(other, 0);
    say_whether("not the next one", ask(last, PARENT) == parent.pid);
}

static void the_death_signal_comes_before_the_end_is_told(void)
{
    child_adopt_orphans();
    struct puppet parent = puppet_new(), child = puppet_of(parent);
    ask_with(child, DEATH_SIGNAL, SIGUSR1, 0);
    order(parent, EXIT, 0, 0);
    await_state(parent.pid, 'Z');
    say_signals("pending", (uint64_t)ask(child, PENDING));
    say_whether("adopted", ask(child, PARENT) == getpid());
}

static void a_death_signal_is_for_each_parent(void)
{
    child_adopt_orphans();
    struct puppet near = puppet_new(), parent = puppet_of(near), child = puppet_of(parent);
    ask(near, ADOPT);
    ask_with(child, DEATH_SIGNAL, SIGUSR1, 0);
    end_puppet(parent, 0);
    say_signals("first", (uint64_t)ask(child, PENDING));
    ask_with(child, DEATH_SIGNAL, SIGUSR2, 0);
    end_puppet(near, 0);
    say_signals("second", (uint64_t)ask(child, PENDING));
}

static void a_death_signal_is_neither_late_nor_inherited(void)
{
    child_adopt_orphans();
    struct puppet parent = puppet_new(), child = puppet_of(parent);
    ask_with(child, DEATH_SIGNAL, SIGUSR1, 0);
    struct puppet grandchild = puppet_of(child);
    end_puppet(child, 0);
    say_signals("inherited", (uint64_t)ask(grandchild, PENDING));
    child = puppet_of(parent);
    end_puppet(parent, 0);
    ask_with(child, DEATH_SIGNAL, SIGUSR1, 0);
    say_signals("late", (uint64_t)ask(child, PENDING));
}

/* -- cases: groups and sessions ---------------------------------------------------------------- */

static void a_group_is_of_its_session(void)
{
    struct puppet puppet = puppet_new();
    pid_t actor = actor_new(60000, 0);

    say_result("a session of a group's leader", ask(puppet, NEW_SESSION));
    say_result("into ours", setpgid(puppet.pid, getpgrp()));
    say_result("session", ask(puppet, NEW_SESSION) == puppet.pid);
    say_whether("leads its group", ask(puppet, GROUP) == puppet.pid);
    say_whether("leads its session", ask(puppet, SESSION) == puppet.pid);
    say_result("out of its session", ask_with(puppet, SET_GROUP, 0, getpgrp()));
    say_result("by its parent", setpgid(puppet.pid, getpgrp()));
    say_result("once executed", setpgid(actor, getpgrp()));
    say_result("nobody", setpgid(getppid(), getppid()));
    say_result("no such group", ask_with(puppet, SET_GROUP, 0, puppet.pid + 100000));
    kill(actor, SIGKILL);
}

static void an_orphaned_group_does_not_stop_by_keys(void)
{
    struct puppet parent = puppet_new(), child = puppet_of(parent);

    end_puppet(parent, 0);
    say_whether("orphan", ask(child, PARENT) != getpid());
    ask_with(child, KILL, child.pid, SIGTSTP);
    say_signals("blocked", (uint64_t)ask(child, PENDING));
    say_result("unblocked", ask_with(child, UNBLOCK, (int64_t)bit(SIGTSTP), 0));
    say_signals("pending", (uint64_t)ask(child, PENDING));
    kill(child.pid, SIGTTIN);
    say_result("unblocked", ask_with(child, UNBLOCK, (int64_t)bit(SIGTTIN), 0));
    kill(child.pid, SIGSTOP);
    await_state(child.pid, 'T');
    say("STOP", "%c", state_of(child.pid));
    kill(child.pid, SIGKILL);
}

static void a_stopped_group_that_is_orphaned_is_continued(void)
{
    struct puppet parent = puppet_new(), child = puppet_of(parent), other = puppet_of(parent);

    ask_with(other, SET_GROUP, 0, child.pid);
    kill(child.pid, SIGSTOP);
    await_state(child.pid, 'T');
    end_puppet(parent, 0);
    say_signals("it gets", (uint64_t)ask(child, PENDING));
    say_signals("its group gets", (uint64_t)ask(other, PENDING));
}

static void a_running_group_that_is_orphaned_gets_nothing(void)
{
    struct puppet parent = puppet_new(), child = puppet_of(parent);

    end_puppet(parent, 0);
    say_signals("it gets", (uint64_t)ask(child, PENDING));
}

static void adoption_within_the_session_orphans_no_group(void)
{
    child_adopt_orphans();
    struct puppet parent = puppet_new(), child = puppet_of(parent);
    kill(child.pid, SIGSTOP);
    await_state(child.pid, 'T');
    end_puppet(parent, 0);
    say("state", "%c", state_of(child.pid));
    kill(child.pid, SIGCONT);
    say_signals("it gets", (uint64_t)ask(child, PENDING));
    kill(child.pid, SIGTSTP);
    order(child, UNBLOCK, (int64_t)bit(SIGTSTP), 0);
    say_next("told", child.pid, WUNTRACED);
}

/* -- cases: terminals -------------------------------------------------------------------------- */

static void say_foreground(const char *what, pid_t group)
{
    pid_t found = tcgetpgrp(STDOUT_FILENO);

    if (found < 0)
        say(what, "%s", strerror(errno));
    else
        say(what, "%s", found == group ? "its" : found == getpgrp() ? "ours" : "another's");
}

static void without_a_terminal_there_is_none(void)
{
    say_result("open", open_terminal());
    contract_terminal();
    int fd = open_terminal();
    say_whether("opened", fd >= 0);
    say_foreground("foreground", 0);
    struct puppet puppet = puppet_new();
    say_whether("of a child", ask(puppet, FOREGROUND) == getpgrp());
    struct puppet other = puppet_of(puppet);
    ask_with(other, SET_GROUP, 0, puppet.pid);
    say_whether("of its session", ask(other, NEW_SESSION) == other.pid);
    say_result("of another session", ask(other, FOREGROUND));
    close(fd);
}

static void the_foreground_is_given_within_a_session(void)
{
    contract_terminal();
    struct puppet puppet = puppet_new(), other = puppet_new(), child = puppet_of(other);
    ask_with(child, SET_GROUP, 0, other.pid);
    ask(child, NEW_SESSION);
    say_result("given", tcsetpgrp(STDOUT_FILENO, puppet.pid));
    say_foreground("foreground", puppet.pid);
    say_result("to another session", tcsetpgrp(STDOUT_FILENO, child.pid));
    say_result("to nobody", tcsetpgrp(STDOUT_FILENO, child.pid + 100000));
    say_result("taken back, TTOU blocked", tcsetpgrp(STDOUT_FILENO, getpgrp()));
    say_result("by a child, TTOU blocked", ask_with(puppet, TAKE, puppet.pid, 0));
    say_foreground("foreground", puppet.pid);
    say_result("of another session", ask_with(child, TAKE, child.pid, 0));
    say_result("mode, TTOU blocked", ask(other, SET_MODE));
}

static void who_uses_it_in_the_background_stops(void)
{
    contract_terminal();
    struct puppet puppet = puppet_new();
    int none;
    ask_with(puppet, UNBLOCK, (int64_t)(bit(SIGTTOU) | bit(SIGTTIN)), 0);
    order(puppet, TAKE, puppet.pid, 0);
    say_next("take", puppet.pid, WUNTRACED);
    tcsetpgrp(STDOUT_FILENO, puppet.pid);
    kill(-puppet.pid, SIGCONT);
    say_result("tried again", answer_of(puppet, &none));
    tcsetpgrp(STDOUT_FILENO, getpgrp());
    order(puppet, SET_MODE, 0, 0);
    say_next("mode", puppet.pid, WUNTRACED);
    kill(puppet.pid, SIGCONT);
    say_next("still", puppet.pid, WUNTRACED);
    tcsetpgrp(STDOUT_FILENO, puppet.pid);
    kill(-puppet.pid, SIGCONT);
    say_result("tried again", answer_of(puppet, &none));
    tcsetpgrp(STDOUT_FILENO, getpgrp());
    order(puppet, READ, 0, 0);
    say_next("read", puppet.pid, WUNTRACED);
    tcsetpgrp(STDOUT_FILENO, puppet.pid);
    kill(-puppet.pid, SIGCONT);
    say_result("tried again", answer_of(puppet, &none));
}

static void who_blocks_it_reads_nothing(void)
{
    contract_terminal();
    struct puppet puppet = puppet_new();
    say_result("read", ask(puppet, READ));
}

static void an_orphaned_group_may_not_use_it(void)
{
    contract_terminal();
    struct puppet parent = puppet_new(), child = puppet_of(parent);
    ask_with(child, UNBLOCK, (int64_t)(bit(SIGTTOU) | bit(SIGTTIN)), 0);
    end_puppet(parent, 0);
    say_result("take", ask_with(child, TAKE, child.pid, 0));
    say_result("mode", ask(child, SET_MODE));
    say_result("read", ask(child, READ));
}

/* Waits for a key that was pressed. */
static void await_pending(struct puppet puppet, int signo)
{
    for (int i = 0; i < PATIENCE && !((uint64_t)ask(puppet, PENDING) & bit(signo)); i++)
        rest(MS);
}

static void keys_are_for_the_foreground(void)
{
    contract_terminal();
    struct puppet a = puppet_new(), b = puppet_new(), other = puppet_new();
    ask_with(b, SET_GROUP, 0, a.pid);
    tcsetpgrp(STDOUT_FILENO, a.pid);
    contract_press(SIGINT);
    await_pending(a, SIGINT);
    contract_press(SIGQUIT);
    await_pending(a, SIGQUIT);
    contract_press(SIGTSTP);
    await_pending(a, SIGTSTP);
    await_pending(b, SIGTSTP);
    say_signals("leader", (uint64_t)ask(a, PENDING));
    say_signals("member", (uint64_t)ask(b, PENDING));
    say_signals("another", (uint64_t)ask(other, PENDING));
    say_signals("we", pending() & ~bit(SIGCHLD));
    say_now("told", a.pid, WUNTRACED);
    order(b, UNBLOCK, (int64_t)bit(SIGTSTP), 0);
    say_next("unblocked", b.pid, WUNTRACED);
}

static void a_hang_up_is_for_the_leader(void)
{
    contract_terminal();
    struct puppet puppet = puppet_new();
    int fd = open_terminal();
    struct termios mode;
    tcsetpgrp(STDOUT_FILENO, puppet.pid);
    contract_hang_up();
    say_whether("HUP", take(bit(SIGHUP), PATIENCE) == SIGHUP);
    say_whether("CONT", take(bit(SIGCONT), PATIENCE) == SIGCONT);
    say_signals("foreground", (uint64_t)ask(puppet, PENDING));
    say_result("open", open_terminal());
    say_result("of a child", ask(puppet, FOREGROUND));
    say_result("tcgetpgrp", tcgetpgrp(fd));
    say_result("tcsetpgrp", tcsetpgrp(fd, getpgrp()));
    say_result("tcgetattr", tcgetattr(fd, &mode));
    close(fd);
}

/* -- cases: descriptors ------------------------------------------------------------------------ */

static void say_events(const char *what, int fd, short asked)
{
    struct pollfd polled = {.fd = fd, .events = asked};

    poll(&polled, 1, 0);
    say(what, "%s%s%s%s%s", polled.revents & POLLIN ? "in " : "",
        polled.revents & POLLOUT ? "out " : "", polled.revents & POLLERR ? "error " : "",
        polled.revents & POLLHUP ? "hung-up " : "", polled.revents & POLLNVAL ? "invalid " : "");
}

static void messages_are_kept_apart(void)
{
    char bytes[8] = "";
    int ends[2];

    channel_pair(ends);
    say_events("empty", ends[0], POLLIN | POLLOUT);
    say_result("empty", receive_raw(ends[0], bytes, 8));
    channel_send(ends[1], "abc", 3, -1);
    channel_send(ends[1], "de", 2, -1);
    say_events("two", ends[0], POLLIN | POLLOUT);
    say_result("cut off", receive_raw(ends[0], bytes, 1));
    say_result("the next one", receive_raw(ends[0], bytes, 8));
    say("text", "%.2s", bytes);
    close(ends[0]);
    close(ends[1]);
}

static void an_unread_message_resets_once(void)
{
    char bytes[8];
    int ends[2];

    channel_pair(ends);
    send_byte(ends[0], 'u');
    send_byte(ends[1], 'x');
    send_byte(ends[1], 'y');
    close(ends[1]);
    say_events("closed", ends[0], POLLIN | POLLOUT);
    for (int i = 0; i < 4; i++)
        say_result("then", receive_raw(ends[0], bytes, 8));
    say_result("send", send_byte(ends[0], 'z'));
    close(ends[0]);
}

static void what_was_sent_before_the_end_is_received(void)
{
    char bytes[8];
    int ends[2];

    channel_pair(ends);
    send_byte(ends[1], 'x');
    close(ends[1]);
    say_events("closed", ends[0], POLLIN);
    say_result("then", receive_raw(ends[0], bytes, 8));
    say_events("read", ends[0], POLLIN);
    say_result("then", receive_raw(ends[0], bytes, 8));
    say_result("then", receive_raw(ends[0], bytes, 8));
    close(ends[0]);
}

static void a_full_channel_takes_no_more(void)
{
    char bytes[3000] = "";
    int ends[2], sent = 0;

    channel_pair(ends);
    while (sent < 10000 && channel_send(ends[0], bytes, sizeof bytes, -1))
        sent++;
    say("full", "%s", strerror(errno));
    say_whether("after ten at least", sent >= 10);
    say_events("full", ends[0], POLLOUT);
    say_result("read", receive_raw(ends[1], bytes, sizeof bytes));
    say_whether("room again", channel_send(ends[0], bytes, sizeof bytes, -1));
    close(ends[0]);
    close(ends[1]);
}

static void the_end_comes_when_the_last_has_closed(void)
{
    struct puppet puppet = puppet_new();
    char bytes[8];
    int ends[2], pass[2];

    channel_pair(ends);
    channel_pair(pass);
    channel_send(pass[0], "f", 1, ends[1]);
    close(ends[1]);
    say_result("passed on", receive_raw(ends[0], bytes, 8));
    int fd, got = channel_receive(pass[1], bytes, 1, &fd);
    say_result("received", got);
    say_result("through it", send_byte(fd, 'x'));
    say_result("arrives", receive_raw(ends[0], bytes, 8));
    channel_send(pass[0], "f", 1, fd);
    close(fd);
    say_result("in a message", receive_raw(ends[0], bytes, 8));
    close(pass[1]);
    say_result("dropped with it", receive_raw(ends[0], bytes, 8));
    close(pass[0]);
    close(ends[0]);
    end_puppet(puppet, 0);
}

static void closed_descriptors_are_refused(void)
{
    char bytes[8];
    int ends[2];

    channel_pair(ends);
    close(ends[0]);
    say_result("close", close(ends[0]));
    say_result("receive", receive_raw(ends[0], bytes, 8));
    say_events("poll", ends[0], POLLIN);
    say_events("poll -1", -1, POLLIN);
    close(ends[1]);
}

/* As os/helper_process.c has one. */
static void a_pipe_ends_behind_what_was_written(void)
{
    char bytes[8];
    int ends[2];

    say_result("pipe2", pipe2(ends, O_CLOEXEC));
    pid_t pid = fork();
    if (pid == 0)
        _exit(write(ends[1], "found", 5) == 5 ? 0 : 1);
    close(ends[1]);
    await_state(pid, 'Z');
    say_events("written", ends[0], POLLIN);
    say_result("read", read(ends[0], bytes, 5));
    say_events("read", ends[0], POLLIN);
    say_result("read", read(ends[0], bytes, 5));
    close(ends[0]);
}

static void a_pidfd_tells_of_the_end(void)
{
    struct puppet puppet = puppet_new();
    int fd = kernel_pidfd(puppet.pid);

    say_events("alive", fd, POLLIN);
    say_whether("has gone", kernel_has_gone(fd));
    end_puppet(puppet, 0);
    say_events("zombie", fd, POLLIN);
    say_whether("has gone", kernel_has_gone(fd));
    int again = kernel_pidfd(puppet.pid);
    say_whether("of a zombie", again >= 0);
    close(again);
    say_now("reaped", puppet.pid, 0);
    say_whether("has gone", kernel_has_gone(fd));
    say_whether("readable", poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) == 1);
    say_result("of nobody", kernel_pidfd(puppet.pid));
    close(fd);
}

static void a_pidfd_signals(void)
{
    struct puppet puppet = puppet_new();
    int fd = kernel_pidfd(puppet.pid);

    kernel_signal(puppet.pid, fd, SIGUSR1);
    say_signals("pending", (uint64_t)ask(puppet, PENDING));
    kernel_signal(puppet.pid, fd, SIGKILL);
    say_next("end", puppet.pid, 0);
    close(fd);
}

/* -- cases: time ------------------------------------------------------------------------------- */

static struct itimerspec at(int64_t ns)
{
    return (struct itimerspec){.it_value = {ns / 1000000000, ns % 1000000000}};
}

static void a_timer_is_due_until_it_is_set_anew(void)
{
    int fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    struct itimerspec past = at(1), soon, later, never = at(0);

    say_events("not set", fd, POLLIN);
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &past, NULL);
    say_events("past", fd, POLLIN);
    later = at(boot_time() + 3600 * (int64_t)1000000000);
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &later, NULL);
    say_events("later", fd, POLLIN);
    int64_t due = boot_time() + 20 * MS;
    soon = at(due);
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &soon, NULL);
    say_result("soon", poll(&polled, 1, PATIENCE));
    say_whether("not before", boot_time() >= due);
    say_events("still", fd, POLLIN);
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &never, NULL);
    say_events("never", fd, POLLIN);
    close(fd);
}

static void waiting_takes_its_time(void)
{
    int64_t began = boot_time();

    rest(5 * MS);
    say_whether("nanosleep", boot_time() - began >= 5 * MS);
    began = boot_time();
    say_result("poll", poll(NULL, 0, 5));
    say_whether("poll", boot_time() - began >= 5 * MS);
    began = boot_time();
    say_result("sigtimedwait", take(bit(SIGUSR1), 5));
    say_whether("sigtimedwait", boot_time() - began >= 5 * MS);
}

/* -- cases: a file ----------------------------------------------------------------------------- */

static int open_file(int flags)
{
    return open(contract_file(), O_RDWR | O_CLOEXEC | flags, 0600);
}

static int hold(int fd, const void *arg)
{
    (void)fd, (void)arg;
    return poll(NULL, 0, -1);
}

static void a_lock_is_of_the_open_file(void)
{
    say_result("not there", open_file(0));
    int one = open_file(O_CREAT), other = open_file(0);
    unlink(contract_file());
    say_result("first", flock(one, LOCK_EX | LOCK_NB));
    say_result("again", flock(one, LOCK_EX));
    say_result("second", flock(other, LOCK_EX | LOCK_NB));
    pid_t pid = child_fork_helper("holder", one, hold, NULL);
    close(one);
    say_result("of a child", flock(other, LOCK_EX | LOCK_NB));
    kill(pid, SIGKILL);
    say_next("end", pid, 0);
    say_result("of nobody", flock(other, LOCK_EX | LOCK_NB));
    close(other);
}

static void wake(int signo)
{
    (void)signo;
}

static void an_alarm_interrupts_a_wait_for_a_lock(void)
{
    const struct itimerval soon = {{0, 1000}, {0, 20000}};
    const struct sigaction action = {.sa_handler = wake};
    const sigset_t alarms = set_of(bit(SIGALRM));
    int one = open_file(O_CREAT), other = open_file(0);

    unlink(contract_file());
    sigaction(SIGALRM, &action, NULL);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    flock(one, LOCK_EX);
    int64_t began = boot_time();
    setitimer(ITIMER_REAL, &soon, NULL);
    say_result("waits", flock(other, LOCK_EX));
    say_whether("takes its time", boot_time() - began >= MS);
    say_result("waits again", flock(other, LOCK_EX));
    close(one);
    close(other);
}

static void a_file_has_what_was_written(void)
{
    int fd = open_file(O_CREAT);
    struct stat there, ours;
    char text[9] = "";

    say_result("writes", pwrite(fd, "123456", 6, 0));
    say_result("amid it", pwrite(fd, "ab", 2, 2));
    say_result("cuts it", ftruncate(fd, 5));
    say_result("syncs", fdatasync(fd));
    say_result("reads", pread(fd, text, 8, 1));
    say("has", "%s", text);
    say_result("behind it", pread(fd, text, 8, 5));
    fstat(fd, &ours);
    say_result("is there", stat(contract_file(), &there));
    say_whether("the same", there.st_ino == ours.st_ino && there.st_dev == ours.st_dev);
    say("has", "%d", (int)ours.st_size);
    say_whether("regular", S_ISREG(there.st_mode));
    unlink(contract_file());
    say_result("removed", stat(contract_file(), &there));
    say_result("still open", pread(fd, text, 8, 0));
    close(fd);
}

/* -- cases: /proc ------------------------------------------------------------------------------ */

static void say_process(const char *what, pid_t pid)
{
    struct process process;
    enum process_look look = procfs_read(NULL, pid, &process);

    if (look != PROCESS_FOUND)
        say(what, "%s", look == PROCESS_GONE ? "gone" : "unseen");
    else
        say(what, "%c%s %s, parent %s, group %s, session %s", process.state,
            process.live ? "" : " (ended)", process.name,
            process.parent == getpid() ? "ours" : "another's",
            process.group == pid         ? "its own"
            : process.group == getpgrp() ? "ours"
                                         : "another's",
            process.session == pid         ? "its own"
            : process.session == getsid(0) ? "ours"
                                           : "another's");
}

static void a_stop_interrupts_a_wait_for_signals(void)
{
    struct puppet puppet = puppet_new();

    order(puppet, AWAIT, 60000, 0);
    say_result("waited", answer_between_stops(puppet));
}

static void a_stop_interrupts_neither_poll_nor_sleep(void)
{
    struct puppet puppet = puppet_new();

    order(puppet, POLL, 200, 0);
    say_result("polled", answer_between_stops(puppet));
    order(puppet, REST, 200, 0);
    say_result("slept", answer_between_stops(puppet));
}

static void proc_shows_each_state(void)
{
    struct puppet puppet = puppet_new();

    ask(puppet, PARENT);
    await_state(puppet.pid, 'S');
    say_process("asleep", puppet.pid);
    ask(puppet, RENAME);
    kill(puppet.pid, SIGSTOP);
    await_state(puppet.pid, 'T');
    say_process("stopped", puppet.pid);
    setpgid(puppet.pid, getpgrp());
    say_process("moved", puppet.pid);
    kill(puppet.pid, SIGCONT);
    end_puppet(puppet, 0);
    say_process("zombie", puppet.pid);
    say_now("reaped", puppet.pid, 0);
    say_process("reaped", puppet.pid);
}

static void proc_lists_children(void)
{
    struct process self = {.pid = getpid(), .threads = 1};
    struct process_list list = {0};
    struct procfs procfs = {0};

    child_adopt_orphans();
    struct puppet a = puppet_new(), b = puppet_of(a), zombie = puppet_new();
    end_puppet(zombie, 0);
    procfs_open(&procfs);
    say_whether("usable", procfs_is_usable(&procfs));
    procfs_begin(&procfs);
    say_whether("all", procfs_add_children(&procfs, &self, &list));
    say_result("children", (long)list.count);
    end_puppet(a, 0);
    list.count = 0;
    procfs_add_children(&procfs, &self, &list);
    process_list_sort(&list);
    say_result("with an orphan", (long)list.count);
    say_whether("which is", process_list_find(&list, b.pid) != NULL);
    procfs_end(&procfs);
    procfs_close(&procfs);
    process_list_free(&list);
}

static void a_later_process_has_started_later(void)
{
    struct puppet a = puppet_new(), b = puppet_new();
    struct process first, second;

    procfs_read(NULL, a.pid, &first);
    procfs_read(NULL, b.pid, &second);
    say_whether("not before", second.started >= first.started);
}

/* -- cases: starting a program ----------------------------------------------------------------- */

/* A process that shares this one's memory. */
struct shared {
    struct spawn spawn;
    int rests;    /* ms, before it ends */
    int executes; /* an actor that ends with this; 0: not */
    pid_t parent;
};

__attribute__((no_sanitize_address)) static int share(void *arg)
{
    const struct shared *shared = arg;
    char text[] = {(char)('0' + shared->executes), '\0'};
    char *argv[] = {(char[]){CONTRACT_ACTOR}, (char[]){"0"}, text, NULL}, *environment[] = {NULL};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != shared->parent)
        _exit(127);
    setpgid(0, 0);
    rest(shared->rests * (int64_t)MS);
    if (shared->executes)
        spawn_execute("/proc/self/exe", argv, environment);
    _exit(9);
}

static struct shared *shared_new(int rests, int executes)
{
    struct shared *shared = calloc(1, sizeof *shared);

    shared->rests = rests;
    shared->executes = executes;
    shared->parent = getpid();
    return shared;
}

static void a_start_shares_memory_until_it_executes(void)
{
    struct shared *shared = shared_new(0, 7);
    pid_t pid = spawn_start(&shared->spawn, share, shared);

    say_next("end", pid, 0);
    say_whether("shares", spawn_shares(&shared->spawn));
    say_result("executed", setpgid(pid, pid));
    free(shared);
}

static void a_start_that_takes_long_is_not_waited_for(void)
{
    struct shared *shared = shared_new(60000, 0);
    pid_t pid = spawn_start(&shared->spawn, share, shared);

    say_whether("shares", spawn_shares(&shared->spawn));
    say_now("end", pid, 0);
    kill(pid, SIGKILL);
    say_next("end", pid, 0);
    say_whether("shares", spawn_shares(&shared->spawn));
    free(shared);
}

static void a_start_that_fails_ends(void)
{
    struct shared *shared = shared_new(0, 0);
    pid_t pid = spawn_start(&shared->spawn, share, shared);

    say_next("end", pid, 0);
    say_whether("shares", spawn_shares(&shared->spawn));
    free(shared);
}

static void a_program_has_its_parent_and_no_descriptors(void)
{
    pid_t actor = actor_new(50, 3);
    struct process process = {0};

    procfs_read(NULL, actor, &process);
    say_whether("ours", process.parent == getpid());
    say_whether("a group of its own", process.group == actor);
    say_next("end", actor, 0);
    actor = actor_new(60000, 0);
    kill(actor, SIGTERM);
    say_next("end", actor, 0);
}

const struct contract_case contract_cases[] = {
#define CASE(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }
    CASE(a_signal_is_pending_once),
    CASE(the_lowest_signal_is_first),
    CASE(a_signalfd_hands_out_pending_signals),
    CASE(continue_and_stop_take_each_other_back),
    CASE(a_stop_that_is_unblocked_stops_there),
    CASE(a_continue_before_it_is_unblocked_prevents_the_stop),
    CASE(a_signal_waits_in_a_stopped_process),
    CASE(a_stopped_process_is_killed),
    CASE(a_group_is_signalled_as_a_whole),
    CASE(a_group_lives_as_long_as_its_last_process),
    CASE(a_zombie_can_be_signalled),
    CASE(what_is_not_blocked_ends_a_process),
    CASE(pending_signals_are_not_inherited),
    CASE(stops_are_told_once),
    CASE(a_stop_that_is_over_is_not_told),
    CASE(a_continue_that_is_over_is_not_told),
    CASE(a_second_stop_changes_nothing),
    CASE(a_continue_that_is_blocked_continues),
    CASE(continuing_what_runs_is_not_told),
    CASE(ends_are_shown_until_taken),
    CASE(one_signal_tells_of_several_ends),
    CASE(files_are_closed_before_the_end_is_told),
    CASE(an_end_is_not_told_to_grandparents),
    CASE(orphans_go_to_the_nearest_subreaper),
    CASE(without_a_subreaper_orphans_are_not_ours),
    CASE(a_subreaper_is_told_of_a_zombie_that_it_gets),
    CASE(being_a_subreaper_is_not_inherited),
    CASE(the_death_signal_comes_before_the_end_is_told),
    CASE(a_death_signal_is_for_each_parent),
    CASE(a_death_signal_is_neither_late_nor_inherited),
    CASE(a_group_is_of_its_session),
    CASE(an_orphaned_group_does_not_stop_by_keys),
    CASE(a_stopped_group_that_is_orphaned_is_continued),
    CASE(a_running_group_that_is_orphaned_gets_nothing),
    CASE(adoption_within_the_session_orphans_no_group),
    CASE(without_a_terminal_there_is_none),
    CASE(the_foreground_is_given_within_a_session),
    CASE(who_uses_it_in_the_background_stops),
    CASE(who_blocks_it_reads_nothing),
    CASE(an_orphaned_group_may_not_use_it),
    CASE(keys_are_for_the_foreground),
    CASE(a_hang_up_is_for_the_leader),
    CASE(messages_are_kept_apart),
    CASE(an_unread_message_resets_once),
    CASE(what_was_sent_before_the_end_is_received),
    CASE(a_full_channel_takes_no_more),
    CASE(the_end_comes_when_the_last_has_closed),
    CASE(closed_descriptors_are_refused),
    CASE(a_pipe_ends_behind_what_was_written),
    CASE(a_pidfd_tells_of_the_end),
    CASE(a_pidfd_signals),
    CASE(a_timer_is_due_until_it_is_set_anew),
    CASE(waiting_takes_its_time),
    CASE(a_stop_interrupts_a_wait_for_signals),
    CASE(a_stop_interrupts_neither_poll_nor_sleep),
    CASE(a_lock_is_of_the_open_file),
    CASE(an_alarm_interrupts_a_wait_for_a_lock),
    CASE(a_file_has_what_was_written),
    CASE(proc_shows_each_state),
    CASE(proc_lists_children),
    CASE(a_later_process_has_started_later),
    CASE(a_start_shares_memory_until_it_executes),
    CASE(a_start_that_takes_long_is_not_waited_for),
    CASE(a_start_that_fails_ends),
    CASE(a_program_has_its_parent_and_no_descriptors),
};
const size_t contract_count = sizeof contract_cases / sizeof *contract_cases;

int contract_run(const void *arg)
{
    const struct contract_case *contract_case = arg;
    const sigset_t all = set_of(~UINT64_C(0));

    *contract_facts = '\0';
    setsid();
    sigprocmask(SIG_SETMASK, &all, NULL);
    contract_case->run();
    return 0;
}
