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

/* The text of element i, which is the reply's. NULL: it is not a string, or has a NUL in it. */
const char *redis_reply_string(const struct redisReply *reply, size_t i);
/* The value of that name in a list of names, each followed by its value; NULL as above. */
const char *redis_reply_field(const struct redisReply *reply, const char *name);
/* Element i, which is the reply's. NULL: it is not a list. */
const struct redisReply *redis_reply_list(const struct redisReply *reply, size_t i);

/* Returns the first error among the replies, however deep, that "matters"; NULL: there is none. */
const char *redis_reply_error(struct redisReply *const *replies, size_t count,
                              bool (*matters)(const char *text));

/* Element i as a number. None is larger than the bound that is named here, whatever the server
 * says. */

/* Exact, from 0 to REDIS_NUMBER_MAX; -1: there is none, or another one. */
int64_t redis_reply_whole(const struct redisReply *reply, size_t i);
/* The nearest from 0 to REDIS_NUMBER_MAX; 0: there is none. */
int64_t redis_reply_count(const struct redisReply *reply, size_t i);
/* The nearest from 0 to REDIS_SPAN_MAX, in ms; 0: there is none. */
int64_t redis_reply_span(const struct redisReply *reply, size_t i);
/* A time, in ms since 1970; 0: there is none, or one that cannot be. */
int64_t redis_reply_clock(const struct redisReply *reply, size_t i);
/* The index of one of "count" things, which a script counts from 1, and this from 0; 0 where it is
 * none of them. */
size_t redis_reply_index(const struct redisReply *reply, size_t i, size_t count);
/* Whether element i is that number, which is not negative. */
bool redis_reply_says(const struct redisReply *reply, size_t i, int64_t number);
/* The reply to TIME, in us since 1970, REDIS_CLOCK_MAX * 1000 at most; -1: it is none. */
int64_t redis_reply_time(const struct redisReply *reply);
