#include "os/kill_tree.h"

/* A tree is empty when its last process has become a child of this one and ended, so SIGCHLD tells;
 * looking again after a while is for what was missed. Killing is repeated faster, as what forks may
 * slip through. */
#define LOOK_AGAIN_NS (100 * NS_PER_MS)
#define KILL_AGAIN_NS (20 * NS_PER_MS)
/* When for so long nothing has ended, what is left does not die of KILL: it waits for a disk or a
 * network file system, for example. As long as something ends, new processes appear. */
#define STUCK_NS (2 * NS_PER_SEC)

enum tree_state kill_tree_signal(const struct tree *tree, int signo)
{
    enum tree_state state = tree_signal(tree, signo);

    /* A process that is born while its parent ends may be in neither place when /proc is read. But
     * the topmost process of a tree is always a child of its subreaper, this process: if none has
     * ended since before the look began, all that there was has been looked at. If one has, it
     * waits to be reaped, and SIGCHLD makes the caller look again. */
    return state == TREE_GONE && child_waits_to_be_reaped() ? TREE_LIVE : state;
}

enum tree_state kill_tree_terminate(const struct tree *tree)
{
    enum tree_state state = tree_signal(tree, SIGTERM);

    if (state != TREE_GONE)
        tree_signal(tree, SIGCONT);
    return state;
}

enum kill_tree_state kill_tree_turn(struct kill_tree *stop, struct moment now)
{
    stop->tree.reaped = stop->child->pid == 0;
    stop->killing |= moment_reached(stop->tree.kill_at, now);
    if (stop->killing)
        patience_look(&stop->killing_for, now);
    /* A process that is let off is not stuck. */
    if (stop->tree.lenient)
        kill_tree_note_death(stop);
    if (kill_tree_signal(&stop->tree, stop->killing ? SIGKILL : 0) == TREE_GONE &&
        stop->child->pid == 0)
        return KILL_TREE_DONE;
    if (stop->killing_for.ns - stop->death < STUCK_NS || child_waits_to_be_reaped())
        return KILL_TREE_GOING;
    return KILL_TREE_STUCK;
}

void kill_tree_note_death(struct kill_tree *stop)
{
    stop->death = stop->killing_for.ns;
}

struct moment kill_tree_next(const struct kill_tree *stop, struct moment now)
{
    if (stop->killing)
        return moment_plus(now, KILL_AGAIN_NS);
    return moment_min(stop->tree.kill_at, moment_plus(now, LOOK_AGAIN_NS));
}
