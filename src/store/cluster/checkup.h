/* Is a Redis Cluster fit to hold locks? */
#ifndef RLOCK_STORE_CLUSTER_CHECKUP_H
#define RLOCK_STORE_CLUSTER_CHECKUP_H

#include "store/diagnosis.h"

/* Looks at each of its masters; as a record's "check". */
bool cluster_check(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                   size_t size);

/* Judges the whole by the findings about the masters, which have "slots" of "all". Each has keys of
 * its own, so all of them have to be fit. Pure. */
void cluster_judge(const struct checkup *masters, unsigned slots, unsigned all,
                   struct diagnosis *diagnosis);

#endif
