#include "base/text.h"

#include <stdio.h>
#include <string.h>

bool text_is_among(const char *const *words, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return true;
    return false;
}

const char *text_behind(const char *beginning, const char *text)
{
    size_t length = strlen(beginning);

    return strncmp(text, beginning, length) == 0 ? text + length : NULL;
}

void text_vappend(char *out, size_t size, const char *fmt, va_list args)
{
    static const char ellipsis[] = "...";
    size_t used = strlen(out);
    int length = vsnprintf(out + used, size - used, fmt, args);

    if (length < 0 || (size_t)length < size - used || size < sizeof ellipsis)
        return; /* it fits, or there is no room for an ellipsis */
    char *end = out + size - sizeof ellipsis;
    for (int i = 0; i < 3 && end > out && (*end & 0xc0) == 0x80; i++) /* in a character of UTF-8 */
        end--;
    memcpy(end, ellipsis, sizeof ellipsis);
}

void text_append(char *out, size_t size, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    text_vappend(out, size, fmt, args);
    va_end(args);
}

void text_copy(char *out, size_t size, const char *text)
{
    *out = '\0';
    text_append(out, size, "%s", text);
}

const char *text_brief(char *out, size_t size, const char *text)
{
    text_copy(out, size, text);
    return out;
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
        form += *form != '\0'; /* the bracket or brace */
    }
}
