/* The environment of a command that runs under a lock. */
#pragma once

#include "os/child.h"
#include "store/store.h"

#define ENVIRONMENT_WORDS 6 /* about the lock */

struct environment {
    char **entries; /* NULL-terminated, for execve() */
    /* Variables about the lock: RLOCK_KEY, RLOCK_MODE, RLOCK_OWNER, and once it is granted
     * RLOCK_LEASE_MS, RLOCK_FENCE and with a limit RLOCK_SLOT; NULL before, and without one. */
    char *words[ENVIRONMENT_WORDS];
    char *url; /* RLOCK_URL without its passwords; NULL if it had none */
    /* LISTEN_PID=N and WATCHDOG_PID=N, where they named this process: a service manager means what
     * it has started, and that is the command, whose process writes its own number at "numbers". */
    char for_service[CHILD_NUMBERS][32];
    char *numbers[CHILD_NUMBERS];
    const struct acquire_request *lock; /* borrowed */
};

/* As RLOCK_KEY has them: the keys with a space between them. The caller frees. */
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
/* Adds for how long (ns) the lock is held, and the grants of its keys. Keys that are not held are
 * removed. */
void environment_grant(struct environment *environment, int64_t lease,
                       const struct lock_grant *grants);
/* The entries for a command that tells of the lock, or ends work elsewhere, without being nested in
 * it: with the entries of "added", NULL-terminated, and without the owner's name. The caller frees
 * the list, whose strings are borrowed. */
char **environment_beside(const struct environment *environment, char *const *added);
void environment_free(struct environment *environment);
