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

unsigned state_of_agent(const struct proc *process)
{
    const struct watchdog *watchdog = process->inside;

    if (!watchdog)
        return 0;
    const struct agent *agent = MEM_CONTAINER(struct agent, watchdog, watchdog);
    return 1 + (agent->state * 5 + watchdog->phase) * 8 +
           (agent->keeper ? state_of_keeper(agent->keeper) : 0);
}
