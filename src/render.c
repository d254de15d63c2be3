/* Locks as text for people. */
#include "render.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "duration.h"
#include "key.h"
#include "mem.h"
#include "owner.h"
#include "utf8.h"

#define COLUMNS     6
#define COLUMN_MODE 1
#define COLUMN_HELD 2
#define GAP         2

#define GREEN  "\033[32m"
#define YELLOW "\033[33m"
#define PLAIN  "\033[m"

struct row {
    char *cells[COLUMNS];
    size_t holders;
};

/* "free", "exclusive", "shared", "limit 3". */
static const char *lock_state(const struct lock_view *lock, char out[32])
{
    if (lock->holder_count && lock->mode == LOCK_LIMIT)
        snprintf(out, 32, "limit %u", lock->limit);
    else
        snprintf(out, 32, "%s", lock->holder_count ? lock_mode_name(lock->mode) : "free");
    return out;
}

static bool is_nested(const struct lock_view *lock, const struct lock_party *holder)
{
    for (size_t i = 0; strchr(holder->owner, '.') && i < lock->holder_count; i++)
        if (owner_nests_in(holder->owner, lock->holders[i].owner))
            return true;
    return false;
}

char *render_party(const struct identity *who, char *out, size_t size)
{
    char user[UTF8_ESCAPED_SIZE(IDENTITY_WORD_MAX)], host[sizeof user], command[sizeof user];
    char pid[32] = "";

    utf8_escape(who->user, user, sizeof user);
    utf8_escape(who->host, host, sizeof host);
    utf8_escape(who->command, command, sizeof command);
    if (who->pid)
        snprintf(pid, sizeof pid, " pid %ld", who->pid);
    snprintf(out, size, "%s%s%s%s%s%s%s", user[0] || host[0] ? user : "someone", host[0] ? "@" : "",
             host, pid, command[0] ? " (" : "", command, command[0] ? ")" : "");
    return out;
}

char *render_time(int64_t ms, char out[32])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    char day[24];

    if (!gmtime_r(&seconds, &tm) || !strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm))
        strcpy(day, "?");
    snprintf(out, 32, "%s.%03dZ", day, (int)(ms % 1000));
    return out;
}

static char *cell(const char *text)
{
    return mem_strdup(text);
}

static char *duration_cell(int64_t ms)
{
    char text[32];
    return cell(duration_print(ms * NS_PER_MS, text, sizeof text));
}

static char *number_cell(size_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", number);
    return cell(text);
}

/* Of several holders: held since the first came, until the last lease ends. Those that nest in another
 * hold it with that one. */
static void fill_row(struct row *row, const struct lock_view *lock)
{
    char text[RENDER_PARTY_SIZE], state[32];
    const struct lock_party *outer = NULL;
    int64_t age = 0, left = 0;

    for (size_t i = 0; i < lock->holder_count; i++) {
        if (!is_nested(lock, &lock->holders[i])) {
            outer = &lock->holders[i];
            row->holders++;
        }
        age = lock->holders[i].age_ms > age ? lock->holders[i].age_ms : age;
        left = lock->holders[i].left_ms > left ? lock->holders[i].left_ms : left;
    }
    row->cells[0] = cell(utf8_escape(lock->key, text, sizeof text));
    row->cells[1] = cell(lock_state(lock, state));
    row->cells[2] = row->holders == 1 ? cell(render_party(&outer->who, text, sizeof text))
                                      : number_cell(row->holders);
    row->cells[3] = row->holders ? duration_cell(age) : cell("-");
    row->cells[4] = row->holders ? duration_cell(left) : cell("-");
    row->cells[5] = number_cell(lock->waiter_count);
}

static void measure(const struct row *rows, size_t count, int widths[COLUMNS])
{
    memset(widths, 0, COLUMNS * sizeof *widths);
    for (size_t i = 0; i < count; i++) {
        for (size_t c = 0; c < COLUMNS; c++) {
            int width = (int)utf8_length(rows[i].cells[c]);
            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
}

/* Holders that make the lines longer than the screen become the number of holders. */
static void shorten(struct row *rows, size_t count, int widths[COLUMNS], int width)
{
    int total = (COLUMNS - 1) * GAP;

    for (size_t c = 0; c < COLUMNS; c++)
        total += widths[c];
    if (width == 0 || total <= width)
        return;
    int room = widths[COLUMN_HELD] - (total - width);
    for (size_t i = 1; i < count; i++) {
        char **held = &rows[i].cells[COLUMN_HELD];
        if (rows[i].holders == 1 && (int)utf8_length(*held) > room) {
            free(*held);
            *held = number_cell(1);
        }
    }
    measure(rows, count, widths);
}

static void print_row(FILE *out, const struct row *row, const int widths[COLUMNS], bool color)
{
    for (size_t c = 0; c < COLUMNS; c++) {
        const char *text = row->cells[c];
        int gap = c + 1 < COLUMNS ? widths[c] - (int)utf8_length(text) + GAP : 0;
        if (color && c == COLUMN_MODE)
            fprintf(out, "%s%s" PLAIN "%*s", row->holders ? YELLOW : GREEN, text, gap, "");
        else
            fprintf(out, "%s%*s", text, gap, "");
    }
    fputc('\n', out);
}

void render_table(FILE *out, const struct lock_view *locks, size_t count,
                  const struct render_style *style)
{
    static const char *const titles[COLUMNS] = {"KEY", "MODE",  "HOLDERS",
                                                "AGE", "LEASE", "WAITERS"};
    struct row *rows = mem_zeroed((count + 1) * sizeof *rows);
    int widths[COLUMNS];

    for (size_t c = 0; c < COLUMNS; c++)
        rows[0].cells[c] = cell(titles[c]);
    for (size_t i = 0; i < count; i++)
        fill_row(&rows[i + 1], &locks[i]);
    measure(rows, count + 1, widths);
    shorten(rows, count + 1, widths, style->width);
    for (size_t i = 0; i <= count; i++) {
        print_row(out, &rows[i], widths, style->color && i > 0);
        for (size_t c = 0; c < COLUMNS; c++)
            free(rows[i].cells[c]);
    }
    free(rows);
}

static void print_label(FILE *out, const struct identity *who, const char *indent)
{
    char text[UTF8_ESCAPED_SIZE(IDENTITY_WORD_MAX)];

    if (who->label[0])
        fprintf(out, "%slabel       %s\n", indent, utf8_escape(who->label, text, sizeof text));
}

static void print_since(FILE *out, const struct lock_party *party)
{
    char time[32], age[32];

    duration_print(party->age_ms * NS_PER_MS, age, sizeof age);
    fprintf(out, "    since       %s (%s ago)\n", render_time(party->since_ms, time), age);
}

static void print_holder(FILE *out, const struct lock_view *lock, const struct lock_party *holder)
{
    char text[RENDER_PARTY_SIZE], owner[UTF8_ESCAPED_SIZE(OWNER_SIZE)], left[32];

    fprintf(out, "  %s      %s\n", is_nested(lock, holder) ? "nested" : "holder",
            render_party(&holder->who, text, sizeof text));
    print_label(out, &holder->who, "    ");
    fprintf(out, "    owner       %s\n", utf8_escape(holder->owner, owner, sizeof owner));
    print_since(out, holder);
    fprintf(out, "    lease left  %s\n",
            duration_print(holder->left_ms * NS_PER_MS, left, sizeof left));
    if (holder->mode != lock->mode)
        fprintf(out, "    mode        %s\n", lock_mode_name(holder->mode));
    if (holder->slot)
        fprintf(out, "    slot        %u\n", holder->slot);
    fprintf(out, "    count       %u\n", holder->count);
    fprintf(out, "    fence       %" PRIu64 "\n", holder->fence);
}

static void print_waiter(FILE *out, const struct lock_party *waiter, size_t position)
{
    char text[RENDER_PARTY_SIZE], owner[UTF8_ESCAPED_SIZE(OWNER_SIZE)];

    fprintf(out, "  waiter %-4zu %s, %s\n", position, render_party(&waiter->who, text, sizeof text),
            lock_mode_name(waiter->mode));
    print_label(out, &waiter->who, "    ");
    fprintf(out, "    owner       %s\n", utf8_escape(waiter->owner, owner, sizeof owner));
    print_since(out, waiter);
}

void render_long(FILE *out, const struct lock_view *locks, size_t count,
                 const struct render_style *style)
{
    for (size_t i = 0; i < count; i++) {
        const struct lock_view *lock = &locks[i];
        const char *color = !style->color ? "" : lock->holder_count ? YELLOW : GREEN;
        char key[UTF8_ESCAPED_SIZE(KEY_MAX_BYTES)], state[32];

        fprintf(out, "%s%s: %s%s%s", i ? "\n" : "", utf8_escape(lock->key, key, sizeof key), color,
                lock_state(lock, state), style->color ? PLAIN : "");
        fprintf(out, ", %zu waiting", lock->waiter_count);
        if (lock->fence)
            fprintf(out, ", last fence %" PRIu64, lock->fence);
        fputc('\n', out);
        for (size_t h = 0; h < lock->holder_count; h++)
            print_holder(out, lock, &lock->holders[h]);
        for (size_t w = 0; w < lock->waiter_count; w++)
            print_waiter(out, &lock->waiters[w], w + 1);
    }
}
