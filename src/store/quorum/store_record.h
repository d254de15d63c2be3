/* The record of a quorum, which several URLs of single servers make. */
#pragma once

#include "store/redis/doctor/judge.h"

extern const struct store_record quorum_record;

/* From what is known of each server to findings about the whole: more than half of them have to be
 * fit. lease: ns. Pure. */
void quorum_judge(const struct checkup *servers, const struct server_facts *facts, int64_t lease,
                  struct diagnosis *diagnosis);
