/* Runs drawn on a line of time, in windows of several widths. */
#include "cli/timeline.h"

#include "tap.h"

#include <time.h>

#define NOON       INT64_C(1795176000000) /* 2026-11-20 12:00:00 in UTC */
#define MINUTES(n) ((n)*INT64_C(60000))

static const struct lock_run first = {
    .by = {.since_ms = NOON,
           .who = {.user = "build", .host = "ci-1", .pid = 7, .command = "make"},
           .end = {.how = LOCK_USED, .known = true}},
    .held_ms = MINUTES(10),
};
static const struct lock_run second = {
    .by = {.since_ms = NOON + MINUTES(10),
           .waited_ms = MINUTES(5),
           .who = {.user = "build", .host = "ci-2"},
           .end = {.how = LOCK_USED, .known = true, .status = 3}},
    .held_ms = MINUTES(10),
};
static const struct lock_run instant = {
    .by = {.since_ms = NOON, .end = {.how = LOCK_TIMED_OUT}},
};
static const struct lock_run day_later = {
    .by = {.since_ms = NOON + MINUTES(1440), .who = {.user = "\033", .label = "x"}},
    .held_ms = 1,
};
static const struct lock_run absurd = {
    .by = {.since_ms = INT64_MIN / 4, .waited_ms = 5},
    .held_ms = INT64_MAX / NS_PER_MS / 2, /* the longest that a store can say */
};

static const struct {
    const struct lock_run *runs[2];
    struct timeline_style style;
    const char *wanted;
} rows[] = {
    ROW({&first, &second}, {.width = 60, .ascii = true},
        "last runs (- waited, # held) of k\n"
        "BY               12:00        12:20  HELD    WAITED  OUTCOME\n"
        "build@ci-1 (ma~  #########           10m00s          exit 0\n"
        "build@ci-2           -----#########  10m00s  5m00s   exit 3\n"),
    ROW({&first, &second}, {.width = 40, .ascii = true},
        "last runs (- waited, # held) of k\n"
        "BY        12:00 12:20  HELD      OUTCOME\n"
        "build@c~  ######       10m00s    exit 0\n"
        "build@c~    ---######  10m00s    exit 3\n"),
    ROW({&first, &second}, {.width = 44, .color = true},
        "last runs (░ waited, █ held) of k\n"
        "BY           12:00  12:20  HELD      OUTCOME\n"
        "build@ci-1…  \033[32m██████      \033[m  10m00s    exit 0\n"
        "build@ci-2   \033[33m   ░░░██████\033[m  10m00s    exit 3\n"),
    ROW({&instant}, {.width = 100},
        "last runs (░ waited, █ held) of k\n"
        "BY       2026-11-20 12:00:00                            2026-11-20 12:00:00  HELD  "
        "WAITED  OUTCOME\n"
        "someone  ▌                                                                   0s    "
        "        timed out\n"),
    ROW({&instant, &day_later}, {.width = 80, .ascii = true},
        "last runs (- waited, # held) of k\n"
        "BY       2026-11-20 12:00              2026-11-21 12:00  HELD  WAITED  OUTCOME\n"
        "someone  #                                               0s            timed out\n"
        "\\x1b                                                  #  1ms           -\n"),
    ROW({&instant, &day_later}, {.width = 40, .ascii = true},
        "last runs (- waited, # held) of k\n"
        "BY       11-20  11-21  HELD    OUTCOME\n"
        "someone  #             0s      timed out\n"
        "\\x1b                #  1ms     -\n"),
    ROW({&absurd, &first}, {.width = 60, .ascii = true},
        "last runs (- waited, # held) of k\n"
        "BY               -----     11-20  HELD       WAITED  OUTCOME\n"
        "someone          #                53376d00h  5ms     -\n"
        "build@ci-1 (ma~                #  10m00s             exit 0\n"),
};

int main(void)
{
    setenv("TZ", "UTC", 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct past_run runs[2] = {{"k", rows[i].runs[0]}, {"k", rows[i].runs[1]}};
        struct strbuf out = {0};
        char what[40];
        timeline_print(&out, "k", runs, rows[i].runs[1] ? 2 : 1, &rows[i].style);
        char *text = strbuf_detach(&out);
        snprintf(what, sizeof what, "row %zu, %d columns", i, rows[i].style.width);
        if (!tap_ok(strcmp(text, rows[i].wanted) == 0, "%s", what))
            for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
                tap_note("%s", line);
        free(text);
    }
    return tap_done();
}
