/* RESP2 by hiredis, which is made for clients: to it, a command that comes is a reply. */
#include "host/resp.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>

#include "base/mem.h"

/* -- commands: arrays of strings --------------------------------------------------------------- */

void resp_feed(struct resp_in *in, const char *bytes, size_t size)
{
    if (!in->reader)
        in->reader = mem_checked(redisReaderCreate());
    redisReaderFeed(in->reader, bytes, size);
}

/* Frees the command that was read last. */
static void drop_command(struct resp_in *in)
{
    if (in->command)
        freeReplyObject(in->command);
    free(in->words);
    in->command = in->words = NULL;
}

enum resp_state resp_next(struct resp_in *in, const struct slice **words, size_t *count)
{
    drop_command(in);
    if (redisReaderGetReply(in->reader, &in->command) != REDIS_OK)
        return RESP_DAMAGED;
    if (!in->command)
        return RESP_MORE;
    const redisReply *command = in->command;
    if (command->type != REDIS_REPLY_ARRAY)
        return RESP_DAMAGED;
    in->words = mem_zeroed((command->elements + 1) * sizeof *in->words);
    for (size_t i = 0; i < command->elements; i++) {
        if (command->element[i]->type != REDIS_REPLY_STRING)
            return RESP_DAMAGED;
        in->words[i] = (struct slice){command->element[i]->str, command->element[i]->len};
    }
    *words = in->words;
    *count = command->elements;
    return RESP_COMMAND;
}

void resp_in_free(struct resp_in *in)
{
    drop_command(in);
    if (in->reader)
        redisReaderFree(in->reader);
    in->reader = NULL;
}

/* -- replies ----------------------------------------------------------------------------------- */

void resp_bulk(struct strbuf *out, struct slice slice)
{
    strbuf_printf(out, "$%zu\r\n", slice.size);
    strbuf_add(out, slice.at, slice.size);
    strbuf_add(out, "\r\n", 2);
}

void resp_null(struct strbuf *out)
{
    strbuf_add(out, "$-1\r\n", 5);
}

void resp_number(struct strbuf *out, int64_t number)
{
    strbuf_printf(out, ":%" PRId64 "\r\n", number);
}

void resp_array(struct strbuf *out, size_t count)
{
    strbuf_printf(out, "*%zu\r\n", count);
}

/* Adds a line of RESP: its kind, '+' or '-', and text up to the first end of a line. */
static void add_line(struct strbuf *out, const char *kind, const char *text)
{
    strbuf_add(out, kind, 1);
    strbuf_add(out, text, strcspn(text, "\r\n"));
    strbuf_add(out, "\r\n", 2);
}

void resp_status(struct strbuf *out, const char *text)
{
    add_line(out, "+", text);
}

void resp_error(struct strbuf *out, const char *text)
{
    add_line(out, "-", text);
}
