/* Has the agent give back the lock, or the place in the queue, and bounds how long the supervisor
 * waits for that: the agent may not answer. */
#ifndef RLOCK_RUN_TIMED_RELEASE_H
#define RLOCK_RUN_TIMED_RELEASE_H

#include "run/job.h"

struct timed_release {
    const struct run_events *events;
    const struct agent_process *agent;
    const struct job *job;
    enum { STAYING, RELEASING, CANCELLING } state;
    struct moment by; /* when to go without an answer */
    bool told;        /* an agent has been told to give it back, and may have done so */
};

/* Nothing of the command is left: has the lock given back. False if nobody is to be waited for,
 * which has been said then. To be called once more when another agent has taken the place of one
 * that died. */
bool timed_release_start(struct timed_release *release);
/* No command was started. False if nobody is to be waited for. */
bool timed_release_cancel(struct timed_release *release);
/* The user does not want to wait. */
void timed_release_hurry(struct timed_release *release);
/* It did not work: warns if something may still be held. */
void timed_release_fail(const struct timed_release *release, const struct run_reason *why);

#endif
