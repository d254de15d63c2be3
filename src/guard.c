/* Ending the tree in the supervisor's place. */
#include "guard.h"
#include "lease.h"

#include <signal.h>

#define LOOK_NS (20 * NS_PER_MS)
/* How long to go on after the lease's end with what does not die. */
#define HOPELESS_NS (5 * NS_PER_SEC)

static struct moment term_at(const struct guard *guard)
{
    return lease_term_at(guard->deadline, guard->lease, guard->kill_after);
}

static struct moment kill_at(const struct guard *guard)
{
    return lease_kill_at(guard->deadline, guard->lease);
}

/* A supervisor that has acknowledged the deadline does as much itself, and says so. If it was stopped
 * since, there is nothing to tell the others that the end of the lease does not tell. */
static bool acts_alone(const struct guard *guard)
{
    return guard->silent || guard->orphaned;
}

static void look_again(struct guard *guard)
{
    loop_arm(guard->loop, &guard->timer, moment_plus(loop_now(guard->loop), LOOK_NS));
}

static void kill_tree(struct guard *guard)
{
    bool gone = tree_signal(&guard->tree, SIGKILL) == 0;
    bool hopeless =
        moment_reached(moment_plus(guard->deadline, HOPELESS_NS), loop_now(guard->loop));

    if (!gone && !hopeless) {
        look_again(guard);
        return;
    }
    guard_dismiss(guard);
    if (gone && acts_alone(guard))
        guard->cleared(guard->arg);
    else if (acts_alone(guard))
        guard->failed(guard->arg);
}

/* What is stopped has to be continued to clean up. */
static void term_tree(struct guard *guard)
{
    guard->termed = true;
    tree_signal(&guard->tree, SIGTERM);
    tree_signal(&guard->tree, SIGCONT);
    look_again(guard);
    guard->alarmed(guard->arg);
}

static void wait_for_end(struct guard *guard)
{
    if (tree_signal(&guard->tree, 0) == 0) {
        guard_dismiss(guard);
        guard->cleared(guard->arg);
    } else {
        look_again(guard);
    }
}

static void act(struct guard *guard, struct moment now)
{
    if (guard->orphaned || moment_reached(kill_at(guard), now)) {
        bool first = !guard->termed;
        guard->termed = true;
        if (first && guard->silent && !guard->orphaned)
            guard->alarmed(guard->arg);
        if (guard->armed)
            kill_tree(guard);
    } else if (guard->termed) {
        wait_for_end(guard);
    } else if (guard->silent && !guard->excused && moment_reached(term_at(guard), now)) {
        term_tree(guard);
    } else {
        bool idle = !guard->silent || guard->excused;
        loop_arm(guard->loop, &guard->timer, idle ? kill_at(guard) : term_at(guard));
    }
}

/* The supervisor may have spoken in time, and not have been heard yet. */
static void turn(struct loop_timer *timer)
{
    struct guard *guard = timer->owner;

    guard->listen(guard->arg);
    if (guard->armed && !timer->added)
        act(guard, loop_now(guard->loop));
}

void guard_init(struct guard *guard, struct loop *loop)
{
    guard->loop = loop;
    guard->timer = (struct loop_timer){.fire = turn, .owner = guard, .urgent = true};
}

void guard_watch(struct guard *guard, struct moment deadline)
{
    guard->armed = guard->silent = true;
    guard->termed = false;
    guard->deadline = deadline;
    if (guard->enabled)
        loop_arm(guard->loop, &guard->timer, guard->excused ? kill_at(guard) : term_at(guard));
}

void guard_acknowledge(struct guard *guard, struct moment deadline)
{
    if (deadline.ns != guard->deadline.ns)
        return;
    guard->silent = false;
    if (guard->armed && guard->enabled && !guard->termed)
        loop_arm(guard->loop, &guard->timer, kill_at(guard));
}

void guard_dismiss(struct guard *guard)
{
    guard->armed = false;
    loop_disarm(guard->loop, &guard->timer);
}

void guard_avenge(struct guard *guard)
{
    guard->orphaned = true;
    guard->tree.root = 0;
    kill_tree(guard);
}

void guard_excuse(struct guard *guard, bool excused)
{
    guard->excused = excused;
}
