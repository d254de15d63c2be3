/* Percent-encoding, as URLs and the store's identity line use it. */
#pragma once

#include <stddef.h>

enum percent_verdict {
    PERCENT_FINE,
    PERCENT_DAMAGED, /* a '%' without two hexadecimal digits after it */
    PERCENT_NUL      /* a %00 or a NUL byte, which no string of ours can hold */
};

/* Decodes "length" bytes of "text" into "out" of "size" bytes (at least 1) as a string, cut to what
 * fits; all of the text is judged. "out" may be "text" itself. */
enum percent_verdict percent_decode(const char *text, size_t length, char *out, size_t size);

/* Returns the value of a hexadecimal digit, -1 if it is not one. */
int percent_digit(char c);

/* Encodes "text" into "out" of "size" bytes (at least 1) as a string, cut between two characters to
 * what fits: control characters, space, '%', DEL and the bytes in "also" become %XX, the others,
 * from 0x80 on too, stay as they are. Returns the length of the string in "out". */
size_t percent_encode(const char *text, const char *also, char *out, size_t size);
