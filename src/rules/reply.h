/* The elements of a server's reply that is a list: what is there, of the type that is looked for.
 * Pure. */
#pragma once

#include <stddef.h>

#include "base/clock.h"

struct redisReply;

/* The largest number that a script's are exact up to. */
#define REDIS_NUMBER_MAX ((INT64_C(1) << 53) - 1)
/* The latest moment that a script can count to, in ms since 1970; no server's clock shows a later
 * one. */
#define REDIS_CLOCK_MAX (INT64_C(1) << 53)
/* As many ms can be counted in ns, with room for more. */
#define REDIS_SPAN_MAX (INT64_MAX / NS_PER_MS / 2)

/* The reply's; NULL: none, or one with a NUL in it. */
const char *redis_reply_string(const struct redisReply *reply, size_t i);
/* The value of that name in a list of names, each followed by its value; NULL as above. */
const char *redis_reply_field(const struct redisReply *reply, const char *name);
/* NULL: none. */
const struct redisReply *redis_reply_list(const struct redisReply *reply, size_t i);

/* Returns the first error among the replies, however deep, that "matters"; NULL: there is none. */
const char *redis_reply_error(struct redisReply *const *replies, size_t count,
                              bool (*matters)(const char *text));

/* The numbers. None is larger than the bound that is named here, whatever the server says. */

/* Exact, from 0 to REDIS_NUMBER_MAX; -1: there is none, or another one. */
int64_t redis_reply_whole(const struct redisReply *reply, size_t i);
/* As many as that, and REDIS_NUMBER_MAX at most; 0: none. */
int64_t redis_reply_count(const struct redisReply *reply, size_t i);
/* ms, from 0 to REDIS_SPAN_MAX. */
int64_t redis_reply_span(const struct redisReply *reply, size_t i);
/* ms since 1970; 0: none that can be. */
int64_t redis_reply_clock(const struct redisReply *reply, size_t i);
/* Counted from 1 there, and from 0 here: below "count"; 0 if it is none. */
size_t redis_reply_index(const struct redisReply *reply, size_t i, size_t count);
/* Whether this number is there. */
bool redis_reply_says(const struct redisReply *reply, size_t i, int64_t number);
/* The reply to TIME, in us since 1970, REDIS_CLOCK_MAX * 1000 at most; -1: it is none. */
int64_t redis_reply_time(const struct redisReply *reply);
