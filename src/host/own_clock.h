/* The clock of a process whose store has none to decide by (clockless.h): it begins with the time
 * of the store, if that tells one, and then runs on, also while the machine is suspended. */
#pragma once

#include "base/clock.h"

struct own_clock {
    int64_t offset_us;
};

/* us since 1970. */
static inline int64_t own_clock_now(const struct own_clock *clock)
{
    return moment_now().ns / NS_PER_US + clock->offset_us;
}

/* Many a store cuts its time to a second. */
#define OWN_CLOCK_AGREES_US (2 * US_PER_S)

/* date_us: what the store says now, us since 1970; 0: nothing, so this machine's time has to do, as
 * it does, to the us, where it may be the store's. */
static inline void own_clock_begin(struct own_clock *clock, int64_t date_us)
{
    int64_t now_us = clock_wall() / NS_PER_US, ahead_us = now_us - date_us;

    if (date_us && (ahead_us < 0 || ahead_us > OWN_CLOCK_AGREES_US))
        now_us = date_us;
    clock->offset_us = now_us - moment_now().ns / NS_PER_US;
}
