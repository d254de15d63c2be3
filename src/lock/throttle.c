/* A burst, and a steady pace after it. */
#include "lock/throttle.h"

void throttle_note(struct throttle *throttle, struct moment now)
{
    struct moment from = throttle->due.ns > now.ns ? throttle->due : now;

    throttle->due = moment_plus(from, THROTTLE_PAUSE_NS);
}

struct moment throttle_next(const struct throttle *throttle)
{
    return moment_plus(throttle->due, -(THROTTLE_BURST - 1) * THROTTLE_PAUSE_NS);
}
