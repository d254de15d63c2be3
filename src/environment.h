/* The environment of a command that runs under a lock. Pure. */
#ifndef RLOCK_ENVIRONMENT_H
#define RLOCK_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

struct environment {
    char **entries; /* NULL-terminated, for execve() */
    char *made[5];  /* those that are not the caller's */
};

/* Makes one of "inherited", whose strings it borrows: with RLOCK_KEY, RLOCK_MODE, RLOCK_OWNER and
 * RLOCK_LEASE_MS; without what an outer rlock said of its own lock; without passwords unless
 * keep_credentials. Give back with environment_free(). */
void environment_make(struct environment *environment, char *const *inherited, const char *key,
                      const char *owner, int64_t lease_ms, bool keep_credentials);
void environment_free(struct environment *environment);

#endif
