/* A latch as text for people and as JSON for programs. */
#ifndef RLOCK_RENDER_LATCH_H
#define RLOCK_RENDER_LATCH_H

#include <stdio.h>

#include "json.h"
#include "latch.h"

/* What was counted by name. */
struct latch_ids {
    char **ids;
    size_t count, room;
};

/* Takes a copy; "arg" is the list. */
void latch_ids_add(void *arg, const char *id);
void latch_ids_free(struct latch_ids *ids);

void render_latch(FILE *out, const char *key, const struct latch_state *latch,
                  const struct latch_ids *ids);
void render_latch_json(FILE *out, const struct json_library *json, const char *key,
                       const struct latch_state *latch, const struct latch_ids *ids);

#endif
