/* Former runs, as far as a store remembers them, as text for people and as JSON for programs; the
 * names in JSON are a contract, which rlock-history(1) documents. Pure but for the stream that is
 * given. */
#ifndef RLOCK_CLI_RENDER_HISTORY_H
#define RLOCK_CLI_RENDER_HISTORY_H

#include <stdio.h>

#include "cli/json.h"
#include "lock/lock.h"
#include "store/views.h"

/* A run and the key of its lock; both are borrowed. */
struct past_run {
    const char *key;
    const struct lock_run *run;
};

/* Returns the runs of all locks, the oldest first. The caller frees the array. */
struct past_run *past_runs_collect(const struct lock_views *locks, size_t *count);

/* Prints a row for each run. */
void render_history(FILE *out, const struct past_run *runs, size_t count, bool color);
/* Prints an array of objects, in one line. */
void render_history_json(FILE *out, const struct json_library *json, const struct past_run *runs,
                         size_t count);

#endif
