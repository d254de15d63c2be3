/* Percent-encoding. */
#include "base/percent.h"

#include "tap.h"

static const struct {
    const char *text, *plain;
} decoded[] = {
    {"", ""},
    {"abc", "abc"},
    {"%41", "A"},
    {"%2f%2F", "//"},
    {"%25", "%"},
    {"%2541", "%41"},
    {"a%20b", "a b"},
    {"%c3%A9", "\xc3\xa9"},
    {"%ff", "\xff"},
    {"a+b", "a+b"},
    {"\x01\xff", "\x01\xff"},
};

static const struct {
    enum percent_verdict verdict;
    const char *const *texts;
} damaged[] = {
    {PERCENT_DAMAGED,
     INPUTS("%", "%4", "a%", "a%4", "%%41", "%4g", "%g4", "%zz", "% 1", "%+1", "%0x", "%4\xc3")},
    {PERCENT_NUL, INPUTS("%00", "a%00b", "%00%zz")},
};

static const struct {
    const char *text;
    const char *also;
    size_t size;
    const char *coded;
} encoded[] = {
    {"", "", 64, ""},
    {"abc", "", 64, "abc"},
    {"a b", "", 64, "a%20b"},
    {"100%", "", 64, "100%25"},
    {"\x01\x1f\x7f\n", "", 64, "%01%1F%7F%0A"},
    {"\xc3\xa9\xff\x80", "", 64, "\xc3\xa9\xff\x80"},
    {"a?b#c", "", 64, "a?b#c"},
    {"a?b#c", "?#", 64, "a%3Fb%23c"},
    {"abc", "", 1, ""},
    {"abc", "", 3, "ab"},
    {"abc", "", 4, "abc"},
    {"a b", "", 4, "a"},
    {"a b", "", 5, "a%20"},
    {" ", "", 1, ""},
    {" ", "", 3, ""},
    {" ", "", 4, "%20"},
};

/* Encoded bytes are decoded; a damaged sequence and a NUL are refused. */
static void test_decode(void)
{
    char out[64];

    for (size_t i = 0; i < COUNT(decoded); i++) {
        const char *text = decoded[i].text;
        bool fine = percent_decode(text, strlen(text), out, sizeof(out)) == PERCENT_FINE;
        tap_is(fine ? out : "refused", decoded[i].plain, "percent_decode", text);
    }
    for (size_t i = 0; i < COUNT(damaged); i++)
        EACH(text, damaged[i].texts)
            tap_ok(percent_decode(*text, strlen(*text), out, sizeof(out)) == damaged[i].verdict,
                   "percent_decode %s", tap_show(*text));
}

/* Decoding reads no further than the length and writes no further than the room, also in place. */
static void test_decode_edges(void)
{
    char out[4], same[] = "%41%42c";

    tap_ok(percent_decode("a\0b", 3, out, sizeof(out)) == PERCENT_NUL, "a NUL byte is found");
    tap_ok(percent_decode("%411", 2, out, sizeof(out)) == PERCENT_DAMAGED,
           "nothing behind the length is read");
    tap_ok(percent_decode("%41%42%43%44", 12, out, sizeof(out)) == PERCENT_FINE &&
               tap_same(out, "ABC"),
           "what does not fit is cut");
    tap_ok(percent_decode("abcdef%", 7, out, sizeof(out)) == PERCENT_DAMAGED,
           "what is cut is judged");
    tap_ok(percent_decode(same, 7, same, sizeof(same)) == PERCENT_FINE && tap_same(same, "ABc"),
           "decoding in place");
    tap_ok(percent_decode("abc", 3, out, 1) == PERCENT_FINE && *out == '\0', "room for the NUL");
}

/* Control characters, blanks, '%' and what else the caller names are encoded, as far as there
 * is room. */
static void test_encode(void)
{
    char out[64];

    for (size_t i = 0; i < COUNT(encoded); i++) {
        size_t length = percent_encode(encoded[i].text, encoded[i].also, out, encoded[i].size);
        if (tap_is(out, encoded[i].coded, "percent_encode", encoded[i].text))
            tap_ok(length == strlen(out), "and says how long it is");
    }
}

int main(void)
{
    test_decode();
    test_decode_edges();
    test_encode();
    return tap_done();
}
