/* How often a store is asked at most: ten times in a row as fast as it pokes, and after that ten
 * times a second, whatever it answers. Pure. */
#pragma once

#include "base/clock.h"

#define THROTTLE_BURST    10
#define THROTTLE_PAUSE_NS (100 * NS_PER_MS)

/* Zero: nothing was asked yet. */
struct throttle {
    struct moment due; /* when the next question would come at the steady pace */
};

/* Notes a question at "now". */
static inline void throttle_note(struct throttle *throttle, struct moment now)
{
    throttle->due = moment_plus(moment_max(throttle->due, now), THROTTLE_PAUSE_NS);
}

/* The earliest moment for the next question, which may be in the past. */
static inline struct moment throttle_next(const struct throttle *throttle)
{
    return moment_plus(throttle->due, -(THROTTLE_BURST - 1) * THROTTLE_PAUSE_NS);
}
