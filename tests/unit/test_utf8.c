/* Text of others: characters, escapes, repairs. */
#include "utf8.h"

#include "tap.h"

static const struct {
    const char *text;
    size_t characters;
    const char *escaped;
    const char *repaired;
} rows[] = {
    {"", 0, "", ""},
    {"plain #text", 11, "plain #text", "plain #text"},
    {"a\\b", 3, "a\\\\b", "a\\b"},
    {"\x1b[2J", 4, "\\x1b[2J", "\x1b[2J"},
    {"a\tb\n", 4, "a\\x09b\\x0a", "a\tb\n"},
    {"\x7f", 1, "\\x7f", "\x7f"},
    {"caf\xc3\xa9", 4, "caf\xc3\xa9", "caf\xc3\xa9"},
    {"\xf0\x9f\x94\x92", 1, "\xf0\x9f\x94\x92", "\xf0\x9f\x94\x92"},
    {"\xc2\x9b", 1, "\\xc2\\x9b", "\xc2\x9b"},              /* U+009B, CSI */
    {"\xe2\x80\xae", 1, "\\xe2\\x80\\xae", "\xe2\x80\xae"}, /* U+202E, right to left */
    {"\xe2\x81\xa6", 1, "\\xe2\\x81\\xa6", "\xe2\x81\xa6"}, /* U+2066 */
    {"\xe2\x80\xa8", 1, "\\xe2\\x80\\xa8", "\xe2\x80\xa8"}, /* U+2028 */
    {"\xff", 1, "\\xff", "\xef\xbf\xbd"},
    {"caf\xe9", 4, "caf\\xe9", "caf\xef\xbf\xbd"},
    {"\xc3", 1, "\\xc3", "\xef\xbf\xbd"},
    {"\xc3z", 2, "\\xc3z", "\xef\xbf\xbdz"},
    {"\xe2\x82", 2, "\\xe2\\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xc0\x80", 2, "\\xc0\\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xed\xa0\x80", 3, "\\xed\\xa0\\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80",
     "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
};

/* Cut to "size", never within a character or an escape. */
static const struct {
    const char *text;
    size_t size;
    const char *escaped;
    const char *repaired;
} cuts[] = {
    {"abc", 1, "", ""},
    {"abc", 3, "ab", "ab"},
    {"abc", 4, "abc", "abc"},
    {"a\\", 3, "a", "a\\"},
    {"a\x01", 5, "a", "a\x01"},
    {"a\x01", 6, "a\\x01", "a\x01"},
    {"a\xc3\xa9", 3, "a", "a"},
    {"a\xc3\xa9", 4, "a\xc3\xa9", "a\xc3\xa9"},
    {"\xff", 3, "", ""},
    {"\xff", 4, "", "\xef\xbf\xbd"},
    {"\xff", 5, "\\xff", "\xef\xbf\xbd"},
};

int main(void)
{
    char out[80];

    for (size_t i = 0; i < COUNT(rows); i++) {
        tap_ok(utf8_length(rows[i].text) == rows[i].characters, "utf8_length %s is %zu",
               tap_show(rows[i].text), rows[i].characters);
        tap_is(utf8_escape(rows[i].text, out, sizeof(out)), rows[i].escaped, "utf8_escape",
               rows[i].text);
        tap_is(utf8_repair(rows[i].text, out, sizeof(out)), rows[i].repaired, "utf8_repair",
               rows[i].text);
    }
    for (size_t i = 0; i < COUNT(cuts); i++) {
        tap_is(utf8_escape(cuts[i].text, out, cuts[i].size), cuts[i].escaped, "utf8_escape, cut,",
               cuts[i].text);
        tap_is(utf8_repair(cuts[i].text, out, cuts[i].size), cuts[i].repaired, "utf8_repair, cut,",
               cuts[i].text);
    }
    return tap_done();
}
