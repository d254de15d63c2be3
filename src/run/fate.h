/* The fate of a command under its lock, as far as a guard has seen it. All that is told of the end
 * follows from it: the exit status, the notices, the history. */
#pragma once

#include "run/events.h"

/* The worst counts, whichever was first. */
enum fate {
    FATE_NONE,         /* nothing: it runs, or has ended by itself, under its lock */
    FATE_TIMED_OUT,    /* it was stopped at --at-most, or at the end of a lease without renewal */
    FATE_NOT_EXECUTED, /* it never ran */
    FATE_LOST,         /* the lock was lost before it had ended */
};

/* Notes a fate, if it is worse than what was known; false if it is not. */
static inline bool fate_raise(enum fate *fate, enum fate to)
{
    bool worse = to > *fate;

    if (worse)
        *fate = to;
    return worse;
}

/* The fate of a command whose lock is lost for this reason: the end of a fixed lease is a time
 * limit. renew: as in the plan. */
static inline enum fate fate_of_loss(bool renew, enum run_cause cause)
{
    return !renew && cause == RUN_CAUSE_NOT_RENEWED ? FATE_TIMED_OUT : FATE_LOST;
}

/* The fate in the words of the history, where nothing else is known of the end. */
static inline enum lock_ending fate_ending(enum fate fate)
{
    switch (fate) {
    case FATE_NONE: return LOCK_USED;
    case FATE_TIMED_OUT: return LOCK_TIMED_OUT;
    case FATE_NOT_EXECUTED: return LOCK_UNUSED;
    case FATE_LOST: return LOCK_LOST;
    }
    return LOCK_USED;
}
