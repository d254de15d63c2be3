/* Are these Sentinels enough to rely on? From what each of them says to a finding. Pure. */
#ifndef RLOCK_JUDGE_SENTINELS_H
#define RLOCK_JUDGE_SENTINELS_H

#include "diagnosis.h"

void judge_sentinels(const struct sentinel_facts *facts, struct diagnosis *diagnosis);

#endif
