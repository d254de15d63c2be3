/* Text put together in a buffer: whatever is cut ends with "...". */
#include "base/text.h"

#include "tap.h"

static const struct {
    const char *before, *added;
    size_t size;
    const char *whole;
} appended[] = {
    {"", "abc", 4, "abc"},
    {"ab", "c", 4, "abc"},
    {"", "abcd", 4, "..."},
    {"", "abcdefgh", 8, "abcd..."},
    {"abcdefg", "h", 8, "abcd..."},
    {"abcd...", "h", 8, "abcd..."},
    {"abc", "defgh", 8, "abcd..."},
    {"abcdefg", "", 8, "abcdefg"},
    {"ab", "c", 3, "ab"},
    /* No part of a character of UTF-8 stays. */
    {"",
     "abc\xc3\xa9"
     "efg",
     8, "abc..."},
    {"",
     "ab\xc3\xa9"
     "defg",
     8, "ab\xc3\xa9..."},
    {"", "\xe2\x80\xa6\xe2\x80\xa6\xe2\x80\xa6", 8, "\xe2\x80\xa6..."},
};

int main(void)
{
    char out[8];

    tap_is(text_behind("ab", "abc"), "c", "text_behind", "a beginning");
    tap_is(text_behind("abc", "abc"), "", "text_behind", "all of it");
    tap_ok(!text_behind("b", "abc"), "text_behind: not the beginning");
    tap_ok(!text_behind("abc", "ab"), "text_behind: more than there is");
    for (size_t i = 0; i < COUNT(appended); i++) {
        strcpy(out, appended[i].before);
        text_append(out, appended[i].size, "%s", appended[i].added);
        tap_is(out, appended[i].whole, "text_append", appended[i].added);
        if (*appended[i].before)
            continue;
        text_copy(out, appended[i].size, appended[i].added);
        tap_is(out, appended[i].whole, "text_copy", appended[i].added);
    }
    return tap_done();
}
