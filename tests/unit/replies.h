/* The replies of a Redis server that tests read. */
#ifndef UNIT_REPLIES_H
#define UNIT_REPLIES_H

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

/* Words: 7 is a number, ~ is null, *3 begins a list of three, -X is an error, - is an empty text,
 * and all else is a text. */
static inline redisReply *reply_of_words(const char *words)
{
    char text[4096];
    size_t used = 0;

    for (size_t length; *words; words += length + (words[length] == ' ')) {
        char *at = text + used;
        size_t size = sizeof text - used;

        length = strcspn(words, " ");
        if (*words == '-' && length == 1)
            used += (size_t)snprintf(at, size, "$0\r\n\r\n");
        else if (*words == '*' || *words == '-')
            used += (size_t)snprintf(at, size, "%.*s\r\n", (int)length, words);
        else if (*words == '~')
            used += (size_t)snprintf(at, size, "$-1\r\n");
        else if (*words >= '0' && *words <= '9')
            used += (size_t)snprintf(at, size, ":%.*s\r\n", (int)length, words);
        else
            used += (size_t)snprintf(at, size, "$%zu\r\n%.*s\r\n", length, (int)length, words);
        if (used >= sizeof text)
            return NULL; /* the test that needs more fails */
    }
    return reply_of(text, used);
}

#endif
