/* What is written down of holders and waiters, read. Pure. */
#ifndef RLOCK_REDIS_RECORD_H
#define RLOCK_REDIS_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "lock.h"

struct redisReply;

/* "now" is the server's clock, in ms. False if it makes no sense. */
bool redis_record_holder(const struct redisReply *record, int64_t now, struct lock_party *holder);
bool redis_record_waiter(const struct redisReply *record, int64_t now, struct lock_party *waiter);

#endif
