/* Growable text: bytes that are put together piece by piece, in memory that grows as needed. A
 * buffer that is all zero is empty.
 *
 * "text" may hold any bytes, and is followed by a NUL that "size" does not count; it is NULL until
 * something is added. Every function below except strbuf_room() leaves it so. Pointers into the
 * text are invalid after the next addition. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

struct strbuf {
    char *text;
    size_t size, room;
};

/* These add to the end. */
void strbuf_add(struct strbuf *buf, const void *bytes, size_t size);
void strbuf_puts(struct strbuf *buf, const char *text);
void strbuf_putc(struct strbuf *buf, char c);
void strbuf_printf(struct strbuf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void strbuf_vprintf(struct strbuf *buf, const char *format, va_list values)
    __attribute__((format(printf, 2, 0)));
/* Adds the text that printf() prints, escaped by utf8_escape(). */
void strbuf_escape(struct strbuf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void strbuf_vescape(struct strbuf *buf, const char *format, va_list values)
    __attribute__((format(printf, 2, 0)));

/* Returns the end of the text, with room for at least "size" bytes behind it. The caller writes
 * there, and tells by strbuf_grew() how many bytes it has written. */
char *strbuf_room(struct strbuf *buf, size_t size);
void strbuf_grew(struct strbuf *buf, size_t size);

/* Removes the first "size" bytes. */
void strbuf_drop(struct strbuf *buf, size_t size);
/* Removes all bytes behind the first "size" ones, and keeps the memory. */
void strbuf_cut(struct strbuf *buf, size_t size);

/* Returns the text, "" if nothing was added, and empties the buffer. The caller frees. */
char *strbuf_detach(struct strbuf *buf);
/* Frees the text, and empties the buffer. */
void strbuf_free(struct strbuf *buf);

/* Returns what printf() prints. The caller frees. */
char *strbuf_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
