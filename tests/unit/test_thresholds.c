/* Locks against limits: what is read, which severity, what line. */
#include "cmd/thresholds.h"

#include "base/utf8.h"

#include "tap.h"

static const struct {
    const char *text;
    int64_t warning, critical; /* ms; -1: refused */
} durations[] = {
    {"30m", 1800000, 1800000},
    {"30m:2h", 1800000, 7200000},
    {"0", 0, 0},
    {"5:5", 5000, 5000},
    {"500ms:1.5s", 500, 1500},
    {"2h:1h", -1, -1},
    {"", -1, -1},
    {":1h", -1, -1},
    {"1h:", -1, -1},
    {"1h:2h:3h", -1, -1},
    {"-1h", -1, -1},
    {"x", -1, -1},
};

static const struct {
    const char *text;
    int64_t warning, critical;
} numbers[] = {
    {"10", 10, 10}, {"0:3", 0, 3}, {"3:2", -1, -1}, {"1.5", -1, -1}, {"-1", -1, -1}, {"1m", -1, -1},
};

static const struct lock_party parties[] = {
    {.owner = "a", .age_ms = 60000, .who = {.user = "me", .host = "h", .command = "x|y"}},
    {.owner = "k", .age_ms = 900000, .kept = true},
    {.owner = "w", .age_ms = 1500, .who = {.user = "u", .host = "\033[2J"}},
    {.owner = "v", .age_ms = 1000},
};
static struct lock_view locks[] = {
    ROW(.key = "a|b", .holders = parties, .holder_count = 1, .waiters = &parties[2],
        .waiter_count = 2),
    {.key = "free"},
    {.key = "kept", .holders = &parties[1], .holder_count = 1},
};

static const struct lock_party reservation = {.owner = "r",
                                              .age_ms = 120000,
                                              .reserved = true,
                                              .who = {.user = "me", .label = "load | test"}};
static const struct lock_run run = {
    .by = {.who = {.user = "root", .host = "ci-3"}, .end = {.known = true, .status = 1}},
    .ended_ago_ms = 10800000};
static struct lock_view jobs[] = {
    ROW(.key = "nightly", .memory = {.success_ended_ms = 1, .success_ago_ms = 97200000},
        .runs = &run, .run_count = 1),
    {.key = "never", .runs = &run, .run_count = 1},
    {.key = "new"},
    {.key = "stopped", .pause = {.owner = "pause", .who = {.user = "me"}}},
    {.key = "staging", .holders = &reservation, .holder_count = 1},
};

#define PAUSE .pause = {.owner = "p", .age_ms = 7200000}
static struct lock_view paused[] = {
    {.key = "ci/a", PAUSE, .pause_glob = "ci/*", .paused_ms = 7200000}};
static struct lock_view globs[] = {{.key = "ci/*", PAUSE, .pause_glob = "ci/*"}};
static struct lock_view hit[] = {
    {.key = "ci/a", PAUSE, .pause_glob = "ci/*", .paused_ms = 7300000}};

static const struct {
    const char *what;
    enum severity severity;
    const char *line;
    size_t count; /* of jobs; 0: all locks */
    bool paused;  /* instead: a KEY, by a GLOB */
    bool named;   /* instead: a KEY, by a GLOB that is not judged */
    struct threshold thresholds[MEASURES];
    const char *patterns[3];
} rows[] = {
    ROW("no limits", SEVERITY_OK,
        "RLOCK OK - 2 locks held, 2 waiting | locks=2 held=60s;;;0 waiting=1.500s;;;0 "
        "waiters=2;;;0"),
    ROW("equal is not beyond", SEVERITY_OK,
        "RLOCK OK - 2 locks held, 2 waiting; nothing matches x-* | locks=2 held=60s;60;60;0 "
        "waiting=1.500s;1.500;1.500;0 waiters=2;2;2;0",
        .thresholds[MEASURE_HELD] = {true, 60000, 60000},
        .thresholds[MEASURE_WAITING] = {true, 1500, 1500},
        .thresholds[MEASURE_WAITERS] = {true, 2, 2}, .patterns = {"a|b", "x-*", "fr*"}),
    ROW("a warning", SEVERITY_WARNING,
        "RLOCK WARNING - a\\x7cb: held for 1m00s by me@h (x\\x7cy), more than 30s | locks=2 "
        "held=60s;30;60;0 waiting=1.500s;;;0 waiters=2;;;0",
        .thresholds[MEASURE_HELD] = {true, 30000, 60000}),
    ROW("the worst first", SEVERITY_CRITICAL,
        "RLOCK CRITICAL - a\\x7cb: u@\\x1b[2J has waited for 1.5s, more than 1.5s; a\\x7cb: held "
        "for "
        "1m00s by me@h (x\\x7cy), more than 0s; a\\x7cb: 2 wait, more than 0 | locks=2 "
        "held=60s;0;60;0 waiting=1.500s;1;1.499;0 waiters=2;0;5;0",
        .thresholds[MEASURE_HELD] = {true, 0, 60000},
        .thresholds[MEASURE_WAITING] = {true, 1000, 1499},
        .thresholds[MEASURE_WAITERS] = {true, 0, 5}),
    ROW("done in time", SEVERITY_OK,
        "RLOCK OK - no lock is held, last success 1d03h ago | locks=0 held=0s;;;0 waiting=0s;;;0 "
        "waiters=0;;;0 not_done=97200s;97200;97200;0",
        .count = 1, .thresholds[MEASURE_NOT_DONE] = {true, 97200000, 97200000}),
    ROW("not done", SEVERITY_WARNING,
        "RLOCK WARNING - nightly: no success for 1d03h, more than 1d02h (last run: exit 1, 3h00m "
        "ago, by root@ci-3) | locks=0 held=0s;;;0 waiting=0s;;;0 waiters=0;;;0 "
        "not_done=97200s;93600;97200;0",
        .count = 1, .thresholds[MEASURE_NOT_DONE] = {true, 93600000, 97200000}),
    ROW("never done", SEVERITY_CRITICAL,
        "RLOCK CRITICAL - never: no success is remembered (last run: exit 1, 3h00m ago, by "
        "root@ci-3); new: no success is remembered; nightly: no success for 1d03h, more than 0s "
        "(last run: exit 1, 3h00m ago, by root@ci-3) | locks=0 held=0s;;;0 waiting=0s;;;0 "
        "waiters=0;;;0 not_done=U;0;300000;0",
        .count = 3, .thresholds[MEASURE_NOT_DONE] = {true, 0, 300000000}),
    ROW("not done, as it is paused", SEVERITY_CRITICAL,
        "RLOCK CRITICAL - never: no success is remembered (last run: exit 1, 3h00m ago, by "
        "root@ci-3); new: no success is remembered; stopped: no success is remembered, paused by "
        "me | locks=0 held=0s;;;0 waiting=0s;;;0 waiters=0;;;0 not_done=U;300000;300000;0",
        .count = 4, .thresholds[MEASURE_NOT_DONE] = {true, 300000000, 300000000},
        .patterns = {"stopped"}),
    ROW("paused and reserved", SEVERITY_OK,
        "RLOCK OK - 1 lock held, 1 paused | locks=1 held=120s;;;0 waiting=0s;;;0 waiters=0;;;0",
        .count = 5),
    ROW("reserved for too long", SEVERITY_CRITICAL,
        "RLOCK CRITICAL - staging: reserved for 2m00s by me, more than 1m00s: load \\x7c test | "
        "locks=1 "
        "held=120s;60;60;0 waiting=0s;;;0 waiters=0;;;0",
        .count = 5, .thresholds[MEASURE_HELD] = {true, 60000, 60000}),
    ROW("paused by a GLOB, with which it is counted", SEVERITY_WARNING,
        "RLOCK WARNING - ci/*: paused for 2h00m, more than 1h00m: paused by someone until 02:00 "
        "(0s "
        "left) | locks=0 held=0s;;;0 waiting=0s;;;0 waiters=0;;;0 paused=7200s;3600;10800;0",
        .paused = true, .thresholds[MEASURE_PAUSED] = {true, 3600000, 10800000}),
    ROW("a named KEY, paused by several GLOBs: the pause that began first", SEVERITY_WARNING,
        "RLOCK WARNING - ci/a: paused for 2h02m, more than 2h00m: paused, as all of ci/*, by "
        "someone until 02:00 (0s left) | locks=0 held=0s;;;0 waiting=0s;;;0 waiters=0;;;0 "
        "paused=7300s;7200;10800;0",
        .named = true, .thresholds[MEASURE_PAUSED] = {true, 7200000, 10800000}),
    ROW("a named KEY that is paused by a GLOB counts", SEVERITY_OK,
        "RLOCK OK - no lock is held, 1 paused | locks=0 held=0s;;;0 waiting=0s;;;0 waiters=0;;;0",
        .named = true),
    ROW("not paused for too long", SEVERITY_OK,
        "RLOCK OK - no lock is held, 1 paused | locks=0 held=0s;;;0 waiting=0s;;;0 waiters=0;;;0 "
        "paused=7200s;10800;10800;0",
        .paused = true, .thresholds[MEASURE_PAUSED] = {true, 10800000, 10800000}),
};

/* A limit of "rlock check" is read as a warning and a critical value, or refused (-1). */
static void test_parse(enum measure measure, const char *text, int64_t warning, int64_t critical)
{
    struct threshold got = {0};
    const char *fault = threshold_parse(measure, text, &got);

    if (warning < 0)
        tap_ok(fault != NULL, "'%s' is refused", text);
    else
        tap_ok(!fault && got.given && got.warning == warning && got.critical == critical,
               "'%s' is read", text);
}

/* Keys of 512 bytes, of escapes and of characters of two bytes. */
static void test_long_line(const char *what, const char *key)
{
    static struct lock_party party = {.owner = "o", .age_ms = 2000};
    const struct lock_view view = {.key = key, .holders = &party, .holder_count = 1};
    struct lock_view views[] = {view, view, view, view, view};
    const struct threshold thresholds[MEASURES] = {[MEASURE_HELD] = {true, 1, 1}};
    struct strbuf line = {0};

    thresholds_judge(thresholds, &(struct thresholds_subject){.locks = {views, COUNT(views)}},
                     &line);
    const char *bar = strchr(line.text, '|'), *next = line.text;
    tap_is(bar, "| locks=5 held=2s;0.001;0.001;0 waiting=0s;;;0 waiters=0;;;0", what,
           "a line that is too long loses only of its text");
    bool whole = line.size < THRESHOLDS_LINE_SIZE;
    while (*next)
        whole &= utf8_next(&next) != UTF8_INVALID;
    tap_ok(whole, "%s: whole characters", what);
    strbuf_free(&line);
}

int main(void)
{
    struct strbuf line = {0};

    setenv("TZ", "UTC0", 1);
    for (size_t i = 0; i < COUNT(durations); i++)
        test_parse(MEASURE_HELD, durations[i].text, durations[i].warning, durations[i].critical);
    for (size_t i = 0; i < COUNT(numbers); i++)
        test_parse(MEASURE_WAITERS, numbers[i].text, numbers[i].warning, numbers[i].critical);
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t patterns = 0;
        while (patterns < COUNT(rows[i].patterns) && rows[i].patterns[patterns])
            patterns++;
        bool all = rows[i].count == 0;
        struct thresholds_subject subject = {
            .locks = {all ? locks : jobs, all ? COUNT(locks) : rows[i].count},
            .patterns = rows[i].patterns,
            .pattern_count = patterns};
        if (rows[i].named)
            subject.locks = (struct lock_views){hit, 1};
        if (rows[i].paused) {
            subject.locks = (struct lock_views){paused, 1};
            subject.pauses = (struct lock_views){globs, 1};
        }
        strbuf_cut(&line, 0);
        enum severity got = thresholds_judge(rows[i].thresholds, &subject, &line);
        tap_ok(got == rows[i].severity, "%s: severity", rows[i].what);
        if (!tap_ok(tap_same(line.text, rows[i].line), "%s: line", rows[i].what))
            tap_note("got %s", line.text);
    }
    char key[513] = "";
    test_long_line("bars", memset(key, '|', sizeof key - 1));
    for (size_t i = 0; i + 1 < sizeof key; i += 2)
        memcpy(&key[i], "\xc3\xa9", 2);
    test_long_line("letters", key);
    memmove(&key[1], key, sizeof key - 3);
    key[0] = 'k';
    test_long_line("letters, one on", key);
    strbuf_cut(&line, 0);
    tap_ok(thresholds_unknown("no | answer", &line) == SEVERITY_UNKNOWN, "unknown");
    tap_is(line.text, "RLOCK UNKNOWN - no \\x7c answer", "unknown:", "line");
    strbuf_free(&line);
    return tap_done();
}
