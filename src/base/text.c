#include "base/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void text_copy(char *out, size_t size, const char *text)
{
    static const char ellipsis[] = "...";
    size_t length = strlen(text);

    if (length < size) {
        memcpy(out, text, length + 1);
    } else {
        memcpy(out, text, size - sizeof ellipsis);
        memcpy(out + size - sizeof ellipsis, ellipsis, sizeof ellipsis);
    }
}

void text_append(char *out, size_t size, const char *fmt, ...)
{
    size_t used = strlen(out);
    va_list args;

    va_start(args, fmt);
    vsnprintf(out + used, size - used, fmt, args);
    va_end(args);
}

/* Adds the field of that name. Returns false if it is empty. */
static bool append_field(char *out, size_t size, const char *name, size_t length,
                         const struct text_field *fields)
{
    while (strncmp(fields->name, name, length) != 0 || fields->name[length] != '\0')
        fields++;
    text_append(out, size, "%s", fields->text);
    return *fields->text;
}

void text_fill(char *out, size_t size, const char *form, const struct text_field *fields)
{
    size_t optional = 0; /* where the part in brackets begins */
    bool whole = true;   /* no field in it is empty */

    while (*form) {
        size_t plain = strcspn(form, "{[]");
        text_append(out, size, "%.*s", (int)plain, form);
        form += plain;
        if (*form == '[') {
            optional = strlen(out);
            whole = true;
        } else if (*form == ']' && !whole) {
            out[optional] = '\0';
        } else if (*form == '{') {
            size_t length = strcspn(++form, "}");
            whole &= append_field(out, size, form, length, fields);
            form += length;
        }
        form += *form != '\0';
    }
}
