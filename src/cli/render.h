/* Locks, as text for people and as JSON for programs. In text, everything that others wrote is
 * escaped (base/utf8.h); the names in JSON are a contract, which rlock-status(1) documents. Pure
 * but for the stream that is given. */
#pragma once

#include "cli/describe.h"
#include "cli/json.h"
#include "lock/key.h"
#include "store/views.h"

struct render_style {
    bool color;
    int width; /* of a line; 0: unlimited */
    bool cut;  /* keys, too, if a line of a table would be longer */
};

/* describe_party(), escaped. Returns out. */
char *render_party(const struct identity *who, char *out, size_t size);
#define RENDER_PARTY_SIZE (4 * DESCRIBE_PARTY_SIZE)

/* Prints a row for each lock. */
void render_table(FILE *out, const struct lock_view *locks, size_t count,
                  const struct render_style *style);

/* Prints every holder, and the queue in its order. */
void render_long(FILE *out, const struct lock_view *locks, size_t count,
                 const struct render_style *style);

/* "GLOB: paused by WHO until 21:51 (1h59m left): WHY". Returns out. */
#define RENDER_PAUSE_SIZE (RENDER_PARTY_SIZE + 4 * KEY_MAX_BYTES + 4 * IDENTITY_WORD_MAX + 128)
char *render_glob_pause(const struct lock_view *pause, char out[RENDER_PAUSE_SIZE]);

/* Prints an array of objects, in one line: the locks, then the pauses of GLOBs, whose keys are
 * null. */
void render_json(FILE *out, const struct json_library *json, const struct lock_views *locks,
                 const struct lock_views *pauses);

/* Puts a run into an object: who had the lock, since when, and how it ended. held_ms is -1 if it
 * has not ended. */
void render_run_members(const struct json_library *json, json_t *object,
                        const struct lock_party *by, int64_t held_ms);

/* -- former runs, as far as a store remembers them; rlock-history(1) has the names in JSON -- */

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
