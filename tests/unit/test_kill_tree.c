/* Ending a tree that does not die: when it is given up, and that a process which stood still has
 * not tried for as long. And that a stopped command is not continued when KILL is due. */
#include "os/kill_tree.h"

#include <signal.h>

#include "tap.h"

#define STEP_NS (20 * NS_PER_MS)

static struct moment term_takes_until;
static int conts;

/* In place of the C library's: nothing dies of it. */
int kill(pid_t pid, int signo)
{
    (void)pid;
    while (signo == SIGTERM && !moment_reached(term_takes_until, moment_now()))
        ;
    conts += signo == SIGCONT;
    return 0;
}

static struct procfs none;
static const struct child command = {.pid = 4000000, .group = 4000000, .handle = -1};

/* Without /proc: only its process group is asked for. */
static struct kill_tree begun(struct moment now)
{
    return (struct kill_tree){
        .tree = {.procfs = &none, .group = command.group, .leader = -1, .kill_at = now},
        .child = &command};
}

/* Returns for how many ms of turns it continues, 5000 at most. */
static int go_on(struct kill_tree *stop, struct moment *now)
{
    int ms = 0;

    while (ms < 5000 && kill_tree_turn(stop, *now) == KILL_TREE_GOING) {
        *now = moment_plus(*now, STEP_NS);
        ms += (int)(STEP_NS / NS_PER_MS);
    }
    return ms;
}

/* No process ends, and after "before" ms of killing the machine stands still for "still" ns. rlock
 * gives up after 2 s of its own time, give or take a tenth: the stand-still does not count. */
static void test_still(int64_t still, int before, const char *what)
{
    struct moment now = {.ns = 1000 * NS_PER_SEC};
    struct kill_tree stop = begun(now);

    for (int ms = 0; ms < before; ms += (int)(STEP_NS / NS_PER_MS)) {
        kill_tree_turn(&stop, now);
        now = moment_plus(now, STEP_NS);
    }
    now = moment_plus(now, still);
    int ms = go_on(&stop, &now);
    tap_ok(before + ms >= 1800 && before + ms <= 2200, "%s: given up after %d ms", what,
           before + ms);
}

/* A process that has died before KILL's time starts that time anew: given up two seconds after
 * the last death. */
static void test_death(void)
{
    struct moment now = {.ns = 1000 * NS_PER_SEC};
    struct kill_tree stop = begun(now);

    for (int i = 0; i < 50; i++, now = moment_plus(now, STEP_NS))
        kill_tree_turn(&stop, now);
    kill_tree_note_death(&stop);
    int ms = go_on(&stop, &now);
    tap_ok(ms >= 1900 && ms <= 2100, "a process has ended: given up %d ms later", ms);
}

/* The agent of a nested run is let off, as it has a lock to release: while it lives, nothing is
 * given up. */
static void test_let_off(void)
{
    struct moment now = {.ns = 1000 * NS_PER_SEC};
    struct kill_tree stop = begun(now);

    stop.tree.lenient = true;
    tap_ok(go_on(&stop, &now) == 5000, "while agents are let off it is not given up");
    stop.tree.lenient = false;
    int ms = go_on(&stop, &now);
    tap_ok(ms >= 1900 && ms <= 2100, "when they are not any more: given up %d ms later", ms);
}

/* A command that is stopped takes TERM only once it is continued. Supervisor and agent were stopped
 * between the two, until KILL was due: continued now, the command would run without its lock. */
static void test_continued(void)
{
    struct moment now = moment_now();
    struct kill_tree stop = begun(moment_plus(now, 3600 * NS_PER_SEC));

    kill_tree_terminate(&stop.tree);
    tap_ok(conts > 0, "behind TERM comes CONT");
    conts = 0;
    stop.tree.kill_at = term_takes_until = moment_plus(now, STEP_NS);
    kill_tree_terminate(&stop.tree);
    tap_ok(conts == 0, "but not when KILL is due by then");
}

int main(void)
{
    test_still(0, 0, "nothing dies");
    test_still(10 * NS_PER_SEC, 20, "rlock stood still for 10 s after 20 ms");
    test_still(10 * NS_PER_SEC, 1000, "rlock stood still for 10 s after 1 s");
    test_death();
    test_let_off();
    test_continued();
    return tap_done();
}
