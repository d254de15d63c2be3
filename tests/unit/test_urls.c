/* Several addresses in one text. */
#include "store/url.h"

#include "tap.h"

struct row {
    const char *text, *wanted;
};

/* wanted: the passwords found, each followed by a '|'. */
static const struct row passwords[] = {
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

static const struct row blotted[] = {
    {"", ""},
    {"redis://h", "redis://h"},
    {"redis://:pw@h redis://u:q@i", "redis://:**@h redis://u:*@i"},
    {"no lock at 'redis://:p w@h'", "no lock at 'redis://:***@h'"},
};

#define TEN "0123456789"

static const struct row shown[] = {
    {"", ""},
    {"deploy", "deploy"},
    {TEN TEN TEN TEN TEN TEN TEN TEN, TEN TEN TEN TEN TEN TEN TEN TEN},
    {TEN TEN TEN TEN TEN TEN TEN TEN "!!!", TEN TEN TEN TEN TEN TEN TEN TEN "!!!"},
    {TEN TEN TEN TEN TEN TEN TEN TEN "!!!!", TEN TEN TEN TEN TEN TEN TEN TEN "..."},
    {TEN TEN TEN TEN TEN TEN TEN "123456789\u00e9!!!", TEN TEN TEN TEN TEN TEN TEN "123456789..."},
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
    {"redis://h", "valkeys://h", true},
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

static const char *find_passwords(const char *text, char *out)
{
    const char *got = out;
    size_t start, length;

    *out = '\0';
    for (size_t from = 0; urls_password_span(text, from, &start, &length); from = start + length)
        out += sprintf(out, "%.*s|", (int)length, text + start);
    return got;
}

static const char *blot(const char *text, char *out)
{
    urls_blot(strcpy(out, text));
    return out;
}

/* Two URLs lead to the same server or not, in either order. */
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
    char got[URLS_SHOWN_SIZE];

    for (size_t i = 0; i < COUNT(passwords); i++)
        tap_is(find_passwords(passwords[i].text, got), passwords[i].wanted, "urls_password_span",
               passwords[i].text);
    for (size_t i = 0; i < COUNT(blotted); i++)
        tap_is(blot(blotted[i].text, got), blotted[i].wanted, "urls_blot", blotted[i].text);
    for (size_t i = 0; i < COUNT(shown); i++)
        tap_is(urls_show(shown[i].text, got), shown[i].wanted, "urls_show", shown[i].text);
    for (size_t i = 0; i < COUNT(pairs); i++)
        test_pair(pairs[i].a, pairs[i].b, pairs[i].same);
    return tap_done();
}
