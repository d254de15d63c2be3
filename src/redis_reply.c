/* The elements of replies. */
#include "redis_reply.h"

#include <hiredis/hiredis.h>
#include <string.h>

const char *redis_reply_string(const struct redisReply *reply, size_t i)
{
    return i < reply->elements && reply->element[i]->type == REDIS_REPLY_STRING &&
                   strlen(reply->element[i]->str) == reply->element[i]->len
               ? reply->element[i]->str
               : NULL;
}

int64_t redis_reply_number(const struct redisReply *reply, size_t i)
{
    return i < reply->elements && reply->element[i]->type == REDIS_REPLY_INTEGER
               ? reply->element[i]->integer
               : 0;
}

int64_t redis_reply_count(const struct redisReply *reply, size_t i)
{
    int64_t number = redis_reply_number(reply, i);
    return number > 0 ? number : 0;
}

int64_t redis_reply_span(const struct redisReply *reply, size_t i)
{
    const int64_t most = REDIS_SPAN_MAX;
    int64_t ms = redis_reply_count(reply, i);

    return ms < most ? ms : most;
}

int64_t redis_reply_clock(const struct redisReply *reply, size_t i)
{
    int64_t now = redis_reply_count(reply, i);
    return now <= REDIS_CLOCK_MAX ? now : 0;
}

const struct redisReply *redis_reply_list(const struct redisReply *reply, size_t i)
{
    return i < reply->elements && reply->element[i]->type == REDIS_REPLY_ARRAY ? reply->element[i]
                                                                               : NULL;
}
