/* The supervisor, and a look into it. */
#include "run/supervisor.c"

#include <stddef.h>

#include "base/mem.h"
#include "lives/run.h"
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
    const struct run *run = process->run;

    if (!job || job->state == JOB_IDLE || job->state == JOB_ENDED)
        return NEVER;
    switch (which) {
    case 0: return job_term_at(job).ns;
    case 1: return lease_kill_at(job->lease).ns;
    case MOMENT_OF_LEASE: return job->lease.end.ns;
    case MOMENT_AT_MOST:
        return job->plan->at_most ? moment_plus(job->acquired, job->plan->at_most).ns : NEVER;
    case MOMENT_OF_ITSELF: return run->command_alive ? run->command->finishes : NEVER;
    case MOMENT_OF_KILL: return job->state == JOB_STOPPING ? job->stop.tree.kill_at.ns : NEVER;
    default: return NEVER;
    }
}

int64_t state_kills_at(const struct proc *guard)
{
    return guard->kind == AGENT ? state_kills_at_of_agent(guard)
                                : state_moment(guard, MOMENT_OF_KILL);
}

unsigned state_detail_of_supervisor(const struct proc *process)
{
    const struct job *job = process->inside;

    if (!job)
        return 0;
    const struct supervisor *s = MEM_CONTAINER(struct supervisor, job, job);
    return (unsigned)job->cleared | (job->fate == FATE_LOST) << 1 |
           (job->stop_command.pid > 0) << 2 | job->agent->gone << 3 |
           (job->plan->at_most > 0) << 4 | (job->plan->stop != NULL) << 5 | job->ends_command << 6 |
           job->child.stopped << 7 | s->release_told << 8 | s->kept << 9 | s->agent.over << 10 |
           (s->unreleased != NULL) << 11 | (job->plan->on_lost != ON_LOST_STOP) << 12;
}
