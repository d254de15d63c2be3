/* The identity line: there, back, and what strangers write. */
#include "lock/identity.h"

#include "tap.h"

static const struct {
    struct identity who;
    const char *line;
} lines[] = {
    {{"ci-3", "build", "make", "", 4121, ""}, "ci-3 build 4121 make -"},
    {{"", "", "", "", 0, ""}, "- - - - -"},
    {{"h", "u", "c", "nightly run", 1, ""}, "h u 1 c nightly%20run"},
    {{"-", "-", "-", "-", 7, ""}, "%2D %2D 7 %2D %2D"},
    {{"--", "-x", "a-b", "x-", 7, ""}, "-- -x 7 a-b x-"},
    {{"h", "u", "\x1b[2J\r\n\t\x7f", "100%", 7, ""}, "h u 7 %1B[2J%0D%0A%09%7F 100%25"},
    {{"h", "u", "%2D", "%", 7, ""}, "h u 7 %252D %25"},
    {{"h", "u", "caf\xc3\xa9", "\xff\x80", 7, ""}, "h u 7 caf\xc3\xa9 \xff\x80"},
    {{"h", "u", "c", "https://ci/x?y#z&{}", 7, ""}, "h u 7 c https://ci/x?y#z&{}"},
    {{"h", "u", "c", "replace=1", 7, ""}, "h u 7 c replace%3D1"}, /* no note */
    {{"h", "u", "c", "l", 2147483647, ""}, "h u 2147483647 c l"},
};

/* Lines that other programs may have left in the store. */
static const struct {
    struct identity who;
    const char *const *lines;
} foreign[] = {
    {{"", "", "", "", 0, ""}, INPUTS("", " ", "         ")},
    {{"h", "", "", "", 0, ""}, INPUTS("h")},
    {{"h", "u", "", "", 0, ""}, INPUTS("h u")},
    {{"h", "u", "", "", 5, ""}, INPUTS("h u 5", "h u 5 c\tx l\n")},
    {{"h", "u", "c", "", 5, ""}, INPUTS("h u 5 c")},
    {{"h", "u", "c", "l", 5, ""}, INPUTS("h u 5 c l more words")},
    {{"h", "", "c", "l", 5, ""}, INPUTS("h  5 c l", "h u%00x 5 c l")},
    {{"h", "u", "c", "l", 0, ""},
     INPUTS("h u -5 c l", "h u 0 c l", "h u 5x c l", "h u 0x5 c l", "h u  c l",
            "h u 2147483648 c l", "h u 99999999999999999999999999 c l")},
    {{"", "u", "c", "l", 5, ""}, INPUTS("%zz u 5 c l")},
    {{"h", "", "", "l", 5, ""}, INPUTS("h %4 5 % l")},
    {{"h", "u", "", "l", 5, ""}, INPUTS("h u 5 c\x1b[2J l")},
    {{"h", "u", "\x1b[2J", "l", 5, ""}, INPUTS("h u 5 %1b[2J l")},
    {{"h", "u", "\xff", "l", 5, ""}, INPUTS("h u 5 \xff l")},
};

/* Notes behind the five words: the one asked for, "waited", and others. */
static const struct {
    const char *line;
    int64_t waited;
} notes[] = {
    {"h u 5 c l waited=1500", 1500},
    {"- - - - - waited=1", 1},
    {"h u 5 c l kept=7 waited=0020 x", 20},
    {"h u 5 c l waited=9223372036854775807", INT64_MAX},
};

/* A word of "fill" bytes 'x', then "tail": how many bytes of it are kept? */
static const struct {
    size_t fill;
    const char *tail;
    size_t kept;
} cuts[] = {
    {0, "", 0},
    {256, "", 256},
    {257, "", 256},
    {100000, "", 256},
    {254, "\xc3\xa9", 256},
    {255, "\xc3\xa9", 255},
    {255, "\xc3\xa9 more", 255},
    {256, "\xc3\xa9", 256},
    {254, "\xe2\x82\xac", 254},
    {253, "\xe2\x82\xac", 256},
    {253, "\xf0\x9f\x94\x92", 253},
    {254, "\xf0\x9f\x94\x92", 254},
    {255, "\xf0\x9f\x94\x92", 255},
    {252, "\xf0\x9f\x94\x92", 256},
    {252, "\xf0\x9f\x94\x92x", 256},
    {250, "\x80\x80\x80\x80\x80\x80\x80\x80\x80", 256}, /* no UTF-8 */
    {255, "\xff\xff\xff", 256},
};

static bool same_identity(const struct identity *a, const struct identity *b)
{
    return tap_same(a->host, b->host) && tap_same(a->user, b->user) && a->pid == b->pid &&
           tap_same(a->command, b->command) && tap_same(a->label, b->label);
}

/* A line from a store becomes an identity; members that were there before are overwritten. */
static void check_parse(const char *line, size_t length, const struct identity *wanted)
{
    struct identity who;

    memset(&who, 'x', sizeof(who));
    identity_parse(line, length, &who);
    if (!tap_ok(same_identity(&who, wanted), "identity_parse %s", tap_show(line))) {
        tap_note("host %s, user %s, pid %ld", tap_show(who.host), tap_show(who.user), who.pid);
        tap_note("command %s, label %s", tap_show(who.command), tap_show(who.label));
    }
}

/* An identity is printed as a line and read back; a line that others wrote is read as far as it
 * makes sense. */
static void test_lines(void)
{
    for (size_t i = 0; i < COUNT(lines); i++) {
        char *line = identity_print(&lines[i].who);
        tap_is(line, lines[i].line, "identity_print of", lines[i].line);
        check_parse(lines[i].line, strlen(lines[i].line), &lines[i].who);
        free(line);
    }
    for (size_t i = 0; i < COUNT(foreign); i++)
        EACH(line, foreign[i].lines)
            check_parse(*line, strlen(*line), &foreign[i].who);
}

/* The name of the process name space is a note of the line, read back, and unknown of an older
 * rlock. */
static void test_zone(void)
{
    const struct identity here = {
        .host = "h", .pid = 5, .version = "1.1.0", .zone = "0123456789abcdef"};
    char *line = identity_print(&here);
    struct identity who;

    tap_is(line, "h - 5 - - v=1.1.0 in=0123456789abcdef", "the zone is a note:", "in");
    identity_parse(line, strlen(line), &who);
    tap_is(who.zone, here.zone, "and read back:", line);
    identity_parse("h - 5 - - v=1.0.0", 17, &who);
    tap_is(who.zone, "", "none is known of", "rlock 1.0");
    free(line);
}

/* The text has a length, no end: neither a NUL within nor what lies behind it counts. */
static void test_length(void)
{
    struct identity negative = {"h", "u", "c", "l", -4, ""};
    char *line = identity_print(&negative);

    tap_is(line, "h u - c l", "a pid that is none:", "-4");
    free(line);
    check_parse("h u 5 c l%20behind", 9, &(struct identity){"h", "u", "c", "l", 5, ""});
    check_parse("h u 5 c %41", 10, &(struct identity){"h", "u", "c", "", 5, ""});
    check_parse("h u 5 c", 0, &(struct identity){.pid = 0});
    check_parse("h u\0x 5 c l", 11, &(struct identity){"h", "", "c", "l", 5, ""});
    check_parse("\0\0\0\0", 4, &(struct identity){.pid = 0});
}

/* A note NAME=NUMBER behind the five words is found; other words, labels and numbers that are
 * none are not taken for one. A note is put behind, and takes no word's place. */
static void test_notes(void)
{
    for (size_t i = 0; i < COUNT(notes); i++) {
        int64_t got = identity_noted(notes[i].line, strlen(notes[i].line), "waited");
        if (!tap_ok(got == notes[i].waited, "waited of %s", tap_show(notes[i].line)))
            tap_note("got %" PRId64, got);
    }
    /* The last but two has a label of that kind. */
    EACH(line, INPUTS("h u 5 c l", "h u 5 c l waited=9223372036854775808",
                      "h u 5 c l waited=", "h u 5 c l waited", "h u 5 c l waited=-1",
                      "h u 5 c l waited=1s", "h u 5 c l awaited=5", "h u 5 c l waited2=5",
                      "h u 5 c waited=5", "waited=5", ""))
        tap_ok(identity_noted(*line, strlen(*line), "waited") == 0, "waited of %s is unknown",
               tap_show(*line));
    tap_ok(identity_noted("h u 5 c l waited=1234", 19, "waited") == 12,
           "no further than it is long");

    char *once = identity_note("h u 5 c l", "waited", 42), *twice = identity_note(once, "kept", 1);
    tap_is(twice, "h u 5 c l waited=42 kept=1", "notes are put behind", "h u 5 c l");
    check_parse(twice, strlen(twice), &(struct identity){"h", "u", "c", "l", 5, ""});
    free(once);
    free(twice);
    once = identity_note("", "waited", 42);
    tap_is(once, "- - - - - waited=42", "and take no word's place", "");
    free(once);
}

/* A word that is too long is cut between characters of UTF-8, when it is set and when it is
 * read. */
static void test_cuts(void)
{
    for (size_t i = 0; i < COUNT(cuts); i++) {
        size_t size = cuts[i].fill + strlen(cuts[i].tail);
        char *value = malloc(size + 1);
        char word[IDENTITY_WORD_MAX + 1];
        struct identity who;
        if (!value)
            return;
        memset(value, 'x', cuts[i].fill);
        strcpy(value + cuts[i].fill, cuts[i].tail);
        identity_set(word, value);
        bool kept = strlen(word) == cuts[i].kept && memcmp(word, value, cuts[i].kept) == 0;
        if (!tap_ok(kept, "identity_set keeps %zu of %zu bytes", cuts[i].kept, size))
            tap_note("got %zu", strlen(word));
        for (char *p = value; (p = strchr(p, ' ')); p++) /* the same, from the store */
            *p = '_';
        identity_parse(value, size, &who);
        tap_ok(strlen(who.host) == cuts[i].kept && memcmp(who.host, value, cuts[i].kept) == 0,
               "and so does identity_parse");
        free(value);
    }
}

/* The longest line: every byte of every word is coded. */
static void test_longest(void)
{
    struct identity who = {.pid = 2147483647}, back;

    memset(who.host, '\n', IDENTITY_WORD_MAX);
    memset(who.user, '%', IDENTITY_WORD_MAX);
    memset(who.command, ' ', IDENTITY_WORD_MAX);
    memset(who.label, 0x7f, IDENTITY_WORD_MAX);
    char *line = identity_print(&who);
    /* Four words of three bytes a character, the ten digits of the pid, and four spaces. */
    tap_ok(line && strlen(line) == 4 * 3 * IDENTITY_WORD_MAX + 10 + 4, "the longest line");
    identity_parse(line, strlen(line), &back);
    tap_ok(same_identity(&who, &back), "comes back whole");
    free(line);
}

int main(void)
{
    test_lines();
    test_length();
    test_zone();
    test_notes();
    test_cuts();
    test_longest();
    return tap_done();
}
