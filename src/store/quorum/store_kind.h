/* A quorum as a kind of store, which several URLs of single servers make. */
#pragma once

#include "store/redis/checkup.h"

extern const struct store_kind quorum_kind;

/* From what is known of each server, and for how long it remembers, to findings about the whole:
 * more than half of them have to be fit. lease: ns. Pure. */
void quorum_judge(const struct checkup *servers, const struct redis_memory *memories, int64_t lease,
                  struct diagnosis *diagnosis);
