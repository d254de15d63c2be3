/* Text put together piece by piece in a caller's buffer. */
#pragma once

#include <stddef.h>

/* Adds to the text in "out", of "size" bytes with its NUL; cuts what does not fit. */
void text_append(char *out, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
