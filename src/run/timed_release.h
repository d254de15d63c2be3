/* Has the agent release the lock, or the place in the queue, and bounds how long the supervisor
 * waits for that: the agent may not answer. */
#ifndef RLOCK_RUN_TIMED_RELEASE_H
#define RLOCK_RUN_TIMED_RELEASE_H

#include "run/job.h"

struct timed_release {
    const struct run_events *events;
    const struct agent_process *agent;
    const struct job *job;
    enum { STAYING, RELEASING, CANCELLING } state;
    struct moment by; /* when to leave without an answer */
    bool told;        /* an agent has been told to release the lock, and may have done so */
};

/* Has the lock released, as nothing of the command is left. False if there is no release to wait
 * for, which the user has been told then. Must be called once more when another agent has replaced
 * one that died. */
bool timed_release_start(struct timed_release *release);
/* Has the place in the queue released, as no command was started. False if there is no answer to
 * wait for. */
bool timed_release_cancel(struct timed_release *release);
/* The user does not want to wait. */
void timed_release_hurry(struct timed_release *release);
/* Reports a failed release, if something may still be held. */
void timed_release_fail(const struct timed_release *release, const struct run_reason *why);

#endif
