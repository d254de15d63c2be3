/* What a user lacks of the rights that rlock needs. Pure. */
#ifndef RLOCK_STORE_REDIS_JUDGE_RIGHTS_H
#define RLOCK_STORE_REDIS_JUDGE_RIGHTS_H

#include "store/diagnosis.h"
#include "store/redis/doctor/facts.h"
#include "store/redis/doctor/wishes.h"

void judge_rights(const struct server_facts *facts, const struct wishes *wishes,
                  struct diagnosis *diagnosis);

/* The command for an administrator that gives the user all that it lacks. */
void judge_rights_cure(const struct server_facts *facts, const struct wishes *wishes, char *out,
                       size_t size);

#endif
