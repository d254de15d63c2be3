#include "base/decimal.h"

#include <string.h>

#define DIGITS "0123456789"

bool decimal_read(const char *text, size_t length, int64_t most, int64_t *number)
{
    int64_t value = 0;

    for (size_t i = 0; i < length; i++) {
        int digit = text[i] - '0';
        if (digit < 0 || digit > 9 || digit > most || value > (most - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (length == 0)
        return false;
    *number = value;
    return true;
}

bool decimal_parse(const char *text, int64_t least, int64_t most, int64_t *number)
{
    int64_t value;

    if (!decimal_read(text, strlen(text), most, &value) || value < least)
        return false;
    *number = value;
    return true;
}

bool decimal_take(const char **text, int64_t most, int64_t *number)
{
    size_t length = strspn(*text, DIGITS);

    if (!decimal_read(*text, length, most, number))
        return false;
    *text += length;
    return true;
}

int64_t decimal_size(const char *text, int64_t most)
{
    int64_t number = -1;

    if (*text && text[strspn(text, DIGITS)] == '\0' &&
        !decimal_read(text, strlen(text), most, &number))
        number = most;
    return number;
}
