/* TERM, then KILL, until nobody is left. */
#include "stop.h"

/* A tree is empty when its last process has become a child of this one and ended, so SIGCHLD tells;
 * looking again after a while is for what was missed. Killing is repeated faster, as what forks may
 * slip through. */
#define LOOK_AGAIN_NS (100 * NS_PER_MS)
#define KILL_AGAIN_NS (20 * NS_PER_MS)
/* What survives KILL for so long waits for a disk or a network file system. */
#define PATIENCE_NS (2 * NS_PER_SEC)

/* Without /proc only the command's process group is known. */
int stop_send(const struct stop *stop, int signo)
{
    int live = tree_signal(&stop->tree, signo);
    if (live >= 0)
        return live;
    child_signal(stop->child, signo);
    return stop->child->pid > 0 ? 1 : 0;
}

void stop_begin(struct stop *stop, struct moment now)
{
    if (!moment_reached(stop->kill_at, now)) {
        stop_send(stop, SIGTERM);
        stop_send(stop, SIGCONT);
    }
}

enum stop_state stop_turn(struct stop *stop, struct moment now)
{
    if (!stop->killing && moment_reached(stop->kill_at, now)) {
        stop->killing = true;
        stop->give_up = moment_plus(now, PATIENCE_NS);
    }
    if (stop_send(stop, stop->killing ? SIGKILL : 0) == 0 && stop->child->pid == 0)
        return STOP_DONE;
    return stop->killing && moment_reached(stop->give_up, now) ? STOP_STUCK : STOP_GOING;
}

struct moment stop_next(const struct stop *stop, struct moment now)
{
    if (stop->killing)
        return moment_plus(now, KILL_AGAIN_NS);
    return moment_min(stop->kill_at, moment_plus(now, LOOK_AGAIN_NS));
}
