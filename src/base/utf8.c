#include "base/utf8.h"

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

uint32_t utf8_next(const char **text)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000}; /* by the number of bytes */
    const unsigned char *p = (const unsigned char *)*text;
    unsigned char lead = *p++;
    unsigned more = lead < 0x80 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    uint32_t c = more == 0 ? lead : lead & (0x3fU >> more);

    *text += 1;
    if ((lead >= 0x80 && lead < 0xc0) || lead >= 0xf8)
        return UTF8_INVALID;
    for (unsigned i = 0; i < more; i++, p++) {
        if ((*p & 0xc0) != 0x80) /* so is the NUL: nothing behind it is read */
            return UTF8_INVALID;
        c = c << 6 | (*p & 0x3fU);
    }
    if (c < least[more] || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
        return UTF8_INVALID;
    *text += more;
    return c;
}

/* How many columns a character takes. libc knows the width of a character, but only in a locale of
 * its encoding, whatever that of the user is. */
static int width_of(uint32_t c)
{
    static locale_t unicode; /* for good: it is the same for everyone */
    int width = -1;

    if (c == UTF8_INVALID || c < 0x300) /* where all are narrow */
        return 1;
    if (!unicode)
        unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (unicode) {
        locale_t own = uselocale(unicode);
        width = wcwidth((wchar_t)c);
        uselocale(own);
    }
    if (width >= 0)
        return width;
    /* No such locale, as in a static binary on a small system, or a character that is newer than
     * libc. */
    return c < 0x370 ? 0 : c < 0x1100 ? 1 : 2;
}

size_t utf8_width(const char *text)
{
    size_t width = 0;

    while (*text)
        width += (size_t)width_of(utf8_next(&text));
    return width;
}

size_t utf8_fit(const char *text, size_t columns)
{
    const char *at = text;
    size_t used = 0;

    while (*at) {
        const char *start = at;
        used += (size_t)width_of(utf8_next(&at));
        if (used > columns)
            return (size_t)(start - text);
    }
    return (size_t)(at - text);
}

/* Whether the character cannot be seen, so that two texts look the same. Joiners (U+200C, U+200D)
 * can, in some scripts. */
static bool is_invisible(uint32_t c)
{
    return c == 0xad || c == 0x180e || c == 0x200b || (c >= 0x2060 && c <= 0x2064) || c == 0xfeff;
}

/* Whether a terminal would act upon the character, or show nothing of it. The bidirectional
 * controls make a text read as another one (CVE-2021-42574); the two separators break lines in some
 * terminals. */
static bool misleads_on_terminal(uint32_t c)
{
    return is_invisible(c) || c == UTF8_INVALID || c < 0x20 || (c >= 0x7f && c <= 0x9f) ||
           c == 0x61c || (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

char *utf8_escape(const char *text, char *out, size_t size)
{
    size_t used = 0;

    while (*text) {
        const char *start = text;
        uint32_t c = utf8_next(&text);
        size_t bytes = (size_t)(text - start);
        size_t need = misleads_on_terminal(c) ? 4 * bytes : c == '\\' ? 2 : bytes;
        if (used + need >= size)
            break;
        if (misleads_on_terminal(c)) {
            for (size_t i = 0; i < bytes; i++)
                snprintf(out + used + 4 * i, 5, "\\x%02x", (unsigned char)start[i]);
        } else {
            out[used] = '\\'; /* stays only in front of another one */
            memcpy(out + used + need - bytes, start, bytes);
        }
        used += need;
    }
    if (size > 0)
        out[used] = '\0';
    return out;
}

char *utf8_repair(const char *text, char *out, size_t size)
{
    static const char replacement[] = "\xef\xbf\xbd";
    size_t used = 0;

    while (*text) {
        const char *start = text;
        bool valid = utf8_next(&text) != UTF8_INVALID;
        size_t bytes = valid ? (size_t)(text - start) : sizeof replacement - 1;
        if (used + bytes >= size)
            break;
        memcpy(out + used, valid ? start : replacement, bytes);
        used += bytes;
    }
    if (size > 0)
        out[used] = '\0';
    return out;
}
