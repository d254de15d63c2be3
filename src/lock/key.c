#include "lock/key.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/utf8.h"

/* Unicode's White_Space property; iswspace() would ask the locale and leaves U+00A0 out. */
static bool is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

const char *key_fault(const char *key)
{
    if (*key == '\0')
        return "is empty";
    if (strnlen(key, KEY_MAX_BYTES + 1) > KEY_MAX_BYTES)
        return "is longer than 512 bytes";
    while (*key) {
        uint32_t c = utf8_next(&key);
        if (c == UTF8_INVALID)
            return "is not valid UTF-8";
        if (is_space(c))
            return "has white space in it";
        if (c < 0x20 || (c >= 0x7f && c <= 0x9f))
            return "has a control character in it";
        if (c == '{' || c == '}')
            return "has a '{' or '}' in it";
    }
    return NULL;
}

static bool is_wildcard(char c)
{
    return c == '*' || c == '?' || c == '[';
}

bool key_is_glob(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (is_wildcard(*p))
            return true;
        if (*p == '\\' && p[1])
            p++;
    }
    return false;
}

bool key_globs_may_meet(const char *one, const char *other)
{
    while (*one && *other && !is_wildcard(*one) && !is_wildcard(*other)) {
        one += *one == '\\' && one[1];
        other += *other == '\\' && other[1];
        if (*one++ != *other++)
            return false;
    }
    return *one == *other || is_wildcard(*one) || is_wildcard(*other);
}

char *key_from_pattern(const char *pattern)
{
    char *key = mem_zeroed(strlen(pattern) + 1), *to = key;

    for (; *pattern; pattern++) {
        if (*pattern == '\\' && pattern[1])
            pattern++;
        *to++ = *pattern;
    }
    return key;
}

char *key_to_pattern(const char *key)
{
    char *pattern = mem_zeroed(2 * strlen(key) + 1), *to = pattern;

    for (; *key; key++) {
        if (strchr("*?[\\", *key))
            *to++ = '\\';
        *to++ = *key;
    }
    return pattern;
}

char *key_in_store(const char *prefix, const char *key)
{
    return strbuf_print("%s:{%s}", prefix, key);
}

char *key_from_store(const char *prefix, const char *name)
{
    size_t start = strlen(prefix);
    size_t length = strlen(name);

    if (length < start + 3 || strncmp(name, prefix, start) != 0 ||
        strncmp(name + start, ":{", 2) != 0 || name[length - 1] != '}')
        return NULL;
    char *key = strndup(name + start + 2, length - start - 3);
    if (key && key_fault(key)) {
        free(key);
        return NULL;
    }
    return key;
}
