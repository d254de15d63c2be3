/* The agent, and a look into it. */
#include "run/agent.c"

#include <stddef.h>

#include "base/mem.h"
#include "lives/states.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

void __real_watchdog_init(struct watchdog *watchdog, struct loop *loop);
void __wrap_watchdog_init(struct watchdog *watchdog, struct loop *loop)
{
    kernel.current->inside = watchdog;
    __real_watchdog_init(watchdog, loop);
}

void __real_keeper_free(struct keeper *keeper);
void __wrap_keeper_free(struct keeper *keeper)
{
    kernel.current->inside = NULL;
    __real_keeper_free(keeper);
}

unsigned state_detail_of_agent(const struct proc *process)
{
    const struct watchdog *watchdog = process->inside;

    if (!watchdog)
        return 0;
    const struct agent *agent = MEM_CONTAINER(struct agent, watchdog, watchdog);
    return (unsigned)watchdog->known.silent | watchdog->known.lost << 1 |
           watchdog->known.paused << 2 | watchdog->stopping << 3 |
           (watchdog->stop_command.pid > 0) << 4 | agent->command_ended << 5 |
           (agent->release_order.kind == ORDER_RELEASE) << 6 | agent->presence.state << 7 |
           (agent->keeper ? state_detail_of_keeper(agent->keeper) : 0) << 9;
}

int64_t state_kills_at_of_agent(const struct proc *agent)
{
    const struct watchdog *watchdog = agent->inside;

    return watchdog && watchdog->plan ? deadline_of(watchdog->plan, &watchdog->known).kill_at.ns
                                      : NEVER;
}

bool state_knows_pause(const struct proc *agent)
{
    const struct watchdog *watchdog = agent->inside;

    return watchdog && watchdog->known.paused;
}

unsigned state_of_agent(const struct proc *process)
{
    const struct watchdog *watchdog = process->inside;

    if (!watchdog)
        return 0;
    const struct agent *agent = MEM_CONTAINER(struct agent, watchdog, watchdog);
    return 1 + (agent->state * 5 + watchdog->phase) * 8 +
           (agent->keeper ? state_of_keeper(agent->keeper) : 0);
}
