#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool text_is_among(const char *const *words, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return true;
    return false;
}

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
            const struct text_field *field = fields;
            while (strncmp(field->name, form, length) != 0 || field->name[length] != '\0')
                field++;
            text_append(out, size, "%s", field->text);
            whole &= *field->text != '\0';
            form += length;
        }
        form += *form != '\0';
    }
}
