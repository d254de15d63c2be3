/* The elements of a server's reply that is a list: what is there, of the type that is looked for. Pure. */
#ifndef RLOCK_REDIS_REPLY_H
#define RLOCK_REDIS_REPLY_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"

struct redisReply;

/* The latest moment that a script can count to, in ms since 1970; no server's clock shows a later one. */
#define REDIS_CLOCK_MAX (INT64_C(1) << 53)
/* As many ms can be counted in ns, with room for more. */
#define REDIS_SPAN_MAX (INT64_MAX / NS_PER_MS / 2)

/* The reply's; NULL: none, or one with a NUL in it. */
const char *redis_reply_string(const struct redisReply *reply, size_t i);
/* NULL: none. */
const struct redisReply *redis_reply_list(const struct redisReply *reply, size_t i);
/* 0: none. */
int64_t redis_reply_number(const struct redisReply *reply, size_t i);
/* At least 0. */
int64_t redis_reply_count(const struct redisReply *reply, size_t i);
/* ms, from 0 to REDIS_SPAN_MAX. */
int64_t redis_reply_span(const struct redisReply *reply, size_t i);
/* ms since 1970; 0: none that can be. */
int64_t redis_reply_clock(const struct redisReply *reply, size_t i);

#endif
