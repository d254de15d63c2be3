#include "cli/timeline.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/mem.h"

enum { COLUMN_BY, COLUMN_LINE, COLUMN_HELD, COLUMN_WAITED, COLUMN_OUTCOME, COLUMNS };

#define LINE_LEAST    11 /* columns: two times of day, and a space between them */
#define BY_LEAST      8
#define OUTCOME_LEAST 9 /* "timed out" */
#define CELL_SIZE     4 /* bytes of a cell that is drawn, with its NUL */

/* The contents of a cell. Its halves show twice as many runs apart. */
struct glyphs {
    const char *held, *held_left, *held_right, *waited, *ellipsis;
};

static const struct glyphs blocks = {"\u2588", "\u258c", "\u2590", "\u2591", "\u2026"};
static const struct glyphs letters = {"#", "#", "#", "-", "~"};

static const struct glyphs *glyphs_of(const struct timeline_style *style)
{
    return style->ascii ? &letters : &blocks;
}

/* Returns what is wanted, but not less than the least. */
static int at_least(int least, int wanted)
{
    return wanted > least ? wanted : least;
}

/* -- time -------------------------------------------------------------------------------------- */

/* The time that the drawing covers, in ms since 1970. */
struct span {
    int64_t from, to;
};

/* Returns the time from when the first run began to wait until the last one ended. */
static struct span span_of(const struct past_run *runs, size_t count)
{
    struct span span = {INT64_MAX, INT64_MIN};

    for (size_t i = 0; i < count; i++) {
        const struct lock_run *run = runs[i].run;
        int64_t from = run->by.since_ms - run->by.waited_ms, to = run->by.since_ms + run->held_ms;
        span.from = from < span.from ? from : span.from;
        span.to = to > span.to ? to : span.to;
    }
    return span;
}

/* Returns in which of so many halves of cells a time falls, from 0; in the first or last if it is
 * outside of the span. */
static int half_of(const struct span *span, int64_t at_ms, int halves)
{
    double length = (double)span->to - (double)span->from;
    double half = ((double)at_ms - (double)span->from) * halves / (length > 0 ? length : 1);

    return half < 0 ? 0 : half >= halves ? halves - 1 : (int)half;
}

#define STAMP_SIZE sizeof "2026-11-24 08:00:12"

static void print_stamp(int64_t at_ms, char out[DESCRIBE_TIME_SIZE])
{
    if (strlen(describe_local(at_ms, out)) != STAMP_SIZE - 1)
        strcpy(out, "---------- --:--:--");
}

/* A part of "2026-11-24 08:00:12": where it begins, and its length. */
struct part {
    int from, length;
};

/* Writes when the line begins and ends at its two ends, as exactly as the length of the time asks
 * for: the first of its three parts for which so many cells have room twice, or else the last. The
 * caller frees. */
static char *print_axis(const struct span *span, int cells)
{
    static const struct part minutes[] = {{0, 19}, {11, 8}, {11, 5}};
    static const struct part hours[] = {{0, 16}, {11, 5}, {11, 5}};
    static const struct part days[] = {{0, 16}, {0, 10}, {5, 5}};
    int64_t length = span->to - span->from;
    const struct part *part = length < INT64_C(600000)     ? minutes
                              : length < INT64_C(86400000) ? hours
                                                           : days;
    char from[DESCRIBE_TIME_SIZE], to[DESCRIBE_TIME_SIZE];

    print_stamp(span->from, from);
    print_stamp(span->to, to);
    for (int i = 0; i < 2 && 2 * part->length >= cells; i++)
        part++;
    return strbuf_print("%.*s%*.*s", part->length, from + part->from, cells - part->length,
                        part->length, to + part->from);
}

/* -- drawing ----------------------------------------------------------------------------------- */

/* Returns what to draw in a cell, whose halves have the numbers "left" and left + 1. The other
 * numbers are halves, too: the run waited from "waited" on, and held from "held" until "end". */
static const char *cell_of(int left, int held, int end, int waited, const struct glyphs *glyphs)
{
    bool in_left = held <= left && left < end, in_right = held <= left + 1 && left + 1 < end;

    if (in_left && in_right)
        return glyphs->held;
    if (in_left)
        return glyphs->held_left;
    if (in_right)
        return glyphs->held_right;
    return left + 1 >= waited && left < held ? glyphs->waited : " ";
}

/* Draws a run, with at least half a cell however short it was. The caller frees. */
static char *draw_run(const struct lock_run *run, const struct span *span, int cells,
                      const struct glyphs *glyphs)
{
    int halves = 2 * cells;
    int held = half_of(span, run->by.since_ms, halves);
    int end = half_of(span, run->by.since_ms + run->held_ms - 1, halves) + 1; /* by its last ms */
    int waited = half_of(span, run->by.since_ms - run->by.waited_ms, halves);
    end = at_least(held + 1, end);
    char *line = mem_zeroed((size_t)cells * (CELL_SIZE - 1) + 1);

    for (int i = 0; i < cells; i++)
        strcat(line, cell_of(2 * i, held, end, waited, glyphs));
    return line;
}

static void set_and_free(struct table_row *row, size_t column, char *text)
{
    table_set(row, column, "%s", text);
    free(text);
}

/* -- the table --------------------------------------------------------------------------------- */

/* How many columns are left for the line of time. */
static int room_for_line(const struct table *table, int width)
{
    int room = width - (COLUMNS - 1) * TABLE_GAP;

    for (size_t c = 0; c < COLUMNS; c++)
        room -= c == COLUMN_LINE ? 0 : table_width(table, c);
    return room;
}

/* Cuts the columns of who it was and how it ended to a fair part of the width; in a narrow terminal
 * the drawing is all that says how long it waited. Returns the columns of the line of time. */
static int fit_columns(struct table *table, const struct timeline_style *style)
{
    const char *ellipsis = glyphs_of(style)->ellipsis;
    int cells;

    for (size_t i = TABLE_FIRST; i < table->count; i++) {
        table_cut(&table->rows[i], COLUMN_OUTCOME, at_least(OUTCOME_LEAST, style->width / 6),
                  ellipsis);
        table_cut(&table->rows[i], COLUMN_BY, at_least(BY_LEAST, style->width / 4), ellipsis);
    }
    /* Empties the column of the wait, which makes it narrower when all of its cells are empty. */
    for (size_t i = 0; i < table->count && room_for_line(table, style->width) < LINE_LEAST; i++)
        table_set(&table->rows[i], COLUMN_WAITED, "%s", "");
    cells = room_for_line(table, style->width);
    for (size_t i = TABLE_FIRST; i < table->count && cells < LINE_LEAST; i++)
        table_cut(&table->rows[i], COLUMN_BY, BY_LEAST, ellipsis);
    return at_least(LINE_LEAST, room_for_line(table, style->width));
}

void timeline_print(struct strbuf *out, const char *key, const struct past_run *runs, size_t count,
                    const struct timeline_style *style)
{
    static const char *const titles[COLUMNS] = {"BY", "", "HELD", "WAITED", "OUTCOME"};
    struct table table ENDED_BY(table_free) = {.columns = COLUMNS, .colored = COLUMN_LINE};
    struct span span = span_of(runs, count);
    const struct glyphs *glyphs = glyphs_of(style);

    table_add_titles(&table, titles);
    for (size_t i = 0; i < count; i++) {
        struct table_row *row = table_add(&table);
        struct identity who = runs[i].run->by.who;
        who.pid = 0; /* the process has ended, and the room is scarce */
        table_set(row, COLUMN_BY, "%s", PARTY_TEXT(&who));
        table_set_duration(row, COLUMN_HELD, runs[i].run->held_ms);
        if (runs[i].run->by.waited_ms > 0)
            table_set_duration(row, COLUMN_WAITED, runs[i].run->by.waited_ms);
        render_run_end(row, COLUMN_OUTCOME, runs[i].run, style->color);
    }
    int cells = fit_columns(&table, style);
    set_and_free(&table.rows[0], COLUMN_LINE, print_axis(&span, cells));
    for (size_t i = 0; i < count; i++)
        set_and_free(&table.rows[TABLE_FIRST + i], COLUMN_LINE,
                     draw_run(runs[i].run, &span, cells, glyphs));
    render_line(out, "last runs (%s waited, %s held) of %s", glyphs->waited, glyphs->held, key);
    table_print(out, &table);
}
