/* Locks and latches, as text for people and as JSON for programs. */
#include "cli/render.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/mem.h"
#include "lock/owner.h"

enum {
    COLUMN_KEY,
    COLUMN_MODE,
    COLUMN_HELD,
    COLUMN_AGE,
    COLUMN_LEASE,
    COLUMN_WAITERS,
    COLUMN_LABEL, /* where there is room */
    COLUMNS
};

#define ELLIPSIS      "\xe2\x80\xa6"
#define LABEL_LEAST   8  /* columns; the start of a label says nothing in fewer */
#define CELL_LEAST    8  /* of a KEY or an owner that is cut */
#define KEY_FAIR      16 /* of a key that is cut to leave room for its holder */
#define HOST_FAIR     12 /* of a host that is cut */
#define OUTCOME_FAIR  16 /* of the end of a run, which may have a reason */
#define OUTCOME_LEAST 7  /* as long as its title */

/* Words the state of a lock: "free", "reserved", "exclusive", "shared", "limit 3", "limit" where
 * that is not known; then perhaps ", paused" or ", grace". Returns "out". */
static const char *lock_state(const struct lock_view *lock, char out[32])
{
    const char *paused = lock->pause.owner[0] ? ", paused" : lock->grace_ms > 0 ? ", grace" : "";

    if (holders_reserved(lock))
        snprintf(out, 32, "reserved%s", paused);
    else if (lock->holder_count && lock->limit)
        snprintf(out, 32, "limit %u%s", lock->limit, paused);
    else
        snprintf(out, 32, "%s%s", lock->holder_count ? lock_mode_name(lock->mode) : "free", paused);
    return out;
}

void render_line(struct strbuf *out, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    strbuf_vescape(out, format, values);
    va_end(values);
    strbuf_putc(out, '\n');
}

/* Prints "grants nothing until 21:51:07 (for 25s more)". Returns "out". */
static char *print_grace(const struct lock_view *lock, char out[DESCRIBE_DECISION_SIZE])
{
    int64_t now_ms = clock_wall() / NS_PER_MS;
    char until[DESCRIBE_TIME_SIZE];

    snprintf(out, DESCRIBE_DECISION_SIZE, "grants nothing until %s (for %s more)",
             describe_daytime(now_ms, now_ms + lock->grace_ms, DESCRIBE_SECOND, until),
             MS_TEXT(lock->grace_ms));
    return out;
}

/* Returns the text of the last column, which may be in "out": the pause, or else the grace, or else
 * the label of the only holder, or "-". */
static const char *note_of(const struct lock_view *lock, char out[DESCRIBE_DECISION_SIZE])
{
    const struct lock_party *holder;

    if (lock->pause.owner[0])
        return describe_pause(lock, out);
    if (lock->grace_ms > 0)
        return print_grace(lock, out);
    return holders_count(lock, &holder) == 1 && holder->who.label[0] ? holder->who.label : "-";
}

/* Adds the row of a lock. Several holders have it since the first came, until the last lease
 * ends. */
static void add_row(struct table *table, const struct lock_view *lock, bool color)
{
    struct table_row *row = table_add(table);
    char note[DESCRIBE_DECISION_SIZE], state[32];
    const struct lock_party *outer;
    size_t holders = holders_count(lock, &outer);
    int64_t age = 0, left = 0;
    bool has_times = false;

    for (size_t i = 0; i < lock->holder_count; i++) {
        has_times |= !lock->holders[i].unread;
        age = lock->holders[i].age_ms > age ? lock->holders[i].age_ms : age;
        left = lock->holders[i].left_ms > left ? lock->holders[i].left_ms : left;
    }
    row->color = !color ? NULL : holders ? TABLE_YELLOW : TABLE_GREEN;
    table_set(row, COLUMN_KEY, "%s", lock->key);
    table_set(row, COLUMN_MODE, "%s", lock_state(lock, state));
    if (holders == 1 && outer->kept)
        table_set(row, COLUMN_HELD, "%s", KEPT_TEXT(outer));
    else if (holders == 1)
        table_set(row, COLUMN_HELD, "%s", PARTY_TEXT(&outer->who));
    else
        table_set(row, COLUMN_HELD, "%zu", holders);
    table_set(row, COLUMN_AGE, "-");
    table_set(row, COLUMN_LEASE, "-");
    if (has_times) {
        table_set_duration(row, COLUMN_AGE, age);
        table_set_duration(row, COLUMN_LEASE, left);
    }
    table_set(row, COLUMN_WAITERS, "%zu", lock->waiter_count);
    table_set(row, COLUMN_LABEL, "%s", note_of(lock, note));
}

/* Returns the width of a line of the table of locks without the label. */
static int width_without_label(const struct table *table)
{
    return table_line_width(table, COLUMN_LABEL);
}

/* Returns the width of a column, but "fair" at most: so much it keeps where room is scarce. */
static int fair_width(const struct table *table, size_t column, int fair)
{
    int width = table_width(table, column);

    return width < fair ? width : fair;
}

/* Returns how many characters are spared if the column is cut to fair_width(). */
static int spared_by(const struct table *table, size_t column, int fair)
{
    return table_width(table, column) - fair_width(table, column, fair);
}

/* Shortens the cell of an owner that is wider than "room" columns: to user and host, then to the
 * host, and then cuts it. */
static void shorten_party(struct table_row *row, size_t column, const struct identity *who,
                          int room)
{
    if (who->host[0] && (int)utf8_width(row->cells[column]) > room)
        table_set(row, column, "%s@%s", who->user, who->host);
    if (who->host[0] && (int)utf8_width(row->cells[column]) > room)
        table_set(row, column, "%s", who->host);
    table_cut(row, column, room > CELL_LEAST ? room : CELL_LEAST, ELLIPSIS);
}

/* Shortens holders that make the lines longer than the screen: to their user and host, or to their
 * host; a holder that is kept loses how its command ended. Keys and hosts that will be cut keep a
 * fair part. */
static void shorten_holders(struct table *table, const struct lock_view *locks, int width)
{
    const struct lock_party *holder;

    int rest = width_without_label(table) - table_width(table, COLUMN_KEY);
    int fair = fair_width(table, COLUMN_KEY, KEY_FAIR);
    int room = width - (rest - table_width(table, COLUMN_HELD)) - fair; /* for holders */

    for (size_t i = TABLE_FIRST; rest + fair > width && i < table->count; i++) {
        struct table_row *row = &table->rows[i];
        size_t holders = holders_count(&locks[i - TABLE_FIRST], &holder);
        if ((int)utf8_width(row->cells[COLUMN_HELD]) <= room)
            continue;
        if (holders == 1 && holder->kept)
            row->cells[COLUMN_HELD][strcspn(row->cells[COLUMN_HELD], ";")] = '\0';
        else if (holders == 1)
            shorten_party(row, COLUMN_HELD, &holder->who, room);
    }
}

/* Cuts the KEYs in that column, so that a line of the first so many columns has the width. */
static void cut_keys(struct table *table, size_t column, size_t columns, int width)
{
    int room = width - (table_line_width(table, columns) - table_width(table, column));

    for (size_t i = TABLE_FIRST; i < table->count; i++)
        table_cut_middle(&table->rows[i], column, room > CELL_LEAST ? room : CELL_LEAST, ELLIPSIS);
}

/* Cuts labels to the room that is left. Hides their column if there are none, or none would be
 * seen. */
static void fit_labels(struct table *table, int width)
{
    int room = width - width_without_label(table) - TABLE_GAP;
    bool any = false;

    for (size_t i = TABLE_FIRST; i < table->count; i++)
        any |= strcmp(table->rows[i].cells[COLUMN_LABEL], "-") != 0;
    if (!any || (width > 0 && room < LABEL_LEAST))
        table->columns = COLUMN_LABEL;
    for (size_t i = TABLE_FIRST; i < table->count && width > 0; i++)
        table_cut(&table->rows[i], COLUMN_LABEL, room, ELLIPSIS);
}

void render_table(struct strbuf *out, const struct lock_view *locks, size_t count,
                  const struct render_style *style)
{
    static const char *const titles[COLUMNS] = {"KEY",   "MODE",    "HOLDERS", "AGE",
                                                "LEASE", "WAITERS", "LABEL"};
    struct table table ENDED_BY(table_free) = {.columns = COLUMNS, .colored = COLUMN_MODE};

    table_add_titles(&table, titles);
    for (size_t i = 0; i < count; i++)
        add_row(&table, &locks[i], style->color);
    if (style->width > 0) {
        /* Hides the lease, and then the mode, if a fair part of the key and of the holder would
         * have no room beside them. */
        static const size_t least[] = {COLUMN_LEASE, COLUMN_MODE};
        int spared =
            spared_by(&table, COLUMN_KEY, KEY_FAIR) + spared_by(&table, COLUMN_HELD, HOST_FAIR);
        for (size_t i = 0; i < 2 && width_without_label(&table) - spared > style->width; i++)
            table.hidden[least[i]] = true;
        shorten_holders(&table, locks, style->width);
        cut_keys(&table, COLUMN_KEY, COLUMN_LABEL, style->width);
    }
    fit_labels(&table, style->width);
    table_print(out, &table);
}

/* A member of a holder, a waiter or a run. */
#define MEMBER "    %-11s "

static void print_label(struct strbuf *out, const struct identity *who)
{
    if (who->label[0])
        render_line(out, MEMBER "%s", "label", who->label);
}

/* Prints the version of rlock, the owner and the time. */
static void print_origin(struct strbuf *out, const struct lock_party *party)
{
    if (party->who.version[0])
        render_line(out, MEMBER "%s", "rlock", party->who.version);
    render_line(out, MEMBER "%s", "owner", party->owner);
    if (party->unread)
        render_line(out, MEMBER "-", "since");
    else
        render_line(out, MEMBER "%s (%s ago)", "since", UTC_TEXT(party->since_ms),
                    MS_TEXT(party->age_ms));
}

/* Prints a holder in full. One that could not be read (unread) shows a '-' for
 * each unknown value. */
static void print_holder(struct strbuf *out, const struct lock_view *lock,
                         const struct lock_party *holder)
{
    const char *who = PARTY_TEXT(&holder->who);

    if (holder->kept) {
        render_line(out, "  %s", KEPT_TEXT(holder));
        render_line(out, MEMBER "%s", "by", who);
    } else if (holder->reserved) {
        render_line(out, "  %s", DECISION_TEXT(holder, "reserved"));
    } else {
        render_line(out, "  %s      %s", holder_is_nested(lock, holder) ? "nested" : "holder", who);
    }
    if (!holder->reserved)
        print_label(out, &holder->who);
    print_origin(out, holder);
    if (holder->waited_ms > 0)
        render_line(out, MEMBER "%s", "waited", MS_TEXT(holder->waited_ms));
    render_line(out, MEMBER "%s", "lease left", holder->unread ? "-" : MS_TEXT(holder->left_ms));
    if (holder->revoked.known)
        render_line(out, MEMBER "%s%s; it is asked to release it", "revoked",
                    UTC_TEXT(holder->revoked.asked_ms), REVOCATION_TEXT(&holder->revoked));
    if (holder->mode != lock->mode)
        render_line(out, MEMBER "%s", "mode", lock_mode_name(holder->mode));
    if (holder->slot)
        render_line(out, MEMBER "%u", "slot", holder->slot);
    render_line(out, MEMBER "%u", "count", holder->count);
    if (holder->unread)
        render_line(out, MEMBER "-", "fence");
    else
        render_line(out, MEMBER "%" PRIu64, "fence", holder->fence);
}

static void print_waiter(struct strbuf *out, const struct lock_party *waiter, size_t position)
{
    strbuf_escape(out, "  waiter %-4zu %s, %s", position, PARTY_TEXT(&waiter->who),
                  lock_mode_name(waiter->mode));
    if (waiter->priority)
        strbuf_printf(out, ", priority %d", waiter->priority);
    if (waiter->take)
        strbuf_printf(out, ", any %u of %u", waiter->take, waiter->of);
    strbuf_putc(out, '\n');
    print_label(out, &waiter->who);
    print_origin(out, waiter);
}

static void print_last_run(struct strbuf *out, const struct lock_run *run)
{
    const char *outcome = OUTCOME_TEXT(&run->by.end);

    render_line(out, "  last run by %s", PARTY_TEXT(&run->by.who));
    print_label(out, &run->by.who);
    render_line(out, MEMBER "%s, for %s", "since", UTC_TEXT(run->by.since_ms),
                MS_TEXT(run->held_ms));
    if (*outcome)
        render_line(out, MEMBER "%s%s", "outcome", outcome, REVOCATION_TEXT(&run->by.revoked));
}

void render_long(struct strbuf *out, const struct lock_view *locks, size_t count,
                 const struct render_style *style)
{
    for (size_t i = 0; i < count; i++) {
        const struct lock_view *lock = &locks[i];
        const char *color = !style->color ? "" : lock->holder_count ? TABLE_YELLOW : TABLE_GREEN;
        char state[32], grace[DESCRIBE_DECISION_SIZE];

        strbuf_puts(out, i ? "\n" : "");
        strbuf_escape(out, "%s", lock->key);
        strbuf_printf(out, ": %s%s%s, %zu waiting", color, lock_state(lock, state),
                      style->color ? TABLE_PLAIN : "", lock->waiter_count);
        if (lock->fence)
            strbuf_printf(out, ", last fence %" PRIu64, lock->fence);
        strbuf_putc(out, '\n');
        if (lock->pause.owner[0])
            render_line(out, "  %s", PAUSE_TEXT(lock));
        if (lock->grace_ms > 0)
            render_line(out, "  grace: %s", print_grace(lock, grace));
        if (lock->limited)
            strbuf_printf(out, "  limit %u, which is stored\n", lock->stored_limit);
        for (size_t h = 0; h < lock->holder_count; h++)
            print_holder(out, lock, &lock->holders[h]);
        for (size_t w = 0; w < lock->waiter_count; w++)
            print_waiter(out, &lock->waiters[w], w + 1);
        if (lock->holder_count == 0 && lock->run_count)
            print_last_run(out, &lock->runs[lock->run_count - 1]);
    }
}

/* Puts since when the party is there into the object. If a clock was set back, its age is 0, not
 * negative. */
static void put_since(json_t *object, const struct lock_party *party)
{
    json_put_text(object, "since", party->unread ? NULL : UTC_TEXT(party->since_ms));
    json_put_known(object, "age_ms", party->age_ms > 0 ? party->age_ms : 0, !party->unread);
}

/* Puts who it is into the object, as far as that is known. */
static void put_identity(json_t *object, const struct identity *who)
{
    json_put_text(object, "host", who->host);
    json_put_text(object, "user", who->user);
    json_put_known(object, "pid", who->pid, who->pid);
    json_put_text(object, "command", who->command);
    json_put_text(object, "label", who->label);
    json_put_text(object, "version", who->version);
}

/* Puts when and by whom the holder was asked to release the lock into the object, or null. */
static void put_asked(json_t *object, const struct lock_party *holder)
{
    if (!holder->revoked.known) {
        json_put_text(object, "revoked", NULL);
        return;
    }
    json_t *revoked = jansson.object();
    json_put_text(revoked, "since", UTC_TEXT(holder->revoked.asked_ms));
    json_put_text(revoked, "by", holder->revoked.by);
    json_put_text(revoked, "reason", holder->revoked.why);
    jansson.object_set_new(object, "revoked", revoked);
}

/* Makes the object of a holder. Members that are not known are null. The caller owns it. */
static json_t *holder_object(const struct lock_party *holder)
{
    json_t *object = jansson.object();

    json_put_text(object, "owner", holder->owner);
    put_identity(object, &holder->who);
    json_put_text(object, "mode", lock_mode_name(holder->mode));
    json_put_number(object, "count", holder->count);
    json_put_known(object, "slot", holder->slot, holder->slot);
    json_put_known(object, "fence", (json_int_t)holder->fence, !holder->unread);
    put_since(object, holder);
    json_put_known(object, "waited_ms", holder->waited_ms, !holder->unread);
    json_put_known(object, "lease_left_ms", holder->left_ms, !holder->unread);
    json_put_bool(object, "kept", holder->kept);
    json_put_bool(object, "reserved", holder->reserved);
    put_asked(object, holder);
    return object;
}

/* Makes the object of a waiter. position: in the whole queue, from 1. The caller owns it. */
static json_t *waiter_object(const struct lock_party *waiter, size_t position)
{
    json_t *object = jansson.object(), *any = waiter->take ? jansson.object() : jansson.null();

    if (waiter->take) { /* the number of KEYs that it wants, and of how many */
        json_put_number(any, "take", waiter->take);
        json_put_number(any, "of", waiter->of);
    }
    json_put_text(object, "owner", waiter->owner);
    json_put_number(object, "position", (json_int_t)position);
    json_put_text(object, "mode", lock_mode_name(waiter->mode));
    jansson.object_set_new(object, "any", any);
    put_identity(object, &waiter->who);
    put_since(object, waiter);
    return object;
}

void render_run_members(json_t *object, const struct lock_party *by, int64_t held_ms)
{
    put_identity(object, &by->who);
    json_put_text(object, "since", UTC_TEXT(by->since_ms));
    json_put_number(object, "waited_ms", by->waited_ms);
    json_put_known(object, "held_ms", held_ms, held_ms >= 0);
    json_put_known(object, "fence", (json_int_t)by->fence, by->fence);
    json_put_text(object, "outcome", held_ms >= 0 ? OUTCOME_TEXT(&by->end) : NULL);
    if (by->revoked.known && held_ms >= 0) {
        json_put_text(object, "revoked_by", by->revoked.by);
        json_put_text(object, "reason", by->revoked.why);
    }
}

void render_result_members(json_t *object, const struct lock_party *by)
{
    const struct lock_end *end = &by->end;
    bool ran_command = !by->reserved && !owner_is_acquired(by->owner);

    json_put_text(object, "result", ran_command ? run_result(end) : NULL);
    json_put_known(object, "exit_status", end->status, end->known && !end->signal);
    json_put_text(object, "signal", end->known && end->signal ? SIGNAL_TEXT(end->signal) : NULL);
}

/* Makes the object of a pause or a reservation. The caller owns it. */
static json_t *decision_object(const struct lock_party *by)
{
    json_t *object = jansson.object();
    char who[2 * IDENTITY_WORD_MAX + 2] = "";

    if (by->who.user[0] || by->who.host[0])
        snprintf(who, sizeof who, "%s@%s", by->who.user, by->who.host);
    json_put_text(object, "by", who);
    json_put_text(object, "host", by->who.host);
    json_put_text(object, "user", by->who.user);
    json_put_text(object, "since", UTC_TEXT(by->since_ms));
    json_put_text(object, "until", UTC_TEXT(by->since_ms + by->age_ms + by->left_ms));
    json_put_number(object, "left_ms", by->left_ms);
    json_put_text(object, "reason", by->who.label);
    return object;
}

/* Puts the pause into the object, null if there is none. glob: that of a GLOB, or NULL. */
static void put_pause(json_t *object, const struct lock_party *by, const char *glob)
{
    if (!by->owner[0]) {
        json_put_text(object, "paused", NULL);
        return;
    }
    json_t *pause = decision_object(by);
    json_put_text(pause, "glob", glob);
    jansson.object_set_new(object, "paused", pause);
}

/* Makes the object of the pause of a GLOB, which stands among the locks: it may hit KEYs that were
 * never used. The caller owns it. */
static json_t *glob_object(const struct lock_view *pause)
{
    static const char *const unknown[] = {"key",   "mode",          "limit",    "stored_limit",
                                          "fence", "grace_left_ms", "reserved", "last_run"};
    json_t *object = jansson.object();

    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        json_put_text(object, unknown[i], NULL);
    json_put_text(object, "glob", pause->key);
    put_pause(object, &pause->pause, pause->key);
    jansson.object_set_new(object, "holders", jansson.array());
    jansson.object_set_new(object, "waiters", jansson.array());
    return object;
}

/* Makes the object of a lock in status --json; docs/stability.md lists its members. The
 * caller owns it. */
static json_t *lock_object(const struct lock_view *lock)
{
    json_t *object = jansson.object();
    json_t *holders = jansson.array();
    json_t *waiters = jansson.array();
    json_t *last_run = lock->run_count ? jansson.object() : jansson.null();
    const struct lock_party *reserved = holders_reserved(lock);

    json_put_text(object, "key", lock->key);
    json_put_text(object, "mode", lock->holder_count ? lock_mode_name(lock->mode) : NULL);
    json_put_known(object, "limit", lock->limit, lock->holder_count && lock->limit);
    json_put_known(object, "stored_limit", lock->stored_limit, lock->limited);
    put_pause(object, &lock->pause, lock->pause_glob);
    jansson.object_set_new(object, "reserved",
                           reserved ? decision_object(reserved) : jansson.null());
    json_put_known(object, "grace_left_ms", lock->grace_ms, lock->grace_ms > 0);
    json_put_known(object, "fence", (json_int_t)lock->fence, lock->fence);
    for (size_t i = 0; i < lock->holder_count; i++)
        jansson.array_append_new(holders, holder_object(&lock->holders[i]));
    for (size_t i = 0; i < lock->waiter_count; i++)
        jansson.array_append_new(waiters, waiter_object(&lock->waiters[i], i + 1));
    jansson.object_set_new(object, "holders", holders);
    jansson.object_set_new(object, "waiters", waiters);
    if (lock->run_count) {
        const struct lock_run *last = &lock->runs[lock->run_count - 1];
        render_run_members(last_run, &last->by, last->held_ms);
        render_result_members(last_run, &last->by);
    }
    jansson.object_set_new(object, "last_run", last_run);
    return object;
}

void render_json(struct strbuf *out, const struct lock_views *locks,
                 const struct lock_views *pauses)
{
    json_t *array = jansson.array();

    for (size_t i = 0; i < locks->count; i++)
        jansson.array_append_new(array, lock_object(&locks->views[i]));
    for (size_t i = 0; i < pauses->count; i++)
        jansson.array_append_new(array, glob_object(&pauses->views[i]));
    json_write(out, array);
}

/* -- former runs ------------------------------------------------------------------------------- */

enum { RUN_SINCE, RUN_KEY, RUN_BY, RUN_WAITED, RUN_HELD, RUN_OUTCOME, RUN_COLUMNS };

/* For qsort(): the order in which the lock was acquired, whatever clocks did. */
static int by_fence(const void *a, const void *b)
{
    const struct lock_party *left = &((const struct past_run *)a)->run->by,
                            *right = &((const struct past_run *)b)->run->by;

    if (left->fence != right->fence)
        return left->fence < right->fence ? -1 : 1;
    return (left->since_ms > right->since_ms) - (left->since_ms < right->since_ms);
}

/* For qsort(): runs of several locks, by their times, which past_runs_collect() has set in the
 * order of the fences; at one time, by lock and fence. */
static int by_time(const void *a, const void *b)
{
    const struct past_run *left = a, *right = b;
    int keys = strcmp(left->key, right->key);

    if (left->order_ms != right->order_ms)
        return left->order_ms < right->order_ms ? -1 : 1;
    return keys ? keys : by_fence(a, b);
}

/* The fencing tokens tell the order of the runs of one key; those that nest share one. Where a
 * store has no clock of its own, the times are by the clocks of several hosts. */
struct past_run *past_runs_collect(const struct lock_views *locks, size_t *count)
{
    struct past_run *runs;
    size_t room = 1; /* some memory where there are no runs, too */

    for (size_t i = 0; i < locks->count; i++)
        room += locks->views[i].run_count;
    runs = mem_zeroed(room * sizeof *runs);
    *count = 0;
    for (size_t i = 0; i < locks->count; i++) {
        const struct lock_view *lock = &locks->views[i];
        struct past_run *own = runs + *count;
        int64_t latest_ms = 0;
        for (size_t n = 0; n < lock->run_count; n++)
            runs[(*count)++] = (struct past_run){.key = lock->key, .run = &lock->runs[n]};
        qsort(own, lock->run_count, sizeof *own, by_fence);
        /* A run began no sooner than those before it, though another clock may say so. */
        for (size_t n = 0; n < lock->run_count; n++) {
            int64_t since_ms = own[n].run->by.since_ms;
            latest_ms = since_ms > latest_ms ? since_ms : latest_ms;
            own[n].order_ms = latest_ms;
        }
    }
    qsort(runs, *count, sizeof *runs, by_time);
    return runs;
}

void render_run_end(struct table_row *row, size_t column, const struct lock_run *run, bool color)
{
    const char *outcome = OUTCOME_TEXT(&run->by.end);

    row->color = !color ? NULL : run_has_failed(&run->by.end) ? TABLE_YELLOW : TABLE_GREEN;
    if (*outcome)
        table_set(row, column, "%s%s", outcome, REVOCATION_TEXT(&run->by.revoked));
    else
        table_set(row, column, "-");
}

/* Makes a table of runs narrower where the window has no room even for cells that are cut as far as
 * they may be: shortens the time to "11-20 08:15", and then hides for how long the lock was
 * held. */
static void narrow_runs(struct table *table, int width)
{
    int spared = spared_by(table, RUN_KEY, CELL_LEAST) + spared_by(table, RUN_BY, CELL_LEAST) +
                 spared_by(table, RUN_OUTCOME, OUTCOME_LEAST);

    if (table_line_width(table, RUN_COLUMNS) - spared <= width)
        return;
    for (size_t i = TABLE_FIRST; i < table->count; i++) {
        const char *year_end = strchr(table->rows[i].cells[RUN_SINCE], '-');
        if (year_end)
            table_set(&table->rows[i], RUN_SINCE, "%.*s",
                      (int)(strrchr(year_end, ':') - year_end - 1), year_end + 1);
    }
    table->hidden[RUN_HELD] = table_line_width(table, RUN_COLUMNS) - spared > width;
}

/* Fits the rows into the width. How a run ended is cut to a fair part, who it was is shortened to
 * the host, and keys are cut, without the wait if need be; the rest goes to how it ended. */
static void fit_runs(struct table *table, const struct past_run *runs, int width)
{
    int outcomes = fair_width(table, RUN_OUTCOME, OUTCOME_FAIR);
    int others = width - TABLE_GAP - outcomes; /* for all columns but that one */
    /* By cut keys and shortened owners so much is spared. */
    int spared = spared_by(table, RUN_KEY, KEY_FAIR) + spared_by(table, RUN_BY, HOST_FAIR);

    table->hidden[RUN_WAITED] = table_line_width(table, RUN_OUTCOME) - spared > others;
    narrow_runs(table, width);
    /* The width of a line with cut keys, without the owner and how it ended. */
    int rest = table_line_width(table, RUN_OUTCOME) - spared_by(table, RUN_KEY, KEY_FAIR) -
               table_width(table, RUN_BY);
    for (size_t i = TABLE_FIRST; i < table->count; i++)
        shorten_party(&table->rows[i], RUN_BY, &runs[i - TABLE_FIRST].run->by.who, others - rest);
    cut_keys(table, RUN_KEY, RUN_OUTCOME, others);
    outcomes = width - TABLE_GAP - table_line_width(table, RUN_OUTCOME);
    for (size_t i = TABLE_FIRST; i < table->count; i++)
        table_cut(&table->rows[i], RUN_OUTCOME, outcomes > OUTCOME_LEAST ? outcomes : OUTCOME_LEAST,
                  ELLIPSIS);
}

void render_history(struct strbuf *out, const struct past_run *runs, size_t count,
                    const struct render_style *style)
{
    static const char *const titles[RUN_COLUMNS] = {"SINCE",  "KEY",  "BY",
                                                    "WAITED", "HELD", "OUTCOME"};
    struct table table ENDED_BY(table_free) = {.columns = RUN_COLUMNS, .colored = RUN_OUTCOME};

    table_add_titles(&table, titles);
    for (size_t i = 0; i < count; i++) {
        struct table_row *row = table_add(&table);
        const struct lock_run *run = runs[i].run;
        table_set(row, RUN_SINCE, "%s", LOCAL_TEXT(run->by.since_ms));
        table_set(row, RUN_KEY, "%s", runs[i].key);
        table_set(row, RUN_BY, "%s", PARTY_TEXT(&run->by.who));
        table_set_duration(row, RUN_WAITED, run->by.waited_ms);
        table_set_duration(row, RUN_HELD, run->held_ms);
        render_run_end(row, RUN_OUTCOME, run, style->color);
    }
    if (style->width > 0)
        fit_runs(&table, runs, style->width);
    table_print(out, &table);
}

void render_history_json(struct strbuf *out, const struct past_run *runs, size_t count)
{
    json_t *array = jansson.array();

    for (size_t i = 0; i < count; i++) {
        json_t *object = jansson.object();
        json_put_text(object, "key", runs[i].key);
        render_run_members(object, &runs[i].run->by, runs[i].run->held_ms);
        render_result_members(object, &runs[i].run->by);
        jansson.array_append_new(array, object);
    }
    json_write(out, array);
}
