#include "run/deadline.h"

#include "os/tree.h"

#define AT_ONCE ((struct moment){0})

bool deadline_is_waived(const struct job_plan *plan)
{
    return plan->renew && plan->on_lost != ON_LOST_STOP;
}

bool deadline_lets_off(struct lease lease, int64_t killing_for, struct moment now)
{
    return killing_for < TREE_LENIENT_NS && !moment_reached(lease_kill_at(lease), now);
}

/* Returns from when on the lock counts as lost, as in struct deadline. */
static struct moment lost_at(const struct job_plan *plan, const struct supervised *known)
{
    if (known->dead)
        return AT_ONCE;
    if (known->lost)
        return deadline_is_waived(plan) ? MOMENT_NEVER : AT_ONCE;
    if (deadline_is_waived(plan) && plan->on_lost == ON_LOST_CONTINUE)
        return known->lease.end; /* a renewal may still come, and nothing has to be done before */
    return lease_term_at(known->lease, plan->kill_after);
}

struct deadline deadline_of(const struct job_plan *plan, const struct supervised *known)
{
    struct deadline deadline = {GUARD_NONE, MOMENT_NEVER, MOMENT_NEVER};

    if (known->stopping_since.ns) { /* time in which the machine was suspended does not count */
        struct moment since = {known->stopping_since.ns + known->suspended};
        deadline.kill_at = moment_plus(since, plan->kill_after);
    }
    if (known->cleared) /* nothing is left to end but what runs on without the lock */
        return deadline;
    deadline.lost_at = lost_at(plan, known);
    if (deadline_is_waived(plan) && !known->dead)
        return deadline;
    deadline.kill_at = moment_min(deadline.kill_at, lease_kill_at(known->lease));
    deadline.by = known->dead || known->silent || known->paused ? GUARD_AGENT : GUARD_SUPERVISOR;
    return deadline;
}
