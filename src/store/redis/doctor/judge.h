/* Is this server fit to hold locks? From what is known about it to findings. Pure. */
#ifndef RLOCK_STORE_REDIS_JUDGE_H
#define RLOCK_STORE_REDIS_JUDGE_H

#include "store/diagnosis.h"
#include "store/redis/doctor/facts.h"
#include "store/redis/doctor/wishes.h"

void judge_server(const struct server_facts *facts, const struct wishes *wishes,
                  struct diagnosis *diagnosis);

#endif
