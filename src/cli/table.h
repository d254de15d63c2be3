/* A table of text in columns, as wide as their widest cells. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

/* Colours of what is taken, and of what is not. */
#define TABLE_YELLOW "\033[33m"
#define TABLE_GREEN  "\033[32m"
#define TABLE_PLAIN  "\033[m"

#define TABLE_FIRST       1 /* row behind that of the titles */
#define TABLE_COLUMNS_MAX 8
#define TABLE_GAP         2 /* columns of the terminal between two of the table */

struct table_row {
    char *cells[TABLE_COLUMNS_MAX];
    const char *color; /* of the cell in table.colored, or NULL */
};

/* A table is all zero at first, except for "columns" and "colored". table_free() frees its rows. */
struct table {
    size_t columns;
    size_t colored; /* the one whose cells have colours */
    bool hidden[TABLE_COLUMNS_MAX];
    struct table_row *rows;
    size_t count;
};

/* Adds a row of empty cells, or of titles; the row stays where it is until the next one is
 * added. */
struct table_row *table_add(struct table *table);
void table_add_titles(struct table *table, const char *const *titles);
/* Frees the rows and their cells. */
void table_free(struct table *table);

/* Prints a text into a cell, escaped (base/utf8.h), in place of what was there. */
void table_set(struct table_row *row, size_t column, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void table_set_duration(struct table_row *row, size_t column, int64_t ms);
/* Cuts a cell that is wider than "room" columns of a terminal to that width, with an ellipsis of
 * one column at its end. */
void table_cut(struct table_row *row, size_t column, int room, const char *ellipsis);
/* Cuts a cell like table_cut(), but with the ellipsis in the middle: both ends of a name tell it
 * from others. */
void table_cut_middle(struct table_row *row, size_t column, int room, const char *ellipsis);

/* Returns the width of the widest cell. */
int table_width(const struct table *table, size_t column);
/* Returns the width of a line of the first so many columns. */
int table_line_width(const struct table *table, size_t columns);
/* Prints the rows, a line each; the last column is not padded. */
void table_print(struct strbuf *out, const struct table *table);
