/* Text of others: its width, escapes, repairs. */
#include "base/utf8.h"

#include "tap.h"

/* Cut to "size", never within a character or an escape; 0: whole. */
static const struct {
    const char *text, *escaped, *repaired;
    size_t size;
} rows[] = {
    {"", "", ""},
    {"plain #text", "plain #text", "plain #text"},
    {"a\\b", "a\\\\b", "a\\b"},
    {"\x1b[2J", "\\x1b[2J", "\x1b[2J"},
    {"a\tb\n", "a\\x09b\\x0a", "a\tb\n"},
    {"\x7f", "\\x7f", "\x7f"},
    {"caf\xc3\xa9", "caf\xc3\xa9", "caf\xc3\xa9"},
    {"\xf0\x9f\x94\x92", "\xf0\x9f\x94\x92", "\xf0\x9f\x94\x92"},
    {"\xc2\x9b", "\\xc2\\x9b", "\xc2\x9b"},              /* U+009B, CSI */
    {"\xe2\x80\xae", "\\xe2\\x80\\xae", "\xe2\x80\xae"}, /* U+202E, right to left */
    {"\xe2\x81\xa6", "\\xe2\\x81\\xa6", "\xe2\x81\xa6"}, /* U+2066 */
    {"\xe2\x80\xa8", "\\xe2\\x80\\xa8", "\xe2\x80\xa8"}, /* U+2028 */
    {"\xff", "\\xff", "\xef\xbf\xbd"},
    {"caf\xe9", "caf\\xe9", "caf\xef\xbf\xbd"},
    {"\xc3", "\\xc3", "\xef\xbf\xbd"},
    {"\xc3z", "\\xc3z", "\xef\xbf\xbdz"},
    {"\xe2\x82", "\\xe2\\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xc0\x80", "\\xc0\\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xed\xa0\x80", "\\xed\\xa0\\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80",
     "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},

    /* Characters that cannot be seen; a joiner. */
    {"a\xe2\x80\x8b", "a\\xe2\\x80\\x8b", "a\xe2\x80\x8b"},
    {"a\xc2\xad", "a\\xc2\\xad", "a\xc2\xad"},
    {"\xef\xbb\xbf"
     "a",
     "\\xef\\xbb\\xbf"
     "a",
     "\xef\xbb\xbf"
     "a"},
    {"\xe2\x81\xa0", "\\xe2\\x81\\xa0", "\xe2\x81\xa0"},
    {"a\xe2\x80\x8d", "a\xe2\x80\x8d", "a\xe2\x80\x8d"},

    {"abc", "", "", 1},
    {"abc", "ab", "ab", 3},
    {"abc", "abc", "abc", 4},
    {"a\\", "a", "a\\", 3},
    {"a\x01", "a", "a\x01", 5},
    {"a\x01", "a\\x01", "a\x01", 6},
    {"a\xc3\xa9", "a", "a", 3},
    {"a\xc3\xa9", "a\xc3\xa9", "a\xc3\xa9", 4},
    {"\xff", "", "", 3},
    {"\xff", "", "\xef\xbf\xbd", 4},
    {"\xff", "\\xff", "\xef\xbf\xbd", 5},
};

/* Columns of a terminal, and how many bytes fit into four. */
static const struct {
    const char *text;
    size_t width, four;
} widths[] = {
    {"", 0, 0},
    {"abcde", 5, 4},
    {"caf\xc3\xa9s", 5, 5},
    {"\xe6\xbc\xa2\xe5\xad\x97", 4, 6},  /* two ideographs */
    {"a\xe6\xbc\xa2\xe5\xad\x97", 5, 4}, /* the second is not cut in two */
    {"e\xcc\x81xyz!", 5, 6},             /* U+0301 combines */
    {"wxye\xcc\x81\xcc\xa3", 4, 8},      /* so do two, and they are not left behind */
    {"\xef\xbc\xa1\xef\xbd\xb1", 3, 6},  /* full width, half width */
    {"\xed\x95\x9c", 2, 3},              /* Hangul */
    {"\xf0\x9f\x94\x92", 2, 4},          /* U+1F512, a lock */
    {"\xe0\xa4\x95\xe0\xa5\x81", 1, 6},  /* Devanagari with its vowel sign */
    {"\xff\xfe", 2, 2},
};

int main(void)
{
    char out[80];

    for (size_t i = 0; i < COUNT(widths); i++) {
        size_t width = utf8_width(widths[i].text), four = utf8_fit(widths[i].text, 4);
        if (!tap_ok(width == widths[i].width && four == widths[i].four, "utf8_width %s",
                    tap_show(widths[i].text)))
            tap_note("got %zu, and %zu bytes fit into four", width, four);
    }

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t size = rows[i].size ? rows[i].size : sizeof out;
        tap_is(utf8_escape(rows[i].text, out, size), rows[i].escaped, "utf8_escape", rows[i].text);
        tap_is(utf8_repair(rows[i].text, out, size), rows[i].repaired, "utf8_repair", rows[i].text);
    }
    return tap_done();
}
