/* Latches on a Redis server: what latch.lua is called with, and what it replies. Pure: no
 * connection. */
#ifndef RLOCK_RULES_LATCH_H
#define RLOCK_RULES_LATCH_H

#include "store/store.h"

struct redisReply;

/* The script's arguments after the key, given one by one to "add", which copies. The first is also
 * the last word of the channel that those who wait listen to. */
void redis_latch_arguments(const struct latch_request *request,
                           void (*add)(void *arg, const char *text), void *arg);

/* The reply as an answer, calling "each", if not NULL, for the ids in it. *now_ms takes the
 * server's clock, 0 if the reply did not say. */
void redis_latch_answer(const struct redisReply *reply, void (*each)(void *arg, const char *id),
                        void *each_arg, struct answer *answer, int64_t *now_ms);

#endif
