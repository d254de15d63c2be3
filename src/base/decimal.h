/* Decimal numbers in text that comes from outside: digits and nothing else, no sign, no space, and
 * none that is larger than the caller can handle. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole of a text as a number from "least" to "most". If it is none: false, *number stays. */
bool decimal_parse(const char *text, int64_t least, int64_t most, int64_t *number);
/* All of "length" characters as a number from 0 to "most". If they are none: false, *number
 * stays. */
bool decimal_read(const char *text, size_t length, int64_t most, int64_t *number);
/* Takes the digits that the text begins with as a number from 0 to "most"; *text is then what
 * follows them. If there is none: false, and both stay. */
bool decimal_take(const char **text, int64_t most, int64_t *number);
/* The whole of a text as a number; "most" if it is larger than that, -1 if it is none. */
int64_t decimal_size(const char *text, int64_t most);
