/* Several addresses in one text. */
#include "store/url.h"

#include "tap.h"

/* wanted: the passwords found, each followed by a '|'. */
static const struct {
    const char *text;
    const char *wanted;
} rows[] = {
    {"", ""},
    {"redis://h redis://i", ""},
    {"redis://:a@h", "a|"},
    {"redis://:a@h redis://u:b@i", "a|b|"},
    {"  redis://:a@h\t\nunix://:b@/c@d\v", "a|b|"},
    {"redis://h redis://:a@i redis://j", "a|"},
    {"unix:///a@b unix:///c:d@e", ""},
    {"unix://:a@/b://c@d unix://:e@/f", "a|e|"},
    {"sentinel://:a@h:1,i:2/m cluster://u:b@j,k", "a|b|"},
    {"local: redis://:a@h", "a|"},
    {"--url=redis://:a@h redis://:b@i", "a|b|"},
    {"redis://u:@h redis://:a@i", "|a|"},
    {"redis://u@h redis://:a@i", "a|"},
    /* wrong ones: rather too much */
    {"redis://:a b@h redis://:c@i", "a b|c|"},
    {"redis://:a @h", "a |"},
    {"redis://secret@h:x redis://:a@i", "secret|a|"},
};

static const struct {
    const char *text, *wanted;
} blotted[] = {
    {"", ""},
    {"redis://h", "redis://h"},
    {"redis://:pw@h redis://u:q@i", "redis://:**@h redis://u:*@i"},
    {"no lock at 'redis://:p w@h'", "no lock at 'redis://:***@h'"},
};

#define TEN "0123456789"

static const struct {
    const char *text, *wanted;
} shown[] = {
    {"", ""},
    {"deploy", "deploy"},
    {TEN TEN TEN TEN TEN TEN TEN TEN, TEN TEN TEN TEN TEN TEN TEN TEN},
    {TEN TEN TEN TEN TEN TEN TEN TEN "!", TEN TEN TEN TEN TEN TEN TEN TEN "..."},
    {"redis://u:pw@h", "redis://u:**@h"},
    {"redis://u:" TEN TEN TEN TEN TEN TEN TEN "!" TEN "@h",
     "redis://u:**********************************************************************..."},
};

static const struct {
    const char *a, *b;
    bool same;
} pairs[] = {
    {"redis://h", "redis://h:6379/0", true},
    {"redis://h", "redis://H/3", true},
    {"redis://h", "rediss://u:p@h", true},
    {"redis://h", "redis://h:6380", false},
    {"redis://h", "redis://i", false},
    {"redis://h", "cluster://h", false},
    {"redis://h", "unix:///h", false},
    {"unix:///a", "unix://:p@/a?db=1", true},
    {"unix:///a", "unix:///A", false},
    {"sentinel://h,i/m", "sentinel://h,i/m/1", true},
    {"sentinel://h,i/m", "sentinel://h,i/n", false},
    {"sentinel://h,i/m", "sentinel://h/m", false},
    {"local:", "local:", true},
};

static void test_passwords(const char *text, const char *wanted)
{
    char got[200] = "", *out = got;
    size_t start, length;

    for (size_t from = 0; urls_password_span(text, from, &start, &length); from = start + length)
        out += sprintf(out, "%.*s|", (int)length, text + start);
    tap_is(got, wanted, "urls_password_span", text);
}

static void test_blotted(const char *text, const char *wanted)
{
    char got[200];

    strcpy(got, text);
    urls_blot(got);
    tap_is(got, wanted, "urls_blot", text);
}

static void test_shown(const char *text, const char *wanted)
{
    char got[URLS_SHOWN_SIZE];

    tap_is(urls_show(text, got), wanted, "urls_show", text);
}

static void test_pair(const char *one, const char *other, bool same)
{
    struct url a, b;
    char fault[100];

    if (!tap_ok(url_parse(one, &a, fault, sizeof fault) &&
                    url_parse(other, &b, fault, sizeof fault),
                "%s and %s", one, other))
        return;
    tap_ok(urls_same_server(&a, &b) == same && urls_same_server(&b, &a) == same, "are %s",
           same ? "the same" : "not the same");
    url_free(&a);
    url_free(&b);
}

int main(void)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        test_passwords(rows[i].text, rows[i].wanted);
    for (size_t i = 0; i < COUNT(blotted); i++)
        test_blotted(blotted[i].text, blotted[i].wanted);
    for (size_t i = 0; i < COUNT(shown); i++)
        test_shown(shown[i].text, shown[i].wanted);
    for (size_t i = 0; i < COUNT(pairs); i++)
        test_pair(pairs[i].a, pairs[i].b, pairs[i].same);
    return tap_done();
}
