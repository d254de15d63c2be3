/* What keeps somebody from a lock, in words. Pure. */
#ifndef RLOCK_CLI_OBSTACLE_H
#define RLOCK_CLI_OBSTACLE_H

#include "store/store.h"

#define OBSTACLE_SIZE 1024

/* How much is told of who somebody is. */
enum obstacle_detail { OBSTACLE_FULL, OBSTACLE_WITHOUT_PID, OBSTACLE_WITHOUT_COMMAND };

/* Who is in the way of a request with that limit (0: none), by the store's refusal, which is
 * "later" ns old: "held by build@ci-3 pid 4121 (make) for 25m04s, label nightly", "all 2 slots are
 * taken, the oldest by …", "build@ci-4 pid 99 (sh) comes first, waiting for 3s", "held by
 * a foreign lock jobs for at most 12s"; "" where that is
 * not known. Returns out. */
char *obstacle_print(const struct answer *refusal, unsigned limit, int64_t later,
                     enum obstacle_detail detail, char *out, size_t size);

/* Who somebody is: "build@ci-3 pid 4121 (make), label nightly", as much of it as is known. */
void obstacle_print_who(const struct identity *who, char *out, size_t size);

#endif
