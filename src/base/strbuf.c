#include "base/strbuf.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/utf8.h"

char *strbuf_room(struct strbuf *buf, size_t size)
{
    if (buf->room - buf->size <= size) { /* a NUL needs room, too */
        buf->room = 2 * buf->room + size + 64;
        buf->text = mem_checked(realloc(buf->text, buf->room));
    }
    return buf->text + buf->size;
}

void strbuf_grew(struct strbuf *buf, size_t size)
{
    strbuf_cut(buf, buf->size + size);
}

void strbuf_cut(struct strbuf *buf, size_t size)
{
    buf->size = size;
    if (buf->text)
        buf->text[size] = '\0';
}

void strbuf_add(struct strbuf *buf, const void *bytes, size_t size)
{
    char *to = strbuf_room(buf, size);

    if (size > 0)
        memcpy(to, bytes, size);
    strbuf_grew(buf, size);
}

void strbuf_puts(struct strbuf *buf, const char *text)
{
    strbuf_add(buf, text, strlen(text));
}

void strbuf_putc(struct strbuf *buf, char c)
{
    strbuf_add(buf, &c, 1);
}

/* Prints twice at most. Where the room does not suffice, the first attempt only tells how much is
 * needed. */
void strbuf_vprintf(struct strbuf *buf, const char *format, va_list values)
{
    char *to = strbuf_room(buf, 0);
    size_t room = buf->room - buf->size;
    va_list again;

    va_copy(again, values);
    int size = vsnprintf(to, room, format, again);
    va_end(again);
    if (size < 0)
        abort();
    if ((size_t)size >= room)
        vsnprintf(strbuf_room(buf, (size_t)size), (size_t)size + 1, format, values);
    buf->size += (size_t)size;
}

void strbuf_printf(struct strbuf *buf, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    strbuf_vprintf(buf, format, values);
    va_end(values);
}

void strbuf_vescape(struct strbuf *buf, const char *format, va_list values)
{
    struct strbuf plain = {0};

    strbuf_vprintf(&plain, format, values);
    size_t room = UTF8_ESCAPED_SIZE(plain.size);
    strbuf_grew(buf, strlen(utf8_escape(plain.text, strbuf_room(buf, room), room)));
    strbuf_free(&plain);
}

void strbuf_escape(struct strbuf *buf, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    strbuf_vescape(buf, format, values);
    va_end(values);
}

char *strbuf_print(const char *format, ...)
{
    struct strbuf buf = {0};
    va_list values;

    va_start(values, format);
    strbuf_vprintf(&buf, format, values);
    va_end(values);
    return buf.text;
}

void strbuf_drop(struct strbuf *buf, size_t size)
{
    if (size == 0)
        return;
    memmove(buf->text, buf->text + size, buf->size - size);
    strbuf_cut(buf, buf->size - size);
}

char *strbuf_detach(struct strbuf *buf)
{
    char *text = buf->text ? buf->text : mem_strdup("");

    *buf = (struct strbuf){0};
    return text;
}

void strbuf_free(struct strbuf *buf)
{
    free(buf->text);
    *buf = (struct strbuf){0};
}
