/* Config files. */
#include "cli/config.h"

#include "tap.h"

/* Which some editors begin a file with. */
#define MARK "\xef\xbb\xbf"

/* "wanted": NUMBER:KEY=VALUE; for each setting, then the fault if there is one. A '@' in the text
 * stands for a NUL byte. */
static const struct {
    const char *text;
    const char *wanted;
} rows[] = {
    {"", ""},
    {"\n\n# only = comments\n   # and blanks\n\t\n", ""},
    {"a=b", "1:a=b;"},
    {"  a  =  b c  \n\nd = e\n", "1:a=b c;3:d=e;"},
    {"a = b # c\n", "1:a=b # c;"},
    {"a=b\r\nc=d\r\n", "1:a=b;2:c=d;"},
    {"a=b=c\n", "1:a=b=c;"},
    {"a=\n", "1:a=;"},
    {MARK "a=b\nc=d\n", "1:a=b;2:c=d;"},
    {MARK, ""},
    {"\xef\xbb", "1!not of the form key = value"},
    {"a=b\n" MARK "c=d\n", "1:a=b;2:" MARK "c=d;"},
    {"a = 'quoted'\n", "1:a='quoted';"},
    {"a=b\nc\nd=e\n", "1:a=b;2!not of the form key = value"},
    {" = b\n", "1!no key before the '='"},
    {"a=b\nc=d@\n", "1:a=b;2!has a NUL byte in it"},
    {"a=b\nc=d@e\nf=g\n", "1:a=b;2!has a NUL byte in it"},
    {"a=b\n\n# c@\n", "1:a=b;3!has a NUL byte in it"},
    {"@", "1!has a NUL byte in it"},
    {"a=b\n@", "1:a=b;2!has a NUL byte in it"},
};

int main(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[200], got[200] = "", *out = got;
        struct config_reader reader = {.rest = text, .end = text + strlen(rows[i].text)};

        strcpy(text, rows[i].text);
        for (char *at = text; (at = strchr(at, '@')); at++)
            *at = '\0';
        while (config_next(&reader))
            out += sprintf(out, "%d:%s=%s;", reader.number, reader.key, reader.value);
        if (reader.fault)
            sprintf(out, "%d!%s", reader.number, reader.fault);
        tap_is(got, rows[i].wanted, "config_next", rows[i].text);
    }
    return tap_done();
}
