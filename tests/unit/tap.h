/* A small TAP harness: one line of TAP for each row of a table, what differs below it. It includes
 * what most tests print and allocate with. */
#pragma once

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_count;
static int tap_failures;

/* One result; the name says which row it is. Returns "passed", so that a caller can add notes. */
__attribute__((format(printf, 2, 3))) static inline bool tap_ok(bool passed, const char *name, ...)
{
    va_list args;

    tap_count++;
    tap_failures += !passed;
    printf("%sok %d - ", passed ? "" : "not ", tap_count);
    va_start(args, name);
    vprintf(name, args);
    va_end(args);
    putchar('\n');
    return passed;
}

/* More about the last result. */
__attribute__((format(printf, 1, 2))) static inline void tap_note(const char *format, ...)
{
    va_list args;

    printf("# ");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

#define TAP_SHOWN 60

/* "text" as one printable word in quotes, long ones cut; NULL as such. '#' is coded too: TAP gives
 * it a meaning. The result lives until four calls later. */
static inline const char *tap_show(const char *text)
{
    static char room[4][4 * TAP_SHOWN + 40];
    static int next;
    char *out = room[next++ % 4];
    char *p = out;

    if (!text)
        return "NULL";
    size_t length = strlen(text);
    *p++ = '"';
    for (size_t i = 0; i < length && i < TAP_SHOWN; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < ' ' || c >= 0x7f || c == '\\' || c == '#' || c == '"')
            p += sprintf(p, "\\x%02x", c);
        else
            *p++ = text[i];
    }
    if (length > TAP_SHOWN)
        p += sprintf(p, "...(%zu bytes)", length);
    strcpy(p, "\"");
    return out;
}

/* Equal as strings, where NULL only equals NULL. */
static inline bool tap_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* A row whose outcome is a string. */
static inline bool tap_is(const char *got, const char *wanted, const char *what, const char *input)
{
    if (tap_ok(tap_same(got, wanted), "%s %s", what, tap_show(input)))
        return true;
    tap_note("got    %s", tap_show(got));
    tap_note("wanted %s", tap_show(wanted));
    return false;
}

/* The plan, and the status to end main() with. */
static inline int tap_done(void)
{
    printf("1..%d\n", tap_count);
    return tap_failures ? 1 : 0;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A row of a table; the members that it leaves out are 0. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#define ROW(...)                                                                                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
/* Inputs with one outcome, for a table at file scope, and a loop over them. */
#define INPUTS(...)         ((const char *const[]){__VA_ARGS__, NULL})
#define EACH(input, inputs) for (const char *const *input = (inputs); *input; input++)
