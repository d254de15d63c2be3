/* What a Redis server's HELLO, INFO and CONFIG GET say about it. A reply that is an error tells nothing. Pure. */
#ifndef RLOCK_REDIS_SELF_H
#define RLOCK_REDIS_SELF_H

#include "facts.h"

struct redisReply;

void redis_self_hello(struct server_facts *facts, const struct redisReply *reply);
void redis_self_info(struct server_facts *facts, const struct redisReply *reply);

/* The settings to CONFIG GET one by one, NULL-terminated, and one of them. */
extern const char *const redis_self_settings[];
void redis_self_setting(struct server_facts *facts, const char *name,
                        const struct redisReply *reply);

#endif
