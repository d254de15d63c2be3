/* How a run ended, in the words that people and programs read. Pure. */
#ifndef RLOCK_CLI_OUTCOME_H
#define RLOCK_CLI_OUTCOME_H

#include "lock/lock.h"

/* Room for the longest outcome. */
#define OUTCOME_SIZE 32

/* How a run ended: "exit 0", "signal TERM", "timed out", "lost", "expired", "revoked"; "" where
 * that is not known. Returns out. */
char *outcome_print(const struct lock_end *end, char out[OUTCOME_SIZE]);
/* Whether it is known that the run did not end as it should have. */
bool outcome_is_failure(const struct lock_end *end);

#endif
