/* How a run ended, in the words that people and programs read. Pure. */
#ifndef RLOCK_CLI_OUTCOME_H
#define RLOCK_CLI_OUTCOME_H

#include "base/utf8.h"
#include "lock/lock.h"

/* Room for the longest outcome. */
#define OUTCOME_SIZE    32
#define REVOCATION_SIZE (2 * UTF8_ESCAPED_SIZE(IDENTITY_WORD_MAX) + 64)

/* How a run ended: "exit 0", "signal TERM", "timed out", "lost", "expired", "revoked", "rlock
 * was killed"; "" where that is not known. Returns out. */
char *outcome_print(const struct lock_end *end, char out[OUTCOME_SIZE]);
/* By whom and why a lock is, or was, taken away: " by build@ci-3 pid 4121: hotfix", escaped; ""
 * where neither is known. Returns out. */
char *revocation_print(const struct revocation *revoked, char out[REVOCATION_SIZE]);
/* That it was, of a run that ended so: "taken away 12s ago by build@ci-3 pid 4121: hotfix", as
 * others wrote it, for cli/say.h, which escapes it. Returns out. */
char *revocation_print_past(const struct revocation *revoked, char out[REVOCATION_SIZE]);
/* Whether it is known that the run did not end as it should have. */
bool outcome_is_failure(const struct lock_end *end);

#endif
