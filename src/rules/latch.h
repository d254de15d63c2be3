/* The replies of latch.lua. Pure: no connection. */
#pragma once

#include "store/store.h"

struct redisReply;

/* Makes an answer of the reply, and calls "each", if not NULL, for the ids in it. *now_ms takes the
 * server's clock, 0 if the reply did not say. */
void redis_latch_answer(const struct redisReply *reply, void (*each)(void *arg, const char *id),
                        void *each_arg, struct answer *answer, int64_t *now_ms);
