/* Is a quorum fit to hold locks? */
#ifndef RLOCK_STORE_QUORUM_CHECKUP_H
#define RLOCK_STORE_QUORUM_CHECKUP_H

#include "store/diagnosis.h"
#include "store/redis/doctor/judge.h"

/* Looks at each of its servers; as a record's "check". */
bool quorum_check(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                  size_t size);

/* From what is known of each server to findings about the whole: more than half of them have to be
 * fit. lease: ns. Pure. */
void quorum_judge(const struct checkup *servers, const struct server_facts *facts, int64_t lease,
                  struct diagnosis *diagnosis);

#endif
