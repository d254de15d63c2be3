/* The replies of a Redis server that tests read. */
#pragma once

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

/* Returns NULL if the text is not a whole reply. */
static inline redisReply *reply_of(const char *text, size_t length)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;

    if (redisReaderFeed(reader, text, length) != REDIS_OK ||
        redisReaderGetReply(reader, &reply) != REDIS_OK)
        reply = NULL;
    redisReaderFree(reader);
    return reply;
}

/* Words as bytes: 7 and :7 are numbers, ~ is null, *3 begins a list of three, -X is an error, +X a
 * status, - an empty text, and all else is a text, 'in quotes' or not, with _ for spaces. Returns
 * how many bytes; those that do not fit are cut. */
static inline size_t encode_words(const char *words, char *out, size_t size)
{
    size_t used = 0;

    for (size_t length; *words && used < size; words += length + (words[length] == ' ')) {
        char *at = out + used;
        size_t room = size - used, quoted = *words == '\'';

        length = strcspn(words, " ");
        if (*words == '-' && length == 1)
            used += (size_t)snprintf(at, room, "$0\r\n\r\n");
        else if (*words == '~')
            used += (size_t)snprintf(at, room, "$-1\r\n");
        else if (strchr("*-+:", *words))
            used += (size_t)snprintf(at, room, "%.*s\r\n", (int)length, words);
        else if (*words >= '0' && *words <= '9')
            used += (size_t)snprintf(at, room, ":%.*s\r\n", (int)length, words);
        else
            used += (size_t)snprintf(at, room, "$%zu\r\n%.*s\r\n", length - 2 * quoted,
                                     (int)(length - 2 * quoted), words + quoted);
    }
    used = used < size ? used : size;
    for (char *at = out; (at = memchr(at, '_', used - (size_t)(at - out)));)
        *at = ' ';
    return used;
}

static inline redisReply *reply_of_words(const char *words)
{
    char text[4096];

    return reply_of(text, encode_words(words, text, sizeof text));
}
