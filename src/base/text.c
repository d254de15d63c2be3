#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void text_append(char *out, size_t size, const char *fmt, ...)
{
    size_t used = strlen(out);
    va_list args;

    va_start(args, fmt);
    vsnprintf(out + used, size - used, fmt, args);
    va_end(args);
}
