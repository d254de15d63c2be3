/* Locks as text: tables, lists, and what strangers wrote into them. */
#include "cli/render.h"

#include "tap.h"

static const struct {
    struct identity who;
    const char *wanted;
} parties[] = {
    {{"ci-3", "build", "make", "", 4121, ""}, "build@ci-3 pid 4121 (make)"},
    {{"ci-3", "build", "make", "not shown", 0, ""}, "build@ci-3 (make)"},
    {{"ci-3", "build", "", "", 4121, ""}, "build@ci-3 pid 4121"},
    {{"", "build", "make", "", 1, ""}, "build pid 1 (make)"},
    {{"ci-3", "", "make", "", 1, ""}, "@ci-3 pid 1 (make)"},
    {{"", "", "", "", 0, ""}, "someone"},
    {{"", "", "make", "", 7, ""}, "someone pid 7 (make)"},
    {{"a\033[2Jb", "x\ny", "\r\t\a", "", 1, ""}, "x\\x0ay@a\\x1b[2Jb pid 1 (\\x0d\\x09\\x07)"},
    {{"h", "\xc2\x9b", "\\", "", 1, ""}, "\\xc2\\x9b@h pid 1 (\\\\)"},
    {{"h", "\xff", "\xe2\x80\xae", "", 1, ""}, "\\xff@h pid 1 (\\xe2\\x80\\xae)"},
    {{"h", "caf\xc3\xa9", "c", "", 1, ""}, "caf\xc3\xa9@h pid 1 (c)"},
};

static const struct {
    int64_t ms;
    const char *wanted;
} times[] = {
    {0, "1970-01-01T00:00:00.000Z"},
    {1795162530123, "2026-11-20T08:15:30.123Z"},
    {951782400007, "2000-02-29T00:00:00.007Z"},
    {253402300799999, "9999-12-31T23:59:59.999Z"},
    {INT64_MAX, "?.807Z"},
};

static const struct lock_party make = {.owner = "0a1b",
                                       .since_ms = 1795162530123,
                                       .age_ms = 65000,
                                       .left_ms = 24150,
                                       .count = 1,
                                       .fence = 17,
                                       .who = {"ci-3", "build", "make", "nightly", 4121, ""}};
static const struct lock_party shell = {.owner = "0a1c",
                                        .since_ms = 1795162531000,
                                        .age_ms = 3500,
                                        .who = {"ci-4", "me", "sh", "", 99, ""}};
static const struct lock_party evil = {.owner = "\033]0;\a",
                                       .left_ms = 1,
                                       .count = 1,
                                       .fence = 3,
                                       .who = {"\n", "\033[2J", "\x7f", "\r\xc2\x9b", 5, ""}};
static const struct lock_party readers[] = {
    {.owner = "r1", .mode = LOCK_SHARED, .age_ms = 1000, .left_ms = 9000, .who = {.user = "one"}},
    {.owner = "r2", .mode = LOCK_SHARED, .age_ms = 8000, .left_ms = 2000, .who = {.user = "two"}},
};

static const struct lock_party brief = {
    .owner = "0a1d", .age_ms = 1000, .left_ms = 1000, .who = {.user = "me"}};

/* Two families in two slots of three; a reader within a writer. */
static const struct lock_party slots[] = {
    {.owner = "s", .mode = LOCK_LIMIT, .slot = 2, .count = 3, .fence = 5, .who = {.user = "one"}},
    {.owner = "s.a", .mode = LOCK_LIMIT, .slot = 2, .count = 2, .fence = 5, .who = {.user = "two"}},
    {.owner = "s.a.b", .mode = LOCK_LIMIT, .slot = 2, .count = 1, .fence = 5, .who = {.pid = 3}},
    {.owner = "sa", .mode = LOCK_LIMIT, .slot = 1, .count = 1, .fence = 6, .who = {.pid = 4}},
};
static const struct lock_party family[] = {
    {.owner = "w", .count = 2, .fence = 7, .who = {.user = "writer"}},
    {.owner = "w.r", .mode = LOCK_SHARED, .count = 1, .fence = 7, .who = {.user = "reader"}},
};

#define HELD(party, count)   .holders = (party), .holder_count = (count)
#define WAITED(party, count) .waiters = (party), .waiter_count = (count)

static const struct lock_view deploy = {
    .key = "deploy", .fence = 17, HELD(&make, 1), WAITED(&shell, 1)};
static const struct lock_party widest = {.owner = "0a1e",
                                         .count = 1,
                                         .who = {.user = "e\xcc\x81",
                                                 .label = "\xe6\xbc\xa2\xe5\xad\x97ri\xcc\x88"
                                                          "er than that"}};
static const struct lock_view wide = {
    .key = "\xe6\xbc\xa2\xe5\xad\x97", .fence = 4, HELD(&widest, 1)};
static const struct lock_view lengthy = {
    .key = "a-key-that-goes-on-and-on-for-ever", .fence = 17, HELD(&make, 1)};
static const struct lock_view backup = {.key = "backup", .fence = 5, HELD(&brief, 1)};
static const struct lock_view idle = {.key = "caf\xc3\xa9", .fence = 4};
static const struct lock_view unused = {.key = "new"};
static const struct lock_view forged = {
    .key = "k\033[H\n", .fence = 3, HELD(&evil, 1), WAITED(&evil, 1)};
static const struct lock_view shared = {
    .key = "data", .mode = LOCK_SHARED, .fence = 9, HELD(readers, 2)};
static const struct lock_view limited = {
    .key = "gpu", .mode = LOCK_LIMIT, .limit = 3, .fence = 6, HELD(slots, 4)};
static const struct lock_view nested = {
    .key = "nest", .fence = 7, HELD(family, 2), WAITED(readers, 1)};
static const struct lock_party ended = {.owner = "0a1f",
                                        .since_ms = 1795162530123,
                                        .age_ms = 65000,
                                        .left_ms = 235000,
                                        .count = 1,
                                        .fence = 18,
                                        .who = {"ci-3", "build", "make", "", 4121, ""},
                                        .kept = true,
                                        .end = {.known = true, .ran_ms = 4213}};
static const struct lock_view kept = {.key = "report", .fence = 18, HELD(&ended, 1)};

static const struct lock_view broad = {
    .key = "\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2"
           "\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2",
    .fence = 1,
    HELD(&brief, 1)};

#define MAX 4

static const struct rendered {
    const char *name;
    const struct lock_view *locks[MAX];
    const char *wanted;
    struct render_style style;
} tables[] = {
    ROW("nothing", {NULL}, "KEY  MODE  HOLDERS  AGE  LEASE  WAITERS\n"),
    ROW("held and free", {&deploy, &idle},
        "KEY     MODE       HOLDERS                     AGE    LEASE  WAITERS  LABEL\n"
        "deploy  exclusive  build@ci-3 pid 4121 (make)  1m05s  24s    1        nightly\n"
        "caf\xc3\xa9    free       0                           -      -      0        -\n"),
    ROW("no label, no column", {&backup},
        "KEY     MODE       HOLDERS  AGE  LEASE  WAITERS\n"
        "backup  exclusive  me       1s   1s     0\n"),
    ROW("a label that has no room: no column", {&deploy},
        "KEY     MODE       HOLDERS                     AGE    LEASE  WAITERS\n"
        "deploy  exclusive  build@ci-3 pid 4121 (make)  1m05s  24s    1\n",
        .style.width = 77),
    ROW("a label that just fits, and one that is cut, with what combines with its characters",
        {&deploy, &wide},
        "KEY     MODE       HOLDERS                     AGE    LEASE  WAITERS  LABEL\n"
        "deploy  exclusive  build@ci-3 pid 4121 (make)  1m05s  24s    1        nightly\n"
        "\xe6\xbc\xa2\xe5\xad\x97    exclusive  e\xcc\x81                           0s     0s     "
        "0   "
        " "
        "    \xe6\xbc\xa2\xe5\xad\x97ri\xcc\x88"
        "e\xe2\x80\xa6\n",
        .style.width = 78),
    ROW("too narrow for its key, which is cut, and what is left goes to who holds it",
        {&lengthy, &backup},
        "KEY                    MODE       HOLDERS     AGE    WAITERS\n"
        "a-key-that\xe2\x80\xa6n-for-ever  exclusive  build@ci-3  1m05s  0\n"
        "backup                 exclusive  me          1s     0\n",
        .style.width = 60),
    ROW("narrower: key, age, waiters and the holder's host are what stays", {&lengthy, &backup},
        "KEY              HOLDERS  AGE    WAITERS\n"
        "a-key-t\xe2\x80\xa6or-ever  ci-3     1m05s  0\n"
        "backup           me       1s     0\n",
        .style.width = 40),
    ROW("wider: who holds it before all of the key", {&lengthy, &backup},
        "KEY                         MODE       HOLDERS                     AGE    LEASE  WAITERS\n"
        "a-key-that-go\xe2\x80\xa6-on-for-ever  exclusive  build@ci-3 pid 4121 (make)  1m05s  24s  "
        "  "
        "0\n"
        "backup                      exclusive  me                          1s     1s     0\n",
        .style.width = 88),
    ROW("several holders: the longest time, the latest end", {&shared},
        "KEY   MODE    HOLDERS  AGE  LEASE  WAITERS\n"
        "data  shared  2        8s   9s     0\n"),
    ROW("those that nest count with the outermost", {&limited, &nested},
        "KEY   MODE       HOLDERS  AGE  LEASE  WAITERS\n"
        "gpu   limit 3    2        0s   0s     0\n"
        "nest  exclusive  writer   0s   0s     1\n"),
    ROW("narrow: only the one too long is cut", {&deploy, &shared, &backup},
        "KEY     MODE       HOLDERS     AGE    LEASE  WAITERS\n"
        "deploy  exclusive  build@ci-3  1m05s  24s    1\n"
        "data    shared     2           8s     9s     0\n"
        "backup  exclusive  me          1s     1s     0\n",
        .style.width = 60),
    ROW("too narrow: numbers stay right", {&shared, &idle},
        "KEY   HOLDERS  AGE  WAITERS\n"
        "data  2        8s   0\n"
        "caf\xc3\xa9  0        -    0\n",
        .style.width = 10),
    ROW("wide characters are cut between them", {&broad, &backup},
        "KEY              HOLDERS  AGE  WAITERS\n"
        "\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe2\x80\xa6"
        "\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2  me       1s   0\n"
        "backup           me       1s   0\n",
        .style.width = 39),
    ROW("kept, not held by a command that has ended", {&kept, &backup},
        "KEY     MODE       HOLDERS                                                AGE    LEASE  "
        "WAITERS\n"
        "report  exclusive  kept until 08:21; the command ended with 0 after 4.2s  1m05s  3m55s  "
        "0\n"
        "backup  exclusive  me                                                     1s     1s     "
        "0\n"),
    ROW("narrow: that it is kept is told still", {&kept, &backup},
        "KEY     MODE       HOLDERS           AGE    LEASE  WAITERS\n"
        "report  exclusive  kept until 08:21  1m05s  3m55s  0\n"
        "backup  exclusive  me                1s     1s     0\n",
        .style.width = 60),
    ROW("in color", {&shared, &idle},
        "KEY   MODE    HOLDERS  AGE  LEASE  WAITERS\n"
        "data  \033[33mshared\033[m  2        8s   9s     0\n"
        "caf\xc3\xa9  \033[32mfree\033[m    0        -    -      0\n",
        .style.color = true),
    ROW("forged", {&forged},
        "KEY          MODE       HOLDERS                    AGE  LEASE  WAITERS  LABEL\n"
        "k\\x1b[H\\x0a  exclusive  \\x1b[2J@\\x0a pid 5 (\\x7f)  0s   1ms    1        "
        "\\x0d\\xc2\\x9b\n"),
};

static const struct rendered lists[] = {
    ROW("nothing", {NULL}, ""),
    ROW("held, with a queue", {&deploy},
        "deploy: exclusive, 1 waiting, last fence 17\n"
        "  holder      build@ci-3 pid 4121 (make)\n"
        "    label       nightly\n"
        "    owner       0a1b\n"
        "    since       2026-11-20T08:15:30.123Z (1m05s ago)\n"
        "    lease left  24s\n"
        "    count       1\n"
        "    fence       17\n"
        "  waiter 1    me@ci-4 pid 99 (sh), exclusive\n"
        "    owner       0a1c\n"
        "    since       2026-11-20T08:15:31.000Z (3.5s ago)\n"),
    ROW("kept, not held by a command that has ended", {&kept},
        "report: exclusive, 0 waiting, last fence 18\n"
        "  kept until 08:21; the command ended with 0 after 4.2s\n"
        "    by          build@ci-3 pid 4121 (make)\n"
        "    owner       0a1f\n"
        "    since       2026-11-20T08:15:30.123Z (1m05s ago)\n"
        "    lease left  3m55s\n"
        "    count       1\n"
        "    fence       18\n"),
    ROW("free, and never held", {&idle, &unused},
        "caf\xc3\xa9: free, 0 waiting, last fence 4\n\nnew: free, 0 waiting\n"),
    ROW("slots, and who nests in whom", {&limited},
        "gpu: limit 3, 0 waiting, last fence 6\n"
        "  holder      one\n"
        "    owner       s\n"
        "    since       1970-01-01T00:00:00.000Z (0s ago)\n"
        "    lease left  0s\n"
        "    slot        2\n"
        "    count       3\n"
        "    fence       5\n"
        "  nested      two\n"
        "    owner       s.a\n"
        "    since       1970-01-01T00:00:00.000Z (0s ago)\n"
        "    lease left  0s\n"
        "    slot        2\n"
        "    count       2\n"
        "    fence       5\n"
        "  nested      someone pid 3\n"
        "    owner       s.a.b\n"
        "    since       1970-01-01T00:00:00.000Z (0s ago)\n"
        "    lease left  0s\n"
        "    slot        2\n"
        "    count       1\n"
        "    fence       5\n"
        "  holder      someone pid 4\n"
        "    owner       sa\n"
        "    since       1970-01-01T00:00:00.000Z (0s ago)\n"
        "    lease left  0s\n"
        "    slot        1\n"
        "    count       1\n"
        "    fence       6\n"),
    ROW("a mode of one's own, a waiting reader", {&nested},
        "nest: exclusive, 1 waiting, last fence 7\n"
        "  holder      writer\n"
        "    owner       w\n"
        "    since       1970-01-01T00:00:00.000Z (0s ago)\n"
        "    lease left  0s\n"
        "    count       2\n"
        "    fence       7\n"
        "  nested      reader\n"
        "    owner       w.r\n"
        "    since       1970-01-01T00:00:00.000Z (0s ago)\n"
        "    lease left  0s\n"
        "    mode        shared\n"
        "    count       1\n"
        "    fence       7\n"
        "  waiter 1    one, shared\n"
        "    owner       r1\n"
        "    since       1970-01-01T00:00:00.000Z (1s ago)\n"),
    ROW("in color", {&idle}, "caf\xc3\xa9: \033[32mfree\033[m, 0 waiting, last fence 4\n",
        .style.color = true),
    ROW("forged", {&forged},
        "k\\x1b[H\\x0a: exclusive, 1 waiting, last fence 3\n"
        "  holder      \\x1b[2J@\\x0a pid 5 (\\x7f)\n"
        "    label       \\x0d\\xc2\\x9b\n"
        "    owner       \\x1b]0;\\x07\n"
        "    since       1970-01-01T00:00:00.000Z (0s ago)\n"
        "    lease left  1ms\n"
        "    count       1\n"
        "    fence       3\n"
        "  waiter 1    \\x1b[2J@\\x0a pid 5 (\\x7f), exclusive\n"
        "    label       \\x0d\\xc2\\x9b\n"
        "    owner       \\x1b]0;\\x07\n"
        "    since       1970-01-01T00:00:00.000Z (0s ago)\n"),
};

typedef void renderer(struct strbuf *out, const struct lock_view *locks, size_t count,
                      const struct render_style *style);

/* Locks, up to the first NULL, are printed as wanted; "what" and "name" say by which function, and
 * which row of the table it is. */
static void check(renderer *print, const struct lock_view *const locks[MAX],
                  const struct render_style *style, const char *what, const char *name,
                  const char *wanted)
{
    struct lock_view views[MAX];
    size_t count = 0;
    struct strbuf out = {0};

    for (; count < MAX && locks[count]; count++)
        views[count] = *locks[count];
    print(&out, views, count, style);
    char *text = strbuf_detach(&out);
    if (!tap_ok(strcmp(text, wanted) == 0, "%s: %s", what, name)) {
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
            tap_note("%s", line);
    }
    free(text);
}

/* Words of the greatest length, of which every byte is escaped, fit into the room for them. */
static void test_longest(void)
{
    char key[513];
    struct lock_party party = {.owner = "o", .who = {.pid = 2147483647}};
    struct lock_view lock = {.key = key, .fence = 1, HELD(&party, 1), WAITED(&party, 1)};
    struct render_style style = {.color = false};
    char plain[DESCRIBE_PARTY_SIZE], shown[UTF8_ESCAPED_SIZE(sizeof plain)];
    struct strbuf table = {0}, list = {0};

    memset(key, '\001', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    memset(party.who.host, '\002', IDENTITY_WORD_MAX);
    memset(party.who.user, '\003', IDENTITY_WORD_MAX);
    memset(party.who.command, '\004', IDENTITY_WORD_MAX);
    memset(party.who.label, '\005', IDENTITY_WORD_MAX);
    memset(party.owner, '\006', OWNER_SIZE - 1);
    utf8_escape(describe_party(&party.who, plain, sizeof plain), shown, sizeof shown);
    tap_ok(strlen(shown) == 3 * 4 * IDENTITY_WORD_MAX + strlen("@ pid 2147483647 ()"),
           "the longest party is whole");
    render_table(&table, &lock, 1, &style);
    tap_ok(strstr(table.text, shown) != NULL, "and so it is in a table");
    render_long(&list, &lock, 1, &style);
    tap_ok(strstr(list.text, shown) != NULL, "and in a list");
    tap_ok(!strpbrk(table.text, "\001\002\003\004\005\006") &&
               !strpbrk(list.text, "\001\002\003\004\005\006"),
           "all of it escaped");
    strbuf_free(&table);
    strbuf_free(&list);
}

/* The rows of runs in a window that is too narrow for them. */
static void test_history(void)
{
    static const struct lock_run ran[] = {
        {.by = {.since_ms = 1000,
                .who = {"ci-3", "build", "make", "", 4121, ""},
                .end = {.known = true}},
         .held_ms = 5000},
        {.by = {.since_ms = 2000,
                .who = {.host = "ci-4"},
                .end.how = LOCK_REVOKED,
                .revoked = {.by = "ada@laptop pid 99", .why = "hotfix"}},
         .held_ms = 1000}};
    const struct past_run runs[] = {{"projects/shop/deploy/production", &ran[0]}, {"k", &ran[1]}};
    static const struct {
        int width;
        const char *wanted;
    } rows[] = {
        {0, "SINCE                KEY                              BY                          "
            "WAITED  HELD  OUTCOME\n"
            "1970-01-01 00:00:01  projects/shop/deploy/production  build@ci-3 pid 4121 (make)  0s  "
            "    5s    exit 0\n"
            "1970-01-01 00:00:02  k                                @ci-4                       0s  "
            "    1s    revoked by ada@laptop pid 99: hotfix\n"},
        {100, "SINCE                KEY                  BY                          WAITED  HELD  "
              "OUTCOME\n"
              "1970-01-01 00:00:01  projects/\xe2\x80\xa6roduction  build@ci-3 pid 4121 (make)  0s "
              "     5s    exit 0\n"
              "1970-01-01 00:00:02  k                    @ci-4                       0s      1s    "
              "revoked by ada@\xe2\x80\xa6\n"},
        {80, "SINCE                KEY                      BY          HELD  OUTCOME\n"
             "1970-01-01 00:00:01  projects/sh\xe2\x80\xa6/production  build@ci-3  5s    exit 0\n"
             "1970-01-01 00:00:02  k                        @ci-4       1s    revoked by "
             "ada@\xe2\x80\xa6\n"},
        {60, "SINCE                KEY        BY    HELD  OUTCOME\n"
             "1970-01-01 00:00:01  proj\xe2\x80\xa6tion  ci-3  5s    exit 0\n"
             "1970-01-01 00:00:02  k          ci-4  1s    revoked by ada@\xe2\x80\xa6\n"},
        {52, "SINCE        KEY        BY    HELD  OUTCOME\n"
             "01-01 00:00  proj\xe2\x80\xa6tion  ci-3  5s    exit 0\n"
             "01-01 00:00  k          ci-4  1s    revoked by ada@\xe2\x80\xa6\n"},
        {40, "SINCE        KEY       BY    OUTCOME\n"
             "01-01 00:00  proj\xe2\x80\xa6ion  ci-3  exit 0\n"
             "01-01 00:00  k         ci-4  revoked by\xe2\x80\xa6\n"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct render_style style = {.width = rows[i].width};
        struct strbuf out = {0};
        render_history(&out, runs, COUNT(runs), &style);
        if (!tap_ok(strcmp(out.text, rows[i].wanted) == 0, "runs in %d columns", rows[i].width))
            for (char *line = strtok(out.text, "\n"); line; line = strtok(NULL, "\n"))
                tap_note("%s", line);
        strbuf_free(&out);
    }
}

int main(void)
{
    setenv("TZ", "UTC0", 1);
    test_history();
    char plain[DESCRIBE_PARTY_SIZE], text[UTF8_ESCAPED_SIZE(sizeof plain)];
    char time[DESCRIBE_TIME_SIZE];

    for (size_t i = 0; i < COUNT(parties); i++) {
        describe_party(&parties[i].who, plain, sizeof plain);
        tap_is(utf8_escape(plain, text, sizeof text), parties[i].wanted,
               "describe_party:", parties[i].wanted);
    }
    for (size_t i = 0; i < COUNT(times); i++)
        tap_is(describe_utc(times[i].ms, time), times[i].wanted, "describe_utc:", times[i].wanted);
    for (size_t i = 0; i < COUNT(tables); i++)
        check(render_table, tables[i].locks, &tables[i].style, "render_table", tables[i].name,
              tables[i].wanted);
    for (size_t i = 0; i < COUNT(lists); i++)
        check(render_long, lists[i].locks, &lists[i].style, "render_long", lists[i].name,
              lists[i].wanted);
    test_longest();
    return tap_done();
}
