/* The agent's watch over the supervisor: how long it kills what does not die, and what it remembers
 * of an earlier grant. */
#include "run/watchdog.h"

#include <unistd.h>

#include "tap.h"

/* In place of the C library's: nothing dies of it. */
int kill(pid_t pid, int signo)
{
    (void)pid, (void)signo;
    return 0;
}

static struct procfs none;
static const struct job_plan plan = {.renew = true, .kill_after = NS_PER_SEC};
static struct offer offer;
static struct moment given_up;

static void do_nothing(void *arg)
{
    (void)arg;
}

static void on_failed(void *arg, enum tree_state state)
{
    (void)state;
    given_up = moment_now();
    loop_stop(arg);
}

static void do_nothing_of(void *arg, enum tree_state state)
{
    (void)arg, (void)state;
}

static void on_time(struct loop_timer *timer)
{
    loop_stop(timer->owner);
}

/* The supervisor dies when its lease has been over for so long. Without /proc, only the process
 * group is asked for. Returns after how many ms killing is given up. */
static int64_t kill_for(int64_t late)
{
    struct loop *loop = loop_new();
    struct moment start = moment_now();
    struct loop_timer most = {.fire = on_time, .owner = loop};
    struct watchdog watchdog = {
        .plan = &plan,
        .offer = &offer,
        .tree = {.procfs = &none, .group = 4000000, .leader = -1, .owner = "o"},
        .listen = do_nothing,
        .alarmed = do_nothing,
        .cleared = do_nothing,
        .failed = on_failed,
        .arg = loop};

    watchdog_init(&watchdog, loop);
    watchdog_watch(&watchdog, (struct lease){moment_plus(start, -late), 2 * NS_PER_SEC});
    watchdog_acknowledge(&watchdog);
    watchdog_supervisor_died(&watchdog);
    loop_arm(loop, &most, moment_plus(start, 8 * NS_PER_SEC));
    if (!given_up.ns)
        loop_run(loop);
    loop_free(loop);
    return moment_until(start, given_up) / NS_PER_MS;
}

static int cleared;

static void on_cleared(void *arg)
{
    cleared++;
    loop_stop(arg);
}

/* A grant is offered to a supervisor that is stopped until it is over, and then another one, which
 * lasts. Returns how often nothing was found to run under one. */
static int clear_twice(void)
{
    static const struct job_plan short_plan = {.renew = true, .kill_after = 50 * NS_PER_MS};
    struct procfs procfs = {0};
    struct loop *loop = loop_new();
    struct loop_timer most = {.fire = on_time, .owner = loop};
    struct watchdog watchdog = {.plan = &short_plan,
                                .offer = &offer,
                                .tree = {.procfs = &procfs, .root = getpid(), .leader = -1},
                                .listen = do_nothing,
                                .alarmed = do_nothing,
                                .cleared = on_cleared,
                                .failed = do_nothing_of,
                                .arg = loop};

    if (procfs_open(&procfs) != 0)
        return 1;
    watchdog_init(&watchdog, loop);
    watchdog_watch(&watchdog, (struct lease){moment_plus(moment_now(), NS_PER_SEC), NS_PER_SEC});
    loop_run(loop);
    watchdog_watch(&watchdog,
                   (struct lease){moment_plus(moment_now(), 60 * NS_PER_SEC), 60 * NS_PER_SEC});
    loop_arm(loop, &most, moment_plus(moment_now(), 500 * NS_PER_MS));
    loop_run(loop);
    loop_free(loop);
    procfs_close(&procfs);
    return cleared;
}

int main(void)
{
    int64_t ms = kill_for(60 * NS_PER_SEC);

    tap_ok(ms >= 4900,
           "the machine was suspended until a minute after the lease: given up after %d ms",
           (int)ms);
    tap_ok(clear_twice() == 1, "a grant that lasts is not measured by the end of one before it");
    return tap_done();
}
