/* The environment of a command that runs under a lock. Pure. */
#ifndef RLOCK_ENVIRONMENT_H
#define RLOCK_ENVIRONMENT_H

#include "lock.h"

/* What a command is told of its lock before it is held. */
struct environment_lock {
    const char *const *keys;
    size_t key_count;
    enum lock_mode mode;
    const char *owner;
    int64_t lease_ms;
};

#define ENVIRONMENT_WORDS 6 /* about the lock */

struct environment {
    char **entries; /* NULL-terminated, for execve() */
    /* Those about the lock: RLOCK_KEY, RLOCK_MODE, RLOCK_OWNER, RLOCK_LEASE_MS, and once it is granted
     * RLOCK_FENCE and with a limit RLOCK_SLOT; NULL before, and without one. */
    char *words[ENVIRONMENT_WORDS];
    char *url; /* what is left of RLOCK_URL, NULL if it is as it was */
    size_t key_count;
    bool limited;
};

/* Makes one of "inherited", whose strings it borrows: with what there is to know of the lock; without
 * what an outer rlock said of its own; without passwords unless keep_credentials. lock: NULL where there is
 * none of its own, and the outer one's is not touched. Give back with environment_free(). */
void environment_make(struct environment *environment, char *const *inherited,
                      const struct environment_lock *lock, bool keep_credentials);
/* The lock is held: adds what was granted for each of its keys. */
void environment_grant(struct environment *environment, const struct lock_grant *grants);
void environment_free(struct environment *environment);

#endif
