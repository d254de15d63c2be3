/* The agent as its supervisor sees it: a process at the other end of a channel, which may be stuck,
 * stopped or gone at any time. */
#ifndef RLOCK_DEPUTY_H
#define RLOCK_DEPUTY_H

#include <sys/types.h>

#include "agent.h"
#include "channel.h"

struct deputy {
    pid_t pid;   /* 0 when it has been reaped */
    int channel; /* our end */
    bool gone;   /* its end is closed, and all that it said has been heard */
    bool over;   /* it has said MESSAGE_OVER, and ends */
};

/* Forks it. -1 with errno. All signals are blocked already. */
int deputy_start(struct deputy *deputy, const struct agent_plan *plan);
/* False if it cannot hear: it is gone, or has not read for long. */
bool deputy_tell(const struct deputy *deputy, const struct message *message);
/* The next thing that it has said; false if there is none now, or it is gone. */
bool deputy_hear(struct deputy *deputy, struct message *message);
/* Sees to it that it does not outlive this process: at once, unless it has said that it ends. */
void deputy_end(struct deputy *deputy);

#endif
