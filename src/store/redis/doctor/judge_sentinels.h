/* Are these Sentinels enough to rely on? From what each of them says to a finding. Pure. */
#ifndef RLOCK_STORE_REDIS_JUDGE_SENTINELS_H
#define RLOCK_STORE_REDIS_JUDGE_SENTINELS_H

#include "store/diagnosis.h"
#include "store/redis/doctor/facts.h"

void judge_sentinels(const struct sentinel_facts *facts, struct diagnosis *diagnosis);

#endif
