#include "host/resp.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/decimal.h"
#include "base/mem.h"

/* More than any script is called with. */
#define WORDS_MAX 100000
#define WORD_MAX  (64 << 20)

/* -- commands ---------------------------------------------------------------------------------- */

char *resp_room(struct resp_in *in, size_t *size)
{
    strbuf_drop(&in->bytes, in->taken);
    in->taken = 0;
    char *to = strbuf_room(&in->bytes, 4096);
    *size = in->bytes.room - in->bytes.size - 1;
    return to;
}

void resp_received(struct resp_in *in, size_t size)
{
    strbuf_grew(&in->bytes, size);
}

/* "*3\r\n" or "$5\r\n" at *at, which is moved behind it. */
static enum resp_state take_number(const struct resp_in *in, size_t *at, char kind, int64_t most,
                                   int64_t *number)
{
    const char *line = in->bytes.text + *at;
    const char *end = memchr(line, '\n', in->bytes.size - *at);

    if (!end)
        return in->bytes.size - *at > 24 ? RESP_DAMAGED : RESP_MORE;
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

    if (at == in->bytes.size)
        return RESP_MORE;
    if ((state = take_number(in, &at, '*', WORDS_MAX, &wanted)) != RESP_COMMAND)
        return state;
    for (size_t i = 0; i < (size_t)wanted; i++) {
        if (at == in->bytes.size)
            return RESP_MORE;
        if ((state = take_number(in, &at, '$', WORD_MAX, &size)) != RESP_COMMAND)
            return state;
        if (in->bytes.size - at < (size_t)size + 2)
            return RESP_MORE;
        keep(in, i, (struct piece){in->bytes.text + at, (size_t)size});
        at += (size_t)size + 2;
    }
    for (size_t i = 0; i < (size_t)wanted; i++)
        in->bytes.text[in->words[i].at + in->words[i].size - in->bytes.text] =
            '\0'; /* over the CR */
    in->taken = at;
    *words = in->words;
    *count = (size_t)wanted;
    return RESP_COMMAND;
}

void resp_in_free(struct resp_in *in)
{
    strbuf_free(&in->bytes);
    free(in->words);
    *in = (struct resp_in){0};
}

/* -- replies ----------------------------------------------------------------------------------- */

void resp_bulk(struct strbuf *out, struct piece piece)
{
    strbuf_printf(out, "$%zu\r\n", piece.size);
    strbuf_add(out, piece.at, piece.size);
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
