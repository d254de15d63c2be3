/* The tests of keepers share these: a plan, a store that needs no closing, and events to ignore. */
#pragma once

#include "lock/keeper.h"

/* For the key "k", with renewals. wait: ns; negative: for ever; 0: one try. */
static inline struct keeper_plan plan_of(const char *owner, int64_t lease, int64_t wait,
                                         struct moment now)
{
    static const char *const keys[] = {"k"};

    return (struct keeper_plan){
        .request = {.keys = keys, .key_count = 1, .owner = owner, .lease = lease, .who = ""},
        .wait = wait != 0,
        .wait_until = wait < 0 ? MOMENT_NEVER : moment_plus(now, wait),
        .renew = true,
        .connect_timeout = 5 * NS_PER_SEC,
        .server_wait = 5 * NS_PER_SEC};
}

static inline void close_nothing(struct store *base)
{
    (void)base;
}

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
