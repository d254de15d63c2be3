/* Releasing, without waiting for ever. */
#include "run/timed_release.h"

#include <errno.h>

/* The agent has so long to release the lock: a bit more than it takes itself, which is until the
 * lease has ended anyway, within bounds. */
#define RELEASE_LEAST_NS (1500 * NS_PER_MS)
#define RELEASE_MOST_NS  (10 * NS_PER_SEC)
/* The same when the user wants to leave. */
#define HURRY_NS (1 * NS_PER_SEC)

void timed_release_fail(const struct timed_release *release, const struct run_reason *why)
{
    int64_t left = moment_until(moment_now(), release->job->lease.end);
    const struct run_news news = {.event = left > 0 ? RUN_UNRELEASED : RUN_UNRELEASED_ENDED,
                                  .duration = left,
                                  .reason = *why};

    if (release->state == RELEASING && !release->job->lost)
        run_tell(release->events, &news);
}

static struct moment release_by(const struct timed_release *release)
{
    struct moment now = moment_now();
    struct moment least = moment_plus(now, RELEASE_LEAST_NS);
    struct moment end = release->job->lease.end;

    return moment_reached(end, least) ? least : moment_min(end, moment_plus(now, RELEASE_MOST_NS));
}

/* If it is not certain that nothing of the command is left, the lease has to end first. */
bool timed_release_start(struct timed_release *release)
{
    const struct job *job = release->job;
    struct agent_order order = {.kind = ORDER_RELEASE,
                                .used = job->state != JOB_IDLE && !job->fault};
    struct run_reason why = {0};

    job_command_end(job, &order.end); /* all bytes of a message are sent */
    if (release->state != RELEASING)
        release->by = release_by(release);
    release->state = RELEASING;
    if (job->cleared)
        return !release->agent->over && !release->agent->gone; /* it does so already */
    if (job->stuck)
        why.cause = RUN_CAUSE_UNKILLED;
    else if (release->agent->gone)
        return true; /* another one takes its place */
    else if (agent_process_tell(release->agent, &order, -1))
        release->told = true;
    else if (errno == EAGAIN)
        why.cause = RUN_CAUSE_AGENT_DEAF;
    if (why.cause == RUN_CAUSE_TEXT)
        return true;
    timed_release_fail(release, &why);
    return false;
}

bool timed_release_cancel(struct timed_release *release)
{
    const struct agent_order cancel = {.kind = ORDER_CANCEL};

    release->state = CANCELLING;
    release->by = moment_plus(moment_now(), HURRY_NS);
    return agent_process_tell(release->agent, &cancel, -1);
}

void timed_release_hurry(struct timed_release *release)
{
    release->by = moment_min(release->by, moment_plus(moment_now(), HURRY_NS));
}
