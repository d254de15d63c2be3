/* How often a store is asked at most: ten times in a row as fast as it pokes, and after that ten
 * times a second, whatever it answers. Pure. */
#ifndef RLOCK_LOCK_THROTTLE_H
#define RLOCK_LOCK_THROTTLE_H

#include "base/clock.h"

#define THROTTLE_BURST    10
#define THROTTLE_PAUSE_NS (100 * NS_PER_MS)

/* Zero: nothing was asked yet. */
struct throttle {
    struct moment due; /* when the next one would be at the steady pace */
};

/* One was asked at "now". */
void throttle_note(struct throttle *throttle, struct moment now);
/* The next one is not to be asked before; the past: it may be asked. */
struct moment throttle_next(const struct throttle *throttle);

#endif
