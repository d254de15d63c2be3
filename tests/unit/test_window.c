/* Text fitted into windows: lines, columns, colours. */
#include "cli/screen.h"

#include "tap.h"

static const struct {
    const char *text;
    struct window window;
    const char *unit, *wanted;
} rows[] = {
    {"", {10, 3}, "", ""},
    {"one\n", {10, 3}, "", "one"},
    {"one", {10, 3}, "", "one"},
    {"one\ntwo\nthree\n", {10, 3}, "", "one\ntwo\nthree"},
    {"one\ntwo\nthree\nfour\n", {20, 3}, "", "one\ntwo\n\xe2\x80\xa6 and 2 more"},
    {"one\ntwo\nthree\nfour\n", {20, 3}, " lines", "one\ntwo\n\xe2\x80\xa6 and 2 more lines"},
    {"one\ntwo\nthree\nfour\n", {7, 3}, " lines", "one\ntwo\n\xe2\x80\xa6 and 2"},
    {"one\ntwo\n", {20, 1}, "", "\xe2\x80\xa6 and 2 more"},
    {"one\n\ntwo\n", {20, 4}, "", "one\n\ntwo"},
    {"one\ntwo\n", {0, 0}, "", "\xe2\x80\xa6"},
    {"12345\n123456\n", {5, 2}, "", "12345\n12345"},
    /* Characters stay whole, with what combines with them; wide ones take two columns. */
    {"caf\xc3\xa9s\n", {4, 2}, "", "caf\xc3\xa9"},
    {"a\xe6\xbc\xa2\xe5\xad\x97\n", {4, 2}, "", "a\xe6\xbc\xa2"},
    {"abce\xcc\x81x\n", {4, 2}, "", "abce\xcc\x81"},
    /* Colours take no columns, and are put back also where what they colour is cut. */
    {"a \033[33mheld\033[m b\n", {8, 2}, "", "a \033[33mheld\033[m b"},
    {"a \033[33mheld\033[m b\n", {4, 2}, "", "a \033[33mhe\033[m"},
    {"a \033[33mheld\033[m b\n", {2, 2}, "", "a \033[33m\033[m"},
    {"a \033[33", {2, 2}, "", "a \033[33"},
};

static const struct {
    const char *text;
    int columns;
    const char *wanted;
} wrapped[] = {
    {"", 10, ""},
    {"one\ntwo\n", 10, "one\ntwo\n"},
    {"one\n\ntwo", 3, "one\n\ntwo\n"},
    {"one two three four", 10, "one two\n    three\n    four\n"},
    {"  ab cdefghijklmnop q", 10, "  ab cdefg\n    hijklm\n    nop q\n"},
    {"a\xe6\xbc\xa2\xe5\xad\x97", 3, "a\xe6\xbc\xa2\n\xe5\xad\x97\n"},
    {"ab", 0, "a\nb\n"},
    {"\xe6\xbc\xa2", 1, "\xe6\xbc\xa2\n"},
};

/* Text is wrapped at blanks, with an indent; a word that is too long is cut between characters. */
static void test_wrap(void)
{
    for (size_t i = 0; i < COUNT(wrapped); i++) {
        struct strbuf out = {0};
        window_wrap(&out, wrapped[i].text, wrapped[i].columns);
        char *text = strbuf_detach(&out);
        tap_is(text, wrapped[i].wanted, "window_wrap", wrapped[i].text);
        free(text);
    }
}

int main(void)
{
    test_wrap();
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct strbuf out = {0};
        char what[40];
        window_fit(&out, rows[i].text, &rows[i].window, rows[i].unit);
        char *text = strbuf_detach(&out);
        snprintf(what, sizeof what, "%d columns, %d lines:", rows[i].window.columns,
                 rows[i].window.lines);
        tap_is(text, rows[i].wanted, what, rows[i].text);
        free(text);
    }
    return tap_done();
}
