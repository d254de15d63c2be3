/* A Redis Cluster as a kind of store.
 *
 * cluster://[USER[:PASS]@]HOST[:PORT][,HOST[:PORT]...]   (PORT 6379; clusters is the same over
 * TLS) */
#pragma once

#include "store/diagnosis.h"

extern const struct store_kind cluster_kind;

/* Looks at each of its masters: "check" of a store_kind, which says what false means. */
bool cluster_check(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                   size_t size);

/* Judges the whole by the findings about the masters, which have so many slots. Each has keys of
 * its own, so all of them have to be fit. Pure. */
void cluster_judge(const struct checkup *masters, unsigned slots, struct diagnosis *diagnosis);
