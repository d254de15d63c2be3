/* Giving back, and not waiting for ever. */
#include "departure.h"

#include "duration.h"
#include "say.h"

/* For the agent to give the lock back: a bit more than it takes itself, which is until the lease has
 * ended anyway, within bounds. */
#define RELEASE_LEAST_NS (1500 * NS_PER_MS)
#define RELEASE_MOST_NS  (10 * NS_PER_SEC)
/* The same when the user wants to go. */
#define HURRY_NS (1 * NS_PER_SEC)

void departure_fail(const struct departure *departure, const char *why)
{
    int64_t left = moment_until(moment_now(), departure->ward->deadline);
    char duration[32];

    if (departure->state != RELEASING || departure->ward->lost)
        return;
    if (left > 0)
        say_warning("%s: could not be released: %s; it frees itself in %s", departure->title, why,
                    duration_print(left, duration, sizeof duration));
    else
        say_warning("%s: could not be released: %s; its lease has run out meanwhile",
                    departure->title, why);
}

static struct moment release_by(const struct departure *departure)
{
    struct moment now = moment_now();
    struct moment least = moment_plus(now, RELEASE_LEAST_NS);
    struct moment end = departure->ward->deadline;

    return moment_reached(end, least) ? least : moment_min(end, moment_plus(now, RELEASE_MOST_NS));
}

/* If it is not certain that nothing of the command is left, the lease has to end first. */
bool departure_release(struct departure *departure)
{
    const struct ward *ward = departure->ward;
    struct message message = {.kind = MESSAGE_RELEASE,
                              .used = ward->state != WARD_IDLE && !ward->fault && !ward->lost};
    const char *why = NULL;

    departure->state = RELEASING;
    departure->by = release_by(departure);
    if (ward->stuck)
        why = "not all processes of its command could be killed";
    else if (!deputy_tell(departure->agent, &message))
        why = "its agent does not answer";
    if (why)
        departure_fail(departure, why);
    return !why;
}

bool departure_cancel(struct departure *departure)
{
    const struct message message = {.kind = MESSAGE_CANCEL};

    departure->state = CANCELLING;
    departure->by = moment_plus(moment_now(), HURRY_NS);
    return deputy_tell(departure->agent, &message);
}

void departure_hurry(struct departure *departure)
{
    departure->by = moment_min(departure->by, moment_plus(moment_now(), HURRY_NS));
}
