/* Work in a process of its own, and the end of it. */
#include "net/loop.h"
#include "os/helper_process.h"

#include "tap.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORK_SEC 20 /* for one that is not to end by itself */

struct simulation {
    struct loop *loop;
    struct helper_process *helper_process;
    int found; /* 0: nothing yet, -1: it ended without a finding */
};

static pid_t spared; /* should be killed, and is like one that hangs in the kernel */
static bool spare;

/* In place of the C library's. */
int kill(pid_t pid, int signo)
{
    if (spare) {
        spared = pid;
        return 0;
    }
    return (int)syscall(SYS_kill, pid, signo);
}

static bool has_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void stop_loop(struct loop_timer *timer)
{
    loop_stop(timer->owner);
}

static void run_for(struct loop *loop, int64_t ns)
{
    struct loop_timer timer = {.fire = stop_loop, .owner = loop};

    loop_arm(loop, &timer, moment_plus(moment_now(), ns));
    loop_run(loop);
    loop_disarm(loop, &timer);
}

/* Returns when no child is left to reap. */
static bool is_cleared(struct loop *loop)
{
    struct moment end = moment_plus(moment_now(), 10 * NS_PER_SEC);

    while (has_children() && !moment_reached(end, moment_now()))
        run_for(loop, 5 * NS_PER_MS);
    return !has_children();
}

static void answer(const void *question, void *finding)
{
    *(int *)finding = *(const int *)question + 1;
}

static void linger(const void *question, void *finding)
{
    (void)question, (void)finding;
    sleep(WORK_SEC);
}

static void take(void *owner, const void *finding)
{
    struct simulation *sim = owner;

    sim->found = finding ? *(const int *)finding : -1;
    helper_process_stop(sim->helper_process);
    sim->helper_process = NULL;
    loop_stop(sim->loop);
}

/* A helper process returns what it was asked for, and leaves no zombie. */
static void test_finding(struct simulation *sim)
{
    const int question = 41;

    sim->helper_process =
        helper_process_start(sim->loop, answer, &question, sizeof(int), take, sim);
    loop_run(sim->loop);
    tap_ok(sim->found == 42, "what it found out comes back");
    tap_ok(is_cleared(sim->loop), "it is reaped");
}

/* A helper process that is stopped before its answer leaves no zombie, and no answer comes. */
static void test_kill_tree(struct simulation *sim)
{
    sim->found = 0;
    sim->helper_process = helper_process_start(sim->loop, linger, NULL, sizeof(int), take, sim);
    helper_process_stop(sim->helper_process);
    tap_ok(is_cleared(sim->loop), "told to end before it has an answer: it is reaped");
    tap_ok(sim->found == 0, "and nothing is heard of it");
}

/* Reaping never waits: this process renews leases. */
static void test_hanging(struct simulation *sim)
{
    siginfo_t info = {0};

    sim->helper_process = helper_process_start(sim->loop, linger, NULL, sizeof(int), take, sim);
    spare = true;
    helper_process_stop(sim->helper_process);
    spare = false;
    bool lives = spared > 0 &&
                 waitid(P_PID, (id_t)spared, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                 info.si_pid == 0;
    tap_ok(lives, "H128 one that a KILL does not end yet is not waited for");
    kill(spared, SIGKILL);
    tap_ok(is_cleared(sim->loop), "it is reaped when it has ended");
}

/* A helper process that a KILL does not end yet is left to end by itself when its loop goes. */
static void test_left(void)
{
    int before = dup(STDERR_FILENO);
    struct simulation sim = {.loop = loop_new()};

    close(before);
    sim.helper_process = helper_process_start(sim.loop, linger, NULL, sizeof(int), take, &sim);
    spare = true;
    helper_process_stop(sim.helper_process);
    spare = false;
    loop_free(sim.loop);
    int after = dup(STDERR_FILENO);
    tap_ok(after == before, "a loop that goes before it has ended leaves no descriptor");
    close(after);
    kill(spared, SIGKILL);
}

int main(void)
{
    struct simulation sim = {.loop = loop_new()};

    test_finding(&sim);
    test_kill_tree(&sim);
    test_hanging(&sim);
    loop_free(sim.loop);
    test_left();
    return tap_done();
}
