/* The agent's process. */
#include "deputy.h"

#include <unistd.h>

#include "child.h"

#define END_NS (1 * NS_PER_SEC) /* for a process that has nothing left to do */

struct order {
    const struct agent_plan *plan;
    pid_t supervisor;
};

static int work(int channel, const void *arg)
{
    const struct order *order = arg;
    return agent_main(channel, order->supervisor, order->plan);
}

int deputy_start(struct deputy *deputy, const struct agent_plan *plan)
{
    struct order order = {.plan = plan, .supervisor = getpid()};
    int ends[2];

    if (channel_pair(ends) < 0)
        return -1;
    deputy->channel = ends[0];
    deputy->pid = child_fork_helper("rlock-agent", ends[1], work, &order);
    close(ends[1]);
    return deputy->pid < 0 ? -1 : 0;
}

bool deputy_tell(const struct deputy *deputy, const struct message *message)
{
    return !deputy->gone && channel_send(deputy->channel, message);
}

bool deputy_hear(struct deputy *deputy, struct message *message)
{
    int got = deputy->gone ? 0 : channel_receive(deputy->channel, message);

    if (got > 0 && message->kind == MESSAGE_OVER)
        deputy->over = true;
    /* A process of its own may keep its end of the channel open. */
    deputy->gone = deputy->gone || got < 0 || (got == 0 && deputy->pid == 0);
    return got > 0;
}

void deputy_end(struct deputy *deputy)
{
    if (deputy->pid > 0)
        child_await(deputy->pid, deputy->over ? END_NS : 0);
    deputy->pid = 0;
}
