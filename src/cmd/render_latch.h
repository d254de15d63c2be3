/* Latches, as text for people and as JSON for programs. In text, everything that others wrote is
 * escaped; the names in JSON are a contract, which rlock-latch(1) documents. Pure. */
#pragma once

#include "cli/json.h"
#include "lock/lock.h"

/* The ids that a latch has counted. */
struct latch_ids {
    char **ids;
    size_t count;
};

/* Adds a copy; "arg" is the list. */
void latch_ids_add(void *arg, const char *id);
void latch_ids_free(struct latch_ids *ids);

/* One latch with the ids that it has counted. */
void render_latch(struct strbuf *out, const char *key, const struct latch_state *latch,
                  const struct latch_ids *ids);
void render_latch_json(struct strbuf *out, const char *key, const struct latch_state *latch,
                       const struct latch_ids *ids);

/* The latches of a survey: a row each, or an array of objects. */
void render_latches(struct strbuf *out, const struct lock_view *latches, size_t count, bool color);
void render_latches_json(struct strbuf *out, const struct lock_view *latches, size_t count);
