/* The supervisor, and a look into it. */
#include "run/supervisor.c"

#include <stddef.h>

#include "base/mem.h"
#include "lives/states.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

int __real_job_init(struct job *job, const struct job_plan *plan, const struct agent_process *agent,
                    struct child_note *note);
int __wrap_job_init(struct job *job, const struct job_plan *plan, const struct agent_process *agent,
                    struct child_note *note)
{
    kernel.current->inside = job;
    return __real_job_init(job, plan, agent, note);
}

void __real_job_free(struct job *job);
void __wrap_job_free(struct job *job)
{
    kernel.current->inside = NULL;
    __real_job_free(job);
}

unsigned state_of_supervisor(const struct proc *process)
{
    const struct job *job = process->inside;

    if (!job)
        return 0;
    const struct supervisor *s = MEM_CONTAINER(struct supervisor, job, job);
    return 1 + job->state * 3 + (s->state < RELEASING ? 0 : s->state - RELEASING + 1);
}

int64_t state_moment(const struct proc *process, unsigned which)
{
    const struct job *job = process->inside;

    if (!job || job->state == JOB_IDLE || job->state == JOB_ENDED)
        return NEVER;
    return which == 0           ? job_term_at(job).ns
           : which == 1         ? lease_kill_at(job->lease).ns
           : which == 2         ? job->lease.end.ns
           : job->plan->at_most ? moment_plus(job->acquired, job->plan->at_most).ns
                                : NEVER;
}
