/* Config files. */
#include "config.h"

#include <string.h>

/* Not isspace(): what is white space must not depend on a locale. */
#define BLANKS " \t\r\v\f"

static char *trim(char *text)
{
    text += strspn(text, BLANKS);
    for (size_t n = strlen(text); n > 0 && strchr(BLANKS, text[n - 1]); n--)
        text[n - 1] = '\0';
    return text;
}

static char *take_line(struct config_reader *reader)
{
    char *start = reader->rest;
    char *end = strchr(start, '\n');

    reader->rest = end ? end + 1 : start + strlen(start);
    if (end)
        *end = '\0';
    reader->number++;
    return trim(start);
}

int config_next(struct config_reader *reader, struct config_line *line, const char **fault)
{
    while (*reader->rest) {
        char *text = take_line(reader);
        if (*text == '\0' || *text == '#')
            continue;
        line->number = reader->number;
        char *equals = strchr(text, '=');
        if (!equals || equals == text) {
            *fault = equals ? "there is no key before the '='" : "not of the form key = value";
            return -1;
        }
        *equals = '\0';
        line->key = trim(text);
        line->value = trim(equals + 1);
        return 1;
    }
    return 0;
}
