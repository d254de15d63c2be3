#include "cli/config.h"

#include <string.h>

/* Not isspace(), which depends on the locale. */
#define BLANKS " \t\r\v\f"

/* Cuts the white space off the end of a text, and returns where it begins without that at its
 * start. */
static char *trim_blanks(char *text)
{
    text += strspn(text, BLANKS);
    for (size_t n = strlen(text); n > 0 && strchr(BLANKS, text[n - 1]); n--)
        text[n - 1] = '\0';
    return text;
}

/* Takes a line as a string, without the white space around it. NULL if it has a NUL byte. */
static char *take_line(struct config_reader *reader)
{
    char *start = reader->rest;
    char *end = memchr(start, '\n', (size_t)(reader->end - start));
    size_t length = (size_t)((end ? end : reader->end) - start);

    reader->rest = start + length + (end != NULL);
    start[length] = '\0';
    reader->number++;
    return strlen(start) < length ? NULL : trim_blanks(start);
}

bool config_next(struct config_reader *reader)
{
    if (reader->number == 0) {
        /* Some editors begin a file with a byte order mark. */
        static const char mark[] = "\xef\xbb\xbf";
        size_t length = strlen(mark), size = (size_t)(reader->end - reader->rest);
        if (size >= length && memcmp(reader->rest, mark, length) == 0)
            reader->rest += length;
    }
    while (!reader->fault && reader->rest < reader->end) {
        char *text = take_line(reader);
        if (text && (*text == '\0' || *text == '#'))
            continue;
        char *equals = text ? strchr(text, '=') : NULL;
        if (equals && equals > text) {
            *equals = '\0';
            reader->key = trim_blanks(text);
            reader->value = trim_blanks(equals + 1);
            return true;
        }
        reader->fault = !text    ? "has a NUL byte in it"
                        : equals ? "no key before the '='"
                                 : "not of the form key = value";
    }
    return false;
}
