#include "base/percent.h"

#include <stdbool.h>
#include <string.h>

/* The value of a hexadecimal digit; -1: it is none. Not isxdigit(): that one asks the locale. */
int percent_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

enum percent_verdict percent_decode(const char *text, size_t length, char *out, size_t size)
{
    enum percent_verdict verdict = PERCENT_FINE;
    size_t used = 0;

    for (size_t i = 0; i < length && verdict == PERCENT_FINE; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < length ? percent_digit(text[i + 1]) : -1;
            int low = i + 2 < length ? percent_digit(text[i + 2]) : -1;
            if (high < 0 || low < 0) {
                verdict = PERCENT_DAMAGED;
                break;
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (c == '\0')
            verdict = PERCENT_NUL;
        else if (used + 1 < size)
            out[used++] = c;
    }
    out[used] = '\0';
    return verdict;
}

size_t percent_encode(const char *text, const char *also, char *out, size_t size)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t used = 0;

    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        bool coded = c <= ' ' || c == '%' || c == 0x7f || strchr(also, c);
        if (size - used <= (coded ? 3U : 1U))
            break;
        if (coded) {
            out[used++] = '%';
            out[used++] = digits[c >> 4];
            out[used++] = digits[c & 15];
        } else {
            out[used++] = *p;
        }
    }
    out[used] = '\0';
    return used;
}
