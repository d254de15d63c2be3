#include "cli/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "cli/describe.h"

#define NOT_UTF8 "\xef\xbf\xbd" /* U+FFFD */

/* The value of a lock that a family tells. */
enum sample {
    HOLDERS,
    KEPT,
    PAUSED, /* of GLOBs, too */
    RESERVED,
    LIMIT,
    WAITERS,
    COUNTER,
    /* These are times, in ms: */
    HELD,
    WAIT,
    WAITED,
    LAST_ENDS, /* several, with the outcome */
};

struct family {
    const char *name, *type, *help;
    enum sample sample;
    size_t counter; /* which number of struct lock_memory it is */
};

/* The text that grows, and the family whose samples are being added. */
struct sheet {
    struct strbuf *out;
    const struct family *family;
    bool headed; /* the family's HELP and TYPE are there: once, and not without a sample */
};

/* -- samples ----------------------------------------------------------------------------------- */

/* Adds the value of a label, escaped as Prometheus wants it. */
static void put_quoted(struct strbuf *out, const char *text)
{
    strbuf_putc(out, '"');
    for (const char *next = text; *next; text = next) {
        if (utf8_next(&next) == UTF8_INVALID)
            strbuf_puts(out, NOT_UTF8);
        else if (*text == '\n')
            strbuf_puts(out, "\\n");
        else
            strbuf_printf(out, "%s%.*s", *text == '\\' || *text == '"' ? "\\" : "",
                          (int)(next - text), text);
    }
    strbuf_putc(out, '"');
}

/* Prints the start of a line, up to the value. label: what view->key is, "key" or "glob"; outcome:
 * the value of another label, or NULL. */
static void begin_sample(struct sheet *sheet, const char *label, const struct lock_view *view,
                         const char *outcome)
{
    const struct family *family = sheet->family;

    if (!sheet->headed)
        strbuf_printf(sheet->out, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help,
                      family->name, family->type);
    sheet->headed = true;
    strbuf_printf(sheet->out, "%s{%s=", family->name, label);
    put_quoted(sheet->out, view->key);
    if (outcome) {
        strbuf_puts(sheet->out, ",outcome=");
        put_quoted(sheet->out, outcome);
    }
    strbuf_puts(sheet->out, "} ");
}

/* Adds a sample of the sheet's family: a number, or a time in ms as seconds. If a clock was set
 * back, a time is 0, not negative. */
static void add_value(struct sheet *sheet, const struct lock_view *lock, const char *outcome,
                      int64_t value)
{
    begin_sample(sheet, "key", lock, outcome);
    if (sheet->family->sample < HELD) { /* a number */
        strbuf_printf(sheet->out, "%" PRId64 "\n", value);
        return;
    }
    value = value > 0 ? value : 0;
    strbuf_printf(sheet->out, "%" PRId64 ".%03d\n", value / 1000, (int)(value % 1000));
}

/* -- families ---------------------------------------------------------------------------------- */

#define NO_SAMPLE INT64_MIN

/* How many places are kept by --at-least; those that nest have the place of another. */
static int64_t count_kept(const struct lock_view *lock)
{
    int64_t kept = 0;

    for (size_t i = 0; i < lock->holder_count; i++)
        kept += lock->holders[i].kept && !holder_is_nested(lock, &lock->holders[i]);
    return kept;
}

/* Returns the age of "oldest" in ms. If it is NULL: 0, or NO_SAMPLE if one of the parties may not
 * be read. */
static int64_t age_of(const struct lock_party *oldest, const struct lock_party *parties,
                      size_t count)
{
    bool unread = false;

    for (size_t i = 0; i < count; i++)
        unread |= parties[i].unread;
    return oldest ? oldest->age_ms : unread ? NO_SAMPLE : 0;
}

/* Returns the value of a family's sample for that lock; NO_SAMPLE: it has none, or several
 * (add_last_ends()). */
static int64_t value_of(const struct family *family, const struct lock_view *lock)
{
    const struct lock_party *last;
    int64_t count;

    switch (family->sample) {
    case HOLDERS: return (int64_t)holders_count(lock, &last);
    case KEPT: return count_kept(lock);
    case PAUSED: return lock->pause.owner[0] != '\0';
    case RESERVED: return holders_reserved(lock) != NULL;
    case LIMIT: return lock->limited ? lock->stored_limit : lock->limit ? lock->limit : NO_SAMPLE;
    case WAITERS: return (int64_t)lock->waiter_count;
    case COUNTER:
        memcpy(&count, (const char *)&lock->memory + family->counter, sizeof count);
        return count;
    case HELD: return age_of(holders_oldest(lock), lock->holders, lock->holder_count);
    case WAIT: return age_of(waiters_oldest(lock), lock->waiters, lock->waiter_count);
    case WAITED: return lock->memory.waited_ms;
    case LAST_ENDS: break;
    }
    return NO_SAMPLE;
}

/* Adds when the latest run of each outcome ended, of those that there were. */
static void add_last_ends(struct sheet *sheet, const struct lock_view *lock)
{
    const struct lock_memory *memory = &lock->memory;
    const struct {
        const char *outcome;
        int64_t at_ms;
    } ends[] = {{"success", memory->success_ended_ms},    {"failure", memory->failed.last_ms},
                {"timed_out", memory->timed_out.last_ms}, {"lost", memory->lost.last_ms},
                {"expired", memory->expired.last_ms},     {"revoked", memory->revoked.last_ms}};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends[i].at_ms > 0)
            add_value(sheet, lock, ends[i].outcome, ends[i].at_ms);
}

#define COUNT_OF(member) COUNTER, offsetof(struct lock_memory, member)

static const struct family families[] = {
    {"rlock_holders", "gauge", "Holders of the lock, without those that nest in another.", HOLDERS,
     0},
    {"rlock_kept", "gauge", "Holders whose command has ended, kept by --at-least.", KEPT, 0},
    {"rlock_paused", "gauge", "1 while no new owner is let in, by rlock pause.", PAUSED, 0},
    {"rlock_reserved", "gauge", "1 while the lock is reserved for a person, by rlock reserve.",
     RESERVED, 0},
    {"rlock_limit", "gauge", "How many may hold the semaphore at once.", LIMIT, 0},
    {"rlock_held_seconds", "gauge",
     "How long the oldest holder with a command has held the lock; 0 if there is none.", HELD, 0},
    {"rlock_waiters", "gauge", "How many wait for the lock.", WAITERS, 0},
    {"rlock_wait_seconds", "gauge", "How long the oldest waiter has waited; 0 if there is none.",
     WAIT, 0},
    /* Only stores with a memory have the rest. */
    {"rlock_last_end_timestamp_seconds", "gauge", "When a run last ended so.", LAST_ENDS, 0},
    {"rlock_acquired_total", "counter", "Acquisitions of the lock.", COUNT_OF(acquired)},
    {"rlock_refused_total", "counter", "Requests that ended without the lock.",
     COUNT_OF(refused.count)},
    {"rlock_timed_out_total", "counter", "Runs whose command was stopped when its time was up.",
     COUNT_OF(timed_out.count)},
    {"rlock_lost_total", "counter", "Runs that lost the lock.", COUNT_OF(lost.count)},
    {"rlock_expired_total", "counter", "Holders that disappeared without releasing the lock.",
     COUNT_OF(expired.count)},
    {"rlock_revoked_total", "counter", "Holders that the lock was taken from.",
     COUNT_OF(revoked.count)},
    {"rlock_waited_seconds_total", "counter", "How long those have waited whose runs have ended.",
     WAITED, 0},
};

void metrics_render(struct strbuf *out, const struct lock_list *locks, bool memory)
{
    strbuf_printf(out,
                  "# HELP rlock_up Whether the lock store has answered.\n"
                  "# TYPE rlock_up gauge\n"
                  "rlock_up %d\n",
                  locks != NULL);
    for (size_t f = 0; locks && f < sizeof families / sizeof *families; f++) {
        struct sheet sheet = {out, &families[f], false};
        if (families[f].sample == LAST_ENDS && !memory)
            break; /* it is the first of those that need a memory */
        for (size_t i = 0; i < locks->locks.count; i++) {
            int64_t value = value_of(sheet.family, &locks->locks.views[i]);
            if (sheet.family->sample == LAST_ENDS)
                add_last_ends(&sheet, &locks->locks.views[i]);
            else if (value != NO_SAMPLE)
                add_value(&sheet, &locks->locks.views[i], NULL, value);
        }
        for (size_t i = 0; families[f].sample == PAUSED && i < locks->pauses.count; i++) {
            begin_sample(&sheet, "glob", &locks->pauses.views[i], NULL);
            strbuf_puts(out, "1\n");
        }
    }
    strbuf_puts(out, "# EOF\n");
}
