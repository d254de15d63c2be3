/* The reading of what a Redis server says of itself; redis/checkup.h has the way in. */
#pragma once

#include "store/redis/doctor/judge.h"

struct redisReply;

/* Each reads one reply; a reply that is an error tells nothing. Pure. */
void redis_facts_hello(struct server_facts *facts, const struct redisReply *reply);
void redis_facts_info(struct server_facts *facts, const struct redisReply *reply);
/* Reads the reply to CONFIG GET of that one setting. */
void redis_facts_setting(struct server_facts *facts, const char *name,
                         const struct redisReply *reply);
