/* Text fitted into windows: lines, columns, colours. */
#include "cli/screen.h"

#include "tap.h"

#include <stdlib.h>

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

int main(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *text = NULL, what[40];
        size_t size;
        FILE *out = open_memstream(&text, &size);
        if (!out)
            abort();
        window_fit(out, rows[i].text, &rows[i].window, rows[i].unit);
        fclose(out);
        snprintf(what, sizeof what, "%d columns, %d lines:", rows[i].window.columns,
                 rows[i].window.lines);
        tap_is(text, rows[i].wanted, what, rows[i].text);
        free(text);
    }
    return tap_done();
}
