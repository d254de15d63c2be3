/* Locks held against limits. */
#include "cmd/thresholds.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/decimal.h"
#include "base/duration.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cli/describe.h"
#include "cli/render.h"
#include "lock/key.h"

#define SHOWN_MAX     3 /* problems, and globs that match nothing; of the others, their number */
#define PROBLEM_SIZE  (2 * RENDER_PARTY_SIZE + 200)
#define NUMBERS_SIZE  256
#define WAITERS_LIMIT INT64_C(1000000000)
#define NEVER         INT64_MAX

/* -- reading ----------------------------------------------------------------------------------- */

typedef bool read_limit(const char *text, int64_t *limit);

static bool read_duration(const char *text, int64_t *ms)
{
    int64_t ns;

    if (!duration_parse(text, &ns))
        return false;
    *ms = ns / NS_PER_MS;
    return true;
}

static bool read_number(const char *text, int64_t *number)
{
    return decimal_parse(text, 0, WAITERS_LIMIT, number);
}

static bool parse(const char *text, read_limit *read, struct threshold *threshold)
{
    const char *colon = strchr(text, ':');
    char *warning = mem_checked(strndup(text, colon ? (size_t)(colon - text) : strlen(text)));
    bool fine = read(warning, &threshold->warning) &&
                read(colon ? colon + 1 : warning, &threshold->critical);

    free(warning);
    threshold->given = fine;
    return fine;
}

static const char *fault_of(const struct threshold *threshold)
{
    return threshold->warning > threshold->critical ? "warns later than it is critical" : NULL;
}

const char *threshold_parse_duration(const char *text, struct threshold *threshold)
{
    if (!parse(text, read_duration, threshold))
        return "is not a duration (such as 30m), or two as WARN:CRIT";
    return fault_of(threshold);
}

const char *threshold_parse_number(const char *text, struct threshold *threshold)
{
    if (!parse(text, read_number, threshold))
        return "is not a number, or two as WARN:CRIT";
    return fault_of(threshold);
}

/* -- judging ----------------------------------------------------------------------------------- */

/* One lock beyond one threshold. */
struct problem {
    enum severity severity;
    const struct lock_view *lock;
    int kind;      /* which threshold */
    int64_t value; /* in its unit */
};

struct problems {
    struct problem *list;
    size_t count;
};

/* What can be measured of a lock, and said of it. */
struct measure {
    const char *name; /* of its number, behind the bar */
    bool is_time;
    int64_t (*value)(const struct lock_view *lock); /* NEVER: larger than any */
    /* limit: the one that the value is beyond */
    void (*describe)(const struct lock_view *lock, const char *value, const char *limit, char *out,
                     size_t size);
};

static int64_t age_of(const struct lock_party *party)
{
    return party && party->age_ms > 0 ? party->age_ms : 0;
}

static int64_t held_ms(const struct lock_view *lock)
{
    return age_of(holders_oldest(lock));
}

static int64_t waiting_ms(const struct lock_view *lock)
{
    return age_of(waiters_oldest(lock));
}

static int64_t waiter_count(const struct lock_view *lock)
{
    return (int64_t)lock->waiter_count;
}

/* An rlock that does not tell how a run ended has not said that it succeeded. */
static int64_t not_done_ms(const struct lock_view *lock)
{
    return lock->memory.success_ended_ms > 0 ? lock->memory.success_ago_ms : NEVER;
}

/* That of a GLOB counts where the GLOB is judged. */
static int64_t paused_ms(const struct lock_view *lock)
{
    return lock_has_own_pause(lock) ? age_of(&lock->pause) : 0;
}

static void describe_held(const struct lock_view *lock, const char *value, const char *limit,
                          char *out, size_t size)
{
    char who[RENDER_PARTY_SIZE];

    snprintf(out, size, "%s for %s by %s, more than %s",
             holders_oldest(lock)->reserved ? "reserved" : "held", value,
             render_party(&holders_oldest(lock)->who, who, sizeof who), limit);
}

static void describe_waiting(const struct lock_view *lock, const char *value, const char *limit,
                             char *out, size_t size)
{
    char who[RENDER_PARTY_SIZE];

    snprintf(out, size, "%s has waited for %s, more than %s",
             render_party(&waiters_oldest(lock)->who, who, sizeof who), value, limit);
}

static void describe_waiters(const struct lock_view *lock, const char *value, const char *limit,
                             char *out, size_t size)
{
    snprintf(out, size, "%s %s, more than %s", value, lock->waiter_count == 1 ? "waits" : "wait",
             limit);
}

/* "no success for 1d03h, more than 1d02h (last run: exit 1, 3h00m ago, by root@ci-3)" */
static void describe_not_done(const struct lock_view *lock, const char *value, const char *limit,
                              char *out, size_t size)
{
    const struct lock_run *last = lock->run_count ? &lock->runs[lock->run_count - 1] : NULL;
    char who[RENDER_PARTY_SIZE], ago[32], outcome[DESCRIBE_OUTCOME_SIZE];

    if (not_done_ms(lock) == NEVER)
        snprintf(out, size, "no success is remembered");
    else
        snprintf(out, size, "no success for %s, more than %s", value, limit);
    if (lock->pause.owner[0])
        text_append(out, size, ", paused by %s", render_party(&lock->pause.who, who, sizeof who));
    if (!last)
        return;
    duration_print(last->ended_ago_ms * NS_PER_MS, ago, sizeof ago);
    describe_outcome(&last->by.end, outcome);
    text_append(out, size, " (last run: %s, %s ago, by %s)", *outcome ? outcome : "ended", ago,
                render_party(&last->by.who, who, sizeof who));
}

/* "paused for 3h00m, more than 2h00m: paused by ada@ada-pc until 21:51 (1h59m left): load test" */
static void describe_paused(const struct lock_view *lock, const char *value, const char *limit,
                            char *out, size_t size)
{
    char plain[DESCRIBE_DECISION_SIZE], text[UTF8_ESCAPED_SIZE(DESCRIBE_DECISION_SIZE)];

    describe_decision(&lock->pause, "paused", 0, plain, sizeof plain);
    snprintf(out, size, "paused for %s, more than %s: %s", value, limit,
             utf8_escape(plain, text, sizeof text));
}

enum { HELD, WAITING, WAITERS, NOT_DONE, PAUSED, MEASURES };

static const struct measure measures[MEASURES] = {
    [HELD] = {"held", true, held_ms, describe_held},
    [WAITING] = {"waiting", true, waiting_ms, describe_waiting},
    [WAITERS] = {"waiters", false, waiter_count, describe_waiters},
    [NOT_DONE] = {"not_done", true, not_done_ms, describe_not_done},
    [PAUSED] = {"paused", true, paused_ms, describe_paused},
};

static const struct threshold *threshold_of(const struct thresholds *thresholds, int kind)
{
    const struct threshold *const all[MEASURES] = {&thresholds->held, &thresholds->waiting,
                                                   &thresholds->waiters, &thresholds->not_done,
                                                   &thresholds->paused};
    return all[kind];
}

static enum severity judge(const struct threshold *threshold, int64_t value)
{
    return !threshold->given || value <= threshold->warning ? SEVERITY_OK
           : value > threshold->critical                    ? SEVERITY_CRITICAL
                                                            : SEVERITY_WARNING;
}

static void judge_one(struct problems *problems, const struct thresholds *thresholds, int kind,
                      const struct lock_view *lock)
{
    int64_t value = measures[kind].value(lock);
    enum severity severity = judge(threshold_of(thresholds, kind), value);

    if (severity != SEVERITY_OK)
        problems->list[problems->count++] = (struct problem){severity, lock, kind, value};
}

/* The worst first; of the same kind, the largest. */
static int by_severity(const void *a, const void *b)
{
    const struct problem *left = a, *right = b;

    if (left->severity != right->severity)
        return left->severity > right->severity ? -1 : 1;
    if (left->kind != right->kind)
        return left->kind - right->kind;
    if (left->value != right->value)
        return left->value > right->value ? -1 : 1;
    return strcmp(left->lock->key, right->lock->key);
}

static int64_t largest_of(int kind, const struct lock_view *locks, size_t count)
{
    int64_t largest = 0;

    for (size_t i = 0; i < count; i++) {
        int64_t value = measures[kind].value(&locks[i]);
        largest = value > largest ? value : largest;
    }
    return largest;
}

/* -- the line ---------------------------------------------------------------------------------- */

static const char *print_value(int kind, int64_t value, char out[32])
{
    if (value == NEVER)
        return strcpy(out, "?");
    if (measures[kind].is_time)
        return duration_print(value * NS_PER_MS, out, 32);
    snprintf(out, 32, "%" PRId64, value);
    return out;
}

static void begin(enum severity severity, char *line)
{
    static const char *const names[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};

    snprintf(line, THRESHOLDS_LINE_SIZE, "RLOCK %s - ", names[severity]);
}

/* In the line, a bar is followed by numbers: in what others wrote it becomes an escape, as control
 * characters do. */
static void add_text(char *line, const char *text)
{
    for (size_t length; *text; text += length) {
        length = strcspn(text, "|");
        text_append(line, THRESHOLDS_LINE_SIZE, "%.*s", (int)length, text);
        if (text[length] == '|') {
            text_append(line, THRESHOLDS_LINE_SIZE, "\\x7c");
            length++;
        }
    }
}

/* "deploy: held for 2h05m by build@ci-2 pid 4121 (deploy.sh), more than 1h00m" */
static void add_problem(char *line, const struct problem *problem,
                        const struct thresholds *thresholds)
{
    const struct threshold *threshold = threshold_of(thresholds, problem->kind);
    bool critical = problem->severity == SEVERITY_CRITICAL;
    char key[UTF8_ESCAPED_SIZE(KEY_MAX_BYTES)], value[32], limit[32], text[PROBLEM_SIZE];

    print_value(problem->kind, problem->value, value);
    print_value(problem->kind, critical ? threshold->critical : threshold->warning, limit);
    measures[problem->kind].describe(problem->lock, value, limit, text, sizeof text);
    add_text(line, utf8_escape(problem->lock->key, key, sizeof key));
    add_text(line, ": ");
    add_text(line, text);
}

static void add_problems(char *line, const struct problems *problems,
                         const struct thresholds *thresholds)
{
    for (size_t i = 0; i < problems->count && i < SHOWN_MAX; i++) {
        add_text(line, i ? "; " : "");
        add_problem(line, &problems->list[i], thresholds);
    }
    if (problems->count > SHOWN_MAX)
        text_append(line, THRESHOLDS_LINE_SIZE, "; and %zu more", problems->count - SHOWN_MAX);
}

static size_t count_held(const struct lock_view *locks, size_t count)
{
    size_t held = 0;

    for (size_t i = 0; i < count; i++)
        held += locks[i].holder_count > 0;
    return held;
}

static size_t count_waiting(const struct lock_view *locks, size_t count)
{
    size_t waiting = 0;

    for (size_t i = 0; i < count; i++)
        waiting += locks[i].waiter_count;
    return waiting;
}

/* KEYs, and GLOBs whatever they match. */
static size_t count_paused(const struct thresholds_subject *subject)
{
    size_t paused = subject->pause_count;

    for (size_t i = 0; i < subject->count; i++)
        paused += lock_has_own_pause(&subject->locks[i]);
    return paused;
}

static bool matches_any(const char *glob, const struct lock_view *locks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fnmatch(glob, locks[i].key, 0) == 0)
            return true;
    return false;
}

/* "; nothing matches x-*" */
static void add_idle_globs(char *line, const struct thresholds_subject *subject)
{
    size_t idle = 0;

    for (size_t i = 0; i < subject->pattern_count; i++) {
        const char *pattern = subject->patterns[i];
        char glob[UTF8_ESCAPED_SIZE(KEY_MAX_BYTES)];
        if (!key_is_glob(pattern) || matches_any(pattern, subject->locks, subject->count))
            continue;
        idle++;
        if (idle <= SHOWN_MAX) {
            add_text(line, idle == 1 ? "; nothing matches " : ", ");
            add_text(line, utf8_escape(pattern, glob, sizeof glob));
        }
    }
    if (idle > SHOWN_MAX)
        text_append(line, THRESHOLDS_LINE_SIZE, " and %zu more", idle - SHOWN_MAX);
}

/* Of locks within their limits. */
static void add_summary(char *line, const struct thresholds *thresholds,
                        const struct thresholds_subject *subject)
{
    const struct lock_view *locks = subject->locks;
    size_t count = subject->count;
    size_t held = count_held(locks, count), waiting = count_waiting(locks, count);
    size_t paused = count_paused(subject);
    char ago[32];

    if (held == 0)
        add_text(line, "no lock is held");
    else
        text_append(line, THRESHOLDS_LINE_SIZE, "%zu lock%s held", held, held == 1 ? "" : "s");
    if (waiting > 0)
        text_append(line, THRESHOLDS_LINE_SIZE, ", %zu waiting", waiting);
    if (paused > 0)
        text_append(line, THRESHOLDS_LINE_SIZE, ", %zu paused", paused);
    if (thresholds->not_done.given && count > 0)
        text_append(line, THRESHOLDS_LINE_SIZE, ", last success %s%s ago",
                    count > 1 ? "up to " : "",
                    print_value(NOT_DONE, largest_of(NOT_DONE, locks, count), ago));
}

/* -- the numbers ------------------------------------------------------------------------------- */

/* Seconds, or a number. */
static void add_number(char *line, const struct measure *measure, int64_t value)
{
    if (!measure->is_time)
        text_append(line, THRESHOLDS_LINE_SIZE, "%" PRId64, value);
    else if (value % 1000)
        text_append(line, THRESHOLDS_LINE_SIZE, "%" PRId64 ".%03d", value / 1000,
                    (int)(value % 1000));
    else
        text_append(line, THRESHOLDS_LINE_SIZE, "%" PRId64, value / 1000);
}

/* The largest that any lock has, with the limits: "held=41.250s;1800;3600;0". */
static void add_largest(char *line, int kind, const struct threshold *threshold,
                        const struct lock_view *locks, size_t count)
{
    const struct measure *measure = &measures[kind];
    int64_t largest = largest_of(kind, locks, count);

    text_append(line, THRESHOLDS_LINE_SIZE, " %s=", measure->name);
    if (largest == NEVER) {
        add_text(line, "U;"); /* which stands for a value that is not known */
    } else {
        add_number(line, measure, largest);
        add_text(line, measure->is_time ? "s;" : ";");
    }
    if (threshold->given)
        add_number(line, measure, threshold->warning);
    add_text(line, ";");
    if (threshold->given)
        add_number(line, measure, threshold->critical);
    add_text(line, ";0");
}

static void add_longest_pause(char *line, const struct thresholds *thresholds,
                              const struct thresholds_subject *subject)
{
    int64_t locks = largest_of(PAUSED, subject->locks, subject->count);
    int64_t globs = largest_of(PAUSED, subject->pauses, subject->pause_count);
    bool of_globs = globs > locks;

    add_largest(line, PAUSED, &thresholds->paused, of_globs ? subject->pauses : subject->locks,
                of_globs ? subject->pause_count : subject->count);
}

/* To so many bytes, between characters. */
static void cut(char *line, size_t room)
{
    if (strlen(line) <= room)
        return;
    while (room > 0 && ((unsigned char)line[room] & 0xc0U) == 0x80)
        room--;
    line[room] = '\0';
}

static void add_numbers(char *line, const struct thresholds *thresholds,
                        const struct thresholds_subject *subject)
{
    const struct lock_view *locks = subject->locks;
    size_t count = subject->count;
    char numbers[NUMBERS_SIZE] = "";

    /* What was not asked for is not known of all locks. */
    for (int kind = 0; kind < PAUSED; kind++)
        if (kind != NOT_DONE || thresholds->not_done.given)
            add_largest(numbers, kind, threshold_of(thresholds, kind), locks, count);
    if (thresholds->paused.given)
        add_longest_pause(numbers, thresholds, subject);
    /* A line that is too long loses of its text, not of these. */
    size_t room = THRESHOLDS_LINE_SIZE - strlen(numbers) - sizeof " | locks=18446744073709551615";
    cut(line, room);
    text_append(line, THRESHOLDS_LINE_SIZE, " | locks=%zu%s", count_held(locks, count), numbers);
}

enum severity thresholds_judge(const struct thresholds *thresholds,
                               const struct thresholds_subject *subject,
                               char line[THRESHOLDS_LINE_SIZE])
{
    size_t most = (subject->count + subject->pause_count + 1) * MEASURES;
    struct problems problems = {.list = mem_zeroed(most * sizeof(struct problem))};

    for (size_t i = 0; i < subject->count; i++)
        for (int kind = 0; kind < MEASURES; kind++)
            judge_one(&problems, thresholds, kind, &subject->locks[i]);
    for (size_t i = 0; i < subject->pause_count; i++)
        judge_one(&problems, thresholds, PAUSED, &subject->pauses[i]);
    qsort(problems.list, problems.count, sizeof *problems.list, by_severity);
    enum severity severity = problems.count > 0 ? problems.list[0].severity : SEVERITY_OK;
    begin(severity, line);
    if (problems.count > 0)
        add_problems(line, &problems, thresholds);
    else
        add_summary(line, thresholds, subject);
    add_idle_globs(line, subject);
    add_numbers(line, thresholds, subject);
    free(problems.list);
    return severity;
}

enum severity thresholds_unknown(const char *why, char line[THRESHOLDS_LINE_SIZE])
{
    begin(SEVERITY_UNKNOWN, line);
    add_text(line, why);
    return SEVERITY_UNKNOWN;
}
