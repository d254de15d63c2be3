/* Text that others wrote, made fit to be shown: decode UTF-8, escape what could play tricks on a
 * terminal, repair what JSON cannot carry. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define UTF8_INVALID UINT32_MAX

/* Takes one character off *text, which ends with a NUL; of a byte that starts none, takes that byte
 * and returns UTF8_INVALID. */
uint32_t utf8_next(const char **text);

/* Columns that a terminal takes for the text, which has no control characters: two for a wide (East
 * Asian) character, none for one that combines with the one before it, one for a byte that is not
 * UTF-8. */
size_t utf8_width(const char *text);

/* Bytes of the longest start of the text that takes no more than "columns", with all that combines
 * with its last character. */
size_t utf8_fit(const char *text, size_t columns);

/* Copies "text" with control characters (C0, DEL, C1), characters that turn the direction of
 * writing or cannot be seen, and bytes that are not UTF-8 as \xNN a byte, and a backslash as two.
 * Cut at size. Returns out. */
char *utf8_escape(const char *text, char *out, size_t size);

/* Room for the longest escaped form of "length" bytes. */
#define UTF8_ESCAPED_SIZE(length) (4 * (length) + 1)

/* Copies "text" with each byte that is not UTF-8 replaced by U+FFFD. Cut at size, between
 * characters. Returns out. */
char *utf8_repair(const char *text, char *out, size_t size);
