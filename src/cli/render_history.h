/* What a store remembers of former runs, as text for people and as JSON for programs; the names in
 * JSON are a contract, which rlock-history(1) documents. Pure but for the stream that is given. */
#ifndef RLOCK_CLI_RENDER_HISTORY_H
#define RLOCK_CLI_RENDER_HISTORY_H

#include <stdio.h>

#include "cli/json.h"
#include "lock/lock.h"
#include "store/views.h"

/* A run and the lock that it had; both are borrowed. */
struct past_run {
    const char *key;
    const struct lock_run *run;
};

/* Those of all the locks, the oldest first; the caller frees the array. */
struct past_run *past_runs_collect(const struct lock_views *locks, size_t *count);

/* A row a run. */
void render_history(FILE *out, const struct past_run *runs, size_t count, bool color);
/* An array of objects, in one line. */
void render_history_json(FILE *out, const struct json_library *json, const struct past_run *runs,
                         size_t count);

#endif
