/* The environment of a command that runs under a lock. */
#pragma once

#include "os/child.h"
#include "store/store.h"

/* The variables about the lock, in the order of "words". */
enum environment_word {
    ENVIRONMENT_KEY,
    ENVIRONMENT_MODE,
    ENVIRONMENT_OWNER,
    ENVIRONMENT_LEASE,
    ENVIRONMENT_FENCE,
    ENVIRONMENT_SLOT,
    ENVIRONMENT_WORDS
};

struct environment {
    char **entries; /* NULL-terminated, for execve() */
    /* Entries about the lock: RLOCK_KEY, RLOCK_MODE, RLOCK_OWNER; once it is granted
     * RLOCK_LEASE_MS, RLOCK_FENCE, and of a semaphore RLOCK_SLOT. NULL: not yet, or not at all. */
    char *words[ENVIRONMENT_WORDS];
    char *url; /* RLOCK_URL without its passwords; NULL if it had none */
    /* LISTEN_PID=N and WATCHDOG_PID=N, where they named this process: a service manager means what
     * it has started, and that is the command, whose process writes its own number at "numbers" (in
     * "of_service"; NULL: they did not). */
    char of_service[CHILD_NUMBERS][32];
    char *numbers[CHILD_NUMBERS];
    const struct acquire_request *lock; /* borrowed */
};

/* Returns the keys with a space between them, as RLOCK_KEY has them. The caller frees. */
char *environment_keys(const char *const *keys, size_t count);

/* Overwrites the passwords among the entries (RLOCK_PASSWORD, RLOCK_URL), which other processes can
 * read in the memory that this one was started with (proc(5), environ), and has the entries point
 * to copies, which stay for good. */
void environment_hide(char **entries);

enum environment_passwords { PASSWORDS_REMOVED, PASSWORDS_KEPT };
/* Makes an environment of "inherited", whose strings it borrows: adds the facts about the lock that
 * are known before it is held, and leaves out those of an outer rlock, and the passwords with
 * PASSWORDS_REMOVED. lock: borrowed; NULL for a command without a lock of its own: then the outer
 * one's facts stay. Release with environment_free(). */
void environment_make(struct environment *environment, char *const *inherited,
                      const struct acquire_request *lock, enum environment_passwords passwords);
/* Adds the length of the lease (ns), and the grants of the lock's keys, one for each; or replaces
 * those of an earlier grant. Keys that are not held are removed. */
void environment_grant(struct environment *environment, int64_t lease,
                       const struct lock_grant *grants);
/* Returns the entries for a command that tells of the lock (--notify), or ends work elsewhere
 * (--stop), without being nested in it: with those of "added", NULL-terminated, in place of any of
 * the same name, and without RLOCK_OWNER. The caller frees the list, whose strings are borrowed. */
char **environment_beside(const struct environment *environment, char *const *added);
/* Frees what environment_make() and environment_grant() have made. */
void environment_free(struct environment *environment);
