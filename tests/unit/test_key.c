/* Lock names: what may be one, and the store's name for it. */
#include "lock/key.h"

#include "tap.h"

#define EMPTY   "is empty"
#define LONG    "is longer than 512 bytes"
#define UTF8    "is not valid UTF-8"
#define SPACE   "has white space in it"
#define CONTROL "has a control character in it"
#define BRACE   "has a '{' or '}' in it"

static const struct {
    const char *fault;
    const char *const *keys;
} names[] = {
    /* The first and the last character of each length, around surrogates, around white space. */
    {NULL, INPUTS("deploy", "a", "-", "--", "a/b:c.d,e;f", "!\"#$%&'()*+-./:;<=>?@[\\]^_`|~",
                  "%s%n", "h\xc3\xa9llo", "\xc2\xa1", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                  "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf0\x9f\x94\x92",
                  "\xf4\x8f\xbf\xbf", "\xe2\x80\x8b")},
    {EMPTY, INPUTS("")},
    {SPACE,
     INPUTS(" ", " a", "a ", "a b", "a\tb", "a\nb", "a\vb", "a\fb", "a\r", "a\xc2\x85",
            "a\xc2\xa0z", "\xe1\x9a\x80", "\xe2\x80\x80", "a\xe2\x80\x83", "\xe2\x80\x8a",
            "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80x")},
    {CONTROL, INPUTS("\x01", "a\x08", "a\x0e", "\x1b[2J", "a\x1f", "a\x7f", "\xc2\x80", "a\xc2\x84",
                     "\xc2\x9b", "\xc2\x9f")},
    {BRACE, INPUTS("{", "a}", "{a}", "rlock:{a}")},
    /* Cut, overlong, surrogates, beyond U+10FFFF. */
    {UTF8, INPUTS("\x80", "a\xbf", "\xff", "\xfe", "\xc3", "\xc3z", "\xc3\xc3\xa9", "\xe2\x82",
                  "\xe2\x82z", "\xf0\x9f\x94", "h\xe9llo", "\xc0\x80", "\xc0\xaf", "\xc1\xbf",
                  "\xe0\x80\xa0", "\xe0\x9f\xbf", "\xf0\x80\x80\xaf", "\xf0\x8f\xbf\xbf",
                  "\xed\xa0\x80", "\xed\xbf\xbf", "\xed\xa0\xbd\xed\xb4\x92", "\xf4\x90\x80\x80",
                  "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80")},
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
};

static const char *const *const not_stored =
    INPUTS("", "rlock", "rlock:", "rlock:{", "rlock:{}", "rlock:}", "rlock:{a", "rlock:{ab",
           "rlock:a}", "rlock:a", "rlock{a}", "rlock.{a}", "rloc:{a}", "rlocks:{a}", "RLOCK:{a}",
           "rlock:{a}x", "rlock:{a}:x", "rlock:{a}}", "rlock:{{a}", "rlock:{a}:{b}", "rlock:{a b}",
           "rlock:{\x1b[2J}", "rlock:{\xff}", "rlock:{a\xc3}");

/* A KEY of the longest length is accepted, and one of a byte or a character more is not. */
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

/* A pattern without wildcards is a KEY, and a KEY is written as a pattern that means only it. */
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

/* The store's name of a KEY leads back to it; names of other prefixes and forms lead to none. */
static void test_store(void)
{
    for (size_t i = 0; i < COUNT(stored); i++) {
        char *key = key_from_store(stored[i].prefix, stored[i].name);
        tap_is(key, stored[i].key, "key_from_store", stored[i].name);
        free(key);
        char *name = key_in_store(stored[i].prefix, stored[i].key);
        tap_is(name, stored[i].name, "key_in_store", stored[i].key);
        free(name);
    }
    EACH(text, not_stored)
        tap_is(key_from_store("rlock", *text), NULL, "key_from_store", *text);
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

/* Two globs may meet if some KEY matches both, in whichever order they are given. */
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
        EACH(key, names[i].keys)
            tap_is(key_fault(*key), names[i].fault, "key_fault", *key);
    test_sizes();
    for (size_t i = 0; i < COUNT(globs); i++)
        tap_ok(key_is_glob(globs[i].text) == globs[i].glob, "key_is_glob %s is %s",
               tap_show(globs[i].text), globs[i].glob ? "true" : "false");
    test_meetings();
    test_literals();
    test_store();
    return tap_done();
}
