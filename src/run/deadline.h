/* May a command continue, until when, and who ends it? One answer for both guards, from the plan
 * and from what a guard knows. Pure. */
#pragma once

#include "lock/lease.h"
#include "run/plan.h"

/* A command that was started under a lock, and its supervisor, as far as a guard knows. */
struct supervised {
    struct lease lease; /* the latest */
    bool silent;        /* the supervisor has not taken note of the latest lease, or of a loss */
    bool paused;        /* the terminal has stopped the supervisor, together with the command */
    bool dead;          /* the supervisor is dead */
    bool lost;          /* the lock is another's, or may be */
    bool cleared;       /* the command has ended while the lock was held */
    struct awake stopping_since; /* the command is being ended; 0: it is not */
    int64_t suspended;           /* clock_suspended(), where it is being ended */
};

struct deadline {
    enum guard { GUARD_NONE, GUARD_SUPERVISOR, GUARD_AGENT } by; /* the one that ends it */
    /* From then on the lock counts as lost, unless its lease is extended before, and "by" asks the
     * command to end. GUARD_NONE: it continues without the lock. 0: at once. */
    struct moment lost_at;
    /* Either guard kills then what does not end by itself. */
    struct moment kill_at;
};

/* Until when the command may continue, and which guard ends it, by what the caller knows. Both
 * guards come to the same, if they know the same. */
struct deadline deadline_of(const struct job_plan *plan, const struct supervised *known);
/* Whether a command continues without its lock: never with a fixed lease, whose end is a time
 * limit. */
bool deadline_is_waived(const struct job_plan *plan);
/* Whether KILL must not reach yet what releases the locks that nest in this one ("lenient" of
 * os/tree.h). killing_for: ns since the first KILL. Never when the lease ends. */
bool deadline_lets_off(struct lease lease, int64_t killing_for, struct moment now);
