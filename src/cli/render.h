/* Locks, as text for people and as JSON for programs. In text, everything that others wrote is
 * escaped (base/utf8.h); the names in JSON are a contract, which rlock-status(1) documents.
 * Pure. */
#pragma once

#include "cli/describe.h"
#include "cli/json.h"
#include "cli/table.h"
#include "lock/key.h"
#include "store/views.h"

struct render_style {
    bool color;
    int width; /* of a line, to which the rows of a table are cut; 0: unlimited */
};

/* Prints a line, escaped; the format has no newline. */
void render_line(struct strbuf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints a row for each lock. */
void render_table(struct strbuf *out, const struct lock_view *locks, size_t count,
                  const struct render_style *style);

/* Prints every holder, and the queue in its order. */
void render_long(struct strbuf *out, const struct lock_view *locks, size_t count,
                 const struct render_style *style);

/* Prints an array of objects, in one line: the locks, then the pauses of GLOBs, whose keys are
 * null. */
void render_json(struct strbuf *out, const struct lock_views *locks,
                 const struct lock_views *pauses);

/* Puts a run into an object: who had the lock, since when, and how it ended. held_ms is -1 if it
 * has not ended. */
void render_run_members(json_t *object, const struct lock_party *by, int64_t held_ms);
/* Puts how a run ended into an object, for programs; null: not known, or no command was run. */
void render_result_members(json_t *object, const struct lock_party *by);

/* -- former runs, as far as a store remembers them; rlock-history(1) has the names in JSON -- */

/* A run and the key of its lock; both are borrowed. */
struct past_run {
    const char *key;
    const struct lock_run *run;
    int64_t order_ms; /* when it began; not before an earlier run of the key, by any clock */
};

/* Returns the runs of all locks, the oldest first: *count of them. The caller frees the array. */
struct past_run *past_runs_collect(const struct lock_views *locks, size_t *count);

/* Sets the cell about the end of a run, and the colour of its row. */
void render_run_end(struct table_row *row, size_t column, const struct lock_run *run, bool color);
/* Prints a row for each run. */
void render_history(struct strbuf *out, const struct past_run *runs, size_t count,
                    const struct render_style *style);
/* Prints an array of objects, in one line. */
void render_history_json(struct strbuf *out, const struct past_run *runs, size_t count);
