#include "cli/table.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/mem.h"
#include "base/utf8.h"

struct table_row *table_add(struct table *table)
{
    struct table_row *row = MEM_APPEND(table->rows, table->count);

    *row = (struct table_row){0};
    for (size_t i = 0; i < table->columns; i++)
        row->cells[i] = mem_strdup("");
    return row;
}

void table_add_titles(struct table *table, const char *const *titles)
{
    struct table_row *row = table_add(table);

    for (size_t i = 0; i < table->columns; i++)
        table_set(row, i, "%s", titles[i]);
}

void table_free(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        for (size_t c = 0; c < TABLE_COLUMNS_MAX; c++)
            free(table->rows[i].cells[c]);
    free(table->rows);
    *table = (struct table){0};
}

void table_set(struct table_row *row, size_t column, const char *format, ...)
{
    struct strbuf shown = {0};
    va_list values;

    va_start(values, format);
    strbuf_vescape(&shown, format, values);
    va_end(values);
    free(row->cells[column]);
    row->cells[column] = strbuf_detach(&shown);
}

void table_set_duration(struct table_row *row, size_t column, int64_t ms)
{
    table_set(row, column, "%s", MS_TEXT(ms));
}

void table_cut(struct table_row *row, size_t column, int room, const char *ellipsis)
{
    const char *whole = row->cells[column];

    if ((int)utf8_width(whole) <= room)
        return;
    size_t kept = room > 1 ? utf8_fit(whole, (size_t)room - 1) : 0;
    char *cut = strbuf_print("%.*s%s", (int)kept, whole, ellipsis);
    free(row->cells[column]);
    row->cells[column] = cut;
}

void table_cut_middle(struct table_row *row, size_t column, int room, const char *ellipsis)
{
    const char *whole = row->cells[column], *end = whole;
    int width = (int)utf8_width(whole), tail = room > 1 ? (room - 1) / 2 : 0;

    if (width <= room)
        return;
    /* Drops characters of one column, or of two, until the others fit behind the ellipsis. */
    while ((int)utf8_width(end) > tail)
        end += utf8_fit(end, 1) > 0 ? utf8_fit(end, 1) : utf8_fit(end, 2);
    size_t kept = room > 1 ? utf8_fit(whole, (size_t)(room - 1 - tail)) : 0;
    char *cut = strbuf_print("%.*s%s%s", (int)kept, whole, ellipsis, end);
    free(row->cells[column]);
    row->cells[column] = cut;
}

int table_width(const struct table *table, size_t column)
{
    int widest = 0;

    for (size_t i = 0; i < table->count; i++) {
        int width = (int)utf8_width(table->rows[i].cells[column]);
        widest = width > widest ? width : widest;
    }
    return widest;
}

int table_line_width(const struct table *table, size_t columns)
{
    int total = -TABLE_GAP;

    for (size_t c = 0; c < columns; c++)
        total += table->hidden[c] ? 0 : table_width(table, c) + TABLE_GAP;
    return total;
}

void table_print(struct strbuf *out, const struct table *table)
{
    int widths[TABLE_COLUMNS_MAX] = {0};

    for (size_t c = 0; c < table->columns; c++)
        widths[c] = table_width(table, c);
    for (size_t i = 0; i < table->count; i++) {
        for (size_t c = 0; c < table->columns; c++) {
            const char *text = table->rows[i].cells[c];
            if (table->hidden[c])
                continue;
            bool colored = c == table->colored && table->rows[i].color;
            bool last = c + 1 == table->columns;
            int gap = last ? 0 : widths[c] - (int)utf8_width(text) + TABLE_GAP;
            strbuf_printf(out, "%s%s%s%*s", colored ? table->rows[i].color : "", text,
                          colored ? TABLE_PLAIN : "", gap, "");
        }
        strbuf_putc(out, '\n');
    }
}
