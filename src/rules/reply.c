/* Looks at elements of replies, and takes none for what it is not. */
#include "rules/reply.h"
#include "base/decimal.h"

#include <hiredis/hiredis.h>
#include <string.h>

const char *redis_reply_string(const struct redisReply *reply, size_t i)
{
    return i < reply->elements && reply->element[i]->type == REDIS_REPLY_STRING &&
                   strlen(reply->element[i]->str) == reply->element[i]->len
               ? reply->element[i]->str
               : NULL;
}

const char *redis_reply_field(const struct redisReply *reply, const char *name)
{
    const char *known;

    for (size_t i = 0; (known = redis_reply_string(reply, i)); i += 2)
        if (strcmp(known, name) == 0)
            return redis_reply_string(reply, i + 1);
    return NULL;
}

const char *redis_reply_error(redisReply *const *replies, size_t count,
                              bool (*matters)(const char *text))
{
    const char *found = NULL;

    for (size_t i = 0; !found && i < count; i++) {
        if (replies[i]->type == REDIS_REPLY_ERROR && matters(replies[i]->str))
            found = replies[i]->str;
        else if (replies[i]->type == REDIS_REPLY_ARRAY)
            found = redis_reply_error(replies[i]->element, replies[i]->elements, matters);
    }
    return found;
}

/* Element i as a number, whatever it is; 0: it is not one. */
static int64_t number_at(const struct redisReply *reply, size_t i)
{
    return i < reply->elements && reply->element[i]->type == REDIS_REPLY_INTEGER
               ? reply->element[i]->integer
               : 0;
}

static int64_t clamp(int64_t number, int64_t most)
{
    return number < 0 ? 0 : number > most ? most : number;
}

int64_t redis_reply_whole(const struct redisReply *reply, size_t i)
{
    int64_t number = number_at(reply, i);
    bool is_number = i < reply->elements && reply->element[i]->type == REDIS_REPLY_INTEGER;

    return is_number && number >= 0 && number <= REDIS_NUMBER_MAX ? number : -1;
}

int64_t redis_reply_count(const struct redisReply *reply, size_t i)
{
    return clamp(number_at(reply, i), REDIS_NUMBER_MAX);
}

int64_t redis_reply_span(const struct redisReply *reply, size_t i)
{
    return clamp(number_at(reply, i), REDIS_SPAN_MAX);
}

int64_t redis_reply_clock(const struct redisReply *reply, size_t i)
{
    int64_t now = number_at(reply, i);
    return now > 0 && now <= REDIS_CLOCK_MAX ? now : 0;
}

size_t redis_reply_index(const struct redisReply *reply, size_t i, size_t count)
{
    int64_t number = redis_reply_whole(reply, i);
    return number >= 1 && (uint64_t)number <= count ? (size_t)number - 1 : 0;
}

bool redis_reply_says(const struct redisReply *reply, size_t i, int64_t number)
{
    return redis_reply_whole(reply, i) == number;
}

int64_t redis_reply_time(const struct redisReply *reply)
{
    bool is_pair = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
    const char *seconds = is_pair ? redis_reply_string(reply, 0) : NULL;
    const char *micros = is_pair ? redis_reply_string(reply, 1) : NULL; /* of the second */
    int64_t s, us;

    if (!seconds || !decimal_read(seconds, strlen(seconds), REDIS_CLOCK_MAX / 1000 - 1, &s) ||
        !micros || !decimal_read(micros, strlen(micros), 999999, &us))
        return -1;
    return s * 1000000 + us;
}

const struct redisReply *redis_reply_list(const struct redisReply *reply, size_t i)
{
    return i < reply->elements && reply->element[i]->type == REDIS_REPLY_ARRAY ? reply->element[i]
                                                                               : NULL;
}
