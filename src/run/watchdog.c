/* Ending the tree in the supervisor's place. */
#include "run/watchdog.h"

#include <signal.h>

#define LOOK_NS (20 * NS_PER_MS)
/* How long to go on after the lease's end with what does not die. */
#define HOPELESS_NS (5 * NS_PER_SEC)

static struct moment term_at(const struct watchdog *watchdog)
{
    return lease_term_at(watchdog->lease, watchdog->kill_after);
}

static struct moment kill_at(const struct watchdog *watchdog)
{
    return lease_kill_at(watchdog->lease);
}

/* A supervisor that has acknowledged the deadline does as much itself, and says so. If it was
 * stopped since, there is nothing to tell the others that the end of the lease does not tell. */
static bool acts_alone(const struct watchdog *watchdog)
{
    return watchdog->silent || watchdog->paused || watchdog->orphaned;
}

static void look_again(struct watchdog *watchdog)
{
    loop_arm(watchdog->loop, &watchdog->timer, moment_plus(loop_now(watchdog->loop), LOOK_NS));
}

/* Where only the command's process group can be seen, its end does not say that nothing is left. */
static void conclude(struct watchdog *watchdog, enum tree_state state)
{
    watchdog_dismiss(watchdog);
    if (!acts_alone(watchdog))
        return;
    if (state == TREE_GONE && tree_is_visible(&watchdog->tree))
        watchdog->cleared(watchdog->arg);
    else
        watchdog->failed(watchdog->arg, state);
}

static bool is_hopeless(const struct watchdog *watchdog)
{
    return moment_reached(moment_plus(watchdog->lease.end, HOPELESS_NS), loop_now(watchdog->loop));
}

/* Once there is something to be ended, the supervisor is told, before it may find it ended. */
static void raise_alarm(struct watchdog *watchdog, enum tree_state state)
{
    if (watchdog->termed || state == TREE_GONE)
        return;
    watchdog->termed = true;
    if (acts_alone(watchdog) && !watchdog->orphaned)
        watchdog->alarmed(watchdog->arg);
}

/* The command of --stop, which has until KILL. The tree is empty only when it has ended, too. */
static bool goes_on_elsewhere(struct watchdog *watchdog)
{
    return stop_command_goes_on(&watchdog->stop_command, loop_now(watchdog->loop));
}

static void kill_tree(struct watchdog *watchdog)
{
    enum tree_state state = tree_signal(&watchdog->tree, SIGKILL);

    raise_alarm(watchdog, state);
    if (!watchdog->armed)
        return;
    bool elsewhere = goes_on_elsewhere(watchdog);
    if ((state == TREE_GONE && !elsewhere) || is_hopeless(watchdog))
        conclude(watchdog, state);
    else
        look_again(watchdog);
}

/* The command of --stop comes before TERM. A supervisor that has said it is ending its command has
 * started its own. */
static bool holds_off(struct watchdog *watchdog)
{
    struct stop_command *command = &watchdog->stop_command;

    if (!watchdog->termed && !watchdog->stopping && command->plan->command &&
        tree_signal(&watchdog->tree, 0) != TREE_GONE) {
        watchdog->delayed = stop_command_start(command, NULL, kill_at(watchdog));
        raise_alarm(watchdog, TREE_LIVE);
    }
    watchdog->delayed = watchdog->armed && watchdog->delayed && goes_on_elsewhere(watchdog) &&
                        stop_command_delays_term(command, loop_now(watchdog->loop));
    return watchdog->delayed;
}

/* What is stopped has to be continued to clean up. */
static void term_tree(struct watchdog *watchdog)
{
    if (holds_off(watchdog))
        look_again(watchdog);
    if (watchdog->delayed || !watchdog->armed)
        return;
    enum tree_state state = tree_signal(&watchdog->tree, SIGTERM);

    if (state != TREE_GONE)
        tree_signal(&watchdog->tree, SIGCONT);
    raise_alarm(watchdog, state);
    if (!watchdog->armed)
        return;
    if (state == TREE_GONE && !goes_on_elsewhere(watchdog))
        conclude(watchdog, state);
    else
        look_again(watchdog);
}

static void wait_for_end(struct watchdog *watchdog)
{
    enum tree_state state = tree_signal(&watchdog->tree, 0);

    if (state == TREE_GONE && !goes_on_elsewhere(watchdog))
        conclude(watchdog, state);
    else
        look_again(watchdog);
}

/* The command ended by itself while its supervisor was stopped. What it has left behind goes on, as
 * ever. */
static bool is_over(const struct watchdog *watchdog)
{
    return acts_alone(watchdog) && !watchdog->orphaned && !watchdog->termed &&
           !watchdog->stopping && !watchdog->wait_descendants && tree_leader_ended(&watchdog->tree);
}

static void act(struct watchdog *watchdog, struct moment now)
{
    bool alone = acts_alone(watchdog);

    if (!watchdog->orphaned && !moment_reached(term_at(watchdog), now)) {
        loop_arm(watchdog->loop, &watchdog->timer, alone ? term_at(watchdog) : kill_at(watchdog));
    } else if (is_over(watchdog)) {
        conclude(watchdog, TREE_GONE);
    } else if (watchdog->orphaned || moment_reached(kill_at(watchdog), now)) {
        kill_tree(watchdog);
    } else if (watchdog->termed && !watchdog->delayed) {
        wait_for_end(watchdog);
    } else if (alone) {
        term_tree(watchdog);
    } else {
        loop_arm(watchdog->loop, &watchdog->timer, kill_at(watchdog));
    }
}

/* The supervisor may have spoken in time, and not have been heard yet. */
static void turn(struct loop_timer *timer)
{
    struct watchdog *watchdog = timer->owner;

    watchdog->listen(watchdog->arg);
    if (watchdog->armed && !timer->added)
        act(watchdog, loop_now(watchdog->loop));
}

void watchdog_init(struct watchdog *watchdog, struct loop *loop)
{
    watchdog->loop = loop;
    watchdog->timer = (struct loop_timer){.fire = turn, .owner = watchdog, .urgent = true};
}

/* While nothing is being ended: when to look at it next. */
static void arm(struct watchdog *watchdog)
{
    if (watchdog->armed && watchdog->enabled && !watchdog->termed)
        loop_arm(watchdog->loop, &watchdog->timer,
                 acts_alone(watchdog) ? term_at(watchdog) : kill_at(watchdog));
}

void watchdog_watch(struct watchdog *watchdog, struct lease lease)
{
    watchdog->armed = watchdog->silent = true;
    watchdog->termed = watchdog->delayed = false;
    watchdog->lease = lease;
    arm(watchdog);
}

void watchdog_acknowledge(struct watchdog *watchdog, struct lease lease)
{
    if (lease.end.ns != watchdog->lease.end.ns)
        return;
    watchdog->silent = false;
    arm(watchdog);
}

void watchdog_dismiss(struct watchdog *watchdog)
{
    watchdog->armed = false;
    loop_disarm(watchdog->loop, &watchdog->timer);
}

void watchdog_supervisor_died(struct watchdog *watchdog)
{
    struct moment soon = moment_plus(loop_now(watchdog->loop), watchdog->kill_after);

    watchdog->orphaned = true;
    watchdog->tree.root = 0;
    if (watchdog->tree.group > 0)
        stop_command_start(&watchdog->stop_command, NULL, moment_min(soon, kill_at(watchdog)));
    kill_tree(watchdog);
}

void watchdog_pause(struct watchdog *watchdog, bool paused)
{
    watchdog->paused = paused;
    arm(watchdog);
}
