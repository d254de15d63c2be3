/* A lock that is kept after its command, in words. Pure. */
#ifndef RLOCK_CLI_KEPT_H
#define RLOCK_CLI_KEPT_H

#include "cli/daytime.h"
#include "lock/lock.h"

/* Room for decision_print(). */
#define DECISION_SIZE 640

/* When the lease of a holder ends if it is not renewed (daytime.h), by the store's clock. Returns
 * out. */
char *kept_until(const struct lock_party *holder, bool seconds, char out[DAYTIME_SIZE]);

/* "kept until 03:05; the command ended with 0 after 4.2s", of a holder that is kept: the time of
 * day here, by the store's clock. Returns out. */
char *kept_print(const struct lock_party *holder, char *out, size_t size);

/* "VERB by ada@ada-pc until 21:51 (1h59m left): load test", of a reservation or a pause, as others
 * wrote it, for cli/say.h, which escapes it. "later": ns since the store told of it. Returns
 * out. */
char *decision_print(const struct lock_party *by, const char *verb, int64_t later, char *out,
                     size_t size);
/* The same of a holder that is "reserved". */
char *reserved_print(const struct lock_party *holder, char *out, size_t size);

#endif
