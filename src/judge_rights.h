/* What a user lacks of the rights that rlock needs. Pure. */
#ifndef RLOCK_JUDGE_RIGHTS_H
#define RLOCK_JUDGE_RIGHTS_H

#include "judge.h"

void judge_rights(const struct server_facts *facts, const struct wishes *wishes,
                  struct diagnosis *diagnosis);

#endif
