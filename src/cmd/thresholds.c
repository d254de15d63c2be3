/* Compares a survey with limits, and writes one line about the worst locks. It reads the survey and
 * the limits, and changes nothing else. To add a measure, edit enum measure (thresholds.h), its
 * option in check.c, and value_of() and the names here. */
#include "cmd/thresholds.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/decimal.h"
#include "base/duration.h"
#include "base/mem.h"
#include "cli/render.h"

#define SHOWN_MAX     3 /* problems, and globs that match nothing; of the rest, the number */
#define WAITERS_LIMIT INT64_C(1000000000)
#define NEVER         INT64_MAX /* the value of a time that no run has ended; above every limit */

static bool is_time(enum measure measure)
{
    return measure != MEASURE_WAITERS;
}

/* -- measures ---------------------------------------------------------------------------------- */

/* ms; 0: there is no such party. */
static int64_t age_of(const struct lock_party *party)
{
    return party && party->age_ms > 0 ? party->age_ms : 0;
}

/* For how many ms a lock has been paused: since the first of the pauses that hold for it began. If
 * a GLOB was paused by then, that GLOB is judged itself, and only the lock's own pause counts
 * here. */
static int64_t paused_for(const struct lock_view *lock, const struct lock_views *globs)
{
    int64_t now_ms = lock->pause.since_ms + lock->pause.age_ms;
    int64_t first_ms = now_ms - lock->paused_ms;
    bool by_glob = false;

    for (size_t i = 0; i < globs->count; i++)
        by_glob |= globs->views[i].pause.since_ms <= first_ms;
    if (lock->paused_ms > 0 && !by_glob)
        return lock->paused_ms;
    return lock_has_own_pause(lock) ? age_of(&lock->pause) : 0;
}

/* Returns the measure of a lock: ms, or a number; or NEVER. A run whose end is not known did not
 * succeed. */
static int64_t value_of(enum measure measure, const struct lock_view *lock,
                        const struct lock_views *globs)
{
    switch (measure) {
    case MEASURE_HELD: return age_of(holders_oldest(lock));
    case MEASURE_WAITING: return age_of(waiters_oldest(lock));
    case MEASURE_WAITERS: return (int64_t)lock->waiter_count;
    case MEASURE_NOT_DONE:
        return lock->memory.success_ended_ms > 0 ? lock->memory.success_ago_ms : NEVER;
    case MEASURE_PAUSED: return paused_for(lock, globs);
    case MEASURES: break;
    }
    return 0;
}

/* -- reading ----------------------------------------------------------------------------------- */

/* Reads one limit of a threshold into *limit: a duration, as ms, or a number. False: the text is
 * none. */
static bool read_limit(enum measure measure, const char *text, int64_t *limit)
{
    if (!is_time(measure))
        return decimal_parse(text, 0, WAITERS_LIMIT, limit);
    if (!duration_parse(text, limit))
        return false;
    *limit /= NS_PER_MS;
    return true;
}

const char *threshold_parse(enum measure measure, const char *text, struct threshold *threshold)
{
    const char *colon = strchr(text, ':');
    char *warning FREED = mem_checked(strndup(text, colon ? (size_t)(colon - text) : strlen(text)));

    threshold->given = read_limit(measure, warning, &threshold->warning) &&
                       read_limit(measure, colon ? colon + 1 : warning, &threshold->critical);
    if (!threshold->given)
        return is_time(measure)
                   ? duration_fault(text, "is not a duration (such as 30m), or two as WARN:CRIT")
                   : "is not a number, or two as WARN:CRIT";
    return threshold->warning > threshold->critical ? "warns later than it is critical" : NULL;
}

/* -- judging ----------------------------------------------------------------------------------- */

/* One lock above one threshold. */
struct problem {
    enum severity severity;
    const struct lock_view *lock;
    enum measure measure;
    int64_t value; /* in its unit */
};

struct problems {
    struct problem *list;
    size_t count;
};

/* Adds a problem if that measure of the lock is above its threshold. */
static void judge_one(struct problems *problems, const struct threshold *thresholds,
                      enum measure measure, const struct lock_view *lock,
                      const struct lock_views *globs)
{
    int64_t value = value_of(measure, lock, globs);
    enum severity severity = !thresholds[measure].given || value <= thresholds[measure].warning
                                 ? SEVERITY_OK
                             : value > thresholds[measure].critical ? SEVERITY_CRITICAL
                                                                    : SEVERITY_WARNING;

    if (severity != SEVERITY_OK)
        problems->list[problems->count++] = (struct problem){severity, lock, measure, value};
}

/* For qsort(): The worst first; of the same measure, the largest. */
static int by_severity(const void *a, const void *b)
{
    const struct problem *left = a, *right = b;

    if (left->severity != right->severity)
        return left->severity > right->severity ? -1 : 1;
    if (left->measure != right->measure)
        return left->measure < right->measure ? -1 : 1;
    if (left->value != right->value)
        return left->value > right->value ? -1 : 1;
    return strcmp(left->lock->key, right->lock->key);
}

/* Returns the largest value of that measure among all locks and pauses. */
static int64_t largest_of(enum measure measure, const struct thresholds_subject *subject)
{
    int64_t largest = 0;

    for (size_t i = 0; measure == MEASURE_PAUSED && i < subject->pauses.count; i++) {
        int64_t age = age_of(&subject->pauses.views[i].pause);
        largest = age > largest ? age : largest;
    }
    for (size_t i = 0; i < subject->locks.count; i++) {
        int64_t value = value_of(measure, &subject->locks.views[i], &subject->pauses);
        largest = value > largest ? value : largest;
    }
    return largest;
}

/* -- the line ---------------------------------------------------------------------------------- */

/* Prints a value: ms as a duration, or a number. Returns "out". */
static const char *print_value(enum measure measure, int64_t value, char out[32])
{
    if (value == NEVER)
        return strcpy(out, "?");
    if (is_time(measure))
        return duration_print(value * NS_PER_MS, out, 32);
    snprintf(out, 32, "%" PRId64, value);
    return out;
}

#define VALUE_TEXT(measure, value) print_value(measure, value, (char[32]){""})

/* Prints "RLOCK SEVERITY - " and the text, escaped. The numbers will follow a bar, so a bar in what
 * others wrote becomes an escape, too. */
static void begin_line(enum severity severity, const char *text, struct strbuf *line)
{
    static const char *const names[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
    struct strbuf shown ENDED_BY(strbuf_free) = {0};

    strbuf_printf(line, "RLOCK %s - ", names[severity]);
    strbuf_escape(&shown, "%s", text);
    for (const char *c = shown.text; *c; c++)
        if (*c == '|')
            strbuf_puts(line, "\\x7c");
        else
            strbuf_putc(line, *c);
}

/* Appends "held for 2h05m by build@ci-2 pid 4121 (deploy.sh)", or the like for other measures. */
static void add_value(struct strbuf *line, const struct problem *problem)
{
    const char *value = VALUE_TEXT(problem->measure, problem->value);
    const struct lock_view *lock = problem->lock;
    const struct lock_party *oldest = /* of the first two measures */
        problem->measure == MEASURE_HELD ? holders_oldest(lock) : waiters_oldest(lock);

    switch (problem->measure) {
    case MEASURE_HELD:
        strbuf_printf(line, "%s for %s by %s", oldest->reserved ? "reserved" : "held", value,
                      PARTY_TEXT(&oldest->who));
        break;
    case MEASURE_WAITING:
        strbuf_printf(line, "%s has waited for %s", PARTY_TEXT(&oldest->who), value);
        break;
    case MEASURE_WAITERS:
        strbuf_printf(line, "%s %s", value, lock->waiter_count == 1 ? "waits" : "wait");
        break;
    case MEASURE_NOT_DONE: strbuf_printf(line, "no success for %s", value); break;
    case MEASURE_PAUSED: strbuf_printf(line, "paused for %s", value); break;
    case MEASURES: break;
    }
}

/* Appends "deploy: held for 2h05m by build@ci-2 pid 4121 (deploy.sh), more than 1h00m", and what
 * helps to understand it. */
static void add_problem(struct strbuf *line, const struct problem *problem,
                        const struct threshold *thresholds)
{
    const struct threshold *threshold = &thresholds[problem->measure];
    bool critical = problem->severity == SEVERITY_CRITICAL;
    const struct lock_view *lock = problem->lock;

    strbuf_printf(line, "%s: ", lock->key);
    if (problem->value == NEVER) {
        strbuf_puts(line, "no success is remembered");
    } else {
        add_value(line, problem);
        strbuf_printf(
            line, ", more than %s",
            VALUE_TEXT(problem->measure, critical ? threshold->critical : threshold->warning));
    }
    if (problem->measure == MEASURE_NOT_DONE) {
        const struct lock_run *last = lock->run_count ? &lock->runs[lock->run_count - 1] : NULL;
        const char *outcome = last ? OUTCOME_TEXT(&last->by.end) : "";
        if (lock->pause.owner[0])
            strbuf_printf(line, ", paused by %s", PARTY_TEXT(&lock->pause.who));
        if (last)
            strbuf_printf(line, " (last run: %s, %s ago, by %s)", *outcome ? outcome : "ended",
                          MS_TEXT(last->ended_ago_ms), PARTY_TEXT(&last->by.who));
    } else if (problem->measure == MEASURE_PAUSED) {
        strbuf_printf(line, ": %s", PAUSE_TEXT(lock));
    } else if (problem->measure == MEASURE_HELD && holders_oldest(lock)->reserved) {
        strbuf_printf(line, ": %s", holders_oldest(lock)->who.label);
    }
}

/* Numbers of a survey. A GLOB's pause counts whatever the GLOB matches. */
struct counts {
    size_t held, waiting, paused;
};

/* Counts the locks that are held, those who wait, and the pauses, of all locks together. Each GLOB
 * that is paused counts once, and so does each lock that is paused without them. */
static struct counts count_all(const struct thresholds_subject *subject)
{
    struct counts counts = {.paused = subject->pauses.count};

    for (size_t i = 0; i < subject->locks.count; i++) {
        counts.held += subject->locks.views[i].holder_count > 0;
        counts.waiting += subject->locks.views[i].waiter_count;
        counts.paused += lock_has_own_pause(&subject->locks.views[i]) ||
                         paused_for(&subject->locks.views[i], &subject->pauses) > 0;
    }
    return counts;
}

/* Appends the GLOBs that match no lock: "; nothing matches x-*, y-*". */
static void add_idle_globs(struct strbuf *line, const struct thresholds_subject *subject)
{
    size_t idle = 0;

    for (size_t i = 0; i < subject->pattern_count; i++) {
        const char *pattern = subject->patterns[i];
        if (!key_is_glob(pattern) || lock_views_match(&subject->locks, pattern))
            continue;
        idle++;
        if (idle <= SHOWN_MAX)
            strbuf_printf(line, "%s%s", idle == 1 ? "; nothing matches " : ", ", pattern);
    }
    if (idle > SHOWN_MAX)
        strbuf_printf(line, " and %zu more", idle - SHOWN_MAX);
}

/* Appends what a line without problems says: how many locks are held, waited for and paused. */
static void add_summary(struct strbuf *line, const struct threshold *thresholds,
                        const struct thresholds_subject *subject)
{
    struct counts counts = count_all(subject);

    if (counts.held == 0)
        strbuf_puts(line, "no lock is held");
    else
        strbuf_printf(line, "%zu lock%s held", counts.held, counts.held == 1 ? "" : "s");
    if (counts.waiting > 0)
        strbuf_printf(line, ", %zu waiting", counts.waiting);
    if (counts.paused > 0)
        strbuf_printf(line, ", %zu paused", counts.paused);
    if (thresholds[MEASURE_NOT_DONE].given && subject->locks.count > 0)
        strbuf_printf(line, ", last success %s%s ago", subject->locks.count > 1 ? "up to " : "",
                      VALUE_TEXT(MEASURE_NOT_DONE, largest_of(MEASURE_NOT_DONE, subject)));
}

/* -- the numbers ------------------------------------------------------------------------------- */

/* Appends a value: ms as seconds, or a number. */
static void add_number(struct strbuf *line, enum measure measure, int64_t value)
{
    strbuf_printf(line, "%" PRId64, is_time(measure) ? value / 1000 : value);
    if (is_time(measure) && value % 1000)
        strbuf_printf(line, ".%03d", (int)(value % 1000));
}

/* Appends the largest value that any lock has, with the limits, in the form of such plugins:
 * "held=41.250s;1800;3600;0". There, "U" stands for a value that is not known. */
static void add_largest(struct strbuf *line, enum measure measure,
                        const struct threshold *threshold, int64_t largest)
{
    static const char *const names[MEASURES] = {"held", "waiting", "waiters", "not_done", "paused"};

    strbuf_printf(line, " %s=", names[measure]);
    if (largest == NEVER)
        strbuf_puts(line, "U");
    else
        add_number(line, measure, largest);
    strbuf_puts(line, is_time(measure) && largest != NEVER ? "s;" : ";");
    if (threshold->given)
        add_number(line, measure, threshold->warning);
    strbuf_puts(line, ";");
    if (threshold->given)
        add_number(line, measure, threshold->critical);
    strbuf_puts(line, ";0");
}

/* Adds the numbers for graphs to the line. If it is too long with them, it loses of its text. */
static void add_numbers(struct strbuf *line, const struct threshold thresholds[MEASURES],
                        const struct thresholds_subject *subject)
{
    struct strbuf numbers ENDED_BY(strbuf_free) = {0};

    strbuf_printf(&numbers, " | locks=%zu", count_all(subject).held);
    /* The success and the pauses are read from the store only if they are asked for. */
    for (enum measure i = 0; i < MEASURES; i++)
        if (i < MEASURE_NOT_DONE || thresholds[i].given)
            add_largest(&numbers, i, &thresholds[i], largest_of(i, subject));
    size_t room = THRESHOLDS_LINE_SIZE - 1 - numbers.size;
    if (line->size > room) { /* cut in front of a whole character */
        while (room > 0 && ((unsigned char)line->text[room] & 0xc0U) == 0x80)
            room--;
        strbuf_cut(line, room);
    }
    strbuf_puts(line, numbers.text);
}

enum severity thresholds_judge(const struct threshold thresholds[MEASURES],
                               const struct thresholds_subject *subject, struct strbuf *line)
{
    size_t most = (subject->locks.count + subject->pauses.count + 1) * MEASURES;
    struct problem *list FREED = mem_zeroed(most * sizeof *list);
    struct problems problems = {.list = list};
    struct strbuf text ENDED_BY(strbuf_free) = {0};

    for (size_t i = 0; i < subject->locks.count; i++)
        for (enum measure measure = 0; measure < MEASURES; measure++)
            judge_one(&problems, thresholds, measure, &subject->locks.views[i], &subject->pauses);
    for (size_t i = 0; i < subject->pauses.count; i++)
        judge_one(&problems, thresholds, MEASURE_PAUSED, &subject->pauses.views[i],
                  &subject->pauses);
    qsort(problems.list, problems.count, sizeof *problems.list, by_severity);
    enum severity severity = problems.count > 0 ? problems.list[0].severity : SEVERITY_OK;
    for (size_t i = 0; i < problems.count && i < SHOWN_MAX; i++) {
        strbuf_puts(&text, i ? "; " : "");
        add_problem(&text, &problems.list[i], thresholds);
    }
    if (problems.count > SHOWN_MAX)
        strbuf_printf(&text, "; and %zu more", problems.count - SHOWN_MAX);
    if (problems.count == 0)
        add_summary(&text, thresholds, subject);
    add_idle_globs(&text, subject);
    begin_line(severity, text.text, line);
    add_numbers(line, thresholds, subject);
    return severity;
}

enum severity thresholds_unknown(const char *why, struct strbuf *line)
{
    begin_line(SEVERITY_UNKNOWN, why, line);
    return SEVERITY_UNKNOWN;
}
