/* The tests of keepers share these: a plan, a store that needs no closing, events to ignore, and
 * who listens to a keeper and accuses it. */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fake_loop.h"
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

/* -- what may never be ------------------------------------------------------------------------- */

/* The events of a life, up to the first fault. */
struct trial {
    const char *fault; /* NULL: none */
    char log[12000];
};

static inline void accuse(struct trial *trial, const char *fault)
{
    if (!trial->fault)
        trial->fault = fault;
}

/* One more entry of the log; the earliest ones give way. */
__attribute__((format(printf, 3, 4))) static inline void
note_at(struct trial *trial, struct moment when, const char *format, ...)
{
    size_t used = strlen(trial->log);
    va_list args;

    if (trial->fault)
        return;
    if (used > sizeof trial->log - 300) {
        memmove(trial->log, trial->log + used / 2, used - used / 2 + 1);
        used -= used / 2;
    }
    used += (size_t)snprintf(trial->log + used, sizeof trial->log - used, "%.3f ",
                             (double)when.ns / 1e9 - 1000);
    va_start(args, format);
    vsnprintf(trial->log + used, 200, format, args);
    va_end(args);
    strcat(trial->log, "; ");
}

/* One who wants the lock. */
struct witness {
    struct trial *trial;
    struct loop *loop;
    struct keeper *keeper;
    bool held, lost, leaving, over;
    bool troubled;          /* and told so */
    bool away;              /* no process takes a grant */
    struct lease lease;     /* while held */
    struct moment leave_by; /* the keeper must be over then; never, if it was not told so */
    enum keeper_ending ending;
};

static inline void witness_held(struct witness *witness, struct lease lease)
{
    if (witness->held || witness->leaving)
        accuse(witness->trial, "held twice, or after the end");
    if (witness->away)
        accuse(witness->trial, "held by one that is away");
    witness->held = true;
    witness->lease = lease;
}

static inline void witness_extended(struct witness *witness, struct lease lease)
{
    if (!witness->held)
        accuse(witness->trial, "extended, but not held");
    witness->lease = lease;
}

/* Events of an outage; arg: the witness, or what has it as its first member. */
static inline void witness_trouble(void *arg, const struct answer *why)
{
    struct witness *witness = arg;

    if (!why->text[0])
        accuse(witness->trial, "trouble without a reason");
    witness->troubled = true;
}

static inline void witness_recovered(void *arg, int64_t after)
{
    struct witness *witness = arg;

    if (!witness->troubled || after < 0)
        accuse(witness->trial, "recovered without any trouble");
    if (witness->over)
        accuse(witness->trial, "recovered after the end");
    witness->troubled = false;
}

static inline void witness_lost(struct witness *witness)
{
    if (!witness->held && !witness->leaving)
        accuse(witness->trial, "lost, but not held");
    if (witness->lost)
        accuse(witness->trial, "lost twice");
    witness->held = false;
    witness->lost = true;
}

/* late: it stood still, and need not be over in time. */
static inline void witness_over(struct witness *witness, const struct keeper_end *end, bool late)
{
    if (witness->over)
        accuse(witness->trial, "over twice");
    if (loop_now(witness->loop).ns > witness->leave_by.ns && !late)
        accuse(witness->trial, "over later than it was told");
    witness->held = false;
    witness->over = true;
    witness->ending = end->ending;
}

/* arg: the witness, or what has it as its first member. */
static inline bool witness_is_away(void *arg)
{
    return ((struct witness *)arg)->away;
}

static inline void witness_restart(struct witness *witness)
{
    witness->held = witness->lost = false;
    keeper_restart(witness->keeper);
}

/* Cancels, or releases what is held, for "ns" at most. */
static inline void witness_leave(struct witness *witness, bool cancel, int64_t ns)
{
    struct moment until = moment_plus(loop_now(witness->loop), ns);

    witness->held = false;
    witness->leaving = true;
    witness->leave_by = until;
    if (cancel)
        keeper_cancel(witness->keeper, until);
    else
        keeper_release(witness->keeper, until, &(struct lock_end){0});
}
