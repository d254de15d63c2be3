/* Lock names: what may be one, and the store's name for it. */
#include "lock/key.h"

#include <stdlib.h>

#include "tap.h"

#define EMPTY   "is empty"
#define LONG    "is longer than 512 bytes"
#define UTF8    "is not valid UTF-8"
#define SPACE   "has white space in it"
#define CONTROL "has a control character in it"
#define BRACE   "has a '{' or '}' in it"

static const struct {
    const char *key;
    const char *fault;
} names[] = {
    {"deploy", NULL},
    {"a", NULL},
    {"-", NULL},
    {"--", NULL},
    {"a/b:c.d,e;f", NULL},
    {"!\"#$%&'()*+-./:;<=>?@[\\]^_`|~", NULL},
    {"%s%n", NULL},
    {"h\xc3\xa9llo", NULL},
    {"\xc2\xa1", NULL},         /* U+00A1, the first behind the spaces and controls of Latin-1 */
    {"\xdf\xbf", NULL},         /* U+07FF */
    {"\xe0\xa0\x80", NULL},     /* U+0800 */
    {"\xed\x9f\xbf", NULL},     /* U+D7FF, below the surrogates */
    {"\xee\x80\x80", NULL},     /* U+E000, above them */
    {"\xef\xbf\xbf", NULL},     /* U+FFFF */
    {"\xf0\x90\x80\x80", NULL}, /* U+10000 */
    {"\xf0\x9f\x94\x92", NULL}, /* U+1F512, a lock */
    {"\xf4\x8f\xbf\xbf", NULL}, /* U+10FFFF */
    {"\xe2\x80\x8b", NULL},     /* U+200B is not white space to Unicode */

    {"", EMPTY},
    {" ", SPACE},
    {" a", SPACE},
    {"a ", SPACE},
    {"a b", SPACE},
    {"a\tb", SPACE},
    {"a\nb", SPACE},
    {"a\vb", SPACE},
    {"a\fb", SPACE},
    {"a\r", SPACE},
    {"a\xc2\x85", SPACE},     /* U+0085 */
    {"a\xc2\xa0z", SPACE},    /* U+00A0 */
    {"\xe1\x9a\x80", SPACE},  /* U+1680 */
    {"\xe2\x80\x80", SPACE},  /* U+2000 */
    {"a\xe2\x80\x83", SPACE}, /* U+2003 */
    {"\xe2\x80\x8a", SPACE},  /* U+200A */
    {"\xe2\x80\xa8", SPACE},  /* U+2028 */
    {"\xe2\x80\xa9", SPACE},  /* U+2029 */
    {"\xe2\x80\xaf", SPACE},  /* U+202F */
    {"\xe2\x81\x9f", SPACE},  /* U+205F */
    {"\xe3\x80\x80x", SPACE}, /* U+3000 */
    {"\x01", CONTROL},
    {"a\x08", CONTROL},
    {"a\x0e", CONTROL},
    {"\x1b[2J", CONTROL},
    {"a\x1f", CONTROL},
    {"a\x7f", CONTROL},
    {"\xc2\x80", CONTROL},  /* U+0080 */
    {"a\xc2\x84", CONTROL}, /* U+0084 */
    {"\xc2\x9b", CONTROL},  /* U+009B, CSI */
    {"\xc2\x9f", CONTROL},  /* U+009F */
    {"{", BRACE},
    {"a}", BRACE},
    {"{a}", BRACE},
    {"rlock:{a}", BRACE},
    {"\x80", UTF8},
    {"a\xbf", UTF8},
    {"\xff", UTF8},
    {"\xfe", UTF8},
    {"\xc3", UTF8},
    {"\xc3z", UTF8},
    {"\xc3\xc3\xa9", UTF8},
    {"\xe2\x82", UTF8},
    {"\xe2\x82z", UTF8},
    {"\xf0\x9f\x94", UTF8},
    {"h\xe9llo", UTF8}, /* Latin-1 */
    {"\xc0\x80", UTF8}, /* overlong NUL */
    {"\xc0\xaf", UTF8},
    {"\xc1\xbf", UTF8},
    {"\xe0\x80\xa0", UTF8}, /* overlong space */
    {"\xe0\x9f\xbf", UTF8},
    {"\xf0\x80\x80\xaf", UTF8},
    {"\xf0\x8f\xbf\xbf", UTF8},
    {"\xed\xa0\x80", UTF8}, /* U+D800 */
    {"\xed\xbf\xbf", UTF8}, /* U+DFFF */
    {"\xed\xa0\xbd\xed\xb4\x92", UTF8},
    {"\xf4\x90\x80\x80", UTF8}, /* U+110000 */
    {"\xf5\x80\x80\x80", UTF8},
    {"\xf8\x88\x80\x80\x80", UTF8},
};

static const struct {
    const char *unit;
    size_t times;
    const char *tail;
    const char *fault;
} sizes[] = {
    {"k", 512, "", NULL},
    {"k", 513, "", LONG},
    {"k", 511, " ", SPACE},
    {"k", 512, " ", LONG},
    {"\xc3\xa9", 256, "", NULL},
    {"\xc3\xa9", 256, "k", LONG},
    {"\xc3\xa9", 255, "k\xc3", UTF8},
    {"\xf0\x9f\x94\x92", 128, "", NULL},
    {"k", 1000000, "", LONG},
    {"\xff", 1000000, "", LONG},
};

static const struct {
    const char *text;
    bool glob;
} globs[] = {
    {"", false},    {"a", false},     {"*", true},      {"a*", true},     {"a?b", true},
    {"[", true},    {"[ab]", true},   {"]", false},     {"a]b", false},   {"\\*", false},
    {"\\", false},  {"a\\", false},   {"\\\\", false},  {"\\\\*", true},  {"\\\\\\*", false},
    {"\\*?", true}, {"\\[a]", false}, {"\\?\\", false}, {"{a,b}", false}, {"\xc3\xa9*", true},
};

/* The key that a pattern without wildcards stands for, and how it is written from the key. */
static const struct {
    const char *pattern, *key, *written;
} literals[] = {
    {"", "", ""},
    {"a", "a", "a"},
    {"a\\b", "ab", "ab"},
    {"\\*", "*", "\\*"},
    {"a\\?\\[b]", "a?[b]", "a\\?\\[b]"},
    {"\\\\", "\\", "\\\\"},
    {"a\\", "a\\", "a\\\\"},
};

static const struct {
    const char *prefix;
    const char *name;
    const char *key;
} stored[] = {
    {"rlock", "rlock:{deploy}", "deploy"},
    {"rlock", "rlock:{a:b}", "a:b"},
    {"rlock", "rlock:{:}", ":"},
    {"a:b", "a:b:{c}", "c"},
    {"\xc3\xa9", "\xc3\xa9:{\xf0\x9f\x94\x92}", "\xf0\x9f\x94\x92"},
    {"rlock", "", NULL},
    {"rlock", "rlock", NULL},
    {"rlock", "rlock:", NULL},
    {"rlock", "rlock:{", NULL},
    {"rlock", "rlock:{}", NULL},
    {"rlock", "rlock:}", NULL},
    {"rlock", "rlock:{a", NULL},
    {"rlock", "rlock:{ab", NULL},
    {"rlock", "rlock:a}", NULL},
    {"rlock", "rlock:a", NULL},
    {"rlock", "rlock{a}", NULL},
    {"rlock", "rlock.{a}", NULL},
    {"rlock", "rloc:{a}", NULL},
    {"rlock", "rlocks:{a}", NULL},
    {"rlock", "RLOCK:{a}", NULL},
    {"rlock", "rlock:{a}x", NULL},
    {"rlock", "rlock:{a}:x", NULL},
    {"rlock", "rlock:{a}}", NULL},
    {"rlock", "rlock:{{a}", NULL},
    {"rlock", "rlock:{a}:{b}", NULL},
    {"rlock", "rlock:{a b}", NULL},
    {"rlock", "rlock:{\x1b[2J}", NULL},
    {"rlock", "rlock:{\xff}", NULL},
    {"rlock", "rlock:{a\xc3}", NULL},
};

static void test_sizes(void)
{
    for (size_t i = 0; i < COUNT(sizes); i++) {
        size_t unit = strlen(sizes[i].unit);
        char *key = malloc(unit * sizes[i].times + strlen(sizes[i].tail) + 1);
        if (!key)
            return;
        for (size_t n = 0; n < sizes[i].times; n++)
            memcpy(key + n * unit, sizes[i].unit, unit);
        strcpy(key + unit * sizes[i].times, sizes[i].tail);
        tap_is(key_fault(key), sizes[i].fault, "key_fault", key);
        free(key);
    }
}

static void test_literals(void)
{
    for (size_t i = 0; i < COUNT(literals); i++) {
        char *key = key_from_pattern(literals[i].pattern);
        char *written = key_to_pattern(literals[i].key);
        tap_is(key, literals[i].key, "key_from_pattern", literals[i].pattern);
        tap_is(written, literals[i].written, "key_to_pattern", literals[i].key);
        free(key);
        free(written);
    }
}

static void test_store(void)
{
    for (size_t i = 0; i < COUNT(stored); i++) {
        char *key = key_from_store(stored[i].prefix, stored[i].name);
        tap_is(key, stored[i].key, "key_from_store", stored[i].name);
        free(key);
        if (!stored[i].key)
            continue;
        char *name = key_in_store(stored[i].prefix, stored[i].key);
        tap_is(name, stored[i].name, "key_in_store", stored[i].key);
        free(name);
    }
}

static const struct {
    const char *one, *other;
    bool may;
} meetings[] = {
    {"deploy", "deploy", true},
    {"deploy", "deploys", false},
    {"deploy", "*", true},
    {"deploy-*", "ci-*", false},
    {"deploy-*", "de*", true},
    {"deploy-*", "deploy", false},
    {"*-a", "*-b", true},
    {"a\\*", "a*", true},
    {"a\\*b", "a\\*c", false},
    {"a\\*b", "ab", false},
    {"a?", "a", true},
    {"[ab]c", "x", true},
    {"\\d\\e*", "deploy", true},
    {"\\d\\e*", "\\dx*", false},
    {"", "", true},
    {"", "a", false},
};

static void test_meetings(void)
{
    for (size_t i = 0; i < COUNT(meetings); i++) {
        const char *one = meetings[i].one, *other = meetings[i].other;
        tap_ok(key_globs_may_meet(one, other) == meetings[i].may &&
                   key_globs_may_meet(other, one) == meetings[i].may,
               "%s and %s may meet: %s", one, other, meetings[i].may ? "true" : "false");
    }
}

int main(void)
{
    for (size_t i = 0; i < COUNT(names); i++)
        tap_is(key_fault(names[i].key), names[i].fault, "key_fault", names[i].key);
    test_sizes();
    for (size_t i = 0; i < COUNT(globs); i++)
        tap_ok(key_is_glob(globs[i].text) == globs[i].glob, "key_is_glob %s is %s",
               tap_show(globs[i].text), globs[i].glob ? "true" : "false");
    test_meetings();
    test_literals();
    test_store();
    return tap_done();
}
