/* RESP2 as a server. */
#include "host/resp.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/mem.h"

/* More than any script is called with. */
#define WORDS_MAX 100000
#define WORD_MAX  (64 << 20)

/* -- commands ---------------------------------------------------------------------------------- */

char *resp_room(struct resp_in *in, size_t *size)
{
    if (in->taken > 0)
        memmove(in->bytes, in->bytes + in->taken, in->size - in->taken);
    in->size -= in->taken;
    in->taken = 0;
    if (in->room - in->size < 4096) {
        in->room = 2 * in->room + 16384;
        in->bytes = mem_checked(realloc(in->bytes, in->room));
    }
    *size = in->room - in->size;
    return in->bytes + in->size;
}

void resp_received(struct resp_in *in, size_t size)
{
    in->size += size;
}

/* "*3\r\n" or "$5\r\n" at *at, which is moved behind it. */
static enum resp_state take_number(const struct resp_in *in, size_t *at, char kind, int64_t most,
                                   int64_t *number)
{
    const char *line = in->bytes + *at;
    const char *end = memchr(line, '\n', in->size - *at);

    if (!end)
        return in->size - *at > 24 ? RESP_DAMAGED : RESP_MORE;
    if (*line != kind || end - line < 3 || end[-1] != '\r' ||
        !decimal_read(line + 1, (size_t)(end - line) - 2, most, number))
        return RESP_DAMAGED;
    *at += (size_t)(end - line) + 1;
    return RESP_COMMAND;
}

static void keep(struct resp_in *in, size_t i, struct piece word)
{
    if (i == in->words_room) {
        in->words_room = 2 * in->words_room + 32;
        in->words = mem_checked(realloc(in->words, in->words_room * sizeof *in->words));
    }
    in->words[i] = word;
}

enum resp_state resp_next(struct resp_in *in, const struct piece **words, size_t *count)
{
    size_t at = in->taken;
    int64_t wanted, size;
    enum resp_state state;

    if (at == in->size)
        return RESP_MORE;
    if ((state = take_number(in, &at, '*', WORDS_MAX, &wanted)) != RESP_COMMAND)
        return state;
    for (size_t i = 0; i < (size_t)wanted; i++) {
        if (at == in->size)
            return RESP_MORE;
        if ((state = take_number(in, &at, '$', WORD_MAX, &size)) != RESP_COMMAND)
            return state;
        if (in->size - at < (size_t)size + 2)
            return RESP_MORE;
        keep(in, i, (struct piece){in->bytes + at, (size_t)size});
        at += (size_t)size + 2;
    }
    for (size_t i = 0; i < (size_t)wanted; i++)
        in->bytes[in->words[i].at + in->words[i].size - in->bytes] = '\0'; /* over the CR */
    in->taken = at;
    *words = in->words;
    *count = (size_t)wanted;
    return RESP_COMMAND;
}

void resp_in_free(struct resp_in *in)
{
    free(in->bytes);
    free(in->words);
    *in = (struct resp_in){0};
}

/* -- replies ----------------------------------------------------------------------------------- */

static void add(struct resp_out *out, const char *bytes, size_t size)
{
    if (out->room - out->size < size) {
        out->room = 2 * out->room + size + 1024;
        out->bytes = mem_checked(realloc(out->bytes, out->room));
    }
    memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
}

__attribute__((format(printf, 2, 3))) static void add_format(struct resp_out *out,
                                                             const char *format, ...)
{
    char text[64];
    va_list values;

    va_start(values, format);
    int size = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    add(out, text, (size_t)size);
}

void resp_bulk(struct resp_out *out, struct piece piece)
{
    add_format(out, "$%zu\r\n", piece.size);
    add(out, piece.at, piece.size);
    add(out, "\r\n", 2);
}

void resp_null(struct resp_out *out)
{
    add(out, "$-1\r\n", 5);
}

void resp_number(struct resp_out *out, int64_t number)
{
    add_format(out, ":%" PRId64 "\r\n", number);
}

void resp_array(struct resp_out *out, size_t count)
{
    add_format(out, "*%zu\r\n", count);
}

static void add_line(struct resp_out *out, const char *kind, const char *text)
{
    add(out, kind, 1);
    add(out, text, strcspn(text, "\r\n"));
    add(out, "\r\n", 2);
}

void resp_status(struct resp_out *out, const char *text)
{
    add_line(out, "+", text);
}

void resp_error(struct resp_out *out, const char *text)
{
    add_line(out, "-", text);
}

void resp_out_free(struct resp_out *out)
{
    free(out->bytes);
    *out = (struct resp_out){0};
}
