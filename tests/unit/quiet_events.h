/* Events of a keeper that a test ignores. */
#ifndef QUIET_EVENTS_H
#define QUIET_EVENTS_H

#include "lock/keeper.h"

static inline void quiet_answer(void *arg, const struct answer *answer)
{
    (void)arg, (void)answer;
}

static inline void quiet_held(void *arg, struct lease lease, const struct lock_grant *grants)
{
    (void)arg, (void)lease, (void)grants;
}

static inline void quiet_extended(void *arg, struct lease lease, bool forgotten)
{
    (void)arg, (void)lease, (void)forgotten;
}

static inline void quiet_lost(void *arg, const struct keeper_loss *loss)
{
    (void)arg, (void)loss;
}

static inline void quiet_recovered(void *arg, int64_t after)
{
    (void)arg, (void)after;
}

#endif
