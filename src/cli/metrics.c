#include "cli/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "cli/describe.h"

#define NOT_UTF8 "\xef\xbf\xbd" /* U+FFFD */

/* The text that grows, and the family whose samples are being added. */
struct sheet {
    struct strbuf *out;
    const struct family *family;
    bool headed; /* the family's HELP and TYPE are there: once, and not without a sample */
};

struct family {
    const char *name, *type, *help;
    /* Adds the samples of one lock, perhaps none. */
    void (*add)(struct sheet *sheet, const struct lock_view *lock);
    size_t counter; /* which number of struct lock_memory it is */
    void (*add_glob)(struct sheet *sheet, const struct lock_view *pause); /* NULL: no sample */
};

/* -- samples ----------------------------------------------------------------------------------- */

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

static void put_heading(struct strbuf *out, const struct family *family)
{
    strbuf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help, family->name,
                  family->type);
}

/* Prints the start of a line, up to the value. label: what view->key is, "key" or "glob"; outcome:
 * the value of another label, or NULL. */
static void begin_sample(struct sheet *sheet, const char *label, const struct lock_view *view,
                         const char *outcome)
{
    if (!sheet->headed)
        put_heading(sheet->out, sheet->family);
    sheet->headed = true;
    strbuf_printf(sheet->out, "%s{%s=", sheet->family->name, label);
    put_quoted(sheet->out, view->key);
    if (outcome) {
        strbuf_puts(sheet->out, ",outcome=");
        put_quoted(sheet->out, outcome);
    }
    strbuf_puts(sheet->out, "} ");
}

static void add_glob_pause(struct sheet *sheet, const struct lock_view *pause)
{
    begin_sample(sheet, "glob", pause, NULL);
    strbuf_puts(sheet->out, "1\n");
}

static void add_number(struct sheet *sheet, const struct lock_view *lock, int64_t number)
{
    begin_sample(sheet, "key", lock, NULL);
    strbuf_printf(sheet->out, "%" PRId64 "\n", number);
}

/* If a clock was set back, a time is 0, not negative. */
static void add_seconds(struct sheet *sheet, const struct lock_view *lock, const char *outcome,
                        int64_t ms)
{
    ms = ms > 0 ? ms : 0;
    begin_sample(sheet, "key", lock, outcome);
    strbuf_printf(sheet->out, "%" PRId64 ".%03d\n", ms / 1000, (int)(ms % 1000));
}

/* -- families ---------------------------------------------------------------------------------- */

static void add_holders(struct sheet *sheet, const struct lock_view *lock)
{
    const struct lock_party *last;

    add_number(sheet, lock, (int64_t)holders_count(lock, &last));
}

static void add_paused(struct sheet *sheet, const struct lock_view *lock)
{
    add_number(sheet, lock, lock->pause.owner[0] != '\0');
}

static void add_reserved(struct sheet *sheet, const struct lock_view *lock)
{
    add_number(sheet, lock, holders_reserved(lock) != NULL);
}

static void add_kept(struct sheet *sheet, const struct lock_view *lock)
{
    int64_t kept = 0;

    for (size_t i = 0; i < lock->holder_count; i++)
        kept += lock->holders[i].kept && !holder_is_nested(lock, &lock->holders[i]);
    add_number(sheet, lock, kept);
}

static void add_limit(struct sheet *sheet, const struct lock_view *lock)
{
    if (lock->limited || lock->limit > 0)
        add_number(sheet, lock, lock->limited ? lock->stored_limit : lock->limit);
}

/* There is no sample if the age of a party may not be read. */
static void add_oldest(struct sheet *sheet, const struct lock_view *lock,
                       const struct lock_party *oldest, const struct lock_party *parties,
                       size_t count)
{
    bool unread = false;

    for (size_t i = 0; i < count; i++)
        unread |= parties[i].unread;
    if (oldest || !unread)
        add_seconds(sheet, lock, NULL, oldest ? oldest->age_ms : 0);
}

static void add_held(struct sheet *sheet, const struct lock_view *lock)
{
    add_oldest(sheet, lock, holders_oldest(lock), lock->holders, lock->holder_count);
}

static void add_waiters(struct sheet *sheet, const struct lock_view *lock)
{
    add_number(sheet, lock, (int64_t)lock->waiter_count);
}

static void add_wait(struct sheet *sheet, const struct lock_view *lock)
{
    add_oldest(sheet, lock, waiters_oldest(lock), lock->waiters, lock->waiter_count);
}

static void add_counter(struct sheet *sheet, const struct lock_view *lock)
{
    int64_t count;

    memcpy(&count, (const char *)&lock->memory + sheet->family->counter, sizeof count);
    add_number(sheet, lock, count);
}

static void add_waited(struct sheet *sheet, const struct lock_view *lock)
{
    add_seconds(sheet, lock, NULL, lock->memory.waited_ms);
}

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
            add_seconds(sheet, lock, ends[i].outcome, ends[i].at_ms);
}

static const struct family up = {"rlock_up", "gauge", "Whether the lock store has answered.",
                                 .add = NULL};

static const struct family families[] = {
    {"rlock_holders", "gauge", "Holders of the lock, without those that nest in another.",
     add_holders, 0, NULL},
    {"rlock_kept", "gauge", "Holders whose command has ended, kept by --at-least.", add_kept, 0,
     NULL},
    {"rlock_paused", "gauge", "1 while no new owner is let in, by rlock pause.", add_paused, 0,
     add_glob_pause},
    {"rlock_reserved", "gauge", "1 while the lock is reserved for a person, by rlock reserve.",
     add_reserved, 0, NULL},
    {"rlock_limit", "gauge", "How many may hold the semaphore at once.", add_limit, 0, NULL},
    {"rlock_held_seconds", "gauge",
     "How long the oldest holder with a command has held the lock; 0 if there is none.", add_held,
     0, NULL},
    {"rlock_waiters", "gauge", "How many wait for the lock.", add_waiters, 0, NULL},
    {"rlock_wait_seconds", "gauge", "How long the oldest waiter has waited; 0 if there is none.",
     add_wait, 0, NULL},
};

#define COUNTER(member) add_counter, offsetof(struct lock_memory, member), NULL

/* Families of stores with a memory. */
static const struct family remembered[] = {
    {"rlock_last_end_timestamp_seconds", "gauge", "When a run last ended so.", add_last_ends, 0,
     NULL},
    {"rlock_acquired_total", "counter", "Acquisitions of the lock.", COUNTER(acquired)},
    {"rlock_refused_total", "counter", "Requests that ended without the lock.",
     COUNTER(refused.count)},
    {"rlock_timed_out_total", "counter", "Runs whose command was stopped when its time was up.",
     COUNTER(timed_out.count)},
    {"rlock_lost_total", "counter", "Runs that lost the lock.", COUNTER(lost.count)},
    {"rlock_expired_total", "counter", "Holders that disappeared without releasing the lock.",
     COUNTER(expired.count)},
    {"rlock_revoked_total", "counter", "Holders that the lock was taken from.",
     COUNTER(revoked.count)},
    {"rlock_waited_seconds_total", "counter", "How long those have waited whose runs have ended.",
     add_waited, 0, NULL},
};

static void add_families(struct strbuf *out, const struct lock_list *locks,
                         const struct family *list, size_t count)
{
    for (size_t f = 0; f < count; f++) {
        struct sheet sheet = {out, &list[f], false};
        for (size_t i = 0; i < locks->locks.count; i++)
            list[f].add(&sheet, &locks->locks.views[i]);
        for (size_t i = 0; list[f].add_glob && i < locks->pauses.count; i++)
            list[f].add_glob(&sheet, &locks->pauses.views[i]);
    }
}

void metrics_render(struct strbuf *out, const struct lock_list *locks, bool memory)
{
    put_heading(out, &up);
    strbuf_printf(out, "%s %d\n", up.name, locks != NULL);
    if (locks)
        add_families(out, locks, families, sizeof families / sizeof *families);
    if (locks && memory)
        add_families(out, locks, remembered, sizeof remembered / sizeof *remembered);
    strbuf_puts(out, "# EOF\n");
}
